//! The public handle of the engine. It holds channels only: all state belongs to the driver.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use store::{Store, Vault};
use tokio::sync::{broadcast, oneshot, watch};
use transfer::{CookieJar, Credentials, FileName, Progress, SafeUrl, TorrentOptions, Transport};

use crate::{
    config::Config,
    driver::{self, Storage},
    event::{Events, Snapshot},
    mailbox::{Message, Shared, ShutdownReport},
    model::{
        account::AccountKey,
        error::{CommandError, StartError},
        file,
        group::GroupSpec,
        id::{GroupId, QueueId, RunId, TaskId},
        queue::{Queue, QueueSpec, Schedule},
        resolution::{Resolution, ResolverId},
        seeding::SeedLimits,
        settings::{Settings, VersionedSettings},
        site::{CookieSite, CookieSummary, Site},
        spec::{InvalidSpec, TaskSpec, validate_tags},
        task::{FileFate, Task},
    },
    rows,
    state::{Command, Reply, SECRETS_DROPPED, State},
};

/// The running engine. Clones share it. Every command resolves once what it changed is on disk; dropping its future
/// does not take the command back. It ends with [`Engine::shutdown`], or by itself when the last clone is gone.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Shared>);

/// The progress of a task's run.
#[derive(Debug, Clone)]
pub struct TaskProgress {
    /// The task.
    pub task: TaskId,
    /// Which run of it.
    pub run: RunId,
    /// The newest that the run reported.
    pub progress: Progress,
}

/// The result of a change of a task's URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the user is to read the notice"]
pub struct UrlChanged {
    /// A notice for the user: the secrets of the previous URL were removed.
    pub notice: Option<&'static str>,
}

impl Engine {
    /// Reads what `store` holds and starts. Unfinished tasks resume unless the settings say otherwise. The store must
    /// have been opened with [`crate::MIGRATIONS`]; the caller closes it after the engine has ended.
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

