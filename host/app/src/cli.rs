//! The command line: what `svc` can be told to do, one file per command.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser, Subcommand, error::ErrorKind};

use crate::environment::Environment;

mod amount;
mod aria2c;
mod completions;
mod daemon;
mod doctor;
mod exit;
mod export;
mod get;
mod host;
mod import;
mod log;
mod logs;
mod man;
mod market;
mod plugin;
mod plugins;
mod remote;
mod serve;
mod stop;

pub use exit::Exit;

/// A download service.
#[derive(Debug, Parser)]
#[command(
    name = "svc",
    version,
    about = "A download service",
    arg_required_else_help = true,
    propagate_version = true
)]
#[command(after_long_help = exit::help())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Download files and wait until they are there
    #[command(after_help = get::EXAMPLES, after_long_help = get::long_help())]
    Get(Box<get::GetArgs>),
    /// Run the service as a server, for this machine and others
    #[command(after_help = serve::SERVE_HELP)]
    Serve(serve::ServeArgs),
    /// Run the service on a desktop, for this machine only; with --server the same as serve
    Agent(serve::AgentArgs),
    /// Run the part that owns the tasks alone; serve and agent start it themselves
    Daemon(daemon::DaemonArgs),
    #[command(flatten)]
    Remote(remote::RemoteCommand),
    /// Install and configure plugins, which know particular sites
    #[command(subcommand, after_help = plugin::EXAMPLES)]
    Plugin(plugin::PluginCommand),
    /// Get plugins from sources, and maintain such sources
    #[command(subcommand, help_template = market::help_template(), after_help = market::EXAMPLES)]
    Market(market::MarketCommand),
    /// Take over the downloads of another program
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Print what there is to download for another program
    #[command(subcommand)]
    Export(export::ExportCommand),
    /// Look for what keeps the service from working
    #[command(after_help = doctor::HELP)]
    Doctor(doctor::DoctorArgs),
    /// Hand what the service logged to somebody who looks for a cause
    #[command(subcommand)]
    Logs(logs::LogsCommand),
    /// Download and serve as aria2c does; the executable under that name is the same
    Aria2c(aria2c::Aria2cArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print a manual page
    Man(man::ManArgs),
}

/// A command line that cannot be carried out as given. The message names the option or field, what is wrong with it
/// and what is allowed, and never repeats a value that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
struct UsageError {
    /// The option, argument, or file and line.
    field: String,
    /// What is wrong and what is allowed.
    problem: String,
}

impl UsageError {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }
}

/// Carries out the command that `arguments` (the executable's name first) ask for. Every way a process of ours ends
/// comes through here and is one of [`Exit`], except the compiler of plugins, which only its parent listens to.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = spelled_out(arguments);
    if arguments.get(1).is_some_and(|command| command == plugins::COMPILE) {
        return plugin_wasm::compile_child_main();
    }
    if arguments.get(1).is_some_and(|command| command == aria2c::NAME) {
        return aria2c::main(arguments.split_off(2), &Environment::read());
    }
    let exit = match Cli::try_parse_from(arguments) {
        Ok(cli) => run(cli.command, &Environment::read()).unwrap_or_else(|error| report(&error)),
        Err(refusal) => refuse(&refusal),
    };
    ExitCode::from(exit.code())
}

/// `svc --server` and `svc agent --server` are `svc serve`; `aria2c` is `svc aria2c`.
fn spelled_out(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    const SERVER: &str = "--server";
    let mut arguments: Vec<_> = arguments.into_iter().collect();
    let is_agent = arguments.get(1).is_some_and(|command| command == "agent");
    if let Some(arguments) = aria2c::spelled_out(&arguments) {
        return arguments;
    }
    let server = arguments.iter().position(|argument| argument == SERVER);
    match server {
        Some(1) => arguments[1] = "serve".into(),
        Some(position) if is_agent => {
            arguments.remove(position);
            arguments[1] = "serve".into();
        }
        _ => {}
    }
    arguments
}

fn run(command: Command, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        Command::Get(args) => get::run(*args, environment),
        Command::Serve(args) => serve::serve(args, environment),
        Command::Agent(args) => serve::agent(args, environment),
        Command::Daemon(args) => daemon::run(args, environment),
        Command::Remote(command) => remote::run(command, environment),
        Command::Plugin(command) => plugin::run(command, environment),
        Command::Market(command) => market::run(command, environment),
        Command::Import(command) => import::run(command, environment),
        Command::Export(command) => export::run(command, environment),
        Command::Doctor(args) => doctor::run(&args, environment),
        Command::Logs(command) => logs::run(command, environment),
        Command::Aria2c(_) => unreachable!("it is carried out before arguments are read"),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
    }
}

/// Tells an error and says which exit it is.
fn report(error: &anyhow::Error) -> Exit {
    let _closed = writeln!(io::stderr(), "error: {error:#}");
    if error.is::<UsageError>() {
        Exit::Usage
    } else if let Some(error) = error.downcast_ref::<remote::RemoteError>() {
        if let Some(advice) = error.advice() {
            let _closed = writeln!(io::stderr(), "{advice}");
        }
        error.exit()
    } else if let Some(error) = error.downcast_ref::<market_tool::ToolError>() {
        if let Some(advice) = market::advice(error) {
            let _closed = writeln!(io::stderr(), "{advice}");
        }
        market::exit(error)
    } else if let Some(error) = error.downcast_ref::<::daemon::StartError>() {
        daemon::exit(error)
    } else if let Some(error) = error.downcast_ref::<agent::StartError>() {
        serve::exit(error)
    } else {
        Exit::Internal
    }
}

/// Tells what is not as somebody meant it, although the command goes on.
fn warn(problem: &UsageError) {
    let _closed = writeln!(io::stderr(), "warning: {problem}");
}

/// Prints what clap has to say: help and version are answers, the rest is wrong usage.
fn refuse(refusal: &clap::Error) -> Exit {
    let _closed = refusal.print();
    match refusal.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Success,
        _ => Exit::Usage,
    }
}

/// Prints what a command was asked for. A reader that wants only the start of it (`svc man | head`) is no failure.
fn print_whole(text: &[u8]) -> anyhow::Result<Exit> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(Exit::Success),
    }
}

#[cfg(test)]
mod tests;
