//! Secrets that a mirror, a redirect, a replaced URL or a plugin's link would like to receive. What was given for one
//! origin stays there, whatever else a file can be had from. Two ports of one host are two origins.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::fs;

use data_encoding::BASE64;
use e2e::{
    Home, Service, Svc, http,
    service::{KEY, wait_until},
};
use serde_json::{Value, json};
use support::{Content, Origin, Request, Resource, behaviour};

use crate::{place::Place, service::plugin_sites::with_plugin};

const MIB: u64 = 1 << 20;

/// Nothing but a secret has this in it.
const SECRET: &str = "marked-secret";

fn content() -> Content {
    Content::seeded(61, 6 * MIB + 3)
}

/// Serves the file slowly enough that others can help.
fn slow() -> Origin {
    Origin::start(vec![
        Resource::new("/f.bin", content()).with(behaviour::paced(MIB)),
        Resource::new("/other.bin", content()),
    ])
}

/// Has the file no longer, so that a mirror has to step in.
fn gone() -> Origin {
    Origin::start(vec![
        Resource::new("/f.bin", content())
            .method("POST")
            .with(behaviour::status(404)),
    ])
}

fn mirror() -> Origin {
    Origin::start(vec![
        Resource::new("/f.bin", content()).method("POST"),
        Resource::new("/other.bin", content()),
    ])
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{user}:{password}").as_bytes()))
}

/// Whether a request tells who its user is.
fn is_bare(request: &Request) -> bool {
    let names = ["authorization", "cookie", "x-api-key"];
    names.iter().all(|name| request.header(name).is_none())
        && !request.headers.iter().any(|(_, value)| value.contains(SECRET))
        && request.body.is_empty()
}

#[track_caller]
fn assert_asked_and_told_nothing(origin: &Origin) {
    let requests = origin.requests();
    assert!(!requests.is_empty(), "it was not asked, so nothing is shown");
    for request in requests {
        assert!(is_bare(&request), "{request:?}");
    }
}

#[track_caller]
fn assert_sent(origin: &Origin, name: &str, value: &str) {
    let requests = origin.requests();
    let found = requests.first().and_then(|request| request.header(name));
    assert_eq!(found, Some(value), "{requests:?}");
}

#[track_caller]
fn wait_for_end(service: &Service, id: &str) {
    wait_until("the file is there", || {
        let task = service.task(id);
        assert_ne!(task["status"], 4, "{task}");
        task["status"] == 3
    });
}

fn store_login(service: &Service, origin: &Origin, user: &str) {
    let login = json!({"site": origin.url(""), "username": user, "password": SECRET});
    assert_eq!(
        service.ask("PUT", "/api/v1/site-auth", Some(&login)).unwrap().status,
        200
    );
}

fn aria2(service: &Service, method: &str, params: &Value) -> Value {
    let mut with_key = vec![json!(format!("token:{KEY}"))];
    with_key.extend(params.as_array().unwrap().iter().cloned());
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": format!("aria2.{method}"), "params": with_key});
    let answer = http::ask(service.address(), "POST", "/jsonrpc", &[], Some(&call)).unwrap();
    assert!(answer.body["error"].is_null(), "{method}: {}", answer.body);
    answer.body["result"].clone()
}

fn wait_for_gid(service: &Service, gid: &Value) {
    wait_until("the file is there", || {
        let status = aria2(service, "tellStatus", &json!([gid, ["status", "errorMessage"]]));
        assert_ne!(status["status"], "error", "{status}");
        status["status"] == "complete"
    });
}

