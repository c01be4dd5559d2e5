//! What commands do. Each checks everything before it changes anything.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use transfer::FileName;

use super::{Command, Effect, LimitScope, Rename, Reply, Row, State};
use crate::{
    error::CommandError,
    event::Event,
    group::{Group, GroupSpec},
    id::{GroupId, QueueId, TaskId, Timestamp},
    settings::{Settings, VersionedSettings},
    spec::{self, TaskSpec},
    task::{After, Asked, FileFate, Phase, Task, Unsettled},
};

/// The longest name of a queue or a group, in bytes.
pub(super) const MAX_LABEL_BYTES: usize = 512;

impl State {
    pub(super) fn command(
        &mut self,
        now: Timestamp,
        command: Command,
        effects: &mut Vec<Effect>,
    ) -> Result<Reply, CommandError> {
        if self.is_closing {
            return Err(CommandError::Closed);
        }
        match command {
            Command::Create(tasks) => return self.create(now, tasks).map(Reply::Tasks),
            Command::GroupCreate(id, spec, tasks) => return self.group_create(now, id, &spec, tasks).map(Reply::Tasks),
            Command::Rename(task, name) => return self.rename(task, name),
            Command::ChangeSettings(expected, settings) => {
                return self.change_settings(expected, *settings, effects).map(Reply::Revision);
            }
            Command::Pause(task) => self.pause(task, effects)?,
            Command::Resume(task) => self.resume(task, effects)?,
            Command::Delete(task, fate) => {
                let serial = self.serial(task)?;
                self.delete(&[serial], fate, effects)?;
            }
            Command::PauseMany(tasks) => self.pause_each(&self.known(&tasks), effects),
            Command::ResumeMany(tasks) => self.resume_each(&self.known(&tasks), effects),
            Command::DeleteMany(tasks, fate) => self.delete(&self.known(&tasks), fate, effects)?,
            Command::PauseAll => self.pause_each(&self.those(|_| true), effects),
            Command::ResumeAll => {
                let running = self.those(|task| {
                    is_paused(task) && self.lanes.get(&task.queue).is_some_and(|lane| lane.queue.is_running)
                });
                self.resume_each(&running, effects);
            }
            Command::ChangeUrl(task, url, resolver) => {
                let mut has_dropped = false;
                self.change_asked(task, effects, |asked| has_dropped = asked.change_url(url, resolver))?;
                return Ok(secrets_dropped(task, has_dropped, effects));
            }
            Command::IgnoreResolver(task) => {
                self.change_asked(task, effects, |asked| asked.resolve(None))?;
                self.resume(task, effects)?;
            }
            Command::ChangeSpec(task, before, spec) => return self.change_spec(task, *before, *spec, effects),
            Command::SetSpeedLimit(task, limit) => self.set_speed_limit(task, limit, effects)?,
            Command::Boost(task) => self.toggle_boost(task, effects)?,
            Command::GroupPause(group) => self.pause_each(&self.of_group(group)?, effects),
            Command::GroupResume(group) => self.resume_each(&self.of_group(group)?, effects),
            Command::GroupDelete(group, fate) => self.delete(&self.of_group(group)?, fate, effects)?,
            queue_or_site => return self.queue_or_site_command(queue_or_site, effects),
        }
        Ok(Reply::Done)
    }

    fn queue_or_site_command(&mut self, command: Command, effects: &mut Vec<Effect>) -> Result<Reply, CommandError> {
        match command {
            Command::MoveTask(task, queue) => self.move_task(task, queue, effects)?,
            Command::QueueCreate(id, spec) => self.queue_create(id, *spec)?,
            Command::QueueUpdate(id, spec) => self.queue_update(id, *spec, effects)?,
            Command::QueueDelete(id) => self.queue_delete(id, effects)?,
            Command::QueueStart(id) => self.queue_start(id, effects)?,
            Command::QueueStop(id) => self.queue_stop(id, effects)?,
            Command::QueueSchedule(id, schedule) => self.queue_schedule(id, schedule)?,
            Command::QueueReorder(id, tasks) => self.queue_reorder(id, &tasks)?,
            Command::SiteSave(site, credentials) => {
                if credentials.user.is_empty() || credentials.user.contains(':') {
                    return Err(CommandError::InvalidSite);
                }
                self.changes.rows.push(Row::Site(site.clone(), credentials.clone()));
                self.changes.sites = true;
                self.sites.insert(site, credentials);
            }
            Command::SiteDelete(site) => {
                self.sites
                    .remove(&site)
                    .ok_or_else(|| CommandError::UnknownSite(site.to_string()))?;
                self.changes.rows.push(Row::SiteDeleted(site));
                self.changes.sites = true;
            }
            Command::SiteClear => {
                let sites = std::mem::take(&mut self.sites);
                self.changes.sites = !sites.is_empty();
                self.changes.rows.extend(sites.into_keys().map(Row::SiteDeleted));
            }
            _ => unreachable!("`command` handles every other command"),
        }
        Ok(Reply::Done)
    }

