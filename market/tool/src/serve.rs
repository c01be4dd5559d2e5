//! Serves the folder of a source over HTTP, for tests. A real source is on any web server.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ACCEPT_RANGES, CONTENT_RANGE, RANGE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use market::{Folder, MAX_INDEX_BYTES, Origin as _};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::ToolError;

/// The most connections at a time.
const CONNECTIONS: usize = 32;

/// Serves `folder` until `stop` is cancelled. `ready` is called with the bound address.
pub async fn serve(
    folder: Folder,
    address: SocketAddr,
    stop: &CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ToolError> {
    let failed = |source| ToolError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    ready(listener.local_addr().map_err(failed)?);
    let folder = Arc::new(folder);
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    while let Some(accepted) = stop.run_until_cancelled(accept(&listener, &room)).await {
        // The client gave up before the connection was accepted.
        let Some((stream, permit)) = accepted else { continue };
        let folder = Arc::clone(&folder);
        connections.spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&folder), request));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service);
            let _broken = connection.await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    connections.shutdown().await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.expect("it is never closed");
    let (stream, _) = listener.accept().await.ok()?;
    Some((stream, permit))
}

async fn answer(folder: Arc<Folder>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let empty = |status| Response::builder().status(status).body(Full::default());
    let path = request.uri().path().trim_start_matches('/');
    let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let mut bytes = Vec::new();
    let response = if request.method() != Method::GET {
        empty(StatusCode::METHOD_NOT_ALLOWED)
    } else if folder.read(&path, MAX_INDEX_BYTES, &mut bytes).await.is_err() {
        empty(StatusCode::NOT_FOUND)
    } else {
        let size = bytes.len();
        let start = request
            .headers()
            .get(RANGE)
            .and_then(|range| range_start(range.to_str().ok()?));
        match start {
            None => Response::builder()
                .header(ACCEPT_RANGES, "bytes")
                .body(Full::from(bytes)),
            Some(start) if start < size => Response::builder()
                .status(StatusCode::PARTIAL_CONTENT)
                .header(CONTENT_RANGE, format!("bytes {start}-{}/{size}", size - 1))
                .body(Full::from(bytes.split_off(start))),
            Some(_) => empty(StatusCode::RANGE_NOT_SATISFIABLE),
        }
    };
    Ok(response.expect("the parts of the answer are valid"))
}

/// The start of a range that reaches to the end of the file, which is the only kind that clients request.
fn range_start(range: &str) -> Option<usize> {
    range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}
