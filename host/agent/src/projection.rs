//! The daemon's state as the agent knows it: its last snapshot, kept current by events. Pure.
//!
//! Tasks are kept as the daemon wrote them, beside the few members that lists are filtered by: most are only passed on.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use protocol::{EventBody, TaskDto, TaskRuntimeDto, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A task as JSON.
#[derive(Debug, Clone)]
pub(crate) struct TaskText {
    pub(crate) json: Arc<str>,
    id: Arc<str>,
    queue: Arc<str>,
    group: Arc<str>,
    status: TaskStatus,
    created_at: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    task_id: String,
    #[serde(default)]
    queue_id: String,
    #[serde(default)]
    group_id: String,
    status: TaskStatus,
    #[serde(default)]
    created_at: String,
}

/// What is not tasks, as the daemon wrote it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rest {
    queues: Option<Box<RawValue>>,
    queue_positions: Option<Box<RawValue>>,
    groups: Option<Box<RawValue>>,
    config: Option<Box<RawValue>>,
    site_auth: Option<Box<RawValue>>,
    priority: Option<Box<RawValue>>,
    runtime_stats: Option<Box<RawValue>>,
    rss_sources: Option<Box<RawValue>>,
    rss_item_revisions: Option<Box<RawValue>>,
    plugins: Option<Box<RawValue>>,
    components: Option<Box<RawValue>>,
    webhook_deliveries: Option<Box<RawValue>>,
    pending_selections: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tasks<'a> {
    #[serde(borrow)]
    tasks: Vec<&'a RawValue>,
    #[serde(borrow)]
    task_runtime: BTreeMap<String, &'a RawValue>,
}

#[derive(Deserialize)]
struct Deleted {
    #[serde(rename = "taskId")]
    task_id: String,
}

#[derive(Deserialize)]
struct Changed<'a> {
    #[serde(borrow, default)]
    tasks: Vec<&'a RawValue>,
    #[serde(rename = "deletedTaskIds", default)]
    deleted: Vec<String>,
}

/// Which tasks a list holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub(crate) status: Option<TaskStatus>,
    pub(crate) queue: Option<String>,
    pub(crate) group: Option<String>,
}

/// A page of tasks, newest first.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) tasks: Vec<Arc<str>>,
    pub(crate) next: Option<String>,
}

/// The cursor is not one that a page gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadCursor;

/// The daemon's state.
#[derive(Debug, Default)]
pub(crate) struct Projection {
    /// By place: oldest first.
    tasks: BTreeMap<u64, TaskText>,
    places: HashMap<Arc<str>, u64>,
    runtime: HashMap<String, Arc<str>>,
    /// One text for each queue and group, not one for each task.
    names: HashMap<Arc<str>, Arc<str>>,
    next_place: u64,
    rest: Rest,
}

impl Projection {
    /// Reads a snapshot.
    pub(crate) fn read(snapshot: &str) -> Result<Self, serde_json::Error> {
        let Tasks { tasks, task_runtime } = serde_json::from_str(snapshot)?;
        let mut projection = Self {
            rest: serde_json::from_str(snapshot)?,
            ..Self::default()
        };
        for task in tasks {
            projection.put(task.get())?;
        }
        for (id, sample) in task_runtime {
            projection.runtime.insert(id, sample.get().into());
        }
        Ok(projection)
    }

    /// Brings in an event. Kinds that are not known change nothing.
    pub(crate) fn apply(&mut self, event: &EventBody) -> Result<(), serde_json::Error> {
        let data = event.data.get();
        let text = || Some(event.data.clone());
        match event.kind.as_str() {
            "snapshotReplaced" => *self = Self::read(data)?,
            "taskChanged" => self.put(data)?,
            "tasksSnapshot" => {
                let Changed { tasks, deleted } = serde_json::from_str(data)?;
                for task in tasks {
                    self.put(task.get())?;
                }
                for id in deleted {
                    self.remove(&id);
                }
            }
            "taskDeleted" => self.remove(&serde_json::from_str::<Deleted>(data)?.task_id),
            "taskRuntimeChanged" => {
                let Deleted { task_id } = serde_json::from_str(data)?;
                if self.places.contains_key(task_id.as_str()) {
                    self.runtime.insert(task_id, data.into());
                }
            }
            "queuesChanged" => self.rest.queues = text(),
            "groupsChanged" => self.rest.groups = text(),
            "configChanged" => self.rest.config = text(),
            "siteAuthChanged" => self.rest.site_auth = text(),
            "priorityChanged" => self.rest.priority = text(),
            "runtimeStatsChanged" => self.rest.runtime_stats = text(),
            _ => {}
        }
        Ok(())
    }

