//! Tests of the state machine: single cases, and random histories in `histories`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use proptest::prelude::*;
use transfer::{
    CookieJar, Credentials, Discarded, Failure, FailureKind, FileName, Finished, Landing, OnConflict, Outcome,
    Progress, Purpose, SafeUrl, Secret, Stage, TorrentOptions,
};

use super::*;
use crate::{
    event::Event,
    milestone::{Milestone, TaskMilestone},
    model::{
        account::{AccountKey, AccountUsage},
        group::Group,
        id::{GroupId, QueueId, RunId, TaskId},
        proxy::SystemProxy,
        queue::{Days, Queue, QueueSpec, Schedule},
        seeding::{AfterSeeding, SeedEnd, SeedLimit, SeedLimits, SeedOperator, SeedSettings, SeedState, SeedThen},
        settings::{FileMissingAction, Settings, VersionedSettings},
        site::{CookieSite, Site},
        spec::TaskSpec,
        speed::Speeds,
        task::{FileFate, Retry, Status, Task, Unsettled},
    },
};

mod accounts;
mod groups;
mod histories;
mod logins;
mod milestones;
mod resolving;
mod seeding;

/// A state, and a model of the driver and the database.
struct World {
    state: State,
    now: Timestamp,
    /// Live runs that download, in order of their start.
    live: BTreeMap<RunId, Start>,
    /// Live runs that seed.
    seeds: BTreeMap<RunId, Start>,
    questions: Vec<Resolve>,
    /// Runs whose resolver was asked and that have not started since.
    resolved: BTreeSet<RunId>,
    stopped: BTreeSet<RunId>,
    events: Vec<Event>,
    milestones: Vec<Milestone>,
    deletions: Vec<(u64, Vec<PathBuf>)>,
    /// The deleted tasks whose leftovers are asked for.
    listings: Vec<(TaskId, Discarded)>,
    renames: Vec<(TaskId, Vec<Move>)>,
    landings: Vec<(TaskId, Landing)>,
    limits: Vec<(LimitScope, Speeds)>,
    deletes: Vec<(TaskId, FileFate)>,
    saved: Saved,
}

/// Rows, as the database would hold them.
#[derive(Debug, Clone, Default, PartialEq)]
struct Saved {
    tasks: BTreeMap<u64, Task>,
    leaving: BTreeMap<u64, Vec<PathBuf>>,
    deleted_feed_tasks: BTreeSet<TaskId>,
    queues: BTreeMap<QueueId, Queue>,
    groups: BTreeMap<GroupId, Group>,
    sites: BTreeMap<Site, Credentials>,
    cookies: BTreeMap<CookieSite, Arc<CookieJar>>,
    logins: BTreeMap<AccountKey, u64>,
    accounts: BTreeMap<AccountKey, AccountUsage>,
    settings: Option<VersionedSettings>,
}

impl Saved {
    fn save(&mut self, row: Row) {
        match row {
            Row::Task(task) => drop(self.tasks.insert(task.serial, at_rest(&task))),
            Row::TaskState(task) => {
                let before = self
                    .tasks
                    .get_mut(&task.serial)
                    .expect("a state is saved after its task");
                let asked = Arc::clone(&before.asked);
                *before = Task {
                    asked,
                    ..at_rest(&task)
                };
            }
            Row::TaskLeaving(serial, paths) => {
                self.tasks.remove(&serial);
                self.leaving.insert(serial, paths);
            }
            Row::TaskDeleted(serial) => {
                self.tasks.remove(&serial);
                self.leaving.remove(&serial);
            }
            Row::FeedTaskDeleted(task) => drop(self.deleted_feed_tasks.insert(task)),
            Row::FeedTaskNoted(task) => drop(self.deleted_feed_tasks.remove(&task)),
            Row::Queue(queue) => drop(self.queues.insert(queue.id, (*queue).clone())),
            Row::QueueDeleted(queue) => drop(self.queues.remove(&queue)),
            Row::Group(group) => drop(self.groups.insert(group.id, (*group).clone())),
            Row::GroupDeleted(group) => drop(self.groups.remove(&group)),
            Row::Settings(settings) => self.settings = Some(settings),
            Row::Site(site, credentials) => drop(self.sites.insert(site, credentials)),
            Row::SiteDeleted(site) => drop(self.sites.remove(&site)),
            Row::Cookies(site, jar) => drop(self.cookies.insert(site, jar)),
            Row::CookiesDeleted(site) => drop(self.cookies.remove(&site)),
            Row::Login(account, until) => drop(self.logins.insert(account, until)),
            Row::LoginDone(account) => drop(self.logins.remove(&account)),
            Row::Account(usage) => drop(self.accounts.insert(usage.used.account.clone(), usage)),
            Row::AccountDeleted(account) => drop(self.accounts.remove(&account)),
        }
    }

    fn loaded(&self) -> Loaded {
        let leaving = self
            .leaving
            .iter()
            .flat_map(|(serial, paths)| paths.iter().map(|path| (*serial, path.clone())));
        Loaded {
            settings: self.settings.clone(),
            tasks: self.tasks.values().cloned().collect(),
            queues: self.queues.values().cloned().collect(),
            groups: self.groups.values().cloned().collect(),
            sites: self.sites.clone().into_iter().collect(),
            cookies: self.cookies.clone().into_iter().collect(),
            logins: self.logins.clone().into_iter().collect(),
            accounts: self.accounts.values().cloned().collect(),
            leaving: leaving.collect(),
            deleted_feed_tasks: self.deleted_feed_tasks.iter().copied().collect(),
        }
    }
}

