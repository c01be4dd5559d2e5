//! The loop around the pure state: feeds it time and inputs, and performs the effects it returns. It is the only owner
//! of the state. Callers are answered, and tasks created, only once the rows of an input are on the disk.

mod dispatch;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use engine::{Engine, Events, Status};
use jiff::Timestamp;
use store::{Store, Vault};
use tokio::{
    sync::{broadcast, mpsc, oneshot},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::FailureKind;

use crate::{
    driver::dispatch::Dispatcher,
    fetch::Fetcher,
    model::{item::TaskId, source::SourceId},
    rows,
    state::{Command, CommandError, Created, Dispatch, Effect, Event, Fetched, Input, MAX_FETCHES, Row, RunId, State},
};

/// Queued messages; further callers wait to enqueue theirs.
const MESSAGE_BACKLOG: usize = 64;

/// Queued results. A fetch or a creation that has one more waits.
const SIGNAL_BACKLOG: usize = 64;

/// Subscribers that are further behind read the sources again.
const CHANGE_BACKLOG: usize = 256;

/// Retry interval after a failed save.
const SAVE_RETRY: Duration = Duration::from_secs(5);

/// The clock is read again after at most this long: it can be set, and timers stand still while the machine sleeps.
const CLOCK_CHECK: Duration = Duration::from_mins(1);

/// The least time between two events with all sources: each fetch changes one, and a round has hundreds.
const SOURCES_INTERVAL: Duration = Duration::from_secs(1);

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It was refused; nothing has changed.
    #[error(transparent)]
    Refused(#[from] CommandError),
    /// It is effective in memory but could not be saved; saving is retried.
    #[error("the change could not be saved: {0}")]
    NotSaved(String),
    /// The subscriptions have ended.
    #[error("the service is shutting down")]
    Closed,
}

/// What changed, for subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The sources; at most once a second.
    Sources,
    /// The items of a source.
    Items {
        /// Which.
        source: SourceId,
        /// Grows with each change of the source's items.
        revision: u64,
        /// Titles of new downloads, if the source notifies of them.
        titles: Vec<String>,
    },
}

pub(crate) enum Message {
    Command(Command, oneshot::Sender<Result<(), Error>>),
    Read(Box<dyn FnOnce(&State) + Send>),
}

pub(crate) enum Signal {
    Fetched(SourceId, RunId, Fetched),
    Created(TaskId, Created),
}

/// Connects the handle to the loop.
#[derive(Debug, Clone)]
pub(crate) struct Channels {
    pub(crate) messages: mpsc::Sender<Message>,
    pub(crate) changes: broadcast::Sender<Change>,
    pub(crate) revisions: tokio::sync::watch::Receiver<Arc<BTreeMap<SourceId, u64>>>,
}

/// What the loop is built from.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) vault: Arc<Vault>,
    pub(crate) engine: Engine,
    pub(crate) fetcher: Fetcher,
    pub(crate) tracker: TaskTracker,
    pub(crate) stop: CancellationToken,
}

struct Driver {
    parts: Parts,
    state: State,
    messages: mpsc::Receiver<Message>,
    signals: mpsc::Receiver<Signal>,
    signal: mpsc::Sender<Signal>,
    engine_events: Events,
    fetches: HashMap<RunId, CancellationToken>,
    changes: broadcast::Sender<Change>,
    revisions: tokio::sync::watch::Sender<Arc<BTreeMap<SourceId, u64>>>,
    /// When [`Change::Sources`] is published next, if they changed.
    publish_at: Option<Instant>,
    published: Instant,
    unsaved: Unsaved,
}

/// What waits for the disk.
#[derive(Default)]
struct Unsaved {
    rows: Vec<Row>,
    creations: Vec<Dispatch>,
    /// Deleted tasks that the engine may forget after it.
    noted: Vec<engine::TaskId>,
    retry_at: Option<Instant>,
}

