//! When sources are fetched.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    machine::State,
    step::{CommandError, Effect, Fetch, RunId},
};
use crate::{
    feed::Hints,
    model::{
        after,
        item::Mark,
        source::{Source, SourceId, Validators},
    },
};

/// Fetches that are alive at once.
pub const MAX_FETCHES: usize = 8;

/// The least time between the beginnings of two fetches of one host.
pub const HOST_GAP: Duration = Duration::from_secs(1);

/// The longest wait after failures, unless the source's own interval is longer.
pub const MAX_BACKOFF: Duration = Duration::from_hours(6);

/// The longest wait that a server may ask for.
pub const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// Within this time sources are fetched that became due together: because the process did not run, or because their
/// skipped hours end.
const SPREAD: Duration = Duration::from_mins(5);

/// No fetch is planned further ahead: the longest interval with its tenth of chance, then a week of skipped days.
const LONGEST_WAIT: Duration = Duration::from_hours(24 * 15);

/// Hosts whose last fetch is remembered. Beyond this, hosts that may be asked again are dropped.
const MAX_HOSTS: usize = 4096;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

impl State {
    /// When the time must be passed again at the latest, if nothing else happens.
    pub fn wake_at(&self) -> Option<Timestamp> {
        if self.polling.alive.len() >= MAX_FETCHES {
            return None;
        }
        let waits = self.polling.due.iter().filter_map(|(due, id)| {
            let source = self.sources.get(id).filter(|source| self.may_start(source))?;
            let free = self.polling.free_at.get(&host(source)).copied();
            Some(free.map_or(*due, |free| free.max(*due)))
        });
        // Sources that are not enabled are never due.
        waits.min().filter(|at| *at < Timestamp::MAX)
    }

    /// Makes due what was planned by a clock that was ahead, and would otherwise wait until that time comes.
    pub(super) fn recover_schedule(&mut self, now: Timestamp) {
        let longest = after(now, MAX_RETRY_AFTER);
        self.polling.free_at.retain(|_, free| *free <= longest);
        let latest = (after(now, LONGEST_WAIT), SourceId(uuid::Uuid::max()));
        let planned = self.polling.due.range(latest..);
        let ahead: Vec<_> = planned
            .take_while(|(at, _)| *at < Timestamp::MAX)
            .map(|(_, id)| *id)
            .collect();
        for id in ahead {
            self.schedule(id, now);
        }
    }

    /// Starts what is due, as far as limits allow.
    pub(super) fn start_due(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let due: Vec<_> = self
            .polling
            .due
            .iter()
            .take_while(|(due, _)| *due <= now)
            .map(|(_, id)| *id)
            .collect();
        for id in due {
            if self.polling.alive.len() >= MAX_FETCHES {
                break;
            }
            let Some(source) = self.sources.get(&id).filter(|source| self.may_start(source)) else {
                continue;
            };
            let host = host(source);
            if self.polling.free_at.get(&host).is_some_and(|free| *free > now) {
                continue;
            }
            let run = RunId(self.polling.next_run);
            effects.push(Effect::Fetch(Box::new(Fetch {
                source: id,
                run,
                spec: source.spec.clone(),
                feed_url: source.history.feed_url.clone(),
                validators: source.history.validators.clone(),
                // The first round of another URL lists what it has.
                since: source.history.last_success.filter(|_| source.history.is_seeded),
            })));
            self.polling.next_run += 1;
            self.polling.alive.insert(id, (run, host.clone()));
            self.occupy(host, now, HOST_GAP);
        }
    }

    /// Whether a source would be fetched if it were due: it is not yet, and neither is another one of its host.
    fn may_start(&self, source: &Source) -> bool {
        let alive = &self.polling.alive;
        let host = host(source);
        !alive.contains_key(&source.id) && alive.values().all(|(_, other)| *other != host)
    }

    fn occupy(&mut self, host: String, now: Timestamp, wait: Duration) {
        let free_at = &mut self.polling.free_at;
        if free_at.len() >= MAX_HOSTS {
            free_at.retain(|_, free| *free > now);
        }
        free_at.insert(host, after(now, wait));
    }

    pub(super) fn refresh(&mut self, now: Timestamp, id: SourceId) -> Result<(), CommandError> {
        self.source(id)?;
        if !self.polling.alive.contains_key(&id) {
            self.schedule(id, now);
        }
        Ok(())
    }

    pub(super) fn cancel(&mut self, id: SourceId, effects: &mut Vec<Effect>) {
        if let Some((run, _)) = self.polling.alive.remove(&id) {
            effects.push(Effect::Cancel(run));
        }
    }

    /// Ends a fetch; whether it is the one that is alive.
    pub(super) fn end_fetch(&mut self, id: SourceId, run: RunId) -> bool {
        let is_alive = self.polling.alive.get(&id).is_some_and(|(alive, _)| *alive == run);
        if is_alive {
            self.polling.alive.remove(&id);
        }
        is_alive
    }

