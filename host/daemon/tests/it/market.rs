//! What the market's methods do and how they refuse, with a source that was made by its maintainer's tool.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use daemon::Config;
use futures_util::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use market::{Folder, Origin, OriginError};
use market_tool::{Fixed, Init, Repository, SigningKey, author, index, init, publish};
use plugin_host::{
    Feed, FeedRequest, GuestError, Identity, Link, Listing, PluginFault, Proxies,
    market::{Config as Market, Origins, imports_digest},
    runtime::{
        Call, Called, Code, Guest, Interface, LoadError, LoginMode, LoginSession, Report, Runtime, Screen, Secrets,
        Step,
    },
};
use protocol::{ErrorCode, Method, Reason, RpcError};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use transfer::Secret;
use url::Url;

use crate::world::{Client, World};

/// A runtime that loads any code and answers no call; calls are tested in `plugin-wasm`.
#[derive(Debug)]
struct Mute(Interface);

impl Runtime for Mute {
    fn load(&self, _code: Code) -> BoxFuture<'_, Result<Arc<dyn Guest>, LoadError>> {
        let guest: Arc<dyn Guest> = Arc::new(Self(self.0.clone()));
        async { Ok(guest) }.boxed()
    }
}

fn nothing<T: Send + 'static>() -> BoxFuture<'static, Called<T>> {
    let result = Err(PluginFault::from(GuestError::NotMatched));
    let report = Report::default();
    async { Called { result, report } }.boxed()
}

impl Guest for Mute {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn resolve(&self, _call: Call, _password: Option<Secret>) -> BoxFuture<'_, Called<Listing>> {
        nothing()
    }

    fn more(&self, _call: Call, _token: String) -> BoxFuture<'_, Called<Listing>> {
        nothing()
    }

    fn link_for(&self, _call: Call, _entry: String, _variant: Option<String>) -> BoxFuture<'_, Called<Link>> {
        nothing()
    }

    fn preview(&self, _call: Call) -> BoxFuture<'_, Called<Listing>> {
        nothing()
    }

    fn feed(&self, _call: Call, _request: FeedRequest) -> BoxFuture<'_, Called<Feed>> {
        nothing()
    }

    fn begin_login(&self, _call: Call, _slot: String, _mode: LoginMode) -> Box<dyn LoginSession> {
        Box::new(MuteLogin)
    }

    fn check_account(&self, _call: Call, _slot: String) -> BoxFuture<'_, Called<bool>> {
        nothing()
    }

    fn renew_account(&self, _call: Call, _slot: String) -> BoxFuture<'_, Called<Screen>> {
        nothing()
    }

    fn log_out(&self, _call: Call, _slot: String) -> BoxFuture<'_, Called<()>> {
        nothing()
    }

    fn forget_account(&self, _slot: &str) {}

    fn cookies_for(&self, _secrets: Secrets, _url: Url) -> BoxFuture<'_, Vec<String>> {
        async { Vec::new() }.boxed()
    }

    fn sizes(&self, _call: Call, _links: Vec<Link>) -> BoxFuture<'_, Vec<Option<u64>>> {
        async { Vec::new() }.boxed()
    }
}

struct MuteLogin;

impl LoginSession for MuteLogin {
    fn step(&mut self, _step: Step) -> BoxFuture<'_, Called<Screen>> {
        nothing()
    }

    fn take_cookies(&mut self, _cookies: Vec<(Url, String)>) -> BoxFuture<'_, usize> {
        async { 0 }.boxed()
    }
}

/// The interface of the test plugin.
fn interface() -> Interface {
    Interface {
        exports: vec!["resolver".to_owned()],
        imports: vec!["http.send".to_owned()],
    }
}

/// A market source on disk; every URL resolves to it unless `is_reached` is false.
#[derive(Debug, Clone)]
struct TestSource {
    folder: Arc<tempfile::TempDir>,
    is_reached: Arc<Mutex<bool>>,
}

impl Origins for TestSource {
    fn at(&self, _url: &Url, _proxies: &Proxies) -> Result<Arc<dyn Origin>, OriginError> {
        let is_reached = *self.is_reached.lock().unwrap();
        let refused = OriginError::Failed("connection refused".to_owned());
        is_reached
            .then(|| Arc::new(Folder::new(self.site())) as _)
            .ok_or(refused)
    }
}

