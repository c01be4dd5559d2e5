//! Commands about tasks: list, status, pause, resume, rm.

use command::{
    Exit,
    amount::{self, counted},
    environment::Environment,
};
use jiff::{Timestamp, tz::TimeZone};
use protocol::{
    ActivityPage, ActivityParams, DeleteTasksParams, Method, OkResult, QueueDto, TaskDto, TaskIdParams, TaskIdsParams,
    TaskRuntimeDto, TaskSource, TaskSources, TaskStatus, agent::AgentSnapshot,
};
use serde_json::json;
use transfer::SafeUrl;

use super::find;
use crate::{
    ids::{self, Known},
    service::ServiceArgs,
    table,
};

pub(crate) const LIST_EXAMPLES: &str = "Examples:
  svc list --status downloading,pending            what runs or waits
  svc list --queue later --limit 20                the newest 20 of a queue
  svc list --json | jq -r '.[].url'

Wherever a command takes an id, its first characters are enough (four or more, if no other id begins with them).";

/// History entries shown by `status`: one page.
const HISTORY: u32 = 200;

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only tasks in these states, separated by commas
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = parse_status)]
    status: Vec<TaskStatus>,
    /// Only tasks of this queue, by its name or id
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Only tasks with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only the newest N
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// The task
    id: String,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct IdsArgs {
    /// The tasks
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// Download the URLs as they are, without the plugin that failed for them
    #[arg(long)]
    ignore_plugin: bool,
    #[command(flatten)]
    which: IdsArgs,
}

#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Delete the completed files, too, if the tasks made them
    #[arg(long)]
    files: bool,
    #[command(flatten)]
    which: IdsArgs,
}

#[derive(Debug, clap::Args)]
pub struct AllArgs {
    #[command(flatten)]
    pub(super) service: ServiceArgs,
}

fn parse_status(text: &str) -> Result<TaskStatus, String> {
    let found = TaskStatus::ALL.into_iter().find(|status| status.name() == text);
    let known = TaskStatus::ALL.map(TaskStatus::name);
    found.ok_or_else(|| format!("known are {}", known.join(", ")))
}

pub(crate) async fn list(args: &ListArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let queue = match &args.queue {
        Some(name) => Some(find::queue(&mut client, name).await?.queue_id),
        None => None,
    };
    let AgentSnapshot { mut daemon, .. } = client.snapshot().await?;
    let all = Known::new("task", daemon.tasks.iter().map(|task| task.task_id.clone()));
    daemon.tasks.retain(|task| {
        (args.status.is_empty() || args.status.contains(&task.status))
            && queue.as_ref().is_none_or(|queue| task.queue_id == *queue)
            && args.tag.as_ref().is_none_or(|tag| task.tags.contains(tag))
    });
    let surplus = daemon.tasks.len().saturating_sub(args.limit.unwrap_or(usize::MAX));
    daemon.tasks.drain(..surplus);
    let shown_chars = all.shown_chars();
    let row = |task: &TaskDto| {
        let [status, done, size, rate] = figures(task, daemon.task_runtime.get(&task.task_id));
        let id = ids::shorten(&task.task_id, shown_chars).to_owned();
        let queue = queue_name(&daemon.queues, task);
        [id, status, done, size, rate, queue, title(task)]
    };
    let head = ["ID", "STATUS", ">DONE", ">SIZE", ">RATE", "QUEUE", "NAME"];
    args.service
        .print(&daemon.tasks, || table::lines(head, daemon.tasks.iter().map(row)))
}

/// The name of a task's queue, or the id of one that was deleted.
fn queue_name(queues: &[QueueDto], task: &TaskDto) -> String {
    let queue = queues.iter().find(|queue| queue.queue_id == task.queue_id);
    queue.map_or(&task.queue_id, |queue| &queue.name).clone()
}

/// Whether the task has an active run, so that its figures are current.
pub(crate) fn is_moving(task: &TaskDto) -> bool {
    matches!(task.status, TaskStatus::Downloading | TaskStatus::Preparing)
}

/// Columns of a table: status, percent, size and rate.
pub(crate) fn figures(task: &TaskDto, run: Option<&TaskRuntimeDto>) -> [String; 4] {
    let run = run.filter(|_| is_moving(task));
    let total = run.map_or(0, |run| run.total_bytes).max(task.total_bytes);
    let done = run.map_or(task.downloaded_bytes, |run| run.downloaded_bytes);
    let share = match (task.status, total) {
        (TaskStatus::Completed, _) => "100%".to_owned(),
        (_, 0) if done > 0 => amount::bytes(done),
        (_, 0) => String::new(),
        (_, total) => format!("{}%", amount::percent(done, total)),
    };
    let size = if total > 0 { amount::bytes(total) } else { String::new() };
    let rate = run.map_or_else(String::new, |run| amount::rate(run.download_bps));
    [task.status.name().to_owned(), share, size, rate]
}

