//! `svc aria2c`, and `svc` under the name `aria2c`: a replacement of aria2 for front ends and scripts that start it.
//!
//! Engine, daemon and agent run in this process without persistent state; this crate drives them as a client of aria2's
//! RPC interface, so that every option means the same in both.
//!
//! *Owns* aria2c's command line, console output, hooks, exit codes and session file.
//!
//! *Never* bypasses the RPC interface where that has a method.
//!
//! # Layers
//! - `drive`: runs the downloads until all have ended
//! - `in_memory`: engine, daemon and agent in this process
//! - `session`
//! - `plan`: what a command line means
//! - `ledger`: what became of each download
//! - `document`: torrent files and Metalink documents
//! - `arguments`, `console`, `expansion`, `help`, `hooks`, `leftover`

mod arguments;
mod console;
mod document;
mod drive;
mod expansion;
mod help;
mod hooks;
mod in_memory;
mod ledger;
mod leftover;
mod plan;
mod session;

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use aria2::option::{Options, Refusal};
use command::{environment::Environment, runtime};
use tracing_subscriber::filter::LevelFilter;

use crate::{arguments::Invocation, console::Console, plan::Plan};

/// The name of the command and of the replaced program.
pub const NAME: &str = "aria2c";

/// aria2's exit code for errors outside of downloads.
const UNKNOWN_ERROR: u8 = 1;
const UNFINISHED: u8 = 7;
const BAD_OPTION: u8 = 28;

/// The command, for the lists of commands; [`main`] reads what follows it.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Aria2cArgs {
    /// Options and URIs as aria2c takes them; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Why the command does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    message: String,
    code: u8,
}

impl Refused {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: UNKNOWN_ERROR,
        }
    }

    /// An internal component does not start.
    fn of(error: impl Into<anyhow::Error>) -> Self {
        Self::new(format!("{:#}", error.into()))
    }

    /// The command line is invalid.
    fn usage(problem: impl std::fmt::Display) -> Self {
        Self {
            message: format!("{NAME}: {problem}\n{}", help::USAGE),
            code: BAD_OPTION,
        }
    }

    fn bad_value(option: &str, problem: &str) -> Self {
        Self {
            message: format!("We encountered a problem while processing the option '--{option}'. {problem}"),
            code: BAD_OPTION,
        }
    }

    fn within(self, file: &str) -> Self {
        Self {
            message: format!("Parse error in {file}\n{}", self.message),
            ..self
        }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self {
            message: refusal.to_string(),
            code: BAD_OPTION,
        }
    }
}

/// Inserts the subcommand if the executable was started under the name `aria2c`; none otherwise.
pub fn with_subcommand(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (program, rest) = arguments.split_first()?;
    let is_it = Path::new(program).file_stem().is_some_and(|name| name == NAME);
    is_it.then(|| {
        [program.clone(), NAME.into()]
            .into_iter()
            .chain(rest.iter().cloned())
            .collect()
    })
}

/// Executes the command with the arguments after its name.
pub fn main(arguments: Vec<OsString>, environment: &Environment) -> ExitCode {
    let code = run(arguments, environment).unwrap_or_else(|refused| {
        let _closed = writeln!(io::stderr(), "{refused}");
        refused.code
    });
    ExitCode::from(code)
}

fn run(arguments: Vec<OsString>, environment: &Environment) -> Result<u8, Refused> {
    let texts = arguments.into_iter().map(OsString::into_string);
    let texts: Vec<String> = texts
        .collect::<Result<_, _>>()
        .map_err(|_| Refused::usage("an argument is no text"))?;
    let given = match arguments::read(texts.iter().cloned())? {
        Invocation::Version => return Ok(print(&help::version())),
        Invocation::Help(about) => return Ok(print(&help::help(&about))),
        Invocation::Run(given) => given,
    };
    let plan = Plan::new(given, environment)?;
    if let Some(listing) = &plan.listing {
        return Ok(print(listing));
    }
    if plan.options.is_on("daemon") {
        return begin_in_background(texts);
    }
    log(&plan.options)?;
    let console = Console::new(&plan.options);
    let runtime = runtime::multi_thread().map_err(Refused::of)?;
    let ended = runtime.block_on(drive::drive(plan, console));
    // After a second stop request nothing is waited for.
    runtime.shutdown_background();
    ended
}

fn print(text: &str) -> u8 {
    let _reader_gone = io::stdout().write_all(text.as_bytes());
    0
}

/// Starts this command again, detached from the terminal.
fn begin_in_background(mut arguments: Vec<String>) -> Result<u8, Refused> {
    let end = arguments.iter().position(|argument| argument == "--");
    arguments.insert(end.unwrap_or(arguments.len()), "--daemon=false".to_owned());
    let program = std::env::current_exe().map_err(Refused::of)?;
    let mut command = Command::new(program);
    command.arg(NAME).args(arguments).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(Refused::of)?;
    Ok(0)
}

/// Logs to the named file; `-` is standard output.
fn log(options: &Options) -> Result<(), Refused> {
    let Some(path) = options.get("log").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let level = match options.get("log-level").unwrap_or("debug") {
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "notice" | "info" => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_max_level(level);
    let started = if path == "-" {
        subscriber.with_writer(io::stdout).try_init()
    } else {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| Refused::new(format!("Failed to open the file {path}, cause: {error}")))?;
        subscriber.with_writer(std::sync::Mutex::new(file)).try_init()
    };
    // Fails only if logging was started already in this process.
    let _already_started = started;
    Ok(())
}
