//! The seam between whoever wants a file (`engine`) and whoever can move it (`transfer-http`, …).

use std::{fmt, future::Future, path::PathBuf, pin::Pin, sync::Arc};

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    failure::Failure,
    file_name::FileName,
    part_file::{Landing, OnConflict, Recorded},
    rate::RateLimits,
    retry::RetryPolicy,
    source::Source,
};

/// Where a file goes and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The directory; made if it does not exist.
    pub directory: PathBuf,
    /// The name somebody chose; `None` takes it from the server or the URL.
    pub name: Option<FileName>,
    /// What to do when the name is taken.
    pub on_conflict: OnConflict,
    /// The path an earlier run of this task reserved ([`RunEvent::Reserved`]): its part file is this task's own.
    pub reserved: Option<PathBuf>,
    /// Whether a part file that nobody holds and that came from the same source may be continued although this task
    /// did not make it. For command-line runs, which keep no other record; a service leaves it off.
    pub adopt: bool,
    /// Give the finished file the server's `Last-Modified` time.
    pub use_server_time: bool,
}

/// How many connections a run may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionPlan {
    /// This many segments, if the server allows ranges; 0 lets the planner find the number that pays.
    pub segments: u16,
    /// The most connections to one host in this run.
    pub per_host: u16,
    /// A segment is never split into parts smaller than this many bytes.
    pub min_split_bytes: u64,
}

impl Default for ConnectionPlan {
    /// Automatic, up to 16 connections (the field's usual ceiling), split no finer than 1 MiB.
    fn default() -> Self {
        Self {
            segments: 0,
            per_host: 16,
            min_split_bytes: 1024 * 1024,
        }
    }
}

/// One run of one task, as a transport receives it.
#[derive(Debug)]
pub struct Job {
    /// What to move.
    pub source: Source,
    /// Where to.
    pub target: Target,
    /// Over how many connections.
    pub connections: ConnectionPlan,
    /// The limits that hold for this run, innermost first (task, queue, global).
    pub limits: RateLimits,
    /// The one budget of retries, for all layers of the run.
    pub retry: RetryPolicy,
    /// Where the run tells how it is doing.
    pub reporter: Reporter,
    /// Cancelled to stop the run; it then saves what it has and ends as [`Outcome::Stopped`].
    pub stop: CancellationToken,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The file is proved, synced and under its final name.
    Finished(Finished),
    /// The run was told to stop; what it has is saved and a later run goes on from it.
    Stopped,
    /// The name was taken and the rule is [`OnConflict::Skip`].
    Skipped {
        /// The file that is there.
        existing: PathBuf,
    },
    /// The run gave up. What it has is saved if a later run may go on from it.
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
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Finding out what the source is.
    #[default]
    Preparing,
    /// Moving bytes.
    Moving,
    /// Proving the finished bytes.
    Verifying,
}

/// One byte range as a picture for people.
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

/// How a run is doing; the newest value replaces the one before.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// What it is doing.
    pub stage: Stage,
    /// The file's size, once known.
    pub total_bytes: Option<u64>,
    /// Bytes of the file on disk, those of earlier runs included.
    pub done_bytes: u64,
    /// Bytes that this run received, repeats included.
    pub received_bytes: u64,
    /// Receiving rate, smoothed.
    pub bytes_per_second: u64,
    /// Connections in use.
    pub connections: u16,
    /// The segments, in order; empty for one stream.
    pub segments: Arc<[SegmentView]>,
}

/// Something that happened in a run, in order, none dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// The run reserves this final path; its part file is made beside it.
    Reserved {
        /// The final path.
        path: PathBuf,
        /// The file's size, if known.
        total_bytes: Option<u64>,
    },
    /// The proved part file is about to become this file.
    Landing(Landing),
    /// Something worth telling the user, such as "the file changed at the server: starting over".
    Notice(String),
    /// An attempt failed and will be repeated after the wait.
    Retrying {
        /// Why.
        failure: Failure,
        /// How long until the next attempt, in milliseconds.
        wait_ms: u64,
    },
}

/// An event on its way to the listener.
#[derive(Debug)]
pub struct Report {
    /// The event.
    pub event: RunEvent,
    /// Given back by a listener that keeps records, once the event is on the disk. Until then the run waits.
    pub receipt: Option<Receipt>,
}

/// What a run waits for that told something to be recorded. Dropping it says that nobody keeps records here.
#[derive(Debug)]
pub struct Receipt(oneshot::Sender<Result<Recorded, Failure>>);

impl Receipt {
    /// Lets the run go on, or end.
    pub fn give(self, recorded: Result<Recorded, Failure>) {
        let _run_ended = self.0.send(recorded);
    }
}

/// Events a run may be ahead of its reader; past that it waits.
const EVENT_BACKLOG: usize = 32;

/// A run's voice: progress as a value that is replaced, events as a bounded stream.
#[derive(Debug, Clone)]
pub struct Reporter {
    progress: watch::Sender<Progress>,
    events: mpsc::Sender<Report>,
}

/// The listener's end of a [`Reporter`].
#[derive(Debug)]
pub struct Reports {
    /// The newest progress.
    pub progress: watch::Receiver<Progress>,
    /// The events; ends when the run ends.
    pub events: mpsc::Receiver<Report>,
}

impl Reporter {
    /// A reporter and the end that listens to it.
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

    /// Replaces the progress.
    pub fn progress(&self, progress: Progress) {
        self.progress.send_replace(progress);
    }

    /// Tells an event; waits while the listener is [`EVENT_BACKLOG`] behind, and does nothing once it is gone.
    pub async fn event(&self, event: RunEvent) {
        let _gone = self.events.send(Report { event, receipt: None }).await;
    }

    /// Tells an event that must be on the disk before the run goes on, and waits until it is. Nothing is waited for if
    /// the listener is gone. Cancel-safe: the event may then be recorded, which says no more than that the run meant it.
    pub async fn record(&self, event: RunEvent) -> Result<Recorded, Failure> {
        let (sender, receipt) = oneshot::channel();
        let report = Report {
            event,
            receipt: Some(Receipt(sender)),
        };
        if self.events.send(report).await.is_err() {
            return Ok(Recorded::Done);
        }
        receipt.await.unwrap_or(Ok(Recorded::Done))
    }
}

/// The future of a run.
pub type RunFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A protocol: something that can move files of its schemes.
pub trait Transport: Send + Sync + fmt::Debug {
    /// The URL schemes it moves, lower-case.
    fn schemes(&self) -> &'static [&'static str];

    /// Moves the file of `job`. The future may be dropped, but a run should be ended through `job.stop`: only then is
    /// its progress saved. A panic inside is the caller's to catch.
    fn run(&self, job: Job) -> RunFuture;
}
