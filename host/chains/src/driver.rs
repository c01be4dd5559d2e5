//! The loop around the pure state: feeds it inputs, and performs the effects it returns. It is the only owner of the state.
//! Callers are answered, and steps started, only once the rows of an input are on the disk.

mod begin;
mod runs;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use confined::OwnCommand;
use engine::{Engine, GroupId, Milestone, Milestones, Queue, Task, TaskId, TaskMilestone};
use post::{
    MAX_PASSWORDS, Runner,
    job::{Effect, Input, JobError, JobId, Run, State, Step, Tool},
};
use protocol::PostJobs;
use store::{Store, Vault};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::Secret;

use crate::{
    driver::runs::Signal,
    plan::stages_in,
    record,
    rows::{self, About, Batch, LoadError, Looked, Stored},
};

/// Queued messages; further callers wait to enqueue theirs.
const MESSAGE_BACKLOG: usize = 64;

/// Queued news of runs. A run that has more waits, except with its progress, which is dropped.
const SIGNAL_BACKLOG: usize = 64;

/// Retry interval after a failed save.
const SAVE_RETRY: Duration = Duration::from_secs(5);

/// How long it may take until it is saved that a task without a chain was looked at: after a crash it is looked at again.
const MARK_DELAY: Duration = Duration::from_secs(5);

/// How often jobs that wait for files are looked at, beside whenever a task ends: nothing else tells that one was deleted
/// after it had failed.
const REVIEW_INTERVAL: Duration = Duration::from_secs(15);

/// Directories that are swept again.
const MAX_RESWEPT: usize = 1000;

/// The least time between two announcements of changes.
const CHANGE_INTERVAL: Duration = Duration::from_millis(500);

/// The chain of a queue.
pub type ChainOf = Arc<dyn Fn(Option<&Queue>) -> Vec<Step> + Send + Sync>;

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It was refused; nothing has changed.
    #[error(transparent)]
    Refused(#[from] JobError),
    /// There is no such task.
    #[error("there is no such task or group")]
    Unknown,
    /// Its files are not all there.
    #[error("{0} is not finished")]
    NotFinished(String),
    /// No step has to do with the files.
    #[error("there is nothing to do: {0}")]
    NothingToDo(String),
    /// Too many passwords.
    #[error("{0} passwords; {MAX_PASSWORDS} are possible")]
    Passwords(usize),
    /// It is effective in memory but could not be saved; saving is retried.
    #[error("the change could not be saved: {0}")]
    NotSaved(String),
    /// The jobs have ended.
    #[error("the service is shutting down")]
    Closed,
}

/// Why the jobs do not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// They cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// They cannot be saved.
    #[error("cannot save the jobs that follow downloads")]
    Save(#[from] store::WriteError),
}

/// Whose files a job works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A task's, with the other volumes if it is one of an archive.
    Task(TaskId),
    /// All of a group.
    Group(GroupId),
}

#[derive(Debug)]
pub(crate) enum Command {
    Cancel(JobId),
    Retry(JobId),
    Clear,
    Passwords(Vec<Secret>),
}

#[derive(Debug)]
pub(crate) enum Message {
    Begin {
        of: Subject,
        steps: Vec<Step>,
        passwords: Vec<Secret>,
        reply: oneshot::Sender<Result<JobId, Error>>,
    },
    Command(Command, oneshot::Sender<Result<usize, Error>>),
    List(oneshot::Sender<PostJobs>),
}

/// Connects the handle to the loop.
#[derive(Debug, Clone)]
pub(crate) struct Channels {
    pub(crate) messages: mpsc::Sender<Message>,
    pub(crate) changes: watch::Receiver<u64>,
}

/// What the loop is built from.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) vault: Arc<Vault>,
    pub(crate) engine: Engine,
    pub(crate) milestones: Milestones,
    pub(crate) chain_of: ChainOf,
    pub(crate) unpacker: Option<OwnCommand>,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) tracker: TaskTracker,
    pub(crate) stop: CancellationToken,
}

struct Driver {
    parts: Parts,
    runner: Arc<Runner>,
    state: State,
    about: BTreeMap<JobId, About>,
    passwords: Vec<Secret>,
    messages: mpsc::Receiver<Message>,
    signals: mpsc::Receiver<Signal>,
    signal: mpsc::Sender<Signal>,
    runs: HashMap<(JobId, Run), Running>,
    unsaved: Unsaved,
    changed: watch::Sender<u64>,
    /// When changes are announced next, if there are some.
    announce_at: Option<Instant>,
    announced: Instant,
    /// When jobs that wait for files are looked at next, if there are some.
    review_at: Option<Instant>,
    reswept: Reswept,
}

