//! The task behind the hub's handle: receives the events of the engine and the plugins, numbers and encodes them, and
//! appends them to the ring from which connections read.

use std::{collections::HashMap, sync::Arc};

use engine::{Engine, Event, Events, Group, Task, TaskId};
use futures_util::FutureExt as _;
use hooks::Hooks;
use plugin_host::{Changes, Plugins};
use protocol::{
    DaemonEvent, RssItemsChanged, RuntimeStats, SERVICE_EVENT, SelectionDto, SelectionResolved, Service, ServiceEvent,
    ServiceEventParams, SiteAuthEntryDto, TaskStatus, TasksSnapshot, encode_notification,
};
use rss::{Change, Subscriptions};
use tokio::{
    sync::{broadcast, mpsc, watch},
    time::Instant,
};
use transfer::{SafeUrl, SourceFailure};
use transfer_torrent::{Live, Torrents};

use crate::{
    configuration::Configuration,
    hub::{
        ask::{Ask, Ended, Feeds, Reached, UnencodedSnapshot},
        disk::FreeSpace,
        history::{History, Note},
        ring::{Notification, Ring, Streamed},
        sums::{Counted, Rates, Sums},
    },
    selection::{self, Selections},
    view,
};

/// Engine events that are handled in a row before requests and timers have their turn.
const MAX_ROUND: usize = 256;

/// The most tasks of one event. More are published as several events: a reader handles one while the next is encoded.
const MAX_PUBLISHED: usize = 256;

/// Events with this many tasks are encoded while they are sent; as text they would take about 100 KiB.
const STREAM_FROM: usize = 128;

/// The most deliveries of webhooks of one event, each with some kilobytes.
const MAX_DELIVERIES: usize = 64;

/// Batches of this size write no history: it would be the same line that many times.
const MAX_RECORDED: usize = 256;

/// The inputs of the worker.
pub(super) struct Sources {
    pub(super) engine: Engine,
    pub(super) plugins: Option<(Plugins, Changes)>,
    pub(super) rss: (Subscriptions, broadcast::Receiver<Change>),
    pub(super) hooks: (Hooks, broadcast::Receiver<hooks::Change>),
    /// Of the jobs that follow downloads.
    pub(super) jobs: watch::Receiver<u64>,
    pub(super) torrents: Option<Torrents>,
    pub(super) selections: (Selections, broadcast::Receiver<selection::Change>),
    pub(super) events: Events,
    pub(super) asks: mpsc::Receiver<Ask>,
    pub(super) configuration: Arc<Configuration>,
}

/// The outputs of the worker.
pub(super) struct Outputs {
    pub(super) ring: Arc<Ring>,
    pub(super) epoch: Arc<str>,
    pub(super) reached: watch::Sender<Reached>,
}

pub(crate) struct Worker {
    sources: Sources,
    outputs: Outputs,
    history: History,
    free_space: FreeSpace,
    sums: Sums,
    groups: Vec<Arc<Group>>,
    /// The URLs of tasks that are torrents.
    torrents: HashMap<TaskId, SafeUrl>,
    /// Number of progress samples so far.
    samples: u64,
}

enum Wakeup {
    Event(Option<Result<(u64, Event), engine::Gap>>),
    Ask(Ask),
    Plugins,
    Rss(Option<Change>),
    Webhooks(Option<hooks::Change>),
    Post,
    Selection(Option<selection::Change>),
    Timer,
}

impl Worker {
    pub(super) fn new(
        sources: Sources,
        outputs: Outputs,
        history: History,
        free_space: FreeSpace,
        snapshot: &engine::Snapshot,
    ) -> Self {
        let mut worker = Self {
            sources,
            outputs,
            history,
            free_space,
            sums: Sums::default(),
            groups: Vec::new(),
            torrents: HashMap::new(),
            samples: 0,
        };
        worker.rebuild(snapshot);
        worker
    }

