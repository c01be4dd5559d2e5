//! The resolved form of a command line, completely validated before anything starts.

use std::{
    collections::BTreeMap,
    io::Read as _,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aria2::{
    files::{self, Entry},
    option::{self, Options, Row},
};
use command::{environment::Environment, netrc, ssh};
use engine::SystemProxy;
use metainfo::Magnet;
use transfer::{CookieJar, Netrc, SafeUrl};
use transfer_http::Family;

use crate::{
    Refused,
    arguments::Arguments,
    document::{self, Wanted},
    expansion::expand,
    hooks::Hooks,
};

/// aria2's defaults of options that correspond to a service setting, and therefore have none in the table of options.
const USUAL: [(&str, &str); 11] = [
    ("bt-enable-lpd", "false"),
    ("bt-max-peers", "55"),
    ("enable-peer-exchange", "true"),
    ("follow-torrent", "true"),
    ("max-overall-upload-limit", "0"),
    ("seed-ratio", "1.0"),
    ("max-concurrent-downloads", "5"),
    ("max-connection-per-server", "1"),
    ("max-overall-download-limit", "0"),
    ("remote-time", "false"),
    ("split", "5"),
];

/// Configuration of the RPC listener; present with `--enable-rpc`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RpcListener {
    pub(super) address: SocketAddr,
    pub(super) secret: Option<String>,
    pub(super) allows_any_origin: bool,
}

/// Configuration of the session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Saving {
    /// The file at the start; clients may change it. Without one, nothing is written.
    pub(super) path: Option<PathBuf>,
    /// The interval between writes; without one, it is written at the end only.
    pub(super) every: Option<Duration>,
    /// Whether completed downloads are included.
    pub(super) includes_completed: bool,
    /// Whether downloads that failed with 404 are included.
    pub(super) includes_not_found: bool,
    /// Command-line options of downloads. Saved with each download that was added at start, so that a restart without
    /// these arguments keeps them.
    pub(super) command_line_options: Options,
}

#[derive(Debug)]
pub(super) struct Plan {
    /// All options, as given.
    pub(super) options: Options,
    /// The defaults for all downloads, as RPC clients could set them.
    pub(super) usual: Options,
    pub(super) wanted: Vec<Wanted>,
    pub(super) listener: Option<RpcListener>,
    pub(super) saving: Saving,
    pub(super) hooks: Hooks,
    pub(super) directory: PathBuf,
    pub(super) transport: transfer_http::Config,
    pub(super) ftp: transfer_ftp::Config,
    pub(super) sftp: transfer_sftp::Config,
    /// Settings of the session of all torrents.
    pub(super) torrents: BTreeMap<String, String>,
    pub(super) proxy: SystemProxy,
    pub(super) netrc: Option<Netrc>,
    pub(super) stop_after: Option<Duration>,
    pub(super) stop_with: Option<i32>,
    pub(super) summary_every: Option<Duration>,
    /// The limit of kept results.
    pub(super) results: usize,
    /// What is printed instead of downloading anything.
    pub(super) listing: Option<String>,
    /// Messages about ignored input.
    pub(super) warnings: Vec<String>,
}

