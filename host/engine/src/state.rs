//! The heart: all tasks, queues, groups and settings, and what follows from what happens. Pure: it gets the time with
//! each input and answers with effects for the driver to perform.
//!
//! Invariants, each with a property test:
//! - A task has at most one live run. A task that was told to stop keeps its run, and with it its files and its slot,
//!   until the run has ended; so there are never two writers of one file.
//! - No run starts while the settings' or its queue's limit is reached.
//! - No task of a running queue waits while both limits leave room (unless a boosted task runs alone).
//! - No two unfinished tasks have reserved one path.
//! - The rows that were saved give, read again, an equal state.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::civil::DateTime;
use transfer::{
    ConnectionPlan, Credentials, Failure, FileName, Landing, Outcome, Progress, RetryPolicy, SafeUrl, Source, Stage,
    Target,
};

use crate::{
    config::SystemProxy,
    error::CommandError,
    event::{Event, Snapshot},
    group::{Group, GroupSpec},
    id::{GroupId, QueueId, RunId, TaskId, Timestamp},
    queue::{Queue, QueueSpec, Schedule},
    resolver::{ResolveRequest, Resolved, ResolverId},
    settings::{Settings, VersionedSettings},
    site::Site,
    spec::TaskSpec,
    task::{After, FileFate, Phase, Run, Task},
};

mod change;
mod command;
mod lane;
mod load;
mod queue;
mod resolve;
mod run;
#[cfg(test)]
mod tests;

pub use crate::file::Move;
use change::Changes;
use lane::Lane;
pub use load::Loaded;

/// What somebody asks for.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is the method of the same name on the handle")]
pub enum Command {
    Create(Vec<(TaskId, TaskSpec)>),
    Pause(TaskId),
    Resume(TaskId),
    Delete(TaskId, FileFate),
    PauseMany(Vec<TaskId>),
    ResumeMany(Vec<TaskId>),
    DeleteMany(Vec<TaskId>, FileFate),
    PauseAll,
    ResumeAll,
    Rename(TaskId, FileName),
    ChangeUrl(TaskId, SafeUrl, Option<ResolverId>),
    ChangeSpec(TaskId, Box<TaskSpec>, Box<TaskSpec>),
    IgnoreResolver(TaskId),
    SetSpeedLimit(TaskId, u64),
    Boost(TaskId),
    MoveTask(TaskId, Option<QueueId>),
    QueueCreate(QueueId, Box<QueueSpec>),
    QueueUpdate(QueueId, Box<QueueSpec>),
    QueueDelete(QueueId),
    QueueStart(QueueId),
    QueueStop(QueueId),
    QueueSchedule(QueueId, Schedule),
    QueueReorder(QueueId, Vec<TaskId>),
    GroupCreate(GroupId, Box<GroupSpec>, Vec<(TaskId, TaskSpec)>),
    GroupPause(GroupId),
    GroupResume(GroupId),
    GroupDelete(GroupId, FileFate),
    ChangeSettings(Option<u64>, Box<Settings>),
    SiteSave(Site, Credentials),
    SiteDelete(Site),
    SiteClear,
}

/// What people read when the secrets of a task did not follow its URL.
pub(crate) const SECRETS_DROPPED: &str = "the new URL belongs to another site: the login, cookies, headers and form that were \
                                   given for the old one are not sent to it and were removed; give them again if this \
                                   site shall have them";

/// What a command answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Done.
    Done,
    /// Made these tasks, or found them.
    Tasks(Vec<TaskId>),
    /// The settings have this revision now.
    Revision(u64),
    /// Done; the secrets that were given for another origin were removed.
    SecretsDropped,
    /// A file is being renamed for this task; the answer follows as [`Input::Renamed`].
    Renaming(TaskId),
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// Somebody asks.
    Command(Command),
    /// A resolver answered for a run that waits for it.
    Resolved(TaskId, RunId, Result<Resolved, Failure>),
    /// A run reserves its final path. Refused if it is another task's; then the run takes another.
    Reserved(TaskId, RunId, PathBuf, Option<u64>),
    /// A run is about to give its file its name.
    Landing(TaskId, RunId, Landing),
    /// A run ended without saying whether the landing that it announced happened. This says it.
    LandingLookedFor(TaskId, FileState),
    /// How runs are doing.
    Progressed(Vec<(TaskId, RunId, Progress)>),
    /// It is time to save what runs have done.
    Checkpoint,
    /// A run ended; nothing of it touches its files any more.
    Ended(TaskId, RunId, Outcome),
    /// The files of a task were renamed, or not.
    Renamed(TaskId, Result<(), CommandError>),
    /// The files of a deleted task (by serial) are gone.
    FilesDeleted(u64),
    /// Of these completed tasks, these files are missing.
    FilesLookedFor(Vec<(TaskId, FileState)>),
    /// Time passed: retries may be due, and schedules by this local time.
    Clock(DateTime),
    /// These rows could not be saved; they are saved again with [`Input::SaveAgain`].
    NotSaved(Vec<Row>),
    /// It is time to try to save again.
    SaveAgain,
    /// No run starts any more, and those that live are told to stop.
    Shutdown,
}

