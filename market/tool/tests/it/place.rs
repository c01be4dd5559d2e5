//! A source in a temporary folder, and the commands on it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::{CommandFactory as _, Parser as _};
use jiff::Timestamp;
use market::{
    Identity, Origin, OriginError, PublicKey, Refreshed, SourceState,
    fetch::{self, Failures, Source},
    http::{HttpConfig, Web},
};
use market_tool::{
    Fixed, Package, SigningKey, ToolError,
    command::{AuthorCommand, MarketCommand, ToolContext, run_author, run_market},
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

pub(crate) fn identity(text: &str) -> Identity {
    text.parse().unwrap()
}

#[derive(Debug, clap::Parser)]
struct MarketLine {
    #[command(subcommand)]
    command: MarketCommand,
}

#[derive(Debug, clap::Parser)]
struct AuthorLine {
    #[command(subcommand)]
    command: AuthorCommand,
}

/// Whether clap finds nothing wrong with them.
pub(crate) fn check_command_lines() {
    MarketLine::command().debug_assert();
    AuthorLine::command().debug_assert();
}

/// HTTP with short patience.
pub(crate) fn web() -> Web {
    let tls = egress::tls::trusting_mozilla(&[]).unwrap();
    let config = HttpConfig {
        stall: Duration::from_millis(400),
        ..HttpConfig::new("test", tls, None)
    };
    Web::new(config).unwrap()
}

fn origin(url: &url::Url) -> Result<Arc<dyn Origin>, OriginError> {
    let http = web().at(url.clone());
    Ok(Arc::new(http.map_err(|error| OriginError::Failed(error.to_string()))?))
}

fn imports(package: &Package) -> Result<market::Digest, String> {
    let code = package.files.get("plugin.wasm");
    code.map(|code| market::Digest::of(code))
        .ok_or_else(|| "it has no code".to_owned())
}

/// A source of one plugin, `one@acme` 1.0.0, whose author's key is `author.key`.
#[derive(Debug)]
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) now: Timestamp,
}

impl Place {
    pub(crate) async fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            now: now(),
        };
        place
            .market("init SOURCE --id main --name Main --keys KEYS --unprotected")
            .await;
        place.author("keygen KEYS/author.key --unprotected");
        place.release("one@acme", "1.0.0").await;
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.path("source")
    }

    /// `SOURCE`, `KEYS` and `TMP` stand for the folders.
    fn words(&self, line: &str) -> Vec<String> {
        let replaced = |word: &str| {
            let word = word.replace("SOURCE", self.source().to_str().unwrap());
            let word = word.replace("KEYS", self.path("keys").to_str().unwrap());
            word.replace("TMP", self.folder.path().to_str().unwrap())
        };
        std::iter::once("test".to_owned())
            .chain(line.split(' ').map(replaced))
            .collect()
    }

    fn context<'a>(&self, out: &'a mut Vec<u8>) -> ToolContext<'a> {
        ToolContext {
            out,
            passphrases: &Fixed(None),
            origins: &origin,
            imports: &imports,
            now: self.now,
            stop: CancellationToken::new(),
        }
    }

    pub(crate) async fn try_market(&self, line: &str) -> Result<String, ToolError> {
        let command = MarketLine::parse_from(self.words(line)).command;
        let mut out = Vec::new();
        run_market(command, &mut self.context(&mut out)).await?;
        Ok(String::from_utf8(out).unwrap())
    }

    pub(crate) async fn market(&self, line: &str) -> String {
        self.try_market(line)
            .await
            .unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub(crate) fn try_author(&self, line: &str) -> Result<String, ToolError> {
        let command = AuthorLine::parse_from(self.words(line)).command;
        let mut out = Vec::new();
        run_author(command, &mut self.context(&mut out))?;
        Ok(String::from_utf8(out).unwrap())
    }

    pub(crate) fn author(&self, line: &str) -> String {
        self.try_author(line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub(crate) fn key(&self, name: &str) -> SigningKey {
        SigningKey::read(&self.path("keys").join(format!("{name}.key")), &Fixed(None)).unwrap()
    }

    pub(crate) fn root_key(&self) -> PublicKey {
        self.key("root-1").public()
    }

    /// A package that is not signed, with a file that packs badly, in `TMP/<identity>-<version>.zip`.
    pub(crate) fn package(&self, identity: &str, version: &str, author: &str) -> PathBuf {
        let manifest = serde_json::json!({
            "manifestVersion": 1,
            "identity": identity, "name": "One", "version": version, "description": "Makes one of many.",
            "entry": "plugin.wasm", "abi": "0.1",
            "permissions": { "hosts": ["https://one.test"] },
            "capabilities": { "resolver": { "match": ["https://one.test/*"] } },
            "author": { "name": "Acme", "key": self.key(author).public().to_string() },
        });
        let mut number: u32 = 7;
        let code = std::iter::repeat_with(|| {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            number.to_le_bytes()[3]
        });
        let files = BTreeMap::from([
            ("plugin.json".to_owned(), serde_json::to_vec(&manifest).unwrap().into()),
            ("plugin.wasm".to_owned(), code.take(40_000).collect()),
            ("fixtures/one.json".to_owned(), "{}".into()),
        ]);
        let path = self.path(&format!("{identity}-{version}.zip"));
        fs::write(&path, plugin_package::pack(&files).unwrap()).unwrap();
        path
    }

    /// Signs, adds and publishes a version.
    pub(crate) async fn release(&self, identity: &str, version: &str) {
        self.package(identity, version, "author");
        self.author(&format!("sign TMP/{identity}-{version}.zip --key KEYS/author.key"));
        self.market(&format!("add SOURCE TMP/{identity}-{version}.zip --key KEYS/index.key"))
            .await;
        self.publish().await;
    }

    pub(crate) async fn publish(&self) {
        self.market("publish SOURCE --key KEYS/timestamp.key").await;
    }

    /// What a client knows that added the source by key.
    pub(crate) fn stranger(&self) -> SourceState {
        SourceState::with_key(self.root_key())
    }

    /// What a client knows that has seen what is published now.
    pub(crate) async fn client(&self) -> SourceState {
        let folder = market::Folder::new(self.source());
        refresh(&self.stranger(), &folder, self.now).await.unwrap().state
    }

    /// The folder as it is now, somewhere else: what an attacker has.
    pub(crate) fn copy(&self, name: &str) -> PathBuf {
        let target = self.path(name);
        copy(&self.source(), &target);
        target
    }
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

pub(crate) async fn refresh(state: &SourceState, origin: &dyn Origin, now: Timestamp) -> Result<Refreshed, Failures> {
    fetch::refresh(
        Source {
            state,
            origins: &[origin],
        },
        now,
    )
    .await
}
