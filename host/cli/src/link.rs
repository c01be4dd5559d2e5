//! `svc link`: paired devices.

mod digits;

use std::{collections::BTreeMap, time::Duration};

use command::{Exit, UsageError, amount, environment::Environment, note, print_lines, prompt};
use protocol::{
    LinkAddressParams, LinkDeviceInfo, LinkDeviceParams, LinkDeviceTaskRequest, LinkDiscoveredPeer,
    LinkDiscoveryParams, LinkOutboxEntry, LinkOutboxParams, LinkPairApproveRequest, LinkPairBeginParams,
    LinkPairBeginResponse, LinkPairFinishRequest, LinkPairFinishResponse, LinkPairingCode, LinkPairingRequestDto,
    LinkUpdateParams, Method, OkResult,
};
use serde_json::json;

use crate::{
    device::{find, plain, send},
    service::{Client, RemoteError, ServiceArgs},
    table,
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc link code                        on one device: shows a code, then six digits to compare
  svc link scan                        on the other: devices nearby
  svc link pair 192.168.1.20           asks for the code, then shows six digits to compare
  svc link devices
  svc link send nas https://host/disk.iso
  svc add --on nas https://host/disk.iso
  svc link set nas --accept-tasks=false
  svc link outbox                      what waits for devices that are away
  svc link unpair nas

Accept a pairing only if both devices show the same six digits. A device is named by its name, or by
the first characters of its fingerprint. Server and desktop must be reachable by each other: a desktop is with
svc config server set local_server_lan_enabled=true local_server_link_enabled=true";

/// How often a waiting command asks the service.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// How long a search lasts, unless the user says so.
const SEARCH_TIME: &str = "5";

#[derive(Debug, clap::Args)]
pub struct LinkArgs {
    #[command(subcommand)]
    command: Option<LinkCommand>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum LinkCommand {
    /// Show a pairing code, and answer the device that uses it
    Code {
        /// Print the code and end; "svc link approve" answers
        #[arg(long)]
        no_wait: bool,
    },
    /// Stop being found by other devices
    Hide,
    /// Search for devices nearby
    Scan {
        /// Search for this many seconds
        #[arg(long, value_name = "SECONDS", default_value = SEARCH_TIME, value_parser = clap::value_parser!(u64).range(1..=60))]
        time: u64,
    },
    /// Ask an address which device it is
    Probe {
        /// Host, host:port or http://host:port
        #[arg(value_name = "ADDRESS")]
        address: String,
    },
    /// Pair with a device that shows a code
    Pair {
        /// Host, host:port or http://host:port
        #[arg(value_name = "ADDRESS")]
        address: String,
        /// The code that it shows [default: asked for]
        #[arg(value_name = "CODE")]
        code: Option<String>,
        /// Accept without asking, for scripts that compare the digits themselves
        #[arg(long)]
        accept: bool,
    },
    /// List devices that ask to be paired, or answer one
    Approve {
        /// The request, as the list shows it
        #[arg(value_name = "SESSION")]
        session: Option<String>,
        /// Reject it
        #[arg(long, requires = "session")]
        reject: bool,
    },
    /// List paired devices
    #[command(visible_alias = "ls")]
    Devices,
    /// Send downloads to a device
    Send {
        /// The device
        #[arg(value_name = "DEVICE")]
        device: String,
        /// What to download there
        #[arg(value_name = "URL", required = true, value_hint = clap::ValueHint::Url)]
        urls: Vec<String>,
        #[command(flatten)]
        download: Box<DownloadArgs>,
    },
    /// Change what a device may do here
    Set {
        /// The device
        #[arg(value_name = "DEVICE")]
        device: String,
        /// Whether downloads that it sends are taken
        #[arg(long, value_name = "BOOLEAN")]
        accept_tasks: Option<bool>,
        /// Whether URLs that it sends may lead to private addresses
        #[arg(long, value_name = "BOOLEAN")]
        allow_private: Option<bool>,
        /// How many downloads of it are taken within 24 hours, at most 4096
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(0..=4096))]
        daily_tasks: Option<u32>,
    },
    /// End the pairing with a device
    #[command(visible_alias = "rm")]
    Unpair {
        /// The device
        #[arg(value_name = "DEVICE")]
        device: String,
    },
    /// List downloads that wait for their device, or remove one
    Outbox {
        /// Remove this one
        #[arg(long, value_name = "ID")]
        remove: Option<String>,
    },
}

/// How a device downloads it.
#[derive(Debug, clap::Args)]
struct DownloadArgs {
    /// Directory on that device
    #[arg(short, long, value_name = "DIR")]
    dir: Option<String>,
    /// File name
    #[arg(short, long, value_name = "NAME")]
    out: Option<String>,
    /// Checksum, as algorithm=hex
    #[arg(long, value_name = "CHECKSUM")]
    checksum: Option<String>,
    /// Request header, as "Name: value"; needs --share-secrets
    #[arg(short = 'H', long, value_name = "HEADER", requires = "share_secrets")]
    header: Vec<String>,
    /// Cookies, as a Cookie header has them; needs --share-secrets
    #[arg(long, value_name = "COOKIES", requires = "share_secrets")]
    cookies: Option<String>,
    /// Hand headers and cookies, which may hold logins, to the device
    #[arg(long)]
    share_secrets: bool,
}

