//! One connection's part of a run: requests what the plan leases to it, checks the response, and moves the body into
//! the part file.

use std::{cell::RefCell, future::poll_fn, io, task::Poll};

use tokio::{io::Interest, time::timeout};
use transfer::{
    ByteRange, CarryError, Failure, KernelPipe, PartFile, SafeUrl,
    failure::FailureKind,
    run::{SAMPLE_BYTES, WorkerId},
};

use crate::{
    answer::verdict::{Facts, Unusable, Verdict, is_page, judge},
    client::{
        body::{Body, stalled},
        connection::broken,
        decode::Decoder,
        exchange::now,
        fetch::{Fetched, RangeWish},
    },
    run::context::Run,
};

/// Copy size; fits the second-level cache of common processors, and more is not faster.
const BUFFER_BYTES: usize = 256 * 1024;

/// Copy size through the kernel: the capacity of its pipe.
const CARRY_BYTES: u64 = 1024 * 1024;

/// Read size of an encoded body: bounds what it may expand to.
const DECODE_BYTES: usize = 16 * 1024;

/// Steps after which a worker yields to others on its lane.
const STEPS_PER_TURN: u32 = 4;

thread_local! {
    /// The lane's only buffer: no await between filling and emptying it.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER_BYTES].into_boxed_slice());
    /// The lane's only pipe; empty between steps.
    static PIPE: RefCell<Option<KernelPipe>> = RefCell::new(KernelPipe::new().ok());
}

/// Why a worker stopped.
#[derive(Debug)]
pub(crate) enum WorkerError {
    /// The file changed at the server.
    Changed(String),
    /// The server does not send ranges.
    IgnoresRanges,
    /// A request or a connection failed.
    Failed(Failure),
}

impl From<Failure> for WorkerError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Unusable> for WorkerError {
    fn from(objection: Unusable) -> Self {
        match objection {
            Unusable::Changed(why) => Self::Changed(why),
            Unusable::IgnoresRanges => Self::IgnoresRanges,
            Unusable::Failed(failure) => Self::Failed(failure),
        }
    }
}

/// How moving a body ended without failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// The lease is complete, perhaps because it was shortened; the body may continue.
    LeaseEnded,
    /// The body has no more bytes.
    BodyEnded,
}

/// One worker: a connection to one mirror.
pub(crate) struct Worker<'a> {
    pub(crate) run: &'a Run,
    pub(crate) id: WorkerId,
    /// Index of its mirror.
    pub(crate) mirror: usize,
}

