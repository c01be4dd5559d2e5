//! The public handles: a session, and a torrent's subscription to peers. They hold channels only.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use futures_channel::mpsc::{Receiver, channel};
use futures_util::StreamExt as _;
use metainfo::InfoHash;
use tokio::sync::{mpsc, oneshot, watch};
use transfer::SafeUrl;

use crate::{
    driver::{self, Message, Which},
    peer::Found,
    session::{Config, ListView, TorrentSpec},
    settings::Settings,
    state::{TorrentId, TrackerView},
    status::Status,
    tracker::Counters,
};

/// Batches that wait for a torrent; what finds no room is lost, because its source will name it again.
const WAITING_BATCHES: usize = 8;

/// Commands that wait for the driver.
const WAITING_COMMANDS: usize = 64;

/// A session. Clones share it; it ends when it is stopped, or when all of them and all subscriptions are dropped.
#[derive(Debug, Clone)]
pub struct Discovery {
    messages: mpsc::Sender<Message>,
    next_id: Arc<AtomicU64>,
    settings: watch::Sender<Settings>,
    status: watch::Receiver<Status>,
}

impl Discovery {
    /// Starts the session. What cannot be started (a port that is taken, a local network without multicast) is off and
    /// named in [`status`](Self::status).
    pub fn start(config: Config) -> Self {
        let (messages, inbox) = mpsc::channel(WAITING_COMMANDS);
        let (settings, settings_seen) = watch::channel(config.settings.clone());
        let (status_seen, status) = watch::channel(Status::default());
        let tracker = config.tracker.clone();
        tracker.spawn(driver::run(config, inbox, settings_seen, status_seen));
        Self {
            messages,
            next_id: Arc::default(),
            settings,
            status,
        }
    }

    /// Looks for peers of a torrent until the subscription is stopped or dropped. The same torrent twice has two
    /// subscriptions.
    pub async fn add(&self, spec: TorrentSpec) -> Subscription {
        let id = TorrentId(self.next_id.fetch_add(1, Ordering::Relaxed));
        // A queue of tokio keeps room for 32 batches from its start, which is most of what an idle torrent takes here.
        let (found, batches) = channel(WAITING_BATCHES);
        let counters = Arc::new(Mutex::new(spec.counters));
        let (alive, dropped) = oneshot::channel();
        let message = Message::Add {
            id,
            spec: Box::new(spec),
            found,
            counters: Arc::clone(&counters),
            dropped,
        };
        // A session that has stopped finds nothing.
        let _stopped = self.messages.send(message).await;
        Subscription {
            id,
            messages: self.messages.clone(),
            batches,
            counters,
            _session: self.settings.clone(),
            _alive: alive,
        }
    }

    /// Replaces the settings.
    pub fn set(&self, settings: Settings) {
        self.settings.send_replace(settings);
    }

    /// The state of the sources that all torrents share.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Asks the trackers of a torrent now, as [`Subscription::announce_now`]. Returns whether there is a subscription to it.
    pub async fn announce_now(&self, torrent: InfoHash) -> bool {
        let (reply, answer) = oneshot::channel();
        let _stopped = self
            .messages
            .send(Message::AnnounceNow(Which::Newest(torrent), Some(reply)))
            .await;
        answer.await.unwrap_or_default()
    }

    /// The trackers of a torrent, and what they said; `None` without a subscription to it.
    pub async fn trackers(&self, torrent: InfoHash) -> Option<Vec<TrackerView>> {
        let (reply, answer) = oneshot::channel();
        let _stopped = self.messages.send(Message::View(Which::Newest(torrent), reply)).await;
        answer.await.ok().flatten()
    }

    /// Reads the lists of trackers now, and returns what came of each.
    pub async fn refresh_lists(&self) -> Vec<ListView> {
        let (reply, answer) = oneshot::channel();
        let _stopped = self.messages.send(Message::RefreshLists(reply)).await;
        answer.await.unwrap_or_default()
    }
}

/// A torrent's subscription to peers. Dropping it has its trackers told in the background.
#[derive(Debug)]
pub struct Subscription {
    id: TorrentId,
    messages: mpsc::Sender<Message>,
    batches: Receiver<Found>,
    counters: Arc<Mutex<Counters>>,
    /// The session and its sources run as long as a torrent does.
    _session: watch::Sender<Settings>,
    _alive: oneshot::Sender<()>,
}

impl Subscription {
    /// The next peers, at most [`crate::MAX_BATCH`]; `None` when the session has stopped. Cancel-safe.
    pub async fn next(&mut self) -> Option<Found> {
        self.batches.next().await
    }

    /// What the torrent has moved by now; read when a tracker is asked. Cheap.
    pub fn report(&self, counters: Counters) {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = counters;
    }

    /// The last byte has just come.
    pub async fn completed(&self) {
        self.send(Message::Completed(self.id)).await;
    }

    /// Asks for peers now, as far as the trackers' minimum allows.
    pub async fn announce_now(&self) {
        self.send(Message::AnnounceNow(Which::Id(self.id), None)).await;
    }

    /// Replaces the torrent's own trackers.
    pub async fn set_trackers(&self, tiers: Vec<Vec<SafeUrl>>) {
        self.send(Message::SetTrackers(self.id, tiers)).await;
    }

    /// The info dictionary says that the torrent is private: from now on only its own trackers are asked.
    pub async fn set_private(&self) {
        self.send(Message::SetPrivate(self.id)).await;
    }

    /// The trackers and what they said.
    pub async fn trackers(&self) -> Vec<TrackerView> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::View(Which::Id(self.id), reply)).await;
        answer.await.ok().flatten().unwrap_or_default()
    }

    /// Ends the subscription, and waits at most [`crate::STOP_TIME`] until the trackers know.
    pub async fn stop(self) {
        let (reply, ended) = oneshot::channel();
        self.send(Message::Remove(self.id, reply)).await;
        let _session_ended = ended.await;
    }

    async fn send(&self, message: Message) {
        // A session that has stopped has no torrents to act on.
        let _stopped = self.messages.send(message).await;
    }
}
