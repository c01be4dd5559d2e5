//! The loop around the pure state: feeds it time and inputs, and performs the effects it returns. It is the only owner
//! of the state. Callers are answered, and runs continue, only once the rows of a batch are on disk.

mod batch;
mod file_checks;
mod jobs;
mod publisher;
mod runner;
mod runs;
mod signal;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use jiff::{civil::DateTime, tz::TimeZone};
use store::{Store, Vault};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use transfer::{Discarded, Job, Outcome, Progress, RateLimits, Recorded, Report, Reporter, RunEvent, Transport};

use crate::{
    config::Config,
    directories::Directories,
    driver::{
        batch::{Answer, Batch},
        file_checks::FileChecks,
        jobs::Jobs,
        publisher::Publisher,
        runner::Runner,
        runs::{Limiters, LiveRun, Runs},
        signal::Signal,
    },
    event::Event,
    mailbox::{Message, Shared, ShutdownReport},
    model::{
        error::{CommandError, StartError},
        file,
        id::{QueueId, RunId, TaskId, Timestamp},
        spec,
        speed::Speeds,
    },
    resolver::{Resolved, Resolver},
    rows,
    state::{Command, Effect, Input, LimitScope, Loaded, Reply, Resolve, Row, Start, State},
};

/// Queued commands; further callers wait to enqueue theirs.
const MESSAGE_BACKLOG: usize = 1024;

/// Queued signals; a run that reports one more waits, which slows only that run.
const SIGNAL_BACKLOG: usize = 1024;

/// Messages handled before their rows go to the store in one transaction.
const MAX_BATCH: usize = 512;

/// While a schedule is enabled or a retry waits, the clock is read again after at most this long: it can be set, and
/// timers stand still while the machine sleeps.
const CLOCK_CHECK: Duration = Duration::from_mins(1);

/// Retry interval after a failed save.
const SAVE_RETRY: Duration = Duration::from_secs(5);

/// For runs to stop when the last handle is dropped without a shutdown.
const DROP_GRACE: Duration = Duration::from_secs(5);

/// Limit of the wait at start for file operations that a crash interrupted. A disk that takes longer delays only its
/// own tasks.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

enum Wakeup {
    Messages(Vec<Message>),
    Signals(Vec<Signal>),
    Timer,
}

/// A shutdown in progress.
struct Closing {
    deadline: Instant,
    report: ShutdownReport,
    replies: Vec<oneshot::Sender<ShutdownReport>>,
}

/// The receiving ends of the loop's channels.
struct Inbox {
    messages: mpsc::Receiver<Message>,
    has_handles: bool,
    signals: mpsc::Receiver<Signal>,
}

/// The store for rows, and the vault that seals the secrets in them.
pub(crate) struct Storage {
    pub(crate) store: Store,
    pub(crate) vault: Arc<Vault>,
}

/// The speed limits that several runs share.
struct Limits {
    global: Limiters,
    queues: HashMap<QueueId, Limiters>,
}

struct Driver {
    config: Config,
    started_at: Instant,
    /// `None` saves nothing.
    storage: Option<Storage>,
    transports: HashMap<&'static str, Arc<dyn Transport>>,
    /// Of plugins and of directories.
    resolver: Arc<dyn Resolver>,
    state: State,
    inbox: Inbox,
    publisher: Publisher,
    runs: Runs,
    limits: Limits,
    jobs: Jobs,
    file_checks: FileChecks,
    /// Callers whose task's file is being renamed.
    renames: HashMap<TaskId, Answer>,
    checkpoint_at: Instant,
    save_again_at: Option<Instant>,
    closing: Option<Closing>,
    /// Dropped once the file operations that a crash interrupted are finished; `start` waits for that.
    settling: Option<oneshot::Sender<()>>,
}

