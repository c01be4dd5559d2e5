//! The destination of a run's file: its name, its part file, and the final rename.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use tokio::runtime::Handle;

use crate::{
    Checksum, Claim, Claimed, Failure, FailureKind, FileName, Finished, OnConflict, Origin, Outcome, PartFile,
    Progress, Recorded, Reporter, RunEvent, SafeUrl, Stage, Target,
    run::{background::blocking, hashing::hash_file},
};

/// How long a part file that this task reserved may still be locked. A run that was stopped leaves its last reservation
/// or sync to a thread of its own, which holds the file until that is done; the next run must not fail for that.
const RELEASE: Duration = Duration::from_secs(5);

/// The pause between two looks at that lock.
const RELEASE_POLL: Duration = Duration::from_millis(20);

/// The destination of one run.
#[derive(Debug)]
pub struct Destination {
    /// Where the file goes.
    pub target: Target,
    /// SHA-256 of the first URL: identifies the source without revealing it.
    pub source_id: String,
    name_of_url: Option<FileName>,
    /// Whether the finished file of this name is replaced, whatever the rule is: it failed the check of its integrity.
    pub replaces: Cell<bool>,
    reporter: Reporter,
}

impl Destination {
    /// The destination of the file at `url`, which is called `name_of_url` if the server gives no other name.
    pub fn new(url: &SafeUrl, name_of_url: Option<FileName>, target: Target, reporter: Reporter) -> Self {
        Self {
            target,
            source_id: Origin::at(url).source,
            name_of_url,
            replaces: Cell::new(false),
            reporter,
        }
    }

    /// The name that is known before the server is asked.
    pub fn expected_name(&self) -> Option<FileName> {
        let reserved = self.target.reserved.as_ref().and_then(|path| path.file_name());
        let reserved = reserved.map(|name| FileName::sanitise(&name.to_string_lossy()));
        reserved
            .or_else(|| self.target.name.clone())
            .or_else(|| self.name_of_url.clone())
    }

    /// Claims the part file of an earlier run whose path is known before the first request: the path that the task
    /// reserved (created again if it is gone), or for a command-line run one of the expected name.
    pub async fn find_begun(&self, total: Option<u64>) -> Result<Option<Claimed>, Failure> {
        let expected = self.expected_name();
        let fallback = FileName::sanitise("");
        let claim = self.claim_of(expected.as_ref().unwrap_or(&fallback));
        if let Some(path) = &self.target.reserved {
            let until = Instant::now() + RELEASE;
            loop {
                let reclaiming = PartFile::reclaim(path, &claim, async |path| self.reserve(path, total).await);
                match reclaiming.await {
                    Err(failure) if failure.kind == FailureKind::InUse && Instant::now() < until => {
                        tokio::time::sleep(RELEASE_POLL).await;
                    }
                    claimed => return claimed.map(Some),
                }
            }
        }
        if !self.target.adopt || expected.is_none() {
            return Ok(None);
        }
        let Some((part, begun)) = PartFile::find_begun(&claim)? else {
            return Ok(None);
        };
        if self.target.check_integrity {
            part.replace_lent();
        }
        self.reserve(&part.final_path(), total).await?;
        Ok(Some(Claimed::Begun(part, begun)))
    }

    /// Claims the part file of `name`. Sends a notice if another name was taken because the existing part file may be
    /// another user's.
    pub async fn claim(&self, name: &FileName, total: Option<u64>) -> Result<Claimed, Failure> {
        let claim = self.claim_of(name);
        let claimed = PartFile::claim(&claim, async |path| self.reserve(path, total).await).await?;
        let (Claimed::New(part) | Claimed::Begun(part, _)) = &claimed else {
            return Ok(claimed);
        };
        if self.target.adopt
            && part.final_path() != claim.directory.join(name.as_str())
            && let Some(why) = PartFile::not_ours(claim.directory, name)
        {
            self.reporter.event(RunEvent::Notice(why)).await;
        }
        Ok(claimed)
    }

