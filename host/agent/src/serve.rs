//! The listener: accepts connections within limits and drains them at shutdown. Connections that do not end in time are
//! dropped.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use admission::{Guarded, Limits, throttle::Source};
use axum::Router;
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::TcpListener,
};

use crate::{
    access::{ConnectionSlot, peer_user::Peer},
    shutdown::Shutdown,
};

/// With [`HEAD_BYTES`] and [`FREE_BODY_BYTES`](admission::budget::FREE_BODY_BYTES) each, unauthenticated
/// connections take at most 48 MiB.
const MAX_UNAUTHENTICATED: usize = 512;

/// The share of one address. A household behind one address, or an untrusted proxy, needs fewer: authenticated
/// connections do not count.
const MAX_UNAUTHENTICATED_PER_SOURCE: usize = 128;

/// Limit of a request head, including cookies of other services of the same host. Also the read buffer before a handler
/// reads the body, and the write buffer of a streamed response.
const HEAD_BYTES: usize = 32 * 1024;

/// How long a connection may take to send a request head, or stay idle between requests.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// Pause after `accept` failed, most likely for lack of file descriptors.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// Buffer of an in-memory connection, per direction.
const DUPLEX_BYTES: usize = 256 * 1024;

/// Accepts until `drain`; open connections then finish their responses, or are dropped at `force_close`.
#[derive(Debug, Clone)]
pub(crate) struct Acceptor {
    service: TowerToHyperService<Router>,
    shutdown: Shutdown,
    slots: Arc<admission::ConnectionSlots<Source>>,
    /// A proxy carries many clients, so it is not limited as one source.
    proxies: Vec<IpAddr>,
}

impl Acceptor {
    pub(crate) fn new(router: Router, max_connections: usize, proxies: Vec<IpAddr>, shutdown: Shutdown) -> Self {
        // A quarter of all connections is reserved for authenticated clients.
        let unauthenticated = MAX_UNAUTHENTICATED.min(max_connections - max_connections / 4).max(1);
        let limits = Limits {
            total: max_connections.max(1),
            unauthenticated,
            unauthenticated_per_source: MAX_UNAUTHENTICATED_PER_SOURCE.min(unauthenticated.div_ceil(2)),
        };
        Self {
            service: TowerToHyperService::new(router),
            shutdown,
            slots: admission::ConnectionSlots::new(limits),
            proxies,
        }
    }

    pub(crate) async fn listen(self, listener: TcpListener) {
        while let Some(accepted) = self.shutdown.drain.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, peer)) => {
                    let address = peer.ip().to_canonical();
                    let source = (!self.proxies.contains(&address)).then(|| Source::of(address));
                    let Some(slot) = self.slots.take(source) else {
                        tracing::warn!("a connection was closed: all that may be open belong to authenticated clients");
                        continue;
                    };
                    // Small responses must not be delayed by Nagle's algorithm; an error shows again at the next read.
                    let _gone = stream.set_nodelay(true);
                    let peer = Peer::of_socket(peer, stream.local_addr().ok());
                    self.serve(stream, peer, slot);
                }
                Err(error) => {
                    let made_room = self.slots.evict_oldest();
                    tracing::warn!(%error, made_room, "a connection was refused by the system");
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        }
    }

    /// Opens an in-memory connection; it is closed at once if there are too many or the agent is draining.
    pub(crate) fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(DUPLEX_BYTES);
        if let Some(slot) = self.slots.take(None)
            && !self.shutdown.drain.is_cancelled()
        {
            self.serve(far, Peer::in_process((Ipv4Addr::LOCALHOST, 0).into()), slot);
        }
        near
    }

    fn serve<S>(&self, stream: S, peer: Peer, slot: Arc<ConnectionSlot>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (service, of_requests) = (self.service.clone(), Arc::clone(&slot));
        let service = service_fn(move |mut request: Request<Incoming>| {
            let extensions = request.extensions_mut();
            extensions.insert(peer.clone());
            extensions.insert(Arc::clone(&of_requests));
            service.call(request)
        });
        let drain = self.shutdown.drain.clone();
        self.shutdown.spawn_connection(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD_BYTES)
                .serve_connection(TokioIo::new(Guarded::new(stream, Arc::clone(&slot))), service)
                .with_upgrades();
            tokio::pin!(connection);
            let served = tokio::select! {
                served = connection.as_mut() => served,
                () = slot.evicted() => {
                    tracing::debug!("a connection without authentication was closed for a newer one");
                    return;
                }
                () = drain.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
}