    // Making tasks.

    fn create(&mut self, now: Timestamp, tasks: Vec<(TaskId, TaskSpec)>) -> Result<Vec<TaskId>, CommandError> {
        let mut ids = BTreeSet::new();
        for (id, spec) in &tasks {
            spec.validate()?;
            if self.index.contains_key(id) || !ids.insert(*id) {
                return Err(CommandError::TaskExists(*id));
            }
            if let Some(queue) = spec.queue.filter(|queue| !self.lanes.contains_key(queue)) {
                return Err(CommandError::UnknownQueue(queue));
            }
            if let Some(group) = spec.group.filter(|group| !self.groups.contains_key(group)) {
                return Err(CommandError::UnknownGroup(group));
            }
        }
        let mut known = if self.settings.settings.dedup_same_url {
            self.unfinished_urls()
        } else {
            HashMap::new()
        };
        let mut last_dir: Arc<Path> = Arc::clone(&self.download_dir);
        let mut created = Vec::with_capacity(tasks.len());
        for (id, spec) in tasks {
            if self.settings.settings.dedup_same_url {
                let url = spec.urls[0].expose().to_owned();
                if let Some(found) = known.get(&url) {
                    created.push(*found);
                    continue;
                }
                known.insert(url, id);
            }
            self.create_one(now, id, spec, &mut last_dir);
            created.push(id);
        }
        Ok(created)
    }

    pub(super) fn create_one(&mut self, now: Timestamp, id: TaskId, mut spec: TaskSpec, last_dir: &mut Arc<Path>) {
        let queue = spec.queue.unwrap_or_else(|| self.default_queue());
        let dir = self.save_dir(&mut spec, queue);
        // Tasks made together mostly share a directory; one text is kept for all of them.
        if **last_dir != *dir {
            *last_dir = dir.into();
        }
        self.last_serial += 1;
        self.insert(Task {
            id,
            serial: self.last_serial,
            phase: if spec.start_paused {
                Phase::Paused
            } else {
                Phase::Pending
            },
            queue,
            group: spec.group,
            queue_order: 0,
            is_forced: false,
            file_missing: false,
            attempts: 0,
            created_at: now,
            completed_at: None,
            done_bytes: 0,
            total_bytes: spec.promised_size,
            save_dir: Arc::clone(last_dir),
            path: None,
            owns_file: false,
            unsettled: None,
            asked: Arc::new(Asked::pack(spec)),
        });
    }

    fn save_dir(&self, spec: &mut TaskSpec, queue: QueueId) -> PathBuf {
        let of_group = spec
            .group
            .and_then(|group| self.groups.get(&group)?.group.spec.save_dir.clone());
        spec.save_dir
            .take()
            .or(of_group)
            .or_else(|| self.lanes.get(&queue)?.queue.spec.default_save_dir.clone())
            .or_else(|| self.settings.settings.default_save_dir.clone())
            .unwrap_or_else(|| self.download_dir.to_path_buf())
    }

    pub(super) fn default_queue(&self) -> QueueId {
        let wanted = self.settings.settings.default_queue_id;
        if self.lanes.contains_key(&wanted) {
            wanted
        } else {
            QueueId::Main
        }
    }

    fn unfinished_urls(&self) -> HashMap<String, TaskId> {
        let unfinished = self
            .tasks
            .values()
            .filter(|task| task.phase != Phase::Completed && !task.is_leaving());
        unfinished
            .map(|task| (task.url().expose().to_owned(), task.id))
            .collect()
    }

