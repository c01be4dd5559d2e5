//! The gate's decisions, area by area.

use super::*;
use crate::access::key::AccessKey;

fn settings(edition: Edition, key: Option<&str>) -> Settings {
    let mut settings = Settings::fresh(edition);
    settings.key = key.map(|key| AccessKey::new(key).unwrap());
    settings.api = true;
    settings.mcp = true;
    settings
}

#[derive(Clone, Copy)]
struct Case {
    path: &'static str,
    method: Method2,
    host: &'static str,
    origin: Option<&'static str>,
    is_own: bool,
}

#[derive(Clone, Copy)]
enum Method2 {
    Get,
    Post,
    Options,
}

fn decide(case: Case, kind: Edition, is_loopback_only: bool, settings: &Settings) -> u16 {
    let method = match case.method {
        Method2::Get => Method::GET,
        Method2::Post => Method::POST,
        Method2::Options => Method::OPTIONS,
    };
    let facts = Facts {
        area: Area::of(&method, case.path),
        method: &method,
        host: Some(case.host),
        forwarded_host: None,
        origin: case.origin,
        has_client: true,
        is_own: case.is_own,
    };
    match judge(&facts, kind, is_loopback_only, settings) {
        Verdict::Pass | Verdict::Own | Verdict::OwnUser | Verdict::OwnKeys => 200,
        Verdict::NeedsKey(_) => 401,
        Verdict::Preflight => 204,
        Verdict::Refused(status, _) => status.as_u16(),
    }
}

fn post(path: &'static str, origin: Option<&'static str>) -> Case {
    Case {
        path,
        method: Method2::Post,
        host: "svc.test:17800",
        origin,
        is_own: false,
    }
}

/// A request as a client of this path sends it: `/rpc` is a WebSocket.
fn ask(path: &'static str, origin: Option<&'static str>) -> Case {
    let method = if path == "/rpc" { Method2::Get } else { Method2::Post };
    Case {
        method,
        ..post(path, origin)
    }
}

const ORIGINS: [Option<&str>; 5] = [
    None,
    Some("http://svc.test:17800"),
    Some("chrome-extension://abc"),
    Some("https://evil.test"),
    Some("null"),
];

#[test]
fn foreign_origins_are_kept_out_where_it_matters() {
    let headless = settings(Edition::Headless, Some("access-key-1"));
    let rows: [(&str, [u16; 5]); 8] = [
        ("/jsonrpc", [200, 200, 200, 403, 403]),
        ("/download", [401, 401, 401, 403, 403]),
        ("/download/batch", [401, 401, 401, 403, 403]),
        ("/mcp", [401, 401, 401, 403, 403]),
        ("/api/v1/setup", [200, 200, 200, 403, 403]),
        ("/rpc", [401, 401, 403, 403, 403]),
        ("/api/v1/tasks", [401, 401, 401, 401, 401]),
        ("/api/v1/link/pair/hello", [200, 403, 403, 403, 403]),
    ];
    for (path, expect) in rows {
        for (origin, expect) in ORIGINS.into_iter().zip(expect) {
            let got = decide(ask(path, origin), Edition::Headless, false, &headless);
            assert_eq!(got, expect, "{path} from {origin:?}");
        }
    }
    let mut open = headless;
    open.cors = true;
    for (path, expect) in [("/jsonrpc", 200), ("/mcp", 401), ("/api/v1/setup", 403), ("/rpc", 403)] {
        let got = decide(ask(path, Some("https://evil.test")), Edition::Headless, false, &open);
        assert_eq!(got, expect, "{path} with everybody allowed");
    }
}

#[test]
fn without_a_key_a_server_is_closed_but_for_its_set_up() {
    let fresh = settings(Edition::Headless, None);
    let rows = [
        ("/", 200),
        ("/ping", 200),
        ("/api/v1/setup/status", 200),
        ("/api/v1/openapi.json", 200),
        ("/api/v1/info", 403),
        ("/rpc", 403),
        ("/api/web/files/tasks/x", 403),
        ("/download", 403),
        ("/jsonrpc", 403),
        ("/mcp", 403),
    ];
    for (path, expect) in rows {
        assert_eq!(
            decide(ask(path, None), Edition::Headless, false, &fresh),
            expect,
            "{path}"
        );
    }
    let desktop = settings(Edition::Desktop, None);
    for (path, expect) in [
        ("/api/v1/info", 403),
        ("/rpc", 403),
        ("/jsonrpc", 200),
        ("/download", 200),
        ("/api/v1/setup", 404),
    ] {
        let mut case = ask(path, None);
        case.host = "localhost:17800";
        assert_eq!(decide(case, Edition::Desktop, true, &desktop), expect, "{path}");
    }
}

#[test]
fn programs_of_the_desktops_own_user_need_no_key_for_what_is_switched_on() {
    let own = |path| Case {
        host: "127.0.0.1:17800",
        is_own: true,
        ..ask(path, None)
    };
    let mut desktop = Settings::fresh(Edition::Desktop);
    assert_eq!(decide(own("/rpc"), Edition::Desktop, true, &desktop), 200);
    for path in ["/api/v1/info", "/mcp", "/metrics", "/api/web/tickets"] {
        assert_eq!(
            decide(own(path), Edition::Desktop, true, &desktop),
            404,
            "{path} is off"
        );
    }
    desktop = settings(Edition::Desktop, None);
    for path in ["/rpc", "/api/v1/info", "/mcp", "/metrics"] {
        assert_eq!(decide(own(path), Edition::Desktop, true, &desktop), 200, "{path}");
    }
    let with_key = settings(Edition::Headless, Some("access-key-1"));
    let (server, fresh) = (Edition::Headless, settings(Edition::Headless, None));
    assert_eq!(decide(own("/rpc"), server, false, &with_key), 200);
    assert_eq!(
        decide(own("/rpc"), server, false, &fresh),
        403,
        "a server is set up first"
    );
}