enum Wakeup {
    Message(Message),
    Signal(Signal),
    TasksDeleted,
    /// The engine was faster than this loop.
    EventsMissed,
    /// Tasks of subscriptions that changed, and whether they have failed for good.
    TasksChanged(Vec<(TaskId, bool)>),
    Timer,
    Ended,
}

/// Reads the rows and spawns the loop.
pub(crate) async fn start(parts: Parts) -> Result<Channels, rows::LoadError> {
    let loaded = rows::load(&parts.store, &parts.vault).await?;
    let seed = u64::from_be_bytes(uuid::Uuid::new_v4().as_bytes()[..8].try_into().unwrap_or_default());
    let mut effects = Vec::new();
    let state = State::load(loaded, seed, Timestamp::now(), &mut effects);
    let (message_sender, messages) = mpsc::channel(MESSAGE_BACKLOG);
    let (signal, signals) = mpsc::channel(SIGNAL_BACKLOG);
    let (changes, _) = broadcast::channel(CHANGE_BACKLOG);
    let (revisions, revisions_read) = tokio::sync::watch::channel(Arc::default());
    let channels = Channels {
        messages: message_sender,
        changes: changes.clone(),
        revisions: revisions_read,
    };
    let tracker = parts.tracker.clone();
    let driver = Driver {
        engine_events: parts.engine.events(),
        parts,
        state,
        messages,
        signals,
        signal,
        fetches: HashMap::new(),
        changes,
        revisions,
        publish_at: None,
        published: Instant::now(),
        unsaved: Unsaved::default(),
    };
    tracker.spawn(driver.drive(effects));
    Ok(channels)
}

impl Driver {
    async fn drive(mut self, effects: Vec<Effect>) {
        self.begin(effects).await;
        loop {
            match self.next_wakeup().await {
                Wakeup::Ended => return,
                Wakeup::Message(Message::Read(look)) => look(&self.state),
                Wakeup::Message(Message::Command(command, reply)) => {
                    let outcome = match self.apply(Input::Command(command)) {
                        Ok(()) => self.save().await,
                        Err(refused) => Err(refused.into()),
                    };
                    let _nobody_waits = reply.send(outcome);
                }
                Wakeup::Signal(signal) => {
                    self.take(signal);
                    // Results that wait share the transaction.
                    while let Ok(next) = self.signals.try_recv() {
                        self.take(next);
                    }
                    let _is_retried = self.save().await;
                }
                Wakeup::TasksDeleted => self.note_deleted().await,
                Wakeup::EventsMissed => {
                    self.note_changed().await;
                    self.note_deleted().await;
                }
                Wakeup::TasksChanged(tasks) => {
                    self.tasks_changed(tasks);
                    let _is_retried = self.save().await;
                }
                Wakeup::Timer => {
                    let _is_no_command = self.apply(Input::Clock);
                    let _is_retried = self.save().await;
                }
            }
            self.publish();
        }
    }

    /// Continues what the last process began. Tasks whose creation is not known are created first: the engine refuses
    /// those that were deleted meanwhile, and forgets them only after that was noted.
    async fn begin(&mut self, effects: Vec<Effect>) {
        self.perform(effects);
        let creations = std::mem::take(&mut self.unsaved.creations);
        let dispatcher = self.dispatcher();
        for creation in creations {
            let (task, created) = (creation.task, dispatcher.create(creation).await);
            let _is_no_command = self.apply(Input::Created(task, created));
        }
        self.note_changed().await;
        self.note_deleted().await;
    }

    fn dispatcher(&self) -> Dispatcher {
        Dispatcher {
            engine: self.parts.engine.clone(),
            providers: Arc::clone(&self.parts.fetcher.providers),
        }
    }

