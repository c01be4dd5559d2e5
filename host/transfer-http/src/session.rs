//! What all connections of a run share, and the small questions they ask of it.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use tokio::task::{JoinHandle, spawn_blocking};
use transfer::{
    ByteRange, ConnectionPlan, Failure, Job, PartFile, Progress, RangeSet, RateLimits, Reporter, RetryBudget, RunEvent,
    Source, Stage, failure::FailureKind,
};

use crate::{
    Shared,
    fetch::Fetcher,
    mirrors::{Mirror, Mirrors},
    place::Place,
    plan::{Pace, Plan, WorkerId},
    run::internal,
    verdict::{self, Facts},
};

/// Stall time while other connections of the run move: what one does not bring, they fetch.
const STALL_BESIDE_OTHERS: Duration = Duration::from_secs(5);

/// What a connection is expected to bring, in bytes per second, before anything has been measured.
const EXPECTED_RATE: f64 = 1_000_000.0;

/// Everything that a run's connections share. It lives on one lane, so plain cells do.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) source: Rc<Source>,
    pub(crate) place: Place,
    pub(crate) connections: ConnectionPlan,
    pub(crate) limits: RateLimits,
    pub(crate) reporter: Reporter,
    pub(crate) fetcher: Fetcher,
    pub(crate) budget: RefCell<RetryBudget>,
    pub(crate) plan: RefCell<Plan>,
    pub(crate) mirrors: RefCell<Mirrors>,
    pub(crate) part: RefCell<Option<Arc<PartFile>>>,
    /// Bytes received in this run, repeats included.
    pub(crate) received: Cell<u64>,
    /// What each worker at work has brought.
    pub(crate) brought: RefCell<BTreeMap<WorkerId, u64>>,
    /// What a connection may be expected to bring.
    pub(crate) pace: Cell<Pace>,
    /// Time from a request to its answer.
    pub(crate) delay: Cell<Duration>,
    /// The server was seen to send the whole file where a part was asked for.
    pub(crate) ignores_ranges: Cell<bool>,
    /// The body under way is the whole file, however long it turns out to be.
    pub(crate) is_whole: Cell<bool>,
    /// The room on the disk being reserved, while bytes already come.
    pub(crate) reserving: RefCell<Option<JoinHandle<Result<(), Failure>>>>,
    /// The media type of the first answer.
    pub(crate) media_type: RefCell<Option<String>>,
    /// The last bytes of a part file that was taken up without a record of this task's: the server confirms them before
    /// the file is believed.
    pub(crate) unconfirmed: Cell<Option<ByteRange>>,
    high_water: Cell<u64>,
    retired: RefCell<BTreeSet<WorkerId>>,
    next_worker: Cell<u32>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, job: Job) -> Result<Self, Failure> {
        let Job {
            mut source,
            target,
            connections,
            limits,
            retry,
            reporter,
            stop: _,
        } = job;
        if source.request.body.is_some() {
            // The body belongs to the first URL's origin like every secret, and without it a mirror has another answer.
            let owner = source.urls[0].origin();
            source.urls.retain(|url| url.origin() == owner);
        }
        let source = Rc::new(source);
        Ok(Self {
            fetcher: Fetcher::new(Arc::clone(&shared), Rc::clone(&source))?,
            budget: RefCell::new(RetryBudget::new(retry)),
            plan: RefCell::new(Plan::new(None, RangeSet::new(), connections.min_split_bytes)),
            mirrors: RefCell::new(Mirrors::new(&source.urls)),
            part: RefCell::new(None),
            received: Cell::new(0),
            brought: RefCell::default(),
            pace: Cell::new(Pace {
                rate: EXPECTED_RATE,
                delay: 0.0,
            }),
            delay: Cell::new(Duration::ZERO),
            ignores_ranges: Cell::new(false),
            is_whole: Cell::new(false),
            reserving: RefCell::new(None),
            media_type: RefCell::new(None),
            unconfirmed: Cell::new(None),
            high_water: Cell::new(0),
            retired: RefCell::default(),
            next_worker: Cell::new(0),
            place: Place::new(&source.urls[0], target, reporter.clone()),
            shared,
            source,
            connections,
            limits,
            reporter,
        })
    }

    /// Forgets every byte and everything known of the file.
    pub(crate) fn start_over(&self) -> Result<(), Failure> {
        self.release_all()?;
        self.unconfirmed.set(None);
        *self.plan.borrow_mut() = Plan::new(None, RangeSet::new(), self.connections.min_split_bytes);
        self.mirrors.borrow_mut().start_over();
        match &*self.part.borrow() {
            Some(part) => part.start_over(),
            None => Ok(()),
        }
    }

    pub(crate) async fn notice(&self, message: String) {
        self.reporter.event(RunEvent::Notice(message)).await;
    }

    /// What is known of the file from the place that the others are compared with.
    pub(crate) fn base_facts(&self) -> Facts {
        let mirrors = self.mirrors.borrow();
        mirrors.get(mirrors.base()).facts.clone()
    }

    /// The part file. Only asked for once there is one.
    pub(crate) fn part(&self) -> Arc<PartFile> {
        Arc::clone(
            self.part
                .borrow()
                .as_ref()
                .expect("bytes come only after a part file was claimed"),
        )
    }

    pub(crate) fn new_worker(&self) -> WorkerId {
        WorkerId(self.next_worker.replace(self.next_worker.get() + 1))
    }

    /// Leases something to `worker`. Returns whether there was anything.
    pub(crate) fn take(&self, worker: WorkerId) -> bool {
        self.plan
            .borrow_mut()
            .take(worker, self.parts(), self.pace.get())
            .is_some()
    }

    /// Into how many parts the file is cut in the first place.
    pub(crate) fn parts(&self) -> u16 {
        self.connections.segments.max(1)
    }

    /// Ends the lease of `worker`.
    pub(crate) fn release(&self, worker: WorkerId) -> Result<(), Failure> {
        let unrecorded = self.plan.borrow_mut().release(worker);
        unrecorded.map_or(Ok(()), |range| self.part().record(range))
    }

    pub(crate) fn release_all(&self) -> Result<(), Failure> {
        let unrecorded = self.plan.borrow_mut().release_all();
        unrecorded.into_iter().try_for_each(|range| self.part().record(range))
    }

    /// Notes that `worker` begins, at `mirror`.
    pub(crate) fn enlist(&self, worker: WorkerId, mirror: usize) {
        self.mirrors.borrow_mut().opened(mirror);
        self.brought.borrow_mut().insert(worker, 0);
    }

    /// Notes that `worker` ended, at `mirror`.
    pub(crate) fn discharge(&self, worker: WorkerId, mirror: usize) {
        self.mirrors.borrow_mut().closed(mirror);
        self.brought.borrow_mut().remove(&worker);
    }

    /// Notes that `worker` wrote the next `bytes` of its lease, brought by `mirror`.
    pub(crate) fn wrote(&self, worker: WorkerId, mirror: usize, bytes: u64) -> Result<(), Failure> {
        self.received.set(self.received.get() + bytes);
        *self.brought.borrow_mut().entry(worker).or_default() += bytes;
        let mut plan = self.plan.borrow_mut();
        let start = plan.position(worker);
        self.mirrors
            .borrow_mut()
            .brought(mirror, ByteRange::new(start, start + bytes));
        match plan.advance(worker, bytes) {
            Some(range) => self.part().record(range),
            None => Ok(()),
        }
    }

    /// Notes that the whole file ends where `worker` is, if its size was not known.
    pub(crate) fn settle_at_position(&self, worker: WorkerId) {
        let mut plan = self.plan.borrow_mut();
        let end = plan.position(worker);
        plan.settle(end);
    }

    pub(crate) fn is_retired(&self, worker: WorkerId) -> bool {
        self.retired.borrow().contains(&worker)
    }

    /// Tells the newest of `workers` beyond `wanted` to end.
    pub(crate) fn retire_surplus(&self, workers: impl Iterator<Item = WorkerId>, wanted: usize) {
        let mut retired = self.retired.borrow_mut();
        let surplus: Vec<_> = workers
            .filter(|worker| !retired.contains(worker))
            .skip(wanted)
            .collect();
        retired.extend(surplus);
    }

    /// Whether the file itself is a web page.
    pub(crate) fn began_as_page(&self) -> bool {
        self.media_type.borrow().as_deref().is_some_and(verdict::is_page_type)
    }

    /// How long a body may bring nothing.
    pub(crate) fn stall(&self) -> Duration {
        let limit = self.shared.config.stall_timeout;
        if self.brought.borrow().len() > 1 {
            limit.min(STALL_BESIDE_OTHERS)
        } else {
            limit
        }
    }

    /// The most connections of this run, by configuration and by what its hosts are known to bear.
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

    /// The place for one of `wanted` connections.
    pub(crate) fn choose_mirror(&self, wanted: u16) -> Option<usize> {
        let is_something_there = {
            let plan = self.plan.borrow();
            plan.total()
                .is_some_and(|total| plan.done().contiguous_end(0) >= total.min(crate::mirrors::SAMPLE_BYTES))
        };
        self.mirrors
            .borrow()
            .choose(wanted, is_something_there, |mirror| self.cap(mirror))
    }

    pub(crate) fn has_other_mirror(&self, mirror: usize) -> bool {
        self.mirrors.borrow().next_after(mirror).is_some()
    }

    /// Stops using a mirror; `is_wrong` says that what it brought is not believed either.
    pub(crate) async fn give_up_mirror(&self, mirror: usize, why: &str, is_wrong: bool) -> Result<(), Failure> {
        let (url, brought) = {
            let mut mirrors = self.mirrors.borrow_mut();
            let url = mirrors.get(mirror).home.clone();
            let brought = mirrors.drop_out(mirror);
            if mirror == mirrors.base()
                && let Some(next) = mirrors.next_after(mirror)
            {
                mirrors.set_base(next);
            }
            (url, brought)
        };
        if is_wrong {
            self.distrust(&brought)?;
        }
        self.notice(format!("{url} is no longer used: {why}")).await;
        Ok(())
    }

    pub(crate) fn distrust(&self, ranges: &RangeSet) -> Result<(), Failure> {
        self.plan.borrow_mut().distrust(ranges);
        ranges.iter().try_for_each(|range| self.part().distrust(range))
    }

    /// Remembers that the host of `mirror` bears no more connections than it has, if it said so.
    pub(crate) fn learn_cap(&self, mirror: usize, failure: &Failure) {
        if matches!(failure.kind, FailureKind::Busy | FailureKind::Forbidden) {
            let mirrors = self.mirrors.borrow();
            let host = mirrors.get(mirror).current.as_url().host_str().map(str::to_owned);
            self.shared
                .caps
                .learn(host.as_deref().unwrap_or(""), mirrors.active_on(host.as_deref()));
        }
    }

    /// Bytes that are there beyond what was ever there before; any refill the budget of retries.
    pub(crate) fn gained(&self) -> u64 {
        let done = self.plan.borrow().done_bytes();
        let gained = done.saturating_sub(self.high_water.get());
        if gained > 0 {
            self.high_water.set(done);
            self.budget.borrow_mut().progressed();
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
    pub(crate) fn tell_progress(&self, rate: f64, connections: usize) {
        let plan = self.plan.borrow();
        self.reporter.progress(Progress {
            stage: Stage::Moving,
            total_bytes: plan.total(),
            done_bytes: plan.done_bytes(),
            received_bytes: self.received.get(),
            bytes_per_second: rate.max(0.0) as u64,
            connections: u16::try_from(connections).unwrap_or(u16::MAX),
            segments: plan.segments().into(),
        });
    }

    /// Fails if there turned out to be no room on the disk.
    pub(crate) fn check_reserved(&self) -> Result<(), Failure> {
        let mut reserving = self.reserving.borrow_mut();
        match reserving.as_mut().and_then(FutureExt::now_or_never) {
            None => Ok(()),
            Some(reserved) => {
                *reserving = None;
                reserved.map_err(|_| internal("reserving space"))?
            }
        }
    }

    /// Starts a sync of the part file off this lane, if its state is kept at all.
    pub(crate) fn start_sync(&self) -> Result<Option<JoinHandle<Result<(), Failure>>>, Failure> {
        let part = self.part();
        if let Some(total) = self.plan.borrow().total() {
            part.check_space(total)?;
        }
        Ok(part.has_journal().then(|| spawn_blocking(move || part.sync())))
    }

    pub(crate) fn tell_stage(&self, stage: Stage) {
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