    /// Runs until the engine has ended.
    pub(crate) async fn run(mut self) {
        loop {
            let ring = &self.outputs.ring;
            let deadline = [self.history.save_at(), self.sums.publish_at, ring.forget_at()]
                .into_iter()
                .flatten()
                .min();
            let turn = tokio::select! {
                event = self.sources.events.next() => Wakeup::Event(event),
                Some(ask) = self.sources.asks.recv() => Wakeup::Ask(ask),
                () = changed(&mut self.sources.plugins) => Wakeup::Plugins,
                change = next_or_missed(&mut self.sources.rss.1) => Wakeup::Rss(change),
                change = next_or_missed(&mut self.sources.hooks.1) => Wakeup::Webhooks(change),
                Ok(()) = self.sources.jobs.changed() => Wakeup::Post,
                change = next_or_missed(&mut self.sources.selections.1) => Wakeup::Selection(change),
                () = until(deadline) => Wakeup::Timer,
            };
            match turn {
                Wakeup::Event(None) => break,
                Wakeup::Event(Some(event)) => self.round(event).await,
                Wakeup::Ask(ask) => self.answer(ask).await,
                Wakeup::Plugins => self.publish_plugins(),
                Wakeup::Rss(change) => self.publish_rss(change).await,
                Wakeup::Webhooks(change) => self.publish_webhooks(change),
                Wakeup::Post => self.publish_post(),
                Wakeup::Selection(change) => self.publish_selection(change),
                Wakeup::Timer => {}
            }
            if self.sums.publish_at.is_some_and(|at| at <= Instant::now()) {
                self.publish_stats();
            }
            self.outputs.ring.forget_old();
            if self.history.is_due() {
                self.history.save().await;
            }
        }
        self.history.save().await;
    }

    /// Handles an event and those already queued behind it.
    async fn round(&mut self, first: Result<(u64, Event), engine::Gap>) {
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(event) = next.take() {
            self.handle_engine_event(event).await;
            taken += 1;
            if taken < MAX_ROUND {
                next = self.sources.events.next().now_or_never().flatten();
            }
        }
    }

    /// Publishes an event of the engine. After a gap (the channel overflowed), clients cannot follow the events: the
    /// counts are rebuilt from a snapshot, and the ring skips a number: every connection closes, and its client takes a
    /// new snapshot.
    async fn handle_engine_event(&mut self, event: Result<(u64, Event), engine::Gap>) {
        match event {
            Ok((sequence, event)) => {
                // A snapshot after a gap may be ahead of the events that follow it.
                if sequence > self.outputs.reached.borrow().engine {
                    self.publish_event(event).await;
                    self.publish_reached(sequence);
                }
            }
            Err(engine::Gap(missed)) => {
                tracing::warn!(missed, "the daemon fell behind its engine; clients start over");
                if let Ok(snapshot) = self.sources.engine.snapshot().await {
                    self.rebuild(&snapshot);
                    self.outputs.ring.force_gap();
                    self.publish_reached(snapshot.sequence);
                }
            }
        }
    }

    /// Publishes the newest sequence numbers, the engine's and the hub's, together: a writer waits until its change of
    /// the engine is published, and sends the hub's number with the reply.
    fn publish_reached(&self, engine: u64) {
        let own = self.outputs.ring.newest();
        self.outputs.reached.send_modify(|reached| {
            reached.engine = reached.engine.max(engine);
            reached.own = own;
        });
    }