/// A task as restored from its row: without its run.
fn at_rest(task: &Task) -> Task {
    let phase = match &task.phase {
        Phase::Running(_)
        | Phase::Stopping {
            then: After::Requeue, ..
        } => Phase::Pending,
        Phase::Stopping { .. } => Phase::Paused,
        other => other.clone(),
    };
    let mut task = Task { phase, ..task.clone() };
    if let Some(seeding) = task.seeding.as_deref_mut() {
        seeding.since = None;
        seeding.state = match &seeding.state {
            SeedState::Seeding(_) | SeedState::Stopping(_, AfterSeeding::Wait) => SeedState::Waiting,
            SeedState::Stopping(_, AfterSeeding::End(end)) => SeedState::Ended(end.clone()),
            other => other.clone(),
        };
    }
    task
}

impl World {
    fn new() -> Self {
        Self::loaded(Loaded::default())
    }

    fn loaded(loaded: Loaded) -> Self {
        let mut saved = Saved::default();
        for task in &loaded.tasks {
            saved.tasks.insert(task.serial, task.clone());
        }
        Self::restarted(loaded, saved)
    }

    /// The state after a crash at this moment and a restart.
    fn killed(&self) -> Self {
        let mut saved = self.saved.clone();
        // A deleted task without files is no row.
        saved.leaving.retain(|_, paths| !paths.is_empty());
        Self {
            now: self.now,
            ..Self::restarted(saved.loaded(), saved)
        }
    }

    fn restarted(loaded: Loaded, saved: Saved) -> Self {
        let mut effects = Vec::new();
        let state = State::load(Path::new("/downloads"), SystemProxy::default(), loaded, &mut effects);
        let mut world = Self {
            state,
            now: Timestamp::from_unix_millis(1_000_000),
            live: BTreeMap::new(),
            seeds: BTreeMap::new(),
            questions: Vec::new(),
            resolved: BTreeSet::new(),
            stopped: BTreeSet::new(),
            events: Vec::new(),
            milestones: Vec::new(),
            deletions: Vec::new(),
            listings: Vec::new(),
            renames: Vec::new(),
            landings: Vec::new(),
            limits: Vec::new(),
            deletes: Vec::new(),
            saved,
        };
        world.perform(effects);
        world
    }

    fn apply(&mut self, input: Input) -> Result<Reply, CommandError> {
        let mut effects = Vec::new();
        let reply = self.state.apply(self.now, input, &mut effects);
        self.perform(effects);
        for (task, fate) in std::mem::take(&mut self.deletes) {
            self.command(Command::Delete(task, fate)).unwrap();
        }
        reply
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Start(start) if matches!(start.purpose, Purpose::Seed { .. }) => self.start_seed(*start),
                Effect::Start(start) => {
                    // A run that was resolved first has its place since then.
                    if !self.resolved.remove(&start.run) {
                        self.check_limits(start.queue);
                    }
                    assert!(
                        self.live.values().all(|live| live.task != start.task),
                        "two runs of one task"
                    );
                    assert!(self.live.insert(start.run, *start).is_none(), "a run id is used twice");
                }
                Effect::Resolve(resolve) => {
                    if let Some(task) = self.state.index.by_id.get(&resolve.task) {
                        self.check_limits(self.state.tasks[task].queue);
                    }
                    self.resolved.insert(resolve.run);
                    self.questions.push(*resolve);
                }
                Effect::Stop(run) => drop(self.stopped.insert(run)),
                Effect::Save(rows) => rows.into_iter().for_each(|row| self.saved.save(row)),
                Effect::DeleteFiles(serial, paths) => self.deletions.push((serial, paths)),
                Effect::ListLeftovers(task, discarded) => self.listings.push((task, discarded)),
                Effect::Rename(rename) => self.renames.push((rename.task, rename.moves)),
                Effect::LookForLanding { task, landing, .. } => self.landings.push((task, landing)),
                Effect::SetLimit(scope, limit) => self.limits.push((scope, limit)),
                Effect::Emit(event) => self.events.push(event),
                Effect::Announce(milestones) => self.milestones.extend(milestones),
                Effect::Delete(task, fate) => self.deletes.push((task, fate)),
            }
        }
    }

    /// A run was started in `queue`: neither limit may be exceeded now.
    fn check_limits(&self, queue: QueueId) {
        let live: Vec<_> = self.state.tasks.values().filter(|task| task.run().is_some()).collect();
        assert!(
            live.len() <= self.state.settings.settings.max_concurrent_tasks as usize,
            "over the global limit"
        );
        let limit = self.state.queue_states[&queue].queue.spec.max_concurrent as usize;
        let of_queue = live.iter().filter(|task| task.queue == queue).count();
        assert!(limit == 0 || of_queue <= limit, "over the limit of {queue}");
    }

    fn command(&mut self, command: Command) -> Result<Reply, CommandError> {
        self.apply(Input::Command(command))
    }

    fn create(&mut self, n: u8) -> TaskId {
        self.create_with(n, |_| {})
    }

    fn create_with(&mut self, n: u8, change: impl FnOnce(&mut TaskSpec)) -> TaskId {
        let mut spec = spec(n);
        change(&mut spec);
        let id = id(n);
        self.command(Command::Create(vec![(id, spec)])).unwrap();
        id
    }

    fn end(&mut self, task: TaskId, outcome: Outcome) {
        let run = self.run(task);
        self.live.remove(&run);
        self.stopped.remove(&run);
        self.apply(Input::Ended(task, run, outcome)).unwrap();
    }

    fn run(&self, task: TaskId) -> RunId {
        let mut live = self.live.values();
        live.find(|start| start.task == task)
            .expect("the task has a live run")
            .run
    }

    fn is_live(&self, task: TaskId) -> bool {
        self.live.values().any(|start| start.task == task)
    }

    fn phase(&self, task: TaskId) -> Phase {
        self.state.task(task).unwrap().phase.clone()
    }

    fn status(&self, task: TaskId) -> Status {
        self.state.task(task).unwrap().status()
    }

    fn settings(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut settings = (*self.state.settings().settings).clone();
        change(&mut settings);
        self.command(Command::ChangeSettings(None, Box::new(settings))).unwrap();
    }

    fn clock(&mut self, local: &str) {
        self.apply(Input::Clock(local.parse().unwrap())).unwrap();
    }
}

