//! A desktop as it is installed has no access key: it serves its own user's programs, and browsers only as far as their
//! own downloads go.

use std::{fs, net::TcpStream};

use e2e::{Home, Service, http, other_user, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};
use tungstenite::{Message, WebSocket, client::IntoClientRequest as _};

const EXTENSION: (&str, &str) = ("Origin", "chrome-extension://aaaa");
const OTHER_EXTENSION: (&str, &str) = ("Origin", "chrome-extension://bbbb");
const KEY_FIRST: &str = "set an access key first";

/// A desktop without a key, and a server with a file.
struct Desk {
    home: Home,
    service: Service,
    origin: Origin,
}

impl Desk {
    fn new() -> Self {
        let home = Home::new();
        let service = Service::start(home.new_desktop());
        let origin = Origin::start(vec![Resource::new("/f", Content::bytes("ssh-ed25519 AAAA attacker"))]);
        let desk = Self { home, service, origin };
        wait_until("the daemon is there", || {
            desk.call(&[], "aria2.getGlobalStat", &json!([]))["result"].is_object()
        });
        desk
    }

    fn call(&self, headers: &[(&str, &str)], method: &str, params: &Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = http::ask(self.service.address(), "POST", "/jsonrpc", headers, Some(&call));
        answer.expect("it answers").body
    }

    /// Asserts that an extension's call is refused for want of a key.
    #[track_caller]
    fn assert_refused(&self, method: &str, params: &Value) {
        let answer = self.call(&[EXTENSION], method, params);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(KEY_FIRST), "{method} {params}: {answer}");
    }

    /// A download of its user's own.
    #[track_caller]
    fn add(&self, headers: &[(&str, &str)], options: &Value) -> String {
        let added = self.call(headers, "aria2.addUri", &json!([[self.origin.url("/f")], options]));
        added["result"].as_str().unwrap_or_else(|| panic!("{added}")).to_owned()
    }

    /// The pass that the agent's lock holds.
    fn pass(&self) -> String {
        let lock = fs::read_to_string(self.home.data().join("agent/agent.lock")).expect("it runs");
        lock.lines().nth(1).expect("the pass is in the lock").to_owned()
    }

    fn socket(&self, stream: TcpStream, origin: Option<&str>) -> Result<WebSocket<TcpStream>, String> {
        let mut request = format!("ws://{}/jsonrpc", self.service.address())
            .into_client_request()
            .expect("the URL is one");
        if let Some(origin) = origin {
            request
                .headers_mut()
                .insert("Origin", origin.parse().expect("a header"));
        }
        let shaken = tungstenite::client(request, stream);
        shaken.map(|(socket, _)| socket).map_err(|error| error.to_string())
    }
}

fn call_on(socket: &mut WebSocket<TcpStream>, method: &str, params: &Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    socket.send(Message::text(call.to_string())).expect("it is open");
    loop {
        let Message::Text(text) = socket.read().expect("it answers") else {
            continue;
        };
        let answer: Value = serde_json::from_str(&text).expect("frames are JSON");
        if answer["id"] == 7 {
            return answer;
        }
    }
}

