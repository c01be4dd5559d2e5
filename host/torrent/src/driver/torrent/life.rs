//! Starting, checking, stopping and removing a torrent.

use std::sync::{Arc, Mutex, PoisonError, atomic::Ordering};

use metainfo::Info;
use tokio::{task::spawn_blocking, time::Instant};
use transfer::{Failure, FailureKind};

use super::Torrent;
use crate::{
    bitfield::Bitfield,
    driver::{checking, core::Report},
    heart::{self, Input, State},
    storage::{
        Storage,
        resume::{Record, ResumeFile},
    },
    view::{EventKind, Status},
};

impl Torrent {
    /// Begins, or continues after a pause or failure.
    pub(super) async fn start(&mut self) {
        self.run = self.session.stop.child_token();
        self.shared.with(|core| core.tasks.reopen());
        match (self.info.clone(), &self.storage) {
            (None, _) => {
                self.started = Instant::now();
                self.set_status(Status::Metadata);
                self.dial();
            }
            (Some(info), None) => self.open(info).await,
            (Some(_), Some(_)) => {
                let have = std::mem::replace(&mut self.have, Bitfield::new(0));
                self.begin(have).await;
            }
        }
    }

    /// The metadata of a magnet link is there.
    pub(super) async fn metadata_known(&mut self, info: Info) {
        if self.status != Status::Metadata {
            return;
        }
        if info.is_private() {
            // Peers of a private torrent come from its trackers alone.
            self.shared.with(|core| core.state.config.is_private = true);
        }
        self.info = Some(info.clone());
        self.emit(EventKind::Metadata);
        if self.stops_after_metadata {
            self.stops_after_metadata = false;
            let _paused = self.halt(Status::Paused).await;
        } else {
            self.open(info).await;
        }
    }

    /// Reads the record of an earlier run, and checks what it leaves in doubt.
    async fn open(&mut self, info: Info) {
        let beginning = self.beginning.clone();
        let (handles, resume) = (Arc::clone(&self.session.handles), Arc::clone(&self.resume));
        let opening = self.session.blocking(move || {
            let resume = resume.lock().unwrap_or_else(PoisonError::into_inner);
            checking::open(info, &beginning, handles, &resume)
        });
        match opening.await {
            Ok(opened) => {
                self.storage = Some(opened.storage);
                self.have = opened.have;
                if opened.doubtful.is_empty() {
                    let have = std::mem::replace(&mut self.have, Bitfield::new(0));
                    self.begin(have).await;
                } else {
                    self.check(opened.doubtful);
                }
            }
            Err(failure) => self.fail(failure).await,
        }
    }

    /// Hashes pieces that are on the disk.
    fn check(&mut self, pieces: Vec<u32>) {
        let Some(storage) = self.storage.clone() else {
            return;
        };
        self.checked.store(0, Ordering::Relaxed);
        let have = self.have.clone();
        self.count(&have);
        self.set_status(Status::Checking);
        let permits = Arc::clone(&self.session.check_permits);
        let (checked, run, shared) = (Arc::clone(&self.checked), self.run.clone(), self.shared.clone());
        self.shared.with(|core| core.tasks.clone()).spawn_local(async move {
            let stop = run.clone();
            // One that stops meanwhile does not wait for others.
            let Some(permit) = run.run_until_cancelled(permits.acquire_owned()).await else {
                return;
            };
            let checking = spawn_blocking(move || {
                let _permit = permit;
                checking::check(&storage, &pieces, &checked, &stop)
            });
            let result = checking.await.expect("checking does not panic");
            if !run.is_cancelled() {
                shared.report(Report::Checked(result));
            }
        });
    }

    pub(super) async fn checked(&mut self, result: Result<Bitfield, Failure>) {
        if self.status != Status::Checking {
            return;
        }
        match result {
            Ok(right) => {
                let mut have = std::mem::replace(&mut self.have, Bitfield::new(0));
                for piece in right.iter() {
                    have.insert(piece);
                }
                self.begin(have).await;
            }
            Err(failure) => self.fail(failure).await,
        }
    }

