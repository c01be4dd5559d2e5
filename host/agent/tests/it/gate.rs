//! Every route with every key, origin and host. A route without a row here fails the test.

mod calls;
mod paths;

use std::net::Ipv4Addr;

use agent::Edition;
use data_encoding::{BASE64, BASE64URL_NOPAD};
use serde_json::{Value, json};

use crate::{
    client::Client,
    document,
    world::{self, KEY, World},
};

/// The authorization of a route.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Guard {
    /// No key is needed.
    Open,
    /// No key is needed; on a headless server only.
    Setup,
    /// Open, refused to foreign origins, headless only.
    SetupWrite,
    /// No key is needed, and the page's own origin.
    Login,
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
    /// What other devices call: no key, but on a server only after its set-up.
    Device,
}

const ROUTES: &[(&str, &str, Guard)] = &[
    ("GET", "/", Guard::Open),
    ("GET", "/ping", Guard::Open),
    ("GET", "/api/v1/openapi.json", Guard::Open),
    ("GET", "/api/v1/docs", Guard::Open),
    ("GET", "/api/v1/docs/{file}", Guard::Open),
    ("GET", "/api/v1/info", Guard::Key),
    ("GET", "/api/v1/setup/status", Guard::Setup),
    ("POST", "/api/v1/setup", Guard::SetupWrite),
    ("GET", "/api/v1/queues", Guard::Key),
    ("GET", "/api/v1/tasks", Guard::Key),
    ("POST", "/api/v1/tasks", Guard::Key),
    ("PUT", "/api/v1/tasks/pause", Guard::Key),
    ("PUT", "/api/v1/tasks/continue", Guard::Key),
    ("PUT", "/api/v1/tasks/rescan", Guard::Key),
    ("GET", "/api/v1/tasks/{id}", Guard::Key),
    ("DELETE", "/api/v1/tasks/{id}", Guard::Key),
    ("PUT", "/api/v1/tasks/{id}/pause", Guard::Key),
    ("PUT", "/api/v1/tasks/{id}/continue", Guard::Key),
    ("POST", "/api/v1/tasks/{id}/rename", Guard::Key),
    ("POST", "/api/v1/tasks/{id}/url", Guard::Key),
    ("PUT", "/api/v1/tasks/{id}/limit", Guard::Key),
    ("PUT", "/api/v1/tasks/{id}/tags", Guard::Key),
    ("PUT", "/api/v1/tasks/{id}/queue", Guard::Key),
    ("POST", "/api/v1/tasks/{id}/ignore-plugin-retry", Guard::Key),
    ("GET", "/api/v1/tasks/{id}/torrent", Guard::Key),
    ("PUT", "/api/v1/tasks/{id}/torrent", Guard::Key),
    ("GET", "/api/v1/tasks/{id}/torrent/file", Guard::Key),
    ("GET", "/api/v1/tasks/{id}/files", Guard::Key),
    ("POST", "/api/v1/tasks/{id}/files/{index}/rename", Guard::Key),
    ("GET", "/api/v1/tasks/{id}/peers", Guard::Key),
    ("GET", "/api/v1/tasks/{id}/trackers", Guard::Key),
    ("GET", "/api/v1/tasks/{id}/pieces", Guard::Key),
    ("POST", "/api/v1/tasks/{id}/recheck", Guard::Key),
    ("POST", "/api/v1/tasks/{id}/reannounce", Guard::Key),
    ("PUT", "/api/v1/tasks/{id}/seeding", Guard::Key),
    ("GET", "/api/v1/torrents/session", Guard::Key),
    ("POST", "/api/v1/torrents/tracker-lists/refresh", Guard::Key),
    ("GET", "/api/v1/rss", Guard::Key),
    ("POST", "/api/v1/rss", Guard::Key),
    ("POST", "/api/v1/rss/validate", Guard::Key),
    ("POST", "/api/v1/rss/import", Guard::Key),
    ("GET", "/api/v1/rss/export", Guard::Key),
    ("PUT", "/api/v1/rss/{id}", Guard::Key),
    ("DELETE", "/api/v1/rss/{id}", Guard::Key),
    ("POST", "/api/v1/rss/{id}/refresh", Guard::Key),
    ("GET", "/api/v1/rss/{id}/items", Guard::Key),
    ("POST", "/api/v1/rss/{id}/items/action", Guard::Key),
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
    ("PUT", "/api/v1/plugins/{identity}/pinned", Guard::Key),
    ("POST", "/api/v1/plugins/{identity}/auth", Guard::Key),
    ("GET", "/api/v1/market", Guard::Key),
    ("POST", "/api/v1/market/install", Guard::Key),
    ("POST", "/api/v1/market/refresh", Guard::Key),
    ("GET", "/api/v1/market/sources", Guard::Key),
    ("POST", "/api/v1/market/sources", Guard::Key),
    ("DELETE", "/api/v1/market/sources/{source}", Guard::Key),
    ("GET", "/api/v1/post", Guard::Key),
    ("POST", "/api/v1/post", Guard::Key),
    ("DELETE", "/api/v1/post", Guard::Key),
    ("POST", "/api/v1/post/{id}/cancel", Guard::Key),
    ("POST", "/api/v1/post/{id}/retry", Guard::Key),
    ("PUT", "/api/v1/post/passwords", Guard::Key),
    ("GET", "/api/v1/site-auth", Guard::Key),
    ("PUT", "/api/v1/site-auth", Guard::Key),
    ("GET", "/api/v1/site-auth/{site}", Guard::Key),
    ("DELETE", "/api/v1/site-auth/{site}", Guard::Key),
    ("GET", "/api/v1/site-cookies", Guard::Key),
    ("PUT", "/api/v1/site-cookies", Guard::Key),
    ("GET", "/api/v1/site-cookies/{site}", Guard::Key),
    ("DELETE", "/api/v1/site-cookies/{site}", Guard::Key),
    ("POST", "/api/web/blobs/{kind}", Guard::Web),
    ("POST", "/api/web/tickets", Guard::Web),
    ("GET", "/api/web/files/tasks/{id}", Guard::Web),
    ("GET", "/api/web/exports/{id}", Guard::Web),
    ("POST", "/api/v1/link/code", Guard::Key),
    ("DELETE", "/api/v1/link/code", Guard::Key),
    ("GET", "/api/v1/link/devices", Guard::Key),
    ("PATCH", "/api/v1/link/devices/{fingerprint}", Guard::Key),
    ("DELETE", "/api/v1/link/devices/{fingerprint}", Guard::Key),
    ("POST", "/api/v1/link/devices/{fingerprint}/tasks", Guard::Key),
    ("GET", "/api/v1/link/discovered", Guard::Key),
    ("POST", "/api/v1/link/discovery", Guard::Key),
    ("POST", "/api/v1/link/probe", Guard::Key),
    ("GET", "/api/v1/link/outbox", Guard::Key),
    ("DELETE", "/api/v1/link/outbox/{id}", Guard::Key),
    ("POST", "/api/v1/link/pair/begin", Guard::Key),
    ("POST", "/api/v1/link/pair/finish", Guard::Key),
    ("POST", "/api/v1/link/pair/approve", Guard::Key),
    ("GET", "/api/v1/link/pair/requests", Guard::Key),
    ("POST", "/api/v1/link/pair/hello", Guard::Device),
    ("POST", "/api/v1/link/pair/reveal", Guard::Device),
    ("POST", "/api/v1/link/pair/confirm", Guard::Device),
    ("POST", "/api/v1/link/tasks", Guard::Device),
    ("POST", "/api/v1/link/info", Guard::Device),
    ("POST", "/api/v1/link/unpair", Guard::Device),
    ("GET", "/api/web/session", Guard::Rpc),
    ("POST", "/api/web/session", Guard::Login),
    ("GET", "/rpc", Guard::Rpc),
    ("POST", "/mcp", Guard::Mcp),
    ("GET", "/metrics", Guard::Key),
    ("POST", "/download", Guard::Takeover),
    ("POST", "/download/batch", Guard::Takeover),
    ("POST", "/rpc", Guard::Aria2),
    ("POST", "/jsonrpc", Guard::Aria2),
    ("GET", "/jsonrpc", Guard::Aria2Query),
];

