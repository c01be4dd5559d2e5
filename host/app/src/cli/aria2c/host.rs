//! Engine, daemon and agent in one process, with nothing on the disk but the downloads.

use std::{sync::Arc, time::Duration};

use agent::{AccessKey, Agent, ByteStream, Connect, ConnectError, Found, PresetKey};
use aria2::SessionFile;
use daemon::{Connector, Daemon};
use engine::{ProxyMode, Settings};
use futures_util::future::{BoxFuture, FutureExt as _};
use transfer_http::HttpTransport;

use super::{Refused, plan::Plan, session::Session};
use crate::descriptors;

/// How long runs may take to save what they have.
const GRACE: Duration = Duration::from_secs(10);

/// How long answers may take that are under way at the end: the one to whoever asked for it is among them.
const ANSWER_GRACE: Duration = Duration::from_millis(500);

/// The service, without a place of its own.
#[derive(Debug)]
pub(super) struct Host {
    daemon: Daemon,
    pub(super) agent: Agent,
    pub(super) session: Option<Session>,
}

/// The way from the agent to the daemon beside it.
struct Near {
    found: Found,
    connector: Connector,
}

impl Connect for Near {
    fn find(&self) -> BoxFuture<'_, Result<Found, ConnectError>> {
        std::future::ready(Ok(self.found.clone())).boxed()
    }

    fn dial<'a>(&'a self, _: &'a Found) -> BoxFuture<'a, std::io::Result<Box<dyn ByteStream>>> {
        std::future::ready(Ok(Box::new(self.connector.connect()) as Box<dyn ByteStream>)).boxed()
    }
}

impl Host {
    /// Starts everything. Clients have to wait until [`Agent::open`].
    pub(super) async fn start(plan: &Plan) -> Result<Self, Refused> {
        let limit = descriptors::raise_limit();
        let transport = HttpTransport::new(plan.transport.clone())
            .map_err(|failure| Refused::bad_value("ca-certificate", &failure.message))?;
        let mut config = daemon::Config::in_memory(&plan.directory);
        config.engine.adopts = true;
        config.engine.system_proxy = plan.proxy.clone();
        let daemon = Daemon::start(config, vec![Arc::new(transport)])
            .await
            .map_err(Refused::of)?;
        let engine = daemon.engine().clone();
        // Runs retry by themselves, as often as the user said.
        let settings = Settings {
            max_auto_retries: Some(0),
            proxy_mode: ProxyMode::System,
            ..Settings::default()
        };
        engine.change_settings(None, settings).await.map_err(Refused::of)?;
        let session = plan.saving.clone().map(|saving| Session {
            engine,
            saving,
            usual: Arc::new(plan.usual.clone()),
            began_with: Arc::default(),
        });
        let mut config = agent::Config::drop_in();
        if let Some(limit) = limit {
            config.max_connections = descriptors::connections(limit, config.max_connections);
        }
        config.session_file = session.clone().map(|session| Arc::new(session) as Arc<dyn SessionFile>);
        config.started_with = plan.options.of_start();
        if let Some(door) = &plan.door {
            config.bind = Some(door.address);
            config.preset_key = door.secret.clone().map(AccessKey::agreed).map(PresetKey::Forced);
            config.allows_any_origin = door.allows_any_origin;
        }
        let near = Near {
            found: Found {
                token: daemon.token().clone(),
                port: 0,
            },
            connector: daemon.connector(),
        };
        let agent = Agent::start(config, near).await.map_err(Refused::of)?;
        agent.connected().await;
        Ok(Self { daemon, agent, session })
    }

    /// Ends everything; what runs have is recorded beside their files.
    pub(super) async fn end(self) {
        self.agent.leave(ANSWER_GRACE).await;
        self.daemon.shutdown(GRACE).await;
    }
}
