//! The circuit breaker of a plugin, and the detection of changed sites.

use std::{
    collections::{BTreeSet, VecDeque},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::{Duration, Instant},
};

/// This many faults…
const FAULTS: usize = 3;

/// …within this time open the breaker.
const FAULT_WINDOW: Duration = Duration::from_mins(10);

/// How long it stays open the first time; doubles with each failed trial call.
const FIRST_PAUSE: Duration = Duration::from_mins(1);

/// The longest that it stays open.
const MAX_PAUSE: Duration = Duration::from_hours(1);

/// Timeout of a trial call, because a dropped one never reports. Longer than any call may take, with its waits.
const TRIAL_WAIT: Duration = Duration::from_mins(2);

/// This many openings…
const OPENINGS: usize = 5;

/// …within this time disable the plugin.
const OPENING_WINDOW: Duration = Duration::from_hours(24);

/// Lets calls through until too many of them fail by the plugin's own fault.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breaker {
    state: State,
    faults: VecDeque<Instant>,
    openings: VecDeque<Instant>,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Closed,
    Open {
        until: Instant,
        pause: Duration,
    },
    /// One trial call is in progress.
    Trial {
        since: Instant,
        pause: Duration,
    },
}

/// The effect of a call's result on the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// It opened: calls pause.
    Opened,
    /// It opened too often: the plugin must be disabled.
    Tripped,
}

impl Breaker {
    /// Whether a call may be made; if not, the wait until the next attempt.
    pub(crate) fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        match self.state {
            State::Closed => Ok(()),
            State::Open { until, .. } if now < until => Err(until - now),
            State::Trial { since, .. } if now < since + TRIAL_WAIT => Err(since + TRIAL_WAIT - now),
            State::Open { pause, .. } | State::Trial { pause, .. } => {
                self.state = State::Trial { since: now, pause };
                Ok(())
            }
        }
    }

    /// Whether calls pause or one is on trial.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed)
    }

    /// Records a result.
    pub(crate) fn record(&mut self, now: Instant, is_fault: bool) -> Change {
        match self.state {
            State::Trial { pause, .. } if is_fault => self.open(now, (pause * 2).min(MAX_PAUSE)),
            State::Trial { .. } => {
                self.state = State::Closed;
                self.faults.clear();
                Change::None
            }
            State::Closed if is_fault => {
                push_recent(&mut self.faults, now, FAULT_WINDOW);
                if self.faults.len() < FAULTS {
                    return Change::None;
                }
                self.open(now, FIRST_PAUSE)
            }
            // A call from before the breaker opened has no effect.
            State::Closed | State::Open { .. } => Change::None,
        }
    }

    fn open(&mut self, now: Instant, pause: Duration) -> Change {
        self.faults.clear();
        self.state = State::Open {
            until: now + pause,
            pause,
        };
        push_recent(&mut self.openings, now, OPENING_WINDOW);
        if self.openings.len() < OPENINGS {
            Change::Opened
        } else {
            Change::Tripped
        }
    }
}

fn push_recent(moments: &mut VecDeque<Instant>, now: Instant, window: Duration) {
    moments.retain(|moment| now.duration_since(*moment) < window);
    moments.push_back(now);
}

/// The number of recent calls that count.
const CALLS: usize = 20;

/// Distinct URLs that must fail: one odd page does not mean a changed site.
const URLS: usize = 3;

/// The results of the last calls of a plugin.
#[derive(Debug, Clone, Default)]
pub(crate) struct SiteHealth {
    /// The hash of the URL, and whether the page could not be parsed.
    calls: VecDeque<(u64, bool)>,
}

impl SiteHealth {
    pub(crate) fn record(&mut self, url: &str, is_site_change: bool) {
        let mut hasher = DefaultHasher::new();
        url.hash(&mut hasher);
        if self.calls.len() == CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back((hasher.finish(), is_site_change));
    }

    /// Whether the site seems to have changed: at least half of the pages could not be parsed, on several URLs.
    pub(crate) fn is_broken(&self) -> bool {
        self.fails_on_several_urls() && self.failed().count() * 2 >= self.calls.len()
    }

    /// Whether a version is worse than its predecessor: its site seems to have changed while the other's did not, or
    /// its share of unparsable pages doubled.
    pub(crate) fn is_worse_than(&self, before: &Self) -> bool {
        let (failed, failed_before) = (self.failed().count(), before.failed().count());
        let is_newly_broken = self.is_broken() && !before.is_broken();
        let has_doubled = failed_before > 0 && failed * before.calls.len() >= 2 * failed_before * self.calls.len();
        is_newly_broken || (has_doubled && self.fails_on_several_urls())
    }