/// Everything that a request can be given, and the field in which the owner must get it.
fn forms(owner: &Origin) -> Vec<(&'static str, Value, &'static str, String)> {
    let with_login = owner.url("/f.bin").replace("http://", &format!("http://me:{SECRET}@"));
    let own = owner.url("/f.bin");
    vec![
        (
            "a login in the URL",
            json!({"url": with_login}),
            "Authorization",
            basic("me", SECRET),
        ),
        (
            "a login",
            json!({"url": own, "httpUser": "me", "httpPassword": SECRET}),
            "Authorization",
            basic("me", SECRET),
        ),
        (
            "cookies",
            json!({"url": own, "cookies": format!("sid={SECRET}")}),
            "Cookie",
            format!("sid={SECRET}"),
        ),
        (
            "a header",
            json!({"url": own, "headers": {"X-Api-Key": SECRET}}),
            "X-Api-Key",
            SECRET.to_owned(),
        ),
        (
            "a cookie as a header",
            json!({"url": own, "headers": {"cookie": format!("sid={SECRET}")}}),
            "Cookie",
            format!("sid={SECRET}"),
        ),
        (
            "a token",
            json!({"url": own, "headers": {"Authorization": format!("Bearer {SECRET}")}}),
            "Authorization",
            format!("Bearer {SECRET}"),
        ),
        (
            "a page",
            json!({"url": own, "referrer": format!("http://page.test/x?token={SECRET}")}),
            "Referer",
            format!("http://page.test/x?token={SECRET}"),
        ),
    ]
}

#[test]
fn a_mirror_never_receives_a_login_cookies_or_headers() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    // The mirror steps in for a first URL that fails, and it helps one that is slow.
    for begin in [gone, slow] {
        let count = forms(&begin()).len();
        for index in 0..count {
            let (owner, mirror) = (begin(), mirror());
            let (what, mut task, field, value) = forms(&owner).swap_remove(index);
            task["mirrors"] = json!([mirror.url("/f.bin")]);
            task["segments"] = json!(4);
            let id = service.create(&task);
            mirror.wait_for_requests(1);
            wait_for_end(&service, &id);
            assert_sent(&owner, field, &value);
            assert!(mirror.requests().iter().all(is_bare), "{what}: {:?}", mirror.requests());
        }
    }
}

#[test]
fn a_mirror_gets_its_own_stored_login_and_never_another_ones() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let (owner, known) = (gone(), mirror());
    store_login(&service, &owner, "owner");
    store_login(&service, &known, "mirror");
    let id = service.create(&json!({
        "url": owner.url("/f.bin"), "mirrors": [known.url("/f.bin")],
        "cookies": "sid=1", "headers": {"X-Api-Key": "1"},
    }));
    wait_for_end(&service, &id);
    assert_sent(&owner, "Authorization", &basic("owner", SECRET));
    assert_sent(&owner, "Cookie", "sid=1");
    assert_sent(&known, "Authorization", &basic("mirror", SECRET));
    for request in known.requests() {
        assert!(
            request.header("cookie").is_none() && request.header("x-api-key").is_none(),
            "{request:?}"
        );
    }
    let (owner, stranger) = (gone(), mirror());
    store_login(&service, &owner, "owner");
    let id = service.create(&json!({"url": owner.url("/f.bin"), "mirrors": [stranger.url("/f.bin")]}));
    wait_for_end(&service, &id);
    assert_sent(&owner, "Authorization", &basic("owner", SECRET));
    assert_asked_and_told_nothing(&stranger);
}

#[test]
fn a_form_reaches_neither_a_mirror_nor_where_a_redirect_leads() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let form = json!({"kind": "urlencoded", "raw": format!("password={SECRET}")});
    let (owner, other) = (gone(), mirror());
    let id = service.create(&json!({
        "url": owner.url("/f.bin"), "mirrors": [other.url("/f.bin")], "method": "POST", "body": form, "maxTries": 1,
    }));
    wait_until("it gave up", || service.task(&id)["status"] == 4);
    assert!(String::from_utf8_lossy(&owner.requests()[0].body).contains(SECRET));
    assert!(other.requests().is_empty(), "{:?}", other.requests());

    for status in [307, 308] {
        let leading = Origin::start(vec![
            Resource::new("/f.bin", content())
                .method("POST")
                .with(behaviour::redirect(status, &other.url("/f.bin"))),
        ]);
        let id = service.create(&json!({"url": leading.url("/f.bin"), "method": "POST", "body": form, "maxTries": 1}));
        wait_until("it gave up", || service.task(&id)["status"] == 4);
        assert_eq!(service.task(&id)["errorKind"], "forbidden-redirect");
        assert!(!leading.requests().is_empty());
        assert!(other.requests().is_empty(), "{:?}", other.requests());
    }
}

