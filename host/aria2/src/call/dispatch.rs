//! Maps methods to their implementation.

use futures_util::future::BoxFuture;

use super::{
    outcome::{Answered, Outcome, json},
    tally::Tally,
};
use crate::{
    caller::Caller,
    vocabulary::{
        fault::Fault,
        method::{FEATURES, Method, NOTIFICATIONS, VERSION},
        params::Params,
    },
};

impl Caller {
    /// Waits until the tasks are known, if a call concerns them: the answer has no status that says "not yet", and a
    /// program that aria2's clients start and call has to be ready.
    pub(super) async fn wait_for_start(&self, method: Method) {
        if method.concerns_tasks() && self.dialect.service.check().is_err() {
            self.dialect.service.started().await;
        }
    }

    /// Executes a call.
    pub(super) async fn dispatch(&self, method: Method, params: &Params, tally: &Tally<'_>) -> Outcome {
        self.wait_for_start(method).await;
        let command: BoxFuture<'_, Outcome> = match method {
            Method::TellStatus => Box::pin(self.tell_status(params)),
            Method::TellActive | Method::TellWaiting | Method::TellStopped => {
                let most = if tally.is_bounded() {
                    crate::dialect::MAX_TEXT_BYTES
                } else {
                    usize::MAX
                };
                return match Box::pin(self.tell_list(method, params, most)).await? {
                    Answered::Text(list) => Ok(list),
                    Answered::List(_) | Answered::Written => Err(tally.too_long()),
                };
            }
            Method::GetUris => Box::pin(self.get_uris(params)),
            Method::GetFiles => Box::pin(self.get_files(params)),
            Method::GetServers => Box::pin(self.get_servers(params)),
            Method::GetPeers => Box::pin(self.get_peers(params)),
            Method::GetGlobalOption => return self.get_global_option(),
            Method::GetGlobalStat => return self.get_global_stat(),
            Method::GetVersion => {
                return json(&serde_json::json!({"enabledFeatures": FEATURES, "version": VERSION}));
            }
            Method::GetSessionInfo => return json(&serde_json::json!({"sessionId": self.dialect.session})),
            Method::Shutdown | Method::ForceShutdown => return self.shutdown(method == Method::ForceShutdown),
            Method::ListMethods => return json(&Method::NAMES),
            Method::ListNotifications => return json(&NOTIFICATIONS),
            Method::Multicall => return Err(Fault::new("Recursive system.multicall forbidden.")),
            Method::AddTorrent => Box::pin(self.add_torrent(params)),
            Method::AddUri => Box::pin(self.add_uri(params)),
            Method::AddMetalink => Box::pin(self.add_metalink(params)),
            Method::Remove | Method::ForceRemove => Box::pin(self.remove(params)),
            Method::Pause | Method::ForcePause => Box::pin(self.pause(params)),
            Method::PauseAll | Method::ForcePauseAll => Box::pin(self.pause_all()),
            Method::Unpause => Box::pin(self.unpause(params)),
            Method::UnpauseAll => Box::pin(self.unpause_all()),
            Method::ChangePosition => Box::pin(self.change_position(params)),
            Method::GetOption => Box::pin(self.get_option(params)),
            Method::ChangeOption => Box::pin(self.change_option(params)),
            Method::ChangeUri => Box::pin(self.change_uri(params)),
            Method::ChangeGlobalOption => Box::pin(self.change_global_option(params)),
            Method::PurgeDownloadResult => Box::pin(self.purge_download_result()),
            Method::RemoveDownloadResult => Box::pin(self.remove_download_result(params)),
            Method::SaveSession => Box::pin(self.save_session()),
        };
        command.await
    }
}