/// Whether a task's file is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// It is.
    Present,
    /// It is not.
    Missing,
}

/// Something for the driver to do.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Run this.
    Start(Box<Start>),
    /// Ask the resolver, then tell [`Input::Resolved`]; if the run is stopped before, [`Input::Ended`].
    Resolve(Box<Resolve>),
    /// Tell the run to stop.
    Stop(RunId),
    /// Save these rows, in one transaction.
    Save(Vec<Row>),
    /// Remove the files of a deleted task once the effects before are saved, then tell [`Input::FilesDeleted`].
    DeleteFiles(u64, Vec<PathBuf>),
    /// Rename files once the effects before are saved, then tell [`Input::Renamed`].
    Rename(Rename),
    /// Look for the file of a landing, remove the rest if it is there, then tell [`Input::LandingLookedFor`].
    LookForLanding {
        /// For this task.
        task: TaskId,
        /// The file.
        landing: Landing,
        /// What lay beside it until then.
        rest: Vec<PathBuf>,
    },
    /// A limit changed.
    SetLimit(LimitScope, u64),
    /// Tell the subscribers.
    Emit(Event),
}

/// Files of a task that get other names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The task.
    pub task: TaskId,
    /// This path must not exist. `None` if a crash cut the rename short and it goes on.
    pub free: Option<PathBuf>,
    /// The files.
    pub moves: Vec<Move>,
}

/// What a speed limit holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitScope {
    /// Everything.
    Global,
    /// A queue.
    Queue(QueueId),
    /// A live run of a task.
    Run(RunId),
}

/// A run to be started: a [`transfer::Job`] without its limits and its ends of channels.
#[derive(Debug, Clone)]
pub struct Start {
    /// The task.
    pub task: TaskId,
    /// The run.
    pub run: RunId,
    /// Its queue, for the limit.
    pub queue: QueueId,
    /// The task's own limit; 0 is none.
    pub speed_limit_bytes: u64,
    /// Its queue's limit; 0 is none.
    pub queue_limit_bytes: u64,
    /// What to move.
    pub source: Source,
    /// Where to.
    pub target: Target,
    /// Over how many connections.
    pub connections: ConnectionPlan,
    /// How patiently.
    pub retry: RetryPolicy,
    /// Bytes that are there, as far as known before the run has looked.
    pub done_bytes: u64,
    /// The file's size, as far as known.
    pub total_bytes: Option<u64>,
}

/// A run that needs to know its source before it starts.
#[derive(Debug, Clone)]
pub struct Resolve {
    /// The task.
    pub task: TaskId,
    /// The run.
    pub run: RunId,
    /// What to ask.
    pub request: ResolveRequest,
}

/// A row to be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A task as a whole.
    Task(Arc<Task>),
    /// A task without what was asked for.
    TaskState(Arc<Task>),
    /// A task that is gone but whose files are not yet.
    TaskLeaving(u64, Vec<PathBuf>),
    /// A task that is gone.
    TaskDeleted(u64),
    /// A queue.
    Queue(Arc<Queue>),
    /// A queue that is gone.
    QueueDeleted(QueueId),
    /// A group.
    Group(Arc<Group>),
    /// A group that is gone.
    GroupDeleted(GroupId),
    /// The settings.
    Settings(VersionedSettings),
    /// A site's credentials.
    Site(Site, Credentials),
    /// A site without credentials.
    SiteDeleted(Site),
}

