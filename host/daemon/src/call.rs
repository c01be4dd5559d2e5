//! Calls: which method does what. Params in, one call of a subsystem, result out.

mod configure;
mod machine;
mod market;
mod plugin_journal;
mod plugins;
mod queues;
mod sites;
mod tasks;

use std::{collections::BTreeMap, sync::Arc};

use engine::Task;
use protocol::{
    ConfigSnapshot, GroupDto, Id, Method, OkResult, QueueDto, Request, Role, RpcError, RuntimeStats, SiteAuthEntryDto,
    TaskRuntimeDto,
};
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) use plugins::all as plugins;

use crate::{hub::Moment, ring::Streamed, service::Service, view};

/// Who calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peer {
    /// The agent of this machine, which may read passwords.
    pub(crate) is_local_agent: bool,
    /// It wants the sequence of a write in its reply.
    pub(crate) wants_sequences: bool,
}

/// How a call went.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Nothing changed.
    Read(Box<RawValue>),
    /// Something changed; to be answered after the events of it.
    Wrote(Box<RawValue>),
    /// A result with many tasks, and the sequence if it is a snapshot.
    Streamed(StreamedResult, Option<u64>),
    /// The service is to end once this is answered.
    Stop(Box<RawValue>),
}

/// A result whose tasks are encoded while it is sent.
#[derive(Debug)]
pub(crate) struct StreamedResult {
    head: String,
    tasks: Arc<[Arc<Task>]>,
    tail: String,
}

impl StreamedResult {
    /// As the reply to the call `id`.
    pub(crate) fn for_reply(self, id: &Id) -> Streamed {
        let id = serde_json::to_string(id).expect("an id always encodes");
        Streamed {
            head: format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}", self.head),
            tasks: self.tasks,
            tail: self.tail + "}",
        }
    }
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, RpcError> {
    serde_json::value::to_raw_value(value).map_err(|error| RpcError::internal(error.to_string()))
}

fn read(value: &impl Serialize) -> Result<Answer, RpcError> {
    raw(value).map(Answer::Read)
}

fn wrote(value: &impl Serialize) -> Result<Answer, RpcError> {
    raw(value).map(Answer::Wrote)
}

fn done() -> Result<Answer, RpcError> {
    wrote(&OkResult::OK)
}

impl Service {
    /// Does what `request` asks for. Hello, ping and proof belong to the connection and do not come here.
    pub(crate) async fn call(&self, method: Method, request: &Request, peer: &Peer) -> Result<Answer, RpcError> {
        let name = method.name();
        if name.starts_with("daemon.task.") {
            tasks::call(self, method, request).await
        } else if name.starts_with("daemon.queue.") || name.starts_with("daemon.group.") {
            queues::call(self, method, request).await
        } else if name.starts_with("daemon.plugin.") {
            plugins::call(self, method, request).await
        } else if name.starts_with("daemon.config.") {
            configure::call(self, method, request).await
        } else if name.starts_with("daemon.siteAuth.") {
            sites::call(self, method, request, peer).await
        } else {
            match method {
                Method::SystemSnapshot => self.snapshot().await,
                Method::SystemShutdown => raw(&OkResult::OK).map(Answer::Stop),
                _ => machine::call(self, method, request).await,
            }
        }
    }

    async fn snapshot(&self) -> Result<Answer, RpcError> {
        let Moment {
            sequence,
            engine,
            sites,
            stats,
        } = self.hub.moment().await?;
        let runtimes = self.engine.all_progress();
        let around = AroundTasks {
            task_runtime: runtimes
                .iter()
                .map(|live| (live.task.to_string(), view::runtime(live.task, &live.progress, 0)))
                .collect(),
            queue_positions: engine
                .queues
                .iter()
                .map(|queue| (queue.id.to_string(), queue.position))
                .collect(),
            queues: engine.queues.iter().map(|queue| view::queue(queue)).collect(),
            groups: engine.groups.iter().map(|group| view::group(group)).collect(),
            config: self.configuration.snapshot_with(&engine.settings),
            site_auth: sites,
            priority: engine.boost.iter().map(ToString::to_string).collect(),
            runtime_stats: stats,
            rss_sources: [],
            rss_item_revisions: BTreeMap::new(),
            plugins: plugins::all(self.plugins.as_ref()),
            components: [],
            webhook_deliveries: [],
            pending_selections: [],
        };
        let around = serde_json::to_string(&around).map_err(|error| RpcError::internal(error.to_string()))?;
        let role = serde_json::to_string(&Role::Daemon).map_err(|error| RpcError::internal(error.to_string()))?;
        // The tasks come first in the object, so that the rest of it is its tail.
        let head = format!(
            "{{\"epoch\":\"{}\",\"sequence\":{sequence},\"body\":{{\"role\":{role},\"snapshot\":{{\"tasks\":[",
            self.hub.epoch()
        );
        let tail = format!("],{}}}}}", &around[1..]);
        let result = StreamedResult {
            head,
            tasks: engine.tasks.into(),
            tail,
        };
        Ok(Answer::Streamed(result, Some(sequence)))
    }

    /// All tasks as one array.
    async fn all_tasks(&self) -> Result<Answer, RpcError> {
        let snapshot = crate::refusal::Refuse::refused(self.engine.snapshot().await)?;
        let result = StreamedResult {
            head: "[".to_owned(),
            tasks: snapshot.tasks.into(),
            tail: "]".to_owned(),
        };
        Ok(Answer::Streamed(result, None))
    }
}

/// What a snapshot holds beside its tasks; see [`protocol::DaemonSnapshot`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AroundTasks {
    task_runtime: BTreeMap<String, TaskRuntimeDto>,
    queues: Vec<QueueDto>,
    queue_positions: BTreeMap<String, u32>,
    groups: Vec<GroupDto>,
    config: ConfigSnapshot,
    site_auth: Vec<SiteAuthEntryDto>,
    priority: Vec<String>,
    runtime_stats: RuntimeStats,
    rss_sources: [(); 0],
    rss_item_revisions: BTreeMap<String, u64>,
    plugins: Vec<protocol::PluginDto>,
    components: [(); 0],
    webhook_deliveries: [(); 0],
    pending_selections: [(); 0],
}