fn id(n: u8) -> TaskId {
    TaskId::from_bytes([n; 16])
}

fn spec(n: u8) -> TaskSpec {
    TaskSpec::parse(&format!("http://origin.test/file-{n}.bin")).unwrap()
}

fn finished(path: &str) -> Outcome {
    Outcome::Finished(Finished {
        path: path.into(),
        size_bytes: 10,
        received_bytes: 10,
        is_own: true,
        can_seed: false,
    })
}

fn failed(kind: FailureKind) -> Outcome {
    Outcome::Failed(Failure::new(kind, "it failed"))
}

#[test]
fn both_limits_hold_and_a_free_slot_goes_to_the_next_in_order() {
    let mut world = World::new();
    world.settings(|settings| settings.max_concurrent_tasks = 2);
    let tasks: Vec<_> = (1..=4).map(|n| world.create(n)).collect();
    assert_eq!(world.live.len(), 2);
    world
        .command(Command::QueueReorder(QueueId::Main, vec![tasks[3]]))
        .unwrap();
    world.end(tasks[0], finished("/downloads/a"));
    assert!(world.is_live(tasks[3]) && !world.is_live(tasks[2]));
    let own = QueueId::random();
    let spec = QueueSpec {
        name: "one".into(),
        max_concurrent: 1,
        ..QueueSpec::default()
    };
    world.command(Command::QueueCreate(own, Box::new(spec))).unwrap();
    world.settings(|settings| settings.max_concurrent_tasks = 10);
    for n in 5..=7 {
        world.create_with(n, |spec| spec.queue = Some(own));
    }
    assert_eq!(world.live.values().filter(|start| start.queue == own).count(), 1);
}

#[test]
fn resuming_while_stopping_waits_for_the_old_run() {
    let mut world = World::new();
    let task = world.create(1);
    world.command(Command::Pause(task)).unwrap();
    assert_eq!(world.status(task), Status::Paused);
    world.command(Command::Resume(task)).unwrap();
    assert_eq!(world.live.len(), 1, "the old run still owns the files");
    world.end(task, Outcome::Stopped);
    assert!(world.is_live(task), "and then the new one starts");
}

#[test]
fn a_message_of_an_earlier_run_changes_nothing() {
    let mut world = World::new();
    let task = world.create(1);
    let old = world.live.values().next().unwrap().run;
    world.command(Command::Pause(task)).unwrap();
    world.command(Command::Resume(task)).unwrap();
    world.end(task, Outcome::Stopped);
    world
        .apply(Input::Reserved(task, old, "/elsewhere".into(), None))
        .unwrap();
    world
        .apply(Input::Ended(task, old, failed(FailureKind::NotFound)))
        .unwrap();
    assert!(matches!(world.phase(task), Phase::Running(_)));
    assert_eq!(world.state.task(task).unwrap().path, None);
}

#[test]
fn transient_failures_are_retried_with_growing_waits_and_then_stay() {
    let mut world = World::new();
    let task = world.create(1);
    for wait in [5, 10, 15] {
        world.end(task, failed(FailureKind::Network));
        let at = world.now.after(Duration::from_secs(wait));
        assert_eq!(world.state.next_retry(), Some(at));
        world.now = Timestamp::from_unix_millis(at.unix_millis() - 1);
        world.clock("2026-11-21T12:00:00");
        assert!(!world.is_live(task));
        world.now = at;
        world.clock("2026-11-21T12:00:00");
        assert!(world.is_live(task));
    }
    world.end(task, failed(FailureKind::Network));
    assert_eq!(world.status(task), Status::Error);
    world.command(Command::Resume(task)).unwrap();
    world.end(
        task,
        Outcome::Failed(Failure::new(FailureKind::Busy, "429").with_retry_after(Some(Duration::from_mins(15)))),
    );
    assert_eq!(world.state.next_retry(), Some(world.now.after(Duration::from_mins(15))));
}

#[test]
fn a_retry_that_a_clock_ahead_has_scheduled_comes_when_the_clock_is_right() {
    let mut world = World::new();
    let (task, right) = (world.create(1), world.now);
    world.now = right.after(Duration::from_hours(24 * 365));
    world.end(task, failed(FailureKind::Network));
    world.now = right;
    world.clock("2026-11-21T12:00:00");
    assert!(world.is_live(task));
}

#[test]
fn who_says_how_patient_a_run_is_is_not_tried_again_by_the_engine() {
    let mut world = World::new();
    let task = world.create_with(1, |spec| spec.retry = Some(transfer::RetryPolicy::default()));
    world.end(task, failed(FailureKind::Network));
    assert_eq!((world.status(task), world.state.next_retry()), (Status::Error, None));
}

#[test]
fn what_was_asked_for_is_replaced_only_if_it_is_still_that() {
    let mut world = World::new();
    let task = world.create_with(1, |spec| spec.start_paused = true);
    let before = world.state.task(task).unwrap().spec();
    let change = |segments, dir: &str| TaskSpec {
        segments,
        save_dir: Some(dir.into()),
        ..before.clone()
    };
    let replace = |spec: TaskSpec| Command::ChangeSpec(task, Box::new(before.clone()), Box::new(spec));
    world.command(replace(change(3, "/other"))).unwrap();
    let changed = world.state.task(task).unwrap();
    assert_eq!((changed.spec().segments, &*changed.save_dir), (3, Path::new("/other")));
    assert_eq!(world.command(replace(change(4, "/other"))), Err(CommandError::Busy));
    // Once there is a file, it stays where it is.
    let now = Box::new(changed.spec());
    world.command(Command::Resume(task)).unwrap();
    let run = world.live.values().next().unwrap().run;
    world
        .apply(Input::Reserved(task, run, "/other/f".into(), None))
        .unwrap();
    let moved = Command::ChangeSpec(task, now.clone(), Box::new(change(3, "/third")));
    assert!(matches!(world.command(moved), Err(CommandError::InvalidField(_))));
    let faster = Command::ChangeSpec(task, now, Box::new(change(5, "/other")));
    world.command(faster).unwrap();
    assert!(matches!(
        world.phase(task),
        Phase::Stopping {
            then: After::Requeue,
            ..
        }
    ));
}

