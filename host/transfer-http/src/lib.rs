//! Moves files over HTTP and HTTPS.
//!
//! *Owns* the probe, the segment plan, the checks of every response, names from responses, mirrors, proxies and the
//! HTTP/1.1 client under them, on connections that `egress` opens. HTTP/1.1 on purpose: each segment needs a connection
//! of its own; streams over one connection would share its packet losses.
//!
//! *Never* knows a task, a queue or a store; it sees one [`Job`] at a time.
//!
//! Start reading at [`HttpTransport`], then `run` (one run, start to end), `transfer::run::plan` and `run::ramp` (pure: which
//! connection fetches what, and how many are worthwhile), `answer::verdict` (the check of a response). Files that are
//! joined from segments are in `joined`, with `joined::window` as its pure part.
//!
//! # Layers
//!
//! - `run`, `joined`: one run of a job, for a file of one resource and for a file of segments
//! - `answer`: the check of a response, and the name of its file
//! - `client`: the HTTP/1.1 client

mod answer;
mod client;
mod joined;
mod run;

use std::sync::Arc;

use transfer::{Failure, Job, Lanes, Outcome, RunFuture, Transport, failure::FailureKind};

use crate::client::shared::Shared;

pub use crate::client::shared::Config;
pub use egress::Family;

/// The transport for `http` and `https`. Clones share idle connections, lanes and learned limits of hosts.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    shared: Arc<Shared>,
    lanes: Lanes,
}

impl HttpTransport {
    /// A transport with `config`. Fails if [`Config::ca_certificate`] cannot be used.
    pub fn new(config: Config) -> Result<Self, Failure> {
        Ok(Self {
            shared: Arc::new(Shared::new(config)?),
            lanes: Lanes::default(),
        })
    }

    /// How many hosts are known to allow few connections only.
    pub fn limited_hosts(&self) -> usize {
        self.shared.caps.hosts()
    }

    /// Forgets what hosts allow, so that the next runs find out again.
    pub fn forget_host_limits(&self) {
        self.shared.caps.forget();
    }

    /// The same transport, whose runs are executed as `lanes` say.
    #[must_use]
    pub fn on(self, lanes: Lanes) -> Self {
        Self { lanes, ..self }
    }
}

impl Transport for HttpTransport {
    fn schemes(&self) -> &'static [&'static str] {
        &["http", "https"]
    }

    fn run(&self, job: Job) -> RunFuture {
        let shared = Arc::clone(&self.shared);
        let lanes = self.lanes.clone();
        Box::pin(async move {
            let directory = job.target.directory.clone();
            lanes
                .run(&directory, move || async move {
                    if job.source.segments.is_empty() {
                        run::run(shared, job).await
                    } else {
                        joined::run(shared, job).await
                    }
                })
                .await
                .unwrap_or_else(|error| Outcome::Failed(Failure::new(FailureKind::Internal, error.to_string())))
        })
    }
}
