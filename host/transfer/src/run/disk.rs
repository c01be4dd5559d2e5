//! A run's file on disk: the part file once there is one, the reservation of space, and the bytes to confirm.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use crate::{
    ByteRange, Failure, PartFile,
    run::{background::internal, destination::Destination},
};
use futures_util::FutureExt;
use tokio::task::{JoinHandle, spawn_blocking};

/// The file of a run on disk.
#[derive(Debug)]
pub struct Disk {
    /// Its name and place.
    pub destination: Destination,
    part: RefCell<Option<Arc<PartFile>>>,
    /// The reservation of space in progress, while bytes already arrive.
    reserving: RefCell<Option<JoinHandle<Result<(), Failure>>>>,
    /// The last bytes of a part file that was adopted without a record of this task: they are compared with the
    /// server's before the file is accepted.
    pub unconfirmed: Cell<Option<ByteRange>>,
}

impl Disk {
    /// Without a part file yet.
    pub fn new(destination: Destination) -> Self {
        Self {
            destination,
            part: RefCell::default(),
            reserving: RefCell::default(),
            unconfirmed: Cell::default(),
        }
    }

    /// Whether there is a part file.
    pub fn is_claimed(&self) -> bool {
        self.part.borrow().is_some()
    }

    /// The part file, if there is one.
    pub fn claimed(&self) -> Option<Arc<PartFile>> {
        self.part.borrow().clone()
    }

    /// The part file. Panics before [`Disk::adopt`].
    pub fn part(&self) -> Arc<PartFile> {
        self.claimed().expect("bytes come only after a part file was claimed")
    }

    /// Makes `part` the part file of this run.
    pub fn adopt(&self, part: PartFile) -> Arc<PartFile> {
        let part = Arc::new(part);
        *self.part.borrow_mut() = Some(Arc::clone(&part));
        part
    }

    /// Reserves space for `total` bytes in the background: on some file systems that takes seconds.
    pub fn start_reserving(&self, total: u64) {
        let mut reserving = self.reserving.borrow_mut();
        if reserving.is_none() {
            let part = self.part();
            *reserving = Some(spawn_blocking(move || part.reserve(total)));
        }
    }

    /// Fails if the reservation has failed.
    pub fn check_reserved(&self) -> Result<(), Failure> {
        let mut reserving = self.reserving.borrow_mut();
        match reserving.as_mut().and_then(FutureExt::now_or_never) {
            None => Ok(()),
            Some(reserved) => {
                *reserving = None;
                reserved.map_err(|_| internal("reserving space"))?
            }
        }
    }

    /// Waits for the reservation.
    pub async fn wait_reserved(&self) -> Result<(), Failure> {
        let reserving = self.reserving.borrow_mut().take();
        match reserving {
            Some(reserving) => reserving.await.map_err(|_| internal("reserving space"))?,
            None => Ok(()),
        }
    }

    /// Records that these ranges are written.
    pub fn record_all(&self, ranges: Vec<ByteRange>) -> Result<(), Failure> {
        ranges.into_iter().try_for_each(|range| self.part().record(range))
    }

    /// Starts a sync of the part file, of a file of `total` bytes if that is known, on a blocking thread; `None` if it has no
    /// journal, since then nothing relies on it.
    pub fn start_sync(&self, total: Option<u64>) -> Result<Option<JoinHandle<Result<(), Failure>>>, Failure> {
        let part = self.part();
        if let Some(total) = total {
            part.check_space(total)?;
        }
        Ok(part.has_journal().then(|| spawn_blocking(move || part.sync())))
    }
}
