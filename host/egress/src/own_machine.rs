//! Connections between our own processes, over the loopback. Nothing is looked up and no proxy is asked.

use std::{io, net::Ipv4Addr};

use tokio::net::TcpStream;

/// A connection to the process of ours that listens at `port`.
pub async fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    // Frames are small and answers are waited for.
    stream.set_nodelay(true)?;
    Ok(stream)
}