    /// Begins to download or upload, with these pieces.
    async fn begin(&mut self, have: Bitfield) {
        let Some(disk) = self.disk() else {
            return;
        };
        let have = match self.prepare(have.clone()).await {
            Ok(have) => have,
            Err(failure) => {
                self.have = have;
                self.fail(failure).await;
                if self.beginning.is_seed_only {
                    // What is missing may be put back: the next start looks again.
                    self.storage = None;
                }
                return;
            }
        };
        self.is_finished = false;
        self.count(&have);
        let storage = Arc::clone(&disk.storage);
        self.shared.with(|core| {
            core.generation += 1;
            core.disk = Some(disk);
        });
        let opened = heart::Opened {
            geometry: storage.geometry(),
            have,
            info: storage.info.clone(),
            wanted: self.wanted(),
        };
        self.shared.apply(Input::Opened(opened));
        self.set_status(Status::Downloading);
        self.finish_files();
        self.start_webseeds(0);
        self.dial();
    }

    /// Brings the files and the record into agreement with what is there. Returns which pieces that is.
    async fn prepare(&self, mut have: Bitfield) -> Result<Bitfield, Failure> {
        let Some(storage) = self.storage.clone() else {
            return Ok(have);
        };
        let (wanted, resume) = (self.wanted_files(), Arc::clone(&self.resume));
        let is_seed_only = self.beginning.is_seed_only;
        let preparing = self.session.blocking(move || {
            if is_seed_only {
                write_record(&storage, &resume, have.clone(), true)?;
                return storage.lacks(&wanted, &have).map_or(Ok(have), Err);
            }
            let geometry = storage.geometry();
            for (index, file) in storage.info.files().iter().enumerate() {
                let mut pieces = geometry.pieces_of(file.offset(), file.offset() + file.length());
                if !pieces.all(|piece| have.has(piece)) {
                    storage.reopen_file(index)?;
                }
            }
            for piece in storage.select(&wanted, &have)? {
                have.remove(piece);
            }
            // Before the first file: it says that the names are the torrent's own.
            write_record(&storage, &resume, have.clone(), false)?;
            for index in (0..wanted.len()).filter(|index| wanted[*index] && storage.is_to_be_empty(*index)) {
                finish(&storage, &resume, index)?;
            }
            Ok(have)
        });
        preparing.await
    }

    /// Stops, and waits until the files are synced and the record is written.
    pub(super) async fn halt(&mut self, status: Status) -> Result<(), Failure> {
        self.run.cancel();
        let tasks = self.shared.with(|core| {
            core.keep_addresses();
            for link in core.links.values() {
                link.closed.cancel();
            }
            core.tasks.clone()
        });
        tasks.close();
        tasks.wait().await;
        let have = self.shared.with(|core| {
            let have = core.state.have().cloned();
            core.state = State::new(core.state.config);
            core.generation += 1;
            core.disk = None;
            core.links.clear();
            core.buffers.clear();
            core.candidates.release_all();
            core.dialing.set(0);
            // What they say was read from the state already.
            core.reports.retain(|report| matches!(report, Report::FileFinished(..)));
            have
        });
        // A torrent that stops while it opens or checks keeps what it knew.
        if let Some(have) = have {
            self.have = have;
        }
        self.finishing = 0;
        self.rates = super::views::Rates::default();
        let was_checking = self.status == Status::Checking;
        self.set_status(status);
        let result = match self.storage.clone() {
            Some(storage) if !was_checking => {
                let (resume, have) = (Arc::clone(&self.resume), self.have.clone());
                let syncing = self.session.blocking(move || {
                    storage.sync()?;
                    let written = write_record(&storage, &resume, have, true);
                    storage.close();
                    written
                });
                syncing.await
            }
            _ => Ok(()),
        };
        if was_checking {
            // The pieces that were not hashed are in doubt again.
            self.storage = None;
        }
        result
    }

