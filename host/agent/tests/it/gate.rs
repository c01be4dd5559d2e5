//! Every route under every key, origin and host. A route without a row here fails.

use std::net::Ipv4Addr;

use agent::Host;
use serde_json::json;

use crate::{
    client::Client,
    document,
    world::{self, KEY, World},
};

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
    /// Needs the key in `X-Svc-Token` if there is one, and is refused to foreign origins.
    Takeover,
    /// Needs the key, and is refused to foreign origins.
    Mcp,
    /// Refused to foreign origins; calls bring the key themselves, so the gate asks for none.
    Aria2,
    /// As before, and there must be a key.
    Aria2Query,
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
    ("POST", "/api/v1/groups", Guard::Key),
    ("DELETE", "/api/v1/groups/{id}", Guard::Key),
    ("PUT", "/api/v1/groups/{id}/pause", Guard::Key),
    ("PUT", "/api/v1/groups/{id}/continue", Guard::Key),
    ("POST", "/api/v1/resolve/preview", Guard::Key),
    ("GET", "/api/v1/plugins", Guard::Key),
    ("POST", "/api/v1/plugins/install", Guard::Key),
    ("POST", "/api/v1/plugins/install-dev", Guard::Key),
    ("DELETE", "/api/v1/plugins/{identity}", Guard::Key),
    ("PUT", "/api/v1/plugins/{identity}/enabled", Guard::Key),
    ("PUT", "/api/v1/plugins/{identity}/settings", Guard::Key),
    ("POST", "/api/v1/plugins/{identity}/rollback", Guard::Key),
    ("PUT", "/api/v1/plugins/{identity}/hosts", Guard::Key),
    ("GET", "/api/v1/plugins/{identity}/journal", Guard::Key),
    ("GET", "/api/v1/site-auth", Guard::Key),
    ("PUT", "/api/v1/site-auth", Guard::Key),
    ("GET", "/api/v1/site-auth/{site}", Guard::Key),
    ("DELETE", "/api/v1/site-auth/{site}", Guard::Key),
    ("POST", "/api/web/blobs/{kind}", Guard::Web),
    ("POST", "/api/web/tickets", Guard::Web),
    ("GET", "/api/web/files/tasks/{id}", Guard::Web),
    ("GET", "/api/web/exports/{id}", Guard::Web),
    ("GET", "/rpc", Guard::Rpc),
    ("POST", "/mcp", Guard::Mcp),
    ("GET", "/metrics", Guard::Key),
    ("POST", "/download", Guard::Takeover),
    ("POST", "/download/batch", Guard::Takeover),
    ("POST", "/rpc", Guard::Aria2),
    ("POST", "/jsonrpc", Guard::Aria2),
    ("GET", "/jsonrpc", Guard::Aria2Query),
];

#[test]
fn every_route_has_a_row() {
    let mut described = document::routes();
    let mut rows: Vec<_> = ROUTES
        .iter()
        .map(|(method, path, _)| (method.to_string(), path.to_string()))
        .collect();
    described.sort();
    rows.sort();
    assert_eq!(described, rows);
}

/// A host as it can be set up.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Setting {
    Headless,
    /// A headless server before its set-up.
    Unset,
    /// On the loopback, with a key and the management API on.
    Desktop,
    /// As it is installed: no key, the management API off.
    FreshDesktop,
    /// Open to the network, with a key and the management API on.
    LanDesktop,
    /// With a key, and with aria2's dialect off.
    NoAria2,
}

impl Setting {
    fn host(self) -> Host {
        match self {
            Self::Headless | Self::Unset | Self::NoAria2 => Host::Headless,
            Self::Desktop | Self::FreshDesktop | Self::LanDesktop => Host::Desktop,
        }
    }

    fn has_key(self) -> bool {
        !matches!(self, Self::Unset | Self::FreshDesktop)
    }

