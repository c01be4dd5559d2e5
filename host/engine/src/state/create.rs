//! Creates tasks and groups.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use transfer::{SafeUrl, source::torrent_hash};

use crate::{
    model::{
        error::CommandError,
        group::{Group, GroupSpec},
        id::{GroupId, QueueId, TaskId, Timestamp},
        spec::{self, MAX_LABEL_BYTES, TaskSpec},
        task::{PackedSpec, Phase, Task},
    },
    state::model::State,
};

impl State {
    pub(super) fn create(
        &mut self,
        now: Timestamp,
        tasks: Vec<(TaskId, TaskSpec)>,
    ) -> Result<Vec<TaskId>, CommandError> {
        let mut known = if self.settings.settings.dedup_same_url {
            self.unfinished_urls()
        } else {
            HashMap::new()
        };
        let mut ids = BTreeSet::new();
        let mut torrents = HashMap::new();
        for (id, spec) in &tasks {
            spec.validate()?;
            if self.index.by_id.contains_key(id) || !ids.insert(*id) {
                return Err(CommandError::TaskExists(*id));
            }
            if self.deleted_feed_tasks.contains(id) {
                return Err(CommandError::TaskDeleted(*id));
            }
            if let Some(hash) = torrent_hash(&spec.urls[0]) {
                let here = torrents.insert(hash, *id);
                let owner = here.or_else(|| self.torrent_owner(&spec.urls[0]));
                if let Some(owner) = owner.filter(|_| !known.contains_key(spec.urls[0].expose())) {
                    return Err(CommandError::SameTorrent(owner));
                }
            }
            if let Some(queue) = spec.queue.filter(|queue| !self.queue_states.contains_key(queue)) {
                return Err(CommandError::UnknownQueue(queue));
            }
            if let Some(group) = spec.group.filter(|group| !self.groups.contains(*group)) {
                return Err(CommandError::UnknownGroup(group));
            }
        }
        let mut last_dir: Arc<Path> = Arc::clone(&self.download_dir);
        let mut created = Vec::with_capacity(tasks.len());
        for (id, spec) in tasks {
            // A subscription judges itself what was downloaded before, and links its item to this very id.
            if self.settings.settings.dedup_same_url && spec.feed.is_none() {
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
        // Tasks of one call mostly share a directory: share its allocation.
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
            asked_retries: 0,
            created_at: now,
            completed_at: None,
            done_bytes: 0,
            total_bytes: spec.promised_size.or_else(|| spec.announced_bytes()),
            save_dir: Arc::clone(last_dir),
            path: None,
            owns_file: false,
            seeding: None,
            unsettled: None,
            asked: Arc::new(PackedSpec::pack(spec)),
        });
    }

    pub(super) fn save_dir(&self, spec: &mut TaskSpec, queue: QueueId) -> PathBuf {
        let of_group = spec
            .group
            .and_then(|group| self.groups.get(group)?.group.spec.save_dir.clone());
        spec.save_dir
            .take()
            .or(of_group)
            .unwrap_or_else(|| self.save_dir_of(Some(queue)))
    }

    /// The directory of tasks that name none: the queue's, else the settings', else the configured one.
    pub fn save_dir_of(&self, queue: Option<QueueId>) -> PathBuf {
        let queue = self.queue_states.get(&queue.unwrap_or_else(|| self.default_queue()));
        queue
            .and_then(|queue| queue.queue.spec.default_save_dir.clone())
            .or_else(|| self.settings.settings.default_save_dir.clone())
            .unwrap_or_else(|| self.download_dir.to_path_buf())
    }

    /// The task of the torrent that `url` names.
    pub(super) fn torrent_owner(&self, url: &SafeUrl) -> Option<TaskId> {
        let serial = self.index.torrents.get(&torrent_hash(url)?)?;
        self.tasks.get(serial).map(|task| task.id)
    }

    /// Fails if `url` names the torrent of another task than `id`.
    pub(super) fn check_torrent(&self, id: TaskId, url: Option<&SafeUrl>) -> Result<(), CommandError> {
        let owner = url.and_then(|url| self.torrent_owner(url));
        owner
            .filter(|owner| *owner != id)
            .map_or(Ok(()), |owner| Err(CommandError::SameTorrent(owner)))
    }

    pub(super) fn unfinished_urls(&self) -> HashMap<String, TaskId> {
        let unfinished = self
            .tasks
            .values()
            .filter(|task| task.phase != Phase::Completed && !task.is_being_deleted());
        unfinished
            .map(|task| (task.url().expose().to_owned(), task.id))
            .collect()
    }

    /// The first free one of `places`: not the directory of a group, nor the path of an unfinished task other than
    /// `serial`. If none is free, groups share the first one.
    pub(super) fn free_place<'p>(&self, serial: Option<u64>, places: &'p [PathBuf]) -> Option<&'p PathBuf> {
        let is_free = |place: &&PathBuf| !self.is_reserved_by_other(serial, place);
        places.iter().find(is_free).or(places.first())
    }

    pub(super) fn group_create(
        &mut self,
        now: Timestamp,
        (id, mut spec): (GroupId, GroupSpec),
        mut tasks: Vec<(TaskId, TaskSpec)>,
        places: &[PathBuf],
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
        if self.groups.contains(id) {
            return Err(CommandError::InvalidField("the group exists already"));
        }
        let wanted = spec.save_dir.clone();
        if let Some(place) = self.free_place(None, places) {
            spec.save_dir = Some(place.clone());
        }
        for (_, task) in &mut tasks {
            task.validate()?;
            task.group = Some(id);
            if let (Some(wanted), Some(place), Some(dir)) = (&wanted, &spec.save_dir, &mut task.save_dir)
                && let Ok(below) = dir.strip_prefix(wanted)
            {
                *dir = place.components().chain(below.components()).collect();
            }
        }
        self.groups.insert(Arc::new(Group {
            id,
            spec,
            created_at: now,
        }));
        let created = self.create(now, tasks);
        // Without tasks of its own (refused, or all of them exist already) there is no group.
        if self.groups.get(id).is_none_or(|members| members.tasks == 0) {
            self.groups.remove(id);
        } else {
            self.announce_group(id);
        }
        created
    }
}
