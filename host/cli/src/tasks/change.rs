//! Commands that change one task: rename, change-url, limit; and rescan.

use command::{Exit, amount, environment::Environment};
use protocol::{ChangeUrlParams, ChangedTask, Method, OkResult, RenameTaskParams, SpeedLimitParams};

use super::{find, list::AllArgs};
use crate::service::{Client, ServiceArgs};

pub(crate) const RENAME_EXAMPLES: &str = "Examples:
  svc rename 3f2a disk.iso                         also renames the file, if there is one";

pub(crate) const CHANGE_URL_EXAMPLES: &str = "Examples:
  svc change-url 3f2a 'https://host/disk.iso?token=new'

For a link that has expired: what was downloaded is kept, and continued if the new URL leads to the same file.";

pub(crate) const LIMIT_EXAMPLES: &str = "Examples:
  svc limit 3f2a 2.5M                              at once, also while it runs
  svc limit 3f2a 0                                 no limit of its own";

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
    #[command(flatten)]
    which: OneArgs,
    /// Bytes per second, such as 2.5M; 0 for no limit
    #[arg(value_parser = amount::parse_rate)]
    rate: u64,
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
        let found = find::tasks(&mut client, std::slice::from_ref(&self.id)).await?;
        Ok((client, found.into_iter().next().expect("an unknown id is an error")))
    }
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
    let (mut client, task_id) = args.which.open(environment).await?;
    let sentence = match args.rate {
        0 => format!("removed the limit of {task_id}"),
        rate => format!("limited {task_id} to {}", amount::rate(rate)),
    };
    let params = SpeedLimitParams {
        task_id,
        speed_limit_bytes: args.rate,
    };
    let answered: OkResult = client.call(Method::TaskSetSpeedLimit, &params).await?;
    args.which.service.print_done(&answered, &sentence)
}

pub(crate) async fn rescan(args: &AllArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let answered: OkResult = args.service.connect(environment).await?.ask(Method::TaskRescan).await?;
    let sentence = "looked for the files of all completed tasks; \"svc status\" marks those that are gone";
    args.service.print_done(&answered, sentence)
}
