//! A task: its specification, its phase, and how far it got. Packed, because an engine holds a hundred thousand of
//! them.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use transfer::{
    Checksum, Discarded, Failure, FileName, GivenBy, Landing, RequestOptions, SafeUrl, Stage, TorrentOptions,
    source::torrent_hash,
};

pub use crate::model::fate::FileFate;
use crate::model::{
    account::{AccountKey, AccountSlot, LoginNeed},
    file::{Move, part_files},
    id::{GroupId, QueueId, RunId, TaskId, Timestamp},
    resolution::{Resolution, ResolverId},
    seeding::{AfterSeeding, SeedLimits, SeedState, Seeding},
    spec::TaskSpec,
};

/// The state of a task.
///
/// ```text
///            ┌────────────── resume ──────────────┐
///            ▼                                    │
/// create ─▶ Pending ─ slot ─▶ Running ─ pause ─▶ Stopping ─▶ Paused
///            ▲  ▲               │  │                              │
///            │  └── at ─ Retrying  ├─▶ Completed                  │
///            ├─ login ─ NeedsLogin ◀┤                             │
///            ├─ room ── AccountLimited ◀┤                         │
///            └── resume ──── Failed ◀┘          ◀── resume ───────┘
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Waits for its turn in its queue.
    Pending,
    /// Failed with a transient failure; becomes `Pending` at the time of the retry.
    Retrying(Box<Retry>),
    /// Its plugin gives no link without a login; becomes `Pending` after one. Clients see a failure that they can act
    /// on.
    NeedsLogin(Box<LoginWait>),
    /// The site allows its account no further download now. It keeps its place in its queue and starts as soon as the
    /// account may download.
    AccountLimited(Box<AccountWait>),
    /// Has a run.
    Running(Run),
    /// Its run was asked to stop; it still owns its files, so it still holds its slot.
    Stopping {
        /// The run.
        run: Run,
        /// What follows when the run has ended.
        then: After,
    },
    /// Waits until the user or its queue resumes it.
    Paused,
    /// Its file is verified, synced and has its final name.
    Completed,
    /// Failed for good; resuming continues from the bytes it has.
    Failed(Box<Failure>),
}

/// A live run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// What it does at the moment.
    pub stage: Stage,
}

/// What a stopping task becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Paused.
    Pause,
    /// Pending again.
    Requeue,
    /// Deleted. Such a task is no longer listed.
    Delete(FileFate),
}

/// A scheduled retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// What failed.
    pub failure: Failure,
    /// When the next run may start.
    pub at: Timestamp,
}

/// A wait for a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginWait {
    /// Which login.
    pub need: LoginNeed,
    /// What the plugin says, for the user.
    pub failure: Failure,
    /// Grows from wait to wait: a login ends the waits that are older than itself.
    pub(crate) order: u64,
}

/// A wait for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountWait {
    /// The account.
    pub account: AccountKey,
    /// Which limit it has reached, for the user.
    pub failure: Failure,
    /// When the daily allowance is renewed. `None` if it waits for the end of another download.
    pub until: Option<Timestamp>,
    /// As [`LoginWait::order`]: a login to another account in the slot ends the wait.
    pub(crate) order: u64,
}

/// The six states that clients know, by their wire numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Status {
    /// Waits for a slot, a retry or its account.
    Pending = 0,
    /// Transfers bytes.
    Downloading = 1,
    /// Paused.
    Paused = 2,
    /// Completed.
    Completed = 3,
    /// Failed.
    Error = 4,
    /// Resolves or probes the source.
    Preparing = 5,
}

