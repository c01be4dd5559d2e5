//! `svc queue`: lists and changes queues.

use command::{Exit, amount, environment::Environment, print_json, print_lines};
use protocol::{Method, MoveTaskParams, OkResult, QueueDto, QueueFields, QueueIdParams, UpdateQueueParams};
use serde::Serialize;
use serde_json::json;

use super::find;
use crate::{
    ids::{self, Known},
    service::{Client, ServiceArgs, print_done},
    table::{Align, Table},
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc queue                                        all queues
  svc queue create night --limit 2M --max-tasks 2
  svc queue update night --limit 0                 what is not named stays as it is
  svc queue move --to night 3f2a 91bc
  svc queue start night

A queue is named by its name or id; \"main\" and \"later\" always exist.";

/// Limits of queues are in KiB on the wire.
const KIB: u64 = 1024;

#[derive(Debug, clap::Args)]
pub struct QueueArgs {
    #[command(subcommand)]
    command: Option<QueueCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum QueueCommand {
    /// List queues
    #[command(visible_alias = "ls")]
    List,
    /// Make a queue
    Create {
        /// Its name
        name: String,
        #[command(flatten)]
        fields: FieldArgs,
    },
    /// Change a queue; what is not named stays as it is
    Update {
        /// The queue
        queue: String,
        /// A new name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        fields: FieldArgs,
    },
    /// Delete a queue; its tasks go to the default one
    Delete(OneArgs),
    /// Let a queue start its tasks
    Start(OneArgs),
    /// Let a queue start no more tasks, and pause those that run
    Stop(OneArgs),
    /// Move tasks to a queue
    Move {
        /// The tasks
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// The queue
        #[arg(long, value_name = "QUEUE")]
        to: String,
    },
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// The queue
    queue: String,
}

/// What a queue has besides its name.
#[derive(Debug, clap::Args)]
struct FieldArgs {
    /// Bytes per second for its tasks together, such as 2.5M; 0 for no limit
    #[arg(long, value_name = "RATE", value_parser = amount::parse_rate)]
    limit: Option<u64>,
    /// The same for what is sent
    #[arg(long, value_name = "RATE", value_parser = amount::parse_rate)]
    upload_limit: Option<u64>,
    /// Tasks at once; 0 for the service's own limit only
    #[arg(long, value_name = "N")]
    max_tasks: Option<u32>,
    /// Directory of its tasks; an empty one is the service's own
    #[arg(long, value_name = "DIR")]
    dir: Option<String>,
    /// Segments of its tasks; 0 for the service's own number
    #[arg(long, value_name = "N")]
    segments: Option<u16>,
    /// User-Agent of its tasks; an empty one is the service's own
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,
}

impl FieldArgs {
    /// `fields` with the given options applied.
    fn change(&self, mut fields: QueueFields) -> QueueFields {
        // Rounded up, so that a small limit does not become 0, which means unlimited.
        let kib = |bytes: u64| bytes.div_ceil(KIB);
        fields.speed_limit_kbps = self.limit.map_or(fields.speed_limit_kbps, kib);
        fields.upload_limit_kbps = self.upload_limit.map_or(fields.upload_limit_kbps, kib);
        fields.max_concurrent = self.max_tasks.unwrap_or(fields.max_concurrent);
        fields.default_save_dir = self.dir.clone().unwrap_or(fields.default_save_dir);
        fields.default_segments = self.segments.unwrap_or(fields.default_segments);
        fields.default_user_agent = self.user_agent.clone().unwrap_or(fields.default_user_agent);
        fields
    }
}

pub(crate) async fn run(args: &QueueArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let target = args.service.target(environment)?;
    let mut client = Client::connect(&target).await?;
    let service = &args.service;
    match args.command.as_ref().unwrap_or(&QueueCommand::List) {
        QueueCommand::List => list(&mut client, service).await,
        QueueCommand::Create { name, fields } => {
            let name = name.clone();
            let fields = fields.change(QueueFields {
                name,
                ..QueueFields::default()
            });
            let _: OkResult = client.call(Method::QueueCreate, &fields).await?;
            let queues: Vec<QueueDto> = client.ask(Method::QueueList).await?;
            let made = queues.into_iter().rfind(|queue| queue.name == fields.name);
            let sentence = format!("made queue {}", fields.name);
            print_done(service, &made, &sentence)
        }
        QueueCommand::Update { queue, name, fields } => {
            let queue = find::queue(&mut client, queue).await?;
            let params = update(queue, name.clone(), fields);
            done(
                &mut client,
                service,
                Method::QueueUpdate,
                &params,
                "changed queue",
                &params.fields.name,
            )
            .await
        }
        QueueCommand::Delete(one) => act(&mut client, service, Method::QueueDelete, one, "deleted queue").await,
        QueueCommand::Start(one) => act(&mut client, service, Method::QueueStart, one, "started queue").await,
        QueueCommand::Stop(one) => act(&mut client, service, Method::QueueStop, one, "stopped queue").await,
        QueueCommand::Move { ids, to } => {
            let queue = find::queue(&mut client, to).await?;
            let ids = find::known(&mut client).await?.find(ids)?;
            for task_id in &ids {
                let (task_id, queue_id) = (task_id.clone(), queue.queue_id.clone());
                let _: OkResult = client
                    .call(Method::QueueMoveTask, &MoveTaskParams { task_id, queue_id })
                    .await?;
            }
            let plural = if ids.len() == 1 { "" } else { "s" };
            let sentence = format!("moved {} task{plural} to {}", ids.len(), queue.name);
            print_done(
                service,
                &json!({ "taskIds": ids, "queueId": queue.queue_id }),
                &sentence,
            )
        }
    }
}

async fn act(
    client: &mut Client<'_>,
    service: &ServiceArgs,
    method: Method,
    one: &OneArgs,
    what: &str,
) -> anyhow::Result<Exit> {
    let QueueDto { queue_id, name, .. } = find::queue(client, &one.queue).await?;
    done(client, service, method, &QueueIdParams { queue_id }, what, &name).await
}

async fn done(
    client: &mut Client<'_>,
    service: &ServiceArgs,
    method: Method,
    params: &impl Serialize,
    what: &str,
    name: &str,
) -> anyhow::Result<Exit> {
    let answered: OkResult = client.call(method, params).await?;
    print_done(service, &answered, &format!("{what} {name}"))
}

fn update(queue: QueueDto, name: Option<String>, fields: &FieldArgs) -> UpdateQueueParams {
    let now = QueueFields {
        name: name.unwrap_or(queue.name),
        speed_limit_kbps: queue.speed_limit_kbps,
        upload_limit_kbps: queue.upload_limit_kbps,
        max_concurrent: queue.max_concurrent,
        default_save_dir: queue.default_save_dir,
        default_segments: queue.default_segments,
        default_user_agent: queue.default_user_agent,
    };
    UpdateQueueParams {
        queue_id: queue.queue_id,
        fields: fields.change(now),
    }
}

async fn list(client: &mut Client<'_>, service: &ServiceArgs) -> anyhow::Result<Exit> {
    let queues: Vec<QueueDto> = client.ask(Method::QueueList).await?;
    if service.json {
        return print_json(&queues);
    }
    let shown = Known::new("queue", queues.iter().map(|queue| queue.queue_id.clone())).shown_chars();
    let mut table = Table::new([
        ("ID", Align::Left),
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("LIMIT", Align::Right),
        ("TASKS", Align::Right),
        ("DIRECTORY", Align::Left),
    ]);
    for queue in &queues {
        let state = if queue.is_running { "running" } else { "stopped" };
        let limit = match queue.speed_limit_kbps {
            0 => "none".to_owned(),
            kib => amount::rate(kib.saturating_mul(KIB)),
        };
        let at_once = match queue.max_concurrent {
            0 => "any".to_owned(),
            count => count.to_string(),
        };
        let id = ids::shorten(&queue.queue_id, shown).to_owned();
        table.push([
            id,
            queue.name.clone(),
            state.to_owned(),
            limit,
            at_once,
            queue.default_save_dir.clone(),
        ]);
    }
    print_lines(table.lines())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(id: &str, name: &str) -> QueueDto {
        QueueDto {
            queue_id: id.into(),
            name: name.into(),
            speed_limit_kbps: 7,
            ..QueueDto::default()
        }
    }

    #[test]
    fn an_update_keeps_what_was_not_named() {
        let fields = FieldArgs {
            limit: None,
            upload_limit: Some(1),
            max_tasks: Some(3),
            dir: None,
            segments: None,
            user_agent: None,
        };
        let params = update(queue("main", "Default"), None, &fields).fields;
        assert_eq!((params.name.as_str(), params.speed_limit_kbps), ("Default", 7));
        assert_eq!((params.upload_limit_kbps, params.max_concurrent), (1, 3));
    }
}
