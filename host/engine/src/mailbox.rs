//! What handles and driver share: the messages to the driver, and what the driver publishes.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use transfer::Progress;

use crate::{
    event::Event,
    model::{
        error::CommandError,
        id::{RunId, TaskId},
        settings::VersionedSettings,
    },
    resolver::Resolver,
    state::{Command, Reply, State},
};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) messages: mpsc::Sender<Message>,
    /// Weak, so that subscriptions end with the driver and not with the last handle.
    pub(crate) events: broadcast::WeakSender<(u64, Event)>,
    pub(crate) sequence: Arc<AtomicU64>,
    pub(crate) runs: watch::Receiver<Arc<LiveRuns>>,
    pub(crate) settings: watch::Receiver<VersionedSettings>,
    pub(crate) schemes: Arc<[&'static str]>,
    pub(crate) resolver: Option<Arc<dyn Resolver>>,
    pub(crate) adopts: bool,
    pub(crate) tracker: TaskTracker,
}

/// The progress of every live run.
pub(crate) type LiveRuns = HashMap<TaskId, (RunId, watch::Receiver<Progress>)>;

/// The result of a shutdown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShutdownReport {
    /// Tasks whose runs did not stop in time and were aborted; they resume from their last saved bytes.
    pub cut_off: Vec<TaskId>,
}

/// A query that runs on the driver, with the sequence number of the newest event.
pub(crate) type Query = Box<dyn FnOnce(&State, u64) + Send>;

pub(crate) enum Message {
    /// Execute this; answer once it is on disk.
    Command(Command, oneshot::Sender<Result<Reply, CommandError>>),
    Read(Query),
    /// Check the files of completed tasks.
    Rescan(oneshot::Sender<Result<Reply, CommandError>>),
    Shutdown(Duration, oneshot::Sender<ShutdownReport>),
}
