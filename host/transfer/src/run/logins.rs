//! What protocols share in which a file comes over a few logins at one server at a time (FTP, SFTP): the state of such a
//! run, its part file, its rates, and what follows when an attempt ends. [`Attempts`] is what a protocol adds.

mod begin;
mod drive;
mod rates;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    future::pending,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

pub use begin::Taken;
pub use drive::{Attempts, Ended, Opening, drive};
pub use rates::{Rates, refuses_more};

use super::{Destination, Disk, Pace, Plan, Retries, SourceReports, WorkerId, upkeep::too_slow};
use crate::{
    ByteRange, ConnectionPlan, Failure, Job, Progress, RangeSet, RateLimits, Reporter, RunEvent, SPEED_WINDOW, SafeUrl,
    ServerView, Source, Stage,
};

/// Assumed rate of a connection, in bytes per second, before a measurement.
const EXPECTED_RATE: f64 = 1_000_000.0;

/// Assumed seconds from asking for a range to its first byte: several commands, and often a login.
const EXPECTED_DELAY: f64 = 0.3;

/// The most logins of a run. Servers allow few per address, and count those of others behind the same one.
const MAX_CONNECTIONS: u16 = 4;

/// State that all connections of a run share. It stays on one lane, so plain cells suffice.
#[derive(Debug)]
pub struct Work {
    /// What is downloaded.
    pub source: Rc<Source>,
    /// How many connections may be used.
    pub connections: ConnectionPlan,
    /// How fast it may be.
    pub limits: RateLimits,
    /// Who learns of it.
    pub reporter: Reporter,
    /// How often it may fail.
    pub retries: Retries,
    /// Who learns which of several URLs failed.
    pub sources: SourceReports,
    /// Which bytes are there, and which are being fetched by whom.
    pub plan: RefCell<Plan>,
    /// The file on disk.
    pub disk: Disk,
    /// Bytes received by each active worker.
    pub active: RefCell<BTreeMap<WorkerId, u64>>,
    pace: Cell<Pace>,
    received: Cell<u64>,
    /// The most valid bytes at any time so far: only progress beyond it refills the retry budget.
    high_water: Cell<u64>,
    next_worker: Cell<u32>,
}

impl Work {
    /// Of `job`, whose file is called `name` at `url`.
    pub fn new(job: Job, url: &SafeUrl, name: Option<crate::FileName>) -> Self {
        let Job {
            source,
            target,
            connections,
            limits,
            retry,
            reporter,
            stop: _,
            upload_limits: _,
            purpose: _,
            uploaded_bytes: _,
        } = job;
        let destination = Destination::new(url, name, target, reporter.clone());
        Self {
            retries: Retries::new(retry, reporter.clone()),
            sources: SourceReports::new(source.urls.len(), reporter.clone()),
            plan: RefCell::new(Plan::new(None, RangeSet::new(), connections.min_split_bytes)),
            disk: Disk::new(destination),
            active: RefCell::default(),
            pace: Cell::new(Pace {
                rate: EXPECTED_RATE,
                delay: EXPECTED_DELAY,
            }),
            received: Cell::new(0),
            high_water: Cell::new(0),
            next_worker: Cell::new(0),
            source: Rc::new(source),
            connections,
            limits,
            reporter,
        }
    }

    /// Discards every byte.
    pub fn start_over(&self) -> Result<(), Failure> {
        self.release_all()?;
        *self.plan.borrow_mut() = Plan::new(None, RangeSet::new(), self.connections.min_split_bytes);
        self.disk.claimed().map_or(Ok(()), |part| part.start_over())
    }

    /// How many connections the file is worth, where the server is known to allow `cap`.
    pub fn wanted(&self, cap: Option<u16>) -> u16 {
        let total = self.plan.borrow().total().unwrap_or(0);
        wanted(total, self.connections)
            .min(cap.unwrap_or(MAX_CONNECTIONS))
            .max(1)
    }

    /// Leases something to `worker`, of a file that is worth `parts` connections. Returns whether there was anything.
    pub fn take(&self, worker: WorkerId, parts: u16) -> bool {
        self.plan.borrow_mut().take(worker, parts, self.pace()).is_some()
    }

    /// Tells the user something.
    pub async fn notice(&self, message: String) {
        self.reporter.event(RunEvent::Notice(message)).await;
    }

    /// A number for one more worker.
    pub fn new_worker(&self) -> WorkerId {
        WorkerId(self.next_worker.replace(self.next_worker.get() + 1))
    }

    /// How fast a connection is, for the split of ranges.
    pub fn pace(&self) -> Pace {
        self.pace.get()
    }

    /// Sets the measured rate of a connection.
    pub fn set_rate(&self, rate: f64) {
        self.pace.set(Pace {
            rate,
            ..self.pace.get()
        });
    }

    /// The next byte that `worker` is to write, and how many may follow.
    pub fn window(&self, worker: WorkerId) -> (u64, u64) {
        let plan = self.plan.borrow();
        (plan.position(worker), plan.window(worker))
    }

    /// Ends the lease of `worker`.
    pub fn release(&self, worker: WorkerId) -> Result<(), Failure> {
        let unrecorded = self.plan.borrow_mut().release(worker);
        unrecorded.map_or(Ok(()), |range| self.disk.part().record(range))
    }

