//! A client of the agent's `/rpc`: one call at a time, events passed over.

use std::net::TcpStream;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket, client::IntoClientRequest as _, http::HeaderValue};

use crate::service::PATIENCE;

/// A connection that has said hello.
#[derive(Debug)]
pub struct Rpc {
    socket: WebSocket<TcpStream>,
    calls: u64,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum RpcError {
    /// It was refused: the error object.
    Refused(Value),
    /// The connection broke before the reply: whether the call had its effect is not known.
    Broken(Box<tungstenite::Error>),
}

impl From<tungstenite::Error> for RpcError {
    fn from(error: tungstenite::Error) -> Self {
        Self::Broken(Box::new(error))
    }
}

impl Rpc {
    /// Connects with an access key and says hello.
    pub fn connect(address: &str, key: &str) -> Result<Self, RpcError> {
        let stream = TcpStream::connect(address).map_err(tungstenite::Error::from)?;
        stream
            .set_read_timeout(Some(PATIENCE))
            .map_err(tungstenite::Error::from)?;
        stream.set_nodelay(true).map_err(tungstenite::Error::from)?;
        let mut request = format!("ws://{address}/rpc").into_client_request()?;
        let bearer = HeaderValue::try_from(format!("Bearer {key}")).expect("the key is plain text");
        request.headers_mut().insert("Authorization", bearer);
        let (socket, _) = tungstenite::client(request, stream).map_err(|error| match error {
            tungstenite::HandshakeError::Failure(error) => error,
            tungstenite::HandshakeError::Interrupted(_) => tungstenite::Error::ConnectionClosed,
        })?;
        let mut rpc = Self { socket, calls: 0 };
        let hello = json!({
            "clientName": "tests", "clientVersion": "1", "minProtocolVersion": 1, "maxProtocolVersion": 1,
            "requestedRole": "agent",
        });
        rpc.call("system.hello", &hello)?;
        Ok(rpc)
    }

    /// Calls and waits for the reply.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, RpcError> {
        self.calls += 1;
        let id = self.calls;
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.socket.send(Message::text(frame.to_string()))?;
        loop {
            let Message::Text(text) = self.socket.read()? else {
                continue;
            };
            let mut frame: Value = serde_json::from_str(&text).expect("frames are JSON");
            if frame["id"] != id {
                continue;
            }
            return match frame.get_mut("error") {
                Some(error) => Err(RpcError::Refused(error.take())),
                None => Ok(frame["result"].take()),
            };
        }
    }

    /// Reads until the service closes the connection; its code and reason.
    pub fn closed(mut self) -> Option<(u16, String)> {
        loop {
            match self.socket.read() {
                Ok(Message::Close(frame)) => {
                    return frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}
