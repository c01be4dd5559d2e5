//! `svc serve` and `svc agent`: the process that clients connect to, headless or on a desktop.

mod greeting;
mod older;

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use agent::{AccessKey, Agent, Config, DEFAULT_PORT, Edition, Ending, PresetKey, StartError};
use anyhow::Context as _;
use command::{
    Exit, UsageError, descriptors, directories,
    environment::{self, Environment},
    memory, print_bytes, runtime,
    stop::StopRequests,
    warn,
};
use tokio::sync::mpsc;

use super::{
    process::{GRACE, HostArgs, Keys, Places},
    restart::Restarts,
    sibling::{DaemonCommand, Refused, Sibling},
};

/// How long the greeting waits for the daemon, so that the reader can use the service at once or sees why not.
const GREETING_WAIT: Duration = Duration::from_secs(10);

/// How long pending responses may take when a client requests an immediate shutdown; its own is one of them.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Shown below the options in `--help`.
pub(super) const SERVE_HELP: &str = "\
The same as svc --server and svc agent --server. Clients reach it at the address it prints: the commands of svc, aria2
front ends, scripts, browsers. The first access key is set once, from this machine with svc setup, from elsewhere with
the link it prints, or beforehand in SVC_TOKEN.

Ctrl-C or SIGTERM ends it in order, a second one at once. Nothing that was acknowledged is lost either way.

Environment:
  SVC_TOKEN            the access key to begin with; SVC_TOKEN_FORCE=1 uses it at every start
  SVC_LINK_NAME        what this device calls itself to other devices
  SVC_MDNS             0: it does not announce itself to them, and does not search
  SVC_LANG             the language that user interfaces begin with
  SVC_LOG_LEVEL        off, error, warn, info, debug, trace
  SVC_LOG_FORMAT       text, or json for one JSON object per line (time, level, target, message, fields)";

/// Options of the headless host.
#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// Address and port to listen on
    #[arg(long, overrides_with = "bind", value_name = "ADDRESS:PORT", env = environment::BIND, default_value_t = everywhere(), value_parser = parse_bind)]
    bind: SocketAddr,
    /// Proxy whose X-Forwarded-For is trusted; several are separated by commas
    #[arg(long = "trusted-proxy", value_name = "ADDRESS", env = environment::TRUSTED_PROXIES, value_delimiter = ',')]
    trusted_proxies: Vec<IpAddr>,
    #[command(flatten)]
    host: HostArgs,
}

/// Options of the desktop host.
#[derive(Debug, clap::Args)]
pub(super) struct AgentArgs {
    #[command(flatten)]
    host: HostArgs,
}

fn everywhere() -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], DEFAULT_PORT))
}

fn parse_bind(text: &str) -> Result<SocketAddr, String> {
    let form = "write an address and a port, such as 0.0.0.0:17800, 127.0.0.1:8080 or [::]:17800";
    text.trim().parse().map_err(|_| form.to_owned())
}

pub(super) fn serve(args: ServeArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let places = args.host.begin(environment, "agent")?;
    let mut config = Config::new(Edition::Headless, directories::agent(&places.data));
    config.bind = Some(args.bind);
    config.trusted_proxies = args.trusted_proxies;
    start(config, &places, environment)
}

pub(super) fn agent(args: AgentArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let mut places = args.host.begin(environment, "agent")?;
    places.keys.get_or_insert(Keys::Desktop);
    let config = Config::new(Edition::Desktop, directories::agent(&places.data));
    start(config, &places, environment)
}

fn start(mut config: Config, places: &Places, environment: &Environment) -> anyhow::Result<Exit> {
    // What read the command line is not needed again.
    memory::release_code();
    if let Some(limit) = descriptors::raise_limit() {
        config.max_connections = descriptors::connections(limit, config.max_connections);
    }
    config.preset_key = preset_key(environment);
    config.older = older::switches(&places.data);
    config.language.clone_from(&environment.language);
    config.link_name.clone_from(&environment.link_name);
    config.mdns = !environment.is_mdns_off;
    let program = std::env::current_exe().context("cannot find this executable")?;
    let takes_any_port = config.bind.is_some_and(|address| address.port() == 0);
    let (restarts, requests) = mpsc::channel(1);
    config.restarts = cfg!(unix).then_some(restarts);
    let command = DaemonCommand {
        program: program.clone(),
        arguments: places.daemon_arguments(),
        data_dir: places.data.clone(),
    };
    let mut restarts = Restarts { requests, program };
    let sibling = Sibling::new(command);
    let ended = runtime::run(run(config, places, sibling, &mut restarts, environment))??;
    match ended {
        Ended::With(exit) => Ok(exit),
        // Clients find it where it was.
        Ended::ToRestart(address) => Err(restarts.exec(takes_any_port.then_some(address))),
    }
}

