//! `svc torrent` for tasks of a service: what is known of their torrents, and what can be changed.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::Context as _;
use command::{Exit, UsageError, amount, environment::Environment};
use data_encoding::BASE64;
use protocol::{
    CreateTaskRequest, Method, OkResult, RenameTorrentFileParams, SeedLimitParams, TaskDto, TaskIdParams,
    TorrentChange, TorrentChangeParams, TorrentDto, TorrentExport, TorrentFileDto, TorrentFiles, TorrentFilesParams,
    TorrentPeerDto, TorrentPeers, TorrentPieces, TorrentPiecesParams, TorrentSessionDto, TorrentTrackerDto,
    TorrentTrackers, TrackerListsRefreshed,
};
use serde_json::json;

use super::limit::{Limit, Numbers};
use crate::{
    service::{Client, ServiceArgs},
    table,
    tasks::find,
};

/// What `svc torrent pieces` draws in a line.
const PIECES_PER_LINE: usize = 64;

#[derive(Debug, clap::Subcommand)]
pub(super) enum TaskCommand {
    /// Show the torrent of a task, and its swarm
    #[command(visible_alias = "info")]
    Status(OneArgs),
    /// List the files of a task's torrent
    Files(OneArgs),
    /// List the peers that are connected
    Peers(OneArgs),
    /// List the trackers, and what they answered last
    Trackers(OneArgs),
    /// Show which pieces are there
    Pieces(OneArgs),
    /// Choose the files to download, also while it runs and when it is complete
    Select(SelectArgs),
    /// Change the order of pieces, additional trackers and limits
    Set(SetArgs),
    /// Give a file another path in the torrent's directory
    RenameFile(RenameFileArgs),
    /// Hash what is on the disk, and download again what is wrong
    Recheck(OneArgs),
    /// Ask the trackers for peers now
    #[command(visible_alias = "reannounce")]
    Announce(OneArgs),
    /// Save the .torrent file of a task, or print its magnet link
    Export(ExportArgs),
    /// Set when the seeding of a task ends, and its upload limit
    Seed(SeedArgs),
    /// Show the port that accepts peers, and the distributed hash table
    Session(NoArgs),
    /// Read the subscribed lists of trackers now
    RefreshTrackers(NoArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct OneArgs {
    /// Id of the task
    id: String,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct NoArgs {
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct SelectArgs {
    /// Id of the task
    id: String,
    /// Their numbers as "svc torrent files" shows them, such as 1,4-7; or "all"
    #[arg(value_name = "NUMBERS")]
    files: Numbers,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct SetArgs {
    /// Id of the task
    id: String,
    /// Download from the beginning to the end, instead of the rarest pieces first
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    sequential: Option<bool>,
    /// Download the beginning and the end of each file first, which players need
    #[arg(long, value_name = "BOOLEAN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    first_last_first: Option<bool>,
    /// Additional tracker, in place of those that were added before; repeatable
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    tracker: Vec<String>,
    /// Remove all additional trackers
    #[arg(long, conflicts_with = "tracker")]
    no_trackers: bool,
    /// Connections to peers at most; 0 for the service's number
    #[arg(long, value_name = "N")]
    max_peers: Option<u16>,
    /// Fail after so many seconds without a byte; 0 to wait for ever
    #[arg(long, value_name = "SECONDS")]
    stop_timeout: Option<u32>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct RenameFileArgs {
    /// Id of the task
    id: String,
    /// Number of the file, as "svc torrent files" shows it
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
    /// Its new path, below the directory of the torrent
    path: String,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// Id of the task
    id: String,
    /// Name of the .torrent file [default: the torrent's own, in the current directory]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "magnet")]
    out: Option<PathBuf>,
    /// Print the magnet link, and save no file
    #[arg(long)]
    magnet: bool,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct SeedArgs {
    /// Id of the task
    id: String,
    /// Uploaded bytes by the torrent's size, such as 1.5; "none", or "default" for the service's
    #[arg(long, value_name = "RATIO", value_parser = Limit::ratio)]
    ratio: Option<Limit>,
    /// Minutes of seeding; "none", or "default" for the service's
    #[arg(long, value_name = "MINUTES", value_parser = Limit::minutes)]
    time: Option<Limit>,
    /// Minutes without an upload; "none", or "default" for the service's
    #[arg(long, value_name = "MINUTES", value_parser = Limit::minutes)]
    idle: Option<Limit>,
    /// Bytes per second that it uploads at most, such as 500K; 0 for no limit
    #[arg(long, value_name = "RATE", value_parser = amount::parse_rate)]
    upload_limit: Option<u64>,
    #[command(flatten)]
    service: ServiceArgs,
}

pub(super) async fn run(command: &TaskCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        TaskCommand::Status(args) => status(args, environment).await,
        TaskCommand::Files(args) => files(args, environment).await,
        TaskCommand::Peers(args) => peers(args, environment).await,
        TaskCommand::Trackers(args) => trackers(args, environment).await,
        TaskCommand::Pieces(args) => pieces(args, environment).await,
        TaskCommand::Select(args) => select(args, environment).await,
        TaskCommand::Set(args) => set(args, environment).await,
        TaskCommand::RenameFile(args) => rename_file(args, environment).await,
        TaskCommand::Recheck(args) => {
            let sentence = "checks what is on the disk; \"svc torrent pieces\" shows what is there";
            tell(args, environment, Method::TorrentRecheck, sentence).await
        }
        TaskCommand::Announce(args) => {
            let sentence = "asks its trackers, as soon as each allows";
            tell(args, environment, Method::TorrentReannounce, sentence).await
        }
        TaskCommand::Export(args) => export(args, environment).await,
        TaskCommand::Seed(args) => seed(args, environment).await,
        TaskCommand::Session(args) => session(args, environment).await,
        TaskCommand::RefreshTrackers(args) => refresh_trackers(args, environment).await,
    }
}

/// A connection, and the complete id of the task.
async fn open(service: &ServiceArgs, id: &str, environment: &Environment) -> anyhow::Result<(Client, String)> {
    let mut client = service.connect(environment).await?;
    let found = find::tasks(&mut client, &[id.to_owned()]).await?;
    Ok((client, found.into_iter().next().expect("an unknown id is an error")))
}

impl OneArgs {
    async fn open(&self, environment: &Environment) -> anyhow::Result<(Client, TaskIdParams)> {
        let (client, task_id) = open(&self.service, &self.id, environment).await?;
        Ok((client, TaskIdParams { task_id }))
    }
}

async fn tell(args: &OneArgs, environment: &Environment, method: Method, what: &str) -> anyhow::Result<Exit> {
    let (mut client, params) = args.open(environment).await?;
    let answered: OkResult = client.call(method, &params).await?;
    args.service
        .print_done(&answered, &format!("{} {what}", params.task_id))
}

async fn status(args: &OneArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, params) = args.open(environment).await?;
    let torrent: TorrentDto = client.call(Method::TorrentGet, &params).await?;
    args.service.print(&torrent, || status_lines(&torrent))
}

fn status_lines(torrent: &TorrentDto) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |label: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("{label:<11}{value}"));
        }
    };
    line("Name", torrent.name.clone());
    line("Info hash", torrent.info_hash.clone());
    if torrent.has_metadata {
        line(
            "Size",
            format!(
                "{} in {}",
                amount::bytes(torrent.total_bytes),
                amount::counted(torrent.file_count, "file")
            ),
        );
        let (have, all) = (torrent.pieces_have, torrent.pieces);
        line(
            "Pieces",
            format!("{have} of {all}, each of {}", amount::bytes(torrent.piece_bytes.into())),
        );
    } else {
        line(
            "Metadata",
            "not known yet: peers of the magnet link have not sent it".to_owned(),
        );
    }
    if torrent.is_private {
        line("Private", "yes: peers come from its trackers only".to_owned());
    }
    line("Comment", torrent.comment.clone());
    line("Created by", torrent.created_by.clone());
    let swarm = match (torrent.is_running, torrent.is_seeding) {
        (false, _) => "not running".to_owned(),
        (true, is_seeding) => {
            let does = if is_seeding { "seeds" } else { "downloads" };
            let (peers, seeds) = (amount::counted(torrent.peers, "peer"), torrent.seeds);
            format!("{does}, {peers} connected, {seeds} of them complete")
        }
    };
    line("Swarm", swarm);
    for tier in &torrent.trackers {
        line("Tracker", tier.join(", "));
    }
    for url in &torrent.webseeds {
        line("Webseed", url.clone());
    }
    line("Magnet", torrent.magnet.clone());
    lines
}

/// All files, page by page.
async fn all_files(client: &mut Client, task_id: &str) -> anyhow::Result<Vec<TorrentFileDto>> {
    let mut files = Vec::new();
    let mut offset = 0;
    loop {
        let params = TorrentFilesParams {
            task_id: task_id.to_owned(),
            offset,
            limit: None,
        };
        let page: TorrentFiles = client.call(Method::TorrentFiles, &params).await?;
        files.extend(page.files);
        match page.next_offset {
            Some(next) if next > offset => offset = next,
            _ => return Ok(files),
        }
    }
}

async fn files(args: &OneArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, params) = args.open(environment).await?;
    let files = all_files(&mut client, &params.task_id).await?;
    args.service.print(&json!({ "files": files }), || {
        let rows = files.iter().map(|file| {
            let done = format!("{}%", amount::percent(file.done_bytes, file.size_bytes));
            [
                (file.index + 1).to_string(),
                amount::bytes(file.size_bytes),
                if file.wanted { done } else { "skip".to_owned() },
                file.renamed.as_ref().unwrap_or(&file.path).clone(),
            ]
        });
        table::lines([">NUMBER", ">SIZE", ">DONE", "PATH"], rows)
    })
}

