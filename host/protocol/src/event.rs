//! Notifications of agent and daemon.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    record::config::ConfigSnapshot,
    record::group::GroupDto,
    record::plugin::PluginDto,
    record::queue::QueueDto,
    record::rss::RssSourceDto,
    record::runtime::RuntimeStats,
    record::selection::{SelectionDto, SelectionResolved},
    record::site::SiteAuthEntryDto,
    record::task::{ActivityEntry, TaskDto, TaskRuntimeDto},
    record::webhook::WebhookDeliveryDto,
    snapshot::DaemonSnapshot,
};

/// The sender of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Service {
    /// The agent.
    Agent,
    /// The daemon.
    Daemon,
}

/// Params of the notification [`crate::SERVICE_EVENT`], generic over the event's form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServiceEventParams<E = EventBody> {
    /// The epoch of the sequence number. After a new epoch a client needs a new snapshot.
    pub epoch: String,
    /// One more than the event before it.
    pub sequence: u64,
    /// The event.
    pub event: ServiceEvent<E>,
}

/// An event and its sender.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServiceEvent<E = EventBody> {
    /// The sender.
    pub service: Service,
    /// The event.
    pub event: E,
}

/// An event whose data is still text, so that it can be passed on as it is and new kinds do no harm.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventBody {
    /// The kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// The data, as JSON.
    #[serde(default = "null")]
    pub data: Box<RawValue>,
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// An event of the daemon.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "camelCase")]
pub enum DaemonEvent {
    /// A full snapshot that replaces the previous one.
    SnapshotReplaced(Box<DaemonSnapshot>),
    /// A task is new or changed.
    TaskChanged(Box<TaskDto>),
    /// One call changed several tasks. Many tasks are split into several events.
    TasksSnapshot(TasksSnapshot),
    /// A task was deleted.
    TaskDeleted {
        /// The task.
        #[serde(rename = "taskId")]
        task_id: String,
    },
    /// Progress of a run.
    TaskRuntimeChanged(Box<TaskRuntimeDto>),
    /// A new entry in a task's history.
    TaskActivityAdded(ActivityEntry),
    /// All queues.
    QueuesChanged(Vec<QueueDto>),
    /// All groups.
    GroupsChanged(Vec<GroupDto>),
    /// All plugins, as they are now.
    PluginsChanged(Vec<PluginDto>),
    /// All subscriptions to feeds. At most once a second.
    RssSourcesChanged(Vec<RssSourceDto>),
    /// The items of a subscription changed: what a fetch found, or what became of an item.
    RssItemsChanged(RssItemsChanged),
    /// The configuration.
    ConfigChanged(ConfigSnapshot),
    /// All sites that have credentials.
    SiteAuthChanged(Vec<SiteAuthEntryDto>),
    /// The task that runs alone, if one does.
    PriorityChanged(Vec<String>),
    /// Sums over the tasks.
    RuntimeStatsChanged(RuntimeStats),
    /// These deliveries of webhooks are new or changed. A client keeps the newest 1,000 and replaces those of the same id.
    WebhooksChanged(Vec<WebhookDeliveryDto>),
    /// The deliveries of webhooks were forgotten.
    WebhooksCleared,
    /// Jobs that follow downloads are new, further or gone; at most twice a second.
    PostJobsChanged,
    /// A task asks its user something.
    SelectionPending(Box<SelectionDto>),
    /// A question was answered, or nobody waits for its answer any more.
    SelectionResolved(SelectionResolved),
    /// A kind that this version does not know; to be skipped, its sequence counts.
    #[serde(skip_serializing)]
    Unknown(String),
}

/// Tasks that one call changed, with their new state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TasksSnapshot {
    /// New or changed.
    pub tasks: Vec<TaskDto>,
    /// Deleted.
    pub deleted_task_ids: Vec<String>,
}

/// Data of [`DaemonEvent::RssItemsChanged`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RssItemsChanged {
    /// The subscription.
    pub source_id: String,
    /// Grows with each change.
    pub item_revision: u64,
    /// Titles of new downloads, if the subscription notifies of them.
    pub notify_titles: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    task_id: String,
}

impl DaemonEvent {
    /// Reads an event of a daemon.
    pub fn read(body: &EventBody) -> Result<Self, serde_json::Error> {
        let data = body.data.get();
        Ok(match body.kind.as_str() {
            "snapshotReplaced" => Self::SnapshotReplaced(serde_json::from_str(data)?),
            "taskChanged" => Self::TaskChanged(serde_json::from_str(data)?),
            "tasksSnapshot" => Self::TasksSnapshot(serde_json::from_str(data)?),
            "taskDeleted" => {
                let Deleted { task_id } = serde_json::from_str(data)?;
                Self::TaskDeleted { task_id }
            }
            "taskRuntimeChanged" => Self::TaskRuntimeChanged(serde_json::from_str(data)?),
            "taskActivityAdded" => Self::TaskActivityAdded(serde_json::from_str(data)?),
            "queuesChanged" => Self::QueuesChanged(serde_json::from_str(data)?),
            "pluginsChanged" => Self::PluginsChanged(serde_json::from_str(data)?),
            "groupsChanged" => Self::GroupsChanged(serde_json::from_str(data)?),
            "rssSourcesChanged" => Self::RssSourcesChanged(serde_json::from_str(data)?),
            "rssItemsChanged" => Self::RssItemsChanged(serde_json::from_str(data)?),
            "configChanged" => Self::ConfigChanged(serde_json::from_str(data)?),
            "siteAuthChanged" => Self::SiteAuthChanged(serde_json::from_str(data)?),
            "priorityChanged" => Self::PriorityChanged(serde_json::from_str(data)?),
            "runtimeStatsChanged" => Self::RuntimeStatsChanged(serde_json::from_str(data)?),
            "webhooksChanged" => Self::WebhooksChanged(serde_json::from_str(data)?),
            "webhooksCleared" => Self::WebhooksCleared,
            "postJobsChanged" => Self::PostJobsChanged,
            "selectionPending" => Self::SelectionPending(serde_json::from_str(data)?),
            "selectionResolved" => Self::SelectionResolved(serde_json::from_str(data)?),
            other => Self::Unknown(other.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_daemon_tells_is_read_again_and_new_kinds_do_no_harm() {
        let told = ServiceEventParams {
            epoch: "e".into(),
            sequence: 9,
            event: ServiceEvent {
                service: Service::Daemon,
                event: DaemonEvent::TaskDeleted { task_id: "t".into() },
            },
        };
        let text = serde_json::to_string(&told).unwrap();
        assert_eq!(
            text,
            "{\"epoch\":\"e\",\"sequence\":9,\"event\":{\"service\":\"daemon\",\
             \"event\":{\"type\":\"taskDeleted\",\"data\":{\"taskId\":\"t\"}}}}"
        );
        let read: ServiceEventParams = serde_json::from_str(&text).unwrap();
        assert!(
            matches!(DaemonEvent::read(&read.event.event).unwrap(), DaemonEvent::TaskDeleted { task_id } if task_id == "t")
        );
        let new: EventBody = serde_json::from_str(r#"{"type":"moonRose"}"#).unwrap();
        assert!(matches!(DaemonEvent::read(&new).unwrap(), DaemonEvent::Unknown(kind) if kind == "moonRose"));
    }
}
