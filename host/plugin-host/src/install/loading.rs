//! Loads installed plugins at start-up, in the background. Code compiled by another version is compiled again, which
//! takes seconds; loading blocks only callers of that plugin, and a plugin that is called is loaded next. Another host
//! version may run a plugin differently, so its fixtures are replayed: a failure shows here and not in a download.

use std::sync::Arc;

use market::Identity;
use tokio::sync::Mutex;

use crate::{
    error::CallFailure,
    install::Shared,
    lifecycle::registry::{Loaded, Snapshot},
    policy::fault::PluginFault,
    runtime::Ask,
};

/// Loads those of `plugins` that are not loaded yet, one by one.
pub(crate) async fn load_all(shared: Arc<Shared>, plugins: Vec<Identity>) {
    for plugin in plugins {
        shared.load_due(&plugin).await;
    }
}

impl Shared {
    /// Loads a plugin and activates it unless it was changed meanwhile. Changes of the plugin do not wait for this.
    async fn load_due(&self, plugin: &Identity) {
        let load = self.loads.of(plugin, Mutex::default);
        let _load = load.lock().await;
        let is_loading = |loaded: &Arc<Loaded>| loaded.is_loading();
        let Some(due) = self.registry.get(plugin).filter(is_loading) else {
            return;
        };
        let loaded = self.load_and_replay(&due.installation).await;
        let _turn = self.turn(plugin).await;
        let now = self.registry.get(plugin).filter(is_loading);
        if let Some(now) = now.filter(|now| now.installation.runs_as(&due.installation)) {
            self.put_loaded(plugin, &now, loaded).await;
        }
    }

    /// The plugin once its code is loaded. A call waits at most as long as it may take itself, and not at all if the
    /// plugin's state forbids the call anyway.
    pub(crate) async fn once_loaded(
        self: &Arc<Self>,
        plugin: &Identity,
        loaded: Arc<Loaded>,
        ask: &Ask,
    ) -> Result<Arc<Loaded>, CallFailure> {
        let Some(manifest) = loaded.manifest.as_ref().filter(|_| is_awaited(&loaded)) else {
            return Ok(loaded);
        };
        let wall = ask.wall(manifest).ok_or(CallFailure::Incapable)?;
        let _waiting = self.slots.wait().map_err(|_| PluginFault::Overloaded)?;
        let (shared, wanted) = (Arc::clone(self), plugin.clone());
        self.spawn(async move { shared.load_due(&wanted).await });
        let mut changes = self.registry.watch();
        let is_settled = |snapshot: &Arc<Snapshot>| !snapshot.plugins.get(plugin).is_some_and(|it| is_awaited(it));
        let settled = tokio::time::timeout(wall, changes.wait_for(is_settled));
        let settled = self
            .stop
            .run_until_cancelled(settled)
            .await
            .ok_or(CallFailure::Closed)?;
        let snapshot = settled
            .map_err(|_| CallFailure::Loading)?
            .map_err(|_| CallFailure::Closed)?;
        snapshot.plugins.get(plugin).cloned().ok_or(CallFailure::NotInstalled)
    }
}

/// Whether only its code is missing for a call.
fn is_awaited(loaded: &Loaded) -> bool {
    loaded.callable().is_err_and(|reason| reason == CallFailure::Loading)
}
