//! `svc capture`: decides about downloads that browsers handed over to a desktop.

use command::{
    Exit, UsageError,
    amount::{self, counted},
    environment::Environment,
};
use protocol::{CaptureResolveParams, CaptureResolved, DownloadRequest, Method, PendingCaptureDto};
use serde_json::json;

use crate::{
    ids::{self, Known},
    service::{Client, ServiceArgs},
    table,
};

/// How much of a device's fingerprint is shown: its short form, as announcements have it.
const DEVICE_CHARS: usize = 12;

pub(crate) const EXAMPLES: &str = "Examples:
  svc capture                                      list what waits; each is dropped after an hour
  svc capture accept 3f2a
  svc capture accept 3f2a --out name.iso --dir ~/Images
  svc capture reject --all

A server adds such downloads at once, and so does a desktop with silent takeover: \
svc config server set silent_download_enabled=true";

#[derive(Debug, clap::Args)]
pub struct CaptureArgs {
    #[command(subcommand)]
    command: Option<CaptureCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum CaptureCommand {
    /// List waiting downloads
    #[command(visible_alias = "ls")]
    List,
    /// Add waiting downloads as tasks
    Accept {
        #[command(flatten)]
        which: WhichArgs,
        /// Name of the file, for a single download
        #[arg(short, long, value_name = "NAME")]
        out: Option<String>,
        /// Directory of the files
        #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        dir: Option<String>,
    },
    /// Drop waiting downloads
    Reject {
        #[command(flatten)]
        which: WhichArgs,
    },
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct WhichArgs {
    /// Ids of the downloads
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// All waiting downloads
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(args: &CaptureArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let waiting: Vec<PendingCaptureDto> = client.ask(Method::CaptureList).await?;
    match args.command.as_ref().unwrap_or(&CaptureCommand::List) {
        CaptureCommand::List => args.service.print(&waiting, || lines(&waiting)),
        CaptureCommand::Accept { which, out, dir } => {
            let ids = which.find(&waiting)?;
            if out.is_some() && ids.len() > 1 {
                return Err(UsageError::new("--out", "names one file; accept the downloads one by one").into());
            }
            let edited = (out.is_some() || dir.is_some()).then(|| DownloadRequest {
                filename: out.clone().unwrap_or_default(),
                save_dir: dir.clone().unwrap_or_default(),
                ..DownloadRequest::default()
            });
            let mut made = Vec::new();
            for id in &ids {
                made.extend(resolve(&mut client, id, true, edited.clone()).await?.task_ids);
            }
            let sentence = format!(
                "made {} of {}",
                counted(made.len(), "task"),
                counted(ids.len(), "download")
            );
            args.service
                .print_done(&json!({ "transactionIds": ids, "taskIds": made }), &sentence)
        }
        CaptureCommand::Reject { which } => {
            let ids = which.find(&waiting)?;
            for id in &ids {
                resolve(&mut client, id, false, None).await?;
            }
            let sentence = format!("rejected {}", counted(ids.len(), "download"));
            args.service.print_done(&json!({ "transactionIds": ids }), &sentence)
        }
    }
}

async fn resolve(
    client: &mut Client,
    id: &str,
    accepted: bool,
    request: Option<DownloadRequest>,
) -> anyhow::Result<CaptureResolved> {
    let params = CaptureResolveParams {
        transaction_id: id.to_owned(),
        accepted,
        request,
    };
    Ok(client.call(Method::CaptureResolve, &params).await?)
}

impl WhichArgs {
    /// The ids of the named downloads.
    fn find(&self, waiting: &[PendingCaptureDto]) -> anyhow::Result<Vec<String>> {
        let ids = waiting.iter().map(|capture| capture.transaction_id.clone());
        if self.all {
            return Ok(ids.collect());
        }
        Known::new("download", ids).find(&self.ids)
    }
}

/// The request of a download: its URL, with method and body unless it is a plain `GET`.
fn request_text(capture: &PendingCaptureDto) -> String {
    let url = capture.url.replace('\n', " ");
    let parts = [capture.method.as_str(), &url, &capture.body];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// The page that it was found on, or the device that sent it.
fn sender(capture: &PendingCaptureDto) -> String {
    match capture.created_by.strip_prefix("link:") {
        Some(device) => format!("device {}", ids::shorten(device, DEVICE_CHARS)),
        None => capture.referrer.clone(),
    }
}

fn lines(waiting: &[PendingCaptureDto]) -> Vec<String> {
    let shown = Known::new("download", waiting.iter().map(|capture| capture.transaction_id.clone())).shown_chars();
    let row = |capture: &PendingCaptureDto| {
        let size = match capture.file_size {
            0 => "unknown".to_owned(),
            bytes => amount::bytes(bytes),
        };
        [
            ids::shorten(&capture.transaction_id, shown).to_owned(),
            size,
            capture.file_name.clone(),
            sender(capture),
            request_text(capture),
        ]
    };
    table::lines(["ID", ">SIZE", "NAME", "FROM", "URL"], waiting.iter().map(row))
}
