//! Moves files over HTTP and HTTPS.
//!
//! *Owns* the probe, the segment plan, the truth checks on every response, names from responses, mirrors, proxies and
//! the HTTP/1.1 client under them, on connections that `egress` opens. HTTP/1.1 on purpose: segments want connections of their own, and with several
//! streams over one connection they would share its losses.
//!
//! *Never* knows a task, a queue or a store; it sees one [`Job`] at a time.
//!
//! Start reading at [`HttpTransport`], then `run` (one run, start to end), `plan` and `ramp` (the pure heart: which
//! connection fetches what, and how many pay), `verdict` (what a response is worth). Files that are joined from segments
//! are `joined`, with `joined::window` for a heart.

mod body;
mod connect;
mod connection;
mod crew;
mod decode;
mod disposition;
mod fetch;
mod head;
mod host_caps;
mod joined;
mod mirrors;
mod name;
mod opening;
mod place;
mod plan;
mod proof;
mod ramp;
mod run;
mod session;
mod upkeep;
mod verdict;
mod worker;

use std::{path::PathBuf, sync::Arc, time::Duration};

use egress::tls::Tls;
use transfer::{Failure, Job, Lanes, Outcome, RunFuture, Transport, failure::FailureKind};

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

/// The transport for `http` and `https`. Clones share idle connections, lanes and what was learned of hosts.
#[derive(Debug, Clone)]
pub struct HttpTransport(Arc<Shared>);

/// What all runs of a transport share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
    pub(crate) caps: host_caps::HostCaps,
    lanes: Lanes,
}

impl HttpTransport {
    /// A transport with `config`. Fails if [`Config::ca_certificate`] cannot be used.
    pub fn new(config: Config) -> Result<Self, Failure> {
        let tls = Tls::new(config.ca_certificate.as_deref())
            .map_err(|error| Failure::new(FailureKind::InvalidSource, error.to_string()))?;
        Ok(Self(Arc::new(Shared {
            config,
            tls,
            caps: host_caps::HostCaps::default(),
            lanes: Lanes::default(),
        })))
    }
}

impl Transport for HttpTransport {
    fn schemes(&self) -> &'static [&'static str] {
        &["http", "https"]
    }

    fn run(&self, job: Job) -> RunFuture {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let directory = job.target.directory.clone();
            let lanes = shared.lanes.clone();
            lanes
                .run(&directory, move || async move {
                    if job.source.segments.is_empty() {
                        run::run(shared, job).await
                    } else {
                        joined::run(shared, job).await
                    }
                })
                .await
                .unwrap_or_else(|panicked| Outcome::Failed(Failure::new(FailureKind::Internal, panicked.to_string())))
        })
    }
}