/// A task. Immutable once shared: a change makes a new value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "three facts that do not depend on each other"
)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Grows in the order of creation; unique.
    pub serial: u64,
    /// Its phase.
    pub phase: Phase,
    /// Its queue.
    pub queue: QueueId,
    /// Its group, if it has one.
    pub group: Option<GroupId>,
    /// Its position in its queue; tasks without one (0) follow those with one, oldest first.
    pub queue_order: u32,
    /// The user resumed it, so it runs although its queue is stopped.
    pub is_forced: bool,
    /// Its finished file was missing at the last check.
    pub file_missing: bool,
    /// Automatic retries since it was last resumed, or since the direct URL of a resolver last delivered bytes.
    pub attempts: u32,
    /// Those of its automatic retries that plugins asked for since it was last resumed.
    pub asked_retries: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was completed.
    pub completed_at: Option<Timestamp>,
    /// Bytes of the file on disk.
    pub done_bytes: u64,
    /// The file's size, once known.
    pub total_bytes: Option<u64>,
    /// The directory of its file.
    pub save_dir: Arc<Path>,
    /// The final path that a run reserved, later the finished file's. Part file and journal are beside it.
    pub path: Option<Box<Path>>,
    /// Whether this task created the file at `path`; only then may deleting the task delete it.
    pub owns_file: bool,
    /// Its seeding, if it uploaded anything or can be seeded.
    pub seeding: Option<Box<Seeding>>,
    /// A file operation in progress. The row with it is on disk before the files are touched, so after a crash the
    /// operation is finished before anything else happens to the task.
    pub(crate) unsettled: Option<Box<Unsettled>>,
    pub(crate) asked: Arc<PackedSpec>,
}

/// A file operation that a crash may interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unsettled {
    /// The task's files get this name.
    Renaming(FileName),
    /// The verified part file becomes the finished file.
    Landing(Landing),
    /// The task is deleted with these files once its run has ended. Its row says so already.
    Leaving(Vec<PathBuf>),
}

/// A [`TaskSpec`] packed, so that a hundred thousand fit in memory: most tasks are a URL and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackedSpec {
    pub(crate) urls: Box<[SafeUrl]>,
    pub(crate) file_name: Option<FileName>,
    pub(crate) segments: u16,
    /// The rest of the specification, if any of it is not the default.
    pub(crate) rare: Option<Box<TaskSpec>>,
}

impl PackedSpec {
    pub(crate) fn pack(mut spec: TaskSpec) -> Self {
        let (urls, file_name, segments) = spec.take_common();
        // These four are fields of the task itself, where they may change.
        spec.save_dir = None;
        spec.queue = None;
        spec.group = None;
        spec.start_paused = false;
        let rare = (spec != TaskSpec::default()).then(|| Box::new(spec));
        Self {
            urls: urls.into_boxed_slice(),
            file_name,
            segments,
            rare,
        }
    }

    pub(crate) fn resolution(&self) -> Option<&Resolution> {
        self.rare.as_ref()?.resolution.as_ref()
    }

    /// The subscription that created it.
    pub(crate) fn feed(&self) -> Option<&str> {
        self.rare.as_ref()?.feed.as_deref()
    }