    async fn next_wakeup(&mut self) -> Wakeup {
        let deadline = self.deadline();
        tokio::select! {
            () = self.parts.stop.cancelled() => Wakeup::Ended,
            Some(message) = self.messages.recv() => Wakeup::Message(message),
            Some(signal) = self.signals.recv() => Wakeup::Signal(signal),
            wakeup = of_engine(&mut self.engine_events) => wakeup,
            () = until(deadline) => Wakeup::Timer,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let now = Timestamp::now();
        let due = self
            .state
            .wake_at()
            .map(|at| Instant::now() + crate::model::since(at, now).min(CLOCK_CHECK));
        [due, self.publish_at, self.unsaved.retry_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn take(&mut self, signal: Signal) {
        let input = match signal {
            Signal::Fetched(source, run, fetched) => {
                self.fetches.remove(&run);
                Input::Fetched(source, run, fetched)
            }
            Signal::Created(task, created) => Input::Created(task, created),
        };
        let _is_no_command = self.apply(input);
    }

    /// Tells the state what became of tasks before the start, or while events of the engine were missed.
    async fn note_changed(&mut self) {
        // An engine that has ended has nothing to say.
        let Ok(snapshot) = self.parts.engine.snapshot().await else {
            return;
        };
        self.tasks_changed(of_feeds(&snapshot.tasks));
    }

    fn tasks_changed(&mut self, tasks: Vec<(TaskId, bool)>) {
        // A task changes several times, and hardly ever in this.
        for (task, has_failed) in tasks {
            if self.state.has_failed(task).is_none_or(|known| known == has_failed) {
                continue;
            }
            let _is_no_command = self.apply(Input::TaskChanged(task, has_failed));
        }
    }

    /// Tells the state of deleted tasks, and the engine, once that is saved, that it may forget them.
    async fn note_deleted(&mut self) {
        // An engine that has ended says it again after the next start.
        let Ok(deleted) = self.parts.engine.deleted_feed_tasks().await else {
            return;
        };
        for task in &deleted {
            let task = TaskId(uuid::Uuid::from_bytes(*task.as_bytes()));
            let _is_no_command = self.apply(Input::TaskDeleted(task));
        }
        self.unsaved.noted.extend(deleted);
        let _is_retried = self.save().await;
    }

    fn apply(&mut self, input: Input) -> Result<(), CommandError> {
        let mut effects = Vec::new();
        let reply = self.state.apply(Timestamp::now(), input, &mut effects);
        self.perform(effects);
        reply
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Save(row) => self.unsaved.rows.push(row),
                Effect::Fetch(fetch) => self.fetch(*fetch),
                Effect::Cancel(run) => {
                    if let Some(stop) = self.fetches.remove(&run) {
                        stop.cancel();
                    }
                }
                Effect::Create(dispatch) => self.unsaved.creations.push(*dispatch),
                Effect::Emit(Event::SourcesChanged) => {
                    let at = (self.published + SOURCES_INTERVAL).max(Instant::now());
                    self.publish_at.get_or_insert(at);
                }
                Effect::Emit(Event::ItemsChanged(source, titles)) => {
                    let mut revision = 0;
                    self.revisions.send_modify(|revisions| {
                        let counter = Arc::make_mut(revisions).entry(source).or_default();
                        *counter += 1;
                        revision = *counter;
                    });
                    let _nobody_listens = self.changes.send(Change::Items {
                        source,
                        revision,
                        titles,
                    });
                }
            }
        }
    }

    fn publish(&mut self) {
        if self.publish_at.take_if(|at| *at <= Instant::now()).is_some() {
            self.published = Instant::now();
            let _nobody_listens = self.changes.send(Change::Sources);
        }
    }

    fn fetch(&mut self, fetch: crate::state::Fetch) {
        debug_assert!(self.fetches.len() < MAX_FETCHES, "the state limits the fetches");
        let (fetcher, signal) = (self.parts.fetcher.clone(), self.signal.clone());
        let stop = self.parts.stop.child_token();
        self.fetches.insert(fetch.run, stop.clone());
        self.parts.tracker.spawn(async move {
            let fetching = async {
                let fetched = fetcher.fetch(&fetch).await;
                // The loop has ended: nothing is lost, the source is still due.
                let _is_over = signal.send(Signal::Fetched(fetch.source, fetch.run, fetched)).await;
            };
            stop.run_until_cancelled(fetching).await;
        });
    }

    /// Saves what changed, then does what waited for it. If that fails, it is tried again, and the error says why.
    async fn save(&mut self) -> Result<(), Error> {
        if !self.unsaved.rows.is_empty() {
            let rows: Arc<[Row]> = std::mem::take(&mut self.unsaved.rows).into();
            if let Err(error) = rows::save(&self.parts.store, &self.parts.vault, Arc::clone(&rows)).await {
                self.unsaved.rows = newest(&rows);
                self.unsaved.retry_at = Some(Instant::now() + SAVE_RETRY);
                return Err(Error::NotSaved(error.to_string()));
            }
        }
        self.unsaved.retry_at = None;
        let creations = std::mem::take(&mut self.unsaved.creations);
        if !creations.is_empty() {
            let (dispatcher, signal) = (self.dispatcher(), self.signal.clone());
            self.parts.tracker.spawn(async move {
                for creation in creations {
                    let (task, created) = (creation.task, dispatcher.create(creation).await);
                    if signal.send(Signal::Created(task, created)).await.is_err() {
                        return;
                    }
                }
            });
        }
        let noted = std::mem::take(&mut self.unsaved.noted);
        if !noted.is_empty() {
            // What the engine does not forget, it says again after the next start.
            let _is_said_again = self.parts.engine.note_deleted(noted).await;
        }
        Ok(())
    }
}

/// The rows without those that a later one replaces, so that retries stay bounded by the state.
fn newest(rows: &[Row]) -> Vec<Row> {
    let mut seen = HashSet::new();
    let mut kept: Vec<_> = rows
        .iter()
        .rev()
        .filter(|row| seen.insert(row.key()))
        .cloned()
        .collect();
    kept.reverse();
    kept
}

/// Resolves when tasks of subscriptions changed, tasks were deleted, or the engine has ended. Cancel-safe.
async fn of_engine(events: &mut Events) -> Wakeup {
    loop {
        match events.next().await {
            None => return Wakeup::Ended,
            Some(Err(_)) => return Wakeup::EventsMissed,
            Some(Ok((_, engine::Event::TasksDeleted(_)))) => return Wakeup::TasksDeleted,
            Some(Ok((_, engine::Event::TasksChanged(tasks)))) => {
                let changed = of_feeds(&tasks);
                if !changed.is_empty() {
                    return Wakeup::TasksChanged(changed);
                }
            }
            Some(Ok(_)) => {}
        }
    }
}

/// Whether another file may succeed where this one failed: not if the disk, the proxy, a plugin or a login is the cause.
fn is_of_the_file(kind: FailureKind) -> bool {
    let is_ours = matches!(
        kind,
        FailureKind::Proxy
            | FailureKind::Plugin
            | FailureKind::PluginUnavailable
            | FailureKind::LoginRequired
            | FailureKind::Internal
    );
    !is_ours && !kind.is_disk()
}

/// Those of `tasks` that are of subscriptions, and whether they failed for good.
fn of_feeds(tasks: &[Arc<engine::Task>]) -> Vec<(TaskId, bool)> {
    let of_feeds = tasks.iter().filter(|task| task.options().feed.is_some());
    let changed = of_feeds.map(|task| {
        let failure = task.failure().filter(|_| task.status() == Status::Error);
        let has_failed = failure.is_some_and(|failure| is_of_the_file(failure.kind));
        (TaskId(uuid::Uuid::from_bytes(*task.id.as_bytes())), has_failed)
    });
    changed.collect()
}

/// Waits until `deadline`; for ever if there is none. Cancel-safe.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
