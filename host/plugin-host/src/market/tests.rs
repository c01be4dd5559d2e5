//! Tests of the market as a whole: sources made with the maintainers' tool, a real disk and database, and a simulated
//! clock.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use jiff::{SignedDuration, Timestamp};
use market::{Folder, Origin, OriginError, PublicKey, Revocation, VersionRange};
use market_tool::{Fixed, Init, Package, Repository, SigningKey, author, index, init, publish, revoke};
use url::Url;

use super::*;
use crate::{
    catalogue::Clock,
    error::CallFailure,
    install::imports_digest,
    lifecycle::{Source, Status},
    plugins::tests::{World, given, identity, manifest},
    runtime::{Event, Interface},
};

mod adopting;
mod attacks;
mod bundling;
mod installing;
mod power;
mod updating;

/// The simulated network and clock: folders by the host of their URL.
#[derive(Debug, Clone, Default)]
struct Outside(Arc<Mutex<(BTreeMap<String, PathBuf>, Timestamp)>>);

impl Origins for Outside {
    fn at(&self, url: &Url, _proxies: &Proxies) -> Result<Arc<dyn Origin>, OriginError> {
        let folders = &self.0.lock().unwrap().0;
        let folder = folders.get(url.host_str().unwrap());
        let folder = folder.ok_or_else(|| OriginError::Failed("connection refused".to_owned()))?;
        Ok(Arc::new(Folder::new(folder)))
    }
}

impl Outside {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().1
    }

    fn pass(&self, time: SignedDuration) {
        self.0.lock().unwrap().1 += time;
    }

    fn put(&self, host: &str, folder: &Path) {
        self.0.lock().unwrap().0.insert(host.to_owned(), folder.to_owned());
    }

    fn take_away(&self, host: &str) {
        self.0.lock().unwrap().0.remove(host);
    }
}

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

/// A source and the keys of it and of an author.
struct TestSource {
    folder: tempfile::TempDir,
    outside: Outside,
    key: PublicKey,
    id: String,
}

impl TestSource {
    /// A source with this id, at `https://<id>.test/`.
    async fn new(outside: &Outside, id: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        std::fs::create_dir(folder.path().join("source")).unwrap();
        let asked = Init {
            id: id.parse().unwrap(),
            name: format!("The source {id}"),
            keys: keys.clone(),
        };
        let repository = Repository::open(&folder.path().join("source")).unwrap();
        let roots = init(&repository, &asked, &Fixed(None), outside.now()).await.unwrap();
        SigningKey::generate(&keys.join("author.key"), None).unwrap();
        let place = Self {
            outside: outside.clone(),
            key: roots[0],
            id: id.to_owned(),
            folder,
        };
        outside.put(&format!("{id}.test"), &place.source());
        place
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    fn repository(&self) -> Repository {
        Repository::open(&self.source()).unwrap()
    }

    fn signing_key(&self, name: &str) -> SigningKey {
        let path = self.folder.path().join("keys").join(format!("{name}.key"));
        SigningKey::read(&path, &Fixed(None)).unwrap()
    }

    fn link(&self) -> String {
        let url = format!("https://{}.test/", self.id).parse().unwrap();
        Link::new(url, self.key).unwrap().to_string()
    }

    /// A package that is signed, and its path.
    fn package(&self, name: &str, version: &str, script: &str, fixture: Option<&str>) -> PathBuf {
        let mut manifest: serde_json::Value = serde_json::from_str(&manifest(name, version, script)).unwrap();
        let author = self.signing_key("author");
        manifest["abi"] = crate::package::archive::ABI.into();
        manifest["author"] = serde_json::json!({ "name": "Test", "key": author.public().to_string() });
        let mut files = BTreeMap::from([
            ("plugin.json".to_owned(), manifest.to_string().into_bytes().into()),
            ("plugin.wasm".to_owned(), script.to_owned().into_bytes().into()),
        ]);
        if let Some(fixture) = fixture {
            files.insert("fixtures/one.json".to_owned(), fixture.to_owned().into_bytes().into());
        }
        let path = self.folder.path().join(format!("{name}-{version}.zip"));
        std::fs::write(&path, plugin_package::pack(&files).unwrap()).unwrap();
        author::sign(&path, &author).unwrap();
        path
    }

    /// Adds what was packed, and publishes it.
    async fn add(&self, package: &Path, imports: index::Imports<'_>) {
        let rotation = None;
        self.add_all(package, index::Addition { rotation, imports }).await;
    }

    async fn add_all(&self, package: &Path, addition: index::Addition<'_>) {
        let key = self.signing_key("index");
        index::add(&self.repository(), &key, package, addition, self.outside.now()).unwrap();
        self.publish().await;
    }

    /// Makes and publishes a version.
    async fn release(&self, name: &str, version: &str, script: &str) {
        let package = self.package(name, version, script, None);
        self.add(&package, &imports).await;
    }

    /// The same of another author, to whom the one before hands the plugin over.
    async fn release_of_heir(&self, name: &str, version: &str, script: &str) {
        let old = self.signing_key("author");
        let keys = self.folder.path().join("keys");
        let heir = SigningKey::generate(&keys.join("heir.key"), None).unwrap();
        std::fs::rename(keys.join("heir.key"), keys.join("author.key")).unwrap();
        let addition = index::Addition {
            rotation: Some(author::hand_over(&identity(name), &old, heir.public())),
            imports: &imports,
        };
        self.add_all(&self.package(name, version, script, None), addition).await;
    }

    async fn publish(&self) {
        let key = self.signing_key("timestamp");
        publish(&self.repository(), &key, self.outside.now()).await.unwrap();
    }

    async fn revoke(&self, name: &str, before: &str, level: market::Level) {
        let revocation = Revocation {
            identity: identity(name),
            versions: VersionRange {
                from: None,
                before: Some(before.parse().unwrap()),
            },
            sha256: None,
            level,
            reason: "it is bad".to_owned(),
            since: self.outside.now(),
        };
        revoke(&self.repository(), &self.signing_key("revocations"), revocation).unwrap();
        self.publish().await;
    }

    async fn withdraw(&self, name: &str, version: &str) {
        let (plugin, version) = (identity(name), version.parse().unwrap());
        let key = self.signing_key("index");
        let now = self.outside.now();
        index::withdraw(&self.repository(), &key, (&plugin, &version), "it is broken", now).unwrap();
        self.publish().await;
    }
}

/// What the scripts of these tests import, as their lines say.
#[expect(clippy::unnecessary_wraps, reason = "it is what a source is made with")]
fn imports(package: &Package) -> Result<market::Digest, String> {
    let script = String::from_utf8(package.files["plugin.wasm"].to_vec()).unwrap();
    let imports = script.lines().filter_map(|line| line.strip_prefix("imports "));
    Ok(imports_digest(&Interface {
        imports: imports.map(str::to_owned).collect(),
        exports: Vec::new(),
    }))
}

/// An outside in the year 2026, and plugins that know nothing of it yet.
async fn begin() -> (Outside, World) {
    begin_with(&[]).await
}

async fn begin_with(bundled: &'static [Bundled]) -> (Outside, World) {
    let outside = Outside::default();
    outside.0.lock().unwrap().1 = "2026-11-21T12:00:00Z".parse().unwrap();
    let clock = outside.clone();
    let config = Config {
        origins: Arc::new(outside.clone()),
        bundled,
    };
    let world = World::with_market(config, Clock(Arc::new(move || clock.now()))).await;
    (outside, world)
}

/// The same with one source that is known.
async fn begin_with_source() -> (Outside, TestSource, World) {
    let (outside, world) = begin().await;
    let place = TestSource::new(&outside, "main").await;
    world.adopt(&place).await;
    (outside, place, world)
}

impl World {
    fn market(&self) -> Market {
        self.plugins.market(Proxies::none())
    }

