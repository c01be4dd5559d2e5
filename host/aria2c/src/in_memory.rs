//! Engine, daemon and agent in this process, without any state on disk except the downloads.

use std::{sync::Arc, time::Duration};

use agent::{AccessKey, Agent, PresetKey};
use command::{descriptors, directories};
use daemon::Daemon;
use engine::{ProxyMode, Settings};
use service::Service;
use transfer_ftp::FtpTransport;
use transfer_http::HttpTransport;
use transfer_sftp::SftpTransport;

use crate::{Refused, plan::Plan, session::Session};

/// How long runs may take to save their progress.
const GRACE: Duration = Duration::from_secs(10);

/// How long pending answers may take at shutdown; the answer to the client that requested it is one of them.
const ANSWER_GRACE: Duration = Duration::from_millis(500);

/// The service and aria2's session file.
#[derive(Debug)]
pub(super) struct InMemory {
    service: Service,
    pub(super) session: Session,
}

/// What torrents are downloaded with. Their state outlives this process, as aria2's control files do, so that the same
/// command continues them; without a home directory it is beside the downloads.
fn torrents(plan: &Plan) -> Result<transfer_torrent::Config, Refused> {
    let state = directories::data().map(|data| data.join(crate::NAME));
    let directory = state.unwrap_or_else(|| plan.directory.join(".svc-torrents"));
    transfer_torrent::Config::new(directory).map_err(Refused::of)
}

impl InMemory {
    /// Starts everything. Clients wait until [`Agent::open`].
    pub(super) async fn start(plan: &Plan) -> Result<Self, Refused> {
        let limit = descriptors::raise_limit();
        let transport = HttpTransport::new(plan.transport.clone())
            .map_err(|failure| Refused::bad_value("ca-certificate", &failure.message))?;
        let ftp = FtpTransport::new(plan.ftp.clone())
            .map_err(|failure| Refused::bad_value("ca-certificate", &failure.message))?;
        let sftp = SftpTransport::new(plan.sftp.clone())
            .map_err(|failure| Refused::bad_value("ca-certificate", &failure.message))?;
        let mut config = daemon::Config::in_memory(&plan.directory);
        config.engine.adopts = true;
        config.engine.system_proxy = plan.proxy.clone();
        config.engine.netrc = plan.netrc.clone().map(Arc::new);
        config.torrents = Some(torrents(plan)?);
        let daemon = Daemon::start(config, vec![Arc::new(transport), Arc::new(ftp), Arc::new(sftp)])
            .await
            .map_err(Refused::of)?;
        let engine = daemon.engine().clone();
        // Runs retry by themselves, as often as configured.
        let settings = Settings {
            max_auto_retries: Some(0),
            proxy_mode: ProxyMode::System,
            ..Settings::default()
        };
        engine.change_settings(None, settings).await.map_err(Refused::of)?;
        let session = Session::new(engine, plan.saving.clone(), plan.usual.clone());
        let mut config = agent::Config::drop_in();
        if let Some(limit) = limit {
            config.max_connections = descriptors::connections(limit, config.max_connections);
        }
        config.session_file = Some(Arc::new(session.clone()));
        config.started_with = plan.options.of_start();
        if let Some(listener) = &plan.listener {
            config.bind = Some(listener.address);
            config.preset_key = listener.secret.clone().map(AccessKey::agreed).map(PresetKey::Forced);
            config.allows_any_origin = listener.allows_any_origin;
        }
        let service = Service::start(daemon, config, GRACE).await.map_err(Refused::of)?;
        Ok(Self { service, session })
    }

    pub(super) fn agent(&self) -> &Agent {
        self.service.agent()
    }

    /// Shuts down; runs record their progress beside their files.
    pub(super) async fn end(self) {
        self.service.shutdown(ANSWER_GRACE, GRACE).await;
    }
}
