//! State that all runs share: timeouts, what the user knows servers by and logs in with, learned limits of hosts.

use std::{path::PathBuf, time::Duration};

use egress::{Family, tls::Tls};
use transfer::{Failure, failure::FailureKind, run::HostCaps};

/// Timeouts, and the files of the user. Fixed for the life of a transport.
#[derive(Debug, Clone)]
pub struct Config {
    /// For name resolution and connecting, each.
    pub connect_timeout: Duration,
    /// For the whole login, and from a request to its reply.
    pub reply_timeout: Duration,
    /// How long a file may deliver nothing before its connection is closed.
    pub stall_timeout: Duration,
    /// A PEM file of certificates to trust instead of the system's, for `https` proxies.
    pub ca_certificate: Option<PathBuf>,
    /// The name resolver.
    pub names: egress::Names,
    /// The only version of the Internet Protocol to use, to servers and to proxies.
    pub family: Option<Family>,
    /// Files of host keys (`known_hosts`); those that are not there are empty.
    pub known_hosts: Vec<PathBuf>,
    /// A private key that the user named: an error if it cannot be used.
    pub key_file: Option<PathBuf>,
    /// Private keys in their usual places, of which any may be missing.
    pub usual_key_files: Vec<PathBuf>,
    /// The socket of an agent that has keys.
    pub agent: Option<PathBuf>,
    /// The user to log in as if nothing else names one.
    pub user: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            reply_timeout: Duration::from_mins(1),
            stall_timeout: Duration::from_secs(30),
            ca_certificate: None,
            names: egress::Names::default(),
            family: None,
            known_hosts: Vec::new(),
            key_file: None,
            usual_key_files: Vec::new(),
            agent: None,
            user: None,
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
