//! The loop that owns a session: it passes what happens to [`State`] and performs the effects. What torrents share (hash
//! table, local network, port mapping, lists) runs beside it and learns which torrents look for peers.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use egress::Pins;
use futures_channel::mpsc::Sender;
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use metainfo::InfoHash;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use transfer::{GivenBy, SafeUrl};

use crate::{
    client::{Client, Request, is_on_this_machine, random},
    dht, lsd, mapping,
    peer::{self, Found, MAX_BATCH, Origin},
    session::{Config, ListView, STOP_TIME, Shared, TorrentSpec, Wanted},
    settings::Settings,
    state::{Effect, Input, Run, State, TorrentId, TrackerSource, TrackerView, Trackers},
    status::Status,
    tracker::{Announce, Answer, Counters, Event, TrackerFailure},
    tracker_list,
};

/// Batches of the shared sources that wait for the loop.
const WAITING_FOUND: usize = 64;

/// What handles ask for.
#[derive(Debug)]
pub(crate) enum Message {
    Add {
        id: TorrentId,
        spec: Box<TorrentSpec>,
        found: Sender<Found>,
        counters: Arc<Mutex<Counters>>,
        /// Resolves when the subscription is dropped.
        dropped: oneshot::Receiver<()>,
    },
    SetTrackers(TorrentId, Vec<Vec<SafeUrl>>),
    SetPrivate(TorrentId),
    Completed(TorrentId),
    /// The answer says whether it is there.
    AnnounceNow(Which, Option<oneshot::Sender<bool>>),
    View(Which, oneshot::Sender<Option<Vec<TrackerView>>>),
    Remove(TorrentId, oneshot::Sender<()>),
    RefreshLists(oneshot::Sender<Vec<ListView>>),
}

/// Which subscription is meant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which {
    Id(TorrentId),
    /// The newest one to this torrent.
    Newest(InfoHash),
}

struct Torrent {
    spec: TorrentSpec,
    found: Sender<Found>,
    counters: Arc<Mutex<Counters>>,
    pins: Arc<Pins>,
    /// The same in all announces of the torrent, so that trackers know it again behind another address.
    key: u32,
    ended: Vec<oneshot::Sender<()>>,
    is_removed: bool,
}

enum Happened {
    Message(Option<Message>),
    Answered(Run, Result<Answer, TrackerFailure>),
    Dropped(TorrentId),
    StopTimeOver(TorrentId),
    Found(InfoHash, Found),
    SettingsChanged,
    Clock,
    Stop,
}

struct Driver {
    client: Client,
    state: State,
    torrents: HashMap<TorrentId, Torrent>,
    announces: JoinSet<(Run, Result<Answer, TrackerFailure>)>,
    timers: FuturesUnordered<BoxFuture<'static, Happened>>,
    settings: watch::Receiver<Settings>,
    lists: watch::Receiver<Vec<SafeUrl>>,
    wanted: watch::Sender<Arc<Vec<Wanted>>>,
    status: watch::Sender<Status>,
    refresh: mpsc::Sender<oneshot::Sender<Vec<ListView>>>,
    peer_id: [u8; 20],
    port: u16,
}

/// Runs the session until it is stopped.
pub(crate) async fn run(
    config: Config,
    mut inbox: mpsc::Receiver<Message>,
    settings: watch::Receiver<Settings>,
    status: watch::Sender<Status>,
) {
    let (wanted, wanted_seen) = watch::channel(Arc::default());
    let (found, mut findings) = mpsc::channel(WAITING_FOUND);
    let (lists_known, lists) = watch::channel(Vec::new());
    let (refresh, refreshes) = mpsc::channel(1);
    let client = Client {
        http: config.http.clone(),
        names: config.names.clone(),
    };
    let shared = Shared {
        settings: settings.clone(),
        wanted: wanted_seen,
        found,
        status: status.clone(),
        port: config.port,
        stop: CancellationToken::new(),
    };
    let end_shared = shared.stop.clone();
    let mut beside = JoinSet::new();
    beside.spawn(dht::run(dht::Config::of(&config), shared.clone()));
    beside.spawn(lsd::run(shared.clone()));
    beside.spawn(mapping::run(client.clone(), shared.clone()));
    beside.spawn(tracker_list::run(client.http.clone(), shared, lists_known, refreshes));

    let mut driver = Driver {
        client,
        state: State::new(u64::from(random()) << 32 | u64::from(random())),
        torrents: HashMap::new(),
        announces: JoinSet::new(),
        timers: FuturesUnordered::new(),
        settings,
        lists,
        wanted,
        status,
        refresh,
        peer_id: config.peer_id,
        port: config.port,
    };
    driver.set_additional();
    let mut is_stopping = false;
    while !is_stopping || !driver.torrents.is_empty() {
        let happened = driver.next(&mut inbox, &mut findings, &config.stop, is_stopping).await;
        if matches!(happened, Happened::Stop | Happened::Message(None)) {
            is_stopping = true;
            end_shared.cancel();
        }
        driver.handle(happened);
    }
    // A source that waits to report peers must not wait for a loop that has ended.
    drop(findings);
    // They end by themselves, each bounded in time; a panic of one is not repeated here.
    while beside.join_next().await.is_some() {}
}

