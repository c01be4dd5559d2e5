//! Asks the service for what it knows of torrents beyond the records of their tasks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use protocol::{
    ErrorCode, Method, RenameTorrentFileParams, TorrentChange, TorrentChangeParams, TorrentDto, TorrentFiles,
    TorrentFilesParams, TorrentPeers, TorrentPieces, TorrentPiecesParams, TorrentRequest,
};

use super::{
    control::about,
    outcome::{Outcome, json},
};
use crate::{
    board::Download,
    caller::Caller,
    option::{self, Options},
    torrent::{Parts, Torrent, peer},
    vocabulary::{
        fault::{CommandError, Fault},
        params::Params,
    },
};

/// Torrents that are asked for at the same time.
const ASKED_AT_ONCE: usize = 16;

/// How often a torrent is asked for whose run ends, and the time between: leaving a swarm takes less than both.
const TRIES: usize = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// The most files of torrents in one answer: about 30 MiB until it is sent.
const MAX_FILES: usize = 100_000;

impl Caller {
    /// Completes downloads with what is known of their torrents. One that was deleted meanwhile stays as it is.
    pub(super) async fn describe(&self, downloads: &mut [Download], parts: Option<Parts>) -> Result<(), Fault> {
        let Some(parts) = parts else { return Ok(()) };
        let files = &AtomicUsize::new(0);
        let torrents = downloads
            .iter_mut()
            .filter(|download| download.task.is_torrent() && !download.is_removed);
        stream::iter(torrents)
            .for_each_concurrent(ASKED_AT_ONCE, |download| async move {
                if files.load(Ordering::Relaxed) > MAX_FILES {
                    return;
                }
                download.torrent = self.settled(download, parts).await.map(Arc::new);
                let more = download.torrent.as_ref().map_or(0, |torrent| torrent.files.len());
                files.fetch_add(more, Ordering::Relaxed);
            })
            .await;
        if files.load(Ordering::Relaxed) > MAX_FILES {
            return Err(Fault::new(format!(
                "The torrents of one answer have at most {MAX_FILES} files: call this for fewer downloads, or without the \
                key files."
            )));
        }
        Ok(())
    }

    pub(super) async fn described(&self, mut download: Download, parts: Option<Parts>) -> Result<Download, Fault> {
        self.describe(std::slice::from_mut(&mut download), parts).await?;
        Ok(download)
    }

    /// What is known of a torrent, asked for again for a moment while its run ends: then it is refused.
    async fn settled(&self, download: &Download, parts: Parts) -> Option<Torrent> {
        for _ in 0..TRIES {
            match self.torrent(download, parts).await {
                Ok(torrent) => return Some(torrent),
                Err(CommandError::Refused(error)) if error.application_code() == Some(ErrorCode::Conflict) => {
                    tokio::time::sleep(BETWEEN_TRIES).await;
                }
                Err(_) => return None,
            }
        }
        None
    }

    async fn torrent(&self, download: &Download, parts: Parts) -> Result<Torrent, CommandError> {
        let described: TorrentDto = self.command(Method::TorrentGet, &about(download)).await?;
        let mut torrent = Torrent {
            about: described,
            ..Torrent::default()
        };
        if torrent.about.options.metadata_only {
            // For aria2 it is a download of the metadata, which never has files.
            torrent.about.has_metadata = false;
        }
        if parts.files && torrent.about.has_metadata {
            torrent.files = self.torrent_files(download).await?;
        }
        if parts.pieces && torrent.about.has_metadata {
            let asked = TorrentPiecesParams {
                task_id: download.task.id().to_owned(),
                offset: 0,
                limit: Some(0),
            };
            let pieces: TorrentPieces = self.command(Method::TorrentPieces, &asked).await?;
            torrent.pieces = Some(pieces);
        }
        Ok(torrent)
    }

    async fn torrent_files(&self, download: &Download) -> Result<Vec<protocol::TorrentFileDto>, CommandError> {
        let mut files = Vec::new();
        let mut offset = Some(0);
        while let Some(from) = offset {
            let asked = TorrentFilesParams {
                task_id: download.task.id().to_owned(),
                offset: from,
                limit: None,
            };
            let page: TorrentFiles = self.command(Method::TorrentFiles, &asked).await?;
            // A page that brings nothing would be asked for again without end.
            offset = page.next_offset.filter(|next| *next > from && files.len() <= MAX_FILES);
            files.extend(page.files);
        }
        Ok(files)
    }

    /// Changes how a torrent is downloaded; `after` is a [`TorrentRequest`] or null.
    pub(super) async fn change_torrent(
        &self,
        download: &Download,
        before: &TorrentRequest,
        after: serde_json::Value,
    ) -> Result<(), Fault> {
        let after: Option<TorrentRequest> =
            serde_json::from_value(after).map_err(|error| Fault::new(error.to_string()))?;
        let after = after.unwrap_or_default();
        let changed = |is_changed: bool, list: &Vec<String>| is_changed.then(|| list.clone());
        let change = TorrentChange {
            files: (after.files != before.files).then(|| after.files.clone()),
            trackers: changed(after.trackers != before.trackers, &after.trackers),
            first_last_piece_first: Some(after.first_last_piece_first),
            head_bytes: Some(after.head_bytes),
            tail_bytes: Some(after.tail_bytes),
            metadata_timeout_secs: Some(after.metadata_timeout_secs.unwrap_or(0)),
            stall_timeout_secs: Some(after.stall_timeout_secs.unwrap_or(0)),
            max_peers: Some(after.max_peers.unwrap_or(0)),
            ..TorrentChange::default()
        };
        let params = TorrentChangeParams {
            task_id: download.task.id().to_owned(),
            change,
        };
        self.order(Method::TorrentChange, &params).await
    }

    /// Gives the files that `index-out` names another path in the directory of the torrent.
    pub(super) async fn rename_torrent_files(&self, download: &Download, options: &Options) -> Result<(), Fault> {
        let renamed = option::index_out(options)?;
        if renamed.is_empty() {
            return Ok(());
        }
        let torrent: TorrentDto = self.command(Method::TorrentGet, &about(download)).await?;
        for (index, path) in renamed {
            let path = option::below_top(path, &torrent.name);
            let rename = RenameTorrentFileParams {
                task_id: download.task.id().to_owned(),
                index: index - 1,
                path: path.to_owned(),
            };
            self.order(Method::TorrentRenameFile, &rename).await?;
        }
        Ok(())
    }

    pub(super) async fn get_peers(&self, params: &Params) -> Outcome {
        let download = self.named(params.text(0)?)?;
        if download.is_stopped() {
            return Err(Fault::new(format!(
                "No peer data is available for GID#{}",
                download.gid
            )));
        }
        if !download.task.is_torrent() {
            return json(&[(); 0]);
        }
        let found: TorrentPeers = self.command(Method::TorrentPeers, &about(&download)).await?;
        json(&found.peers.iter().map(peer).collect::<Vec<_>>())
    }
}
