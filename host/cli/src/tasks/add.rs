//! `svc add`: adds downloads to a service, and optionally waits for them.

mod pick;
mod progress;
mod request;

use std::{path::PathBuf, sync::Arc};

use command::{
    Exit, UsageError,
    amount::{self, counted},
    environment::Environment,
    print_json, print_lines,
};
use engine::{ProxyChoice, TaskSpec};
use get::{
    args::{self, Conflict, OutputArgs, RequestArgs, Retries, SourceArgs, TorrentArgs},
    render, request as parts,
    wanted::{Schemes, Wanted},
};
use protocol::{
    CreateGroupResponse, CreateTaskRequest, CreateTasksParams, CreatedTasks, LinkDeviceTaskRequest, MAX_REQUEST_BYTES,
    Method,
};
use serde_json::json;
use transfer::{ByteCount, OnConflict, RetryPolicy, TorrentOptions};

use self::{pick::PickArgs, progress::ProgressObserver};
use super::{find, torrent_file};
use crate::{
    device,
    service::{Client, ServiceArgs, attend::attend},
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc add https://host/disk.iso                    into the service's download directory
  svc add -d /srv/films --queue night https://host/a.mkv https://host/b.mkv
  svc add -i list.txt --paused
  svc add -d /srv/isos disk.meta4                  the files of a Metalink document
  svc add 'magnet:?xt=urn:btih:...'                a torrent; see svc torrent for what it does
  svc add film.torrent --select-file 1,4-7 --seed-ratio 1
  svc add https://host/pub/ --pick '*.iso'         some files of a folder; see svc plugin preview
  svc add --wait https://host/disk.iso             and wait until it is complete";

/// [`EXAMPLES`], and notes for scripts.
pub(crate) fn long_help() -> String {
    const JSON: &str = "With --json the ids are printed as {\"taskIds\": […]}, in the order of the input. With --json \
and --wait the lines are those of svc get --json.";
    format!("{EXAMPLES}\n\n{JSON}\n\n{}", command::exit::help())
}

/// Bytes of requests per call; the rest of a frame is for its envelope.
const MAX_CHUNK_BYTES: usize = MAX_REQUEST_BYTES - 4096;

/// Requests per call, as limited by the service.
const MAX_CHUNK: usize = 20_000;

#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// What to download; each URL is a task of its own, FILE.torrent a torrent, and FILE.meta4 or FILE.metalink the
    /// files that it describes
    #[arg(value_name = "URL", required_unless_present = "input_file", value_hint = clap::ValueHint::Url)]
    urls: Vec<String>,
    /// Send the URLs to this paired device, by its name or fingerprint; see svc link send for more
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["SourceArgs", "PickArgs", "TaskArgs", "TorrentTaskArgs",
        "RequestArgs", "paused", "wait"])]
    on: Option<String>,
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    pick: PickArgs,
    #[command(flatten)]
    task: TaskArgs,
    #[command(flatten)]
    torrent: TorrentTaskArgs,
    #[command(flatten)]
    request: RequestArgs,
    /// Do not start; "svc resume" or its queue does
    #[arg(long, help_heading = "Task")]
    paused: bool,
    /// Wait until all have completed or failed; Ctrl-C ends the waiting, not the downloads
    #[arg(long, conflicts_with = "paused", help_heading = "Output")]
    wait: bool,
    #[command(flatten)]
    service: ServiceArgs,
}

impl AddArgs {
    /// `svc add FILE…` and nothing else.
    pub(crate) fn of(files: Vec<String>, service: ServiceArgs) -> anyhow::Result<Self> {
        use clap::{Args as _, FromArgMatches as _};
        let command = Self::augment_args(clap::Command::new("add"));
        let matches = command.try_get_matches_from(["add", "--"].map(String::from).into_iter().chain(files))?;
        let mut args = Self::from_arg_matches(&matches)?;
        args.service = service;
        Ok(args)
    }
}