async fn peers(args: &OneArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, params) = args.open(environment).await?;
    let found: TorrentPeers = client.call(Method::TorrentPeers, &params).await?;
    args.service.print(&found, || {
        let rows = found.peers.iter().map(|peer: &TorrentPeerDto| {
            let address = if peer.ip.contains(':') {
                format!("[{}]:{}", peer.ip, peer.port)
            } else {
                format!("{}:{}", peer.ip, peer.port)
            };
            [
                address,
                peer.client.clone(),
                if peer.is_seed {
                    "all".to_owned()
                } else {
                    peer.pieces.to_string()
                },
                amount::rate(peer.download_bps),
                amount::rate(peer.upload_bps),
                peer.source.clone(),
            ]
        });
        table::lines(["ADDRESS", "CLIENT", ">PIECES", ">DOWN", ">UP", "FOUND BY"], rows)
    })
}

async fn trackers(args: &OneArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, params) = args.open(environment).await?;
    let found: TorrentTrackers = client.call(Method::TorrentTrackers, &params).await?;
    args.service.print(&found, || {
        let rows = found.trackers.iter().map(|tracker: &TorrentTrackerDto| {
            let count = |count: Option<u32>| count.map(|count| count.to_string()).unwrap_or_default();
            let next = tracker.next_announce_secs.map(Duration::from_secs);
            [
                tracker.url.clone(),
                tracker.status.clone(),
                count(tracker.seeds),
                count(tracker.leechers),
                next.map(amount::duration).unwrap_or_default(),
                tracker.message.clone(),
            ]
        });
        table::lines(["URL", "STATUS", ">SEEDS", ">LEECHERS", ">NEXT IN", "MESSAGE"], rows)
    })
}

