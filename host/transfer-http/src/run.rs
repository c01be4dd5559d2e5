//! One run, start to end: open the source, move the bytes, prove them, give the file its name.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use data_encoding::HEXLOWER;
use futures_util::FutureExt;
use sha2::{Digest as _, Sha256};
use tokio::task::{JoinHandle, spawn_blocking};
use transfer::{
    ByteRange, Checksum, ConnectionPlan, Failure, Finished, Job, Outcome, PartFile, Progress, RangeSet, RateLimits,
    Reporter, RetryBudget, RunEvent, Source, Stage, Target, failure::FailureKind,
};

use crate::{
    Shared,
    crew::{Begun, Crew, Ended},
    fetch::Fetcher,
    mirrors::{Mirror, Mirrors},
    opening::Opening,
    plan::{Pace, Plan, WorkerId},
    verdict,
    worker::{Worker, WorkerError},
};

/// Times a file may turn out to have changed before the run gives up on getting one version whole.
const MAX_CHANGES: u32 = 3;

/// Stall time while other connections of the run move: what one does not bring, they fetch.
const STALL_BESIDE_OTHERS: Duration = Duration::from_secs(5);

/// What a connection is expected to bring, in bytes per second, before anything has been measured.
const EXPECTED_RATE: f64 = 1_000_000.0;

/// Everything that a run's connections share. It lives on one lane, so plain cells do.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) source: Rc<Source>,
    /// SHA-256 of the first URL: names the source without telling it.
    pub(crate) source_id: String,
    pub(crate) target: Target,
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
    high_water: Cell<u64>,
    retired: RefCell<BTreeSet<WorkerId>>,
    next_worker: Cell<u32>,
}

/// How the cancellable part of a run ended.
enum Moved {
    /// Every byte is on the disk and proved.
    Proved,
    /// There was nothing to do.
    Nothing(Outcome),
}

/// Runs `job` on this lane.
pub(crate) async fn run(shared: Arc<Shared>, job: Job) -> Outcome {
    let stop = job.stop.clone();
    let session = match Session::new(shared, job) {
        Ok(session) => session,
        Err(failure) => return Outcome::Failed(failure),
    };
    let moved = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        moved = session.transfer() => Some(moved),
    };
    match moved {
        None => {
            session.save().await;
            Outcome::Stopped
        }
        Some(Ok(Moved::Nothing(outcome))) => outcome,
        Some(Ok(Moved::Proved)) => match session.finish().await {
            Ok(finished) => Outcome::Finished(finished),
            Err(failure) => session.fail(failure).await,
        },
        Some(Err(failure)) => session.fail(failure).await,
    }
}

impl Session {
    fn new(shared: Arc<Shared>, job: Job) -> Result<Self, Failure> {
        let Job { source, target, connections, limits, retry, reporter, stop: _ } = job;
        let source = Rc::new(source);
        let source_id = HEXLOWER.encode(&Sha256::digest(source.urls[0].expose()));
        Ok(Self {
            fetcher: Fetcher::new(Arc::clone(&shared), Rc::clone(&source))?,
            budget: RefCell::new(RetryBudget::new(retry)),
            plan: RefCell::new(Plan::new(None, RangeSet::new(), connections.min_split_bytes)),
            mirrors: RefCell::new(Mirrors::new(&source.urls)),
            part: RefCell::new(None),
            received: Cell::new(0),
            brought: RefCell::default(),
            pace: Cell::new(Pace { rate: EXPECTED_RATE, delay: 0.0 }),
            delay: Cell::new(Duration::ZERO),
            ignores_ranges: Cell::new(false),
            is_whole: Cell::new(false),
            reserving: RefCell::new(None),
            media_type: RefCell::new(None),
            high_water: Cell::new(0),
            retired: RefCell::default(),
            next_worker: Cell::new(0),
            shared,
            source,
            source_id,
            target,
            connections,
            limits,
            reporter,
        })
    }

