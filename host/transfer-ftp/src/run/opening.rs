//! Opening the source: login, facts of the file, its part file, and the first transfer.

use transfer::{
    Failure, Origin, Outcome,
    failure::FailureKind,
    run::{
        Plan, SAMPLE_BYTES, WorkerId,
        logins::{Ended, Opening, Taken},
    },
};

use crate::{
    control::{Control, Refused},
    data::Data,
    facts::{Facts, is_time},
    run::context::{Restart, Run},
};

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
        if self.work.disk.is_claimed() && self.work.plan.borrow().is_complete() {
            // The word that all was sent did not come, or this process ended before it was on record.
            self.work.doubt_end()?;
        }
        let start = self.work.plan.borrow().done().contiguous_end(0);
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
        let name = self.server().place.name();
        let recall = |origin: &Origin| self.recall(origin);
        match self.work.claim(name, total, recall).await? {
            Taken::New => {}
            // What is there is continued by a transfer that begins where it ends.
            Taken::Begun => return Ok(Err(Opening::Ended(Ended::Again))),
            Taken::Over(outcome) => return Ok(Err(Opening::Outcome(outcome))),
        }
        self.work.prepare_disk(total, self.facts.borrow().changed.clone())?;
        if overlap > 0 && !self.is_same_as_disk(&mut data, (start - overlap, overlap)).await? {
            // Facts of the file are the same, so the server began at another byte.
            self.set_restart(Restart::Ignored);
            let why = "the server did not begin at the byte that it was asked for";
            return Ok(Err(Opening::Ended(Ended::StartOver(why))));
        }
        let worker = self.work.new_worker();
        let parts = self.wanted();
        self.work
            .plan
            .borrow_mut()
            .take_from(worker, start, parts, self.work.pace());
        Ok(Ok(Begun {
            worker,
            control,
            data,
            is_restarted: start > overlap,
        }))
    }

    /// Compares what the server says about the file with what the bytes on disk are of.
    fn compare(&self, found: Facts) -> Result<Option<Ended>, Failure> {
        if let Some(size) = found.size {
            self.work.check_promised(size)?;
        }
        let done = self.work.plan.borrow().done();
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
        *self.work.plan.borrow_mut() = Plan::new(found.size, done, self.work.connections.min_split_bytes);
        *self.facts.borrow_mut() = found;
        Ok(None)
    }

    /// Claims the part file of an earlier run before the server is asked. An outcome is returned if the run ends here,
    /// because the file exists already.
    async fn find_begun(&self) -> Result<Option<Outcome>, Failure> {
        let total = self.facts.borrow().size;
        match self.work.find_begun(total, |origin| self.recall(origin)).await? {
            Taken::New | Taken::Begun => Ok(None),
            Taken::Over(outcome) => Ok(Some(outcome)),
        }
    }

    /// Takes over what the journal says of the file that the bytes on disk are of.
    fn recall(&self, origin: &Origin) {
        *self.facts.borrow_mut() = Facts {
            size: origin.total_bytes,
            changed: origin.last_modified.clone().filter(|text| is_time(text)),
        };
    }

    /// Whether the next bytes of `data` are the `length` bytes at `start` on disk.
    pub(crate) async fn is_same_as_disk(&self, data: &mut Data, (start, length): (u64, u64)) -> Result<bool, Failure> {
        let length = usize::try_from(length).expect("samples fit in memory");
        let mut sent = vec![0; length];
        if data.read_all(&mut sent).await? < length {
            return Ok(false);
        }
        let mut held = vec![0; length];
        self.work.disk.part().read_at(&mut held, start)?;
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