    pub(super) fn fetch_failed(&mut self, now: Timestamp, id: SourceId, reason: String, retry_after: Option<Duration>) {
        let seed = self.seed;
        let asked = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
        if let Some(host) = self
            .sources
            .get(&id)
            .map(|source| host(source))
            .filter(|_| !asked.is_zero())
        {
            // `Retry-After` limits requests to the server, not only those for this feed.
            self.occupy(host, now, asked);
        }
        self.edit_source(id, |source| {
            let history = &mut source.history;
            history.last_fetch = Some(now);
            history.fail_count = history.fail_count.saturating_add(1);
            history.last_error = reason;
            let interval = source.spec.interval();
            let backoff = interval.saturating_mul(2_u32.saturating_pow(history.fail_count));
            let wait = backoff.min(MAX_BACKOFF.max(interval));
            source.history.next_fetch = next(source, seed, now, wait.max(asked));
        });
    }

    pub(super) fn fetch_succeeded(&mut self, now: Timestamp, id: SourceId, validators: Option<Validators>) {
        let seed = self.seed;
        self.edit_source(id, |source| {
            let history = &mut source.history;
            history.last_fetch = Some(now);
            history.last_success = Some(now);
            history.fail_count = 0;
            history.last_error.clear();
            if let Some(validators) = validators {
                history.validators = validators;
            }
            let wait = source.spec.interval().max(source.history.hints.ttl);
            source.history.next_fetch = next(source, seed, now, wait);
        });
    }

    /// Spreads what became due while the process did not run.
    pub(super) fn spread_overdue(&mut self, now: Timestamp) {
        let overdue: Vec<_> = self
            .polling
            .due
            .range(..(now, SourceId(uuid::Uuid::nil())))
            .map(|(_, id)| *id)
            .collect();
        for id in overdue {
            let Some(source) = self.sources.get(&id) else { continue };
            let spread = SPREAD.min(source.spec.interval());
            let at = after(now, fraction(self.seed, source, now, spread));
            self.schedule(id, at);
        }
    }

    /// Makes a source due at `at`.
    fn schedule(&mut self, id: SourceId, at: Timestamp) {
        self.edit_source(id, |source| source.history.next_fetch = at);
    }
}

/// The next fetch: after `wait` and up to a tenth of it, so that sources that were added together part; and not when
/// the feed does not want it. Never, if the source is not enabled.
fn next(source: &Source, seed: u64, now: Timestamp, wait: Duration) -> Timestamp {
    if !source.spec.settings().enabled {
        return Timestamp::MAX;
    }
    let at = after(now, wait + fraction(seed, source, now, wait / 10));
    let free = unskipped(at, source.history.hints);
    // Feeds often skip the same hours; within the first free one they part again.
    let spread = if free == at { Duration::ZERO } else { SPREAD };
    after(free, fraction(seed, source, now, spread))
}

/// The next fetch of a source whose interval may have become shorter than it was `before`. What a failure or the site
/// asked to wait stays.
pub(super) fn no_later(source: &Source, before: &Source, seed: u64) -> Timestamp {
    let history = &source.history;
    let (interval, due) = (source.spec.interval(), history.next_fetch);
    match history.last_success {
        Some(last) if history.fail_count == 0 && interval < before.spec.interval() => {
            due.min(next(source, seed, last, interval.max(history.hints.ttl)))
        }
        _ => due,
    }
}

/// A part of `most`, by chance.
fn fraction(seed: u64, source: &Source, now: Timestamp, most: Duration) -> Duration {
    let mark = Mark::of(&[&seed.to_string(), &source.id.to_string(), &now.to_string()]);
    let [first, second, ..] = mark.0;
    most * u32::from(u16::from_be_bytes([first, second])) / u32::from(u16::MAX)
}

/// The first moment from `at` on whose hour and day are not skipped. A feed that skips all of them skips none.
fn unskipped(at: Timestamp, hints: Hints) -> Timestamp {
    let is_skipped = |second: i64| {
        let hour = second.rem_euclid(DAY) / HOUR;
        // The first day of 1970 was a Thursday.
        let day = (second.div_euclid(DAY) + 3).rem_euclid(7);
        hints.skip_hours >> hour & 1 == 1 || hints.skip_days >> day & 1 == 1
    };
    let start = at.as_second();
    if !is_skipped(start) {
        return at;
    }
    let hours = (1..=7 * 24).map(|hour| (start.div_euclid(HOUR) + hour) * HOUR);
    let free = hours.into_iter().find(|second| !is_skipped(*second));
    free.and_then(|second| Timestamp::from_second(second).ok())
        .unwrap_or(at)
}

/// Where politeness counts: where the feed was found, or else the source's URL. Plugins have a host of their own in the
/// URL, or none.
fn host(source: &Source) -> String {
    let url = source.history.feed_url.as_ref().unwrap_or(source.spec.url()).as_url();
    url.host_str()
        .map_or_else(|| source.spec.settings().provider_id.clone(), ToOwned::to_owned)
}
