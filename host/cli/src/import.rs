//! `svc import`: adds the downloads of another program to a service.

use std::{collections::BTreeSet, path::PathBuf};

use command::{Exit, environment::Environment, print_json, print_lines};
use import::{Download, Found, browser, curl, jdownloader, qbittorrent, transmission};
use protocol::{CreateTaskParams, CreatedTask, ErrorCode, Method, Reason};
use serde_json::json;

use crate::{
    file,
    service::{Client, RemoteError, ServiceArgs},
    tasks::torrent_file,
};

mod aria2;

/// The longest list of curl commands.
const MAX_COMMANDS_BYTES: u64 = 16 << 20;

const TORRENT_EXAMPLES: &str = "Every torrent keeps its directory, its files and their names, which of them are wanted, its \
trackers and limits, and whether it is paused. What is there is hashed, and used as far as it is right. Stop the other \
program first, so that only one of them writes. A torrent that is there already is left as it is.";

const CURL_EXAMPLES: &str = "Examples:
  svc import curl < copied.txt                     keeps cookies out of the list of processes
  svc import curl 'https://host/file' -H 'Cookie: a=b' --compressed

Developer tools of browsers copy such commands with \"Copy as cURL\". Several may follow each other.";

/// The program.
#[derive(Debug, clap::Subcommand)]
pub enum ImportCommand {
    /// Those of an aria2 session or input file
    #[command(after_help = aria2::EXAMPLES)]
    Aria2(aria2::Aria2Args),
    /// The torrents of qBittorrent
    #[command(visible_alias = "qb", after_help = TORRENT_EXAMPLES)]
    Qbittorrent(TorrentsArgs),
    /// The torrents of Transmission
    #[command(after_help = TORRENT_EXAMPLES)]
    Transmission(TorrentsArgs),
    /// The unfinished links of JDownloader 2
    Jdownloader(PathArgs),
    /// The unfinished downloads of Chromium, Chrome, Edge, Brave or Firefox
    Browser(PathArgs),
    /// Commands of curl, from arguments or standard input
    #[command(after_help = CURL_EXAMPLES)]
    Curl(CurlArgs),
}

#[derive(Debug, clap::Args)]
pub struct TorrentsArgs {
    /// Its data or configuration directory [default: the usual one]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directory: Option<PathBuf>,
    #[command(flatten)]
    how: HowArgs,
}

#[derive(Debug, clap::Args)]
pub struct PathArgs {
    /// Its directory: that of the program, or of the browser's profile; or the file in it that has the list
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    path: PathBuf,
    #[command(flatten)]
    how: HowArgs,
}

#[derive(Debug, clap::Args)]
pub struct CurlArgs {
    #[command(flatten)]
    how: HowArgs,
    /// The command, with or without the word curl; standard input if there is none
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct HowArgs {
    /// Print what would be added, and add nothing
    #[arg(long)]
    dry_run: bool,
    /// Add all of them paused
    #[arg(long)]
    paused: bool,
    #[command(flatten)]
    service: ServiceArgs,
}

/// The result of an import.
#[derive(Debug, Default)]
struct Report {
    added: Vec<String>,
    known: Vec<String>,
    refused: Vec<(String, String)>,
    notes: BTreeSet<String>,
}

pub(crate) async fn run(command: &ImportCommand, environment: &Environment) -> anyhow::Result<Exit> {
    let (found, how) = match command {
        ImportCommand::Aria2(args) => return aria2::run(args, environment).await,
        ImportCommand::Qbittorrent(args) => {
            let usual = dirs::data_local_dir();
            (
                qbittorrent::torrents(args.directory.as_deref(), usual.as_deref())?,
                &args.how,
            )
        }
        ImportCommand::Transmission(args) => {
            let usual = dirs::config_dir();
            (
                transmission::torrents(args.directory.as_deref(), usual.as_deref())?,
                &args.how,
            )
        }
        ImportCommand::Jdownloader(args) => (jdownloader::links(&args.path)?, &args.how),
        ImportCommand::Browser(args) => (browser::downloads(&args.path)?, &args.how),
        ImportCommand::Curl(args) if args.words.is_empty() => {
            let text = file::read_text("-".as_ref(), MAX_COMMANDS_BYTES)?;
            (curl::commands(&text)?, &args.how)
        }
        ImportCommand::Curl(args) => (curl::command(args.words.clone())?, &args.how),
    };
    add(found, how, environment).await
}

async fn add(found: Found, how: &HowArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let Found {
        downloads,
        refused,
        notes,
    } = found;
    let mut report = Report {
        refused: refused
            .into_iter()
            .map(|refused| (refused.title, refused.reason))
            .collect(),
        notes,
        ..Report::default()
    };
    if how.dry_run {
        report
            .added
            .extend(downloads.iter().map(|download| download.title.clone()));
        return report.print(how, "would be added");
    }
    let mut client = how.service.connect(environment).await?;
    for download in downloads {
        let task_id = Some(download.task_id());
        let Download {
            title,
            mut request,
            torrent,
            ..
        } = download;
        request.start_paused |= how.paused;
        if let Some(bytes) = torrent
            && let Err(error) = torrent_file::attach(&client, &mut request, &title, bytes).await
        {
            report.refused.push((title, error.to_string()));
            continue;
        }
        let params = CreateTaskParams {
            request,
            task_id,
            ..CreateTaskParams::default()
        };
        report.create(&mut client, title, params).await?;
    }
    report.print(how, "added")
}

impl Report {
    /// Creates a task, and notes what came of it. Fails only if the service cannot be asked.
    async fn create(&mut self, client: &mut Client, title: String, params: CreateTaskParams) -> anyhow::Result<()> {
        match client.call::<CreatedTask>(Method::TaskCreate, &params).await {
            Ok(created) => self.added.push(created.task_id),
            Err(RemoteError::Call(error)) if error.application_code() == Some(ErrorCode::Conflict) => {
                if error.data.as_ref().and_then(|data| data.reason) == Some(Reason::TorrentExists) {
                    self.notes.insert(format!("{title}: {}", error.message));
                } else {
                    self.known.extend(params.task_id);
                }
            }
            Err(RemoteError::Call(error)) => self.refused.push((title, error.message)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn print(self, how: &HowArgs, added_as: &str) -> anyhow::Result<Exit> {
        self.print_result(how.service.json, added_as)
    }

    fn print_result(self, is_json: bool, added_as: &str) -> anyhow::Result<Exit> {
        let Self {
            added,
            known,
            refused,
            notes,
        } = self;
        let exit = if refused.is_empty() { Exit::Success } else { Exit::Usage };
        if is_json {
            let refused: Vec<_> = refused
                .iter()
                .map(|(url, reason)| json!({"url": url, "reason": reason}))
                .collect();
            print_json(&json!({"added": added, "known": known, "refused": refused, "notes": notes}))?;
            return Ok(exit);
        }
        let lines = added.iter().map(|id| format!("{added_as} {id}"));
        let lines = lines.chain(known.iter().map(|id| format!("there already {id}")));
        let lines = lines.chain(
            refused
                .iter()
                .map(|(url, reason)| format!("not taken: {url}: {reason}")),
        );
        let lines = lines.chain(notes.iter().map(|note| format!("note: {note}")));
        print_lines(lines)?;
        Ok(exit)
    }
}
