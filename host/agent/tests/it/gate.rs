//! Every route under every key, origin and host. A route without a row here fails.

use agent::Host;

use crate::world::{KEY, World};

/// What guards a route.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Guard {
    /// Open to everybody.
    Open,
    /// Open, on a headless server only.
    Setup,
    /// Open, refused to foreign origins, headless only.
    SetupWrite,
    /// Needs the key.
    Key,
    /// Needs the key as Bearer, and the page's own origin.
    Rpc,
    /// Needs the key as Bearer or `token`; headless only.
    Web,
}

const ROUTES: &[(&str, &str, Guard)] = &[
    ("GET", "/", Guard::Open),
    ("GET", "/ping", Guard::Open),
    ("GET", "/api/v1/openapi.json", Guard::Open),
    ("GET", "/api/v1/info", Guard::Key),
    ("GET", "/api/v1/setup/status", Guard::Setup),
    ("POST", "/api/v1/setup", Guard::SetupWrite),
    ("GET", "/api/v1/queues", Guard::Key),
    ("GET", "/api/v1/tasks", Guard::Key),
    ("POST", "/api/v1/tasks", Guard::Key),
    ("PUT", "/api/v1/tasks/pause", Guard::Key),
    ("PUT", "/api/v1/tasks/continue", Guard::Key),
    ("GET", "/api/v1/tasks/{id}", Guard::Key),
    ("DELETE", "/api/v1/tasks/{id}", Guard::Key),
    ("PUT", "/api/v1/tasks/{id}/pause", Guard::Key),
    ("PUT", "/api/v1/tasks/{id}/continue", Guard::Key),
    ("POST", "/api/v1/tasks/{id}/rename", Guard::Key),
    ("POST", "/api/v1/tasks/{id}/url", Guard::Key),
    ("POST", "/api/v1/tasks/{id}/ignore-plugin-retry", Guard::Key),
    ("GET", "/api/v1/groups", Guard::Key),
    ("DELETE", "/api/v1/groups/{id}", Guard::Key),
    ("PUT", "/api/v1/groups/{id}/pause", Guard::Key),
    ("PUT", "/api/v1/groups/{id}/continue", Guard::Key),
    ("GET", "/api/v1/site-auth", Guard::Key),
    ("PUT", "/api/v1/site-auth", Guard::Key),
    ("GET", "/api/v1/site-auth/{site}", Guard::Key),
    ("DELETE", "/api/v1/site-auth/{site}", Guard::Key),
    ("POST", "/api/web/blobs/{kind}", Guard::Web),
    ("POST", "/api/web/tickets", Guard::Web),
    ("GET", "/api/web/files/tasks/{id}", Guard::Web),
    ("GET", "/api/web/exports/{id}", Guard::Web),
    ("GET", "/rpc", Guard::Rpc),
];

#[test]
fn every_route_has_a_row() {
    let described: serde_json::Value = serde_json::from_str(&agent::openapi()).unwrap();
    let mut described: Vec<(String, String)> = described["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().keys();
            methods
                .map(|method| (method.to_uppercase(), path.clone()))
                .collect::<Vec<_>>()
        })
        .collect();
    let mut rows: Vec<_> = ROUTES
        .iter()
        .map(|(method, path, _)| (method.to_string(), path.to_string()))
        .collect();
    described.sort();
    rows.sort();
    assert_eq!(described, rows);
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Key {
    None,
    Empty,
    Right,
}

/// Who asks, and whom.
#[derive(Clone, Copy)]
struct Asked<'a> {
    kind: Host,
    has_key: bool,
    key: Key,
    origin: Option<&'a str>,
    is_own_host: bool,
}

/// What the gate says; none is "what the route says", which is never one of the gate's statuses.
fn expect(guard: Guard, asked: Asked<'_>) -> Option<u16> {
    let Asked {
        kind,
        has_key,
        key,
        origin,
        is_own_host,
    } = asked;
    let is_foreign = origin.is_some_and(|origin| origin.starts_with("https://evil") || origin == "null");
    let is_extension = origin.is_some_and(|origin| origin.starts_with("chrome"));
    if kind == Host::Desktop && !is_own_host {
        return Some(403);
    }
    if kind == Host::Desktop && matches!(guard, Guard::Setup | Guard::SetupWrite | Guard::Web) {
        return Some(404);
    }
    match guard {
        Guard::Open | Guard::Setup => return None,
        Guard::SetupWrite => return is_foreign.then_some(403),
        Guard::Rpc if is_foreign || is_extension => return Some(403),
        Guard::Rpc | Guard::Key | Guard::Web => {}
    }
    match (has_key, key) {
        (false, _) => Some(403),
        (true, Key::Right) => None,
        (true, Key::None | Key::Empty) => Some(401),
    }
}

