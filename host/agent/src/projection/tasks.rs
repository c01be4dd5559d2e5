//! The daemon's state as the agent knows it: the last snapshot, kept current by events. Pure.
//!
//! The daemon's JSON is kept and forwarded unchanged. Only members that lists are filtered by are parsed, once, when an
//! event arrives; reading a task parses nothing.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use protocol::{
    EventBody, FoundTasks, QueueDto, RssItemsChanged, RuntimeStats, SelectionResolved, TaskDto, TaskIdParams,
    TaskRuntimeDto, TaskStatus,
};
use rest::Filter;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    deliveries::Deliveries,
    packed::{LiveBytes, Packer},
    task_list::{Task, TaskList},
};

/// Above this, names of queues and groups that no task uses are dropped from the set.
const MANY_NAMES: usize = 1024;

/// Spare capacity for the task that completes a piece, which avoids a reallocation.
const ROOM_BYTES: usize = 2 * 1024;

/// Expected size of a task, to allocate a page.
const TASK_BYTES: usize = 1536;

/// Bytes of a long text that are serialized at a time. Small, because a thousand readers have one such buffer each.
pub(crate) const PIECE_BYTES: usize = 8 * 1024;

/// The members of a task that are parsed.
#[derive(Default)]
struct Index {
    task_id: Option<String>,
    queue_id: String,
    group_id: String,
    status: Option<TaskStatus>,
    seeding_status: u8,
    is_torrent: bool,
    created_at: u64,
    completed_at: u64,
    queue_order: u32,
}

impl Index {
    /// Parses a member of a task.
    fn take(&mut self, name: &str, value: &str) -> Result<(), serde_json::Error> {
        let seconds = |value| serde_json::from_str::<&str>(value).map(|text| text.parse().unwrap_or(0));
        match name {
            "taskId" => self.task_id = Some(serde_json::from_str(value)?),
            "queueId" => self.queue_id = serde_json::from_str(value)?,
            "groupId" => self.group_id = serde_json::from_str(value)?,
            "status" => self.status = Some(serde_json::from_str(value)?),
            "seedingStatus" => self.seeding_status = serde_json::from_str(value)?,
            "infoHash" => self.is_torrent = value != "\"\"",
            "createdAt" => self.created_at = seconds(value)?,
            "completedAt" => self.completed_at = seconds(value)?,
            "queueOrder" => self.queue_order = serde_json::from_str(value)?,
            _ => {}
        }
        Ok(())
    }
}

/// A member of the snapshot other than the tasks: its name, the event that replaces it, and its default.
struct Part(&'static str, Option<&'static str>, &'static str);

/// The questions of tasks that wait for an answer.
const SELECTIONS: &str = "pendingSelections";

/// In the order of a snapshot.
const PARTS: [Part; 12] = [
    Part("queuePositions", None, "{}"),
    Part("queues", Some("queuesChanged"), "[]"),
    Part("groups", Some("groupsChanged"), "[]"),
    Part("config", Some("configChanged"), r#"{"revision":0,"values":{}}"#),
    Part("siteAuth", Some("siteAuthChanged"), "[]"),
    Part("priority", Some("priorityChanged"), "[]"),
    Part("runtimeStats", Some("runtimeStatsChanged"), "{}"),
    Part("rssSources", Some("rssSourcesChanged"), "[]"),
    Part("rssItemRevisions", None, "{}"),
    Part("plugins", Some("pluginsChanged"), "[]"),
    Part("components", None, "[]"),
    Part(SELECTIONS, None, "[]"),
];

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tasks<'a> {
    #[serde(borrow)]
    tasks: Vec<&'a RawValue>,
    #[serde(borrow)]
    task_runtime: BTreeMap<String, &'a RawValue>,
}

#[derive(Deserialize)]
struct TasksChanged<'a> {
    #[serde(borrow, default)]
    tasks: Vec<&'a RawValue>,
    #[serde(rename = "deletedTaskIds", default)]
    deleted: Vec<String>,
}

