//! The page at the root.

use agent::Edition;
use data_encoding::BASE64;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{
    client::Client,
    world::{Answer, KEY, World},
};

fn text(answer: &Answer) -> &str {
    assert_eq!(answer.status, 200, "{answer:?}");
    std::str::from_utf8(&answer.body).unwrap()
}

fn inner<'a>(page: &'a str, tag: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<{tag}>")).unwrap();
    rest.split_once(&format!("</{tag}>")).unwrap().0
}

#[tokio::test]
async fn a_new_server_asks_for_its_first_key_with_the_page_s_own_script_alone() {
    let world = World::alone(Edition::Headless, None).await;
    let answer = world.send("GET /", &[], "").await;
    let page = text(&answer);
    assert!(page.contains("<form id=\"setup\" hidden>"));
    let policy = answer.header("content-security-policy").unwrap();
    for tag in ["script", "style"] {
        let hash = BASE64.encode(&Sha256::digest(inner(page, tag)));
        assert!(
            policy.contains(&format!("{tag}-src 'sha256-{hash}'")),
            "{tag}: {policy}"
        );
    }
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"));
    // Nothing is loaded from elsewhere, and there are no inline event handlers.
    for outside in [" src=", "href=\"http", "@import", "url(", " onclick=", " onsubmit="] {
        assert!(!page.contains(outside), "{outside}");
    }
    let address = world.address();
    assert!(page.contains(&format!("http://127.0.0.1:{}/api/v1/setup", address.port())));
    // The origin that the page's script uses.
    let origin = format!("http://{address}");
    let headers = [("Content-Type", "application/json"), ("Origin", origin.as_str())];
    let set = world
        .send("POST /api/v1/setup", &headers, &json!({"token": KEY}).to_string())
        .await;
    assert_eq!(set.json(), json!({"ok": true}));
    let page = world.send("GET /", &[], "").await;
    assert!(!text(&page).contains("<form") && !text(&page).contains("<script"));
    assert!(text(&page).contains("Next steps"));
    world.end().await;
}

#[tokio::test]
async fn the_page_shows_where_the_visitor_sees_the_server() {
    let world = World::alone(Edition::Headless, Some(KEY)).await;
    let own = format!("http://127.0.0.1:{}/api/v1/tasks", world.address().port());
    for (host, proto, expect) in [
        ("nas.test:17800", None, "http://nas.test:17800/api/v1/tasks"),
        ("[2001:db8::1]", None, "http://[2001:db8::1]/api/v1/tasks"),
        ("dl.test", Some("https"), "https://dl.test/api/v1/tasks"),
        ("dl.test", Some("\"><script>"), "http://dl.test/api/v1/tasks"),
        ("a\"><script>alert(1)</script>", None, own.as_str()),
        ("a&b", None, own.as_str()),
        ("", None, own.as_str()),
    ] {
        let mut headers = vec![("Host", host)];
        headers.extend(proto.map(|proto| ("X-Forwarded-Proto", proto)));
        let answer = world.send("GET /", &headers, "").await;
        if answer.status == 400 {
            // The HTTP library rejected the name already.
            continue;
        }
        let page = text(&answer);
        assert!(page.contains(expect), "{host}: {page}");
        assert!(!page.contains("<script"), "{host}");
    }
    world.end().await;
}

#[tokio::test]
async fn the_description_is_linked_while_it_is_there() {
    let world = World::alone(Edition::Headless, Some(KEY)).await;
    let mut client = Client::open(&world).await;
    for is_on in [true, false, true] {
        client.call("agent.gateway.patch", json!({"apiEnabled": is_on})).await;
        let page = world.send("GET /", &[], "").await;
        assert_eq!(text(&page).contains("/api/v1/openapi.json"), is_on);
        let described = world.send("GET /api/v1/openapi.json", &[], "").await;
        assert_eq!(described.status == 200, is_on);
    }
    world.end().await;
}