    /// Ends all leases.
    pub fn release_all(&self) -> Result<(), Failure> {
        let unrecorded = self.plan.borrow_mut().release_all();
        self.disk.record_all(unrecorded)
    }

    /// Writes the next bytes of `worker`'s lease; those that another worker took meanwhile are left out.
    pub fn write(&self, worker: WorkerId, bytes: &[u8]) -> Result<(), Failure> {
        let (position, window) = self.window(worker);
        let length = usize::try_from(window).unwrap_or(usize::MAX).min(bytes.len());
        if length == 0 {
            return Ok(());
        }
        self.disk.part().write_at(&bytes[..length], position)?;
        let unrecorded = self.plan.borrow_mut().advance(worker, length as u64);
        unrecorded.map_or(Ok(()), |range: ByteRange| self.disk.part().record(range))
    }

    /// Counts bytes that `worker` received.
    pub fn count(&self, worker: WorkerId, bytes: usize) {
        self.received.set(self.received.get() + bytes as u64);
        *self.active.borrow_mut().entry(worker).or_default() += bytes as u64;
    }

    /// Bytes received in this run, repeats included.
    pub fn received(&self) -> u64 {
        self.received.get()
    }

    /// Resets the retry budget if the run has more bytes than ever before, and returns whether it has. Bytes fetched again
    /// after a loss do not count, so a server that repeats the same part cannot keep a run alive.
    pub fn record_progress(&self) -> bool {
        let done = self.plan.borrow().done_bytes();
        let has_gained = done > self.high_water.get();
        if has_gained {
            self.high_water.set(done);
            self.retries.progressed();
        }
        has_gained
    }

    /// Resolves once `worker` has received no more than the lowest speed allows over the last [`SPEED_WINDOW`]; never
    /// without such a limit.
    pub async fn too_slow(&self, worker: WorkerId, host: &str) -> Failure {
        let limit = self.connections.lowest_bytes_per_second;
        if limit == 0 {
            return pending().await;
        }
        let seconds = SPEED_WINDOW.as_secs();
        let mut ticker = tokio::time::interval(Duration::from_secs(1));
        let mut totals = VecDeque::new();
        loop {
            ticker.tick().await;
            // The time before its first byte does not count.
            let Some(total) = self.active.borrow().get(&worker).copied().filter(|total| *total > 0) else {
                continue;
            };
            totals.push_back(total);
            if totals.len() as u64 <= seconds {
                continue;
            }
            let gained = total - totals.pop_front().unwrap_or(0);
            if gained <= limit.saturating_mul(seconds) {
                return too_slow(Some(host), gained / seconds, limit);
            }
        }
    }

    /// Reports what is done, at which rates of the workers, from `url`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is neither negative nor huge"
    )]
    pub fn report_progress(&self, rate: f64, rates: &BTreeMap<WorkerId, (f64, u64)>, url: &SafeUrl) {
        let plan = self.plan.borrow();
        let rates: Vec<u64> = rates.values().map(|(rate, _)| rate.max(0.0) as u64).collect();
        self.reporter.progress(Progress {
            stage: Stage::Moving,
            total_bytes: plan.total(),
            done_bytes: plan.done_bytes(),
            received_bytes: self.received.get(),
            bytes_per_second: rate.max(0.0) as u64,
            connections: u16::try_from(rates.len()).unwrap_or(u16::MAX),
            segments: plan.segments().into(),
            servers: Arc::new([ServerView {
                url: url.clone(),
                current: url.clone(),
                rates,
            }]),
            ..Progress::default()
        });
    }

    /// Reports a stage without connections.
    pub fn report_stage(&self, stage: Stage) {
        let plan = self.plan.borrow();
        self.reporter.progress(Progress {
            stage,
            total_bytes: plan.total(),
            done_bytes: plan.done_bytes(),
            received_bytes: self.received.get(),
            ..Progress::default()
        });
    }
}

/// How many connections a file of `total` bytes is worth: each fetches at least the smallest segment.
fn wanted(total: u64, connections: ConnectionPlan) -> u16 {
    let most = match connections.segments {
        0 => connections.per_host,
        segments => segments.min(connections.per_host),
    };
    let worth = total / connections.min_split_bytes.max(1);
    u16::try_from(worth)
        .unwrap_or(u16::MAX)
        .min(most)
        .clamp(1, MAX_CONNECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_worth_one_connection_and_large_ones_four() {
        let plan = |segments, per_host, min_split_bytes| ConnectionPlan {
            segments,
            per_host,
            min_split_bytes,
            lowest_bytes_per_second: 0,
        };
        let mib = 1024 * 1024;
        for (total, connections, expect) in [
            (0, plan(0, 16, mib), 1),
            (2 * mib - 1, plan(0, 16, mib), 1),
            (2 * mib, plan(0, 16, mib), 2),
            (100 * mib, plan(0, 16, mib), 4),
            (100 * mib, plan(16, 16, mib), 4),
            (100 * mib, plan(2, 16, mib), 2),
            (100 * mib, plan(0, 3, mib), 3),
            (100 * mib, plan(0, 0, 0), 1),
            (mib, plan(4, 16, 64 * 1024), 4),
        ] {
            assert_eq!(wanted(total, connections), expect, "{total} {connections:?}");
        }
    }
}
