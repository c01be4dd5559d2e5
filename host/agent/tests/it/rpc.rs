//! `/rpc` as browsers and tools use it.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _},
};

use crate::world::{KEY, PATIENCE, World};

struct Client {
    socket: WebSocketStream<TcpStream>,
    events: Vec<Value>,
}

async fn upgrade(world: &World, headers: &[(&'static str, &str)]) -> Result<(Client, Option<String>), u16> {
    let address = world.agent.local_addr();
    let mut request = format!("ws://{address}/rpc").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let stream = TcpStream::connect(address).await.unwrap();
    match client_async(request, stream).await {
        Ok((socket, response)) => {
            let chosen = response.headers().get("sec-websocket-protocol");
            let chosen = chosen.map(|value| value.to_str().unwrap().to_owned());
            let events = Vec::new();
            Ok((Client { socket, events }, chosen))
        }
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

impl Client {
    async fn open(world: &World) -> Self {
        let bearer = format!("Bearer {KEY}");
        let (mut client, _) = upgrade(world, &[("authorization", &bearer)]).await.unwrap();
        let hello = json!({"clientName": "test", "clientVersion": "1", "minProtocolVersion": 1,
            "maxProtocolVersion": 1, "requestedRole": "agent"});
        let greeted = client.call("system.hello", hello.clone()).await;
        assert_eq!(greeted["result"]["role"], "agent", "{greeted}");
        let again = client.call("system.hello", hello).await;
        assert_eq!(again["error"]["data"]["code"], "conflict");
        client
    }

    async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    async fn next(&mut self) -> Message {
        timeout(PATIENCE, self.socket.next()).await.unwrap().unwrap().unwrap()
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send(&request.to_string()).await;
        self.reply().await
    }

    async fn reply(&mut self) -> Value {
        loop {
            let Message::Text(text) = self.next().await else {
                continue;
            };
            let frame: Value = serde_json::from_str(&text).unwrap();
            if frame["method"] == "service.event" {
                self.events.push(frame["params"].clone());
            } else {
                return frame;
            }
        }
    }
}

#[tokio::test]
async fn who_reads_a_reply_has_what_the_call_did() {
    let world = World::new().await;
    let mut client = Client::open(&world).await;
    let snapshot = client.call("system.snapshot", json!({})).await["result"].clone();
    assert_eq!(snapshot["body"]["role"], "agent");
    assert_eq!(snapshot["body"]["snapshot"]["daemonConnected"], true);
    let mut last = snapshot["sequence"].as_u64().unwrap();
    for number in 0..50 {
        let request = json!({"url": format!("http://127.0.0.1:9/{number}"), "startPaused": true});
        let made = client.call("daemon.task.create", json!({"request": request})).await;
        let id = made["result"]["taskId"].clone();
        let seen = client.events.iter().any(|told| {
            let inner = &told["event"]["event"];
            inner["type"] == "daemon" && inner["data"]["data"]["taskId"] == id
        });
        assert!(seen, "{made}");
        let task = client.call("daemon.task.get", json!({"taskId": id})).await;
        assert_eq!(task["result"]["taskId"], id);
    }
    for told in &client.events {
        assert_eq!(told["sequence"].as_u64(), Some(last + 1));
        assert_eq!(told["epoch"], snapshot["epoch"]);
        last += 1;
    }
    let tasks = client.call("daemon.task.list", json!({})).await;
    assert_eq!(tasks["result"].as_array().unwrap().len(), 50);
    world.end().await;
}

#[tokio::test]
async fn browsers_bring_the_key_as_a_protocol_and_come_from_the_same_origin() {
    let world = World::new().await;
    let key = data_encoding::BASE64URL_NOPAD.encode(KEY.as_bytes());
    let offer = format!("svc.rpc.v1, svc.token.{key}");
    let same = format!("http://{}", world.agent.local_addr());
    let offered = |origin: &'static str| vec![("sec-websocket-protocol", offer.as_str()), ("origin", origin)];
    let (_, chosen) = upgrade(&world, &[("sec-websocket-protocol", &offer), ("origin", &same)])
        .await
        .unwrap_or_else(|status| panic!("{status}"));
    assert_eq!(chosen.as_deref(), Some("svc.rpc.v1"));
    for origin in ["https://evil.test", "null", "chrome-extension://a"] {
        assert_eq!(upgrade(&world, &offered(origin)).await.err(), Some(403), "{origin}");
    }
    let alone = format!("svc.token.{key}");
    assert_eq!(
        upgrade(&world, &[("sec-websocket-protocol", &alone)]).await.err(),
        Some(401)
    );
    assert_eq!(upgrade(&world, &[]).await.err(), Some(401));
    world.end().await;
}

#[tokio::test]
async fn what_is_no_request_is_refused_as_the_envelope_says() {
    let world = World::new().await;
    let bearer = format!("Bearer {KEY}");
    let (mut client, _) = upgrade(&world, &[("authorization", &bearer)])
        .await
        .unwrap_or_else(|status| panic!("{status}"));
    let early = client.call("daemon.task.list", json!({})).await;
    assert_eq!(early["error"]["data"]["code"], "conflict");
    drop(client);
    let mut client = Client::open(&world).await;
    for (frame, code) in [("{", -32700), ("[]", -32600), (r#"{"jsonrpc":"2.0","id":1}"#, -32600)] {
        client.send(frame).await;
        let refused = client.reply().await;
        assert_eq!(
            (&refused["error"]["code"], &refused["id"]),
            (&json!(code), &Value::Null),
            "{frame}"
        );
    }
    assert_eq!(client.call("moon.rise", json!({})).await["error"]["code"], -32601);
    let hidden = client
        .call("daemon.siteAuth.get", json!({"site": "https://a.test"}))
        .await;
    assert_eq!(hidden["error"]["data"]["code"], "unsupported");
    client.send(&" ".repeat(1024 * 1024)).await;
    loop {
        if let Message::Close(frame) = client.next().await {
            assert_eq!(u16::from(frame.unwrap().code), 1009);
            break;
        }
    }
    world.end().await;
}

#[tokio::test]
async fn switches_act_at_once_and_a_new_key_ends_the_sessions_of_the_old_one() {
    let world = World::new().await;
    let (mut one, mut other) = (Client::open(&world).await, Client::open(&world).await);
    let off = one.call("agent.gateway.patch", json!({"apiEnabled": false})).await;
    assert_eq!(off["result"]["apiEnabled"], false);
    let gone = world.get("/api/v1/info").await;
    assert_eq!(
        (gone.status, gone.json()["message"].as_str()),
        (404, Some("unknown endpoint"))
    );
    let bad = one
        .call("agent.gateway.patch", json!({"apiEnabled": true, "userToken": "weak"}))
        .await;
    assert_eq!(bad["error"]["data"]["field"], "userToken");
    assert_eq!(
        one.call("agent.gateway.get", json!({})).await["result"]["apiEnabled"],
        false
    );
    let new = one
        .call(
            "agent.gateway.patch",
            json!({"apiEnabled": true, "userToken": "another-key-2"}),
        )
        .await;
    assert!(new["result"]["userTokenConfigured"].as_bool().unwrap());
    let shown = one.call("agent.gateway.revealToken", json!({})).await;
    assert_eq!(shown["result"]["userToken"], "another-key-2");
    loop {
        if let Message::Close(frame) = other.next().await {
            assert_eq!(u16::from(frame.unwrap().code), 1008);
            break;
        }
    }
    assert_eq!(world.get("/api/v1/info").await.status, 401);
    let revision = one
        .call("agent.preferences.patch", json!({"values": {"theme": "dark"}}))
        .await;
    assert_eq!(revision["result"], json!({"ok": true, "revision": 1}));
    world.end().await;
}
