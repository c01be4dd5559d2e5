//! What the torrents of a session share.

use std::{
    collections::HashMap,
    net::IpAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize},
    },
};

use admission::{ConnectionSlots, throttle::Source};
use egress::Names;
use metainfo::InfoHash;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::Lanes;

use super::{buffers::Budget, permits::Permits};
use crate::{
    config::{AddressFilter, Encryption},
    handle::Torrent,
    storage::handles::Handles,
    view::{Event, TorrentView},
    webseed::WebseedClient,
};

/// What torrents share.
#[derive(Debug)]
pub(super) struct Environment {
    pub(super) peer_id: [u8; 20],
    pub(super) port: Option<u16>,
    pub(super) state_directory: PathBuf,
    pub(super) lanes: Lanes,
    pub(super) filter: Option<Arc<dyn AddressFilter>>,
    pub(super) webseeds: Option<Arc<dyn WebseedClient>>,
    pub(super) names: Names,
    pub(super) handles: Arc<Handles>,
    pub(super) budget: Budget,
    /// Threads that open, sync and rename files of torrents.
    pub(super) file_permits: Semaphore,
    /// Torrents whose files are checked.
    pub(super) check_permits: Arc<Semaphore>,
    /// Threads that hash and write.
    pub(super) disk_permits: Arc<Semaphore>,
    /// Connections, and those that are being made.
    pub(super) connections: Permits,
    pub(super) half_open: Permits,
    /// The most connections of one torrent.
    pub(super) per_torrent: AtomicUsize,
    /// Whether connections are obfuscated.
    pub(super) encryption: Mutex<Encryption>,
    /// Peers tell each other addresses.
    pub(super) is_exchange_on: AtomicBool,
    pub(super) events: broadcast::Sender<Event>,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
    pub(super) torrents: Mutex<HashMap<InfoHash, Torrent>>,
    pub(super) slots: Arc<ConnectionSlots<Source>>,
}

impl Environment {
    /// All torrents.
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<InfoHash, Torrent>> {
        self.torrents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does work that blocks, on a thread of which there are few however many torrents there are.
    pub(super) async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let _permit = self.file_permits.acquire().await;
        let working = tokio::task::spawn_blocking(work);
        working.await.expect("work with files does not panic")
    }

    /// Takes a torrent out, unless another one took its place.
    pub(super) fn take_out(&self, info_hash: InfoHash, view: &watch::Receiver<Arc<TorrentView>>) {
        let mut torrents = self.lock();
        if torrents
            .get(&info_hash)
            .is_some_and(|there| there.view.same_channel(view))
        {
            torrents.remove(&info_hash);
        }
    }

    pub(super) fn encryption(&self) -> Encryption {
        *self.encryption.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether peers may have this address.
    pub(super) fn allows(&self, address: IpAddr) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| filter.allows(address.to_canonical()))
    }
}
