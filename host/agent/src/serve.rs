//! The listener: accepts connections within bounds, and drains them at shutdown. Those that do not end in time are dropped.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use admission::{Guarded, Limits};
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
    access::{Seat, peer_user::Peer, throttle::Source},
    shutdown::Shutdown,
};

/// Connections of clients that have not authenticated. With [`HEAD_BYTES`] and
/// [`FREE_BODY_BYTES`](crate::access::budget::FREE_BODY_BYTES) each, they cost 48 MiB.
const MAX_UNAUTHENTICATED: usize = 512;

/// The part of those that one address may have. A household behind one address, or a proxy that is not trusted, needs
/// fewer: requests with the key do not count.
const MAX_UNAUTHENTICATED_PER_SOURCE: usize = 128;

/// The head of a request, with the cookies of other services of the same host. Also what is read of a body before a
/// handler asks for it, and what is written of a streamed answer before the socket takes it.
const HEAD_BYTES: usize = 32 * 1024;

/// How long a connection may take to send the head of a request, and stay idle between two requests.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// Pause after the system refused a connection, most likely for want of file descriptors.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// Buffer of an in-memory connection, per direction.
const DUPLEX_BYTES: usize = 256 * 1024;

/// Serves connections until `drain`; those that are open then finish their answers, or are dropped at `force_close`.
#[derive(Debug, Clone)]
pub(crate) struct Acceptor {
    service: TowerToHyperService<Router>,
    shutdown: Shutdown,
    seats: Arc<admission::Seats<Source>>,
    /// Each of these speaks for many clients, so it is no source of its own.
    proxies: Vec<IpAddr>,
}

impl Acceptor {
    /// Serves `router`. Each of the `proxies` speaks for many clients.
    pub(crate) fn new(router: Router, max_connections: usize, proxies: Vec<IpAddr>, shutdown: Shutdown) -> Self {
        // A quarter is always left to those who have authenticated.
        let unauthenticated = MAX_UNAUTHENTICATED.min(max_connections - max_connections / 4).max(1);
        let limits = Limits {
            total: max_connections.max(1),
            unauthenticated,
            unauthenticated_per_source: MAX_UNAUTHENTICATED_PER_SOURCE.min(unauthenticated.div_ceil(2)),
        };
        Self {
            service: TowerToHyperService::new(router),
            shutdown,
            seats: admission::Seats::new(limits),
            proxies,
        }
    }

    /// Accepts connections until `drain`.
    pub(crate) async fn listen(self, listener: TcpListener) {
        while let Some(accepted) = self.shutdown.drain.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, peer)) => {
                    let address = peer.ip().to_canonical();
                    let source = (!self.proxies.contains(&address)).then(|| Source::of(address));
                    let Some(seat) = self.seats.take(source) else {
                        tracing::warn!("a connection was closed: all that may be open belong to authenticated clients");
                        continue;
                    };
                    // Small answers are not to wait for each other; a socket that is gone already shows when it is read.
                    let _gone = stream.set_nodelay(true);
                    let peer = Peer::of_socket(peer, stream.local_addr().ok());
                    self.serve(stream, peer, seat);
                }
                Err(error) => {
                    let made_room = self.seats.evict_oldest();
                    tracing::warn!(%error, made_room, "a connection was refused by the system");
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        }
    }

    /// A connection without a socket, as from this machine: closed at once if there are too many, or no more are taken.
    pub(crate) fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(DUPLEX_BYTES);
        if let Some(seat) = self.seats.take(None)
            && !self.shutdown.drain.is_cancelled()
        {
            self.serve(far, Peer::in_process((Ipv4Addr::LOCALHOST, 0).into()), seat);
        }
        near
    }

    fn serve<S>(&self, stream: S, peer: Peer, seat: Arc<Seat>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (service, of_requests) = (self.service.clone(), Arc::clone(&seat));
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
                .serve_connection(TokioIo::new(Guarded::new(stream, Arc::clone(&seat))), service)
                .with_upgrades();
            tokio::pin!(connection);
            let served = tokio::select! {
                served = connection.as_mut() => served,
                () = seat.evicted() => {
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