/// Everything the engine knows.
#[derive(Debug)]
pub struct State {
    download_dir: Arc<Path>,
    system_proxy: Arc<SystemProxy>,
    settings: VersionedSettings,
    /// All tasks by their serial, which is the order of creation.
    tasks: BTreeMap<u64, Arc<Task>>,
    index: HashMap<TaskId, u64>,
    lanes: BTreeMap<QueueId, Lane>,
    groups: BTreeMap<GroupId, Members>,
    sites: BTreeMap<Site, Credentials>,
    /// Tasks with a live run.
    active: BTreeSet<u64>,
    /// Tasks that wait for their next try, by when.
    retries: BTreeSet<(Timestamp, u64)>,
    /// The task that runs alone.
    boost: Option<u64>,
    /// Paths that unfinished tasks have reserved, and whose they are.
    reserved: BTreeSet<(String, u64)>,
    /// Tasks that are gone but whose files are not yet.
    leaving: BTreeMap<u64, Vec<PathBuf>>,
    /// Running tasks whose progress is newer than their rows.
    unsaved_progress: BTreeSet<u64>,
    last_serial: u64,
    next_run: u64,
    is_closing: bool,
    changes: Changes,
}

/// A group and how many tasks it has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Members {
    group: Arc<Group>,
    tasks: usize,
}

impl State {
    /// Takes in `input` at `now` and says what to do. A command that is refused has changed nothing.
    pub fn apply(&mut self, now: Timestamp, input: Input, effects: &mut Vec<Effect>) -> Result<Reply, CommandError> {
        let reply = self.take_in(now, input, effects);
        self.settle_boost();
        self.fill_slots(effects);
        self.flush(effects);
        reply
    }

    fn take_in(&mut self, now: Timestamp, input: Input, effects: &mut Vec<Effect>) -> Result<Reply, CommandError> {
        match input {
            Input::Command(command) => return self.command(now, command, effects),
            Input::Resolved(task, run, outcome) => self.resolved(now, (task, run), outcome, effects),
            Input::Reserved(task, run, path, total) => self.reserved(task, run, path, total)?,
            Input::Landing(task, run, landing) => self.landing(task, run, landing),
            Input::LandingLookedFor(task, found) => self.landing_looked_for(now, task, found),
            Input::Progressed(samples) => self.progressed(samples),
            Input::Checkpoint => self.checkpoint(),
            Input::Ended(task, run, outcome) => self.ended(now, (task, run), outcome, effects),
            Input::Renamed(task, outcome) => self.renamed(task, outcome)?,
            Input::FilesDeleted(serial) => self.files_deleted(serial),
            Input::FilesLookedFor(files) => self.files_looked_for(files),
            Input::Clock(local) => self.clock(now, local, effects),
            Input::NotSaved(rows) => self.changes.keep_unsaved(rows),
            Input::SaveAgain => self.save_again(),
            Input::Shutdown => self.close(effects),
        }
        Ok(Reply::Done)
    }

    /// One task that is not being deleted.
    pub fn task(&self, id: TaskId) -> Option<Arc<Task>> {
        let task = self.tasks.get(self.index.get(&id)?)?;
        (!task.is_leaving()).then(|| Arc::clone(task))
    }

    /// All queues, in order.
    pub fn queues(&self) -> Vec<Arc<Queue>> {
        let mut queues: Vec<_> = self.lanes.values().map(|lane| Arc::clone(&lane.queue)).collect();
        queues.sort_by_key(|queue| (queue.position, queue.id));
        queues
    }

    /// The sites that have credentials, and their user names.
    pub fn sites(&self) -> Vec<(Site, String)> {
        self.sites
            .iter()
            .map(|(site, credentials)| (site.clone(), credentials.user.clone()))
            .collect()
    }

    /// The credentials of a site.
    pub fn site_credentials(&self, site: &Site) -> Option<Credentials> {
        self.sites.get(site).cloned()
    }

    /// The settings.
    pub fn settings(&self) -> &VersionedSettings {
        &self.settings
    }

    /// Everything, as of the event `sequence`.
    pub fn snapshot(&self, sequence: u64) -> Snapshot {
        let mut groups: Vec<_> = self.groups.values().map(|members| Arc::clone(&members.group)).collect();
        groups.sort_by_key(|group| (group.created_at, group.id));
        Snapshot {
            sequence,
            tasks: self
                .tasks
                .values()
                .filter(|task| !task.is_leaving())
                .map(Arc::clone)
                .collect(),
            queues: self.queues(),
            groups,
            settings: self.settings.clone(),
            boost: self.boosted(),
        }
    }