    /// Records where the files are now.
    pub(super) async fn save_places(&self) -> Result<(), Failure> {
        let Some(storage) = self.storage.clone() else {
            return Ok(());
        };
        let have = self.shared.with(|core| core.state.have().cloned());
        let is_stopped = have.is_none();
        let (resume, have) = (Arc::clone(&self.resume), have.unwrap_or_else(|| self.have.clone()));
        let saving = self
            .session
            .blocking(move || write_record(&storage, &resume, have, is_stopped));
        saving.await
    }

    /// Stops because of a failure.
    pub(super) async fn fail(&mut self, failure: Failure) {
        if matches!(self.status, Status::Failed(_) | Status::Removed) {
            return;
        }
        tracing::warn!(info_hash = %self.info_hash, %failure, "a torrent failed");
        // The disk may be what failed: then the record stays as it is, which is never wrong.
        let _unsynced = self.halt(Status::Failed(failure)).await;
    }

    pub(super) async fn recheck(&mut self) -> Result<(), Failure> {
        if self.info.is_none() {
            let message = "the torrent has no metadata yet: there is nothing to check";
            return Err(Failure::new(FailureKind::NotFound, message));
        }
        let _unsynced = self.halt(Status::Paused).await;
        self.run = self.session.stop.child_token();
        self.shared.with(|core| core.tasks.reopen());
        let pieces = self.info.as_ref().map_or(0, Info::piece_count);
        if self.storage.is_none() {
            self.beginning.uses_existing = true;
            self.start().await;
            return Ok(());
        }
        self.have = Bitfield::new(pieces);
        self.is_completed = false;
        self.check((0..pieces).collect());
        Ok(())
    }

    /// Leaves the session, which the next one of this torrent may be added to at once.
    pub(super) async fn close(&mut self) -> Result<(), Failure> {
        let halted = self.halt(Status::Removed).await;
        self.leave_session();
        halted
    }

    fn leave_session(&self) {
        self.session.take_out(self.info_hash, &self.view.subscribe());
    }

    pub(super) async fn remove(&mut self, deletes_files: bool) -> Result<(), Failure> {
        let halted = self.halt(Status::Removed).await;
        let (storage, resume, wanted) = (self.storage.clone(), Arc::clone(&self.resume), self.wanted_files());
        let removing = self.session.blocking(move || {
            if let Some(storage) = storage {
                if deletes_files {
                    storage.delete()?;
                } else {
                    storage.drop_parts(&wanted)?;
                }
            }
            let mut resume = resume.lock().unwrap_or_else(PoisonError::into_inner);
            resume.remove()
        });
        let removed = removing.await;
        self.leave_session();
        if deletes_files { removed } else { halted.and(removed) }
    }

    /// The session ends: everything is synced, and the torrent continues with the next session.
    pub(super) async fn end(&mut self) {
        if matches!(self.status, Status::Removed | Status::Paused | Status::Failed(_)) {
            return;
        }
        if let Err(failure) = self.halt(Status::Paused).await {
            tracing::warn!(info_hash = %self.info_hash, %failure, "a torrent was not saved");
        }
    }
}

/// Gives a file its name, and records that.
pub(super) fn finish(storage: &Storage, resume: &Mutex<ResumeFile>, file: usize) -> Result<(), Failure> {
    storage.finish_file(file)?;
    let mut resume = resume.lock().unwrap_or_else(PoisonError::into_inner);
    resume
        .append_finished(file)
        .map_err(|error| Failure::disk("write the record of", &storage.top(), &error))
}

/// Writes the record of what is there. For a clean one, the caller has synced the files.
fn write_record(storage: &Storage, resume: &Mutex<ResumeFile>, have: Bitfield, is_clean: bool) -> Result<(), Failure> {
    let record = Record {
        directory: storage.directory().to_string_lossy().into_owned(),
        have,
        places: storage.places(),
        stamps: storage.stamps(),
        is_clean,
        boot: transfer::boot_id().unwrap_or_default(),
        written_nanos: 0,
    };
    let mut resume = resume.lock().unwrap_or_else(PoisonError::into_inner);
    resume
        .write(&record)
        .map_err(|error| Failure::disk(error.act, &error.path, &error.source))
}
