//! The part file of a run: that of an earlier run, or a new one.

use super::Work;
use crate::{
    ByteRange, Claimed, Failure, FileName, Origin, Outcome, PartFile, RangeSet, part_file,
    run::{Plan, SAMPLE_BYTES, SMALL_BYTES, background::blocking},
};

/// The part file that a run has taken.
#[derive(Debug)]
pub enum Taken {
    /// It has no bytes, or there was none to take.
    New,
    /// It is that of an earlier run.
    Begun,
    /// None: the run ends, because the file exists already.
    Over(Outcome),
}

impl Work {
    /// Claims the part file of an earlier run before the server is asked, for a file of `total` bytes. `recall`
    /// learns of which file its bytes are.
    pub async fn find_begun(&self, total: Option<u64>, recall: impl FnOnce(&Origin)) -> Result<Taken, Failure> {
        if self.disk.is_claimed() {
            return Ok(Taken::New);
        }
        match self.disk.destination.find_begun(total).await? {
            None => Ok(Taken::New),
            Some(claimed) => self.take_claimed(claimed, recall).await,
        }
    }

    /// Claims a part file, unless there is one: under the name that was asked for, else `of_server`. What is there is
    /// continued by a transfer that begins where it ends.
    pub async fn claim(
        &self,
        of_server: Option<FileName>,
        total: Option<u64>,
        recall: impl FnOnce(&Origin),
    ) -> Result<Taken, Failure> {
        if self.disk.is_claimed() {
            return Ok(Taken::New);
        }
        let name = self.disk.destination.target.name.clone().or(of_server);
        let name = name.unwrap_or_else(|| FileName::sanitise(""));
        let wanted = self.source.checksum.as_ref();
        if let Some(outcome) = self.disk.destination.find_finished(&name, total, wanted).await? {
            return Ok(Taken::Over(outcome));
        }
        let claimed = self.disk.destination.claim(&name, total).await?;
        self.take_claimed(claimed, recall).await
    }

    async fn take_claimed(&self, claimed: Claimed, recall: impl FnOnce(&Origin)) -> Result<Taken, Failure> {
        match claimed {
            Claimed::New(part) => {
                self.disk.adopt(part);
                Ok(Taken::New)
            }
            Claimed::Begun(part, begun) => {
                self.adopt_begun(part, begun, recall).await?;
                Ok(Taken::Begun)
            }
            Claimed::Exists(existing) => Ok(Taken::Over(Outcome::Skipped { existing })),
        }
    }

    /// Continues `part` with the ranges that its journal records.
    async fn adopt_begun(
        &self,
        part: PartFile,
        mut begun: part_file::Begun,
        recall: impl FnOnce(&Origin),
    ) -> Result<(), Failure> {
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
        recall(&begun.origin);
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

    /// Checks and reserves disk space, and starts the journal if a later run could resume. `last_modified` is the time by
    /// which it recognises the file.
    pub fn prepare_disk(&self, total: Option<u64>, last_modified: Option<String>) -> Result<(), Failure> {
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
                last_modified,
                lent_bytes: None,
            })?;
        }
        Ok(())
    }
}
