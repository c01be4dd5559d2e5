//! The interface between the engine, which wants a file, and the transports (`transfer-http`, …), which download it.

use std::{fmt, future::Future, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    failure::{Failure, FailureKind},
    file_name::FileName,
    part_file::{Landing, OnConflict, Recorded},
    rate::RateLimits,
    retry::RetryPolicy,
    source::{GivenBy, Source, safe_url::SafeUrl},
};

/// Where a file goes and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of one run")]
pub struct Target {
    /// The directory; created if missing.
    pub directory: PathBuf,
    /// The name that the user or a resolver chose; `None` takes it from the server or the URL.
    pub name: Option<FileName>,
    /// What to do when the name is taken.
    pub on_conflict: OnConflict,
    /// The path an earlier run of this task reserved ([`RunEvent::Reserved`]): its part file is this task's own.
    pub reserved: Option<PathBuf>,
    /// Whether an unlocked part file of the same source may be continued although no record says that this task created
    /// it. For command-line runs, which keep no records; a service does not set it.
    pub adopt: bool,
    /// If a finished file of this name and the server's size is there, and the source has a checksum, hash that file: one
    /// that has it is the result, another one is replaced. Without it a bad part file that is complete fails the run.
    pub check_integrity: bool,
    /// Set the finished file's time to the server's `Last-Modified`.
    pub use_server_time: bool,
}

/// How many connections a run may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionPlan {
    /// This many segments, if the server allows ranges; 0 lets the planner find the best number.
    pub segments: u16,
    /// The most connections to one host in this run.
    pub per_host: u16,
    /// A segment is never split into parts smaller than this many bytes.
    pub min_split_bytes: u64,
    /// A connection that brings no more than this over [`SPEED_WINDOW`] is closed; 0 is no limit. Waits for our own rate
    /// limits count, as in aria2.
    pub lowest_bytes_per_second: u64,
}

/// The time over which a connection's speed is compared with [`ConnectionPlan::lowest_bytes_per_second`], as in aria2.
pub const SPEED_WINDOW: Duration = Duration::from_secs(10);

impl Default for ConnectionPlan {
    /// Automatic, up to 16 connections (the field's usual ceiling), split no finer than 1 MiB.
    fn default() -> Self {
        Self {
            segments: 0,
            per_host: 16,
            min_split_bytes: 1024 * 1024,
            lowest_bytes_per_second: 0,
        }
    }
}

/// One run of one task, as a transport receives it.
#[derive(Debug)]
pub struct Job {
    /// The source.
    pub source: Source,
    /// The target.
    pub target: Target,
    /// Over how many connections.
    pub connections: ConnectionPlan,
    /// The limits that hold for this run, innermost first (task, queue, global).
    pub limits: RateLimits,
    /// The limits of what this run uploads, in the same order.
    pub upload_limits: RateLimits,
    /// Whether this run downloads the file or seeds it.
    pub purpose: Purpose,
    /// Bytes that earlier runs of this task uploaded.
    pub uploaded_bytes: u64,
    /// The one budget of retries, for all layers of the run.
    pub retry: RetryPolicy,
    /// Receives the run's progress and events.
    pub reporter: Reporter,
    /// Cancelled to stop the run; it then saves its bytes and ends as [`Outcome::Stopped`].
    pub stop: CancellationToken,
}

/// Why a run is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// To download the file.
    #[default]
    Download,
    /// To download what is missing of it, after everything that is there was hashed, whatever earlier runs recorded. Only
    /// after [`Finished::can_seed`].
    Recheck,
    /// To seed the finished file at [`Target::reserved`] until [`Job::stop`] is cancelled. Only after [`Finished::can_seed`].
    Seed {
        /// The run uploads nothing beyond this many bytes, [`Job::uploaded_bytes`] included, but finishes the piece that it
        /// is uploading. `None` is no limit.
        most_uploaded_bytes: Option<u64>,
    },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The file is verified, synced and has its final name.
    Finished(Finished),
    /// The description of a download, which is all that was wanted, is there. No file was made of what it describes.
    Described {
        /// Its size.
        size_bytes: u64,
    },
    /// The run was asked to stop; its bytes are saved for a later run.
    Stopped,
    /// The run has to wait for a decision of the user, who resumes the task.
    Waits,
    /// The URL led to a description of the download, which is this URL's. The task goes on with that URL and none of the
    /// secrets of the first one.
    Became {
        /// The URL.
        url: SafeUrl,
        /// Who counts as having supplied it.
        given_by: GivenBy,
    },
    /// The name was taken and the rule is [`OnConflict::Skip`].
    Skipped {
        /// The file that is there.
        existing: PathBuf,
    },
    /// The run failed. Its bytes are saved if a later run can resume from them.
    Failed(Failure),
}