/// How the service downloads it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Task")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
struct TaskArgs {
    /// Directory to save in, where the service runs [default: the queue's or the service's own]
    ///
    /// A relative path starts at the current directory of this command.
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
    /// Queue, by its name or id
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// What to do when the name is taken [default: the service's setting]
    #[arg(long, value_name = "RULE", value_enum)]
    conflict: Option<Conflict>,
    /// Segments per file, 0 for the queue's or the service's number
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = args::segments())]
    segments: u16,
    /// Connections per file at most [default: the service's number]
    #[arg(short = 'x', long, visible_alias = "max-connection-per-server", value_name = "N",
        value_parser = args::max_connections())]
    max_connections: Option<u16>,
    /// Do not split into parts smaller than this, such as 4M
    #[arg(short = 'k', long, visible_alias = "min-split-size", value_name = "SIZE", value_parser = args::parse_min_split)]
    min_split: Option<u64>,
    /// Whether files get the server's modification time [default: the service's setting]
    #[arg(long, visible_alias = "remote-time", value_name = "BOOLEAN", num_args = 0..=1, require_equals = true,
        default_missing_value = "true")]
    server_time: Option<bool>,
    /// Bytes per second for each, such as 2.5M; 0 for no limit
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = amount::parse_rate)]
    limit: u64,
    /// Close a connection that is slower for 10 seconds, such as 10K; a file without a faster one fails
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = amount::parse_rate)]
    lowest_speed_limit: u64,
    /// Fail only after so many answers "not found" without a byte; 0 for the first
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_file_not_found: u32,
    /// Retries in a row without progress, or "unlimited" [default: 4]
    #[arg(long, value_name = "N", value_parser = args::parse_retries)]
    retries: Option<Retries>,
    /// Wait before the first retry, in whole seconds; doubles with each further one [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    retry_wait: Option<u32>,
    /// If the file is there, check it by its checksum; only a wrong one is downloaded again
    #[arg(long)]
    check_integrity: bool,
    /// Words by which the tasks are found, separated by commas
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    tags: Vec<String>,
    /// Use no login of the service's .netrc
    #[arg(long)]
    no_netrc: bool,
    /// Proxy (http, https, socks4 or socks5) as scheme://user:password@host:port, or "direct" for none [default: the service's]
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    proxy: Option<String>,
    /// Accept any TLS certificate: anyone on the way can read and change what is downloaded
    #[arg(long)]
    insecure: bool,
    /// Let the service keep user name and password for this site
    #[arg(long, requires = "http_user")]
    save_login: bool,
}

/// How the service downloads and seeds a torrent.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Torrents")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
struct TorrentTaskArgs {
    #[command(flatten)]
    own: TorrentArgs,
    /// Do not upload to others once it is complete
    #[arg(long)]
    no_seed: bool,
    /// Bytes per second that it uploads at most, such as 500K; 0 for no limit
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = amount::parse_rate)]
    upload_limit: u64,
    /// Download from the beginning to the end, instead of the rarest pieces first
    #[arg(long)]
    sequential: bool,
    /// Download the beginning and the end of each file first, which players need
    #[arg(long)]
    first_last_first: bool,
    /// Save a .torrent file that a URL leads to, instead of downloading the torrent
    #[arg(long)]
    no_follow_torrent: bool,
}

impl TorrentTaskArgs {
    /// The options, if there are any besides the usual ones.
    fn options(&self) -> Option<Arc<TorrentOptions>> {
        let selected = self.own.options().map(Arc::unwrap_or_clone);
        let options = TorrentOptions {
            is_sequential: self.sequential,
            edges_first: self.first_last_first,
            ..selected.unwrap_or_default()
        };
        (options != TorrentOptions::default()).then(|| Arc::new(options))
    }
}

impl TaskArgs {
    /// The first attempt is not a retry, but a try.
    fn max_tries(&self) -> Option<u32> {
        let policy = self.retries?.policy(RetryPolicy::default().base);
        Some(policy.attempts.unwrap_or(0))
    }
}

pub(crate) async fn run(args: &AddArgs, environment: &Environment) -> anyhow::Result<Exit> {
    if let Some(device) = &args.on {
        let mut client = args.service.connect(environment).await?;
        return device::send(
            &args.service,
            &mut client,
            device,
            &args.urls,
            &LinkDeviceTaskRequest::default(),
        )
        .await;
    }
    let pattern = pattern(args)?;
    let wanted = Wanted::new(
        args.urls.clone(),
        args.sources.clone(),
        &args.request,
        pattern,
        Schemes::Undecided,
    )?;
    let mut client = args.service.connect(environment).await?;
    let queue = match &args.task.queue {
        Some(name) => find::queue(&mut client, name).await?.queue_id,
        None => String::new(),
    };
    let mut requests = Vec::new();
    for task in wanted.tasks() {
        let torrent = wanted.torrent_file(&task.urls[0]);
        let request = request::from_spec(task)?;
        let mut request = CreateTaskRequest {
            queue_id: queue.clone(),
            save_site_auth: args.task.save_login,
            max_tries: request.max_tries.or(args.task.max_tries()),
            retry_wait_secs: request.retry_wait_secs.or(args.task.retry_wait),
            ..request
        };
        if let Some(file) = torrent {
            torrent_file::attach(&client, &mut request, &file.name, file.bytes.clone()).await?;
        }
        requests.push(request);
    }
    if !args.pick.pick.is_empty() {
        return add_picked(args, &mut client, requests).await;
    }
    let urls: Vec<_> = requests
        .iter()
        .map(|request| super::list::safe_url(&request.url))
        .collect();
    let CreatedTasks {
        task_ids: ids,
        messages,
    } = create(&mut client, requests).await?;
    for message in &messages {
        command::note(message);
    }
    if args.wait {
        let output = OutputArgs {
            json: args.service.json,
            quiet: false,
            verbose: 0,
        };
        let entered: Vec<_> = ids.into_iter().zip(urls).collect();
        let mut progress = ProgressObserver::new(&entered, render::screen(&output, environment));
        let end = attend(client, &mut progress).await?;
        return progress.end(end);
    }
    match &ids[..] {
        _ if args.service.json => print_json(&json!({ "taskIds": ids })),
        [id] => args.service.print_done(id, &format!("added {id}")),
        several => print_lines(several.iter().zip(urls).map(|(id, url)| format!("added {id} {url}"))),
    }
}

