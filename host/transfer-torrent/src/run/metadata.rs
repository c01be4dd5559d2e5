//! The metadata of a magnet link.

use std::{sync::Arc, time::Duration};

use metainfo::{Info, Metainfo};
use tokio::time::timeout;
use torrent::{Content, Status, TorrentSpec};
use transfer::{Failure, FailureKind, Outcome, Stage};

use super::{Run, Step, sources::Sources};
use crate::{
    session::Open,
    swarm::{Search, Swarm, removed},
};

/// How long it may take, unless the task says otherwise.
const METADATA_TIMEOUT: Duration = Duration::from_mins(5);

impl Run {
    /// The metadata of a magnet link from its peers, stored, and the search that found them.
    pub(super) async fn fetch_metadata(&self, open: &Open) -> Step<(Metainfo, Option<Search>)> {
        let sources = Sources::of_magnet(&self.magnet);
        let spec = TorrentSpec {
            stops_after_metadata: true,
            ..self.spec(Content::Hash(self.torrent()), &sources)
        };
        let swarm = self.join(open, spec, sources, None).await?;
        let info = match self.await_metadata(&swarm).await {
            Ok(info) => info,
            Err(outcome) => {
                swarm.close().await;
                return Err(outcome);
            }
        };
        let metainfo = Sources::of_magnet(&self.magnet).describe(info);
        let stored = self.shared.shelf.keep(self.torrent(), metainfo.encode()).await;
        if self.options.stops_after_metadata || stored.is_err() {
            swarm.close().await;
            return Err(stored.map_or_else(Outcome::Failed, |()| Outcome::Waits));
        }
        Ok((metainfo, swarm.release().await))
    }

    async fn await_metadata(&self, swarm: &Swarm) -> Step<Info> {
        let limit = self.options.metadata_timeout.unwrap_or(METADATA_TIMEOUT);
        let mut watch = swarm.torrent.watch();
        let waiting = async {
            loop {
                let view = Arc::clone(&watch.borrow_and_update());
                self.report(&view, Stage::Preparing, None);
                match (&view.info, &view.status) {
                    (Some(info), _) => return Ok(info.clone()),
                    (None, Status::Failed(failure)) => return Err(Outcome::Failed(failure.clone())),
                    (None, Status::Removed) => return Err(removed()),
                    _ => {}
                }
                if watch.changed().await.is_err() {
                    return Err(removed());
                }
            }
        };
        tokio::select! {
            () = self.job.stop.cancelled() => Err(Outcome::Stopped),
            waited = timeout(limit, waiting) => waited.unwrap_or_else(|_| {
                let peers = swarm.torrent.view().peers;
                let message = format!(
                    "the metadata of the torrent {} did not come within {} s: {peers} peers were connected at the end. A \
                     magnet link with trackers, or a torrent file, helps",
                    self.torrent(),
                    limit.as_secs()
                );
                Err(Outcome::Failed(Failure::new(FailureKind::NotFound, message)))
            }),
        }
    }
}
