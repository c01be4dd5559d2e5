//! Command-line options of `svc get`, as written; [`super::plan`] resolves them. Doc comments of the options are their
//! help.

use std::{collections::BTreeSet, ops::RangeInclusive, path::PathBuf, sync::Arc, time::Duration};

use clap::{Args, ValueEnum, ValueHint, builder::RangedU64ValueParser};
use command::{amount, environment};
use engine::{SeedLimit, SeedLimits};
use transfer::{ConnectionPlan, HostKeyFingerprint, OnConflict, RetryPolicy, TorrentOptions};

/// Limit of segments per file; more would burden servers without a gain.
pub const SEGMENTS: RangeInclusive<u16> = 0..=64;

/// Connections to one host, per file.
pub const MAX_CONNECTIONS: RangeInclusive<u16> = 1..=128;

/// Limit of concurrent files; each needs a few descriptors, and the usual limit of a process is 1024 or more.
pub const JOBS: RangeInclusive<u16> = 1..=1024;

/// Below 64 KiB, requests cost more than the bytes.
pub const MIN_SPLIT_BYTES: RangeInclusive<u64> = 64 * 1024..=1024 * 1024 * 1024;

/// Limit of a finite number of retries.
pub const MAX_RETRIES: u32 = 1000;

/// The longest duration of any option: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// The shortest timeout of a network operation.
const MIN_TIMEOUT_SECONDS: f64 = 0.1;

/// The arguments of `svc get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// What to download: each URL is a file of its own, a magnet link or FILE.torrent a torrent, and FILE.meta4 or
    /// FILE.metalink the files that it describes
    #[arg(value_name = "URL", required_unless_present = "input_file", value_hint = ValueHint::Url)]
    pub(crate) urls: Vec<String>,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(flatten)]
    pub(crate) torrents: TorrentArgs,
    #[command(flatten)]
    pub(crate) swarm: SwarmArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What the files are and where they go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct FileArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    /// Directory to save in; made if missing [default: the current one]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// What to do when the name is taken
    #[arg(long, value_name = "RULE", value_enum, default_value_t = Conflict::Rename)]
    pub(crate) conflict: Conflict,
    /// Give files the server's modification time
    #[arg(long)]
    pub(crate) server_time: bool,
    /// If the file is there, check it by its checksum; only a wrong one is downloaded again
    #[arg(long)]
    pub(crate) check_integrity: bool,
    /// Do not continue the part file of an earlier run
    #[arg(long)]
    pub(crate) no_resume: bool,
    /// Do not download what a downloaded Metalink document describes
    #[arg(long)]
    pub(crate) no_follow_metalink: bool,
}

/// What the files are, for every command that takes some.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Files")]
pub struct SourceArgs {
    /// Name of the file; only with one URL
    #[arg(short, long, value_name = "NAME", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Read URLs from a file in aria2's format, - for standard input
    ///
    /// One file per line; TAB-separated URLs on a line are mirrors of each other. Lines that start with a space are
    /// options of the file above them, such as "out=name", "dir=…", "checksum=sha-256=…", "header=K: V". Lines that
    /// start with # are comments.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub input_file: Option<PathBuf>,
    /// Another URL of the same file; repeatable, only with one URL
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub mirror: Vec<String>,
    /// What the file must hash to, such as sha-256=9f86…; only with one URL
    ///
    /// The algorithm is md5, sha-1, sha-256, sha-512, crc32 or blake3.
    #[arg(long, value_name = "ALGO=HEX")]
    pub checksum: Option<String>,
}

/// What to do when a name is taken.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Conflict {
    /// Take "name (1)", "name (2)", …
    Rename,
    /// Replace the file once the new one is complete
    Overwrite,
    /// Keep the file and do not download
    Skip,
}

impl From<Conflict> for OnConflict {
    fn from(conflict: Conflict) -> Self {
        match conflict {
            Conflict::Rename => Self::Rename,
            Conflict::Overwrite => Self::Overwrite,
            Conflict::Skip => Self::Skip,
        }
    }
}

/// How much at once.
#[derive(Debug, Args)]
#[command(next_help_heading = "Speed")]
pub struct SpeedArgs {
    /// Segments per file, 0 to choose automatically
    #[arg(short, long, value_name = "N", default_value_t = ConnectionPlan::default().segments, value_parser = segments())]
    pub segments: u16,
    /// Connections per file to one host at most
    #[arg(short = 'x', long, value_name = "N", default_value_t = ConnectionPlan::default().per_host,
          value_parser = max_connections())]
    pub max_connections: u16,
    /// Do not split into parts smaller than this
    #[arg(short = 'k', long, value_name = "SIZE", default_value = "1M", value_parser = parse_min_split)]
    pub min_split: u64,
    /// Files at a time
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = jobs())]
    pub jobs: u16,
    /// Close a connection that is slower for 10 seconds, such as 10K; a file without a faster one fails
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = amount::parse_rate)]
    pub lowest_speed_limit: u64,
    /// Bytes per second for all files together, such as 2.5M; 0 for no limit
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = amount::parse_rate)]
    pub limit: u64,
}

