//! Plugins whose code is a script of simple commands, and their archives. Real code is tested elsewhere.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures_util::future::BoxFuture;
use plugin_host::{
    Entry, Facts, Feed, FeedRequest, GuestError, Identity, Link, Listing, PluginFault,
    runtime::{
        Call, Called, Code, Guest, Interface, LoadError, LoginMode, LoginSession, Report, Runtime, Screen, Secrets,
        Step,
    },
};
use serde_json::{Value, json};
use transfer::Secret;
use url::Url;

/// Runs guests whose code is lines: `imports x` is what it can reach, `refuse` does not load, and when it is called,
/// `file folder/name` (with ` algorithm=digest` if its checksum is known) is in its list,
/// `links url` is where its files are, `asks url` is what it would have to reach, and `fail` is all that it does.
/// With `exports login` it logs in as [`Steps`] says; `members only` lists nothing to others.
#[derive(Debug)]
pub(crate) struct Scripted;

struct Script {
    lines: Vec<String>,
    interface: Interface,
    is_logged_in: Arc<AtomicBool>,
}

impl Runtime for Scripted {
    fn load(&self, code: Code) -> BoxFuture<'_, Result<Arc<dyn Guest>, LoadError>> {
        let text = String::from_utf8_lossy(&code.bytes);
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let mut script = Script {
            lines,
            interface: Interface::default(),
            is_logged_in: Arc::default(),
        };
        let exports = script.said("exports ").map(str::to_owned);
        script.interface = Interface {
            exports: exports.chain(["resolver".to_owned()]).collect(),
            imports: script.said("imports ").map(str::to_owned).collect(),
        };
        let is_refused = script.lines.iter().any(|line| line == "refuse");
        Box::pin(async move {
            if is_refused {
                let reason = "threads are not allowed".to_owned();
                return Err(LoadError::Refused {
                    check: "features",
                    reason,
                });
            }
            Ok(Arc::new(script) as Arc<dyn Guest>)
        })
    }
}

impl Script {
    fn said<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter_map(move |line| line.strip_prefix(word))
    }

    fn listing(&self) -> Listing {
        let entry = |line: &str| {
            let (path, checksum) = line.split_once(' ').unwrap_or((line, ""));
            let known = checksum.split_once('=');
            let mut folder: Vec<_> = path.split('/').map(str::to_owned).collect();
            let name = folder.pop().unwrap();
            let facts = Facts {
                checksums: known
                    .map(|(name, hex)| (name.to_owned(), hex.to_owned()))
                    .into_iter()
                    .collect(),
                ..Facts::default()
            };
            Entry {
                id: path.to_owned(),
                name,
                folder,
                facts,
                ..Entry::default()
            }
        };
        Listing {
            title: Some("a share".to_owned()),
            entries: self.said("file ").map(entry).collect(),
            ..Listing::default()
        }
    }

    fn answer<T: Send + 'static>(&self, answer: impl FnOnce() -> T) -> BoxFuture<'_, Called<T>> {
        let says = |text: &str| self.lines.iter().any(|line| line == text);
        let result = if says("fail") {
            Err(GuestError::Internal("as it was told".to_owned()))
        } else if says("members only") && !self.is_logged_in.load(Ordering::Relaxed) {
            Err(GuestError::LoginRequired(None))
        } else {
            Ok(answer())
        };
        called(result)
    }
}

fn called<T: Send + 'static>(result: Result<T, GuestError>) -> BoxFuture<'static, Called<T>> {
    let result = result.map_err(PluginFault::Answer);
    let report = Report::default();
    Box::pin(async move { Called { result, report } })
}

/// A login: a QR code that is confirmed at the first poll; or a name and a password, then the code 1234; or a page and its
/// address. Its message is what it was told by then, without the values of secrets, which it does not get.
struct Steps {
    plugin: Identity,
    mode: LoginMode,
    fails: bool,
    has_name: bool,
    is_logged_in: Arc<AtomicBool>,
}

