//! Connections between our own processes, over the loopback. No name resolution and no proxy.

use std::{io, net::Ipv4Addr};

use tokio::net::TcpStream;

/// Connects to our own process that listens on `port`.
pub async fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    // Frames are small and latency matters more than throughput.
    stream.set_nodelay(true)?;
    Ok(stream)
}
