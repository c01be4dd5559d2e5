//! aria2's interface in front of a real daemon: authorization, message forms, and notifications.

use agent::Edition;
use aria2::Kind;
use data_encoding::BASE64;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};

use crate::{
    client::Client,
    world::{KEY, PATIENCE, World},
};

/// A paused download whose server does not exist.
fn held(number: usize) -> Value {
    json!([[format!("http://127.0.0.1:9/held-{number}")], {"pause": "true"}])
}

impl World {
    /// The answer to a message.
    async fn post(&self, message: &Value) -> Value {
        let answer = self.send("POST /jsonrpc", &[], message.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json-rpc"));
        answer.json()
    }

    /// Calls a method with the key as its token.
    pub(crate) async fn aria2(&self, method: &str, params: Value) -> Result<Value, String> {
        outcome(self.post(&call(method, params)).await)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the params where they call")]
fn call(method: &str, params: Value) -> Value {
    let mut all = vec![json!(format!("token:{KEY}"))];
    all.extend(params.as_array().unwrap().iter().cloned());
    json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": all})
}

fn outcome(mut answer: Value) -> Result<Value, String> {
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!("q")));
    match answer.get_mut("error") {
        None => Ok(answer["result"].take()),
        Some(error) => {
            assert_eq!(error["code"], 1, "{error}");
            Err(error["message"].as_str().unwrap().to_owned())
        }
    }
}

#[tokio::test]
async fn a_call_right_after_the_start_waits_for_the_daemon() {
    let mut world = World::without_daemon(|config| config.preset_key = Some(crate::world::preset())).await;
    let address = world.address();
    let body = call("aria2.tellActive", json!([])).to_string();
    let asked = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = "POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let (answer, ()) = tokio::join!(timeout(PATIENCE, asked), world.run_daemon());
    let answer = answer.unwrap();
    assert!(answer.ends_with(r#""result":[]}"#), "{answer}");
    world.end().await;
}

struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    async fn open(world: &World) -> Self {
        let stream = TcpStream::connect(world.address()).await.unwrap();
        let url = format!("ws://{}/jsonrpc", world.address());
        Self(client_async(url, stream).await.unwrap().0)
    }

    async fn send(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn message(&mut self) -> Message {
        timeout(PATIENCE, self.0.next()).await.unwrap().unwrap().unwrap()
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(self.message().await.to_text().unwrap()).unwrap()
    }

    /// The next notification: method and GID.
    async fn notice(&mut self) -> (String, String) {
        let told = self.next().await;
        assert_eq!((&told["jsonrpc"], told.get("id")), (&json!("2.0"), None));
        let gid = told["params"][0]["gid"].as_str().unwrap();
        (
            told["method"].as_str().unwrap().replace("aria2.onDownload", ""),
            gid.to_owned(),
        )
    }
}

#[tokio::test]
async fn every_call_needs_the_key_but_those_that_list_methods() {
    let world = World::new().await;
    let ask = |method: &str, params: Value| json!({"id": 1, "method": method, "params": params});
    for open in ["system.listMethods", "system.listNotifications"] {
        assert!(world.post(&ask(open, json!([]))).await["result"].is_array());
        assert!(world.post(&ask(open, json!(["token:wrong-key-1"]))).await["result"].is_array());
    }
    let refused = json!({"code": 1, "message": "Unauthorized"});
    for params in [
        json!([]),
        json!(["token:wrong-key-1"]),
        json!(["token:"]),
        json!([KEY]),
        json!([7]),
    ] {
        assert_eq!(world.post(&ask("aria2.getVersion", params)).await["error"], refused);
    }
    // Only one of the two headers counts.
    let version = ask("aria2.getVersion", json!([])).to_string();
    let with = |name: &'static str, value: String| {
        let (world, version) = (&world, version.clone());
        async move { world.send("POST /jsonrpc", &[(name, &value)], version).await.json() }
    };
    let answer = with("X-Svc-Token", KEY.to_owned()).await;
    assert_eq!(answer["result"]["version"], "1.37.0");
    let features = answer["result"]["enabledFeatures"].as_array().unwrap();
    assert!(features.contains(&json!("SFTP")), "{features:?}");
    assert_eq!(with("Authorization", format!("Bearer {KEY}")).await["error"], refused);
    world.end().await;
}

#[tokio::test]
async fn calls_within_a_call_bring_their_own_token_or_share_the_header() {
    let world = World::new().await;
    let child = |params: Value| json!({"methodName": "aria2.getSessionInfo", "params": params});
    let token = format!("token:{KEY}");
    let calls = json!([[child(json!([token])), child(json!([])), {"methodName": "system.multicall", "params": [[]]},
        {"params": []}, 7, {"methodName": "nope", "params": [token]}, {"methodName": "system.listNotifications"}]]);
    let message = json!({"id": 1, "method": "system.multicall", "params": calls});
    let answer = world.post(&message).await;
    let results = answer["result"].as_array().unwrap();
    assert_eq!(results[0][0]["sessionId"].as_str().map(str::len), Some(40));
    let messages: Vec<_> = results[1..6]
        .iter()
        .map(|fault| fault["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            "Unauthorized",
            "Recursive system.multicall forbidden.",
            "Missing methodName.",
            "system.multicall expected struct.",
            "No such method: nope"
        ]
    );
    assert_eq!(results[6][0].as_array().map(Vec::len), Some(6));
    // A token of the outer call does not apply to inner calls.
    let around = json!({"id": 1, "method": "system.multicall", "params": [token, [child(json!([]))]]});
    assert_eq!(world.post(&around).await["result"][0]["message"], "Unauthorized");
    let shared = world
        .send("POST /jsonrpc", &[("X-Svc-Token", KEY)], around.to_string())
        .await;
    assert!(shared.json()["result"][0][0]["sessionId"].is_string());
    world.end().await;
}

#[tokio::test]
async fn a_batch_is_answered_in_order_with_errors_for_invalid_calls() {
    let world = World::new().await;
    let mut calls: Vec<Value> = (0..50).map(|number| call("aria2.addUri", held(number))).collect();
    calls[10] = call("aria2.addUri", json!([["http://127.0.0.1:9/x"], {"split": "0"}]));
    calls[20] = json!(7);
    calls[30] = call("aria2.addUri", json!([["gopher://127.0.0.1/x"]]));
    calls[40] = call("aria2.getGlobalStat", json!([]));
    let answers = world.post(&calls.into()).await;
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 50);
    assert_eq!(
        answers[10]["error"]["message"],
        "We encountered a problem while processing the option '--split'."
    );
    assert_eq!(
        (&answers[20]["error"]["code"], &answers[20]["id"]),
        (&json!(-32600), &Value::Null)
    );
    assert!(answers[30]["error"]["message"].as_str().unwrap().contains("gopher"));
    assert_eq!(answers[40]["result"]["numWaiting"], "37");
    let listed = world
        .aria2("aria2.tellWaiting", json!([0, 100, ["gid"]]))
        .await
        .unwrap();
    let made: Vec<_> = answers
        .iter()
        .filter(|answer| answer["result"].is_string())
        .map(|answer| &answer["result"])
        .collect();
    let listed: Vec<_> = listed.as_array().unwrap().iter().map(|task| &task["gid"]).collect();
    assert_eq!(made, listed);
    for (message, code) in [("{", -32700), ("7", -32600), ("{}", -32600)] {
        let answer = world.send("POST /jsonrpc", &[], message).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (200, &json!(code)));
    }
    assert_eq!(world.post(&json!([])).await, json!([]));
    // A call without an id is executed and answered nevertheless.
    let silent = json!({"method": "aria2.getVersion", "params": [format!("token:{KEY}")]});
    let answer = world.post(&silent).await;
    assert_eq!(
        (&answer["id"], &answer["result"]["version"]),
        (&Value::Null, &json!("1.37.0"))
    );
    world.end().await;
}

