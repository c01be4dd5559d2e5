//! The handle: what can be asked of the engine. Holds channels only.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use store::{Store, Vault};
use tokio::sync::{broadcast, oneshot, watch};
use transfer::{Credentials, FileName, Progress, SafeUrl, Transport};

use crate::{
    config::Config,
    driver::{self, Storage},
    event::{Events, Snapshot},
    mailbox::{Message, Shared, ShutdownReport},
    model::{
        error::{CommandError, StartError},
        group::GroupSpec,
        id::{GroupId, QueueId, RunId, TaskId},
        queue::{Queue, QueueSpec, Schedule},
        resolution::{Resolution, ResolverId},
        settings::{Settings, VersionedSettings},
        site::Site,
        spec::{InvalidSpec, TaskSpec},
        task::{FileFate, Task},
    },
    state::{Command, Reply, SECRETS_DROPPED, State},
};

/// The running engine. Clones share it. Every command resolves once what it changed is on disk; dropping its future
/// does not take the command back. It ends with [`Engine::shutdown`], or by itself when the last clone is gone.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Shared>);

/// How a task's run is doing.
#[derive(Debug, Clone)]
pub struct TaskProgress {
    /// The task.
    pub task: TaskId,
    /// Which run of it.
    pub run: RunId,
    /// The newest the run told.
    pub progress: Progress,
}

/// What came of a change of a task's URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the user is to read the notice"]
pub struct UrlChanged {
    /// What the user is to know: secrets of the URL before were removed.
    pub notice: Option<&'static str>,
}

impl Engine {
    /// Reads what `store` holds and starts. Unfinished tasks go on by themselves unless the settings say otherwise.
    /// The store must have been opened with [`crate::MIGRATIONS`]; whoever opened it closes it after the engine's end.
    pub async fn start(
        config: Config,
        store: Store,
        vault: Arc<Vault>,
        transports: Vec<Arc<dyn Transport>>,
    ) -> Result<Self, StartError> {
        let storage = Storage { store, vault };
        driver::start(config, Some(storage), transports)
            .await
            .map(|shared| Self(Arc::new(shared)))
    }

    /// As [`Engine::start`], for a process that keeps nothing: tasks are forgotten with it, and commands are answered
    /// without waiting for a disk.
    pub async fn start_unsaved(config: Config, transports: Vec<Arc<dyn Transport>>) -> Result<Self, StartError> {
        driver::start(config, None, transports)
            .await
            .map(|shared| Self(Arc::new(shared)))
    }

    /// The URL schemes that can be downloaded.
    pub fn schemes(&self) -> &[&'static str] {
        &self.0.schemes
    }

    /// Whether a task could be made of `spec`: its limits and its schemes.
    pub fn check(&self, spec: &TaskSpec) -> Result<(), InvalidSpec> {
        spec.validate()?;
        let unknown = spec.urls.iter().find(|url| !self.0.schemes.contains(&url.scheme()));
        unknown.map_or(Ok(()), |url| {
            Err(InvalidSpec::Scheme {
                scheme: url.scheme().to_owned(),
                known: self.0.schemes.join(", "),
            })
        })
    }

    /// Makes a task. Answers an existing task's id if the settings say so and it has the same URL.
    pub async fn create(&self, spec: TaskSpec) -> Result<TaskId, CommandError> {
        let created = self.create_many(vec![spec]).await?;
        created.first().copied().ok_or(CommandError::Closed)
    }

    /// Makes tasks, all or none, in this order; answers their ids in the same order.
    pub async fn create_many(&self, specs: Vec<TaskSpec>) -> Result<Vec<TaskId>, CommandError> {
        let tasks = self.named(specs)?;
        self.command_for_tasks(Command::Create(tasks)).await
    }

    /// Makes a task under an id that the caller chose.
    pub async fn create_as(&self, id: TaskId, spec: TaskSpec) -> Result<TaskId, CommandError> {
        let spec = self.accepted(spec)?;
        let created = self.command_for_tasks(Command::Create(vec![(id, spec)])).await?;
        created.first().copied().ok_or(CommandError::Closed)
    }

    /// Pauses a task that waits or runs. Its run may need a moment to save what it has.
    pub async fn pause(&self, task: TaskId) -> Result<(), CommandError> {
        self.command(Command::Pause(task)).await
    }

    /// Resumes a paused or failed task; it starts even if its queue stands still.
    pub async fn resume(&self, task: TaskId) -> Result<(), CommandError> {
        self.command(Command::Resume(task)).await
    }

