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
mod completions;
mod exit;
mod get;
mod log;
mod man;

pub use exit::Exit;

/// A download service.
#[derive(Debug, Parser)]
#[command(
    name = "svc",
    version,
    about = "Download files",
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
/// comes through here and is one of [`Exit`].
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let exit = match Cli::try_parse_from(arguments) {
        Ok(cli) => run(cli.command, &Environment::read()).unwrap_or_else(|error| report(&error)),
        Err(refusal) => refuse(&refusal),
    };
    ExitCode::from(exit.code())
}

fn run(command: Command, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        Command::Get(args) => get::run(*args, environment),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
    }
}

/// Tells an error and says which exit it is.
fn report(error: &anyhow::Error) -> Exit {
    let _closed = writeln!(io::stderr(), "error: {error:#}");
    if error.is::<UsageError>() {
        Exit::Usage
    } else {
        Exit::Internal
    }
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