/// Whether a list of these tasks has this one.
fn admits(filter: &Filter, task: &Task) -> bool {
    filter.status.is_none_or(|status| status == task.status)
        && filter.queue.as_deref().is_none_or(|queue| *queue == *task.queue)
        && filter.group.as_deref().is_none_or(|group| *group == *task.group)
        && filter.tag.as_deref().is_none_or(|tag| task.has_tag(tag))
}

/// Newest first.
pub(crate) struct Page {
    pub(crate) tasks: Listing,
    pub(crate) next: Option<String>,
    /// How many tasks all pages have; counted only if there is a limit.
    pub(crate) total: Option<usize>,
}

/// A change, for subscribers that keep an order of the tasks.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// The task at this place was created or changed.
    Task(u64, Arc<Task>),
    Deleted(Arc<str>),
    Progress(Arc<TaskRuntimeDto>),
    /// The ids of all queues, in order.
    Queues(Vec<String>),
    /// Everything may have changed.
    All,
}

/// The cursor was not returned by a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadCursor;

/// The last progress of a run.
#[derive(Debug)]
struct Sample {
    /// Forwarded unchanged.
    text: Box<str>,
    record: Arc<TaskRuntimeDto>,
}

impl Sample {
    fn live(&self) -> LiveBytes {
        LiveBytes {
            downloaded: self.record.downloaded_bytes,
            total: self.record.total_bytes,
            uploaded: self.record.uploaded_bytes,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Projection {
    list: TaskList,
    places: HashMap<Arc<str>, u64>,
    packer: Packer,
    /// Last progress, by task.
    runtime: Arc<Runtime>,
    /// Names of queues and groups, shared by all tasks that use them.
    names: HashSet<Arc<str>>,
    next_place: u64,
    stats: RuntimeStats,
    deliveries: Deliveries,
    /// JSON from the daemon, indexed as [`PARTS`].
    parts: [Option<Box<RawValue>>; PARTS.len()],
}

impl Projection {
    pub(crate) fn read(snapshot: &str) -> Result<Self, serde_json::Error> {
        let Tasks { tasks, task_runtime } = serde_json::from_str(snapshot)?;
        let mut members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(snapshot)?;
        let mut projection = Self {
            packer: Packer::with_usual(usual_members()),
            ..Self::default()
        };
        for (part, Part(name, ..)) in projection.parts.iter_mut().zip(PARTS) {
            *part = members
                .remove(name)
                .filter(|text| text.get() != "null")
                .map(ToOwned::to_owned);
        }
        if let Some(deliveries) = members.remove("webhookDeliveries").filter(|text| text.get() != "null") {
            projection.deliveries = Deliveries::read(deliveries.get())?;
        }
        projection.stats = serde_json::from_str(projection.part("runtimeStats")).unwrap_or_default();
        for task in tasks {
            projection.put(task.get())?;
        }
        for sample in task_runtime.into_values() {
            projection.sample(sample.get())?;
        }
        Ok(projection)
    }

    /// Applies an event. Unknown kinds are ignored.
    pub(crate) fn apply(&mut self, event: &EventBody) -> Result<Vec<Change>, serde_json::Error> {
        let data = event.data.get();
        let mut changes = Vec::new();
        match event.kind.as_str() {
            "snapshotReplaced" => {
                *self = Self::read(data)?;
                changes.push(Change::All);
            }
            "taskChanged" => changes.push(self.put(data)?),
            "tasksSnapshot" => {
                let TasksChanged { tasks, deleted } = serde_json::from_str(data)?;
                for task in tasks {
                    changes.push(self.put(task.get())?);
                }
                changes.extend(deleted.iter().filter_map(|id| self.remove(id)));
            }
            "taskDeleted" => changes.extend(self.remove(&serde_json::from_str::<TaskIdParams>(data)?.task_id)),
            "taskRuntimeChanged" => changes.extend(self.sample(data)?),
            kind => {
                let replaced = PARTS.iter().position(|Part(_, event, _)| *event == Some(kind));
                if let Some(place) = replaced {
                    self.parts[place] = Some(event.data.clone());
                }
                match kind {
                    "webhooksChanged" => self.deliveries.merge(data)?,
                    "webhooksCleared" => self.deliveries = Deliveries::default(),
                    "selectionPending" => self.ask(&event.data)?,
                    "selectionResolved" => self.withdraw(&serde_json::from_str(data)?)?,
                    "rssItemsChanged" => self.note_revision(&serde_json::from_str(data)?)?,
                    "queuesChanged" => changes.push(Change::Queues(self.queue_ids())),
                    "runtimeStatsChanged" => self.stats = serde_json::from_str(data).unwrap_or_default(),
                    _ => {}
                }
            }
        }
        Ok(changes)
    }

    fn put(&mut self, json: &str) -> Result<Change, serde_json::Error> {
        let mut index = Index::default();
        let packed = self.packer.pack(json, |name, value| index.take(name, value))?;
        let missing = serde::de::Error::missing_field;
        let id = index.task_id.ok_or_else(|| missing("taskId"))?;
        let status = index.status.ok_or_else(|| missing("status"))?;
        if !matches!(status, TaskStatus::Downloading | TaskStatus::Preparing) {
            self.forget_sample(&id);
        }
        let known = self.places.get_key_value(id.as_str());
        let (id, place) = if let Some((id, place)) = known {
            (Arc::clone(id), *place)
        } else {
            self.next_place += 1;
            let id: Arc<str> = id.into();
            self.places.insert(Arc::clone(&id), self.next_place);
            (id, self.next_place)
        };
        let task = Arc::new(Task {
            packed,
            queue: self.name(index.queue_id),
            group: self.name(index.group_id),
            id,
            status,
            seeding_status: index.seeding_status,
            is_torrent: index.is_torrent,
            created_at: index.created_at,
            completed_at: index.completed_at,
            queue_order: index.queue_order,
        });
        self.list.put(place, Arc::clone(&task));
        Ok(Change::Task(place, task))
    }

    fn sample(&mut self, json: &str) -> Result<Option<Change>, serde_json::Error> {
        let record: TaskRuntimeDto = serde_json::from_str(json)?;
        if !self.places.contains_key(record.task_id.as_str()) {
            return Ok(None);
        }
        let record = Arc::new(record);
        let sample = Sample {
            text: json.into(),
            record: Arc::clone(&record),
        };
        Arc::make_mut(&mut self.runtime).insert(record.task_id.clone(), Arc::new(sample));
        Ok(Some(Change::Progress(record)))
    }

    fn forget_sample(&mut self, id: &str) {
        if self.runtime.contains_key(id) {
            Arc::make_mut(&mut self.runtime).remove(id);
        }
    }

    fn name(&mut self, text: String) -> Arc<str> {
        if let Some(name) = self.names.get(text.as_str()) {
            return Arc::clone(name);
        }
        if self.names.len() >= MANY_NAMES {
            self.names.retain(|name| Arc::strong_count(name) > 1);
        }
        let name: Arc<str> = text.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    fn remove(&mut self, id: &str) -> Option<Change> {
        self.forget_sample(id);
        let (id, place) = self.places.remove_entry(id)?;
        self.list.remove(place);
        Some(Change::Deleted(id))
    }

    /// The JSON of a task, with its last progress.
    pub(crate) fn task(&self, id: &str) -> Option<String> {
        let task = self.list.get(*self.places.get(id)?)?;
        let mut text = Vec::with_capacity(TASK_BYTES);
        write(task, &self.runtime, false, &mut text);
        Some(String::from_utf8(text).expect("a task is packed as text"))
    }

    /// The last progress of a task's run, if it runs.
    pub(crate) fn run(&self, id: &str) -> Option<Arc<TaskRuntimeDto>> {
        self.runtime.get(id).map(|sample| Arc::clone(&sample.record))
    }

    /// The ids of all tasks, in no order.
    pub(crate) fn ids(&self) -> Vec<Arc<str>> {
        self.places.keys().cloned().collect()
    }

    /// All tasks with their places, oldest first.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (u64, Arc<Task>)> + use<> {
        self.list.clone().before(u64::MAX)
    }

    pub(crate) fn stats(&self) -> &RuntimeStats {
        &self.stats
    }

    /// In order.
    pub(crate) fn queue_ids(&self) -> Vec<String> {
        let queues: Vec<QueueDto> = serde_json::from_str(self.queues()).unwrap_or_default();
        queues.into_iter().map(|queue| queue.queue_id).collect()
    }

    /// Tasks newest first, at most `limit`, after the cursor. If the cursor's task was deleted meanwhile, tasks created
    /// in the same second may repeat; none is skipped.
    pub(crate) fn page(&self, filter: Filter, limit: Option<usize>, cursor: Option<&str>) -> Result<Page, BadCursor> {
        let before = match cursor {
            None => u64::MAX,
            Some(cursor) => self.place_of(cursor)?,
        };
        let total = limit.map(|_| {
            let all = self.list.clone().before(u64::MAX);
            all.filter(|(_, task)| admits(&filter, task)).count()
        });
        let newest_first = self.list.clone().before(before).rev().map(|(_, task)| task);
        let mut found = newest_first.filter(move |task| admits(&filter, task));
        let Some(limit) = limit else {
            let (tasks, next) = (self.listing("[".to_owned(), found, "]"), None);
            return Ok(Page { tasks, next, total });
        };
        let page: Vec<_> = found.by_ref().take(limit).collect();
        let next = page.last().filter(|_| found.next().is_some());
        let next = next.map(|task| format!("{}.{}", task.created_at, task.id));
        let tasks = self.listing("[".to_owned(), page.into_iter(), "]");
        Ok(Page { tasks, next, total })
    }

    /// All tasks, newest first, between `head` and `tail`; `tail` includes the closing `]`.
    pub(crate) fn list(&self, head: String, tail: &'static str) -> Listing {
        let newest_first = self.list.clone().before(u64::MAX).rev().map(|(_, task)| task);
        self.listing(head + "[", newest_first, tail)
    }

    fn listing(
        &self,
        head: String,
        tasks: impl Iterator<Item = Arc<Task>> + Send + 'static,
        tail: &'static str,
    ) -> Listing {
        Listing {
            text: head.into_bytes(),
            is_first: true,
            tasks: Box::new(tasks),
            runtime: Arc::clone(&self.runtime),
            tail: Some(tail),
            is_sparse: false,
        }
    }

    fn place_of(&self, cursor: &str) -> Result<u64, BadCursor> {
        let (created_at, id) = cursor.split_once('.').ok_or(BadCursor)?;
        let created_at: u64 = created_at.parse().map_err(|_| BadCursor)?;
        if let Some(place) = self.places.get(id) {
            return Ok(*place);
        }
        let mut newest_first = self.list.clone().before(u64::MAX).rev();
        let not_newer = newest_first.find(|(_, task)| task.created_at <= created_at);
        Ok(not_newer.map_or(0, |(place, _)| place + 1))
    }

    /// Number of tasks, indexed by status.
    pub(crate) fn by_status(&self) -> [u64; TaskStatus::ALL.len()] {
        let mut counts = [0; TaskStatus::ALL.len()];
        for (_, task) in self.list.clone().before(u64::MAX) {
            counts[task.status as usize] += 1;
        }
        counts
    }

    /// The last progress of each active run.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Arc<TaskRuntimeDto>> {
        self.runtime.values().map(|sample| &sample.record)
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// A member of the snapshot other than the tasks, as JSON. The name must be in [`PARTS`].
    fn part(&self, name: &str) -> &str {
        let place = PARTS.iter().position(|Part(known, ..)| *known == name);
        let place = place.expect("only parts of the table are asked for");
        self.text(place)
    }

    fn text(&self, place: usize) -> &str {
        self.parts[place].as_deref().map_or(PARTS[place].2, RawValue::get)
    }

    /// Notes that the items of a subscription changed.
    fn note_revision(&mut self, changed: &RssItemsChanged) -> Result<(), serde_json::Error> {
        let name = "rssItemRevisions";
        let mut revisions: BTreeMap<String, u64> = serde_json::from_str(self.part(name))?;
        revisions.insert(changed.source_id.clone(), changed.item_revision);
        let text = serde_json::value::to_raw_value(&revisions)?;
        self.replace(name, text);
        Ok(())
    }

    /// Adds a question of a task.
    fn ask(&mut self, question: &RawValue) -> Result<(), serde_json::Error> {
        let mut questions: Vec<&RawValue> = serde_json::from_str(self.part(SELECTIONS))?;
        questions.push(question);
        let text = serde_json::value::to_raw_value(&questions)?;
        self.replace(SELECTIONS, text);
        Ok(())
    }

    /// Removes a question of a task.
    fn withdraw(&mut self, resolved: &SelectionResolved) -> Result<(), serde_json::Error> {
        let mut questions: Vec<&RawValue> = serde_json::from_str(self.part(SELECTIONS))?;
        questions.retain(|question| {
            let named = serde_json::from_str::<SelectionResolved>(question.get());
            named.is_ok_and(|named| named != *resolved)
        });
        let text = serde_json::value::to_raw_value(&questions)?;
        self.replace(SELECTIONS, text);
        Ok(())
    }

    fn replace(&mut self, name: &str, text: Box<RawValue>) {
        if let Some(place) = PARTS.iter().position(|Part(known, ..)| *known == name) {
            self.parts[place] = Some(text);
        }
    }

    pub(crate) fn queues(&self) -> &str {
        self.part("queues")
    }

    pub(crate) fn groups(&self) -> &str {
        self.part("groups")
    }

    pub(crate) fn config(&self) -> &str {
        self.part("config")
    }

    pub(crate) fn sites(&self) -> &str {
        self.part("siteAuth")
    }

    pub(crate) fn plugins(&self) -> &str {
        self.part("plugins")
    }

    /// A `DaemonSnapshot` as JSON between `head` and `tail`; `tail` includes the closing `]}`.
    pub(crate) fn snapshot(&self, head: String, tail: &'static str) -> Listing {
        let mut text = head;
        text.push('{');
        for (place, Part(name, ..)) in PARTS.iter().enumerate() {
            text.extend(["\"", name, "\":", self.text(place), ","]);
        }
        text.push_str("\"webhookDeliveries\":");
        self.deliveries.write(&mut text);
        text.push_str(",\"taskRuntime\":{");
        for (number, (id, sample)) in self.runtime.iter().enumerate() {
            text.push_str(if number == 0 { "" } else { "," });
            text.push_str(&serde_json::Value::from(id.as_str()).to_string());
            text.extend([":", &*sample.text]);
        }
        text.push_str("},\"tasks\":[");
        let oldest_first = self.list.clone().before(u64::MAX).map(|(_, task)| task);
        self.listing(text, oldest_first, tail)
    }
}

type Runtime = BTreeMap<String, Arc<Sample>>;

/// Serializes a task with its last progress.
fn write(task: &Task, runtime: &Runtime, is_sparse: bool, text: &mut Vec<u8>) {
    let live = runtime.get(&*task.id).map(|sample| sample.live());
    task.packed.write(live, is_sparse, text);
}

/// The members of a task and what they usually are, which sparse lists leave out.
fn usual_members() -> impl Iterator<Item = (String, String)> {
    let usual = serde_json::to_value(TaskDto::usual()).unwrap_or_default();
    let members = usual.as_object().cloned().unwrap_or_default();
    members.into_iter().map(|(name, value)| (name, value.to_string()))
}

/// The ids that begin with one of `prefixes`, at most [`FoundTasks::MAX_PER_PREFIX`] for each.
pub(crate) fn beginning_with(prefixes: &[String], mut ids: Vec<Arc<str>>) -> FoundTasks {
    // Once sorted, thousands of prefixes are found among a hundred thousand ids without a scan for each.
    ids.sort_unstable();
    let found = prefixes.iter().flat_map(|prefix| {
        let from = ids.partition_point(|id| **id < **prefix);
        let matching = ids[from..].iter().take_while(move |id| id.starts_with(prefix.as_str()));
        matching.take(FoundTasks::MAX_PER_PREFIX)
    });
    let task_ids = found.map(ToString::to_string).collect();
    FoundTasks { task_ids }
}

/// A long JSON text of many tasks, serialized in pieces while it is sent, as of the moment when it was created.
pub(crate) struct Listing {
    /// Serialized but not returned yet.
    text: Vec<u8>,
    is_first: bool,
    tasks: Box<dyn Iterator<Item = Arc<Task>> + Send>,
    /// Progress as of the same moment.
    runtime: Arc<Runtime>,
    /// Follows the tasks; none once it was returned.
    tail: Option<&'static str>,
    /// Whether members with usual values are left out.
    is_sparse: bool,
}

impl Iterator for Listing {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let tail = self.tail?;
        while self.text.len() < PIECE_BYTES {
            let Some(task) = self.tasks.next() else {
                self.text.extend_from_slice(tail.as_bytes());
                self.tail = None;
                break;
            };
            if !std::mem::replace(&mut self.is_first, false) {
                self.text.push(b',');
            }
            write(&task, &self.runtime, self.is_sparse, &mut self.text);
        }
        let next = Vec::with_capacity(PIECE_BYTES + ROOM_BYTES);
        Some(std::mem::replace(&mut self.text, next).into())
    }
}

impl Listing {
    /// The same, without members that have their usual values.
    #[must_use]
    pub(crate) fn sparse(self, is_sparse: bool) -> Self {
        Self { is_sparse, ..self }
    }

    pub(crate) fn into_text(self) -> String {
        let pieces: Vec<Bytes> = self.collect();
        String::from_utf8(pieces.concat()).expect("tasks are packed as text")
    }
}

#[cfg(test)]
mod tests {
    use protocol::DaemonSnapshot;
    use serde::Serialize;

    use super::*;

    fn task(id: &str, created_at: u64) -> TaskDto {
        TaskDto {
            task_id: id.into(),
            created_at: created_at.to_string(),
            queue_id: "main".into(),
            ..TaskDto::default()
        }
    }

    fn projection() -> Projection {
        let snapshot = DaemonSnapshot {
            tasks: vec![task("a", 1), task("b", 1), task("c", 2), task("d", 3)],
            ..DaemonSnapshot::default()
        };
        Projection::read(&serde_json::to_string(&snapshot).unwrap()).unwrap()
    }

    #[test]
    fn a_sparse_list_is_the_same_once_the_usual_members_are_filled_in() {
        let mut own = task("e", 5);
        (own.file_name, own.total_bytes, own.status) = ("e.iso".into(), 9, TaskStatus::Completed);
        (own.seed_ratio_limit_milli, own.tags) = (-1, vec!["a".into()]);
        let usual = TaskDto {
            queue_id: "main".into(),
            task_id: "f".into(),
            ..TaskDto::usual()
        };
        let snapshot = DaemonSnapshot {
            tasks: vec![task("a", 1), own, usual],
            ..DaemonSnapshot::default()
        };
        let mut projection = Projection::read(&serde_json::to_string(&snapshot).unwrap()).unwrap();
        let run = TaskRuntimeDto {
            task_id: "a".into(),
            ..TaskRuntimeDto::default()
        };
        let filled = |listing: Listing| {
            let sparse: Vec<serde_json::Map<String, serde_json::Value>> =
                serde_json::from_str(&listing.sparse(true).into_text()).unwrap();
            let usual = serde_json::to_value(TaskDto::usual()).unwrap();
            let fill = |task: serde_json::Map<_, _>| {
                let mut whole = usual.as_object().unwrap().clone();
                whole.extend(task);
                whole
            };
            sparse.into_iter().map(fill).collect::<Vec<_>>()
        };
        for runs in [false, true] {
            if runs {
                apply(&mut projection, "taskRuntimeChanged", &run);
            }
            let whole = projection.list(String::new(), "]").into_text();
            let whole: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(&whole).unwrap();
            assert_eq!(filled(projection.list(String::new(), "]")), whole);
        }
        let sparse = projection.list(String::new(), "]").sparse(true).into_text();
        assert!(sparse.contains(r#"{"taskId":"f","queueId":"main"}"#), "{sparse}");
    }

    #[test]
    fn sparse_lists_of_finished_downloads_have_half_the_bytes() {
        let finished = |number: u64| TaskDto {
            task_id: format!("1b4e28ba-2fa1-41d2-883f-{number:012}"),
            url: format!(
                "https://files{}.example.org/archive/2026/{number}/file-{number}.zip",
                number % 7
            ),
            file_name: format!("file-{number}.zip"),
            save_dir: "/srv/downloads".into(),
            status: TaskStatus::Completed,
            downloaded_bytes: number * 1_000_003,
            total_bytes: number * 1_000_003,
            created_at: (1_790_000_000 + number).to_string(),
            completed_at: (1_790_000_060 + number).to_string(),
            queue_id: "main".into(),
            ..TaskDto::usual()
        };
        let snapshot = DaemonSnapshot {
            tasks: (0..1000).map(finished).collect(),
            ..DaemonSnapshot::default()
        };
        let projection = Projection::read(&serde_json::to_string(&snapshot).unwrap()).unwrap();
        let bytes = |is_sparse| projection.list(String::new(), "]").sparse(is_sparse).into_text().len();
        let (whole, sparse) = (bytes(false), bytes(true));
        assert!(sparse * 2 < whole, "{sparse} of {whole}");
    }

    fn apply(projection: &mut Projection, kind: &str, data: &impl Serialize) {
        let data = serde_json::value::to_raw_value(data).unwrap();
        let kind = kind.to_owned();
        projection.apply(&EventBody { kind, data }).unwrap();
    }

    fn ids(page: Page) -> Vec<String> {
        let tasks: Vec<TaskDto> = serde_json::from_str(&page.tasks.into_text()).unwrap();
        tasks.into_iter().map(|task| task.task_id).collect()
    }

    fn page(projection: &Projection, limit: usize, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
        let page = projection.page(Filter::default(), Some(limit), cursor).unwrap();
        let next = page.next.clone();
        (ids(page), next)
    }

    #[test]
    fn pages_are_newest_first_and_end() {
        let projection = projection();
        let (found, next) = page(&projection, 3, None);
        assert_eq!(found, ["d", "c", "b"]);
        assert_eq!(page(&projection, 3, next.as_deref()), (vec!["a".to_owned()], None));
        assert!(projection.page(Filter::default(), None, Some("nonsense")).is_err());
    }

    #[test]
    fn a_cursor_of_a_deleted_task_skips_no_task() {
        let mut projection = projection();
        let (_, next) = page(&projection, 2, None);
        projection.remove("c");
        assert_eq!(page(&projection, 2, next.as_deref()).0, ["b", "a"]);
    }

    #[test]
    fn a_long_list_comes_in_pieces_and_is_as_of_its_beginning() {
        let mut projection = Projection::default();
        let id = |number: u64| format!("task-{number:05}");
        for number in 0..2000 {
            apply(&mut projection, "taskChanged", &task(&id(number), number));
        }
        let page = projection.page(Filter::default(), None, None).unwrap();
        let mut pieces = page.tasks.peekable();
        assert!(pieces.peek().unwrap().len() < 2 * PIECE_BYTES);
        for number in (0..2000).step_by(3) {
            projection.remove(&id(number));
            apply(&mut projection, "taskChanged", &task(&id(number + 10_000), 1));
        }
        let pieces: Vec<Bytes> = pieces.collect();
        assert!(pieces.len() > 50);
        let listed: Vec<TaskDto> = serde_json::from_slice(&pieces.concat()).unwrap();
        let expect: Vec<_> = (0..2000).rev().map(id).collect();
        assert_eq!(listed.into_iter().map(|task| task.task_id).collect::<Vec<_>>(), expect);
        assert_eq!(projection.len(), 2000);
    }

    #[test]
    fn events_keep_it_current() {
        let mut projection = projection();
        let mut changed = task("b", 1);
        changed.status = TaskStatus::Downloading;
        apply(&mut projection, "taskChanged", &changed);
        let sample = TaskRuntimeDto {
            task_id: "b".into(),
            downloaded_bytes: 7,
            uploaded_bytes: 5,
            ..TaskRuntimeDto::default()
        };
        apply(&mut projection, "taskRuntimeChanged", &sample);
        let read =
            |projection: &Projection| -> TaskDto { serde_json::from_str(&projection.task("b").unwrap()).unwrap() };
        let measured = read(&projection);
        assert_eq!((measured.downloaded_bytes, measured.uploaded_bytes), (7, 5));
        changed.status = TaskStatus::Paused;
        apply(&mut projection, "taskChanged", &changed);
        assert_eq!(read(&projection).downloaded_bytes, 0);
        let filter = Filter {
            status: Some(TaskStatus::Paused),
            ..Filter::default()
        };
        assert_eq!(ids(projection.page(filter, None, None).unwrap()), ["b"]);
        apply(&mut projection, "taskDeleted", &serde_json::json!({"taskId": "b"}));
        assert!(projection.task("b").is_none());
        let many = serde_json::json!({"tasks": [task("e", 4)], "deletedTaskIds": ["a", "c"]});
        apply(&mut projection, "tasksSnapshot", &many);
        assert_eq!(ids(projection.page(Filter::default(), None, None).unwrap()), ["e", "d"]);
        apply(&mut projection, "comesNextYear", &1);
        assert_eq!(projection.len(), 2);
    }

    #[test]
    fn questions_are_kept_until_they_are_answered() {
        let mut projection = projection();
        let ask = |id: &str| {
            serde_json::json!({"requestId": id, "taskId": "a", "kind": {"type": "bt", "files": [], "fileCount": 0},
                "defaultChoice": {"kind": "bt"}, "deadlineUnixMs": 1})
        };
        apply(&mut projection, "selectionPending", &ask("a.1"));
        apply(&mut projection, "selectionPending", &ask("a.2"));
        apply(
            &mut projection,
            "selectionResolved",
            &serde_json::json!({"requestId": "a.1"}),
        );
        let text = projection.snapshot(String::new(), "]}").into_text();
        let read: DaemonSnapshot = serde_json::from_str(&text).unwrap();
        let pending: Vec<_> = read
            .pending_selections
            .iter()
            .map(|question| &*question.request_id)
            .collect();
        assert_eq!(pending, ["a.2"]);
    }

    #[test]
    fn what_is_encoded_is_a_snapshot_again() {
        let projection = projection();
        let read: DaemonSnapshot = serde_json::from_str(&projection.snapshot(String::new(), "]}").into_text()).unwrap();
        assert_eq!(read.tasks.len(), 4);
    }

    #[test]
    fn tasks_are_found_by_the_beginning_of_their_ids() {
        let ids: Vec<Arc<str>> = ["beef-1", "ab-1", "ab-2", "a-1", "a-2", "a-3", "a-4", "a-5", "a-6"]
            .map(Arc::from)
            .into();
        let find = |prefixes: &[&str]| {
            let prefixes: Vec<_> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
            beginning_with(&prefixes, ids.clone()).task_ids
        };
        assert_eq!(find(&["beef", "ab-2", "c"]), ["beef-1", "ab-2"]);
        assert_eq!(find(&["a-"]), ["a-1", "a-2", "a-3", "a-4", "a-5"]);
    }
}
