//! Where the engine's events become the daemon's: numbered, encoded once, and kept in the ring for all connections.

use std::{collections::HashMap, sync::Arc, time::Duration};

use engine::{Engine, Event, Events, Group, Task, TaskId};
use futures_util::FutureExt as _;
use plugin_host::{Changes, Plugins};
use protocol::{
    DaemonEvent, RuntimeStats, SERVICE_EVENT, Service, ServiceEvent, ServiceEventParams, SiteAuthEntryDto, TaskStatus,
    TasksSnapshot, encode_notification,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use crate::{
    call,
    configuration::Configuration,
    disk::FreeSpace,
    history::History,
    ring::{Ring, Streamed, Told},
    view,
};

/// Questions that may wait for the hub.
const ASK_BACKLOG: usize = 64;

/// Events taken in before the hub looks at its questions and timers again.
const MAX_ROUND: usize = 256;

/// Tasks in one event from which on it is encoded while it is sent instead of being kept as text (about 200 KiB).
const STREAM_FROM: usize = 256;

/// Tasks changed by one call from which on no history is kept: it would be the same line that many times.
const MAX_NOTED: usize = 256;

/// How often the sums are told while they change.
const STATS_EVERY: Duration = Duration::from_millis(500);

/// The daemon is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended;

/// Everything as of one event, before it is encoded.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) sequence: u64,
    pub(crate) engine: engine::Snapshot,
    pub(crate) sites: Vec<SiteAuthEntryDto>,
    pub(crate) stats: RuntimeStats,
}

enum Ask {
    Moment(oneshot::Sender<Result<Moment, Ended>>),
    Stats(oneshot::Sender<RuntimeStats>),
    SaveHistory(oneshot::Sender<()>),
    ConfigChanged(oneshot::Sender<()>),
    PluginsChanged(oneshot::Sender<()>),
}

/// How far the hub is.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    /// In the engine's events.
    engine: u64,
    /// In its own.
    own: u64,
}

/// The handle of the hub.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    asks: mpsc::Sender<Ask>,
    reached: watch::Receiver<Reached>,
    engine: Engine,
    ring: Arc<Ring>,
    epoch: Arc<str>,
}

impl Hub {
    /// The events.
    pub(crate) fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// In which epoch they are numbered.
    pub(crate) fn epoch(&self) -> &str {
        &self.epoch
    }

    /// The sequence number that covers everything the engine has answered so far.
    pub(crate) async fn sequence_of_now(&self) -> Result<u64, Ended> {
        let engine = self.engine.sequence();
        let mut reached = self.reached.clone();
        let reached = reached
            .wait_for(|reached| reached.engine >= engine)
            .await
            .map_err(|_| Ended)?;
        Ok(reached.own)
    }

    /// Everything, as of one event.
    pub(crate) async fn moment(&self) -> Result<Moment, Ended> {
        self.ask(Ask::Moment).await?
    }

    /// The sums.
    pub(crate) async fn stats(&self) -> Result<RuntimeStats, Ended> {
        self.ask(Ask::Stats).await
    }

    /// Resolves once all that happened so far can be read from the store.
    pub(crate) async fn save_history(&self) -> Result<(), Ended> {
        self.ask(Ask::SaveHistory).await
    }

    /// Tells everyone the configuration.
    pub(crate) async fn config_changed(&self) -> Result<(), Ended> {
        self.ask(Ask::ConfigChanged).await
    }

    /// Tells everyone the plugins, if they changed since they were told.
    pub(crate) async fn plugins_changed(&self) -> Result<(), Ended> {
        self.ask(Ask::PluginsChanged).await
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Ended> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(ask(reply)).await.map_err(|_| Ended)?;
        answer.await.map_err(|_| Ended)
    }
}

/// What runs behind the handle.
pub(crate) struct Worker {
    engine: Engine,
    plugins: Option<(Plugins, Changes)>,
    events: Events,
    configuration: Arc<Configuration>,
    history: History,
    free_space: FreeSpace,
    ring: Arc<Ring>,
    epoch: Arc<str>,
    asks: mpsc::Receiver<Ask>,
    reached: watch::Sender<Reached>,
    statuses: HashMap<TaskId, TaskStatus>,
    groups: Vec<Arc<Group>>,
    samples: u64,
    /// The sum over the live runs, as last sampled.
    download_bps: u64,
    active: u64,
    pending: u64,
    told_stats: RuntimeStats,
    /// When to tell the sums, if they changed.
    stats_at: Option<Instant>,
}

