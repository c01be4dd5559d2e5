//! Which crate may use which. An edge that is not here does not exist; adding one is a decision, made in this file.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// Every crate of the workspace, and the ones it may use in its code.
const EDGES: &[(&str, &[&str])] = &[
    ("transfer", &[]),
    ("egress", &["transfer"]),
    ("transfer-ftp", &["transfer", "egress"]),
    ("transfer-sftp", &["transfer", "egress"]),
    ("metalink-reader", &["transfer"]),
    ("import", &["metainfo", "protocol", "transfer"]),
    ("transfer-http", &["transfer", "egress"]),
    ("private-files", &[]),
    ("message-bus", &[]),
    ("key-store", &["message-bus"]),
    ("confined", &[]),
    ("metainfo", &["transfer"]),
    ("peer-discovery", &["egress", "metainfo", "private-files", "transfer"]),
    ("post", &["confined", "private-files", "transfer"]),
    (
        "chains",
        &["confined", "engine", "post", "protocol", "store", "transfer"],
    ),
    ("store", &["key-store", "private-files"]),
    ("engine", &["transfer", "store"]),
    ("accounts", &["plugin-package", "store", "transfer"]),
    ("rss", &["egress", "engine", "protocol", "store", "transfer"]),
    ("hooks", &["egress", "protocol", "transfer"]),
    (
        "plugin-host",
        &[
            "accounts",
            "transfer",
            "egress",
            "store",
            "engine",
            "market",
            "plugin-package",
            "private-files",
            "svc-plugin-fixture",
        ],
    ),
    (
        "plugin-wasm",
        &[
            "accounts",
            "confined",
            "transfer",
            "egress",
            "svc-plugin-text",
            "plugin-host",
        ],
    ),
    (
        "svc-plugin",
        &["svc-plugin-derive", "svc-plugin-fixture", "svc-plugin-text"],
    ),
    ("svc-plugin-derive", &[]),
    ("svc-plugin-fixture", &["svc-plugin-text"]),
    ("svc-plugin-text", &[]),
    ("protocol", &[]),
    ("plugin-package", &["transfer"]),
    ("market", &["transfer", "egress", "plugin-package"]),
    ("market-tool", &["market", "plugin-package", "private-files"]),
    ("admission", &[]),
    ("tools", &["egress", "private-files", "transfer"]),
    (
        "torrent",
        &["admission", "egress", "metainfo", "private-files", "transfer"],
    ),
    (
        "transfer-torrent",
        &[
            "egress",
            "metainfo",
            "peer-discovery",
            "private-files",
            "torrent",
            "transfer",
        ],
    ),
    (
        "aria2",
        &["admission", "metainfo", "metalink-reader", "protocol", "transfer"],
    ),
    ("link", &["admission", "egress", "protocol"]),
    ("rest", &["admission", "protocol"]),
    (
        "agent",
        &["admission", "aria2", "link", "private-files", "protocol", "rest"],
    ),
    (
        "daemon",
        &[
            "admission",
            "private-files",
            "protocol",
            "engine",
            "store",
            "transfer",
            "egress",
            "plugin-host",
            "rss",
            "chains",
            "post",
            "confined",
            "hooks",
            "metainfo",
            "metalink-reader",
            "tools",
            "transfer-torrent",
        ],
    ),
    ("service", &["agent", "daemon"]),
    ("desktop", &["agent", "command", "message-bus", "protocol"]),
    ("command", &["protocol", "transfer", "transfer-sftp", "engine"]),
    (
        "get",
        &[
            "command",
            "metainfo",
            "metalink-reader",
            "protocol",
            "transfer",
            "transfer-ftp",
            "transfer-http",
            "transfer-sftp",
            "transfer-torrent",
            "engine",
            "store",
        ],
    ),
    (
        "cli",
        &[
            "command",
            "get",
            "agent",
            "aria2",
            "protocol",
            "egress",
            "engine",
            "import",
            "metainfo",
            "store",
            "transfer",
            "market",
            "plugin-host",
            "private-files",
        ],
    ),
    (
        "aria2c",
        &[
            "command",
            "agent",
            "aria2",
            "daemon",
            "egress",
            "engine",
            "metainfo",
            "metalink-reader",
            "protocol",
            "service",
            "transfer",
            "transfer-ftp",
            "transfer-http",
            "transfer-sftp",
            "transfer-torrent",
        ],
    ),
    (
        "author",
        &[
            "command",
            "cli",
            "market",
            "market-tool",
            "plugin-host",
            "plugin-package",
            "plugin-wasm",
            "protocol",
            "transfer",
        ],
    ),
    (
        "host",
        &[
            "command",
            "get",
            "cli",
            "aria2c",
            "author",
            "service",
            "transfer",
            "egress",
            "transfer-ftp",
            "transfer-http",
            "transfer-sftp",
            "transfer-torrent",
            "store",
            "engine",
            "protocol",
            "daemon",
            "desktop",
            "agent",
            "aria2",
            "plugin-host",
            "plugin-package",
            "plugin-package",
            "plugin-wasm",
            "confined",
            "post",
            "tools",
            "market",
            "market-tool",
        ],
    ),
    ("support", &["transfer"]),
    (
        "fuzz",
        &[
            "agent",
            "aria2",
            "daemon",
            "egress",
            "engine",
            "link",
            "market",
            "metalink-reader",
            "metainfo",
            "plugin-package",
            "post",
            "service",
            "support",
            "svc-plugin",
            "torrent",
            "transfer",
            "transfer-ftp",
            "transfer-http",
            "transfer-sftp",
        ],
    ),
    ("e2e", &["support"]),
    ("tidy", &[]),
];

