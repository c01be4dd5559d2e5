//! The trackers of one tier, of which one is asked at a time.

use std::time::{Duration, Instant};

use transfer::SafeUrl;

use super::{
    Chance, Run,
    view::{TrackerSource, TrackerStatus, TrackerView},
};
use crate::tracker::{Answer, Event, Retry, TrackerFailure};

/// Until the next announce, if the tracker names no interval.
const DEFAULT_INTERVAL: Duration = Duration::from_mins(30);

/// No tracker is asked more often, whatever it says.
const MIN_INTERVAL: Duration = Duration::from_mins(1);

/// No tracker is forgotten for longer, because nobody would see that the torrent is alive.
const MAX_INTERVAL: Duration = Duration::from_hours(2);

/// Between announces that a user asks for, if the tracker names no minimum.
const DEFAULT_MIN_INTERVAL: Duration = Duration::from_secs(30);

/// After as many failures in a row; the last is for all further ones.
const BACK_OFF: [Duration; 6] = [
    Duration::from_secs(15),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(15),
    Duration::from_mins(30),
    Duration::from_hours(1),
];

#[derive(Debug)]
pub(super) struct Tier {
    /// The one that answered last is first.
    trackers: Vec<Tracker>,
    pub(super) phase: Phase,
    is_complete: bool,
    is_stopping: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Until then; no tracker is asked before its own time, either.
    Waiting(Instant),
    /// Due.
    Queued,
    Running(Run),
    /// Nothing is left to ask.
    Off,
}

#[derive(Debug)]
struct Tracker {
    url: SafeUrl,
    source: TrackerSource,
    status: TrackerStatus,
    has_started: bool,
    /// It knows that the torrent is complete.
    has_completed: bool,
    failures: usize,
    /// It is not asked before; `None` is never.
    not_before: Option<Instant>,
    /// It is not asked before even if a user wants it.
    earliest: Instant,
    /// What it gave to be returned to it.
    returned_id: Option<Box<[u8]>>,
    peers: Option<usize>,
    seeds: Option<u32>,
    leechers: Option<u32>,
    downloads: Option<u32>,
    message: Option<String>,
}

impl Tracker {
    fn new(url: SafeUrl, source: TrackerSource, now: Instant) -> Self {
        Self {
            url,
            source,
            status: TrackerStatus::NotContacted,
            has_started: false,
            has_completed: false,
            failures: 0,
            not_before: Some(now),
            earliest: now,
            returned_id: None,
            peers: None,
            seeds: None,
            leechers: None,
            downloads: None,
            message: None,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next().is_some_and(|at| at <= now)
    }

    /// When it may be asked; `None` is never, or not before it has answered.
    fn next(&self) -> Option<Instant> {
        self.not_before.filter(|_| self.status != TrackerStatus::Announcing)
    }
}

/// An announce that begins.
pub(super) struct Begun {
    pub(super) url: SafeUrl,
    pub(super) source: TrackerSource,
    pub(super) event: Event,
    pub(super) tracker_id: Option<Box<[u8]>>,
}

impl Tier {
    /// A tier of these trackers; those among `known` keep what they said, and a tier with a running announce goes on with
    /// it.
    pub(super) fn of(urls: Vec<(SafeUrl, TrackerSource)>, known: &mut [Self], is_complete: bool, now: Instant) -> Self {
        let mut phase = Phase::Waiting(now);
        let mut trackers = Vec::with_capacity(urls.len());
        for (url, source) in urls {
            let mut found = None;
            for tier in &mut *known {
                if let Some(at) = tier.trackers.iter().position(|tracker| tracker.url == url) {
                    let tracker = tier.trackers.remove(at);
                    phase = match (phase, tracker.status, tracker.not_before) {
                        (Phase::Waiting(_) | Phase::Queued | Phase::Off, TrackerStatus::Announcing, _) => tier.phase,
                        (Phase::Waiting(_), TrackerStatus::Working, Some(at)) => Phase::Waiting(at),
                        _ => phase,
                    };
                    found = Some(tracker);
                    break;
                }
            }
            trackers.push(match found {
                Some(tracker) => Tracker { source, ..tracker },
                None => Tracker::new(url, source, now),
            });
        }
        Self {
            trackers,
            phase,
            is_complete,
            is_stopping: false,
        }
    }