/// Reads the rows, starts the loop, and waits (see [`SETTLE_TIMEOUT`]) until file operations that a crash interrupted
/// are finished.
pub(crate) async fn start(
    config: Config,
    storage: Option<Storage>,
    transports: Vec<Arc<dyn Transport>>,
) -> Result<Shared, StartError> {
    spec::validate_dir(&config.download_dir).map_err(StartError::DownloadDir)?;
    let transports = by_scheme(transports)?;
    let resolver: Arc<dyn Resolver> = Arc::new(Directories::new(transports.clone(), config.resolver.clone()));
    let mut schemes: Vec<&'static str> = transports.keys().copied().collect();
    schemes.sort_unstable();
    let loaded = match &storage {
        Some(Storage { store, vault }) => rows::load(store, vault).await?,
        None => Loaded::default(),
    };
    let mut effects = Vec::new();
    let state = State::load(&config.download_dir, config.system_proxy.clone(), loaded, &mut effects)
        .with_netrc(config.netrc.clone());
    let (message_sender, messages) = mpsc::channel(MESSAGE_BACKLOG);
    let (signal, signals) = mpsc::channel(SIGNAL_BACKLOG);
    let (runs, live_runs) = Runs::new();
    let (publisher, settings) = Publisher::new(state.settings().clone());
    let jobs = Jobs::new(signal);
    let tracker = jobs.tracker.clone();
    let shared = Shared {
        messages: message_sender,
        events: publisher.events.downgrade(),
        sequence: Arc::clone(&publisher.sequence),
        runs: live_runs,
        settings,
        schemes: schemes.into(),
        resolver: Some(Arc::clone(&resolver)),
        adopts: config.adopts,
        tracker: tracker.clone(),
    };
    let (settling, settled) = oneshot::channel();
    let driver = Driver {
        limits: Limits {
            global: Limiters::new(state.settings().settings.speeds()),
            queues: HashMap::new(),
        },
        file_checks: FileChecks::new(config.file_check_interval, jobs.signal.clone()),
        config,
        started_at: Instant::now(),
        storage,
        transports,
        resolver,
        state,
        inbox: Inbox {
            messages,
            has_handles: true,
            signals,
        },
        publisher,
        runs,
        jobs,
        renames: HashMap::new(),
        checkpoint_at: Instant::now(),
        save_again_at: None,
        closing: None,
        settling: Some(settling),
    };
    tracker.spawn(driver.drive(effects));
    if tokio::time::timeout(SETTLE_TIMEOUT, settled).await.is_err() {
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
            match self.next_wakeup().await {
                Wakeup::Messages(messages) => messages
                    .into_iter()
                    .for_each(|message| self.handle_message(message, &mut batch)),
                Wakeup::Signals(signals) => signals
                    .into_iter()
                    .for_each(|signal| self.handle_signal(signal, &mut batch)),
                Wakeup::Timer => self.tick(&mut batch),
            }
            self.commit(batch).await;
        }
        if let Some(closing) = self.closing.take() {
            self.jobs.tracker.close();
            for reply in closing.replies {
                let _nobody_waits = reply.send(closing.report.clone());
            }
        }
    }

    async fn next_wakeup(&mut self) -> Wakeup {
        let mut messages = Vec::new();
        let mut signals = Vec::new();
        let deadline = self.deadline();
        tokio::select! {
            count = self.inbox.messages.recv_many(&mut messages, MAX_BATCH), if self.inbox.has_handles => {
                if count == 0 {
                    // Every handle was dropped, so no shutdown can be requested any more.
                    self.inbox.has_handles = false;
                    let (nobody, _) = oneshot::channel();
                    messages.push(Message::Shutdown(DROP_GRACE, nobody));
                }
                Wakeup::Messages(messages)
            }
            _ = self.inbox.signals.recv_many(&mut signals, MAX_BATCH) => Wakeup::Signals(signals),
            () = until(deadline) => Wakeup::Timer,
        }
    }

    fn is_done(&self) -> bool {
        self.closing.is_some() && self.runs.is_empty() && self.jobs.are_settled()
    }

    /// The next timer. `None` while the engine is idle.
    fn deadline(&self) -> Option<Instant> {
        let now = now();
        let retry = self
            .state
            .next_retry()
            .into_iter()
            .chain(self.state.next_renewal())
            .min();
        let retry = retry.map(|at| Instant::now() + at.since(now).min(CLOCK_CHECK));
        let edge = self.state.next_edge(self.local_time()).map(|at| {
            // In the hour that the clock repeats, an edge that acted lies ahead by the clock and behind in time.
            let at = at
                .to_zoned(TimeZone::system())
                .map(|zoned| timestamp(zoned.timestamp()));
            let wait = at.ok().filter(|at| *at > now).map_or(CLOCK_CHECK, |at| at.since(now));
            Instant::now() + wait.min(CLOCK_CHECK)
        });
        let seed_end = self.state.next_seed_end().map(|uptime| self.started_at + uptime);
        let new_schedule = self.state.has_new_schedule().then(Instant::now);
        let work_left = self.state.has_work_left().then(Instant::now);
        let closing = self
            .closing
            .as_ref()
            .filter(|_| !self.runs.force_stop.is_cancelled())
            .map(|closing| closing.deadline);
        [
            retry,
            edge,
            seed_end,
            new_schedule,
            work_left,
            self.runs.sample_at,
            self.save_again_at,
            self.file_checks.due_at(),
            closing,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The time of schedules. Finding the system's zone reads a directory tree, so not without a schedule.
    fn local_time(&self) -> DateTime {
        let zone = if self.state.has_schedule() {
            TimeZone::system()
        } else {
            TimeZone::UTC
        };
        zone.to_datetime(jiff::Timestamp::now())
    }

    fn handle_message(&mut self, message: Message, batch: &mut Batch) {
        match message {
            Message::Command(command, reply) if self.leaves_more(&command) => self.discard(command, Some(reply)),
            Message::Command(command, reply) => {
                let outcome = self.apply(Input::Command(command), batch);
                let answer = Answer::new(reply, outcome);
                match answer.renaming() {
                    Some(task) => drop(self.renames.insert(task, answer)),
                    None => batch.answers.push(answer),
                }
            }
            Message::Read(look) => look(&self.state, self.publisher.sequence()),
            Message::Rescan(reply) => {
                let answer = Answer::new(reply, Ok(Reply::Done));
                self.file_checks.check_all(&self.state, answer);
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

    fn handle_signal(&mut self, signal: Signal, batch: &mut Batch) {
        match signal {
            Signal::Reported(task, run, report) => {
                let Report { event, receipt } = *report;
                let recorded = self.record_run_event(task, run, event, batch);
                match (receipt, recorded) {
                    (Some(receipt), Ok(_)) => batch.receipts.push(receipt),
                    (Some(receipt), Err(_)) => receipt.give(Ok(Recorded::Taken)),
                    (None, _) => {}
                }
            }
            Signal::Ended(task, run, outcome, last) => {
                self.runs.remove(task, run);
                if !matches!(*outcome, Outcome::Finished(_)) {
                    let _is_no_command = self.apply(Input::Progressed(vec![(task, run, *last)]), batch);
                } else if last.received_bytes != last.done_bytes {
                    // A finished file tells its size, but not how much of it this run received. The run may have ended
                    // before a sample was taken.
                    self.emit(Event::Progress([(task, *last)].into()));
                }
                let _is_no_command = self.apply(Input::Ended(task, run, *outcome), batch);
            }
            Signal::FilesChecked(files) => {
                let _is_no_command = self.apply(Input::FilesLookedFor(files), batch);
                batch.answers.extend(self.file_checks.ended(&self.state));
            }
            Signal::Settled(inputs, mut answer) => {
                self.jobs.settled();
                for input in inputs {
                    let is_command = matches!(input, Input::Discard(..));
                    let outcome = self.settle(input, batch);
                    if let Some(answer) = answer.as_mut().filter(|_| is_command) {
                        answer.set(outcome);
                    }
                }
                batch.answers.extend(answer);
            }
        }
    }

    /// Records a run's report; refuses a path that another task has reserved.
    fn record_run_event(
        &mut self,
        task: TaskId,
        run: RunId,
        event: RunEvent,
        batch: &mut Batch,
    ) -> Result<Reply, CommandError> {
        match event {
            RunEvent::Reserved { path, total_bytes } => {
                return self.apply(Input::Reserved(task, run, path, total_bytes), batch);
            }
            RunEvent::Landing(landing) => return self.apply(Input::Landing(task, run, landing), batch),
            RunEvent::Notice(message) => self.emit(Event::Notice {
                task,
                message: message.into(),
            }),
            RunEvent::SourceFailed(source) => self.emit(Event::SourceFailed {
                task,
                source: Arc::new(source),
            }),
            RunEvent::Retrying { failure, wait_ms } => self.emit(Event::AttemptFailed {
                task,
                failure: Arc::new(failure),
                wait: Duration::from_millis(wait_ms),
            }),
        }
        Ok(Reply::Done)
    }

    fn settle(&mut self, input: Input, batch: &mut Batch) -> Result<Reply, CommandError> {
        if matches!(input, Input::NotSaved(_)) {
            // The first failure counts: one more every second must not put it off.
            self.save_again_at.get_or_insert(Instant::now() + SAVE_RETRY);
        }
        let renamed = match &input {
            Input::Renamed(task, _) => self.renames.remove(task),
            Input::Resolved(_, run, ..) | Input::Ended(_, run, _) => {
                self.runs.resolved(*run);
                None
            }
            _ => None,
        };
        let outcome = self.apply(input, batch);
        if let Some(mut answer) = renamed {
            answer.set(outcome.clone());
            batch.answers.push(answer);
        }
        outcome
    }

    /// Performs whatever is due by the clock.
    fn tick(&mut self, batch: &mut Batch) {
        let _is_no_command = self.apply(Input::Clock(self.local_time()), batch);
        let now = Instant::now();
        if self.runs.sample_at.is_some_and(|at| at <= now) {
            self.runs.sample_at = Some(now + self.config.sample_interval);
            self.sample(batch);
        }
        self.file_checks.tick(&self.state);
        if self.save_again_at.take_if(|at| *at <= now).is_some() {
            let _is_no_command = self.apply(Input::SaveAgain, batch);
        }
        if let Some(closing) = self.closing.as_mut().filter(|closing| closing.deadline <= now)
            && !self.runs.force_stop.is_cancelled()
        {
            closing.report.cut_off = self.runs.tasks();
            self.runs.force_stop.cancel();
        }
    }

    fn sample(&mut self, batch: &mut Batch) {
        let samples = self.runs.sample();
        if samples.is_empty() {
            return;
        }
        let progress_by_task: Vec<_> = samples
            .iter()
            .map(|(task, _, progress)| (*task, progress.clone()))
            .collect();
        let _is_no_command = self.apply(Input::Progressed(samples), batch);
        self.emit(Event::Progress(progress_by_task.into()));
        let now = Instant::now();
        if self.checkpoint_at <= now {
            self.checkpoint_at = now + self.config.save_interval;
            let _is_no_command = self.apply(Input::Checkpoint, batch);
        }
    }

    fn apply(&mut self, input: Input, batch: &mut Batch) -> Result<Reply, CommandError> {
        let mut effects = Vec::new();
        self.state.set_uptime(self.started_at.elapsed());
        let reply = self.state.apply(now(), input, &mut effects);
        for effect in effects {
            self.perform(effect, batch);
        }
        reply
    }

    fn perform(&mut self, effect: Effect, batch: &mut Batch) {
        match effect {
            Effect::Start(start) => self.start_run(*start),
            Effect::Resolve(resolve) => self.resolve(*resolve),
            Effect::Stop(run) => self.runs.stop(run),
            Effect::Save(rows) => batch.rows.extend(rows),
            Effect::DeleteFiles(serial, paths) => batch.work.deletions.push((serial, paths)),
            Effect::ListLeftovers(task, discarded) => self.list_leftovers(task, discarded),
            Effect::Rename(rename) => batch.work.renames.push(rename),
            Effect::LookForLanding { task, landing, rest } => {
                let look = move || vec![Input::LandingLookedFor(task, file::check_landing(&landing, &rest))];
                self.jobs.spawn_blocking(look, None);
            }
            Effect::SetLimit(scope, speeds) => self.set_limit(scope, speeds),
            Effect::Emit(event) => self.emit(event),
            Effect::Delete(task, fate) => self.discard(Command::Delete(task, fate), None),
            Effect::Announce(milestones) => milestones
                .into_iter()
                .for_each(|milestone| self.config.milestones.send(milestone)),
        }
    }

    /// The transports that leave more than a part file, for the tasks that a command deletes.
    fn leaving(&self, command: &Command) -> Vec<(TaskId, Discarded, Arc<dyn Transport>)> {
        if !self.transports.values().any(|transport| transport.leaves_more()) {
            return Vec::new();
        }
        let discarded = self.state.discarded_by(command).into_iter();
        let leaving = discarded.filter_map(|(task, discarded)| {
            let transport = self.transports.get(discarded.url.scheme())?;
            transport
                .leaves_more()
                .then(|| (task, discarded, Arc::clone(transport)))
        });
        leaving.collect()
    }

    fn leaves_more(&self, command: &Command) -> bool {
        !self.leaving(command).is_empty()
    }

    /// Executes a command that deletes once the transports have said what is deleted.
    fn discard(&mut self, command: Command, reply: Option<oneshot::Sender<Result<Reply, CommandError>>>) {
        let leaving = self.leaving(&command);
        let asking = async move {
            let mut leftovers = BTreeMap::new();
            for (task, discarded, transport) in leaving {
                leftovers.insert(task, transport.leftovers(discarded).await);
            }
            vec![Input::Discard(command, leftovers)]
        };
        self.jobs
            .spawn(asking, reply.map(|reply| Answer::new(reply, Ok(Reply::Done))));
    }

    fn list_leftovers(&mut self, task: TaskId, discarded: Discarded) {
        let transport = self.transports.get(discarded.url.scheme()).map(Arc::clone);
        let listing = async move {
            let files = match transport {
                Some(transport) => transport.leftovers(discarded).await,
                None => Vec::new(),
            };
            vec![Input::LeftoversListed(task, files)]
        };
        self.jobs.spawn(listing, None);
    }

    fn set_limit(&self, scope: LimitScope, speeds: Speeds) {
        let limiters = match scope {
            LimitScope::Global => Some(&self.limits.global),
            LimitScope::Queue(queue) => self.limits.queues.get(&queue),
            LimitScope::Run(run) => self.runs.limiters(run),
        };
        if let Some(limiters) = limiters {
            limiters.set(speeds);
        }
    }

    fn emit(&mut self, event: Event) {
        if let Event::QueuesChanged(queues) = &event {
            self.limits
                .queues
                .retain(|id, _| queues.iter().any(|queue| queue.id == *id));
        }
        self.publisher.emit(event);
    }

    /// Queries the resolver; the answer, or a stop of the run, arrives as a signal.
    fn resolve(&mut self, resolve: Resolve) {
        let Resolve {
            task,
            run,
            request,
            save_dir,
        } = resolve;
        let stop = self.runs.resolve(run);
        let resolver = Arc::clone(&self.resolver);
        let asked = async move { resolver.resolve(request).await };
        let answered = async move {
            let outcome = runner::guarded(asked).await;
            let wanted = match &outcome {
                Ok(Resolved::List(list)) => Some(list.directory(&save_dir)).filter(|wanted| **wanted != *save_dir),
                _ => None,
            };
            (outcome, file::places_of(wanted).await)
        };
        let resolving = async move {
            let input = match stop.run_until_cancelled(answered).await {
                Some((outcome, places)) => Input::Resolved(task, run, outcome, places),
                None => Input::Ended(task, run, Outcome::Stopped),
            };
            vec![input]
        };
        self.jobs.spawn(resolving, None);
    }

    fn start_run(&mut self, start: Start) {
        let (reporter, reports) = Reporter::new();
        reporter.progress(Progress {
            done_bytes: start.done_bytes,
            total_bytes: start.total_bytes,
            uploaded_bytes: start.uploaded_bytes,
            ..Progress::default()
        });
        let stop = CancellationToken::new();
        let limiters = Limiters::new(start.task_speeds);
        let queue_limiters = self
            .limits
            .queues
            .entry(start.queue)
            .or_insert_with(|| Limiters::new(start.queue_speeds))
            .clone();
        let scopes = [limiters.clone(), queue_limiters, self.limits.global.clone()];
        let scheme = start.source.urls.first().map_or("", |url| url.scheme());
        let transport = self.transports.get(scheme).cloned();
        let mut source = start.source;
        // One transport executes a run, and asks the mirrors of its own schemes.
        if let Some(transport) = &transport {
            source.urls.retain(|url| transport.schemes().contains(&url.scheme()));
        }
        let runner = Box::new(Runner {
            task: start.task,
            run: start.run,
            transport,
            events: reports.events,
            progress: reports.progress.clone(),
            signals: self.jobs.signal.clone(),
            force_stop: self.runs.force_stop.clone(),
        });
        let live = LiveRun {
            task: start.task,
            stop: stop.clone(),
            limiters,
            progress: reports.progress,
        };
        self.runs.insert(start.run, live, self.config.sample_interval);
        // The job is in a box, so that it does not lie again in each future that it is passed to.
        let job = Box::new(Job {
            source,
            target: start.target,
            connections: start.connections,
            limits: RateLimits::new(scopes.iter().map(|scope| scope.download.clone())),
            upload_limits: RateLimits::new(scopes.iter().map(|scope| scope.upload.clone())),
            purpose: start.purpose,
            uploaded_bytes: start.uploaded_bytes,
            retry: start.retry,
            reporter,
            stop,
        });
        self.jobs.tracker.spawn(runner.conduct(job));
    }

    /// Hands the rows of `batch` to the store, in order, and spawns a job that waits for the disk and answers the
    /// callers. Without a store, callers are answered at once.
    async fn commit(&mut self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        let Some(Storage { store, vault }) = &self.storage else {
            batch::send_receipts(batch.receipts, Ok(()));
            if !batch.work.is_empty() {
                let (answers, work) = (batch.answers, batch.work);
                let working = async move {
                    let inputs = work.perform().await;
                    drop(answers);
                    inputs
                };
                self.jobs.spawn(working, None);
            }
            return;
        };
        let saved: Arc<[Row]> = batch.rows.into();
        let committed = store.enqueue(rows::save(Arc::clone(&saved), Arc::clone(vault))).await;
        let (mut answers, receipts, work) = (batch.answers, batch.receipts, batch.work);
        let settling = async move {
            let durable = match committed {
                Ok(committed) => committed.durable().await,
                Err(error) => Err(error),
            };
            let inputs = match durable {
                Ok(()) => {
                    batch::send_receipts(receipts, Ok(()));
                    work.perform().await
                }
                Err(error) => {
                    let reason = batch::reason(&error);
                    batch::send_receipts(receipts, Err(&reason));
                    for answer in &mut answers {
                        answer.fail(&reason);
                    }
                    std::iter::once(Input::NotSaved(saved.to_vec()))
                        .chain(work.fail(&reason))
                        .collect()
                }
            };
            drop(answers);
            inputs
        };
        self.jobs.spawn(settling, None);
    }
}

fn now() -> Timestamp {
    timestamp(jiff::Timestamp::now())
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