/// The file name, or the source URL without secrets before it is known.
pub(crate) fn title(task: &TaskDto) -> String {
    if task.file_name.is_empty() {
        safe_url(&task.url)
    } else {
        task.file_name.clone()
    }
}

pub(crate) fn safe_url(text: &str) -> String {
    SafeUrl::parse(text).map_or_else(|_| "(a source that is no URL)".to_owned(), |url| url.to_string())
}

pub(crate) async fn status(args: &StatusArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let task_id = find::tasks(&mut client, std::slice::from_ref(&args.id))
        .await?
        .remove(0);
    let params = TaskIdParams { task_id };
    let task: TaskDto = client.call(Method::TaskGet, &params).await?;
    let run: Option<TaskRuntimeDto> = if is_moving(&task) {
        client.call(Method::ShowRun, &params).await?
    } else {
        None
    };
    let queues: Vec<QueueDto> = client.ask(Method::QueueList).await?;
    let found: TaskSources = client.call(Method::TaskSources, &params).await?;
    let params = ActivityParams {
        task_id: params.task_id,
        before_id: None,
        after_id: None,
        limit: Some(HISTORY),
    };
    let history: ActivityPage = client.call(Method::TaskActivity, &params).await?;
    let record = json!({ "task": task, "runtime": run, "sources": found.sources,
        "activity": history.items });
    args.service.print(&record, || {
        let mut lines = facts(&task, run.as_ref(), &queue_name(&queues, &task));
        lines.extend(failed_sources(&found.sources));
        lines.extend((!history.items.is_empty()).then(|| "History".to_owned()));
        lines.extend(
            history
                .items
                .iter()
                .map(|entry| format!("  {}  {}", local_millis(entry.timestamp_ms), entry.message)),
        );
        lines
    })
}

fn failed_sources(sources: &[TaskSource]) -> Vec<String> {
    let failed = sources.iter().filter_map(|source| {
        let failure = source.failure.as_ref()?;
        let at = local_millis(failure.timestamp_ms);
        Some(format!("  {at}  {}: {}", safe_url(&source.url), failure.message))
    });
    let mut lines: Vec<_> = failed.collect();
    if !lines.is_empty() {
        lines.insert(0, "Sources that failed".to_owned());
    }
    lines
}

fn local_millis(at: i64) -> String {
    Timestamp::from_millisecond(at).map(local).unwrap_or_default()
}

fn facts(task: &TaskDto, run: Option<&TaskRuntimeDto>, queue: &str) -> Vec<String> {
    let [status, share, size, rate] = figures(task, run);
    let connections = run
        .and_then(|run| run.active_transfers)
        .map_or_else(String::new, |count| match count {
            1 => "over 1 connection".to_owned(),
            count => format!("over {count} connections"),
        });
    let progress: Vec<_> = [share, size, rate, connections]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    let reason = match task.error_kind.as_str() {
        "" => String::new(),
        kind => format!("{} [{kind}]", task.error_message),
    };
    let missing = if task.file_missing { " (no longer there)" } else { "" };
    [
        ("Task", task.task_id.clone()),
        ("Status", status),
        ("Reason", reason),
        ("Continues", moment(&task.continues_at)),
        ("Progress", progress.join(", ")),
        ("File", format!("{}{missing}", task.file_name)),
        ("Directory", task.save_dir.clone()),
        ("Source", safe_url(&task.url)),
        ("Torrent", torrent(task, run)),
        ("Queue", queue.to_owned()),
        ("Checksum", task.checksum.clone()),
        ("Proxy", task.proxy_url.clone()),
        ("Created", moment(&task.created_at)),
        ("Completed", moment(&task.completed_at)),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| format!("{name:<10} {value}"))
    .collect()
}

/// What a torrent gave back; empty for other tasks.
fn torrent(task: &TaskDto, run: Option<&TaskRuntimeDto>) -> String {
    if task.info_hash.is_empty() {
        return String::new();
    }
    let seeding = match task.seeding_status {
        1 => ", seeds",
        8 => ", waits to seed",
        _ => "",
    };
    let measured = run.map_or(0, |run| run.uploaded_bytes);
    let uploaded = amount::bytes(measured.max(task.uploaded_bytes));
    format!("uploaded {uploaded}{seeding}; see svc torrent status")
}

