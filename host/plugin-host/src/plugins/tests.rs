//! The plugins as a whole, on a real disk and database, with a runtime whose guests follow a script.

use std::{path::Path, sync::Mutex as SyncMutex, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use store::DataDir;
use tokio::sync::Notify;
use transfer::Secret;
use url::Url;

use super::*;
use crate::{
    error::CallFailure,
    lifecycle::{Status, registry::Idle},
    policy::{
        fault::{Exceeded, GuestError, PluginFault},
        grant::CallTarget,
    },
    runtime::{
        Call, CallWorkspace, Called, Code, Entry, Feed, FeedItem, FeedRequest, Guest, HookAnswer, HookInput, Interface,
        JournalEntry, Link, Listing, LoadError, LoginMode, LoginSession, Report, Screen, Secrets, Step,
    },
};

mod calls;
mod development;
mod feeds;
mod fixtures;
mod hooks;
mod installing;
mod loading;
mod logins;
mod post;

/// Runs guests whose code is a script: words that say what each call does.
///
/// `imports http.send` and `exports x` are what it shows; `sends x` is what its links carry; `refuse` does not load and
/// `slow` not while loads are held; `list`, `trap`, `parse`, `old`, `no`, `hang`, `wait` and `reach URL` are what it does
/// when it is called; `hook hang`, `hook trap` and `hook retry 5` what its hook does; `works on files`, perhaps with `tool
/// unpack`, is in its manifest, and `post unpack x`, `post mux`, `post wait` is what it does with them. `exports login` has
/// a slot `main`: `field x` and `secret-field x` are its form, `account main` makes links those of its account, `session
/// main` wants a renewed session, `renews` renews it, as soon as the test lets it if the `renewal waits`, and at its site it
/// has `ended`; a check `rotates` it, as soon as the test lets it if the `check waits`.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    /// Whether loading slow scripts blocks.
    pub(crate) holds_loads: watch::Sender<bool>,
    /// Notified when a script `wait`s.
    pub(crate) begun: Arc<Notify>,
    /// Resumes calls of scripts that `wait`.
    pub(crate) go_on: Arc<Notify>,
    pub(crate) loads: std::sync::atomic::AtomicU32,
    /// How often sessions of accounts were to be renewed.
    pub(crate) renewals: Arc<std::sync::atomic::AtomicU32>,
    /// What hooks were told.
    pub(crate) told: Arc<SyncMutex<Vec<(Identity, HookInput)>>>,
    /// Whether it is of a later host, in which scripts that are `old` do not find their way.
    is_later: bool,
}

struct Script {
    is_later: bool,
    renewals: Arc<std::sync::atomic::AtomicU32>,
    told: Arc<SyncMutex<Vec<(Identity, HookInput)>>>,
    lines: Vec<String>,
    interface: Interface,
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Runtime for Scripted {
    fn load(&self, code: Code) -> BoxFuture<'_, Result<Arc<dyn Guest>, LoadError>> {
        self.loads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let text = String::from_utf8_lossy(&code.bytes).into_owned();
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let words = |key: &str| {
            let lines = lines.iter().filter_map(|line| line.strip_prefix(key));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut exports = words("exports ");
        exports.push("resolver".to_owned());
        let interface = Interface {
            exports,
            imports: words("imports "),
        };
        let is_refused = lines.iter().any(|line| line == "refuse");
        let (begun, go_on) = (Arc::clone(&self.begun), Arc::clone(&self.go_on));
        let mut held = self.holds_loads.subscribe();
        let is_later = self.is_later;
        let renewals = Arc::clone(&self.renewals);
        let told = Arc::clone(&self.told);
        Box::pin(async move {
            if lines.iter().any(|line| line == "slow") {
                held.wait_for(|is_held| !is_held).await.unwrap();
            }
            if is_refused {
                return Err(LoadError::Refused {
                    check: "features",
                    reason: "threads".to_owned(),
                });
            }
            Ok(Arc::new(Script {
                is_later,
                renewals,
                told,
                lines,
                interface,
                begun,
                go_on,
            }) as Arc<dyn Guest>)
        })
    }
}

impl Script {
    async fn run(&self, call: Call) -> Called<Listing> {
        let mut listing = Listing {
            title: Some(call.plugin.to_string()),
            ..Listing::default()
        };
        let (mut result, mut report) = (Ok(()), Report::default());
        for line in &self.lines {
            match line.split_once(' ').unwrap_or((line.as_str(), "")) {
                ("list", name) => listing.entries.push(Entry {
                    name: name.to_owned(),
                    ..Entry::default()
                }),
                ("setting", key) => listing.description = call.settings.get(key).cloned(),
                ("count", key) => {
                    let count = call.storage.get(key).await.unwrap().map_or(0, |value| value[0]);
                    call.storage.set(key, vec![count + 1], None).await.unwrap();
                    listing.next_page = Some((count + 1).to_string());
                }
                ("reach", url) => {
                    let url = url.parse().unwrap();
                    if let Err(denial) = call.hosts.check(&url) {
                        result = Err(GuestError::Denied(denial.to_string()).into());
                        report.denied.push(denial);
                    }
                }
                ("session", slot) if logins::session(&call, slot).await.as_deref() != Some("fresh-session") => {
                    result = Err(GuestError::LoginRequired(Some(slot.to_owned())).into());
                }
                ("trap", _) => {
                    result = Err(PluginFault::Trap {
                        kind: "unreachable".to_owned(),
                        frames: Vec::new(),
                    });
                }
                ("parse", _) => result = Err(GuestError::Parse("/files".to_owned()).into()),
                ("old", _) if self.is_later => result = Err(GuestError::Parse("/old".to_owned()).into()),
                ("no", _) => result = Err(GuestError::NotMatched.into()),
                ("hang", _) => std::future::pending().await,
                ("wait", _) => {
                    self.begun.notify_one();
                    self.go_on.notified().await;
                }
                _ => {}
            }
        }
        Called {
            result: result.map(|()| listing),
            report,
        }
    }
}

fn called<T>(result: Result<T, PluginFault>) -> Called<T> {
    Called {
        result,
        report: Report::default(),
    }
}

impl Guest for Script {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn resolve(&self, call: Call, _password: Option<Secret>) -> BoxFuture<'_, Called<Listing>> {
        Box::pin(self.run(call))
    }