    async fn start(self) -> World {
        let world = World::without_daemon(|config| {
            config.host = self.host();
            config.trusted_proxies = vec![Ipv4Addr::LOCALHOST.into()];
            config.preset_key = self.has_key().then(world::preset);
            if self == Self::LanDesktop {
                config.bind = Some((Ipv4Addr::UNSPECIFIED, 0).into());
            }
        })
        .await;
        if self.has_key() {
            let mut client = Client::open(&world).await;
            let on = client
                .call("agent.gateway.patch", json!({"apiEnabled": true, "mcpEnabled": true}))
                .await;
            assert_eq!(on["result"]["apiEnabled"], true, "{on}");
            if self == Self::NoAria2 {
                client
                    .call("agent.gateway.patch", json!({"jsonrpcEnabled": false}))
                    .await;
            }
            for _ in 0..10 {
                let wrong = [("Authorization", "Bearer wrong-key-1"), ("X-Forwarded-For", THROTTLED)];
                assert_eq!(world.send("GET /api/v1/info", &wrong, "").await.status, 401);
            }
        }
        world
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Key {
    None,
    Empty,
    Wrong,
    Right,
    /// The right one in `X-Svc-Token`.
    Header,
    /// The right one as `?token=`.
    Query,
    /// The right one, of a source that sent too many wrong ones.
    Throttled,
}

const KEYS: [Key; 7] = [
    Key::None,
    Key::Empty,
    Key::Wrong,
    Key::Right,
    Key::Header,
    Key::Query,
    Key::Throttled,
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum From {
    Nowhere,
    Same,
    Extension,
    Foreign,
    Null,
}

/// The source that sent too many wrong keys.
const THROTTLED: &str = "192.0.2.9";

/// Who asks, and whom.
#[derive(Debug, Clone, Copy)]
struct Asked {
    setting: Setting,
    key: Key,
    from: From,
    is_loopback_name: bool,
}

/// What the gate says; none is "what the route says", which is never one of the gate's statuses.
fn expect(path: &str, guard: Guard, asked: Asked) -> Option<u16> {
    let is_desktop = asked.setting.host() == Host::Desktop;
    if is_desktop && asked.setting != Setting::LanDesktop && !asked.is_loopback_name {
        return Some(403);
    }
    let is_headless_only = matches!(guard, Guard::Setup | Guard::SetupWrite | Guard::Web);
    let is_off_at_first = path.starts_with("/api/v1/") && !is_headless_only || ["/mcp", "/metrics"].contains(&path);
    if (is_desktop && is_headless_only) || (asked.setting == Setting::FreshDesktop && is_off_at_first) {
        return Some(404);
    }
    let is_foreign = matches!(asked.from, From::Foreign | From::Null);
    let is_aria2 = matches!(guard, Guard::Aria2 | Guard::Aria2Query);
    if is_aria2 && asked.setting == Setting::NoAria2 {
        return Some(404);
    }
    match guard {
        Guard::Open | Guard::Setup => return None,
        Guard::SetupWrite => return is_foreign.then_some(403),
        Guard::Rpc if is_foreign || asked.from == From::Extension => return Some(403),
        Guard::Takeover | Guard::Mcp | Guard::Aria2 | Guard::Aria2Query if is_foreign => return Some(403),
        Guard::Takeover | Guard::Aria2 if asked.setting == Setting::FreshDesktop => return None,
        Guard::Rpc | Guard::Key | Guard::Web | Guard::Takeover | Guard::Mcp | Guard::Aria2 | Guard::Aria2Query => {}
    }
    match asked.key {
        _ if !asked.setting.has_key() => Some(403),
        Key::Throttled => Some(429),
        _ if is_aria2 => None,
        Key::Right if guard != Guard::Takeover => None,
        Key::Header if matches!(guard, Guard::Key | Guard::Takeover | Guard::Mcp) => None,
        Key::Query if guard == Guard::Web => None,
        Key::None | Key::Empty | Key::Wrong | Key::Right | Key::Header | Key::Query => Some(401),
    }
}

async fn check(setting: Setting) {
    let world = setting.start().await;
    let own = world.address().to_string();
    let mut sources = 0x0a00_0000_u32;
    for (method, path, guard) in ROUTES {
        for host in [own.as_str(), "evil.test"] {
            for from in [From::Nowhere, From::Same, From::Extension, From::Foreign, From::Null] {
                for key in KEYS {
                    // Wrong keys count: everybody who asks is somebody else.
                    sources += 1;
                    let source = Ipv4Addr::from_bits(sources).to_string();
                    let is_loopback_name = host == own;
                    let asked = Asked {
                        setting,
                        key,
                        from,
                        is_loopback_name,
                    };
                    let headers = headers(asked, host, &source);
                    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                    let query = if key == Key::Query {
                        format!("?token={KEY}")
                    } else {
                        String::new()
                    };
                    let answer = world.send(&format!("{method} {path}{query}"), &headers, "").await;
                    let context = format!("{method} {path} {asked:?}");
                    match expect(path, *guard, asked) {
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

fn headers(asked: Asked, host: &str, source: &str) -> Vec<(&'static str, String)> {
    let source = if asked.key == Key::Throttled { THROTTLED } else { source };
    let mut headers = vec![
        ("Host", host.to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("X-Forwarded-For", source.to_owned()),
        ("X-Svc-Client", "test".to_owned()),
    ];
    match asked.from {
        From::Nowhere => {}
        From::Same => headers.push(("Origin", format!("http://{host}"))),
        From::Extension => headers.push(("Origin", "chrome-extension://a".to_owned())),
        From::Foreign => headers.push(("Origin", "https://evil.example".to_owned())),
        From::Null => headers.push(("Origin", "null".to_owned())),
    }
    match asked.key {
        Key::None | Key::Query => {}
        Key::Header => headers.push(("X-Svc-Token", KEY.to_owned())),
        Key::Empty => headers.push(("Authorization", "Bearer ".to_owned())),
        Key::Wrong => headers.push(("Authorization", "Bearer wrong-key-1".to_owned())),
        Key::Right => headers.push(("Authorization", format!("Bearer {KEY}"))),
        Key::Throttled => headers.extend([
            ("Authorization", format!("Bearer {KEY}")),
            ("X-Svc-Token", KEY.to_owned()),
        ]),
    }
    headers
}

#[tokio::test]
async fn a_server_that_is_set_up() {
    check(Setting::Headless).await;
}

#[tokio::test]
async fn a_server_that_is_not_set_up() {
    check(Setting::Unset).await;
}

#[tokio::test]
async fn a_desktop_with_a_key() {
    check(Setting::Desktop).await;
}

#[tokio::test]
async fn a_desktop_as_it_is_installed() {
    check(Setting::FreshDesktop).await;
}

#[tokio::test]
async fn a_desktop_that_is_open_to_the_network() {
    check(Setting::LanDesktop).await;
}

/// A key in both of its headers.
fn shown(key: &str) -> [(&'static str, &str); 3] {
    let bearer = if key == KEY {
        "Bearer the-access-key-1"
    } else {
        "Bearer wrong-key-1"
    };
    [
        ("Authorization", bearer),
        ("X-Svc-Token", key),
        ("X-Svc-Client", "test"),
    ]
}

#[tokio::test]
async fn a_server_without_aria2() {
    check(Setting::NoAria2).await;
}

#[tokio::test]
async fn wrong_keys_are_counted_on_every_surface() {
    for (method, path, guard) in ROUTES {
        if matches!(
            guard,
            Guard::Open | Guard::Setup | Guard::SetupWrite | Guard::Aria2 | Guard::Aria2Query
        ) {
            continue;
        }
        let world = World::alone(Host::Headless, Some(KEY)).await;
        let line = format!("{method} {path}");
        for _ in 0..10 {
            let wrong = world.send(&line, &shown("wrong-key-1"), "").await;
            assert_eq!(wrong.status, 401, "{line}");
            assert!(wrong.header("www-authenticate").is_some());
        }
        let right = world.send(&line, &shown(KEY), "").await;
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
    let why = starting.json()["message"].to_string();
    assert!(starting.status == 503 && why.contains("daemon"), "{why}");
    assert_eq!(world.ask("POST /api/v1/tasks", "{").await.status, 400);
    world.end().await;
}