async fn check(kind: Host, has_key: bool) {
    let world = World::alone(kind, has_key.then_some(KEY)).await;
    let own = world.agent.local_addr().to_string();
    let bearer = format!("Bearer {KEY}");
    for (method, path, guard) in ROUTES {
        // The management API is off on a fresh desktop: its routes are not there.
        let is_off = kind == Host::Desktop && path.starts_with("/api/v1/") && !path.starts_with("/api/v1/setup");
        for host in [own.as_str(), "evil.test"] {
            let same = format!("http://{host}");
            for origin in [
                None,
                Some(same.as_str()),
                Some("chrome-extension://a"),
                Some("https://evil.example"),
                Some("null"),
            ] {
                for key in [Key::None, Key::Empty, Key::Right] {
                    let mut headers = vec![("Host", host)];
                    headers.extend(origin.map(|origin| ("Origin", origin)));
                    match key {
                        Key::None => {}
                        Key::Empty => headers.push(("Authorization", "Bearer ")),
                        Key::Right => headers.push(("Authorization", bearer.as_str())),
                    }
                    headers.push(("Content-Type", "application/json"));
                    let answer = world.send(&format!("{method} {path}"), &headers, "").await;
                    let context = format!("{method} {path} {kind:?} set up: {has_key} {host} {origin:?} {key:?}");
                    let asked = Asked {
                        kind,
                        has_key,
                        key,
                        origin,
                        is_own_host: host == own,
                    };
                    let expect = match expect(*guard, asked) {
                        Some(403) if kind == Host::Desktop && host != own => Some(403),
                        _ if is_off => Some(404),
                        other => other,
                    };
                    match expect {
                        Some(status) => assert_eq!(answer.status, status, "{context}"),
                        None => assert!(![401, 403, 429].contains(&answer.status), "{context}: {answer:?}"),
                    }
                    assert_eq!(answer.header("access-control-allow-origin"), None, "{context}");
                    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{context}");
                    assert_eq!(answer.header("cache-control"), Some("no-store"), "{context}");
                }
            }
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_server_that_is_set_up() {
    check(Host::Headless, true).await;
}

#[tokio::test]
async fn a_server_that_is_not_set_up() {
    check(Host::Headless, false).await;
}

#[tokio::test]
async fn a_desktop_with_a_key() {
    check(Host::Desktop, true).await;
}

#[tokio::test]
async fn a_desktop_without_a_key() {
    check(Host::Desktop, false).await;
}

#[tokio::test]
async fn wrong_keys_are_counted_on_every_surface() {
    for (method, path, guard) in ROUTES {
        if !matches!(guard, Guard::Key | Guard::Rpc | Guard::Web) {
            continue;
        }
        let world = World::alone(Host::Headless, Some(KEY)).await;
        let line = format!("{method} {path}");
        for _ in 0..10 {
            let wrong = world.send(&line, &[("Authorization", "Bearer wrong-key-1")], "").await;
            assert_eq!(wrong.status, 401, "{line}");
        }
        let right = world.ask(&line, "").await;
        assert_eq!(right.status, 429, "{line}");
        assert!(right.header("retry-after").is_some());
        world.end().await;
    }
}

#[tokio::test]
async fn what_is_not_there_and_what_is_not_allowed_is_said_plainly() {
    let world = World::alone(Host::Headless, Some(KEY)).await;
    let nothing = world.get("/api/v1/nothing").await;
    assert_eq!(
        (nothing.status, nothing.json()["message"].as_str()),
        (404, Some("unknown endpoint"))
    );
    let method = world.ask("PATCH /api/v1/tasks", "").await;
    assert_eq!((method.status, method.header("allow")), (405, Some("GET,HEAD,POST")));
    assert_eq!(method.json()["success"], false);
    let options = world
        .send("OPTIONS /api/v1/tasks", &[("Origin", "https://evil.test")], "")
        .await;
    assert_eq!(
        (options.status, options.header("access-control-allow-origin")),
        (204, None)
    );
    let starting = world.get("/api/v1/tasks").await;
    assert_eq!(
        (starting.status, starting.json()["message"].as_str()),
        (503, Some("app shutting down"))
    );
    assert_eq!(world.ask("POST /api/v1/tasks", "{").await.status, 400);
    world.end().await;
}
