use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// What a service does with the effects: stores, runs, and fails now and then.
#[derive(Default)]
struct World {
    state: State,
    stored: BTreeMap<JobId, Record>,
    running: BTreeMap<(JobId, Run), Start>,
    stopping: BTreeSet<(JobId, Run)>,
    /// Runs that may do what they intend.
    proceeding: BTreeSet<(JobId, Run)>,
    removing: Vec<(JobId, Run)>,
    started: BTreeSet<(JobId, Run)>,
    /// Steps whose result a job went on with.
    done: BTreeSet<(JobId, usize)>,
    cancelled: BTreeSet<JobId>,
    next: u64,
}

impl World {
    fn apply(&mut self, input: Input) -> Result<(), JobError> {
        let mut effects = Vec::new();
        let result = self.state.apply(input, &mut effects);
        assert!(result.is_ok() || effects.is_empty());
        self.perform(effects);
        result
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Save(record) => {
                    let text = serde_json::to_string(&record).unwrap();
                    let read: Record = serde_json::from_str(&text).unwrap();
                    assert_eq!(read, record, "what is stored is read back");
                    self.stored.insert(record.id, record);
                }
                Effect::Delete(id) => drop(self.stored.remove(&id)),
                Effect::Start(start) => {
                    let key = (start.id, start.run);
                    assert!(self.started.insert(key), "a run starts once");
                    let stored = &self.stored[&start.id];
                    assert!(
                        stored.run == start.run && stored.phase == Phase::Running,
                        "saved before"
                    );
                    assert!(start.interrupted.iter().all(|run| *run < start.run));
                    self.running.insert(key, start);
                }
                Effect::Proceed(id, run) => {
                    assert!(self.stored[&id].run == run && !self.stored[&id].intended.is_empty());
                    self.proceeding.insert((id, run));
                }
                Effect::Stop(id, run) => {
                    assert!(self.stopping.insert((id, run)), "stopped once");
                    assert!(!self.proceeding.contains(&(id, run)), "not in the middle of a commit");
                }
                Effect::RemoveOriginals(id, run, originals) => {
                    assert_eq!(self.stored[&id].phase, Phase::Removing { files: originals });
                    assert!(!self.cancelled.contains(&id), "a cancelled job keeps its archive");
                    self.removing.push((id, run));
                }
                Effect::Publish(id) => assert!(self.state.view(id).is_some() || !self.stored.contains_key(&id)),
            }
        }
        let unpacks = self.running.values().filter(|start| start.step.is_unpack()).count();
        assert!(unpacks <= UNPACKS && self.running.len() - unpacks <= OTHERS);
        if self.stored.len() > 100 {
            return;
        }
        let current: BTreeMap<_, _> = self
            .state
            .views()
            .map(|view| (view.record.id, view.record.clone()))
            .collect();
        for (id, record) in &current {
            // After a crash, what runs in the store waits for its turn.
            let stored = &self.stored[id];
            assert!(stored == record || (stored.phase == Phase::Running && record.phase == Phase::Waiting));
        }
    }

    fn add(&mut self, steps: Vec<Step>) {
        self.next += 1;
        let files = vec!["a.zip".into()];
        let id = JobId(self.next);
        self.apply(Input::Add {
            id,
            files,
            steps,
            awaits: Vec::new(),
        })
        .unwrap();
    }

    /// Ends a run in one of the ways in which it can.
    fn end(&mut self, index: usize, outcome: u8) {
        let Some(key) = self.running.keys().nth(index % self.running.len().max(1)).copied() else {
            return;
        };
        let start = self.running.remove(&key).unwrap();
        let (id, run) = key;
        if outcome.is_multiple_of(3) || (self.stopping.contains(&key) && outcome.is_multiple_of(2)) {
            self.apply(Input::Failed(id, run, "reason".to_owned())).unwrap();
            return;
        }
        self.done.insert((id, self.stored[&id].step));
        let originals = if start.step.is_unpack() || matches!(start.step, Step::Plugin { .. }) {
            start.files.iter().map(|file| original(file)).collect()
        } else {
            Vec::new()
        };
        let files = vec![format!("result of {}", run.0).into()];
        let input = Input::Finished {
            id,
            run,
            files,
            originals,
        };
        self.apply(input).unwrap();
    }

    fn crash(&mut self) {
        self.running.clear();
        self.stopping.clear();
        self.removing.clear();
        let mut effects = Vec::new();
        self.state = State::load(self.stored.values().cloned().collect(), &mut effects);
        self.perform(effects);
    }

    /// Lets everything end well.
    fn settle(&mut self) {
        while !self.running.is_empty() || !self.removing.is_empty() {
            while let Some((id, run)) = self.removing.pop() {
                self.apply(Input::Removed(id, run, Vec::new())).unwrap();
            }
            self.end(0, 1);
        }
    }
}

