//! Implements the tools. A failing tool reports the error in its result, where the model reads it.

use protocol::{
    CreateTaskParams, CreateTaskRequest, CreatedTask, DeleteTaskParams, Method, OkResult, ResolvePreviewRequest,
    ResolvePreviewResponse, RpcError, RssCreatedSource, RssSourceDto, RssSourceParams, TaskIdParams, TaskStatus,
    client::CallError,
};
use rest::Filter;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    record::{
        ALL, Add, List, Listed, Nothing, One, Paused, PausedAll, Plugins, Preview, Queues, Remove, Removed, Resumed,
        ResumedAll, Shown, Subscribe, Subscribed, Subscriptions, Unsubscribe, Unsubscribed,
    },
    tool::Tool,
};
use crate::{projection::tasks::Page, surface::state::App};

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

fn read<T: DeserializeOwned>(mut arguments: Map<String, Value>) -> Result<T, Failed> {
    // Some models send null for what they leave out.
    arguments.retain(|_, value| !value.is_null());
    protocol::from_value(&Value::Object(arguments)).map_err(|error| Failed(format!("invalid arguments: {error}")))
}

async fn run(app: &App, tool: Tool, arguments: Map<String, Value>) -> Result<Value, Failed> {
    let daemon = &app.daemon;
    Ok(match tool {
        Tool::DownloadAdd => json!(add(app, read(arguments)?).await?),
        Tool::DownloadList => json!(list(app, &read(arguments)?).await?),
        Tool::DownloadGet => {
            let One { task_id } = read(arguments)?;
            let task = daemon.known().await?.with_tasks(|daemon| daemon.task(&task_id));
            let task = task.ok_or_else(|| Failed(format!("task not found: {task_id}")))?;
            json!(Shown { task: parsed(&task)? })
        }
        Tool::DownloadPause => {
            let paused = one(app, Method::TaskPause, read(arguments)?).await?;
            json!(Paused { paused })
        }
        Tool::DownloadResume => {
            let resumed = one(app, Method::TaskResume, read(arguments)?).await?;
            json!(Resumed { resumed })
        }
        Tool::DownloadPauseAll => {
            let Nothing {} = read(arguments)?;
            let OkResult { ok: paused_all } = daemon.call(Method::TaskPauseAll, &Map::new()).await?;
            json!(PausedAll { paused_all })
        }
        Tool::DownloadResumeAll => {
            let Nothing {} = read(arguments)?;
            let OkResult { ok: resumed_all } = daemon.call(Method::TaskResumeAll, &Map::new()).await?;
            json!(ResumedAll { resumed_all })
        }
        Tool::DownloadRemove => {
            let Remove { task_id, delete_files } = read(arguments)?;
            let params = DeleteTaskParams { task_id, delete_files };
            let _: OkResult = daemon.call(Method::TaskDelete, &params).await?;
            json!(Removed {
                removed: params.task_id,
                deleted_files: delete_files
            })
        }
        Tool::QueueList => {
            let Nothing {} = read(arguments)?;
            let queues = daemon.known().await?.with_tasks(|daemon| parsed(daemon.queues()))?;
            json!(Queues { queues })
        }
        Tool::ResolvePreview => json!(preview(app, read(arguments)?).await?),
        Tool::RssList => {
            let Nothing {} = read(arguments)?;
            let sources = daemon.call(Method::RssListSources, &Map::new()).await?;
            json!(Subscriptions { sources })
        }
        Tool::RssAdd => {
            let source_id = subscribe(app, read(arguments)?).await?;
            json!(Subscribed { source_id })
        }
        Tool::RssRemove => {
            let Unsubscribe { source_id } = read(arguments)?;
            let params = RssSourceParams { source_id };
            let _: OkResult = daemon.call(Method::RssDeleteSource, &params).await?;
            json!(Unsubscribed {
                removed: params.source_id
            })
        }
        Tool::PluginList => {
            let Nothing {} = read(arguments)?;
            let plugins = daemon.known().await?.with_tasks(|daemon| parsed(daemon.plugins()))?;
            json!(Plugins { plugins })
        }
    })
}

async fn add(app: &App, add: Add) -> Result<CreatedTask, Failed> {
    if add.url.trim().is_empty() {
        return Err(Failed("url is required".to_owned()));
    }
    let request = CreateTaskRequest {
        url: add.url,
        file_name: add.file_name,
        save_dir: add.save_dir,
        segments: add.segments,
        proxy_url: add.proxy_url,
        cookies: add.cookies,
        referrer: add.referrer,
        user_agent: add.user_agent,
        queue_id: add.queue_id,
        checksum: add.checksum,
        ..CreateTaskRequest::default()
    };
    let params = CreateTaskParams {
        request,
        unattended: true,
        ..CreateTaskParams::default()
    };
    Ok(app.daemon.call(Method::TaskCreate, &params).await?)
}

async fn list(app: &App, list: &List) -> Result<Listed, Failed> {
    let status = match list.status.as_str() {
        ALL | "" => None,
        name => {
            let found = TaskStatus::ALL.into_iter().find(|status| status.name() == name);
            Some(found.ok_or_else(|| Failed(format!("invalid arguments: there is no status \"{name}\"")))?)
        }
    };
    let filter = Filter {
        status,
        ..Filter::default()
    };
    let (page, counts) = app.daemon.known().await?.with_tasks(|daemon| {
        let page = daemon.page(filter, Some(MAX_LISTED), None);
        (page, daemon.by_status())
    });
    let Page { tasks, .. } = page.map_err(|_| Failed("no such page".to_owned()))?;
    let count = match status {
        Some(status) => counts[status as usize],
        None => counts.iter().sum(),
    };
    let tasks = parsed(&tasks.into_text())?;
    Ok(Listed { tasks, count })
}

async fn one(app: &App, method: Method, One { task_id }: One) -> Result<String, Failed> {
    let params = TaskIdParams { task_id };
    let _: OkResult = app.daemon.call(method, &params).await?;
    Ok(params.task_id)
}

async fn preview(app: &App, preview: Preview) -> Result<ResolvePreviewResponse, Failed> {
    let request = ResolvePreviewRequest {
        url: preview.url,
        cookies: preview.cookies,
        referrer: preview.referrer,
        user_agent: preview.user_agent,
        ..ResolvePreviewRequest::default()
    };
    Ok(app.daemon.call(Method::GroupResolvePreview, &request).await?)
}

async fn subscribe(app: &App, subscribe: Subscribe) -> Result<String, Failed> {
    let source = RssSourceDto {
        url: subscribe.url,
        name: subscribe.name,
        // Without a pattern everything would be downloaded, which only the user may want.
        auto_download: !subscribe.include_pattern.trim().is_empty(),
        include_pattern: subscribe.include_pattern,
        exclude_pattern: subscribe.exclude_pattern,
        save_dir: subscribe.save_dir,
        queue_id: subscribe.queue_id,
        interval_minutes: subscribe.interval_minutes,
        ..RssSourceDto::default()
    };
    let RssCreatedSource { source_id } = app.daemon.call(Method::RssCreateSource, &source).await?;
    Ok(source_id)
}

/// Parses JSON from the daemon.
fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, Failed> {
    serde_json::from_str(text).map_err(|_| CallError::Unreadable.into())
}