impl Steps {
    fn screen(&mut self, step: &Step) -> Result<Screen, GuestError> {
        let mut screen = Screen::default();
        if self.fails {
            return Err(GuestError::Internal("as it was told".to_owned()));
        }
        let values: Vec<_> = match step {
            Step::Answer(values) => values.iter().map(|(key, value)| format!("{key}={value}")).collect(),
            Step::Start | Step::Poll => Vec::new(),
        };
        let shown = values.join(" ");
        let is_done = match (self.mode, step) {
            (LoginMode::Qr, Step::Start) => {
                screen
                    .set_qr("https://share.test/qr?t=1".to_owned(), 60, "Scan it")
                    .unwrap();
                screen.poll_after_ms = Some(1);
                false
            }
            (LoginMode::Password, Step::Start) => {
                screen.add_field("user".to_owned(), "Name", false).unwrap();
                screen.add_field("password".to_owned(), "Password", true).unwrap();
                false
            }
            (LoginMode::Password, Step::Answer(_)) if shown.contains("user=nobody") => {
                return Err(GuestError::Forbidden("the site does not know this name".to_owned()));
            }
            (LoginMode::Password, Step::Answer(_)) if !std::mem::replace(&mut self.has_name, true) => {
                screen.add_field("code".to_owned(), "Code", false).unwrap();
                false
            }
            (LoginMode::Password, Step::Answer(_)) if shown != "code=1234" => {
                return Err(GuestError::Forbidden("the code is another one".to_owned()));
            }
            (LoginMode::Cookie, Step::Start) => {
                screen = Screen::of_cookies(&self.plugin);
                false
            }
            (LoginMode::Browser, Step::Start) => {
                let prefix = Some("https://share.test/done".to_owned());
                screen.set_open_url("https://share.test/authorize", prefix).unwrap();
                false
            }
            _ => true,
        };
        if !shown.is_empty() {
            screen.set_message(&shown).unwrap();
        }
        if is_done {
            screen.set_done("7", "Ann").unwrap();
            self.is_logged_in.store(true, Ordering::Relaxed);
        }
        Ok(screen)
    }
}

impl LoginSession for Steps {
    fn step(&mut self, step: Step) -> BoxFuture<'_, Called<Screen>> {
        called(self.screen(&step))
    }

    fn take_cookies(&mut self, cookies: Vec<(Url, String)>) -> BoxFuture<'_, usize> {
        Box::pin(async move { cookies.len() })
    }
}

impl Guest for Script {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn resolve(&self, call: Call, _: Option<Secret>) -> BoxFuture<'_, Called<Listing>> {
        let denied: Vec<_> = self
            .said("asks ")
            .filter_map(|url| call.hosts.check(&url.parse().unwrap()).err())
            .collect();
        if denied.is_empty() {
            return self.answer(|| self.listing());
        }
        let result = Err(PluginFault::Answer(GuestError::Denied(denied[0].to_string())));
        let report = Report {
            denied,
            ..Report::default()
        };
        Box::pin(async move { Called { result, report } })
    }

    fn more(&self, _: Call, _: String) -> BoxFuture<'_, Called<Listing>> {
        self.answer(Listing::default)
    }

    fn link_for(&self, _: Call, entry: String, _: Option<String>) -> BoxFuture<'_, Called<Link>> {
        self.answer(|| {
            let base: Url = self.said("links ").next().unwrap().parse().unwrap();
            Link {
                url: base.join(&entry).unwrap(),
                account: None,
                mirrors: Vec::new(),
                headers: Vec::new(),
                secret_headers: Vec::new(),
                supports_ranges: None,
                is_single_use: false,
                expires_ms: None,
                max_connections: None,
                audio: None,
                manifest: None,
                segments: Vec::new(),
            }
        })
    }

    fn preview(&self, _: Call) -> BoxFuture<'_, Called<Listing>> {
        self.answer(|| self.listing())
    }

    fn feed(&self, _: Call, _: FeedRequest) -> BoxFuture<'_, Called<Feed>> {
        self.answer(Feed::default)
    }

    fn begin_login(&self, call: Call, _: String, mode: LoginMode) -> Box<dyn LoginSession> {
        Box::new(Steps {
            plugin: call.plugin,
            mode,
            fails: self.lines.iter().any(|line| line == "fail"),
            has_name: false,
            is_logged_in: Arc::clone(&self.is_logged_in),
        })
    }

    fn check_account(&self, _: Call, _: String) -> BoxFuture<'_, Called<bool>> {
        called(Ok(self.is_logged_in.load(Ordering::Relaxed)))
    }

    fn renew_account(&self, _: Call, slot: String) -> BoxFuture<'_, Called<Screen>> {
        called(Err(GuestError::LoginRequired(Some(slot))))
    }

    fn log_out(&self, _: Call, _: String) -> BoxFuture<'_, Called<()>> {
        self.is_logged_in.store(false, Ordering::Relaxed);
        called(Ok(()))
    }

    fn forget_account(&self, _: &str) {
        // Also called after a login, whose account is used from then on.
    }

    fn cookies_for(&self, _: Secrets, _: Url) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }

    fn sizes(&self, _: Call, links: Vec<Link>) -> BoxFuture<'_, Vec<Option<u64>>> {
        Box::pin(async move { vec![None; links.len()] })
    }
}

