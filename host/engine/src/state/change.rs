//! Every change of a task goes through here, so that indexes, rows and events cannot be forgotten.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use transfer::source::torrent_hash;

use crate::{
    event::Event,
    milestone::{Milestone, TaskMilestone},
    model::{
        account::AccountKey,
        id::{GroupId, TaskId},
        task::{After, FileFate, Phase, Task, reservation},
    },
    state::{
        model::{
            State,
            changes::{Changes, Saving},
        },
        step::{Effect, Row},
    },
};

impl State {
    /// Changes a task; its row and an event follow.
    pub(super) fn edit(&mut self, serial: u64, change: impl FnOnce(&mut Task)) {
        self.alter(serial, Saving::State, change);
    }

    /// As [`State::edit`], for a change that includes the specification.
    pub(super) fn edit_spec(&mut self, serial: u64, change: impl FnOnce(&mut Task)) {
        self.alter(serial, Saving::Whole, change);
    }

    /// As [`State::edit`] for a change that needs no row.
    pub(super) fn mark(&mut self, serial: u64, change: impl FnOnce(&mut Task)) {
        self.alter(serial, Saving::Nothing, change);
    }

    /// Adds a new task.
    pub(super) fn insert(&mut self, task: Task) {
        let serial = task.serial;
        self.index.by_id.insert(task.id, serial);
        if let Some(group) = task.group {
            self.groups.join(group);
        }
        self.tasks.insert(serial, Arc::new(task));
        self.add_to_queue(serial);
        self.changes.tasks.insert(serial, Saving::Whole);
        self.changes.reached.push((TaskMilestone::Created, serial));
    }

    /// Removes a task that has no run. `paths` are deleted first, then its row.
    pub(super) fn remove(&mut self, serial: u64, paths: Vec<PathBuf>) {
        self.delist(serial);
        self.leave_group(serial);
        let Some(task) = self.tasks.remove(&serial) else { return };
        if let Some(run) = task.run() {
            self.leave_account(run.id);
        }
        self.index.by_id.remove(&task.id);
        if !task.is_being_deleted() {
            self.announce_deleted(&task);
        }
        if paths.is_empty() {
            self.changes.rows.push(Row::TaskDeleted(serial));
            return;
        }
        self.changes.rows.push(Row::TaskLeaving(serial, paths.clone()));
        self.changes.after_save.push(Effect::DeleteFiles(serial, paths.clone()));
        self.leaving.insert(serial, paths);
    }

    /// Announces that a task is deleted. Its subscription, if one created it, must learn it also after a crash.
    pub(super) fn announce_deleted(&mut self, task: &Arc<Task>) {
        self.changes.deleted.push(task.id);
        if !matches!(task.phase, Phase::Completed | Phase::Failed(_)) {
            self.changes.cancelled.push(Arc::clone(task));
        }
        if task.asked.feed().is_some() {
            self.deleted_feed_tasks.insert(task.id);
            self.changes.rows.push(Row::FeedTaskDeleted(task.id));
        }
    }

    /// Forgets deleted tasks that their subscriptions have noted.
    pub(super) fn note_deleted(&mut self, tasks: Vec<TaskId>) {
        let known = tasks.into_iter().filter(|task| self.deleted_feed_tasks.remove(task));
        self.changes.rows.extend(known.map(Row::FeedTaskNoted));
    }

    pub(super) fn files_deleted(&mut self, serial: u64) {
        if self.leaving.remove(&serial).is_some() {
            self.changes.rows.push(Row::TaskDeleted(serial));
        }
    }

    /// Takes a task out of its group, which is deleted with its last task.
    pub(super) fn leave_group(&mut self, serial: u64) {
        let Some(group) = self
            .tasks
            .get_mut(&serial)
            .and_then(|task| Arc::make_mut(task).group.take())
        else {
            return;
        };
        if self.groups.leave(group) {
            self.changes.rows.push(Row::GroupDeleted(group));
            self.changes.groups_deleted.push(group);
        }
    }

    pub(super) fn announce_group(&mut self, id: GroupId) {
        if let Some(members) = self.groups.get(id) {
            self.changes.rows.push(Row::Group(Arc::clone(&members.group)));
            self.changes.groups_added.push(Arc::clone(&members.group));
        }
    }

    /// Changes a running task's progress; it is saved with the next checkpoint.
    pub(super) fn record(&mut self, serial: u64, change: impl FnOnce(&mut Task)) {
        if let Some(task) = self.tasks.get_mut(&serial) {
            change(Arc::make_mut(task));
            self.unsaved_progress.insert(serial);
        }
    }

