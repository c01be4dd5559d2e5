use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn full() -> Value {
    json!({
        "manifestVersion": 1,
        "identity": "acme-drive@acme",
        "name": "Acme Drive", "version": "1.4.0", "description": "", "homepage": "https://acme.com", "icon": "icon.png", "license": "MIT",
        "runtime": "component",
        "entry": "plugin.wasm",
        "abi": "1.0", "minHost": "0.1.0",
        "capabilities": {
            "resolver": { "match": ["https://drive.acme.com/s/*"], "priority": 0, "wallMs": 20000, "multi": true },
            "preview": true,
            "feed": {
                "match": ["https://drive.acme.com/rss/*"],
                "config": [{ "key": "search", "type": "string", "required": true }]
            },
            "login": { "slots": [{ "id": "main", "title": "Account", "modes": ["qr", "password"] }] },
            "post": { "tools": ["unpack"] },
            "hook": { "events": ["start", "error"] }
        },
        "permissions": {
            "hosts": ["https://api.acme.com", "https://*.acmecdn.net"],
            "optionalHosts": ["https://mirror.example.org"],
            "inputHost": false,
            "secrets": { "access": ["https://api.acme.com", "https://x.acmecdn.net"] },
            "cookies": "jar", "storageKb": 256, "memoryMb": 128
        },
        "settings": [
            { "key": "quality", "title": "Quality", "type": "string", "widget": "select",
              "options": [{ "value": "hd", "label": "HD" }], "default": "hd" },
            { "key": "access", "type": "string", "secret": true },
            { "key": "count", "type": "number", "min": 1, "max": 5, "default": 3, "required": true }
        ],
        "tests": "fixtures/*.json",
        "author": { "name": "Acme", "key": "RWabc" }
    })
}

/// The manifest with one value replaced, or removed if it is null.
fn with(pointer: &str, value: Value) -> Value {
    let mut manifest = full();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = manifest.pointer_mut(parent).unwrap();
    match (parent, value) {
        (Value::Object(map), Value::Null) => drop(map.remove(key)),
        (Value::Object(map), value) => drop(map.insert(key.to_owned(), value)),
        (Value::Array(list), value) => list[key.parse::<usize>().unwrap()] = value,
        _ => panic!("{pointer} is in nothing"),
    }
    manifest
}

fn parse(manifest: &Value) -> Result<Manifest, InvalidManifest> {
    Ok(Manifest::parse(manifest.to_string().as_bytes(), Reading::Strict)?.0)
}

#[test]
fn a_whole_manifest_is_understood() {
    let manifest = parse(&full()).unwrap();
    assert_eq!(manifest.identity.as_str(), "acme-drive@acme");
    let resolver = manifest.capabilities.resolver.unwrap();
    assert_eq!(resolver.wall.as_secs(), 20);
    assert!(resolver.gives_lists && manifest.capabilities.preview);
    assert_eq!(manifest.permissions.memory_bytes, 128 * 1024 * 1024);
    assert_eq!(manifest.permissions.storage_bytes, 256 * 1024);
    let settings: Vec<_> = manifest
        .settings
        .iter()
        .map(|setting| (setting.key.as_str(), setting.widget.name(), setting.is_secret))
        .collect();
    assert_eq!(
        settings,
        [
            ("quality", "select", false),
            ("access", "text", true),
            ("count", "number", false)
        ]
    );
    assert_eq!(manifest.settings[2].default.as_deref(), Some("3"));
}