/// Routes that become a `WebSocket`.
const SOCKETS: [&str; 2] = ["/rpc", "/jsonrpc"];

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

/// What the description is made of is what the router is made of: only the two lists of both add routes to it.
#[test]
fn every_route_is_described() {
    let agent = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rest = agent.join("../../rest/src");
    let mut directories = vec![agent.clone(), rest.clone()];
    let mut found = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            // Other things are merged, too.
            if !text.contains("Router") {
                continue;
            }
            let adds = [
                ".route(",
                ".route_service(",
                ".nest(",
                ".nest_service(",
                ".merge(",
                ".fallback_service(",
            ];
            for word in adds {
                found.extend(text.matches(word).map(|word| (path.clone(), word.to_owned())));
            }
        }
    }
    found.sort();
    let agents = agent.join("surface/routes.rs");
    let mut lists = [
        (agents.clone(), ".merge(".to_owned()),
        (agents, ".route(".to_owned()),
        // Of descriptions.
        (rest.join("routes.rs"), ".merge(".to_owned()),
        (rest.join("routes.rs"), ".route(".to_owned()),
    ];
    lists.sort();
    assert_eq!(
        found, lists,
        "these routes are in no description, so no row here is missed"
    );
}

/// The router itself says which methods a path has.
#[tokio::test]
async fn every_method_of_a_route_has_a_row() {
    let world = Setting::Headless.start().await;
    for (_, path, guard) in ROUTES {
        let mut methods: Vec<_> = ROUTES.iter().filter(|row| row.1 == *path).map(|row| row.0).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.sort_unstable();
        let asked = Asked {
            setting: Setting::Headless,
            key: guard
                .ways()
                .first()
                .map_or(Key::Right(Way::Bearer), |way| Key::Right(*way)),
            from: From::Nowhere,
            is_loopback_name: true,
        };
        let headers = headers(asked, &world.address().to_string());
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = world.send(&format!("TRACE {path}"), &headers, "").await;
        assert_eq!(answer.status, 405, "{path}: {answer:?}");
        let mut allowed: Vec<_> = answer.header("allow").unwrap().split(',').collect();
        allowed.sort_unstable();
        assert_eq!(allowed, methods, "{path}");
    }
    world.end().await;
}