impl Driver {
    async fn next(
        &mut self,
        inbox: &mut mpsc::Receiver<Message>,
        findings: &mut mpsc::Receiver<(InfoHash, Found)>,
        stop: &CancellationToken,
        is_stopping: bool,
    ) -> Happened {
        let wake = self.state.wake_at().map(tokio::time::Instant::from_std);
        let clock = async {
            match wake {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let changed = async {
            let (settings, lists) = (self.settings.changed(), self.lists.changed());
            // The senders live as long as the session and its handles; without handles nothing changes.
            let changed = tokio::select! {
                changed = settings => changed,
                changed = lists => changed,
            };
            if changed.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let own = async {
            tokio::select! {
                Some(joined) = self.announces.join_next() => joined.ok().map(|(run, answer)| Happened::Answered(run, answer)),
                Some(happened) = self.timers.next() => Some(happened),
                else => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled(), if !is_stopping => Happened::Stop,
            message = inbox.recv(), if !is_stopping => Happened::Message(message),
            happened = own => happened.unwrap_or(Happened::Clock),
            Some((info_hash, found)) = findings.recv() => Happened::Found(info_hash, found),
            () = changed => Happened::SettingsChanged,
            () = clock => Happened::Clock,
        }
    }

    fn handle(&mut self, happened: Happened) {
        match happened {
            Happened::Message(Some(message)) => self.message(message),
            // Without handles nothing new comes; what is there ends with its subscriptions.
            Happened::Message(None) | Happened::Stop => self.stop(),
            Happened::Answered(run, answer) => self.apply(Input::Answered(run, answer)),
            Happened::Dropped(id) => self.remove(id, None),
            Happened::StopTimeOver(id) => self.apply(Input::Forget(id)),
            Happened::Found(info_hash, found) => self.deliver_all(info_hash, &found),
            Happened::SettingsChanged => self.set_additional(),
            Happened::Clock => self.apply(Input::Clock),
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Add {
                id,
                spec,
                found,
                counters,
                dropped,
            } => {
                let trackers = Trackers {
                    tiers: spec.trackers.clone(),
                    is_private: spec.is_private,
                    is_complete: spec.counters.left == 0,
                };
                let torrent = Torrent {
                    spec: *spec,
                    found,
                    counters,
                    pins: Arc::default(),
                    key: random(),
                    ended: Vec::new(),
                    is_removed: false,
                };
                self.torrents.insert(id, torrent);
                self.timers.push(dropped.map(move |_| Happened::Dropped(id)).boxed());
                self.publish_wanted();
                self.apply(Input::Add(id, trackers));
            }
            Message::SetTrackers(id, tiers) => self.apply(Input::SetTrackers(id, tiers)),
            Message::SetPrivate(id) => {
                if let Some(torrent) = self.torrents.get_mut(&id) {
                    torrent.spec.is_private = true;
                    self.publish_wanted();
                    self.apply(Input::SetPrivate(id));
                }
            }
            Message::Completed(id) => self.apply(Input::Completed(id)),
            Message::AnnounceNow(which, reply) => {
                let id = self.find(which);
                if let Some(id) = id {
                    self.apply(Input::AnnounceNow(id));
                }
                reply.map(|reply| reply.send(id.is_some()));
            }
            Message::View(which, reply) => {
                // A caller that is gone needs no answer.
                let _gone = reply.send(self.find(which).map(|id| self.state.view(id)));
            }
            Message::Remove(id, ended) => self.remove(id, Some(ended)),
            Message::RefreshLists(reply) => {
                // One refresh at a time; a second caller sees none.
                let _busy = self.refresh.try_send(reply);
            }
        }
    }

    fn find(&self, which: Which) -> Option<TorrentId> {
        match which {
            Which::Id(id) => Some(id),
            Which::Newest(info_hash) => {
                let torrents = self.torrents.iter();
                let of_hash =
                    torrents.filter(|(_, torrent)| torrent.spec.info_hash == info_hash && !torrent.is_removed);
                of_hash.map(|(id, _)| *id).max()
            }
        }
    }

    fn stop(&mut self) {
        let ids: Vec<_> = self.torrents.keys().copied().collect();
        for id in ids {
            self.remove(id, None);
        }
    }

    fn remove(&mut self, id: TorrentId, ended: Option<oneshot::Sender<()>>) {
        let Some(torrent) = self.torrents.get_mut(&id) else {
            return;
        };
        torrent.ended.extend(ended);
        if torrent.is_removed {
            return;
        }
        torrent.is_removed = true;
        let over = tokio::time::sleep(STOP_TIME).map(move |()| Happened::StopTimeOver(id));
        self.timers.push(over.boxed());
        self.publish_wanted();
        self.apply(Input::Remove(id));
    }

    fn apply(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.state.apply(Instant::now(), input, &mut effects);
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Announce {
                run,
                torrent,
                url,
                source,
                event,
                tracker_id,
            } => self.announce(run, torrent, url, source, (event, tracker_id)),
            Effect::Peers(id, source, url, peers) => {
                if let Some(torrent) = self.torrents.get_mut(&id) {
                    let may_be_here = is_on_this_machine(url.as_url(), &torrent.given_by(source));
                    deliver(torrent, Origin::Tracker, peers, may_be_here);
                }
            }
            Effect::Ended(id) => {
                if let Some(torrent) = self.torrents.remove(&id) {
                    for ended in torrent.ended {
                        // A caller that is gone needs no answer.
                        let _gone = ended.send(());
                    }
                }
            }
        }
    }

    fn announce(
        &mut self,
        run: Run,
        id: TorrentId,
        url: SafeUrl,
        source: TrackerSource,
        (event, tracker_id): (Event, Option<Box<[u8]>>),
    ) {
        let Some(torrent) = self.torrents.get(&id) else {
            return;
        };
        let settings = self.settings.borrow();
        let counters = *torrent.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let event = if event == Event::None && counters.is_partial_seed {
            Event::Paused
        } else {
            event
        };
        let port = self.status.borrow().mapping.external_port.unwrap_or(self.port);
        let request = Request {
            announce: Announce {
                info_hash: torrent.spec.info_hash,
                peer_id: self.peer_id,
                key: torrent.key,
                port,
                counters,
                event,
                address: settings.announced_address,
                tracker_id,
            },
            given_by: torrent.given_by(source),
            url,
            proxy: torrent.spec.proxy.clone().or_else(|| settings.proxy.clone()),
            pins: Arc::clone(&torrent.pins),
        };
        let client = self.client.clone();
        self.announces.spawn(async move {
            let asking = std::panic::AssertUnwindSafe(client.announce(&request)).catch_unwind();
            let failed = |_| Err(TrackerFailure::new("asking the tracker failed unexpectedly"));
            (run, asking.await.unwrap_or_else(failed))
        });
    }

    fn deliver_all(&mut self, info_hash: InfoHash, found: &Found) {
        for torrent in self.torrents.values_mut() {
            let is_wanted = torrent.spec.info_hash == info_hash && !torrent.is_removed && torrent.uses_datagrams();
            if is_wanted {
                // The source has left out what it does not allow.
                deliver(torrent, found.origin, found.peers.clone(), true);
            }
        }
    }

    fn publish_wanted(&self) {
        let torrents = self.torrents.values();
        let wanted = torrents.filter(|torrent| !torrent.is_removed && torrent.uses_datagrams());
        let mut wanted: Vec<_> = wanted
            .map(|torrent| Wanted {
                info_hash: torrent.spec.info_hash,
                nodes: torrent.spec.nodes.clone(),
            })
            .collect();
        wanted.sort_by_key(|wanted| wanted.info_hash);
        wanted.dedup_by_key(|wanted| wanted.info_hash);
        self.wanted.send_replace(Arc::new(wanted));
    }

    fn set_additional(&mut self) {
        let custom = self.settings.borrow_and_update().additional_trackers.clone();
        let listed = self.lists.borrow_and_update().clone();
        let mut additional: Vec<_> = custom.into_iter().map(|url| (url, TrackerSource::Custom)).collect();
        for url in listed {
            if !additional.iter().any(|(known, _)| *known == url) {
                additional.push((url, TrackerSource::List));
            }
        }
        additional.truncate(crate::settings::MAX_ADDITIONAL);
        self.apply(Input::SetAdditional(additional));
    }
}

impl Torrent {
    /// Whether the hash table and the local network are asked.
    fn uses_datagrams(&self) -> bool {
        !self.spec.is_private && self.spec.proxy.is_none()
    }

    /// Who decided where a tracker is.
    fn given_by(&self, source: TrackerSource) -> GivenBy {
        match source {
            TrackerSource::Torrent => self.spec.given_by.clone(),
            TrackerSource::Custom => GivenBy::User,
            TrackerSource::List => GivenBy::Other { user_host: None },
        }
    }
}

/// Passes peers on, if the torrent has room for them.
fn deliver(torrent: &mut Torrent, origin: Origin, mut peers: Vec<SocketAddr>, may_be_this_machine: bool) {
    peers.retain(|address| peer::is_usable(*address, may_be_this_machine));
    peers.truncate(MAX_BATCH);
    if !peers.is_empty() {
        // A torrent that has eight batches to try needs no ninth.
        let _full = torrent.found.try_send(Found { origin, peers });
    }
}
