//! `svc logs`: exports logs and diagnostics for a bug report.

mod bundle;

use std::{fs::OpenOptions, io::Write as _, path::PathBuf};

use anyhow::Context as _;
use command::{Exit, environment::Environment, log};
use protocol::Method;
use serde::Serialize;
use serde_json::{Value, json};

use self::bundle::Bundle;
use crate::{
    doctor,
    service::{Client, RemoteError, ServiceArgs, Target},
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc logs export                                  writes svc-logs-….zip and says where
  svc logs export -o - | ssh …                     to standard output

The archive has the log files, the findings of \"svc doctor\", versions, settings and the kinds of failures. It has no \
passwords, keys, cookies or queries of URLs: they are never logged.";

#[derive(Debug, clap::Subcommand)]
pub enum LogsCommand {
    /// Write logs, settings and versions, without secrets, into one archive
    #[command(after_help = EXAMPLES)]
    Export(ExportArgs),
}

#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The archive, - for standard output [default: svc-logs-TIME.zip in this directory]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

/// Answers of the service. A failed request is included as its error.
#[derive(Debug, Default, Serialize)]
struct Answers {
    describe: Value,
    stats: Value,
    gates: Value,
    config: Value,
    plugins: Value,
}

pub(crate) async fn run(command: &LogsCommand, environment: &Environment) -> anyhow::Result<Exit> {
    let LogsCommand::Export(args) = command;
    let mut bundle = Bundle::new();
    bundle.add_json("about.json", &about())?;
    bundle.add_json("doctor.json", &doctor::findings(&args.service, environment).await)?;
    let target = args.service.target(environment)?;
    bundle.add_json("service.json", &ask(&target).await)?;
    if let Some(data_dir) = target.own_data_dir() {
        for path in log::files(&data_dir.join(log::LOG_DIR)).context("cannot list the log files")? {
            bundle.add_end_of(&path)?;
        }
    }
    write(args, &bundle.finish()?)
}

fn about() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "system": std::env::consts::OS,
        "machine": std::env::consts::ARCH,
        "madeAt": jiff::Timestamp::now().to_string(),
    })
}

async fn ask(target: &Target) -> Answers {
    let mut client = match Client::connect(target).await {
        Ok(client) => client,
        Err(error) => {
            let describe = problem(&error);
            return Answers {
                describe,
                ..Answers::default()
            };
        }
    };
    let mut answers = Answers::default();
    for (method, part) in [
        (Method::DiagnosticsDescribe, &mut answers.describe),
        (Method::RuntimeStats, &mut answers.stats),
        (Method::GatewayGet, &mut answers.gates),
        (Method::ConfigGet, &mut answers.config),
        (Method::PluginList, &mut answers.plugins),
    ] {
        *part = client.ask(method).await.unwrap_or_else(|error| problem(&error));
    }
    answers
}

fn problem(error: &RemoteError) -> Value {
    json!({ "problem": error.to_string() })
}

fn write(args: &ExportArgs, archive: &[u8]) -> anyhow::Result<Exit> {
    if args.output.as_ref().is_some_and(|path| path.as_os_str() == "-") {
        return command::print_bytes(archive);
    }
    let usual = || PathBuf::from(format!("svc-logs-{}.zip", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S")));
    let path = args.output.clone().unwrap_or_else(usual);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&path).and_then(|mut file: std::fs::File| {
        file.write_all(archive)?;
        file.sync_all()
    });
    written.with_context(|| format!("cannot write {}", path.display()))?;
    let path = path.canonicalize().unwrap_or(path);
    let record = json!({ "path": path, "bytes": archive.len() });
    args.service.print_done(&record, &format!("wrote {}", path.display()))
}
