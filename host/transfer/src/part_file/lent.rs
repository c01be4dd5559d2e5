//! A part file that is a file of the user: one that was there before, taken as the beginning of a download because the
//! user asked for it. Its bytes exist nowhere else, so a download that cannot use them leaves them where they were.

use std::{
    fs::File,
    sync::{Mutex, OnceLock, PoisonError, atomic::Ordering},
};

use crate::{
    failure::{Failure, FailureKind},
    os,
    part_file::{claim::OnConflict, file::PartFile},
};

/// What was taken over, until it is given back.
#[derive(Debug, Default)]
pub(super) struct Lent {
    file: Mutex<Option<Loan>>,
    /// The part file that took its place.
    successor: OnceLock<File>,
}

#[derive(Debug, Clone, Copy)]
struct Loan {
    /// Its length when it was taken over; what follows was downloaded.
    bytes: u64,
    on_conflict: OnConflict,
}

impl Lent {
    /// A file of so many bytes; `on_conflict` says what becomes of it if the download does not continue it.
    pub(super) fn of(bytes: u64, on_conflict: OnConflict) -> Self {
        Self {
            file: Mutex::new(Some(Loan { bytes, on_conflict })),
            successor: OnceLock::new(),
        }
    }
}

impl PartFile {
    pub(super) fn file(&self) -> &File {
        self.lent.successor.get().unwrap_or(&self.file)
    }

    /// A file that was taken over and that the download does not continue is replaced by the complete download,
    /// whatever the rule for taken names is.
    pub fn replace_lent(&self) {
        if let Some(loan) = self.lent.file.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            loan.on_conflict = OnConflict::Overwrite;
        }
    }

    /// Gives a file that was taken over its name and length back. Returns whether there was one.
    pub(super) fn give_back(&self) -> Result<bool, Failure> {
        let mut lent = self.lent.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Loan { bytes, on_conflict }) = *lent else {
            return Ok(false);
        };
        let path = self.final_path();
        let given = self
            .file
            .set_len(bytes)
            .and_then(|()| os::rename_new(&self.part, &path));
        given.map_err(|error| Failure::disk("give the name back to", &path, &error))?;
        *lent = None;
        if let Some(journal) = self.journal().take() {
            // Without its part file it says nothing; the next claim of the name deletes it.
            let _leftover = journal.remove();
        }
        match on_conflict {
            OnConflict::Rename => Ok(true),
            OnConflict::Overwrite => {
                self.replaces.store(true, Ordering::Relaxed);
                Ok(true)
            }
            OnConflict::Skip => Err(Failure::new(
                FailureKind::Exists,
                format!(
                    "{} is not the beginning of the file at the server and stays as it is: move it, choose another name, or \
                    allow to overwrite it",
                    path.display()
                ),
            )),
        }
    }

    /// Creates another part file in place of the one that was given back.
    pub(super) fn begin_beside(&self) -> Result<(), Failure> {
        let created = os::create_own(&self.part).and_then(|file| {
            file.try_lock()?;
            Ok(file)
        });
        let file = created.map_err(|error| Failure::disk("create", &self.part, &error))?;
        self.lent.successor.set(file).expect("a file is given back once");
        Ok(())
    }
}
