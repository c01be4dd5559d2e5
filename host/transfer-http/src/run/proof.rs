//! Verifies a complete file: by its checksum, by the hashes of its pieces, or by comparing samples of what its mirrors
//! delivered.

use std::sync::Arc;

use transfer::{
    ByteRange, Checksum, Failure, PieceHashes, RangeSet, Stage,
    failure::FailureKind,
    run::hashing::{hash, mismatch, wrong_pieces},
};

use crate::run::{
    context::Run,
    worker::{Worker, WorkerError},
};

/// How often wrong pieces are fetched again from servers that have no replacement. A server that sends wrong bytes each
/// time has other ones, and a cable that changes them now and then does not do so three times in one place.
const MAX_REPAIRS: u32 = 2;

impl Run {
    /// Verifies the complete bytes. `false` means that some are wrong and must be fetched again.
    pub(crate) async fn prove(&self) -> Result<bool, Failure> {
        self.report_stage(Stage::Verifying);
        self.disk.wait_reserved().await?;
        // An answer of unknown length that was cut off looks complete.
        let size = self.plan.borrow().done_bytes();
        if let Some(promised) = self.source.promised_size.filter(|promised| *promised != size) {
            self.disk.part().discard();
            let message = format!("the file has {size} bytes where {promised} were promised");
            return Err(Failure::new(FailureKind::NotTheFile, message));
        }
        if let Some(pieces) = self.source.pieces.as_ref().filter(|pieces| !pieces.fits(size)) {
            self.disk.part().discard();
            let (count, bytes) = (pieces.count(), pieces.piece_bytes());
            let message =
                format!("the file has {size} bytes, and there are hashes for {count} pieces of {bytes} bytes");
            return Err(Failure::new(FailureKind::NotTheFile, message));
        }
        match (&self.source.checksum, &self.source.pieces) {
            (Some(wanted), _) => self.prove_checksum(wanted).await,
            (None, Some(pieces)) => self.prove_pieces(pieces).await,
            (None, None) => Ok(self.confirm_begun().await? && self.prove_mirrors().await?),
        }
    }

    /// Compares each piece with its hash. Wrong ones are given back to the plan, and whoever delivered them is not asked
    /// for them again as long as there is another mirror.
    async fn prove_pieces(&self, pieces: &Arc<PieceHashes>) -> Result<bool, Failure> {
        let wrong = wrong_pieces(self.disk.part(), Arc::clone(pieces)).await?;
        if wrong.is_empty() {
            return Ok(true);
        }
        let ranges = single_pieces(pieces, &wrong);
        let name = pieces.algorithm().name();
        let culprits = self.mirrors.borrow().culprits(&ranges);
        if !culprits.is_empty() && self.mirrors.borrow().has_others_than(&culprits) {
            for (mirror, count) in culprits {
                let why = format!("{count} of the pieces that it sent do not have their {name}");
                let why = Failure::new(FailureKind::ChecksumMismatch, why);
                self.give_up_mirror(mirror, why, false).await?;
            }
        } else {
            let repairs = self.repairs.replace(self.repairs.get() + 1);
            if repairs >= MAX_REPAIRS {
                self.distrust(&wrong)?;
                let (first, count) = (pieces.pieces_of(ranges[0]).start, ranges.len());
                let message = format!(
                    "{count} of {} pieces, the first of them number {first}, do not have their {name}, and came wrong again",
                    pieces.count()
                );
                return Err(Failure::new(FailureKind::ChecksumMismatch, message));
            }
            let (count, all) = (ranges.len(), pieces.count());
            self.notice(format!(
                "{count} of {all} pieces do not have their {name}: fetching them again"
            ))
            .await;
        }
        self.distrust(&wrong)?;
        Ok(false)
    }

    /// Compares the last bytes of a part file with the server's if only its journal says that it is ours, because a
    /// journal can be planted. They must have the version in the journal and be equal. Otherwise the file starts over.
    async fn confirm_begun(&self) -> Result<bool, Failure> {
        while let Some(last) = self.disk.unconfirmed.get() {
            let asking = Worker {
                run: self,
                id: self.active.new_worker(),
                mirror: self.mirrors.borrow().base(),
            };
            let failure = match asking.is_equal(last).await {
                Ok(true) => {
                    self.disk.unconfirmed.set(None);
                    continue;
                }
                Ok(false) | Err(WorkerError::Changed(_)) => None,
                Err(WorkerError::IgnoresRanges) => {
                    self.server.ignores_ranges.set(true);
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
            self.retries.wait(failure).await?;
        }
        Ok(true)
    }

    async fn prove_checksum(&self, wanted: &Checksum) -> Result<bool, Failure> {
        let found = hash(self.disk.part(), wanted.clone()).await?;
        if found == *wanted {
            return Ok(true);
        }
        if let Some(pieces) = &self.source.pieces
            && !self.prove_pieces(pieces).await?
        {
            return Ok(false);
        }
        let received = self.mirrors.borrow_mut().brought_by_others();
        if received.is_empty() && self.flow.received.get() == 0 && self.disk.destination.target.check_integrity {
            self.notice("what is there does not have the checksum: starting over".to_owned())
                .await;
            self.start_over()?;
            return Ok(false);
        }
        if received.is_empty() {
            let part = self.disk.part();
            part.discard();
            return Err(mismatch(wanted, &found));
        }
        self.notice("the checksum does not match: fetching again what came from mirrors".to_owned())
            .await;
        for mirror in 0..self.source.urls.len() {
            if mirror != self.mirrors.borrow().base() {
                self.mirrors.borrow_mut().drop_mirror(mirror);
            }
        }
        self.distrust(&received)?;
        Ok(false)
    }

    /// Compares a sample of what each mirror delivered with the base.
    async fn prove_mirrors(&self) -> Result<bool, Failure> {
        let samples = self.mirrors.borrow().samples();
        let base = self.mirrors.borrow().base();
        let mut is_proved = true;
        for (mirror, sample) in samples {
            if self.mirrors.borrow().has_base_tag(mirror) {
                continue;
            }
            let comparing = Worker {
                run: self,
                id: self.active.new_worker(),
                mirror: base,
            };
            match comparing.is_equal(sample).await {
                Ok(true) => {}
                Ok(false) | Err(WorkerError::Changed(_)) => {
                    let why = "its bytes differ from those of the first source";
                    self.give_up_mirror(mirror, Failure::new(FailureKind::Changed, why), true)
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

/// The wrong pieces one by one: neighbours are one range.
fn single_pieces(pieces: &PieceHashes, wrong: &RangeSet) -> Vec<ByteRange> {
    let split = |range: ByteRange| {
        let length = pieces.piece_bytes();
        pieces.pieces_of(range).map(move |piece| {
            let start = piece.saturating_mul(length);
            ByteRange::new(start, start.saturating_add(length).min(range.end))
        })
    };
    wrong.iter().flat_map(split).collect()
}

/// Whether a failure means that the server has another file.
fn speaks_of_another_file(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::RangeMismatch | FailureKind::Encoding | FailureKind::NotTheFile | FailureKind::Changed
    )
}
