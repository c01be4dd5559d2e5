//! The handshake with the daemon: both sides prove knowledge of the token, then compare versions.

use std::{sync::Arc, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use protocol::{
    ErrorCode, HelloParams, HelloResult, Id, MAX_REPLY_BYTES, Method, PROTOCOL_VERSION, Role, RpcError, agent,
    capability, encode_request,
    proof::{self, ChallengeParams, ChallengeResult, ProofRole, ProveParams, ProveResult},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, value::RawValue};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, Utf8Bytes, protocol::WebSocketConfig},
};

use super::{
    connect::{ByteStream, Connect, Found},
    error::{SessionError, unreadable},
};

const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

pub(super) type Socket = WebSocketStream<Box<dyn ByteStream>>;

/// An authenticated connection whose events are not read yet.
pub(super) struct Opened {
    pub(super) socket: Socket,
    pub(super) found: Found,
    pub(super) bearer: Arc<str>,
}

pub(super) async fn open(connect: &dyn Connect, version: &str) -> Result<Opened, SessionError> {
    let found = connect.find().await?;
    tokio::time::timeout(HANDSHAKE_TIME, authenticate(connect, found, version))
        .await
        .map_err(|_| SessionError::Silent)?
}

async fn authenticate(connect: &dyn Connect, found: Found, version: &str) -> Result<Opened, SessionError> {
    let stream = connect.dial(&found).await.map_err(SessionError::Dial)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_REPLY_BYTES))
        .max_frame_size(Some(MAX_REPLY_BYTES));
    let address = format!("ws://127.0.0.1:{}/rpc", found.port);
    let (mut socket, _) = client_async_with_config(address, stream, Some(config)).await?;
    let client_nonce = proof::nonce().map_err(|error| SessionError::Protocol(error.to_string()))?;
    let challenge = ChallengeParams {
        client_nonce: client_nonce.clone(),
    };
    let ChallengeResult {
        server_nonce,
        server_proof,
    } = ask(&mut socket, Method::SystemAuthChallenge, &challenge).await?;
    let is_proved = found
        .token
        .verify(ProofRole::Daemon, &client_nonce, &server_nonce, &server_proof);
    if !is_proved {
        return Err(SessionError::WrongProof);
    }
    let client_proof = found.token.prove(ProofRole::Agent, &client_nonce, &server_nonce);
    let _: ProveResult = ask(&mut socket, Method::SystemAuthProve, &ProveParams { client_proof }).await?;
    let bearer = found
        .token
        .prove(ProofRole::HttpCredential, &client_nonce, &server_nonce);
    hello(&mut socket, version).await?;
    Ok(Opened {
        socket,
        found,
        bearer: bearer.into(),
    })
}

/// Exchanges versions. A daemon of another version is asked to stop, so that the matching one can be started.
async fn hello(socket: &mut Socket, version: &str) -> Result<(), SessionError> {
    let hello = HelloParams {
        client_name: agent::CLIENT_NAME.to_owned(),
        client_version: version.to_owned(),
        min_protocol_version: PROTOCOL_VERSION,
        max_protocol_version: PROTOCOL_VERSION,
        requested_role: Role::Daemon,
        capabilities: vec![capability::CLIENT_SEQUENCES.to_owned()],
    };
    let theirs = match ask::<HelloResult>(socket, Method::SystemHello, &hello).await {
        Ok(hello) if hello.protocol_version == PROTOCOL_VERSION && hello.service_version == version => {
            return Ok(());
        }
        Ok(hello) => hello.service_version,
        Err(SessionError::Refused(error)) if error.application_code() == Some(ErrorCode::ProtocolIncompatible) => {
            error.message
        }
        Err(error) => return Err(error),
    };
    let _: serde::de::IgnoredAny = ask(socket, Method::SystemShutdown, &Map::new()).await?;
    let ours = version.to_owned();
    Err(SessionError::OtherVersion { theirs, ours })
}

/// One call while the session's reader and writer do not run yet.
async fn ask<R: DeserializeOwned>(
    socket: &mut Socket,
    method: Method,
    params: &(impl Serialize + Sync),
) -> Result<R, SessionError> {
    read_result(&request(socket, method, params).await?)
}

/// Sends a request and returns the text of its response. Notifications that arrive before it are dropped.
pub(super) async fn request(
    socket: &mut Socket,
    method: Method,
    params: &(impl Serialize + Sync),
) -> Result<Utf8Bytes, SessionError> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        method: Option<serde::de::IgnoredAny>,
    }
    let text = encode_request(&Id::Number(0), method.name(), Some(params));
    let text = text.map_err(|error| SessionError::Protocol(error.message))?;
    socket.send(Message::text(text)).await?;
    loop {
        let text = match socket.next().await.ok_or(SessionError::Closed)?? {
            Message::Text(text) => text,
            Message::Close(_) => return Err(SessionError::Closed),
            _ => continue,
        };
        let head: Head = serde_json::from_str(&text).map_err(unreadable)?;
        if head.method.is_none() {
            return Ok(text);
        }
    }
}

/// Deserializes in place: a snapshot may be larger than everything else in memory.
pub(super) fn read_result<'a, R: Deserialize<'a>>(reply: &'a str) -> Result<R, SessionError> {
    #[derive(Deserialize)]
    struct Outcome<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        error: Option<RpcError>,
    }
    let Outcome { result, error } = serde_json::from_str(reply).map_err(unreadable)?;
    match (result, error) {
        (Some(result), None) => serde_json::from_str(result.get()).map_err(unreadable),
        (_, Some(error)) => Err(SessionError::Refused(error)),
        (None, None) => Err(SessionError::Protocol("a reply has a result or an error".to_owned())),
    }
}

impl Opened {
    /// Asks the daemon to end.
    pub(super) async fn ask_to_stop(mut self) -> Result<(), SessionError> {
        let _: serde::de::IgnoredAny = ask(&mut self.socket, Method::SystemShutdown, &Map::new()).await?;
        Ok(())
    }
}