    fn fails_on_several_urls(&self) -> bool {
        let urls: BTreeSet<_> = self.failed().map(|(url, _)| url).collect();
        urls.len() >= URLS
    }

    fn failed(&self) -> impl Iterator<Item = &(u64, bool)> {
        self.calls.iter().filter(|(_, failed)| *failed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fail(breaker: &mut Breaker, now: Instant) -> Change {
        breaker.record(now, true)
    }

    #[test]
    fn three_faults_in_ten_minutes_open_it_for_a_minute() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        assert_eq!(fail(&mut breaker, start), Change::None);
        assert_eq!(fail(&mut breaker, start + FAULT_WINDOW), Change::None);
        assert_eq!(fail(&mut breaker, start + FAULT_WINDOW), Change::None);
        assert_eq!(breaker.record(start + FAULT_WINDOW, false), Change::None);
        let opened = start + FAULT_WINDOW + Duration::from_secs(1);
        assert_eq!(fail(&mut breaker, opened), Change::Opened);
        assert_eq!(breaker.admit(opened), Err(FIRST_PAUSE));
        assert_eq!(breaker.admit(opened + FIRST_PAUSE), Ok(()));
        assert!(breaker.admit(opened + FIRST_PAUSE).is_err(), "one trial at a time");
        assert_eq!(
            breaker.admit(opened + FIRST_PAUSE + TRIAL_WAIT),
            Ok(()),
            "a trial that never reports"
        );
        assert_eq!(breaker.record(opened + FIRST_PAUSE, false), Change::None);
        assert_eq!(breaker.admit(opened + FIRST_PAUSE), Ok(()));
    }

    #[test]
    fn every_failed_trial_doubles_the_pause_until_the_plugin_is_switched_off() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        for _ in 1..FAULTS {
            assert_eq!(fail(&mut breaker, now), Change::None);
        }
        assert_eq!(fail(&mut breaker, now), Change::Opened);
        for doubled in [2, 4, 8] {
            now += breaker.admit(now).unwrap_err();
            assert_eq!(breaker.admit(now), Ok(()));
            assert_eq!(fail(&mut breaker, now), Change::Opened);
            assert_eq!(breaker.admit(now), Err(FIRST_PAUSE * doubled));
        }
        now += breaker.admit(now).unwrap_err();
        assert_eq!(breaker.admit(now), Ok(()));
        assert_eq!(fail(&mut breaker, now), Change::Tripped);
    }

    #[test]
    fn a_site_is_broken_when_several_urls_and_half_of_the_calls_are_not_understood() {
        let mut health = SiteHealth::default();
        (0..CALLS).for_each(|_| health.record("https://a.test/same", true));
        assert!(!health.is_broken(), "one page");
        health.record("https://a.test/2", true);
        health.record("https://a.test/3", true);
        assert!(health.is_broken());
        (0..CALLS / 2).for_each(|_| health.record("https://a.test/good", false));
        assert!(health.is_broken());
        health.record("https://a.test/good", false);
        assert!(!health.is_broken());
    }

    #[test]
    fn a_version_is_worse_when_twice_as_many_calls_are_not_understood() {
        let with = |failed: usize, calls: usize| {
            let mut health = SiteHealth::default();
            (0..calls).for_each(|n| health.record(&format!("https://a.test/{n}"), n < failed));
            health
        };
        for (before, now, is_worse) in [
            ((0, 20), (3, 20), false),
            ((0, 20), (10, 20), true),
            ((0, 0), (3, 3), true),
            ((2, 20), (3, 20), false),
            ((2, 20), (4, 20), true),
            ((1, 20), (2, 3), false),
            ((12, 20), (20, 20), false),
            ((10, 20), (20, 20), true),
        ] {
            let (before, now) = (with(before.0, before.1), with(now.0, now.1));
            assert_eq!(now.is_worse_than(&before), is_worse, "{before:?} {now:?}");
        }
    }

    proptest! {
        #[test]
        fn it_always_lets_a_call_through_again(steps in proptest::collection::vec((0..4000_u64, any::<bool>()), 0..60)) {
            let (mut breaker, mut now) = (Breaker::default(), Instant::now());
            for (seconds, is_fault) in steps {
                now += Duration::from_secs(seconds);
                if breaker.admit(now).is_ok() {
                    breaker.record(now, is_fault);
                }
            }
            if let Err(wait) = breaker.admit(now) {
                prop_assert!(wait <= MAX_PAUSE);
                prop_assert_eq!(breaker.admit(now + wait), Ok(()));
            }
        }
    }
}
