//! Hosts that a plugin may not reach, fields that it may not send, and secrets that it may not read.

use std::ops::RangeInclusive;

use serde_json::json;
use support::{Content, Origin, Resource, behaviour};

use super::{Attempt, Call, Case, Seen, case, does, guest::previewer};

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
    previewer(&items, &body)
}

fn plain() -> Vec<u8> {
    sender("GET", "", "", "")
}

/// Asks `url` while these hosts are granted. `{port}` is that of a site on this machine, to which nothing comes.
fn asks(name: &'static str, what: &str, ends: &'static str, (url, hosts): (&str, &[&str])) -> Case {
    let site = Origin::start(Vec::new());
    let here = |text: &str| text.replace("{port}", &site.port().to_string());
    let (url, hosts): (_, Vec<_>) = (here(url), hosts.iter().map(|host| here(host)).collect());
    let prepare = format!(
        "(local.set $request (call $request (i32.const 100) (i32.const 3) (i32.const 800) (i32.const {})))",
        url.len()
    );
    let call = Call {
        permissions: json!({"hosts": hosts}),
        site: Some((site, 0..=0)),
        ..Call::of(sender("GET", &url, &prepare, ""))
    };
    case(name, what, ends, Attempt::Call(Box::new(call)))
}

/// Is called with the URL of a site of the user's, which misbehaves.
fn visits(name: &'static str, what: &str, ends: &'static str, guest: Vec<u8>, page: Resource) -> Case {
    visits_often(name, what, ends, (guest, page, 1..=1))
}

/// The same with another number of requests.
fn visits_often(
    name: &'static str,
    what: &str,
    ends: &'static str,
    (guest, page, requests): (Vec<u8>, Resource, RangeInclusive<usize>),
) -> Case {
    let call = Call {
        permissions: json!({"inputHost": true}),
        site: Some((Origin::start(vec![page]), requests)),
        ..Call::of(guest)
    };
    case(name, what, ends, Attempt::Call(Box::new(call)))
}

/// Is called with the URL of a site of the user's, which leads to another host, which is granted.
fn led(name: &'static str, what: &str, host: &str) -> Case {
    let page = hello().with(behaviour::redirect(307, &format!("{host}/")));
    let call = Call {
        permissions: json!({"inputHost": true, "hosts": [host]}),
        site: Some((Origin::start(vec![page]), 1..=1)),
        ..Call::of(plain())
    };
    case(name, what, "forbidden", Attempt::Call(Box::new(call)))
}