    /// The settings that an engine with this store starts with, for what is made before it.
    pub async fn stored_settings(store: &Store, vault: &Arc<Vault>) -> Result<Arc<Settings>, StartError> {
        let stored = rows::load_settings_alone(store, vault).await?;
        Ok(stored.map(|stored| stored.settings).unwrap_or_default())
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

    /// Creates a task. Returns an existing task's id if the settings say so and it has the same URL.
    pub async fn create(&self, spec: TaskSpec) -> Result<TaskId, CommandError> {
        let created = self.create_many(vec![spec]).await?;
        created.first().copied().ok_or(CommandError::Closed)
    }

    /// Creates all tasks or none, in this order. Returns their ids in the same order.
    pub async fn create_many(&self, specs: Vec<TaskSpec>) -> Result<Vec<TaskId>, CommandError> {
        let tasks = self.named(specs)?;
        self.command_for_tasks(Command::Create(tasks)).await
    }

    /// Creates a task with an id that the caller chose, so that a repeated call has no effect.
    pub async fn create_as(&self, id: TaskId, spec: TaskSpec) -> Result<TaskId, CommandError> {
        let spec = self.accepted(spec)?;
        let created = self.command_for_tasks(Command::Create(vec![(id, spec)])).await?;
        created.first().copied().ok_or(CommandError::Closed)
    }

    /// Pauses a task that waits or runs. Its run may need a moment to save what it has. One that is complete is not seeded any
    /// more.
    pub async fn pause(&self, task: TaskId) -> Result<(), CommandError> {
        self.command(Command::Pause(task)).await
    }

    /// Resumes a paused or failed task; it starts even if its queue is stopped. One that is complete is seeded again, if it
    /// can be.
    pub async fn resume(&self, task: TaskId) -> Result<(), CommandError> {
        self.command(Command::Resume(task)).await
    }

    /// Deletes a task with its part file, and with its finished file if `fate` says so. Returns once the files of a
    /// task without a run are deleted; those of a running task are deleted when its run has ended.
    pub async fn delete(&self, task: TaskId, fate: FileFate) -> Result<(), CommandError> {
        self.command(Command::Delete(task, fate)).await
    }

    /// Pauses those of `tasks` that wait or run; unknown and duplicate ids are ignored.
    pub async fn pause_many(&self, tasks: Vec<TaskId>) -> Result<(), CommandError> {
        self.command(Command::PauseMany(tasks)).await
    }

    /// Resumes those of `tasks` that are paused or failed; unknown and duplicate ids are ignored.
    pub async fn resume_many(&self, tasks: Vec<TaskId>) -> Result<(), CommandError> {
        self.command(Command::ResumeMany(tasks)).await
    }

    /// Deletes `tasks` as [`Engine::delete`] does; unknown and duplicate ids are ignored.
    pub async fn delete_many(&self, tasks: Vec<TaskId>, fate: FileFate) -> Result<(), CommandError> {
        self.command(Command::DeleteMany(tasks, fate)).await
    }

    /// Deleted tasks of subscriptions that have not noted it yet: what they must be told after a crash.
    pub async fn deleted_feed_tasks(&self) -> Result<Vec<TaskId>, CommandError> {
        self.read(|state, _| state.deleted_feed_tasks()).await
    }

    /// Forgets deleted tasks of subscriptions: these have noted it, and never create them again.
    pub async fn note_deleted(&self, tasks: Vec<TaskId>) -> Result<(), CommandError> {
        self.command(Command::NoteDeleted(tasks)).await
    }

    /// Pauses every task that waits or runs.
    pub async fn pause_all(&self) -> Result<(), CommandError> {
        self.command(Command::PauseAll).await
    }

    /// Resumes every paused task whose queue runs.
    pub async fn resume_all(&self) -> Result<(), CommandError> {
        self.command(Command::ResumeAll).await
    }

    /// Renames an inactive task's file, on disk too if it exists. Never replaces a file.
    pub async fn rename(&self, task: TaskId, name: &str) -> Result<(), CommandError> {
        if name.contains(['/', '\\', '\0']) {
            return Err(CommandError::InvalidName);
        }
        let name = FileName::sanitise_or_none(name).ok_or(CommandError::InvalidName)?;
        self.command(Command::Rename(task, name)).await
    }

    /// Replaces the URL of an unfinished task. Its bytes are kept if the new source proves to be the same file. A URL
    /// of another origin gets none of the previous URL's secrets.
    pub async fn change_url(&self, task: TaskId, url: SafeUrl) -> Result<UrlChanged, CommandError> {
        self.check(&TaskSpec::new(url.clone()))?;
        let resolver = self.claim(&url);
        self.change(Command::ChangeUrl(task, url, resolver)).await
    }

    /// Downloads the URL of an unfinished task as it is, without the resolver that claimed it, and resumes the task.
    pub async fn ignore_resolver(&self, task: TaskId) -> Result<(), CommandError> {
        self.command(Command::IgnoreResolver(task)).await
    }

    /// Replaces the specification of an unfinished task; a live run restarts with it from the bytes it has. Refused as
    /// [`CommandError::Busy`] if it changed since `task` was read. The directory changes only while the task has no
    /// file; queue, group and `start_paused` of `spec` are ignored. Secrets that are the same as before are removed if
    /// the first URL is of another origin now.
    pub async fn change_spec(&self, task: &Task, spec: TaskSpec) -> Result<UrlChanged, CommandError> {
        self.check(&spec)?;
        let change = Command::ChangeSpec(task.id, Box::new(task.spec()), Box::new(spec));
        self.change(change).await
    }

    /// Changes a task's own speed limit, at once; 0 is no limit.
    pub async fn set_speed_limit(&self, task: TaskId, bytes_per_second: u64) -> Result<(), CommandError> {
        self.command(Command::SetSpeeds(task, Some(bytes_per_second), None))
            .await
    }

    /// Changes a task's own limit of what it uploads, at once; 0 is no limit.
    pub async fn set_upload_limit(&self, task: TaskId, bytes_per_second: u64) -> Result<(), CommandError> {
        self.command(Command::SetSpeeds(task, None, Some(bytes_per_second)))
            .await
    }

    /// Replaces the tags of a task in any state.
    pub async fn set_tags(&self, task: TaskId, tags: Vec<Box<str>>) -> Result<(), CommandError> {
        validate_tags(&tags)?;
        self.command(Command::SetTags(task, tags)).await
    }

    /// Sets a task's own limits of seeding, at once.
    pub async fn set_seed_limits(&self, task: TaskId, limits: SeedLimits) -> Result<(), CommandError> {
        self.command(Command::SetSeedLimits(task, limits)).await
    }

    /// Changes how a torrent is downloaded. A run restarts with it from the bytes it has. If it is complete and other files are
    /// wanted now, it is downloaded again, which is over at once if they are there.
    pub async fn change_torrent(&self, task: TaskId, options: TorrentOptions) -> Result<(), CommandError> {
        self.command(Command::ChangeTorrent(task, Arc::new(options))).await
    }

    /// Notes which files of a torrent were chosen when its run asked, so that later runs do not ask. The run goes on.
    pub async fn note_torrent_files(&self, task: TaskId, files: Box<[u32]>) -> Result<(), CommandError> {
        self.command(Command::NoteFiles(task, files)).await
    }

    /// Hashes everything of a complete torrent again, as a run that waits in its queue like a download. What is missing or wrong
    /// is downloaded; if nothing is, the task is what it was, without another completion being announced.
    pub async fn recheck(&self, task: TaskId) -> Result<(), CommandError> {
        self.command(Command::Recheck(task)).await
    }

    /// Toggles a boost: the task runs alone until it ends, while the others wait without an event.
    pub async fn boost(&self, task: TaskId) -> Result<(), CommandError> {
        self.command(Command::Boost(task)).await
    }

    /// Checks whether the files of completed tasks still exist.
    pub async fn rescan(&self) -> Result<(), CommandError> {
        self.send(Message::Rescan).await.map(drop)
    }

    /// Creates a queue in the running state.
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

    /// Deletes a queue; its tasks move to `main`.
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

    /// Sets a queue's schedule; a start or stop time that passed today takes effect at once.
    pub async fn queue_schedule(&self, queue: QueueId, schedule: Schedule) -> Result<(), CommandError> {
        self.command(Command::QueueSchedule(queue, schedule)).await
    }

    /// Sets the order of a queue's tasks; its other tasks follow.
    pub async fn queue_reorder(&self, queue: QueueId, tasks: Vec<TaskId>) -> Result<(), CommandError> {
        self.command(Command::QueueReorder(queue, tasks)).await
    }

    /// Moves a task to another queue; `None` is the default queue.
    pub async fn queue_move_task(&self, task: TaskId, queue: Option<QueueId>) -> Result<(), CommandError> {
        self.command(Command::MoveTask(task, queue)).await
    }

    /// Where a new task of this queue (`None`: the default one) is saved if it names no directory itself.
    pub async fn save_dir(&self, queue: Option<QueueId>) -> Result<PathBuf, CommandError> {
        self.read(move |state, _| state.save_dir_of(queue)).await
    }

    /// All queues, in order.
    pub async fn queues(&self) -> Result<Vec<Arc<Queue>>, CommandError> {
        self.read(|state, _| state.queues()).await
    }

    /// Creates a group with all of its tasks (at least one) or nothing.
    pub async fn group_create(
        &self,
        spec: GroupSpec,
        tasks: Vec<TaskSpec>,
    ) -> Result<(GroupId, Vec<TaskId>), CommandError> {
        self.group_create_at(spec, tasks, Vec::new()).await
    }

    /// [`Engine::group_create`] in a directory of its own: that of `spec`, or one with a number beside it if a file,
    /// another group or an unfinished task has that. The directories of tasks in it move along.
    pub async fn group_create_apart(
        &self,
        spec: GroupSpec,
        tasks: Vec<TaskSpec>,
    ) -> Result<(GroupId, Vec<TaskId>), CommandError> {
        let places = file::places_of(spec.save_dir.clone()).await;
        self.group_create_at(spec, tasks, places).await
    }

    async fn group_create_at(
        &self,
        spec: GroupSpec,
        tasks: Vec<TaskSpec>,
        places: Vec<PathBuf>,
    ) -> Result<(GroupId, Vec<TaskId>), CommandError> {
        let id = GroupId::random();
        let tasks = self.named(tasks)?;
        let created = self
            .command_for_tasks(Command::GroupCreate(id, Box::new(spec), tasks, places))
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

    /// Subscribes to changes of the settings.
    pub fn settings_changes(&self) -> watch::Receiver<VersionedSettings> {
        self.0.settings.clone()
    }

    /// Replaces the settings and applies them at once. With `expected`, only if they still have that revision. Returns
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

    /// Stores or replaces the credentials of a site.
    pub async fn site_save(&self, site: Site, credentials: Credentials) -> Result<(), CommandError> {
        self.command(Command::SiteSave(site, credentials)).await
    }

    /// Deletes the credentials of a site.
    pub async fn site_delete(&self, site: Site) -> Result<(), CommandError> {
        self.command(Command::SiteDelete(site)).await
    }

    /// Deletes all credentials.
    pub async fn site_clear(&self) -> Result<(), CommandError> {
        self.command(Command::SiteClear).await
    }

    /// The stored credentials that a request to `url` would use.
    pub async fn site_match(&self, url: &SafeUrl) -> Result<Option<Credentials>, CommandError> {
        let site = Site::of(url);
        self.read(move |state, _| site.and_then(|site| state.site_credentials(&site)))
            .await
    }

    /// The sites that have cookies.
    pub async fn cookie_sites(&self) -> Result<Vec<CookieSummary>, CommandError> {
        self.read(|state, _| state.cookie_sites()).await
    }

    /// Stores the cookies of sites, in place of those that each had.
    pub async fn cookies_save(&self, sites: Vec<(CookieSite, CookieJar)>) -> Result<(), CommandError> {
        let sites = sites.into_iter().map(|(site, jar)| (site, Arc::new(jar))).collect();
        self.command(Command::CookiesSave(sites)).await
    }

    /// Deletes the cookies of a site.
    pub async fn cookies_delete(&self, site: CookieSite) -> Result<(), CommandError> {
        self.command(Command::CookiesDelete(site)).await
    }

    /// Deletes all cookies.
    pub async fn cookies_clear(&self) -> Result<(), CommandError> {
        self.command(Command::CookiesClear).await
    }

    /// Resumes the tasks that wait for a login to this account. Called after each login, and at the start for accounts
    /// whose login may not have been reported because of a crash. Returns once it is on disk that they will resume: many
    /// thousands of tasks take several turns of the engine.
    pub async fn logged_in(&self, account: AccountKey) -> Result<(), CommandError> {
        self.command(Command::LoggedIn(account)).await
    }

    /// Retries a failed task, as one of its automatic retries: only while there are some left, and no sooner than one of
    /// these would begin. Until the user resumes the task, this does so no more often than `max_auto_retries`, also when
    /// bytes arrive in between, and 20 times if those are endless.
    ///
    /// Fails with [`CommandError::NoRetryLeft`] beyond that, and with [`CommandError::WrongPhase`] for a task that has not
    /// failed.
    pub async fn request_retry(&self, task: TaskId, delay: Duration) -> Result<(), CommandError> {
        self.command(Command::RequestRetry(task, delay)).await
    }

    /// One task.
    pub async fn task(&self, id: TaskId) -> Result<Arc<Task>, CommandError> {
        self.read(move |state, _| state.task(id))
            .await?
            .ok_or(CommandError::UnknownTask(id))
    }

    /// A consistent snapshot. Subscribe first, then take it, then skip events up to its sequence number.
    pub async fn snapshot(&self) -> Result<Snapshot, CommandError> {
        self.read(State::snapshot).await
    }

    /// Subscribes to all events from now on.
    pub fn events(&self) -> Events {
        // If the engine has ended, the receiver of a closed channel.
        let ended = || broadcast::channel(1).1;
        Events(self.0.events.upgrade().map_or_else(ended, |sender| sender.subscribe()))
    }

    /// The sequence number of the newest event. Read after a command has returned, it is at least that of the command's
    /// own events.
    pub fn sequence(&self) -> u64 {
        self.0.sequence.load(Ordering::Acquire)
    }

    /// The progress of a task's run; `None` without a live run.
    pub fn progress(&self, task: TaskId) -> Option<TaskProgress> {
        let (run, progress) = self.0.runs.borrow().get(&task)?.clone();
        let progress = progress.borrow().clone();
        Some(TaskProgress { task, run, progress })
    }

    /// The progress of every live run.
    pub fn all_progress(&self) -> Vec<TaskProgress> {
        let runs = Arc::clone(&self.0.runs.borrow());
        let of = |(task, (run, progress)): (&TaskId, &(RunId, watch::Receiver<Progress>))| TaskProgress {
            task: *task,
            run: *run,
            progress: progress.borrow().clone(),
        };
        runs.iter().map(of).collect()
    }

    /// Stops every run, aborts those that take longer than `grace`, saves and ends. Later commands return
    /// [`CommandError::Closed`]. The tasks stay unfinished and resume at the next start.
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        let (reply, report) = oneshot::channel();
        // If the engine has ended, `send` returns the message; dropping it drops the sender that `report` would wait
        // for.
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

    /// Validates a new task's specification and adds the resolver that claims its URL.
    fn accepted(&self, mut spec: TaskSpec) -> Result<TaskSpec, CommandError> {
        self.check(&spec)?;
        spec.adopt |= self.0.adopts;
        // With mirrors or a form body the user has described the source already.
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
