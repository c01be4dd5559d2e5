//! State that all connections of a run share, with helpers on it.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    future::pending,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use egress::Pins;
use tokio::task::{JoinHandle, spawn_blocking};
use transfer::{
    ByteRange, ConnectionPlan, Failure, Job, Progress, RangeSet, RateLimits, Reporter, RunEvent, SPEED_WINDOW, SafeUrl,
    ServerView, Source, Stage,
    failure::FailureKind,
    run::{Destination, Disk, Pace, Plan, Retries, WorkerId, upkeep::too_slow},
};

use crate::{SCHEMES, access::Access, facts::Facts, place::Place, session::Session, shared::Shared};

/// Assumed rate of a connection, in bytes per second, before a measurement.
const EXPECTED_RATE: f64 = 1_000_000.0;

/// Assumed seconds from asking for a range to its first byte: several round trips, and often a login.
const EXPECTED_DELAY: f64 = 0.3;

/// The most logins of a run. Servers allow few per address, and count those of others behind the same one.
const MAX_CONNECTIONS: u16 = 4;

/// One of the URLs, with what is known from it alone.
pub(crate) struct Server {
    pub(crate) access: Access,
    pub(crate) place: Place,
}

/// It stays on one lane, so plain cells suffice.
pub(crate) struct Run {
    pub(crate) shared: Arc<Shared>,
    pub(crate) source: Rc<Source>,
    servers: Vec<Server>,
    /// Index of the server in use.
    current: Cell<usize>,
    pub(crate) connections: ConnectionPlan,
    pub(crate) limits: RateLimits,
    pub(crate) reporter: Reporter,
    pub(crate) retries: Retries,
    pub(crate) plan: RefCell<Plan>,
    pub(crate) disk: Disk,
    /// The facts of the file that the bytes on disk are of.
    pub(crate) facts: Cell<Facts>,
    /// Whether the complete file was seen to be the same as in the beginning.
    pub(crate) is_confirmed: Cell<bool>,
    pins: Pins,
    pace: Cell<Pace>,
    /// Bytes received in this run, repeats included.
    received: Cell<u64>,
    /// The most valid bytes at any time so far: only progress beyond it refills the retry budget.
    high_water: Cell<u64>,
    /// Bytes received by each active worker.
    pub(crate) active: RefCell<BTreeMap<WorkerId, u64>>,
    next_worker: Cell<u32>,
}

