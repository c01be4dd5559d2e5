//! How an agent comes to its daemon. What a daemon is (a process beside this one, or a part of it) is `app`'s business.

use std::io;

use futures_util::future::BoxFuture;
use protocol::proof::Token;
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A daemon that was found, or started.
#[derive(Debug, Clone)]
pub struct Found {
    /// The long-term token of both. It is proved, never sent.
    pub token: Token,
    /// Where it listens on the loopback, for those who dial a port.
    pub port: u16,
}

/// Why there is no daemon to talk to.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// What people read.
    pub message: String,
    /// Why.
    #[source]
    pub source: Option<io::Error>,
}

/// Finds, starts and reaches the daemon. The agent asks again, with growing pauses, whenever it lost it.
pub trait Connect: Send + Sync + 'static {
    /// The daemon that runs already, else one that is started now. Cancel-safe: it may be asked anew.
    fn find(&self) -> BoxFuture<'_, Result<Found, ConnectError>>;

    /// Another stream to it, on which it speaks HTTP.
    fn dial<'a>(&'a self, found: &'a Found) -> BoxFuture<'a, io::Result<Box<dyn ByteStream>>>;
}