async fn pieces(args: &OneArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, TaskIdParams { task_id }) = args.open(environment).await?;
    let params = TorrentPiecesParams {
        task_id,
        offset: 0,
        limit: None,
    };
    let found: TorrentPieces = client.call(Method::TorrentPieces, &params).await?;
    args.service.print(&found, || piece_lines(&found))
}

/// A line of `#` and `.` for each so many pieces.
fn piece_lines(pieces: &TorrentPieces) -> Vec<String> {
    let has = |piece: usize| {
        let digit = pieces.bitfield.as_bytes().get(piece / 4).copied().unwrap_or(b'0');
        let digit = char::from(digit).to_digit(16).unwrap_or(0);
        digit & (8 >> (piece % 4)) != 0
    };
    let count = pieces.pieces as usize;
    let head = format!(
        "{} of {count} pieces of {}",
        pieces.pieces_have,
        amount::bytes(pieces.piece_bytes.into())
    );
    let starts = (0..count).step_by(PIECES_PER_LINE);
    let rows = starts.map(|start| {
        let end = (start + PIECES_PER_LINE).min(count);
        let marks: String = (start..end).map(|piece| if has(piece) { '#' } else { '.' }).collect();
        format!("{start:>8} {marks}")
    });
    std::iter::once(head).chain(rows).collect()
}