#[test]
fn what_will_not_heal_fails_at_once_and_keeps_what_it_has() {
    for kind in [
        FailureKind::NotFound,
        FailureKind::DiskFull,
        FailureKind::ChecksumMismatch,
    ] {
        let mut world = World::new();
        let task = world.create(1);
        let run = world.live.values().next().unwrap().run;
        world
            .apply(Input::Reserved(task, run, "/downloads/f".into(), Some(9)))
            .unwrap();
        world.end(task, failed(kind));
        assert_eq!(world.state.task(task).unwrap().failure().unwrap().kind, kind);
        assert!(world.deletions.is_empty());
        world.command(Command::Resume(task)).unwrap();
        let start = world.live.values().next().unwrap();
        assert_eq!(start.target.reserved.as_deref(), Some(Path::new("/downloads/f")));
    }
}

#[test]
fn a_skipped_file_is_told_and_is_not_called_completed() {
    let mut world = World::new();
    let task = world.create(1);
    world.end(
        task,
        Outcome::Skipped {
            existing: "/downloads/f".into(),
        },
    );
    assert_eq!(
        world.state.task(task).unwrap().failure().unwrap().kind,
        FailureKind::Exists
    );
    assert!(world.events.iter().any(|event| matches!(event, Event::Skipped { .. })));
}

#[test]
fn a_stopped_queue_starts_nothing_except_what_the_user_resumes() {
    let mut world = World::new();
    let later = world.create_with(1, |spec| spec.queue = Some(QueueId::Later));
    let other = world.create_with(2, |spec| spec.queue = Some(QueueId::Later));
    assert!(world.live.is_empty());
    world.command(Command::Resume(later)).unwrap();
    assert!(world.is_live(later) && !world.is_live(other));
    world.command(Command::QueueStart(QueueId::Later)).unwrap();
    assert!(world.is_live(other));
    world.command(Command::QueueStop(QueueId::Later)).unwrap();
    assert_eq!(world.stopped.len(), 2);
    world.end(later, Outcome::Stopped);
    world.end(other, Outcome::Stopped);
    assert_eq!(world.phase(later), Phase::Paused);
    world.command(Command::ResumeAll).unwrap();
    assert!(world.live.is_empty(), "resuming all leaves a stopped queue alone");
    world.command(Command::QueueStart(QueueId::Later)).unwrap();
    assert_eq!(world.live.len(), 2);
}

#[test]
fn a_boosted_task_runs_alone_and_the_others_come_back() {
    let mut world = World::new();
    let tasks: Vec<_> = (1..=3).map(|n| world.create(n)).collect();
    world.command(Command::Boost(tasks[2])).unwrap();
    assert_eq!(world.stopped.len(), 2);
    world.end(tasks[0], Outcome::Stopped);
    world.end(tasks[1], Outcome::Stopped);
    assert_eq!(world.live.len(), 1);
    assert_eq!(world.status(tasks[0]), Status::Pending);
    world.end(tasks[2], finished("/downloads/f"));
    assert!(world.is_live(tasks[0]) && world.is_live(tasks[1]));
    world.command(Command::Boost(tasks[0])).unwrap();
    world.end(tasks[1], Outcome::Stopped);
    assert!(!world.is_live(tasks[1]));
    world.command(Command::Boost(tasks[0])).unwrap();
    assert!(world.is_live(tasks[1]), "the same again ends it");
}

#[test]
fn schedules_start_and_stop_their_queue_at_the_edges() {
    let mut world = World::new();
    let task = world.create_with(1, |spec| spec.queue = Some(QueueId::Later));
    let time = |text| Schedule::parse_time(text).unwrap();
    let schedule = Schedule {
        is_enabled: true,
        start: time("23:00"),
        stop: time("06:00"),
        days: Days::ALL,
    };
    world.command(Command::QueueSchedule(QueueId::Later, schedule)).unwrap();
    assert!(world.state.has_new_schedule());
    world.clock("2026-11-20T22:00:00");
    assert!(!world.state.has_new_schedule());
    assert!(!world.is_live(task));
    assert_eq!(
        world
            .state
            .next_edge("2026-11-20T22:00:00".parse().unwrap())
            .unwrap()
            .to_string(),
        "2026-11-20T23:00:00"
    );
    world.clock("2026-11-20T23:00:01");
    assert!(world.is_live(task));
    world.command(Command::Pause(task)).unwrap();
    world.end(task, Outcome::Stopped);
    world.clock("2026-11-21T01:00:00");
    assert!(!world.is_live(task), "an edge acts once");
    world.command(Command::Resume(task)).unwrap();
    world.clock("2026-11-21T06:00:00");
    assert_eq!(world.stopped.len(), 1);
    let again = World::loaded(world.saved.loaded());
    let queue = |world: &World| {
        world
            .state
            .queues()
            .into_iter()
            .find(|queue| queue.id == QueueId::Later)
            .unwrap()
    };
    assert_eq!(queue(&again), queue(&world));
}

