//! Requests from the hub's handle to its worker.

use std::{collections::BTreeMap, sync::Arc};

use protocol::{RpcError, RssSourceDto, RuntimeStats, SelectionDto, SiteAuthEntryDto, WebhookDeliveryDto};
use tokio::sync::oneshot;

use crate::refusal::closing;

/// The worker has ended: the daemon is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended;

impl From<Ended> for RpcError {
    fn from(_: Ended) -> Self {
        closing()
    }
}

/// A consistent snapshot as of one event, not yet encoded.
#[derive(Debug)]
pub(crate) struct UnencodedSnapshot {
    pub(crate) sequence: u64,
    pub(crate) engine: engine::Snapshot,
    pub(crate) sites: Vec<SiteAuthEntryDto>,
    pub(crate) stats: RuntimeStats,
    pub(crate) feeds: Feeds,
    pub(crate) webhook_deliveries: Vec<WebhookDeliveryDto>,
    pub(crate) selections: Vec<Arc<SelectionDto>>,
}

/// The subscriptions to feeds.
#[derive(Debug)]
pub(crate) struct Feeds {
    pub(crate) sources: Vec<RssSourceDto>,
    /// How often the items of each changed.
    pub(crate) revisions: BTreeMap<String, u64>,
}

pub(super) enum Ask {
    UnencodedSnapshot(oneshot::Sender<Result<UnencodedSnapshot, Ended>>),
    Stats(oneshot::Sender<RuntimeStats>),
    SaveHistory(oneshot::Sender<()>),
    ConfigChanged(oneshot::Sender<()>),
    PluginsChanged(oneshot::Sender<()>),
    WebhooksChanged(oneshot::Sender<()>),
    PostChanged(oneshot::Sender<()>),
    SelectionsChanged(oneshot::Sender<()>),
}

/// Pairs two sequence numbers: when the engine's event `engine` was handled, the newest own event was `own`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reached {
    pub(super) engine: u64,
    pub(super) own: u64,
}
