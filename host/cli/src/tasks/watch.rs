//! `svc watch`: follows what a service does.

mod events;
mod lines;
mod live;
mod sink;
mod view;

use std::io::{self, IsTerminal as _};

use command::{Exit, environment::Environment, print_lines};

use super::find;
use crate::service::{
    Observer, ServiceArgs,
    attend::{End, attend},
};

pub(crate) const HELP: &str = "On a terminal this is a table of unfinished tasks; in a pipe, a line for every change; with --json, a line for \
every event, {\"type\":…,\"data\":…}, the first of which is a snapshot. It reconnects after a lost connection, and ends with \
Ctrl-C, when the service shuts down, or, if tasks are named, when all of these have ended.";

#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// Only these tasks, until all of them have ended
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    service: ServiceArgs,
}

pub(crate) async fn run(args: &WatchArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let ids = if args.ids.is_empty() {
        Vec::new()
    } else {
        find::tasks(&mut client, &args.ids).await?
    };
    let view = view::View::new(ids);
    let address = client.target.address.to_string();
    let is_terminal = io::stdout().is_terminal() && !environment.is_dumb_terminal;
    let mut observer: Box<dyn Observer> = if args.service.json {
        Box::new(events::Events::new(io::stdout(), view))
    } else if is_terminal {
        Box::new(live::Live::new(view, address.clone()))
    } else {
        Box::new(lines::Lines::new(io::stdout(), view))
    };
    let end = attend(client, observer.as_mut()).await?;
    observer.look();
    // The output may be closed already.
    let _gone = observer.flush();
    drop(observer);
    match end {
        End::Quit if !args.service.json => print_lines([format!("the service at {address} ends")]),
        _ => Ok(Exit::Success),
    }
}
