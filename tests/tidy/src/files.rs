//! What every file begins with, and what none holds. Words that are looked for are put together from halves, so that
//! this file does not hold them either.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Directories that are not ours to read; in a second worktree `.git` is a file.
const SKIPPED: &[&str] = &["target", "node_modules", ".git"];

/// Marks of unfinished or switched-off code.
const UNFINISHED: &[[&str; 2]] = &[
    ["to", "do!("],
    ["unimple", "mented!("],
    ["db", "g!("],
    ["#[ig", "nore"],
    ["FIX", "ME"],
    ["TO", "DO"],
    ["XX", "X"],
];

/// Names of the places where this was written, which mean nothing to anybody else.
const PLACES: &[[&str; 2]] = &[["/wo", "rk/"], ["far", "m-"], ["before", "-stop"]];

/// What only some crates do: the words that show it, and the crates.
const PRIVILEGES: &[(&[&str], &[&str])] = &[
    (&["env::var", "env::args"], &["command", "src"]),
    // Which of them open connections is another rule; these hold streams that they were given.
    (
        &["TcpStream", "TcpSocket", "UdpSocket"],
        &["egress", "transfer-http", "daemon", "torrent"],
    ),
    (&["println!(", "eprintln!("], &[]),
];

/// Ways to look a name up or to open a connection, in the standard library, tokio and what is built on them. A crate that
/// is handed a stream may speak whatever it likes on it.
const WAYS_OUT: &[&str] = &[
    "TcpStream::connect",
    "TcpSocket",
    "UdpSocket",
    "UnixStream::connect",
    "UnixDatagram",
    "ClientOptions::new",
    "lookup_host",
    "ToSocketAddrs",
    "to_socket_addrs",
    "connect_async",
    "client_async_tls",
    "tungstenite::connect",
    "reqwest::",
    "use reqwest",
    "HttpConnector",
    "hyper_util::client",
    "Socks5Stream::connect(",
    "Socks5Stream::connect_with_password(",
    "Socks4Stream::connect(",
    "net::connect(",
    "net::socket(",
    "socket2::",
    "Command::new(\"curl",
    "load_native_certs",
    "webpki_roots::",
    "ring::default_provider",
];

/// A text file of the workspace.
pub(crate) struct File {
    /// Seen from the workspace's root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "rs")
    }

    fn is_test(&self) -> bool {
        self.path.file_stem().is_some_and(|stem| stem == "tests")
            || self.path.iter().skip(2).any(|part| part == "tests")
    }

    /// The folder of `host/` that it belongs to, for files of production code.
    fn host_crate(&self) -> Option<&str> {
        let mut parts = self.path.iter().map(|part| part.to_str().unwrap_or(""));
        let crate_name = (parts.next() == Some("host")).then(|| parts.next()).flatten();
        crate_name.filter(|_| parts.next() == Some("src"))
    }

    /// Whether it is part of something that users run: no test, example, fuzz target or benchmark, and nothing that runs in
    /// the sandbox.
    fn is_production(&self) -> bool {
        let mut parts = self.path.iter().map(|part| part.to_str().unwrap_or(""));
        let is_ours = matches!(parts.next(), Some("host" | "market" | "plugin-sdk"));
        self.is_rust() && is_ours && parts.any(|part| part == "src") && !self.is_test()
    }

    /// The file without the tests that stand at its end.
    fn production_text(&self) -> &str {
        self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("")
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace is where it was built")
}

pub(crate) fn all_files() -> Vec<File> {
    let root = root();
    let mut files = Vec::new();
    let mut directories = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            if SKIPPED.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                directories.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                files.push(File {
                    path: path.strip_prefix(&root).unwrap().to_owned(),
                    text,
                });
            }
        }
    }
    assert!(
        files.iter().any(|file| file.path == Path::new("Cargo.toml")),
        "this is not the workspace"
    );
    files
}

/// The lines of `files` that hold one of `words`, as `path:line: word`.
fn found<'a>(files: impl Iterator<Item = (&'a File, &'a str)>, words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (file, text) in files {
        for (index, line) in text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(*word)) {
                found.push(format!("{}:{}: {word}", file.path.display(), index + 1));
            }
        }
    }
    found
}

fn whole(words: &[[&str; 2]]) -> Vec<String> {
    words.iter().map(|halves| halves.concat()).collect()
}

/// Fails with `rule` and everything that breaks it.
pub(crate) fn check_none(found: &[String], rule: &str) {
    assert!(found.is_empty(), "{rule} ({}):\n  {}", found.len(), found.join("\n  "));
}

#[test]
fn every_rust_file_says_what_it_is() {
    let files = all_files();
    let silent: Vec<_> = files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test() && !file.text.starts_with("//! "))
        .map(|file| file.path.display().to_string())
        .collect();
    check_none(&silent, "these files do not begin with //!");
}

