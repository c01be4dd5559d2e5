//! `svc group`: lists and changes groups of tasks, which a plugin's list of files becomes.

use command::{
    Exit,
    amount::{self, counted},
    environment::Environment,
};
use protocol::{
    GroupDeleteParams, GroupDto, GroupIdParams, Method, OkResult, TaskDto, TaskStatus, agent::AgentSnapshot,
};
use serde::Serialize;
use serde_json::json;

use super::list::{figures, title};
use crate::{
    ids::{self, Known},
    left_out,
    service::{Client, ServiceArgs},
    table,
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc group                                        all groups
  svc group show isos                              its tasks
  svc group pause isos
  svc group rm isos --files                        with the files that its tasks completed

A group is named by its name, its id or the first characters of its id.";

#[derive(Debug, clap::Args)]
pub struct GroupArgs {
    #[command(subcommand)]
    command: Option<GroupCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum GroupCommand {
    /// List groups
    #[command(visible_alias = "ls")]
    List,
    /// Show a group with its tasks
    Show(OneArgs),
    /// Pause all tasks of a group
    Pause(OneArgs),
    /// Continue all paused tasks of a group
    #[command(visible_alias = "resume")]
    Continue(OneArgs),
    /// Remove a group and its tasks; completed files stay unless --files is given
    #[command(visible_alias = "delete")]
    Rm {
        #[command(flatten)]
        which: OneArgs,
        /// Delete the completed files, too, if the tasks made them
        #[arg(long)]
        files: bool,
    },
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// Name or id of the group
    group: String,
}

pub(crate) async fn run(args: &GroupArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    let mut client = service.connect(environment).await?;
    let by_id = |group_id| GroupIdParams { group_id };
    match args.command.as_ref().unwrap_or(&GroupCommand::List) {
        GroupCommand::List => {
            let groups: Vec<GroupDto> = client.ask(Method::GroupList).await?;
            service.print(&groups, || lines(&groups))
        }
        GroupCommand::Show(one) => show(one, service, &mut client).await,
        GroupCommand::Pause(one) => act(one, service, &mut client, Method::GroupPause, by_id, "paused").await,
        GroupCommand::Continue(one) => act(one, service, &mut client, Method::GroupResume, by_id, "continued").await,
        GroupCommand::Rm { which, files } => {
            let params = |group_id| GroupDeleteParams {
                group_id,
                delete_files: *files,
            };
            act(which, service, &mut client, Method::GroupDelete, params, "removed").await
        }
    }
}

async fn act<P: Serialize>(
    one: &OneArgs,
    service: &ServiceArgs,
    client: &mut Client,
    method: Method,
    params: impl FnOnce(String) -> P,
    what: &str,
) -> anyhow::Result<Exit> {
    let groups = client.ask(Method::GroupList).await?;
    let GroupDto { group_id, name, .. } = find(groups, &one.group)?;
    let answered: OkResult = client.call(method, &params(group_id)).await?;
    service.print_done(&answered, &format!("{what} group {name}"))
}

fn find(groups: Vec<GroupDto>, text: &str) -> anyhow::Result<GroupDto> {
    let names = groups
        .iter()
        .map(|group| (group.group_id.as_str(), group.name.as_str()));
    let id = ids::named("group", names, text)?;
    let found = groups.into_iter().find(|group| group.group_id == id);
    Ok(found.expect("the id is one of theirs"))
}

async fn show(one: &OneArgs, service: &ServiceArgs, client: &mut Client) -> anyhow::Result<Exit> {
    let AgentSnapshot { mut daemon, .. } = client.snapshot().await?;
    let group = find(daemon.groups, &one.group)?;
    let shown = Known::new("task", daemon.tasks.iter().map(|task| task.task_id.clone())).shown_chars();
    daemon.tasks.retain(|task| task.group_id == group.group_id);
    let tasks = daemon.tasks;
    service.print(&json!({ "group": group, "tasks": tasks }), || {
        let row = |task: &TaskDto| {
            let [status, done, size, rate] = figures(task, daemon.task_runtime.get(&task.task_id));
            [
                ids::shorten(&task.task_id, shown).to_owned(),
                status,
                done,
                size,
                rate,
                title(task),
            ]
        };
        let completed = tasks.iter().filter(|task| task.status == TaskStatus::Completed).count();
        let total = tasks.iter().map(|task| task.total_bytes).sum();
        let mut lines = vec![
            format!("Group      {} ({})", group.name, group.group_id),
            format!("Source     {}", super::list::safe_url(&group.source_url)),
            format!("Directory  {}", group.save_dir),
            format!(
                "Tasks      {}, {completed} completed; {} known",
                counted(tasks.len(), "task"),
                amount::bytes(total)
            ),
        ];
        let head = ["ID", "STATUS", ">DONE", ">SIZE", ">RATE", "NAME"];
        lines.extend(table::lines(head, tasks.iter().map(row)));
        lines.extend(group.left_out.iter().map(left_out::line));
        lines
    })
}

fn lines(groups: &[GroupDto]) -> Vec<String> {
    let shown = Known::new("group", groups.iter().map(|group| group.group_id.clone())).shown_chars();
    let row = |group: &GroupDto| {
        [
            ids::shorten(&group.group_id, shown).to_owned(),
            group.name.clone(),
            group.save_dir.clone(),
            super::list::safe_url(&group.source_url),
        ]
    };
    table::lines(["ID", "NAME", "DIRECTORY", "SOURCE"], groups.iter().map(row))
}
