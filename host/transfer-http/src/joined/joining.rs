//! State that the segments of one run share: which may be received now, where the next byte is written, and what is on
//! record.

use std::{
    cell::{Cell, OnceCell, RefCell},
    pin::pin,
    rc::Rc,
    sync::Arc,
};

use tokio::sync::Notify;
use transfer::{
    ConnectionPlan, Failure, Job, Mark, PartFile, RateLimits, Reporter, Source,
    run::{Destination, Retries},
};

use crate::{
    answer::name,
    client::{fetch::Fetcher, shared::Shared},
    joined::{identity, keys::Keys, speed::Speed, window::Window},
};

/// Limit of buffered bytes that cannot be written yet: eight segments of four seconds at 8 Mbit/s.
const MEMORY_BYTES: usize = 32 * 1024 * 1024;

/// One run. It stays on one lane, so plain cells suffice.
pub(crate) struct Joining {
    pub(crate) shared: Arc<Shared>,
    pub(crate) source: Rc<Source>,
    pub(crate) destination: Destination,
    pub(crate) connections: ConnectionPlan,
    pub(crate) limits: RateLimits,
    pub(crate) reporter: Reporter,
    pub(crate) fetcher: Fetcher,
    pub(crate) retries: Retries,
    pub(crate) keys: Keys,
    /// See `identity::names`.
    pub(crate) names: Box<[u64]>,
    pub(crate) part: OnceCell<Arc<PartFile>>,
    pub(crate) window: RefCell<Window>,
    /// Where the next byte is written.
    pub(crate) position: Cell<u64>,
    /// Where the head segment begins: every byte before is on record.
    pub(crate) boundary: Cell<u64>,
    /// The furthest position so far: only progress beyond it refills the retry budget.
    pub(crate) high_water: Cell<u64>,
    /// Bytes received in this run, repeats included.
    pub(crate) received: Cell<u64>,
    /// Of fetches that have ended; the next ones continue them.
    pub(crate) speeds: RefCell<Vec<Speed>>,
    /// Whether a segment came faster than the lowest speed, since a connection was last closed for that.
    pub(crate) has_fast: Cell<bool>,
    /// Notified when the head advances, which frees memory.
    pub(crate) advanced: Notify,
}

impl Joining {
    pub(crate) fn new(shared: Arc<Shared>, job: Job) -> Result<Self, Failure> {
        let Job {
            source,
            target,
            connections,
            limits,
            retry,
            reporter,
            stop: _,
            upload_limits: _,
            purpose: _,
            uploaded_bytes: _,
        } = job;
        let source = Rc::new(source);
        Ok(Self {
            fetcher: Fetcher::new(Arc::clone(&shared), Rc::clone(&source))?,
            destination: Destination::new(&source.urls[0], name::of_url(&source.urls[0]), target, reporter.clone()),
            retries: Retries::new(retry, reporter.clone()),
            keys: Keys::default(),
            names: identity::names(&source.segments),
            part: OnceCell::new(),
            window: RefCell::new(Window::new(0, source.segments.len(), MEMORY_BYTES)),
            position: Cell::new(0),
            boundary: Cell::new(0),
            high_water: Cell::new(0),
            received: Cell::new(0),
            speeds: RefCell::default(),
            has_fast: Cell::new(false),
            advanced: Notify::new(),
            shared,
            source,
            connections,
            limits,
            reporter,
        })
    }

    /// Starts after the first `count` segments.
    pub(crate) fn begin_at(&self, count: usize) {
        *self.window.borrow_mut() = Window::new(count, self.source.segments.len(), MEMORY_BYTES);
    }

    pub(crate) fn adopt(&self, part: PartFile) -> Arc<PartFile> {
        Arc::clone(self.part.get_or_init(|| Arc::new(part)))
    }

    pub(crate) fn part(&self) -> &Arc<PartFile> {
        self.part.get().expect("bytes come only after a part file was claimed")
    }

    /// Discards the received bytes of a segment.
    pub(crate) fn restart(&self, index: usize) {
        let mut window = self.window.borrow_mut();
        window.restart(index);
        if window.is_head(index) {
            self.position.set(self.boundary.get());
        }
    }

    /// How many bytes of a segment may be received; waits until there may be any.
    pub(crate) async fn room(&self, index: usize) -> usize {
        loop {
            let mut advanced = pin!(self.advanced.notified());
            advanced.as_mut().enable();
            let room = self.window.borrow().room(index);
            if room > 0 {
                return room;
            }
            advanced.await;
        }
    }

    /// Writes bytes of the head to the file, or buffers those of a later segment.
    pub(crate) fn put(&self, index: usize, bytes: &[u8]) -> Result<(), Failure> {
        let mut window = self.window.borrow_mut();
        if window.is_head(index) {
            self.write(bytes)
        } else {
            window.keep(index, bytes);
            Ok(())
        }
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let position = self.position.get();
        self.part().write_at(bytes, position)?;
        let end = position + bytes.len() as u64;
        self.position.set(end);
        if end > self.high_water.get() {
            self.high_water.set(end);
            self.retries.progressed();
        }
        Ok(())
    }

    /// Marks a segment complete and writes the buffered ones that follow it.
    pub(crate) fn complete(&self, index: usize) -> Result<(), Failure> {
        self.window.borrow_mut().whole(index);
        while let Some((ended, kept)) = { self.window.borrow_mut().advance() } {
            let mark = Mark {
                end: self.position.get(),
                segments: self.names[ended],
            };
            self.boundary.set(mark.end);
            self.part().record_joined(mark)?;
            self.write(&kept)?;
        }
        self.advanced.notify_waiters();
        Ok(())
    }
}