    fn group_create(
        &mut self,
        now: Timestamp,
        id: GroupId,
        spec: &GroupSpec,
        mut tasks: Vec<(TaskId, TaskSpec)>,
    ) -> Result<Vec<TaskId>, CommandError> {
        if tasks.is_empty() {
            return Err(CommandError::InvalidField("a group needs at least one task"));
        }
        if spec.name.len() > MAX_LABEL_BYTES || spec.source_url.len() > transfer::safe_url::MAX_URL_BYTES {
            return Err(CommandError::InvalidField(
                "the group's name is longer than 512 bytes, or its URL than 32 KiB",
            ));
        }
        if let Some(dir) = &spec.save_dir {
            spec::validate_dir(dir)?;
        }
        if self.groups.contains_key(&id) {
            return Err(CommandError::InvalidField("the group exists already"));
        }
        for (_, task) in &mut tasks {
            task.validate()?;
            task.group = Some(id);
        }
        self.groups.insert(
            id,
            super::Members {
                group: Arc::new(Group {
                    id,
                    spec: spec.clone(),
                    created_at: now,
                }),
                tasks: 0,
            },
        );
        let created = self.create(now, tasks);
        // Without a task of its own (refused, or all of them known already) there is no group.
        if self.groups.get(&id).is_none_or(|members| members.tasks == 0) {
            self.groups.remove(&id);
        } else {
            self.announce_group(id);
        }
        created
    }

    // Which tasks.

    /// The serials of the ids that are known, each once, oldest first.
    fn known(&self, ids: &[TaskId]) -> Vec<u64> {
        let serials: BTreeSet<u64> = ids.iter().filter_map(|id| self.serial(*id).ok()).collect();
        serials.into_iter().collect()
    }

    pub(super) fn those(&self, which: impl Fn(&Task) -> bool) -> Vec<u64> {
        let listed = self.tasks.values().filter(|task| !task.is_leaving() && which(task));
        listed.map(|task| task.serial).collect()
    }

    fn of_group(&self, group: GroupId) -> Result<Vec<u64>, CommandError> {
        if !self.groups.contains_key(&group) {
            return Err(CommandError::UnknownGroup(group));
        }
        Ok(self.those(|task| task.group == Some(group)))
    }

    // Pausing, resuming, deleting.

    fn pause(&mut self, id: TaskId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        match self.tasks[&serial].phase {
            Phase::Completed | Phase::Failed(_) => Err(self.wrong_phase(serial, "pause")),
            _ => {
                self.pause_each(&[serial], effects);
                Ok(())
            }
        }
    }

    pub(super) fn pause_each(&mut self, serials: &[u64], effects: &mut Vec<Effect>) {
        for serial in serials.iter().copied() {
            match self.tasks[&serial].phase {
                Phase::Pending | Phase::Retrying(_) => self.edit(serial, |task| {
                    task.phase = Phase::Paused;
                    task.is_forced = false;
                }),
                Phase::Running(_)
                | Phase::Stopping {
                    then: After::Requeue, ..
                } => {
                    self.stop_run(serial, After::Pause, effects);
                    self.edit(serial, |task| task.is_forced = false);
                }
                _ => {}
            }
        }
    }

    fn resume(&mut self, id: TaskId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        if self.tasks[&serial].phase == Phase::Completed {
            return Err(self.wrong_phase(serial, "resume"));
        }
        self.resume_each(&[serial], effects);
        Ok(())
    }

    /// Resumes what is paused, failed or waiting for a retry; what waits in a queue that stands still starts by force.
    pub(super) fn resume_each(&mut self, serials: &[u64], effects: &mut Vec<Effect>) {
        for serial in serials.iter().copied() {
            let task = &self.tasks[&serial];
            let stands_still = self.lanes.get(&task.queue).is_some_and(|lane| !lane.queue.is_running);
            match task.phase {
                Phase::Paused | Phase::Failed(_) | Phase::Retrying(_) => self.edit(serial, |task| {
                    task.phase = Phase::Pending;
                    task.attempts = 0;
                    task.is_forced = stands_still;
                }),
                Phase::Stopping { then: After::Pause, .. } => {
                    self.stop_run(serial, After::Requeue, effects);
                    self.edit(serial, |task| task.is_forced = stands_still);
                }
                Phase::Pending if stands_still && !task.is_forced => self.edit(serial, |task| task.is_forced = true),
                _ => {}
            }
        }
    }

