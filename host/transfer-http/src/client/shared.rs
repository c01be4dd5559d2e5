//! State that the connections of all runs share: timeouts, trusted certificates, learned limits of hosts.

use std::{path::PathBuf, time::Duration};

use egress::{Family, tls::Tls};
use transfer::{Failure, failure::FailureKind, run::HostCaps};

/// Timeouts and trusted certificates of connections. Fixed for the life of a transport.
#[derive(Debug, Clone)]
pub struct Config {
    /// For name resolution, connecting and the TLS handshake, each.
    pub connect_timeout: Duration,
    /// From a request to its complete response head.
    pub response_timeout: Duration,
    /// How long a body may deliver nothing before its connection is closed.
    pub stall_timeout: Duration,
    /// A PEM file of certificates to trust instead of the system's.
    pub ca_certificate: Option<PathBuf>,
    /// The `User-Agent` of requests without one of their own.
    pub user_agent: String,
    /// The name resolver.
    pub names: egress::Names,
    /// The only version of the Internet Protocol to use, to servers and to proxies.
    pub family: Option<Family>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            // As in aria2; a server may build the file before it answers.
            response_timeout: Duration::from_mins(1),
            stall_timeout: Duration::from_secs(15),
            ca_certificate: None,
            user_agent: egress::USER_AGENT.to_owned(),
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
}
