//! The session of all torrents: what it begins with, and its settings as they change.

use std::{net::IpAddr, sync::Arc};

use engine::{Engine, Proxies, ProxyChoice, SystemProxy};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use transfer::{SafeUrl, Transport};
use transfer_torrent::{Config, Following, Settings, Torrents};

use crate::{configuration::torrents::TorrentSettings, refusal::chain, selection::Selections, view};

/// The scheme of links that may lead to torrent files.
const LINKS: &str = "http";

/// Where trackers are, for the choice of their proxy: each may be anywhere, and all have the same one.
const TRACKERS: &str = "https://tracker.invalid/";

/// The transport for torrents, with the settings that were stored: the first torrent may run as soon as the engine does.
/// `transports` get it, and those for links follow torrent files.
pub(super) fn begin(
    mut config: Config,
    (stored, of_engine, system): (&TorrentSettings, Arc<engine::Settings>, &SystemProxy),
    selections: &Selections,
    transports: &mut Vec<Arc<dyn Transport>>,
) -> Torrents {
    let addresses = config.settings.addresses;
    config.settings = Settings {
        addresses,
        ..stored.session(proxy(of_engine, &Arc::new(system.clone())))
    };
    config.chooser.get_or_insert_with(|| Arc::new(selections.clone()));
    let torrents = Torrents::new(config);
    for transport in transports.iter_mut() {
        if transport.schemes().contains(&LINKS) {
            *transport = Arc::new(Following::new(Arc::clone(transport), torrents.clone()));
        }
    }
    transports.push(Arc::new(torrents.clone()));
    torrents
}

/// Removes what is stored of torrents that no task has: those of a process that was killed while it deleted a task.
pub(super) async fn clean(torrents: &Torrents, engine: &Engine) -> Result<(), engine::CommandError> {
    let tasks = engine.snapshot().await?.tasks;
    let known = tasks.iter().filter_map(|task| view::info_hash(task.url()));
    if let Err(failure) = torrents.keep_only(known.collect()).await {
        tracing::warn!(error = chain(&failure), "torrents without a task were not removed");
    }
    Ok(())
}

/// Brings the settings of the session up to date until `stop`.
pub(super) async fn follow(
    (torrents, addresses): (Torrents, Vec<IpAddr>),
    mut own: watch::Receiver<TorrentSettings>,
    engine: Engine,
    system: Arc<SystemProxy>,
    stop: CancellationToken,
) {
    let mut of_engine = engine.settings_changes();
    let following = async {
        loop {
            let proxy = proxy(Arc::clone(&of_engine.borrow_and_update().settings), &system);
            let session = own.borrow_and_update().session(proxy);
            torrents.set(Settings {
                addresses: addresses.clone(),
                ..session
            });
            let is_changed = tokio::select! {
                changed = own.changed() => changed.is_ok(),
                changed = of_engine.changed() => changed.is_ok(),
            };
            if !is_changed {
                break;
            }
        }
    };
    stop.run_until_cancelled(following).await;
}

fn proxy(settings: Arc<engine::Settings>, system: &Arc<SystemProxy>) -> Option<SafeUrl> {
    let trackers = SafeUrl::parse(TRACKERS).ok()?;
    Proxies::new(ProxyChoice::Settings, settings, Arc::clone(system)).for_url(&trackers)
}