fn original(path: &Path) -> Original {
    let text = format!(r#"{{"path":{path:?},"device":1,"inode":2,"bytes":3,"modified":[4,5]}}"#);
    serde_json::from_str(&text).unwrap()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        any::<bool>().prop_map(|delete_original| Step::Unpack {
            passwords: Passwords(vec![Secret::new("p")]),
            delete_original,
            into: None,
        }),
        Just(Step::Rename {
            template: "{name}".to_owned(),
        }),
        Just(Step::Remux {
            container: Container::Mp4,
        }),
        Just(Step::Checksum {
            algorithms: vec![Digest(transfer::checksum::Algorithm::Sha256)],
        }),
        Just(Step::Plugin {
            identity: "unpack@svc".to_owned(),
        }),
    ];
    prop::collection::vec(step, 1..4).prop_filter("a chain that is possible", |steps| check_chain(steps).is_ok())
}

#[derive(Debug, Clone)]
enum Act {
    Add(Vec<Step>),
    End(usize, u8),
    Intend(usize),
    Stale(u64, u32),
    Cancel(u64),
    Retry(u64),
    Forget(u64),
    Removed,
    Crash,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => steps().prop_map(Act::Add),
        5 => (any::<usize>(), any::<u8>()).prop_map(|(index, outcome)| Act::End(index, outcome)),
        1 => any::<usize>().prop_map(Act::Intend),
        1 => (0..20_u64, 0..5_u32).prop_map(|(id, run)| Act::Stale(id, run)),
        1 => (0..20_u64).prop_map(Act::Cancel),
        1 => (0..20_u64).prop_map(Act::Retry),
        1 => (0..20_u64).prop_map(Act::Forget),
        2 => Just(Act::Removed),
        1 => Just(Act::Crash),
    ];
    prop::collection::vec(act, 0..60)
}

