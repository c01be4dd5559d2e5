//! The connection to the user's `ssh-agent`: a socket of this machine that the user's environment names, so there is nothing
//! for `egress` to look up or guard.

use std::{io, path::Path};

use russh::keys::agent::client::AgentClient;
use tokio::net::UnixStream;

pub(crate) async fn connect(socket: &Path) -> io::Result<AgentClient<UnixStream>> {
    Ok(AgentClient::connect(UnixStream::connect(socket).await?))
}
