//! Our own plugin for open directories, built from its source, in the real sandbox, against a real server.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, OnceLock},
    time::Duration,
};

use plugin_host::{Exceeded, GuestError, InputHost, PluginFault, runtime::Language};
use plugin_wasm::{Exchange, Exchanged, Limits, Loaded, Network};
use tempfile::TempDir;
use url::Url;

use crate::rig::{Rig, context};

/// The plugin as a core module.
fn module() -> &'static [u8] {
    static MODULE: OnceLock<Vec<u8>> = OnceLock::new();
    MODULE.get_or_init(|| {
        let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guests");
        let status = Command::new(env!("CARGO"))
            .args([
                "build",
                "--release",
                "--locked",
                "--target",
                "wasm32-unknown-unknown",
                "-p",
                "open-directory",
            ])
            .arg("--target-dir")
            .arg(&target)
            .current_dir(plugins)
            .status()
            .unwrap();
        assert!(
            status.success(),
            "cannot build a guest; if the target is missing: rustup target add wasm32-unknown-unknown"
        );
        fs::read(target.join("wasm32-unknown-unknown/release/open_directory.wasm")).unwrap()
    })
}

async fn load(rig: &Rig) -> Loaded {
    rig.runtime.load(module().to_vec(), Language::CoreModule).await.unwrap()
}

/// Python's file server on a folder, ended with the test.
struct Server {
    child: Child,
    url: Url,
    _folder: TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b c")).unwrap();
        fs::write(folder.path().join("top.txt"), "top").unwrap();
        fs::write(folder.path().join("a/ä & b.zip"), "zip").unwrap();
        fs::write(folder.path().join("a/b c/deep.bin"), "deep").unwrap();
        let mut child = Command::new("python3")
            .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0", "--directory"])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.split(['(', ')']).find(|part| part.starts_with("http://")).unwrap();
        Self {
            child,
            url: url.parse().unwrap(),
            _folder: folder,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_directory_is_listed_with_its_folders() {
    let (rig, server) = (Rig::new(), Server::start());
    let loaded = load(&rig).await;
    let (mut context, _) = context();
    context.grants.input_host = Some(InputHost::given_by_user(server.url.clone()));
    let called = loaded
        .resolve(server.url.as_str(), None, context, Limits::resolve())
        .await;
    let listing = called.result.unwrap();
    let mut files: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| (entry.folder.join("/"), entry.name.as_str()))
        .collect();
    files.sort_unstable();
    let expect = [("", "top.txt"), ("a", "ä & b.zip"), ("a/b c", "deep.bin")];
    assert_eq!(files, expect.map(|(folder, name)| (folder.to_owned(), name)));
    let deep = listing.entries.iter().find(|entry| entry.name == "deep.bin").unwrap();
    let link = deep.facts.link.as_ref().unwrap();
    assert_eq!(link.url, server.url.join("a/b%20c/deep.bin").unwrap());
    assert_eq!(called.report.requests, 3);
}

#[tokio::test]
async fn it_reaches_nothing_that_it_was_not_given() {
    let (rig, server) = (Rig::new(), Server::start());
    let loaded = load(&rig).await;
    let resolve = async |input_host| {
        let (mut context, _) = context();
        context.grants.input_host = input_host;
        loaded
            .resolve(server.url.as_str(), None, context, Limits::resolve())
            .await
    };
    let nothing = resolve(None).await;
    assert!(
        matches!(nothing.result, Err(PluginFault::Answer(GuestError::Denied(_)))),
        "{:?}",
        nothing.result
    );
    assert_eq!((nothing.report.requests, nothing.report.denied.len()), (0, 1));
    let found_in_a_feed = resolve(Some(InputHost::found(server.url.clone()))).await;
    assert!(matches!(
        found_in_a_feed.result,
        Err(PluginFault::Answer(GuestError::Denied(_)))
    ));
    assert_eq!(found_in_a_feed.report.requests, 0);
}

/// A site whose answers never come.
#[derive(Debug)]
struct Silence;

impl Network for Silence {
    fn exchange(&self, _: Exchange) -> Exchanged<'_> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn waiting_for_a_site_ends_with_the_call_s_time_and_is_no_computing() {
    let rig = Rig::new();
    let loaded = load(&rig).await;
    let url: Url = "https://example.org/".parse().unwrap();
    let (mut context, _) = context();
    context.grants.input_host = Some(InputHost::found(url.clone()));
    context.network = Arc::new(Silence);
    let wall = Duration::from_millis(500);
    let limits = Limits {
        wall,
        ..Limits::resolve()
    };
    let called = loaded.resolve(url.as_str(), None, context, limits).await;
    assert_eq!(called.result.unwrap_err(), PluginFault::Limit(Exceeded::Wall(wall)));
    assert!(
        called.report.wall >= wall && called.report.cpu < wall / 4,
        "{:?}",
        called.report
    );
}

#[tokio::test]
async fn what_it_may_do_can_be_seen_from_its_imports() {
    let loaded = load(&Rig::new()).await;
    let interface = loaded.interface();
    assert_eq!(interface.exports, ["resolver"]);
    assert!(interface.imports.contains(&"http.send".to_owned()), "{interface:?}");
    for unwanted in ["secret", "storage.", "vault", "workspace"] {
        let mut imports = interface.imports.iter();
        assert!(!imports.any(|import| import.contains(unwanted)), "{interface:?}");
    }
}
