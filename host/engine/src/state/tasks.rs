//! Commands on existing tasks: pause, resume, delete, change.

use std::{collections::BTreeSet, sync::Arc};

use transfer::{Discarded, FileName, SafeUrl, source::torrent_hash};

use crate::{
    event::Event,
    model::{
        error::CommandError,
        id::{GroupId, TaskId},
        resolution::ResolverId,
        seeding::SeedEnd,
        spec::TaskSpec,
        task::{After, FileFate, PackedSpec, Phase, Unsettled},
    },
    state::{
        model::State,
        step::{Command, Effect, LimitScope, Rename, Reply, SECRETS_DROPPED},
    },
};

impl State {
    /// The serials of the ids that are known, each once, oldest first.
    pub(super) fn known(&self, ids: &[TaskId]) -> Vec<u64> {
        let serials: BTreeSet<u64> = ids.iter().filter_map(|id| self.serial(*id).ok()).collect();
        serials.into_iter().collect()
    }

    pub(super) fn of_group(&self, group: GroupId) -> Result<Vec<u64>, CommandError> {
        if !self.groups.contains(group) {
            return Err(CommandError::UnknownGroup(group));
        }
        Ok(self.those(|task| task.group == Some(group)))
    }

    /// Pauses a task that waits or runs; ends the seeding of one that is completed.
    pub(super) fn pause(&mut self, id: TaskId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        match self.tasks[&serial].phase {
            Phase::Completed if self.tasks[&serial].is_seeding() => {
                self.end_seeding(serial, SeedEnd::User, effects);
                Ok(())
            }
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
                Phase::Pending | Phase::Retrying(_) | Phase::NeedsLogin(_) | Phase::AccountLimited(_) => {
                    self.edit(serial, |task| {
                        task.phase = Phase::Paused;
                        task.is_forced = false;
                    });
                }
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

    pub(super) fn resume(&mut self, id: TaskId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        if self.tasks[&serial].phase == Phase::Completed {
            return self.seed_again(serial, effects);
        }
        self.resume_each(&[serial], effects);
        Ok(())
    }

    /// Resumes paused and failed tasks, and asks again for those that wait for a retry, a login or an account; a task in a
    /// stopped queue is started regardless.
    pub(super) fn resume_each(&mut self, serials: &[u64], effects: &mut Vec<Effect>) {
        for serial in serials.iter().copied() {
            let task = &self.tasks[&serial];
            let stands_still = self
                .queue_states
                .get(&task.queue)
                .is_some_and(|queue_state| !queue_state.queue.is_running);
            match task.phase {
                Phase::Paused
                | Phase::Failed(_)
                | Phase::Retrying(_)
                | Phase::NeedsLogin(_)
                | Phase::AccountLimited(_) => {
                    self.edit(serial, |task| {
                        task.phase = Phase::Pending;
                        task.renew_retries();
                        task.is_forced = stands_still;
                    });
                }
                Phase::Stopping { then: After::Pause, .. } => {
                    self.stop_run(serial, After::Requeue, effects);
                    self.edit(serial, |task| task.is_forced = stands_still);
                }
                Phase::Pending if stands_still && !task.is_forced => self.edit(serial, |task| task.is_forced = true),
                _ => {}
            }
        }
    }

    /// Resumes paused tasks of running queues.
    pub(super) fn resume_all(&mut self, effects: &mut Vec<Effect>) {
        let running = self.those(|task| {
            task.is_paused()
                && self
                    .queue_states
                    .get(&task.queue)
                    .is_some_and(|queue_state| queue_state.queue.is_running)
        });
        self.resume_each(&running, effects);
    }

    /// The tasks that a command deletes, if it does.
    pub fn discarded_by(&self, command: &Command) -> Vec<(TaskId, Discarded)> {
        let (mut serials, fate) = match command {
            Command::Delete(task, fate) => (self.known(&[*task]), *fate),
            Command::DeleteMany(tasks, fate) => (self.known(tasks), *fate),
            Command::GroupDelete(group, fate) => (self.of_group(*group).unwrap_or_default(), *fate),
            _ => return Vec::new(),
        };
        // What a transport keeps of a torrent belongs to the task that owns that.
        let is_of_other = |serial: &u64| {
            let hash = torrent_hash(self.tasks[serial].url());
            let owner = hash.and_then(|hash| self.index.torrents.get(&hash));
            owner.is_some_and(|owner| owner != serial)
        };
        serials.retain(|serial| !is_of_other(serial));
        let discarded = |serial| (self.tasks[&serial].id, self.tasks[&serial].discarded(fate));
        serials.into_iter().map(discarded).collect()
    }

    pub(super) fn delete(
        &mut self,
        serials: &[u64],
        fate: FileFate,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        if serials.iter().any(|serial| self.tasks[serial].is_settling()) {
            return Err(CommandError::Busy);
        }
        let (live, at_rest): (Vec<u64>, Vec<u64>) = serials
            .iter()
            .partition(|serial| self.tasks[*serial].any_run().is_some());
        for serial in live {
            self.leave_group(serial);
            self.announce_deleted(&Arc::clone(&self.tasks[&serial]));
            self.stop_run(serial, After::Delete(fate), effects);
            let files = self.leftovers.remove(&self.tasks[&serial].id);
            self.delete_seed(serial, files, fate, effects);
        }
        self.delete_at_rest(&at_rest, fate);
        Ok(())
    }

    pub(super) fn rename(&mut self, id: TaskId, name: FileName) -> Result<Reply, CommandError> {
        let serial = self.serial(id)?;
        let task = &self.tasks[&serial];
        if task.is_settling() {
            return Err(CommandError::Busy);
        }
        if task.any_run().is_some() {
            return Err(self.wrong_phase(serial, "rename"));
        }
        let (Some(from), Some(to)) = (task.path.as_deref(), task.renamed_path(&name)) else {
            self.edit_spec(serial, |task| task.rename(name));
            return Ok(Reply::Done);
        };
        if from == to {
            return Ok(Reply::Done);
        }
        if self.is_reserved_by_other(Some(serial), &to) {
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

    /// Changes the specification; a live run restarts with it from the bytes it has.
    pub(super) fn update_spec(
        &mut self,
        id: TaskId,
        effects: &mut Vec<Effect>,
        change: impl FnOnce(&mut PackedSpec),
    ) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        if self.tasks[&serial].is_settling() {
            return Err(CommandError::Busy);
        }
        if self.tasks[&serial].phase == Phase::Completed {
            return Err(self.wrong_phase(serial, "change"));
        }
        self.edit_spec(serial, |task| task.ask(change));
        match self.tasks[&serial].phase {
            Phase::Running(_) => self.stop_run(serial, After::Requeue, effects),
            // Its next run may succeed with the change.
            Phase::Retrying(_) | Phase::NeedsLogin(_) | Phase::AccountLimited(_) => {
                self.edit(serial, |task| task.phase = Phase::Pending);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn change_url(
        &mut self,
        id: TaskId,
        url: SafeUrl,
        resolver: Option<ResolverId>,
        effects: &mut Vec<Effect>,
    ) -> Result<Reply, CommandError> {
        self.check_torrent(id, Some(&url))?;
        let mut has_dropped = false;
        self.update_spec(id, effects, |asked| has_dropped = asked.change_url(url, resolver))?;
        Ok(secrets_dropped(id, has_dropped, effects))
    }

    /// Downloads the URL as it is from now on.
    pub(super) fn ignore_resolver(&mut self, id: TaskId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        self.update_spec(id, effects, |asked| asked.resolve(None))?;
        self.resume(id, effects)
    }

    /// Replaces the specification, if it is still the one that the change is based on. Secrets do not follow the first
    /// URL to another origin, unless the change itself gives them.
    pub(super) fn change_spec(
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
        self.check_torrent(id, spec.urls.first())?;
        let dir = spec.save_dir.take().filter(|dir| **dir != *task.save_dir);
        if *task.asked != PackedSpec::pack(before) {
            return Err(CommandError::Busy);
        }
        if dir.is_some() && (task.path.is_some() || task.run().is_some()) {
            return Err(CommandError::InvalidField(
                "the directory of a task cannot change once its file has begun",
            ));
        }
        self.update_spec(id, effects, |asked| *asked = PackedSpec::pack(spec))?;
        if let Some(dir) = dir {
            self.edit_spec(serial, |task| task.save_dir = dir.into());
        }
        Ok(secrets_dropped(id, has_dropped, effects))
    }

    /// Changes those of a task's own limits that are given.
    pub(super) fn set_speeds(
        &mut self,
        id: TaskId,
        download: Option<u64>,
        upload: Option<u64>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        let mut spec = self.tasks[&serial].spec();
        spec.speed_limit_bytes = download.unwrap_or(spec.speed_limit_bytes);
        spec.upload_limit_bytes = upload.unwrap_or(spec.upload_limit_bytes);
        let speeds = spec.speeds();
        self.edit_spec(serial, |task| task.asked = Arc::new(PackedSpec::pack(spec)));
        if let Some(run) = self.tasks[&serial].any_run() {
            effects.push(Effect::SetLimit(LimitScope::Run(run), speeds));
        }
        Ok(())
    }

    /// Tags change nothing of a run, so any task may get others.
    pub(super) fn set_tags(&mut self, id: TaskId, tags: Vec<Box<str>>) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        let mut spec = self.tasks[&serial].spec();
        spec.tags = tags;
        self.edit_spec(serial, |task| task.asked = Arc::new(PackedSpec::pack(spec)));
        Ok(())
    }

    pub(super) fn toggle_boost(&mut self, id: TaskId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
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
        for other in self.index.active.clone() {
            if other != serial && matches!(self.tasks[&other].phase, Phase::Running(_)) {
                self.stop_run(other, After::Requeue, effects);
            }
        }
        Ok(())
    }

    pub(super) fn wrong_phase(&self, serial: u64, act: &'static str) -> CommandError {
        let phase = match self.tasks[&serial].phase {
            Phase::Pending | Phase::Retrying(_) | Phase::AccountLimited(_) => "waiting",
            Phase::NeedsLogin(_) => "waiting for a login",
            Phase::Running(_) => "running",
            Phase::Stopping { .. } => "stopping",
            Phase::Paused => "paused",
            Phase::Completed if self.tasks[&serial].seed_run().is_some() => "seeding",
            Phase::Completed => "completed",
            Phase::Failed(_) => "failed",
        };
        CommandError::WrongPhase { act, phase }
    }
}

/// The answer to a change of a task's URLs. Dropped secrets are also recorded in the task's history, because some
/// client protocols have no field for the notice.
fn secrets_dropped(task: TaskId, has_dropped: bool, effects: &mut Vec<Effect>) -> Reply {
    if !has_dropped {
        return Reply::Done;
    }
    effects.push(Effect::Emit(Event::Notice {
        task,
        message: SECRETS_DROPPED.into(),
    }));
    Reply::SecretsDropped
}
