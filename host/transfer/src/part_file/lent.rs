//! A part file that is a file of the user: one that was there before, taken as the beginning of a download because the
//! user asked for it. Its bytes exist nowhere else, so a download that cannot use them leaves them where they were.

use std::{
    fs::File,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

/// What was taken over, until it is given back.
#[derive(Debug, Default)]
pub(super) struct Lent {
    loan: Mutex<Option<Loan>>,
    /// The part file that took its place.
    pub(super) successor: OnceLock<File>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Loan {
    /// Its length when it was taken over; what follows was downloaded.
    pub(super) bytes: u64,
    pub(super) otherwise: Otherwise,
}

/// What a download does that does not continue the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Otherwise {
    TakeAnotherName,
    /// Replace it when the download is complete.
    Replace,
    Fail,
}

impl Lent {
    pub(super) fn of(loan: Loan) -> Self {
        Self {
            loan: Mutex::new(Some(loan)),
            successor: OnceLock::new(),
        }
    }

    pub(super) fn loan(&self) -> MutexGuard<'_, Option<Loan>> {
        self.loan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
