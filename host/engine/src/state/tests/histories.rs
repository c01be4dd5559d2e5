//! Random histories against the invariants.

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Create { task: u8, queue: u8, is_paused: bool },
    Pause(u8),
    Resume(u8),
    Delete(u8, FileFate),
    Boost(u8),
    Move(u8, u8),
    Reorder(u8, Vec<u8>),
    ChangeUrl(u8),
    Rename(u8),
    Renamed,
    StartQueue(u8),
    StopQueue(u8),
    CreateQueue(u8),
    DeleteQueue(u8),
    LimitQueue(u8, u32),
    Limit(u32),
    PauseAll,
    ResumeAll,
    Reserve(u8, u8),
    Land(u8),
    LandingLookedFor(FileState),
    Kill,
    Progress(u8),
    End(u8, u8),
    RequestRetry(u8, u16),
    FilesDeleted,
    Wait(u16),
    Upload(u8, u16),
    EndSeed(u8, bool),
    SeedSettings(u8, u8),
    SeedLimits(u8, u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let task = 0..8_u8;
    let queue = 0..4_u8;
    let fate = prop_oneof![Just(FileFate::Keep), Just(FileFate::Delete)];
    let step = prop_oneof![
        6 => (task.clone(), queue.clone(), any::<bool>())
            .prop_map(|(task, queue, is_paused)| Step::Create { task, queue, is_paused }),
        3 => task.clone().prop_map(Step::Pause),
        3 => task.clone().prop_map(Step::Resume),
        2 => (task.clone(), fate).prop_map(|(task, fate)| Step::Delete(task, fate)),
        1 => task.clone().prop_map(Step::Boost),
        1 => (task.clone(), queue.clone()).prop_map(|(task, queue)| Step::Move(task, queue)),
        1 => (queue.clone(), prop::collection::vec(task.clone(), 0..5)).prop_map(|(queue, order)| Step::Reorder(queue, order)),
        1 => task.clone().prop_map(Step::ChangeUrl),
        1 => task.clone().prop_map(Step::Rename),
        2 => Just(Step::Renamed),
        1 => queue.clone().prop_map(Step::StartQueue),
        1 => queue.clone().prop_map(Step::StopQueue),
        1 => queue.clone().prop_map(Step::CreateQueue),
        1 => queue.clone().prop_map(Step::DeleteQueue),
        1 => (queue, 0..3_u32).prop_map(|(queue, limit)| Step::LimitQueue(queue, limit)),
        1 => (1..4_u32).prop_map(Step::Limit),
        1 => Just(Step::PauseAll),
        1 => Just(Step::ResumeAll),
        3 => (task.clone(), 0..3_u8).prop_map(|(task, path)| Step::Reserve(task, path)),
        2 => task.clone().prop_map(Step::Land),
        2 => prop_oneof![Just(FileState::Present), Just(FileState::Missing)].prop_map(Step::LandingLookedFor),
        1 => Just(Step::Kill),
        2 => task.clone().prop_map(Step::Progress),
        8 => (task.clone(), 0..7_u8).prop_map(|(task, how)| Step::End(task, how)),
        4 => (task.clone(), any::<u16>()).prop_map(|(task, delay)| Step::RequestRetry(task, delay)),
        2 => Just(Step::FilesDeleted),
        2 => any::<u16>().prop_map(Step::Wait),
        2 => (task.clone(), 0..30_u16).prop_map(|(task, bytes)| Step::Upload(task, bytes)),
        3 => (task.clone(), any::<bool>()).prop_map(|(task, fails)| Step::EndSeed(task, fails)),
        2 => (any::<u8>(), 0..3_u8).prop_map(|(kind, most)| Step::SeedSettings(kind, most)),
        1 => (task.clone(), 0..3000_u16).prop_map(|(task, ratio)| Step::SeedLimits(task, ratio)),
    ];
    prop::collection::vec(step, 1..80)
}

fn landing(task: u8) -> Landing {
    Landing {
        path: format!("/downloads/landed-{task}").into(),
        inode: task.into(),
        size_bytes: 10,
    }
}