/// A configuration of the agent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Setting {
    /// A server with a key and every group on.
    Headless,
    /// A headless server before its set-up, on the loopback.
    Unset,
    /// On the loopback, with a key and every group on.
    Desktop,
    /// As it is installed: no key, the management API and MCP off.
    FreshDesktop,
    /// Open to the network, with a key and every group on.
    LanDesktop,
    /// A drop-in, started with and without a key.
    DropIn,
    OpenDropIn,
    /// A server that allows every origin.
    AnyOrigin,
    /// A server with one group off.
    Without(Group),
}

/// The interface that a switch controls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Group {
    Management,
    Takeover,
    Aria2,
    Mcp,
    Link,
}

impl Setting {
    fn edition(self) -> Edition {
        match self {
            Self::Headless | Self::Unset | Self::AnyOrigin | Self::Without(_) => Edition::Headless,
            Self::Desktop | Self::FreshDesktop | Self::LanDesktop => Edition::Desktop,
            Self::DropIn | Self::OpenDropIn => Edition::DropIn,
        }
    }

    fn has_key(self) -> bool {
        !matches!(self, Self::Unset | Self::FreshDesktop | Self::OpenDropIn)
    }

    /// Whether only names of this machine are accepted.
    fn knows_its_names(self) -> bool {
        matches!(self, Self::Desktop | Self::FreshDesktop | Self::OpenDropIn)
    }

