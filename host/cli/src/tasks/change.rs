//! Commands that change one task: rename, change-url, limit; and rescan.

use command::{Exit, UsageError, amount, environment::Environment};
use protocol::{
    ChangeUrlParams, ChangedTask, ConfigPatch, ConfigSnapshot, Method, OkResult, RenameTaskParams, RuntimeStats,
    SpeedLimitParams, TaskTagsParams,
};

use super::{find, list::AllArgs};
use crate::service::{Client, ServiceArgs};

pub(crate) const RENAME_EXAMPLES: &str = "Examples:
  svc rename 3f2a disk.iso                         also renames the file, if there is one";

pub(crate) const CHANGE_URL_EXAMPLES: &str = "Examples:
  svc change-url 3f2a 'https://host/disk.iso?token=new'

For a link that has expired: what was downloaded is kept, and continued if the new URL leads to the same file.";

pub(crate) const LIMIT_EXAMPLES: &str = "Examples:
  svc limit 3f2a 2.5M                              at once, also while it runs
  svc limit 3f2a 0                                 no limit of its own
  svc limit --turtle on                            the turtle_ limits of svc config server, for all";

pub(crate) const TAG_EXAMPLES: &str = "Examples:
  svc tag 3f2a linux iso                           replaces the tags that it has
  svc list --tag linux";

#[derive(Debug, clap::Args)]
pub struct RenameArgs {
    #[command(flatten)]
    which: OneArgs,
    /// The new name, without a directory
    name: String,
}

#[derive(Debug, clap::Args)]
pub struct ChangeUrlArgs {
    #[command(flatten)]
    which: OneArgs,
    /// The new URL
    #[arg(value_name = "URL", value_hint = clap::ValueHint::Url)]
    to: String,
}

#[derive(Debug, clap::Args)]
pub struct LimitArgs {
    /// Id of the task
    #[arg(required_unless_present = "turtle", requires = "rate")]
    id: Option<String>,
    /// Bytes per second, such as 2.5M; 0 for no limit
    #[arg(value_parser = amount::parse_rate)]
    rate: Option<u64>,
    /// Instead of a task's limit, switch the service to its alternative limits, or back
    #[arg(long, value_name = "SWITCH", conflicts_with = "id", value_parser = ["on", "off"])]
    turtle: Option<String>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub struct TagArgs {
    #[command(flatten)]
    which: OneArgs,
    /// The tags that it is to have; none removes all
    #[arg(value_name = "TAG")]
    tags: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// Id of the task
    id: String,
    #[command(flatten)]
    service: ServiceArgs,
}

impl OneArgs {
    /// A connection, and the complete id of the task.
    async fn open(&self, environment: &Environment) -> anyhow::Result<(Client, String)> {
        let mut client = self.service.connect(environment).await?;
        let id = one(&mut client, &self.id).await?;
        Ok((client, id))
    }
}

/// The complete id of a task.
async fn one(client: &mut Client, id: &String) -> anyhow::Result<String> {
    let found = find::tasks(client, std::slice::from_ref(id)).await?;
    Ok(found.into_iter().next().expect("an unknown id is an error"))
}

pub(crate) async fn rename(args: &RenameArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, task_id) = args.which.open(environment).await?;
    let sentence = format!("renamed {task_id} to {}", args.name);
    let file_name = args.name.clone();
    let params = RenameTaskParams { task_id, file_name };
    let answered: OkResult = client.call(Method::TaskRename, &params).await?;
    args.which.service.print_done(&answered, &sentence)
}

pub(crate) async fn change_url(args: &ChangeUrlArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, task_id) = args.which.open(environment).await?;
    let sentence = format!("changed the URL of {task_id}");
    let url = args.to.clone();
    let params = ChangeUrlParams { task_id, url };
    let changed: ChangedTask = client.call(Method::TaskChangeUrl, &params).await?;
    if let Some(notice) = &changed.notice {
        command::note(notice);
    }
    args.which.service.print_done(&changed, &sentence)
}

pub(crate) async fn limit(args: &LimitArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let (id, rate) = match (&args.turtle, &args.id, args.rate) {
        (Some(switch), ..) => return turtle(args, &mut client, switch == "on").await,
        (None, Some(id), Some(rate)) => (id, rate),
        (None, ..) => return Err(UsageError::new("RATE", "write the task and its limit, or --turtle").into()),
    };
    let task_id = one(&mut client, id).await?;
    let sentence = match rate {
        0 => format!("removed the limit of {task_id}"),
        rate => format!("limited {task_id} to {}", amount::rate(rate)),
    };
    let params = SpeedLimitParams {
        task_id,
        speed_limit_bytes: rate,
    };
    let answered: OkResult = client.call(Method::TaskSetSpeedLimit, &params).await?;
    args.service.print_done(&answered, &sentence)
}

/// Switches the alternative limits, and says which are in force then.
async fn turtle(args: &LimitArgs, client: &mut Client, is_on: bool) -> anyhow::Result<Exit> {
    let now: ConfigSnapshot = client.ask(Method::ConfigGet).await?;
    let patch = ConfigPatch {
        expected_revision: now.revision,
        values: [("turtle_enabled".to_owned(), is_on.to_string())].into(),
        ..ConfigPatch::default()
    };
    let _changed: ConfigSnapshot = client.call(Method::ConfigPatch, &patch).await?;
    let stats: RuntimeStats = client.ask(Method::RuntimeStats).await?;
    let shown = |limit| match limit {
        0 => "no limit".to_owned(),
        limit => amount::rate(limit),
    };
    let sentence = format!(
        "the turtle is {}: downloads {}, uploads {}",
        if is_on { "on" } else { "off" },
        shown(stats.download_limit_bps),
        shown(stats.upload_limit_bps)
    );
    args.service.print_done(&stats, &sentence)
}

pub(crate) async fn tag(args: &TagArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, task_id) = args.which.open(environment).await?;
    let sentence = match args.tags.as_slice() {
        [] => format!("removed the tags of {task_id}"),
        tags => format!("tagged {task_id}: {}", tags.join(", ")),
    };
    let tags = args.tags.clone();
    let answered: OkResult = client
        .call(Method::TaskSetTags, &TaskTagsParams { task_id, tags })
        .await?;
    args.which.service.print_done(&answered, &sentence)
}

pub(crate) async fn rescan(args: &AllArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let answered: OkResult = args.service.connect(environment).await?.ask(Method::TaskRescan).await?;
    let sentence = "looked for the files of all completed tasks; \"svc status\" marks those that are gone";
    args.service.print_done(&answered, sentence)
}
