//! Seeding: its slots, its runs, and its end.

use std::{path::PathBuf, sync::Arc, time::Duration};

use transfer::{Failure, FailureKind, Outcome, Progress, Purpose, Stage, TorrentOptions};

use crate::{
    milestone::TaskMilestone,
    model::{
        error::CommandError,
        id::{RunId, TaskId},
        seeding::{AfterSeeding, Limits, Recheck, SeedEnd, SeedLimits, SeedState, SeedThen, Seeding},
        task::{After, FileFate, Phase, Run, Unsettled},
    },
    state::{model::State, step::Effect},
};

impl State {
    /// The serial of the task whose run `run` seeds. `None` for a message of an earlier run.
    pub(super) fn serial_of_seed(&self, id: TaskId, run: RunId) -> Option<u64> {
        let serial = *self.index.by_id.get(&id)?;
        (self.tasks[&serial].seed_run()? == run).then_some(serial)
    }

    fn limits(&self, serial: u64) -> Limits {
        let task = &self.tasks[&serial];
        let settings = &self.settings.settings.seeding;
        Limits::of(&task.options().seed_limits, settings, task.total_bytes.unwrap_or(0))
    }

    fn edit_seeding(&mut self, serial: u64, change: impl FnOnce(&mut Seeding)) {
        self.edit(serial, |task| change(task.seeding.get_or_insert_default()));
    }

    fn wait_for_slot(&mut self, serial: u64) {
        self.seeds.last_wait += 1;
        let order = self.seeds.last_wait;
        self.edit_seeding(serial, |seeding| {
            (seeding.state, seeding.order) = (SeedState::Waiting, order);
        });
    }

    /// What follows for a download that is complete and can be seeded.
    pub(super) fn begin_seeding(&mut self, serial: u64) {
        let is_wanted = self.settings.settings.seeding.is_enabled && !self.tasks[&serial].options().is_not_seeded;
        self.edit_seeding(serial, |seeding| {
            seeding.uploaded_at_completion = seeding.uploaded_bytes;
            seeding.state = SeedState::Ended(SeedEnd::Off);
        });
        if is_wanted {
            self.wait_for_slot(serial);
        }
    }

    /// Restores the seeding of a task, which was stored without its run.
    pub(super) fn take_seeding(&mut self, serial: u64) {
        let Some(seeding) = self.tasks[&serial].seeding.as_deref() else {
            return;
        };
        self.seeds.last_wait = self.seeds.last_wait.max(seeding.order);
        if seeding.state != SeedState::Waiting {
            return;
        }
        let settings = &self.settings.settings.seeding;
        if !settings.is_enabled || !settings.continues_on_start {
            self.edit_seeding(serial, |seeding| seeding.state = SeedState::Ended(SeedEnd::Off));
        }
    }

    /// Starts runs while there are slots.
    pub(super) fn fill_seeds(&mut self, effects: &mut Vec<Effect>) {
        let most = match self.settings.settings.seeding.max_active {
            0 => usize::MAX,
            most => usize::try_from(most).unwrap_or(usize::MAX),
        };
        while !self.is_closing && self.seeds.live() < most {
            let Some(serial) = self.seeds.first() else { return };
            // It may have reached its limits before a restart, or by a change of them.
            if let Some(end) = self.reached(serial) {
                self.seeding_ended(serial, end, effects);
                continue;
            }
            self.next_run += 1;
            let run = RunId(self.next_run);
            let uptime = self.uptime;
            let most_uploaded_bytes = self.allowance(serial);
            // After a restart it waits again, so its row stays as it is.
            self.mark(serial, |task| {
                let seeding = task.seeding.get_or_insert_default();
                seeding.state = SeedState::Seeding(run);
                seeding.note_time(uptime);
            });
            let mut start = self.start(&self.tasks[&serial], run, None);
            start.purpose = Purpose::Seed { most_uploaded_bytes };
            effects.push(Effect::Start(Box::new(start)));
        }
    }

    fn reached(&self, serial: u64) -> Option<SeedEnd> {
        let seeding = self.tasks[&serial].seeding.as_deref()?;
        seeding.end(&self.limits(serial), self.uptime)
    }

    fn allowance(&self, serial: u64) -> Option<u64> {
        let seeding = self.tasks[&serial].seeding.as_deref()?;
        seeding.allowance(&self.limits(serial))
    }