    fn offers(self, group: Option<Group>) -> bool {
        match (self, group) {
            (Self::DropIn | Self::OpenDropIn, group) => group == Some(Group::Aria2),
            (Self::FreshDesktop, Some(group)) => matches!(group, Group::Takeover | Group::Aria2),
            (Self::Without(off), group) => group != Some(off),
            // Off on a desktop until it is switched on.
            (_, Some(Group::Link)) => self.edition() == Edition::Headless,
            _ => true,
        }
    }

    async fn start(self) -> World {
        let mut world = World::without_daemon(|config| {
            config.edition = self.edition();
            config.trusted_proxies = vec![Ipv4Addr::LOCALHOST.into()];
            config.preset_key = self.has_key().then(world::preset);
            if self == Self::LanDesktop {
                config.bind = Some((Ipv4Addr::UNSPECIFIED, 0).into());
            }
        })
        .await;
        world.start_daemon().await;
        // A drop-in accepts connections only when its program says so.
        world.agent.open();
        if !self.has_key() || self.edition() == Edition::DropIn {
            return world;
        }
        let mut change = json!({"apiEnabled": true, "mcpEnabled": true});
        match self {
            Self::AnyOrigin => change["corsEnabled"] = true.into(),
            Self::Without(Group::Management) => change["apiEnabled"] = false.into(),
            Self::Without(Group::Takeover) => change["takeoverEnabled"] = false.into(),
            Self::Without(Group::Aria2) => change["jsonrpcEnabled"] = false.into(),
            Self::Without(Group::Mcp) => change["mcpEnabled"] = false.into(),
            Self::Without(Group::Link) => change["linkEnabled"] = false.into(),
            _ => {}
        }
        let changed = Client::open(&world)
            .await
            .call("agent.gateway.patch", change.clone())
            .await;
        for (switch, is_on) in change.as_object().unwrap() {
            assert_eq!(changed["result"][switch], *is_on, "{changed}");
        }
        world
    }
}

/// How the key is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Bearer,
    /// The scheme in lower case.
    LowerBearer,
    /// As the password of HTTP Basic.
    Basic,
    Header,
    Query,
    /// As a WebSocket sub-protocol.
    Protocol,
    Cookie,
}

const WAYS: [Way; 7] = [
    Way::Bearer,
    Way::LowerBearer,
    Way::Basic,
    Way::Header,
    Way::Query,
    Way::Protocol,
    Way::Cookie,
];

/// The key that is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Key {
    None,
    Empty(Way),
    Wrong(Way),
    Right(Way),
    /// The correct one, from a locked-out source.
    Throttled,
}

fn keys() -> Vec<Key> {
    let of_way = |way| [Key::Empty(way), Key::Wrong(way), Key::Right(way)];
    let mut keys = vec![Key::None, Key::Throttled];
    keys.extend(WAYS.into_iter().flat_map(of_way));
    keys
}

/// The origin of the page that sends the request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum From {
    Nowhere,
    Same,
    Extension,
    OtherExtension,
    Foreign,
    /// A page on another port of the same host.
    OtherPort,
    Null,
}

/// A host name of an attacker that resolves to this machine.
const REBOUND: &str = "evil.test";

/// A request and the configuration it meets.
#[derive(Debug, Clone, Copy)]
struct Asked {
    setting: Setting,
    key: Key,
    from: From,
    is_loopback_name: bool,
}