#[test]
fn the_turtle_is_switched_at_the_edges_of_its_schedule_and_by_hand_between_them() {
    let mut world = World::new();
    world.settings(|settings| {
        settings.turtle_schedule = Schedule {
            is_enabled: true,
            start: Schedule::parse_time("08:00").unwrap(),
            stop: Schedule::parse_time("20:00").unwrap(),
            days: Days::ALL,
        };
    });
    let is_on = |world: &World| world.state.settings().settings.is_turtle;
    assert!(world.state.has_schedule() && world.state.has_new_schedule());
    world.clock("2026-11-20T07:59:00");
    assert!(!is_on(&world) && !world.state.has_new_schedule());
    let next = world.state.next_edge("2026-11-20T07:59:00".parse().unwrap()).unwrap();
    assert_eq!(next.to_string(), "2026-11-20T08:00:00");
    world.clock("2026-11-20T08:00:00");
    assert!(is_on(&world));
    world.settings(|settings| settings.is_turtle = false);
    world.clock("2026-11-20T12:00:00");
    assert!(!is_on(&world), "an edge acts once");
    world.settings(|settings| settings.is_turtle = true);
    world.clock("2026-11-20T20:00:00");
    assert!(!is_on(&world));
}

#[test]
fn a_restart_goes_on_unless_the_settings_say_otherwise() {
    let mut world = World::new();
    let running = world.create(1);
    let paused = world.create_with(2, |spec| spec.start_paused = true);
    let again = World::loaded(world.saved.loaded());
    assert!(again.is_live(running));
    assert_eq!(again.phase(paused), Phase::Paused);
    world.settings(|settings| settings.auto_resume_on_start = false);
    let again = World::loaded(world.saved.loaded());
    assert_eq!(again.phase(running), Phase::Paused);
    assert_eq!(again.saved.tasks[&1].phase, Phase::Paused, "and that is saved");
}

#[test]
fn deleting_removes_only_what_the_task_made() {
    let mut world = World::new();
    let task = world.create(1);
    let run = world.live.values().next().unwrap().run;
    world
        .apply(Input::Reserved(task, run, "/downloads/f".into(), None))
        .unwrap();
    world.command(Command::Delete(task, FileFate::Delete)).unwrap();
    assert!(world.state.task(task).is_none(), "it is gone at once");
    assert_eq!(
        world.command(Command::Resume(task)),
        Err(CommandError::UnknownTask(task))
    );
    assert!(world.deletions.is_empty(), "but its files wait for its run");
    world.end(task, Outcome::Stopped);
    let part = crate::model::file::part_files(Path::new("/downloads/f"));
    assert_eq!(world.deletions, [(1, part)], "a reserved name is not a file of ours");
    assert!(world.saved.leaving.contains_key(&1));
    world.apply(Input::FilesDeleted(1)).unwrap();
    assert_eq!(world.saved, Saved::default());
}

#[test]
fn a_finished_file_goes_only_if_asked_for_and_only_if_no_other_task_has_it() {
    let mut world = World::new();
    let (keep, gone, shared) = (world.create(1), world.create(2), world.create(3));
    world.end(keep, finished("/downloads/a"));
    world.end(gone, finished("/downloads/b"));
    world
        .command(Command::DeleteMany(vec![keep, keep, id(99)], FileFate::Keep))
        .unwrap();
    assert!(world.deletions.is_empty());
    world.end(shared, finished("/downloads/b"));
    world.command(Command::Delete(gone, FileFate::Delete)).unwrap();
    assert!(world.deletions.is_empty(), "the file is the other task's by now");
    world.command(Command::Delete(shared, FileFate::Delete)).unwrap();
    assert_eq!(world.deletions, [(3, vec!["/downloads/b".into()])]);
    // A file system that ignores case has one file for both.
    let (upper, lower) = (world.create(4), world.create(5));
    world.end(upper, finished("/downloads/C"));
    world.end(lower, finished("/downloads/c"));
    world.deletions.clear();
    world.command(Command::Delete(upper, FileFate::Delete)).unwrap();
    assert!(world.deletions.is_empty());
}

#[test]
fn a_file_that_was_there_and_only_checked_is_never_deleted() {
    let found = || match finished("/downloads/a") {
        Outcome::Finished(file) => Outcome::Finished(Finished { is_own: false, ..file }),
        other => other,
    };
    let mut world = World::new();
    let (at_rest, running) = (world.create(1), world.create(2));
    world.end(at_rest, found());
    world.command(Command::Delete(at_rest, FileFate::Delete)).unwrap();
    world.command(Command::Delete(running, FileFate::Delete)).unwrap();
    world.end(running, found());
    let deleted = world.deletions.iter().flat_map(|(_, paths)| paths);
    assert!(deleted.into_iter().all(|path| path != Path::new("/downloads/a")));
}

#[test]
fn a_deletion_that_a_crash_cut_short_is_finished_after_the_restart() {
    let mut world = World::new();
    let (first, second) = (world.create(1), world.create(2));
    world.end(first, finished("/downloads/a"));
    world.end(second, finished("/downloads/b"));
    world
        .command(Command::DeleteMany(vec![first, second], FileFate::Delete))
        .unwrap();
    let again = World::loaded(world.saved.loaded());
    assert_eq!(again.deletions, world.deletions);
    let mut loaded = world.saved.loaded();
    let mut claims = World::new();
    let task = claims.create(3);
    claims.end(task, finished("/downloads/a"));
    loaded.tasks = vec![Task {
        serial: 9,
        ..claims.saved.tasks[&1].clone()
    }];
    let again = World::loaded(loaded);
    assert_eq!(
        again.deletions,
        [(2, vec!["/downloads/b".into()])],
        "a path that a task has by now stays"
    );
}