/// How to ask the server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    /// Extra request header, such as 'Accept: text/csv'; repeatable
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// User-Agent header
    #[arg(long, value_name = "TEXT")]
    pub user_agent: Option<String>,
    /// Referer header
    #[arg(long, value_name = "URL")]
    pub referer: Option<String>,
    /// Cookies, such as 'a=1; b=2'
    #[arg(long, value_name = "COOKIES")]
    pub cookie: Option<String>,
    /// Cookies from a browser's export (Netscape format); sent only where they belong
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub load_cookies: Option<PathBuf>,
    /// User name, for HTTP Basic or Digest as the server asks
    #[arg(long, value_name = "NAME")]
    pub http_user: Option<String>,
    /// Its password; other users of the machine can see arguments, so rather use the variable or a file
    #[arg(long, value_name = "PASSWORD", env = environment::HTTP_PASSWORD, hide_env_values = true)]
    pub http_password: Option<String>,
    /// File whose first line is the password
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub http_password_file: Option<PathBuf>,
    /// The key that an SSH server has to have.
    #[arg(
        long,
        value_name = "FINGERPRINT",
        help = "The key that an SSH server has to have, such as SHA256:…; without this, one of its keys in ~/.ssh/known_hosts"
    )]
    pub ssh_host_key: Option<HostKeyFingerprint>,
    /// Request method [default: GET, or POST if there is something to send]
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Send this text as a form, already encoded
    #[arg(long, value_name = "TEXT", group = "body")]
    pub data: Option<String>,
    /// Send this file as it is
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "body")]
    pub data_file: Option<PathBuf>,
    /// Send a form field (multipart); repeatable
    #[arg(long, value_name = "NAME=VALUE", group = "body")]
    pub form: Vec<String>,
}

/// How to reach the server, and how patiently.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct ConnectionArgs {
    /// Proxy (http, https, socks4 or socks5) as scheme://user:password@host:port; never taken from the system
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub proxy: Option<String>,
    /// Trust these certificate authorities (PEM) instead of the system's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ca_certificate: Option<PathBuf>,
    /// Log in to SSH servers with this private key [default: those of the agent and in ~/.ssh]
    #[arg(long, value_name = "FILE", env = environment::SSH_KEY, value_hint = ValueHint::FilePath)]
    pub ssh_key: Option<PathBuf>,
    /// Connect over IPv4 only
    #[arg(short = '4', long)]
    pub ipv4: bool,
    /// Connect over IPv6 only
    #[arg(short = '6', long, conflicts_with = "ipv4")]
    pub ipv6: bool,
    /// Use the logins of ~/.netrc, each for its host; others must not be able to read the file
    #[arg(long)]
    pub netrc: bool,
    /// Use the logins of this file in the format of .netrc
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "netrc")]
    pub netrc_file: Option<PathBuf>,
    /// Accept any TLS certificate: anyone on the way can read and change what you download
    #[arg(long)]
    pub insecure: bool,
    /// Give up connecting after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = parse_timeout)]
    pub connect_timeout: Option<Duration>,
    /// Give up on a server that sends nothing for this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = parse_timeout)]
    pub timeout: Option<Duration>,
    /// Retries in a row without progress, or "unlimited"
    #[arg(long, value_name = "N", default_value = "4", value_parser = parse_retries)]
    pub retries: Retries,
    /// Wait before the first retry; doubles with each further one
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_wait)]
    pub retry_wait: Duration,
}

/// How torrents are downloaded, for every command that takes some.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Torrents")]
pub struct TorrentArgs {
    /// Download only these files of a torrent, by their numbers from 1, such as 1,3-5
    #[arg(long, value_name = "LIST", value_parser = parse_selected)]
    pub select_file: Option<SelectedFiles>,
    /// Seed until this many times the torrent's size is uploaded, such as 1.5; with --seed-time, whichever is first
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio)]
    pub seed_ratio: Option<u64>,
    /// Seed for this many minutes
    #[arg(long, value_name = "MINUTES", value_parser = parse_minutes)]
    pub seed_time: Option<Duration>,
}

impl TorrentArgs {
    /// How a torrent is downloaded, if not as usual.
    pub fn options(&self) -> Option<Arc<TorrentOptions>> {
        let selected = self.select_file.as_ref()?;
        Some(Arc::new(TorrentOptions {
            files: selected.0.clone(),
            ..TorrentOptions::default()
        }))
    }

