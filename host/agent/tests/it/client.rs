//! A client of `/rpc`.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _},
};

use crate::world::{KEY, PATIENCE, World};

pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<TcpStream>,
    pub(crate) events: Vec<Value>,
    /// What the service said of itself.
    pub(crate) hello: Value,
}

pub(crate) async fn upgrade(world: &World, headers: &[(&'static str, &str)]) -> Result<(Client, Option<String>), u16> {
    let address = world.address();
    let mut request = format!("ws://{address}/rpc").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let stream = TcpStream::connect(address).await.unwrap();
    match client_async(request, stream).await {
        Ok((socket, response)) => {
            let chosen = response.headers().get("sec-websocket-protocol");
            let chosen = chosen.map(|value| value.to_str().unwrap().to_owned());
            let client = Client {
                socket,
                events: Vec::new(),
                hello: Value::Null,
            };
            Ok((client, chosen))
        }
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

impl Client {
    pub(crate) async fn open(world: &World) -> Self {
        let bearer = format!("Bearer {KEY}");
        let (mut client, _) = upgrade(world, &[("authorization", &bearer)]).await.unwrap();
        let hello = json!({"clientName": "test", "clientVersion": "1", "minProtocolVersion": 1,
            "maxProtocolVersion": 1, "requestedRole": "agent"});
        let greeted = client.call("system.hello", hello.clone()).await;
        assert_eq!(greeted["result"]["role"], "agent", "{greeted}");
        client.hello = greeted["result"].clone();
        let again = client.call("system.hello", hello).await;
        assert_eq!(again["error"]["data"]["code"], "conflict");
        client
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Message {
        timeout(PATIENCE, self.socket.next()).await.unwrap().unwrap().unwrap()
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send(&request.to_string()).await;
        self.reply().await
    }

    pub(crate) async fn reply(&mut self) -> Value {
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

    /// Creates large tasks, about a mebibyte per call; each call causes one event. Returns their number.
    pub(crate) async fn make_large(&mut self, calls: usize) -> usize {
        const TASKS: usize = 100;
        let path = "x".repeat(9000);
        for call in 0..calls {
            let task =
                |number| json!({"url": format!("http://127.0.0.1:9/{call}/{number}?{path}"), "startPaused": true});
            let requests: Vec<_> = (0..TASKS).map(task).collect();
            let made = self.call("daemon.task.createMany", json!({"requests": requests})).await;
            assert!(made["result"].is_object(), "{made}");
        }
        calls * TASKS
    }
}
