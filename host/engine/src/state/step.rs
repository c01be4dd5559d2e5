//! The inputs of the state machine (commands, and results of runs, file operations, saves and timers) and its effects:
//! everything that touches a disk, a run or a subscriber is done by the driver.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::civil::DateTime;
use transfer::{
    ConnectionPlan, CookieJar, Credentials, Discarded, FileName, Landing, Outcome, Progress, Purpose, RetryPolicy,
    SafeUrl, Source, Target, TorrentOptions,
};

use crate::{
    event::Event,
    milestone::Milestone,
    model::{
        account::{AccountKey, AccountUsage},
        error::CommandError,
        file::{FileState, Move},
        group::{Group, GroupSpec},
        id::{GroupId, QueueId, RunId, TaskId},
        queue::{Queue, QueueSpec, Schedule},
        resolution::ResolverId,
        seeding::SeedLimits,
        settings::{Settings, VersionedSettings},
        site::{CookieSite, Site},
        spec::TaskSpec,
        speed::Speeds,
        task::{FileFate, Task},
    },
    resolver::{ResolveRequest, Resolved, Unresolved},
};

/// A command of a caller.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is the method of the same name on the handle")]
pub enum Command {
    Create(Vec<(TaskId, TaskSpec)>),
    Pause(TaskId),
    Resume(TaskId),
    Delete(TaskId, FileFate),
    PauseMany(Vec<TaskId>),
    ResumeMany(Vec<TaskId>),
    NoteDeleted(Vec<TaskId>),
    DeleteMany(Vec<TaskId>, FileFate),
    PauseAll,
    ResumeAll,
    Rename(TaskId, FileName),
    ChangeUrl(TaskId, SafeUrl, Option<ResolverId>),
    ChangeSpec(TaskId, Box<TaskSpec>, Box<TaskSpec>),
    IgnoreResolver(TaskId),
    SetSpeeds(TaskId, Option<u64>, Option<u64>),
    /// Replaces a task's tags.
    SetTags(TaskId, Vec<Box<str>>),
    Boost(TaskId),
    MoveTask(TaskId, Option<QueueId>),
    QueueCreate(QueueId, Box<QueueSpec>),
    QueueUpdate(QueueId, Box<QueueSpec>),
    QueueDelete(QueueId),
    QueueStart(QueueId),
    QueueStop(QueueId),
    QueueSchedule(QueueId, Schedule),
    QueueReorder(QueueId, Vec<TaskId>),
    /// With the places where its directory may be, in order of preference; none: it is the directory of its
    /// specification, also if others use that.
    GroupCreate(GroupId, Box<GroupSpec>, Vec<(TaskId, TaskSpec)>, Vec<PathBuf>),
    GroupPause(GroupId),
    GroupResume(GroupId),
    GroupDelete(GroupId, FileFate),
    ChangeSettings(Option<u64>, Box<Settings>),
    SiteSave(Site, Credentials),
    SiteDelete(Site),
    SiteClear,
    CookiesSave(Vec<(CookieSite, Arc<CookieJar>)>),
    CookiesDelete(CookieSite),
    CookiesClear,
    LoggedIn(AccountKey),
    RequestRetry(TaskId, Duration),
    SetSeedLimits(TaskId, SeedLimits),
    ChangeTorrent(TaskId, Arc<TorrentOptions>),
    NoteFiles(TaskId, Box<[u32]>),
    Recheck(TaskId),
}

/// Shown to the user.
pub(crate) const SECRETS_DROPPED: &str = "the new URL belongs to another site: the login, cookies, headers and form that were \
                                   given for the old one are not sent to it and were removed; give them again if this \
                                   site shall have them";

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Done.
    Done,
    /// Created these tasks, or found existing ones.
    Tasks(Vec<TaskId>),
    /// The settings have this revision now.
    Revision(u64),
    /// Done; the secrets that were given for another origin were removed.
    SecretsDropped,
    /// A file is being renamed for this task; the answer follows as [`Input::Renamed`].
    Renaming(TaskId),
}

