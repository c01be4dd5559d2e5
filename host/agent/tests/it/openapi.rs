//! The committed description is the one that the handlers make.

use std::{fs, path::Path};

#[test]
fn the_description_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let made = agent::openapi();
    if std::env::vars().any(|(name, _)| name == "UPDATE_EXPECT") {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "openapi.json is out of date: run with UPDATE_EXPECT=1"
    );
    let read: serde_json::Value = serde_json::from_str(&made).unwrap();
    assert_eq!(read["info"]["version"], "0.1.0");
    assert!(read["openapi"].as_str().unwrap().starts_with("3.1"));
}
