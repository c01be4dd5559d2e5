//! When which tracker of which torrent is asked, as a pure state machine. It does no I/O: the driver passes the time with
//! each input, performs the effects, and calls [`State::wake_at`] to know when to pass the time again.
//!
//! Each tier of a torrent (BEP 12) announces by itself: its first tracker that answers, which then stays first. Tiers of
//! magnet links have one tracker each, so that all of them are asked; the standard's one tracker of all would give fewer
//! peers.
//!
//! Invariants, each with a property test:
//! - At most [`MAX_RUNNING`] announces are alive, [`MAX_PER_HOST`] to one host, and one per tier. Announces that do not
//!   end a torrent begin at least [`GAP`] apart: five hundred torrents that start together do not arrive together.
//! - A tracker is not asked again before its interval, except for an event, and never before its minimum.
//! - The first announce that a tracker takes is `started`; `completed` is sent at most once to a tracker, and never to one
//!   that learned of the torrent when it was complete; `stopped` is the last.
//! - A tracker that took a `started` is sent a `stopped` when the torrent is removed, or has other trackers. A torrent that
//!   is removed ends then.

mod tier;
mod view;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    net::SocketAddr,
    time::{Duration, Instant},
};

use metainfo::MAX_TRACKERS;
use transfer::SafeUrl;

use crate::{
    peer,
    tracker::{Answer, Event, TrackerFailure},
};
use tier::{Phase, Tier};

pub use view::{TrackerSource, TrackerStatus, TrackerView};

/// Announces at a time.
pub(crate) const MAX_RUNNING: usize = 32;

/// Announces to one host at a time.
pub(crate) const MAX_PER_HOST: usize = 4;

/// Between the beginnings of announces: five hundred torrents take ten seconds.
pub(crate) const GAP: Duration = Duration::from_millis(20);

/// Identifies a torrent as long as it is there; one that is added again has another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TorrentId(pub(crate) u64);

/// Identifies an announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Run(u64);

/// The trackers that a torrent names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trackers {
    pub(crate) tiers: Vec<Vec<SafeUrl>>,
    /// Private torrents have no others than their own (BEP 27).
    pub(crate) is_private: bool,
    /// No tracker counts a download of it.
    pub(crate) is_complete: bool,
}

/// What happens.
#[derive(Debug)]
pub(crate) enum Input {
    Add(TorrentId, Trackers),
    SetTrackers(TorrentId, Vec<Vec<SafeUrl>>),
    SetPrivate(TorrentId),
    /// The trackers that all torrents that are not private have besides their own.
    SetAdditional(Vec<(SafeUrl, TrackerSource)>),
    Completed(TorrentId),
    /// The user wants peers now.
    AnnounceNow(TorrentId),
    Remove(TorrentId),
    /// Time is up: what is left of a torrent that was removed is forgotten.
    Forget(TorrentId),
    Answered(Run, Result<Answer, TrackerFailure>),
    Clock,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Announce {
        run: Run,
        torrent: TorrentId,
        url: SafeUrl,
        source: TrackerSource,
        event: Event,
        tracker_id: Option<Box<[u8]>>,
    },
    Peers(TorrentId, TrackerSource, SafeUrl, Vec<SocketAddr>),
    /// Nothing is left to be done for a removed torrent.
    Ended(TorrentId),
}

/// All torrents and their trackers.
#[derive(Debug)]
pub(crate) struct State {
    torrents: BTreeMap<TorrentId, Torrent>,
    additional: Vec<(SafeUrl, TrackerSource)>,
    /// Torrents with tiers that wait for a place.
    queue: VecDeque<TorrentId>,
    running: HashMap<Run, Running>,
    hosts: HashMap<String, usize>,
    wakes: BTreeSet<(Instant, TorrentId)>,
    /// When the next announce may begin, if that was later than the last input.
    next_start: Option<Instant>,
    next_run: u64,
    chance: Chance,
}

#[derive(Debug)]
struct Running {
    torrent: TorrentId,
    url: SafeUrl,
    source: TrackerSource,
    event: Event,
}

#[derive(Debug)]
struct Torrent {
    own: Trackers,
    tiers: Vec<Tier>,
    is_removed: bool,
    is_queued: bool,
    wake: Option<Instant>,
}

impl Torrent {
    /// The tiers by who named them, those of the torrent first; a URL counts once.
    fn wanted(&self, additional: &[(SafeUrl, TrackerSource)]) -> Vec<Vec<(SafeUrl, TrackerSource)>> {
        let mut wanted: Vec<Vec<_>> = Vec::new();
        let mut room = MAX_TRACKERS;
        for tier in &self.own.tiers {
            let tier = &tier[..tier.len().min(room)];
            room -= tier.len();
            wanted.push(tier.iter().map(|url| (url.clone(), TrackerSource::Torrent)).collect());
        }
        if !self.own.is_private {
            let is_own = |url: &SafeUrl| self.own.tiers.iter().flatten().any(|own| own == url);
            let others = additional.iter().filter(|(url, _)| !is_own(url));
            wanted.extend(others.map(|other| vec![other.clone()]));
        }
        wanted.retain(|tier| !tier.is_empty());
        wanted
    }

