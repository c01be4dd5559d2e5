//! The resolved form of the options of `svc get`, completely validated before anything starts.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
};

use command::{UsageError, environment::Environment, netrc, ssh};
use engine::{ProxyChoice, TaskSpec};
use transfer::{Lanes, Netrc, OnConflict, SafeUrl};
use transfer_http::Family;

use crate::{
    args::{ConnectionArgs, GetArgs},
    request,
    wanted::{Schemes, Wanted},
};

#[derive(Debug)]
pub(super) struct Plan {
    /// Concurrent files.
    pub(super) jobs: u16,
    /// For all files together; 0 means unlimited.
    pub(super) limit_bytes_per_second: u64,
    pub(super) netrc: Option<Netrc>,
    /// Whether the files of a Metalink document that was downloaded are downloaded, too.
    pub(super) follows_documents: bool,
    /// What torrents are downloaded with.
    pub(super) swarm: Swarm,
    pub(super) wanted: Wanted,
}

/// How peers of torrents are found and reached.
#[derive(Debug)]
pub(super) struct Swarm {
    /// The directory that the command saves in.
    dir: PathBuf,
    trackers_only: bool,
    family: Option<Family>,
    proxy: Option<SafeUrl>,
}

impl Plan {
    /// Resolves `args`: reads the files they name and validates every value. `schemes` are the supported URL schemes.
    pub(super) fn new(args: GetArgs, schemes: &'static [&'static str]) -> Result<Self, UsageError> {
        let pattern = pattern(&args)?;
        let schemes = Schemes::Only(schemes);
        let swarm = Swarm {
            dir: pattern.save_dir.clone().unwrap_or_default(),
            trackers_only: args.swarm.trackers_only,
            family: family(&args.connection),
            proxy: match &pattern.proxy {
                ProxyChoice::Through(proxy) => Some(proxy.clone()),
                ProxyChoice::Settings | ProxyChoice::Direct => None,
            },
        };
        Ok(Self {
            swarm,
            jobs: args.speed.jobs,
            limit_bytes_per_second: args.speed.limit,
            netrc: logins(&args.connection)?,
            follows_documents: !args.files.no_follow_metalink,
            wanted: Wanted::new(args.urls, args.files.sources, &args.request, pattern, schemes)?,
        })
    }
}

impl Swarm {
    /// The directory that the command saves in.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The configuration of the transport of torrents.
    pub(super) fn config(&self) -> anyhow::Result<transfer_torrent::Config> {
        let mut config = transfer_torrent::Config::new(self.dir.join(TORRENT_DIRECTORY))?;
        config.lanes = Lanes::here();
        config.dht_file = None;
        let settings = &mut config.settings;
        settings.ports = PEER_PORTS;
        settings.proxy.clone_from(&self.proxy);
        if self.trackers_only {
            settings.is_dht_on = false;
            settings.is_lsd_on = false;
            settings.is_port_mapping_on = false;
        }
        settings.addresses.retain(|address| match self.family {
            Some(Family::V4) => matches!(address, IpAddr::V4(_)),
            Some(Family::V6) => matches!(address, IpAddr::V6(_)),
            None => true,
        });
        Ok(config)
    }
}

/// In the directory that the command saves in, for as long as a torrent is not complete: what a later run of the command
/// continues with.
const TORRENT_DIRECTORY: &str = ".svc-torrents";

/// Ports for peers, of which the first free one is taken: as aria2 has them. Several commands may run at once.
const PEER_PORTS: std::ops::RangeInclusive<u16> = 6881..=6999;

fn pattern(args: &GetArgs) -> Result<TaskSpec, UsageError> {
    let proxy = args
        .connection
        .proxy
        .as_deref()
        .map(|text| request::proxy("--proxy", text))
        .transpose()?;
    let given_dir = args.files.dir.as_deref().unwrap_or(Path::new("."));
    let dir = std::path::absolute(given_dir).map_err(|error| UsageError::new("--dir", error.to_string()))?;
    Ok(TaskSpec {
        save_dir: Some(dir),
        segments: args.speed.segments,
        max_connections: Some(args.speed.max_connections),
        min_split_bytes: Some(args.speed.min_split),
        proxy: proxy.map_or(ProxyChoice::Direct, ProxyChoice::Through),
        ignore_tls_errors: args.connection.insecure,
        on_conflict: Some(OnConflict::from(args.files.conflict)),
        retry: Some(args.connection.retries.policy(args.connection.retry_wait)),
        adopt: !args.files.no_resume,
        use_server_time: Some(args.files.server_time),
        lowest_speed_bytes: args.speed.lowest_speed_limit,
        check_integrity: args.files.check_integrity,
        torrent: args.torrents.options(),
        seed_limits: args.torrents.seed_limits(),
        is_not_seeded: args.torrents.seed_ratio.is_none() && args.torrents.seed_time.is_none(),
        follow_torrent: Some(!args.swarm.no_follow_torrent),
        ..TaskSpec::default()
    })
}

/// The logins of the `.netrc` that the user asked for.
fn logins(args: &ConnectionArgs) -> Result<Option<Netrc>, UsageError> {
    let (option, path) = match &args.netrc_file {
        Some(path) => ("--netrc-file", Some(path.clone())),
        None if args.netrc => ("--netrc", netrc::usual_path()),
        None => return Ok(None),
    };
    let path = path.ok_or_else(|| UsageError::new(option, "there is no home directory to find .netrc in"))?;
    match netrc::read(&path) {
        Ok(Some(netrc)) => Ok(Some(netrc)),
        Ok(None) => Err(UsageError::new(option, format!("there is no {}", path.display()))),
        Err(why) => Err(UsageError::new(option, why)),
    }
}

/// The configuration of the FTP transport.
pub(super) fn ftp_config(args: &ConnectionArgs) -> transfer_ftp::Config {
    let (default, http) = (transfer_ftp::Config::default(), transport_config(args));
    transfer_ftp::Config {
        connect_timeout: http.connect_timeout,
        reply_timeout: http.response_timeout,
        stall_timeout: args.timeout.unwrap_or(default.stall_timeout),
        ca_certificate: http.ca_certificate,
        family: http.family,
        ..default
    }
}

/// The configuration of the SFTP transport.
pub(super) fn sftp_config(args: &ConnectionArgs, environment: &Environment) -> transfer_sftp::Config {
    let (usual, http) = (ssh::config(environment), transport_config(args));
    transfer_sftp::Config {
        connect_timeout: http.connect_timeout,
        reply_timeout: args.timeout.unwrap_or(usual.reply_timeout),
        stall_timeout: args.timeout.unwrap_or(usual.stall_timeout),
        ca_certificate: http.ca_certificate,
        family: http.family,
        key_file: args.ssh_key.clone(),
        ..usual
    }
}

/// The configuration of the HTTP transport.
pub(super) fn transport_config(args: &ConnectionArgs) -> transfer_http::Config {
    let default = transfer_http::Config::default();
    transfer_http::Config {
        connect_timeout: args.connect_timeout.unwrap_or(default.connect_timeout),
        response_timeout: args.timeout.unwrap_or(default.response_timeout),
        stall_timeout: args.timeout.unwrap_or(default.stall_timeout),
        ca_certificate: args.ca_certificate.clone(),
        family: family(args),
        ..default
    }
}

fn family(args: &ConnectionArgs) -> Option<Family> {
    match (args.ipv4, args.ipv6) {
        (true, _) => Some(Family::V4),
        (false, true) => Some(Family::V6),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests;
