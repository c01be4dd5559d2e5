//! A data connection: the bytes of one file or listing.

use std::{io, time::Duration};

use egress::route::Stream;
use tokio::{io::AsyncReadExt as _, time::timeout};
use transfer::{Failure, failure::FailureKind};

/// An open data connection.
pub(crate) struct Data {
    stream: Stream,
    host: String,
    stall: Duration,
    is_cut: bool,
}

impl Data {
    pub(crate) fn new(stream: Stream, host: String, stall: Duration) -> Self {
        Self {
            stream,
            host,
            stall,
            is_cut: false,
        }
    }

    /// Reads what came; 0 at the end. Cancel-safe.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        match timeout(self.stall, self.stream.read(buffer)).await {
            Ok(Ok(read)) => Ok(read),
            // TLS that ends without saying so. Many servers do that; size and final reply show whether something is missing.
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.is_cut = true;
                Ok(0)
            }
            Ok(Err(error)) => Err(broken(&self.host, &error)),
            Err(_) => Err(Failure::new(
                FailureKind::Timeout,
                format!("{} sent nothing for {:?}", self.host, self.stall),
            )),
        }
    }

    /// Fills `buffer`, or as much of it as there is before the end.
    pub(crate) async fn read_all(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]).await? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }

    /// Whether the end was that of the socket without one of TLS, which anybody between us and the server can make.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// The failure for a connection that broke.
pub(crate) fn broken(host: &str, error: &io::Error) -> Failure {
    Failure::new(FailureKind::Network, format!("the connection to {host} broke: {error}"))
}
