//! `daemon.task.*`

use std::collections::BTreeSet;

use engine::{Engine, QueueId, SeedLimits, TaskId, TaskSpec, UrlChanged};
use protocol::{
    ActivityPage, ActivityParams, ChangeTaskParams, ChangeUrlParams, ChangedTask, CreateTaskParams, CreateTaskRequest,
    CreateTasksParams, CreatedTask, CreatedTasks, DeleteTaskParams, DeleteTasksParams, ErrorCode, Method,
    RenameTaskParams, Request, RpcError, SeedLimitParams, SpeedLimitParams, TaskIdParams, TaskIdsParams, TaskSource,
    TaskSources, TaskTagsParams,
};
use transfer::SafeUrl;

use crate::{
    call::{
        answer::{Answer, StreamedResult, done, finish, read, wrote},
        document,
        params::{fate, task_id},
        preview::waiting,
        torrents,
    },
    options,
    refusal::{Refuse as _, invalid, renaming},
    rows::{self, Page},
    service::Service,
    view,
};

const MAX_PAGE: u32 = 200;
const DEFAULT_PAGE: u32 = 50;

pub(super) async fn call(service: &Service, method: Method, request: &Request) -> Result<Answer, RpcError> {
    let engine = &service.engine;
    match method {
        Method::TaskList => all(service).await,
        Method::TaskGet => read(&view::task(&*engine.task(one(request)?).await.refused()?)),
        Method::TaskActivity => activity(service, request.params()?).await,
        Method::TaskSources => sources(service, request.params()?).await,
        Method::TaskCreate => create_one(service, request.params()?).await,
        Method::TaskCreateMany => create_many(service, request.params()?).await,
        Method::TaskPause => finish(engine.pause(one(request)?).await),
        Method::TaskResume => finish(engine.resume(one(request)?).await),
        Method::TaskRequest => read(&options::public_request(&*engine.task(one(request)?).await.refused()?)),
        Method::TaskChange => change(service, request.params()?).await,
        Method::TaskRename => {
            let params: RenameTaskParams = request.params()?;
            let renamed = engine.rename(task_id(&params.task_id)?, &params.file_name).await;
            renamed.map_err(|error| renaming(&error))?;
            done()
        }
        Method::TaskChangeUrl => {
            let params: ChangeUrlParams = request.params()?;
            let url = SafeUrl::parse(&params.url).map_err(|error| invalid("url", error.to_string()))?;
            changed(engine.change_url(task_id(&params.task_id)?, url).await)
        }
        Method::TaskSetSpeedLimit => {
            let params: SpeedLimitParams = request.params()?;
            let task = task_id(&params.task_id)?;
            finish(engine.set_speed_limit(task, params.speed_limit_bytes).await)
        }
        Method::TaskSetTags => {
            let TaskTagsParams { task_id: id, tags } = request.params()?;
            finish(engine.set_tags(task_id(&id)?, options::tags(tags)).await)
        }
        Method::TaskSetSeedLimits => set_seed_limits(engine, request.params()?).await,
        Method::TaskDelete => {
            let params: DeleteTaskParams = request.params()?;
            let task = task_id(&params.task_id)?;
            finish(engine.delete(task, fate(params.delete_files)).await)
        }
        Method::TaskPauseAll => finish(engine.pause_all().await),
        Method::TaskResumeAll => finish(engine.resume_all().await),
        Method::TaskRescan => finish(engine.rescan().await),
        Method::TaskPauseMany => finish(engine.pause_many(many(&request.params()?)).await),
        Method::TaskResumeMany => finish(engine.resume_many(many(&request.params()?)).await),
        Method::TaskDeleteMany => {
            let params: DeleteTasksParams = request.params()?;
            let tasks = known(&params.task_ids);
            finish(engine.delete_many(tasks, fate(params.delete_files)).await)
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

fn changed(outcome: Result<UrlChanged, engine::CommandError>) -> Result<Answer, RpcError> {
    wrote(&ChangedTask {
        ok: true,
        notice: outcome.refused()?.notice.map(str::to_owned),
    })
}

fn one(request: &Request) -> Result<TaskId, RpcError> {
    let params: TaskIdParams = request.params()?;
    task_id(&params.task_id)
}

/// Skips ids that do not parse: a batch ignores unknown tasks.
fn known(ids: &[String]) -> Vec<TaskId> {
    ids.iter().filter_map(|id| id.parse().ok()).collect()
}

fn many(params: &TaskIdsParams) -> Vec<TaskId> {
    known(&params.task_ids)
}

async fn all(service: &Service) -> Result<Answer, RpcError> {
    let snapshot = service.engine.snapshot().await.refused()?;
    let result = StreamedResult {
        head: "[".to_owned(),
        tasks: snapshot.tasks.into(),
        tail: "]".to_owned(),
    };
    Ok(Answer::Streamed(result, None))
}

async fn create_one(service: &Service, mut params: CreateTaskParams) -> Result<Answer, RpcError> {
    if let Some(blob) = params.torrent_blob_id.take()
        && params.request.torrent_blob_id.replace(blob).is_some()
    {
        return Err(invalid(
            "torrentBlobId",
            "torrentBlobId and request.torrentBlobId exclude each other",
        ));
    }
    if params.request.metalink_b64.is_some() {
        return create_document(service, params).await;
    }
    let id = params.task_id.as_deref().map(str::parse::<TaskId>).transpose();
    let id = id.map_err(|error| invalid("taskId", error.to_string()))?;
    torrents::keep(service, &mut params.request).await?;
    let site = options::site_to_save(&params.request)?;
    let mut spec = options::spec(params.request, params.hint_file_size)?;
    spec.given_by = options::given_by(params.requester.as_ref());
    spec.created_by = options::created_by(params.requester.as_ref());
    let message = spec
        .urls
        .first()
        .and_then(|url| waiting(service, url))
        .unwrap_or_default();
    // First, because an error afterwards would be one of a task that exists.
    if let Some((site, credentials)) = site {
        service.engine.site_save(site, credentials).await.refused()?;
    }
    let task = match id {
        Some(id) => service.engine.create_as(id, spec).await,
        None => service.engine.create(spec).await,
    }
    .refused()?;
    wrote(&CreatedTask {
        task_id: task.to_string(),
        message,
        ..CreatedTask::default()
    })
}

/// The tasks of a Metalink document.
async fn create_document(service: &Service, params: CreateTaskParams) -> Result<Answer, RpcError> {
    if params.task_id.is_some() {
        return Err(invalid(
            "taskId",
            "a Metalink document has several tasks, whose ids are chosen here",
        ));
    }
    let queue = match params.request.queue_id.trim() {
        "" => None,
        id => Some(
            id.parse::<QueueId>()
                .map_err(|error| invalid("queueId", error.to_string()))?,
        ),
    };
    let usual_dir = service.engine.save_dir(queue).await.refused()?;
    let mut specs = document::specs(params.request, &usual_dir)?;
    for spec in &mut specs {
        spec.given_by = options::given_by(params.requester.as_ref());
        spec.created_by = options::created_by(params.requester.as_ref());
    }
    let tasks = service.engine.create_many(specs).await.refused()?;
    let task_ids: Vec<_> = tasks.iter().map(ToString::to_string).collect();
    wrote(&CreatedTask {
        task_id: task_ids.first().cloned().unwrap_or_default(),
        task_ids,
        ..CreatedTask::default()
    })
}

async fn create_many(service: &Service, mut params: CreateTasksParams) -> Result<Answer, RpcError> {
    keep_all(service, &mut params.requests).await?;
    let sites: Vec<_> = params
        .requests
        .iter()
        .map(options::site_to_save)
        .collect::<Result<_, _>>()?;
    let mut specs = specs(params.requests)?;
    for spec in &mut specs {
        spec.given_by = options::given_by(params.requester.as_ref());
        spec.created_by = options::created_by(params.requester.as_ref());
    }
    let first_urls = specs.iter().filter_map(|spec| spec.urls.first());
    let messages: BTreeSet<_> = first_urls.filter_map(|url| waiting(service, url)).collect();
    for (site, credentials) in sites.into_iter().flatten() {
        service.engine.site_save(site, credentials).await.refused()?;
    }
    let tasks = service.engine.create_many(specs).await.refused()?;
    wrote(&CreatedTasks {
        task_ids: tasks.iter().map(ToString::to_string).collect(),
        messages: messages.into_iter().collect(),
    })
}

/// Stores the torrent files of several requests; an error names the index of the bad one.
pub(super) async fn keep_all(service: &Service, requests: &mut [CreateTaskRequest]) -> Result<(), RpcError> {
    check_count(requests)?;
    for (index, request) in requests.iter_mut().enumerate() {
        let kept = torrents::keep(service, request).await;
        kept.map_err(|error| of_request(index, error))?;
    }
    Ok(())
}

/// The specifications of several tasks; an error names the index of the bad one.
pub(super) fn specs(requests: Vec<CreateTaskRequest>) -> Result<Vec<TaskSpec>, RpcError> {
    check_count(&requests)?;
    let specs = requests
        .into_iter()
        .enumerate()
        .map(|(index, request)| options::spec(request, None).map_err(|error| of_request(index, error)));
    specs.collect()
}

fn of_request(index: usize, mut error: RpcError) -> RpcError {
    if let Some(data) = &mut error.data {
        let field = data.field.take().unwrap_or_default();
        data.field = Some(format!("requests[{index}].{field}"));
    }
    error
}

fn check_count(requests: &[CreateTaskRequest]) -> Result<(), RpcError> {
    if requests.is_empty() || requests.len() > options::MAX_CREATED {
        let message = format!(
            "requests has {} items; it must have 1 to {}",
            requests.len(),
            options::MAX_CREATED
        );
        return Err(invalid("requests", message));
    }
    Ok(())
}

/// The limits of seeding and of uploads, all of them or none.
async fn set_seed_limits(engine: &Engine, params: SeedLimitParams) -> Result<Answer, RpcError> {
    let SeedLimitParams {
        task_id: id,
        ratio_limit_milli,
        post_ratio_limit_milli,
        seed_time_limit_minutes,
        seed_time_limit_secs,
        inactive_time_limit_minutes,
        upload_limit_bps,
    } = params;
    let task = task_id(&id)?;
    let limits = SeedLimits {
        ratio_milli: options::seed_limit("ratioLimitMilli", ratio_limit_milli, 1)?,
        post_ratio_milli: options::seed_limit("postRatioLimitMilli", post_ratio_limit_milli, 1)?,
        time_secs: match seed_time_limit_secs {
            Some(secs) => options::seed_limit("seedTimeLimitSecs", secs, 1)?,
            None => options::seed_limit("seedTimeLimitMinutes", seed_time_limit_minutes, 60)?,
        },
        idle_secs: options::seed_limit("inactiveTimeLimitMinutes", inactive_time_limit_minutes, 60)?,
    };
    engine.set_upload_limit(task, upload_limit_bps).await.refused()?;
    finish(engine.set_seed_limits(task, limits).await)
}

/// Changes options of a task. If its file has begun, the file is renamed on disk.
async fn change(service: &Service, params: ChangeTaskParams) -> Result<Answer, RpcError> {
    let engine = &service.engine;
    let id = task_id(&params.task_id)?;
    let before = engine.task(id).await.refused()?;
    let after = options::changed(&before, params.change.clone())?;
    match &after.file_name {
        Some(name) if before.path.is_some() && before.file_name() != name.as_str() => {
            if after.save_dir.as_ref().is_some_and(|dir| **dir != *before.save_dir) {
                return Err(invalid(
                    "saveDir",
                    "the directory of a task cannot change once its file has begun",
                ));
            }
            engine.rename(id, name.as_str()).await.refused()?;
            let renamed = engine.task(id).await.refused()?;
            let after = options::changed(&renamed, params.change)?;
            changed(engine.change_spec(&renamed, after).await)
        }
        _ => changed(engine.change_spec(&before, after).await),
    }
}

/// The sources of a task in their order, then those that only failures tell of: links that its plugin found, and URLs
/// that were replaced.
async fn sources(service: &Service, params: TaskIdParams) -> Result<Answer, RpcError> {
    let task = service.engine.task(task_id(&params.task_id)?).await.refused()?;
    service.hub.save_history().await?;
    let mut failed = rows::read_failed_sources(&service.store, task.id)
        .await
        .map_err(|error| RpcError::application(ErrorCode::Unavailable, error.to_string()))?;
    let own = task.urls().iter().map(|url| {
        let url = view::shown(url);
        let found = failed.iter().position(|(failed, _)| *failed == url);
        let failure = found.map(|at| failed.remove(at).1);
        TaskSource { url, failure }
    });
    let mut sources: Vec<_> = own.collect();
    sources.extend(failed.into_iter().map(|(url, failure)| TaskSource {
        url,
        failure: Some(failure),
    }));
    read(&TaskSources { sources })
}

async fn activity(service: &Service, params: ActivityParams) -> Result<Answer, RpcError> {
    let page = match (params.before_id, params.after_id) {
        (None, None) => Page::Newest,
        (Some(id), None) => Page::Before(id),
        (None, Some(id)) => Page::After(id),
        (Some(_), Some(_)) => return Err(invalid("beforeId", "beforeId and afterId exclude each other")),
    };
    let limit = params.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(invalid(
            "limit",
            format!("limit is {limit}; it must be 1 to {MAX_PAGE}"),
        ));
    }
    let task = service.engine.task(task_id(&params.task_id)?).await.refused()?;
    service.hub.save_history().await?;
    let (items, has_more) = rows::read_history(&service.store, task.id, page, limit)
        .await
        .map_err(|error| RpcError::application(ErrorCode::Unavailable, error.to_string()))?;
    read(&ActivityPage { items, has_more })
}
