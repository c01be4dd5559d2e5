//! The executable `svc`: combines the commands of all crates, and maps their results to exit codes.

mod completions;
mod daemon;
mod man;
mod plugin;
mod process;
mod restart;
mod self_update;
mod serve;
mod sibling;
mod sources;

use std::{
    ffi::OsString,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser, Subcommand, error::ErrorKind};
use command::{
    Exit, UsageError, dumpable,
    environment::{self, Environment},
    exit,
};

use crate::{plugins, programs};

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
struct Cli<C: Subcommand> {
    #[command(subcommand)]
    command: C,
}

/// The command that other programs call for each file. It is parsed without the descriptions of all others, which take
/// longer to build than a small file to download.
#[derive(Debug, Subcommand)]
enum Download {
    /// Download files and wait until they are there
    #[command(after_help = get::EXAMPLES, after_long_help = get::long_help())]
    Get(Box<get::GetArgs>),
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Download(Download),
    /// Run the service as a server, for this machine and others
    #[command(after_help = serve::SERVE_HELP)]
    Serve(serve::ServeArgs),
    /// Run the service on a desktop, for this machine only; with --server the same as serve
    Agent(serve::AgentArgs),
    /// Run the part that owns the tasks alone; serve and agent start it themselves
    Daemon(daemon::DaemonArgs),
    #[command(flatten)]
    Client(cli::ClientCommand),
    /// Install and configure plugins, which know particular sites
    #[command(subcommand, after_help = plugin::EXAMPLES)]
    Plugin(plugin::PluginCommand),
    /// Get plugins from sources, and maintain such sources
    #[command(subcommand, help_template = sources::help_template(), after_help = sources::EXAMPLES)]
    Market(sources::MarketCommand),
    #[command(flatten)]
    Maintenance(cli::MaintenanceCommand),
    /// Download and serve as aria2c does; the executable under that name is the same
    Aria2c(aria2c::Aria2cArgs),
    /// Make the desktop open links and files with Svc, and start it with the session
    #[command(after_help = desktop::EXAMPLES)]
    Integrate(desktop::IntegrateArgs),
    /// Update what install.sh installed
    #[command(after_help = self_update::HELP)]
    SelfUpdate(self_update::SelfUpdateArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print a manual page
    Man(man::ManArgs),
}

/// Executes the command line (with the executable's name first). The only place where a process of Svc ends with an
/// [`Exit`]; the exceptions are the plugin compiler, the unpacker and supervisors of tools, whose parents know their codes.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = normalized(arguments);
    // Before anything else: it enters namespaces, which needs a process with one thread and access to its own `/proc`.
    if arguments.get(1).is_some_and(|command| command == programs::RUN_TOOL) {
        return tools::supervisor_main(arguments.split_off(2));
    }
    // Every command may hold a secret: a key, a login, cookies.
    if environment::variable(environment::DEBUGGABLE).is_none() {
        dumpable::forbid();
    }
    if arguments.get(1).is_some_and(|command| command == plugins::COMPILE) {
        return plugin_wasm::compile_child_main();
    }
    if arguments.get(1).is_some_and(|command| command == programs::UNPACK) {
        return post::unpack_child_main();
    }
    if arguments.get(1).is_some_and(|command| command == aria2c::NAME) {
        return aria2c::main(arguments.split_off(2), &Environment::read());
    }
    let exit = match parse(arguments) {
        Ok(command) => run(command, &Environment::read()).unwrap_or_else(|error| report(&error)),
        Err(refusal) => refuse(&refusal),
    };
    ExitCode::from(exit.code())
}

fn parse(arguments: Vec<OsString>) -> Result<Command, clap::Error> {
    if arguments.get(1).is_some_and(|command| command == "get") {
        Cli::try_parse_from(arguments).map(|cli| Command::Download(cli.command))
    } else {
        Cli::try_parse_from(arguments).map(|cli| cli.command)
    }
}

/// Maps `svc --server` and `svc agent --server` to `svc serve`, and `aria2c` to `svc aria2c`.
fn normalized(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    const SERVER: &str = "--server";
    let mut arguments: Vec<_> = arguments.into_iter().collect();
    let is_agent = arguments.get(1).is_some_and(|command| command == "agent");
    if let Some(arguments) = aria2c::with_subcommand(&arguments) {
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
        Command::Download(Download::Get(args)) => get::run(*args, environment),
        Command::Serve(args) => serve::serve(args, environment),
        Command::Agent(args) => serve::agent(args, environment),
        Command::Daemon(args) => daemon::run(args, environment),
        Command::Client(command) => cli::run(&command, environment),
        Command::Plugin(command) => plugin::run(command, environment),
        Command::Market(command) => sources::run(command, environment),
        Command::Maintenance(command) => cli::run_maintenance(&command, environment),
        Command::Aria2c(_) => unreachable!("it is carried out before arguments are read"),
        Command::Integrate(args) => desktop::run(&args),
        Command::SelfUpdate(args) => self_update::run(&args),
        Command::Completions(args) => completions::run(&args, Cli::<Command>::command()),
        Command::Man(args) => man::run(&args, Cli::<Command>::command()),
    }
}

/// Prints an error and returns its exit.
fn report(error: &anyhow::Error) -> Exit {
    // It may repeat what a server said.
    let text = format!("{error:#}");
    for (line, head) in text
        .lines()
        .zip(std::iter::once("error: ").chain(std::iter::repeat("")))
    {
        let _closed = writeln!(io::stderr(), "{head}{}", command::terminal::printable(line));
    }
    if error.is::<UsageError>() {
        Exit::Usage
    } else if let Some(error) = error.downcast_ref::<cli::RemoteError>() {
        if let Some(advice) = error.advice() {
            let _closed = writeln!(io::stderr(), "{advice}");
        }
        error.exit()
    } else if let Some(error) = error.downcast_ref::<market_tool::ToolError>() {
        if let Some(advice) = author::advice(error) {
            let _closed = writeln!(io::stderr(), "{advice}");
        }
        author::exit(error)
    } else if let Some(error) = error.downcast_ref::<::daemon::StartError>() {
        daemon::exit(error)
    } else if let Some(error) = error.downcast_ref::<::agent::StartError>() {
        serve::exit(error)
    } else {
        Exit::Internal
    }
}

/// Prints clap's output: help and version succeed, the rest is a usage error.
fn refuse(refusal: &clap::Error) -> Exit {
    let _closed = refusal.print();
    match refusal.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Success,
        _ => Exit::Usage,
    }
}

#[cfg(test)]
mod tests;