fn hello() -> Resource {
    page(Content::bytes("hello"))
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
    let literal = |name, host: &str| {
        let what = format!("asks `http://{host}/`, which its manifest names.");
        let host = format!("http://{host}:{{port}}");
        asks(name, &what, "forbidden", (&format!("{host}/"), &[&host]))
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
        literal("loopback", "127.0.0.1"),
        literal("loopback-decimal", "2130706433"),
        literal("loopback-hexadecimal", "0x7f.1"),
        literal("loopback-6", "[::1]"),
        literal("loopback-mapped", "[::ffff:127.0.0.1]"),
        literal("loopback-nat64", "[64:ff9b::7f00:1]"),
        literal("private-network", "10.0.0.1"),
        literal("unique-local", "[fd00::1]"),
        literal("link-local", "169.254.169.254"),
        literal("any-address", "0.0.0.0"),
        literal("name-of-this-machine", "localhost"),
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
        let what = format!("sends `{field}: {shown}`.");
        visits_often(name, &what, "invalidInput", (guest, hello(), 0..=0))
    };
    let method = |name, method: &'static str| {
        let what = format!("sends a request `{method}`.");
        let guest = sender(method, "", "", "");
        visits_often(name, &what, "invalidInput", (guest, hello(), 0..=0))
    };
    vec![
        sets("line-break", "x-a", "1\\0d\\0aHost: evil.example"),
        sets("own-host", "Host", "evil.example"),
        sets("own-length", "Content-Length", "5"),
        sets("own-framing", "Transfer-Encoding", "chunked"),
        sets("own-connection", "Connection", "upgrade"),
        sets("own-cookie", "Cookie", "admin=1"),
        sets("proxy-login", "Proxy-Authorization", "Basic YTpi"),
        method("connect", "CONNECT"),
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
    vec![
        visits(
            "redirect-away",
            "is sent on to a host that nobody granted.",
            "denied",
            plain(),
            hello().with(behaviour::redirect(302, "https://evil.example/")),
        ),
        led(
            "redirect-inside",
            "is sent on to another port of the user's own machine, which its manifest names.",
            "http://127.0.0.1:1",
        ),
        led(
            "redirect-inside-by-name",
            "is sent on to `localhost`, which its manifest names.",
            "http://localhost:1",
        ),
        led(
            "redirect-to-metadata",
            "is sent on to `http://169.254.169.254/`, which its manifest names.",
            "http://169.254.169.254",
        ),
        visits_often(
            "redirect-to-itself",
            "is sent round in circles.",
            "invalidInput",
            (plain(), hello().with(behaviour::redirect(302, "/page")), 11..=11),
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
        visits_often(
            "request-flood",
            "sends 10,000 requests; after the first twenty it may send five a second, and 64 in all.",
            "cpuLimit or rateLimited",
            (again, hello(), 20..=64),
        ),
        visits_often(
            "pending-requests",
            "builds requests without end and sends none.",
            "hostcallLimit",
            (keeps, hello(), 0..=0),
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
    // Requests with a body of 20 MiB and a query of as much, none of which is sent.
    let http = r#"
        (import "svc:plugin/http@0.1.0" "[constructor]request" (func $request (param i32 i32 i32 i32) (result i32)))
        (import "svc:plugin/http@0.1.0" "[method]request.body-bytes" (func $body (param i32 i32 i32)))
        (import "svc:plugin/http@0.1.0" "[method]request.query" (func $query (param i32 i32 i32 i32 i32)))
        (memory (export "memory") 400)
        (data (i32.const 100) "POST")"#;
    let hoards = "(local $kept i32)
        (loop $l
            (local.set $kept (call $request (i32.const 100) (i32.const 4) (local.get $url) (local.get $length)))
            (call $body (local.get $kept) (i32.const 65536) (i32.const 20971520))
            (call $query (local.get $kept) (i32.const 100) (i32.const 4) (i32.const 65536) (i32.const 20971520))
            (br $l))";
    vec![
        does(
            "hoarded-requests",
            "puts together requests of 40 MiB each without end and sends none; nothing of them is kept.",
            "cpuLimit or hostcallLimit or wallLimit",
            (http, hoards),
        ),
        tells(
            "secret-elsewhere",
            "sends a secret to a host that it is not bound to.",
            "denied",
            (with_secret(""), hello(), Bound::Elsewhere),
        ),
        tells(
            "secret-echoed",
            "reads a page that repeats the secret which was sent to it.",
            "ok",
            (
                with_secret(shows),
                page(Content::bytes("you sent hunter2 and hunter2")),
                Bound::Here,
            ),
        ),
        tells(
            "secret-carried-on",
            "is sent on to another host by a site that writes the secret into the URL.",
            "denied",
            (
                with_secret(""),
                hello().with(behaviour::redirect(302, "https://bound.example.evil.net/?k=hunter2")),
                Bound::Here,
            ),
        ),
    ]
}

/// Where the secret of a plugin may be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Here,
    Elsewhere,
}

/// Is called with the URL of a site of the user's, and has a secret, which is sent there if it may be.
fn tells(name: &'static str, what: &str, ends: &'static str, (guest, page, bound): (Vec<u8>, Resource, Bound)) -> Case {
    let site = Origin::start(vec![page]);
    let here = site.url("");
    let (host, requests, is_harmless): (_, _, fn(&Seen) -> bool) = match bound {
        Bound::Here => (here.trim_end_matches('/'), 1..=1, |seen| seen.was_told),
        Bound::Elsewhere => ("https://bound.example", 0..=0, |seen| !seen.was_told),
    };
    let call = Call {
        permissions: json!({"inputHost": true, "hosts": [host], "secrets": {"token": [host]}}),
        is_harmless,
        site: Some((site, requests)),
        ..Call::of(guest)
    };
    case(name, what, ends, Attempt::Call(Box::new(call)))
}