#[test]
fn another_local_user_writes_no_file_through_a_desktop_without_a_key() {
    let desk = Desk::new();
    let stolen = desk.home.path().join(".ssh");
    let add = json!({"id": 1, "method": "aria2.addUri", "params": [
        [desk.origin.url("/f")], {"dir": stolen, "out": "authorized_keys"}]});
    let xml = "<methodCall><methodName>aria2.getVersion</methodName></methodCall>".to_owned();
    let takeover = json!({"url": desk.origin.url("/f"), "saveDir": stolen, "filename": "authorized_keys"});
    for (line, body) in [
        ("POST /jsonrpc", add.to_string()),
        ("POST /rpc", xml),
        ("POST /download", takeover.to_string()),
        ("POST /download/batch", json!({"items": [takeover]}).to_string()),
    ] {
        for headers in [&[("X-Svc-Client", "x")][..], &[("X-Svc-Client", "x"), EXTENSION]] {
            let stream = other_user::connect(desk.service.address());
            let answer = http::send_text(stream, desk.service.address(), line, headers, &body).expect("it answers");
            let message = answer.body["message"].as_str().unwrap_or_default();
            assert!(
                answer.status == 403 && message.contains(KEY_FIRST),
                "{line}: {answer:?}"
            );
        }
    }
    // A proxy that its own user runs passes on what others send.
    for forwarded in [("X-Forwarded-For", "203.0.113.7"), ("Via", "1.1 proxy")] {
        let refused = desk.call(&[forwarded], "aria2.getGlobalOption", &json!([]));
        assert!(refused.to_string().contains(KEY_FIRST), "{refused}");
    }
    let refused = desk.socket(other_user::connect(desk.service.address()), None).err();
    assert!(refused.is_some_and(|refused| refused.contains("403")));
    // The same from the service's own user.
    let stream = TcpStream::connect(desk.service.address()).expect("it listens");
    let mut socket = desk.socket(stream, None).expect("its own user may connect");
    assert!(call_on(&mut socket, "aria2.getGlobalOption", &json!([]))["result"].is_object());
    desk.add(&[], &json!({"dir": stolen, "out": "mine"}));
    wait_until("its own user's file is there", || stolen.join("mine").exists());
    assert!(!stolen.join("authorized_keys").exists());
}

#[test]
fn an_extension_without_a_key_writes_into_the_save_directory_only() {
    let desk = Desk::new();
    let url = desk.origin.url("/f");
    let downloads = desk.home.downloads();
    let outside = desk.home.path().join(".ssh");
    for options in [
        json!({"dir": outside}),
        json!({"dir": "../.ssh"}),
        json!({"dir": downloads.join("../.ssh")}),
        json!({"dir": "a/../../.ssh"}),
        json!({"out": "../.ssh/authorized_keys"}),
        json!({"out": outside.join("authorized_keys")}),
        json!({"allow-overwrite": "true"}),
        json!({"all-proxy": "http://127.0.0.1:9"}),
    ] {
        desk.assert_refused("aria2.addUri", &json!([[url], options]));
        let within = json!([[{"methodName": "aria2.addUri", "params": [[url], options]}]]);
        let answer = desk.call(&[EXTENSION], "system.multicall", &within);
        assert!(
            answer["result"][0]["message"]
                .as_str()
                .is_some_and(|text| text.contains(KEY_FIRST)),
            "{answer}"
        );
    }
    for body in [
        json!({"url": url, "saveDir": outside}),
        json!({"url": url, "saveDir": "../.ssh"}),
    ] {
        let headers = [("X-Svc-Client", "x"), EXTENSION];
        let answer = http::ask(desk.service.address(), "POST", "/download", &headers, Some(&body));
        assert_eq!(answer.expect("it answers").status, 403, "{body}");
    }
    for (method, params) in [
        ("aria2.changeGlobalOption", json!([{"dir": outside}])),
        ("aria2.getGlobalOption", json!([])),
        ("aria2.getGlobalStat", json!([])),
        ("aria2.pauseAll", json!([])),
        ("aria2.purgeDownloadResult", json!([])),
        ("aria2.saveSession", json!([])),
        ("aria2.shutdown", json!([])),
    ] {
        desk.assert_refused(method, &params);
    }
    let below = json!({"dir": downloads.join("below"), "pause": "true"});
    let gid = desk.add(&[EXTENSION], &below);
    for options in [
        json!({"dir": outside}),
        json!({"out": "../x"}),
        json!({"allow-overwrite": "true"}),
    ] {
        desk.assert_refused("aria2.changeOption", &json!([gid, options]));
    }
    assert!(!outside.exists());
}