impl Guard {
    /// The accepted forms of the key.
    fn ways(self) -> &'static [Way] {
        match self {
            Self::Key | Self::Mcp => &[Way::Bearer, Way::Header],
            Self::Rpc => &[Way::Bearer, Way::Protocol],
            Self::Web => &[Way::Bearer, Way::Query],
            Self::Takeover => &[Way::Header],
            Self::Open
            | Self::Setup
            | Self::SetupWrite
            | Self::Login
            | Self::Aria2
            | Self::Aria2Query
            | Self::Device => &[],
        }
    }

    fn is_aria2(self) -> bool {
        matches!(self, Self::Aria2 | Self::Aria2Query)
    }
}

/// The switch of a route.
fn group(path: &str, guard: Guard) -> Option<Group> {
    match guard {
        Guard::Takeover => Some(Group::Takeover),
        Guard::Mcp => Some(Group::Mcp),
        Guard::Device => Some(Group::Link),
        Guard::Aria2 | Guard::Aria2Query => Some(Group::Aria2),
        Guard::Key => Some(Group::Management),
        Guard::Open if path.starts_with("/api/v1/") => Some(Group::Management),
        Guard::Open | Guard::Setup | Guard::SetupWrite | Guard::Login | Guard::Rpc | Guard::Web => None,
    }
}

/// The expected status of the gate; none if the route itself answers.
fn expect(path: &str, guard: Guard, asked: Asked) -> Option<u16> {
    if asked.setting.knows_its_names() && !asked.is_loopback_name {
        return Some(403);
    }
    let is_headless_only = matches!(guard, Guard::Setup | Guard::SetupWrite | Guard::Web);
    let is_elsewhere = is_headless_only && asked.setting.edition() != Edition::Headless;
    if is_elsewhere || !asked.setting.offers(group(path, guard)) {
        return Some(404);
    }
    let is_foreign = matches!(asked.from, From::Foreign | From::OtherPort | From::Null);
    let is_extension = matches!(asked.from, From::Extension | From::OtherExtension);
    let is_let_in = asked.setting == Setting::AnyOrigin;
    match guard {
        Guard::Open | Guard::Setup => return None,
        Guard::SetupWrite => return is_foreign.then_some(403),
        Guard::Login => return (is_foreign || is_extension).then_some(403),
        Guard::Rpc if is_foreign || is_extension => return Some(403),
        Guard::Takeover | Guard::Mcp | Guard::Aria2 | Guard::Aria2Query if is_foreign && !is_let_in => {
            return Some(403);
        }
        Guard::Takeover | Guard::Aria2 if asked.setting == Setting::FreshDesktop => return None,
        Guard::Aria2 if asked.setting == Setting::OpenDropIn => return None,
        // Only devices ask there, and they are no browsers.
        Guard::Device if asked.from != From::Nowhere => return Some(403),
        Guard::Device if asked.setting.has_key() => return None,
        Guard::Device => {}
        Guard::Rpc | Guard::Key | Guard::Web | Guard::Takeover | Guard::Mcp | Guard::Aria2 | Guard::Aria2Query => {}
    }
    match asked.key {
        _ if !asked.setting.has_key() => Some(403),
        Key::Throttled => Some(429),
        _ if guard.is_aria2() => None,
        Key::Right(way) if guard.ways().contains(&way) => None,
        _ => Some(401),
    }
}

