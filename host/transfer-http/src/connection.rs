//! One connection at a time: sending a request, reading the head that answers it, and keeping idle connections.

use std::{
    cell::RefCell,
    collections::HashMap,
    io,
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll, ready},
    time::SystemTime,
};

use bytes::{Buf as _, BytesMut};
use egress::{Reach, dial::host_of};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf},
    time::{Duration, Instant, timeout_at},
};
use transfer::{Failure, failure::FailureKind};

use crate::{
    Shared,
    body::Body,
    connect::{Key, Route, Stream, connect},
    head::{MAX_HEAD_BYTES, ResponseHead},
};

/// Interim (1xx) answers read before the real one.
const MAX_INTERIM: usize = 8;

/// Read at a time while a head is awaited: more would copy body bytes through the head's buffer.
const HEAD_READ_BYTES: usize = 4 * 1024;

/// How long an idle connection is kept. Common servers close theirs after 5 to 75 seconds.
const IDLE_AGE: Duration = Duration::from_secs(10);

/// The most idle connections kept on one lane.
const MAX_IDLE: usize = 32;

/// An open connection and the bytes that came over it but have not been used.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) received: BytesMut,
    pub(crate) key: Key,
    /// The address that it was made to; not known behind a proxy.
    pub(crate) address: Option<IpAddr>,
    /// How far it was allowed to lead.
    reach: Reach,
}

/// A response whose body has not been read.
pub(crate) struct Response {
    pub(crate) head: ResponseHead,
    pub(crate) body: Body,
    /// Time from the request, on an open connection, to the head.
    pub(crate) delay: Duration,
    /// The address that gave it; not known behind a proxy.
    pub(crate) address: Option<IpAddr>,
}

thread_local! {
    /// Idle connections of this lane: a socket belongs to the reactor of the thread that opened it.
    static IDLE: RefCell<HashMap<Key, Vec<(Instant, Connection)>>> = RefCell::default();
}

impl Connection {
    /// Sends `request` to where `route` leads, over an idle connection if there is one, and reads the answer's head.
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

    async fn open(shared: &Shared, route: &Route) -> Result<Self, Failure> {
        let (stream, address) = connect(shared, route).await?;
        Ok(Self {
            stream,
            received: BytesMut::new(),
            key: route.key.clone(),
            address,
            reach: route.reach,
        })
    }

    /// Opens `count` connections to where `route` leads, for requests that will come. What fails is left to them.
    pub(crate) async fn prepare(shared: &Shared, route: &Route, count: u16) {
        let opening: FuturesUnordered<_> = (0..count).map(|_| Self::open(shared, route)).collect();
        opening
            .for_each(|opened| {
                if let Ok(connection) = opened {
                    connection.keep();
                }
                std::future::ready(())
            })
            .await;
    }

    /// Whether it leads where `reach` allows to go.
    fn is_within(&self, reach: Reach) -> bool {
        match self.address {
            Some(address) => reach.allows_host(&host_of(&self.key.host)) && reach.allows(address),
            None => reach == self.reach,
        }
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

    /// Reads up to `room` bytes behind those already received. Returns how many, 0 at the end of the stream.
    pub(crate) fn poll_receive(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<usize>> {
        let start = self.received.len();
        self.received.resize(start + room, 0);
        let read = self.stream.poll_read(cx, &mut self.received[start..]);
        let kept = match &read {
            Poll::Ready(Ok(read)) => *read,
            _ => 0,
        };
        self.received.truncate(start + kept);
        read
    }

    /// Keeps the connection for a later request to the same place.
    pub(crate) fn keep(self) {
        if !self.received.is_empty() {
            // Bytes nobody asked for: what follows could be taken for an answer.
            return;
        }
        IDLE.with_borrow_mut(|idle| {
            if idle.values().map(Vec::len).sum::<usize>() >= MAX_IDLE {
                idle.clear();
            }
            idle.entry(self.key.clone()).or_default().push((Instant::now(), self));
        });
    }
}

impl Stream {
    /// Reads what is there. Returns how many bytes, 0 at the end of the stream.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(bytes);
        ready!(match self {
            Self::Tcp(tcp) => Pin::new(tcp).poll_read(cx, &mut buffer),
            Self::Layered(layers) => layers.as_mut().poll_read(cx, &mut buffer),
        })?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

fn take_idle(route: &Route) -> Option<Connection> {
    IDLE.with_borrow_mut(|idle| {
        let kept = idle.get_mut(&route.key)?;
        kept.retain(|(since, _)| since.elapsed() < IDLE_AGE);
        let usable = kept
            .iter()
            .rposition(|(_, connection)| connection.is_within(route.reach));
        let taken = usable.map(|at| kept.remove(at));
        if kept.is_empty() {
            idle.remove(&route.key);
        }
        taken.map(|(_, connection)| connection)
    })
}

/// A connection that broke.
pub(crate) fn broken(host: &str, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it closed the connection too early".to_owned(),
        _ => error.to_string(),
    };
    Failure::new(FailureKind::Network, format!("the connection to {host} broke: {why}"))
}

/// The time now, for dates in responses.
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
