//! The commands that talk to a running service, here or elsewhere.
//!
//! Read [`target`] (which service, which key), [`client`] (the connection), then a command.

mod add;
mod address;
mod attend;
mod capture;
mod client;
mod config;
mod dial;
mod error;
mod file;
mod follow;
mod greet;
mod http;
mod ids;
mod market;
mod plugin;
mod preview;
mod queue;
mod setup;
mod table;
mod target;
mod tasks;
mod watch;

use std::io::{self, Write as _};

use anyhow::Context as _;
use serde::Serialize;

use super::{Exit, get::render};
use crate::environment::Environment;

pub(super) use address::Address;
pub(super) use attend::{Audience, attend};
pub(super) use client::Client;
pub(super) use config::{parse_pair, read_value};
pub(super) use error::RemoteError;
pub(super) use greet::greet;
pub(super) use market::MarketCommand;
pub(super) use plugin::PluginCommand;
pub(super) use target::{ServiceArgs, Target};

/// How these commands name themselves.
const CLIENT: &str = concat!("svc/", env!("CARGO_PKG_VERSION"));

/// A command for a service.
#[derive(Debug, clap::Subcommand)]
pub(super) enum RemoteCommand {
    /// Ask whether a service answers; needs no access key
    #[command(after_help = greet::PING_EXAMPLES)]
    Ping(greet::PingArgs),
    /// Show what a service is and what it does now
    Info(greet::InfoArgs),
    /// Set the first access key of a new service
    #[command(after_help = setup::EXAMPLES)]
    Setup(setup::SetupArgs),
    /// Hand downloads to the service
    #[command(after_help = add::EXAMPLES, after_long_help = add::long_help())]
    Add(Box<add::AddArgs>),
    /// List tasks
    #[command(visible_alias = "ls", after_help = tasks::LIST_EXAMPLES)]
    List(tasks::ListArgs),
    /// Show one task in full, with what happened to it
    #[command(visible_alias = "stat")]
    Status(tasks::StatusArgs),
    /// Pause tasks
    Pause(tasks::IdsArgs),
    /// Resume tasks that are paused or have failed
    Resume(tasks::IdsArgs),
    /// Remove tasks; finished files stay unless --files is given
    Rm(tasks::RemoveArgs),
    /// Pause all tasks
    PauseAll(tasks::AllArgs),
    /// Resume all paused tasks
    ResumeAll(tasks::AllArgs),
    /// List and change queues
    #[command(after_help = queue::EXAMPLES)]
    Queue(queue::QueueArgs),
    /// Answer for downloads that browsers handed over
    #[command(after_help = capture::EXAMPLES)]
    Capture(capture::CaptureArgs),
    /// Follow what the service does
    #[command(after_help = watch::HELP)]
    Watch(watch::WatchArgs),
    /// What these commands remember, and the service's own settings
    #[command(after_help = config::EXAMPLES)]
    Config(config::ConfigArgs),
}

/// Carries out the command.
pub(super) fn run(command: RemoteCommand, environment: &Environment) -> anyhow::Result<Exit> {
    runtime()?.block_on(async {
        match command {
            RemoteCommand::Ping(args) => greet::ping(&args, environment).await,
            RemoteCommand::Info(args) => greet::info(&args, environment).await,
            RemoteCommand::Setup(args) => setup::run(&args, environment).await,
            RemoteCommand::Add(args) => add::run(*args, environment).await,
            RemoteCommand::List(args) => tasks::list(&args, environment).await,
            RemoteCommand::Status(args) => tasks::status(&args, environment).await,
            RemoteCommand::Pause(args) => tasks::pause(&args, environment).await,
            RemoteCommand::Resume(args) => tasks::resume(&args, environment).await,
            RemoteCommand::Rm(args) => tasks::remove(&args, environment).await,
            RemoteCommand::PauseAll(args) => tasks::pause_all(&args, environment).await,
            RemoteCommand::ResumeAll(args) => tasks::resume_all(&args, environment).await,
            RemoteCommand::Queue(args) => queue::run(&args, environment).await,
            RemoteCommand::Capture(args) => capture::run(&args, environment).await,
            RemoteCommand::Watch(args) => watch::run(&args, environment).await,
            RemoteCommand::Config(args) => config::run(&args, environment).await,
        }
    })
}

/// Carries out a command about the plugins of a service.
pub(super) fn run_plugin(command: PluginCommand, environment: &Environment) -> anyhow::Result<Exit> {
    runtime()?.block_on(plugin::run(command, environment))
}

/// Carries out a command about where the plugins of a service come from.
pub(super) fn run_market(command: MarketCommand, environment: &Environment) -> anyhow::Result<Exit> {
    runtime()?.block_on(market::run(command, environment))
}

/// One thread is enough: these commands wait for one connection.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")
}

/// Prints lines for people. Nothing in them controls a terminal.
pub(super) fn print_lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> anyhow::Result<Exit> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&render::printable(line.as_ref()));
        text.push('\n');
    }
    super::print_whole(text.as_bytes())
}

/// Says something beside what is printed. Who does not listen any more misses nothing.
fn tell_aside(sentence: &str) {
    let _unheard = writeln!(io::stderr(), "{}", render::printable(sentence));
}

/// Prints a record for scripts.
pub(super) fn print_json(record: &impl Serialize) -> anyhow::Result<Exit> {
    let mut text = serde_json::to_string_pretty(record).context("cannot write JSON")?;
    text.push('\n');
    super::print_whole(text.as_bytes())
}

/// Prints what was done: as JSON, or as a sentence.
fn print_done(args: &ServiceArgs, record: &impl Serialize, sentence: &str) -> anyhow::Result<Exit> {
    if args.json {
        print_json(record)
    } else {
        print_lines([sentence])
    }
}