    /// Orders the trackers by chance, those that answered before the others.
    pub(super) fn shuffle(&mut self, chance: &mut Chance) {
        for at in (1..self.trackers.len()).rev() {
            let other = usize::try_from(chance.below(at as u64 + 1)).expect("it is at most `at`");
            self.trackers.swap(at, other);
        }
        self.trackers.sort_by_key(|tracker| !tracker.has_started);
    }

    /// When a tracker may be asked next, for a tier that waits.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let Phase::Waiting(at) = self.phase else {
            return None;
        };
        let first = self.trackers.iter().filter_map(Tracker::next).min()?;
        Some(at.max(first))
    }

    pub(super) fn is_off(&self) -> bool {
        self.phase == Phase::Off
    }

    /// The torrent has become complete: the tracker that counts it learns so now.
    pub(super) fn complete(&mut self, now: Instant) {
        self.is_complete = true;
        let is_counted = |tracker: &Tracker| tracker.has_started && !tracker.has_completed;
        if matches!(self.phase, Phase::Waiting(_)) && self.trackers.first().is_some_and(is_counted) {
            self.bring_forward(now);
        }
    }

    /// Asks as soon as the tracker's minimum allows, also one that said never.
    pub(super) fn announce_now(&mut self, now: Instant) {
        for tracker in &mut self.trackers {
            if tracker.status == TrackerStatus::Disabled {
                tracker.status = TrackerStatus::Failed;
            }
            tracker.not_before = Some(tracker.earliest.max(now));
        }
        if matches!(self.phase, Phase::Waiting(_) | Phase::Off) {
            self.phase = Phase::Waiting(now);
        }
    }

    fn bring_forward(&mut self, now: Instant) {
        self.phase = Phase::Waiting(now);
        if let Some(first) = self.trackers.first_mut() {
            first.not_before = Some(now);
        }
    }

    /// The torrent ends: the tracker that counts it is told, the others are not asked.
    pub(super) fn stop(&mut self, now: Instant) {
        self.is_stopping = true;
        if matches!(self.phase, Phase::Running(_)) {
            return;
        }
        let is_asked = |tracker: &Tracker| tracker.status == TrackerStatus::Announcing;
        self.trackers.retain(|tracker| tracker.has_started || is_asked(tracker));
        if self.trackers.is_empty() {
            self.phase = Phase::Off;
        } else {
            self.bring_forward(now);
        }
    }

    /// The torrent has other trackers now; these are what is left of a tier.
    pub(super) fn leave(&mut self, now: Instant) {
        let is_asked = |tracker: &Tracker| tracker.status == TrackerStatus::Announcing;
        if !self.trackers.iter().any(is_asked) {
            self.phase = Phase::Waiting(now);
        }
        self.stop(now);
    }

    /// Whether its trackers are only told that the torrent ends.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Makes a waiting tier queued, if a tracker is due.
    pub(super) fn queue(&mut self, now: Instant) {
        if self.wake_at().is_some_and(|at| at <= now) {
            self.phase = Phase::Queued;
        }
    }

    /// Whether it is queued, and its next tracker has room for an announce.
    pub(super) fn is_ready(&self, now: Instant, has_room: impl Fn(&SafeUrl) -> bool) -> bool {
        let next = self.trackers.iter().find(|tracker| tracker.is_due(now));
        self.phase == Phase::Queued && next.is_some_and(|tracker| has_room(&tracker.url))
    }

    /// Begins the announce to the next tracker that is due.
    pub(super) fn start(&mut self, now: Instant, run: Run) -> Begun {
        let mut trackers = self.trackers.iter_mut();
        let tracker = trackers
            .find(|tracker| tracker.is_due(now))
            .expect("a ready tier has a tracker that is due");
        self.phase = Phase::Running(run);
        tracker.status = TrackerStatus::Announcing;
        let event = if self.is_stopping {
            Event::Stopped
        } else if !tracker.has_started {
            Event::Started
        } else if self.is_complete && !tracker.has_completed {
            Event::Completed
        } else {
            Event::None
        };
        Begun {
            url: tracker.url.clone(),
            source: tracker.source,
            event,
            tracker_id: tracker.returned_id.clone(),
        }
    }

    /// Whether this tracker of it is being asked.
    pub(super) fn is_asking(&self, url: &SafeUrl) -> bool {
        let is_asked = |tracker: &Tracker| tracker.status == TrackerStatus::Announcing && tracker.url == *url;
        self.trackers.iter().any(is_asked)
    }

    /// Waits, if it was this announce that it waited for. Tiers that were joined have had one each.
    fn end(&mut self, run: Run, until: Instant) {
        if self.phase == Phase::Running(run) {
            self.phase = Phase::Waiting(until);
        }
    }

    pub(super) fn succeeded(
        &mut self,
        now: Instant,
        (run, url, event): (Run, &SafeUrl, Event),
        answer: Answer,
        chance: &mut Chance,
    ) {
        let interval = answer
            .interval
            .unwrap_or(DEFAULT_INTERVAL)
            .clamp(MIN_INTERVAL, MAX_INTERVAL);
        let min_interval = answer.min_interval.unwrap_or(DEFAULT_MIN_INTERVAL).min(interval);
        let interval = interval.max(min_interval);
        let next = now + chance.a_little_more(interval);
        self.end(run, next);
        let Some(at) = self.trackers.iter().position(|tracker| tracker.url == *url) else {
            return;
        };
        // The tracker that answers is the first of its tier (BEP 12).
        self.trackers[..=at].rotate_right(1);
        let tracker = &mut self.trackers[0];
        tracker.status = TrackerStatus::Working;
        tracker.failures = 0;
        tracker.earliest = now + min_interval;
        tracker.not_before = Some(next);
        // One that learns of a torrent that is complete counts no download of it.
        let was_told = event == Event::Completed || event == Event::Started && self.is_complete;
        tracker.has_completed |= was_told;
        tracker.has_started = event != Event::Stopped;
        tracker.seeds = answer.seeds;
        tracker.leechers = answer.leechers;
        tracker.downloads = answer.downloads.or(tracker.downloads);
        tracker.message = answer.warning;
        if answer.tracker_id.is_some() {
            tracker.returned_id = answer.tracker_id;
        }
        tracker.peers = Some(answer.peers.len());
        let owes_completed = self.is_complete && !tracker.has_completed && tracker.has_started;
        if owes_completed && matches!(self.phase, Phase::Waiting(_)) {
            self.bring_forward(now);
        }
    }

    pub(super) fn failed(
        &mut self,
        now: Instant,
        (run, url, event): (Run, &SafeUrl, Event),
        failure: TrackerFailure,
        chance: &mut Chance,
    ) {
        self.end(run, now);
        let Some(tracker) = self.trackers.iter_mut().find(|tracker| tracker.url == *url) else {
            return;
        };
        let wait = BACK_OFF[tracker.failures.min(BACK_OFF.len() - 1)];
        tracker.failures += 1;
        tracker.status = TrackerStatus::Failed;
        tracker.message = Some(failure.message);
        tracker.not_before = match failure.retry {
            Retry::Default => Some(now + chance.a_little_more(wait)),
            Retry::After(after) => Some(now + chance.a_little_more(after.max(MIN_INTERVAL))),
            Retry::Never => None,
        };
        tracker.earliest = now + DEFAULT_MIN_INTERVAL.min(wait);
        if failure.retry == Retry::Never {
            tracker.status = TrackerStatus::Disabled;
        }
        if event == Event::Stopped {
            // It is not worth a second attempt: the tracker forgets the torrent by itself.
            tracker.has_started = false;
        }
        let is_waiting = matches!(self.phase, Phase::Waiting(_));
        if is_waiting && self.trackers.iter().all(|tracker| tracker.not_before.is_none()) {
            self.phase = Phase::Off;
        }
    }

    pub(super) fn view(&self, tier: usize) -> impl Iterator<Item = TrackerView> {
        self.trackers.iter().map(move |tracker| TrackerView {
            url: tracker.url.clone(),
            tier,
            source: tracker.source,
            status: tracker.status,
            peers: tracker.peers,
            seeds: tracker.seeds,
            leechers: tracker.leechers,
            downloads: tracker.downloads,
            next_announce: match tracker.status {
                TrackerStatus::Working | TrackerStatus::Failed => tracker.not_before,
                TrackerStatus::NotContacted | TrackerStatus::Announcing | TrackerStatus::Disabled => None,
            },
            message: tracker.message.clone(),
        })
    }
}
