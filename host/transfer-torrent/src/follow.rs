//! Links that lead to torrent files.

use std::{fs::File, io::Read as _, path::Path, sync::Arc};

use metainfo::MAX_METAINFO_BYTES;
use transfer::{
    Failure, FailureKind, Finished, GivenBy, Job, ListFuture, Outcome, Purpose, RunEvent, RunFuture, SafeUrl, Source,
    Transport, UserHost,
};

use crate::{torrents::Torrents, view::NotTorrent};

/// A transport whose downloads of torrent files become downloads of the torrents.
#[derive(Debug, Clone)]
pub struct Following {
    inner: Arc<dyn Transport>,
    torrents: Torrents,
}

impl Following {
    /// Follows what `inner` downloads.
    pub fn new(inner: Arc<dyn Transport>, torrents: Torrents) -> Self {
        Self { inner, torrents }
    }
}

impl Transport for Following {
    fn schemes(&self) -> &'static [&'static str] {
        self.inner.schemes()
    }

    fn run(&self, job: Job) -> RunFuture {
        if !job.source.follows_torrents || job.purpose != Purpose::Download {
            return self.inner.run(job);
        }
        let (url, given_by, reporter) = (
            job.source.urls[0].clone(),
            job.source.given_by.clone(),
            job.reporter.clone(),
        );
        let running = self.inner.run(job);
        let torrents = self.torrents.clone();
        Box::pin(async move {
            let outcome = running.await;
            let Outcome::Finished(finished) = outcome else {
                return outcome;
            };
            match follow(&torrents, &finished).await {
                Ok(Some(torrent)) => Outcome::Became {
                    url: torrent,
                    given_by: supplier(given_by, &url),
                },
                Ok(None) => Outcome::Finished(finished),
                Err(failure) => {
                    let notice = format!("the torrent was not followed: {failure}");
                    reporter.event(RunEvent::Notice(notice)).await;
                    Outcome::Finished(finished)
                }
            }
        })
    }

    fn is_directory(&self, url: &SafeUrl) -> bool {
        self.inner.is_directory(url)
    }

    fn list(&self, source: Source) -> ListFuture {
        self.inner.list(source)
    }
}

/// Stores a finished file that is a torrent, and removes it. Whether it is one is decided by its content, because servers
/// call torrents many things.
async fn follow(torrents: &Torrents, finished: &Finished) -> Result<Option<SafeUrl>, Failure> {
    let limit = MAX_METAINFO_BYTES as u64;
    if !finished.is_own || finished.size_bytes == 0 || finished.size_bytes > limit {
        return Ok(None);
    }
    // On a lane, which may block: a thread for each of thousands of small files would cost more than the file.
    let (path, directory) = (finished.path.clone(), finished.path.parent().unwrap_or(&finished.path));
    let reading = torrents
        .lanes()
        .run(directory, move || async move { read_dictionary(&path, limit) });
    let read = reading
        .await
        .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
    let Some(bytes) = read? else {
        return Ok(None);
    };
    let kept = match torrents.keep(bytes).await {
        Ok(kept) => kept,
        Err(NotTorrent::Invalid(error)) if is_named_torrent(&finished.path) => {
            return Err(Failure::new(FailureKind::NotTheFile, error.to_string()));
        }
        Err(NotTorrent::Invalid(_)) => return Ok(None),
        Err(NotTorrent::Store(failure)) => return Err(failure),
    };
    let removed = tokio::fs::remove_file(&finished.path).await;
    removed.map_err(|error| Failure::disk("remove", &finished.path, &error))?;
    Ok(Some(kept.url))
}

fn is_named_torrent(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("torrent"))
}

/// The file's bytes if it begins like a torrent: with a dictionary.
fn read_dictionary(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |error: std::io::Error| Failure::disk("read", path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = vec![0];
    file.read_exact(&mut bytes).map_err(failed)?;
    if bytes != b"d" {
        return Ok(None);
    }
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Who supplied the trackers and web servers of a torrent that was found at `url`: its server did, unless that is this
/// machine, which the user named.
fn supplier(given_by: GivenBy, url: &SafeUrl) -> GivenBy {
    match given_by {
        GivenBy::User if url.as_url().host_str().is_some_and(egress::name::is_here) => GivenBy::User,
        GivenBy::User => GivenBy::Other {
            user_host: UserHost::typed(url.as_url()),
        },
        other @ GivenBy::Other { .. } => other,
    }
}