    /// Deletes a task with its part file, and with its finished file if `fate` says so. Answers once a task that did
    /// not run has lost its files; one that ran loses them when its run has ended.
    pub async fn delete(&self, task: TaskId, fate: FileFate) -> Result<(), CommandError> {
        self.command(Command::Delete(task, fate)).await
    }

    /// Pauses what of `tasks` waits or runs; ids that are unknown or double do not matter.
    pub async fn pause_many(&self, tasks: Vec<TaskId>) -> Result<(), CommandError> {
        self.command(Command::PauseMany(tasks)).await
    }

    /// Resumes what of `tasks` is paused or failed; ids that are unknown or double do not matter.
    pub async fn resume_many(&self, tasks: Vec<TaskId>) -> Result<(), CommandError> {
        self.command(Command::ResumeMany(tasks)).await
    }

    /// Deletes `tasks` as [`Engine::delete`] does; ids that are unknown or double do not matter.
    pub async fn delete_many(&self, tasks: Vec<TaskId>, fate: FileFate) -> Result<(), CommandError> {
        self.command(Command::DeleteMany(tasks, fate)).await
    }

    /// Pauses every task that waits or runs.
    pub async fn pause_all(&self) -> Result<(), CommandError> {
        self.command(Command::PauseAll).await
    }

    /// Resumes every paused task whose queue runs.
    pub async fn resume_all(&self) -> Result<(), CommandError> {
        self.command(Command::ResumeAll).await
    }

    /// Gives an inactive task's file another name, on disk too if it is there. Never replaces a file.
    pub async fn rename(&self, task: TaskId, name: &str) -> Result<(), CommandError> {
        if name.contains(['/', '\\', '\0']) {
            return Err(CommandError::InvalidName);
        }
        let name = FileName::sanitise_or_none(name).ok_or(CommandError::InvalidName)?;
        self.command(Command::Rename(task, name)).await
    }

    /// Replaces the URL of an unfinished task. Its bytes are kept if the new source proves to be the same file. A URL of
    /// another origin gets no secrets of the one before.
    pub async fn change_url(&self, task: TaskId, url: SafeUrl) -> Result<UrlChanged, CommandError> {
        self.check(&TaskSpec::new(url.clone()))?;
        let resolver = self.claim(&url);
        self.change(Command::ChangeUrl(task, url, resolver)).await
    }

    /// Downloads the URL of an unfinished task as it is, without the resolver that claimed it, and resumes the task.
    pub async fn ignore_resolver(&self, task: TaskId) -> Result<(), CommandError> {
        self.command(Command::IgnoreResolver(task)).await
    }

    /// Replaces what was asked for in an unfinished task; a run starts over with it from the bytes it has. Refused as
    /// [`CommandError::Busy`] if it is no longer what it was in `task`. The directory changes only while the task has no
    /// file; queue, group and `start_paused` of `spec` do not count here.
    /// Secrets that are the same as before are removed if the first URL is of another origin now.
    pub async fn change_spec(&self, task: &Task, spec: TaskSpec) -> Result<UrlChanged, CommandError> {
        self.check(&spec)?;
        let change = Command::ChangeSpec(task.id, Box::new(task.spec()), Box::new(spec));
        self.change(change).await
    }

    /// Changes a task's own speed limit, at once; 0 is no limit.
    pub async fn set_speed_limit(&self, task: TaskId, bytes_per_second: u64) -> Result<(), CommandError> {
        self.command(Command::SetSpeedLimit(task, bytes_per_second)).await
    }

    /// Lets one task run alone until it ends; the others wait silently. The same task again ends it.
    pub async fn boost(&self, task: TaskId) -> Result<(), CommandError> {
        self.command(Command::Boost(task)).await
    }

    /// Looks whether the files of completed tasks are still there.
    pub async fn rescan(&self) -> Result<(), CommandError> {
        self.send(Message::Rescan).await.map(drop)
    }

    /// Makes a queue; it runs.
    pub async fn queue_create(&self, spec: QueueSpec) -> Result<QueueId, CommandError> {
        let id = QueueId::random();
        self.command(Command::QueueCreate(id, Box::new(spec)))
            .await
            .map(|()| id)
    }

    /// Changes a queue. A built-in queue keeps its name.
    pub async fn queue_update(&self, queue: QueueId, spec: QueueSpec) -> Result<(), CommandError> {
        self.command(Command::QueueUpdate(queue, Box::new(spec))).await
    }

    /// Deletes a queue; its tasks go to `main`.
    pub async fn queue_delete(&self, queue: QueueId) -> Result<(), CommandError> {
        self.command(Command::QueueDelete(queue)).await
    }

