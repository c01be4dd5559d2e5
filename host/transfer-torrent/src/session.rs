//! The session of all torrents: begun with the first one, and begun anew when it is idle and its ports changed.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use metainfo::InfoHash;
use peer_discovery::{DHT_BOOTSTRAP, Discovery};
use tokio::sync::OwnedMutexGuard;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use torrent::{Connections, Session, SessionConfig, StartError};

use crate::{
    config::{Config, Settings},
    shelf::Shelf,
    swarm::Swarm,
    webseed::Webseeds,
};

/// The place of one torrent.
#[derive(Debug, Clone, Default)]
struct Slot {
    /// Runs of its task have it one after the other. What is in it was left by the last run.
    swarm: Arc<tokio::sync::Mutex<Option<Swarm>>>,
    /// Held while what was left is closed.
    closing: Arc<tokio::sync::Mutex<()>>,
}

/// What all torrents share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) shelf: Shelf,
    settings: Mutex<Settings>,
    open: tokio::sync::Mutex<Option<Arc<Open>>>,
    /// As `open`, for views.
    seen: Mutex<Option<Arc<Open>>>,
    slots: Mutex<HashMap<InfoHash, Slot>>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

/// A session that accepts peers and looks for them.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) torrents: Session,
    pub(crate) discovery: Discovery,
    /// What it was begun with and cannot change.
    settings: Settings,
    /// Its discovery's tasks.
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Open {
    fn start(config: &Config, settings: Settings) -> Result<Self, StartError> {
        let torrents = Session::start(SessionConfig {
            ports: settings.ports.clone(),
            addresses: settings.addresses.clone(),
            state_directory: config.directory.clone(),
            lanes: config.lanes.clone(),
            connections: connections(&settings),
            is_exchange_on: settings.is_exchange_on,
            encryption: settings.encryption,
            names: config.names.clone(),
            filter: None,
            webseeds: Some(Arc::new(Webseeds::new(config.http.clone()))),
        })?;
        let port = torrents.port().unwrap_or(0);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let discovery = Discovery::start(peer_discovery::Config {
            settings: settings.discovery(),
            port,
            peer_id: torrents.peer_id(),
            http: config.http.clone(),
            names: config.names.clone(),
            dht_addresses: settings.addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect(),
            dht_bootstrap: DHT_BOOTSTRAP.map(|(host, port)| (host.to_owned(), port)).to_vec(),
            dht_file: config.dht_file.clone(),
            tracker: tasks.clone(),
            stop: stop.clone(),
        });
        Ok(Self {
            torrents,
            discovery,
            settings,
            tasks,
            stop,
        })
    }

    /// Whether these settings need another session.
    fn is_outdated(&self, settings: &Settings) -> bool {
        self.settings.ports != settings.ports || self.settings.addresses != settings.addresses
    }

    async fn close(&self) {
        self.torrents.shutdown().await;
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Shared {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            shelf: Shelf::new(&config.directory),
            settings: Mutex::new(config.settings.clone()),
            config,
            open: tokio::sync::Mutex::default(),
            seen: Mutex::default(),
            slots: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// The session; begun if there is none.
    pub(crate) async fn open(&self) -> Result<Arc<Open>, StartError> {
        let mut place = self.open.lock().await;
        let settings = self.settings();
        if let Some(open) = &*place {
            if !open.is_outdated(&settings) || !open.torrents.torrents().is_empty() {
                return Ok(Arc::clone(open));
            }
            open.close().await;
        }
        let open = Arc::new(Open::start(&self.config, settings)?);
        *place = Some(Arc::clone(&open));
        *lock(&self.seen) = Some(Arc::clone(&open));
        Ok(open)
    }

    /// The session, if it has begun.
    pub(crate) fn seen(&self) -> Option<Arc<Open>> {
        lock(&self.seen).clone()
    }

    pub(crate) fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    pub(crate) fn set(&self, settings: Settings) {
        if let Some(open) = self.seen() {
            open.discovery.set(settings.discovery());
            open.torrents.set_exchange(settings.is_exchange_on);
            open.torrents.set_encryption(settings.encryption);
            open.torrents.set_connections(connections(&settings));
        }
        *lock(&self.settings) = settings;
    }

    /// Waits for the place of a torrent.
    pub(crate) async fn slot(&self, torrent: InfoHash) -> OwnedMutexGuard<Option<Swarm>> {
        let slot = Arc::clone(&lock(&self.slots).entry(torrent).or_default().swarm);
        slot.lock_owned().await
    }

    /// Closes the swarm that a finished run has left for one that seeds, if it is one that `is_meant`. Waits for one that is
    /// closing already, which still writes its record; not for a run, which closes its own.
    pub(crate) async fn release(&self, torrent: InfoHash, is_meant: impl FnOnce(&mut Swarm) -> bool) {
        let Some(slot) = lock(&self.slots).get(&torrent).cloned() else {
            return;
        };
        let closing = slot.closing.lock().await;
        if let Ok(mut place) = slot.swarm.try_lock()
            && let Some(swarm) = place.take_if(is_meant)
        {
            swarm.close().await;
        }
        drop(closing);
        drop(slot);
        self.forget_free_slots();
    }

    /// Drops places that nothing has and nothing waits for.
    pub(crate) fn forget_free_slots(&self) {
        lock(&self.slots).retain(|_, Slot { swarm, .. }| {
            Arc::strong_count(swarm) > 1 || swarm.try_lock().map_or(true, |swarm| swarm.is_some())
        });
    }

    pub(crate) async fn shutdown(&self) {
        self.stop.cancel();
        let swarms: Vec<_> = lock(&self.slots).drain().map(|(_, slot)| slot).collect();
        for slot in swarms {
            let left = slot.swarm.lock().await.take();
            if let Some(swarm) = left {
                swarm.close().await;
            }
        }
        self.tasks.close();
        self.tasks.wait().await;
        let open = self.open.lock().await.take();
        if let Some(open) = open {
            open.close().await;
        }
        // Only if it is empty.
        let _in_use = tokio::fs::remove_dir(&self.config.directory).await;
    }
}

fn connections(settings: &Settings) -> Connections {
    Connections {
        total: settings.max_connections.into(),
        per_torrent: settings.max_connections_per_torrent.into(),
        ..Connections::default()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn what_closes_is_waited_for_and_a_run_is_not() {
        let home = tempfile::tempdir().unwrap();
        let shared = Shared::new(Config::new(home.path().join("torrents")).unwrap());
        let torrent: InfoHash = "07".repeat(20).parse().unwrap();
        let run = shared.slot(torrent).await;
        assert_eq!(shared.release(torrent, |_| true).now_or_never(), Some(()));
        drop(run);
        let slot = lock(&shared.slots).entry(torrent).or_default().clone();
        let closing = slot.closing.lock().await;
        let mut released = Box::pin(shared.release(torrent, |_| true));
        assert_eq!(released.as_mut().now_or_never(), None);
        drop(closing);
        assert_eq!(released.now_or_never(), Some(()));
    }
}