/// Directories in which something that is not needed any more was still in use.
#[derive(Debug, Default)]
struct Reswept {
    places: BTreeSet<PathBuf>,
    /// When they are swept next, if there are some.
    at: Option<Instant>,
}

impl Reswept {
    fn add(&mut self, places: Vec<PathBuf>) {
        self.places.extend(places);
        // The next start sweeps what is too much.
        while self.places.len() > MAX_RESWEPT {
            self.places.pop_last();
        }
        if !self.places.is_empty() {
            self.at.get_or_insert_with(|| Instant::now() + REVIEW_INTERVAL);
        }
    }

    /// Those whose time has come.
    fn take_due(&mut self, now: Instant) -> BTreeSet<PathBuf> {
        if self.at.is_some_and(|at| at <= now) {
            return std::mem::take(self).places;
        }
        BTreeSet::new()
    }
}

/// A run of a step.
struct Running {
    stop: CancellationToken,
    /// Where it may leave stages.
    stages_in: Vec<PathBuf>,
    /// It waits until what it intends is saved.
    proceed: Option<oneshot::Sender<()>>,
}

/// What waits for the disk.
struct Unsaved {
    batch: Batch,
    is_dirty: bool,
    effects: Vec<Effect>,
    /// Directories in which what runs left is not needed any more.
    swept: Vec<PathBuf>,
    save_at: Option<Instant>,
}

enum Wakeup {
    Message(Message),
    Signal(Signal),
    Completed(Arc<Task>),
    /// A task that others may wait for has ended in another way, or goes on.
    Changed,
    /// The engine was faster than this loop.
    Missed,
    Timer,
    Ended,
}

/// Reads the rows and spawns the loop.
pub(crate) async fn start(parts: Parts) -> Result<Channels, StartError> {
    let loaded = rows::load(&parts.store, &parts.vault).await?;
    let is_first = loaded.salt.is_none();
    let salt = loaded
        .salt
        .unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string()[..12].to_owned());
    let mut batch = Batch {
        jobs: BTreeMap::new(),
        passwords: None,
        last: loaded.last,
        looked: loaded.looked.unwrap_or_else(|| Looked {
            at: jiff::Timestamp::now().as_millisecond(),
            tasks: Vec::new(),
        }),
        salt: salt.clone(),
    };
    if is_first {
        // Downloads that were finished before are not followed.
        rows::save(&parts.store, &parts.vault, batch.clone()).await?;
    }
    let about = loaded
        .jobs
        .iter()
        .map(|job| (job.record.id, job.about.clone()))
        .collect();
    let records = loaded.jobs.into_iter().map(|job| job.record);
    let mut effects = Vec::new();
    let state = State::load(records.collect(), &mut effects);
    batch.jobs.clear();
    let (message_sender, messages) = mpsc::channel(MESSAGE_BACKLOG);
    let (signal, signals) = mpsc::channel(SIGNAL_BACKLOG);
    let (changed, changes) = watch::channel(0);
    let channels = Channels {
        messages: message_sender,
        changes,
    };
    let tracker = parts.tracker.clone();
    let runner = Runner {
        unpacker: parts.unpacker.clone(),
        tool: Arc::clone(&parts.tool),
        salt,
        max_bytes: u64::MAX,
    };
    let driver = Driver {
        parts,
        runner: Arc::new(runner),
        state,
        about,
        passwords: loaded.passwords,
        messages,
        signals,
        signal,
        runs: HashMap::new(),
        unsaved: Unsaved {
            batch,
            is_dirty: false,
            effects: Vec::new(),
            swept: Vec::new(),
            save_at: None,
        },
        changed,
        announce_at: None,
        announced: Instant::now(),
        review_at: Some(Instant::now()),
        reswept: Reswept::default(),
    };
    tracker.spawn(driver.drive(effects));
    Ok(channels)
}

