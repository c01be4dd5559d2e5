//! The resolved form of the options of `svc get`, completely validated before anything starts.

use std::path::Path;

use command::{UsageError, netrc};
use engine::{ProxyChoice, TaskSpec};
use transfer::{Netrc, OnConflict};
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
    pub(super) wanted: Wanted,
}

impl Plan {
    /// Resolves `args`: reads the files they name and validates every value. `schemes` are the supported URL schemes.
    pub(super) fn new(args: GetArgs, schemes: &'static [&'static str]) -> Result<Self, UsageError> {
        let pattern = pattern(&args)?;
        let schemes = Schemes::Only(schemes);
        Ok(Self {
            jobs: args.speed.jobs,
            limit_bytes_per_second: args.speed.limit,
            netrc: logins(&args.connection)?,
            wanted: Wanted::new(args.urls, args.files.sources, &args.request, pattern, schemes)?,
        })
    }
}

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

/// The configuration of the HTTP transport.
pub(super) fn transport_config(args: &ConnectionArgs) -> transfer_http::Config {
    let default = transfer_http::Config::default();
    transfer_http::Config {
        connect_timeout: args.connect_timeout.unwrap_or(default.connect_timeout),
        response_timeout: args.timeout.unwrap_or(default.response_timeout),
        stall_timeout: args.timeout.unwrap_or(default.stall_timeout),
        ca_certificate: args.ca_certificate.clone(),
        family: match (args.ipv4, args.ipv6) {
            (true, _) => Some(Family::V4),
            (false, true) => Some(Family::V6),
            (false, false) => None,
        },
        ..default
    }
}

#[cfg(test)]
mod tests;