    /// Gets every byte and proves it. May be dropped at any await: what was written is recorded by [`Session::save`].
    async fn transfer(&self) -> Result<Moved, Failure> {
        let mut changes = 0;
        self.transfer_through(&mut changes).await.map_err(|failure| {
            if changes < MAX_CHANGES || !failure.kind.is_transient() || failure.kind == FailureKind::Changed {
                return failure;
            }
            let message = format!("the file keeps changing at the server, and did not come in one piece either: {failure}");
            Failure::new(FailureKind::Changed, message)
        })
    }

    /// [`Session::transfer`], counting how often the file turned out to have changed.
    async fn transfer_through(&self, changes: &mut u32) -> Result<Moved, Failure> {
        loop {
            let begun = match self.open_patiently().await? {
                Opening::Outcome(outcome) => return Ok(Moved::Nothing(outcome)),
                Opening::Complete => None,
                Opening::Begun(begun) => Some(begun),
                Opening::Again => continue,
                Opening::Changed(why) => {
                    self.note_change(changes, &why).await?;
                    continue;
                }
            };
            if let Some(begun) = begun {
                match self.move_all(begun).await? {
                    Ended::Complete => {}
                    Ended::Changed(why) => {
                        self.note_change(changes, &why).await?;
                        continue;
                    }
                    Ended::StartOver(wait) => {
                        tokio::time::sleep(wait).await;
                        self.start_over()?;
                        continue;
                    }
                }
            }
            if self.prove().await? {
                return Ok(Moved::Proved);
            }
        }
    }

    async fn move_all(&self, begun: Begun) -> Result<Ended, Failure> {
        let ended = Crew::new(self, begun).run().await;
        self.release_all()?;
        ended
    }

    async fn note_change(&self, changes: &mut u32, why: &str) -> Result<(), Failure> {
        *changes += 1;
        if *changes > MAX_CHANGES {
            let message = format!("the file keeps changing at the server ({why}); it was started over {MAX_CHANGES} times");
            return Err(Failure::new(FailureKind::Changed, message));
        }
        self.notice(format!("the file changed at the server ({why}): starting over")).await;
        if *changes == MAX_CHANGES {
            // One response is of one version, whatever the server says between two.
            self.ignores_ranges.set(true);
        }
        self.start_over()
    }

