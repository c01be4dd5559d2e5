//! One request and the head of its response.

use std::{io, net::IpAddr, time::SystemTime};

use bytes::Buf as _;
use egress::route::Stream;
use tokio::{
    io::AsyncWriteExt as _,
    time::{Duration, Instant, timeout_at},
};
use transfer::{Failure, failure::FailureKind};

use crate::client::{
    body::Body,
    connect::Route,
    connection::{Connection, broken, take_idle},
    head::{MAX_HEAD_BYTES, ResponseHead},
    shared::Shared,
};

/// Interim (1xx) responses accepted before the final one.
const MAX_INTERIM: usize = 8;

/// Read size for heads: more would copy body bytes through the head's buffer.
const HEAD_READ_BYTES: usize = 4 * 1024;

/// A response whose body has not been read.
pub(crate) struct Response {
    pub(crate) head: ResponseHead,
    pub(crate) body: Body,
    /// Time from the request, on an open connection, to the head.
    pub(crate) delay: Duration,
    /// The peer's address; unknown behind a proxy.
    pub(crate) address: Option<IpAddr>,
}

impl Connection {
    /// Sends `request` along `route`, over an idle connection if there is one, and reads the head of the response.
    /// `may_repeat` says that the request may be sent again if an idle connection turns out to be closed.
    pub(crate) async fn exchange(
        shared: &Shared,
        route: &Route,
        request: &[u8],
        may_repeat: bool,
    ) -> Result<Response, Failure> {
        while let Some(idle) = if may_repeat { take_idle(route) } else { None } {
            match idle.request(shared, request).await {
                Err(failure) if failure.kind == FailureKind::Network => {}
                answered => return answered,
            }
        }
        Self::open(shared, route).await?.request(shared, request).await
    }

    async fn request(mut self, shared: &Shared, request: &[u8]) -> Result<Response, Failure> {
        let limit = shared.config.response_timeout;
        let asked_at = Instant::now();
        let host = self.key.host.clone();
        let answered = timeout_at(asked_at + limit, async {
            self.send(request)
                .await
                .map_err(|error| broken(&self.key.host, &error))?;
            self.receive_head().await
        });
        let head = answered.await.unwrap_or_else(|_| {
            Err(Failure::new(
                FailureKind::Timeout,
                format!("{host} did not answer within {limit:?}"),
            ))
        })?;
        let framing = head.framing()?;
        let keeps_alive = head.keeps_alive();
        let address = self.address;
        Ok(Response {
            head,
            address,
            body: Body::new(self, framing, keeps_alive),
            delay: asked_at.elapsed(),
        })
    }

    async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Tcp(tcp) => tcp.write_all(request).await,
            Stream::Layered(layers) => {
                layers.write_all(request).await?;
                layers.flush().await
            }
        }
    }

    async fn receive_head(&mut self) -> Result<ResponseHead, Failure> {
        for _ in 0..=MAX_INTERIM {
            let head = self.receive_one_head().await?;
            match head.status {
                101 => break,
                100..=199 => {}
                _ => return Ok(head),
            }
        }
        Err(Failure::new(
            FailureKind::MalformedResponse,
            format!("{} never got to a final answer", self.key.host),
        ))
    }

    async fn receive_one_head(&mut self) -> Result<ResponseHead, Failure> {
        loop {
            if let Some((head, length)) = ResponseHead::parse(&self.received)? {
                self.received.advance(length);
                return Ok(head);
            }
            let room = HEAD_READ_BYTES
                .min(MAX_HEAD_BYTES.saturating_sub(self.received.len()))
                .max(1);
            let read = std::future::poll_fn(|cx| self.poll_receive(cx, room)).await;
            match read {
                Ok(0) => {
                    let error = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(broken(&self.key.host, &error));
                }
                Ok(_) => {}
                Err(error) => return Err(broken(&self.key.host, &error)),
            }
        }
    }
}

/// The time now, for dates in responses.
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