fn seed_settings(kind: u8, most: u8) -> SeedSettings {
    let has = |bit: u8| kind & bit != 0;
    SeedSettings {
        is_enabled: !kind.is_multiple_of(7),
        continues_on_start: !kind.is_multiple_of(5),
        max_active: most.into(),
        ratio_milli: if has(1) { 1500 } else { 0 },
        post_ratio_milli: if has(2) { 700 } else { 0 },
        time_minutes: if has(4) { 90 } else { 0 },
        idle_minutes: if has(8) { 60 } else { 0 },
        operator: if has(16) { SeedOperator::All } else { SeedOperator::Any },
        then: match kind >> 5 {
            0 => SeedThen::Delete(FileFate::Keep),
            1 => SeedThen::Delete(FileFate::Delete),
            _ => SeedThen::Stop,
        },
    }
}

fn queue(n: u8) -> QueueId {
    match n {
        0 => QueueId::Main,
        1 => QueueId::Later,
        n => format!("0000000{n}-0000-4000-8000-000000000000").parse().unwrap(),
    }
}

fn queue_spec(n: u8, max_concurrent: u32) -> QueueSpec {
    let name = match n {
        0 => "main".to_owned(),
        1 => "later".to_owned(),
        n => format!("queue {n}"),
    };
    QueueSpec {
        name,
        max_concurrent,
        ..QueueSpec::default()
    }
}

impl World {
    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    fn step(&mut self, step: Step) {
        let input = match step {
            Step::Create {
                task,
                queue: to,
                is_paused,
            } => {
                let mut spec = spec(task);
                spec.queue = Some(queue(to));
                spec.start_paused = is_paused;
                Input::Command(Command::Create(vec![(id(task), spec)]))
            }
            Step::Pause(task) => Input::Command(Command::Pause(id(task))),
            Step::Resume(task) => Input::Command(Command::Resume(id(task))),
            Step::Delete(task, fate) => Input::Command(Command::Delete(id(task), fate)),
            Step::Boost(task) => Input::Command(Command::Boost(id(task))),
            Step::Move(task, to) => Input::Command(Command::MoveTask(id(task), Some(queue(to)))),
            Step::Reorder(n, order) => {
                Input::Command(Command::QueueReorder(queue(n), order.into_iter().map(id).collect()))
            }
            Step::ChangeUrl(task) => Input::Command(Command::ChangeUrl(
                id(task),
                SafeUrl::parse("http://other.test/x").unwrap(),
                None,
            )),
            Step::Rename(task) => Input::Command(Command::Rename(
                id(task),
                FileName::sanitise(&format!("renamed-{task}")),
            )),
            Step::Renamed => match self.renames.pop() {
                Some((task, _)) => Input::Renamed(task, Ok(())),
                None => return,
            },
            Step::StartQueue(n) => Input::Command(Command::QueueStart(queue(n))),
            Step::StopQueue(n) => Input::Command(Command::QueueStop(queue(n))),
            Step::CreateQueue(n) if self.state.queue_states.contains_key(&queue(n)) => return,
            Step::CreateQueue(n) => Input::Command(Command::QueueCreate(queue(n), Box::new(queue_spec(n, 0)))),
            Step::DeleteQueue(n) => Input::Command(Command::QueueDelete(queue(n))),
            Step::LimitQueue(n, limit) => {
                Input::Command(Command::QueueUpdate(queue(n), Box::new(queue_spec(n, limit))))
            }
            Step::Limit(limit) => return self.settings(|settings| settings.max_concurrent_tasks = limit),
            Step::PauseAll => Input::Command(Command::PauseAll),
            Step::ResumeAll => Input::Command(Command::ResumeAll),
            Step::Reserve(task, path) => match self.run_of(task) {
                Some(run) => Input::Reserved(id(task), run, format!("/downloads/file-{path}").into(), Some(100)),
                None => return,
            },
            Step::Land(task) => match self.run_of(task) {
                Some(run) => Input::Landing(id(task), run, landing(task)),
                None => return,
            },
            Step::LandingLookedFor(found) => match self.landings.pop() {
                Some((task, _)) => Input::LandingLookedFor(task, found),
                None => return,
            },
            Step::Kill => return *self = self.killed(),
            Step::Progress(task) => match self.run_of(task) {
                Some(run) => {
                    let progress = Progress {
                        stage: Stage::Moving,
                        done_bytes: 5,
                        ..Progress::default()
                    };
                    Input::Progressed(vec![(id(task), run, progress)])
                }
                None => return,
            },
            Step::End(task, how) => return self.end_somehow(task, how),
            Step::RequestRetry(task, delay) => return self.request_retry(task, delay),
            Step::FilesDeleted => match self.deletions.pop() {
                Some((serial, _)) => Input::FilesDeleted(serial),
                None => return,
            },
            Step::Wait(seconds) => {
                let wait = Duration::from_secs(seconds.into());
                self.now = self.now.after(wait);
                self.state.set_uptime(self.state.uptime + wait);
                Input::Clock("2026-11-21T12:00:00".parse().unwrap())
            }
            Step::Upload(task, bytes) => return self.upload(id(task), bytes.into()),
            Step::EndSeed(task, fails) => return self.end_seed_somehow(id(task), fails),
            Step::SeedSettings(kind, most) => {
                return self.settings(|settings| settings.seeding = seed_settings(kind, most));
            }
            Step::SeedLimits(task, ratio) => {
                let limits = SeedLimits {
                    ratio_milli: SeedLimit::Own(ratio.into()),
                    ..SeedLimits::default()
                };
                Input::Command(Command::SetSeedLimits(id(task), limits))
            }
        };
        // The invariants hold after a refusal as well.
        let _answer = self.apply(input);
    }

