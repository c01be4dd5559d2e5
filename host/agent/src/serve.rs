//! Connections: taken, bounded, told to end, and cut off if they do not.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::peer_user::Peer;

/// Connections at once: a thousand subscribers and the requests beside them, within a usual limit of open files.
const MAX_CONNECTIONS: usize = 4096;

/// How long a connection may take to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// Pause after the system refused a connection, most likely for want of file descriptors.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Buffer of an in-memory connection, per direction.
const DUPLEX_BYTES: usize = 256 * 1024;

/// What serves connections until it is told to stop. Those that are open then finish their answers, or are cut off.
#[derive(Debug, Clone)]
pub(crate) struct Acceptor {
    router: Router,
    /// Owns the connections.
    tracker: TaskTracker,
    stop: CancellationToken,
    cut: CancellationToken,
    turns: Arc<Semaphore>,
}

impl Acceptor {
    pub(crate) fn new(router: Router, tracker: TaskTracker, stop: CancellationToken, cut: CancellationToken) -> Self {
        Self {
            router,
            tracker,
            stop,
            cut,
            turns: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }

    /// Takes connections until it is told to stop.
    pub(crate) async fn listen(self, listener: TcpListener) {
        let next = async || {
            let turn = Arc::clone(&self.turns).acquire_owned().await.ok()?;
            Some((listener.accept().await, turn))
        };
        while let Some(Some((accepted, turn))) = self.stop.run_until_cancelled(next()).await {
            match accepted {
                Ok((stream, peer)) => {
                    // Small answers are not to wait for each other; a socket that is gone already shows when it is read.
                    let _gone = stream.set_nodelay(true);
                    let peer = Peer::of_socket(peer, stream.local_addr().ok());
                    self.serve(stream, peer, turn);
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was refused by the system");
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        }
    }

    /// A connection without a socket, as from this machine: closed at once if there are too many, or no more are taken.
    pub(crate) fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(DUPLEX_BYTES);
        if let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned()
            && !self.stop.is_cancelled()
        {
            self.serve(far, Peer::in_process((Ipv4Addr::LOCALHOST, 0).into()), turn);
        }
        near
    }

    fn serve<S>(&self, stream: S, peer: Peer, turn: OwnedSemaphorePermit)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = TowerToHyperService::new(self.router.clone().layer(axum::Extension(peer)));
        let (stop, cut) = (self.stop.clone(), self.cut.clone());
        self.tracker.spawn(async move {
            let _turn = turn;
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            tokio::pin!(connection);
            let served = tokio::select! {
                served = connection.as_mut() => served,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    match cut.run_until_cancelled(connection).await {
                        Some(served) => served,
                        None => return,
                    }
                }
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
}
