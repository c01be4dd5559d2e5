//! Restores the state from the rows of an earlier process.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use transfer::{CookieJar, Credentials, Netrc};

use crate::{
    model::{
        account::{AccountKey, AccountUsage},
        group::Group,
        id::{QueueId, TaskId},
        proxy::SystemProxy,
        queue::{Queue, QueueSpec, Schedule},
        settings::{Settings, VersionedSettings},
        site::{CookieSite, Site},
        task::{Phase, Task, Unsettled},
    },
    state::{
        model::{
            Index, State, accounts::Accounts, changes::Changes, groups::Groups, logins::Logins,
            queue_state::QueueState, seeds::Seeds,
        },
        step::{Effect, Rename, Row},
    },
};

/// The content of the rows.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "each is the rows of that name")]
pub struct Loaded {
    pub settings: Option<VersionedSettings>,
    pub tasks: Vec<Task>,
    pub queues: Vec<Queue>,
    pub groups: Vec<Group>,
    pub sites: Vec<(Site, Credentials)>,
    pub cookies: Vec<(CookieSite, Arc<CookieJar>)>,
    pub deleted_feed_tasks: Vec<TaskId>,
    /// Logins after which tasks are still to be resumed: those whose wait has this order or a lower one.
    pub logins: Vec<(AccountKey, u64)>,
    pub accounts: Vec<AccountUsage>,
    /// Deleted tasks whose files may still exist.
    pub leaving: Vec<(u64, PathBuf)>,
}

impl State {
    /// Uses these logins for tasks without one of their own.
    #[must_use]
    pub fn with_netrc(self, netrc: Option<Arc<Netrc>>) -> Self {
        Self { netrc, ..self }
    }

    /// Restores the state. Unfinished tasks resume, unless the settings say that they stay paused.
    pub fn load(download_dir: &Path, system_proxy: SystemProxy, loaded: Loaded, effects: &mut Vec<Effect>) -> Self {
        let settings = loaded.settings.unwrap_or_else(|| VersionedSettings {
            revision: 0,
            settings: Arc::new(Settings::default()),
        });
        let mut state = Self {
            download_dir: download_dir.into(),
            system_proxy: Arc::new(system_proxy),
            netrc: None,
            settings,
            tasks: BTreeMap::new(),
            index: Index::default(),
            queue_states: queue_states(loaded.queues),
            groups: Groups::default(),
            sites: loaded.sites.into_iter().collect(),
            cookies: loaded.cookies.into_iter().collect(),
            logins: Logins::default(),
            accounts: Accounts::load(loaded.accounts),
            seeds: Seeds::default(),
            uptime: Duration::ZERO,
            turtle_seen: None,
            boost: None,
            leaving: BTreeMap::new(),
            deleted_feed_tasks: loaded.deleted_feed_tasks.into_iter().collect(),
            unsaved_progress: BTreeSet::new(),
            last_serial: loaded.leaving.iter().map(|(serial, _)| *serial).max().unwrap_or(0),
            next_run: 0,
            leftovers: BTreeMap::new(),
            is_closing: false,
            changes: Changes::default(),
        };
        state.index.by_id.reserve(loaded.tasks.len());
        for group in loaded.groups {
            state.groups.insert(Arc::new(group));
        }
        state.take_tasks(loaded.tasks);
        state.take_logins(loaded.logins);
        state.settle_all(effects);
        state.delete_left_files(loaded.leaving);
        state.drop_empty_groups();
        state.resume_after_login();
        state.fill_slots(effects);
        state.fill_seeds(effects);
        state.flush(effects);
        state
    }

    fn take_tasks(&mut self, tasks: Vec<Task>) {
        let goes_on = self.settings.settings.auto_resume_on_start;
        for mut task in tasks {
            let serial = task.serial;
            self.last_serial = self.last_serial.max(serial);
            if !self.queue_states.contains_key(&task.queue) {
                task.queue = QueueId::Main;
            }
            task.group = task.group.filter(|group| self.groups.join(*group));
            let order = task.wait().map_or(0, |(_, order)| order);
            self.logins.last_wait = self.logins.last_wait.max(order);
            let is_unfinished = matches!(
                task.phase,
                Phase::Pending | Phase::Retrying(_) | Phase::AccountLimited(_)
            );
            self.index.by_id.insert(task.id, serial);
            self.tasks.insert(serial, Arc::new(task));
            self.add_to_queue(serial);
            if is_unfinished && !goes_on {
                self.edit(serial, |task| task.phase = Phase::Paused);
            }
            self.take_seeding(serial);
        }
    }

    /// Continues file operations that a crash interrupted.
    fn settle_all(&mut self, effects: &mut Vec<Effect>) {
        for task in self.tasks.values() {
            match task.unsettled.as_deref() {
                Some(Unsettled::Renaming(name)) => {
                    let paths = task.path.as_deref().zip(task.renamed_path(name));
                    effects.push(Effect::Rename(Rename {
                        task: task.id,
                        free: None,
                        moves: paths.map(|(from, to)| task.moves(from, &to)).unwrap_or_default(),
                    }));
                }
                Some(Unsettled::Landing(_)) => self.check_landing(task.serial, effects),
                // Its row is one of a deleted task.
                Some(Unsettled::Leaving(_)) | None => {}
            }
        }
    }

    /// Finishes deletions that a crash interrupted; a path that a task uses by now is kept.
    fn delete_left_files(&mut self, leaving: Vec<(u64, PathBuf)>) {
        let mut by_serial: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
        for (serial, path) in leaving {
            by_serial.entry(serial).or_default().push(path);
        }
        let claimed: BTreeSet<PathBuf> = if by_serial.is_empty() {
            BTreeSet::new()
        } else {
            self.tasks.values().flat_map(|task| task.claims()).collect()
        };
        for (serial, mut paths) in by_serial {
            paths.retain(|path| !claimed.contains(path));
            if paths.is_empty() {
                self.changes.rows.push(Row::TaskDeleted(serial));
            } else {
                self.changes.after_save.push(Effect::DeleteFiles(serial, paths.clone()));
                self.leaving.insert(serial, paths);
            }
        }
    }

    fn drop_empty_groups(&mut self) {
        let empty: Vec<_> = self
            .groups
            .iter()
            .filter(|members| members.tasks == 0)
            .map(|members| members.group.id)
            .collect();
        for group in empty {
            self.groups.remove(group);
            self.changes.rows.push(Row::GroupDeleted(group));
        }
    }
}

fn queue_states(queues: Vec<Queue>) -> BTreeMap<QueueId, QueueState> {
    let built_in = [(QueueId::Main, "main", true), (QueueId::Later, "later", false)];
    let defaults = built_in
        .into_iter()
        .zip(0..)
        .map(|((id, name, is_running), position)| Queue {
            id,
            spec: QueueSpec {
                name: name.to_owned(),
                ..QueueSpec::default()
            },
            position,
            is_running,
            schedule: Schedule::default(),
            schedule_seen: None,
        });
    let mut queue_states: BTreeMap<_, _> = defaults
        .map(|queue| (queue.id, QueueState::new(Arc::new(queue))))
        .collect();
    queue_states.extend(
        queues
            .into_iter()
            .map(|queue| (queue.id, QueueState::new(Arc::new(queue)))),
    );
    queue_states
}
