//! The shell around the heart: gives it time and what happens, and performs the effects it answers with.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use store::{Store, Vault};
use tokio::{
    sync::{broadcast, mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::{Job, Outcome, Progress, RateLimiter, RateLimits, Recorded, Report, Reporter, RunEvent, Transport};

use crate::{
    config::Config,
    error::{CommandError, StartError},
    event::{EVENT_BACKLOG, Event},
    file,
    handle::{LiveRuns, Message, Shared, ShutdownReport},
    id::{QueueId, RunId, TaskId, Timestamp},
    runner::{self, Runner},
    settings::VersionedSettings,
    spec,
    state::{Effect, FileState, Input, LimitScope, Reply, Resolve, Row, Start, State},
    store as rows,
};

mod batch;

use batch::{Answer, Batch};

/// Commands that may wait; whoever comes after waits to hand its command over.
const MESSAGE_BACKLOG: usize = 1024;

/// Signals that may wait; a run that has one more to tell waits, which slows nothing but itself.
const SIGNAL_BACKLOG: usize = 1024;

/// The most messages taken in before their rows are handed to the store together.
const MAX_BATCH: usize = 512;

/// How long the clock may be trusted while a schedule is on: it can be set, and it stands still while the machine
/// sleeps.
const CLOCK_CHECK: Duration = Duration::from_mins(1);

/// How long after a failed save the next is tried.
const SAVE_AGAIN: Duration = Duration::from_secs(5);

/// How long runs may take to stop when the last handle is dropped without a shutdown.
const DROP_GRACE: Duration = Duration::from_secs(5);

/// How long starting may wait until what a crash cut short is settled. A disk that does not answer in that time holds up
/// its own tasks only.
const SETTLING: Duration = Duration::from_secs(5);

/// What comes back from what the driver spawned.
pub(crate) enum Signal {
    /// A run tells something.
    Told(TaskId, RunId, Report),
    /// A run ended, with its last progress.
    Ended(TaskId, RunId, Box<Outcome>, Box<Progress>),
    /// A job ended (a save, a rename, a look at files), and this follows.
    Settled(Vec<Input>, Option<Answer>),
}

/// A live run, as the driver holds it.
struct LiveRun {
    task: TaskId,
    stop: CancellationToken,
    limiter: RateLimiter,
    progress: watch::Receiver<Progress>,
}

/// What the loop woke up for.
enum Turn {
    Messages(Vec<Message>),
    Signals(Vec<Signal>),
    Timer,
}

/// A shutdown under way.
struct Closing {
    deadline: Instant,
    report: ShutdownReport,
    replies: Vec<oneshot::Sender<ShutdownReport>>,
}

struct Driver {
    config: Config,
    store: Store,
    vault: Arc<Vault>,
    transports: HashMap<&'static str, Arc<dyn Transport>>,
    state: State,
    messages: mpsc::Receiver<Message>,
    has_handles: bool,
    signals: mpsc::Receiver<Signal>,
    /// Given to whatever is spawned.
    signal: mpsc::Sender<Signal>,
    events: broadcast::Sender<(u64, Event)>,
    sequence: Arc<AtomicU64>,
    runs: HashMap<RunId, LiveRun>,
    /// Runs whose resolver is being asked.
    resolving: HashMap<RunId, CancellationToken>,
    published_runs: watch::Sender<Arc<LiveRuns>>,
    published_settings: watch::Sender<VersionedSettings>,
    global_limit: RateLimiter,
    queue_limits: HashMap<QueueId, RateLimiter>,
    tracker: TaskTracker,
    cut: CancellationToken,
    /// Callers whose task's file is being renamed.
    renames: HashMap<TaskId, Answer>,
    /// Spawned jobs that have not settled.
    jobs: usize,
    /// When to sample progress next; only while anything runs.
    sample_at: Option<Instant>,
    checkpoint_at: Instant,
    save_again_at: Option<Instant>,
    closing: Option<Closing>,
    /// Dropped once what a crash cut short is settled.
    settling: Option<oneshot::Sender<()>>,
}

/// Reads the rows, starts the loop, and waits until what a crash cut short is settled.
pub(crate) async fn start(
    config: Config,
    store: Store,
    vault: Arc<Vault>,
    transports: Vec<Arc<dyn Transport>>,
) -> Result<Shared, StartError> {
    spec::validate_dir(&config.download_dir).map_err(StartError::DownloadDir)?;
    let transports = by_scheme(transports)?;
    let mut schemes: Vec<&'static str> = transports.keys().copied().collect();
    schemes.sort_unstable();
    let loaded = rows::load(&store, &vault).await?;
    let mut effects = Vec::new();
    let state = State::load(&config.download_dir, config.system_proxy.clone(), loaded, &mut effects);
    let (message_sender, messages) = mpsc::channel(MESSAGE_BACKLOG);
    let (signal, signals) = mpsc::channel(SIGNAL_BACKLOG);
    let (events, _) = broadcast::channel(EVENT_BACKLOG);
    let (published_runs, runs) = watch::channel(Arc::default());
    let (published_settings, settings) = watch::channel(state.settings().clone());
    let sequence = Arc::new(AtomicU64::new(0));
    let tracker = TaskTracker::new();
    let shared = Shared {
        messages: message_sender,
        events: events.downgrade(),
        sequence: Arc::clone(&sequence),
        runs,
        settings,
        schemes: schemes.into(),
        resolver: config.resolver.clone(),
        adopts: config.adopts,
        tracker: tracker.clone(),
    };
    let (settling, settled) = oneshot::channel();
    let driver = Driver {
        global_limit: RateLimiter::new(state.settings().settings.speed_limit_bytes),
        config,
        store,
        vault,
        transports,
        state,
        messages,
        has_handles: true,
        signals,
        signal,
        events,
        sequence,
        runs: HashMap::new(),
        resolving: HashMap::new(),
        published_runs,
        published_settings,
        queue_limits: HashMap::new(),
        tracker: tracker.clone(),
        cut: CancellationToken::new(),
        renames: HashMap::new(),
        jobs: 0,
        sample_at: None,
        checkpoint_at: Instant::now(),
        save_again_at: None,
        closing: None,
        settling: Some(settling),
    };
    tracker.spawn(driver.drive(effects));
    if tokio::time::timeout(SETTLING, settled).await.is_err() {
        tracing::warn!("the files of some tasks cannot be looked at yet; these tasks wait");
    }
    Ok(shared)
}

fn by_scheme(transports: Vec<Arc<dyn Transport>>) -> Result<HashMap<&'static str, Arc<dyn Transport>>, StartError> {
    let mut found = HashMap::new();
    for transport in transports {
        for scheme in transport.schemes() {
            if found.insert(*scheme, Arc::clone(&transport)).is_some() {
                return Err(StartError::Scheme(scheme));
            }
        }
    }
    Ok(found)
}

impl Driver {
    async fn drive(mut self, effects: Vec<Effect>) {
        let mut batch = Batch::default();
        for effect in effects {
            self.perform(effect, &mut batch);
        }
        self.tick(&mut batch);
        self.commit(batch).await;
        while !self.is_done() {
            self.settling.take_if(|_| !self.state.is_settling());
            let mut batch = Batch::default();
            match self.next_turn().await {
                Turn::Messages(messages) => messages.into_iter().for_each(|message| self.heed(message, &mut batch)),
                Turn::Signals(signals) => signals.into_iter().for_each(|signal| self.hear(signal, &mut batch)),
                Turn::Timer => self.tick(&mut batch),
            }
            self.commit(batch).await;
        }
        if let Some(closing) = self.closing.take() {
            self.tracker.close();
            for reply in closing.replies {
                let _nobody_waits = reply.send(closing.report.clone());
            }
        }
    }

    async fn next_turn(&mut self) -> Turn {
        let mut messages = Vec::new();
        let mut signals = Vec::new();
        let deadline = self.deadline();
        tokio::select! {
            count = self.messages.recv_many(&mut messages, MAX_BATCH), if self.has_handles => {
                if count == 0 {
                    // Every handle is gone: nobody is left to ask for a shutdown.
                    self.has_handles = false;
                    let (nobody, _) = oneshot::channel();
                    messages.push(Message::Shutdown(DROP_GRACE, nobody));
                }
                Turn::Messages(messages)
            }
            _ = self.signals.recv_many(&mut signals, MAX_BATCH) => Turn::Signals(signals),
            () = until(deadline) => Turn::Timer,
        }
    }

    fn is_done(&self) -> bool {
        self.closing.is_some() && self.runs.is_empty() && self.jobs == 0
    }

    /// When the loop must wake up although nothing happens. `None` while the engine is idle.
    fn deadline(&self) -> Option<Instant> {
        let (now, local) = self.now();
        let retry = self.state.next_retry().map(|at| Instant::now() + at.since(now));
        let edge = self.state.next_edge(local).map(|at| {
            // In the hour that the clock repeats, an edge that acted lies ahead by the clock and behind in time.
            let at = at
                .to_zoned(self.config.time_zone.clone())
                .map(|zoned| timestamp(zoned.timestamp()));
            let wait = at.ok().filter(|at| *at > now).map_or(CLOCK_CHECK, |at| at.since(now));
            Instant::now() + wait.min(CLOCK_CHECK)
        });
        let new_schedule = self.state.has_new_schedule().then(Instant::now);
        let closing = self
            .closing
            .as_ref()
            .filter(|_| !self.cut.is_cancelled())
            .map(|closing| closing.deadline);
        [retry, edge, new_schedule, self.sample_at, self.save_again_at, closing]
            .into_iter()
            .flatten()
            .min()
    }

    fn now(&self) -> (Timestamp, jiff::civil::DateTime) {
        let now = jiff::Timestamp::now();
        (timestamp(now), self.config.time_zone.to_datetime(now))
    }

    fn heed(&mut self, message: Message, batch: &mut Batch) {
        match message {
            Message::Command(command, reply) => {
                let outcome = self.apply(Input::Command(command), batch);
                let answer = Answer::new(reply, outcome);
                match answer.renaming() {
                    Some(task) => drop(self.renames.insert(task, answer)),
                    None => batch.answers.push(answer),
                }
            }
            Message::Read(look) => look(&self.state, self.sequence.load(Ordering::Acquire)),
            Message::Rescan(reply) => {
                let files = self.state.completed_files();
                let look = move || vec![Input::FilesLookedFor(files.into_iter().map(look_for).collect())];
                self.spawn_job(look, Some(Answer::new(reply, Ok(Reply::Done))));
            }
            Message::Shutdown(grace, reply) => {
                let _is_no_command = self.apply(Input::Shutdown, batch);
                let deadline = Instant::now() + grace;
                let closing = self.closing.get_or_insert_with(|| Closing {
                    deadline,
                    report: ShutdownReport::default(),
                    replies: Vec::new(),
                });
                closing.deadline = closing.deadline.min(deadline);
                closing.replies.push(reply);
            }
        }
    }

    fn hear(&mut self, signal: Signal, batch: &mut Batch) {
        match signal {
            Signal::Told(task, run, Report { event, receipt }) => {
                let told = self.told(task, run, event, batch);
                match (receipt, told) {
                    (Some(receipt), Ok(_)) => batch.receipts.push(receipt),
                    (Some(receipt), Err(_)) => receipt.give(Ok(Recorded::Taken)),
                    (None, _) => {}
                }
            }
            Signal::Ended(task, run, outcome, last) => {
                self.runs.remove(&run);
                self.published_runs
                    .send_modify(|runs| drop(Arc::make_mut(runs).remove(&task)));
                let _is_no_command = self.apply(Input::Progressed(vec![(task, run, *last)]), batch);
                let _is_no_command = self.apply(Input::Ended(task, run, *outcome), batch);
                if self.runs.is_empty() {
                    self.sample_at = None;
                }
            }
            Signal::Settled(inputs, answer) => {
                self.jobs -= 1;
                batch.answers.extend(answer);
                for input in inputs {
                    self.settle(input, batch);
                }
            }
        }
    }

    /// What a run tells; refused if it wants a path that it cannot have.
    fn told(&mut self, task: TaskId, run: RunId, event: RunEvent, batch: &mut Batch) -> Result<Reply, CommandError> {
        match event {
            RunEvent::Reserved { path, total_bytes } => {
                return self.apply(Input::Reserved(task, run, path, total_bytes), batch);
            }
            RunEvent::Landing(landing) => return self.apply(Input::Landing(task, run, landing), batch),
            RunEvent::Notice(message) => self.emit(Event::Notice {
                task,
                message: message.into(),
            }),
            RunEvent::Retrying { failure, wait_ms } => self.emit(Event::AttemptFailed {
                task,
                failure: Arc::new(failure),
                wait: Duration::from_millis(wait_ms),
            }),
        }
        Ok(Reply::Done)
    }

    fn settle(&mut self, input: Input, batch: &mut Batch) {
        if matches!(input, Input::NotSaved(_)) {
            self.save_again_at = Some(Instant::now() + SAVE_AGAIN);
        }
        let renamed = match &input {
            Input::Renamed(task, _) => self.renames.remove(task),
            Input::Resolved(_, run, _) | Input::Ended(_, run, _) => {
                self.resolving.remove(run);
                None
            }
            _ => None,
        };
        let outcome = self.apply(input, batch);
        if let Some(mut answer) = renamed {
            answer.set(outcome);
            batch.answers.push(answer);
        }
    }

    /// Whatever is due by the clock.
    fn tick(&mut self, batch: &mut Batch) {
        let (_, local) = self.now();
        let _is_no_command = self.apply(Input::Clock(local), batch);
        let now = Instant::now();
        if self.sample_at.is_some_and(|at| at <= now) {
            self.sample_at = Some(now + self.config.sample_interval);
            self.sample(batch);
        }
        if self.save_again_at.take_if(|at| *at <= now).is_some() {
            let _is_no_command = self.apply(Input::SaveAgain, batch);
        }
        if let Some(closing) = self.closing.as_mut().filter(|closing| closing.deadline <= now)
            && !self.cut.is_cancelled()
        {
            closing.report.cut_off = self.runs.values().map(|run| run.task).collect();
            self.cut.cancel();
        }
    }

    fn sample(&mut self, batch: &mut Batch) {
        let mut samples = Vec::new();
        for (id, run) in &mut self.runs {
            if run.progress.has_changed().unwrap_or(false) {
                samples.push((run.task, *id, run.progress.borrow_and_update().clone()));
            }
        }
        if samples.is_empty() {
            return;
        }
        let told: Vec<_> = samples
            .iter()
            .map(|(task, _, progress)| (*task, progress.clone()))
            .collect();
        let _is_no_command = self.apply(Input::Progressed(samples), batch);
        self.emit(Event::Progress(told.into()));
        let now = Instant::now();
        if self.checkpoint_at <= now {
            self.checkpoint_at = now + self.config.save_interval;
            let _is_no_command = self.apply(Input::Checkpoint, batch);
        }
    }

    fn apply(&mut self, input: Input, batch: &mut Batch) -> Result<Reply, CommandError> {
        let (now, _) = self.now();
        let mut effects = Vec::new();
        let reply = self.state.apply(now, input, &mut effects);
        for effect in effects {
            self.perform(effect, batch);
        }
        reply
    }

    fn perform(&mut self, effect: Effect, batch: &mut Batch) {
        match effect {
            Effect::Start(start) => self.start_run(*start),
            Effect::Resolve(resolve) => self.resolve(*resolve),
            Effect::Stop(run) => {
                if let Some(run) = self.runs.get(&run) {
                    run.stop.cancel();
                }
                if let Some(stop) = self.resolving.get(&run) {
                    stop.cancel();
                }
            }
            Effect::Save(rows) => batch.rows.extend(rows),
            Effect::DeleteFiles(serial, paths) => batch.work.deletions.push((serial, paths)),
            Effect::Rename(rename) => batch.work.renames.push(rename),
            Effect::LookForLanding { task, landing, rest } => {
                let look = move || vec![Input::LandingLookedFor(task, file::look_for_landing(&landing, &rest))];
                self.spawn_job(look, None);
            }
            Effect::SetLimit(scope, limit) => self.set_limit(scope, limit),
            Effect::Emit(event) => self.emit(event),
        }
    }

    fn set_limit(&self, scope: LimitScope, bytes_per_second: u64) {
        let limiter = match scope {
            LimitScope::Global => Some(&self.global_limit),
            LimitScope::Queue(queue) => self.queue_limits.get(&queue),
            LimitScope::Run(run) => self.runs.get(&run).map(|run| &run.limiter),
        };
        if let Some(limiter) = limiter {
            limiter.set(bytes_per_second);
        }
    }

    fn emit(&mut self, event: Event) {
        match &event {
            Event::SettingsChanged(settings) => drop(self.published_settings.send_replace(settings.clone())),
            Event::QueuesChanged(queues) => {
                self.queue_limits
                    .retain(|id, _| queues.iter().any(|queue| queue.id == *id));
            }
            _ => {}
        }
        let sequence = self.sequence.fetch_add(1, Ordering::AcqRel) + 1;
        let _nobody_listens = self.events.send((sequence, event));
    }

    /// Asks the resolver; its answer, or that the run was stopped meanwhile, comes back as a signal.
    fn resolve(&mut self, Resolve { task, run, request }: Resolve) {
        let stop = CancellationToken::new();
        self.resolving.insert(run, stop.clone());
        let asked = self
            .config
            .resolver
            .clone()
            .map(|resolver| async move { resolver.resolve(request).await });
        self.jobs += 1;
        let signal = self.signal.clone();
        self.tracker.spawn(async move {
            let input = match stop.run_until_cancelled(runner::guarded(asked)).await {
                Some(outcome) => Input::Resolved(task, run, outcome),
                None => Input::Ended(task, run, Outcome::Stopped),
            };
            let _driver_ended = signal.send(Signal::Settled(vec![input], None)).await;
        });
    }

    fn start_run(&mut self, start: Start) {
        let (reporter, reports) = Reporter::new();
        reporter.progress(Progress {
            done_bytes: start.done_bytes,
            total_bytes: start.total_bytes,
            ..Progress::default()
        });
        let stop = CancellationToken::new();
        let limiter = RateLimiter::new(start.speed_limit_bytes);
        let queue_limiter = self
            .queue_limits
            .entry(start.queue)
            .or_insert_with(|| RateLimiter::new(start.queue_limit_bytes))
            .clone();
        let scheme = start.source.urls.first().map_or("", |url| url.scheme());
        let runner = Runner {
            task: start.task,
            run: start.run,
            transport: self.transports.get(scheme).cloned(),
            events: reports.events,
            progress: reports.progress.clone(),
            signals: self.signal.clone(),
            cut: self.cut.clone(),
        };
        let live = LiveRun {
            task: start.task,
            stop: stop.clone(),
            limiter: limiter.clone(),
            progress: reports.progress,
        };
        self.published_runs.send_modify(|runs| {
            Arc::make_mut(runs).insert(start.task, (start.run, live.progress.clone()));
        });
        self.runs.insert(start.run, live);
        let job = Job {
            source: start.source,
            target: start.target,
            connections: start.connections,
            limits: RateLimits::new([limiter, queue_limiter, self.global_limit.clone()]),
            retry: start.retry,
            reporter,
            stop,
        };
        self.tracker.spawn(runner.conduct(job));
        self.sample_at
            .get_or_insert_with(|| Instant::now() + self.config.sample_interval);
    }

    /// Does `work` off the async threads; its inputs come back as a signal.
    fn spawn_job(&mut self, work: impl FnOnce() -> Vec<Input> + Send + 'static, answer: Option<Answer>) {
        self.jobs += 1;
        let signal = self.signal.clone();
        self.tracker.spawn(async move {
            let inputs = tokio::task::spawn_blocking(work).await.unwrap_or_default();
            let _driver_ended = signal.send(Signal::Settled(inputs, answer)).await;
        });
    }

    /// Hands the rows of `batch` to the store, in order, and lets a job wait for the disk and answer the callers.
    async fn commit(&mut self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        let saved: Arc<[Row]> = batch.rows.into();
        let committed = self
            .store
            .enqueue(rows::save(Arc::clone(&saved), Arc::clone(&self.vault)))
            .await;
        let (mut answers, receipts, work) = (batch.answers, batch.receipts, batch.work);
        self.jobs += 1;
        let signal = self.signal.clone();
        self.tracker.spawn(async move {
            let durable = match committed {
                Ok(committed) => committed.durable().await,
                Err(error) => Err(error),
            };
            let inputs = match durable {
                Ok(()) => {
                    batch::give(receipts, Ok(()));
                    work.perform().await
                }
                Err(error) => {
                    let reason = batch::reason(&error);
                    batch::give(receipts, Err(&reason));
                    for answer in &mut answers {
                        answer.fail(&reason);
                    }
                    std::iter::once(Input::NotSaved(saved.to_vec()))
                        .chain(work.give_up(&reason))
                        .collect()
                }
            };
            drop(answers);
            let _driver_ended = signal.send(Signal::Settled(inputs, None)).await;
        });
    }
}

fn look_for((task, path): (TaskId, std::path::PathBuf)) -> (TaskId, FileState) {
    // Only a clear "not there" counts: a disk that is not mounted or does not answer hides files, it does not lose them.
    let is_there = path.try_exists().unwrap_or(true);
    (
        task,
        if is_there {
            FileState::Present
        } else {
            FileState::Missing
        },
    )
}

fn timestamp(at: jiff::Timestamp) -> Timestamp {
    Timestamp::from_unix_millis(at.as_millisecond())
}

/// Waits until `deadline`; for ever if there is none. Cancel-safe.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