    fn run_of(&self, task: u8) -> Option<RunId> {
        self.live
            .values()
            .find(|start| start.task == id(task))
            .map(|start| start.run)
    }

    fn end_somehow(&mut self, task: u8, how: u8) {
        let Some(run) = self.run_of(task) else { return };
        let is_stopped = self.stopped.contains(&run);
        let outcome = match how {
            0 => finished(&format!("/downloads/file-{task}")),
            5 | 6 => seeding::seedable(&format!("/downloads/file-{task}")),
            1 => failed(FailureKind::Network),
            2 => failed(FailureKind::NotFound),
            _ if is_stopped => Outcome::Stopped,
            _ => return,
        };
        self.end(id(task), outcome);
    }

    /// A retry is one of the automatic ones and no sooner than these; anything but a failed task stays as it is.
    fn request_retry(&mut self, task: u8, seconds: u16) {
        let task_of = |world: &Self| {
            let serial = world.state.index.by_id.get(&id(task))?;
            Some(Task::clone(&world.state.tasks[serial]))
        };
        let before = task_of(self);
        let delay = Duration::from_secs(seconds.into());
        let asked = self.command(Command::RequestRetry(id(task), delay));
        let (Some(before), Some(after)) = (before, task_of(self)) else {
            assert_eq!(asked, Err(CommandError::UnknownTask(id(task))));
            return;
        };
        let has_failed = matches!(before.phase, Phase::Failed(_));
        assert_eq!(
            asked.is_ok(),
            has_failed && before.attempts < 3 && before.asked_retries < 3
        );
        if asked.is_err() {
            assert_eq!(after, before);
            return;
        }
        let Phase::Retrying(retry) = &after.phase else {
            panic!("{after:?}");
        };
        let automatic = Duration::from_secs(5) * (before.attempts + 1);
        assert_eq!(retry.at, self.now.after(delay.max(automatic)));
        assert_eq!(after.attempts, before.attempts + 1);
        assert_eq!(after.asked_retries, before.asked_retries + 1);
    }

    /// Every task by its id, with its queue, where it rests, and whether it is hashed again.
    fn rests(&self) -> BTreeMap<TaskId, (QueueId, Option<TaskMilestone>, bool)> {
        let rest = |task: &Task| match task.phase {
            Phase::Paused => Some(TaskMilestone::Paused),
            Phase::Completed => Some(TaskMilestone::Completed),
            Phase::Failed(_) => Some(TaskMilestone::Failed),
            _ => None,
        };
        let tasks = self.state.tasks.values().filter(|task| !task.is_being_deleted());
        let is_rechecked = |task: &Task| task.seeding.as_ref().is_some_and(|seeding| seeding.recheck.is_some());
        tasks
            .map(|task| (task.id, (task.queue, rest(task), is_rechecked(task))))
            .collect()
    }

