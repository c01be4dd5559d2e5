//! The configuration of an agent, as values. The embedding program reads environment, arguments and files.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use aria2::{SessionFile, option::Options};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use crate::access::key::AccessKey;

/// The default port of desktop and server.
pub const DEFAULT_PORT: u16 = 17800;

/// The default limit: a thousand subscribers and their requests.
const MAX_CONNECTIONS: usize = 4096;

/// The kind of installation that an agent serves; it decides defaults, authorization and which interfaces exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    /// For the user of this machine: on the loopback unless opened; port and exposure are settings.
    Desktop,
    /// A server: listens on the configured address; an authorized first client sets the key.
    Headless,
    /// A replacement for `aria2c`: serves only aria2's interface, needs no key unless one is configured, and listens
    /// only on a configured address.
    DropIn,
}

/// An access key from the environment or the command line.
#[derive(Debug, Clone)]
pub enum PresetKey {
    /// Used if none is stored.
    Initial(AccessKey),
    /// Used at every start, whatever is stored.
    Forced(AccessKey),
}

/// A client asks for a restart. The program answers whether it can, or why not; if it can, it then ends the agent with
/// [`crate::Agent::shutdown_for_restart`].
pub type RestartRequest = oneshot::Sender<Result<(), String>>;

/// What an agent is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// The kind of installation.
    pub edition: Edition,
    /// The agent's own directory, for settings and lock; created if missing. Without one, settings are kept in memory.
    pub directory: Option<PathBuf>,
    /// The address to listen on. `None` means: by the settings (desktop), every address at [`DEFAULT_PORT`] (headless),
    /// or no listener (drop-in).
    pub bind: Option<SocketAddr>,
    /// A configured access key.
    pub preset_key: Option<PresetKey>,
    /// The settings of an older service (`local_server_…`), imported at the first start.
    pub older: Map<String, Value>,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpAddr>,
    /// The version of the program.
    pub version: String,
    /// The initial language of user interfaces; reported by `/ping`.
    pub language: Option<String>,
    /// What this device calls itself to others.
    pub link_name: Option<String>,
    /// Whether it announces itself and searches for others, unless the settings say no.
    pub mdns: bool,
    /// Whether pages of any origin may send calls (drop-in; otherwise a setting).
    pub allows_any_origin: bool,
    /// The options of the command line, reported by `aria2.getGlobalOption` (drop-in).
    pub started_with: Options,
    /// The limit of concurrent connections. Must be below the descriptor limit of the process: files and the daemon
    /// need some, too.
    pub max_connections: usize,
    /// Writes the session file for `aria2.saveSession`; none if there is no such file.
    pub session_file: Option<Arc<dyn SessionFile>>,
    /// Where restarts are asked for; none if the program cannot restart itself.
    pub restarts: Option<mpsc::Sender<RestartRequest>>,
}

impl Config {
    /// The defaults of an edition with its state in `directory`.
    pub fn new(edition: Edition, directory: impl Into<PathBuf>) -> Self {
        Self {
            edition,
            directory: Some(directory.into()),
            bind: None,
            preset_key: None,
            older: Map::new(),
            trusted_proxies: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            language: None,
            link_name: None,
            mdns: true,
            allows_any_origin: false,
            started_with: Options::default(),
            max_connections: MAX_CONNECTIONS,
            session_file: None,
            restarts: None,
        }
    }

    /// The defaults of a drop-in, which keeps everything in memory and listens nowhere.
    pub fn drop_in() -> Self {
        Self {
            directory: None,
            ..Self::new(Edition::DropIn, "")
        }
    }
}
