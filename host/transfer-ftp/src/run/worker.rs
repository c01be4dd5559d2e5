//! One connection's part of a run: asks for what the plan leases to it, and moves the bytes into the part file.

use transfer::{ByteRange, Failure, failure::FailureKind, run::SAMPLE_BYTES, run::WorkerId};

use crate::{
    control::{Control, Refused},
    data::Data,
    run::{
        context::{Restart, Run},
        opening::Begun,
    },
};

/// Read size.
const BUFFER_BYTES: usize = 256 * 1024;

/// The end of the file that a second connection fetches to prove REST: a server that begins there sends exactly so many
/// bytes, whatever the file has in it.
const PROOF_BYTES: u64 = 512 * 1024;

/// Why a worker stopped.
#[derive(Debug)]
pub(crate) enum WorkerError {
    /// The file changed at the server.
    Changed(String),
    /// The server does not begin where REST says.
    IgnoresRestart,
    /// A command or a connection failed.
    Failed(Failure),
}

impl From<Failure> for WorkerError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Refused> for WorkerError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NoRestart => Self::IgnoresRestart,
            Refused::Failed(failure) => Self::Failed(failure),
        }
    }
}

/// One worker.
pub(crate) struct Worker<'a> {
    pub(crate) run: &'a Run,
    pub(crate) id: WorkerId,
}