async fn select(args: &SelectArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, task_id) = open(&args.service, &args.id, environment).await?;
    let sentence = format!("{task_id} downloads {}", args.files);
    let change = TorrentChange {
        files: Some(args.files.places()),
        ..TorrentChange::default()
    };
    let answered: OkResult = client
        .call(Method::TorrentChange, &TorrentChangeParams { task_id, change })
        .await?;
    args.service.print_done(&answered, &sentence)
}

async fn set(args: &SetArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let change = TorrentChange {
        sequential: args.sequential,
        first_last_piece_first: args.first_last_first,
        trackers: (args.no_trackers || !args.tracker.is_empty()).then(|| args.tracker.clone()),
        max_peers: args.max_peers,
        stall_timeout_secs: args.stop_timeout,
        ..TorrentChange::default()
    };
    if change == TorrentChange::default() {
        return Err(UsageError::new("svc torrent set", "name what is to change, such as --sequential").into());
    }
    let (mut client, task_id) = open(&args.service, &args.id, environment).await?;
    let sentence = format!("changed {task_id}");
    let answered: OkResult = client
        .call(Method::TorrentChange, &TorrentChangeParams { task_id, change })
        .await?;
    args.service.print_done(&answered, &sentence)
}

async fn rename_file(args: &RenameFileArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, task_id) = open(&args.service, &args.id, environment).await?;
    let sentence = format!("renamed file {} of {task_id} to {}", args.number, args.path);
    let params = RenameTorrentFileParams {
        task_id,
        index: args.number - 1,
        path: args.path.clone(),
    };
    let answered: OkResult = client.call(Method::TorrentRenameFile, &params).await?;
    args.service.print_done(&answered, &sentence)
}

async fn export(args: &ExportArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, task_id) = open(&args.service, &args.id, environment).await?;
    let export: TorrentExport = client.call(Method::TorrentExport, &TaskIdParams { task_id }).await?;
    if args.magnet {
        let magnet = json!({ "magnet": export.magnet });
        return args.service.print(&magnet, || vec![export.magnet.clone()]);
    }
    if export.torrent_b64.is_empty() {
        let message = "the metadata of the magnet link is not known yet: resume the task, or use --magnet";
        return Err(anyhow::anyhow!(message));
    }
    let bytes = BASE64.decode(export.torrent_b64.as_bytes());
    let bytes = bytes.context("the service sent a torrent that is not in base64")?;
    // A service may be another machine: of the name that it sends, only the last part counts.
    let name = transfer::FileName::sanitise(&export.file_name);
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(name.as_str()));
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create_new(args.out.is_none());
    let file = if args.out.is_some() {
        file.create(true).truncate(true)
    } else {
        file
    };
    let written = file
        .open(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &bytes));
    written.with_context(|| format!("cannot write {}; choose another name with --out", path.display()))?;
    let saved = json!({ "file": path.display().to_string() });
    args.service.print_done(&saved, &format!("saved {}", path.display()))
}