impl TestSource {
    async fn new() -> (Self, String) {
        let test_source = Self {
            folder: Arc::new(tempfile::tempdir().unwrap()),
            is_reached: Arc::new(Mutex::new(true)),
        };
        fs::create_dir(test_source.site()).unwrap();
        let asked = Init {
            id: "main".parse().unwrap(),
            name: "Main".to_owned(),
            keys: test_source.folder.path().join("keys"),
        };
        let roots = init(&test_source.repository(), &asked, &Fixed(None), Timestamp::now())
            .await
            .unwrap();
        SigningKey::generate(&test_source.key_file("author"), None).unwrap();
        let link = format!("svc://market?url=https://main.test/&key={}", roots[0]);
        (test_source, link)
    }

    fn site(&self) -> PathBuf {
        self.folder.path().join("site")
    }

    fn repository(&self) -> Repository {
        Repository::open(&self.site()).unwrap()
    }

    fn key_file(&self, name: &str) -> PathBuf {
        self.folder.path().join("keys").join(format!("{name}.key"))
    }

    fn key(&self, name: &str) -> SigningKey {
        SigningKey::read(&self.key_file(name), &Fixed(None)).unwrap()
    }

    /// Builds and publishes a version. Returns the path of its package at the source.
    async fn release(&self, version: &str) -> PathBuf {
        let author = self.key("author");
        let manifest = json!({
            "manifestVersion": 1, "identity": "acme@test", "name": "Acme", "version": version, "entry": "plugin.wasm",
            "abi": "0.1", "author": {"name": "Test", "key": author.public().to_string()},
            "capabilities": {"resolver": {"match": ["https://acme.test/*"]}},
            "permissions": {"hosts": ["https://acme.test"]},
        });
        let files = BTreeMap::from([
            ("plugin.json".to_owned(), manifest.to_string().into_bytes().into()),
            ("plugin.wasm".to_owned(), version.to_owned().into_bytes().into()),
        ]);
        let path = self.folder.path().join(format!("acme@test-{version}.zip"));
        fs::write(&path, plugin_package::pack(&files).unwrap()).unwrap();
        author::sign(&path, &author).unwrap();
        let imports = |_: &_| Ok(imports_digest(&interface()));
        let addition = index::Addition {
            rotation: None,
            imports: &imports,
        };
        index::add(
            &self.repository(),
            &self.key("index"),
            &path,
            addition,
            Timestamp::now(),
        )
        .unwrap();
        self.publish().await;
        self.site()
            .join(market::path::package(&identity(), &version.parse().unwrap()))
    }

    async fn withdraw(&self, version: &str) {
        let (plugin, version) = (identity(), version.parse().unwrap());
        let which = (&plugin, &version);
        index::withdraw(
            &self.repository(),
            &self.key("index"),
            which,
            "broken",
            Timestamp::now(),
        )
        .unwrap();
        self.publish().await;
    }

    async fn publish(&self) {
        publish(&self.repository(), &self.key("timestamp"), Timestamp::now())
            .await
            .unwrap();
    }
}

fn identity() -> Identity {
    "acme@test".parse().unwrap()
}

/// A daemon with plugins, a client of it, and a source that is not added yet.
async fn begin() -> (World, Client<TcpStream>, TestSource, String) {
    let (test_source, link) = TestSource::new().await;
    let origins = Arc::new(test_source.clone());
    let world = World::with(|config| Config {
        plugins: Some(Arc::new(Mute(interface()))),
        market: Market { origins, bundled: &[] },
        ..config
    });
    let world = world.await;
    let client = world.client().await;
    (world, client, test_source, link)
}

/// The same after the user has added the source.
async fn begin_with_source() -> (World, Client<TcpStream>, TestSource) {
    let (world, mut client, test_source, link) = begin().await;
    let add = Method::PluginMarketSourceAdd;
    let shown = client.call(add, json!({ "link": link })).await.unwrap();
    let believed = json!({"link": link, "fingerprint": shown["fingerprint"]});
    client.call(add, believed).await.unwrap();
    (world, client, test_source)
}

/// The code, the field and the reason.
fn why(error: &RpcError) -> (ErrorCode, &str, Option<Reason>) {
    let data = error.data.as_ref().expect("an application error");
    (data.code, data.field.as_deref().unwrap_or(""), data.reason)
}

impl Client<TcpStream> {
    async fn install(&mut self, params: Value) -> Result<Value, RpcError> {
        self.call(Method::PluginMarketInstall, params).await
    }

    async fn get(&mut self) -> Result<Value, RpcError> {
        self.install(json!({"pluginId": "acme@test"})).await
    }

    async fn refresh(&mut self) -> Value {
        let mut sources = self.call(Method::PluginMarketRefresh, json!({})).await.unwrap();
        sources[1].take()
    }

