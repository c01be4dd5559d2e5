//! State that all connections of a run share, with helpers on it.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    future::pending,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use transfer::{
    ByteRange, ConnectionPlan, Failure, Job, Progress, RangeSet, RateLimits, Reporter, RunEvent, SPEED_WINDOW,
    ServerView, Source, Stage,
    failure::FailureKind,
    run::{Destination, Disk, Pace, Plan, Retries, SAMPLE_BYTES, SourceReports, WorkerId, upkeep::too_slow},
};

use crate::{
    answer::{
        name,
        verdict::{self, Facts},
    },
    client::{fetch::Fetcher, shared::Shared},
    run::{
        active::ActiveWorkers,
        mirrors::{Mirror, Mirrors},
    },
};

/// Stall timeout while other connections of the run make progress: they can fetch the stalled range.
const STALL_BESIDE_OTHERS: Duration = Duration::from_secs(5);

/// Assumed rate of a connection, in bytes per second, before a measurement.
const EXPECTED_RATE: f64 = 1_000_000.0;

/// It stays on one lane, so plain cells suffice.
pub(crate) struct Run {
    pub(crate) shared: Arc<Shared>,
    pub(crate) source: Rc<Source>,
    pub(crate) connections: ConnectionPlan,
    pub(crate) limits: RateLimits,
    pub(crate) reporter: Reporter,
    pub(crate) fetcher: Fetcher,
    pub(crate) retries: Retries,
    pub(crate) sources: SourceReports,
    pub(crate) plan: RefCell<Plan>,
    pub(crate) mirrors: RefCell<Mirrors>,
    pub(crate) disk: Disk,
    pub(crate) flow: Flow,
    pub(crate) server: Seen,
    pub(crate) active: ActiveWorkers,
    /// How often wrong pieces were fetched again although no mirror could be dropped for them.
    pub(crate) repairs: Cell<u32>,
}

/// Rates and latencies.
pub(crate) struct Flow {
    /// Bytes received in this run, repeats included.
    pub(crate) received: Cell<u64>,
    /// The expected pace of a connection.
    pub(crate) pace: Cell<Pace>,
    /// Time from a request to its response.
    pub(crate) delay: Cell<Duration>,
    /// The most valid bytes at any time so far: only progress beyond it refills the retry budget.
    high_water: Cell<u64>,
}

/// Observations on the server's responses.
#[derive(Default)]
pub(crate) struct Seen {
    /// The server sent the whole file although a range was requested.
    pub(crate) ignores_ranges: Cell<bool>,
    /// The current body is the whole file, of whatever length.
    pub(crate) is_whole: Cell<bool>,
    /// The media type of the first response.
    pub(crate) media_type: RefCell<Option<String>>,
}