    /// When seeding ends.
    pub fn seed_limits(&self) -> SeedLimits {
        let secs = self.seed_time.map(|time| time.as_secs().max(1));
        SeedLimits {
            ratio_milli: self.seed_ratio.map_or(SeedLimit::Inherited, SeedLimit::Own),
            time_secs: secs.map_or(SeedLimit::Inherited, SeedLimit::Own),
            ..SeedLimits::default()
        }
    }
}

/// How peers are found.
#[derive(Debug, Args)]
#[command(next_help_heading = "Torrents")]
pub(crate) struct SwarmArgs {
    /// Save a torrent file that a URL leads to, instead of downloading its torrent
    #[arg(long)]
    pub(crate) no_follow_torrent: bool,
    /// Find peers by trackers and the link itself only: no hash table, no local network, no port of the router
    #[arg(long)]
    pub(crate) trackers_only: bool,
}

/// Files of a torrent, by their places from 0, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedFiles(pub Box<[u32]>);

/// How often to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retries {
    /// So many times in a row.
    Times(u32),
    /// Until it works.
    Unlimited,
}

impl Retries {
    /// The retry policy; the first attempt is not a retry.
    pub fn policy(self, base: Duration) -> RetryPolicy {
        let attempts = match self {
            Self::Times(times) => Some(times + 1),
            Self::Unlimited => None,
        };
        let default = RetryPolicy::default();
        RetryPolicy {
            attempts,
            base,
            cap: default.cap.max(base),
            ..default
        }
    }
}

/// What is printed and logged.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print events as JSON lines on standard output
    #[arg(long)]
    pub json: bool,
    /// Print only errors
    #[arg(short, long, conflicts_with_all = ["json", "verbose"])]
    pub quiet: bool,
    /// Log to standard error: -v info, -vv debug, -vvv trace
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Parses the number of segments: up to 64, or 0 for automatic.
pub fn segments() -> RangedU64ValueParser<u16> {
    ranged(&SEGMENTS)
}

/// The range of connections.
pub fn max_connections() -> RangedU64ValueParser<u16> {
    ranged(&MAX_CONNECTIONS)
}

fn jobs() -> RangedU64ValueParser<u16> {
    ranged(&JOBS)
}

fn ranged(range: &RangeInclusive<u16>) -> RangedU64ValueParser<u16> {
    RangedU64ValueParser::new().range(u64::from(*range.start())..=u64::from(*range.end()))
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    amount::parse_seconds(text, MIN_TIMEOUT_SECONDS, MAX_SECONDS)
}

fn parse_wait(text: &str) -> Result<Duration, String> {
    amount::parse_seconds(text, 0.0, MAX_SECONDS)
}

/// Parses the smallest part of a file that gets a connection of its own.
pub fn parse_min_split(text: &str) -> Result<u64, String> {
    let bytes = amount::parse_bytes(text)?;
    if MIN_SPLIT_BYTES.contains(&bytes) {
        Ok(bytes)
    } else {
        Err("the least is 64K and the most is 1G".to_owned())
    }
}

/// The most files that can be named one by one; what torrents may have.
const MAX_SELECTED: u32 = 200_000;

/// Parses the numbers of files of a torrent: `1,3-5`.
pub fn parse_selected(text: &str) -> Result<SelectedFiles, String> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (1 <= first && first <= last && last <= MAX_SELECTED).then(|| first - 1..last)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    let ranges = ranges.ok_or_else(|| format!("write numbers from 1 to {MAX_SELECTED}, such as 1,3-5"))?;
    let files: BTreeSet<u32> = ranges.into_iter().flatten().collect();
    Ok(SelectedFiles(files.into_iter().collect()))
}

/// Parses a ratio into thousandths.
pub fn parse_ratio(text: &str) -> Result<u64, String> {
    let ratio: f64 = text.parse().map_err(|_| RATIOS.to_owned())?;
    if !(0.001..=1e6).contains(&ratio) {
        return Err(RATIOS.to_owned());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 1 and a thousand million"
    )]
    Ok((ratio * 1000.0).round() as u64)
}

const RATIOS: &str = "write a number from 0.001 to 1000000, such as 1.5";

fn parse_minutes(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().map(|minutes: f64| minutes * 60.0);
    let seconds = seconds.filter(|seconds| (1.0..=MAX_SEED_SECONDS).contains(seconds));
    let seconds = seconds.ok_or("write a number of minutes from 0.02 to 525600")?;
    Ok(Duration::from_secs_f64(seconds))
}

/// A year.
const MAX_SEED_SECONDS: f64 = 31_536_000.0;

/// Parses how often to try again.
pub fn parse_retries(text: &str) -> Result<Retries, String> {
    if text == "unlimited" {
        return Ok(Retries::Unlimited);
    }
    match text.parse() {
        Ok(times @ 0..=MAX_RETRIES) => Ok(Retries::Times(times)),
        _ => Err(format!("write a number from 0 to {MAX_RETRIES}, or unlimited")),
    }
}