    fn put(&mut self, json: &str) -> Result<(), serde_json::Error> {
        let members: Members = serde_json::from_str(json)?;
        let id: Arc<str> = members.task_id.into();
        let place = if let Some(place) = self.places.get(&id) {
            *place
        } else {
            self.next_place += 1;
            self.places.insert(Arc::clone(&id), self.next_place);
            self.next_place
        };
        if !matches!(members.status, TaskStatus::Downloading | TaskStatus::Preparing) {
            self.runtime.remove(&*id);
        }
        let task = TaskText {
            json: json.into(),
            queue: self.name(members.queue_id),
            group: self.name(members.group_id),
            id,
            status: members.status,
            created_at: members.created_at.parse().unwrap_or(0),
        };
        self.tasks.insert(place, task);
        Ok(())
    }

    fn name(&mut self, text: String) -> Arc<str> {
        if let Some(name) = self.names.get(text.as_str()) {
            return Arc::clone(name);
        }
        let name: Arc<str> = text.into();
        self.names.insert(Arc::clone(&name), Arc::clone(&name));
        name
    }

    fn remove(&mut self, id: &str) {
        if let Some(place) = self.places.remove(id) {
            self.tasks.remove(&place);
        }
        self.runtime.remove(id);
    }

    /// A task, with what its run said last.
    pub(crate) fn task(&self, id: &str) -> Option<Arc<str>> {
        let task = self.tasks.get(self.places.get(id)?)?;
        Some(self.current(task))
    }

    fn current(&self, task: &TaskText) -> Arc<str> {
        let merge = || -> Option<Arc<str>> {
            let sample: TaskRuntimeDto = serde_json::from_str(self.runtime.get(&*task.id)?).ok()?;
            let mut dto: TaskDto = serde_json::from_str(&task.json).ok()?;
            dto.downloaded_bytes = sample.downloaded_bytes;
            dto.total_bytes = if sample.total_bytes > 0 {
                sample.total_bytes
            } else {
                dto.total_bytes
            };
            serde_json::to_string(&dto).ok().map(Into::into)
        };
        merge().unwrap_or_else(|| Arc::clone(&task.json))
    }

    /// Tasks newest first, at most `limit`, after the cursor. If the cursor's task is gone meanwhile, tasks of its
    /// second may come again; none is left out.
    pub(crate) fn page(&self, filter: &Filter, limit: Option<usize>, cursor: Option<&str>) -> Result<Page, BadCursor> {
        let before = match cursor {
            None => u64::MAX,
            Some(cursor) => self.place_of(cursor)?,
        };
        let matches = |task: &&TaskText| {
            filter.status.is_none_or(|status| status == task.status)
                && filter.queue.as_deref().is_none_or(|queue| *queue == *task.queue)
                && filter.group.as_deref().is_none_or(|group| *group == *task.group)
        };
        let limit = limit.unwrap_or(usize::MAX);
        let mut found = self.tasks.range(..before).rev().map(|(_, task)| task).filter(matches);
        let mut tasks = Vec::new();
        let mut last = None;
        for task in found.by_ref().take(limit) {
            tasks.push(self.current(task));
            last = Some(task);
        }
        let next = last.filter(|_| found.next().is_some());
        let next = next.map(|task| format!("{}.{}", task.created_at, task.id));
        Ok(Page { tasks, next })
    }

    fn place_of(&self, cursor: &str) -> Result<u64, BadCursor> {
        let (created_at, id) = cursor.split_once('.').ok_or(BadCursor)?;
        let created_at: u64 = created_at.parse().map_err(|_| BadCursor)?;
        if let Some(place) = self.places.get(id) {
            return Ok(*place);
        }
        let not_newer = self.tasks.iter().rev().find(|(_, task)| task.created_at <= created_at);
        Ok(not_newer.map_or(0, |(place, _)| place + 1))
    }