#[test]
fn an_extension_without_a_key_overwrites_nothing_whatever_the_settings_say() {
    let desk = Desk::new();
    let pass = desk.pass();
    let mut rpc = e2e::Rpc::connect(desk.service.address(), &pass).expect("the pass lets its user in");
    let revision = rpc.call("daemon.config.get", &json!({})).expect("it is read")["revision"].take();
    let patch = json!({"expectedRevision": revision, "values": {"file_exists_behavior": "overwrite"}});
    rpc.call("daemon.config.patch", &patch).expect("the user may");
    fs::write(desk.home.downloads().join("f"), "mine").expect("it is writable");
    let added = desk.call(
        &[EXTENSION],
        "aria2.addUri",
        &json!([["http://198.51.100.1/f"], {"pause": "true"}]),
    );
    let gid = added["result"].as_str().expect("it is added").to_owned();
    let options = desk.call(&[EXTENSION], "aria2.getOption", &json!([gid]))["result"].take();
    assert_eq!(
        (&options["allow-overwrite"], &options["auto-file-renaming"]),
        (&json!("false"), &json!("true"))
    );
}

#[test]
fn an_extension_without_a_key_sees_and_changes_only_what_it_added() {
    let desk = Desk::new();
    let paused = json!({"pause": "true"});
    let users = desk.add(&[], &paused);
    let others = desk.add(&[OTHER_EXTENSION], &paused);
    let own = desk.add(&[EXTENSION], &paused);
    for gid in [&users, &others] {
        for method in [
            "tellStatus",
            "getUris",
            "getFiles",
            "getPeers",
            "getOption",
            "unpause",
            "remove",
            "forceRemove",
            "removeDownloadResult",
        ] {
            desk.assert_refused(&format!("aria2.{method}"), &json!([gid]));
        }
        desk.assert_refused("aria2.changeOption", &json!([gid, {"split": "2"}]));
        desk.assert_refused("aria2.changeUri", &json!([gid, 1, [], ["http://evil.example/"]]));
    }
    desk.assert_refused("aria2.tellStatus", &json!(["00000000000000a1"]));
    let gids = |headers: &[(&str, &str)]| {
        let waiting = desk.call(headers, "aria2.tellWaiting", &json!([0, 100, ["gid"]]));
        let waiting = waiting["result"].as_array().expect("a list").clone();
        waiting
            .iter()
            .map(|it| it["gid"].as_str().expect("a GID").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(gids(&[]).len(), 3);
    assert_eq!(gids(&[EXTENSION]), std::slice::from_ref(&own));
    assert_eq!(gids(&[OTHER_EXTENSION]), [others]);
    assert_eq!(
        desk.call(&[EXTENSION], "aria2.tellStatus", &json!([own]))["result"]["status"],
        "paused"
    );
    // On its WebSocket it is the same, and so are notices.
    let stream = TcpStream::connect(desk.service.address()).expect("it listens");
    let mut socket = desk.socket(stream, Some(EXTENSION.1)).expect("it may connect");
    let refused = call_on(&mut socket, "aria2.tellStatus", &json!([users]));
    assert!(refused.to_string().contains(KEY_FIRST), "{refused}");
    assert_eq!(desk.call(&[], "aria2.unpause", &json!([users]))["result"], users);
    wait_until("the user's download ends", || {
        let status = desk.call(&[], "aria2.tellStatus", &json!([users, ["status"]]));
        status["result"]["status"] == "complete"
    });
    assert_eq!(call_on(&mut socket, "aria2.remove", &json!([own]))["result"], own);
    // Its mark outlives the service.
    let Desk { home, service, origin } = desk;
    let kept = json!({"jsonrpc": "2.0", "id": 1, "method": "aria2.addUri",
        "params": [["http://198.51.100.1/kept"], {"pause": "true"}]});
    let added = http::ask(service.address(), "POST", "/jsonrpc", &[EXTENSION], Some(&kept)).expect("it answers");
    let kept = added.body["result"].clone();
    assert!(kept.is_string(), "{}", added.body);
    assert_eq!(service.terminate().code, Some(0));
    let service = Service::start(home.new_desktop());
    let desk = Desk { home, service, origin };
    wait_until("the daemon is there", || {
        desk.call(&[], "aria2.getGlobalStat", &json!([]))["result"].is_object()
    });
    assert_eq!(
        desk.call(&[EXTENSION], "aria2.tellStatus", &json!([kept]))["result"]["gid"],
        kept
    );
    desk.assert_refused("aria2.tellStatus", &json!([users]));
}

#[test]
fn a_connection_from_before_gets_nothing_when_the_key_is_taken_away() {
    let home = Home::new();
    let service = Service::start(home.new_desktop().env("SVC_TOKEN", e2e::service::KEY));
    let mut request = format!("ws://{}/jsonrpc", service.address())
        .into_client_request()
        .expect("the URL is one");
    request.headers_mut().remove("Origin");
    let stream = other_user::connect(service.address());
    let (mut socket, _) = tungstenite::client(request, stream).expect("with a key, calls bring it");
    let refused = call_on(&mut socket, "aria2.getGlobalOption", &json!([]));
    assert_eq!(refused["error"]["message"], "Unauthorized");
    let cleared = service.rpc().call("agent.gateway.patch", &json!({"userToken": ""}));
    assert_eq!(cleared.expect("its owner may")["userTokenConfigured"], false);
    let refused = call_on(&mut socket, "aria2.getGlobalOption", &json!([]));
    assert!(refused.to_string().contains(KEY_FIRST), "{refused}");
}

#[test]
fn the_pass_of_the_lock_stands_for_a_key_and_not_with_an_origin() {
    let desk = Desk::new();
    let pass = desk.pass();
    let bearer = format!("Bearer {pass}");
    let token = format!("token:{pass}");
    let ask_options = json!({"id": 1, "method": "aria2.getGlobalOption", "params": [token]});
    // Another user who was given the pass by its owner.
    let as_other = |headers: &[(&str, &str)]| {
        let stream = other_user::connect(desk.service.address());
        http::ask_on(
            stream,
            desk.service.address(),
            "POST",
            "/jsonrpc",
            headers,
            Some(&ask_options),
        )
        .expect("it answers")
    };
    let let_in = as_other(&[("X-Svc-Token", &pass)]);
    assert!(let_in.body["result"].is_object(), "{}", let_in.body);
    assert_eq!(as_other(&[("X-Svc-Token", &pass), EXTENSION]).status, 403);
    let with_origin = desk.call(
        &[("X-Svc-Token", &pass), EXTENSION],
        "aria2.getGlobalOption",
        &json!([token]),
    );
    assert!(with_origin.to_string().contains(KEY_FIRST), "{with_origin}");
    // Management answers where it is switched on, although there is no key.
    let home = Home::new();
    let server = home.new_desktop();
    let file = home.data().join("agent/settings.json");
    let text = fs::read_to_string(&file)
        .expect("it was written")
        .replace("\"api\":false", "\"api\":true");
    fs::write(&file, text).expect("it is writable");
    let service = Service::start(server);
    let lock = fs::read_to_string(home.data().join("agent/agent.lock")).expect("it runs");
    let own = format!("Bearer {}", lock.lines().nth(1).expect("the pass"));
    let info = |headers: &[(&str, &str)]| {
        let answer = http::ask(service.address(), "GET", "/api/v1/info", headers, None).expect("it answers");
        answer.status
    };
    assert_eq!(info(&[("Authorization", &own)]), 200);
    assert_eq!(info(&[]), 403);
    assert_eq!(info(&[("Authorization", &bearer)]), 403, "another agent's pass");
    assert_eq!(info(&[("Authorization", &own), EXTENSION]), 403);
    assert_eq!(info(&[("Authorization", &own), ("X-Forwarded-For", "127.0.0.1")]), 403);
}