/// Adds the picked files of the list that a plugin has of the only URL.
async fn add_picked(args: &AddArgs, client: &mut Client, requests: Vec<CreateTaskRequest>) -> anyhow::Result<Exit> {
    let [request] = <[_; 1]>::try_from(requests)
        .map_err(|_| UsageError::new("--pick", "goes with one URL, because every list has its own numbers"))?;
    let found = client
        .call(Method::GroupResolvePreview, &pick::preview(&request))
        .await?;
    let group = pick::group(&args.pick, &request, found)?;
    let made: CreateGroupResponse = client.call(Method::GroupCreate, &group).await?;
    let sentence = format!(
        "added {} as group {}",
        counted(made.task_ids.len(), "file"),
        made.group_id
    );
    args.service.print_done(&made, &sentence)
}

/// Settings that all tasks share, beside sources and requests.
fn pattern(args: &AddArgs) -> Result<TaskSpec, UsageError> {
    let task = &args.task;
    let dir = task.dir.as_deref().map(std::path::absolute).transpose();
    let save_dir = dir.map_err(|error| UsageError::new("--dir", error.to_string()))?;
    let leads_elsewhere = |out: &PathBuf| out.parent().is_some_and(|parent| !parent.as_os_str().is_empty());
    if save_dir.is_none() && args.sources.out.as_ref().is_some_and(leads_elsewhere) {
        let problem = "write the name of a file; its directory is named with --dir";
        return Err(UsageError::new("--out", problem));
    }
    let proxy = match task.proxy.as_deref() {
        None => ProxyChoice::Settings,
        Some("direct") => ProxyChoice::Direct,
        Some(text) => ProxyChoice::Through(parts::proxy("--proxy", text)?),
    };
    Ok(TaskSpec {
        save_dir,
        proxy,
        segments: task.segments,
        max_connections: task.max_connections,
        min_split_bytes: task.min_split,
        use_server_time: task.server_time,
        ignore_tls_errors: task.insecure,
        start_paused: args.paused,
        speed_limit_bytes: task.limit,
        on_conflict: task.conflict.map(OnConflict::from),
        lowest_speed_bytes: task.lowest_speed_limit,
        max_not_found: task.max_file_not_found,
        check_integrity: task.check_integrity,
        no_netrc: task.no_netrc,
        tags: task.tags.iter().map(|tag| tag.as_str().into()).collect(),
        is_not_seeded: args.torrent.no_seed,
        seed_limits: args.torrent.own.seed_limits(),
        upload_limit_bytes: args.torrent.upload_limit,
        torrent: args.torrent.options(),
        follow_torrent: args.torrent.no_follow_torrent.then_some(false),
        ..TaskSpec::default()
    })
}

/// Creates the tasks in batches that fit into a frame. A failure names the tasks that were created before.
async fn create(client: &mut Client, requests: Vec<CreateTaskRequest>) -> anyhow::Result<CreatedTasks> {
    let mut all = CreatedTasks::default();
    for requests in chunks(requests)? {
        let created: Result<CreatedTasks, _> = client
            .call(
                Method::TaskCreateMany,
                &CreateTasksParams {
                    requests,
                    ..CreateTasksParams::default()
                },
            )
            .await;
        let created = created.map_err(|error| match all.task_ids.len() {
            0 => anyhow::Error::new(error),
            made => anyhow::Error::new(error).context(format!("only the first {made} tasks were added")),
        })?;
        all.task_ids.extend(created.task_ids);
        all.messages.extend(created.messages);
    }
    all.messages.dedup();
    Ok(all)
}