/// Formats Unix seconds; empty stays empty.
fn moment(seconds: &str) -> String {
    let at = seconds
        .parse()
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok());
    at.map(local).unwrap_or_default()
}

fn local(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

pub(crate) async fn pause(args: &IdsArgs, environment: &Environment) -> anyhow::Result<Exit> {
    change(args, environment, "paused", |task_ids| {
        (Method::TaskPauseMany, json!(TaskIdsParams { task_ids }))
    })
    .await
}

pub(crate) async fn resume(args: &ResumeArgs, environment: &Environment) -> anyhow::Result<Exit> {
    if args.ignore_plugin {
        return ignore_plugin(&args.which, environment).await;
    }
    change(&args.which, environment, "resumed", |task_ids| {
        (Method::TaskResumeMany, json!(TaskIdsParams { task_ids }))
    })
    .await
}

pub(crate) async fn remove(args: &RemoveArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let delete_files = args.files;
    change(&args.which, environment, "removed", |task_ids| {
        (
            Method::TaskDeleteMany,
            json!(DeleteTasksParams { task_ids, delete_files }),
        )
    })
    .await
}

async fn ignore_plugin(args: &IdsArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let ids = find::tasks(&mut client, &args.ids).await?;
    for task_id in ids.clone() {
        let _: OkResult = client
            .call(Method::PluginIgnoreRetry, &TaskIdParams { task_id })
            .await?;
    }
    let sentence = format!("resumed {} without a plugin", counted(ids.len(), "task"));
    args.service.print_done(&json!({ "taskIds": ids }), &sentence)
}

/// Changes the named tasks; if one is unknown, none is changed.
async fn change(
    args: &IdsArgs,
    environment: &Environment,
    done: &str,
    call: impl FnOnce(Vec<String>) -> (Method, serde_json::Value),
) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let ids = find::tasks(&mut client, &args.ids).await?;
    let (method, params) = call(ids.clone());
    let _: OkResult = client.call(method, &params).await?;
    let sentence = format!("{done} {}", counted(ids.len(), "task"));
    args.service.print_done(&json!({ "taskIds": ids }), &sentence)
}

pub(crate) async fn pause_all(args: &AllArgs, environment: &Environment) -> anyhow::Result<Exit> {
    change_all(args, environment, Method::TaskPauseAll, "paused all tasks").await
}

pub(crate) async fn resume_all(args: &AllArgs, environment: &Environment) -> anyhow::Result<Exit> {
    change_all(args, environment, Method::TaskResumeAll, "resumed all tasks").await
}

async fn change_all(args: &AllArgs, environment: &Environment, method: Method, done: &str) -> anyhow::Result<Exit> {
    let answered: OkResult = args.service.connect(environment).await?.ask(method).await?;
    args.service.print_done(&answered, done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_tell_what_is_known() {
        let task = |status, downloaded_bytes, total_bytes| TaskDto {
            status,
            downloaded_bytes,
            total_bytes,
            ..TaskDto::default()
        };
        let run = TaskRuntimeDto {
            downloaded_bytes: 512,
            total_bytes: 1024,
            download_bps: 2048,
            ..TaskRuntimeDto::default()
        };
        for (task, expected) in [
            (task(TaskStatus::Pending, 0, 0), ["pending", "", "", ""]),
            (task(TaskStatus::Paused, 300, 0), ["paused", "300 B", "", ""]),
            (
                task(TaskStatus::Completed, 1024, 1024),
                ["completed", "100%", "1.0 KiB", ""],
            ),
            (
                task(TaskStatus::Downloading, 0, 0),
                ["downloading", "50%", "1.0 KiB", "2.0 KiB/s"],
            ),
        ] {
            assert_eq!(figures(&task, Some(&run)), expected);
        }
    }

    #[test]
    fn a_task_that_waits_for_its_account_says_why_and_until_when() {
        let task = TaskDto {
            error_kind: "account-limit".into(),
            error_message: "waiting for account limit".into(),
            continues_at: "86400".into(),
            ..TaskDto::default()
        };
        let facts = facts(&task, None, "main").join("\n");
        assert!(
            facts.contains("Reason     waiting for account limit [account-limit]\nContinues  19"),
            "{facts}"
        );
    }

    #[test]
    fn a_title_never_shows_a_secret() {
        let task = TaskDto {
            url: "https://me:pw@a.test/f?key=hunter2".into(),
            ..TaskDto::default()
        };
        assert_eq!(title(&task), "https://a.test/f?…");
    }
}