    /// The milestones since `before` are exactly what follows from the two states.
    fn check_milestones(&mut self, before: &BTreeMap<TaskId, (QueueId, Option<TaskMilestone>, bool)>) {
        use TaskMilestone::{Cancelled, Completed, Created, Failed};
        let after = self.rests();
        let mut expected = Vec::new();
        let mut ended = BTreeSet::new();
        for (id, (queue, rest, _)) in &after {
            match before.get(id) {
                None => expected.push((*id, Created)),
                // It was complete all the time.
                Some((_, _, true)) if *rest == Some(Completed) => continue,
                Some((_, was, _)) if was != rest => expected.extend(rest.map(|rest| (*id, rest))),
                Some(_) => continue,
            }
            if matches!(rest, Some(Completed | Failed)) {
                ended.insert(*queue);
            }
        }
        let gone = before.iter().filter(|(id, _)| !after.contains_key(id));
        let gone = gone.filter(|(_, (_, was, _))| !matches!(was, Some(Completed | Failed)));
        expected.extend(gone.map(|(id, _)| (*id, Cancelled)));
        let is_busy = |task: &Arc<Task>| !matches!(task.phase, Phase::Paused | Phase::Completed | Phase::Failed(_));
        ended.retain(|queue| {
            !self
                .state
                .tasks
                .values()
                .any(|task| task.queue == *queue && is_busy(task))
        });
        let mut drained = BTreeSet::new();
        let mut announced = Vec::new();
        for milestone in std::mem::take(&mut self.milestones) {
            match milestone {
                Milestone::Task(TaskMilestone::Started | TaskMilestone::MetaProbed, _) => {}
                Milestone::Task(kind, task) => announced.push((task.id, kind)),
                Milestone::QueueDrained(queue) => assert!(drained.insert(queue.id), "a queue is drained twice"),
            }
        }
        announced.sort_unstable();
        expected.sort_unstable();
        assert_eq!(announced, expected);
        assert_eq!(drained, ended);
    }

    /// The invariants after every step.
    fn check(&self, live_before: usize) {
        self.check_seeds();
        let settings = &self.state.settings().settings;
        let global = settings.max_concurrent_tasks as usize;
        assert!(self.live.len() <= global.max(live_before), "over the global limit");
        let of_heart: BTreeSet<_> = self
            .state
            .tasks
            .values()
            .filter_map(|task| task.run())
            .map(|run| run.id)
            .collect();
        assert_eq!(
            of_heart,
            self.live.keys().copied().collect(),
            "heart and driver agree on live runs"
        );
        for queue_state in self.state.queue_states.values() {
            let tasks: Vec<_> = self
                .state
                .tasks
                .values()
                .filter(|task| task.queue == queue_state.queue.id)
                .collect();
            let live = tasks.iter().filter(|task| task.run().is_some()).count();
            assert_eq!(live, queue_state.active as usize);
            let waits = |task: &&&Arc<Task>| {
                task.phase == Phase::Pending && (queue_state.queue.is_running || task.is_forced) && !task.is_settling()
            };
            let is_idle = self.live.len() < global && queue_state.has_room();
            let waiting = tasks.iter().filter(waits).count();
            assert!(
                !is_idle || waiting == 0 || self.state.boost.is_some(),
                "a task waits although there is room"
            );
        }
        if let Some(boosted) = self.state.boost {
            let others = self.state.tasks.values().filter(|task| task.serial != boosted);
            assert!(
                others.into_iter().all(|task| !matches!(task.phase, Phase::Running(_))),
                "a boosted task is not alone"
            );
        }
        let reserved: Vec<_> = self.state.tasks.values().flat_map(|task| task.reservations()).collect();
        let paths: BTreeSet<_> = reserved.iter().collect();
        assert_eq!(paths.len(), reserved.len(), "two tasks have one path: {reserved:?}");
        assert_eq!(paths, self.state.index.reserved.iter().map(|(path, _)| path).collect());
        for task in self.state.tasks.values().filter(|task| task.is_settling()) {
            let looked_for = self.landings.iter().map(|(id, _)| id);
            let mut settled = self.renames.iter().map(|(id, _)| id).chain(looked_for);
            assert!(settled.any(|id| *id == task.id), "nothing settles {task:?}");
        }
        for (id, serial) in &self.state.index.by_id {
            assert_eq!(self.state.tasks[serial].id, *id);
        }
        assert_eq!(self.state.index.by_id.len(), self.state.tasks.len());
    }

