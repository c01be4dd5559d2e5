//! Opening the source: login, facts of the file, its part file, and the first lease.

use transfer::{
    Failure, Origin, Outcome, SafeUrl,
    failure::FailureKind,
    run::{
        Plan, SAMPLE_BYTES, WorkerId,
        logins::{Ended, Opening, Taken},
        walk::Kind,
    },
};

use crate::{
    facts::Facts,
    run::context::{Run, Server},
    session::{Handle, Session},
};

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
        if self.work.disk.is_claimed() && self.work.plan.borrow().is_complete() {
            // This process ended before it was on record that the file is the same as in the beginning.
            self.work.doubt_end()?;
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
        let name = self.server().place.name();
        let recall = |origin: &Origin| self.recall(origin);
        match self.work.claim(name, total, recall).await? {
            Taken::New => {}
            // What is there is continued by a transfer that begins where it ends.
            Taken::Begun => return Ok(Err(Opening::Ended(Ended::Again))),
            Taken::Over(outcome) => return Ok(Err(Opening::Outcome(outcome))),
        }
        self.work.prepare_disk(total, self.facts.get().journal_time())?;
        let start = self.work.plan.borrow().done().contiguous_end(0);
        let overlap = start.min(SAMPLE_BYTES);
        if overlap > 0
            && !self
                .is_same_as_disk(&mut session, &handle, (start - overlap, overlap))
                .await?
        {
            let why = "the bytes at the server are other ones than those on disk";
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
            session,
            handle,
        }))
    }

    /// Compares what the server says about the file with what the bytes on disk are of.
    fn compare(&self, found: Facts) -> Result<Option<Ended>, Failure> {
        if let Some(size) = found.size {
            self.work.check_promised(size)?;
        }
        let done = self.work.plan.borrow().done();
        if !done.is_empty()
            && let Some(why) = found.contradiction(self.facts.get())
        {
            return Ok(Some(Ended::Changed(why)));
        }
        *self.work.plan.borrow_mut() = Plan::new(found.size, done, self.work.connections.min_split_bytes);
        self.facts.set(found);
        Ok(None)
    }

    /// Claims the part file of an earlier run before the server is asked. An outcome is returned if the run ends here,
    /// because the file exists already.
    async fn find_begun(&self) -> Result<Option<Outcome>, Failure> {
        let total = self.facts.get().size;
        match self.work.find_begun(total, |origin| self.recall(origin)).await? {
            Taken::New | Taken::Begun => Ok(None),
            Taken::Over(outcome) => Ok(Some(outcome)),
        }
    }

    /// Takes over what the journal says of the file that the bytes on disk are of.
    fn recall(&self, origin: &Origin) {
        let time = origin.last_modified.as_deref();
        self.facts.set(Facts::of_journal(origin.total_bytes, time));
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
        self.work.disk.part().read_at(&mut held, start)?;
        Ok(sent == held)
    }
}

fn directory(url: &SafeUrl) -> Failure {
    let why = format!("{url} is a directory; with a slash at its end, the files in it are downloaded");
    Failure::new(FailureKind::NotTheFile, why)
}