pub(crate) async fn run(args: &LinkArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    let mut client = service.connect(environment).await?;
    match args.command.as_ref().unwrap_or(&LinkCommand::Devices) {
        LinkCommand::Code { no_wait } => code(service, &mut client, *no_wait).await,
        LinkCommand::Hide => {
            let done: OkResult = client.ask(Method::LinkStopPairing).await?;
            let sentence = "other devices do not find this one any more; a code that was made still works";
            service.print_done(&done, sentence)
        }
        LinkCommand::Scan { time } => scan(service, &mut client, *time).await,
        LinkCommand::Probe { address } => {
            let address = address.clone();
            let peer: LinkDiscoveredPeer = client.call(Method::LinkProbe, &LinkAddressParams { address }).await?;
            service.print(&peer, || peers(std::slice::from_ref(&peer)))
        }
        LinkCommand::Pair { address, code, accept } => {
            pair(service, &mut client, address, code.as_deref(), *accept).await
        }
        LinkCommand::Approve { session, reject } => approve(service, &mut client, session.as_deref(), !reject).await,
        LinkCommand::Devices => {
            let devices: Vec<LinkDeviceInfo> = client.ask(Method::LinkRefresh).await?;
            let rows = || table::lines(["DEVICE", "STATE", "FINGERPRINT"], devices.iter().map(device_row));
            service.print(&devices, rows)
        }
        LinkCommand::Send { device, urls, download } => {
            send(service, &mut client, device, urls, &download.pattern()?).await
        }
        LinkCommand::Set {
            device,
            accept_tasks,
            allow_private,
            daily_tasks,
        } => {
            let params = LinkUpdateParams {
                fingerprint: find(&mut client, device).await?.fingerprint,
                accepts_tasks: *accept_tasks,
                allow_private: *allow_private,
                daily_tasks: *daily_tasks,
            };
            let changed: LinkDeviceInfo = client.call(Method::LinkUpdate, &params).await?;
            service.print_done(&changed, &format!("changed {}", plain(&changed.name)))
        }
        LinkCommand::Unpair { device } => {
            let found = find(&mut client, device).await?;
            let fingerprint = found.fingerprint;
            let done: OkResult = client
                .call(Method::LinkRemove, &LinkDeviceParams { fingerprint })
                .await?;
            service.print_done(&done, &format!("ended the pairing with {}", plain(&found.name)))
        }
        LinkCommand::Outbox { remove } => outbox(service, &mut client, remove.as_deref()).await,
    }
}

impl DownloadArgs {
    fn pattern(&self) -> Result<LinkDeviceTaskRequest, UsageError> {
        Ok(LinkDeviceTaskRequest {
            url: String::new(),
            save_dir: self.dir.clone().unwrap_or_default(),
            file_name: self.out.clone().unwrap_or_default(),
            headers: (!self.header.is_empty()).then(|| headers(&self.header)).transpose()?,
            cookies: self.cookies.clone().unwrap_or_default(),
            checksum: self.checksum.clone().unwrap_or_default(),
            share_secrets: self.share_secrets,
        })
    }
}

async fn approve(
    service: &ServiceArgs,
    client: &mut Client,
    session: Option<&str>,
    accept: bool,
) -> anyhow::Result<Exit> {
    if let Some(session) = session {
        let done = answer(client, session, accept).await?;
        return service.print_done(&done, if accept { "accepted" } else { "rejected" });
    }
    let requests: Vec<LinkPairingRequestDto> = client.ask(Method::LinkRequests).await?;
    let row = |request: &LinkPairingRequestDto| {
        [
            request.session_id.clone(),
            request.sas.clone(),
            plain(&request.peer_name),
        ]
    };
    let rows = || table::lines(["SESSION", "DIGITS", "DEVICE"], requests.iter().map(row));
    service.print(&requests, rows)
}

async fn outbox(service: &ServiceArgs, client: &mut Client, remove: Option<&str>) -> anyhow::Result<Exit> {
    if let Some(id) = remove {
        let params = LinkOutboxParams { id: id.to_owned() };
        let done: OkResult = client.call(Method::LinkOutboxRemove, &params).await?;
        return service.print_done(&done, "removed");
    }
    let entries: Vec<LinkOutboxEntry> = client.ask(Method::LinkOutbox).await?;
    let row = |entry: &LinkOutboxEntry| {
        let attempts = usize::try_from(entry.attempts).unwrap_or(usize::MAX);
        let state = if entry.error.is_empty() {
            let tried = amount::counted(attempts, "attempt");
            let why = plain(&entry.last_error);
            if why.is_empty() {
                format!("waits, {tried}")
            } else {
                format!("waits, {tried}: {why}")
            }
        } else {
            plain(&entry.error)
        };
        [entry.id.clone(), plain(&entry.device_name), state, plain(&entry.url)]
    };
    let rows = || table::lines(["ID", "DEVICE", "STATE", "URL"], entries.iter().map(row));
    service.print(&entries, rows)
}