    /// The saved rows must equal the state, except for live runs.
    pub(super) fn check_saved(&mut self) {
        self.apply(Input::Checkpoint).unwrap();
        let known: BTreeMap<u64, Task> = self
            .state
            .tasks
            .values()
            .filter(|task| !task.is_being_deleted())
            .map(|task| (task.serial, at_rest(task)))
            .collect();
        assert_eq!(self.saved.tasks, known);
        let leaving: BTreeSet<_> = self.saved.leaving.keys().copied().collect();
        let known_leaving = self
            .state
            .tasks
            .values()
            .filter(|task| task.is_being_deleted())
            .map(|task| task.serial);
        assert_eq!(
            leaving,
            known_leaving.chain(self.state.leaving.keys().copied()).collect()
        );
        let again = State::load(
            Path::new("/downloads"),
            SystemProxy::default(),
            self.saved.loaded(),
            &mut Vec::new(),
        );
        let settings = &self.state.settings().settings.seeding;
        let in_queue = |task: &Task| {
            let mut task = at_rest(task);
            // One that waits for its account may start in the slot of a run that ended with the process.
            if task.limited_account().is_some() {
                task.phase = Phase::Pending;
            }
            // Seeding does not always continue.
            if let Some(seeding) = task.seeding.as_deref_mut()
                && seeding.state == SeedState::Waiting
                && !(settings.is_enabled && settings.continues_on_start)
            {
                seeding.state = SeedState::Ended(SeedEnd::Off);
            }
            task
        };
        let reloaded: BTreeMap<u64, Task> = again.tasks.values().map(|task| (task.serial, in_queue(task))).collect();
        let known = known.into_iter().map(|(serial, task)| (serial, in_queue(&task)));
        assert_eq!(reloaded, known.collect());
        assert_eq!(again.queues(), self.state.queues());
        assert_eq!(again.settings(), self.state.settings());
        assert_eq!(again.sites, self.state.sites);
        assert_eq!(again.cookies, self.state.cookies);
        assert_eq!(again.groups, self.state.groups);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_history_breaks_an_invariant(history in steps()) {
        let mut world = World::new();
        world.settings(|settings| settings.max_concurrent_tasks = 2);
        for step in history {
            let (live_before, rests) = (world.live.len(), world.rests());
            let is_restart = matches!(step, Step::Kill);
            world.milestones.clear();
            world.step(step);
            world.check(live_before);
            if !is_restart {
                world.check_milestones(&rests);
            }
        }
        world.check_saved();
    }

    #[test]
    fn when_everything_may_run_everything_finishes(history in steps()) {
        let mut world = World::new();
        for step in history {
            world.step(step);
        }
        while let Some((task, _)) = world.renames.pop() {
            let _gone_meanwhile = world.apply(Input::Renamed(task, Ok(())));
        }
        while let Some((task, _)) = world.landings.pop() {
            let _gone_meanwhile = world.apply(Input::LandingLookedFor(task, FileState::Missing));
        }
        if world.state.boost.is_some() {
            let boosted = world.state.boosted().unwrap();
            world.command(Command::Boost(boosted)).unwrap();
        }
        for queue in world.state.queues() {
            world.command(Command::QueueStart(queue.id)).unwrap();
        }
        let all = world.state.snapshot(0).tasks.iter().map(|task| task.id).collect();
        world.command(Command::ResumeMany(all)).unwrap();
        for _ in 0..100 {
            let Some(start) = world.live.values().next() else { break };
            let (task, path) = (start.task, format!("/downloads/{}", start.run.0));
            world.end(task, finished(&path));
        }
        let unfinished: Vec<_> =
            world.state.snapshot(0).tasks.into_iter().filter(|task| task.phase != Phase::Completed).collect();
        prop_assert!(unfinished.is_empty(), "{unfinished:?}");
    }
}