impl Plan {
    /// Resolves the command line with its configuration and input files.
    pub(super) fn new(given: Arguments, environment: &Environment) -> Result<Self, Refused> {
        let mut warnings = Vec::new();
        let mut options = given.options.clone();
        if !options.is_on("no-conf")
            && let Some(conf) = conf(options.get("conf-path"))?
        {
            warnings.extend(conf.unknown.iter().map(|line| format!("Unknown option: {line}")));
            options = options.over(&conf.options);
        }
        let listener = options.is_on("enable-rpc").then(|| rpc_listener(&options));
        let listing = listing(&given.operands, &options)?;
        let current =
            std::env::current_dir().map_err(|error| Refused::new(format!("No current directory: {error}")))?;
        let directory = options.get("dir").filter(|dir| !dir.is_empty());
        let directory = directory.map_or_else(|| current.clone(), |dir| current.join(dir));
        let mut wanted = wanted(given.operands, &options, listener.is_some(), &mut warnings)?;
        if options.is_on("bt-load-saved-metadata") {
            for wanted in &mut wanted {
                load_metadata(wanted, &directory);
            }
        }
        if wanted.is_empty() && listener.is_none() {
            return Err(Refused::new("Specify at least one URL."));
        }
        let usual = usual(&options, &directory);
        let transport = transport(&options);
        let is_beside = |row: &Row| {
            row.allowed_in_input_file() && !row.per_download_only() && given.options.get(row.name()).is_some()
        };
        let command_line_options = usual.clone().over(&options).filtered(is_beside);
        Ok(Self {
            usual,
            listener,
            wanted,
            saving: saving(&options, &current, command_line_options),
            hooks: Hooks::new(&options),
            sftp: sftp(&ftp(&transport), ssh::config(environment)),
            ftp: ftp(&transport),
            transport,
            proxy: proxies(&options, environment)?,
            netrc: netrc(&options, &mut warnings),
            stop_after: seconds(&options, "stop"),
            stop_with: options.get("stop-with-process").and_then(|pid| pid.parse().ok()),
            summary_every: seconds(&options, "summary-interval"),
            results: number(&options, "max-download-result").unwrap_or(0),
            torrents: torrents(&options),
            directory,
            listing,
            options,
            warnings,
        })
    }
}

/// The value of an option, or its default.
fn value<'a>(options: &'a Options, name: &str) -> Option<&'a str> {
    options.get(name).or_else(|| Row::of(name)?.default())
}

fn number<T: std::str::FromStr>(options: &Options, name: &str) -> Option<T> {
    value(options, name)?.parse().ok()
}

/// A duration in seconds; zero counts as not set.
fn seconds(options: &Options, name: &str) -> Option<Duration> {
    number(options, name)
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs)
}

/// The configuration file: the named one, else the user's, if it exists.
fn conf(named: Option<&str>) -> Result<Option<files::Conf>, Refused> {
    let home = dirs::home_dir();
    let usual = [
        home.as_ref().map(|home| home.join(".aria2")),
        dirs::config_dir().map(|dir| dir.join("aria2")),
    ];
    let mut usual = usual.into_iter().flatten().map(|dir| dir.join("aria2.conf"));
    let path = match named {
        Some(path) if !Path::new(path).is_file() => {
            return Err(Refused::new(format!("Configuration file {path} is not found.")));
        }
        Some(path) => Some(path.into()),
        None => usual.find(|path| path.is_file()),
    };
    let Some(path) = path else { return Ok(None) };
    let text = read(&path)?;
    let home = home.unwrap_or_default();
    let conf = files::conf(&text, &home.to_string_lossy());
    conf.map(Some)
        .map_err(|refusal| Refused::from(refusal).within(&path.display().to_string()))
}

fn read(path: &Path) -> Result<String, Refused> {
    std::fs::read_to_string(path)
        .map_err(|error| Refused::new(format!("Failed to open the file {}, cause: {error}", path.display())))
}

fn rpc_listener(options: &Options) -> RpcListener {
    let address = if options.is_on("rpc-listen-all") {
        Ipv4Addr::UNSPECIFIED
    } else {
        Ipv4Addr::LOCALHOST
    };
    RpcListener {
        address: SocketAddr::new(IpAddr::V4(address), number(options, "rpc-listen-port").unwrap_or(0)),
        secret: options
            .get("rpc-secret")
            .filter(|secret| !secret.is_empty())
            .map(str::to_owned),
        allows_any_origin: options.is_on("rpc-allow-origin-all"),
    }
}

/// The options that apply to every download, as RPC clients would set them.
fn usual(options: &Options, directory: &Path) -> Options {
    let mut usual =
        options.filtered(|row| row.settable_by_rpc() && !row.per_download_only() && !is_proxy_option(row.name()));
    let directory = directory.to_string_lossy().into_owned();
    let unsaid = USUAL.iter().filter(|(name, _)| options.get(name).is_none());
    let unsaid: Vec<_> = unsaid.map(|(name, value)| (*name, (*value).to_owned())).collect();
    for (name, value) in unsaid.into_iter().chain([("dir", directory)]) {
        usual.put(Row::of(name).expect("these are in the table"), value, false);
    }
    for name in ["max-tries", "retry-wait", "auto-file-renaming", "min-split-size"] {
        let row = Row::of(name).expect("these are in the table");
        if let Some(value) = row.default().filter(|_| options.get(name).is_none()) {
            usual.put(row, value.to_owned(), false);
        }
    }
    usual
}