    /// Whether it has its own retry policy.
    pub(crate) fn has_retry_policy(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.retry.is_some())
    }

    pub(crate) fn download_as(&mut self, options: Arc<TorrentOptions>) {
        self.rare.get_or_insert_default().torrent = Some(options);
    }

    /// Goes on with another URL that the first one led to. What was said of the first URL's bytes, and its request, are not
    /// the other's.
    pub(crate) fn become_at(&mut self, url: SafeUrl, given_by: GivenBy) {
        self.urls = Box::new([url]);
        self.file_name = None;
        self.resolve(None);
        if given_by != GivenBy::default() {
            self.rare.get_or_insert_default();
        }
        if let Some(rare) = &mut self.rare {
            rare.given_by = given_by;
            rare.request = RequestOptions::default();
            (rare.checksum, rare.pieces) = (None, None);
            (rare.promised_size, rare.promised_type) = (None, None);
            if let Some(torrent) = &mut rare.torrent {
                // They are about magnet links, and this is a torrent that is known.
                let torrent = Arc::make_mut(torrent);
                (torrent.is_metadata_only, torrent.saves_metadata) = (false, false);
            }
        }
        self.rare.take_if(|rare| **rare == TaskSpec::default());
    }

    pub(crate) fn limit_seeding(&mut self, limits: SeedLimits) {
        self.rare.get_or_insert_default().seed_limits = limits;
        self.rare.take_if(|rare| **rare == TaskSpec::default());
    }

    pub(crate) fn resolve(&mut self, resolution: Option<Resolution>) {
        if resolution.is_some() || self.rare.is_some() {
            self.rare.get_or_insert_default().resolution = resolution;
            self.rare.take_if(|rare| **rare == TaskSpec::default());
        }
    }

    /// Adds a resolver's checksum. One from the user stays.
    pub(crate) fn verify_with(&mut self, checksum: Option<&Checksum>) {
        if let Some(checksum) = checksum {
            let rare = self.rare.get_or_insert_default();
            rare.checksum.get_or_insert_with(|| checksum.clone());
        }
    }

    /// Replaces the first URL and, with it, the resolution. At another origin the secrets of the previous URL are
    /// removed; returns whether there were any.
    pub(crate) fn change_url(&mut self, url: SafeUrl, resolver: Option<ResolverId>) -> bool {
        let mut has_dropped = false;
        if let Some(first) = self.urls.first_mut() {
            if first.origin() != url.origin() {
                let of_request = self.rare.as_mut().is_some_and(|rare| rare.request.drop_secrets());
                has_dropped = of_request || first.credentials().is_some();
            }
            *first = url;
        }
        self.resolve(resolver.map(|resolver| Resolution { resolver, item: None }));
        has_dropped
    }
}

impl Task {
    /// All automatic retries are allowed again.
    pub(crate) fn renew_retries(&mut self) {
        (self.attempts, self.asked_retries) = (0, 0);
    }

    /// Everything that was wanted of it, of so many bytes, is there.
    pub(crate) fn complete(&mut self, now: Timestamp, size_bytes: u64) {
        self.phase = Phase::Completed;
        self.is_forced = false;
        self.renew_retries();
        self.done_bytes = size_bytes;
        self.total_bytes = Some(size_bytes);
        self.completed_at = Some(now);
    }