    pub(super) fn checkpoint(&mut self) {
        for serial in std::mem::take(&mut self.unsaved_progress) {
            self.save_state(serial);
        }
        for account in self.accounts.keys() {
            self.save_account(&account);
        }
    }

    /// Saves what [`State::record`] changed.
    pub(super) fn save_state(&mut self, serial: u64) {
        if let Some(task) = self.tasks.get(&serial).filter(|task| !task.is_being_deleted()) {
            self.changes.rows.push(Row::TaskState(Arc::clone(task)));
        }
    }

    fn alter(&mut self, serial: u64, saving: Saving, change: impl FnOnce(&mut Task)) {
        let run = |state: &Self| state.tasks.get(&serial).and_then(|task| task.run());
        let before = run(self);
        self.delist(serial);
        if let Some(task) = self.tasks.get_mut(&serial) {
            let before = rest(&task.phase);
            change(Arc::make_mut(task));
            if let Some(reached) = rest(&task.phase).filter(|_| rest(&task.phase) != before) {
                self.changes.reached.push((reached, serial));
            }
            let noted = self.changes.tasks.entry(serial).or_insert(saving);
            *noted = saving.max(*noted);
        }
        self.add_to_queue(serial);
        if let Some(ended) = before.filter(|_| run(self).is_none()) {
            self.leave_account(ended.id);
        }
    }

    pub(super) fn add_to_queue(&mut self, serial: u64) {
        let Some(task) = self.tasks.get(&serial) else { return };
        if task.run().is_some() {
            self.index.active.insert(serial);
        }
        self.seeds.list(task, &self.settings.settings.seeding, self.uptime);
        if let Phase::Retrying(retry) = &task.phase {
            self.index.retries.insert((retry.at, serial));
        }
        if let Some((slot, order)) = task.wait() {
            self.index
                .waiting
                .entry(slot.clone())
                .or_default()
                .insert((order, serial));
        }
        if let Phase::AccountLimited(wait) = &task.phase {
            let limited = self.index.limited.entry(wait.account.clone()).or_default();
            limited.insert((wait.until, serial));
        }
        if let Some(hash) = task.torrent() {
            self.index.torrents.insert(hash, serial);
        }
        self.index
            .reserved
            .extend(task.reservations().map(|path| (path, serial)));
        if let Some(queue_state) = self.queue_states.get_mut(&task.queue) {
            queue_state.add_to_queue(task);
        }
    }

    pub(super) fn delist(&mut self, serial: u64) {
        let Some(task) = self.tasks.get(&serial) else { return };
        self.index.active.remove(&serial);
        if let Some(hash) = torrent_hash(task.url())
            && self.index.torrents.get(&hash) == Some(&serial)
        {
            self.index.torrents.remove(&hash);
        }
        self.seeds.delist(task);
        if let Phase::Retrying(retry) = &task.phase {
            self.index.retries.remove(&(retry.at, serial));
        }
        if let Some((slot, order)) = task.wait() {
            remove_from(&mut self.index.waiting, slot, &(order, serial));
        }
        if let Phase::AccountLimited(wait) = &task.phase {
            remove_from(&mut self.index.limited, &wait.account, &(wait.until, serial));
        }
        for path in task.reservations() {
            self.index.reserved.remove(&(path, serial));
        }
        if let Some(queue_state) = self.queue_states.get_mut(&task.queue) {
            queue_state.delist(task);
        }
    }

    /// Whether a group has the directory `path`, or an unfinished task other than `serial` has reserved it.
    pub(super) fn is_reserved_by_other(&self, serial: Option<u64>, path: &Path) -> bool {
        if self.groups.have_directory(path) {
            return true;
        }
        let path = reservation(path);
        let of_path = (path.clone(), 0)..=(path, u64::MAX);
        let mut reserved = self.index.reserved.range(of_path);
        reserved.any(|(_, other)| Some(*other) != serial)
    }