    /// Ends the seeding of those whose limits of time are reached.
    pub(super) fn end_seeds(&mut self, effects: &mut Vec<Effect>) {
        for serial in self.seeds.due(self.uptime) {
            if let Some(end) = self.reached(serial) {
                self.end_seeding(serial, end, effects);
                continue;
            }
            // An upload came since, or another limit must be reached too, or it is only to be saved.
            let uptime = self.uptime;
            self.delist(serial);
            self.record(serial, |task| task.seeding.get_or_insert_default().note_time(uptime));
            self.add_to_queue(serial);
            self.save_state(serial);
        }
    }

    /// A sample of a run that seeds.
    pub(super) fn seed_progressed(&mut self, serial: u64, progress: &Progress, effects: &mut Vec<Effect>) {
        let uptime = self.uptime;
        let is_more = self.tasks[&serial]
            .seeding
            .as_ref()
            .is_some_and(|seeding| progress.uploaded_bytes > seeding.uploaded_bytes);
        if !is_more {
            return;
        }
        self.record(serial, |task| {
            task.seeding
                .get_or_insert_default()
                .note_upload(progress.uploaded_bytes, uptime);
        });
        if let Some(end) = self.reached(serial) {
            self.end_seeding(serial, end, effects);
        }
    }

    /// A run that seeded has ended.
    pub(super) fn seed_ended(&mut self, serial: u64, outcome: Outcome, effects: &mut Vec<Effect>) {
        self.unsaved_progress.remove(&serial);
        let uptime = self.uptime;
        let Some(seeding) = self.tasks[&serial].seeding.as_deref() else {
            return;
        };
        let after = match (&seeding.state, outcome) {
            (SeedState::Stopping(_, after), _) => after.clone(),
            (_, Outcome::Failed(failure)) => AfterSeeding::End(SeedEnd::Failed(Box::new(failure))),
            _ => {
                let message = "seeding stopped although no stop was requested; resume the task";
                AfterSeeding::End(SeedEnd::Failed(Box::new(Failure::new(FailureKind::Internal, message))))
            }
        };
        let files = match self.tasks[&serial].unsettled.as_deref() {
            Some(Unsettled::Leaving(files)) => Some(files.clone()),
            _ => None,
        };
        self.mark(serial, |task| {
            if let Some(seeding) = task.seeding.as_deref_mut() {
                seeding.state = SeedState::Downloading;
                seeding.note_time(uptime);
            }
        });
        match (files, after) {
            (Some(files), _) => self.discard(vec![(serial, files)]),
            (None, AfterSeeding::Wait) => self.edit_seeding(serial, |seeding| seeding.state = SeedState::Waiting),
            (None, AfterSeeding::End(end)) => self.seeding_ended(serial, end, effects),
        }
    }

    /// The seeding of a task without a run has ended.
    fn seeding_ended(&mut self, serial: u64, end: SeedEnd, effects: &mut Vec<Effect>) {
        let is_by_limit = matches!(end, SeedEnd::Ratio | SeedEnd::Time | SeedEnd::Idle);
        self.edit_seeding(serial, |seeding| seeding.state = SeedState::Ended(end));
        if let SeedThen::Delete(fate) = self.settings.settings.seeding.then
            && is_by_limit
        {
            effects.push(Effect::Delete(self.tasks[&serial].id, fate));
        }
    }

    /// Ends the seeding of a task: at once, or when its run has ended.
    pub(super) fn end_seeding(&mut self, serial: u64, end: SeedEnd, effects: &mut Vec<Effect>) {
        let Some(seeding) = self.tasks[&serial].seeding.as_deref() else {
            return;
        };
        match seeding.state {
            SeedState::Waiting => self.seeding_ended(serial, end, effects),
            SeedState::Seeding(run) | SeedState::Stopping(run, AfterSeeding::Wait) => {
                self.stop_seed(serial, run, AfterSeeding::End(end), effects);
            }
            SeedState::Downloading | SeedState::Stopping(..) | SeedState::Ended(_) => {}
        }
    }

    fn stop_seed(&mut self, serial: u64, run: RunId, after: AfterSeeding, effects: &mut Vec<Effect>) {
        effects.push(Effect::Stop(run));
        self.edit_seeding(serial, |seeding| seeding.state = SeedState::Stopping(run, after));
    }

    /// Stops all runs that seed, to continue after a restart.
    pub(super) fn suspend_seeds(&mut self, effects: &mut Vec<Effect>) {
        for serial in self.seeds.all_live() {
            if let Some(SeedState::Seeding(run)) = self.tasks[&serial].seeding.as_ref().map(|seeding| &seeding.state) {
                let run = *run;
                self.stop_seed(serial, run, AfterSeeding::Wait, effects);
            }
        }
    }

