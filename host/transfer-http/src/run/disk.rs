//! A run's file on the disk: its part file once there is one, the room reserved for it, and what is not believed yet.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use futures_util::FutureExt;
use tokio::task::{JoinHandle, spawn_blocking};
use transfer::{ByteRange, Failure, PartFile};

use crate::{background::internal, place::Place};

pub(crate) struct Disk {
    pub(crate) place: Place,
    part: RefCell<Option<Arc<PartFile>>>,
    /// The room on the disk being reserved, while bytes already come.
    reserving: RefCell<Option<JoinHandle<Result<(), Failure>>>>,
    /// The last bytes of a part file that was taken up without a record of this task's: the server confirms them before
    /// the file is believed.
    pub(crate) unconfirmed: Cell<Option<ByteRange>>,
}

impl Disk {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place,
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

    /// The part file. Only asked for once there is one.
    pub(crate) fn part(&self) -> Arc<PartFile> {
        self.claimed().expect("bytes come only after a part file was claimed")
    }

    /// Makes `part` the part file of this run.
    pub(crate) fn adopt(&self, part: PartFile) -> Arc<PartFile> {
        let part = Arc::new(part);
        *self.part.borrow_mut() = Some(Arc::clone(&part));
        part
    }

    /// Reserves room for `total` bytes beside moving them: on some file systems that takes seconds.
    pub(crate) fn start_reserving(&self, total: u64) {
        let mut reserving = self.reserving.borrow_mut();
        if reserving.is_none() {
            let part = self.part();
            *reserving = Some(spawn_blocking(move || part.reserve(total)));
        }
    }

    /// Fails if there turned out to be no room on the disk.
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

    /// Waits until the room is reserved.
    pub(crate) async fn wait_reserved(&self) -> Result<(), Failure> {
        let reserving = self.reserving.borrow_mut().take();
        match reserving {
            Some(reserving) => reserving.await.map_err(|_| internal("reserving space"))?,
            None => Ok(()),
        }
    }
}