/// Sends each case to every route and compares the status; no response may allow a foreign origin.
async fn check(setting: Setting, cases: &[(&str, From, Key)]) {
    let world = setting.start().await;
    let own = world.address().to_string();
    let mut sources = 0x0a00_0000_u32;
    for (number, (method, path, guard)) in (0..).zip(ROUTES) {
        // A new source per route, because a lock-out lasts a minute.
        let throttled = Ipv4Addr::new(192, 0, 2, number).to_string();
        if setting.has_key() && cases.iter().any(|(.., key)| *key == Key::Throttled) {
            throttle(&world, &throttled).await;
        }
        for &(host, from, key) in cases {
            // Wrong keys are counted, so every request has its own source.
            sources += 1;
            let source = match key {
                Key::Throttled => throttled.clone(),
                _ => Ipv4Addr::from_bits(sources).to_string(),
            };
            let asked = Asked {
                setting,
                key,
                from,
                is_loopback_name: !host.contains(REBOUND),
            };
            let host = host
                .replace("{own}", &own)
                .replace("{port}", own.rsplit_once(':').unwrap().1);
            let mut headers = headers(asked, &host);
            // A desktop without a key refuses proxies, and counts no wrong keys.
            if setting != Setting::FreshDesktop {
                headers.push(("X-Forwarded-For", source));
            }
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let query = match key {
                Key::Right(Way::Query) | Key::Throttled => format!("?token={KEY}"),
                Key::Wrong(Way::Query) => "?token=wrong-key-1".to_owned(),
                Key::Empty(Way::Query) => "?token=".to_owned(),
                _ => String::new(),
            };
            let answer = world.send(&format!("{method} {path}{query}"), &headers, "").await;
            let context = format!("{method} {path} {asked:?}");
            let expected = expect(path, *guard, asked);
            if let Some(status) = expected {
                assert_eq!(answer.status, status, "{context}");
            } else {
                // A device without its headers is refused by the route, which says so.
                let is_of_route =
                    *guard == Guard::Device && answer.status == 401 && answer.json()["reason"].is_string();
                let is_let_in = is_of_route || ![401, 403, 429].contains(&answer.status) && answer.status < 500;
                assert!(is_let_in, "{context}: {answer:?}");
            }
            if *method == "GET" && SOCKETS.contains(path) {
                // A call on aria2's socket brings the key itself, as in a POST.
                let guard = if *guard == Guard::Aria2Query {
                    Guard::Aria2
                } else {
                    *guard
                };
                let upgraded = world.upgrade(&format!("{path}{query}"), &headers).await;
                let expected = expect(path, guard, asked).unwrap_or(101);
                assert_eq!(upgraded, expected, "{context}, as a WebSocket");
            }
            let allowed = (setting == Setting::AnyOrigin).then_some("*");
            assert_eq!(answer.header("access-control-allow-origin"), allowed, "{context}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{context}");
            assert_eq!(answer.header("cache-control"), Some("no-store"), "{context}");
        }
    }
    world.end().await;
}

/// Locks a source out.
async fn throttle(world: &World, source: &str) {
    let wrong = json!({"id": 1, "method": "aria2.getVersion", "params": ["token:wrong-key-1"]});
    let wrong = Value::from(vec![wrong; 10]).to_string();
    let answer = world.send("POST /jsonrpc", &[("X-Forwarded-For", source)], wrong).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn headers(asked: Asked, host: &str) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("Host", host.to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("X-Svc-Client", "test".to_owned()),
    ];
    let origin = match asked.from {
        From::Nowhere => None,
        From::Same => Some(format!("http://{host}")),
        From::Extension => Some("chrome-extension://a".to_owned()),
        From::OtherExtension => Some("moz-extension://a-b".to_owned()),
        From::Foreign => Some("https://evil.example".to_owned()),
        From::OtherPort => Some("http://127.0.0.1:1".to_owned()),
        From::Null => Some("null".to_owned()),
    };
    headers.extend(origin.map(|origin| ("Origin", origin)));
    match asked.key {
        Key::None => {}
        Key::Empty(way) => headers.extend(carried(way, "")),
        Key::Wrong(way) => headers.extend(carried(way, "wrong-key-1")),
        Key::Right(way) => headers.extend(carried(way, KEY)),
        Key::Throttled => headers.extend(
            [Way::Bearer, Way::Header]
                .into_iter()
                .filter_map(|way| carried(way, KEY)),
        ),
    }
    headers
}

