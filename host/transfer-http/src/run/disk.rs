//! A run's file on disk: the part file once there is one, the reservation of space, and the bytes to confirm.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use futures_util::FutureExt;
use tokio::task::{JoinHandle, spawn_blocking};
use transfer::{ByteRange, Failure, PartFile};

use crate::{background::internal, destination::Destination};

pub(crate) struct Disk {
    pub(crate) destination: Destination,
    part: RefCell<Option<Arc<PartFile>>>,
    /// The reservation of space in progress, while bytes already arrive.
    reserving: RefCell<Option<JoinHandle<Result<(), Failure>>>>,
    /// The last bytes of a part file that was adopted without a record of this task: they are compared with the
    /// server's before the file is accepted.
    pub(crate) unconfirmed: Cell<Option<ByteRange>>,
}

impl Disk {
    pub(crate) fn new(destination: Destination) -> Self {
        Self {
            destination,
            part: RefCell::default(),
            reserving: RefCell::default(),
            unconfirmed: Cell::default(),
        }
    }

    pub(crate) fn is_claimed(&self) -> bool {
        self.part.borrow().is_some()
    }

    pub(crate) fn claimed(&self) -> Option<Arc<PartFile>> {
        self.part.borrow().clone()
    }

    /// The part file. Panics before [`Disk::adopt`].
    pub(crate) fn part(&self) -> Arc<PartFile> {
        self.claimed().expect("bytes come only after a part file was claimed")
    }

    /// Makes `part` the part file of this run.
    pub(crate) fn adopt(&self, part: PartFile) -> Arc<PartFile> {
        let part = Arc::new(part);
        *self.part.borrow_mut() = Some(Arc::clone(&part));
        part
    }

    /// Reserves space for `total` bytes in the background: on some file systems that takes seconds.
    pub(crate) fn start_reserving(&self, total: u64) {
        let mut reserving = self.reserving.borrow_mut();
        if reserving.is_none() {
            let part = self.part();
            *reserving = Some(spawn_blocking(move || part.reserve(total)));
        }
    }

    /// Fails if the reservation has failed.
    pub(crate) fn check_reserved(&self) -> Result<(), Failure> {
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
    pub(crate) async fn wait_reserved(&self) -> Result<(), Failure> {
        let reserving = self.reserving.borrow_mut().take();
        match reserving {
            Some(reserving) => reserving.await.map_err(|_| internal("reserving space"))?,
            None => Ok(()),
        }
    }
}