    fn more(&self, call: Call, _token: String) -> BoxFuture<'_, Called<Listing>> {
        Box::pin(self.run(call))
    }

    fn link_for(&self, call: Call, entry: String, _variant: Option<String>) -> BoxFuture<'_, Called<Link>> {
        Box::pin(async move {
            let url = call.given.url.clone();
            let called = self.run(call).await;
            let mut link = Link::new(url.join(&entry).unwrap());
            let account = self.lines.iter().find_map(|line| line.strip_prefix("account "));
            link.account = account.map(str::to_owned);
            link.secret_headers = self
                .lines
                .iter()
                .filter_map(|line| line.strip_prefix("sends "))
                .map(|template| ("authorization".to_owned(), template.to_owned()))
                .collect();
            Called {
                result: called.result.map(|_| link),
                report: called.report,
            }
        })
    }

    fn preview(&self, call: Call) -> BoxFuture<'_, Called<Listing>> {
        Box::pin(self.run(call))
    }

    /// Says what the fields of its source are, and in the items where each secret may be sent.
    fn feed(&self, call: Call, request: FeedRequest) -> BoxFuture<'_, Called<Feed>> {
        Box::pin(async move {
            let mut feed = Feed {
                title: call.settings.get("search").cloned(),
                etag: request.etag,
                ..Feed::default()
            };
            for line in &self.lines {
                let Some((name, url)) = line.strip_prefix("use ").and_then(|line| line.split_once(' ')) else {
                    continue;
                };
                let secret = call.secrets.find(name).await.unwrap();
                let is_sent = secret.is_some_and(|secret| secret.for_url(&url.parse().unwrap()).is_some());
                feed.items.push(FeedItem {
                    guid: format!("{name} {url} {is_sent}"),
                    ..FeedItem::default()
                });
            }
            Called {
                result: Ok(feed),
                report: Report::default(),
            }
        })
    }

    fn hook(&self, call: Call, told: HookInput) -> BoxFuture<'_, Called<HookAnswer>> {
        self.told.lock().unwrap().push((call.plugin, told));
        let does = self.lines.iter().find_map(|line| line.strip_prefix("hook "));
        let does = does.unwrap_or_default().to_owned();
        Box::pin(async move {
            let mut answer = HookAnswer::default();
            match does.split_once(' ').unwrap_or((does.as_str(), "")) {
                ("hang", _) => std::future::pending().await,
                ("trap", _) => {
                    let kind = "unreachable".to_owned();
                    return called(Err(PluginFault::Trap {
                        kind,
                        frames: Vec::new(),
                    }));
                }
                ("retry", wait) => answer.retry_after_ms = Some(wait.parse().unwrap()),
                _ => {}
            }
            called(Ok(answer))
        })
    }

    fn post_process(&self, call: Call, main: String, work: CallWorkspace) -> BoxFuture<'_, Called<()>> {
        Box::pin(self.post(call, main, work))
    }

    fn begin_login(&self, call: Call, slot: String, _mode: LoginMode) -> Box<dyn LoginSession> {
        Box::new(logins::Conversation {
            fields: logins::fields(&self.lines),
            call,
            slot,
        })
    }

    fn check_account(&self, call: Call, slot: String) -> BoxFuture<'_, Called<bool>> {
        let says = |word: &str| self.lines.iter().any(|line| line == word);
        let (is_accepted, rotates, waits) = (!says("ended"), says("rotates"), says("check waits"));
        Box::pin(async move {
            if waits {
                self.begun.notify_one();
                self.go_on.notified().await;
            }
            if rotates {
                logins::capture(&call, &slot, "rotated-session").await;
            }
            called(Ok(is_accepted))
        })
    }

    fn renew_account(&self, call: Call, slot: String) -> BoxFuture<'_, Called<Screen>> {
        Box::pin(async move {
            self.renewals.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if self.lines.iter().any(|line| line == "renewal waits") {
                self.begun.notify_one();
                self.go_on.notified().await;
            }
            if !self.lines.iter().any(|line| line == "renews") {
                return called(Err(GuestError::LoginRequired(Some(slot)).into()));
            }
            logins::capture(&call, &slot, "fresh-session").await;
            called(Ok(Screen::default()))
        })
    }

    fn log_out(&self, _call: Call, _slot: String) -> BoxFuture<'_, Called<()>> {
        Box::pin(async { called(Ok(())) })
    }

    fn forget_account(&self, _slot: &str) {}

    fn cookies_for(&self, _secrets: Secrets, _url: Url) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { vec!["shelf=7".to_owned()] })
    }

    /// As many bytes as the URL is long.
    fn sizes(&self, _call: Call, links: Vec<Link>) -> BoxFuture<'_, Vec<Option<u64>>> {
        let length = |link: Link| Some(link.url.as_str().len() as u64);
        Box::pin(async move { links.into_iter().map(length).collect() })
    }
}

