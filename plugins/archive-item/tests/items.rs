//! Items as the archive describes them, and as it never should.

use archive_item::ArchiveItem;
use proptest::prelude::*;
use serde_json::{Value, json};
use svc_plugin::{
    Error, Result,
    test::{Host, Listing, Page, replay_all},
};

const URL: &str = "https://archive.org/details/item";

fn host(answer: impl Into<Vec<u8>>) -> Host {
    Host::new().page("https://archive.org/metadata/item", Page::json(answer))
}

fn resolve(answer: &Value) -> Result<Listing> {
    host(answer.to_string()).resolve::<ArchiveItem>(URL)
}

#[test]
fn fixtures() {
    replay_all::<ArchiveItem>("fixtures");
}

#[test]
fn more_files_than_the_host_takes_come_in_pages() {
    let files: Vec<_> = (0..10_005).map(|number| json!({"name": number.to_string()})).collect();
    let host = host(json!({"files": files}).to_string());
    let first = host.resolve::<ArchiveItem>(URL).unwrap();
    let second = host.more::<ArchiveItem>(URL, &first.next_page.unwrap()).unwrap();
    assert_eq!((first.entries.len(), second.entries.len()), (10_000, 5));
    assert_eq!((second.entries[0].name.as_str(), second.next_page), ("10000", None));
    let refused = host.more::<ArchiveItem>(URL, "many");
    assert!(matches!(refused, Err(Error::Parse(_))), "{refused:?}");
}

#[test]
fn files_that_are_not_public_are_left_out_and_an_item_of_such_is_refused() {
    let private = json!({"name": "a", "private": "true"});
    let listing = resolve(&json!({"files": [private, {"name": "b"}]})).unwrap();
    assert_eq!(listing.entries.len(), 1);
    let refused = resolve(&json!({"files": [private]}));
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
}

#[test]
fn a_name_that_leads_elsewhere_is_left_out() {
    let names = ["../a", "a/../../b", "/etc/passwd", "a//b", ".", "good"];
    let files: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
    let listing = resolve(&json!({"files": files})).unwrap();
    assert_eq!(listing.entries.len(), 1);
    assert_eq!(
        listing.entries[0].link.as_ref().unwrap().url,
        "https://archive.org/download/item/good"
    );
}

#[test]
fn fields_of_another_shape_are_said() {
    for file in [
        json!({}),
        json!({"name": 5}),
        json!({"name": "a", "size": "large"}),
        json!({"name": "a", "md5": "abc"}),
        json!([]),
    ] {
        let refused = resolve(&json!({"files": [file]}));
        assert!(matches!(refused, Err(Error::Parse(_))), "{refused:?}");
    }
}

/// Any JSON value that a confused server might put somewhere.
fn confusion() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["a", 1])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_the_archive_answers_is_a_listing_or_a_clear_error(
        field in prop::sample::select(vec![
            "/files", "/files/0", "/files/0/name", "/files/0/size", "/files/0/mtime", "/files/0/sha1", "/files/0/length",
            "/files/0/private", "/metadata", "/metadata/title", "/metadata/description", "/metadata/mediatype",
        ]),
        value in confusion(),
    ) {
        let mut answer: Value = serde_json::from_str(include_str!("../fixtures/items/concert.json")).unwrap();
        answer["files"][0]["private"] = Value::Null;
        *answer.pointer_mut(field).unwrap() = value;
        match resolve(&answer) {
            Ok(_) | Err(Error::Parse(_) | Error::NotFound(_) | Error::Forbidden(_)) => {}
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn an_answer_that_is_cut_is_a_parse_error(length in 1_usize..1500) {
        let answer = include_str!("../fixtures/items/concert.json").as_bytes();
        let refused = host(&answer[..length]).resolve::<ArchiveItem>(URL);
        prop_assert!(matches!(refused, Err(Error::Parse(_))), "{refused:?}");
    }
}
