//! Connections: taken, bounded, told to end, and cut off if they do not.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::sync::Arc;
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::gate::Peer;

/// Connections at once: a thousand subscribers and the requests beside them, within a usual limit of open files.
const MAX_CONNECTIONS: usize = 4096;

/// How long a connection may take to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// Pause after the system refused a connection, most likely for want of file descriptors.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until `stop`. Those that are open then finish their answers, or are cut off.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    tracker: TaskTracker,
    stop: CancellationToken,
    cut: CancellationToken,
) {
    let turns = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let next = async || {
        let turn = Arc::clone(&turns).acquire_owned().await.ok()?;
        Some((listener.accept().await, turn))
    };
    while let Some(Some((accepted, turn))) = stop.run_until_cancelled(next()).await {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection was refused by the system");
                tokio::time::sleep(REFUSED_PAUSE).await;
                continue;
            }
        };
        // Small answers are not to wait for each other; a socket that is gone already shows when it is read.
        let _gone = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone().layer(axum::Extension(Peer(peer))));
        let (stop, cut) = (stop.clone(), cut.clone());
        tracker.spawn(async move {
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