    async fn adopt(&self, place: &TestSource) {
        let fingerprint = place.key.fingerprint();
        let adopted = self.market().adopt(&place.link(), Some(&fingerprint)).await.unwrap();
        assert!(adopted.source.unwrap().is_fresh);
    }

    async fn get(&self, name: &str) -> Result<crate::Installed, MarketError> {
        self.market().install(identity(name), None, None).await
    }

    /// Advances the clock and runs the background work.
    async fn after(&self, outside: &Outside, time: SignedDuration) {
        outside.pass(time);
        let settings = Settings {
            proxies: Proxies::none(),
            updates_itself: true,
        };
        self.plugins.0.poll_sources(&settings).await;
    }

    /// Sources remember exactly the plugins that came from them, and one of their packages that is there.
    fn check_pins(&self) {
        let snapshot = self.plugins.0.registry.snapshot();
        for (id, known) in &self.plugins.0.market.catalogue().known {
            for name in ["acme", "other"] {
                let installed = snapshot.plugins.get(&identity(name));
                let installed = installed.map(|loaded| &loaded.installation);
                let own = installed.filter(|installed| {
                    [&installed.source, installed.source_of_staged()].contains(&&Source::Market(id.clone()))
                });
                let pin = known.state.pinned(&identity(name));
                assert_eq!(own.is_some(), pin.is_some(), "{name} of {id}");
                if let Some((own, pin)) = own.zip(pin) {
                    assert!(own.digests().contains(&pin.sha256), "{name} of {id}");
                }
            }
        }
    }

    async fn resolves(&self, name: &str) -> Result<usize, CallFailure> {
        let url = format!("https://{name}.test/x");
        let resolved = self.plugins.resolve(given(&url), None).await;
        resolved
            .map(|resolved| resolved.map_or(0, |resolved| resolved.listing.entries.len()))
            .map_err(|error| error.reason)
    }

    /// What the journal tells of plugins, besides calls and loads.
    fn told(&self) -> Vec<Event> {
        let events = self.plugins.journal().events(None).into_iter();
        events.map(|entry| entry.event).collect()
    }
}