    /// Retries the rows that could not be saved, with their present content.
    pub(super) fn save_again(&mut self) {
        for row in std::mem::take(&mut self.changes.unsaved) {
            let present = match row {
                Row::Task(task) | Row::TaskState(task) => Some(self.task_row(task.serial)),
                Row::TaskLeaving(serial, _) | Row::TaskDeleted(serial) => Some(self.task_row(serial)),
                Row::Queue(queue) => self
                    .queue_states
                    .get(&queue.id)
                    .map(|queue_state| Row::Queue(Arc::clone(&queue_state.queue))),
                Row::Group(group) => self
                    .groups
                    .get(group.id)
                    .map(|members| Row::Group(Arc::clone(&members.group))),
                Row::Settings(_) => Some(Row::Settings(self.settings.clone())),
                Row::Site(site, _) => self
                    .sites
                    .get(&site)
                    .map(|found| Row::Site(site.clone(), found.clone())),
                Row::FeedTaskDeleted(task) | Row::FeedTaskNoted(task) => {
                    Some(if self.deleted_feed_tasks.contains(&task) {
                        Row::FeedTaskDeleted(task)
                    } else {
                        Row::FeedTaskNoted(task)
                    })
                }
                gone @ (Row::QueueDeleted(_) | Row::GroupDeleted(_)) => Some(gone),
                Row::SiteDeleted(site) if self.sites.contains_key(&site) => None,
                gone @ Row::SiteDeleted(_) => Some(gone),
                Row::Cookies(site, _) => {
                    let jar = self.cookies.get(&site).map(Arc::clone);
                    jar.map(|jar| Row::Cookies(site, jar))
                }
                Row::CookiesDeleted(site) if self.cookies.contains_key(&site) => None,
                gone @ Row::CookiesDeleted(_) => Some(gone),
                Row::Login(account, _) | Row::LoginDone(account) => Some(self.login_row(account)),
                Row::Account(usage) => Some(self.account_row(usage.used.account)),
                Row::AccountDeleted(account) => Some(self.account_row(account)),
            };
            self.changes.rows.extend(present);
        }
        // The deletion of files waited for these rows. Deleting a file twice does no harm while its task is not gone.
        let leaving = self
            .leaving
            .iter()
            .map(|(serial, paths)| Effect::DeleteFiles(*serial, paths.clone()));
        self.changes.after_save.extend(leaving);
    }

    fn login_row(&self, account: AccountKey) -> Row {
        match self.logins.unfinished.get(&account) {
            Some(login) => Row::Login(account, login.until),
            None => Row::LoginDone(account),
        }
    }

    fn account_row(&self, account: AccountKey) -> Row {
        let usage = self.accounts.usage(&account);
        usage.map_or(Row::AccountDeleted(account), Row::Account)
    }

    fn task_row(&self, serial: u64) -> Row {
        match (self.tasks.get(&serial), self.leaving.get(&serial)) {
            (Some(task), _) if task.is_being_deleted() => {
                Row::TaskLeaving(serial, task.files_to_delete(FileFate::Keep))
            }
            (Some(task), _) => Row::Task(Arc::clone(task)),
            (None, Some(paths)) => Row::TaskLeaving(serial, paths.clone()),
            (None, None) => Row::TaskDeleted(serial),
        }
    }

    /// Turns the collected changes into rows and events: one event of each kind, however many tasks changed.
    pub(super) fn flush(&mut self, effects: &mut Vec<Effect>) {
        let mut changed = Vec::new();
        for (serial, saving) in std::mem::take(&mut self.changes.tasks) {
            let Some(task) = self.tasks.get(&serial) else { continue };
            if task.is_being_deleted() {
                let files = task.files_to_delete(FileFate::Keep);
                self.changes.rows.push(Row::TaskLeaving(serial, files));
                continue;
            }
            match saving {
                Saving::Nothing => {}
                Saving::State => self.changes.rows.push(Row::TaskState(Arc::clone(task))),
                Saving::Whole => self.changes.rows.push(Row::Task(Arc::clone(task))),
            }
            changed.push(Arc::clone(task));
        }
        let rows = std::mem::take(&mut self.changes.rows);
        if !rows.is_empty() {
            effects.push(Effect::Save(rows));
        }
        effects.append(&mut self.changes.after_save);
        self.emit(changed, effects);
    }

    fn emit(&mut self, changed: Vec<Arc<Task>>, effects: &mut Vec<Effect>) {
        let unsaved = std::mem::take(&mut self.changes.unsaved);
        let changes = std::mem::replace(
            &mut self.changes,
            Changes {
                unsaved,
                ..Changes::default()
            },
        );
        let mut emit = |event| effects.push(Effect::Emit(event));
        if changes.settings {
            emit(Event::SettingsChanged(self.settings.clone()));
        }
        if changes.queues {
            emit(Event::QueuesChanged(self.queues().into()));
        }
        if !changes.groups_added.is_empty() {
            emit(Event::GroupsAdded(changes.groups_added.into()));
        }
        if !changed.is_empty() {
            emit(Event::TasksChanged(changed.into()));
        }
        if !changes.deleted.is_empty() {
            emit(Event::TasksDeleted(changes.deleted.into()));
        }
        if !changes.groups_deleted.is_empty() {
            emit(Event::GroupsDeleted(changes.groups_deleted.into()));
        }
        if changes.sites {
            emit(Event::SitesChanged);
        }
        if changes.boost {
            emit(Event::BoostChanged(self.boosted()));
        }
        let milestones = self.milestones(&changes.reached, changes.cancelled);
        if !milestones.is_empty() {
            effects.push(Effect::Announce(milestones));
        }
    }

