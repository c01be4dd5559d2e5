//! `svc open`: opens the web interface in a browser.

use std::process::{Command, Stdio};

use command::{Exit, environment::Environment};
use serde_json::json;

use crate::{page, service::ServiceArgs};

pub(crate) const EXAMPLES: &str = "Examples:
  svc open                                         on this machine; asks for no key
  svc open --print                                 print the address, good once for a minute
  svc open --url https://nas.example.com           another machine's; asks for its key";

/// What opens an address in the user's browser; part of every desktop.
const OPENER: &str = "xdg-open";

#[derive(Debug, clap::Args)]
pub struct OpenArgs {
    /// Print the address, and open nothing
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    service: ServiceArgs,
}

pub(crate) async fn run(args: &OpenArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let target = args.service.target(environment)?;
    let page = page::address(&target, "").await?;
    let is_opened = !args.print && open(&page);
    let record = json!({ "url": page, "opened": is_opened });
    let sentence = if is_opened {
        format!("opened the page of the service at {}", target.address)
    } else {
        page
    };
    args.service.print_done(&record, &sentence)
}

/// Whether a browser was started. Without a desktop there is none, and the address is printed.
fn open(page: &str) -> bool {
    let mut command = Command::new(OPENER);
    command.arg(page);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
