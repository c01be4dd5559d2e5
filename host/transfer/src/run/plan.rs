//! Which connection fetches which bytes. Pure: the one owner of the range map; connections hold leases that only the
//! plan changes.
//!
//! Invariant: every byte of the file is at any time exactly one of done, leased to one worker, or waiting. A worker
//! without work takes waiting bytes, or steals from the lease that would end last, split so that both end together.

use std::collections::BTreeMap;

use crate::{ByteRange, RangeSet, SegmentView};

/// A worker records its bytes after this many, or after the time of [`RECORD_TIME`](super::upkeep::RECORD_TIME),
/// whichever comes first; a kill loses at most this much per connection.
const RECORD_BYTES: u64 = 512 * 1024;

/// Default minimum size of a segment; must equal that of [`crate::ConnectionPlan`].
pub const USUAL_MIN_SPLIT: u64 = 1024 * 1024;

/// The smallest range worth stealing: a request costs about as much as this many bytes.
const MIN_STEAL_BYTES: u64 = 64 * 1024;

/// The largest gap that is read and discarded instead of sending a new request.
const MAX_JUMP_BYTES: u64 = 4 * 1024 * 1024;

/// Measurements (ten per second) after which the rate of a lease counts as stable.
const SETTLED_LOOKS: u32 = 50;

/// Below this rate, in bytes per second, a holder counts as stuck, and even its last bytes are stolen.
const STUCK_RATE: f64 = 4096.0;

/// The worker of a run that a lease belongs to. Numbers are not used twice in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

/// The speed of a worker, by which the plan splits leases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Measured or expected rate, in bytes per second.
    pub rate: f64,
    /// Seconds from a request to its first byte.
    pub delay: f64,
}

impl Pace {
    /// Bytes that arrive while a new request waits for its response and its connection speeds up, about three delays;
    /// discarding fewer is cheaper than a new request.
    pub fn bytes_worth_a_request(self) -> u64 {
        as_u64(self.rate * self.delay * 3.0).clamp(MIN_STEAL_BYTES, MAX_JUMP_BYTES)
    }
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    begin: u64,
    /// Next byte to write.
    at: u64,
    /// One past the last byte; `u64::MAX` while the file's size is unknown.
    end: u64,
    /// Everything before is recorded.
    recorded: u64,
    /// Bytes per second; expected until measured.
    rate: f64,
    /// How often it was measured.
    looks: u32,
}

/// The range map of one file.
#[derive(Debug)]
pub struct Plan {
    total: Option<u64>,
    /// Valid bytes, except for those that current leases have written.
    done: RangeSet,
    waiting: RangeSet,
    leases: BTreeMap<WorkerId, Lease>,
    min_split: u64,
}

impl Plan {
    /// A plan for a file of `total` bytes, or of unknown size, of which `done` is valid. The initial segments are at
    /// least `min_split` bytes.
    pub fn new(total: Option<u64>, done: RangeSet, min_split: u64) -> Self {
        let whole = ByteRange::new(0, total.unwrap_or(u64::MAX));
        let waiting = done.gaps(whole).into_iter().collect();
        Self {
            total,
            done,
            waiting,
            leases: BTreeMap::new(),
            min_split: min_split.max(1),
        }
    }

    /// Leases waiting bytes from `start` on to `worker`, because a response that begins there is already arriving; up
    /// to the first byte that is done, and at most a `parts`th of the file.
    pub fn take_from(&mut self, worker: WorkerId, start: u64, parts: u16, pace: Pace) -> Option<ByteRange> {
        let held = self
            .waiting
            .iter()
            .find(|range| range.start <= start && start < range.end)?;
        let end = held.end.min(start.saturating_add(self.segment_bytes(parts)));
        Some(self.lease(worker, ByteRange::new(start, end), pace))
    }

    /// Leases a range to `worker`: waiting bytes, at most a `parts`th of what is missing, or else a part of another
    /// lease. `None` if nothing is worth a request.
    pub fn take(&mut self, worker: WorkerId, parts: u16, pace: Pace) -> Option<ByteRange> {
        let first = self.waiting.iter().next();
        if let Some(range) = first {
            let end = range.end.min(range.start.saturating_add(self.segment_bytes(parts)));
            return Some(self.lease(worker, ByteRange::new(range.start, end), pace));
        }
        let (victim, cut) = self.best_split(pace)?;
        let lease = self.leases.get_mut(&victim).expect("the victim holds a lease");
        let stolen = ByteRange::new(cut, std::mem::replace(&mut lease.end, cut));
        self.waiting.insert(stolen);
        Some(self.lease(worker, stolen, pace))
    }

