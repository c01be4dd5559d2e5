//! `daemon.torrent.*`, and the torrent files of new tasks.

use std::{sync::Arc, time::Instant};

use data_encoding::BASE64;
use engine::{Phase, Task};
use metainfo::{Info, Magnet, Metainfo};
use protocol::{
    CreateTaskRequest, ErrorCode, MAX_BLOB_BYTES, Method, RenameTorrentFileParams, Request, RpcError, TaskIdParams,
    TorrentChangeParams, TorrentDto, TorrentExport, TorrentFiles, TorrentFilesParams, TorrentPeers, TorrentPieces,
    TorrentPiecesParams, TorrentTrackers,
};
use transfer::{ByteCount, FailureKind, SafeUrl};
use transfer_torrent::{NotTorrent, Of, TorrentError, Torrents};

use crate::{
    call::{
        answer::{Answer, done, finish, read, wrote},
        params::task_id,
    },
    options,
    refusal::{Refuse as _, chain, invalid, renaming},
    service::Service,
    view::{self, torrent as shown},
};

pub(super) async fn call(service: &Service, method: Method, request: &Request) -> Result<Answer, RpcError> {
    let torrents = of_service(service)?;
    match method {
        Method::TorrentGet => show(torrents, &*one(service, request).await?).await,
        Method::TorrentFiles => files(service, torrents, request.params()?).await,
        Method::TorrentPeers => peers(torrents, &*one(service, request).await?).await,
        Method::TorrentTrackers => {
            let task = one(service, request).await?;
            let now = Instant::now();
            let trackers = torrents.trackers(task.url()).await;
            let trackers = trackers.iter().map(|tracker| shown::tracker(tracker, now)).collect();
            read(&TorrentTrackers { trackers })
        }
        Method::TorrentPieces => pieces(service, torrents, request.params()?).await,
        Method::TorrentExport => export(torrents, &*one(service, request).await?).await,
        Method::TorrentChange => change(service, torrents, request.params()?).await,
        Method::TorrentRenameFile => {
            let RenameTorrentFileParams {
                task_id: id,
                index,
                path,
            } = request.params()?;
            let task = torrent_task(service, &id).await?;
            check_files(torrents, &task, &[index], "index").await?;
            if task.path.is_none() && torrents.live(task.url()).is_none() {
                // No run has begun, so nothing is there that has a name.
                let before = task.options().torrent.clone().unwrap_or_default();
                let after = options::torrent::renamed(&before, index, path);
                let after = after.map_err(|error| error.with_field("path"))?;
                return finish(service.engine.change_torrent(task.id, after).await);
            }
            if task.run().is_none()
                && stored(torrents, task.url())
                    .await?
                    .is_some_and(|torrent| torrent.info.is_single_file())
            {
                // Its name is the task's.
                torrents.release(task.url()).await;
                let renamed = service.engine.rename(task.id, &path).await;
                renamed.map_err(|error| renaming(&error).with_field("path"))?;
                return done();
            }
            let renamed = torrents.rename_file(place(&task), index, &path).await;
            renamed.map_err(|error| match error {
                TorrentError::Failed(failure) if failure.kind == FailureKind::InvalidSource => {
                    invalid("path", failure.message)
                }
                error => refused(&error),
            })?;
            done()
        }
        Method::TorrentRecheck => {
            let task = one(service, request).await?;
            if task.phase == Phase::Completed {
                return finish(service.engine.recheck(task.id).await);
            }
            torrents.recheck(place(&task)).await.map_err(|error| refused(&error))?;
            done()
        }
        Method::TorrentReannounce => {
            let task = one(service, request).await?;
            torrents.announce(task.url()).await.map_err(|error| refused(&error))?;
            done()
        }
        Method::TorrentSession => read(&shown::session(torrents.session())),
        Method::TorrentRefreshTrackerLists => {
            // Without a list, the session need not begin for this.
            let has_list = service.configuration.torrents().borrow().reads_a_list();
            let lists = if has_list {
                torrents.refresh_lists().await
            } else {
                Ok(Vec::new())
            };
            let lists = lists.map_err(|failure| RpcError::application(ErrorCode::Unavailable, failure.to_string()))?;
            wrote(&shown::lists(lists, view::now_millis() / 1000))
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

fn of_service(service: &Service) -> Result<&Torrents, RpcError> {
    let none = || RpcError::application(ErrorCode::Unsupported, "this service downloads no torrents");
    service.torrents.as_ref().ok_or_else(none)
}

async fn one(service: &Service, request: &Request) -> Result<Arc<Task>, RpcError> {
    let params: TaskIdParams = request.params()?;
    torrent_task(service, &params.task_id).await
}

/// A task that is a torrent.
async fn torrent_task(service: &Service, id: &str) -> Result<Arc<Task>, RpcError> {
    let task = service.engine.task(task_id(id)?).await.refused()?;
    if view::is_torrent(&task) {
        return Ok(task);
    }
    let message = format!("the task {id} is no torrent");
    Err(RpcError::application(ErrorCode::Conflict, message).with_field("taskId"))
}

fn place(task: &Task) -> Of<'_> {
    Of {
        url: task.url(),
        directory: &task.save_dir,
        path: task.path.as_deref(),
        paths: task.options().torrent.as_ref().map_or(&[], |torrent| &torrent.paths),
    }
}

fn refused(error: &TorrentError) -> RpcError {
    let message = error.to_string();
    match error {
        TorrentError::NotTorrent | TorrentError::NotRunning(_) => RpcError::application(ErrorCode::Conflict, message),
        TorrentError::NoMetadata(_) => RpcError::application(ErrorCode::Conflict, message).with_retryable(true),
        TorrentError::Failed(failure) => {
            let code = match failure.kind {
                FailureKind::InvalidSource => ErrorCode::InvalidArgument,
                FailureKind::Exists => ErrorCode::Conflict,
                _ => ErrorCode::Unavailable,
            };
            RpcError::application(code, message)
        }
    }
}

/// The stored metainfo of a task; `None` while the metadata of its magnet link is unknown.
async fn stored(torrents: &Torrents, url: &SafeUrl) -> Result<Option<Metainfo>, RpcError> {
    let stored = torrents.metainfo(url).await;
    stored.map_err(|failure| RpcError::application(ErrorCode::Unavailable, failure.to_string()))
}

/// The stored info of a task, without which a call makes no sense.
async fn known(torrents: &Torrents, task: &Task) -> Result<Info, RpcError> {
    match stored(torrents, task.url()).await? {
        Some(metainfo) => Ok(metainfo.info),
        None => Err(refused(&match Torrents::info_hash(task.url()) {
            Some(torrent) => TorrentError::NoMetadata(torrent),
            None => TorrentError::NotTorrent,
        })),
    }
}

async fn show(torrents: &Torrents, task: &Task) -> Result<Answer, RpcError> {
    let live = torrents.live(task.url());
    let mut torrent = match stored(torrents, task.url()).await? {
        Some(metainfo) => {
            let mut torrent = shown::of_metainfo(&metainfo);
            if live.is_none() {
                let pieces = torrents.pieces(place(task)).await;
                let pieces = pieces.map_err(|error| refused(&error))?;
                torrent.pieces_have = pieces.as_ref().map_or(0, shown::count);
            }
            torrent
        }
        None => match task.url().expose().parse::<Magnet>() {
            Ok(magnet) => shown::of_magnet(magnet),
            // Another version accepted it.
            Err(_) => TorrentDto::default(),
        },
    };
    torrent.task_id = task.id.to_string();
    if let Some(live) = live {
        shown::add_live(&mut torrent, live);
    }
    let options = task.options().torrent.clone().unwrap_or_default();
    torrent.options = options::torrent::shown(&options);
    read(&torrent)
}

async fn files(service: &Service, torrents: &Torrents, params: TorrentFilesParams) -> Result<Answer, RpcError> {
    let limit = limit(params.limit, 1, TorrentFiles::MAX)?;
    let task = torrent_task(service, &params.task_id).await?;
    let info = known(torrents, &task).await?;
    let views = torrents.files(place(&task)).await.map_err(|error| refused(&error))?;
    let end = params.offset.saturating_add(limit).min(views.len());
    let page = views.iter().enumerate().take(end).skip(params.offset);
    let options = task.spec().torrent.unwrap_or_default();
    read(&TorrentFiles {
        files: page
            .map(|each| shown::file(&info, &task.save_dir, each, &options.files))
            .collect(),
        total: views.len(),
        next_offset: (end < views.len()).then_some(end),
    })
}

async fn peers(torrents: &Torrents, task: &Task) -> Result<Answer, RpcError> {
    let pieces = match stored(torrents, task.url()).await? {
        Some(metainfo) => metainfo.info.piece_count(),
        None => 0,
    };
    let peers = torrents.peers(task.url()).await;
    read(&TorrentPeers {
        peers: peers.iter().map(|peer| shown::peer(peer, pieces)).collect(),
    })
}

async fn pieces(service: &Service, torrents: &Torrents, params: TorrentPiecesParams) -> Result<Answer, RpcError> {
    let limit = limit(params.limit, 0, TorrentPieces::MAX)?;
    let task = torrent_task(service, &params.task_id).await?;
    let info = known(torrents, &task).await?;
    let view = torrents.pieces(place(&task)).await.map_err(|error| refused(&error))?;
    let none = || refused(&TorrentError::NoMetadata(info.hash()));
    let view = view.ok_or_else(none)?;
    read(&shown::pieces(&info, &view, params.offset, limit))
}

fn limit(asked: Option<usize>, least: usize, most: usize) -> Result<usize, RpcError> {
    let limit = asked.unwrap_or(most);
    if (least..=most).contains(&limit) {
        return Ok(limit);
    }
    Err(invalid(
        "limit",
        format!("limit is {limit}; it must be {least} to {most}"),
    ))
}

async fn export(torrents: &Torrents, task: &Task) -> Result<Answer, RpcError> {
    let export = match stored(torrents, task.url()).await? {
        Some(metainfo) => TorrentExport {
            file_name: format!("{}.torrent", metainfo.info.name().as_str()),
            torrent_b64: BASE64.encode(&metainfo.encode()),
            magnet: metainfo.magnet().to_string(),
        },
        None => TorrentExport {
            file_name: format!("{}.torrent", task.file_name()),
            torrent_b64: String::new(),
            magnet: task.url().expose().to_owned(),
        },
    };
    read(&export)
}

async fn change(service: &Service, torrents: &Torrents, params: TorrentChangeParams) -> Result<Answer, RpcError> {
    let task = torrent_task(service, &params.task_id).await?;
    let before = task.options().torrent.clone().unwrap_or_default();
    if let Some(files) = &params.change.files {
        check_files(torrents, &task, files, "files").await?;
    }
    let after = options::torrent::changed(&before, params.change)?;
    if after == *before {
        return done();
    }
    finish(service.engine.change_torrent(task.id, after).await)
}

/// Refuses places at which a torrent whose files are known has none.
async fn check_files(torrents: &Torrents, task: &Task, places: &[u32], field: &str) -> Result<(), RpcError> {
    match stored(torrents, task.url()).await? {
        Some(metainfo) => check_places(&metainfo.info, places, field),
        None => Ok(()),
    }
}

fn check_places(info: &Info, places: &[u32], field: &str) -> Result<(), RpcError> {
    let count = info.files().len();
    match places.iter().find(|place| **place as usize >= count) {
        None => Ok(()),
        Some(place) => {
            let message = format!(
                "{field} names file {place}, and the torrent {} has {count}, counted from 0",
                info.name().as_str()
            );
            Err(invalid(field, message))
        }
    }
}

/// A link for the check of a request whose own follows from its torrent file.
const ANY_TORRENT: &str = "magnet:?xt=urn:btih:0000000000000000000000000000000000000000";

/// Stores the torrent file of a request durably; the request is then one for its magnet link.
pub(super) async fn keep(service: &Service, request: &mut CreateTaskRequest) -> Result<(), RpcError> {
    let field = match (&request.torrent_b64, &request.torrent_blob_id) {
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => {
            let message = "torrentBlobId and torrentB64 exclude each other";
            return Err(invalid("torrentBlobId", message));
        }
        (Some(_), None) => "torrentB64",
        (None, Some(_)) => "torrentBlobId",
    };
    let torrents = of_service(service).map_err(|error| error.with_field(field))?;
    if !request.mirrors.is_empty() {
        let message = "a torrent has web servers in place of mirrors: give them in torrent.webseeds";
        return Err(invalid("mirrors", message));
    }
    // First, so that nothing is stored for a request that is refused.
    let others = CreateTaskRequest {
        url: ANY_TORRENT.to_owned(),
        torrent_b64: None,
        torrent_blob_id: None,
        ..request.clone()
    };
    options::spec(others, None)?;
    let bytes = match (request.torrent_b64.take(), request.torrent_blob_id.take()) {
        (Some(text), _) => decode(&text)?,
        (None, Some(id)) => uploaded(service, &id)?,
        (None, None) => return Ok(()),
    };
    let kept = torrents.keep(bytes).await.map_err(|error| match error {
        NotTorrent::Invalid(error) => invalid(field, chain(&error)),
        NotTorrent::Store(failure) => RpcError::application(ErrorCode::Unavailable, failure.to_string()),
    })?;
    let files = request.torrent.as_ref().map(|torrent| &*torrent.files);
    check_places(&kept.info, files.unwrap_or_default(), "torrent.files")?;
    let named = SafeUrl::parse(&request.url).ok();
    let named = named.and_then(|url| Torrents::info_hash(&url));
    if named.is_some_and(|hash| hash != kept.info.hash()) {
        let message = format!("url is of another torrent than the file, which is {}", kept.info.hash());
        return Err(invalid("url", message));
    }
    if let Some(torrent) = &mut request.torrent {
        // They are about magnet links: the file is the metadata.
        (torrent.metadata_only, torrent.save_metadata) = (false, false);
    }
    kept.url.expose().clone_into(&mut request.url);
    Ok(())
}

fn decode(text: &str) -> Result<Vec<u8>, RpcError> {
    let bytes = BASE64.decode(text.trim().as_bytes());
    bytes.map_err(|_| invalid("torrentB64", "the torrent file is not in base64"))
}

fn uploaded(service: &Service, id: &str) -> Result<Vec<u8>, RpcError> {
    let none = || {
        let message = format!(
            "the upload is unknown, used or expired; upload the torrent file again, of at most {}",
            ByteCount(MAX_BLOB_BYTES as u64)
        );
        invalid("torrentBlobId", message)
    };
    service.blobs.take(id).map(Vec::from).ok_or_else(none)
}
