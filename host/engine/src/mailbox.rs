//! What the handles and the driver share: the messages of one to the other, and what the driver publishes.

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

/// The handles' side.
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

/// How a shutdown went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShutdownReport {
    /// Tasks whose runs did not stop in time and were cut off; they go on from their last saved bytes.
    pub cut_off: Vec<TaskId>,
}

/// A look at the state as of an event's sequence number.
pub(crate) type Look = Box<dyn FnOnce(&State, u64) + Send>;

/// What the handle tells the driver.
pub(crate) enum Message {
    /// Do this; answer once it is on disk.
    Command(Command, oneshot::Sender<Result<Reply, CommandError>>),
    /// Look at the state.
    Read(Look),
    /// Look for the files of completed tasks.
    Rescan(oneshot::Sender<Result<Reply, CommandError>>),
    /// Stop the runs and end.
    Shutdown(Duration, oneshot::Sender<ShutdownReport>),
}