    /// Records which files are deleted with a task, unless they follow from its path; stops a run that seeds. If the task was
    /// still downloading, the list is for a crash only: its transport lists the files again once the run has ended.
    pub(super) fn delete_seed(
        &mut self,
        serial: u64,
        files: Option<Vec<PathBuf>>,
        fate: FileFate,
        effects: &mut Vec<Effect>,
    ) {
        let run = self.tasks[&serial].seed_run();
        if files.is_none() && run.is_none() {
            return;
        }
        let files = files.unwrap_or_else(|| self.tasks[&serial].files_to_delete(fate));
        self.edit(serial, |task| {
            task.unsettled = Some(Box::new(Unsettled::Leaving(files)));
        });
        if let Some(run) = run {
            self.stop_seed(serial, run, AfterSeeding::Wait, effects);
        }
    }

    /// Seeds a completed task again, whose seeding has ended. Its limits of time begin anew; a ratio that is reached needs
    /// another limit.
    pub(super) fn seed_again(&mut self, serial: u64, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        let state = self.tasks[&serial].seeding.as_deref().map(|seeding| &seeding.state);
        match state {
            // Its files are gone or changed: no other run that seeds would find them.
            Some(SeedState::Ended(SeedEnd::Failed(failure))) if failure.kind == FailureKind::DiskIo => {
                self.hash_again(serial, effects);
                Ok(())
            }
            Some(_) if !self.settings.settings.seeding.is_enabled => Err(CommandError::InvalidField(
                "seeding is switched off (bt_seed_enabled); a completed task cannot be resumed otherwise",
            )),
            Some(SeedState::Ended(_)) => {
                self.edit_seeding(serial, |seeding| {
                    seeding.seeded = Duration::ZERO;
                    seeding.idle = Duration::ZERO;
                });
                self.wait_for_slot(serial);
                Ok(())
            }
            Some(SeedState::Stopping(run, AfterSeeding::End(_))) => {
                let run = *run;
                self.stop_seed(serial, run, AfterSeeding::Wait, effects);
                Ok(())
            }
            _ => Err(self.wrong_phase(serial, "resume")),
        }
    }

    /// Changes a task's own limits. Its run restarts if it may upload more or less than before.
    pub(super) fn set_seed_limits(
        &mut self,
        id: TaskId,
        limits: SeedLimits,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        let before = self.allowance(serial);
        self.edit_spec(serial, |task| task.ask(|asked| asked.limit_seeding(limits)));
        self.limits_changed(serial, before, effects);
        Ok(())
    }

    /// Changes how a torrent is downloaded. If it is complete and other files are wanted now, it is downloaded again.
    pub(super) fn change_torrent(
        &mut self,
        id: TaskId,
        options: Arc<TorrentOptions>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        let task = &self.tasks[&serial];
        if task.phase != Phase::Completed {
            return self.update_spec(id, effects, |asked| asked.download_as(options));
        }
        if task.seeding.is_none() {
            return Err(self.wrong_phase(serial, "change"));
        }
        if task.is_settling() {
            return Err(CommandError::Busy);
        }
        let before = task.options().torrent.as_ref().map(|torrent| torrent.files.clone());
        let is_more = before.unwrap_or_default() != options.files;
        self.edit_spec(serial, |task| task.ask(|asked| asked.download_as(options)));
        if is_more {
            self.download_again(serial, effects);
        }
        Ok(())
    }