#[test]
fn a_redirect_receives_nothing_of_the_url_that_it_came_from() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let count = forms(&mirror()).len();
    for index in 0..count {
        let other = mirror();
        let owner = Origin::start(vec![
            Resource::new("/f.bin", content()).with(behaviour::redirect(302, &other.url("/f.bin"))),
        ]);
        let (what, task, field, value) = forms(&owner).swap_remove(index);
        let id = service.create(&task);
        wait_for_end(&service, &id);
        assert_sent(&owner, field, &value);
        assert!(
            !other.requests().is_empty() && other.requests().iter().all(is_bare),
            "{what}: {:?}",
            other.requests()
        );
    }
}

#[test]
fn cookies_that_a_server_sets_stay_with_it_when_a_mirror_helps() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let owner = Origin::start(vec![
        Resource::new("/f.bin", content())
            .with(behaviour::paced(MIB))
            .with(behaviour::header("Set-Cookie", b"sid=marked-secret; Path=/")),
    ]);
    let mirror = mirror();
    let id = service.create(&json!({
        "url": owner.url("/f.bin"), "mirrors": [mirror.url("/f.bin")], "segments": 4,
    }));
    mirror.wait_for_requests(1);
    wait_for_end(&service, &id);
    assert_asked_and_told_nothing(&mirror);
}

#[test]
fn stored_cookies_of_a_site_reach_no_other_site() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    // Ports are no part of a cookie's site, so the other one has another name.
    let elsewhere = |origin: &Origin| origin.url("/f.bin").replace("127.0.0.1", "localhost");
    let line = format!("127.0.0.1\tTRUE\t/\tFALSE\t0\tsid\t{SECRET}\n");
    service.call("PUT", "/api/v1/site-cookies", Some(&json!({"cookies": line})));
    let sent = format!("sid={SECRET}");

    // As a mirror, as a URL of its own, and where a redirect leads.
    let (owner, other) = (gone(), mirror());
    let id = service.create(&json!({"url": owner.url("/f.bin"), "mirrors": [elsewhere(&other)]}));
    wait_for_end(&service, &id);
    assert_sent(&owner, "Cookie", &sent);
    assert_asked_and_told_nothing(&other);
    let other = mirror();
    let id = service.create(&json!({"url": elsewhere(&other)}));
    wait_for_end(&service, &id);
    assert_asked_and_told_nothing(&other);
    let other = mirror();
    let owner = Origin::start(vec![
        Resource::new("/f.bin", content()).with(behaviour::redirect(302, &elsewhere(&other))),
    ]);
    let id = service.create(&json!({"url": owner.url("/f.bin")}));
    wait_for_end(&service, &id);
    assert_sent(&owner, "Cookie", &sent);
    assert_asked_and_told_nothing(&other);

    // A redirect of another site does not choose whose cookies are sent.
    let known = mirror();
    let stranger = Origin::start(vec![
        Resource::new("/f.bin", content()).with(behaviour::redirect(302, &known.url("/f.bin"))),
    ]);
    let id = service.create(&json!({"url": elsewhere(&stranger)}));
    wait_for_end(&service, &id);
    assert_asked_and_told_nothing(&stranger);
    assert_asked_and_told_nothing(&known);
}

#[test]
fn several_uris_of_aria2_do_not_share_secrets() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let (owner, mirror) = (gone(), mirror());
    let options = json!({
        "http-user": "me", "http-passwd": SECRET,
        "header": [format!("Cookie: sid={SECRET}"), format!("X-Api-Key: {SECRET}")], "referer": "*",
    });
    let with_login = owner.url("/f.bin").replace("http://", &format!("http://u:{SECRET}@"));
    let gid = aria2(
        &service,
        "addUri",
        &json!([[with_login, mirror.url("/f.bin")], options]),
    );
    wait_for_gid(&service, &gid);
    assert_sent(&owner, "Cookie", &format!("sid={SECRET}"));
    assert_sent(&owner, "X-Api-Key", SECRET);
    assert_sent(&owner, "Authorization", &basic("u", SECRET));
    assert_sent(&owner, "Referer", &owner.url("/f.bin"));
    assert_asked_and_told_nothing(&mirror);
}

