//! Proving a complete file: by its checksum, or by comparing what its mirrors brought.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use transfer::{Checksum, Failure, PartFile, Stage, failure::FailureKind};

use crate::{
    crew::{jitter, tell_retry},
    run::{blocking, internal},
    session::Session,
    worker::{Worker, WorkerError},
};

impl Session {
    /// Proves the complete bytes. `false` means that some turned out wrong and are to be fetched again.
    pub(crate) async fn prove(&self) -> Result<bool, Failure> {
        self.tell_stage(Stage::Verifying);
        let reserving = self.reserving.borrow_mut().take();
        if let Some(reserving) = reserving {
            reserving.await.map_err(|_| internal("reserving space"))??;
        }
        match &self.source.checksum {
            Some(wanted) => self.prove_checksum(wanted).await,
            None => Ok(self.confirm_begun().await? && self.prove_mirrors().await?),
        }
    }

    /// Asks the server for the last bytes of a part file that nothing but its journal says to be ours: a journal can be
    /// planted. They must be of the version that the journal names, and the same. Otherwise the file starts over.
    async fn confirm_begun(&self) -> Result<bool, Failure> {
        while let Some(last) = self.unconfirmed.get() {
            let asking = Worker {
                session: self,
                id: self.new_worker(),
                mirror: self.mirrors.borrow().base(),
            };
            let failure = match asking.is_equal(last).await {
                Ok(true) => {
                    self.unconfirmed.set(None);
                    continue;
                }
                Ok(false) | Err(WorkerError::Changed(_)) => None,
                Err(WorkerError::IgnoresRanges) => {
                    self.ignores_ranges.set(true);
                    None
                }
                Err(WorkerError::Failed(failure)) => Some(failure),
            };
            let Some(failure) = failure.filter(|failure| !speaks_of_another_file(failure.kind)) else {
                self.notice("the server does not confirm what is there of the file: starting over".to_owned())
                    .await;
                self.start_over()?;
                return Ok(false);
            };
            let wait = self.budget.borrow_mut().take(&failure, jitter());
            match wait {
                Some(wait) => {
                    tell_retry(&self.reporter, failure, wait).await;
                    tokio::time::sleep(wait).await;
                }
                None => return Err(failure),
            }
        }
        Ok(true)
    }

    async fn prove_checksum(&self, wanted: &Checksum) -> Result<bool, Failure> {
        let found = hash(self.part(), wanted.clone()).await?;
        if found == *wanted {
            return Ok(true);
        }
        let brought = self.mirrors.borrow_mut().brought_by_others();
        if brought.is_empty() {
            let part = self.part();
            part.discard();
            return Err(mismatch(wanted, &found));
        }
        self.notice("the checksum does not match: fetching again what came from mirrors".to_owned())
            .await;
        for mirror in 0..self.source.urls.len() {
            if mirror != self.mirrors.borrow().base() {
                self.mirrors.borrow_mut().drop_out(mirror);
            }
        }
        self.distrust(&brought)?;
        Ok(false)
    }

    /// Compares a sample of what each mirror brought with the first source.
    async fn prove_mirrors(&self) -> Result<bool, Failure> {
        let samples = self.mirrors.borrow().samples();
        let base = self.mirrors.borrow().base();
        let mut is_proved = true;
        for (mirror, sample) in samples {
            if self.mirrors.borrow().has_base_tag(mirror) {
                continue;
            }
            let comparing = Worker {
                session: self,
                id: self.new_worker(),
                mirror: base,
            };
            match comparing.is_equal(sample).await {
                Ok(true) => {}
                Ok(false) | Err(WorkerError::Changed(_)) => {
                    self.give_up_mirror(mirror, "its bytes differ from those of the first source", true)
                        .await?;
                    is_proved = false;
                }
                Err(WorkerError::Failed(failure)) => return Err(failure),
                Err(WorkerError::IgnoresRanges) => {
                    return Err(Failure::new(
                        FailureKind::RangeMismatch,
                        "the mirrors could not be compared",
                    ));
                }
            }
        }
        Ok(is_proved)
    }
}

/// Whether a failure says that the server has no such part of such a file.
fn speaks_of_another_file(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::RangeMismatch | FailureKind::Encoding | FailureKind::NotTheFile | FailureKind::Changed
    )
}

/// What came is not what was asked for, and was deleted.
pub(crate) fn mismatch(wanted: &Checksum, found: &Checksum) -> Failure {
    let name = wanted.algorithm().name();
    let (found, wanted) = (found.hex(), wanted.hex());
    let message = format!("the {name} of what came is {found}, not {wanted}; it was deleted");
    Failure::new(FailureKind::ChecksumMismatch, message)
}

/// Hashes the part file off this lane; stops early if nobody waits any more.
pub(crate) async fn hash(part: Arc<PartFile>, wanted: Checksum) -> Result<Checksum, Failure> {
    struct SetOnDrop(Arc<AtomicBool>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_abandoned = Arc::new(AtomicBool::new(false));
    let _abandon = SetOnDrop(Arc::clone(&is_abandoned));
    blocking("hashing", move || {
        let mut reader = StoppableReader {
            reader: part.reader(),
            is_abandoned,
        };
        Checksum::compute(wanted.algorithm(), &mut reader).map_err(|error| Failure::disk("read", part.path(), &error))
    })
    .await
}

struct StoppableReader<R> {
    reader: R,
    is_abandoned: Arc<AtomicBool>,
}

impl<R: std::io::Read> std::io::Read for StoppableReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.is_abandoned.load(Ordering::Relaxed) {
            Ok(0)
        } else {
            self.reader.read(bytes)
        }
    }
}