/// An archive of the plugin `share@test` with these claims and this script.
pub(crate) fn plugin(claims: &str, script: &str) -> Vec<u8> {
    archive(&[("plugin.json", &manifest(claims)), ("plugin.wasm", script.as_bytes())])
}

/// The same with a login to one account.
pub(crate) fn plugin_with_login(claims: &str, script: &str) -> Vec<u8> {
    let mut manifest: Value = serde_json::from_slice(&manifest(claims)).unwrap();
    manifest["capabilities"]["login"] = json!({
        "slots": [{ "id": "main", "title": "Account", "modes": ["qr", "password", "cookie", "browser"] }],
    });
    let script = format!("exports login\n{script}");
    archive(&[
        ("plugin.json", manifest.to_string().as_bytes()),
        ("plugin.wasm", script.as_bytes()),
    ])
}

/// The manifest of `share@test`.
pub(crate) fn manifest(claims: &str) -> Vec<u8> {
    let manifest = json!({
        "manifestVersion": 1, "identity": "share@test", "name": "Share", "version": "1.2.3", "entry": "plugin.wasm",
        "capabilities": { "resolver": { "match": [claims], "multi": true } },
        "permissions": { "hosts": ["https://api.share.test"], "optionalHosts": ["https://mirror.test"] },
        "settings": [
            { "key": "quality", "type": "string", "default": "hd" },
            { "key": "count", "type": "number", "min": 1 },
            { "key": "token", "type": "string", "secret": true },
        ],
    });
    manifest.to_string().into_bytes()
}

/// A ZIP archive without compression.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let small = |length: usize| u16::try_from(length).unwrap().to_le_bytes();
    let large = |length: usize| u32::try_from(length).unwrap().to_le_bytes();
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let crc = crc32fast::hash(bytes).to_le_bytes();
        let length = large(bytes.len());
        let common = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            &crc,
            &length,
            &length,
            &small(name.len()),
            &[0; 2],
        ]
        .concat();
        directory.extend(
            [
                b"PK\x01\x02\x14\x03",
                &common[..],
                &[0; 10],
                &large(out.len()),
                name.as_bytes(),
            ]
            .concat(),
        );
        out.extend([b"PK\x03\x04", &common[..], name.as_bytes(), bytes].concat());
    }
    let (count, size, start) = (small(files.len()), large(directory.len()), large(out.len()));
    [
        &out[..],
        &directory,
        b"PK\x05\x06",
        &[0; 4],
        &count,
        &count,
        &size,
        &start,
        &[0; 2],
    ]
    .concat()
}