/// A data directory with plugins in it, which can be closed and opened again.
pub(crate) struct World {
    root: tempfile::TempDir,
    pub(crate) plugins: Plugins,
    pub(crate) runtime: Arc<Scripted>,
    pub(crate) faults: FaultPoints,
    store: Store,
    dir: DataDir,
    market: Config,
    clock: Clock,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_market(Config::default(), Clock::default()).await
    }

    pub(crate) async fn with_market(market: Config, clock: Clock) -> Self {
        Self::open(tempfile::tempdir().unwrap(), Scripted::default(), market, clock).await
    }

    async fn open(root: tempfile::TempDir, runtime: Scripted, market: Config, clock: Clock) -> Self {
        let dir = DataDir::lock(root.path().join("data")).unwrap();
        let store = Store::open(dir.join("svc.db"), &[crate::MIGRATIONS]).unwrap();
        let vault = Arc::new(Vault::open(&dir, &store).await.unwrap());
        let (runtime, faults) = (Arc::new(runtime), FaultPoints::default());
        let machine = Machine {
            runtime: Arc::clone(&runtime) as _,
            market: market.clone(),
            clock: clock.clone(),
            faults: faults.clone(),
        };
        let plugins = Plugins::open_with(store.clone(), vault, dir.join("plugins"), machine);
        let plugins = plugins.await.unwrap();
        Self {
            root,
            plugins,
            runtime,
            faults,
            store,
            dir,
            market,
            clock,
        }
    }

    /// Ends everything and starts it again, as after a crash: nothing is in memory any more.
    pub(crate) async fn restart(self) -> Self {
        self.restart_on(Scripted::default()).await
    }

    /// The same, and slow scripts are not loaded before they are let go.
    pub(crate) async fn restart_held(self) -> Self {
        let runtime = Scripted::default();
        runtime.holds_loads.send_replace(true);
        self.restart_on(runtime).await
    }

    /// The same as if another version of the host had installed what is there. `is_later` is what [`Scripted`] says.
    pub(crate) async fn restart_upgraded(self, is_later: bool) -> Self {
        self.damage("UPDATE plugin SET record = replace(record, '\"proved_in\":', '\"proved_elsewhere\":')")
            .await;
        self.restart_on(Scripted {
            is_later,
            ..Scripted::default()
        })
        .await
    }

    /// Changes rows directly in the database.
    pub(crate) async fn damage(&self, sql: &'static str) {
        let changed = self.store.write(move |transaction| transaction.execute(sql, []));
        assert!(changed.await.unwrap() > 0);
    }

    /// The same with an executable that brings other plugins.
    pub(crate) async fn restart_with(mut self, bundled: &'static [catalogue::Bundled]) -> Self {
        self.market.bundled = bundled;
        self.restart().await
    }

    async fn restart_on(self, runtime: Scripted) -> Self {
        self.plugins.close().await;
        self.store.close().await;
        drop(self.dir);
        Self::open(self.root, runtime, self.market, self.clock).await
    }

    /// Releases the held loads.
    pub(crate) fn let_go(&self) {
        self.runtime.holds_loads.send_replace(false);
    }

    /// What is known of a plugin once it is loaded or cannot be.
    pub(crate) async fn settled(&self, name: &str) -> Option<PluginSummary> {
        let mut changes = self.plugins.changes();
        loop {
            let summary = self.plugins.get(&identity(name))?;
            if summary.idle != Some(Idle::Loading) {
                return Some(summary);
            }
            assert!(changes.changed().await);
        }
    }

    pub(crate) fn packages(&self) -> usize {
        std::fs::read_dir(self.dir.join("plugins").join("store"))
            .unwrap()
            .count()
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) async fn install(&self, name: &str, version: &str, script: &str) -> Result<Installed, CommandError> {
        self.plugins.install_zip(zip(name, version, script)).await
    }

    pub(crate) fn version(&self, name: &str) -> Option<String> {
        let summary = self.plugins.get(&identity(name))?;
        assert!(!matches!(summary.idle, Some(Idle::Failed(_))), "{:?}", summary.idle);
        Some(summary.manifest?.version.to_string())
    }
}

