//! `svc logs`: exports logs and diagnostics for a bug report.

mod bundle;

use std::path::PathBuf;

use anyhow::Context as _;

use command::{Exit, environment::Environment, log};
use protocol::{ExportResult, LogFile, Method};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::bundle::Bundle;
use crate::{
    doctor,
    service::{Client, RemoteError, ServiceArgs, Target, http},
};

/// The last bytes of each log file. All files together fit into an e-mail.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;

/// More than a service's export has, in which characters of the logs are escaped.
const MAX_EXPORT_BYTES: usize = 32 * 1024 * 1024;

pub(crate) const EXAMPLES: &str = "Examples:
  svc logs export                                  writes svc-logs-….zip and says where
  svc logs export -o - | ssh …                     to standard output
  svc logs export --url https://nas:17800          of a server elsewhere

The archive has the log files, the findings of \"svc doctor\", versions, settings and why tasks failed. It has no \
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
    failures: Value,
}

/// What a server has prepared for clients on other machines.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Export {
    failures: Value,
    logs: Vec<LogFile>,
}

pub(crate) async fn run(command: &LogsCommand, environment: &Environment) -> anyhow::Result<Exit> {
    let LogsCommand::Export(args) = command;
    let mut bundle = Bundle::new();
    bundle.add_json("about.json", &about())?;
    bundle.add_json("doctor.json", &doctor::findings(&args.service, environment).await)?;
    let target = args.service.target(environment)?;
    let (answers, exported) = ask(&target).await;
    bundle.add_json("service.json", &answers)?;
    let mut logs = match target.own_data_dir() {
        Some(data_dir) => {
            log::ends(&data_dir.join(log::LOG_DIR), MAX_LOG_BYTES).context("cannot read the log files")?
        }
        None => Vec::new(),
    };
    // An address of this machine may be the end of a tunnel, so what counts is whether there are logs here.
    if logs.is_empty() {
        match exported {
            Ok(exported) => logs.extend(exported.into_iter().filter_map(plain)),
            Err(error) => command::note(&format!("the archive has no logs: {error}")),
        }
    }
    for (name, text) in logs {
        bundle.add(&format!("logs/{name}"), &text)?;
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

/// A log of another machine. Its name becomes a path when the archive is unpacked, so it must not lead elsewhere.
fn plain(log: LogFile) -> Option<(String, Vec<u8>)> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let is_plain = !log.name.is_empty() && !log.name.starts_with('.') && log.name.bytes().all(is_plain);
    is_plain.then(|| (log.name, log.text.into_bytes()))
}

/// What the service says, and its log files.
async fn ask(target: &Target) -> (Answers, Result<Vec<LogFile>, RemoteError>) {
    let mut client = match Client::connect(target).await {
        Ok(client) => client,
        Err(error) => {
            let describe = problem(&error);
            let answers = Answers {
                describe,
                ..Answers::default()
            };
            return (answers, Err(error));
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
    let exported = export(target, &mut client).await;
    let exported = exported.map(|export| {
        answers.failures = export.failures;
        export.logs
    });
    answers.failures = match &exported {
        Ok(_) => answers.failures,
        Err(error) => problem(error),
    };
    (answers, exported)
}

/// Has a server prepare its diagnostics, and fetches them.
async fn export(target: &Target, client: &mut Client) -> Result<Export, RemoteError> {
    let ExportResult { export_id } = client.ask(Method::DiagnosticsPrepareLogExport).await?;
    let path = format!("/api/web/exports/{export_id}");
    http::download(target, &path, MAX_EXPORT_BYTES).await?.read(target)
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
    let path = std::path::absolute(path)?;
    private_files::replace(&path, archive)?;
    let record = json!({ "path": path, "bytes": archive.len() });
    args.service.print_done(&record, &format!("wrote {}", path.display()))
}