    /// The finished file of this name and size, if it is to be checked and has the checksum `wanted`. One with another
    /// checksum is replaced when the download is complete.
    pub async fn find_finished(
        &self,
        name: &FileName,
        total: Option<u64>,
        wanted: Option<&Checksum>,
    ) -> Result<Option<Outcome>, Failure> {
        let (Some(wanted), Some(size_bytes)) = (wanted, total) else {
            return Ok(None);
        };
        if !self.target.check_integrity {
            return Ok(None);
        }
        let path = self.target.directory.join(name.as_str());
        let Some(file) = PartFile::finished(&path, size_bytes) else {
            return Ok(None);
        };
        self.reporter.progress(Progress {
            stage: Stage::Verifying,
            total_bytes: total,
            ..Progress::default()
        });
        let found = hash_file(file, path.clone(), wanted.clone()).await?;
        if found != *wanted {
            let name = wanted.algorithm().name();
            let message = format!("{} is there with another {name}: downloading it again", path.display());
            self.reporter.event(RunEvent::Notice(message)).await;
            self.replaces.set(true);
            return Ok(None);
        }
        // Another task's file is not this one's.
        let is_free = self.reserve(&path, total).await? == Recorded::Done;
        Ok(is_free.then_some(Outcome::Finished(Finished {
            path,
            size_bytes,
            received_bytes: 0,
            is_own: false,
            can_seed: false,
        })))
    }

    /// Renames the verified part file of `size` bytes to its final name.
    pub async fn finish(
        &self,
        part: Arc<PartFile>,
        size: u64,
        modified: Option<SystemTime>,
    ) -> Result<PathBuf, Failure> {
        if !self.target.adopt {
            let reporter = self.reporter.clone();
            let record = move |landing| {
                let recording = reporter.record(RunEvent::Landing(landing));
                Handle::current().block_on(recording).map(drop)
            };
            blocking("finishing", move || part.finish(size, modified, record)).await
        } else if part.has_disk() {
            blocking("finishing", move || part.finish(size, modified, |_| Ok(()))).await
        } else {
            part.finish(size, modified, |_| Ok(()))
        }
    }

    /// Syncs what a later run can resume from, or deletes the part file. Returns whether anything was saved.
    pub async fn keep(&self, part: Arc<PartFile>, done: u64) -> bool {
        if !part.has_journal() || done == 0 {
            part.discard();
            return false;
        }
        // On a full or failing disk the journal has what could be recorded; nothing more can be done.
        if let Err(failure) = blocking("saving", move || part.sync()).await {
            tracing::warn!(%failure, "the state of a stopped download is not fully on the disk");
        }
        true
    }

    /// Announces the path. A run with `adopt` would find its part file again by itself; for others nothing is created
    /// before the path is on record.
    pub async fn reserve(&self, path: &Path, total: Option<u64>) -> Result<Recorded, Failure> {
        let is_on_record = self.target.reserved.as_deref() == Some(path);
        let event = RunEvent::Reserved {
            path: path.to_owned(),
            total_bytes: total,
        };
        if self.target.adopt || is_on_record {
            self.reporter.event(event).await;
            Ok(Recorded::Done)
        } else {
            self.reporter.record(event).await
        }
    }

    fn claim_of<'a>(&'a self, name: &'a FileName) -> Claim<'a> {
        Claim {
            directory: &self.target.directory,
            name,
            on_conflict: if self.replaces.get() {
                OnConflict::Overwrite
            } else {
                self.target.on_conflict
            },
            source: &self.source_id,
            adopt: self.target.adopt,
        }
    }
}

/// The outcome of a failed run that saved this many bytes.
pub fn failed(mut failure: Failure, kept: Option<u64>) -> Outcome {
    if let Some(done) = kept {
        failure.message = format!("{failure} ({done} bytes are kept and can be resumed)");
    }
    Outcome::Failed(failure)
}
