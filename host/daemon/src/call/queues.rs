//! `daemon.queue.*` and `daemon.group.*`

use std::path::PathBuf;

use engine::{Days, GroupId, GroupSpec, QueueId, QueueSpec, Schedule};
use protocol::{
    BoostParams, CreateGroupResponse, CreateGroupTasksParams, ErrorCode, GroupDeleteParams, GroupIdParams, Method,
    MoveTaskParams, PostStep, QueueFields, QueueIdParams, ReorderParams, Request, RpcError, ScheduleParams,
};

use crate::{
    call::{
        answer::{Answer, finish, read, wrote},
        params::{fate, group_id, task_id},
        preview,
        tasks::{keep_all, specs},
    },
    options::optional,
    refusal::{Refuse as _, invalid},
    service::Service,
    view,
};

pub(super) async fn call(service: &Service, method: Method, request: &Request) -> Result<Answer, RpcError> {
    let engine = &service.engine;
    match method {
        Method::QueueList => {
            let queues = engine.queues().await.refused()?;
            read(&queues.iter().map(|queue| view::queue(queue)).collect::<Vec<_>>())
        }
        Method::QueueCreate => finish(engine.queue_create(spec(request.params()?)?).await.map(drop)),
        Method::QueueUpdate => {
            let QueueIdParams { queue_id: id } = request.part()?;
            finish(engine.queue_update(queue_id(&id)?, spec(request.part()?)?).await)
        }
        Method::QueueDelete => finish(engine.queue_delete(one(request)?).await),
        Method::QueueStart => finish(engine.queue_start(one(request)?).await),
        Method::QueueStop => finish(engine.queue_stop(one(request)?).await),
        Method::QueueSchedule => {
            let params: ScheduleParams = request.params()?;
            let schedule = schedule(&params)?;
            finish(engine.queue_schedule(queue_id(&params.queue_id)?, schedule).await)
        }
        Method::QueueReorder => {
            let params: ReorderParams = request.params()?;
            let tasks = params.task_ids.iter().map(|id| task_id(id)).collect::<Result<_, _>>()?;
            finish(engine.queue_reorder(queue_id(&params.queue_id)?, tasks).await)
        }
        Method::QueueMoveTask => {
            let params: MoveTaskParams = request.params()?;
            let queue = optional(&params.queue_id).map(queue_id).transpose()?;
            finish(engine.queue_move_task(task_id(&params.task_id)?, queue).await)
        }
        Method::QueueBoost => {
            let params: BoostParams = request.params()?;
            finish(engine.boost(task_id(&params.id)?).await)
        }
        Method::GroupList => {
            let snapshot = engine.snapshot().await.refused()?;
            read(
                &snapshot
                    .groups
                    .iter()
                    .map(|group| view::group(group))
                    .collect::<Vec<_>>(),
            )
        }
        Method::GroupCreate => preview::create_group(service, request.params()?).await,
        Method::GroupResolvePreview => preview::preview(service, request.params()?).await,
        Method::GroupCreateTasks => create_group(service, request.params()?).await,
        Method::GroupPause => finish(engine.group_pause(group(request)?).await),
        Method::GroupResume => finish(engine.group_resume(group(request)?).await),
        Method::GroupDelete => {
            let params: GroupDeleteParams = request.params()?;
            let group = group_id(&params.group_id)?;
            finish(engine.group_delete(group, fate(params.delete_files)).await)
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

fn queue_id(text: &str) -> Result<QueueId, RpcError> {
    text.parse().map_err(|_| {
        RpcError::application(ErrorCode::NotFound, format!("queue not found: {text}")).with_field("queueId")
    })
}

fn one(request: &Request) -> Result<QueueId, RpcError> {
    let params: QueueIdParams = request.params()?;
    queue_id(&params.queue_id)
}

fn group(request: &Request) -> Result<GroupId, RpcError> {
    let params: GroupIdParams = request.params()?;
    group_id(&params.group_id)
}

fn spec(fields: QueueFields) -> Result<QueueSpec, RpcError> {
    let bytes = |field: &str, kib: u64| {
        kib.checked_mul(view::KIB)
            .ok_or_else(|| invalid(field, format!("{field} is {kib}, which is too large")))
    };
    Ok(QueueSpec {
        speed_limit_bytes: bytes("speedLimitKbps", fields.speed_limit_kbps)?,
        upload_limit_bytes: bytes("uploadLimitKbps", fields.upload_limit_kbps)?,
        max_concurrent: fields.max_concurrent,
        default_save_dir: optional(&fields.default_save_dir).map(PathBuf::from),
        default_segments: fields.default_segments,
        default_user_agent: fields.default_user_agent,
        post_chain: chain(&fields.post_chain)?,
        name: fields.name,
    })
}

/// The text of a chain that was checked.
fn chain(steps: &[PostStep]) -> Result<String, RpcError> {
    chains::chain(steps.to_vec()).map_err(|error| invalid("postChain", error.to_string()))?;
    Ok(chains::chain_text(steps))
}

fn schedule(params: &ScheduleParams) -> Result<Schedule, RpcError> {
    let time = |field: &str, text: &str| {
        Schedule::parse_time(text).ok_or_else(|| invalid(field, format!("{field} must be HH:MM, or empty")))
    };
    if params.days > 0x7f {
        return Err(invalid("days", "days must be 0 to 127: bit 0 is Monday, bit 6 Sunday"));
    }
    Ok(Schedule {
        is_enabled: params.enabled,
        start: time("startTime", &params.start_time)?,
        stop: time("stopTime", &params.stop_time)?,
        days: Days::from_bits(params.days),
    })
}

async fn create_group(service: &Service, mut params: CreateGroupTasksParams) -> Result<Answer, RpcError> {
    keep_all(service, &mut params.requests).await?;
    let group = GroupSpec {
        name: params.group_name,
        source_url: view::shown_text(params.source_url),
        save_dir: optional(&params.save_dir).map(PathBuf::from),
        left_out: Vec::new(),
    };
    let (group, tasks) = service
        .engine
        .group_create(group, specs(params.requests)?)
        .await
        .refused()?;
    wrote(&CreateGroupResponse {
        group_id: group.to_string(),
        task_ids: tasks.iter().map(ToString::to_string).collect(),
    })
}
