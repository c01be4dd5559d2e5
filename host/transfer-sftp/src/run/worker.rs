//! One connection's part of a run: asks for what the plan leases to it, and moves the bytes into the part file.

use transfer::{Failure, failure::FailureKind, run::WorkerId};

use crate::{
    facts::Facts,
    run::{context::Run, opening::Begun},
    session::{Handle, Reads, Session},
};

/// Reads that wait for their replies where a rate is limited: what was granted is asked for, and no more.
const LIMITED_READS: usize = 2;

/// Why a worker stopped.
#[derive(Debug)]
pub(crate) enum WorkerError {
    /// The file changed at the server.
    Changed(String),
    /// A request or a connection failed.
    Failed(Failure),
}

impl From<Failure> for WorkerError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// One worker.
pub(crate) struct Worker<'a> {
    pub(crate) run: &'a Run,
    pub(crate) id: WorkerId,
}

impl Worker<'_> {
    /// Goes on with the first lease, and then with what the plan has.
    pub(crate) async fn go_on(&self, begun: Begun) -> Result<(), WorkerError> {
        let Begun { session, handle, .. } = begun;
        self.work_with(session, handle).await
    }

    /// Fetches what the plan has over a login of its own.
    pub(crate) async fn work(&self) -> Result<(), WorkerError> {
        if !self.run.work.plan.borrow().has_work(self.run.work.pace()) {
            return Ok(());
        }
        let mut session = self.run.connect().await?;
        let (handle, found) = self.run.open_file(&mut session).await?;
        self.check(found)?;
        if !self.take() {
            session.close().await;
            return Ok(());
        }
        self.work_with(session, handle).await
    }

    async fn work_with(&self, mut session: Session, handle: Handle) -> Result<(), WorkerError> {
        loop {
            self.pump(&mut session, &handle).await?;
            self.run.work.release(self.id)?;
            if !self.take() {
                break;
            }
        }
        self.confirm(&mut session, &handle).await?;
        session.close().await;
        Ok(())
    }

    /// Checks that the file is the same as in the beginning, and ends where its size says.
    async fn confirm(&self, session: &mut Session, handle: &Handle) -> Result<(), WorkerError> {
        let is_complete = self.run.work.plan.borrow().is_complete();
        let total = self.run.work.plan.borrow().total().unwrap_or(0);
        let has_more = is_complete && session.has_byte(handle, total).await?;
        let found = session.file_attributes(handle).await?;
        self.check(Facts::of(found))?;
        if has_more {
            let host = &self.run.server().access.host;
            let why = format!("{host} says that the file has {total} bytes, and sends more");
            return Err(Failure::new(FailureKind::SizeMismatch, why).into());
        }
        if is_complete {
            self.run.is_confirmed.set(true);
        }
        Ok(())
    }

    fn take(&self) -> bool {
        self.run.work.take(self.id, self.run.wanted())
    }

    /// Fails if the file is another one than in the beginning.
    fn check(&self, found: Facts) -> Result<(), WorkerError> {
        match found.contradiction(self.run.facts.get()) {
            Some(why) => Err(WorkerError::Changed(why)),
            None => Ok(()),
        }
    }

    /// Moves bytes into the part file up to the end of the lease, and on as long as bytes are missing behind it.
    async fn pump(&self, session: &mut Session, handle: &Handle) -> Result<(), WorkerError> {
        let mut reads = Reads::default();
        loop {
            let (position, window) = self.run.work.window(self.id);
            if window == 0 {
                let parts = self.run.wanted();
                if self.run.work.plan.borrow_mut().extend(self.id, u64::MAX, parts) {
                    continue;
                }
                session.abandon(&mut reads);
                return Ok(());
            }
            if reads.start().is_some_and(|start| start != position) {
                // Another worker had what is between, and gave it back.
                session.abandon(&mut reads);
            }
            self.ask(session, handle, &mut reads, (position, position + window))
                .await?;
            match session.receive(handle, &mut reads).await {
                Ok(received) => self.run.work.count(self.id, received),
                Err(failure) => {
                    session.abandon(&mut reads);
                    return self.early_end(session, handle, failure).await;
                }
            }
            while let Some((offset, data)) = reads.next() {
                let (position, window) = self.run.work.window(self.id);
                if window == 0 {
                    // Another worker took the end of the lease while these bytes were asked for.
                    break;
                }
                debug_assert_eq!(offset, position, "reads are in order");
                self.run.work.write(self.id, &data)?;
            }
        }
    }

    /// The failure for a file that ends before its size, if `failure` is that: perhaps it was cut at the server.
    async fn early_end(&self, session: &mut Session, handle: &Handle, failure: Failure) -> Result<(), WorkerError> {
        if failure.kind != FailureKind::SizeMismatch {
            return Err(failure.into());
        }
        let found = session.file_attributes(handle).await?;
        self.check(Facts::of(found))?;
        let total = self.run.work.plan.borrow().total().unwrap_or(0);
        let why = format!("{}, and that it has {total} bytes", failure.message);
        Err(Failure::new(failure.kind, why).into())
    }

    /// Asks for the bytes up to `end`, as many at once as are allowed.
    async fn ask(
        &self,
        session: &mut Session,
        handle: &Handle,
        reads: &mut Reads,
        (position, end): (u64, u64),
    ) -> Result<(), Failure> {
        session.make_room().await?;
        let is_limited = self.run.work.limits.are_set();
        while session.has_room(reads) && !(is_limited && reads.count() >= LIMITED_READS) {
            let start = reads.end().unwrap_or(position);
            if start >= end {
                break;
            }
            let length = session.read_length(end - start);
            let granted = self.run.work.limits.acquire(length.into()).await;
            let length = u32::try_from(granted).unwrap_or(length).min(length);
            session.ask(handle, reads, (start, length)).await?;
        }
        Ok(())
    }
}
