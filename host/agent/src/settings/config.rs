//! What an agent is started with. `app` reads environment, arguments and files; here they are values.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use aria2::{SessionFile, option::Options};

use crate::access::key::AccessKey;

/// The default port of both hosts.
pub const DEFAULT_PORT: u16 = 17800;

/// Connections at once unless the program says less: a thousand subscribers and the requests beside them.
const MAX_CONNECTIONS: usize = 4096;

/// Which host an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// For the person at this machine: loopback unless the user opens it, port and exposure are settings.
    Desktop,
    /// A server: listens on the configured address, set up by the first visitor who may.
    Headless,
    /// In the place of another program of aria2's dialect: offers nothing else, needs no key unless it is given one, and
    /// listens only on a configured address.
    DropIn,
}

/// A key given from outside.
#[derive(Debug, Clone)]
pub enum PresetKey {
    /// Taken if there is none yet.
    Initial(AccessKey),
    /// Taken at every start, whatever is stored.
    Forced(AccessKey),
}

/// What an agent is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Which host.
    pub host: Host,
    /// The agent's own directory: its settings and its lock. Made if it is not there; none keeps them in memory.
    pub directory: Option<PathBuf>,
    /// Where to listen. None is what the settings say (desktop), every address at [`DEFAULT_PORT`] (headless), or nowhere
    /// (drop-in).
    pub bind: Option<SocketAddr>,
    /// A key given from outside.
    pub preset_key: Option<PresetKey>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// The program's version.
    pub version: String,
    /// The language that user interfaces begin with; `/ping` reports it.
    pub language: Option<String>,
    /// Pages of any origin may send calls (drop-in; elsewhere that is a setting).
    pub allows_any_origin: bool,
    /// What it was started with, reported to clients that ask for aria2's options (drop-in).
    pub started_with: Options,
    /// Connections at once. Fewer than the process may have descriptors: files and the way to the daemon need some, too.
    pub max_connections: usize,
    /// What writes the session file that aria2's clients ask for; none where there is no such file.
    pub session_file: Option<Arc<dyn SessionFile>>,
}

impl Config {
    /// A host with its state in `directory` and nothing else said.
    pub fn new(host: Host, directory: impl Into<PathBuf>) -> Self {
        Self {
            host,
            directory: Some(directory.into()),
            bind: None,
            preset_key: None,
            trusted_proxies: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            language: None,
            allows_any_origin: false,
            started_with: Options::default(),
            max_connections: MAX_CONNECTIONS,
            session_file: None,
        }
    }

    /// A drop-in that keeps everything in memory and listens nowhere.
    pub fn drop_in() -> Self {
        Self {
            directory: None,
            ..Self::new(Host::DropIn, "")
        }
    }
}
