//! `svc daemon`: the process that owns the tasks. Started by the agent; by hand only to inspect it.

use std::sync::Arc;

use anyhow::Context as _;
use command::{
    Exit, descriptors, directories,
    environment::{self, Environment},
    log, memory, netrc, print_bytes, runtime, ssh,
    stop::StopRequests,
};
use daemon::{Config, Daemon, LearnedLimits, Logs, StartError};
use protocol::endpoint::ENDPOINT_FILE;
use store::{BusAddress, KeyKeeping, KeyPlace, SecretService};
use transfer::Netrc;
use transfer_ftp::FtpTransport;
use transfer_http::HttpTransport;
use transfer_sftp::SftpTransport;

use super::process::{GRACE, HostArgs, Keys, Places};
use crate::{plugins, programs};

/// Which daemon.
#[derive(Debug, clap::Args)]
pub(super) struct DaemonArgs {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[command(flatten)]
    host: HostArgs,
}

pub(super) fn run(args: DaemonArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let places = args.host.begin(environment, "daemon")?;
    // What read the command line is not needed again.
    memory::release_code();
    runtime::run(serve(&places, args.port, environment))?
}

async fn serve(places: &Places, port: u16, environment: &Environment) -> anyhow::Result<Exit> {
    let mut stop = StopRequests::listen().context("cannot listen for signals")?;
    let mut config = Config::new(&places.data, &places.downloads);
    config.port = port;
    if let Some(limit) = descriptors::raise_limit() {
        config.max_connections = descriptors::connections(limit, config.max_connections);
    }
    config.logs = Some(Logs {
        directory: places.data.join(log::LOG_DIR),
        read: log::ends,
    });
    config.keys = KeyKeeping {
        store: Some(Arc::new(SecretService::new(BusAddress {
            address: environment.session_bus.clone(),
            runtime_dir: environment.runtime_dir.clone(),
        }))),
        place: match places.keys {
            None => KeyPlace::AsIs,
            Some(Keys::File) => KeyPlace::File,
            Some(Keys::Desktop) => KeyPlace::Desktop,
        },
    };
    config.engine.system_proxy = environment.system_proxy.clone();
    config.engine.netrc = netrc().map(Arc::new);
    let cache_folder = directories::compiled_plugins(&places.data);
    let svc = std::env::current_exe().context("cannot find this executable")?;
    let path = environment::variable("PATH").unwrap_or_else(|| programs::USUAL_PATH.to_owned());
    config.tools = Some(programs::launcher(svc.clone(), path));
    config.unpacker = Some(programs::unpacker(svc.clone()));
    let sandbox = plugins::sandbox(cache_folder, svc, environment.language.as_deref());
    config.plugins = Some(Arc::new(sandbox));
    config.market = plugins::market();
    let transport = HttpTransport::new(transfer_http::Config::default()).map_err(|failure| anyhow::anyhow!(failure))?;
    let ftp = FtpTransport::new(transfer_ftp::Config::default()).map_err(|failure| anyhow::anyhow!(failure))?;
    let sftp = SftpTransport::new(ssh::config(environment)).map_err(|failure| anyhow::anyhow!(failure))?;
    config.torrents = Some(transfer_torrent::Config::new(directories::torrents(&places.data))?);
    config.learned_limits = Some(Arc::new(Learned(transport.clone(), ftp.clone(), sftp.clone())));
    // Nor is what prepared the transports.
    memory::release_code();
    let daemon = tokio::select! {
        started = Daemon::start(config, vec![Arc::new(transport), Arc::new(ftp), Arc::new(sftp)]) => started?,
        () = stop.next() => return Ok(Exit::Unfinished),
    };
    memory::release_code();
    // The parent process waits for this line: the content of the endpoint file.
    let endpoint = std::fs::read(places.data.join(ENDPOINT_FILE)).context("cannot read back the endpoint")?;
    print_bytes(&[&endpoint, &b"\n"[..]].concat())?;
    tokio::select! {
        () = daemon.asked_to_stop() => {}
        () = stop.next() => {}
        never = memory::release_regularly() => match never {},
    }
    tokio::select! {
        _report = daemon.shutdown(GRACE) => Ok(Exit::Success),
        () = stop.next() => Ok(Exit::Unfinished),
    }
}

/// The logins of this user's `.netrc`. A file that cannot be used is left out with a warning, as aria2 does.
fn netrc() -> Option<Netrc> {
    netrc::read(&netrc::usual_path()?).unwrap_or_else(|why| {
        tracing::warn!(why, "the .netrc file is ignored");
        None
    })
}

/// What the transports learned about hosts, for the calls that show and clear it.
#[derive(Debug)]
struct Learned(HttpTransport, FtpTransport, SftpTransport);

impl LearnedLimits for Learned {
    fn hosts(&self) -> u64 {
        let hosts = self.0.limited_hosts() + self.1.limited_hosts() + self.2.limited_hosts();
        u64::try_from(hosts).unwrap_or(u64::MAX)
    }

    fn forget(&self) {
        self.0.forget_host_limits();
        self.1.forget_host_limits();
        self.2.forget_host_limits();
    }
}

/// The exit for a failed start.
pub(super) fn exit(error: &StartError) -> Exit {
    match error {
        StartError::Listen { .. } => Exit::Network,
        StartError::Engine(_) | StartError::Rss(_) | StartError::Post(_) | StartError::Ended(_) => Exit::Internal,
        StartError::DataDir(_)
        | StartError::Vault(_)
        | StartError::Store(_)
        | StartError::Rows(_)
        | StartError::Plugins(_)
        | StartError::Webhooks(_)
        | StartError::Endpoint(_) => Exit::CannotCreate,
    }
}
