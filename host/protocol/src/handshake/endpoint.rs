//! How an agent finds its daemon: two files in the data directory, readable by their owner only. The daemon writes
//! both, the token before the endpoint; an agent only reads them.

use serde::{Deserialize, Serialize};

/// The file that says where the daemon listens: an [`Endpoint`]. Written anew at every start, removed at a clean end.
pub const ENDPOINT_FILE: &str = "daemon.json";

/// The file that holds the long-term token: 64 hexadecimal digits. Made once, at the first start.
pub const TOKEN_FILE: &str = "daemon.token";

/// The length of the token in bytes of text.
pub const TOKEN_CHARS: usize = 64;

/// Where a daemon listens on the loopback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The TCP port on 127.0.0.1.
    pub port: u16,
    /// Names this start of the daemon; the same as in its hello.
    pub instance_id: String,
    /// The process.
    pub pid: u32,
    /// The program's version.
    pub service_version: String,
    /// The protocol that it speaks.
    pub protocol_version: u32,
}