/// Crates that any crate may use in its tests.
const FOR_TESTS: &[&str] = &["support"];

/// Crates that a crate may use in its tests only.
const EDGES_OF_TESTS: &[(&str, &[&str])] = &[
    (
        "agent",
        &["daemon", "plugin-host", "transfer", "transfer-http", "transfer-torrent"],
    ),
    ("daemon", &["market", "market-tool", "plugin-package"]),
    ("plugin-host", &["market-tool"]),
    ("plugin-wasm", &["plugin-package"]),
    ("market-tool", &["egress"]),
];

/// Dependencies behind a wall: only these crates may name them, in tests too.
const WALLS: &[(&str, &[&str])] = &[
    // "import" reads the databases of other programs.
    ("rusqlite", &["store", "import"]),
    // Whatever can open a connection by itself, and whom TLS trusts.
    ("reqwest", &["egress"]),
    ("rustls-native-certs", &["egress"]),
    ("webpki-roots", &["egress"]),
    ("rustls", &["egress", "transfer-ftp", "cli", "support"]),
    // On streams that egress opened.
    ("russh", &["transfer-sftp"]),
    ("tokio-rustls", &["egress", "cli", "support"]),
    ("tokio-socks", &["egress"]),
    ("wasmtime", &["plugin-wasm"]),
    ("wasmtime-wasi", &["plugin-wasm"]),
    (
        "clap",
        &[
            "aria2c",
            "author",
            "cli",
            "command",
            "desktop",
            "get",
            "host",
            "market-tool",
        ],
    ),
    // Keys of devices, and multicast.
    ("ed25519-dalek", &["link"]),
    ("curve25519-dalek", &["link"]),
    ("mdns-sd", &["link"]),
    ("if-addrs", &["link"]),
    ("indicatif", &["cli", "get"]),
    // Readers of archives, which run in a child process only.
    ("rars", &["post"]),
    ("sevenz-rust2", &["post"]),
    ("ruzstd", &["post"]),
    ("lzma-rust2", &["post"]),
    ("bzip2", &["post"]),
    // Private keys; the tests of the library sign, too, as do its hostile inputs.
    ("minisign", &["market-tool", "market", "fuzz"]),
    ("tracing-subscriber", &["command", "cli", "aria2c", "support", "e2e"]),
];

pub(crate) fn workspace() -> Vec<Package> {
    let metadata = MetadataCommand::new()
        .no_deps()
        .exec()
        .expect("cargo describes the workspace it runs in");
    metadata.packages
}

fn is_edge_of_tests(user: &str, used: &str) -> bool {
    let mut edges = EDGES_OF_TESTS.iter();
    edges.any(|(name, crates)| *name == user && crates.contains(&used))
}

#[test]
fn crates_use_only_what_they_may() {
    let packages = workspace();
    let allowed: BTreeMap<_, _> = EDGES.iter().copied().collect();
    let members: BTreeSet<_> = packages.iter().map(|package| package.name.as_str()).collect();
    assert_eq!(
        members,
        allowed.keys().copied().collect(),
        "the table of edges names other crates than the workspace"
    );
    for package in &packages {
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| members.contains(dependency.name.as_str()))
        {
            let used = dependency.name.as_str();
            let is_allowed = allowed[package.name.as_str()].contains(&used)
                || (dependency.kind == DependencyKind::Development
                    && (FOR_TESTS.contains(&used) || is_edge_of_tests(package.name.as_str(), used)));
            assert!(is_allowed, "{} must not use {used}; see EDGES", package.name);
        }
    }
}

#[test]
fn walled_dependencies_stay_behind_their_wall() {
    for package in workspace() {
        for dependency in &package.dependencies {
            let wall = WALLS.iter().find(|(name, _)| *name == dependency.name);
            let is_allowed = wall.is_none_or(|(_, crates)| crates.contains(&package.name.as_str()));
            assert!(
                is_allowed,
                "{} must not depend on {}; see WALLS",
                package.name, dependency.name
            );
        }
    }
}