    fn delete(&mut self, serials: &[u64], fate: FileFate, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        if serials.iter().any(|serial| self.tasks[serial].is_settling()) {
            return Err(CommandError::Busy);
        }
        let (live, at_rest): (Vec<u64>, Vec<u64>) =
            serials.iter().partition(|serial| self.tasks[*serial].run().is_some());
        for serial in live {
            self.leave_group(serial);
            self.changes.deleted.push(self.tasks[&serial].id);
            self.stop_run(serial, After::Delete(fate), effects);
        }
        self.delete_at_rest(&at_rest, fate);
        Ok(())
    }

    /// Deletes tasks that have no run.
    pub(super) fn delete_at_rest(&mut self, serials: &[u64], fate: FileFate) {
        let files = serials
            .iter()
            .filter_map(|serial| Some((*serial, self.tasks.get(serial)?.files_to_delete(fate))));
        self.discard(files.collect());
    }

    /// Forgets tasks and removes their files, except for those that another task claims by now.
    pub(super) fn discard(&mut self, tasks: Vec<(u64, Vec<PathBuf>)>) {
        let gone: BTreeSet<u64> = tasks.iter().map(|(serial, _)| *serial).collect();
        let claimed: BTreeSet<PathBuf> = if tasks.iter().all(|(_, files)| files.is_empty()) {
            BTreeSet::new()
        } else {
            let dirs: BTreeSet<_> = tasks
                .iter()
                .flat_map(|(_, files)| files)
                .filter_map(|file| file.parent())
                .collect();
            let others = self.tasks.values().filter(|task| !gone.contains(&task.serial));
            let near = others.filter(|task| {
                task.path
                    .as_deref()
                    .and_then(Path::parent)
                    .is_some_and(|dir| dirs.contains(dir))
            });
            near.flat_map(|task| task.claims()).collect()
        };
        for (serial, mut files) in tasks {
            files.retain(|file| !claimed.contains(file));
            self.remove(serial, files);
        }
    }

    // Changing tasks.

    fn rename(&mut self, id: TaskId, name: FileName) -> Result<Reply, CommandError> {
        let serial = self.serial(id)?;
        let task = &self.tasks[&serial];
        if task.is_settling() {
            return Err(CommandError::Busy);
        }
        if task.run().is_some() {
            return Err(self.wrong_phase(serial, "rename"));
        }
        let (Some(from), Some(to)) = (task.path.as_deref(), task.renamed_path(&name)) else {
            self.edit_whole(serial, |task| task.rename(name));
            return Ok(Reply::Done);
        };
        if from == to {
            return Ok(Reply::Done);
        }
        if self.is_anothers(serial, &to) {
            return Err(CommandError::TargetExists(to));
        }
        let moves = task.moves(from, &to);
        self.edit(serial, |task| {
            task.unsettled = Some(Box::new(Unsettled::Renaming(name)));
        });
        self.changes.after_save.push(Effect::Rename(Rename {
            task: id,
            free: Some(to),
            moves,
        }));
        Ok(Reply::Renaming(id))
    }