/// A finished file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its final path.
    pub path: PathBuf,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes that this run received for it, repeats included.
    pub received_bytes: u64,
    /// Whether this run made the file; otherwise it was there ([`Target::check_integrity`]).
    pub is_own: bool,
    /// Whether the transport can seed the file ([`Purpose::Seed`]).
    pub can_seed: bool,
}

/// The stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Probing the source.
    #[default]
    Preparing,
    /// Transferring bytes.
    Moving,
    /// Verifying the finished bytes.
    Verifying,
    /// Uploading the finished file to others.
    Seeding,
}

/// One byte range, for a progress display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentView {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// Bytes of it that are on disk.
    pub done: u64,
    /// Whether a connection is filling it now.
    pub is_active: bool,
}

/// The connections to one server, for a progress display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerView {
    /// The source's URL.
    pub url: SafeUrl,
    /// Where it led, after redirects.
    pub current: SafeUrl,
    /// Bytes per second of each connection, smoothed.
    pub rates: Vec<u64>,
}

/// The progress of a run; a new value replaces the previous one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Its stage.
    pub stage: Stage,
    /// The file's size, once known.
    pub total_bytes: Option<u64>,
    /// Bytes of the file on disk, those of earlier runs included.
    pub done_bytes: u64,
    /// Bytes that this run received, repeats included.
    pub received_bytes: u64,
    /// Receiving rate, smoothed.
    pub bytes_per_second: u64,
    /// Bytes that this task uploaded, those of earlier runs included.
    pub uploaded_bytes: u64,
    /// Uploading rate, smoothed.
    pub upload_bytes_per_second: u64,
    /// Connections in use.
    pub connections: u16,
    /// The segments, in order; empty for one stream.
    pub segments: Arc<[SegmentView]>,
    /// The servers with connections; empty if the transport does not tell.
    pub servers: Arc<[ServerView]>,
}

/// A source of several that failed. The run goes on with the others as long as it can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFailure {
    /// Its URL.
    pub url: SafeUrl,
    /// Why.
    pub failure: Failure,
    /// What becomes of it.
    pub fate: SourceFate,
}

/// What becomes of a source that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFate {
    /// It may be asked again in this run.
    Kept,
    /// It is no longer used in this run.
    Dropped,
}

impl fmt::Display for SourceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, failure, fate } = self;
        match fate {
            SourceFate::Kept => write!(f, "{url} failed: {failure}"),
            SourceFate::Dropped => write!(f, "{url} is no longer used: {failure}"),
        }
    }
}

/// An event of a run. Events are ordered and none is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// The run reserves this final path; its part file is created beside it.
    Reserved {
        /// The final path.
        path: PathBuf,
        /// The file's size, if known.
        total_bytes: Option<u64>,
    },
    /// The verified part file is about to be renamed.
    Landing(Landing),
    /// A message for the user, such as "the file changed at the server: starting over".
    Notice(String),
    /// One of several sources failed.
    SourceFailed(SourceFailure),
    /// An attempt failed and will be repeated after the wait.
    Retrying {
        /// Why.
        failure: Failure,
        /// How long until the next attempt, in milliseconds.
        wait_ms: u64,
    },
}

/// An event, with a receipt if the run waits for it.
#[derive(Debug)]
pub struct Report {
    /// The event.
    pub event: RunEvent,
    /// A listener that keeps records answers it once the event is on disk. Until then the run waits.
    pub receipt: Option<Receipt>,
}

/// The answer that a run waits for after an event that must be recorded. Dropping it means that the listener keeps no
/// records.
#[derive(Debug)]
pub struct Receipt(oneshot::Sender<Result<Recorded, Failure>>);

impl Receipt {
    /// Lets the run continue or fail.
    pub fn give(self, recorded: Result<Recorded, Failure>) {
        let _run_ended = self.0.send(recorded);
    }
}

/// Queued events; beyond this the run waits for its listener.
const EVENT_BACKLOG: usize = 32;

/// The sending half of a run's progress (a value that is replaced) and events (a bounded queue).
#[derive(Debug, Clone)]
pub struct Reporter {
    progress: watch::Sender<Progress>,
    events: mpsc::Sender<Box<Report>>,
}

/// The receiving half of a [`Reporter`].
#[derive(Debug)]
pub struct Reports {
    /// The newest progress.
    pub progress: watch::Receiver<Progress>,
    /// The events; ends when the run ends. Boxed, because a queue keeps room for all that may wait from its start.
    pub events: mpsc::Receiver<Box<Report>>,
}

