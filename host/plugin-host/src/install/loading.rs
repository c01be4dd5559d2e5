//! Loads at start what was installed before. Code that another version compiled is compiled again, which takes seconds;
//! loading blocks only callers of that plugin, and a plugin that is called is loaded next. Another version of the host may
//! also run a plugin differently, so its recorded calls are played again: a failure shows here and not in a download.

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

/// Loads all of `plugins` that are still to be loaded, one by one.
pub(crate) async fn load_all(shared: Arc<Shared>, plugins: Vec<Identity>) {
    for plugin in plugins {
        shared.load_due(&plugin).await;
    }
}

impl Shared {
    /// Loads a plugin whose code is still to come, and puts it into service unless something else happened to it
    /// meanwhile. Changes of the plugin need not wait for this.
    async fn load_due(&self, plugin: &Identity) {
        let load = self.loads.of(plugin, Mutex::default);
        let _load = load.lock().await;
        let is_loading = |loaded: &Arc<Loaded>| loaded.is_loading();
        let Some(due) = self.registry.get(plugin).filter(is_loading) else {
            return;
        };
        let loaded = self.load_and_replay(&due.installation).await;
        let turn = self.turn(plugin);
        let _turn = turn.lock().await;
        let now = self.registry.get(plugin).filter(is_loading);
        if let Some(now) = now.filter(|now| now.installation.runs_as(&due.installation)) {
            self.put_loaded(plugin, &now, loaded).await;
        }
    }

    /// The plugin when its code is there, for which a call waits as long as it may take itself. Nothing is waited for
    /// that the plugin's state forbids anyway.
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

/// Whether nothing but its code is missing for a call.
fn is_awaited(loaded: &Loaded) -> bool {
    loaded.callable().is_err_and(|reason| reason == CallFailure::Loading)
}
