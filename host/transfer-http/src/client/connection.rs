//! Open connections, and the pool of idle ones per lane.

use std::{
    cell::RefCell,
    collections::HashMap,
    io,
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::BytesMut;
use egress::{Reach, dial::host_of, route::Stream};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    io::{AsyncRead as _, ReadBuf},
    time::{Duration, Instant},
};
use transfer::{Failure, failure::FailureKind};

use crate::client::{
    connect::{Key, Route, connect},
    shared::Shared,
};

/// How long an idle connection is kept. Common servers close theirs after 5 to 75 seconds.
const IDLE_AGE: Duration = Duration::from_secs(10);

/// The most idle connections kept on one lane.
const MAX_IDLE: usize = 32;

/// An open connection, with received bytes that were not consumed yet.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) received: BytesMut,
    pub(crate) key: Key,
    /// The target's address; unknown behind a proxy.
    pub(crate) address: Option<IpAddr>,
    /// Which addresses were allowed when it was opened.
    reach: Reach,
}

thread_local! {
    /// Idle connections of this lane: a socket belongs to the reactor of the thread that opened it.
    static IDLE: RefCell<HashMap<Key, Vec<(Instant, Connection)>>> = RefCell::default();
}

impl Connection {
    pub(crate) async fn open(shared: &Shared, route: &Route) -> Result<Self, Failure> {
        let (stream, address) = connect(shared, route).await?;
        Ok(Self {
            stream,
            received: BytesMut::new(),
            key: route.key.clone(),
            address,
            reach: route.reach,
        })
    }

    /// Opens `count` connections along `route` in advance. Errors are ignored: the requests will report them.
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

    /// Whether `reach` allows its address.
    fn is_within(&self, reach: Reach) -> bool {
        match self.address {
            Some(address) => reach.allows_host(&host_of(&self.key.host)) && reach.allows(address),
            None => reach == self.reach,
        }
    }

    /// Reads up to `room` more bytes into the buffer. Returns how many, 0 at the end of the stream.
    pub(crate) fn poll_receive(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<usize>> {
        let start = self.received.len();
        self.received.resize(start + room, 0);
        let read = poll_read(&mut self.stream, cx, &mut self.received[start..]);
        let kept = match &read {
            Poll::Ready(Ok(read)) => *read,
            _ => 0,
        };
        self.received.truncate(start + kept);
        read
    }

    /// Returns the connection to the pool for a later request with the same key.
    pub(crate) fn keep(self) {
        if !self.received.is_empty() {
            // Unsolicited bytes could be taken for the next response.
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

/// Reads available bytes of `stream`. Returns how many, 0 at its end.
pub(crate) fn poll_read(stream: &mut Stream, cx: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(bytes);
    ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

pub(crate) fn take_idle(route: &Route) -> Option<Connection> {
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
