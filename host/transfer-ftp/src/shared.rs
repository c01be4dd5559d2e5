//! State that all runs share: timeouts, trusted certificates, learned limits of hosts.

use std::{path::PathBuf, sync::Arc, time::Duration};

use egress::{
    Family,
    tls::{ClientConfig, Tls},
};
use rustls::client::Resumption;
use transfer::{Failure, failure::FailureKind, run::HostCaps};

/// Sessions of TLS that one control connection keeps for its data connections.
const SESSIONS: usize = 8;

/// Timeouts and trusted certificates of connections. Fixed for the life of a transport.
#[derive(Debug, Clone)]
pub struct Config {
    /// For name resolution, connecting and the TLS handshake, each.
    pub connect_timeout: Duration,
    /// From a command to its complete reply.
    pub reply_timeout: Duration,
    /// How long a data connection may deliver nothing before it is closed.
    pub stall_timeout: Duration,
    /// A PEM file of certificates to trust instead of the system's.
    pub ca_certificate: Option<PathBuf>,
    /// The name resolver.
    pub names: egress::Names,
    /// The only version of the Internet Protocol to use, to servers and to proxies.
    pub family: Option<Family>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            // As in aria2; servers look names up and read directories meanwhile.
            reply_timeout: Duration::from_mins(1),
            // A data connection has no work of the server before it.
            stall_timeout: Duration::from_secs(30),
            ca_certificate: None,
            names: egress::Names::default(),
            family: None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
    pub(crate) caps: HostCaps,
}

impl Shared {
    /// Fails if [`Config::ca_certificate`] cannot be used.
    pub(crate) fn new(mut config: Config) -> Result<Self, Failure> {
        if let Some(family) = config.family {
            config.names = config.names.only(family);
        }
        let tls = Tls::new(config.ca_certificate.as_deref())
            .map_err(|error| Failure::new(FailureKind::InvalidSource, error.to_string()))?;
        Ok(Self {
            config,
            tls,
            caps: HostCaps::default(),
        })
    }

    /// TLS of one control connection and its data connections. They share sessions with each other and with no other
    /// connection: servers refuse a data connection that does not resume the session of its control connection.
    pub(crate) fn client_tls(&self, ignore_errors: bool) -> Arc<ClientConfig> {
        let mut config = (*self.tls.config(ignore_errors)).clone();
        config.alpn_protocols.clear();
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        Arc::new(config)
    }
}