impl Reporter {
    /// A connected pair.
    pub fn new() -> (Self, Reports) {
        let (progress, progress_reader) = watch::channel(Progress::default());
        let (events, event_reader) = mpsc::channel(EVENT_BACKLOG);
        (
            Self { progress, events },
            Reports {
                progress: progress_reader,
                events: event_reader,
            },
        )
    }

    /// Replaces the progress. The same again is no news, so that hundreds of idle runs cost nothing.
    pub fn progress(&self, progress: Progress) {
        self.progress.send_if_modified(|last| {
            let is_news = *last != progress;
            *last = progress;
            is_news
        });
    }

    /// Sends an event; waits while the listener is [`EVENT_BACKLOG`] behind, and does nothing once it was dropped.
    pub async fn event(&self, event: RunEvent) {
        let _gone = self.events.send(Box::new(Report { event, receipt: None })).await;
    }

    /// Sends an event that must be on disk before the run continues, and waits until it is. Returns at once if the
    /// listener was dropped. Cancel-safe: the event may still be recorded, which only means that the run intended it.
    pub async fn record(&self, event: RunEvent) -> Result<Recorded, Failure> {
        let (sender, receipt) = oneshot::channel();
        let report = Report {
            event,
            receipt: Some(Receipt(sender)),
        };
        if self.events.send(Box::new(report)).await.is_err() {
            return Ok(Recorded::Done);
        }
        receipt.await.unwrap_or(Ok(Recorded::Done))
    }
}

/// A task that is deleted, as a transport learns of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discarded {
    /// Its source.
    pub url: SafeUrl,
    /// The directory of its file.
    pub directory: PathBuf,
    /// The path that a run reserved.
    pub path: Option<PathBuf>,
    /// Whether the finished file is deleted as well, or the finished files of a torrent that is not complete.
    pub deletes_finished: bool,
}

/// The future of [`Transport::leftovers`].
pub type LeftoversFuture = Pin<Box<dyn Future<Output = Vec<PathBuf>> + Send>>;

/// The future of a run.
pub type RunFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A file in a directory of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryFile {
    /// Its URL.
    pub url: SafeUrl,
    /// Its name.
    pub name: FileName,
    /// The directories between the listed one and the file, outermost first.
    pub directories: Vec<FileName>,
    /// Its size, if the server tells it.
    pub size_bytes: Option<u64>,
}

/// The files of a directory and of those below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory {
    /// The directory's name; `None` for the root of a server.
    pub name: Option<FileName>,
    /// The files, in the order of the listings.
    pub files: Vec<DirectoryFile>,
    /// Directories below that could not be read.
    pub unreadable: Vec<String>,
    /// Directories that are in too many others to be read.
    pub too_deep: Vec<String>,
}

/// The future of [`Transport::list`].
pub type ListFuture = Pin<Box<dyn Future<Output = Result<Directory, Failure>> + Send>>;

/// A protocol implementation: downloads files of its schemes.
pub trait Transport: Send + Sync + fmt::Debug {
    /// The URL schemes that it supports, lower-case.
    fn schemes(&self) -> &'static [&'static str];

    /// Downloads the file of `job`. The future may be dropped, but a run should be ended through `job.stop`: only then
    /// is its progress saved. The caller catches panics.
    fn run(&self, job: Job) -> RunFuture;

    /// Whether `url`, of one of its schemes, is a directory, whose files are downloaded. Must be cheap: called for every
    /// new task.
    fn is_directory(&self, _url: &SafeUrl) -> bool {
        false
    }

    /// Lists the directory at the first URL of `source`. The future may be dropped. The caller catches panics.
    fn list(&self, source: Source) -> ListFuture {
        let kind = FailureKind::UnsupportedScheme;
        let failure = Failure::new(kind, format!("{} cannot be listed", source.urls[0]));
        Box::pin(async move { Err(failure) })
    }

    /// Whether more than a part file, its journal and the finished file is deleted with a task: [`Transport::leftovers`].
    fn leaves_more(&self) -> bool {
        false
    }

    /// Every file that is deleted with a task, then every directory that is if it is empty, with a separator at its end, deepest
    /// first. In place of the part file, its journal and the finished file. Asked for when the task is deleted, so that a crash
    /// leaves nothing, and again if a run downloaded then: once that has ended.
    fn leftovers(&self, task: Discarded) -> LeftoversFuture {
        drop(task);
        Box::pin(std::future::ready(Vec::new()))
    }
}
