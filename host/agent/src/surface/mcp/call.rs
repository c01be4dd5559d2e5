//! Implements the tools. A failing tool reports the error in its result, where the model reads it.

use protocol::{
    CreateTaskParams, CreateTaskRequest, CreatedTask, DeleteTaskParams, Method, OkResult, ResolvePreviewRequest,
    ResolvePreviewResponse, RpcError, TaskIdParams, TaskStatus,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    record::{ALL, Add, List, Nothing, One, Preview, Remove},
    tool::Tool,
};
use crate::{
    link::error::CallError,
    projection::tasks::{Filter, Page},
    surface::state::App,
};

/// More than a user reads, and less than a model's context.
const MAX_LISTED: usize = 500;

/// An error text for the model.
struct Failed(String);

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        let RpcError { message, data, .. } = error.into();
        match data.and_then(|data| data.field) {
            Some(field) if !message.contains(&field) => Self(format!("{field}: {message}")),
            _ => Self(message),
        }
    }
}

/// Calls a tool. The result contains text and the same content as structured data.
pub(super) async fn call(app: App, tool: Tool, arguments: Map<String, Value>) -> Value {
    let content = |text: String| json!([{ "type": "text", "text": text }]);
    match run(&app, tool, arguments).await {
        Ok(found) => {
            let text = format!("{found:#}");
            json!({ "content": content(text), "structuredContent": found, "isError": false })
        }
        Err(Failed(message)) => {
            json!({ "content": content(Value::from(message).to_string()), "isError": true })
        }
    }
}

fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Failed> {
    protocol::from_value(&Value::Object(arguments)).map_err(|misfit| Failed(format!("invalid arguments: {misfit}")))
}

async fn run(app: &App, tool: Tool, arguments: Map<String, Value>) -> Result<Value, Failed> {
    let daemon = &app.daemon;
    match tool {
        Tool::DownloadAdd => add(app, read(arguments)?).await,
        Tool::DownloadList => list(app, &read(arguments)?),
        Tool::DownloadGet => {
            let One { task_id } = read(arguments)?;
            let task = daemon.known()?.with_tasks(|daemon| daemon.task(&task_id));
            let task = task.ok_or_else(|| Failed(format!("task not found: {task_id}")))?;
            Ok(json!({ "task": parsed(&task) }))
        }
        Tool::DownloadPause => Ok(json!({ "paused": one(app, Method::TaskPause, read(arguments)?).await? })),
        Tool::DownloadResume => Ok(json!({ "resumed": one(app, Method::TaskResume, read(arguments)?).await? })),
        Tool::DownloadPauseAll => {
            let Nothing {} = read(arguments)?;
            let _: OkResult = daemon.call(Method::TaskPauseAll, &Map::new()).await?;
            Ok(json!({ "pausedAll": true }))
        }
        Tool::DownloadResumeAll => {
            let Nothing {} = read(arguments)?;
            let _: OkResult = daemon.call(Method::TaskResumeAll, &Map::new()).await?;
            Ok(json!({ "resumedAll": true }))
        }
        Tool::DownloadRemove => {
            let Remove { task_id, delete_files } = read(arguments)?;
            let delete_files = delete_files.unwrap_or(false);
            let found = json!({ "removed": task_id, "deletedFiles": delete_files });
            let params = DeleteTaskParams { task_id, delete_files };
            let _: OkResult = daemon.call(Method::TaskDelete, &params).await?;
            Ok(found)
        }
        Tool::QueueList => {
            let Nothing {} = read(arguments)?;
            Ok(json!({ "queues": daemon.known()?.with_tasks(|daemon| parsed(daemon.queues())) }))
        }
        Tool::ResolvePreview => preview(app, read(arguments)?).await,
        Tool::PluginList => {
            let Nothing {} = read(arguments)?;
            Ok(json!({ "plugins": daemon.known()?.with_tasks(|daemon| parsed(daemon.plugins())) }))
        }
    }
}

async fn add(app: &App, add: Add) -> Result<Value, Failed> {
    if add.url.trim().is_empty() {
        return Err(Failed("url is required".to_owned()));
    }
    let request = CreateTaskRequest {
        url: add.url,
        file_name: add.file_name.unwrap_or_default(),
        save_dir: add.save_dir.unwrap_or_default(),
        segments: add.segments.unwrap_or_default(),
        proxy_url: add.proxy_url.unwrap_or_default(),
        cookies: add.cookies.unwrap_or_default(),
        referrer: add.referrer.unwrap_or_default(),
        user_agent: add.user_agent.unwrap_or_default(),
        queue_id: add.queue_id.unwrap_or_default(),
        checksum: add.checksum.unwrap_or_default(),
        ..CreateTaskRequest::default()
    };
    let params = CreateTaskParams {
        request,
        unattended: true,
        ..CreateTaskParams::default()
    };
    let created: CreatedTask = app.daemon.call(Method::TaskCreate, &params).await?;
    Ok(json!(created))
}

fn list(app: &App, list: &List) -> Result<Value, Failed> {
    let status = match list.status.as_deref() {
        None | Some(ALL | "") => None,
        Some(name) => {
            let found = TaskStatus::ALL.into_iter().find(|status| status.name() == name);
            Some(found.ok_or_else(|| Failed(format!("invalid arguments: there is no status \"{name}\"")))?)
        }
    };
    let filter = Filter {
        status,
        ..Filter::default()
    };
    let (page, counts) = app.daemon.known()?.with_tasks(|daemon| {
        let page = daemon.page(filter, Some(MAX_LISTED), None);
        (page, daemon.by_status())
    });
    let Page { tasks, .. } = page.map_err(|_| Failed("no such page".to_owned()))?;
    let count: u64 = match status {
        Some(status) => counts[status as usize],
        None => counts.iter().sum(),
    };
    Ok(json!({ "tasks": parsed(&tasks.into_text()), "count": count }))
}

async fn one(app: &App, method: Method, One { task_id }: One) -> Result<String, Failed> {
    let params = TaskIdParams { task_id };
    let _: OkResult = app.daemon.call(method, &params).await?;
    Ok(params.task_id)
}

async fn preview(app: &App, preview: Preview) -> Result<Value, Failed> {
    let request = ResolvePreviewRequest {
        url: preview.url,
        cookies: preview.cookies.unwrap_or_default(),
        referrer: preview.referrer.unwrap_or_default(),
        user_agent: preview.user_agent.unwrap_or_default(),
        ..ResolvePreviewRequest::default()
    };
    let found: ResolvePreviewResponse = app.daemon.call(Method::GroupResolvePreview, &request).await?;
    Ok(json!(found))
}

/// Parses JSON from the daemon.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