    async fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::UnencodedSnapshot(reply) => {
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
                self.publish(&DaemonEvent::ConfigChanged(self.sources.configuration.snapshot()));
                self.publish_reached(0);
                let _nobody_waits = reply.send(());
            }
            Ask::PluginsChanged(reply) => {
                if self.sources.plugins.as_mut().is_some_and(|(_, changes)| changes.take()) {
                    self.publish_plugins();
                }
                let _nobody_waits = reply.send(());
            }
            Ask::WebhooksChanged(reply) => {
                while let Some(change) = next_or_missed(&mut self.sources.hooks.1).now_or_never() {
                    self.publish_webhooks(change);
                }
                let _nobody_waits = reply.send(());
            }
            Ask::SelectionsChanged(reply) => {
                while let Some(change) = next_or_missed(&mut self.sources.selections.1).now_or_never() {
                    self.publish_selection(change);
                }
                let _nobody_waits = reply.send(());
            }
            Ask::PostChanged(reply) => {
                if self.sources.jobs.has_changed().unwrap_or(false) {
                    self.sources.jobs.mark_unchanged();
                    self.publish_post();
                }
                let _nobody_waits = reply.send(());
            }
        }
    }

    /// Publishes what became of a question; `None` if some were missed.
    fn publish_selection(&mut self, change: Option<selection::Change>) {
        match change {
            Some(selection::Change::Pending(question)) => {
                self.publish(&DaemonEvent::SelectionPending(Box::new(SelectionDto::clone(&question))));
            }
            Some(selection::Change::Resolved(id)) => {
                let request_id = id.to_string();
                self.publish(&DaemonEvent::SelectionResolved(SelectionResolved { request_id }));
            }
            None => self.outputs.ring.force_gap(),
        }
        self.publish_reached(0);
    }

    fn publish_plugins(&mut self) {
        let plugins = self.sources.plugins.as_ref().map(|(plugins, _)| plugins);
        self.publish(&DaemonEvent::PluginsChanged(view::plugin::all(plugins)));
        self.publish_reached(0);
    }

    /// Publishes a change of the subscriptions; `None` if some were missed.
    async fn publish_rss(&mut self, change: Option<Change>) {
        match change {
            Some(Change::Items {
                source,
                revision,
                titles,
            }) => self.publish(&DaemonEvent::RssItemsChanged(RssItemsChanged {
                source_id: source.to_string(),
                item_revision: revision,
                notify_titles: titles,
            })),
            Some(Change::Sources) => self.publish(&DaemonEvent::RssSourcesChanged(self.feeds().await.sources)),
            // Which items changed is not known any more: clients read everything again.
            None => self.outputs.ring.force_gap(),
        }
        self.publish_reached(0);
    }

    /// Publishes a change of the log of webhooks; `None` if some were missed.
    fn publish_webhooks(&mut self, change: Option<hooks::Change>) {
        match change {
            Some(hooks::Change::Deliveries(deliveries)) => {
                for some in deliveries.chunks(MAX_DELIVERIES) {
                    self.publish(&DaemonEvent::WebhooksChanged(some.to_vec()));
                }
            }
            Some(hooks::Change::Cleared) => self.publish(&DaemonEvent::WebhooksCleared),
            None => self.outputs.ring.force_gap(),
        }
        self.publish_reached(0);
    }

    fn publish_post(&mut self) {
        self.publish(&DaemonEvent::PostJobsChanged);
        self.publish_reached(0);
    }

    async fn feeds(&self) -> Feeds {
        let rss = &self.sources.rss.0;
        let revisions = rss.revisions();
        Feeds {
            // They end only with the daemon.
            sources: rss.sources().await.unwrap_or_default(),
            revisions: revisions
                .iter()
                .map(|(source, revision)| (source.to_string(), *revision))
                .collect(),
        }
    }

    /// A snapshot of the engine with the hub's sequence number that it belongs to. Events up to the snapshot are
    /// published first.
    async fn moment(&mut self) -> Result<UnencodedSnapshot, Ended> {
        let snapshot = self.sources.engine.snapshot().await.map_err(|_| Ended)?;
        let sites = self.sites().await;
        let feeds = self.feeds().await;
        while self.outputs.reached.borrow().engine < snapshot.sequence {
            match self.sources.events.next().await {
                Some(event) => self.handle_engine_event(event).await,
                None => return Err(Ended),
            }
        }
        // Read last: a change is in the log before it is published, so none of an event that was published is missing. One
        // that is published again replaces the same entry.
        let log = self.sources.hooks.0.deliveries().await.map_err(|_| Ended)?;
        self.publish_reached(0);
        Ok(UnencodedSnapshot {
            webhook_deliveries: log.deliveries,
            selections: self.sources.selections.0.pending(),
            sequence: self.outputs.ring.newest(),
            engine: snapshot,
            sites,
            stats: self.stats(),
            feeds,
        })
    }

    /// Rebuilds all derived state from a snapshot.
    fn rebuild(&mut self, snapshot: &engine::Snapshot) {
        self.sums
            .start_over(snapshot.tasks.iter().map(|task| (task.id, counted(task))).collect());
        self.groups.clone_from(&snapshot.groups);
        let torrents = snapshot.tasks.iter().filter(|task| view::is_torrent(task));
        self.torrents = torrents.map(|task| (task.id, task.url().clone())).collect();
    }

    async fn publish_event(&mut self, event: Event) {
        match event {
            Event::TasksChanged(tasks) => self.publish_tasks(&tasks),
            Event::TasksDeleted(tasks) => self.publish_deleted(&tasks),
            Event::Progress(samples) => self.publish_progress(&samples),
            Event::Notice { task, message } => self.note(task, Note::of("notice", &message)),
            Event::SourceFailed { task, source } => self.note_source(task, &source),
            Event::AttemptFailed { task, failure, wait } => {
                let message = format!("{}; next attempt in {:.1} s", failure.message, wait.as_secs_f32());
                let note = Note {
                    error_kind: Some(failure.kind.code()),
                    ..Note::of("retry", &message)
                };
                self.note(task, note);
            }
            Event::Skipped { task, existing } => {
                let message = format!("{} exists already", existing.display());
                self.note(task, Note::of("skipped", &message));
            }
            Event::QueuesChanged(queues) => {
                self.publish(&DaemonEvent::QueuesChanged(
                    queues.iter().map(|queue| view::queue(queue)).collect(),
                ));
            }
            Event::GroupsAdded(groups) => {
                self.groups.extend(groups.iter().cloned());
                self.publish_groups();
            }
            Event::GroupsDeleted(gone) => {
                self.groups.retain(|group| !gone.contains(&group.id));
                self.publish_groups();
            }
            Event::SettingsChanged(settings) => {
                self.publish(&DaemonEvent::ConfigChanged(
                    self.sources.configuration.snapshot_with(&settings),
                ));
                // The limits in force are among them.
                self.sums.changed();
            }
            Event::SitesChanged => {
                let sites = self.sites().await;
                self.publish(&DaemonEvent::SiteAuthChanged(sites));
            }
            Event::BoostChanged(task) => {
                let priority = task.iter().map(ToString::to_string).collect();
                self.publish(&DaemonEvent::PriorityChanged(priority));
            }
        }
    }

    fn publish_tasks(&mut self, tasks: &Arc<[Arc<Task>]>) {
        for some in tasks.chunks(MAX_PUBLISHED) {
            match some {
                [task] => self.publish(&DaemonEvent::TaskChanged(Box::new(view::task(task)))),
                _ if some.len() < STREAM_FROM => {
                    self.publish(&DaemonEvent::TasksSnapshot(TasksSnapshot {
                        tasks: some.iter().map(|task| view::task(task)).collect(),
                        deleted_task_ids: Vec::new(),
                    }));
                }
                _ => self.publish_streamed(some.into()),
            }
        }
        let is_recorded = tasks.len() <= MAX_RECORDED;
        for task in tasks.iter() {
            self.see(task, is_recorded);
        }
        self.sums.changed();
    }

    /// Updates the sums for a task's status and records the change in its history.
    fn see(&mut self, task: &Task, is_recorded: bool) {
        if view::is_torrent(task) {
            self.torrents.insert(task.id, task.url().clone());
        }
        let now = counted(task);
        let status = now.status;
        let before = self.sums.set(task.id, now);
        if before == Some(status) {
            return;
        }
        // Creation is recorded in the task itself, and every run passes through preparing: neither is worth a line.
        let message = match (before, status) {
            (None, _) | (_, TaskStatus::Preparing) => return,
            (_, TaskStatus::Error) => task.failure().map_or("failed", |failure| failure.message.as_str()),
            (_, TaskStatus::Pending) => task
                .failure()
                .map_or("waits for its turn", |failure| failure.message.as_str()),
            (_, status) => status.name(),
        };
        if is_recorded {
            let kind = task.failure().map(|failure| failure.kind.code());
            let kind = kind.filter(|_| matches!(status, TaskStatus::Error | TaskStatus::Pending));
            let note = Note {
                status: Some(status),
                error_kind: kind,
                ..Note::of("status", message)
            };
            self.note(task.id, note);
        }
    }

    fn publish_deleted(&mut self, tasks: &[TaskId]) {
        for task in tasks {
            self.sums.remove(*task);
            self.torrents.remove(task);
            self.history.forget(*task);
        }
        if let [task] = tasks {
            self.publish(&DaemonEvent::TaskDeleted {
                task_id: task.to_string(),
            });
        } else if !tasks.is_empty() {
            self.publish(&DaemonEvent::TasksSnapshot(TasksSnapshot {
                tasks: Vec::new(),
                deleted_task_ids: tasks.iter().map(ToString::to_string).collect(),
            }));
        }
        self.sums.changed();
    }

    fn publish_progress(&mut self, samples: &[(TaskId, transfer::Progress)]) {
        let sum = |rate: fn(&transfer::Progress) -> u64| samples.iter().map(|(_, progress)| rate(progress)).sum();
        self.sums.sampled(Rates {
            download: sum(|progress| progress.bytes_per_second),
            upload: sum(|progress| progress.upload_bytes_per_second),
        });
        for (task, progress) in samples {
            self.samples += 1;
            let swarm = self.swarm(*task);
            self.publish(&DaemonEvent::TaskRuntimeChanged(Box::new(view::runtime(
                *task,
                (progress, swarm),
                self.samples,
            ))));
        }
        self.sums.changed();
    }

    /// The swarm of a task that is a torrent, if it is running.
    fn swarm(&self, task: TaskId) -> Option<Live> {
        self.sources.torrents.as_ref()?.live(self.torrents.get(&task)?)
    }

    fn publish_groups(&mut self) {
        let groups = self.groups.iter().map(|group| view::group(group)).collect();
        self.publish(&DaemonEvent::GroupsChanged(groups));
    }

    fn note_source(&mut self, task: TaskId, source: &SourceFailure) {
        let (message, url) = (source.to_string(), view::shown(&source.url));
        let note = Note {
            error_kind: Some(source.failure.kind.code()),
            source: Some((&url, &source.failure.message)),
            ..Note::of("source", &message)
        };
        self.note(task, note);
    }

    fn note(&mut self, task: TaskId, note: Note<'_>) {
        let entry = self.history.note(task, note);
        self.publish(&DaemonEvent::TaskActivityAdded(entry));
    }

    fn stats(&mut self) -> RuntimeStats {
        let settings = self.sources.engine.settings().settings;
        let free_space = self.free_space.look(&settings);
        self.sums.stats(free_space, &settings)
    }

    fn publish_stats(&mut self) {
        let stats = self.stats();
        if self.sums.replace_published(&stats) {
            self.publish(&DaemonEvent::RuntimeStatsChanged(stats));
            self.publish_reached(0);
        }
    }

    async fn sites(&self) -> Vec<SiteAuthEntryDto> {
        let sites = self.sources.engine.sites().await.unwrap_or_default();
        sites
            .into_iter()
            .map(|(site, user)| SiteAuthEntryDto::new(site.to_string(), user))
            .collect()
    }

    fn publish(&self, event: &DaemonEvent) {
        self.outputs.ring.push(|sequence| {
            let params = ServiceEventParams {
                epoch: self.outputs.epoch.to_string(),
                sequence,
                event: ServiceEvent {
                    service: Service::Daemon,
                    event,
                },
            };
            let text = encode_notification(SERVICE_EVENT, &params);
            Notification::Text(text.expect("our records always encode").into())
        });
    }

    fn publish_streamed(&self, tasks: Arc<[Arc<Task>]>) {
        self.outputs.ring.push(|sequence| {
            let head = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"{SERVICE_EVENT}\",\"params\":{{\"epoch\":\"{}\",\
                 \"sequence\":{sequence},\"event\":{{\"service\":\"daemon\",\"event\":\
                 {{\"type\":\"tasksSnapshot\",\"data\":{{\"deletedTaskIds\":[],\"tasks\":[",
                self.outputs.epoch
            );
            Notification::Streamed(Arc::new(Streamed {
                head,
                tasks,
                tail: "]}}}}}".to_owned(),
            }))
        });
    }
}

/// What the sums need of a task.
fn counted(task: &Task) -> Counted {
    Counted {
        status: view::status(task.status()),
        is_seeding: view::is_seeding(task),
    }
}

/// Resolves after the next change of a plugin. Cancel-safe.
async fn changed(plugins: &mut Option<(Plugins, Changes)>) {
    let is_change = match plugins {
        Some((_, changes)) => changes.changed().await,
        None => false,
    };
    if !is_change {
        std::future::pending::<()>().await;
    }
}

/// Resolves to the next change of a subsystem; to `None` if some were missed. Cancel-safe.
async fn next_or_missed<T: Clone>(changes: &mut broadcast::Receiver<T>) -> Option<T> {
    match changes.recv().await {
        Ok(change) => Some(change),
        Err(broadcast::error::RecvError::Lagged(_)) => None,
        Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