    /// Forgets every byte and everything known of the file.
    pub(crate) fn start_over(&self) -> Result<(), Failure> {
        self.release_all()?;
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

    /// The part file. Only asked for once there is one.
    pub(crate) fn part(&self) -> Arc<PartFile> {
        Arc::clone(self.part.borrow().as_ref().expect("bytes come only after a part file was claimed"))
    }

    pub(crate) fn new_worker(&self) -> WorkerId {
        WorkerId(self.next_worker.replace(self.next_worker.get() + 1))
    }

    /// Leases something to `worker`. Returns whether there was anything.
    pub(crate) fn take(&self, worker: WorkerId) -> bool {
        self.plan.borrow_mut().take(worker, self.parts(), self.pace.get()).is_some()
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

    fn release_all(&self) -> Result<(), Failure> {
        let unrecorded = self.plan.borrow_mut().release_all();
        unrecorded.into_iter().try_for_each(|range| self.part().record(range))
    }

    /// Notes that `worker` wrote the next `bytes` of its lease, brought by `mirror`.
    pub(crate) fn wrote(&self, worker: WorkerId, mirror: usize, bytes: u64) -> Result<(), Failure> {
        self.received.set(self.received.get() + bytes);
        *self.brought.borrow_mut().entry(worker).or_default() += bytes;
        let mut plan = self.plan.borrow_mut();
        let start = plan.position(worker);
        self.mirrors.borrow_mut().brought(mirror, ByteRange::new(start, start + bytes));
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
        let surplus: Vec<_> = workers.filter(|worker| !retired.contains(worker)).skip(wanted).collect();
        retired.extend(surplus);
    }

    /// Whether the file itself is a web page.
    pub(crate) fn began_as_page(&self) -> bool {
        self.media_type.borrow().as_deref().is_some_and(verdict::is_page_type)
    }

    /// How long a body may bring nothing.
    pub(crate) fn stall(&self) -> Duration {
        let limit = self.shared.config.stall_timeout;
        if self.brought.borrow().len() > 1 { limit.min(STALL_BESIDE_OTHERS) } else { limit }
    }

    /// The most connections of this run, by configuration and by what its hosts are known to bear.
    pub(crate) fn ceiling(&self) -> u16 {
        let mirrors = self.mirrors.borrow();
        let sum: u16 = (0..self.source.urls.len()).map(|index| self.cap(mirrors.get(index))).fold(0, u16::saturating_add);
        let most = if self.connections.segments == 0 { self.connections.per_host } else { self.connections.segments };
        most.min(sum).max(1)
    }

    fn cap(&self, mirror: &Mirror) -> u16 {
        let host = mirror.current.as_url().host_str().unwrap_or("");
        self.shared.caps.get(host).map_or(self.connections.per_host, |cap| cap.min(self.connections.per_host)).max(1)
    }

    /// The place for one of `wanted` connections.
    pub(crate) fn choose_mirror(&self, wanted: u16) -> Option<usize> {
        let is_something_there = {
            let plan = self.plan.borrow();
            plan.total().is_some_and(|total| plan.done().contiguous_end(0) >= total.min(crate::mirrors::SAMPLE_BYTES))
        };
        self.mirrors.borrow().choose(wanted, is_something_there, |mirror| self.cap(mirror))
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

    fn distrust(&self, ranges: &RangeSet) -> Result<(), Failure> {
        self.plan.borrow_mut().distrust(ranges);
        ranges.iter().try_for_each(|range| self.part().distrust(range))
    }

    /// Remembers that the host of `mirror` bears no more connections than it has, if it said so.
    pub(crate) fn learn_cap(&self, mirror: usize, failure: &Failure) {
        if matches!(failure.kind, FailureKind::Busy | FailureKind::Forbidden) {
            let mirrors = self.mirrors.borrow();
            let host = mirrors.get(mirror).current.as_url().host_str().map(str::to_owned);
            self.shared.caps.learn(host.as_deref().unwrap_or(""), mirrors.active_on(host.as_deref()));
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

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is neither negative nor huge")]
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

    /// Proves the complete bytes. `false` means that some turned out wrong and are to be fetched again.
    async fn prove(&self) -> Result<bool, Failure> {
        self.tell_stage(Stage::Verifying);
        let reserving = self.reserving.borrow_mut().take();
        if let Some(reserving) = reserving {
            reserving.await.map_err(|_| internal("reserving space"))??;
        }
        match &self.source.checksum {
            Some(wanted) => self.prove_checksum(wanted).await,
            None => self.prove_mirrors().await,
        }
    }

    async fn prove_checksum(&self, wanted: &Checksum) -> Result<bool, Failure> {
        let found = hash(self.part(), wanted.clone()).await?;
        if found == *wanted {
            return Ok(true);
        }
        let brought = self.mirrors.borrow_mut().brought_by_others();
        if brought.is_empty() {
            let part = self.part();
            part.discard();
            return Err(Failure::new(
                FailureKind::ChecksumMismatch,
                format!("the {} of what came is {}, not {}; it was deleted", wanted.algorithm().name(), found.hex(), wanted.hex()),
            ));
        }
        self.notice("the checksum does not match: fetching again what came from mirrors".to_owned()).await;
        for mirror in 0..self.source.urls.len() {
            if mirror != self.mirrors.borrow().base() {
                self.mirrors.borrow_mut().drop_out(mirror);
            }
        }
        self.distrust(&brought)?;
        Ok(false)
    }

    /// Compares a sample of what each mirror brought with the first source.
    async fn prove_mirrors(&self) -> Result<bool, Failure> {
        let samples = self.mirrors.borrow().samples();
        let base = self.mirrors.borrow().base();
        let mut is_proved = true;
        for (mirror, sample) in samples {
            if self.mirrors.borrow().has_base_tag(mirror) {
                continue;
            }
            let comparing = Worker { session: self, id: self.new_worker(), mirror: base };
            match comparing.is_equal(sample).await {
                Ok(true) => {}
                Ok(false) | Err(WorkerError::Changed(_)) => {
                    self.give_up_mirror(mirror, "its bytes differ from those of the first source", true).await?;
                    is_proved = false;
                }
                Err(WorkerError::Failed(failure)) => return Err(failure),
                Err(WorkerError::IgnoresRanges) => {
                    return Err(Failure::new(FailureKind::RangeMismatch, "the mirrors could not be compared"));
                }
            }
        }
        Ok(is_proved)
    }

    fn tell_stage(&self, stage: Stage) {
        let plan = self.plan.borrow();
        self.reporter.progress(Progress {
            stage,
            total_bytes: plan.total(),
            done_bytes: plan.done_bytes(),
            received_bytes: self.received.get(),
            ..Progress::default()
        });
    }

    /// Gives the proved file its name.
    async fn finish(&self) -> Result<Finished, Failure> {
        let part = self.part();
        let size_bytes = self.plan.borrow().done_bytes();
        let mirrors = self.mirrors.borrow();
        let modified = mirrors.get(mirrors.base()).facts.last_modified.clone();
        drop(mirrors);
        let modified =
            modified.filter(|_| self.target.use_server_time).and_then(|date| httpdate::parse_http_date(&date).ok());
        let path = blocking("finishing", move || part.finish(size_bytes, modified)).await?;
        self.tell_stage(Stage::Verifying);
        Ok(Finished { path, size_bytes, received_bytes: self.received.get() })
    }

    /// Ends the run as failed, keeping what a later one can go on from.
    async fn fail(&self, mut failure: Failure) -> Outcome {
        if self.save().await {
            let done = self.plan.borrow().done_bytes();
            failure.message.push_str(&format!(" ({done} bytes are kept and can be resumed)"));
        }
        Outcome::Failed(failure)
    }

    /// Keeps what a later run can go on from, on the disk, and removes what none can. Returns whether anything is kept.
    async fn save(&self) -> bool {
        let Some(part) = self.part.borrow().clone() else { return false };
        let is_recorded = self.release_all().is_ok();
        if !part.has_journal() || self.plan.borrow().done_bytes() == 0 {
            part.discard();
            return false;
        }
        // On a full or failing disk the journal holds what could be recorded; more cannot be done.
        let is_synced = blocking("saving", move || part.sync()).await;
        if let Err(failure) = &is_synced {
            tracing::warn!(%failure, "the state of a stopped download is not fully on the disk");
        }
        is_recorded
    }
}

/// Hashes the part file off this lane; stops early if nobody waits any more.
async fn hash(part: Arc<PartFile>, wanted: Checksum) -> Result<Checksum, Failure> {
    struct SetOnDrop(Arc<AtomicBool>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_abandoned = Arc::new(AtomicBool::new(false));
    let _abandon = SetOnDrop(Arc::clone(&is_abandoned));
    blocking("hashing", move || {
        let mut reader = StoppableReader { reader: part.reader(), is_abandoned };
        Checksum::compute(wanted.algorithm(), &mut reader).map_err(|error| Failure::disk("read", part.path(), &error))
    })
    .await
}

struct StoppableReader<R> {
    reader: R,
    is_abandoned: Arc<AtomicBool>,
}

impl<R: std::io::Read> std::io::Read for StoppableReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.is_abandoned.load(Ordering::Relaxed) { Ok(0) } else { self.reader.read(bytes) }
    }
}

/// Runs `work` where it may block for long.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work).await.map_err(|_| internal(what))?
}

fn internal(what: &str) -> Failure {
    Failure::new(FailureKind::Internal, format!("{what} stopped through a defect"))
}

/// An outcome for a file that is already there.
pub(crate) fn already_complete(path: PathBuf, size_bytes: u64) -> Outcome {
    Outcome::Finished(Finished { path, size_bytes, received_bytes: 0 })
}