#[test]
fn every_crate_says_what_it_owns_and_what_it_never_does() {
    let files = all_files();
    // What authors of plugins begin with is theirs.
    let is_authors = |path: &Path| path.starts_with("plugin-sdk/templates") || path.starts_with("examples");
    let is_ours = |path: &Path| path.ends_with("src/lib.rs") && !is_authors(path);
    let roots = files.iter().filter(|file| is_ours(&file.path));
    let silent: Vec<_> = roots
        .filter(|file| {
            let documentation: Vec<_> = file.text.lines().take_while(|line| line.starts_with("//!")).collect();
            let documentation = documentation.join("\n");
            !documentation.contains("*Owns*") || !documentation.contains("*Never*")
        })
        .map(|file| file.path.display().to_string())
        .collect();
    check_none(&silent, "these crate roots do not say *Owns* and *Never*");
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    let files = all_files();
    let rust = files
        .iter()
        .filter(|file| file.is_rust())
        .map(|file| (file, file.text.as_str()));
    check_none(&found(rust, &whole(UNFINISHED)), "finish these or take them out");
}

#[test]
fn no_file_names_the_place_where_it_was_written() {
    let files = all_files();
    let texts = files.iter().map(|file| (file, file.text.as_str()));
    check_none(&found(texts, &whole(PLACES)), "these mean nothing to a reader");
}

#[test]
fn only_some_crates_read_the_environment_hold_streams_or_print() {
    let files = all_files();
    for (words, crates) in PRIVILEGES {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let others = files.iter().filter(|file| file.is_rust() && !file.is_test());
        let others = others.filter(|file| file.host_crate().is_some_and(|name| !crates.contains(&name)));
        let rule = format!("only {crates:?} may do this");
        check_none(&found(others.map(|file| (file, file.production_text())), &words), &rule);
    }
}

#[test]
fn every_connection_is_opened_by_egress() {
    let files = all_files();
    let is_of_egress = |file: &File| file.path.starts_with("host/egress/src");
    // The session bus is a socket of this machine that the user's own session names: there is nothing to look up or guard.
    // The socket of `ssh-agent` is another such.
    let named = ["host/message-bus/src/connection.rs", "host/transfer-sftp/src/agent.rs"].map(Path::new);
    let is_of_session = |file: &&File| named.contains(&file.path.as_path());
    let production = files.iter().filter(|file| file.is_production() && !is_of_session(file));
    let production: Vec<_> = production.collect();
    let words: Vec<_> = WAYS_OUT.iter().map(|way| (*way).to_owned()).collect();
    let texts = |of_egress: bool| {
        let some = production.iter().filter(move |file| is_of_egress(file) == of_egress);
        some.map(|file| (*file, file.production_text()))
    };
    assert!(
        !found(texts(true), &words).is_empty(),
        "the words are not those by which connections are opened"
    );
    check_none(&found(texts(false), &words), "ask egress for a connection");
}

/// The lines of a file that are in none of these functions.
fn outside<'t>(text: &'t str, functions: &'t [&str]) -> impl Iterator<Item = &'t str> {
    let mut is_outside = true;
    text.lines().filter(move |line| {
        if let Some((_, rest)) = line.split_once("fn ") {
            is_outside = !functions.contains(&rest.split(['(', '<']).next().unwrap_or(""));
        }
        is_outside
    })
}

/// The public fields of a record.
fn fields_of<'t>(text: &'t str, record: &str) -> impl Iterator<Item = &'t str> {
    let head = format!("pub struct {record} {{");
    let body = text.split(&head).nth(1).expect("the record is defined there");
    let lines = body.lines().take_while(|line| !line.starts_with('}'));
    lines.filter_map(|line| Some(line.trim().strip_prefix("pub ")?.split_once(':')?.0))
}

/// A setting that nothing reads would be a promise to the user that nothing keeps.
#[test]
fn every_setting_is_read_by_code_that_acts_on_it() {
    let files = all_files();
    let definition = Path::new("host/engine/src/model/settings.rs");
    let seeding = Path::new("host/engine/src/model/seeding.rs");
    let own_keys = Path::new("host/daemon/src/configuration/keys.rs");
    let text_of = |path: &Path| {
        let file = files.iter().find(|file| file.path == path);
        file.expect("the settings are defined there").production_text()
    };
    let keys: Vec<_> = fields_of(text_of(definition), "Settings")
        .chain(fields_of(text_of(seeding), "SeedSettings"))
        .map(|field| format!(".{field}"))
        .collect();
    let own = text_of(own_keys)
        .lines()
        .filter_map(|line| line.strip_prefix("pub(crate) const "));
    let own: Vec<_> = own
        .filter_map(|line| Some(format!("keys::{}", line.split_once(':')?.0)))
        .collect();
    assert!(
        keys.len() > 15 && !own.is_empty(),
        "the settings are listed otherwise now: {keys:?} {own:?}"
    );
    let production: Vec<_> = files.iter().filter(|file| file.is_production()).collect();
    let is_read = |word: &str| {
        production.iter().filter(|file| file.path != own_keys).any(|file| {
            let mut lines = outside(file.production_text(), &["value", "set", "validate"]);
            let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            lines.any(|line| line.split(word).skip(1).any(ends))
        })
    };
    let unread: Vec<_> = keys.into_iter().chain(own).filter(|word| !is_read(word)).collect();
    check_none(&unread, "no code acts on these settings");
}