#[test]
fn renaming_moves_the_files_and_starts_nothing_meanwhile() {
    let mut world = World::new();
    let task = world.create(1);
    let name = FileName::sanitise("new.bin");
    let refused = world.command(Command::Rename(task, name.clone()));
    assert_eq!(
        refused,
        Err(CommandError::WrongPhase {
            act: "rename",
            phase: "running"
        })
    );
    let run = world.live.values().next().unwrap().run;
    world
        .apply(Input::Reserved(task, run, "/downloads/old.bin".into(), None))
        .unwrap();
    world.command(Command::Pause(task)).unwrap();
    world.end(task, Outcome::Stopped);
    assert_eq!(world.command(Command::Rename(task, name)), Ok(Reply::Renaming(task)));
    assert_eq!(world.renames[0].1.len(), 3);
    world.command(Command::Resume(task)).unwrap();
    assert!(!world.is_live(task));
    assert_eq!(
        world.command(Command::Delete(task, FileFate::Keep)),
        Err(CommandError::Busy)
    );
    world.apply(Input::Renamed(task, Ok(()))).unwrap();
    let start = world.live.values().next().unwrap();
    assert_eq!(start.target.reserved.as_deref(), Some(Path::new("/downloads/new.bin")));
    assert_eq!(start.target.name.as_ref().unwrap().as_str(), "new.bin");
}

/// A task whose run stopped after it had reserved a path.
fn paused_at(world: &mut World, n: u8, path: &str) -> TaskId {
    let task = world.create(n);
    world
        .apply(Input::Reserved(task, world.run(task), path.into(), None))
        .unwrap();
    world.command(Command::Pause(task)).unwrap();
    world.end(task, Outcome::Stopped);
    task
}

#[test]
fn a_rename_that_a_kill_cut_short_goes_on_before_anything_else() {
    let mut world = World::new();
    let task = paused_at(&mut world, 1, "/downloads/old.bin");
    let name = FileName::sanitise("new.bin");
    world.command(Command::Rename(task, name.clone())).unwrap();
    assert_eq!(
        world.saved.tasks[&1].unsettled.as_deref(),
        Some(&Unsettled::Renaming(name)),
        "it is on the disk before the files are touched"
    );
    let mut again = world.killed();
    assert_eq!(again.renames, world.renames);
    assert!(again.state.is_settling());
    again.command(Command::Resume(task)).unwrap();
    assert!(!again.is_live(task));
    again.apply(Input::Renamed(task, Ok(()))).unwrap();
    assert!(again.is_live(task) && !again.state.is_settling());
    let path = again.saved.tasks[&1].path.clone();
    assert_eq!(path.as_deref(), Some(Path::new("/downloads/new.bin")));
    assert!(again.killed().renames.is_empty());
}

#[test]
fn a_rename_that_fails_leaves_the_task_as_it_was() {
    let mut world = World::new();
    let task = paused_at(&mut world, 1, "/downloads/old.bin");
    let before = world.saved.clone();
    world
        .command(Command::Rename(task, FileName::sanitise("new.bin")))
        .unwrap();
    let refusal = CommandError::TargetExists("/downloads/new.bin".into());
    let answer = world.apply(Input::Renamed(task, Err(refusal.clone())));
    assert_eq!((answer, world.saved), (Err(refusal), before));
}

#[test]
fn a_path_is_reserved_for_one_task_only() {
    let mut world = World::new();
    let first = paused_at(&mut world, 1, "/downloads/a.bin");
    let second = world.create(2);
    let taken: PathBuf = "/downloads/A.bin".into();
    let reserve = |world: &mut World, path: &str| {
        let input = Input::Reserved(second, world.run(second), path.into(), None);
        world.apply(input)
    };
    assert_eq!(
        reserve(&mut world, "/downloads/A.bin"),
        Err(CommandError::TargetExists(taken)),
        "on some file systems the names are one"
    );
    reserve(&mut world, "/downloads/b.bin").unwrap();
    let onto_the_other = world.command(Command::Rename(first, FileName::sanitise("b.bin")));
    assert_eq!(
        onto_the_other,
        Err(CommandError::TargetExists("/downloads/b.bin".into()))
    );
    world
        .command(Command::Rename(first, FileName::sanitise("c.bin")))
        .unwrap();
    assert!(
        reserve(&mut world, "/downloads/c.bin").is_err(),
        "it is about to be the first task's"
    );
    world.apply(Input::Renamed(first, Ok(()))).unwrap();
    reserve(&mut world, "/downloads/a.bin").unwrap();
    world.end(second, finished("/downloads/a.bin"));
    world.command(Command::Resume(first)).unwrap();
    let input = Input::Reserved(first, world.run(first), "/downloads/a.bin".into(), None);
    world
        .apply(input)
        .expect("a finished file holds its name by being there");
}

#[test]
fn a_landing_that_a_kill_cut_short_is_looked_for() {
    let mut world = World::new();
    let task = world.create(1);
    let path = PathBuf::from("/downloads/a.bin");
    let landing = Landing {
        path: path.clone(),
        inode: 7,
        size_bytes: 5,
    };
    world
        .apply(Input::Reserved(task, world.run(task), path.clone(), None))
        .unwrap();
    world
        .apply(Input::Landing(task, world.run(task), landing.clone()))
        .unwrap();
    let look = |found| {
        let mut again = world.killed();
        assert_eq!(again.landings, [(task, landing.clone())]);
        assert!(!again.is_live(task), "nothing else is done meanwhile");
        assert_eq!(
            again.command(Command::Delete(task, FileFate::Delete)),
            Err(CommandError::Busy)
        );
        again.apply(Input::LandingLookedFor(task, found)).unwrap();
        again
    };
    let there = look(FileState::Present);
    let saved = &there.saved.tasks[&1];
    assert_eq!((&saved.phase, saved.done_bytes), (&Phase::Completed, 5));
    assert_eq!((saved.path.as_deref(), saved.owns_file), (Some(&*path), true));
    assert!(look(FileState::Missing).is_live(task), "it is downloaded on");
}