async fn seed(args: &SeedArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let (mut client, task_id) = open(&args.service, &args.id, environment).await?;
    let named = TaskIdParams {
        task_id: task_id.clone(),
    };
    let before: TaskDto = client.call(Method::TaskGet, &named).await?;
    let options: CreateTaskRequest = client.call(Method::TaskRequest, &named).await?;
    let or = |given: Option<Limit>, before: i64| given.map_or(before, Limit::number);
    let params = SeedLimitParams {
        ratio_limit_milli: or(args.ratio, before.seed_ratio_limit_milli),
        post_ratio_limit_milli: before.seed_post_ratio_limit_milli,
        seed_time_limit_minutes: or(args.time, before.seed_time_limit_minutes),
        // Kept to the second if it is not changed.
        seed_time_limit_secs: if args.time.is_none() {
            options.seed_time_limit_secs
        } else {
            None
        },
        inactive_time_limit_minutes: or(args.idle, before.seed_inactive_time_limit_minutes),
        upload_limit_bps: args.upload_limit.unwrap_or(options.upload_limit_bytes),
        task_id,
    };
    let answered: OkResult = client.call(Method::TaskSetSeedLimits, &params).await?;
    let sentence = format!("changed the seeding of {}", params.task_id);
    args.service.print_done(&answered, &sentence)
}

async fn session(args: &NoArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let session: TorrentSessionDto = args
        .service
        .connect(environment)
        .await?
        .ask(Method::TorrentSession)
        .await?;
    args.service.print(&session, || session_lines(&session))
}

fn session_lines(session: &TorrentSessionDto) -> Vec<String> {
    if !session.is_running {
        return vec!["no torrent runs: no port is open, and nothing is sent".to_owned()];
    }
    let mut lines = Vec::new();
    let mut line = |label: &str, value: String| lines.push(format!("{label:<14}{value}"));
    let none = || "none".to_owned();
    line("Port", session.port.map_or_else(none, |port| port.to_string()));
    for (label, node) in [("DHT (IPv4)", &session.dht_v4), ("DHT (IPv6)", &session.dht_v6)] {
        let text = node
            .as_ref()
            .map(|node| format!("{} nodes known, from {}", node.nodes, node.address));
        line(label, text.unwrap_or_else(|| "off".to_owned()));
    }
    if !session.lan_error.is_empty() {
        line("Local network", session.lan_error.clone());
    }
    if let Some(mapping) = &session.port_mapping {
        let text = match mapping.external_port {
            Some(port) => format!("port {port} of {}", mapping.external_address),
            None => mapping.error.clone(),
        };
        line("Router", text);
    }
    lines
}

async fn refresh_trackers(args: &NoArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    let read: TrackerListsRefreshed = client.ask(Method::TorrentRefreshTrackerLists).await?;
    args.service.print(&read, || {
        if read.lists.is_empty() {
            return vec![read.error.clone()];
        }
        let rows = read.lists.iter().map(|list| {
            let result = match list.error.as_str() {
                "" => amount::counted(list.tracker_count, "tracker"),
                error => error.to_owned(),
            };
            [list.url.clone(), result]
        });
        table::lines(["LIST", "RESULT"], rows)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_drawn_in_their_order() {
        let pieces = TorrentPieces {
            pieces: 66,
            pieces_have: 3,
            piece_bytes: 1024,
            bitfield: "a0000000000000004".to_owned() + "0",
            ..TorrentPieces::default()
        };
        let lines = piece_lines(&pieces);
        assert_eq!(lines[0], "3 of 66 pieces of 1.0 KiB");
        assert_eq!(lines[1], format!("       0 #.#{}", ".".repeat(61)));
        assert_eq!(lines[2], "      64 .#");
    }
}
