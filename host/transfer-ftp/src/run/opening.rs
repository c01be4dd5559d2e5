//! Opening the source: login, facts of the file, its part file, and the first transfer.

use transfer::{
    ByteRange, Claimed, Failure, FileName, Origin, Outcome, PartFile, RangeSet,
    failure::FailureKind,
    part_file,
    run::{Plan, SAMPLE_BYTES, SMALL_BYTES, WorkerId, background::blocking},
};

use crate::{
    control::{Control, Refused},
    data::Data,
    facts::{Facts, is_time},
    run::{
        Ended,
        context::{Restart, Run},
    },
};

/// The result of opening a source, if there is no transfer.
#[derive(Debug)]
pub(crate) enum Opening {
    /// The run ends without one.
    Outcome(Outcome),
    /// This login ends without one.
    Ended(Ended),
}

/// The first transfer, which has begun.
pub(crate) struct Begun {
    pub(crate) worker: WorkerId,
    pub(crate) control: Control,
    pub(crate) data: Data,
    /// Whether it began with REST.
    pub(crate) is_restarted: bool,
}

impl Run {
    /// Opens the source.
    pub(crate) async fn open(&self) -> Result<Result<Begun, Opening>, Failure> {
        if let Some(outcome) = self.find_begun().await? {
            return Ok(Err(Opening::Outcome(outcome)));
        }
        let mut control = self.connect().await?;
        let path = &self.server().place.path;
        let found = control.facts(&self.shared, path).await?;
        if let Some(ended) = self.compare(found)? {
            return Ok(Err(Opening::Ended(ended)));
        }
        if self.disk.is_claimed() && self.plan.borrow().is_complete() {
            // The word that all was sent did not come, or this process ended before it was on record.
            self.doubt_end()?;
        }
        let start = self.plan.borrow().done().contiguous_end(0);
        let overlap = start.min(SAMPLE_BYTES);
        let data = match control.retrieve(&self.shared, path, start - overlap).await {
            Ok(data) => data,
            Err(Refused::NoRestart) => {
                self.set_restart(Restart::Ignored);
                let why = "the server cannot continue a file (REST)";
                return Ok(Err(Opening::Ended(Ended::StartOver(why))));
            }
            Err(Refused::Failed(failure)) if failure.kind == FailureKind::NotFound => {
                return Err(self.or_directory(&mut control, failure).await);
            }
            Err(Refused::Failed(failure)) => return Err(failure),
        };
        self.accept(control, data, (start, overlap)).await
    }

    /// Determines the part file and the lease for a transfer that begins `overlap` bytes before `start`.
    async fn accept(
        &self,
        control: Control,
        mut data: Data,
        (start, overlap): (u64, u64),
    ) -> Result<Result<Begun, Opening>, Failure> {
        let total = self.facts.borrow().size;
        if !self.disk.is_claimed() {
            let target = &self.disk.destination.target;
            let of_server = || self.server().place.name();
            let name = target.name.clone().or_else(of_server);
            let name = name.unwrap_or_else(|| FileName::sanitise(""));
            let wanted = self.source.checksum.as_ref();
            if let Some(outcome) = self.disk.destination.find_finished(&name, total, wanted).await? {
                return Ok(Err(Opening::Outcome(outcome)));
            }
            if let Some(opening) = self.claim(&name).await? {
                return Ok(Err(opening));
            }
        }
        self.prepare_disk(total)?;
        if overlap > 0 && !self.is_same_as_disk(&mut data, (start - overlap, overlap)).await? {
            // Facts of the file are the same, so the server began at another byte.
            self.set_restart(Restart::Ignored);
            let why = "the server did not begin at the byte that it was asked for";
            return Ok(Err(Opening::Ended(Ended::StartOver(why))));
        }
        let worker = self.new_worker();
        let parts = self.wanted();
        self.plan.borrow_mut().take_from(worker, start, parts, self.pace());
        Ok(Ok(Begun {
            worker,
            control,
            data,
            is_restarted: start > overlap,
        }))
    }

    /// Compares what the server says about the file with what the bytes on disk are of.
    fn compare(&self, found: Facts) -> Result<Option<Ended>, Failure> {
        if let (Some(promised), Some(size)) = (self.source.promised_size, found.size)
            && promised != size
        {
            let message = format!("the file has {size} bytes where {promised} were promised");
            return Err(Failure::new(FailureKind::NotTheFile, message));
        }
        let done = self.plan.borrow().done();
        if !done.is_empty() {
            let known = self.facts.borrow();
            if let Some(why) = found.contradiction(&known) {
                return Ok(Some(Ended::Changed(why)));
            }
            if found.size.is_none() || known.size.is_none() {
                return Ok(Some(Ended::StartOver("the server does not tell the size of the file")));
            }
            if self.restart() == Restart::Ignored {
                return Ok(Some(Ended::StartOver("the server cannot continue a file")));
            }
        }
        *self.plan.borrow_mut() = Plan::new(found.size, done, self.connections.min_split_bytes);
        *self.facts.borrow_mut() = found;
        Ok(None)
    }

