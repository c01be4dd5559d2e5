//! What the engine is told once, when it starts.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::{model::proxy::SystemProxy, resolver::Resolver};

/// Start-up configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where files go that nobody names a directory for; absolute.
    pub download_dir: PathBuf,
    /// Who knows what is behind URLs that are no files themselves.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// The proxies that the system names, for the proxy mode `system`.
    pub system_proxy: SystemProxy,
    /// New tasks continue part files that no task owns: there was another engine before, and it kept nothing else.
    pub adopts: bool,
    /// The time zone of schedules.
    pub time_zone: jiff::tz::TimeZone,
    /// How often progress is sampled while anything runs.
    pub sample_interval: Duration,
    /// How often progress is saved while anything runs. A crash loses no bytes by it: the journal beside the part file
    /// is what counts; only the figure shown after the restart may be older.
    pub save_interval: Duration,
}

impl Config {
    /// The usual configuration with this download directory.
    pub fn new(download_dir: impl Into<PathBuf>) -> Self {
        Self {
            download_dir: download_dir.into(),
            resolver: None,
            system_proxy: SystemProxy::default(),
            adopts: false,
            time_zone: jiff::tz::TimeZone::system(),
            sample_interval: Duration::from_millis(500),
            save_interval: Duration::from_secs(3),
        }
    }
}