    /// Number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn queues(&self) -> &str {
        text_or(self.rest.queues.as_deref(), "[]")
    }

    pub(crate) fn groups(&self) -> &str {
        text_or(self.rest.groups.as_deref(), "[]")
    }

    pub(crate) fn config(&self) -> &str {
        text_or(self.rest.config.as_deref(), r#"{"revision":0,"values":{}}"#)
    }

    pub(crate) fn sites(&self) -> &str {
        text_or(self.rest.site_auth.as_deref(), "[]")
    }

    /// The whole as the text of a `DaemonSnapshot`.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::with_capacity(1024 + self.tasks.values().map(|task| task.json.len() + 1).sum::<usize>());
        let lists = [
            ("queuePositions", text_or(self.rest.queue_positions.as_deref(), "{}")),
            ("queues", self.queues()),
            ("groups", self.groups()),
            ("config", self.config()),
            ("siteAuth", self.sites()),
            ("priority", text_or(self.rest.priority.as_deref(), "[]")),
            ("runtimeStats", text_or(self.rest.runtime_stats.as_deref(), "{}")),
            ("rssSources", text_or(self.rest.rss_sources.as_deref(), "[]")),
            (
                "rssItemRevisions",
                text_or(self.rest.rss_item_revisions.as_deref(), "{}"),
            ),
            ("plugins", text_or(self.rest.plugins.as_deref(), "[]")),
            ("components", text_or(self.rest.components.as_deref(), "[]")),
            (
                "webhookDeliveries",
                text_or(self.rest.webhook_deliveries.as_deref(), "[]"),
            ),
            (
                "pendingSelections",
                text_or(self.rest.pending_selections.as_deref(), "[]"),
            ),
        ];
        text.push('{');
        for (name, value) in lists {
            text.extend(["\"", name, "\":", value, ","]);
        }
        text.push_str("\"taskRuntime\":{");
        for (number, (id, sample)) in self.runtime.iter().enumerate() {
            text.push_str(if number == 0 { "" } else { "," });
            text.push_str(&serde_json::Value::from(id.as_str()).to_string());
            text.extend([":", sample]);
        }
        text.push_str("},\"tasks\":[");
        for (number, task) in self.tasks.values().enumerate() {
            text.push_str(if number == 0 { "" } else { "," });
            text.push_str(&task.json);
        }
        text.push_str("]}");
        text
    }
}

fn text_or<'a>(text: Option<&'a RawValue>, fallback: &'a str) -> &'a str {
    text.map_or(fallback, |text| text.get())
}

/// The texts as one JSON array.
pub(crate) fn array(texts: &[Arc<str>]) -> String {
    let mut all = String::with_capacity(2 + texts.iter().map(|text| text.len() + 1).sum::<usize>());
    all.push('[');
    for (number, text) in texts.iter().enumerate() {
        all.push_str(if number == 0 { "" } else { "," });
        all.push_str(text);
    }
    all.push(']');
    all
}

#[cfg(test)]
mod tests {
    use protocol::DaemonSnapshot;

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

    fn apply(projection: &mut Projection, kind: &str, data: &impl Serialize) {
        let data = serde_json::value::to_raw_value(data).unwrap();
        let kind = kind.to_owned();
        projection.apply(&EventBody { kind, data }).unwrap();
    }

    fn ids(page: &Page) -> Vec<String> {
        let read = |text: &Arc<str>| serde_json::from_str::<TaskDto>(text).unwrap().task_id;
        page.tasks.iter().map(read).collect()
    }

    #[test]
    fn pages_are_newest_first_and_end() {
        let projection = projection();
        let page = projection.page(&Filter::default(), Some(3), None).unwrap();
        assert_eq!(ids(&page), ["d", "c", "b"]);
        let page = projection
            .page(&Filter::default(), Some(3), page.next.as_deref())
            .unwrap();
        assert_eq!((ids(&page), page.next), (vec!["a".to_owned()], None));
        assert!(projection.page(&Filter::default(), None, Some("nonsense")).is_err());
    }

    #[test]
    fn a_cursor_whose_task_is_gone_leaves_no_task_out() {
        let mut projection = projection();
        let page = projection.page(&Filter::default(), Some(2), None).unwrap();
        projection.remove("c");
        let page = projection
            .page(&Filter::default(), Some(2), page.next.as_deref())
            .unwrap();
        assert_eq!(ids(&page), ["b", "a"]);
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
            ..TaskRuntimeDto::default()
        };
        apply(&mut projection, "taskRuntimeChanged", &sample);
        let read =
            |projection: &Projection| -> TaskDto { serde_json::from_str(&projection.task("b").unwrap()).unwrap() };
        assert_eq!(read(&projection).downloaded_bytes, 7);
        changed.status = TaskStatus::Paused;
        apply(&mut projection, "taskChanged", &changed);
        assert_eq!(read(&projection).downloaded_bytes, 0);
        let filter = Filter {
            status: Some(TaskStatus::Paused),
            ..Filter::default()
        };
        assert_eq!(ids(&projection.page(&filter, None, None).unwrap()), ["b"]);
        apply(&mut projection, "taskDeleted", &serde_json::json!({"taskId": "b"}));
        assert!(projection.task("b").is_none());
        let many = serde_json::json!({"tasks": [task("e", 4)], "deletedTaskIds": ["a", "c"]});
        apply(&mut projection, "tasksSnapshot", &many);
        assert_eq!(
            ids(&projection.page(&Filter::default(), None, None).unwrap()),
            ["e", "d"]
        );
        apply(&mut projection, "comesNextYear", &1);
        assert_eq!(projection.len(), 2);
    }

    #[test]
    fn what_is_encoded_is_a_snapshot_again() {
        let projection = projection();
        let read: DaemonSnapshot = serde_json::from_str(&projection.encode()).unwrap();
        assert_eq!(read.tasks.len(), 4);
    }
}
