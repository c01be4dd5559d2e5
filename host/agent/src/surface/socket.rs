//! The WebSocket of both RPC interfaces: the upgrade, and messages in small frames, so that a thousand readers need
//! little memory.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use protocol::{MAX_REQUEST_BYTES, close};
use rest::Problem;
use tokio::time::timeout;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        handshake::server::create_response_with_body,
        protocol::{
            CloseFrame, Role, WebSocketConfig,
            frame::{
                Frame,
                coding::{Data, OpCode},
            },
        },
    },
};

use crate::{gate::credentials::RPC_PROTOCOL, projection::tasks::PIECE_BYTES};

/// Buffer of one socket; small because there are many, mostly idle.
const BUFFER_BYTES: usize = 8 * 1024;

/// How long a reader may leave its socket full. A slow reader that reads within this time gets a gap instead.
const SEND_TIME: Duration = Duration::from_mins(1);

/// How long the peer may take to answer a close frame.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) enum End {
    /// The peer closed the connection.
    Gone,
    Close(u16, &'static str),
}

type Raw = WebSocketStream<TokioIo<Upgraded>>;

/// The response to an upgrade request, and the upgrade unless it is refused.
pub(crate) fn accept(request: &mut Request) -> (Response, Option<OnUpgrade>) {
    let mut response = match create_response_with_body(request, Body::empty) {
        Ok(response) => response,
        Err(error) => {
            let mut refused = Problem::new(StatusCode::UPGRADE_REQUIRED, error.to_string()).into_response();
            let headers = refused.headers_mut();
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            return (refused, None);
        }
    };
    let offered = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = offered
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','));
    if offered.any(|protocol| protocol.trim() == RPC_PROTOCOL) {
        let chosen = HeaderValue::from_static(RPC_PROTOCOL);
        response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, chosen);
    }
    (response, Some(hyper::upgrade::on(request)))
}

pub(crate) async fn open(upgraded: Upgraded) -> (Sender, Receiver) {
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(MAX_REQUEST_BYTES - 1))
        .max_frame_size(Some(MAX_REQUEST_BYTES - 1));
    let socket = Raw::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    let (sink, stream) = socket.split();
    (Sender(sink), Receiver(stream))
}

pub(crate) struct Sender(SplitSink<Raw, Message>);

impl Sender {
    pub(crate) async fn send(&mut self, text: impl Into<Bytes>) -> Result<(), End> {
        self.feed(frames(text.into())).await?;
        self.flush().await
    }

    /// Sends a message frame by frame; it may stay buffered until [`Sender::flush`].
    pub(crate) async fn feed(&mut self, pieces: impl Iterator<Item = Bytes>) -> Result<(), End> {
        let mut pieces = pieces.peekable();
        let mut kind = Data::Text;
        while let Some(piece) = pieces.next() {
            let frame = Frame::message(piece, OpCode::Data(kind), pieces.peek().is_none());
            in_time(self.0.feed(Message::Frame(frame))).await?;
            kind = Data::Continue;
        }
        Ok(())
    }

    pub(crate) async fn flush(&mut self) -> Result<(), End> {
        in_time(self.0.flush()).await
    }

    /// Sends a close frame and waits for the peer's.
    pub(crate) async fn close(mut self, code: u16, reason: &'static str, mut frames: Receiver) {
        let frame = CloseFrame {
            code: code.into(),
            reason: reason.into(),
        };
        if in_time(self.0.send(Message::Close(Some(frame)))).await.is_ok() {
            let silence = async { while !matches!(frames.next().await, Err(End::Gone)) {} };
            let _out_of_patience = timeout(FAREWELL, silence).await;
        }
    }
}

/// Splits a text into small frame payloads. The socket copies what it sends, so small frames limit that copy.
pub(crate) fn frames(text: Bytes) -> impl Iterator<Item = Bytes> {
    let starts = (0..text.len()).step_by(PIECE_BYTES);
    starts.map(move |start| text.slice(start..text.len().min(start + PIECE_BYTES)))
}

async fn in_time(sending: impl Future<Output = Result<(), Error>>) -> Result<(), End> {
    let sent = timeout(SEND_TIME, sending).await;
    sent.map_err(|_| End::Gone)?.map_err(|_| End::Gone)
}

pub(crate) struct Receiver(SplitStream<Raw>);

impl Receiver {
    /// The next text message. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Utf8Bytes, End> {
        loop {
            return match self.0.next().await {
                Some(Ok(Message::Text(text))) => Ok(text),
                Some(Ok(Message::Binary(_))) => Err(End::Close(close::UNSUPPORTED, "text frames only")),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Err(Error::Capacity(_))) => Err(End::Close(close::TOO_BIG, "the frame is too large")),
                Some(Ok(Message::Close(_)) | Err(_)) | None => Err(End::Gone),
            };
        }
    }
}