#[test]
fn a_metalink_spreads_no_secrets_over_its_urls() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let (owner, mirror) = (gone(), mirror());
    store_login(&service, &owner, "owner");
    let document = format!(
        r#"<metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="f.bin">
             <url priority="1">{}</url><url priority="2">{}</url></file></metalink>"#,
        owner.url("/f.bin"),
        mirror.url("/f.bin"),
    );
    let options = json!({"header": [format!("Cookie: sid={SECRET}"), format!("X-Api-Key: {SECRET}")]});
    let gids = aria2(
        &service,
        "addMetalink",
        &json!([BASE64.encode(document.as_bytes()), options]),
    );
    wait_for_gid(&service, &gids[0]);
    assert_sent(&owner, "Cookie", &format!("sid={SECRET}"));
    assert_sent(&owner, "Authorization", &basic("owner", SECRET));
    assert_asked_and_told_nothing(&mirror);
}

#[test]
fn a_mirror_of_the_command_line_receives_no_secrets() {
    let (owner, mirror, place) = (gone(), mirror(), Place::new());
    Svc::get(place.path())
        .args(["--http-user", "me", "--cookie", &format!("sid={SECRET}")])
        .args([
            "--header",
            &format!("X-Api-Key: {SECRET}"),
            "--mirror",
            &mirror.url("/f.bin"),
        ])
        .args([
            "--referer",
            &format!("http://u:p@page.test/?token={SECRET}#x"),
            "--user-agent",
            "agent/1",
        ])
        .arg(owner.url("/f.bin"))
        .env("SVC_HTTP_PASSWORD", SECRET)
        .run()
        .assert_success();
    place.assert_file("f.bin", &content());
    assert_sent(&owner, "Authorization", &basic("me", SECRET));
    assert_sent(&owner, "X-Api-Key", SECRET);
    assert_sent(&owner, "Referer", &format!("http://page.test/?token={SECRET}"));
    assert_asked_and_told_nothing(&mirror);
    assert_sent(&mirror, "Referer", "http://page.test/");
    assert_sent(&mirror, "User-Agent", "agent/1");
}

#[test]
fn a_url_of_another_origin_gets_no_secrets_and_the_answer_says_so() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let count = forms(&mirror()).len();
    for index in 0..count {
        let (owner, other) = (gone(), mirror());
        let (what, mut task, field, value) = forms(&owner).swap_remove(index);
        task["maxTries"] = json!(1);
        let id = service.create(&task);
        wait_until("it failed", || service.task(&id)["status"] == 4);
        assert_sent(&owner, field, &value);
        let path = format!("/api/v1/tasks/{id}/url");
        let answer = service.call("POST", &path, Some(&json!({"url": other.url("/other.bin")})));
        let message = answer["message"].as_str().unwrap();
        assert_eq!(message.contains("another site"), what != "a page", "{what}: {message}");
        assert!(!message.contains(SECRET));
        service.call("PUT", &format!("/api/v1/tasks/{id}/continue"), None);
        wait_for_end(&service, &id);
        assert_asked_and_told_nothing(&other);
        if what != "a page" {
            let activity = service
                .rpc()
                .call("daemon.task.activity", &json!({"taskId": id}))
                .unwrap();
            assert!(activity.to_string().contains("another site"), "{what}: {activity}");
        }
    }
    // On its own origin a fresh link keeps them.
    let own = Origin::start(vec![
        Resource::new("/f.bin", content()).with(behaviour::status(410)),
        Resource::new("/other.bin", content()),
    ]);
    let id = service.create(&json!({"url": own.url("/f.bin"), "headers": {"X-Api-Key": SECRET}, "maxTries": 1}));
    wait_until("it failed", || service.task(&id)["status"] == 4);
    let path = format!("/api/v1/tasks/{id}/url");
    let answer = service.call("POST", &path, Some(&json!({"url": own.url("/other.bin")})));
    assert_eq!(answer["message"], "ok");
    service.call("PUT", &format!("/api/v1/tasks/{id}/continue"), None);
    wait_for_end(&service, &id);
    assert!(
        own.requests()
            .iter()
            .all(|request| request.header("x-api-key") == Some(SECRET))
    );
}

