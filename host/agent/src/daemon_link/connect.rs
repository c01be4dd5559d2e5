//! How an agent reaches its daemon. Whether that is a separate process or a part of this one is up to the embedding
//! program.

use std::io;

use futures_util::future::BoxFuture;
use protocol::proof::Token;
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A running daemon.
#[derive(Debug, Clone)]
pub struct Found {
    /// The shared long-term token. It is proved in the handshake, never sent.
    pub token: Token,
    /// Its loopback port, for connectors that dial one.
    pub port: u16,
}

/// Why no daemon can be reached.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// For the user.
    pub message: String,
    /// Why.
    #[source]
    pub source: Option<io::Error>,
}

/// Finds, starts and reaches the daemon. The agent calls it again, with growing pauses, whenever it lost the session.
pub trait Connect: Send + Sync + 'static {
    /// Returns the running daemon or starts one. Cancel-safe: it may be called again.
    fn find(&self) -> BoxFuture<'_, Result<Found, ConnectError>>;

    /// Opens another stream to it, which speaks HTTP.
    fn dial<'a>(&'a self, found: &'a Found) -> BoxFuture<'a, io::Result<Box<dyn ByteStream>>>;
}
