//! The table of all options of aria2: what each does here, and why one that does nothing is accepted or refused. Help
//! and documentation are made of it.

use super::row::{
    Effect::{self, Acts, Harmless, Refused},
    Kind::{self, Checksum, Edges, Flag, Float, Gid, Lines, Number, OneOf, Ports, Size, Text},
    Row, Scope,
};

/// An upper bound for counts; larger values have no effect.
const MANY: u64 = 1_000_000_000;

const ANY: u64 = u64::MAX;

const FOLLOWED: &[&str] = &["true", "mem", "false"];
const ALLOCATIONS: &[&str] = &["none", "prealloc", "trunc", "falloc"];
const SCHEMES: &[&str] = &["http", "https", "ftp", "none"];
const POLLS: &[&str] = &["epoll", "kqueue", "port", "poll", "select"];
const TLS: &[&str] = &["SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2"];
const LEVELS: &[&str] = &["debug", "info", "notice", "warn", "error"];

/// Why an option is without effect here, or refused. Options with one reason share it.
const ENCRYPTION: &str = "peers are obfuscated as the setting bt_mse_mode says, which is for all torrents";
const TRACKER_TIMES: &str = "trackers are asked as often as they allow, within fixed time limits";
const PEERS: &str = "peers are connected until there are bt-max-peers, whatever the speed is";
const DHT: &str = "the hash table is entered through its usual nodes, on the port of listen-port, over IPv4 and IPv6";
const IDENTITY: &str = "peers and trackers see the name of Svc";
const METADATA: &str = "the service keeps what it learned of a magnet link as long as its task";
const RESUMES: &str = "a download that its server cannot continue starts over";
const LOOKUP: &str = "names are looked up as the system does, without waiting for each other";
const TIMEOUTS: &str = "the time limits are those of the start, for all downloads";
const CONNECTIONS: &str = "connections are used again where the server allows it, one request at a time";
const DISK: &str = "how the file's place on the disk is made; its bytes are the same";
const SESSION: &str = "where and what is saved was decided at the start";
const CHOICE: &str = "how servers are asked and chosen; the bytes are the same";
const STATS: &str = "servers are measured again at each start";
const RESULTS: &str = "results stay until they are removed; the console is that of the start";
const LOG: &str = "the log was chosen at the start";
const RESOURCES: &str = "how memory, descriptors and sockets are used";
const CLIENT_KEY: &str = "client certificates are not sent";
const INTERFACE: &str = "the system chooses the way of each connection";
const RPC_TLS: &str = "clients connect without TLS; put a proxy with TLS before it";
const RPC_LOGIN: &str = "clients identify themselves with --rpc-secret";

/// A row for an option of downloads.
const fn request(name: &'static str, kind: Kind, default: &'static str, effect: Effect) -> Row {
    row(name, kind, default, effect, Scope::Request)
}

const fn global(name: &'static str, kind: Kind, default: &'static str, effect: Effect) -> Row {
    row(name, kind, default, effect, Scope::Global)
}

const fn start(name: &'static str, kind: Kind, default: &'static str, effect: Effect) -> Row {
    row(name, kind, default, effect, Scope::Start)
}

const fn row(name: &'static str, kind: Kind, default: &'static str, effect: Effect, scope: Scope) -> Row {
    let default = if default.is_empty() { None } else { Some(default) };
    Row {
        name,
        kind,
        default,
        scope,
        effect,
    }
}