fn chunks(requests: Vec<CreateTaskRequest>) -> anyhow::Result<Vec<Vec<CreateTaskRequest>>> {
    let mut chunks: Vec<Vec<CreateTaskRequest>> = Vec::new();
    let mut room = 0;
    for request in requests {
        let bytes = serde_json::to_vec(&request)?.len() + 1;
        if bytes > MAX_CHUNK_BYTES {
            let problem = format!("a task of {} is more than a service takes", ByteCount(bytes as u64));
            return Err(UsageError::new("URL", problem).into());
        }
        match chunks.last_mut() {
            Some(chunk) if bytes <= room && chunk.len() < MAX_CHUNK => chunk.push(request),
            _ => {
                chunks.push(vec![request]);
                room = MAX_CHUNK_BYTES;
            }
        }
        room -= bytes;
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::Args as _;

    use super::*;

    /// The argument of each field of a request, or why there is none. A new field does not compile until it is here.
    macro_rules! arguments {
        ($($field:ident: $argument:expr,)*) => {{
            let CreateTaskRequest { $($field: _,)* } = CreateTaskRequest::default();
            [$((stringify!($field), $argument),)*]
        }};
    }

    #[test]
    fn every_field_of_a_request_has_an_argument_or_a_reason() {
        const CANNOT: &str = "this version cannot do it";
        let arguments: [(&str, Result<&str, &str>); _] = arguments! {
            url: Ok("urls"), mirrors: Ok("mirror"), file_name: Ok("out"), save_dir: Ok("dir"),
            segments: Ok("segments"), cookies: Ok("cookie"), referrer: Ok("referer"), user_agent: Ok("user_agent"),
            proxy_url: Ok("proxy"), queue_id: Ok("queue"), checksum: Ok("checksum"),
            piece_hashes: Err("what a Metalink document says, which URL takes"),
            expected_size_bytes: Err("what a Metalink document says, which URL takes"),
            mime_type: Err("what a page says of its link"),
            ignore_tls_errors: Ok("insecure"), headers: Ok("header"), torrent_b64: Err("URL takes the name of a file"),
            torrent_blob_id: Err("URL takes the name of a file"), follow_torrent: Ok("no_follow_torrent"),
            torrent: Ok("select_file"),
            metalink_b64: Err("URL takes the name of a document"),
            method: Ok("method"), body: Ok("data"), audio_url: Err(CANNOT), start_paused: Ok("paused"),
            http_user: Ok("http_user"), http_password: Ok("http_password"), ssh_host_key: Ok("ssh_host_key"), save_site_auth: Ok("save_login"),
            speed_limit_bytes: Ok("limit"), file_exists_behavior: Ok("conflict"),
            max_connections: Ok("max_connections"), min_split_bytes: Ok("min_split"), max_tries: Ok("retries"),
            retry_wait_secs: Ok("retry_wait"), use_server_time: Ok("server_time"),
            lowest_speed_bytes: Ok("lowest_speed_limit"), max_not_found: Ok("max_file_not_found"),
            check_integrity: Ok("check_integrity"), no_netrc: Ok("no_netrc"), tags: Ok("tags"),
            upload_limit_bytes: Ok("upload_limit"), no_seed: Ok("no_seed"),
            seed_ratio_limit_milli: Ok("seed_ratio"), seed_time_limit_secs: Ok("seed_time"),
        };
        let command = AddArgs::augment_args(clap::Command::new("add"));
        let known: HashSet<_> = command
            .get_arguments()
            .map(|argument| argument.get_id().as_str())
            .collect();
        for (field, argument) in arguments {
            assert!(
                argument.is_err() || known.contains(argument.unwrap()),
                "{field} has no argument"
            );
        }
    }

    #[test]
    fn a_frame_holds_as_much_as_it_can_and_no_more() {
        let request = |bytes: usize| CreateTaskRequest {
            url: "x".repeat(bytes),
            ..CreateTaskRequest::default()
        };
        let sizes = |requests| -> Vec<usize> { chunks(requests).unwrap().iter().map(Vec::len).collect() };
        assert_eq!(sizes(vec![request(10); MAX_CHUNK / 100]), [MAX_CHUNK / 100]);
        assert_eq!(sizes(vec![request(300_000); 7]), [3, 3, 1]);
        assert!(chunks(vec![request(MAX_CHUNK_BYTES)]).unwrap_err().is::<UsageError>());
    }
}
