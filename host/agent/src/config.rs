//! What an agent is started with. `app` reads environment, arguments and files; here they are values.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use crate::key::AccessKey;

/// The port of both hosts unless somebody says otherwise.
pub const DEFAULT_PORT: u16 = 17800;

/// Which host an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// For the person at this machine: loopback unless the user opens it, port and exposure are settings.
    Desktop,
    /// A server: listens where it is told to, set up by the first visitor who may.
    Headless,
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
    /// The agent's own directory: its settings and its lock. Made if it is not there.
    pub directory: PathBuf,
    /// Where to listen. None is what the settings say (desktop), or every address at [`DEFAULT_PORT`] (headless).
    pub bind: Option<SocketAddr>,
    /// A key given from outside.
    pub preset_key: Option<PresetKey>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// The program's version.
    pub version: String,
    /// The language that user interfaces begin with, told by `/ping`.
    pub language: Option<String>,
}

impl Config {
    /// A host with its state in `directory` and nothing else said.
    pub fn new(host: Host, directory: impl Into<PathBuf>) -> Self {
        Self {
            host,
            directory: directory.into(),
            bind: None,
            preset_key: None,
            trusted_proxies: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            language: None,
        }
    }
}