#[test]
fn every_mistake_is_told_with_its_place() {
    for (pointer, value) in [
        ("/identity", json!("Acme@acme")),
        ("/identity", json!(7)),
        ("/name", json!(" ")),
        ("/version", json!("1.0")),
        ("/homepage", json!("javascript:alert(1)")),
        ("/icon", json!("../icon.png")),
        ("/runtime", json!("native")),
        ("/minHost", json!("new")),
        ("/manifestVersion", json!(0)),
        ("/capabilities", json!({})),
        ("/capabilities/resolver/match", json!([])),
        ("/capabilities/resolver/matchSetting", json!("nothing")),
        ("/capabilities/resolver/match/0", json!("drive.acme.com/*")),
        ("/capabilities/resolver/wallMs", json!(30_001)),
        ("/capabilities/feed/match", json!([])),
        ("/capabilities/feed/config/0/key", json!("")),
        ("/capabilities/feed/config/0/key", json!("count")),
        ("/capabilities/feed/config/0/widget", json!("number")),
        ("/capabilities/login/slots/0/modes/1", json!("fax")),
        ("/capabilities/login/slots/0/modes", json!([])),
        ("/capabilities/login/slots/0/id", json!("a/b")),
        ("/capabilities/login/slots", json!([])),
        ("/capabilities/post/tools/0", json!("sh")),
        ("/capabilities/hook/events", json!([])),
        ("/capabilities/hook/events/0", json!("cancel")),
        ("/permissions/hosts/1", json!("https://*.com")),
        ("/permissions/hosts/1", json!("<all_urls>")),
        ("/permissions/secrets/access/1", json!("https://elsewhere.org")),
        ("/permissions/cookies", json!("all")),
        ("/permissions/storageKb", json!(2000)),
        ("/permissions/memoryMb", json!(0)),
        ("/settings/0/widget", json!("toggle")),
        ("/settings/0/options", json!([])),
        ("/settings/0/default", json!("sd")),
        ("/settings/0/pattern", json!("(")),
        ("/settings/1/default", json!("hunter2")),
        ("/settings/1/options", json!([{ "value": "x" }])),
        ("/settings/1/min", json!(1)),
        ("/settings/2/min", json!(9)),
        ("/settings/2/default", json!([])),
        ("/settings/2/secret", json!(true)),
        ("/settings/2/key", json!("access")),
        ("/settings/2/pattern", json!("x")),
    ] {
        let error = parse(&with(pointer, value.clone())).unwrap_err();
        assert_eq!(error.pointer, pointer, "{value}: {error}");
    }
}

#[test]
fn what_is_missing_is_named() {
    for (pointer, place) in [
        ("/identity", ""),
        ("/capabilities/resolver/match", "/capabilities/resolver"),
        ("/settings/0/key", "/settings/0"),
    ] {
        let error = parse(&with(pointer, Value::Null)).unwrap_err();
        assert_eq!(error.pointer, place, "{error}");
        assert!(error.reason.contains(pointer.rsplit('/').next().unwrap()), "{error}");
    }
    let error = Manifest::parse(b"{", Reading::Strict).unwrap_err();
    assert!(error.to_string().starts_with("plugin.json /: EOF"), "{error}");
    assert!(Manifest::parse(b"{} {}", Reading::Strict).is_err());
    let marked = [b"\xef\xbb\xbf", full().to_string().as_bytes()].concat();
    assert!(Manifest::parse(&marked, Reading::Strict).is_ok());
}

#[test]
fn an_unknown_key_is_an_error_unless_the_format_is_newer_and_the_reader_a_user() {
    for pointer in [
        "/colour",
        "/permissions/allUrls",
        "/settings/0/helperScript",
        "/capabilities/resolver/a~1b",
    ] {
        let manifest = with(&pointer.replace("~1", "\u{1}"), json!(1))
            .to_string()
            .replace("\\u0001", "/");
        let error = Manifest::parse(manifest.as_bytes(), Reading::Strict).unwrap_err();
        assert_eq!(
            (error.pointer.as_str(), error.reason.as_str()),
            (pointer, "unknown key")
        );
        assert!(Manifest::parse(manifest.as_bytes(), Reading::Lenient).is_err());
        let newer = manifest.replace("\"manifestVersion\":1", "\"manifestVersion\":2");
        assert!(Manifest::parse(newer.as_bytes(), Reading::Strict).is_err());
        assert_eq!(
            Manifest::parse(newer.as_bytes(), Reading::Lenient).unwrap().1,
            [pointer]
        );
    }
}

#[test]
fn the_schema_is_that_of_the_records() {
    let schema = schemars::schema_for!(record::ManifestRecord);
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin.schema.json");
    if std::env::vars().any(|(name, _)| name == "UPDATE_EXPECT") {
        std::fs::write(file, text).unwrap();
    } else {
        assert!(
            SCHEMA == text,
            "plugin.schema.json is stale; rewrite it with UPDATE_EXPECT=1"
        );
    }
}