    /// What the market offers: one plugin.
    async fn offer(&mut self) -> Value {
        let mut offers = self.call(Method::PluginMarketList, json!({})).await.unwrap();
        assert_eq!(offers.as_array().unwrap().len(), 1);
        offers[0].take()
    }
}

#[tokio::test]
async fn a_source_is_added_with_its_fingerprint_and_removed_when_nothing_came_from_it() {
    let (_world, mut client, _place, link) = begin().await;
    let (add, remove) = (Method::PluginMarketSourceAdd, Method::PluginMarketSourceRemove);
    assert_eq!(
        client.call(Method::PluginMarketList, json!({})).await.unwrap(),
        json!([])
    );
    let bad = client
        .call(add, json!({"link": "https://main.test/"}))
        .await
        .unwrap_err();
    assert_eq!(why(&bad), (ErrorCode::InvalidArgument, "link", None));

    let shown = client.call(add, json!({ "link": link })).await.unwrap();
    assert_eq!(
        (&shown["url"], shown.get("source")),
        (&json!("https://main.test/"), None)
    );
    let other = json!({"link": link, "fingerprint": "0000 1111"});
    let other = client.call(add, other).await.unwrap_err();
    assert_eq!(why(&other), (ErrorCode::Conflict, "fingerprint", None));
    let believed = json!({"link": link, "fingerprint": shown["fingerprint"]});
    let added = client.call(add, believed.clone()).await.unwrap();
    assert_eq!(
        (&added["source"]["id"], &added["source"]["status"]),
        (&json!("main"), &json!("fresh"))
    );
    let again = client.call(add, believed).await.unwrap_err();
    assert_eq!(why(&again), (ErrorCode::Conflict, "", None));

    let sources = client.call(Method::PluginMarketSourceList, json!({})).await.unwrap();
    let ids: Vec<_> = sources.as_array().unwrap().iter().map(|source| &source["id"]).collect();
    assert_eq!(ids, ["bundled", "main"]);
    let ours = client.call(remove, json!({"source": "bundled"})).await.unwrap_err();
    assert_eq!(why(&ours).0, ErrorCode::Conflict);
    client.call(remove, json!({"source": "main"})).await.unwrap();
    let gone = client.call(remove, json!({"source": "main"})).await.unwrap_err();
    assert_eq!(why(&gone), (ErrorCode::NotFound, "source", None));
}

#[tokio::test]
async fn a_plugin_is_installed_updated_pinned_and_uninstalled_and_clients_are_told() {
    let (_world, mut client, test_source) = begin_with_source().await;
    test_source.release("1.0.0").await;
    assert_eq!(client.refresh().await["plugins"], 1);
    let offer = client.offer().await;
    assert_eq!(
        (
            &offer["pluginId"],
            &offer["source"],
            &offer["permissions"],
            &offer["stale"]
        ),
        (
            &json!("acme@test"),
            &json!("main"),
            &json!(["host https://acme.test"]),
            &json!(false)
        ),
    );
    // Events follow only after a snapshot.
    client.snapshot().await;
    let installed = client.get().await.unwrap();
    assert_eq!(
        (&installed["version"], &installed["signedBy"]),
        (&json!("1.0.0"), &offer["signedBy"])
    );
    let waits = |told: &Value| told[0]["loadStatus"] == "PendingConsent";
    client.until("pluginsChanged", waits).await;
    let agreed = json!({"identity": "acme@test", "enabled": true, "consent": installed["pendingConsent"]});
    client.call(Method::PluginSetEnabled, agreed).await.unwrap();

    test_source.release("1.1.0").await;
    client.refresh().await;
    let offer = client.offer().await;
    assert_eq!(
        (&offer["updateAvailable"], &offer["installed"]["version"]),
        (&json!(true), &json!("1.0.0"))
    );
    let updated = client
        .install(json!({"pluginId": "acme@test", "version": "1.1.0"}))
        .await
        .unwrap();
    assert_eq!(
        (&updated["version"], updated.get("pendingConsent")),
        (&json!("1.1.0"), None)
    );
    let pin = json!({"identity": "acme@test", "pinned": true});
    client.call(Method::PluginSetPinned, pin).await.unwrap();
    assert_eq!(
        client.offer().await["installed"],
        json!({"version": "1.1.0", "pinned": true})
    );
    let roll_back = json!({"identity": "acme@test"});
    client.call(Method::PluginRollBack, roll_back.clone()).await.unwrap();
    assert_eq!(client.offer().await["installed"]["version"], "1.0.0");

    let used = client
        .call(Method::PluginMarketSourceRemove, json!({"source": "main"}))
        .await
        .unwrap_err();
    assert_eq!(why(&used).0, ErrorCode::Conflict);
    assert!(used.message.contains("acme@test"), "{used:?}");
    client.call(Method::PluginUninstall, roll_back).await.unwrap();
    assert_eq!(client.offer().await.get("installed"), None);
    client
        .call(Method::PluginMarketSourceRemove, json!({"source": "main"}))
        .await
        .unwrap();
}