    /// When the heart next needs an [`Input::Clock`] for a retry.
    pub fn next_retry(&self) -> Option<Timestamp> {
        self.retries.first().map(|(at, _)| *at)
    }

    /// When, in local time, the heart next needs an [`Input::Clock`] for a schedule.
    pub fn next_edge(&self, local: DateTime) -> Option<DateTime> {
        self.lanes
            .values()
            .filter_map(|lane| lane.queue.schedule.next(local))
            .min()
    }

    /// Whether a schedule was set that has not seen the clock yet: the heart needs an [`Input::Clock`] now.
    pub fn has_new_schedule(&self) -> bool {
        let mut queues = self.lanes.values().map(|lane| &lane.queue);
        queues.any(|queue| queue.schedule.is_enabled && queue.schedule_seen.is_none())
    }

    /// Whether anything is done to files that no run does.
    pub fn is_settling(&self) -> bool {
        self.tasks.values().any(|task| task.is_settling())
    }

    /// How many runs live.
    pub fn live_runs(&self) -> usize {
        self.active.len()
    }

    /// Whether rows wait to be saved again.
    pub fn has_unsaved(&self) -> bool {
        self.changes.has_unsaved()
    }

    /// Completed tasks and where their files should be.
    pub fn completed_files(&self) -> Vec<(TaskId, PathBuf)> {
        let completed = self.tasks.values().filter(|task| task.phase == Phase::Completed);
        completed
            .filter_map(|task| Some((task.id, task.path.as_deref()?.to_owned())))
            .collect()
    }

    fn boosted(&self) -> Option<TaskId> {
        self.boost
            .and_then(|serial| self.tasks.get(&serial))
            .map(|task| task.id)
    }

    /// The serial of a task that a command may name.
    fn serial(&self, id: TaskId) -> Result<u64, CommandError> {
        let serial = self
            .index
            .get(&id)
            .copied()
            .filter(|serial| !self.tasks[serial].is_leaving());
        serial.ok_or(CommandError::UnknownTask(id))
    }

    fn clock(&mut self, now: Timestamp, local: DateTime, effects: &mut Vec<Effect>) {
        while let Some((at, serial)) = self.retries.first().copied() {
            if at > now {
                break;
            }
            self.edit(serial, |task| task.phase = Phase::Pending);
        }
        self.act_on_schedules(local, effects);
    }

    fn close(&mut self, effects: &mut Vec<Effect>) {
        self.is_closing = true;
        for serial in self.active.clone() {
            self.stop_run(serial, After::Requeue, effects);
        }
        self.checkpoint();
    }

    /// Ends the boost of a task that no longer runs or waits for its turn.
    fn settle_boost(&mut self) {
        let Some(serial) = self.boost else { return };
        let goes_on = self.tasks.get(&serial).is_some_and(|task| match task.phase {
            Phase::Pending | Phase::Running(_) => true,
            Phase::Stopping { then, .. } => then == After::Requeue,
            _ => false,
        });
        if !goes_on {
            self.boost = None;
            self.changes.boost = true;
        }
    }

    /// Starts what may start.
    fn fill_slots(&mut self, effects: &mut Vec<Effect>) {
        let limit = usize::try_from(self.settings.settings.max_concurrent_tasks).unwrap_or(usize::MAX);
        while !self.is_closing && self.active.len() < limit {
            let Some(serial) = self.next_turn() else { return };
            self.next_run += 1;
            let run = RunId(self.next_run);
            let phase = Phase::Running(Run {
                id: run,
                stage: Stage::Preparing,
            });
            self.mark(serial, |task| task.phase = phase);
            effects.push(self.begin(&self.tasks[&serial], run));
        }
    }

    /// Whose turn it is: the first of the lane with the fewest live runs, so that a long queue does not starve another.
    fn next_turn(&self) -> Option<u64> {
        if let Some(serial) = self.boost {
            let task = self.tasks.get(&serial)?;
            let may_start = task.phase == Phase::Pending && self.lanes.get(&task.queue)?.has_room();
            return (may_start && !task.is_settling()).then_some(serial);
        }
        let ready = self
            .lanes
            .values()
            .filter(|lane| lane.has_room())
            .filter_map(|lane| Some((lane, lane.first()?)));
        ready
            .min_by_key(|(lane, _)| (lane.active, lane.queue.position))
            .map(|(_, serial)| serial)
    }
}