    /// Starts a queue and resumes its paused tasks.
    pub async fn queue_start(&self, queue: QueueId) -> Result<(), CommandError> {
        self.command(Command::QueueStart(queue)).await
    }

    /// Stops a queue and pauses its tasks.
    pub async fn queue_stop(&self, queue: QueueId) -> Result<(), CommandError> {
        self.command(Command::QueueStop(queue)).await
    }

    /// Sets when a queue starts and stops by the clock; an edge that passed today acts at once.
    pub async fn queue_schedule(&self, queue: QueueId, schedule: Schedule) -> Result<(), CommandError> {
        self.command(Command::QueueSchedule(queue, schedule)).await
    }

    /// Sets the order of a queue's tasks; tasks of it that are not named come after.
    pub async fn queue_reorder(&self, queue: QueueId, tasks: Vec<TaskId>) -> Result<(), CommandError> {
        self.command(Command::QueueReorder(queue, tasks)).await
    }

    /// Moves a task to another queue; `None` is the default queue.
    pub async fn queue_move_task(&self, task: TaskId, queue: Option<QueueId>) -> Result<(), CommandError> {
        self.command(Command::MoveTask(task, queue)).await
    }

    /// All queues, in order.
    pub async fn queues(&self) -> Result<Vec<Arc<Queue>>, CommandError> {
        self.read(|state, _| state.queues()).await
    }

    /// Makes a group with its tasks (at least one), all or none.
    pub async fn group_create(
        &self,
        spec: GroupSpec,
        tasks: Vec<TaskSpec>,
    ) -> Result<(GroupId, Vec<TaskId>), CommandError> {
        let id = GroupId::random();
        let tasks = self.named(tasks)?;
        let created = self
            .command_for_tasks(Command::GroupCreate(id, Box::new(spec), tasks))
            .await?;
        Ok((id, created))
    }

    /// Pauses the tasks of a group.
    pub async fn group_pause(&self, group: GroupId) -> Result<(), CommandError> {
        self.command(Command::GroupPause(group)).await
    }

    /// Resumes the paused and failed tasks of a group.
    pub async fn group_resume(&self, group: GroupId) -> Result<(), CommandError> {
        self.command(Command::GroupResume(group)).await
    }

    /// Deletes a group with its tasks.
    pub async fn group_delete(&self, group: GroupId, fate: FileFate) -> Result<(), CommandError> {
        self.command(Command::GroupDelete(group, fate)).await
    }

    /// The settings.
    pub fn settings(&self) -> VersionedSettings {
        self.0.settings.borrow().clone()
    }

    /// The settings as they change.
    pub fn settings_changes(&self) -> watch::Receiver<VersionedSettings> {
        self.0.settings.clone()
    }

    /// Replaces the settings and applies them at once. With `expected`, only if they still have that revision. Answers
    /// the new revision.
    pub async fn change_settings(&self, expected: Option<u64>, settings: Settings) -> Result<u64, CommandError> {
        settings.validate()?;
        match self
            .send(|reply| Message::Command(Command::ChangeSettings(expected, Box::new(settings)), reply))
            .await?
        {
            Reply::Revision(revision) => Ok(revision),
            _ => Err(CommandError::Closed),
        }
    }

    /// The sites that have credentials, and their user names.
    pub async fn sites(&self) -> Result<Vec<(Site, String)>, CommandError> {
        self.read(|state, _| state.sites()).await
    }

    /// Stores the credentials of a site; an existing entry is replaced.
    pub async fn site_save(&self, site: Site, credentials: Credentials) -> Result<(), CommandError> {
        self.command(Command::SiteSave(site, credentials)).await
    }

    /// Forgets the credentials of a site.
    pub async fn site_delete(&self, site: Site) -> Result<(), CommandError> {
        self.command(Command::SiteDelete(site)).await
    }

    /// Forgets all credentials.
    pub async fn site_clear(&self) -> Result<(), CommandError> {
        self.command(Command::SiteClear).await
    }

    /// The stored credentials that a request to `url` gets.
    pub async fn site_match(&self, url: &SafeUrl) -> Result<Option<Credentials>, CommandError> {
        let site = Site::of(url);
        self.read(move |state, _| site.and_then(|site| state.site_credentials(&site)))
            .await
    }

    /// One task.
    pub async fn task(&self, id: TaskId) -> Result<Arc<Task>, CommandError> {
        self.read(move |state, _| state.task(id))
            .await?
            .ok_or(CommandError::UnknownTask(id))
    }