pub(crate) fn identity(name: &str) -> Identity {
    format!("{name}@test").parse().unwrap()
}

/// What a manifest says; a script's lines that begin with `host`, `optional` and `multi` are for it.
pub(crate) fn manifest(name: &str, version: &str, script: &str) -> String {
    let hosts = |key: &str| {
        let hosts = script.lines().filter_map(|line| line.strip_prefix(key));
        hosts.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut manifest = serde_json::json!({
        "manifestVersion": 1, "identity": format!("{name}@test"), "name": name, "version": version, "entry": "plugin.wasm",
        "capabilities": {
            "resolver": { "match": [format!("https://{name}.test/*")], "multi": script.contains("multi") },
            "preview": script.contains("exports previewer"),
        },
        "permissions": { "hosts": hosts("host "), "optionalHosts": hosts("optional "),
            "secrets": { "token": hosts("secret ") } },
        "settings": [
            { "key": "quality", "type": "string", "default": "hd" },
            { "key": "count", "type": "number", "min": 1 },
            { "key": "token", "type": "string", "secret": true },
        ],
    });
    if script.contains("chooses sites") {
        manifest["capabilities"]["resolver"]["matchSetting"] = "quality".into();
    }
    if script.contains("exports login") {
        manifest["capabilities"]["login"] = serde_json::json!({ "slots": [
            { "id": "main", "title": "Shelf", "modes": ["password"], "maxParallel": 2, "dailyBytes": 1_000_000 },
        ] });
    }
    if script.contains("exports hook-handler") {
        manifest["capabilities"]["hook"] = serde_json::json!({
            "events": ["start", "metaProbed", "done", "error"], "match": hosts("watch "),
        });
    }
    if script.contains("works on files") {
        manifest["capabilities"]["post"] = serde_json::json!({ "tools": hosts("tool ") });
    }
    if script.contains("exports feed-handler") {
        manifest["capabilities"]["feed"] = serde_json::json!({
            "match": [format!("https://{name}.test/feed/*")],
            "config": [
                { "key": "search", "type": "string", "required": true },
                { "key": "apiKey", "type": "string", "secret": true },
            ],
        });
    }
    manifest.to_string()
}

pub(crate) fn zip(name: &str, version: &str, script: &str) -> Vec<u8> {
    let manifest = manifest(name, version, script);
    archive(&[
        part("plugin.json", manifest.as_bytes()),
        part("plugin.wasm", script.as_bytes()),
    ])
}

pub(crate) fn given(url: &str) -> CallTarget {
    CallTarget::by_user(url.parse().unwrap())
}

pub(crate) fn batch(values: &[(&str, &str)]) -> BTreeMap<String, String> {
    values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn part(name: &str, bytes: &[u8]) -> (String, Bytes) {
    (name.to_owned(), Bytes::copy_from_slice(bytes))
}

fn archive(files: &[(String, Bytes)]) -> Vec<u8> {
    plugin_package::pack(&files.iter().cloned().collect()).unwrap()
}
