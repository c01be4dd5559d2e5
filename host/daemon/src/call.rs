//! Dispatches each `/rpc` method to the subsystem that serves it: decode the params, one call, encode the result. Used
//! by `http::connection` only.

pub(crate) mod answer;
mod configure;
mod cookies;
mod document;
mod link;
mod machine;
mod market;
mod params;
mod plugins;
mod post;
mod preview;
mod proxy_test;
mod queues;
mod rss;
mod selections;
mod sites;
mod tasks;
mod torrents;
mod webhooks;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use engine::{Task, TaskId};
use protocol::{
    ConfigSnapshot, GroupDto, Method, MethodFamily, OkResult, QueueDto, Request, Role, RpcError, RuntimeStats,
    SelectionDto, SiteAuthEntryDto, TaskRuntimeDto, WebhookDeliveryDto,
};
use serde::Serialize;
use transfer_torrent::Live;

use crate::{
    call::answer::{Answer, Peer, StreamedResult, raw},
    hub::ask::UnencodedSnapshot,
    service::Service,
    view,
};

impl Service {
    /// Executes the call `request`. Hello, ping and proof belong to the connection and are not dispatched here.
    pub(crate) async fn call(&self, method: Method, request: &Request, peer: &Peer) -> Result<Answer, RpcError> {
        let answered = self.dispatch(method, request, peer).await;
        if cfg!(debug_assertions)
            && let Ok(Answer::Read(result) | Answer::Wrote(result)) = &answered
            && let Err(error) = method.check_result(result)
        {
            return Err(RpcError::internal(format!("the result of {}: {error}", method.name())));
        }
        answered
    }

    async fn dispatch(&self, method: Method, request: &Request, peer: &Peer) -> Result<Answer, RpcError> {
        match method.family() {
            MethodFamily::System => match method {
                Method::SystemSnapshot => self.snapshot().await,
                Method::SystemShutdown => raw(&OkResult::OK).map(Answer::Stop),
                _ => Err(RpcError::method_not_found(method.name())),
            },
            MethodFamily::Task => tasks::call(self, method, request).await,
            MethodFamily::Torrent => torrents::call(self, method, request).await,
            MethodFamily::Selection => selections::call(self, method, request, peer).await,
            MethodFamily::Queue => queues::call(self, method, request).await,
            MethodFamily::Plugin => plugins::call(self, method, request).await,
            MethodFamily::Config => configure::call(self, method, request).await,
            MethodFamily::Rss => rss::call(self, method, request).await,
            MethodFamily::Webhook => webhooks::call(self, method, request).await,
            MethodFamily::Post => post::call(self, method, request).await,
            MethodFamily::SiteAuth => sites::call(self, method, request, peer).await,
            MethodFamily::SiteCookies => cookies::call(self, method, request).await,
            MethodFamily::Machine => machine::call(self, method, request).await,
            MethodFamily::LinkStore => link::call(self, method, request, peer).await,
            MethodFamily::Agent | MethodFamily::Link => Err(RpcError::method_not_found(method.name())),
        }
    }

    /// The swarms of torrents that are running.
    fn swarms(&self, tasks: &[Arc<Task>]) -> HashMap<TaskId, Live> {
        let Some(torrents) = &self.torrents else {
            return HashMap::new();
        };
        let of_torrents = tasks.iter().filter(|task| view::is_torrent(task));
        of_torrents
            .filter_map(|task| Some((task.id, torrents.live(task.url())?)))
            .collect()
    }

    async fn snapshot(&self) -> Result<Answer, RpcError> {
        let UnencodedSnapshot {
            sequence,
            engine,
            sites,
            stats,
            feeds,
            webhook_deliveries,
            selections,
        } = self.hub.moment().await?;
        let runtimes = self.engine.all_progress();
        let swarms = self.swarms(&engine.tasks);
        let rest = SnapshotTail {
            task_runtime: runtimes
                .iter()
                .map(|live| {
                    let swarm = swarms.get(&live.task).copied();
                    (
                        live.task.to_string(),
                        view::runtime(live.task, (&live.progress, swarm), 0),
                    )
                })
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
            rss_sources: feeds.sources,
            rss_item_revisions: feeds.revisions,
            plugins: view::plugin::all(self.plugins.as_ref()),
            components: [],
            webhook_deliveries,
            pending_selections: selections
                .iter()
                .map(|question| SelectionDto::clone(question))
                .collect(),
        };
        let rest = serde_json::to_string(&rest).map_err(|error| RpcError::internal(error.to_string()))?;
        let role = serde_json::to_string(&Role::Daemon).map_err(|error| RpcError::internal(error.to_string()))?;
        // `tasks` is the first field of the object, so that the other fields are one pre-encoded tail.
        let head = format!(
            "{{\"epoch\":\"{}\",\"sequence\":{sequence},\"body\":{{\"role\":{role},\"snapshot\":{{\"tasks\":[",
            self.hub.epoch()
        );
        let tail = format!("],{}}}}}", &rest[1..]);
        let result = StreamedResult {
            head,
            tasks: engine.tasks.into(),
            tail,
        };
        Ok(Answer::Streamed(result, Some(sequence)))
    }
}

/// All fields of a snapshot except `tasks`; see [`protocol::DaemonSnapshot`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotTail {
    task_runtime: BTreeMap<String, TaskRuntimeDto>,
    queues: Vec<QueueDto>,
    queue_positions: BTreeMap<String, u32>,
    groups: Vec<GroupDto>,
    config: ConfigSnapshot,
    site_auth: Vec<SiteAuthEntryDto>,
    priority: Vec<String>,
    runtime_stats: RuntimeStats,
    rss_sources: Vec<protocol::RssSourceDto>,
    rss_item_revisions: BTreeMap<String, u64>,
    plugins: Vec<protocol::PluginDto>,
    components: [(); 0],
    webhook_deliveries: Vec<WebhookDeliveryDto>,
    pending_selections: Vec<SelectionDto>,
}