    /// Extends the lease of `worker` by adjacent waiting bytes, at most `most` and at most a `parts`th of what is
    /// missing: its response continues, so no request is needed. Returns whether there were any.
    pub fn extend(&mut self, worker: WorkerId, most: u64, parts: u16) -> bool {
        let most = most.min(self.segment_bytes(parts));
        let Some(lease) = self.leases.get_mut(&worker) else {
            return false;
        };
        let Some(range) = self.waiting.iter().find(|range| range.start == lease.end) else {
            return false;
        };
        lease.end = range.end.min(lease.end.saturating_add(most));
        let taken = ByteRange::new(range.start, lease.end);
        self.waiting.remove(taken);
        !taken.is_empty()
    }

    /// Ends the lease of `worker` and leases the next waiting range to it, if that is at most `most` bytes away and
    /// begins before `reach`: its response continues, and discarding a small gap costs less than a new request. Returns
    /// the bytes to discard and the range to record.
    pub fn jump(&mut self, worker: WorkerId, reach: u64, most: u64, pace: Pace) -> Option<(u64, Option<ByteRange>)> {
        let end = self.leases.get(&worker)?.end;
        let next = self.waiting.iter().find(|range| range.start >= end)?;
        let gap = next.start - end;
        if gap > most || next.start >= reach {
            return None;
        }
        let unrecorded = self.release(worker);
        self.lease(worker, ByteRange::new(next.start, next.end.min(reach)), pace);
        Some((gap, unrecorded))
    }

    /// Whether [`Plan::take`] would lease anything to a worker of this pace.
    pub fn has_work(&self, pace: Pace) -> bool {
        !self.waiting.is_empty() || self.best_split(pace).is_some()
    }

    /// Bytes that `worker` may still write from [`Plan::position`] on.
    pub fn window(&self, worker: WorkerId) -> u64 {
        self.leases.get(&worker).map_or(0, |lease| lease.end - lease.at)
    }

    /// The next byte that `worker` is to write.
    pub fn position(&self, worker: WorkerId) -> u64 {
        self.leases.get(&worker).map_or(0, |lease| lease.at)
    }

    /// Advances the lease of `worker` by `bytes`. Returns a range to record every [`RECORD_BYTES`].
    pub fn advance(&mut self, worker: WorkerId, bytes: u64) -> Option<ByteRange> {
        let lease = self.leases.get_mut(&worker).expect("only holders of a lease write");
        debug_assert!(bytes <= lease.end - lease.at, "a worker stays within its lease");
        lease.at += bytes;
        if lease.at - lease.recorded < RECORD_BYTES && lease.at < lease.end {
            return None;
        }
        let range = ByteRange::new(lease.recorded, lease.at);
        lease.recorded = lease.at;
        Some(range)
    }

    /// What the leases have written beyond what was recorded of them, to be recorded now.
    pub fn unrecorded(&mut self) -> Vec<ByteRange> {
        let written = self.leases.values_mut().map(|lease| {
            let range = ByteRange::new(lease.recorded, lease.at);
            lease.recorded = lease.at;
            range
        });
        written.filter(|range| !range.is_empty()).collect()
    }

    /// Ends the lease of `worker`: what it wrote is done, the rest waits. Returns the range to record.
    pub fn release(&mut self, worker: WorkerId) -> Option<ByteRange> {
        let lease = self.leases.remove(&worker)?;
        self.done.insert(ByteRange::new(lease.begin, lease.at));
        self.waiting.insert(ByteRange::new(lease.at, lease.end));
        Some(ByteRange::new(lease.recorded, lease.at)).filter(|range| !range.is_empty())
    }

    /// Ends all leases.
    pub fn release_all(&mut self) -> Vec<ByteRange> {
        let workers: Vec<_> = self.leases.keys().copied().collect();
        workers.into_iter().filter_map(|worker| self.release(worker)).collect()
    }

    /// Sets the size of a file whose size was unknown.
    pub fn settle(&mut self, total: u64) {
        if self.total.is_none() {
            self.total = Some(total);
            self.waiting.remove(ByteRange::new(total, u64::MAX));
            for lease in self.leases.values_mut() {
                lease.end = lease.end.min(total.max(lease.at));
            }
        }
    }

    /// Marks the bytes of `ranges` as waiting, because they are wrong.
    pub fn distrust(&mut self, ranges: &RangeSet) {
        for range in ranges.iter() {
            for gap in self.leased().gaps(range) {
                self.done.remove(gap);
                self.waiting.insert(gap);
            }
        }
    }

