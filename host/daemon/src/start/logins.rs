//! Tells the engine of accounts that can be used, because tasks wait for them.

use engine::{AccountKey, Engine, ResolverId};
use plugin_host::{Account, Identity, LoggedIn, Plugins};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::refusal::chain;

/// Tells the engine of each login until `stop`; at the start, of all accounts: an earlier process may have ended between
/// a login and the rows of the tasks that waited for it.
pub(super) async fn forward(plugins: Plugins, engine: Engine, stop: CancellationToken) {
    // Subscribed before the accounts are read, so that no login is missed in between.
    let mut logins = plugins.logins();
    let forwarding = async {
        tell_all(&plugins, &engine).await;
        loop {
            match logins.recv().await {
                Ok(LoggedIn { plugin, slot }) => tell(&plugins, &engine, &plugin, Some(&slot)).await,
                Err(RecvError::Lagged(_)) => tell_all(&plugins, &engine).await,
                Err(RecvError::Closed) => break,
            }
        }
    };
    stop.run_until_cancelled(forwarding).await;
}

async fn tell_all(plugins: &Plugins, engine: &Engine) {
    for plugin in plugins.list() {
        tell(plugins, engine, &plugin.identity, None).await;
    }
}

/// Tells the engine of the usable account of a slot, or of those of all slots.
async fn tell(plugins: &Plugins, engine: &Engine, plugin: &Identity, slot: Option<&str>) {
    let slots = match plugins.slots(plugin).await {
        Ok(slots) => slots,
        Err(error) => {
            tracing::warn!(%plugin, error = chain(&error), "tasks that wait for a login are not resumed");
            return;
        }
    };
    let meant = slots
        .into_iter()
        .filter(|summary| slot.is_none_or(|slot| summary.id == slot));
    let accounts = meant.filter_map(|summary| summary.account);
    for account in accounts.filter(|account| !account.is_expired) {
        tell_of(engine, plugin, &account).await;
    }
}

async fn tell_of(engine: &Engine, plugin: &Identity, account: &Account) {
    let key = match AccountKey::new(ResolverId::new(plugin.as_str()), &account.slot, &account.id) {
        Ok(key) => key,
        Err(error) => {
            tracing::warn!(%plugin, slot = account.slot, %error, "no task can wait for an account");
            return;
        }
    };
    if let Err(error) = engine.logged_in(key).await {
        let error = chain(&error);
        tracing::warn!(%plugin, slot = account.slot, error, "tasks that wait for a login are not resumed");
    }
}