#[test]
fn without_a_key_a_desktop_that_others_can_reach_takes_nothing() {
    let mut desktop = settings(Edition::Desktop, None);
    let mut case = post("/download", None);
    case.host = "127.0.0.1:17800";
    for path in ["/download", "/download/batch", "/jsonrpc"] {
        case.path = path;
        desktop.cors = false;
        assert_eq!(
            decide(case, Edition::Desktop, false, &desktop),
            403,
            "{path} from the network"
        );
        desktop.cors = true;
        assert_eq!(
            decide(case, Edition::Desktop, true, &desktop),
            403,
            "{path} from any page"
        );
    }
}

#[test]
fn xml_rpc_is_posted_where_our_own_rpc_is_and_guarded_as_json_rpc_is() {
    let settings = settings(Edition::Headless, Some("access-key-1"));
    for (origin, expect) in ORIGINS.into_iter().zip([200, 200, 200, 403, 403]) {
        for path in ["/rpc", "/jsonrpc"] {
            assert_eq!(
                decide(post(path, origin), Edition::Headless, false, &settings),
                expect,
                "{path} from {origin:?}"
            );
        }
    }
    let mut off = settings;
    off.jsonrpc = false;
    assert_eq!(decide(post("/rpc", None), Edition::Headless, false, &off), 404);
}

#[test]
fn what_is_switched_off_does_not_exist() {
    let mut off = settings(Edition::Headless, Some("access-key-1"));
    (off.api, off.mcp, off.jsonrpc, off.takeover) = (false, false, false, false);
    for path in [
        "/api/v1/info",
        "/api/v1/openapi.json",
        "/mcp",
        "/jsonrpc",
        "/download",
        "/nothing",
    ] {
        assert_eq!(decide(ask(path, None), Edition::Headless, false, &off), 404, "{path}");
    }
    assert_eq!(decide(ask("/rpc", None), Edition::Headless, false, &off), 401);
}

#[test]
fn a_desktop_on_the_loopback_answers_to_its_own_names_only() {
    let mut desktop = settings(Edition::Desktop, Some("access-key-1"));
    desktop.cors = true;
    let hosts = [
        ("127.0.0.1", 200),
        ("127.0.0.1:17800", 200),
        ("LocalHost:17800", 200),
        ("[::1]:17800", 200),
        ("[::1]", 200),
        ("evil.test", 403),
        ("evil.test:17800", 403),
        ("127.0.0.1.evil.test", 403),
        ("localhost:evil", 403),
        ("", 403),
    ];
    for (host, expect) in hosts {
        for method in [Method2::Get, Method2::Options] {
            let case = Case {
                path: "/ping",
                method,
                host,
                origin: None,
                is_own: false,
            };
            let expect = if expect == 200 && matches!(method, Method2::Options) {
                204
            } else {
                expect
            };
            assert_eq!(decide(case, Edition::Desktop, true, &desktop), expect, "{host}");
        }
    }
    let case = post("/ping", None);
    assert_eq!(
        decide(case, Edition::Desktop, false, &desktop),
        200,
        "open to the network"
    );
}

#[test]
fn origins_are_compared_as_browsers_mean_them() {
    for (origin, host, expect) in [
        ("http://a.test", "a.test", true),
        ("http://a.test", "a.test:80", true),
        ("https://a.test", "A.test:443", true),
        ("https://a.test:8443", "a.test:8443", true),
        ("http://[::1]:1", "[::1]:1", true),
        ("http://a.test:1", "a.test:2", false),
        ("http://a.test", "b.test", false),
        ("null", "null", false),
        ("file://", "", false),
        ("http://", "", false),
    ] {
        assert_eq!(is_same_origin(origin, host), expect, "{origin} at {host}");
    }
}

#[test]
fn a_desktop_that_is_switched_off_answers_its_own_user_only() {
    let mut settings = settings(Edition::Desktop, Some("secret-key-1"));
    settings.enabled = false;
    for path in ["/api/v1/tasks", "/rpc", "/mcp", "/jsonrpc", "/download", "/"] {
        let case = Case {
            host: "localhost:17800",
            ..post(path, None)
        };
        assert_eq!(decide(case, Edition::Desktop, true, &settings), 404, "{path}");
        let preflight = Case {
            method: Method2::Options,
            ..case
        };
        assert_eq!(decide(preflight, Edition::Desktop, true, &settings), 404, "{path}");
    }
    let own = Case {
        host: "127.0.0.1:1",
        is_own: true,
        ..post("/api/v1/tasks", None)
    };
    assert_eq!(decide(own, Edition::Desktop, true, &settings), 200);
    let ping = |origin| Case {
        path: "/ping",
        method: Method2::Get,
        host: "127.0.0.1:1",
        origin,
        is_own: false,
    };
    assert_eq!(decide(ping(None), Edition::Desktop, true, &settings), 200);
    assert_eq!(
        decide(ping(Some("https://evil.test")), Edition::Desktop, true, &settings),
        404
    );
    assert_ne!(
        decide(own, Edition::Headless, false, &settings),
        404,
        "a server is never off"
    );
}
