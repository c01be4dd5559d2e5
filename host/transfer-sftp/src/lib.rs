//! Moves files over SFTP, version 3, through SSH (`sftp`).
//!
//! *Owns* the login, the check of the server's key, requests and replies of SFTP, segments over several logins, and the
//! listing of directories, on connections that `egress` opens. The protocol of SSH itself is russh's.
//!
//! *Never* knows a task, a queue or a store; it sees one [`Job`] at a time. It never writes `known_hosts`, and never logs in
//! to a server whose key is not known.
//!
//! Start reading at [`SftpTransport`], then `run` (one run, start to end) and `run::worker` (one connection). `packet`,
//! `known_hosts` and `place` are pure: they read what servers send, the user's file and URLs.
//!
//! # Layers
//!
//! - `run`, `directory`: one run of a job, and the listing of a directory
//! - `session`: requests and replies
//! - `login`: the SSH connection
//! - `host_key`, `access`: which server it has to be, and who connects where
//! - `agent`, `rsa_key`: the user's `ssh-agent`, and signatures of the user's RSA keys
//! - `shared`: state of all runs
//! - `facts`: size and time of a file
//! - `known_hosts`, `place`, `packet`: what the user's file, URLs and servers say

mod access;
mod agent;
mod directory;
mod facts;
mod host_key;
pub mod known_hosts;
mod login;
pub mod packet;
pub mod place;
mod rsa_key;
mod run;
mod session;
mod shared;

use std::sync::Arc;

use transfer::{Failure, Job, Lanes, ListFuture, Outcome, RunFuture, SafeUrl, Source, Transport, failure::FailureKind};

use crate::{place::Place, shared::Shared};

pub use crate::shared::Config;
pub use egress::Family;

/// The scheme of SFTP.
pub const SCHEMES: [&str; 1] = ["sftp"];

/// The transport for `sftp`. Clones share lanes and learned limits of hosts.
#[derive(Debug, Clone)]
pub struct SftpTransport {
    shared: Arc<Shared>,
    lanes: Lanes,
}

impl SftpTransport {
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

impl Transport for SftpTransport {
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