/// An input of the state machine.
#[derive(Debug, Clone)]
pub enum Input {
    /// A caller's command.
    Command(Command),
    /// A resolver answered for a run that waits for it. With the places where the directory of its list may be, in
    /// order of preference.
    Resolved(TaskId, RunId, Result<Resolved, Unresolved>, Vec<PathBuf>),
    /// A run reserves its final path. Refused if it is another task's; the run then chooses another.
    Reserved(TaskId, RunId, PathBuf, Option<u64>),
    /// A run is about to rename its part file to its final name.
    Landing(TaskId, RunId, Landing),
    /// The result of [`Effect::LookForLanding`], for a run that ended without reporting whether its landing happened.
    LandingLookedFor(TaskId, FileState),
    /// A sample of progress.
    Progressed(Vec<(TaskId, RunId, Progress)>),
    /// It is time to save what runs have done.
    Checkpoint,
    /// A run ended; it no longer touches its files.
    Ended(TaskId, RunId, Outcome),
    /// The result of [`Effect::Rename`].
    Renamed(TaskId, Result<(), CommandError>),
    /// The files of a deleted task (by serial) are gone.
    FilesDeleted(u64),
    /// What was found of completed tasks' files, each with the path where it was looked for.
    FilesLookedFor(Vec<(TaskId, PathBuf, FileState)>),
    /// Time passed: retries may be due, and schedules by this local time.
    Clock(DateTime),
    /// These rows could not be saved; they are retried with [`Input::SaveAgain`].
    NotSaved(Vec<Row>),
    /// It is time to try to save again.
    SaveAgain,
    /// A command that deletes, with the files and directories that go with those tasks whose transports leave more than a part
    /// file.
    Discard(Command, BTreeMap<TaskId, Vec<PathBuf>>),
    /// The answer to [`Effect::ListLeftovers`].
    LeftoversListed(TaskId, Vec<PathBuf>),
    /// Stops all runs and starts no more.
    Shutdown,
}

/// A side effect for the driver to perform.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Start this run.
    Start(Box<Start>),
    /// Call the resolver, then send [`Input::Resolved`], or [`Input::Ended`] if the run is stopped before.
    Resolve(Box<Resolve>),
    /// Ask the run to stop.
    Stop(RunId),
    /// Save these rows, in one transaction.
    Save(Vec<Row>),
    /// Remove the files of a deleted task once earlier effects are saved, then send [`Input::FilesDeleted`].
    DeleteFiles(u64, Vec<PathBuf>),
    /// Ask the transport of a deleted task, whose run has ended, what is there of it, then send
    /// [`Input::LeftoversListed`].
    ListLeftovers(TaskId, Discarded),
    /// Rename files once earlier effects are saved, then send [`Input::Renamed`].
    Rename(Rename),
    /// Check whether the file of a landing exists; if so, delete `rest`. Then send [`Input::LandingLookedFor`].
    LookForLanding {
        /// For this task.
        task: TaskId,
        /// The file.
        landing: Landing,
        /// Its part file and journals.
        rest: Vec<PathBuf>,
    },
    /// A limit changed.
    SetLimit(LimitScope, Speeds),
    /// Publish an event.
    Emit(Event),
    /// Announce these milestones, in this order.
    Announce(Vec<Milestone>),
    /// Delete this task, as its user would.
    Delete(TaskId, FileFate),
}

/// A rename of a task's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The task.
    pub task: TaskId,
    /// This path must not exist. `None` to continue a rename that a crash interrupted.
    pub free: Option<PathBuf>,
    /// The files.
    pub moves: Vec<Move>,
}

/// The scope of a speed limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitScope {
    /// Everything.
    Global,
    /// A queue.
    Queue(QueueId),
    /// A live run of a task.
    Run(RunId),
}

