//! `svc queue`: lists and changes queues.

mod days;

use command::{
    Exit, UsageError,
    amount::{self, counted},
    environment::Environment,
};
use protocol::{
    BoostParams, Method, MoveTaskParams, OkResult, QueueDto, QueueFields, QueueIdParams, ReorderParams, ScheduleParams,
    UpdateQueueParams,
};
use serde::Serialize;
use serde_json::json;

use super::find;
use crate::{
    chain,
    ids::{self, Known},
    service::{Client, ServiceArgs},
    table,
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc queue                                        all queues
  svc queue create night --limit 2M --max-tasks 2
  svc queue update night --limit 0                 options that are not given stay as they are
  svc queue schedule night --start 23:00 --stop 06:30 --days mon-fri
  svc queue move --to night 3f2a 91bc
  svc queue order night 91bc 3f2a                  these first, then the others as they were
  svc queue boost 3f2a                             run this task alone; again to end it
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
    /// Create a queue
    Create {
        /// Name of the new queue
        name: String,
        #[command(flatten)]
        fields: FieldArgs,
    },
    /// Change a queue; options that are not given stay as they are
    #[command(visible_alias = "edit")]
    Update {
        /// Name or id of the queue
        queue: String,
        /// A new name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        fields: FieldArgs,
    },
    /// Delete a queue; its tasks move to the default one
    #[command(visible_alias = "rm")]
    Delete(OneArgs),
    /// Start a queue: its tasks run when it is their turn
    Start(OneArgs),
    /// Stop a queue: none of its tasks starts, and running ones wait
    Stop(OneArgs),
    /// Set when a queue starts and stops by itself, or switch its schedule off
    Schedule {
        /// Name or id of the queue
        queue: String,
        /// When it starts, HH:MM in the time zone of the service; an empty time is never
        #[arg(long, value_name = "HH:MM")]
        start: Option<String>,
        /// When it stops
        #[arg(long, value_name = "HH:MM")]
        stop: Option<String>,
        /// Days of the week, such as mon-fri or sat,sun; "daily" is all of them
        #[arg(long, value_name = "DAYS", value_parser = days::parse)]
        days: Option<u8>,
        /// Keep the times, and ignore them
        #[arg(long, conflicts_with_all = ["start", "stop", "days"])]
        off: bool,
    },
    /// Set the order of a queue's tasks; tasks that are not named follow in their present order
    #[command(visible_alias = "reorder")]
    Order {
        /// Name or id of the queue
        queue: String,
        /// Ids of its tasks, the first to run first
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
    /// Run one task alone until it ends, while the others wait; for a boosted task, end that
    Boost {
        /// Id of the task
        id: String,
    },
    /// Move tasks to a queue
    #[command(visible_alias = "assign")]
    Move {
        /// Ids of the tasks
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Name or id of the queue
        #[arg(long, value_name = "QUEUE")]
        to: String,
    },
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// Name or id of the queue
    queue: String,
}

/// The limits of a queue, and the defaults of its tasks.
#[derive(Debug, clap::Args)]
struct FieldArgs {
    /// Bytes per second for its tasks together, such as 2.5M; 0 for no limit
    #[arg(long, value_name = "RATE", value_parser = amount::parse_rate)]
    limit: Option<u64>,
    /// Bytes per second that its torrents together upload, such as 500K; 0 for no limit
    #[arg(long, value_name = "RATE", value_parser = amount::parse_rate)]
    upload_limit: Option<u64>,
    /// Tasks at a time; 0 for the service's own limit only
    #[arg(long, value_name = "N")]
    max_tasks: Option<u32>,
    /// Directory of its tasks; an empty one is the service's
    #[arg(long, value_name = "DIR")]
    dir: Option<String>,
    /// Segments of its tasks; 0 for the service's number
    #[arg(long, value_name = "N")]
    segments: Option<u16>,
    /// User-Agent of its tasks; an empty one is the service's
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,
    /// What follows its downloads, as a JSON array of steps (see svc post); empty is those of the service
    #[arg(long, value_name = "JSON", value_parser = chain::steps)]
    chain: Option<chain::Steps>,
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
        if let Some(chain::Steps(steps)) = &self.chain {
            fields.post_chain.clone_from(steps);
        }
        fields
    }
}