impl Driver {
    async fn drive(mut self, effects: Vec<Effect>) {
        let places = self.state.views().flat_map(|view| {
            let record = view.record;
            record.steps.iter().flat_map(move |step| stages_in(step, &record.files))
        });
        self.unsaved.swept = places.collect();
        self.take_effects(effects);
        let _is_retried = self.save().await;
        self.catch_up().await;
        loop {
            match self.next_wakeup().await {
                Wakeup::Ended => return,
                Wakeup::Message(message) => self.take_message(message).await,
                Wakeup::Signal(signal) => {
                    self.take_signal(signal);
                    // News that wait share the transaction.
                    while let Ok(next) = self.signals.try_recv() {
                        self.take_signal(next);
                    }
                    let _is_retried = self.save().await;
                }
                Wakeup::Completed(task) => self.completed(&task).await,
                Wakeup::Missed => self.catch_up().await,
                Wakeup::Changed if self.review_at.is_some() => self.review_soon(),
                Wakeup::Changed => {}
                Wakeup::Timer => {
                    if self.review_at.is_some_and(|at| at <= Instant::now()) {
                        self.review(None).await;
                    }
                    let due = self.reswept.take_due(Instant::now());
                    self.sweep(due);
                    if self.unsaved.save_at.is_some_and(|at| at <= Instant::now()) {
                        let _is_retried = self.save().await;
                    }
                }
            }
            self.announce();
        }
    }

    async fn next_wakeup(&mut self) -> Wakeup {
        let deadlines = [self.unsaved.save_at, self.announce_at, self.review_at, self.reswept.at];
        let deadline = deadlines.into_iter().flatten().min();
        tokio::select! {
            () = self.parts.stop.cancelled() => Wakeup::Ended,
            Some(message) = self.messages.recv() => Wakeup::Message(message),
            Some(signal) = self.signals.recv() => Wakeup::Signal(signal),
            wakeup = of_engine(&mut self.parts.milestones) => wakeup,
            () = until(deadline) => Wakeup::Timer,
        }
    }

    async fn take_message(&mut self, message: Message) {
        match message {
            Message::List(reply) => {
                let _nobody_waits = reply.send(self.list());
            }
            Message::Begin {
                of,
                steps,
                passwords,
                reply,
            } => {
                let begun = match self.begin(of, steps, passwords).await {
                    Ok(id) => self.save().await.map(|()| id),
                    Err(error) => Err(error),
                };
                self.announce_now();
                let _nobody_waits = reply.send(begun);
            }
            Message::Command(command, reply) => {
                let done = match self.command(command) {
                    Ok(count) => self.save().await.map(|()| count),
                    Err(error) => Err(error),
                };
                self.announce_now();
                let _nobody_waits = reply.send(done);
            }
        }
    }

    fn command(&mut self, command: Command) -> Result<usize, Error> {
        match command {
            Command::Cancel(id) => self.apply(Input::Cancel(id))?,
            Command::Retry(id) => {
                self.apply(Input::Retry(id))?;
                // It may wait for files.
                self.review_soon();
            }
            Command::Clear => {
                let ended = self.state.views().filter(|view| view.record.phase.is_ended());
                let ended: Vec<_> = ended.map(|view| view.record.id).collect();
                for id in &ended {
                    self.apply(Input::Forget(*id))?;
                }
                return Ok(ended.len());
            }
            Command::Passwords(passwords) => {
                if passwords.len() > MAX_PASSWORDS {
                    return Err(Error::Passwords(passwords.len()));
                }
                self.passwords.clone_from(&passwords);
                self.unsaved.batch.passwords = Some(passwords);
                self.unsaved.is_dirty = true;
                self.note_change();
            }
        }
        Ok(0)
    }

    fn list(&self) -> PostJobs {
        let none = About::default();
        let jobs = self.state.views().map(|view| {
            let about = self.about.get(&view.record.id).unwrap_or(&none);
            record::job(about, &view)
        });
        let mut jobs: Vec<_> = jobs.collect();
        jobs.reverse();
        PostJobs {
            jobs,
            passwords: u32::try_from(self.passwords.len()).unwrap_or(u32::MAX),
        }
    }