#[tokio::test]
async fn a_query_needs_the_key_always() {
    let world = World::new().await;
    let params = BASE64.encode(json!([format!("token:{KEY}")]).to_string().as_bytes());
    let params: String = url::form_urlencoded::byte_serialize(params.as_bytes()).collect();
    let line = format!("GET /jsonrpc?method=aria2.getVersion&id=q&params={params}");
    let answer = world.send(&line, &[], "").await;
    assert_eq!((answer.status, &answer.json()["id"]), (200, &json!("q")));
    assert!(answer.json()["result"]["version"].is_string());
    let bare = world.send("GET /jsonrpc?method=aria2.getVersion&id=q", &[], "").await;
    assert_eq!(bare.json()["error"]["message"], "Unauthorized");
    for site in ["cross-site", "same-site"] {
        assert_eq!(world.send(&line, &[("Sec-Fetch-Site", site)], "").await.status, 403);
    }
    assert_eq!(world.send(&line, &[("Sec-Fetch-Site", "none")], "").await.status, 200);
    // JSONP is not supported.
    let answer = world.send(&format!("{line}&jsoncallback=f"), &[], "").await;
    assert!(answer.body.starts_with(b"{"));
    world.end().await;
    let open = World::alone(Edition::Desktop, None).await;
    let answer = open.send("GET /jsonrpc?method=system.listMethods&id=q", &[], "").await;
    assert_eq!(answer.status, 403);
    let answer = open
        .send("POST /jsonrpc", &[], r#"{"id":1,"method":"aria2.getVersion"}"#)
        .await;
    assert!(answer.json()["result"].is_object());
    open.end().await;
}

#[tokio::test]
async fn wrong_tokens_are_counted_wherever_they_stand() {
    let wrong = |id: usize| json!({"id": id, "method": "aria2.getVersion", "params": ["token:wrong-key-1"]});
    let world = World::new().await;
    let many: Vec<_> = (0..11).map(wrong).collect();
    world.post(&many.into()).await;
    for line in ["POST /jsonrpc", "POST /rpc", "GET /jsonrpc"] {
        let answer = world.send(line, &[("X-Svc-Token", KEY)], "").await;
        assert_eq!(answer.status, 429, "{line}");
        assert!(answer.header("retry-after").is_some());
    }
    world.end().await;
    let world = World::new().await;
    let mut socket = Socket::open(&world).await;
    for number in 0..10 {
        socket.send(&wrong(number)).await;
        assert_eq!(socket.next().await["error"]["message"], "Unauthorized");
    }
    let Message::Close(Some(frame)) = socket.message().await else {
        panic!("the connection goes on")
    };
    assert_eq!(u16::from(frame.code), 1008);
    assert_eq!(world.get("/api/v1/info").await.status, 429);
    world.end().await;
}

#[tokio::test]
async fn xml_rpc_says_the_same() {
    let world = World::new().await;
    let ask = |method: &str, param: &str| {
        format!(
            "<methodCall><methodName>{method}</methodName><params><param><value><string>token:{KEY}</string></value></param>\
             {param}</params></methodCall>"
        )
    };
    let uris = "<param><value><array><data><value>http://127.0.0.1:9/a&amp;b</value></data></array></value></param>\
        <param><value><struct><member><name>pause</name><value>true</value></member></struct></value></param>";
    let made = world.send("POST /rpc", &[], ask("aria2.addUri", uris)).await;
    assert_eq!((made.status, made.header("content-type")), (200, Some("text/xml")));
    let made = String::from_utf8(made.body).unwrap();
    let gid = made.split("<string>").nth(1).unwrap().split('<').next().unwrap();
    let told = world.aria2("aria2.tellStatus", json!([gid])).await.unwrap();
    assert_eq!(told["files"][0]["uris"][0]["uri"], "http://127.0.0.1:9/a&b");
    let param = format!("<param><value>{gid}</value></param>");
    let told = world.send("POST /rpc", &[], ask("aria2.tellStatus", &param)).await;
    assert!(
        String::from_utf8(told.body)
            .unwrap()
            .contains("http://127.0.0.1:9/a&amp;b")
    );
    let fault = world
        .send(
            "POST /rpc",
            &[],
            ask("aria2.unpause", "<param><value>zz</value></param>"),
        )
        .await;
    let fault = String::from_utf8(fault.body).unwrap();
    assert!(
        fault.contains("<int>1</int>") && fault.contains("Invalid GID zz"),
        "{fault}"
    );
    let child = "<param><value><array><data><value><struct><member><name>methodName</name><value>aria2.getVersion</value>\
        </member></struct></value></data></array></value></param>";
    let within = ask("system.multicall", "").replace("</params>", &format!("{child}</params>"));
    let within = world.send("POST /rpc", &[], within).await;
    let within = String::from_utf8(within.body).unwrap();
    assert!(
        within.contains("<name>faultString</name><value><string>Unauthorized"),
        "{within}"
    );
    for bad in ["", "<x", "\u{0}", "{}"] {
        assert_eq!(world.send("POST /rpc", &[], bad).await.status, 400);
    }
    world.end().await;
}

#[tokio::test]
async fn a_chosen_gid_is_kept_over_a_restart_and_given_once() {
    let mut world = World::new().await;
    let chosen = json!([["http://127.0.0.1:9/a"], {"pause": "true", "gid": "00000000000000A1"}]);
    assert_eq!(
        world.aria2("aria2.addUri", chosen.clone()).await,
        Ok(json!("00000000000000a1"))
    );
    let again = world.aria2("aria2.addUri", chosen.clone()).await.unwrap_err();
    assert_eq!(again, "GID 00000000000000a1 is not unique");
    // Two concurrent calls with the same GID are decided by the daemon.
    let other = json!([["http://127.0.0.1:9/a"], {"pause": "true", "gid": "00000000000000b1"}]);
    let (one, two) = tokio::join!(
        world.aria2("aria2.addUri", other.clone()),
        world.aria2("aria2.addUri", other)
    );
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    world.end_daemon().await;
    let away = world
        .aria2("aria2.tellStatus", json!(["00000000000000a"]))
        .await
        .unwrap_err();
    assert!(away.contains("daemon"), "{away}");
    world.start_daemon().await;
    let told = world
        .aria2("aria2.tellStatus", json!(["00000000000000A", ["gid", "status"]]))
        .await;
    assert_eq!(told, Ok(json!({"gid": "00000000000000a1", "status": "paused"})));
    assert_eq!(
        world.aria2("aria2.remove", json!(["00000000000000a1"])).await,
        Ok(json!("00000000000000a1"))
    );
    assert!(world.aria2("aria2.addUri", chosen).await.is_ok());
    world.end().await;
}

#[tokio::test]
async fn notifications_reach_every_connection_in_order() {
    let world = World::new().await;
    let origin = Origin::start(vec![Resource::new("/f", Content::seeded(1, 5000))]);
    let (mut one, mut two) = (Socket::open(&world).await, Socket::open(&world).await);
    one.send(&call("aria2.addUri", json!([[origin.url("/f")], {"out": "told"}])))
        .await;
    let gid = one.next().await["result"].as_str().unwrap().to_owned();
    for socket in [&mut one, &mut two] {
        assert_eq!(socket.notice().await, ("Start".to_owned(), gid.clone()));
        assert_eq!(socket.notice().await, ("Complete".to_owned(), gid.clone()));
    }
    let told = world.aria2("aria2.tellStatus", json!([gid])).await.unwrap();
    let file = world.downloads().join("told");
    assert_eq!(
        (&told["status"], &told["errorCode"], &told["bitfield"]),
        (&json!("complete"), &json!("0"), &json!("80"))
    );
    assert_eq!(told["files"][0]["path"], file.display().to_string());
    assert_eq!(std::fs::read(file).unwrap().len(), 5000);
    world.end().await;
}

#[tokio::test]
async fn a_connection_ends_when_the_dialect_is_switched_off() {
    let world = World::new().await;
    let mut socket = Socket::open(&world).await;
    socket.send(&json!([])).await;
    assert_eq!(socket.next().await, json!([]));
    let mut client = Client::open(&world).await;
    client
        .call("agent.gateway.patch", json!({"jsonrpcEnabled": false}))
        .await;
    assert!(matches!(socket.message().await, Message::Close(Some(_))));
    for line in ["POST /jsonrpc", "GET /jsonrpc", "POST /rpc"] {
        assert_eq!(
            world.send(line, &[("X-Svc-Token", KEY)], "").await.status,
            404,
            "{line}"
        );
    }
    world.end().await;
}

#[tokio::test]
async fn the_order_changes_as_aria2_says() {
    let world = World::new().await;
    let mut gids = Vec::new();
    for number in 0..6 {
        gids.push(world.aria2("aria2.addUri", held(number)).await.unwrap());
    }
    let order = async || {
        let listed = world
            .aria2("aria2.tellWaiting", json!([0, 100, ["gid"]]))
            .await
            .unwrap();
        let place = |task: &Value| gids.iter().position(|gid| *gid == task["gid"]).unwrap();
        listed.as_array().unwrap().iter().map(place).collect::<Vec<_>>()
    };
    for (task, offset, how, expect, order_then) in [
        (5, 0, "POS_SET", 0, [5, 0, 1, 2, 3, 4]),
        (5, 1, "POS_CUR", 1, [0, 5, 1, 2, 3, 4]),
        (5, -1, "POS_END", 4, [0, 1, 2, 3, 5, 4]),
        (5, 100, "POS_SET", 5, [0, 1, 2, 3, 4, 5]),
        (5, -100, "POS_CUR", 0, [5, 0, 1, 2, 3, 4]),
        (0, 3, "POS_SET", 3, [5, 1, 2, 0, 3, 4]),
        (4, 0, "POS_END", 5, [5, 1, 2, 0, 3, 4]),
    ] {
        let moved = world
            .aria2("aria2.changePosition", json!([gids[task], offset, how]))
            .await;
        assert_eq!(moved, Ok(json!(expect)), "{task} {offset} {how}");
        assert_eq!(order().await, order_then, "{task} {offset} {how}");
    }
    let mut first = held(6);
    first.as_array_mut().unwrap().push(json!(1));
    gids.push(world.aria2("aria2.addUri", first).await.unwrap());
    let listed = world.aria2("aria2.tellWaiting", json!([0, 2, ["gid"]])).await.unwrap();
    assert_eq!(listed[1]["gid"], gids[6]);
    let unknown = world
        .aria2("aria2.changePosition", json!([gids[0], 0, "POS_NOW"]))
        .await
        .unwrap_err();
    assert_eq!(unknown, "Illegal argument.");
    world.end().await;
}

#[tokio::test]
async fn options_are_read_changed_and_held_for_those_to_come() {
    let world = World::new().await;
    let options = json!({"pause": "true", "split": "3", "http-passwd": "hidden", "http-user": "u", "header":
        ["A: b", "Authorization: hidden"], "dir": "/tmp/somewhere", "out": "sub/name"});
    let gid = world
        .aria2("aria2.addUri", json!([["http://127.0.0.1:9/a"], options]))
        .await
        .unwrap();
    let shown = world.aria2("aria2.getOption", json!([gid])).await.unwrap();
    assert_eq!(
        (&shown["split"], &shown["dir"], &shown["out"]),
        (&json!("3"), &json!("/tmp/somewhere/sub"), &json!("name"))
    );
    let hidden = "A: ***\nAuthorization: ***\n";
    assert_eq!((&shown["header"], &shown["http-user"]), (&json!(hidden), &json!("u")));
    assert!(!shown.to_string().contains("hidden"));
    let change =
        json!([gid, {"split": "7", "out": "other", "dir": "/tmp/elsewhere", "max-download-limit": "1K", "nope": "x"}]);
    assert_eq!(world.aria2("aria2.changeOption", change).await, Ok(json!("OK")));
    let shown = world.aria2("aria2.getOption", json!([gid])).await.unwrap();
    let of = |name: &str| shown[name].as_str().unwrap().to_owned();
    assert_eq!(
        [of("split"), of("out"), of("dir"), of("max-download-limit")],
        ["7", "other", "/tmp/elsewhere", "1024"]
    );
    let files = world.aria2("aria2.getFiles", json!([gid])).await.unwrap();
    assert_eq!(files[0]["path"], "/tmp/elsewhere/other");
    // A proxy that no download could use is refused before it is a default.
    for (unusable, why) in [
        (
            json!({"all-proxy": "ftp://proxy.test:21"}),
            "a proxy of scheme ftp is not supported",
        ),
        (json!({"http-proxy": "http://"}), "'--http-proxy'"),
        (
            json!({"https-proxy": "socks4://p.test", "https-proxy-user": "u"}),
            "use socks5",
        ),
    ] {
        let refused = world.aria2("aria2.changeGlobalOption", json!([unusable])).await;
        let message = refused.unwrap_err();
        assert!(message.contains(why), "{message}");
    }
    let global = world.aria2("aria2.getGlobalOption", json!([])).await.unwrap();
    assert_eq!(
        (&global["all-proxy"], &global["http-proxy"]),
        (&json!(null), &json!(null))
    );
    // Defaults for new downloads, and settings of the service.
    let global =
        json!([{"referer": "http://from.test", "max-concurrent-downloads": "3", "max-overall-download-limit": "1M"}]);
    assert_eq!(world.aria2("aria2.changeGlobalOption", global).await, Ok(json!("OK")));
    let global = world.aria2("aria2.getGlobalOption", json!([])).await.unwrap();
    assert_eq!(
        (
            &global["max-concurrent-downloads"],
            &global["max-overall-download-limit"]
        ),
        (&json!("3"), &json!("1048576"))
    );
    assert_eq!(
        (&global["referer"], &global["dir"]),
        (
            &json!("http://from.test"),
            &json!(world.downloads().display().to_string())
        )
    );
    let gid = world.aria2("aria2.addUri", held(1)).await.unwrap();
    let shown = world.aria2("aria2.getOption", json!([gid])).await.unwrap();
    assert_eq!(shown["referer"], "http://from.test");
    world.end().await;
}

#[tokio::test]
async fn uris_are_taken_away_and_put_in() {
    let world = World::new().await;
    let mirrors = json!([["http://127.0.0.1:9/a", "http://127.0.0.1:9/b"], {"pause": "true"}]);
    let gid = world.aria2("aria2.addUri", mirrors).await.unwrap();
    let uris = async || {
        let listed = world.aria2("aria2.getUris", json!([gid])).await.unwrap();
        let last = |entry: &Value| entry["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        listed.as_array().unwrap().iter().map(last).collect::<String>()
    };
    assert_eq!(uris().await, "ab");
    for (gone, new, position, expect, then) in [
        (
            json!(["http://127.0.0.1:9/a"]),
            json!(["http://127.0.0.1:9/c"]),
            Some(0),
            json!([1, 1]),
            "cb",
        ),
        (json!([]), json!(["http://127.0.0.1:9/d"]), None, json!([0, 1]), "cbd"),
        (
            json!(["http://127.0.0.1:9/nope"]),
            json!(["bad", 7]),
            None,
            json!([0, 0]),
            "cbd",
        ),
    ] {
        let mut params = vec![gid.clone(), json!(1), gone, new];
        params.extend(position.map(|position: i64| json!(position)));
        assert_eq!(world.aria2("aria2.changeUri", params.into()).await, Ok(expect));
        assert_eq!(uris().await, then);
    }
    assert_eq!(
        world
            .aria2("aria2.changeUri", json!([gid, 2, [], []]))
            .await
            .unwrap_err(),
        "fileIndex is out of range"
    );
    world.end().await;
}

#[tokio::test]
async fn a_metalink_becomes_a_download_for_each_of_its_files() {
    let world = World::new().await;
    let sum = "ab".repeat(32);
    let document = format!(
        "<metalink xmlns='urn:ietf:params:xml:ns:metalink'><file name='x/one'><hash type='sha-256'>{sum}</hash>\
         <url>http://127.0.0.1:9/1</url><url>http://127.0.0.1:9/2</url></file><file name='two'>\
         <url>http://127.0.0.1:9/3</url></file></metalink>"
    );
    let encoded = BASE64.encode(document.as_bytes());
    let gids = world
        .aria2("aria2.addMetalink", json!([encoded, {"pause": "true"}]))
        .await
        .unwrap();
    let first = world
        .aria2("aria2.tellStatus", json!([gids[0], ["files", "status"]]))
        .await
        .unwrap();
    let path = world.downloads().join("x/one").display().to_string();
    assert_eq!(
        (&first["status"], &first["files"][0]["path"]),
        (&json!("paused"), &json!(path))
    );
    assert_eq!(first["files"][0]["uris"].as_array().map(Vec::len), Some(2));
    let shown = world.aria2("aria2.getOption", json!([gids[0]])).await.unwrap();
    assert_eq!(shown["checksum"], format!("sha-256={sum}"));
    assert_eq!(gids.as_array().map(Vec::len), Some(2));
    for (bad, why) in [
        ("!!", "The document is not in base64."),
        ("PA==", "Could not parse Metalink XML document."),
    ] {
        assert_eq!(world.aria2("aria2.addMetalink", json!([bad])).await.unwrap_err(), why);
    }
    let climbing = BASE64.encode(document.replace("x/one", "../x/one").as_bytes());
    let refused = world.aria2("aria2.addMetalink", json!([climbing])).await.unwrap_err();
    assert!(refused.contains("\"../x/one\" leaves its directory"), "{refused}");
    let torrent = world.aria2("aria2.addTorrent", json!(["ZQ=="])).await.unwrap_err();
    assert!(torrent.contains("Bencode decoding failed"));
    world.end().await;
}

/// Events arrive on one thread and are read on another: neither may hold a lock that the other waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn in_process_subscribers_receive_every_notification() {
    const DOWNLOADS: usize = 500;
    let world = World::new().await;
    let aria2 = world.agent.aria2();
    let mut notices = aria2.notices();
    let add = json!({"methodName": "aria2.addUri", "params": [["http://127.0.0.1:1/f"], {"max-tries": "1"}]});
    let added: Vec<Value> = aria2
        .call("system.multicall", vec![vec![add; DOWNLOADS].into()])
        .await
        .unwrap();
    assert_eq!(added.len(), DOWNLOADS);
    let mut failed = 0;
    while failed < DOWNLOADS {
        let told = timeout(PATIENCE, notices.next()).await.unwrap();
        assert!(!told.is_empty(), "something was lost");
        failed += told.iter().filter(|(kind, _)| *kind == Kind::Error).count();
    }
    world.end().await;
}

#[tokio::test]
async fn clients_can_shut_down_a_server_but_not_a_desktop() {
    let world = World::new().await;
    assert_eq!(world.aria2("aria2.shutdown", json!([])).await, Ok(json!("OK")));
    assert_eq!(
        timeout(PATIENCE, world.agent.shutdown_requested()).await,
        Ok(agent::Ending::InOrder)
    );
    assert_eq!(world.aria2("aria2.forceShutdown", json!([])).await, Ok(json!("OK")));
    assert_eq!(
        timeout(PATIENCE, world.agent.shutdown_requested()).await,
        Ok(agent::Ending::AtOnce)
    );
    world.end().await;
    let desktop = World::alone(Edition::Desktop, Some(KEY)).await;
    let refused = desktop.aria2("aria2.shutdown", json!([])).await.unwrap_err();
    assert!(refused.contains("headless"), "{refused}");
    desktop.end().await;
}