#[test]
fn a_run_that_ends_without_a_word_about_its_landing_is_looked_after() {
    let mut world = World::new();
    let task = world.create(1);
    let landing = Landing {
        path: "/downloads/a.bin".into(),
        inode: 7,
        size_bytes: 5,
    };
    world.apply(Input::Landing(task, world.run(task), landing)).unwrap();
    world.end(task, failed(FailureKind::DiskIo));
    assert_eq!(world.landings.len(), 1);
    world.apply(Input::LandingLookedFor(task, FileState::Present)).unwrap();
    assert_eq!(world.phase(task), Phase::Completed);
}

#[test]
fn a_new_url_keeps_the_reserved_path() {
    let mut world = World::new();
    let task = world.create(1);
    let run = world.live.values().next().unwrap().run;
    world
        .apply(Input::Reserved(task, run, "/downloads/f".into(), None))
        .unwrap();
    world
        .command(Command::ChangeUrl(
            task,
            SafeUrl::parse("http://other.test/f").unwrap(),
            None,
        ))
        .unwrap();
    assert_eq!(world.stopped.len(), 1);
    world.end(task, Outcome::Stopped);
    let start = world.live.values().next().unwrap();
    assert_eq!(start.source.urls[0].expose(), "http://other.test/f");
    assert!(start.target.reserved.is_some());
}

#[test]
fn a_run_gets_what_task_queue_and_settings_say_in_that_order() {
    let mut world = World::new();
    world.settings(|settings| {
        settings.global_user_agent = "global".into();
        settings.default_segments = 3;
        settings.use_server_time = true;
        settings.file_exists_behavior = OnConflict::Skip;
        settings.default_save_dir = Some("/settings".into());
    });
    let own = QueueId::random();
    let queue = QueueSpec {
        name: "q".into(),
        default_user_agent: "queue".into(),
        default_segments: 5,
        default_save_dir: Some("/queue".into()),
        ..QueueSpec::default()
    };
    world.command(Command::QueueCreate(own, Box::new(queue))).unwrap();
    let site: Site = "http://origin.test".parse().unwrap();
    let credentials = Credentials {
        user: "me".into(),
        password: Secret::new("pw"),
    };
    world.command(Command::SiteSave(site, credentials.clone())).unwrap();
    let plain = world.create(1);
    let queued = world.create_with(2, |spec| spec.queue = Some(own));
    let named = world.create_with(3, |spec| {
        spec.queue = Some(own);
        spec.segments = 7;
        spec.request.user_agent = "task".into();
        spec.request.headers = vec![("Authorization".into(), Secret::new("Bearer x"))];
        spec.save_dir = Some("/task".into());
        spec.on_conflict = Some(OnConflict::Overwrite);
    });
    let start = |task| world.live.values().find(|start| start.task == task).unwrap();
    let seen = |task| {
        let start = start(task);
        let dir = start.target.directory.to_str().unwrap().to_owned();
        (start.connections.segments, start.source.request.user_agent.clone(), dir)
    };
    assert_eq!(seen(plain), (3, "global".into(), "/settings".into()));
    assert_eq!(seen(queued), (5, "queue".into(), "/queue".into()));
    assert_eq!(seen(named), (7, "task".into(), "/task".into()));
    assert_eq!(start(plain).source.request.credentials, Some(credentials));
    assert_eq!(
        start(named).source.request.credentials,
        None,
        "an Authorization header is credentials of its own"
    );
    assert_eq!(start(plain).target.on_conflict, OnConflict::Skip);
    assert_eq!(start(named).target.on_conflict, OnConflict::Overwrite);
    assert!(start(named).target.use_server_time);
}

#[test]
fn groups_go_with_their_last_task() {
    let mut world = World::new();
    let group = GroupId::random();
    let create = Command::GroupCreate(group, Box::default(), vec![(id(1), spec(1)), (id(2), spec(2))], vec![]);
    world.command(create).unwrap();
    world.command(Command::GroupPause(group)).unwrap();
    world.end(id(1), Outcome::Stopped);
    world.end(id(2), Outcome::Stopped);
    world.command(Command::GroupResume(group)).unwrap();
    assert_eq!(world.live.len(), 2);
    world.command(Command::Delete(id(1), FileFate::Keep)).unwrap();
    assert_eq!(world.saved.groups.len(), 1);
    world.command(Command::GroupDelete(group, FileFate::Keep)).unwrap();
    assert!(world.saved.groups.is_empty());
    assert_eq!(
        world.command(Command::GroupPause(group)),
        Err(CommandError::UnknownGroup(group))
    );
    let empty = world.command(Command::GroupCreate(GroupId::random(), Box::default(), vec![], vec![]));
    assert!(matches!(empty, Err(CommandError::InvalidField(_))));
}

#[test]
fn queues_keep_their_rules() {
    let mut world = World::new();
    let named = |name: &str| {
        Box::new(QueueSpec {
            name: name.into(),
            ..QueueSpec::default()
        })
    };
    let own = QueueId::random();
    world.command(Command::QueueCreate(own, named("own"))).unwrap();
    let task = world.create_with(1, |spec| spec.queue = Some(own));
    let built_in = |queue| Err(CommandError::BuiltInQueue(queue));
    assert_eq!(
        world.command(Command::QueueUpdate(QueueId::Main, named("x"))),
        built_in(QueueId::Main)
    );
    assert_eq!(
        world.command(Command::QueueDelete(QueueId::Later)),
        built_in(QueueId::Later)
    );
    assert!(
        world
            .command(Command::QueueCreate(QueueId::random(), named(" ")))
            .is_err()
    );
    let mut limited = named("main");
    limited.speed_limit_bytes = 99;
    world.command(Command::QueueUpdate(QueueId::Main, limited)).unwrap();
    let speeds = Speeds {
        download: 99,
        upload: 0,
    };
    assert_eq!(world.limits, [(LimitScope::Queue(QueueId::Main), speeds)]);
    world.command(Command::QueueDelete(own)).unwrap();
    assert_eq!(world.state.task(task).unwrap().queue, QueueId::Main);
    assert_eq!(world.stopped.len(), 1, "its run had the old queue's limits");
    world.end(task, Outcome::Stopped);
    assert_eq!(world.live.values().next().unwrap().queue_speeds, speeds);
}

