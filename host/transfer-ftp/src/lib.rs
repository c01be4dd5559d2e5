//! Moves files over FTP, in clear (`ftp`) and with TLS (`ftpes`: after `AUTH TLS`, `ftps`: from the first byte).
//!
//! *Owns* control and data connections, the checks of what a server says and sends, segments over several logins, and the
//! listing of directories, on connections that `egress` opens.
//!
//! *Never* knows a task, a queue or a store; it sees one [`Job`] at a time. It never falls back from one scheme to
//! another, and never connects for a file to another address than that of the control connection.
//!
//! Start reading at [`FtpTransport`], then `run` (one run, start to end) and `run::worker` (one connection). `reply`,
//! `passive`, `listing`, `facts` and `place` are pure: they read what servers send and URLs say.
//!
//! # Layers
//!
//! - `run`, `directory`: one run of a job, and the listing of a directory
//! - `control`: logins, commands and replies
//! - `data`: the bytes of one file or listing
//! - `access`: who connects where
//! - `shared`: state of all runs
//! - `listing`, `passive`, `facts`: what replies and listings mean
//! - `place`, `reply`: paths of URLs, and replies
//! - `lines`: lines of a stream

mod access;
mod control;
mod data;
mod directory;
pub mod facts;
mod lines;
pub mod listing;
pub mod passive;
pub mod place;
pub mod reply;
mod run;
mod shared;

use std::sync::Arc;

use transfer::{Failure, Job, Lanes, ListFuture, Outcome, RunFuture, SafeUrl, Source, Transport, failure::FailureKind};

use crate::{place::Place, shared::Shared};

pub use crate::shared::Config;
pub use egress::Family;

/// The schemes of FTP.
pub const SCHEMES: [&str; 3] = ["ftp", "ftpes", "ftps"];

/// The transport for `ftp`, `ftpes` and `ftps`. Clones share lanes and learned limits of hosts.
#[derive(Debug, Clone)]
pub struct FtpTransport {
    shared: Arc<Shared>,
    lanes: Lanes,
}

impl FtpTransport {
    /// A transport with `config`. Fails if [`Config::ca_certificate`] cannot be used.
    pub fn new(config: Config) -> Result<Self, Failure> {
        Ok(Self {
            shared: Arc::new(Shared::new(config)?),
            lanes: Lanes::default(),
        })
    }

    /// How many hosts are known to allow few logins only.
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

impl Transport for FtpTransport {
    fn schemes(&self) -> &'static [&'static str] {
        &SCHEMES
    }

    fn run(&self, job: Job) -> RunFuture {
        let shared = Arc::clone(&self.shared);
        let lanes = self.lanes.clone();
        Box::pin(async move {
            let directory = job.target.directory.clone();
            lanes
                .run(&directory, move || run::run(shared, job))
                .await
                .unwrap_or_else(|error| Outcome::Failed(Failure::new(FailureKind::Internal, error.to_string())))
        })
    }

    fn is_directory(&self, url: &SafeUrl) -> bool {
        SCHEMES.contains(&url.scheme()) && Place::of(url).is_ok_and(|place| place.is_directory)
    }

    fn list(&self, source: Source) -> ListFuture {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { directory::list(&shared, &source).await })
    }
}