/// Proxies of the command line are treated as system proxies, because `--no-proxy` applies to them.
fn is_proxy_option(name: &str) -> bool {
    name.contains("-proxy")
}

fn proxies(options: &Options, environment: &Environment) -> Result<SystemProxy, Refused> {
    let system = environment.system_proxy.clone();
    let proxy = |name: &str, usual: Option<SafeUrl>| option::proxy(options, name).map(|proxy| proxy.unwrap_or(usual));
    Ok(SystemProxy {
        http: proxy("http-proxy", system.http)?,
        https: proxy("https-proxy", system.https)?,
        ftp: proxy("ftp-proxy", system.ftp)?,
        all: proxy("all-proxy", system.all)?,
        no_proxy: options.get("no-proxy").map_or(system.no_proxy, str::to_owned),
    })
}

/// The logins of `.netrc`. A file that cannot be used is left out with a warning, as aria2 does.
fn netrc(options: &Options, warnings: &mut Vec<String>) -> Option<Netrc> {
    if options.is_on("no-netrc") {
        return None;
    }
    let path = options
        .get("netrc-path")
        .map(PathBuf::from)
        .or_else(netrc::usual_path)?;
    netrc::read(&path).unwrap_or_else(|why| {
        warnings.push(format!("The .netrc file is ignored. {why}"));
        None
    })
}

fn saving(options: &Options, current: &Path, command_line_options: Options) -> Saving {
    let path = options.get("save-session").filter(|path| !path.is_empty());
    Saving {
        path: path.map(|path| current.join(path)),
        every: seconds(options, "save-session-interval"),
        includes_completed: options.is_on("force-save"),
        includes_not_found: options.get("save-not-found") != Some("false"),
        command_line_options,
    }
}

fn transport(options: &Options) -> transfer_http::Config {
    let usual = transfer_http::Config::default();
    let given = |name: &str| options.get(name).and_then(|_| seconds(options, name));
    transfer_http::Config {
        connect_timeout: given("connect-timeout").unwrap_or(usual.connect_timeout),
        response_timeout: given("timeout").unwrap_or(usual.response_timeout),
        stall_timeout: given("timeout").unwrap_or(usual.stall_timeout),
        ca_certificate: options.get("ca-certificate").map(PathBuf::from),
        family: options.is_on("disable-ipv6").then_some(Family::V4),
        ..usual
    }
}

/// What the options for all downloads mean for FTP. Its servers may be silent for longer than those of HTTP.
fn ftp(http: &transfer_http::Config) -> transfer_ftp::Config {
    let (usual, usual_http) = (transfer_ftp::Config::default(), transfer_http::Config::default());
    let is_given = http.stall_timeout != usual_http.stall_timeout;
    transfer_ftp::Config {
        connect_timeout: http.connect_timeout,
        reply_timeout: http.response_timeout,
        stall_timeout: if is_given {
            http.stall_timeout
        } else {
            usual.stall_timeout
        },
        ca_certificate: http.ca_certificate.clone(),
        family: http.family,
        ..usual
    }
}

/// What the options for all downloads mean for SFTP. Unlike aria2, which takes any host key if none is named, the user's
/// `known_hosts` decides then.
fn sftp(ftp: &transfer_ftp::Config, usual: transfer_sftp::Config) -> transfer_sftp::Config {
    transfer_sftp::Config {
        connect_timeout: ftp.connect_timeout,
        stall_timeout: ftp.stall_timeout,
        ca_certificate: ftp.ca_certificate.clone(),
        family: ftp.family,
        ..usual
    }
}

