//! What goes into the state (commands, and what runs, files, rows and the clock tell) and what comes out of it: whatever
//! touches a disk, a run or a subscriber is the driver's to do.

use std::{path::PathBuf, sync::Arc};

use jiff::civil::DateTime;
use transfer::{
    ConnectionPlan, Credentials, Failure, FileName, Landing, Outcome, Progress, RetryPolicy, SafeUrl, Source, Target,
};

use crate::{
    event::Event,
    model::{
        error::CommandError,
        file::{FileState, Move},
        group::{Group, GroupSpec},
        id::{GroupId, QueueId, RunId, TaskId},
        queue::{Queue, QueueSpec, Schedule},
        resolution::ResolverId,
        settings::{Settings, VersionedSettings},
        site::Site,
        spec::TaskSpec,
        task::{FileFate, Task},
    },
    resolver::{ResolveRequest, Resolved},
};

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