/// How the process goes on after its agent.
enum Ended {
    With(Exit),
    /// The agent was reached at this address.
    ToRestart(SocketAddr),
}

/// The key from the environment. An invalid one is reported and ignored; the host then keeps its stored key, if any.
fn preset_key(environment: &Environment) -> Option<PresetKey> {
    let token = environment.token.as_ref()?;
    match AccessKey::new(token.expose()) {
        Ok(key) if environment.is_token_forced => Some(PresetKey::Forced(key)),
        Ok(key) => Some(PresetKey::Initial(key)),
        Err(weak) => {
            warn(&UsageError::new(environment::TOKEN, format!("not used: {weak}")));
            None
        }
    }
}

async fn run(
    config: Config,
    places: &Places,
    sibling: Sibling,
    restarts: &mut Restarts,
    environment: &Environment,
) -> anyhow::Result<Ended> {
    let mut stop = StopRequests::listen().context("cannot listen for signals")?;
    let edition = config.edition;
    let agent = Agent::start(config, sibling.clone()).await?;
    memory::release_code();
    let mut grace = GRACE;
    let mut ended = Ended::With(Exit::Success);
    let refused = tokio::select! {
        refused = welcome(&agent, edition, places, &sibling) => refused?,
        () = stop.next() => None,
        () = attend(&agent, edition, environment) => None,
        () = restarts.accepted() => {
            ended = Ended::ToRestart(agent.local_addr());
            None
        }
        ending = agent.shutdown_requested() => {
            if ending == Ending::AtOnce {
                grace = AT_ONCE;
            }
            None
        }
    };
    if let Some(Refused { code }) = refused {
        // The daemon printed the reason.
        agent.shutdown_keeping_daemon(GRACE).await;
        return Ok(Ended::With(Exit::from_code(code)));
    }
    let was_connected = agent.is_connected();
    let is_restart = matches!(ended, Ended::ToRestart(_));
    let ending = async {
        if is_restart {
            agent.shutdown_for_restart(grace).await;
        } else {
            agent.shutdown(grace).await;
        }
        // An unreachable daemon did not receive the shutdown request.
        sibling
            .ended(if was_connected { 2 * GRACE } else { Duration::ZERO })
            .await;
    };
    tokio::pin!(ending);
    loop {
        tokio::select! {
            () = &mut ending => return Ok(ended),
            () = stop.next() => match ended {
                // For a service that restarts it is the first request to end.
                Ended::ToRestart(_) => ended = Ended::With(Exit::Success),
                Ended::With(_) => return Ok(Ended::With(Exit::Unfinished)),
            },
        }
    }
}

/// Attends to the desktop; resolves if its user wants the service to end after the last download.
async fn attend(agent: &Agent, edition: Edition, environment: &Environment) {
    #[cfg(unix)]
    if edition == Edition::Desktop {
        let page = greeting::page(agent);
        return desktop::attend(agent.desk(), page, environment).await;
    }
    std::future::pending::<()>().await;
}

/// Prints the greeting once everything is up, then resolves only if the daemon fails to start.
async fn welcome(
    agent: &Agent,
    edition: Edition,
    places: &Places,
    sibling: &Sibling,
) -> anyhow::Result<Option<Refused>> {
    tokio::select! {
        refused = sibling.refused() => return Ok(Some(refused)),
        _late = tokio::time::timeout(GREETING_WAIT, agent.connected()) => {}
    }
    print_bytes(greeting::text(agent, edition, places).as_bytes())?;
    tokio::select! {
        refused = sibling.refused() => Ok(Some(refused)),
        never = memory::release_regularly() => match never {},
    }
}

/// The exit for a failed start.
pub(super) fn exit(error: &StartError) -> Exit {
    match error {
        StartError::Listen { .. } => Exit::Network,
        StartError::Directory(_) => Exit::CannotCreate,
        StartError::NoRandom(_) | StartError::Link(_) => Exit::Internal,
    }
}