impl Worker<'_> {
    /// Goes on with the first transfer, and then with what the plan has.
    pub(crate) async fn go_on(&self, begun: Begun) -> Result<(), WorkerError> {
        let Begun {
            mut control,
            data,
            is_restarted,
            ..
        } = begun;
        let is_usable = self.pump(&mut control, data, is_restarted).await?;
        self.run.work.release(self.id)?;
        self.run.proof_ended().await;
        if is_usable {
            self.work_with(control).await
        } else {
            self.work().await
        }
    }

    /// Fetches what the plan has over a login of its own.
    pub(crate) async fn work(&self) -> Result<(), WorkerError> {
        if !self.may_take() || !self.run.work.plan.borrow().has_work(self.run.work.pace()) {
            return Ok(());
        }
        let control = self.log_in().await?;
        self.work_with(control).await
    }

    /// Proves REST with the end of the file, and then fetches what the plan has.
    pub(crate) async fn prove(&self) -> Result<(), WorkerError> {
        let control = self.fetch_proof().await?;
        self.run.set_restart(Restart::Proved);
        self.run.work.release(self.id)?;
        self.work_with(control).await
    }

    async fn work_with(&self, mut control: Control) -> Result<(), WorkerError> {
        while self.may_take() && self.take() {
            let (start, _) = self.run.work.window(self.id);
            let overlap = self.overlap(start);
            let path = &self.run.server().place.path;
            let mut data = control.retrieve(&self.run.shared, path, start - overlap).await?;
            if overlap > 0 && !self.run.is_same_as_disk(&mut data, (start - overlap, overlap)).await? {
                return Err(WorkerError::IgnoresRestart);
            }
            let is_usable = self.pump(&mut control, data, start > overlap).await?;
            self.run.work.release(self.id)?;
            if !is_usable {
                control = self.log_in().await?;
            }
        }
        Ok(())
    }

    fn may_take(&self) -> bool {
        self.run.restart() == Restart::Proved
    }

    fn take(&self) -> bool {
        self.run.work.take(self.id, self.run.wanted())
    }

    /// How many bytes before `start` are on disk and can be compared.
    fn overlap(&self, start: u64) -> u64 {
        let length = start.min(SAMPLE_BYTES);
        let is_there = self
            .run
            .work
            .plan
            .borrow()
            .done()
            .covers(ByteRange::new(start - length, start));
        if is_there { length } else { 0 }
    }

    /// Logs in, and checks that the file is still the same.
    async fn log_in(&self) -> Result<Control, WorkerError> {
        let mut control = self.run.connect().await?;
        let path = &self.run.server().place.path;
        let found = control.facts(&self.run.shared, path).await?;
        match found.contradiction(&self.run.facts.borrow()) {
            Some(why) => Err(WorkerError::Changed(why)),
            None => Ok(control),
        }
    }

    /// Moves bytes into the part file up to the end of the lease, and on as long as bytes wait behind it. Returns whether
    /// the connection can be used for another transfer.
    async fn pump(&self, control: &mut Control, mut data: Data, is_restarted: bool) -> Result<bool, WorkerError> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let (position, window) = self.run.work.window(self.id);
            if window == 0 {
                let total = self.run.work.plan.borrow().total();
                if total == Some(position) || total == Some(0) {
                    return self.end(control, data, is_restarted).await;
                }
                let parts = self.run.wanted();
                if self.run.work.plan.borrow_mut().extend(self.id, u64::MAX, parts) {
                    continue;
                }
                if self.run.restart() == Restart::Proving {
                    // What follows is the proof's; if that fails, this transfer goes on.
                    self.run.proof_ended().await;
                    continue;
                }
                return Ok(control.abandon(&self.run.shared, data).await);
            }
            let read = self.receive(&mut data, &mut buffer, window).await?;
            if read == 0 {
                return self.early_end(control, data).await;
            }
            self.run.work.write(self.id, &buffer[..read])?;
        }
    }

    /// Reads at most `most` bytes, as the limits allow.
    async fn receive(&self, data: &mut Data, buffer: &mut [u8], most: u64) -> Result<usize, Failure> {
        let want = most.min(buffer.len() as u64);
        let granted = self.run.work.limits.acquire(want).await;
        let room = usize::try_from(granted).unwrap_or(buffer.len());
        let read = data.read(&mut buffer[..room]).await;
        let count = *read.as_ref().unwrap_or(&0);
        self.run.work.limits.refund(granted - count as u64);
        self.run.work.count(self.id, count);
        read
    }

    /// All bytes of the file came: nothing may follow, and the server has to say that it sent all.
    async fn end(&self, control: &mut Control, mut data: Data, is_restarted: bool) -> Result<bool, WorkerError> {
        let mut more = [0];
        let read = data.read(&mut more).await;
        drop(data);
        let ended = match read {
            Ok(0) => control.completed(&self.run.shared).await,
            Ok(_) if is_restarted => {
                // It sent more than there is from the byte it was asked for, so it began at another one.
                self.run.work.release(self.id)?;
                self.run.work.doubt_end()?;
                return Err(WorkerError::IgnoresRestart);
            }
            Ok(_) => {
                let total = self.run.work.plan.borrow().total().unwrap_or(0);
                let host = &self.run.server().access.host;
                let why = format!("{host} announced {total} bytes (SIZE), and sent {} or more", total + 1);
                Err(Failure::new(FailureKind::SizeMismatch, why))
            }
            Err(failure) => Err(failure),
        };
        match ended {
            Ok(()) => Ok(true),
            Err(failure) => {
                self.run.work.release(self.id)?;
                self.run.work.doubt_end()?;
                Err(failure.into())
            }
        }
    }

    /// The server sent no more bytes although some are missing, or the size is unknown.
    async fn early_end(&self, control: &mut Control, data: Data) -> Result<bool, WorkerError> {
        let is_cut = data.is_cut();
        drop(data);
        control.completed(&self.run.shared).await?;
        let (position, _) = self.run.work.window(self.id);
        let host = &self.run.server().access.host;
        match self.run.work.plan.borrow().total() {
            Some(total) => {
                let why = format!("{host} announced {total} bytes (SIZE), and sent {position}");
                return Err(Failure::new(FailureKind::SizeMismatch, why).into());
            }
            None if is_cut => {
                let why = format!("{host} ended TLS without saying so, and the size of the file is unknown");
                return Err(Failure::new(FailureKind::Network, why).into());
            }
            None => {}
        }
        self.run.work.plan.borrow_mut().settle(position);
        Ok(true)
    }

    /// Fetches the end of the file over a login of its own. Nothing of it is written before the server has sent exactly so
    /// many bytes as it has.
    async fn fetch_proof(&self) -> Result<Control, WorkerError> {
        let mut control = self.log_in().await?;
        let total = self.run.work.plan.borrow().total().unwrap_or(0);
        let length = (total / 2).min(PROOF_BYTES);
        let range = ByteRange::new(total - length, total);
        self.run
            .work
            .plan
            .borrow_mut()
            .take_from(self.id, range.start, 1, self.run.work.pace());
        let path = &self.run.server().place.path;
        let mut data = control.retrieve(&self.run.shared, path, range.start).await?;
        let room = usize::try_from(length).expect("the proof fits in memory") + 1;
        let (mut sent, mut filled) = (vec![0; room], 0);
        while filled < room {
            match self.receive(&mut data, &mut sent[filled..], u64::MAX).await? {
                0 => break,
                read => filled += read,
            }
        }
        drop(data);
        if filled == room {
            return Err(WorkerError::IgnoresRestart);
        }
        control.completed(&self.run.shared).await?;
        sent.truncate(filled);
        if (filled as u64) < length {
            return Err(WorkerError::IgnoresRestart);
        }
        self.check_or_write(range, &sent)?;
        Ok(control)
    }

    /// Writes the proof if it was missing; bytes that were there have to be the same.
    fn check_or_write(&self, range: ByteRange, sent: &[u8]) -> Result<(), WorkerError> {
        if self.run.work.window(self.id).1 > 0 {
            self.run.work.write(self.id, sent)?;
            return Ok(());
        }
        if !self.run.work.plan.borrow().done().covers(range) {
            return Ok(());
        }
        let mut held = vec![0; sent.len()];
        self.run.work.disk.part().read_at(&mut held, range.start)?;
        if held == sent {
            Ok(())
        } else {
            Err(WorkerError::Changed("its bytes are other ones".to_owned()))
        }
    }
}