    /// Everything. Subscribe first, then take the snapshot, then skip events up to its sequence number.
    pub async fn snapshot(&self) -> Result<Snapshot, CommandError> {
        self.read(State::snapshot).await
    }

    /// A subscription to everything that happens from now on.
    pub fn events(&self) -> Events {
        // A closed channel's receiver, if the engine has ended.
        let ended = || broadcast::channel(1).1;
        Events(self.0.events.upgrade().map_or_else(ended, |sender| sender.subscribe()))
    }

    /// The sequence number of the newest event. Taken after a command has answered, it is at least that of the
    /// command's own events.
    pub fn sequence(&self) -> u64 {
        self.0.sequence.load(Ordering::Acquire)
    }

    /// How a task's run is doing now; `None` if it has no live run.
    pub fn progress(&self, task: TaskId) -> Option<TaskProgress> {
        let (run, progress) = self.0.runs.borrow().get(&task)?.clone();
        let progress = progress.borrow().clone();
        Some(TaskProgress { task, run, progress })
    }

    /// How every live run is doing now.
    pub fn all_progress(&self) -> Vec<TaskProgress> {
        let runs = Arc::clone(&self.0.runs.borrow());
        let of = |(task, (run, progress)): (&TaskId, &(RunId, watch::Receiver<Progress>))| TaskProgress {
            task: *task,
            run: *run,
            progress: progress.borrow().clone(),
        };
        runs.iter().map(of).collect()
    }

    /// Tells every run to stop, waits up to `grace` for them, cuts off the rest, saves and ends. Later commands are
    /// answered [`CommandError::Closed`]. The tasks stay unfinished and go on at the next start.
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        let (reply, report) = oneshot::channel();
        // An engine that has ended gives the message back, and with it the sender that `report` would wait for.
        drop(self.0.messages.send(Message::Shutdown(grace, reply)).await);
        let report = report.await.unwrap_or_default();
        self.0.tracker.wait().await;
        report
    }

    fn named(&self, specs: Vec<TaskSpec>) -> Result<Vec<(TaskId, TaskSpec)>, CommandError> {
        let named = specs
            .into_iter()
            .map(|spec| Ok((TaskId::random(), self.accepted(spec)?)));
        named.collect()
    }

    /// The specification of a new task, with the resolver that claims it.
    fn accepted(&self, mut spec: TaskSpec) -> Result<TaskSpec, CommandError> {
        self.check(&spec)?;
        spec.adopt |= self.0.adopts;
        // Mirrors and forms are the user's own knowledge of the source.
        if spec.resolution.is_none() && spec.urls.len() == 1 && spec.request.method.is_none() {
            let resolver = self.claim(&spec.urls[0]);
            spec.resolution = resolver.map(|resolver| Resolution { resolver, item: None });
        }
        Ok(spec)
    }

    fn claim(&self, url: &SafeUrl) -> Option<ResolverId> {
        self.0.resolver.as_ref()?.claim(url)
    }

    async fn change(&self, command: Command) -> Result<UrlChanged, CommandError> {
        let reply = self.send(|reply| Message::Command(command, reply)).await?;
        Ok(UrlChanged {
            notice: (reply == Reply::SecretsDropped).then_some(SECRETS_DROPPED),
        })
    }

    async fn command(&self, command: Command) -> Result<(), CommandError> {
        self.send(|reply| Message::Command(command, reply)).await.map(drop)
    }

    async fn command_for_tasks(&self, command: Command) -> Result<Vec<TaskId>, CommandError> {
        match self.send(|reply| Message::Command(command, reply)).await? {
            Reply::Tasks(tasks) => Ok(tasks),
            _ => Ok(Vec::new()),
        }
    }

    async fn send(
        &self,
        message: impl FnOnce(oneshot::Sender<Result<Reply, CommandError>>) -> Message,
    ) -> Result<Reply, CommandError> {
        let (reply, answer) = oneshot::channel();
        self.0
            .messages
            .send(message(reply))
            .await
            .map_err(|_| CommandError::Closed)?;
        answer.await.unwrap_or(Err(CommandError::Closed))
    }

    async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&State, u64) -> T + Send + 'static,
    ) -> Result<T, CommandError> {
        let (reply, answer) = oneshot::channel();
        let look = move |state: &State, sequence: u64| {
            let _nobody_waits = reply.send(look(state, sequence));
        };
        self.0
            .messages
            .send(Message::Read(Box::new(look)))
            .await
            .map_err(|_| CommandError::Closed)?;
        answer.await.map_err(|_| CommandError::Closed)
    }
}
