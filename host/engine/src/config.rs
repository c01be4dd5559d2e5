//! Start-up configuration, fixed for the life of the engine. What may change meanwhile is in `model::settings`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use transfer::Netrc;

use crate::{milestone::MilestoneSender, model::proxy::SystemProxy, resolver::Resolver};

/// Start-up configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Directory of downloads without one of their own; absolute.
    pub download_dir: PathBuf,
    /// Resolves URLs that are not files themselves (plugins).
    pub resolver: Option<Arc<dyn Resolver>>,
    /// The system's proxies, for the proxy mode `system`.
    pub system_proxy: SystemProxy,
    /// The user's logins by host, for tasks without a login of their own whose URL the user gave: a page must not have
    /// them used.
    pub netrc: Option<Arc<Netrc>>,
    /// Where milestones of tasks go.
    pub milestones: MilestoneSender,
    /// New tasks continue part files that no task owns: a stateless command-line run left nothing else.
    pub adopts: bool,
    /// How often progress is sampled while anything runs.
    pub sample_interval: Duration,
    /// How often progress is saved while anything runs. A crash loses no bytes by it: a run resumes from the journal
    /// beside the part file; only the figure shown after the restart may be older.
    pub save_interval: Duration,
    /// How often the files of completed tasks are looked for.
    pub file_check_interval: Duration,
}

impl Config {
    /// The default configuration with this download directory.
    pub fn new(download_dir: impl Into<PathBuf>) -> Self {
        Self {
            download_dir: download_dir.into(),
            resolver: None,
            system_proxy: SystemProxy::default(),
            netrc: None,
            milestones: MilestoneSender::default(),
            adopts: false,
            sample_interval: Duration::from_millis(500),
            save_interval: Duration::from_secs(3),
            file_check_interval: Duration::from_mins(5),
        }
    }
}