/// The header that carries the key; none for the query.
fn carried(way: Way, key: &str) -> Option<(&'static str, String)> {
    Some(match way {
        Way::Bearer => ("Authorization", format!("Bearer {key}")),
        Way::LowerBearer => ("Authorization", format!("bearer {key}")),
        Way::Basic => (
            "Authorization",
            format!("Basic {}", BASE64.encode(format!("svc:{key}").as_bytes())),
        ),
        Way::Header => ("X-Svc-Token", key.to_owned()),
        Way::Query => return None,
        Way::Protocol => {
            let token = BASE64URL_NOPAD.encode(key.as_bytes());
            ("Sec-WebSocket-Protocol", format!("svc.rpc.v1, svc.token.{token}"))
        }
        Way::Cookie => ("Cookie", format!("token={key}; X-Svc-Token={key}; svc.token={key}")),
    })
}

/// All keys from here and from an extension, correct and missing ones from everywhere, and all host names.
fn everything() -> Vec<(&'static str, From, Key)> {
    let from = |from| keys().into_iter().map(move |key| ("{own}", from, key));
    let mut cases: Vec<_> = [From::Nowhere, From::Extension].into_iter().flat_map(from).collect();
    let others = [
        From::Same,
        From::OtherExtension,
        From::Foreign,
        From::OtherPort,
        From::Null,
    ];
    for right in [
        Key::None,
        Key::Throttled,
        Key::Right(Way::Bearer),
        Key::Right(Way::Header),
    ] {
        cases.extend(others.map(|from| ("{own}", from, right)));
        for host in ["localhost:{port}", "[::1]:{port}", "127.0.0.1"] {
            cases.push((host, From::Nowhere, right));
        }
        for host in [
            REBOUND,
            "evil.test:{port}",
            "127.0.0.1.evil.test",
            "evil.test:80@localhost",
        ] {
            cases.extend([From::Nowhere, From::Same].map(|from| (host, from, right)));
        }
    }
    cases
}

/// Enough to observe a switch: correct and missing keys, from here and from a foreign page.
fn some() -> Vec<(&'static str, From, Key)> {
    let keys = [Key::None, Key::Right(Way::Bearer), Key::Right(Way::Header)];
    let from = |from| keys.map(|key| ("{own}", from, key));
    [From::Nowhere, From::Same, From::Extension, From::Foreign]
        .map(from)
        .concat()
}

#[tokio::test]
async fn a_server_that_is_set_up() {
    check(Setting::Headless, &everything()).await;
}

#[tokio::test]
async fn a_server_that_is_not_set_up() {
    check(Setting::Unset, &everything()).await;
}

#[tokio::test]
async fn a_desktop_with_a_key() {
    check(Setting::Desktop, &everything()).await;
}

#[tokio::test]
async fn a_desktop_as_it_is_installed() {
    check(Setting::FreshDesktop, &everything()).await;
}

#[tokio::test]
async fn a_desktop_that_is_open_to_the_network() {
    check(Setting::LanDesktop, &everything()).await;
}

#[tokio::test]
async fn what_stands_in_for_aria2c() {
    check(Setting::DropIn, &everything()).await;
    check(Setting::OpenDropIn, &everything()).await;
}

#[tokio::test]
async fn a_server_that_every_page_may_ask() {
    check(Setting::AnyOrigin, &some()).await;
}

#[tokio::test]
async fn a_server_without_one_of_its_groups() {
    for off in [Group::Management, Group::Takeover, Group::Aria2, Group::Mcp] {
        check(Setting::Without(off), &some()).await;
    }
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
async fn wrong_keys_are_counted_on_every_surface() {
    for (method, path, guard) in ROUTES {
        if matches!(
            guard,
            Guard::Open
                | Guard::Setup
                | Guard::SetupWrite
                | Guard::Login
                | Guard::Aria2
                | Guard::Aria2Query
                | Guard::Device
        ) {
            continue;
        }
        let world = World::alone(Edition::Headless, Some(KEY)).await;
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
    let world = World::alone(Edition::Headless, Some(KEY)).await;
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
