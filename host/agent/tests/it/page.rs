//! The page at the root, and its files.

use std::path::Path;

use agent::Edition;
use serde_json::json;

use crate::{
    client::Client,
    world::{Answer, KEY, World},
};

/// As the page is built: brotli is what browsers ask for, and this client reads plain text.
async fn page(world: &World) -> (Answer, String) {
    let answer = world.send("GET /", &[], "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = String::from_utf8(answer.body.clone()).unwrap();
    (answer, text)
}

/// The values of the attribute `name` in a document.
fn values<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!(" {name}=\"");
    let parts = page.split(&begin).skip(1);
    parts.filter_map(|part| part.split('"').next()).collect()
}

#[tokio::test]
async fn the_page_and_all_of_its_files_are_served_with_and_without_a_key() {
    for key in [None, Some(KEY)] {
        let world = World::alone(Edition::Headless, key).await;
        let (answer, text) = page(&world).await;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("require-trusted-types-for"));
        // Its policy allows nothing inline, and nothing from elsewhere.
        assert!(!text.contains("<script>") && !text.contains("<style"), "{text}");
        let files = [values(&text, "src"), values(&text, "href")].concat();
        for wanted in ["js", "css"] {
            let is_wanted = |file: &&str| Path::new(file).extension().is_some_and(|found| found == wanted);
            assert!(files.iter().any(is_wanted), "{wanted}: {text}");
        }
        for file in files {
            let path = file.strip_prefix("./").expect("every address is relative");
            let answer = world.send(&format!("GET /{path}"), &[], "").await;
            assert_eq!(answer.status, 200, "{path}");
            assert!(!answer.body.is_empty(), "{path}");
            let is_hashed = path.starts_with("assets/");
            let lifetime = answer.header("cache-control").unwrap();
            assert_eq!(lifetime.contains("immutable"), is_hashed, "{path}: {lifetime}");
        }
        assert_eq!(world.send("GET /assets/none.js", &[], "").await.status, 404);
        world.end().await;
    }
}

#[tokio::test]
async fn nothing_of_a_request_is_repeated_in_the_page() {
    let world = World::alone(Edition::Headless, Some(KEY)).await;
    let (_, usual) = page(&world).await;
    for (host, proto) in [
        ("nas.test:17800", Some("\"><script>")),
        ("a\"><script>alert(1)</script>", None),
        ("a&b", None),
    ] {
        let mut headers = vec![("Host", host)];
        headers.extend(proto.map(|proto| ("X-Forwarded-Proto", proto)));
        let answer = world.send("GET /", &headers, "").await;
        // The HTTP library rejects some names already.
        assert!(answer.status == 400 || *answer.body == *usual.as_bytes(), "{host}");
    }
    world.end().await;
}

#[tokio::test]
async fn the_description_is_there_while_the_management_api_is() {
    let world = World::alone(Edition::Headless, Some(KEY)).await;
    let mut client = Client::open(&world).await;
    for is_on in [true, false, true] {
        client.call("agent.gateway.patch", json!({"apiEnabled": is_on})).await;
        let described = world.send("GET /api/v1/openapi.json", &[], "").await;
        assert_eq!(described.status == 200, is_on);
        page(&world).await;
    }
    world.end().await;
}
