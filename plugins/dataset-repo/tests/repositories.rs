//! Repositories as the site describes them, and as it never should.

use dataset_repo::DatasetRepo;
use proptest::prelude::*;
use serde_json::{Value, json};
use svc_plugin::{
    Error, Result,
    test::{Host, Listing, Page, replay_all},
};

const URL: &str = "https://huggingface.co/acme/tiny";
const PIN: &str = "https://huggingface.co/api/models/acme/tiny/revision/main?expand=sha";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const TREE: &str =
    "https://huggingface.co/api/models/acme/tiny/tree/0123456789abcdef0123456789abcdef01234567?recursive=true";

fn host(pin: &Value, tree: Page) -> Host {
    Host::new().page(PIN, Page::json(pin.to_string())).page(TREE, tree)
}

fn pin() -> Value {
    json!({"id": "acme/tiny", "sha": COMMIT})
}

fn resolve(tree: &Value) -> Result<Listing> {
    host(&pin(), Page::json(tree.to_string())).resolve::<DatasetRepo>(URL)
}

#[test]
fn fixtures() {
    replay_all::<DatasetRepo>("fixtures");
}

#[test]
fn the_users_token_goes_along_if_there_is_one_and_is_never_seen() {
    let file = json!([{"type": "file", "path": "a", "size": 1}]).to_string();
    let host = host(&pin(), Page::json(file.clone())).setting("token", "hf_secret");
    let listing = host.resolve::<DatasetRepo>(URL).unwrap();
    let carries = ("authorization".to_owned(), "Bearer {token}".to_owned());
    assert!(
        host.sent().iter().all(|sent| sent.headers == [carries.clone()]),
        "{:?}",
        host.sent()
    );
    let link = listing.entries[0].link.as_ref().unwrap();
    assert_eq!(
        link.secret_headers,
        [("Authorization".to_owned(), "Bearer {token}".to_owned())]
    );
    let anonymous = self::host(&pin(), Page::json(file));
    let listing = anonymous.resolve::<DatasetRepo>(URL).unwrap();
    assert!(
        anonymous.sent().iter().all(|sent| sent.headers.is_empty()),
        "{:?}",
        anonymous.sent()
    );
    assert!(listing.entries[0].link.as_ref().unwrap().secret_headers.is_empty());
}

#[test]
fn the_next_page_is_found_among_other_links() {
    let next = |header: &str| {
        let host = host(&pin(), Page::json("[]").header("link", header));
        host.resolve::<DatasetRepo>(URL).map(|listing| listing.next_page)
    };
    let token = Some(format!("{COMMIT} acme/tiny x=y"));
    assert_eq!(
        next(r#"</api/x?cursor=a>; rel="prev", </api/x?cursor=x%3Dy>; title="2"; rel="next""#),
        Ok(token.clone())
    );
    assert_eq!(next("<https://huggingface.co/api/x?cursor=x%3Dy>;rel=next"), Ok(token));
    assert_eq!(next(r#"</api/x?cursor=a>; rel="prev""#), Ok(None));
    assert!(matches!(next(r#"</api/x>; rel="next""#), Err(Error::Parse(_))));
    let long = "x".repeat(2000);
    assert!(matches!(
        next(&format!(r#"</api/x?cursor={long}>; rel="next""#)),
        Err(Error::Parse(_))
    ));
}

#[test]
fn what_is_no_commit_is_not_believed() {
    for answer in [
        json!({"id": "acme/tiny", "sha": "main"}),
        json!({"id": "../../evil", "sha": COMMIT}),
        json!({"sha": COMMIT}),
        json!([]),
    ] {
        let refused = host(&answer, Page::json("[]")).resolve::<DatasetRepo>(URL);
        assert!(matches!(refused, Err(Error::Parse(_))), "{answer}: {refused:?}");
    }
    let host = Host::new();
    for token in ["", "x", "main acme/tiny c", "a b c d"] {
        assert!(host.more::<DatasetRepo>(URL, token).is_err(), "{token}");
    }
    assert!(host.link::<DatasetRepo>(URL, "main/a", None).is_err());
}

#[test]
fn names_that_lead_elsewhere_are_left_out() {
    let file = |path: &str| json!({"type": "file", "path": path, "size": 1});
    let long = "x".repeat(2000);
    let listing = resolve(
        &json!([file("../a"), file("/a"), file("a//b"), file(&long), file("a/b"), {"type": "symlink", "path": "x"}]),
    );
    let entries = listing.unwrap().entries;
    assert_eq!(
        (entries.len(), entries[0].folder.as_str(), entries[0].name.as_str()),
        (1, "a", "b")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_the_site_answers_is_a_listing_or_a_parse_error(
        field in prop::sample::select(vec!["", "/0", "/0/type", "/0/path", "/0/size", "/0/lfs", "/0/lfs/oid"]),
        value in prop_oneof![
            Just(Value::Null), Just(json!([])), Just(json!({})), any::<i64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from), ".{0,8}".prop_map(Value::from),
        ],
        cut in 0_usize..200,
    ) {
        let mut tree = json!([{"type": "file", "path": "a/b", "size": 5, "lfs": {"oid": "0".repeat(64), "size": 5}}]);
        *tree.pointer_mut(field).unwrap() = value;
        let is_clear = |answer: Result<Listing>| matches!(answer, Ok(_) | Err(Error::Parse(_)));
        prop_assert!(is_clear(resolve(&tree)));
        let mut text = tree.to_string().into_bytes();
        text.truncate(cut);
        prop_assert!(is_clear(host(&pin(), Page::json(text)).resolve::<DatasetRepo>(URL)));
    }
}
