//! Opening the source: login, facts of the file, its part file, and the first lease.

use transfer::{
    ByteRange, Claimed, Failure, FileName, Origin, Outcome, PartFile, RangeSet, SafeUrl,
    failure::FailureKind,
    part_file,
    run::{Plan, SAMPLE_BYTES, SMALL_BYTES, WorkerId, background::blocking},
};

use crate::{
    facts::Facts,
    packet::Kind,
    run::{
        Ended,
        context::{Run, Server},
    },
    session::{Handle, Session},
};

/// The result of opening a source, if there is no transfer.
#[derive(Debug)]
pub(crate) enum Opening {
    /// The run ends without one.
    Outcome(Outcome),
    /// This login ends without one.
    Ended(Ended),
}

/// The first transfer, which can begin.
pub(crate) struct Begun {
    pub(crate) worker: WorkerId,
    pub(crate) session: Session,
    pub(crate) handle: Handle,
}

impl Run {
    /// Opens the source.
    pub(crate) async fn open(&self) -> Result<Result<Begun, Opening>, Failure> {
        if let Some(outcome) = self.find_begun().await? {
            return Ok(Err(Opening::Outcome(outcome)));
        }
        self.is_confirmed.set(false);
        let mut session = self.connect().await?;
        let (handle, found) = self.open_file(&mut session).await?;
        if let Some(ended) = self.compare(found)? {
            return Ok(Err(Opening::Ended(ended)));
        }
        if self.disk.is_claimed() && self.plan.borrow().is_complete() {
            // This process ended before it was on record that the file is the same as in the beginning.
            self.doubt_end()?;
        }
        self.accept(session, handle).await
    }

    /// Opens the file, which has to be a regular one.
    pub(crate) async fn open_file(&self, session: &mut Session) -> Result<(Handle, Facts), Failure> {
        let Server { access, place } = self.server();
        let opened = session.open_file(&place.path).await;
        let handle = match opened {
            Ok(handle) => handle,
            Err(failure) => {
                // Servers refuse to open a directory in various ways.
                let asked = session.path_attributes(&place.path).await;
                let is_directory = asked.is_ok_and(|it| it.kind() == Some(Kind::Directory));
                return Err(if is_directory { directory(&access.url) } else { failure });
            }
        };
        let attributes = session.file_attributes(&handle).await?;
        match attributes.kind() {
            Some(Kind::Directory) => return Err(directory(&access.url)),
            Some(Kind::Other) => {
                let why = format!("{} is a device or something else that is no file", access.url);
                return Err(Failure::new(FailureKind::NotTheFile, why));
            }
            Some(Kind::File) | None => {}
        }
        let facts = Facts::of(attributes);
        if facts.size.is_none() {
            let why = format!("{} does not tell the size of {}", access.host, access.url);
            return Err(Failure::new(FailureKind::MalformedResponse, why));
        }
        Ok((handle, facts))
    }

    /// Determines the part file and the lease for a transfer, after what is before its first byte was compared.
    async fn accept(&self, mut session: Session, handle: Handle) -> Result<Result<Begun, Opening>, Failure> {
        let total = self.facts.get().size;
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
        let start = self.plan.borrow().done().contiguous_end(0);
        let overlap = start.min(SAMPLE_BYTES);
        if overlap > 0
            && !self
                .is_same_as_disk(&mut session, &handle, (start - overlap, overlap))
                .await?
        {
            let why = "the bytes at the server are other ones than those on disk";
            return Ok(Err(Opening::Ended(Ended::StartOver(why))));
        }
        let worker = self.new_worker();
        let parts = self.wanted();
        self.plan.borrow_mut().take_from(worker, start, parts, self.pace());
        Ok(Ok(Begun {
            worker,
            session,
            handle,
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
        if !done.is_empty()
            && let Some(why) = found.contradiction(self.facts.get())
        {
            return Ok(Some(Ended::Changed(why)));
        }
        *self.plan.borrow_mut() = Plan::new(found.size, done, self.connections.min_split_bytes);
        self.facts.set(found);
        Ok(None)
    }

    /// Claims the part file of an earlier run before the server is asked. An outcome is returned if the run ends here,
    /// because the file exists already.
    async fn find_begun(&self) -> Result<Option<Outcome>, Failure> {
        if self.disk.is_claimed() {
            return Ok(None);
        }
        let total = self.facts.get().size;
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
        let total = self.facts.get().size;
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
        let time = begun.origin.last_modified.as_deref();
        self.facts.set(Facts::of_journal(begun.origin.total_bytes, time));
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
                last_modified: self.facts.get().journal_time(),
            })?;
        }
        Ok(())
    }

    /// Whether the `length` bytes at `start` are the same at the server and on disk.
    async fn is_same_as_disk(
        &self,
        session: &mut Session,
        handle: &Handle,
        (start, length): (u64, u64),
    ) -> Result<bool, Failure> {
        let length = usize::try_from(length).expect("samples fit in memory");
        let mut sent = vec![0; length];
        if !session.read_all(handle, start, &mut sent).await? {
            return Ok(false);
        }
        let mut held = vec![0; length];
        self.disk.part().read_at(&mut held, start)?;
        Ok(sent == held)
    }
}

fn directory(url: &SafeUrl) -> Failure {
    let why = format!("{url} is a directory; with a slash at its end, the files in it are downloaded");
    Failure::new(FailureKind::NotTheFile, why)
}