pub(crate) async fn run(args: &QueueArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    let client = service.connect(environment).await?;
    let mut session = Session { client, service };
    match args.command.as_ref().unwrap_or(&QueueCommand::List) {
        QueueCommand::List => list(&mut session.client, service).await,
        QueueCommand::Create { name, fields } => session.create(name, fields).await,
        QueueCommand::Update { queue, name, fields } => {
            let queue = find::queue(&mut session.client, queue).await?;
            let params = update(queue, name.clone(), fields);
            let name = &params.fields.name;
            session.done(Method::QueueUpdate, &params, "changed queue", name).await
        }
        QueueCommand::Delete(one) => session.act(Method::QueueDelete, one, "deleted queue").await,
        QueueCommand::Start(one) => session.act(Method::QueueStart, one, "started queue").await,
        QueueCommand::Stop(one) => session.act(Method::QueueStop, one, "stopped queue").await,
        QueueCommand::Schedule {
            queue,
            start,
            stop,
            days,
            off,
        } => {
            let queue = find::queue(&mut session.client, queue).await?;
            let params = ScheduleParams {
                queue_id: queue.queue_id,
                enabled: !off,
                start_time: start.clone().unwrap_or(queue.schedule_start),
                stop_time: stop.clone().unwrap_or(queue.schedule_stop),
                days: days.unwrap_or(queue.schedule_days),
            };
            if !off && params.start_time.is_empty() && params.stop_time.is_empty() {
                return Err(UsageError::new("--start", "give --start, --stop or both: no time is set yet").into());
            }
            let what = if *off {
                "switched off the schedule of queue"
            } else {
                "scheduled queue"
            };
            session.done(Method::QueueSchedule, &params, what, &queue.name).await
        }
        QueueCommand::Order { queue, ids } => {
            let QueueDto { queue_id, name, .. } = find::queue(&mut session.client, queue).await?;
            let task_ids = find::tasks(&mut session.client, ids).await?;
            let params = ReorderParams { queue_id, task_ids };
            session
                .done(Method::QueueReorder, &params, "reordered queue", &name)
                .await
        }
        QueueCommand::Boost { id } => {
            let found = find::tasks(&mut session.client, std::slice::from_ref(id)).await?;
            let params = BoostParams {
                id: found.into_iter().next().unwrap_or_default(),
            };
            let id = &params.id;
            session
                .done(Method::QueueBoost, &params, "toggled the boost of", id)
                .await
        }
        QueueCommand::Move { ids, to } => session.move_tasks(ids, to).await,
    }
}

/// The connection to the service, and how the results are printed.
struct Session<'a> {
    client: Client,
    service: &'a ServiceArgs,
}

impl Session<'_> {
    async fn create(&mut self, name: &str, fields: &FieldArgs) -> anyhow::Result<Exit> {
        let fields = fields.change(QueueFields {
            name: name.to_owned(),
            ..QueueFields::default()
        });
        let _: OkResult = self.client.call(Method::QueueCreate, &fields).await?;
        let queues: Vec<QueueDto> = self.client.ask(Method::QueueList).await?;
        let made = queues.into_iter().rfind(|queue| queue.name == fields.name);
        let sentence = format!("created queue {}", fields.name);
        self.service.print_done(&made, &sentence)
    }

    async fn move_tasks(&mut self, ids: &[String], to: &str) -> anyhow::Result<Exit> {
        let queue = find::queue(&mut self.client, to).await?;
        let ids = find::tasks(&mut self.client, ids).await?;
        for task_id in &ids {
            let (task_id, queue_id) = (task_id.clone(), queue.queue_id.clone());
            let params = MoveTaskParams { task_id, queue_id };
            let _: OkResult = self.client.call(Method::QueueMoveTask, &params).await?;
        }
        let sentence = format!("moved {} to {}", counted(ids.len(), "task"), queue.name);
        let moved = json!({ "taskIds": ids, "queueId": queue.queue_id });
        self.service.print_done(&moved, &sentence)
    }

    async fn act(&mut self, method: Method, one: &OneArgs, what: &str) -> anyhow::Result<Exit> {
        let QueueDto { queue_id, name, .. } = find::queue(&mut self.client, &one.queue).await?;
        self.done(method, &QueueIdParams { queue_id }, what, &name).await
    }

    async fn done(&mut self, method: Method, params: &impl Serialize, what: &str, name: &str) -> anyhow::Result<Exit> {
        let answered: OkResult = self.client.call(method, params).await?;
        self.service.print_done(&answered, &format!("{what} {name}"))
    }
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
        post_chain: queue.post_chain,
    };
    UpdateQueueParams {
        queue_id: queue.queue_id,
        fields: fields.change(now),
    }
}

async fn list(client: &mut Client, service: &ServiceArgs) -> anyhow::Result<Exit> {
    let queues: Vec<QueueDto> = client.ask(Method::QueueList).await?;
    let shown = Known::new("queue", queues.iter().map(|queue| queue.queue_id.clone())).shown_chars();
    let row = |queue: &QueueDto| {
        let state = if queue.is_running { "running" } else { "stopped" };
        let schedule = match (queue.schedule_enabled, &*queue.schedule_start, &*queue.schedule_stop) {
            (false, ..) => String::new(),
            (true, start, stop) => format!("{start}-{stop} {}", days::name(queue.schedule_days)),
        };
        let limit = match queue.speed_limit_kbps {
            0 => "none".to_owned(),
            kib => amount::rate(kib.saturating_mul(KIB)),
        };
        let at_once = match queue.max_concurrent {
            0 => "any".to_owned(),
            count => count.to_string(),
        };
        [
            ids::shorten(&queue.queue_id, shown).to_owned(),
            queue.name.clone(),
            state.to_owned(),
            limit,
            at_once,
            schedule,
            queue.default_save_dir.clone(),
        ]
    };
    let head = ["ID", "NAME", "STATE", ">LIMIT", ">TASKS", "SCHEDULE", "DIRECTORY"];
    service.print(&queues, || table::lines(head, queues.iter().map(row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_keeps_what_was_not_named() {
        let fields = FieldArgs {
            limit: None,
            upload_limit: None,
            max_tasks: Some(3),
            dir: None,
            segments: None,
            user_agent: None,
            chain: None,
        };
        let queue = QueueDto {
            name: "Default".into(),
            speed_limit_kbps: 7,
            ..QueueDto::default()
        };
        let params = update(queue, None, &fields).fields;
        assert_eq!((params.name.as_str(), params.speed_limit_kbps), ("Default", 7));
        assert_eq!(params.max_concurrent, 3);
    }
}