/// Makes the hub; `Worker::run` is to be spawned.
pub(crate) async fn start(
    engine: Engine,
    plugins: Option<Plugins>,
    configuration: Arc<Configuration>,
    history: History,
    free_space: FreeSpace,
    epoch: Arc<str>,
) -> Result<(Hub, Worker), engine::CommandError> {
    let events = engine.events();
    let snapshot = engine.snapshot().await?;
    let ring = Arc::new(Ring::new());
    let (ask, asks) = mpsc::channel(ASK_BACKLOG);
    let (reached_sender, reached) = watch::channel(Reached {
        engine: snapshot.sequence,
        own: 0,
    });
    let hub = Hub {
        asks: ask,
        reached,
        engine: engine.clone(),
        ring: Arc::clone(&ring),
        epoch: Arc::clone(&epoch),
    };
    let plugins = plugins.map(|plugins| {
        let changes = plugins.changes();
        (plugins, changes)
    });
    let mut worker = Worker {
        engine,
        plugins,
        events,
        configuration,
        history,
        free_space,
        ring,
        epoch,
        asks,
        reached: reached_sender,
        statuses: HashMap::new(),
        groups: Vec::new(),
        samples: 0,
        download_bps: 0,
        active: 0,
        pending: 0,
        told_stats: RuntimeStats::default(),
        stats_at: None,
    };
    worker.take_in(&snapshot);
    Ok((hub, worker))
}

/// What the worker woke up for.
enum Turn {
    Event(Option<Result<(u64, Event), engine::Gap>>),
    Ask(Ask),
    Plugins,
    Timer,
}

impl Worker {
    /// Runs until the engine has ended.
    pub(crate) async fn run(mut self) {
        loop {
            let deadline = [self.history.save_at(), self.stats_at].into_iter().flatten().min();
            let turn = tokio::select! {
                event = self.events.next() => Turn::Event(event),
                Some(ask) = self.asks.recv() => Turn::Ask(ask),
                () = changed(&mut self.plugins) => Turn::Plugins,
                () = until(deadline) => Turn::Timer,
            };
            match turn {
                Turn::Event(None) => break,
                Turn::Event(Some(event)) => self.round(event).await,
                Turn::Ask(ask) => self.answer(ask).await,
                Turn::Plugins => self.tell_plugins(),
                Turn::Timer => {}
            }
            if self.stats_at.is_some_and(|at| at <= Instant::now()) {
                self.tell_stats();
            }
            if self.history.is_due() {
                self.history.save().await;
            }
        }
        self.history.save().await;
    }

    /// Takes in an event and those that wait behind it.
    async fn round(&mut self, first: Result<(u64, Event), engine::Gap>) {
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(event) = next.take() {
            self.take(event).await;
            taken += 1;
            if taken < MAX_ROUND {
                next = self.events.next().now_or_never().flatten();
            }
        }
    }

    async fn take(&mut self, event: Result<(u64, Event), engine::Gap>) {
        match event {
            Ok((sequence, event)) => {
                // A snapshot after a gap may be ahead of the events that follow it.
                if sequence > self.reached.borrow().engine {
                    self.tell_event(event).await;
                    self.publish_reached(sequence);
                }
            }
            Err(engine::Gap(missed)) => {
                tracing::warn!(missed, "the daemon fell behind its engine; clients start over");
                if let Ok(snapshot) = self.engine.snapshot().await {
                    self.take_in(&snapshot);
                    self.ring.break_off();
                    self.publish_reached(snapshot.sequence);
                }
            }
        }
    }

    /// Both numbers change together: who waits for the engine's reads the own one that belongs to it.
    fn publish_reached(&self, engine: u64) {
        let own = self.ring.newest();
        self.reached.send_modify(|reached| {
            reached.engine = reached.engine.max(engine);
            reached.own = own;
        });
    }