#[test]
fn settings_change_whole_and_only_at_the_expected_revision() {
    let mut world = World::new();
    let wanted = Settings {
        speed_limit_bytes: 7,
        upload_limit_bytes: 8,
        ..Settings::default()
    };
    let change = |expected| Command::ChangeSettings(expected, Box::new(wanted.clone()));
    assert_eq!(
        world.command(change(Some(3))),
        Err(CommandError::Conflict { revision: 0 })
    );
    assert_eq!(world.command(change(Some(0))), Ok(Reply::Revision(1)));
    let speeds = Speeds { download: 7, upload: 8 };
    assert_eq!(world.limits, [(LimitScope::Global, speeds)]);
    assert_eq!(
        world.command(change(None)),
        Ok(Reply::Revision(1)),
        "the same again is no change"
    );
    let bad = Settings {
        max_concurrent_tasks: 0,
        ..Settings::default()
    };
    assert!(world.command(Command::ChangeSettings(None, Box::new(bad))).is_err());
}

#[test]
fn creating_is_all_or_none_and_may_find_what_is_there() {
    let mut world = World::new();
    let mut bad = spec(2);
    bad.queue = Some(QueueId::random());
    assert!(
        world
            .command(Command::Create(vec![(id(1), spec(1)), (id(2), bad)]))
            .is_err()
    );
    assert!(world.state.task(id(1)).is_none());
    world.create(1);
    assert_eq!(
        world.command(Command::Create(vec![(id(1), spec(5))])),
        Err(CommandError::TaskExists(id(1)))
    );
    world.settings(|settings| settings.dedup_same_url = true);
    let again = world.command(Command::Create(vec![
        (id(8), spec(1)),
        (id(9), spec(9)),
        (id(10), spec(9)),
    ]));
    assert_eq!(again, Ok(Reply::Tasks(vec![id(1), id(9), id(9)])));
}

#[test]
fn many_tasks_make_one_event_of_each_kind() {
    let mut world = World::new();
    let tasks: Vec<_> = (1..=20).map(|n| (id(n), spec(n))).collect();
    world.command(Command::Create(tasks)).unwrap();
    world.events.clear();
    world.command(Command::PauseAll).unwrap();
    assert!(matches!(&world.events[..], [Event::TasksChanged(tasks)] if tasks.len() == 20));
    world.events.clear();
    world
        .command(Command::DeleteMany((0..=20).map(id).collect(), FileFate::Keep))
        .unwrap();
    assert!(
        matches!(&world.events[..], [Event::TasksDeleted(tasks)] if tasks.len() == 20),
        "{:?}",
        world.events
    );
}

#[test]
fn a_missing_file_is_marked_or_its_task_goes() {
    let mut world = World::new();
    let task = world.create(1);
    world.end(task, finished("/downloads/a"));
    let looked = |at: &str, found| Input::FilesLookedFor(vec![(task, at.into(), found)]);
    let is_marked = |world: &World| world.state.task(task).unwrap().file_missing;
    for found in [FileState::Missing, FileState::Away] {
        world.events.clear();
        world.apply(looked("/downloads/a", found)).unwrap();
        assert!(is_marked(&world), "{found:?}");
        assert!(
            matches!(&world.events[..], [Event::TasksChanged(_)]),
            "{:?}",
            world.events
        );
        world.events.clear();
        world.apply(looked("/downloads/a", found)).unwrap();
        assert!(world.events.is_empty(), "it is told once: {:?}", world.events);
        world.apply(looked("/downloads/a", FileState::Present)).unwrap();
        assert!(!is_marked(&world), "{found:?}");
    }
    world.settings(|settings| settings.file_missing_action = FileMissingAction::Delete);
    world.apply(looked("/downloads/a", FileState::Away)).unwrap();
    assert!(is_marked(&world), "its disk may come back");
    world.apply(looked("/downloads/before", FileState::Missing)).unwrap();
    assert!(is_marked(&world), "it has another name by now");
    world.apply(looked("/downloads/a", FileState::Missing)).unwrap();
    assert!(world.state.task(task).is_none());
}

#[test]
fn rows_that_could_not_be_saved_are_saved_again_as_they_are_by_then() {
    let mut world = World::new();
    let task = world.create(1);
    let stale = world.saved.clone();
    let row = Row::Task(world.state.task(task).unwrap());
    for _ in 0..100 {
        world.apply(Input::NotSaved(vec![row.clone()])).unwrap();
    }
    assert_eq!(world.state.changes.unsaved.len(), 1, "a disk may be full for hours");
    world.end(task, finished("/downloads/a"));
    let newest = world.saved.clone();
    world.saved = stale;
    world.apply(Input::SaveAgain).unwrap();
    assert_eq!(world.saved, newest);
    assert!(!world.state.has_unsaved());
}

#[test]
fn a_shutdown_stops_every_run_and_starts_none() {
    let mut world = World::new();
    let (running, waiting) = (world.create(1), world.create(2));
    world.apply(Input::Shutdown).unwrap();
    assert_eq!(world.stopped.len(), 2);
    world.end(running, Outcome::Stopped);
    world.end(waiting, Outcome::Stopped);
    assert!(world.live.is_empty());
    assert_eq!(world.command(Command::PauseAll), Err(CommandError::Closed));
    let again = World::loaded(world.saved.loaded());
    assert_eq!(again.live.len(), 2);
    assert!(
        !matches!(again.phase(running), Phase::Retrying(ref retry) if **retry == Retry { failure: Failure::new(FailureKind::Internal, ""), at: Timestamp::default() })
    );
}