    fn next_wake(&self) -> Option<Instant> {
        self.tiers.iter().filter_map(Tier::wake_at).min()
    }
}

impl State {
    /// A state without torrents. `seed` decides about what is left to chance.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            torrents: BTreeMap::new(),
            additional: Vec::new(),
            queue: VecDeque::new(),
            running: HashMap::new(),
            hosts: HashMap::new(),
            wakes: BTreeSet::new(),
            next_start: None,
            next_run: 0,
            chance: Chance(seed),
        }
    }

    /// Handles `input` at `now` and appends the effects to perform.
    pub(crate) fn apply(&mut self, now: Instant, input: Input, effects: &mut Vec<Effect>) {
        match input {
            Input::Add(id, trackers) => self.add(now, id, trackers),
            Input::SetTrackers(id, tiers) => {
                if let Some(torrent) = self.torrents.get_mut(&id) {
                    torrent.own.tiers = tiers;
                    self.rebuild(now, id);
                }
            }
            Input::SetPrivate(id) => {
                if let Some(torrent) = self.torrents.get_mut(&id) {
                    torrent.own.is_private = true;
                    self.rebuild(now, id);
                }
            }
            Input::SetAdditional(additional) => {
                self.additional = additional;
                let ids: Vec<_> = self.torrents.keys().copied().collect();
                for id in ids {
                    self.rebuild(now, id);
                }
            }
            Input::Completed(id) => {
                if let Some(torrent) = self.torrents.get_mut(&id).filter(|torrent| !torrent.own.is_complete) {
                    torrent.own.is_complete = true;
                    torrent.tiers.iter_mut().for_each(|tier| tier.complete(now));
                }
                self.schedule(id);
            }
            Input::AnnounceNow(id) => {
                if let Some(torrent) = self.torrents.get_mut(&id).filter(|torrent| !torrent.is_removed) {
                    torrent.tiers.iter_mut().for_each(|tier| tier.announce_now(now));
                }
                self.schedule(id);
            }
            Input::Remove(id) => self.remove(now, id, effects),
            Input::Forget(id) => self.forget(id, effects),
            Input::Answered(run, answer) => self.answered(now, run, answer, effects),
            Input::Clock => {}
        }
        self.queue_due(now);
        self.start(now, effects);
        // What still waits then, waits for another announce to its host to end.
        self.next_start = self.next_start.filter(|next| *next > now);
    }

    /// When the time must be passed again.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let due = self.wakes.first().map(|(at, _)| *at);
        let start = self
            .next_start
            .filter(|_| !self.queue.is_empty() && self.running.len() < MAX_RUNNING);
        [due, start].into_iter().flatten().min()
    }

    /// The trackers of a torrent.
    pub(crate) fn view(&self, id: TorrentId) -> Vec<TrackerView> {
        let tiers = self
            .torrents
            .get(&id)
            .map(|torrent| &*torrent.tiers)
            .unwrap_or_default();
        let tiers = tiers.iter().filter(|tier| !tier.is_stopping()).enumerate();
        tiers.flat_map(|(index, tier)| tier.view(index)).collect()
    }

    fn add(&mut self, now: Instant, id: TorrentId, trackers: Trackers) {
        let torrent = Torrent {
            own: trackers,
            tiers: Vec::new(),
            is_removed: false,
            is_queued: false,
            wake: None,
        };
        self.torrents.insert(id, torrent);
        self.rebuild(now, id);
    }

    /// Makes the tiers those that are wanted now; trackers that were there keep what they said.
    fn rebuild(&mut self, now: Instant, id: TorrentId) {
        let Some(torrent) = self.torrents.get_mut(&id).filter(|torrent| !torrent.is_removed) else {
            return;
        };
        let wanted = torrent.wanted(&self.additional);
        let mut known = std::mem::take(&mut torrent.tiers);
        torrent.tiers = wanted
            .into_iter()
            .map(|urls| Tier::of(urls, &mut known, torrent.own.is_complete, now))
            .collect();
        // In a tier the order is left to chance, so that its trackers share the load (BEP 12).
        for tier in &mut torrent.tiers {
            tier.shuffle(&mut self.chance);
        }
        for mut left in known {
            left.leave(now);
            if !left.is_off() {
                torrent.tiers.push(left);
            }
        }
        self.schedule(id);
    }

    fn remove(&mut self, now: Instant, id: TorrentId, effects: &mut Vec<Effect>) {
        let Some(torrent) = self.torrents.get_mut(&id) else {
            return;
        };
        torrent.is_removed = true;
        torrent.tiers.iter_mut().for_each(|tier| tier.stop(now));
        self.schedule(id);
        self.end(id, effects);
    }

    /// Ends a removed torrent of which no tier has anything left to do.
    fn end(&mut self, id: TorrentId, effects: &mut Vec<Effect>) {
        let Some(torrent) = self.torrents.get(&id) else {
            return;
        };
        if torrent.is_removed && torrent.tiers.iter().all(Tier::is_off) {
            self.forget(id, effects);
        }
    }

    fn forget(&mut self, id: TorrentId, effects: &mut Vec<Effect>) {
        if let Some(torrent) = self.torrents.remove(&id) {
            self.wakes.retain(|(_, other)| *other != id);
            self.queue.retain(|other| *other != id);
            drop(torrent);
            effects.push(Effect::Ended(id));
        }
    }

    fn answered(&mut self, now: Instant, run: Run, answer: Result<Answer, TrackerFailure>, effects: &mut Vec<Effect>) {
        let Some(running) = self.running.remove(&run) else {
            return;
        };
        if let Some(count) = self.hosts.get_mut(&host(&running.url)) {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(&host(&running.url));
            }
        }
        let id = running.torrent;
        let Some(torrent) = self.torrents.get_mut(&id) else {
            return;
        };
        let is_removed = torrent.is_removed;
        let Some(tier) = torrent.tiers.iter_mut().find(|tier| tier.is_asking(&running.url)) else {
            return;
        };
        let asked = (run, &running.url, running.event);
        match answer {
            Ok(answer) => {
                let peers: Vec<_> = answer.peers.iter().copied().map(peer::canonical).collect();
                tier.succeeded(now, asked, answer, &mut self.chance);
                if !peers.is_empty() && !is_removed {
                    effects.push(Effect::Peers(id, running.source, running.url, peers));
                }
            }
            Err(failure) => tier.failed(now, asked, failure, &mut self.chance),
        }
        if is_removed || tier.is_stopping() {
            tier.stop(now);
        }
        torrent.tiers.retain(|tier| !(tier.is_stopping() && tier.is_off()));
        self.schedule(id);
        self.end(id, effects);
    }

    /// Notes when the torrent is due next.
    fn schedule(&mut self, id: TorrentId) {
        let Some(torrent) = self.torrents.get_mut(&id) else {
            return;
        };
        let wake = torrent.next_wake();
        if wake != torrent.wake {
            if let Some(old) = torrent.wake {
                self.wakes.remove(&(old, id));
            }
            if let Some(new) = wake {
                self.wakes.insert((new, id));
            }
            torrent.wake = wake;
        }
    }

    /// Queues the tiers that are due.
    fn queue_due(&mut self, now: Instant) {
        while let Some((at, id)) = self.wakes.first().copied()
            && at <= now
        {
            let torrent = self.torrents.get_mut(&id).expect("only torrents that are there wake");
            torrent.tiers.iter_mut().for_each(|tier| tier.queue(now));
            if !torrent.is_queued {
                torrent.is_queued = true;
                // What ends a torrent is short, and somebody waits for it.
                if torrent.is_removed {
                    self.queue.push_front(id);
                } else {
                    self.queue.push_back(id);
                }
            }
            self.schedule(id);
        }
    }

    /// Begins announces while there is room.
    fn start(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let mut passed = 0;
        while self.running.len() < MAX_RUNNING && passed < self.queue.len() {
            let id = self.queue[passed];
            let Some(torrent) = self.torrents.get_mut(&id) else {
                self.queue.remove(passed);
                continue;
            };
            if !torrent.is_removed && self.next_start.is_some_and(|next| now < next) {
                passed += 1;
                continue;
            }
            let hosts = &self.hosts;
            let has_room = |url: &SafeUrl| hosts.get(&host(url)).is_none_or(|count| *count < MAX_PER_HOST);
            let mut tiers = torrent.tiers.iter_mut();
            let Some(tier) = tiers.find(|tier| tier.is_ready(now, has_room)) else {
                torrent.is_queued = torrent.tiers.iter().any(|tier| tier.phase == Phase::Queued);
                if torrent.is_queued {
                    passed += 1;
                } else {
                    self.queue.remove(passed);
                }
                continue;
            };
            let run = Run(self.next_run);
            self.next_run += 1;
            let begun = tier.start(now, run);
            *self.hosts.entry(host(&begun.url)).or_default() += 1;
            self.running.insert(
                run,
                Running {
                    torrent: id,
                    url: begun.url.clone(),
                    source: begun.source,
                    event: begun.event,
                },
            );
            if !torrent.is_removed {
                self.next_start = Some(now + GAP);
            }
            effects.push(Effect::Announce {
                run,
                torrent: id,
                url: begun.url,
                source: begun.source,
                event: begun.event,
                tracker_id: begun.tracker_id,
            });
        }
    }
}

/// The host of a tracker, of which only a few announces are alive at a time.
fn host(url: &SafeUrl) -> String {
    url.as_url().host_str().unwrap_or("").to_ascii_lowercase()
}

/// Small random numbers (xorshift), so that what is left to chance can be repeated in tests.
#[derive(Debug)]
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // It would stay 0.
        self.0 = self.0.max(1);
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// `wait`, and up to a tenth more: what was asked at the same time is not asked again at the same time.
    pub(crate) fn a_little_more(&mut self, wait: Duration) -> Duration {
        let tenth = u64::try_from(wait.as_millis() / 10).unwrap_or(u64::MAX);
        wait + Duration::from_millis(self.below(tenth.saturating_add(1)))
    }
}
