//! The committed description matches the handlers.

use std::{fs, path::Path};

use agent::Edition;
use serde_json::{Value, json};

use crate::world::World;

/// Every operation of a description, with its method and path.
fn operations(description: &Value) -> impl Iterator<Item = (String, &Value)> {
    let paths = description["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| {
        let operations = item.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (format!("{method} {path}"), operation))
    })
}

#[test]
fn every_operation_says_what_it_does() {
    let made: Value = serde_json::from_str(&agent::openapi()).unwrap();
    for (operation, says) in operations(&made) {
        for text in ["summary", "description"] {
            let text = says[text].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{operation} needs a doc comment of two paragraphs");
        }
    }
}

#[test]
fn files_are_sent_as_they_are() {
    let made: Value = serde_json::from_str(&agent::openapi()).unwrap();
    for (path, content_type) in [
        ("/api/v1/plugins/install", "application/zip"),
        ("/api/web/blobs/{kind}", "application/octet-stream"),
    ] {
        let schema = &made["paths"][path]["post"]["requestBody"]["content"][content_type]["schema"];
        assert_eq!(
            (&schema["type"], &schema["format"]),
            (&json!("string"), &json!("binary")),
            "{path}"
        );
    }
}

/// Whether the committed file is what this version makes; `UPDATE_EXPECT` rewrites it.
pub(crate) fn check_committed(name: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::vars().any(|(name, _)| name == "UPDATE_EXPECT") {
        fs::write(&path, made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "{name} is out of date: run with UPDATE_EXPECT=1");
}

#[tokio::test]
async fn what_is_sent_is_what_the_handlers_are() {
    let world = World::alone(Edition::Headless, None).await;
    let sent = world.send("GET /api/v1/openapi.json", &[], "").await;
    assert!(sent.body == agent::openapi().into_bytes(), "build again");
    world.end().await;
}

#[test]
fn the_description_is_up_to_date() {
    let made = agent::openapi();
    check_committed("../rest/openapi.json", &made);
    let read: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(read["info"]["version"], "0.1.0");
    assert!(read["openapi"].as_str().unwrap().starts_with("3.1"));
}
