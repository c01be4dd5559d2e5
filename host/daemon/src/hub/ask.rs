//! What the handle of the hub and its worker say to each other.

use protocol::{RpcError, RuntimeStats, SiteAuthEntryDto};
use tokio::sync::oneshot;

use crate::refusal::closing;

/// The daemon is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended;

impl From<Ended> for RpcError {
    fn from(_: Ended) -> Self {
        closing()
    }
}

/// Everything as of one event, before it is encoded.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) sequence: u64,
    pub(crate) engine: engine::Snapshot,
    pub(crate) sites: Vec<SiteAuthEntryDto>,
    pub(crate) stats: RuntimeStats,
}

/// What the handle asks of the worker.
pub(super) enum Ask {
    Moment(oneshot::Sender<Result<Moment, Ended>>),
    Stats(oneshot::Sender<RuntimeStats>),
    SaveHistory(oneshot::Sender<()>),
    ConfigChanged(oneshot::Sender<()>),
    PluginsChanged(oneshot::Sender<()>),
}

/// How far the hub is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reached {
    /// In the engine's events.
    pub(super) engine: u64,
    /// In its own.
    pub(super) own: u64,
}