impl Worker<'_> {
    /// Runs until the plan has no work for it. `begun` is the body for the lease that it already has.
    pub(crate) async fn work(&self, begun: Option<Body>) -> Result<(), WorkerError> {
        let worked = self.work_on(begun).await;
        self.run.release(self.id)?;
        worked
    }

    async fn work_on(&self, begun: Option<Body>) -> Result<(), WorkerError> {
        if let Some(body) = begun {
            self.fill(body).await?;
        }
        self.run.release(self.id)?;
        if self.run.mirrors.borrow().is_untested(self.mirror) {
            self.compare_start().await?;
        }
        while !self.run.active.is_retired(self.id) && self.run.take(self.id) {
            self.fetch_lease().await?;
            self.run.release(self.id)?;
        }
        Ok(())
    }

    /// Requests the lease and fills as much of it as the response has.
    async fn fetch_lease(&self) -> Result<(), WorkerError> {
        let (start, window) = self.write_window();
        let (mut body, verdict) = self.ask(start, start.checked_add(window)).await?;
        match verdict {
            Verdict::Part { .. } => {}
            Verdict::Whole { .. } if start == 0 => {}
            Verdict::Whole { .. } => return Err(WorkerError::IgnoresRanges),
            Verdict::PastEnd { total } => {
                let is_end = self.run.plan.borrow().total().is_none() && total.is_none_or(|total| total == start);
                if !is_end {
                    return Err(
                        Failure::new(FailureKind::RangeMismatch, "the server has less than it announced").into(),
                    );
                }
                self.run.plan.borrow_mut().settle(start);
                return Ok(());
            }
        }
        let moved = self.pump(&mut body).await?;
        body.drain().await;
        if moved == Moved::BodyEnded && matches!(verdict, Verdict::Whole { .. }) {
            self.run.settle_at_position(self.id);
        }
        Ok(())
    }

    /// Fills the lease from a response that exists already.
    async fn fill(&self, mut body: Body) -> Result<(), WorkerError> {
        let moved = self.pump(&mut body).await?;
        body.drain().await;
        if moved == Moved::BodyEnded && self.run.server.is_whole.get() {
            self.run.settle_at_position(self.id);
        }
        Ok(())
    }

    /// Requests `start..end`. If a redirect target fails, starts from the original URL once more.
    async fn ask(&self, start: u64, end: Option<u64>) -> Result<(Body, Verdict), WorkerError> {
        let (home, current) = {
            let mirrors = self.run.mirrors.borrow();
            let mirror = mirrors.get(self.mirror);
            (mirror.home.clone(), mirror.current.clone())
        };
        match self.ask_at(&home, &current, start, end).await {
            Err(WorkerError::Failed(failure)) if failure.kind.is_link_refused() && home != current => {
                self.run.mirrors.borrow_mut().get_mut(self.mirror).current = home.clone();
                self.ask_at(&home, &home, start, end).await
            }
            answered => answered,
        }
    }

    async fn ask_at(
        &self,
        home: &SafeUrl,
        url: &SafeUrl,
        start: u64,
        end: Option<u64>,
    ) -> Result<(Body, Verdict), WorkerError> {
        let known = self.known();
        let end = end.filter(|end| *end != u64::MAX);
        let wish = RangeWish {
            start,
            end,
            if_range: known.if_range(),
        };
        let Fetched { response, url } = self.run.fetcher.fetch(home, url, Some(&wish)).await?;
        if start > 0 && is_page(&response.head) && !self.run.began_as_page() {
            return Err(Failure::new(
                FailureKind::NotTheFile,
                "the server answered with a web page where a part of the file was asked for",
            )
            .into());
        }
        let verdict = judge(Some(&wish), &known, &response.head, now())?;
        let mut mirrors = self.run.mirrors.borrow_mut();
        let mirror = mirrors.get_mut(self.mirror);
        mirror.current = url;
        if mirror.facts == Facts::default() {
            mirror.facts = Facts::of(&response.head, verdict);
        }
        Ok((response.body, verdict))
    }

    /// The facts that responses must agree with: the mirror's own first response, and the common size.
    fn known(&self) -> Facts {
        let own = self.run.mirrors.borrow().get(self.mirror).facts.clone();
        Facts {
            total: self.run.plan.borrow().total(),
            ..own
        }
    }

    /// Compares the mirror's start of the file with the bytes on disk. With piece hashes that is not needed, and it would
    /// be wrong if the first source is the one that has other bytes.
    async fn compare_start(&self) -> Result<(), WorkerError> {
        if self.run.source.pieces.is_some() {
            self.run.mirrors.borrow_mut().trust(self.mirror);
            return Ok(());
        }
        let there = self.run.plan.borrow().done().contiguous_end(0).min(SAMPLE_BYTES);
        if self.is_equal(ByteRange::new(0, there)).await? {
            self.run.mirrors.borrow_mut().trust(self.mirror);
            Ok(())
        } else {
            Err(WorkerError::Changed(
                "its bytes differ from those of the first source".to_owned(),
            ))
        }
    }

    /// Whether the mirror's bytes in `range` equal those on disk.
    pub(crate) async fn is_equal(&self, range: ByteRange) -> Result<bool, WorkerError> {
        if range.is_empty() {
            return Ok(true);
        }
        let (mut body, verdict) = self.ask(range.start, Some(range.end)).await?;
        let is_there = match verdict {
            Verdict::Part { end, .. } => end >= range.end,
            Verdict::Whole { .. } => range.start == 0,
            Verdict::PastEnd { .. } => false,
        };
        Ok(is_there && is_same_as_disk(&self.run.disk.part(), &mut body, range, self.run.stall()).await?)
    }

    /// Moves the body into the lease until either ends.
    pub(crate) async fn pump(&self, body: &mut Body) -> Result<Moved, Failure> {
        self.run.active.served.borrow_mut().insert(self.id, self.mirror);
        let part = self.run.disk.part();
        let mut steps = 0;
        loop {
            let window = self.window_on(body).await?;
            if window == 0 || self.run.active.is_retired(self.id) {
                return Ok(if body.remaining() == Some(0) {
                    Moved::BodyEnded
                } else {
                    Moved::LeaseEnded
                });
            }
            let granted = self.run.limits.acquire(window.min(CARRY_BYTES)).await;
            let moved = if can_carry(body) {
                self.carry(body, &part, granted).await
            } else {
                self.copy(body, &part, granted).await
            };
            let used = moved.as_ref().map_or(0, |moved| moved.unwrap_or(0));
            self.run.limits.refund(granted - used);
            if moved? == Some(0) {
                return Ok(Moved::BodyEnded);
            }
            steps += 1;
            if steps % STEPS_PER_TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// One step through the kernel: socket to pipe to file. 0 at the body's end, `None` if the lease was shortened
    /// meanwhile.
    #[cfg(target_os = "linux")]
    async fn carry(&self, body: &mut Body, part: &PartFile, limit: u64) -> Result<Option<u64>, Failure> {
        use std::os::fd::AsFd as _;
        let stall = self.run.stall();
        loop {
            let (position, window) = self.write_window();
            let (Some(left), Some(socket)) = (body.remaining(), body.raw_socket()) else {
                return Ok(Some(0));
            };
            if window == 0 {
                return Ok(None);
            }
            let room = usize::try_from(limit.min(window).min(left)).unwrap_or(usize::MAX);
            let mut disk_error = None;
            let carried = socket.try_io(Interest::READABLE, || {
                PIPE.with_borrow_mut(|pipe| {
                    let used = pipe.as_ref().ok_or(io::ErrorKind::Unsupported)?;
                    part.carry_at(used, socket.as_fd(), position, room)
                        .map_err(|error| match error {
                            CarryError::Socket(error) => error,
                            CarryError::Disk(error) => {
                                // The rest in the pipe must not be written.
                                *pipe = KernelPipe::new().ok();
                                disk_error = Some(error);
                                io::ErrorKind::Other.into()
                            }
                        })
                })
            });
            if let Some(error) = disk_error {
                return Err(part.write_failure(&error));
            }
            match carried {
                Ok(taken) => {
                    body.took(taken as u64)?;
                    self.run.wrote(self.id, self.mirror, taken as u64)?;
                    return Ok(Some(taken as u64));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let ready = timeout(stall, socket.readable()).await;
                    ready
                        .map_err(|_| stalled(&body.host(), stall))?
                        .map_err(|error| broken(&body.host(), &error))?;
                }
                Err(error) => return Err(broken(&body.host(), &error)),
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn carry(&self, body: &mut Body, part: &PartFile, limit: u64) -> Result<Option<u64>, Failure> {
        self.copy(body, part, limit).await
    }

    /// One step through the lane's buffer. 0 at the body's end, `None` if the lease was shortened meanwhile.
    async fn copy(&self, body: &mut Body, part: &PartFile, limit: u64) -> Result<Option<u64>, Failure> {
        let stall = self.run.stall();
        let host = body.host();
        let step = poll_fn(|cx| {
            BUFFER.with_borrow_mut(|buffer| {
                // The plan may have shortened the lease during the wait.
                let (position, window) = self.write_window();
                if window == 0 {
                    return Poll::Ready(Ok(None));
                }
                let room = usize::try_from(limit.min(window))
                    .unwrap_or(usize::MAX)
                    .min(buffer.len());
                let read = match body.poll_read(cx, &mut buffer[..room]) {
                    Poll::Ready(Ok(read)) => read,
                    Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                    Poll::Pending => return Poll::Pending,
                };
                if read > 0 {
                    part.write_at(&buffer[..read], position)?;
                    self.run.wrote(self.id, self.mirror, read as u64)?;
                }
                Poll::Ready(Ok(Some(read as u64)))
            })
        });
        timeout(stall, step)
            .await
            .unwrap_or_else(|_| Err(stalled(&host, stall)))
    }

    /// Bytes that may be written now. At the end of its lease, a worker whose response continues also takes adjacent
    /// waiting bytes, or discards a small gap before the next ones.
    async fn window_on(&self, body: &mut Body) -> Result<u64, Failure> {
        let left = body.remaining().unwrap_or(0);
        let (position, window) = self.write_window();
        if window > 0 || left == 0 || self.run.active.is_retired(self.id) {
            return Ok(window);
        }
        let pace = self.run.flow.pace.get();
        let jumped = {
            let mut plan = self.run.plan.borrow_mut();
            if plan.extend(self.id, left, self.run.parts()) {
                return Ok(plan.window(self.id));
            }
            plan.jump(self.id, position + left, pace.bytes_worth_a_request(), pace)
        };
        let Some((gap, unrecorded)) = jumped else { return Ok(0) };
        unrecorded.map_or(Ok(()), |range| self.run.disk.part().record(range))?;
        self.read_over(body, gap).await?;
        Ok(self.write_window().1)
    }

    /// Reads and discards `gap` bytes that are valid already.
    async fn read_over(&self, body: &mut Body, mut gap: u64) -> Result<(), Failure> {
        let mut scrap = vec![0; BUFFER_BYTES];
        while gap > 0 {
            let room = usize::try_from(gap).unwrap_or(usize::MAX).min(scrap.len());
            match body.read(&mut scrap[..room], self.run.stall()).await? {
                0 => {
                    return Err(Failure::new(
                        FailureKind::Network,
                        format!("{} sent less than it announced", body.host()),
                    ));
                }
                read => gap -= read as u64,
            }
        }
        Ok(())
    }

    /// The next byte to write, and how many may follow.
    fn write_window(&self) -> (u64, u64) {
        let plan = self.run.plan.borrow();
        (plan.position(self.id), plan.window(self.id))
    }

    /// Writes a whole body that must be decoded.
    pub(crate) async fn pump_decoded(&self, mut body: Body, mut decoder: Decoder) -> Result<(), WorkerError> {
        self.run.active.served.borrow_mut().insert(self.id, self.mirror);
        let part = self.run.disk.part();
        let mut buffer = vec![0; DECODE_BYTES];
        loop {
            let granted = usize::try_from(self.run.limits.acquire(DECODE_BYTES as u64).await).unwrap_or(DECODE_BYTES);
            let read = body.read(&mut buffer[..granted], self.run.stall()).await?;
            self.run.limits.refund((granted - read) as u64);
            if read == 0 {
                break;
            }
            let decoded = decoder.push(&buffer[..read])?;
            part.write_at(&decoded, self.write_window().0)?;
            self.run.wrote(self.id, self.mirror, decoded.len() as u64)?;
        }
        let rest = decoder.finish()?;
        part.write_at(&rest, self.write_window().0)?;
        self.run.wrote(self.id, self.mirror, rest.len() as u64)?;
        self.run.settle_at_position(self.id);
        self.run.release(self.id)?;
        Ok(())
    }
}

fn can_carry(body: &Body) -> bool {
    cfg!(target_os = "linux") && body.raw_socket().is_some() && PIPE.with_borrow(Option::is_some)
}

/// Whether the next bytes of `body` equal `range` on disk.
pub(crate) async fn is_same_as_disk(
    part: &PartFile,
    body: &mut Body,
    range: ByteRange,
    stall: std::time::Duration,
) -> Result<bool, Failure> {
    let length = usize::try_from(range.len()).expect("samples fit in memory");
    let mut sent = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match body.read(&mut sent[filled..], stall).await? {
            0 => return Ok(false),
            read => filled += read,
        }
    }
    let mut held = vec![0; length];
    part.read_at(&mut held, range.start)?;
    Ok(sent == held)
}