#[tokio::test]
async fn what_cannot_be_installed_says_why() {
    let (_world, mut client, test_source) = begin_with_source().await;
    let package = test_source.release("1.0.0").await;
    client.refresh().await;
    for (params, expected) in [
        (
            json!({"pluginId": "none@test"}),
            (ErrorCode::NotFound, "pluginId", Some(Reason::PluginNotInMarket)),
        ),
        (
            json!({"pluginId": "not a name"}),
            (ErrorCode::NotFound, "pluginId", Some(Reason::PluginNotInMarket)),
        ),
        (
            json!({"pluginId": "acme@test", "source": "none"}),
            (ErrorCode::NotFound, "source", None),
        ),
        (
            json!({"pluginId": "acme@test", "version": "x"}),
            (ErrorCode::InvalidArgument, "version", None),
        ),
        (
            json!({"pluginId": "acme@test", "version": "0.9.0"}),
            (ErrorCode::Conflict, "", Some(Reason::MarketVersionChanged)),
        ),
    ] {
        let refused = client.install(params).await.unwrap_err();
        assert_eq!(why(&refused), expected, "{refused:?}");
    }
    let honest = fs::read(&package).unwrap();
    let swapped = vec![0; honest.len()];
    let longer = [honest.as_slice(), b"more"].concat();
    for (bytes, code, reason) in [
        (swapped, ErrorCode::InvalidArgument, Reason::PluginPackageInvalid),
        (longer, ErrorCode::InvalidArgument, Reason::PluginPackageTooLarge),
    ] {
        fs::write(&package, bytes).unwrap();
        assert_eq!(why(&client.get().await.unwrap_err()), (code, "", Some(reason)));
    }
    fs::remove_file(&package).unwrap();
    let missing = client.get().await.unwrap_err();
    assert_eq!(
        why(&missing),
        (ErrorCode::Unavailable, "", Some(Reason::PluginDownloadFailed))
    );
    assert!(missing.data.unwrap().retryable);
    fs::write(&package, honest).unwrap();
    test_source.withdraw("1.0.0").await;
    client.refresh().await;
    let yanked = client.get().await.unwrap_err();
    assert_eq!(why(&yanked), (ErrorCode::Conflict, "", Some(Reason::PluginYanked)));
    assert_eq!(client.call(Method::PluginList, json!({})).await.unwrap(), json!([]));
}

#[tokio::test]
async fn a_source_that_is_not_reached_or_not_believed_says_so() {
    let (_world, mut client, test_source) = begin_with_source().await;
    let failing = |source: &Value| (source["status"].clone(), source["errorReason"].clone());
    // Nothing is cached yet: the list fails with the source's error.
    *test_source.is_reached.lock().unwrap() = false;
    assert_eq!(
        failing(&client.refresh().await),
        (json!("failing"), json!("marketUnreachable"))
    );
    let unreachable = client.call(Method::PluginMarketList, json!({})).await.unwrap_err();
    assert_eq!(
        why(&unreachable),
        (ErrorCode::Unavailable, "", Some(Reason::MarketUnreachable))
    );
    *test_source.is_reached.lock().unwrap() = true;

    let before = tempfile::tempdir().unwrap();
    copy_files(&test_source.site(), before.path());
    test_source.release("1.0.0").await;
    assert_eq!(client.refresh().await["status"], "fresh");
    let signature = test_source.site().join(market::path::TIMESTAMP_SIGNATURE);
    let signed = fs::read(&signature).unwrap();
    fs::write(&signature, "nonsense").unwrap();
    assert_eq!(
        failing(&client.refresh().await),
        (json!("failing"), json!("marketIndexInvalid"))
    );
    // The cached index still counts.
    assert_eq!(client.offer().await["version"], "1.0.0");
    fs::write(&signature, signed).unwrap();
    copy_files(before.path(), &test_source.site());
    assert_eq!(
        failing(&client.refresh().await),
        (json!("failing"), json!("marketIndexRollback"))
    );
    assert_eq!(client.offer().await["stale"], false);
}

fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