/// A run to be started: a [`transfer::Job`] without its limiters and channels.
#[derive(Debug, Clone)]
pub struct Start {
    /// The task.
    pub task: TaskId,
    /// The run.
    pub run: RunId,
    /// Its queue, for the limit.
    pub queue: QueueId,
    /// The task's own limits.
    pub task_speeds: Speeds,
    /// Its queue's limits.
    pub queue_speeds: Speeds,
    /// Whether it downloads or seeds.
    pub purpose: Purpose,
    /// Bytes uploaded by earlier runs.
    pub uploaded_bytes: u64,
    /// What to move.
    pub source: Source,
    /// Where to.
    pub target: Target,
    /// Over how many connections.
    pub connections: ConnectionPlan,
    /// The retry policy.
    pub retry: RetryPolicy,
    /// Bytes on disk, as last known.
    pub done_bytes: u64,
    /// The file's size, if known.
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
    /// Where the directory of a list is made.
    pub save_dir: Arc<Path>,
}

/// A row to be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A task as a whole.
    Task(Arc<Task>),
    /// A task without its specification.
    TaskState(Arc<Task>),
    /// A deleted task whose files are not deleted yet.
    TaskLeaving(u64, Vec<PathBuf>),
    /// A deleted task.
    TaskDeleted(u64),
    /// A deleted task of a subscription, which has not noted that yet.
    FeedTaskDeleted(TaskId),
    /// The subscription has noted it.
    FeedTaskNoted(TaskId),
    /// A queue.
    Queue(Arc<Queue>),
    /// A deleted queue.
    QueueDeleted(QueueId),
    /// A group.
    Group(Arc<Group>),
    /// A deleted group.
    GroupDeleted(GroupId),
    /// The settings.
    Settings(VersionedSettings),
    /// A site's credentials.
    Site(Site, Credentials),
    /// A site whose credentials were deleted.
    SiteDeleted(Site),
    /// A site's cookies.
    Cookies(CookieSite, Arc<CookieJar>),
    /// A site whose cookies were deleted.
    CookiesDeleted(CookieSite),
    /// A login after which tasks are still to be resumed, of those whose wait has this order or a lower one.
    Login(AccountKey, u64),
    /// A login after which all of them have been resumed.
    LoginDone(AccountKey),
    /// What was used of an account's allowance.
    Account(AccountUsage),
    /// An account that nothing uses any more.
    AccountDeleted(AccountKey),
}

/// What a row is about: a later row of the same key replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RowKey {
    Task(u64),
    Queue(QueueId),
    Group(GroupId),
    Settings,
    Site(Site),
    Cookies(CookieSite),
    FeedTask(TaskId),
    Login(AccountKey),
    Account(AccountKey),
}

impl Row {
    /// What it is about.
    pub(crate) fn key(&self) -> RowKey {
        match self {
            Self::Task(task) | Self::TaskState(task) => RowKey::Task(task.serial),
            Self::TaskLeaving(serial, _) | Self::TaskDeleted(serial) => RowKey::Task(*serial),
            Self::Queue(queue) => RowKey::Queue(queue.id),
            Self::QueueDeleted(queue) => RowKey::Queue(*queue),
            Self::Group(group) => RowKey::Group(group.id),
            Self::GroupDeleted(group) => RowKey::Group(*group),
            Self::Settings(_) => RowKey::Settings,
            Self::Site(site, _) | Self::SiteDeleted(site) => RowKey::Site(site.clone()),
            Self::Cookies(site, _) | Self::CookiesDeleted(site) => RowKey::Cookies(site.clone()),
            Self::FeedTaskDeleted(task) | Self::FeedTaskNoted(task) => RowKey::FeedTask(*task),
            Self::Login(account, _) | Self::LoginDone(account) => RowKey::Login(account.clone()),
            Self::Account(usage) => RowKey::Account(usage.used.account.clone()),
            Self::AccountDeleted(account) => RowKey::Account(account.clone()),
        }
    }
}