impl Run {
    pub(crate) fn new(shared: Arc<Shared>, job: Job) -> Result<Self, Failure> {
        let Job {
            mut source,
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
        if source.request.body.is_some() {
            // A request body is a secret of the first URL's origin, and without it a mirror would send something else.
            let owner = source.urls[0].origin();
            source.urls.retain(|url| url.origin() == owner);
        }
        let source = Rc::new(source);
        Ok(Self {
            fetcher: Fetcher::new(Arc::clone(&shared), Rc::clone(&source))?,
            retries: Retries::new(retry, reporter.clone()),
            sources: SourceReports::new(source.urls.len(), reporter.clone()),
            plan: RefCell::new(Plan::new(None, RangeSet::new(), connections.min_split_bytes)),
            mirrors: RefCell::new(Mirrors::new(&source.urls, source.pieces.is_some())),
            disk: Disk::new(Destination::new(
                &source.urls[0],
                name::of_url(&source.urls[0]),
                target,
                reporter.clone(),
            )),
            flow: Flow {
                received: Cell::new(0),
                pace: Cell::new(Pace {
                    rate: EXPECTED_RATE,
                    delay: 0.0,
                }),
                delay: Cell::new(Duration::ZERO),
                high_water: Cell::new(0),
            },
            server: Seen::default(),
            active: ActiveWorkers::default(),
            repairs: Cell::new(0),
            shared,
            source,
            connections,
            limits,
            reporter,
        })
    }

    /// Discards every byte and all facts of the file.
    pub(crate) fn start_over(&self) -> Result<(), Failure> {
        self.release_all()?;
        self.disk.unconfirmed.set(None);
        *self.plan.borrow_mut() = Plan::new(None, RangeSet::new(), self.connections.min_split_bytes);
        self.mirrors.borrow_mut().start_over();
        self.disk.claimed().map_or(Ok(()), |part| part.start_over())
    }

    pub(crate) async fn notice(&self, message: String) {
        self.reporter.event(RunEvent::Notice(message)).await;
    }

    /// The facts from the mirror that the others are compared with.
    pub(crate) fn base_facts(&self) -> Facts {
        let mirrors = self.mirrors.borrow();
        mirrors.get(mirrors.base()).facts.clone()
    }

    /// Leases something to `worker`. Returns whether there was anything.
    pub(crate) fn take(&self, worker: WorkerId) -> bool {
        self.plan
            .borrow_mut()
            .take(worker, self.parts(), self.flow.pace.get())
            .is_some()
    }

    /// Into how many parts the file is split initially.
    pub(crate) fn parts(&self) -> u16 {
        self.connections.segments.max(1)
    }

    /// Ends the lease of `worker`.
    pub(crate) fn release(&self, worker: WorkerId) -> Result<(), Failure> {
        let unrecorded = self.plan.borrow_mut().release(worker);
        unrecorded.map_or(Ok(()), |range| self.disk.part().record(range))
    }

    pub(crate) fn release_all(&self) -> Result<(), Failure> {
        let unrecorded = self.plan.borrow_mut().release_all();
        self.disk.record_all(unrecorded)
    }

    pub(crate) fn add_worker(&self, worker: WorkerId, mirror: usize) {
        self.mirrors.borrow_mut().opened(mirror);
        self.active.received.borrow_mut().insert(worker, 0);
    }

    pub(crate) fn remove_worker(&self, worker: WorkerId, mirror: usize) {
        self.mirrors.borrow_mut().closed(mirror);
        self.active.received.borrow_mut().remove(&worker);
        self.active.served.borrow_mut().remove(&worker);
    }

    /// Accounts for the next `bytes` of `worker`'s lease, received from `mirror`.
    pub(crate) fn wrote(&self, worker: WorkerId, mirror: usize, bytes: u64) -> Result<(), Failure> {
        self.flow.received.set(self.flow.received.get() + bytes);
        *self.active.received.borrow_mut().entry(worker).or_default() += bytes;
        let mut plan = self.plan.borrow_mut();
        let start = plan.position(worker);
        self.mirrors
            .borrow_mut()
            .received(mirror, ByteRange::new(start, start + bytes));
        match plan.advance(worker, bytes) {
            Some(range) => self.disk.part().record(range),
            None => Ok(()),
        }
    }

    /// Resolves once `worker` has received no more than the lowest speed allows over the last [`SPEED_WINDOW`]; never
    /// without such a limit. The time before its server begins to send does not count.
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
            let Some(mirror) = self.active.served.borrow().get(&worker).copied() else {
                continue;
            };
            let total = self.active.received.borrow().get(&worker).copied().unwrap_or(0);
            totals.push_back(total);
            if totals.len() as u64 <= seconds {
                continue;
            }
            let gained = total - totals.pop_front().unwrap_or(0);
            if gained <= limit.saturating_mul(seconds) {
                let mirrors = self.mirrors.borrow();
                let host = mirrors.get(mirror).current.as_url().host_str();
                return too_slow(host, gained / seconds, limit);
            }
        }
    }

    /// Sets the size of the file to the position of `worker`, if it was unknown.
    pub(crate) fn settle_at_position(&self, worker: WorkerId) {
        let mut plan = self.plan.borrow_mut();
        let end = plan.position(worker);
        plan.settle(end);
    }

    /// Whether the file itself is a web page.
    pub(crate) fn began_as_page(&self) -> bool {
        self.server
            .media_type
            .borrow()
            .as_deref()
            .is_some_and(verdict::is_page_type)
    }

    /// The stall timeout of a body.
    pub(crate) fn stall(&self) -> Duration {
        let limit = self.shared.config.stall_timeout;
        if self.active.received.borrow().len() > 1 {
            limit.min(STALL_BESIDE_OTHERS)
        } else {
            limit
        }
    }

    /// The most connections of this run, by configuration and by the known limits of its hosts.
    pub(crate) fn ceiling(&self) -> u16 {
        let mirrors = self.mirrors.borrow();
        let sum: u16 = (0..self.source.urls.len())
            .map(|index| self.cap(mirrors.get(index)))
            .fold(0, u16::saturating_add);
        let most = if self.connections.segments == 0 {
            self.connections.per_host
        } else {
            self.connections.segments
        };
        most.min(sum).max(1)
    }

    fn cap(&self, mirror: &Mirror) -> u16 {
        let host = mirror.current.as_url().host_str().unwrap_or("");
        self.shared
            .caps
            .get(host)
            .map_or(self.connections.per_host, |cap| cap.min(self.connections.per_host))
            .max(1)
    }

    /// The mirror for the next of `wanted` connections.
    pub(crate) fn choose_mirror(&self, wanted: u16) -> Option<usize> {
        let is_something_there = {
            let plan = self.plan.borrow();
            plan.total()
                .is_some_and(|total| plan.done().contiguous_end(0) >= total.min(SAMPLE_BYTES))
        };
        self.mirrors
            .borrow()
            .choose(wanted, is_something_there, |mirror| self.cap(mirror))
    }

    pub(crate) fn has_other_mirror(&self, mirror: usize) -> bool {
        self.mirrors.borrow().next_after(mirror).is_some()
    }

    /// Stops using a mirror; `is_wrong` discards what it delivered, too.
    pub(crate) async fn give_up_mirror(&self, mirror: usize, why: Failure, is_wrong: bool) -> Result<(), Failure> {
        let (url, received) = {
            let mut mirrors = self.mirrors.borrow_mut();
            let url = mirrors.get(mirror).home.clone();
            let received = mirrors.drop_mirror(mirror);
            if mirror == mirrors.base()
                && let Some(next) = mirrors.next_after(mirror)
            {
                mirrors.set_base(next);
            }
            (url, received)
        };
        if is_wrong {
            self.distrust(&received)?;
        }
        self.sources.dropped(&url, why).await;
        Ok(())
    }

    /// Reports a failure of `mirror`, which stays in use.
    pub(crate) async fn mirror_failed(&self, mirror: usize, failure: &Failure) {
        let url = self.mirrors.borrow().get(mirror).home.clone();
        self.sources.failed(&url, failure).await;
    }

    pub(crate) fn distrust(&self, ranges: &RangeSet) -> Result<(), Failure> {
        self.plan.borrow_mut().distrust(ranges);
        ranges.iter().try_for_each(|range| self.disk.part().distrust(range))
    }

    /// Lowers the limit of connections to the host of `mirror` to those that it has now, if the failure says that they
    /// are too many.
    pub(crate) fn learn_cap(&self, mirror: usize, failure: &Failure) {
        if matches!(failure.kind, FailureKind::Busy | FailureKind::Forbidden) {
            let mirrors = self.mirrors.borrow();
            let host = mirrors.get(mirror).current.as_url().host_str().map(str::to_owned);
            self.shared
                .caps
                .learn(host.as_deref().unwrap_or(""), mirrors.active_on(host.as_deref()));
        }
    }

    /// Resets the retry budget if the run has more bytes than ever before, and returns how many more since the last
    /// call. Bytes fetched again after a loss do not count, so a server that repeats the same part cannot keep a run
    /// alive.
    pub(crate) fn record_progress(&self) -> u64 {
        let done = self.plan.borrow().done_bytes();
        let gained = done.saturating_sub(self.flow.high_water.get());
        if gained > 0 {
            self.flow.high_water.set(done);
            self.retries.progressed();
        }
        gained
    }

    pub(crate) fn missing(&self) -> u64 {
        let plan = self.plan.borrow();
        plan.total().unwrap_or(u64::MAX).saturating_sub(plan.done_bytes())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is neither negative nor huge"
    )]
    pub(crate) fn report_progress(&self, rate: f64, rates: &BTreeMap<WorkerId, (f64, u64)>) {
        let plan = self.plan.borrow();
        let served = self.active.served.borrow();
        let mirrors = self.mirrors.borrow();
        let mut servers = BTreeMap::<usize, Vec<u64>>::new();
        for (worker, mirror) in served.iter() {
            let rate = rates.get(worker).map_or(0.0, |(rate, _)| *rate);
            servers.entry(*mirror).or_default().push(rate.max(0.0) as u64);
        }
        let server = |(mirror, rates)| {
            let mirror = mirrors.get(mirror);
            ServerView {
                url: mirror.home.clone(),
                current: mirror.current.clone(),
                rates,
            }
        };
        self.reporter.progress(Progress {
            stage: Stage::Moving,
            total_bytes: plan.total(),
            done_bytes: plan.done_bytes(),
            received_bytes: self.flow.received.get(),
            bytes_per_second: rate.max(0.0) as u64,
            connections: u16::try_from(served.len()).unwrap_or(u16::MAX),
            segments: plan.segments().into(),
            servers: servers.into_iter().map(server).collect(),
            ..Progress::default()
        });
    }

    pub(crate) fn report_stage(&self, stage: Stage) {
        let plan = self.plan.borrow();
        self.reporter.progress(Progress {
            stage,
            total_bytes: plan.total(),
            done_bytes: plan.done_bytes(),
            received_bytes: self.flow.received.get(),
            ..Progress::default()
        });
    }
}
