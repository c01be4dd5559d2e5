//! Our own plugins, built from their sources and installed as anybody installs one.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{
    Home, Service,
    http::Answer,
    service::{KEY, wait_until},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A service with a plugin of ours, agreed to.
pub(super) fn with_plugin(home: &Home, identity: &str) -> Service {
    with_archive(home, identity, &of(identity))
}

/// A service with the plugin of this archive, agreed to.
pub(crate) fn with_archive(home: &Home, identity: &str, archive: &Path) -> Service {
    let service = home.serve();
    service.wait_until_ready();
    let consent = install_archive(&service, identity, archive);
    let agreed = switch(&service, identity, &json!({"enabled": true, "consent": consent}));
    assert_eq!(agreed.status, 200, "{}", agreed.body);
    wait_until("the plugin is loaded", || {
        service.call("GET", "/api/v1/plugins", None)[0]["loadStatus"] == "Loaded"
    });
    service
}

/// Installs a plugin of ours and gives what its user is to agree to.
pub(super) fn install(service: &Service, identity: &str) -> String {
    install_archive(service, identity, &of(identity))
}

/// Installs an archive, which holds this plugin, and gives what its user is to agree to.
pub(crate) fn install_archive(service: &Service, identity: &str, archive: &Path) -> String {
    let installed = upload(&service.url(), archive).expect("the answer is JSON");
    assert_eq!(installed["identity"], identity, "{installed}");
    installed["pendingConsent"]
        .as_str()
        .expect("its user is asked")
        .to_owned()
}

/// What the service at `url` says to an archive; `None` if it does not live to say it.
pub(crate) fn upload(url: &str, archive: &Path) -> Option<Value> {
    let answer = Command::new("curl")
        .args(["--silent", "--show-error", "-H", "Content-Type: application/zip"])
        .args(["-H", &format!("Authorization: Bearer {KEY}"), "--data-binary"])
        .arg(format!("@{}", archive.display()))
        .arg(format!("{url}/api/v1/plugins/install"))
        .output()
        .expect("curl is part of the system");
    serde_json::from_slice(&answer.stdout).ok()
}

pub(crate) fn switch(service: &Service, identity: &str, body: &Value) -> Answer {
    let path = format!("/api/v1/plugins/{identity}/enabled");
    service.ask("PUT", &path, Some(body)).expect("it answers")
}

/// A plugin of ours as the archive that its users install.
pub(crate) fn of(identity: &str) -> PathBuf {
    let (name, _) = identity.split_once('@').expect("an identity names its publisher");
    // Tests run side by side and each makes one; whole ones take each other's place.
    let archive = scratch().join(format!("{name}.zip"));
    fs::rename(Guest::build(name).archive(), &archive).unwrap();
    archive
}

fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A plugin of ours, built from its source, in a folder that goes with it.
pub(super) struct Guest {
    sources: PathBuf,
    component: Vec<u8>,
    manifest: Value,
    package: TempDir,
}

impl Guest {
    pub(super) fn build(name: &str) -> Self {
        let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
        let target = scratch().join("guests");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--release", "--locked", "--target", "wasm32-unknown-unknown"]);
        build.args(["-p", name, "--target-dir"]).arg(&target);
        assert!(
            build.current_dir(&plugins).status().unwrap().success(),
            "cannot build a plugin; if the target is missing: rustup target add wasm32-unknown-unknown"
        );
        let module = format!("wasm32-unknown-unknown/release/{}.wasm", name.replace('-', "_"));
        let module = fs::read(target.join(module)).unwrap();
        let mut encoder = wit_component::ComponentEncoder::default().module(&module).unwrap();
        let mut places = ["", "examples", "hostile"]
            .map(|folder| plugins.join(folder).join(name))
            .into_iter();
        let sources = places.find(|place| place.is_dir()).expect("it is one of ours");
        Self {
            component: encoder.encode().unwrap(),
            manifest: serde_json::from_slice(&fs::read(sources.join("plugin.json")).unwrap()).unwrap(),
            sources,
            package: tempfile::tempdir_in(scratch()).unwrap(),
        }
    }

    /// The same plugin as another version, whose code is not the same either.
    pub(super) fn set_version(&mut self, version: &str) {
        self.manifest["version"] = version.into();
        // A custom section, which runs nothing: number 0, its length, and a name, which begins with its own length.
        let length = u8::try_from(version.len()).unwrap();
        self.component.extend([0, length + 1, length]);
        self.component.extend(version.as_bytes());
    }

    /// The same plugin for another site, without its fixtures, which are of the site that it was made for.
    pub(super) fn move_site(&mut self, from: &str, to: &str) {
        let moved = self.manifest.to_string().replace(from, to);
        self.manifest = serde_json::from_str(&moved).expect("it stays JSON");
        self.manifest.as_object_mut().expect("it is an object").remove("tests");
    }

    /// The archive that its users install; it takes the place of the one before.
    pub(super) fn archive(&self) -> PathBuf {
        let package = self.package.path();
        fs::write(package.join("plugin.wasm"), &self.component).unwrap();
        fs::write(package.join("plugin.json"), self.manifest.to_string()).unwrap();
        let archive = package.join("made.zip");
        let mut zip = Command::new("python3");
        zip.args(["-m", "zipfile", "-c"]).arg(&archive);
        zip.args(["plugin.json", "plugin.wasm"]).current_dir(package);
        // Its fixtures are played when it is installed.
        let fixtures = self.sources.join("fixtures");
        let has_tests = self.manifest.get("tests").is_some() && fixtures.is_dir();
        zip.args(has_tests.then_some(fixtures));
        assert!(zip.status().unwrap().success());
        archive
    }
}