/// An option without a default corresponds to a service setting, or has none.
pub(crate) const ROWS: &[Row] = &[
    request("all-proxy", Text, "", Acts),
    request("all-proxy-passwd", Text, "", Acts),
    request("all-proxy-user", Text, "", Acts),
    request("allow-overwrite", Flag, "false", Acts),
    request(
        "allow-piece-length-change",
        Flag,
        "false",
        Harmless("an unfinished file goes on with any piece length"),
    ),
    request("always-resume", Flag, "true", Harmless(RESUMES)),
    request("async-dns", Flag, "true", Harmless(LOOKUP)),
    request("auto-file-renaming", Flag, "true", Acts),
    request(
        "bt-enable-hook-after-hash-check",
        Flag,
        "true",
        Refused("what is complete after a check is announced like any other download"),
    ),
    request("bt-enable-lpd", Flag, "", Acts),
    request("bt-exclude-tracker", Text, "", Acts),
    request(
        "bt-external-ip",
        Text,
        "",
        Refused("trackers see the address that the connection comes from"),
    ),
    request("bt-force-encryption", Flag, "false", Refused(ENCRYPTION)),
    request(
        "bt-hash-check-seed",
        Flag,
        "true",
        Refused("what is complete after a check is seeded like any other download; give seed-time=0"),
    ),
    request("bt-load-saved-metadata", Flag, "false", Harmless(METADATA)),
    request("bt-max-peers", Number(0, MANY), "", Acts),
    request("bt-metadata-only", Flag, "false", Acts),
    request(
        "bt-min-crypto-level",
        OneOf(&["plain", "arc4"]),
        "plain",
        Refused(ENCRYPTION),
    ),
    request("bt-prioritize-piece", Edges, "", Acts),
    request(
        "bt-remove-unselected-file",
        Flag,
        "false",
        Harmless("a file that was never selected leaves nothing behind; one that is there stays"),
    ),
    request("bt-request-peer-speed-limit", Size(0, ANY), "51200", Harmless(PEERS)),
    request("bt-require-crypto", Flag, "false", Refused(ENCRYPTION)),
    request("bt-save-metadata", Flag, "false", Acts),
    request("bt-seed-unverified", Flag, "false", Acts),
    request("bt-stop-timeout", Number(0, MANY), "0", Acts),
    request("bt-tracker", Text, "", Acts),
    request(
        "bt-tracker-connect-timeout",
        Number(1, 600),
        "60",
        Harmless(TRACKER_TIMES),
    ),
    request("bt-tracker-interval", Number(0, MANY), "0", Harmless(TRACKER_TIMES)),
    request("bt-tracker-timeout", Number(1, 600), "60", Harmless(TRACKER_TIMES)),
    request("check-certificate", Flag, "true", Acts),
    request("check-integrity", Flag, "false", Acts),
    request("checksum", Checksum, "", Acts),
    request(
        "conditional-get",
        Flag,
        "false",
        Refused("a file is not compared with the time of an older one; remove the older one"),
    ),
    request("connect-timeout", Number(1, 600), "60", Harmless(TIMEOUTS)),
    request(
        "content-disposition-default-utf8",
        Flag,
        "false",
        Harmless("the encoding of a name is detected"),
    ),
    request(
        "continue",
        Flag,
        "false",
        Harmless("an unfinished download goes on anyway; a file that the service did not begin is not touched"),
    ),
    request("dir", Text, "", Acts),
    request(
        "dry-run",
        Flag,
        "false",
        Refused("there is no download without a file; ask the server with curl -I"),
    ),
    request("enable-http-keep-alive", Flag, "true", Harmless(CONNECTIONS)),
    request("enable-http-pipelining", Flag, "false", Harmless(CONNECTIONS)),
    request("enable-mmap", Flag, "false", Harmless(DISK)),
    request("enable-peer-exchange", Flag, "", Acts),
    request("file-allocation", OneOf(ALLOCATIONS), "prealloc", Harmless(DISK)),
    request(
        "follow-metalink",
        OneOf(FOLLOWED),
        "true",
        Harmless("acts for svc aria2c; a service follows documents with the plugin metalink"),
    ),
    request("follow-torrent", OneOf(FOLLOWED), "", Acts),
    request("force-save", Flag, "false", Harmless(SESSION)),
    request("ftp-passwd", Text, "", Acts),
    request("ftp-pasv", Flag, "true", Refused("active mode is not offered")),
    request("ftp-proxy", Text, "", Acts),
    request("ftp-proxy-passwd", Text, "", Acts),
    request("ftp-proxy-user", Text, "", Acts),
    request("ftp-reuse-connection", Flag, "true", Harmless(CONNECTIONS)),
    request(
        "ftp-type",
        OneOf(&["binary", "ascii"]),
        "binary",
        Refused("files are fetched as they are; their line ends are not converted"),
    ),
    request("ftp-user", Text, "", Acts),
    request("gid", Gid, "", Acts),
    request(
        "hash-check-only",
        Flag,
        "false",
        Refused("a check that finds a wrong file fetches it again; use check-integrity"),
    ),
    request("header", Lines, "", Acts),
    request(
        "http-accept-gzip",
        Flag,
        "false",
        Harmless("the bytes of a file are asked for as they are"),
    ),
    request(
        "http-auth-challenge",
        Flag,
        "false",
        Harmless("a login is sent with the first request, and only to its own host"),
    ),
    request("http-no-cache", Flag, "false", Acts),
    request("http-passwd", Text, "", Acts),
    request("http-proxy", Text, "", Acts),
    request("http-proxy-passwd", Text, "", Acts),
    request("http-proxy-user", Text, "", Acts),
    request("http-user", Text, "", Acts),
    request("https-proxy", Text, "", Acts),
    request("https-proxy-passwd", Text, "", Acts),
    request("https-proxy-user", Text, "", Acts),
    request("index-out", Lines, "", Acts),
    request("lowest-speed-limit", Size(0, ANY), "0", Acts),
    request("max-connection-per-server", Number(1, 16), "", Acts),
    request("max-download-limit", Size(0, ANY), "0", Acts),
    request("max-file-not-found", Number(0, MANY), "0", Acts),
    request("max-mmap-limit", Size(0, ANY), "9223372036854775807", Harmless(DISK)),
    request("max-resume-failure-tries", Number(0, MANY), "0", Harmless(RESUMES)),
    request("max-tries", Number(0, MANY), "5", Acts),
    request("max-upload-limit", Size(0, ANY), "0", Acts),
    request("metalink-base-uri", Text, "", Acts),
    request(
        "metalink-enable-unique-protocol",
        Flag,
        "true",
        Harmless("all mirrors of a file are used"),
    ),
    request("metalink-language", Text, "", Acts),
    request("metalink-location", Text, "", Acts),
    request("metalink-os", Text, "", Acts),
    request("metalink-preferred-protocol", OneOf(SCHEMES), "none", Acts),
    request("metalink-version", Text, "", Acts),
    request("min-split-size", Size(1 << 20, 1 << 30), "20971520", Acts),
    request("no-file-allocation-limit", Size(0, ANY), "5242880", Harmless(DISK)),
    request("no-netrc", Flag, "false", Acts),
    request(
        "no-proxy",
        Text,
        "",
        Refused("a download has one proxy or none; give all-proxy= for none"),
    ),
    request("out", Text, "", Acts),
    request(
        "parameterized-uri",
        Flag,
        "false",
        Refused("give one download for each URI"),
    ),
    request("pause", Flag, "", Acts),
    request("pause-metadata", Flag, "false", Acts),
    request(
        "piece-length",
        Size(1 << 20, 1 << 30),
        "1048576",
        Harmless("a file is split where connections need it, not into pieces"),
    ),
    request(
        "proxy-method",
        OneOf(&["get", "tunnel"]),
        "get",
        Harmless("HTTPS always goes through a tunnel, HTTP never: the bytes are the same"),
    ),
    request(
        "realtime-chunk-checksum",
        Flag,
        "true",
        Harmless("pieces with hashes are verified when the file is complete"),
    ),
    request("referer", Text, "", Acts),
    request("remote-time", Flag, "", Acts),
    request(
        "remove-control-file",
        Flag,
        "false",
        Refused("what was begun goes on; delete NAME.svcpart and NAME.svcpart.journal, or NAME.aria2, to start over"),
    ),
    request("retry-wait", Number(0, 600), "0", Acts),
    request("reuse-uri", Flag, "true", Harmless(CHOICE)),
    request(
        "rpc-save-upload-metadata",
        Flag,
        "true",
        Harmless("an uploaded torrent is kept by the service as long as its task"),
    ),
    request("seed-ratio", Float, "", Acts),
    request("seed-time", Float, "", Acts),
    request("select-file", Text, "", Acts),
    request("split", Number(1, MANY), "", Acts),
    request("ssh-host-key-md", Text, "", Acts),
    request("stream-piece-selector", Text, "default", Harmless(CHOICE)),
    request("timeout", Number(1, 600), "60", Harmless(TIMEOUTS)),
    request("uri-selector", Text, "feedback", Harmless(CHOICE)),
    request("use-head", Flag, "false", Harmless(CHOICE)),
    request("user-agent", Text, "", Acts),
    global("bt-max-open-files", Number(1, MANY), "100", Harmless(RESOURCES)),
    global(
        "download-result",
        OneOf(&["default", "full", "hide"]),
        "default",
        Harmless(RESULTS),
    ),
    global("keep-unfinished-download-result", Flag, "true", Harmless(RESULTS)),
    global("log", Text, "", Harmless(LOG)),
    global("log-level", OneOf(LEVELS), "debug", Harmless(LOG)),
    global("max-concurrent-downloads", Number(1, MANY), "", Acts),
    global("max-download-result", Number(0, MANY), "1000", Harmless(RESULTS)),
    global("max-overall-download-limit", Size(0, ANY), "", Acts),
    global("max-overall-upload-limit", Size(0, ANY), "", Acts),
    global(
        "optimize-concurrent-downloads",
        Text,
        "false",
        Harmless("max-concurrent-downloads holds as it is"),
    ),
    global(
        "save-cookies",
        Text,
        "",
        Refused("cookies of servers are not kept after the download"),
    ),
    global("save-session", Text, "", Harmless(SESSION)),
    global("server-stat-of", Text, "", Harmless(STATS)),
    start(
        "async-dns-server",
        Text,
        "",
        Refused("names are looked up as the system does"),
    ),
    start(
        "auto-save-interval",
        Number(0, 600),
        "60",
        Harmless("the journal beside the file is written all the time"),
    ),
    start(
        "bt-detach-seed-only",
        Flag,
        "false",
        Harmless("a torrent that is seeded takes no place of a download"),
    ),
    start("bt-lpd-interface", Text, "", Refused(INTERFACE)),
    start("ca-certificate", Text, "", Acts),
    start("certificate", Text, "", Refused(CLIENT_KEY)),
    start("conf-path", Text, "", Acts),
    start("console-log-level", OneOf(LEVELS), "notice", Acts),
    start("daemon", Flag, "false", Acts),
    start("deferred-input", Flag, "false", Harmless(RESOURCES)),
    start("dht-entry-point", Text, "", Harmless(DHT)),
    start("dht-entry-point6", Text, "", Harmless(DHT)),
    start("dht-file-path", Text, "", Harmless(DHT)),
    start("dht-file-path6", Text, "", Harmless(DHT)),
    start("dht-listen-addr6", Text, "", Harmless(DHT)),
    start("dht-listen-port", Text, "", Harmless(DHT)),
    start("dht-message-timeout", Number(1, 60), "10", Harmless(DHT)),
    start("disable-ipv6", Flag, "false", Acts),
    start("disk-cache", Size(0, ANY), "16777216", Harmless(DISK)),
    start("dscp", Number(0, 63), "0", Refused(INTERFACE)),
    start("enable-async-dns6", Flag, "false", Harmless(LOOKUP)),
    start("enable-color", Flag, "true", Acts),
    start("enable-dht", Flag, "true", Acts),
    start("enable-dht6", Flag, "false", Harmless(DHT)),
    start("enable-rpc", Flag, "false", Acts),
    start("event-poll", OneOf(POLLS), "epoll", Harmless(RESOURCES)),
    start("force-sequential", Flag, "false", Acts),
    start("human-readable", Flag, "true", Acts),
    start("input-file", Text, "", Acts),
    start("interface", Text, "", Refused(INTERFACE)),
    start("listen-port", Ports, "6881-6999", Acts),
    start("load-cookies", Text, "", Acts),
    start("metalink-file", Text, "", Acts),
    start(
        "min-tls-version",
        OneOf(TLS),
        "TLSv1.2",
        Harmless("nothing below TLS 1.2 is ever used"),
    ),
    start("multiple-interface", Text, "", Refused(INTERFACE)),
    start("netrc-path", Text, "", Acts),
    start("no-conf", Flag, "false", Acts),
    start("on-bt-download-complete", Text, "", Acts),
    start("on-download-complete", Text, "", Acts),
    start("on-download-error", Text, "", Acts),
    start("on-download-pause", Text, "", Acts),
    start("on-download-start", Text, "", Acts),
    start("on-download-stop", Text, "", Acts),
    start("peer-agent", Text, "", Harmless(IDENTITY)),
    start("peer-id-prefix", Text, "", Harmless(IDENTITY)),
    start("private-key", Text, "", Refused(CLIENT_KEY)),
    start("quiet", Flag, "false", Acts),
    start("rlimit-nofile", Number(1, MANY), "1024", Harmless(RESOURCES)),
    start("rpc-allow-origin-all", Flag, "false", Acts),
    start("rpc-certificate", Text, "", Refused(RPC_TLS)),
    start("rpc-listen-all", Flag, "false", Acts),
    start("rpc-listen-port", Number(1024, 65535), "6800", Acts),
    start(
        "rpc-max-request-size",
        Size(0, ANY),
        "2097152",
        Harmless("it is always 4 MiB"),
    ),
    start("rpc-passwd", Text, "", Refused(RPC_LOGIN)),
    start("rpc-private-key", Text, "", Refused(RPC_TLS)),
    start("rpc-secret", Text, "", Acts),
    start("rpc-secure", Flag, "false", Refused(RPC_TLS)),
    start("rpc-user", Text, "", Refused(RPC_LOGIN)),
    start("save-not-found", Flag, "true", Acts),
    start("save-session-interval", Number(0, MANY), "0", Acts),
    start("server-stat-if", Text, "", Harmless(STATS)),
    start("server-stat-timeout", Number(0, MANY), "86400", Harmless(STATS)),
    start("show-console-readout", Flag, "true", Acts),
    start("show-files", Flag, "false", Acts),
    start("socket-recv-buffer-size", Size(0, 16 << 20), "0", Harmless(RESOURCES)),
    start("stderr", Flag, "false", Acts),
    start("stop", Number(0, MANY), "0", Acts),
    start("stop-with-process", Number(0, MANY), "", Acts),
    start("summary-interval", Number(0, MANY), "60", Acts),
    start("torrent-file", Text, "", Acts),
    start("truncate-console-readout", Flag, "true", Acts),
];