    /// Sets the rate of `worker`, in bytes per second.
    pub fn pace(&mut self, worker: WorkerId, rate: f64) {
        if let Some(lease) = self.leases.get_mut(&worker) {
            lease.rate = rate;
            lease.looks = lease.looks.saturating_add(1);
        }
    }

    /// The file's size, once known.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Whether every byte is valid.
    pub fn is_complete(&self) -> bool {
        self.total == Some(self.done_bytes())
    }

    /// The number of valid bytes.
    pub fn done_bytes(&self) -> u64 {
        self.done.len() + self.leases.values().map(|lease| lease.at - lease.begin).sum::<u64>()
    }

    /// The valid bytes.
    pub fn done(&self) -> RangeSet {
        let mut done = self.done.clone();
        for lease in self.leases.values() {
            done.insert(ByteRange::new(lease.begin, lease.at));
        }
        done
    }

    /// The segments for a progress display: done and leased ranges, in order.
    pub fn segments(&self) -> Vec<SegmentView> {
        let done = self.done.iter().map(|range| SegmentView {
            start: range.start,
            end: range.end,
            done: range.len(),
            is_active: false,
        });
        let active = self.leases.values().map(|lease| SegmentView {
            start: lease.begin,
            end: lease.end.min(self.total.unwrap_or(lease.at)),
            done: lease.at - lease.begin,
            is_active: true,
        });
        let mut segments: Vec<_> = done.chain(active).collect();
        segments.sort_unstable_by_key(|segment| segment.start);
        segments
    }

    fn lease(&mut self, worker: WorkerId, range: ByteRange, pace: Pace) -> ByteRange {
        debug_assert!(!self.leases.contains_key(&worker), "a worker holds one lease at a time");
        let ByteRange { start, end } = range;
        self.waiting.remove(range);
        self.leases.insert(
            worker,
            Lease {
                begin: start,
                at: start,
                end,
                recorded: start,
                rate: pace.rate,
                looks: 0,
            },
        );
        range
    }

    fn leased(&self) -> RangeSet {
        self.leases
            .values()
            .map(|lease| ByteRange::new(lease.begin, lease.end))
            .collect()
    }

    /// Size of a segment when the missing bytes are split into `parts`; a file of unknown size is not split.
    fn segment_bytes(&self, parts: u16) -> u64 {
        let Some(total) = self.total else { return u64::MAX };
        let missing = total.saturating_sub(self.done.len());
        missing.div_ceil(u64::from(parts.max(1))).max(self.min_split)
    }

    /// The lease that would end last, and where to split it so that a thief of this `pace` ends together with its
    /// holder.
    fn best_split(&self, pace: Pace) -> Option<(WorkerId, u64)> {
        self.total?;
        let seconds_left = |lease: &Lease| as_f64(lease.end - lease.at) / lease.rate.max(1.0);
        let (victim, lease) = self
            .leases
            .iter()
            .max_by(|(_, one), (_, other)| seconds_left(one).total_cmp(&seconds_left(other)))?;
        let left = lease.end - lease.at;
        let (own, thief) = (lease.rate.max(1.0), pace.rate.max(1.0));
        // The holder continues while the thief's request is in flight.
        let shared = (as_f64(left) - own * pace.delay).max(0.0);
        let fair = as_u64(shared * thief / (own + thief)).min(left);
        // A new holder may still speed up. If all of its lease could be stolen, two slow starters would rob each other
        // for ever.
        let stolen = if lease.looks < SETTLED_LOOKS {
            fair.min(left.div_ceil(2))
        } else {
            fair
        };
        let is_stuck =
            lease.looks >= SETTLED_LOOKS && lease.rate < STUCK_RATE && seconds_left(lease) > 4.0 * pace.delay + 1.0;
        // A larger minimum segment means fewer connections, even if that takes longer.
        let saves_time = self.min_split <= USUAL_MIN_SPLIT && seconds_left(lease) > 2.0 * pace.delay + 0.05;
        let is_worth = stolen >= self.min_split
            || (stolen >= MIN_STEAL_BYTES && saves_time)
            || (stolen > 0 && is_stuck && thief >= STUCK_RATE);
        is_worth.then(|| (*victim, lease.end - stolen))
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an estimate of time; sizes of files are exact enough"
)]
fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what a file can have"
)]
fn as_u64(bytes: f64) -> u64 {
    bytes.clamp(0.0, 9.0e18) as u64
}

#[cfg(test)]
mod tests;