impl Run {
    pub(crate) fn new(shared: Arc<Shared>, job: Job) -> Result<Self, Failure> {
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
        let urls = source.urls.iter().filter(|url| SCHEMES.contains(&url.scheme()));
        let servers = urls
            .map(|url| {
                Ok(Server {
                    access: Access::of(&shared.config, &source, url)?,
                    place: Place::of(url)?,
                })
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        let Some(first) = servers.first() else {
            return Err(Failure::new(FailureKind::UnsupportedScheme, "no URL is one of SFTP"));
        };
        if let Some(directory) = servers.iter().find(|server| server.place.is_directory) {
            let why = format!("{} is a directory, not a file", directory.access.url);
            return Err(Failure::new(FailureKind::NotTheFile, why));
        }
        let destination = Destination::new(&first.access.url, first.place.name(), target, reporter.clone());
        Ok(Self {
            retries: Retries::new(retry, reporter.clone()),
            plan: RefCell::new(Plan::new(None, RangeSet::new(), connections.min_split_bytes)),
            disk: Disk::new(destination),
            facts: Cell::default(),
            is_confirmed: Cell::new(false),
            pins: Pins::default(),
            pace: Cell::new(Pace {
                rate: EXPECTED_RATE,
                delay: EXPECTED_DELAY,
            }),
            received: Cell::new(0),
            high_water: Cell::new(0),
            active: RefCell::default(),
            next_worker: Cell::new(0),
            current: Cell::new(0),
            source: Rc::new(source),
            servers,
            shared,
            connections,
            limits,
            reporter,
        })
    }

    /// How many URLs the file has.
    pub(crate) fn urls(&self) -> usize {
        self.servers.len()
    }

    pub(crate) fn server(&self) -> &Server {
        &self.servers[self.current.get()]
    }

    /// Goes on with the next URL, if there is another. Its time of change need not be that of the first.
    pub(crate) fn use_next_url(&self) -> bool {
        if self.servers.len() < 2 {
            return false;
        }
        self.current.set((self.current.get() + 1) % self.servers.len());
        self.facts.set(Facts {
            modified: None,
            ..self.facts.get()
        });
        true
    }

    /// Connects and logs in at the present server.
    pub(crate) async fn connect(&self) -> Result<Session, Failure> {
        let access = &self.server().access;
        let url = access.url.as_url();
        let session = Session::open(&self.shared, access, self.pins.narrow(url, access.reach)).await?;
        if let Some(address) = session.address() {
            self.pins.note(url, address);
        }
        Ok(session)
    }

    /// Discards every byte and all facts of the file.
    pub(crate) fn start_over(&self) -> Result<(), Failure> {
        self.release_all()?;
        *self.plan.borrow_mut() = Plan::new(None, RangeSet::new(), self.connections.min_split_bytes);
        self.facts.set(Facts::default());
        self.disk.claimed().map_or(Ok(()), |part| part.start_over())
    }

    pub(crate) async fn notice(&self, message: String) {
        self.reporter.event(RunEvent::Notice(message)).await;
    }

    pub(crate) fn new_worker(&self) -> WorkerId {
        WorkerId(self.next_worker.replace(self.next_worker.get() + 1))
    }

    pub(crate) fn pace(&self) -> Pace {
        self.pace.get()
    }

    pub(crate) fn set_rate(&self, rate: f64) {
        self.pace.set(Pace {
            rate,
            ..self.pace.get()
        });
    }

    /// How many connections the file is worth, and its server is known to allow.
    pub(crate) fn wanted(&self) -> u16 {
        let total = self.plan.borrow().total().unwrap_or(0);
        let cap = self.shared.caps.get(&self.server().access.host);
        wanted(total, self.connections)
            .min(cap.unwrap_or(MAX_CONNECTIONS))
            .max(1)
    }

    /// Remembers that the server allows `connections` logins only.
    pub(crate) fn learn_cap(&self, connections: u16) {
        self.shared.caps.learn(&self.server().access.host, connections);
    }

    /// The next byte that `worker` is to write, and how many may follow.
    pub(crate) fn window(&self, worker: WorkerId) -> (u64, u64) {
        let plan = self.plan.borrow();
        (plan.position(worker), plan.window(worker))
    }

    /// Ends the lease of `worker`.
    pub(crate) fn release(&self, worker: WorkerId) -> Result<(), Failure> {
        let unrecorded = self.plan.borrow_mut().release(worker);
        unrecorded.map_or(Ok(()), |range| self.disk.part().record(range))
    }

    pub(crate) fn release_all(&self) -> Result<(), Failure> {
        let unrecorded = self.plan.borrow_mut().release_all();
        unrecorded
            .into_iter()
            .try_for_each(|range| self.disk.part().record(range))
    }

    /// Writes the next bytes of `worker`'s lease; those that another worker took meanwhile are left out.
    pub(crate) fn write(&self, worker: WorkerId, bytes: &[u8]) -> Result<(), Failure> {
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
    pub(crate) fn count(&self, worker: WorkerId, bytes: usize) {
        self.received.set(self.received.get() + bytes as u64);
        *self.active.borrow_mut().entry(worker).or_default() += bytes as u64;
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.get()
    }

    /// Resets the retry budget if the run has more bytes than ever before, and returns whether it has. Bytes fetched again
    /// after a loss do not count, so a server that repeats the same part cannot keep a run alive.
    pub(crate) fn record_progress(&self) -> bool {
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
    pub(crate) async fn too_slow(&self, worker: WorkerId) -> Failure {
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
                return too_slow(Some(&self.server().access.host), gained / seconds, limit);
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is neither negative nor huge"
    )]
    pub(crate) fn report_progress(&self, rate: f64, rates: &BTreeMap<WorkerId, (f64, u64)>) {
        let plan = self.plan.borrow();
        let url: &SafeUrl = &self.server().access.url;
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

    pub(crate) fn report_stage(&self, stage: Stage) {
        let plan = self.plan.borrow();
        self.reporter.progress(Progress {
            stage,
            total_bytes: plan.total(),
            done_bytes: plan.done_bytes(),
            received_bytes: self.received.get(),
            ..Progress::default()
        });
    }

    /// Starts a sync of the part file on a blocking thread; `None` if it has no journal, since then nothing relies on it.
    pub(crate) fn start_sync(&self) -> Result<Option<JoinHandle<Result<(), Failure>>>, Failure> {
        let part = self.disk.part();
        if let Some(total) = self.plan.borrow().total() {
            part.check_space(total)?;
        }
        Ok(part.has_journal().then(|| spawn_blocking(move || part.sync())))
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