/// The downloads of the command line and of its input file.
fn wanted(
    operands: Vec<String>,
    options: &Options,
    has_clients: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<Wanted>, Refused> {
    let is_each_own = options.is_on("force-sequential");
    // Several files cannot share one name.
    let own = options.filtered(|row| row.per_download_only() && !(is_each_own && row.name() == "out"));
    let entry = |uris: &[String]| Entry {
        uris: uris.to_vec(),
        options: own.clone(),
        ..Entry::default()
    };
    let (mut wanted, mut uris, mut magnets) = (Vec::new(), Vec::new(), Vec::new());
    for operand in operands {
        if Path::new(&operand).is_file() {
            wanted.push(document::read(Path::new(&operand), &own, Vec::new())?);
        } else if Magnet::is_magnet(&operand) {
            magnets.push(operand);
        } else {
            uris.extend(expanded(operand, options)?);
        }
    }
    if let Some(path) = options.get("metalink-file") {
        wanted.push(document::read(Path::new(path), &own, Vec::new())?);
    }
    if let Some(path) = options.get("torrent-file") {
        // As in aria2, the URIs beside it are web servers that have its files.
        let webseeds = std::mem::take(&mut uris);
        wanted.push(document::read_torrent(Path::new(path), &own, webseeds)?);
    }
    let lines = if is_each_own {
        uris.chunks(1)
    } else {
        uris.chunks(uris.len().max(1))
    };
    let mut entries: Vec<Entry> = lines.map(entry).chain(magnets.chunks(1).map(entry)).collect();
    if let Some(path) = options.get("input-file") {
        for entry in list(path, options, warnings)? {
            // As in session files of aria2.
            match entry.uris.first().map(Path::new).filter(|path| path.is_file()) {
                Some(path) => wanted.push(document::read(path, &entry.options, entry.uris[1..].to_vec())?),
                None => entries.push(entry),
            }
        }
    }
    let jar = options
        .get("load-cookies")
        .map(|path| jar(Path::new(path)))
        .transpose()?;
    for entry in &mut entries {
        if let Some(jar) = &jar {
            give_cookies(entry, jar, options);
        }
    }
    wanted.extend(entries.into_iter().map(Wanted::Uris));
    if !has_clients {
        // Nothing could start them.
        for wanted in &mut wanted {
            let options = match wanted {
                Wanted::Uris(entry) => &mut entry.options,
                Wanted::Metalink(_, options) | Wanted::Torrent { options, .. } => options,
            };
            *options = options.filtered(|row| row.name() != "pause");
        }
    }
    Ok(wanted)
}

/// What `--show-files` prints.
fn listing(operands: &[String], options: &Options) -> Result<Option<String>, Refused> {
    if !options.is_on("show-files") {
        return Ok(None);
    }
    let named = ["torrent-file", "metalink-file"]
        .into_iter()
        .filter_map(|name| options.get(name));
    let paths = operands.iter().map(String::as_str).chain(named);
    let mut paths = paths.map(Path::new).filter(|path| path.is_file()).peekable();
    // As in aria2, there is nothing to list of a URI.
    if paths.peek().is_none() {
        return Ok(None);
    }
    paths.map(document::listing).collect::<Result<_, _>>().map(Some)
}

/// Replaces a magnet link by the torrent file that `--bt-save-metadata` wrote in an earlier run.
fn load_metadata(wanted: &mut Wanted, directory: &Path) {
    let Wanted::Uris(entry) = &*wanted else { return };
    let [uri] = &entry.uris[..] else { return };
    let Ok(magnet) = uri.parse::<Magnet>() else { return };
    let directory = directory.join(entry.options.get("dir").unwrap_or_default());
    let path = document::saved_metadata(&directory, magnet.info_hash);
    if let Ok(found @ Wanted::Torrent { info_hash, .. }) = document::read_torrent(&path, &entry.options, Vec::new())
        && info_hash == magnet.info_hash
    {
        *wanted = found;
    }
}

/// Settings of all torrents that no method of aria2 changes.
fn torrents(options: &Options) -> BTreeMap<String, String> {
    let ports = value(options, "listen-port").and_then(option::ports);
    let ports = ports.expect("the option was checked when it was read");
    let settings = [
        (
            "bt_enable_dht",
            value(options, "enable-dht").unwrap_or_default().to_owned(),
        ),
        // aria2 asks no router for a port, and subscribes to no lists of trackers.
        ("bt_enable_upnp", "false".to_owned()),
        ("bt_tracker_sub_enabled", "false".to_owned()),
        ("bt_port_start", ports.start().to_string()),
        ("bt_port_end", ports.end().to_string()),
    ];
    settings.map(|(key, value)| (key.to_owned(), value)).into()
}

fn expanded(uri: String, options: &Options) -> Result<Vec<String>, Refused> {
    if options.is_on("parameterized-uri") {
        expand(&uri).map_err(Refused::new)
    } else {
        Ok(vec![uri])
    }
}

fn list(path: &str, options: &Options, warnings: &mut Vec<String>) -> Result<Vec<Entry>, Refused> {
    let mut text = String::new();
    if path == "-" {
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(|error| Refused::new(format!("Failed to read standard input, cause: {error}")))?;
    } else {
        text = read(Path::new(path))?;
    }
    let mut entries = files::list(&text);
    for entry in &mut entries {
        if let Some(refusal) = entry.refused.pop() {
            return Err(Refused::from(refusal).within(path));
        }
        warnings.extend(entry.unknown.drain(..).map(|line| format!("Unknown option: {line}")));
        let uris = std::mem::take(&mut entry.uris);
        for uri in uris {
            entry.uris.extend(expanded(uri, options)?);
        }
    }
    Ok(entries)
}

fn unix_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

fn jar(path: &Path) -> Result<CookieJar, Refused> {
    let parsed = CookieJar::parse(&read(path)?, unix_seconds());
    parsed.map_err(|problem| Refused::bad_value("load-cookies", &problem.to_string()))
}

/// Adds the cookies that match its first URI to the headers of a download.
fn give_cookies(entry: &mut Entry, jar: &CookieJar, options: &Options) {
    let url = entry.uris.first().and_then(|uri| SafeUrl::parse(uri).ok());
    let cookies = url.map(|url| jar.for_url(&url, unix_seconds())).unwrap_or_default();
    if cookies.is_empty() {
        return;
    }
    let row = Row::of("header").expect("it is in the table");
    if entry.options.get("header").is_none()
        && let Some(usual) = options.get("header")
    {
        entry.options.put(row, usual.to_owned(), false);
    }
    entry.options.put(row, format!("Cookie: {cookies}"), true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Invocation, read};

    fn plan(line: &[&str]) -> Plan {
        let line = [&["--no-conf"], line].concat();
        match read(line.iter().map(ToString::to_string)).unwrap() {
            Invocation::Run(given) => Plan::new(given, &Environment::default()).unwrap(),
            asked => panic!("{asked:?}"),
        }
    }

    fn uris(plan: &Plan) -> Vec<Vec<&str>> {
        let uris = |wanted: &'_ Wanted| match wanted {
            Wanted::Uris(entry) => entry.uris.clone(),
            Wanted::Metalink(..) | Wanted::Torrent { .. } => Vec::new(),
        };
        let all: Vec<Vec<String>> = plan.wanted.iter().map(uris).collect();
        all.into_iter()
            .map(|uris| uris.into_iter().map(|uri| &*uri.leak()).collect())
            .collect()
    }

    #[test]
    fn uris_of_the_command_line_are_mirrors_unless_each_is_its_own() {
        assert_eq!(
            uris(&plan(&["http://a/f", "http://b/f"])),
            [["http://a/f", "http://b/f"]]
        );
        assert_eq!(
            uris(&plan(&["-Z", "http://a/f", "http://b/g"])),
            [["http://a/f"], ["http://b/g"]]
        );
        assert_eq!(
            uris(&plan(&["-P", "-Z", "http://a/{f,g}"])),
            [["http://a/f"], ["http://a/g"]]
        );
    }

    #[test]
    fn each_magnet_link_is_a_download_of_its_own() {
        let magnets = ["a", "b"].map(|digit| format!("magnet:?xt=urn:btih:{}", digit.repeat(40)));
        let [one, other] = &magnets;
        assert_eq!(
            uris(&plan(&[one, "http://a/f", "http://b/f", other])),
            [
                vec!["http://a/f", "http://b/f"],
                vec![one.as_str()],
                vec![other.as_str()]
            ]
        );
    }

    #[test]
    fn saved_metadata_is_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let info = [
            &b"d6:lengthi5e4:name1:f12:piece lengthi65536e6:pieces20:"[..],
            &[b'x'; 20],
            b"e",
        ]
        .concat();
        let torrent = [b"d4:info", &info[..], b"e"].concat();
        let hash = metainfo::Metainfo::parse(&torrent).unwrap().info.hash();
        let link = format!("magnet:?xt=urn:btih:{hash}");
        let place = format!("--dir={}", dir.path().display());
        let is_loaded = |option: &str| matches!(plan(&[&place, option, &link]).wanted[..], [Wanted::Torrent { .. }]);
        assert!(!is_loaded("--bt-load-saved-metadata=true"), "there is none");
        std::fs::write(document::saved_metadata(dir.path(), hash), &torrent).unwrap();
        assert!(is_loaded("--bt-load-saved-metadata=true") && !is_loaded("--bt-load-saved-metadata=false"));
        std::fs::write(document::saved_metadata(dir.path(), hash), b"d4:infod").unwrap();
        assert!(!is_loaded("--bt-load-saved-metadata=true"), "it is broken");
    }

    #[test]
    fn torrents_have_aria2s_ports_and_ask_no_router() {
        let check = |line: &[&str], key: &str, expect: &str| {
            assert_eq!(plan(line).torrents[key], expect, "{line:?}");
        };
        check(&["http://a/f"], "bt_port_start", "6881");
        check(&["http://a/f"], "bt_port_end", "6999");
        check(&["--listen-port=7000", "http://a/f"], "bt_port_end", "7000");
        check(&["--enable-dht=false", "http://a/f"], "bt_enable_dht", "false");
        check(&["http://a/f"], "bt_enable_upnp", "false");
        let usual = plan(&["--seed-time=0.5", "http://a/f"]).usual;
        assert_eq!(
            (usual.get("seed-ratio"), usual.get("seed-time")),
            (Some("1.0"), Some("0.5"))
        );
    }

    #[test]
    fn defaults_are_those_of_aria2_and_options_of_one_download_do_not_apply_to_all() {
        let plan = plan(&[
            "-o",
            "name",
            "--max-tries=2",
            "--no-proxy=a",
            "--all-proxy=p:1",
            "http://a/f",
        ]);
        for (name, expect) in [
            ("split", Some("5")),
            ("max-connection-per-server", Some("1")),
            ("max-tries", Some("2")),
            ("out", None),
            ("no-proxy", None),
            ("all-proxy", None),
        ] {
            assert_eq!(plan.usual.get(name), expect, "{name}");
        }
        assert_eq!(plan.proxy.no_proxy, "a");
        assert_eq!(plan.proxy.all.as_ref().map(SafeUrl::expose), Some("http://p:1/"));
        let [Wanted::Uris(entry)] = &plan.wanted[..] else {
            panic!("{:?}", plan.wanted)
        };
        assert_eq!(entry.options.get("out"), Some("name"));
        assert_eq!(plan.results, 1000);
    }

    #[test]
    fn clients_come_in_where_they_are_let_in_only() {
        assert_eq!(plan(&["http://a/f"]).listener, None);
        let listener = |line: &[&str]| plan(&[&["--enable-rpc"], line].concat()).listener.unwrap();
        assert_eq!(listener(&[]).address, "127.0.0.1:6800".parse().unwrap());
        assert_eq!((listener(&[]).secret, listener(&[]).allows_any_origin), (None, false));
        let open = listener(&[
            "--rpc-listen-all",
            "--rpc-listen-port=7000",
            "--rpc-secret=s",
            "--rpc-allow-origin-all",
        ]);
        assert_eq!(open.address, "0.0.0.0:7000".parse().unwrap());
        assert_eq!((open.secret.as_deref(), open.allows_any_origin), (Some("s"), true));
    }

    #[test]
    fn a_download_is_not_paused_without_clients_that_could_start_it() {
        let paused = |line: &[&str]| match &plan(line).wanted[..] {
            [Wanted::Uris(entry)] => entry.options.is_on("pause"),
            wanted => panic!("{wanted:?}"),
        };
        assert!(paused(&["--enable-rpc", "--pause", "http://a/f"]));
        assert!(!paused(&["--pause", "http://a/f"]));
    }
}