    async fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Moment(reply) => {
                let moment = self.moment().await;
                let _nobody_waits = reply.send(moment);
            }
            Ask::Stats(reply) => {
                let _nobody_waits = reply.send(self.stats());
            }
            Ask::SaveHistory(reply) => {
                self.history.save().await;
                let _nobody_waits = reply.send(());
            }
            Ask::ConfigChanged(reply) => {
                self.tell(&DaemonEvent::ConfigChanged(self.configuration.snapshot()));
                self.publish_reached(0);
                let _nobody_waits = reply.send(());
            }
            Ask::PluginsChanged(reply) => {
                if changed(&mut self.plugins).now_or_never().is_some() {
                    self.tell_plugins();
                }
                let _nobody_waits = reply.send(());
            }
        }
    }

    fn tell_plugins(&mut self) {
        let plugins = self.plugins.as_ref().map(|(plugins, _)| plugins);
        self.tell(&DaemonEvent::PluginsChanged(call::plugins(plugins)));
        self.publish_reached(0);
    }

    /// A snapshot of the engine, and the own sequence number that it belongs to: the events up to it are told first.
    async fn moment(&mut self) -> Result<Moment, Ended> {
        let snapshot = self.engine.snapshot().await.map_err(|_| Ended)?;
        let sites = self.sites().await;
        while self.reached.borrow().engine < snapshot.sequence {
            match self.events.next().await {
                Some(event) => self.take(event).await,
                None => return Err(Ended),
            }
        }
        self.publish_reached(0);
        Ok(Moment {
            sequence: self.ring.newest(),
            engine: snapshot,
            sites,
            stats: self.stats(),
        })
    }

    /// Starts over from a snapshot.
    fn take_in(&mut self, snapshot: &engine::Snapshot) {
        self.statuses = snapshot
            .tasks
            .iter()
            .map(|task| (task.id, view::status(task.status())))
            .collect();
        self.active = 0;
        self.pending = 0;
        for status in self.statuses.values() {
            count(&mut self.active, &mut self.pending, Some(*status), 1);
        }
        self.groups.clone_from(&snapshot.groups);
    }

    async fn tell_event(&mut self, event: Event) {
        match event {
            Event::TasksChanged(tasks) => self.tell_tasks(&tasks),
            Event::TasksDeleted(tasks) => self.tell_deleted(&tasks),
            Event::Progress(samples) => self.tell_progress(&samples),
            Event::Notice { task, message } => self.note(task, "notice", &message, None),
            Event::AttemptFailed { task, failure, wait } => {
                let message = format!("{}; next attempt in {:.1} s", failure.message, wait.as_secs_f32());
                self.note(task, "retry", &message, None);
            }
            Event::Skipped { task, existing } => {
                let message = format!("{} exists already", existing.display());
                self.note(task, "skipped", &message, None);
            }
            Event::QueuesChanged(queues) => {
                self.tell(&DaemonEvent::QueuesChanged(
                    queues.iter().map(|queue| view::queue(queue)).collect(),
                ));
            }
            Event::GroupsAdded(groups) => {
                self.groups.extend(groups.iter().cloned());
                self.tell_groups();
            }
            Event::GroupsDeleted(gone) => {
                self.groups.retain(|group| !gone.contains(&group.id));
                self.tell_groups();
            }
            Event::SettingsChanged(settings) => {
                self.tell(&DaemonEvent::ConfigChanged(self.configuration.snapshot_with(&settings)));
            }
            Event::SitesChanged => {
                let sites = self.sites().await;
                self.tell(&DaemonEvent::SiteAuthChanged(sites));
            }
            Event::BoostChanged(task) => {
                let priority = task.iter().map(ToString::to_string).collect();
                self.tell(&DaemonEvent::PriorityChanged(priority));
            }
        }
    }

    fn tell_tasks(&mut self, tasks: &Arc<[Arc<Task>]>) {
        match &tasks[..] {
            [] => return,
            [task] => self.tell(&DaemonEvent::TaskChanged(Box::new(view::task(task)))),
            _ if tasks.len() < STREAM_FROM => {
                self.tell(&DaemonEvent::TasksSnapshot(TasksSnapshot {
                    tasks: tasks.iter().map(|task| view::task(task)).collect(),
                    deleted_task_ids: Vec::new(),
                }));
            }
            _ => self.tell_streamed(Arc::clone(tasks)),
        }
        let is_noted = tasks.len() <= MAX_NOTED;
        for task in tasks.iter() {
            self.see(task, is_noted);
        }
        self.stats_changed();
    }

    /// Keeps count of a task's status, and notes what people may ask about later.
    fn see(&mut self, task: &Task, is_noted: bool) {
        let status = view::status(task.status());
        let before = self.statuses.insert(task.id, status);
        if before == Some(status) {
            return;
        }
        count(&mut self.active, &mut self.pending, before, -1);
        count(&mut self.active, &mut self.pending, Some(status), 1);
        // That a task was made is in the task itself, and preparing is a moment of every run.
        let message = match (before, status) {
            (None, _) | (_, TaskStatus::Preparing) => return,
            (_, TaskStatus::Error) => task.failure().map_or("failed", |failure| failure.message.as_str()),
            (_, TaskStatus::Pending) => task
                .failure()
                .map_or("waits for its turn", |failure| failure.message.as_str()),
            (_, status) => status.name(),
        };
        if is_noted {
            self.note(task.id, "status", message, Some(status));
        }
    }

    fn tell_deleted(&mut self, tasks: &[TaskId]) {
        for task in tasks {
            let before = self.statuses.remove(task);
            count(&mut self.active, &mut self.pending, before, -1);
            self.history.forget(*task);
        }
        if let [task] = tasks {
            self.tell(&DaemonEvent::TaskDeleted {
                task_id: task.to_string(),
            });
        } else if !tasks.is_empty() {
            self.tell(&DaemonEvent::TasksSnapshot(TasksSnapshot {
                tasks: Vec::new(),
                deleted_task_ids: tasks.iter().map(ToString::to_string).collect(),
            }));
        }
        self.stats_changed();
    }

    fn tell_progress(&mut self, samples: &[(TaskId, transfer::Progress)]) {
        self.download_bps = samples.iter().map(|(_, progress)| progress.bytes_per_second).sum();
        for (task, progress) in samples {
            self.samples += 1;
            self.tell(&DaemonEvent::TaskRuntimeChanged(Box::new(view::runtime(
                *task,
                progress,
                self.samples,
            ))));
        }
        self.stats_changed();
    }

    fn tell_groups(&mut self) {
        let groups = self.groups.iter().map(|group| view::group(group)).collect();
        self.tell(&DaemonEvent::GroupsChanged(groups));
    }

    fn note(&mut self, task: TaskId, kind: &'static str, message: &str, status: Option<TaskStatus>) {
        let entry = self.history.note(task, kind, message, status);
        self.tell(&DaemonEvent::TaskActivityAdded(entry));
    }

    fn stats(&mut self) -> RuntimeStats {
        if self.active == 0 {
            self.download_bps = 0;
        }
        let (save_dir, disk_free_bytes) = self.free_space.look(&self.engine.settings().settings);
        RuntimeStats {
            active_tasks: self.active,
            pending_tasks: self.pending,
            total_download_bps: self.download_bps,
            total_upload_bps: 0,
            disk_free_bytes,
            save_dir,
        }
    }

    fn stats_changed(&mut self) {
        self.stats_at.get_or_insert_with(|| Instant::now() + STATS_EVERY);
    }

    fn tell_stats(&mut self) {
        self.stats_at = None;
        let stats = self.stats();
        if stats != self.told_stats {
            self.told_stats = stats.clone();
            self.tell(&DaemonEvent::RuntimeStatsChanged(stats));
            self.publish_reached(0);
        }
    }

    async fn sites(&self) -> Vec<SiteAuthEntryDto> {
        let sites = self.engine.sites().await.unwrap_or_default();
        sites
            .into_iter()
            .map(|(site, user)| SiteAuthEntryDto::new(site.to_string(), user))
            .collect()
    }

    fn tell(&self, event: &DaemonEvent) {
        self.ring.push(|sequence| {
            let params = ServiceEventParams {
                epoch: self.epoch.to_string(),
                sequence,
                event: ServiceEvent {
                    service: Service::Daemon,
                    event,
                },
            };
            let text = encode_notification(SERVICE_EVENT, &params);
            Told::Text(text.expect("our records always encode").into())
        });
    }

    fn tell_streamed(&self, tasks: Arc<[Arc<Task>]>) {
        self.ring.push(|sequence| {
            let head = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"{SERVICE_EVENT}\",\"params\":{{\"epoch\":\"{}\",\
                 \"sequence\":{sequence},\"event\":{{\"service\":\"daemon\",\"event\":\
                 {{\"type\":\"tasksSnapshot\",\"data\":{{\"deletedTaskIds\":[],\"tasks\":[",
                self.epoch
            );
            Told::Streamed(Arc::new(Streamed {
                head,
                tasks,
                tail: "]}}}}}".to_owned(),
            }))
        });
    }
}

fn count(active: &mut u64, pending: &mut u64, status: Option<TaskStatus>, change: i64) {
    let counter = match status {
        Some(TaskStatus::Downloading | TaskStatus::Preparing) => active,
        Some(TaskStatus::Pending) => pending,
        _ => return,
    };
    *counter = counter.saturating_add_signed(change);
}

/// Resolves when plugins changed since the last time. Cancel-safe.
async fn changed(plugins: &mut Option<(Plugins, Changes)>) {
    let is_change = match plugins {
        Some((_, changes)) => changes.changed().await,
        None => false,
    };
    if !is_change {
        std::future::pending::<()>().await;
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