    /// What was reached by the tasks that still exist, then what was cancelled, then the queues that this drained.
    fn milestones(&self, reached: &[(TaskMilestone, u64)], cancelled: Vec<Arc<Task>>) -> Vec<Milestone> {
        let mut milestones = Vec::new();
        let mut queues = BTreeSet::new();
        for (kind, serial) in reached {
            let Some(task) = self.tasks.get(serial) else { continue };
            if matches!(kind, TaskMilestone::Completed | TaskMilestone::Failed) {
                queues.insert(task.queue);
            }
            milestones.push(Milestone::Task(*kind, Arc::clone(task)));
        }
        let cancelled = cancelled.into_iter();
        milestones.extend(cancelled.map(|task| Milestone::Task(TaskMilestone::Cancelled, task)));
        let drained = queues.iter().filter_map(|queue| self.queue_states.get(queue));
        let drained = drained.filter(|queue_state| queue_state.is_drained());
        milestones.extend(drained.map(|queue_state| Milestone::QueueDrained(Arc::clone(&queue_state.queue))));
        milestones
    }

    /// Stops a live run, or changes what follows its end. A deletion cannot be taken back.
    pub(super) fn stop_run(&mut self, serial: u64, then: After, effects: &mut Vec<Effect>) {
        match self.tasks.get(&serial).map(|task| &task.phase) {
            Some(Phase::Running(run)) => {
                let run = *run;
                effects.push(Effect::Stop(run.id));
                self.edit(serial, |task| task.phase = Phase::Stopping { run, then });
            }
            Some(Phase::Stopping {
                then: After::Delete(_), ..
            }) => {}
            Some(Phase::Stopping { run, then: before }) if *before != then => {
                let run = *run;
                self.edit(serial, |task| task.phase = Phase::Stopping { run, then });
            }
            _ => {}
        }
    }

    /// Deletes tasks that have no run.
    pub(super) fn delete_at_rest(&mut self, serials: &[u64], fate: FileFate) {
        let files = serials.iter().filter_map(|serial| {
            let task = self.tasks.get(serial)?;
            let files = self.leftovers.get(&task.id).cloned();
            Some((*serial, files.unwrap_or_else(|| task.files_to_delete(fate))))
        });
        self.discard(files.collect());
    }

    /// Removes tasks and their files, except for files that another task has claimed since.
    pub(super) fn discard(&mut self, tasks: Vec<(u64, Vec<PathBuf>)>) {
        let gone: BTreeSet<u64> = tasks.iter().map(|(serial, _)| *serial).collect();
        // By the names as file systems may take them: one that ignores case has one file for two of them.
        let claimed: BTreeSet<String> = if tasks.iter().all(|(_, files)| files.is_empty()) {
            BTreeSet::new()
        } else {
            let dirs: BTreeSet<_> = tasks
                .iter()
                .flat_map(|(_, files)| files)
                .filter_map(|file| file.parent().map(reservation))
                .collect();
            let others = self.tasks.values().filter(|task| !gone.contains(&task.serial));
            let near = others.filter(|task| {
                task.path
                    .as_deref()
                    .and_then(Path::parent)
                    .is_some_and(|dir| dirs.contains(&reservation(dir)))
            });
            near.flat_map(|task| task.claims())
                .map(|path| reservation(&path))
                .collect()
        };
        for (serial, mut files) in tasks {
            files.retain(|file| !claimed.contains(&reservation(file)));
            self.remove(serial, files);
        }
    }
}

/// The milestone of a phase in which a task rests.
fn rest(phase: &Phase) -> Option<TaskMilestone> {
    match phase {
        Phase::Paused => Some(TaskMilestone::Paused),
        Phase::Completed => Some(TaskMilestone::Completed),
        Phase::Failed(_) | Phase::NeedsLogin(_) => Some(TaskMilestone::Failed),
        Phase::Pending | Phase::AccountLimited(_) | Phase::Retrying(_) | Phase::Running(_) | Phase::Stopping { .. } => {
            None
        }
    }
}

/// Removes a member of a set, and the set with its last one.
fn remove_from<K: Ord, T: Ord>(sets: &mut BTreeMap<K, BTreeSet<T>>, key: &K, member: &T) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(member);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