    /// Changes what was asked for; a live run starts over with it from the bytes it has.
    fn change_asked(
        &mut self,
        id: TaskId,
        effects: &mut Vec<Effect>,
        change: impl FnOnce(&mut Asked),
    ) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        if self.tasks[&serial].is_settling() {
            return Err(CommandError::Busy);
        }
        if self.tasks[&serial].phase == Phase::Completed {
            return Err(self.wrong_phase(serial, "change"));
        }
        self.edit_whole(serial, |task| task.ask(change));
        match self.tasks[&serial].phase {
            Phase::Running(_) => self.stop_run(serial, After::Requeue, effects),
            Phase::Retrying(_) => self.edit(serial, |task| task.phase = Phase::Pending),
            _ => {}
        }
        Ok(())
    }

    /// Replaces what was asked for, if it is still what the change was made of. Secrets do not follow the first URL to
    /// another origin, unless the change itself gives them.
    fn change_spec(
        &mut self,
        id: TaskId,
        before: TaskSpec,
        mut spec: TaskSpec,
        effects: &mut Vec<Effect>,
    ) -> Result<Reply, CommandError> {
        let serial = self.serial(id)?;
        let task = &self.tasks[&serial];
        let mut has_dropped = false;
        if let (Some(old), Some(new)) = (before.urls.first(), spec.urls.first())
            && old.origin() != new.origin()
        {
            let is_gone = old.credentials().is_some() && !spec.urls.contains(old);
            has_dropped = spec.request.drop_secrets_of(&before.request) || is_gone;
        }
        let dir = spec.save_dir.take().filter(|dir| **dir != *task.save_dir);
        if *task.asked != Asked::pack(before) {
            return Err(CommandError::Busy);
        }
        if dir.is_some() && (task.path.is_some() || task.run().is_some()) {
            return Err(CommandError::InvalidField(
                "the directory of a task cannot change once its file has begun",
            ));
        }
        self.change_asked(id, effects, |asked| *asked = Asked::pack(spec))?;
        if let Some(dir) = dir {
            self.edit_whole(serial, |task| task.save_dir = dir.into());
        }
        Ok(secrets_dropped(id, has_dropped, effects))
    }

    fn set_speed_limit(&mut self, id: TaskId, limit: u64, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        self.edit_whole(serial, |task| {
            let mut spec = task.spec();
            spec.speed_limit_bytes = limit;
            task.asked = Arc::new(Asked::pack(spec));
        });
        if let Some(run) = self.tasks[&serial].run() {
            effects.push(Effect::SetLimit(LimitScope::Run(run.id), limit));
        }
        Ok(())
    }

    fn toggle_boost(&mut self, id: TaskId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        if self.boost == Some(serial) {
            self.boost = None;
            self.changes.boost = true;
            return Ok(());
        }
        if self.tasks[&serial].phase == Phase::Completed {
            return Err(self.wrong_phase(serial, "boost"));
        }
        self.resume_each(&[serial], effects);
        self.boost = Some(serial);
        self.changes.boost = true;
        for other in self.active.clone() {
            if other != serial && matches!(self.tasks[&other].phase, Phase::Running(_)) {
                self.stop_run(other, After::Requeue, effects);
            }
        }
        Ok(())
    }

    fn wrong_phase(&self, serial: u64, act: &'static str) -> CommandError {
        let phase = match self.tasks[&serial].phase {
            Phase::Pending | Phase::Retrying(_) => "waiting",
            Phase::Running(_) => "running",
            Phase::Stopping { .. } => "stopping",
            Phase::Paused => "paused",
            Phase::Completed => "completed",
            Phase::Failed(_) => "failed",
        };
        CommandError::WrongPhase { act, phase }
    }

    // Settings.

    fn change_settings(
        &mut self,
        expected: Option<u64>,
        settings: Settings,
        effects: &mut Vec<Effect>,
    ) -> Result<u64, CommandError> {
        settings.validate()?;
        let revision = self.settings.revision;
        if expected.is_some_and(|expected| expected != revision) {
            return Err(CommandError::Conflict { revision });
        }
        if settings == *self.settings.settings {
            return Ok(revision);
        }
        effects.push(Effect::SetLimit(LimitScope::Global, settings.speed_limit_bytes));
        self.settings = VersionedSettings {
            revision: revision + 1,
            settings: Arc::new(settings),
        };
        self.changes.rows.push(Row::Settings(self.settings.clone()));
        self.changes.settings = true;
        Ok(revision + 1)
    }
}

/// The answer to a change of a task's URLs. Dropped secrets are in its history, too: a change that came through a dialect
/// without room for words must not lose them silently.
fn secrets_dropped(task: TaskId, has_dropped: bool, effects: &mut Vec<Effect>) -> Reply {
    if !has_dropped {
        return Reply::Done;
    }
    effects.push(Effect::Emit(Event::Notice {
        task,
        message: super::SECRETS_DROPPED.into(),
    }));
    Reply::SecretsDropped
}

pub(super) fn is_paused(task: &Task) -> bool {
    matches!(task.phase, Phase::Paused | Phase::Stopping { then: After::Pause, .. })
}
