//! The state behind the handle [`Plugins`], shared by every command, call and background task.

use std::sync::{Arc, Mutex as SyncMutex, OnceLock, atomic::AtomicU64};

use accounts::Accounts;
use market::Identity;
use store::{Store, Vault};
use tokio::sync::{Mutex, OwnedMutexGuard, RwLock};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    catalogue::{Clock, Config, MarketState},
    error::CommandError,
    lifecycle::registry::Registry,
    logins::Logins,
    package::{
        disk::Disk,
        fault_point::{FaultPoints, Step},
    },
    policy::{health::Health, hooks::HookQueue, keyed::Keyed, slots::Slots},
    runtime::{HookCall, Journal, Runtime, Tools},
};

/// The plugins. Clones share them.
#[derive(Debug, Clone)]
pub struct Plugins(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) vault: Arc<Vault>,
    pub(crate) accounts: Accounts,
    pub(crate) logins: Logins,
    pub(crate) disk: Disk,
    pub(crate) faults: FaultPoints,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// Programs of the user, if this host starts any.
    pub(crate) tools: OnceLock<Arc<dyn Tools>>,
    pub(crate) registry: Registry,
    pub(crate) market: MarketState,
    pub(crate) journal: Journal,
    pub(crate) slots: Slots,
    pub(crate) hooks: SyncMutex<HookQueue<HookCall>>,
    pub(crate) health: Health,
    pub(crate) next_call: AtomicU64,
    /// Serializes the changes of each plugin.
    pub(crate) changes: Keyed<Mutex<()>>,
    /// Serializes the loads of each plugin after a start.
    pub(crate) loads: Keyed<Mutex<()>>,
    /// Read-locked while a package and its row are written, write-locked while packages without a row are deleted.
    pub(crate) packages: RwLock<()>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

/// The resources that plugins run on.
pub(crate) struct Machine {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) market: Config,
    pub(crate) clock: Clock,
    pub(crate) faults: FaultPoints,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Spawns `work`, which is cancelled when plugins are closed; closing waits for it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(work));
    }

    /// Waits until the caller may change `plugin`, and keeps others from changing it until the guard is dropped.
    pub(crate) async fn turn(&self, plugin: &Identity) -> OwnedMutexGuard<()> {
        self.changes.of(plugin, Mutex::default).lock_owned().await
    }

    pub(crate) fn pass(&self, step: Step) -> Result<(), CommandError> {
        self.faults.pass(step).map_err(|_| CommandError::Closed)
    }
}