    /// Notes which files a run was answered to download.
    pub(super) fn note_files(&mut self, id: TaskId, files: Box<[u32]>) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        let options = self.tasks[&serial].options().torrent.clone().unwrap_or_default();
        let chosen = TorrentOptions {
            files,
            asks_for_files: false,
            ..TorrentOptions::clone(&options)
        };
        if chosen != *options {
            self.edit_spec(serial, |task| task.ask(|asked| asked.download_as(Arc::new(chosen))));
        }
        Ok(())
    }

    /// Hashes everything of a complete torrent again, and downloads what is missing or wrong.
    pub(super) fn recheck(&mut self, id: TaskId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        let task = &self.tasks[&serial];
        if task.phase != Phase::Completed || task.seeding.is_none() {
            return Err(self.wrong_phase(serial, "recheck"));
        }
        if task.is_settling() {
            return Err(CommandError::Busy);
        }
        self.hash_again(serial, effects);
        Ok(())
    }

    fn hash_again(&mut self, serial: u64, effects: &mut Vec<Effect>) {
        let task = &self.tasks[&serial];
        let end = match task.seeding.as_deref().map(|seeding| &seeding.state) {
            // If it can be seeded after all, it is.
            Some(SeedState::Ended(SeedEnd::Failed(_))) => None,
            Some(SeedState::Ended(end) | SeedState::Stopping(_, AfterSeeding::End(end))) => Some(end.clone()),
            _ => None,
        };
        let recheck = Recheck {
            completed_at: task.completed_at,
            end,
        };
        self.edit_seeding(serial, |seeding| seeding.recheck = Some(Box::new(recheck)));
        self.download_again(serial, effects);
    }

    pub(super) fn take_recheck(&mut self, serial: u64) -> Option<Recheck> {
        self.tasks[&serial].seeding.as_ref()?.recheck.as_ref()?;
        let mut taken = None;
        self.edit_seeding(serial, |seeding| taken = seeding.recheck.take());
        taken.map(|recheck| *recheck)
    }

    /// Everything that was hashed again is right: the task is what it was, and was completed when it was.
    pub(super) fn found_whole(&mut self, serial: u64, recheck: Recheck) {
        let Recheck { completed_at, end } = recheck;
        self.changes
            .reached
            .retain(|reached| *reached != (TaskMilestone::Completed, serial));
        let is_seeded = end.is_none() && self.settings.settings.seeding.is_enabled;
        self.edit(serial, |task| {
            task.completed_at = completed_at.or(task.completed_at);
            task.seeding.get_or_insert_default().state = SeedState::Ended(end.unwrap_or(SeedEnd::Off));
        });
        if is_seeded {
            self.wait_for_slot(serial);
        }
    }

    /// Makes a completed task pending, at once or when its run that seeds has ended.
    fn download_again(&mut self, serial: u64, effects: &mut Vec<Effect>) {
        let uptime = self.uptime;
        let run = self.tasks[&serial].seed_run();
        effects.extend(run.map(Effect::Stop));
        self.edit(serial, |task| {
            task.completed_at = None;
            task.file_missing = false;
            task.phase = match run {
                Some(id) => Phase::Stopping {
                    run: Run {
                        id,
                        stage: Stage::Seeding,
                    },
                    then: After::Requeue,
                },
                None => Phase::Pending,
            };
            if let Some(seeding) = task.seeding.as_deref_mut() {
                seeding.state = SeedState::Downloading;
                seeding.note_time(uptime);
            }
        });
    }

    /// Applies changed settings to everything that seeds or waits to.
    pub(super) fn seed_settings_changed(&mut self, before: &[(u64, Option<u64>)], effects: &mut Vec<Effect>) {
        if !self.settings.settings.seeding.is_enabled {
            for serial in self.seeds.all_waiting().into_iter().chain(self.seeds.all_live()) {
                self.end_seeding(serial, SeedEnd::Off, effects);
            }
            return;
        }
        for (serial, before) in before {
            self.limits_changed(*serial, *before, effects);
        }
        let most = self.settings.settings.seeding.max_active;
        let live = self.seeds.all_live();
        let room = if most == 0 {
            live.len()
        } else {
            usize::try_from(most).unwrap_or(usize::MAX)
        };
        for serial in live.into_iter().skip(room) {
            if let Some(SeedState::Seeding(run)) = self.tasks[&serial].seeding.as_ref().map(|seeding| &seeding.state) {
                let run = *run;
                self.stop_seed(serial, run, AfterSeeding::Wait, effects);
            }
        }
    }

    /// What each live run that seeds may upload.
    pub(super) fn allowances(&self) -> Vec<(u64, Option<u64>)> {
        let live = self.seeds.all_live().into_iter();
        live.map(|serial| (serial, self.allowance(serial))).collect()
    }

    fn limits_changed(&mut self, serial: u64, before: Option<u64>, effects: &mut Vec<Effect>) {
        if self.tasks[&serial].phase != Phase::Completed {
            return;
        }
        let Some(SeedState::Seeding(run)) = self.tasks[&serial].seeding.as_ref().map(|seeding| &seeding.state) else {
            return;
        };
        let run = *run;
        if let Some(end) = self.reached(serial) {
            self.end_seeding(serial, end, effects);
        } else if self.allowance(serial) != before {
            self.stop_seed(serial, run, AfterSeeding::Wait, effects);
        } else {
            self.mark(serial, |_| {});
        }
    }
}