    /// Claims the part file of an earlier run before the server is asked. An outcome is returned if the run ends here,
    /// because the file exists already.
    async fn find_begun(&self) -> Result<Option<Outcome>, Failure> {
        if self.disk.is_claimed() {
            return Ok(None);
        }
        let total = self.facts.borrow().size;
        match self.disk.destination.find_begun(total).await? {
            None => {}
            Some(Claimed::New(part)) => drop(self.disk.adopt(part)),
            Some(Claimed::Begun(part, begun)) => self.adopt_begun(part, begun).await?,
            Some(Claimed::Exists(existing)) => return Ok(Some(Outcome::Skipped { existing })),
        }
        Ok(None)
    }

    /// Claims the part file under `name`. Returns an `Opening` if the present transfer cannot be used.
    async fn claim(&self, name: &FileName) -> Result<Option<Opening>, Failure> {
        let total = self.facts.borrow().size;
        match self.disk.destination.claim(name, total).await? {
            Claimed::New(part) => {
                self.disk.adopt(part);
                Ok(None)
            }
            Claimed::Begun(part, begun) => {
                // What is there is continued by a transfer that begins where it ends.
                self.adopt_begun(part, begun).await?;
                Ok(Some(Opening::Ended(Ended::Again)))
            }
            Claimed::Exists(existing) => Ok(Some(Opening::Outcome(Outcome::Skipped { existing }))),
        }
    }

    /// Continues `part` with the ranges that its journal records.
    async fn adopt_begun(&self, part: PartFile, mut begun: part_file::Begun) -> Result<(), Failure> {
        if self.disk.destination.target.adopt && self.source.checksum.is_none() {
            // No record says that this task wrote them: only those are kept whose last bytes are compared, which happens
            // where bytes are missing behind them.
            if let Some(total) = begun.origin.total_bytes {
                let last = ByteRange::new(total.saturating_sub(SAMPLE_BYTES), total);
                begun.done.remove(last);
            }
            let is_compared = |range: &ByteRange| range.start == 0 || range.len() >= SAMPLE_BYTES;
            begun.done = begun.done.iter().filter(is_compared).collect();
        }
        if begun.done.is_empty() {
            part.start_over()?;
            self.disk.adopt(part);
            return Ok(());
        }
        *self.facts.borrow_mut() = Facts {
            size: begun.origin.total_bytes,
            changed: begun.origin.last_modified.clone().filter(|text| is_time(text)),
        };
        *self.plan.borrow_mut() = Plan::new(
            begun.origin.total_bytes,
            begun.done.clone(),
            self.connections.min_split_bytes,
        );
        let part = self.disk.adopt(part);
        // The recorded ranges are synced before they are relied on, and the journal is rewritten for this boot of the
        // machine and for the present URL of the file.
        let origin = Origin {
            source: self.disk.destination.source_id.clone(),
            ..begun.origin
        };
        blocking("taking up a part file", move || {
            part.sync()?;
            part.rewrite_journal(&origin, &begun.done, &RangeSet::new())
        })
        .await
    }

    /// Checks and reserves disk space, and starts the journal if a later run could resume.
    fn prepare_disk(&self, total: Option<u64>) -> Result<(), Failure> {
        let part = self.disk.part();
        let Some(total) = total else { return Ok(()) };
        part.check_space(total)?;
        if total >= SMALL_BYTES && self.plan.borrow().done_bytes() == 0 {
            self.disk.start_reserving(total);
        }
        if !self.disk.destination.target.adopt || total >= SMALL_BYTES {
            part.begin_journal(&Origin {
                source: self.disk.destination.source_id.clone(),
                total_bytes: Some(total),
                etag: None,
                last_modified: self.facts.borrow().changed.clone(),
            })?;
        }
        Ok(())
    }

    /// Whether the next bytes of `data` are the `length` bytes at `start` on disk.
    pub(crate) async fn is_same_as_disk(&self, data: &mut Data, (start, length): (u64, u64)) -> Result<bool, Failure> {
        let length = usize::try_from(length).expect("samples fit in memory");
        let mut sent = vec![0; length];
        if data.read_all(&mut sent).await? < length {
            return Ok(false);
        }
        let mut held = vec![0; length];
        self.disk.part().read_at(&mut held, start)?;
        Ok(sent == held)
    }

    /// The failure for a file that is not there: it may be a directory.
    async fn or_directory(&self, control: &mut Control, failure: Failure) -> Failure {
        let Ok(entered) = control.enter(&self.shared, &self.server().place.path).await else {
            return failure;
        };
        if !entered.is_positive() {
            return failure;
        }
        let url = &self.server().access.url;
        let why = format!("{url} is a directory; with a slash at its end, the files in it are downloaded");
        Failure::new(FailureKind::NotTheFile, why)
    }
}
