//! What the connections of all runs share: how patient they are, whom they trust, what was learned of hosts.

use std::{path::PathBuf, time::Duration};

use egress::tls::Tls;
use transfer::{Failure, failure::FailureKind};

use crate::client::host_caps::HostCaps;

/// How patient connections are, and what they trust. Changed only by making a new transport.
#[derive(Debug, Clone)]
pub struct Config {
    /// How long finding the host, connecting and the TLS handshake may take, each.
    pub connect_timeout: Duration,
    /// How long a server may take to answer a request with a complete head.
    pub response_timeout: Duration,
    /// How long a body may bring nothing before its connection is given up.
    pub stall_timeout: Duration,
    /// A PEM file of certificates to trust instead of the system's.
    pub ca_certificate: Option<PathBuf>,
    /// The `User-Agent` of requests that name none.
    pub user_agent: String,
    /// What looks names up.
    pub names: egress::Names,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            // As long as aria2 waits; a server may build the file before it answers.
            response_timeout: Duration::from_mins(1),
            stall_timeout: Duration::from_secs(15),
            ca_certificate: None,
            user_agent: concat!("Svc/", env!("CARGO_PKG_VERSION")).to_owned(),
            names: egress::Names::default(),
        }
    }
}

/// What all runs of a transport share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
    pub(crate) caps: HostCaps,
}

impl Shared {
    /// Fails if [`Config::ca_certificate`] cannot be used.
    pub(crate) fn new(config: Config) -> Result<Self, Failure> {
        let tls = Tls::new(config.ca_certificate.as_deref())
            .map_err(|error| Failure::new(FailureKind::InvalidSource, error.to_string()))?;
        Ok(Self {
            config,
            tls,
            caps: HostCaps::default(),
        })
    }
}
