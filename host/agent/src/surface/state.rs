//! What handlers work with.

use std::sync::Arc;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::{budget::Budget, key::SetupCode},
    capture::pending::Pending,
    gate::Gate,
    link::daemon::Daemon,
    settings::switches::Listening,
    surface::aria2::Dialect,
};

/// What handlers work with.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) gate: Arc<Gate>,
    pub(crate) daemon: Daemon,
    pub(crate) pending: Arc<Pending>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) aria2: Arc<Dialect>,
    pub(crate) setup_code: Option<SetupCode>,
    pub(crate) listening: Listening,
    pub(crate) version: Arc<str>,
    pub(crate) language: Option<Arc<str>>,
    /// Cancelled when the agent ends.
    pub(crate) stop: CancellationToken,
    /// Cancelled to cut off who does not go.
    pub(crate) cut: CancellationToken,
    /// Owns the connections of `/rpc`.
    pub(crate) tracker: TaskTracker,
}