/// Options whose effect at the start of a program differs from that for RPC clients.
pub(crate) const AT_START: &[(&str, Effect)] = &[
    ("bt-load-saved-metadata", Acts),
    ("connect-timeout", Acts),
    ("continue", Acts),
    ("download-result", Acts),
    ("force-save", Acts),
    ("log", Acts),
    ("log-level", Acts),
    ("max-download-result", Acts),
    ("no-proxy", Acts),
    ("parameterized-uri", Acts),
    ("save-session", Acts),
    ("timeout", Acts),
];

/// Short names.
pub const LETTERS: &[(char, &str)] = &[
    ('D', "daemon"),
    ('M', "metalink-file"),
    ('O', "index-out"),
    ('P', "parameterized-uri"),
    ('R', "remote-time"),
    ('S', "show-files"),
    ('T', "torrent-file"),
    ('U', "user-agent"),
    ('V', "check-integrity"),
    ('Z', "force-sequential"),
    ('c', "continue"),
    ('d', "dir"),
    ('i', "input-file"),
    ('j', "max-concurrent-downloads"),
    ('k', "min-split-size"),
    ('l', "log"),
    ('m', "max-tries"),
    ('n', "no-netrc"),
    ('o', "out"),
    ('p', "ftp-pasv"),
    ('q', "quiet"),
    ('s', "split"),
    ('t', "timeout"),
    ('u', "max-upload-limit"),
    ('x', "max-connection-per-server"),
];
