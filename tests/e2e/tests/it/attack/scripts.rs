//! Plugins that are scripts, as their attackers make them: in folders and in archives.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{Home, Service, service::wait_until};
use serde_json::{Value, json};

use crate::service::guest;

/// A manifest for URLs of this path, in which these keys are others.
pub(crate) fn manifest(identity: &str, path: &str, other: Value) -> Value {
    let mut manifest = json!({
        "manifestVersion": 1, "identity": identity, "name": identity, "version": "1.0.0", "runtime": "js",
        "entry": "plugin.js",
        "capabilities": { "resolver": { "match": [format!("*://*/{path}*")], "multi": true }, "preview": true },
    });
    let Value::Object(other) = other else {
        panic!("not an object: {other}")
    };
    manifest.as_object_mut().unwrap().extend(other);
    manifest
}

/// The folder of a plugin, by this name in the user's home.
pub(crate) fn folder(home: &Home, name: &str, manifest: &Value, script: &str) -> PathBuf {
    let folder = home.path().join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("plugin.json"), manifest.to_string()).unwrap();
    fs::write(folder.join("plugin.js"), script).unwrap();
    folder
}

/// The same as an archive.
pub(crate) fn archive(home: &Home, name: &str, manifest: &Value, script: &str) -> PathBuf {
    let folder = folder(home, name, manifest, script);
    let archive = folder.join("made.zip");
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-c"])
        .arg(&archive)
        .args(["plugin.json", "plugin.js"]);
    assert!(zip.current_dir(&folder).status().unwrap().success());
    archive
}

/// Installs an archive and agrees to what it asks for, if it asks.
pub(super) fn install(service: &Service, archive: &Path) {
    let installed = guest::upload(&service.url(), archive).expect("the answer is JSON");
    let identity = installed["identity"].as_str().unwrap_or_else(|| panic!("{installed}"));
    if let Some(consent) = installed["pendingConsent"].as_str() {
        agree(service, identity, consent);
    }
    wait_until("the plugin is loaded", || {
        plugin(service, identity)["loadStatus"] == "Loaded"
    });
}

pub(super) fn agree(service: &Service, identity: &str, consent: &str) {
    let agreed = guest::switch(service, identity, &json!({"enabled": true, "consent": consent}));
    assert_eq!(agreed.status, 200, "{}", agreed.body);
}

/// Uses a folder in place, as far as the service does.
pub(super) fn develop(service: &Service, folder: &Path) -> Value {
    service.call("POST", "/api/v1/plugins/install-dev", Some(&json!({"dirPath": folder})))
}

pub(super) fn plugin(service: &Service, identity: &str) -> Value {
    let plugins = service.call("GET", "/api/v1/plugins", None);
    let found = plugins
        .as_array()
        .unwrap()
        .iter()
        .find(|plugin| plugin["identity"] == identity);
    found
        .cloned()
        .unwrap_or_else(|| panic!("{identity} is not there: {plugins}"))
}

pub(super) fn preview(service: &Service, url: &str) -> Value {
    service.call("POST", "/api/v1/resolve/preview", Some(&json!({"url": url})))
}

/// The ends of its calls, as its journal tells them.
pub(super) fn calls(service: &Service, identity: &str) -> Vec<Value> {
    let journal = service.call("GET", &format!("/api/v1/plugins/{identity}/journal"), None);
    let events = journal["events"].as_array().unwrap().iter();
    events
        .map(|event| event["call"].clone())
        .filter(|call| !call.is_null())
        .collect()
}