    /// Its status as clients see it.
    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Pending | Phase::Retrying(_) | Phase::AccountLimited(_) => Status::Pending,
            Phase::Stopping {
                then: After::Requeue, ..
            } => Status::Pending,
            Phase::Stopping { .. } | Phase::Paused => Status::Paused,
            Phase::Running(Run {
                stage: Stage::Preparing,
                ..
            }) => Status::Preparing,
            Phase::Running(_) => Status::Downloading,
            Phase::Completed => Status::Completed,
            Phase::NeedsLogin(_) | Phase::Failed(_) => Status::Error,
        }
    }

    /// Its live run.
    pub fn run(&self) -> Option<Run> {
        match self.phase {
            Phase::Running(run) | Phase::Stopping { run, .. } => Some(run),
            _ => None,
        }
    }

    /// Its run that seeds.
    pub fn seed_run(&self) -> Option<RunId> {
        self.seeding.as_ref()?.run()
    }

    /// Whether it seeds, or will when there is a slot.
    pub fn is_seeding(&self) -> bool {
        let state = self.seeding.as_ref().map(|seeding| &seeding.state);
        matches!(
            state,
            Some(SeedState::Waiting | SeedState::Seeding(_) | SeedState::Stopping(_, AfterSeeding::Wait))
        )
    }

    /// Its run, whether it downloads or seeds.
    pub(crate) fn any_run(&self) -> Option<RunId> {
        self.run().map(|run| run.id).or(self.seed_run())
    }

    /// Whether it is paused, or will be once its run has ended.
    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.phase, Phase::Paused | Phase::Stopping { then: After::Pause, .. })
    }

    /// Whether it stays as it is until a command or its queue changes it.
    pub fn is_at_rest(&self) -> bool {
        matches!(
            self.phase,
            Phase::Paused | Phase::Completed | Phase::NeedsLogin(_) | Phase::Failed(_)
        )
    }

    /// The failure that stopped it or that it will retry after, or the limit that it waits for.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.phase {
            Phase::Failed(failure) => Some(failure),
            Phase::Retrying(retry) => Some(&retry.failure),
            Phase::NeedsLogin(wait) => Some(&wait.failure),
            Phase::AccountLimited(wait) => Some(&wait.failure),
            _ => None,
        }
    }

    /// When it continues by itself, if that is a matter of time.
    pub fn continues_at(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Retrying(retry) => Some(retry.at),
            Phase::AccountLimited(wait) => wait.until,
            _ => None,
        }
    }

    /// The login that it waits for.
    pub fn login_need(&self) -> Option<&LoginNeed> {
        match &self.phase {
            Phase::NeedsLogin(wait) => Some(&wait.need),
            _ => None,
        }
    }

    /// The account whose limit it waits for.
    pub(crate) fn limited_account(&self) -> Option<&AccountKey> {
        match &self.phase {
            Phase::AccountLimited(wait) => Some(&wait.account),
            _ => None,
        }
    }

    /// The slot of the account that it waits for, and the order of the wait.
    pub(crate) fn wait(&self) -> Option<(&AccountSlot, u64)> {
        match &self.phase {
            Phase::NeedsLogin(wait) => Some((wait.need.account_slot(), wait.order)),
            Phase::AccountLimited(wait) => Some((wait.account.account_slot(), wait.order)),
            _ => None,
        }
    }

    /// The first URL.
    pub fn url(&self) -> &SafeUrl {
        &self.asked.urls[0]
    }

    /// All its URLs.
    pub fn urls(&self) -> &[SafeUrl] {
        &self.asked.urls
    }

    /// Its specification without what the task has as methods or fields of its own: URLs, name, segments, directory,
    /// queue and group. Most tasks have none and share the defaults.
    pub fn options(&self) -> &TaskSpec {
        static DEFAULTS: LazyLock<TaskSpec> = LazyLock::new(TaskSpec::default);
        self.asked.rare.as_deref().unwrap_or(&DEFAULTS)
    }

    /// Behind which resolver its bytes are.
    pub fn resolution(&self) -> Option<&Resolution> {
        self.asked.resolution()
    }

    /// The name of its file as far as known; else what a magnet link calls its torrent, or the last part of its URL.
    pub fn file_name(&self) -> String {
        let reserved = self
            .path
            .as_deref()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str());
        if let Some(name) = reserved {
            return name.to_owned();
        }
        if let Some(name) = &self.asked.file_name {
            return name.as_str().to_owned();
        }
        if let Some(name) = transfer::source::announced(self.url()).name {
            return name.as_str().to_owned();
        }
        let last = self.url().as_url().path().rsplit('/').next().unwrap_or("");
        let decoded = percent_encoding::percent_decode_str(last).decode_utf8_lossy();
        FileName::sanitise(&decoded).as_str().to_owned()
    }

    /// Its specification, with the directory, queue and group that it has now.
    pub fn spec(&self) -> TaskSpec {
        TaskSpec {
            urls: self.asked.urls.to_vec(),
            file_name: self.asked.file_name.clone(),
            segments: self.asked.segments,
            save_dir: Some(self.save_dir.to_path_buf()),
            queue: Some(self.queue),
            group: self.group,
            ..self.options().clone()
        }
    }

    /// Its part file and journal.
    pub fn part_files(&self) -> Vec<PathBuf> {
        if self.phase == Phase::Completed {
            return Vec::new();
        }
        self.path.as_deref().map(part_files).unwrap_or_default()
    }

    /// Every path of this task; deleting another task must not touch these.
    pub(crate) fn claims(&self) -> impl Iterator<Item = PathBuf> {
        self.path
            .as_deref()
            .map(ToOwned::to_owned)
            .into_iter()
            .chain(self.part_files())
    }

    /// The files to delete with the task.
    pub(crate) fn files_to_delete(&self, fate: FileFate) -> Vec<PathBuf> {
        if let Some(Unsettled::Leaving(files)) = self.unsettled.as_deref() {
            return files.clone();
        }
        match (&self.phase, &self.path, fate) {
            (Phase::Completed, Some(path), FileFate::Delete) if self.owns_file => vec![path.to_path_buf()],
            _ => self.part_files(),
        }
    }

    /// What its transport needs to know to say what is deleted with it.
    pub(crate) fn discarded(&self, fate: FileFate) -> Discarded {
        let is_finished = self.phase == Phase::Completed;
        Discarded {
            url: self.url().clone(),
            directory: self.save_dir.to_path_buf(),
            path: self.path.as_deref().map(ToOwned::to_owned),
            // Of an unfinished download, what is finished is its own: some files of a torrent.
            deletes_finished: fate == FileFate::Delete && (self.owns_file || !is_finished),
        }
    }

    /// The path of its file after a rename to `name`.
    pub(crate) fn renamed_path(&self, name: &FileName) -> Option<PathBuf> {
        self.path.as_deref().map(|path| path.with_file_name(name.as_str()))
    }

    /// The files that a rename from the path `from` to the path `to` moves.
    pub(crate) fn moves(&self, from: &Path, to: &Path) -> Vec<Move> {
        let step = |(from, to)| Move { from, to };
        if self.phase == Phase::Completed {
            vec![step((from.to_owned(), to.to_owned()))]
        } else {
            part_files(from).into_iter().zip(part_files(to)).map(step).collect()
        }
    }

    /// The torrent that it owns: what is known of it, and its files. One of which only the description was wanted owns none once
    /// it has that.
    pub(crate) fn torrent(&self) -> Option<[u8; 20]> {
        let is_metadata_only = |torrent: &Arc<TorrentOptions>| torrent.is_metadata_only;
        if self.phase == Phase::Completed && self.options().torrent.as_ref().is_some_and(is_metadata_only) {
            return None;
        }
        torrent_hash(self.url())
    }

    /// Whether a file operation outside of a run is in progress. Until it has ended, no run and no other operation
    /// starts.
    pub(crate) fn is_settling(&self) -> bool {
        self.unsettled.is_some() && self.any_run().is_none()
    }

    /// The paths that no other task may use, case-folded, because file systems may ignore case.
    pub(crate) fn reservations(&self) -> impl Iterator<Item = String> {
        let path = self.path.as_deref().filter(|_| self.phase != Phase::Completed);
        let next = match self.unsettled.as_deref() {
            Some(Unsettled::Renaming(name)) => self.renamed_path(name),
            _ => None,
        };
        path.map(reservation)
            .into_iter()
            .chain(next.as_deref().map(reservation))
    }

    pub(crate) fn rename(&mut self, name: FileName) {
        self.path = self.renamed_path(&name).map(PathBuf::into_boxed_path);
        self.ask(|asked| asked.file_name = Some(name));
    }

    /// Changes the specification.
    pub(crate) fn ask(&mut self, change: impl FnOnce(&mut PackedSpec)) {
        change(Arc::make_mut(&mut self.asked));
    }

    /// Whether it is known which files are deleted with it.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.unsettled.as_deref(), Some(Unsettled::Leaving(_)))
    }

    pub(crate) fn is_being_deleted(&self) -> bool {
        self.is_leaving()
            || matches!(
                self.phase,
                Phase::Stopping {
                    then: After::Delete(_),
                    ..
                }
            )
    }
}

/// A path as [`Task::reservations`] gives it.
pub(crate) fn reservation(path: &Path) -> String {
    path.to_string_lossy().to_lowercase()
}