#[test]
fn a_uri_that_is_put_in_the_place_of_another_gets_none_of_its_secrets() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let (owner, other) = (mirror(), mirror());
    let options = json!({
        "pause": "true", "http-user": "me", "http-passwd": SECRET,
        "header": [format!("Cookie: sid={SECRET}"), format!("X-Api-Key: {SECRET}")],
    });
    let gid = aria2(&service, "addUri", &json!([[owner.url("/f.bin")], options]));
    // First beside it, then instead of it, then back.
    let changed = aria2(&service, "changeUri", &json!([gid, 1, [], [other.url("/f.bin")]]));
    assert_eq!(changed, json!([0, 1]));
    let changed = aria2(&service, "changeUri", &json!([gid, 1, [owner.url("/f.bin")], []]));
    assert_eq!(changed, json!([1, 0]));
    let status = aria2(&service, "tellStatus", &json!([gid]));
    let shown = service.call("GET", "/api/v1/tasks", None);
    let id = shown[0]["taskId"].as_str().unwrap();
    let activity = service
        .rpc()
        .call("daemon.task.activity", &json!({"taskId": id}))
        .unwrap();
    assert!(activity.to_string().contains("another site"), "{activity}");
    aria2(&service, "unpause", &json!([gid]));
    wait_for_gid(&service, &status["gid"]);
    assert_asked_and_told_nothing(&other);
    assert!(owner.requests().is_empty());
}

#[test]
fn what_a_session_of_aria2_says_of_its_first_uri_stays_there() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let (owner, mirror) = (gone(), mirror());
    let session = home.path().join("session");
    let lines = format!(
        "{}\t{}\t\n http-user=me\n http-passwd={SECRET}\n header=Cookie: sid={SECRET}\n header=X-Api-Key: {SECRET}\n",
        owner.url("/f.bin"),
        mirror.url("/f.bin"),
    );
    fs::write(&session, lines).unwrap();
    let run = Svc::new()
        .args(["import", "aria2", "--json", "--url", &service.url()])
        .arg(&session)
        .env("SVC_TOKEN", KEY)
        .run();
    run.assert_success();
    let told: Value = serde_json::from_str(&run.stdout.concat()).unwrap();
    assert!(told["notes"].to_string().contains("first URI"), "{told}");
    wait_for_end(&service, told["added"][0].as_str().unwrap());
    assert_sent(&owner, "Authorization", &basic("me", SECRET));
    assert_sent(&owner, "Cookie", &format!("sid={SECRET}"));
    assert_asked_and_told_nothing(&mirror);
}

#[test]
fn in_the_place_of_aria2c_mirrors_receive_no_secrets() {
    let (owner, mirror, place) = (gone(), mirror(), Place::new());
    let run = Svc::new()
        .args(["aria2c", "--no-conf", "--dir"])
        .arg(place.path())
        .args(["--http-user=me", &format!("--http-passwd={SECRET}")])
        .args([
            format!("--header=Cookie: sid={SECRET}"),
            format!("--header=X-Api-Key: {SECRET}"),
        ])
        .args([owner.url("/f.bin"), mirror.url("/f.bin")])
        .run();
    run.assert_success();
    place.assert_file("f.bin", &content());
    assert_sent(&owner, "Authorization", &basic("me", SECRET));
    assert_sent(&owner, "X-Api-Key", SECRET);
    assert_asked_and_told_nothing(&mirror);
}

#[test]
fn a_link_of_a_plugin_receives_no_secrets_of_the_url_that_it_was_made_of() {
    let site = Origin::start(vec![Resource::new("/page", Content::bytes("a page"))]);
    let other = mirror();
    let home = Home::new();
    let script = format!(
        "export async function resolve(call, out) {{
            await http.get(call.url).send();
            out.add('file', 'f.bin').link({:?});
        }}
        export const preview = resolve;",
        other.url("/f.bin")
    );
    let service = with_plugin(&home, &json!({"inputHost": true}), &script);
    store_login(&service, &site, "stored");
    let url = site.url("/page").replace("://", &format!("://me:{SECRET}@"));
    let id = service.create(&json!({
        "url": url, "cookies": format!("a={SECRET}"), "headers": {"X-Api-Key": SECRET},
        "referrer": format!("{}?token={SECRET}", site.url("/from")),
    }));
    wait_for_end(&service, &id);
    assert!(!site.requests().is_empty(), "the plugin was at work");
    assert_asked_and_told_nothing(&other);
}