fn device_row(device: &LinkDeviceInfo) -> [String; 3] {
    let online = if device.online { "online" } else { "away" };
    let waiting = if device.queued > 0 {
        format!(", {} waiting", device.queued)
    } else {
        String::new()
    };
    let sending = if device.accepts_tasks { "" } else { ", may not send" };
    let state = format!("{online}{waiting}{sending}");
    [plain(&device.name), state, device.fingerprint.clone()]
}

fn peers(peers: &[LinkDiscoveredPeer]) -> Vec<String> {
    let row = |peer: &LinkDiscoveredPeer| {
        let host = if peer.host.contains(':') {
            format!("[{}]", peer.host)
        } else {
            peer.host.clone()
        };
        [
            plain(&peer.name),
            format!("{host}:{}", peer.port),
            plain(peer.platform.as_deref().unwrap_or("-")),
        ]
    };
    table::lines(["DEVICE", "ADDRESS", "PLATFORM"], peers.iter().map(row))
}

fn headers(lines: &[String]) -> Result<BTreeMap<String, String>, UsageError> {
    let wrong = || UsageError::new("--header", "write \"Name: value\"");
    let split = |line: &String| {
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    lines.iter().map(split).collect()
}

async fn answer(client: &mut Client, session: &str, accept: bool) -> Result<OkResult, RemoteError> {
    let session_id = session.to_owned();
    client
        .call(Method::LinkApprove, &LinkPairApproveRequest { session_id, accept })
        .await
}

/// Shows digits large, and asks whether the other device shows the same.
fn is_same(sas: &str, device: &str) -> anyhow::Result<bool> {
    print_lines(digits::large(sas))?;
    let question = format!("Does {} show the same six digits? [y/N] ", plain(device));
    let answer = prompt::ask(&question)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

async fn code(service: &ServiceArgs, client: &mut Client, no_wait: bool) -> anyhow::Result<Exit> {
    let made: LinkPairingCode = client.ask(Method::LinkPairingCode).await?;
    let shown = || {
        let mut lines = digits::large(&made.code);
        lines.push(format!(
            "Enter this code on the other device within two minutes: {}",
            made.code
        ));
        if made.addresses.is_empty() {
            lines.push("Other devices cannot connect to this service: it listens on the loopback only".to_owned());
        } else {
            lines.push(format!("Address of this device: {}", made.addresses.join(", ")));
        }
        lines
    };
    let exit = service.print(&made, shown)?;
    if no_wait || service.json {
        return Ok(exit);
    }
    let request = loop {
        tokio::time::sleep(ASK_EVERY).await;
        let requests: Vec<LinkPairingRequestDto> = client.ask(Method::LinkRequests).await?;
        if let Some(request) = requests.into_iter().next() {
            break request;
        }
    };
    note(&format!("{} asks to be paired", plain(&request.peer_name)));
    let accept = is_same(&request.sas, &request.peer_name)?;
    let done = answer(client, &request.session_id, accept).await?;
    let name = plain(&request.peer_name);
    let sentence = if accept {
        format!("accepted {name}")
    } else {
        format!("rejected {name}")
    };
    service.print_done(&done, &sentence)
}

async fn scan(service: &ServiceArgs, client: &mut Client, seconds: u64) -> anyhow::Result<Exit> {
    let OkResult { .. } = client
        .call(Method::LinkDiscoverySet, &LinkDiscoveryParams { enabled: true })
        .await?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let found: Vec<LinkDiscoveredPeer> = client.ask(Method::LinkDiscovered).await?;
    let OkResult { .. } = client
        .call(Method::LinkDiscoverySet, &LinkDiscoveryParams { enabled: false })
        .await?;
    service.print(&found, || peers(&found))
}

async fn pair(
    service: &ServiceArgs,
    client: &mut Client,
    address: &str,
    code: Option<&str>,
    accepts: bool,
) -> anyhow::Result<Exit> {
    let code = match code {
        Some(code) => code.to_owned(),
        None => prompt::ask("Code that the other device shows: ")?.trim().to_owned(),
    };
    let params = LinkPairBeginParams {
        address: address.to_owned(),
        code,
    };
    let begun: LinkPairBeginResponse = client.call(Method::LinkPairBegin, &params).await?;
    let accept = if accepts {
        if !service.json {
            print_lines(digits::large(&begun.sas))?;
        }
        true
    } else {
        is_same(&begun.sas, &begun.peer_name)?
    };
    if accept && !service.json {
        note(&format!("waiting for {} to accept as well", plain(&begun.peer_name)));
    }
    let params = LinkPairFinishRequest {
        token: begun.token.clone(),
        accept,
    };
    let finished: LinkPairFinishResponse = client.call(Method::LinkPairFinish, &params).await?;
    let name = plain(&begun.peer_name);
    if finished.paired {
        let printed = json!({ "paired": true, "sas": begun.sas, "device": finished.device });
        return service.print_done(&printed, &format!("paired with {name}"));
    }
    if accept {
        anyhow::bail!("{name} did not accept the pairing");
    }
    anyhow::bail!("not paired: the digits were not confirmed");
}