fn act(world: &mut World, act: Act) {
    match act {
        Act::Add(steps) => world.add(steps),
        Act::End(index, outcome) => world.end(index, outcome),
        Act::Intend(index) => {
            let key = world.running.keys().nth(index % world.running.len().max(1)).copied();
            if let Some((id, run)) = key {
                world.apply(Input::Intends(id, run, vec!["to".into()])).unwrap();
            }
        }
        Act::Stale(id, run) => {
            let (id, run) = (JobId(id), Run(run));
            if !world.running.contains_key(&(id, run)) {
                let before = world.stored.clone();
                world.apply(Input::Failed(id, run, "stale".to_owned())).unwrap();
                assert_eq!(world.stored, before, "a run that is not current says nothing");
            }
        }
        Act::Cancel(id) => {
            let id = JobId(id);
            let removing =
                matches!(world.stored.get(&id), Some(record) if matches!(record.phase, Phase::Removing { .. }));
            if world.apply(Input::Cancel(id)).is_ok() && !removing {
                world.cancelled.insert(id);
            }
        }
        Act::Retry(id) => {
            if world.apply(Input::Retry(JobId(id))).is_ok() {
                world.cancelled.remove(&JobId(id));
                world.stopping.retain(|(job, _)| *job != JobId(id));
            }
        }
        Act::Forget(id) => drop(world.apply(Input::Forget(JobId(id)))),
        Act::Removed => {
            if let Some((id, run)) = world.removing.pop() {
                world.apply(Input::Removed(id, run, vec!["a.zip".into()])).unwrap();
            }
        }
        Act::Crash => {
            // What was cancelled and not saved as such is started again, as after any crash.
            world.cancelled.clear();
            world.crash();
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_jobs_end_and_the_rules_hold(acts in acts()) {
        let mut world = World::default();
        for next in acts {
            act(&mut world, next);
        }
        world.crash();
        world.cancelled.clear();
        world.settle();
        for view in world.state.views() {
            prop_assert!(view.record.phase.is_ended());
            let steps = view.record.steps.len();
            if view.record.phase == Phase::Done {
                prop_assert!((0..steps).all(|step| world.done.contains(&(view.record.id, step))));
            }
        }
    }
}

fn unpack(delete_original: bool) -> Step {
    Step::Unpack {
        passwords: Passwords::default(),
        delete_original,
        into: None,
    }
}

#[test]
fn the_archive_is_removed_when_the_result_is_saved_and_the_chain_goes_on() {
    let mut world = World::default();
    let rename = Step::Rename {
        template: "{host}/{name}".to_owned(),
    };
    world.add(vec![unpack(true), rename]);
    world.add(vec![unpack(false)]);
    assert_eq!(world.running.len(), 1, "one unpacking at a time");
    world.end(0, 1);
    assert_eq!(world.removing, [(JobId(1), Run(1))]);
    assert!(
        world.state.interrupted().all(|(id, _)| id != JobId(1)),
        "what the run left can be swept"
    );
    // A crash here repeats the removal, not the unpacking.
    world.crash();
    assert_eq!(world.removing, [(JobId(1), Run(1))]);
    act(&mut world, Act::Removed);
    let start = &world.running[&(JobId(1), Run(2))];
    assert_eq!(start.files, [PathBuf::from("result of 1")]);
    assert_eq!(
        world.stored[&JobId(1)].kept,
        [PathBuf::from("a.zip")],
        "what could not be removed is said"
    );
    world.settle();
    assert!(world.state.views().all(|view| view.record.phase == Phase::Done));
}

#[test]
fn interrupted_runs_are_remembered_until_the_step_ends() {
    let mut world = World::default();
    world.add(vec![unpack(false)]);
    world.crash();
    world.crash();
    let start = &world.running[&(JobId(1), Run(3))];
    assert_eq!(start.interrupted, [Run(1), Run(2)]);
    assert_eq!(world.state.interrupted().count(), 3);
    world.end(0, 0);
    assert_eq!(world.state.interrupted().count(), 0);
    world.apply(Input::Retry(JobId(1))).unwrap();
    assert!(world.running[&(JobId(1), Run(4))].interrupted.is_empty());
}

#[test]
fn limits_and_mistakes_are_refused() {
    let mut world = World::default();
    let mut add = |id, files: usize, steps| {
        let (id, files) = (JobId(id), vec!["f".into(); files]);
        world.apply(Input::Add {
            id,
            files,
            steps,
            awaits: Vec::new(),
        })
    };
    assert_eq!(add(1, 1, vec![]), Err(JobError::Steps(0)));
    assert_eq!(add(1, 1, vec![unpack(false); 17]), Err(JobError::Steps(17)));
    assert_eq!(add(1, 0, vec![unpack(false)]), Err(JobError::Files(0)));
    let template = "{x}".to_owned();
    assert!(matches!(
        add(1, 1, vec![Step::Rename { template }]),
        Err(JobError::Template(_))
    ));
    assert_eq!(add(5, 1, vec![unpack(false)]), Ok(()));
    assert_eq!(add(5, 1, vec![unpack(false)]), Err(JobError::NotNew(JobId(5))));
    assert_eq!(add(4, 1, vec![unpack(false)]), Err(JobError::NotNew(JobId(4))));
    let stored = world.stored[&JobId(5)].clone();
    let many = (5..5 + MAX_OPEN_JOBS as u64).map(|id| Record {
        id: JobId(id),
        ..stored.clone()
    });
    world.stored.extend(many.map(|record| (record.id, record)));
    world.crash();
    let mut add = |id, files: usize, steps| {
        let (id, files) = (JobId(id), vec!["f".into(); files]);
        world.apply(Input::Add {
            id,
            files,
            steps,
            awaits: Vec::new(),
        })
    };
    assert_eq!(add(1 << 40, 1, vec![unpack(false)]), Err(JobError::Full));
    assert_eq!(world.apply(Input::Forget(JobId(5))), Err(JobError::NotEnded(JobId(5))));
    assert_eq!(world.apply(Input::Cancel(JobId(1))), Err(JobError::Unknown(JobId(1))));
}

#[test]
fn secrets_do_not_print() {
    let passwords = Passwords(vec![Secret::new("canary")]);
    assert!(!format!("{passwords:?}").contains("canary"));
}

#[test]
fn a_job_begins_when_no_file_is_awaited_any_more() {
    let mut world = World::default();
    let id = JobId(1);
    let (files, steps) = (vec!["a.part1.rar".into()], vec![unpack(false)]);
    world
        .apply(Input::Add {
            id,
            files,
            steps,
            awaits: vec!["a.part2.rar".to_owned(), "a.part3.rar".to_owned()],
        })
        .unwrap();
    let arrived = |count: usize, awaits: &[&str]| Input::Arrived {
        id,
        files: (1..=count).map(|number| format!("a.part{number}.rar").into()).collect(),
        steps: vec![unpack(false)],
        awaits: awaits.iter().map(|name| (*name).to_owned()).collect(),
    };
    world.next = 1;
    world.add(vec![unpack(false)]);
    // Another one does not wait behind it, and a crash changes nothing.
    world.crash();
    assert_eq!(world.running.keys().map(|(id, _)| id.0).collect::<Vec<_>>(), [2]);
    world.settle();
    world.apply(arrived(2, &["a.part3.rar"])).unwrap();
    world.crash();
    assert!(world.running.is_empty());
    assert!(world.stored[&id].is_awaiting());
    assert_eq!(world.apply(arrived(0, &[])), Err(JobError::Files(0)));
    world.apply(arrived(3, &[])).unwrap();
    assert_eq!(world.running[&(id, Run(1))].files.len(), 3);
    world.apply(arrived(1, &["a.part2.rar"])).unwrap();
    assert!(!world.stored[&id].is_awaiting(), "not while it runs");
    world.settle();
    assert_eq!(world.stored[&id].phase, Phase::Done);
}

#[test]
fn a_job_that_cannot_go_on_with_what_came_has_failed() {
    let mut world = World::default();
    let add = |id| Input::Add {
        id,
        files: vec!["a.part1.rar".into()],
        steps: vec![unpack(false)],
        awaits: vec!["a.part2.rar".to_owned()],
    };
    let id = JobId(1);
    world.apply(add(id)).unwrap();
    let reason = JobError::Files(MAX_FILES + 1);
    let arrived = Input::Arrived {
        id,
        files: vec!["f".into(); MAX_FILES + 1],
        steps: vec![unpack(false)],
        awaits: Vec::new(),
    };
    assert_eq!(world.apply(arrived), Err(reason.clone()));
    world.apply(Input::Unusable(id, reason.to_string())).unwrap();
    assert!(matches!(world.stored[&id].phase, Phase::Failed { .. }));
    world.next = 1;
    world.add(vec![unpack(false)]);
    world.apply(Input::Unusable(JobId(2), String::new())).unwrap();
    assert_eq!(world.stored[&JobId(2)].phase, Phase::Running, "it awaits nothing");
}

#[test]
fn a_run_that_commits_is_not_stopped_and_its_result_is_kept() {
    let mut world = World::default();
    let rename = Step::Rename {
        template: "{name}".to_owned(),
    };
    world.add(vec![rename.clone(), rename]);
    let id = JobId(1);
    world
        .apply(Input::Intends(id, Run(1), vec!["result of 1".into()]))
        .unwrap();
    world.apply(Input::Cancel(id)).unwrap();
    assert!(world.stopping.is_empty());
    assert_eq!(world.stored[&id].phase, Phase::Running);
    world.end(0, 1);
    let stored = &world.stored[&id];
    assert_eq!((&stored.phase, stored.step), (&Phase::Cancelled, 1));
    assert_eq!(stored.files, [PathBuf::from("result of 1")], "where they are");
    // The next run can be stopped again.
    world.apply(Input::Retry(id)).unwrap();
    world.apply(Input::Cancel(id)).unwrap();
    assert!(world.stopping.contains(&(id, Run(2))));
}

#[test]
fn a_failed_step_intends_no_new_files_any_more() {
    let mut world = World::default();
    world.add(vec![Step::Remux {
        container: Container::Mp4,
    }]);
    let intended = vec![PathBuf::from("a.zip"), PathBuf::from("a.mp4")];
    let id = JobId(1);
    world.apply(Input::Intends(id, Run(1), intended.clone())).unwrap();
    world.crash();
    assert_eq!(world.running[&(id, Run(2))].intended, intended, "it may be there");
    world.end(0, 0);
    world.apply(Input::Retry(id)).unwrap();
    assert_eq!(world.running[&(id, Run(3))].intended, intended[..1]);
}