    fn take_signal(&mut self, signal: Signal) {
        let input = match signal {
            Signal::InUse(places) => return self.reswept.add(places),
            Signal::Progress(id, run, thousandths) => Input::Progress(id, run, thousandths),
            Signal::Intends(id, run, paths, proceed) => {
                if let Some(running) = self.runs.get_mut(&(id, run)) {
                    running.proceed = Some(proceed);
                }
                Input::Intends(id, run, paths)
            }
            Signal::Ended(id, run, result) => {
                let ended = self.runs.remove(&(id, run));
                let stages_in = ended.map(|running| running.stages_in);
                self.unsaved.swept.extend(stages_in.into_iter().flatten());
                match result {
                    Err(reason) => Input::Failed(id, run, reason),
                    Ok(outcome) => Input::Finished {
                        id,
                        run,
                        files: outcome.files,
                        originals: outcome.originals,
                    },
                }
            }
            Signal::Removed(id, run, kept) => Input::Removed(id, run, kept),
        };
        let _is_no_command = self.apply(input);
    }

    fn apply(&mut self, input: Input) -> Result<(), JobError> {
        let mut effects = Vec::new();
        self.state.apply(input, &mut effects)?;
        self.take_effects(effects);
        Ok(())
    }

    /// Keeps what waits for the disk, and announces the rest.
    fn take_effects(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Save(record) => {
                    let about = self.about.get(&record.id).cloned().unwrap_or_default();
                    self.unsaved.is_dirty = true;
                    self.unsaved
                        .batch
                        .jobs
                        .insert(record.id, Some(Stored { about, record }));
                }
                Effect::Delete(id) => {
                    self.about.remove(&id);
                    self.unsaved.is_dirty = true;
                    self.unsaved.batch.jobs.insert(id, None);
                    self.note_change();
                }
                Effect::Publish(_) => self.note_change(),
                effect => self.unsaved.effects.push(effect),
            }
        }
    }

    /// Saves what changed, then does what waited for it. If that fails, it is tried again, and the error says why.
    async fn save(&mut self) -> Result<(), Error> {
        if self.unsaved.is_dirty {
            let batch = self.unsaved.batch.clone();
            if let Err(error) = rows::save(&self.parts.store, &self.parts.vault, batch).await {
                self.unsaved.save_at = Some(Instant::now() + SAVE_RETRY);
                return Err(Error::NotSaved(error.to_string()));
            }
            self.unsaved.batch.jobs.clear();
            self.unsaved.batch.passwords = None;
            self.unsaved.is_dirty = false;
        }
        self.unsaved.save_at = None;
        let swept = std::mem::take(&mut self.unsaved.swept);
        self.sweep(swept.into_iter().collect());
        for effect in std::mem::take(&mut self.unsaved.effects) {
            self.perform(effect);
        }
        Ok(())
    }

    fn note_change(&mut self) {
        let at = (self.announced + CHANGE_INTERVAL).max(Instant::now());
        self.announce_at.get_or_insert(at);
    }

    fn announce(&mut self) {
        if self.announce_at.is_some_and(|at| at <= Instant::now()) {
            self.announce_now();
        }
    }

    /// Announces changes, if there are some; after a command, before its caller is answered.
    fn announce_now(&mut self) {
        if self.announce_at.take().is_some() {
            self.announced = Instant::now();
            self.changed.send_modify(|changes| *changes += 1);
        }
    }
}

/// Resolves when a task was completed, milestones were missed, or the engine has ended. Cancel-safe.
async fn of_engine(milestones: &mut Milestones) -> Wakeup {
    loop {
        match milestones.next().await {
            None => return Wakeup::Ended,
            Some(Err(_)) => return Wakeup::Missed,
            Some(Ok(Milestone::Task(TaskMilestone::Completed, task))) => return Wakeup::Completed(task),
            Some(Ok(Milestone::Task(TaskMilestone::Failed | TaskMilestone::Cancelled | TaskMilestone::Started, _))) => {
                return Wakeup::Changed;
            }
            Some(Ok(_)) => {}
        }
    }
}

/// Waits until `deadline`; for ever if there is none. Cancel-safe.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_use_is_swept_again_after_a_while() {
        let (mut reswept, now) = (Reswept::default(), Instant::now());
        reswept.add(Vec::new());
        assert_eq!(reswept.at, None);
        reswept.add(vec!["/d".into()]);
        reswept.add(vec!["/d".into(), "/e".into()]);
        assert!(reswept.take_due(now).is_empty());
        let due = reswept.take_due(Instant::now() + REVIEW_INTERVAL);
        assert_eq!(due.len(), 2);
        assert_eq!(reswept.at, None, "until something is in use again");
        reswept.add((0..2 * MAX_RESWEPT).map(|number| number.to_string().into()).collect());
        assert_eq!(reswept.places.len(), MAX_RESWEPT);
    }
}
