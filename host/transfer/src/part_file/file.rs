//! An open part file: writes bytes at positions and records them in the journal.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    failure::{Failure, FailureKind},
    file_name::{FileName, JOURNAL_SUFFIX},
    os::{self, CarryError, KernelPipe},
    part_file::{
        journal::{Checkpoint, Journal, Mark, Origin},
        lent::{Lent, Loan, Otherwise},
    },
    range_set::{ByteRange, RangeSet},
};

/// Space that must stay free on the disk, so that the system itself keeps working.
const SPACE_MARGIN_BYTES: u64 = 1024 * 1024;

/// A locked part file. Bytes are written at positions, from one or several threads; the writer then calls
/// [`PartFile::record`].
#[derive(Debug)]
pub struct PartFile {
    pub(super) file: File,
    pub(super) part: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) name: FileName,
    pub(super) replaces: AtomicBool,
    pub(super) journal: Mutex<Option<Journal>>,
    pub(super) has_disk: OnceLock<bool>,
    pub(super) lent: Lent,
}

impl PartFile {
    /// The path that the file will have, unless the name is taken meanwhile.
    pub fn final_path(&self) -> PathBuf {
        self.directory.join(self.name.as_str())
    }

    /// The part file's own path.
    pub fn path(&self) -> &Path {
        &self.part
    }

    /// Creates the journal if missing, so that a later run can resume from what is recorded from now on. A part file
    /// without one starts over.
    pub fn begin_journal(&self, origin: &Origin) -> Result<(), Failure> {
        let mut journal = self.journal();
        if journal.is_none() {
            let path = self.journal_path();
            let created = Journal::create(&path, origin, &RangeSet::new());
            *journal = Some(created.map_err(|error| Failure::disk("write", &path, &error))?);
        }
        Ok(())
    }

    /// Replaces the journal: `synced` is on disk, `written` is in the part file but perhaps not synced.
    pub fn rewrite_journal(&self, origin: &Origin, synced: &RangeSet, written: &RangeSet) -> Result<(), Failure> {
        let path = self.journal_path();
        let rewritten = Journal::create(&path, origin, synced).and_then(|mut journal| {
            written.iter().try_for_each(|range| journal.written(range))?;
            Ok(journal)
        });
        *self.journal() = Some(rewritten.map_err(|error| Failure::disk("write", &path, &error))?);
        Ok(())
    }

    /// Replaces the journal of a joined file; everything up to `mark` is on disk.
    pub fn rewrite_joined_journal(&self, origin: &Origin, mark: Mark) -> Result<(), Failure> {
        let path = self.journal_path();
        let rewritten = Journal::create_joined(&path, origin, mark);
        *self.journal() = Some(rewritten.map_err(|error| Failure::disk("write", &path, &error))?);
        Ok(())
    }

    /// Whether a journal has been started.
    pub fn has_journal(&self) -> bool {
        self.journal().is_some()
    }

    /// Whether the journal is so long that [`PartFile::rewrite_journal`] should follow the next sync.
    pub fn is_journal_long(&self) -> bool {
        self.journal().as_ref().is_some_and(Journal::is_long)
    }

    /// Writes `bytes` at `offset`. Blocks.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Failure> {
        os::write_all_at(self.file(), bytes, offset).map_err(|error| Failure::disk("write", &self.part, &error))
    }

    /// Moves up to `limit` bytes from a socket to `offset` through the kernel; see [`KernelPipe::carry`]. Blocks on the
    /// disk only.
    #[cfg(target_os = "linux")]
    pub fn carry_at(
        &self,
        pipe: &KernelPipe,
        socket: std::os::fd::BorrowedFd<'_>,
        offset: u64,
        limit: usize,
    ) -> Result<usize, CarryError> {
        pipe.carry(socket, self.file(), offset, limit)
    }

    /// Maps a disk error of [`PartFile::carry_at`].
    pub fn write_failure(&self, error: &io::Error) -> Failure {
        Failure::disk("write", &self.part, error)
    }

    /// Reads the bytes at `offset`, as many as `bytes` holds. Blocks.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), Failure> {
        let mut reader = PartReader { part: self, at: offset };
        io::Read::read_exact(&mut reader, bytes).map_err(|error| Failure::disk("read", &self.part, &error))
    }

    /// A reader over the part file from its start. Blocks.
    pub fn reader(&self) -> impl io::Read + '_ {
        PartReader { part: self, at: 0 }
    }

    /// Records in the journal, if there is one, that `range` has been written.
    pub fn record(&self, range: ByteRange) -> Result<(), Failure> {
        self.append(|journal| journal.written(range))
    }

    /// Records in the journal, if there is one, the progress of a joined file.
    pub fn record_joined(&self, mark: Mark) -> Result<(), Failure> {
        self.append(|journal| journal.joined(mark))
    }

    /// Records in the journal, if there is one, that the bytes of `range` are invalid.
    pub fn distrust(&self, range: ByteRange) -> Result<(), Failure> {
        self.append(|journal| journal.dropped(range))
    }

    /// Discards all bytes, because the file changed at its source. If they are the user's file, that gets its name back
    /// and the download continues in another file; fails if that may not have another name.
    pub fn start_over(&self) -> Result<(), Failure> {
        if self.give_back()? {
            return self.begin_beside();
        }
        if let Some(journal) = self.journal().take() {
            journal
                .remove()
                .map_err(|error| Failure::disk("remove", &self.journal_path(), &error))?;
        }
        self.file()
            .set_len(0)
            .map_err(|error| Failure::disk("empty", &self.part, &error))
    }

    /// Fails if the file system has no room for the rest of a file of `size` bytes.
    pub fn check_space(&self, size: u64) -> Result<(), Failure> {
        let Ok(free) = os::free_bytes(&self.directory) else {
            return Ok(());
        };
        if size.saturating_add(SPACE_MARGIN_BYTES) <= free {
            return Ok(());
        }
        let Ok(held) = os::allocated_bytes(self.file()) else {
            return Ok(());
        };
        let needed = size.saturating_sub(held);
        if needed == 0 || needed.saturating_add(SPACE_MARGIN_BYTES) <= free {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::DiskFull,
            format!(
                "{} needs {needed} more bytes, but {} has only {free} free; free some space and resume",
                self.name,
                self.directory.display()
            ),
        ))
    }

    /// Reserves room for `size` bytes without writing them, or makes a sparse file where that cannot be done. May block
    /// for long on some file systems, so it is called outside of the lanes, while bytes already arrive.
    pub fn reserve(&self, size: u64) -> Result<(), Failure> {
        os::reserve(self.file(), size).map_err(|error| Failure::disk("reserve space for", &self.part, &error))
    }

    /// Syncs what has been recorded so far: first the bytes, then the record of them. May block for long. After a
    /// failure, nothing recorded since the last success may be trusted.
    pub fn sync(&self) -> Result<(), Failure> {
        let checkpoint = self.journal().as_mut().map(Journal::checkpoint).transpose();
        let synced = checkpoint.and_then(|checkpoint| {
            self.file().sync_data()?;
            checkpoint.map_or(Ok(()), Checkpoint::commit)
        });
        synced.map_err(|error| Failure::disk("sync", &self.part, &error))
    }

    /// Whether [`PartFile::finish`] and [`PartFile::sync`] wait for a disk: false on a file system in memory.
    pub fn has_disk(&self) -> bool {
        *self.has_disk.get_or_init(|| !os::is_in_memory(self.file()))
    }

    /// Removes the part file and its journal, or gives the user's file back. Errors are ignored: the next claim of the
    /// name cleans up.
    pub fn discard(&self) {
        match self.give_back() {
            Ok(false) => {}
            Ok(true) => return,
            Err(failure) => {
                tracing::warn!(%failure, "a file that was to be continued could not be given its name back");
                return;
            }
        }
        if let Some(journal) = self.journal().take() {
            let _leftover = journal.remove();
        }
        let _leftover = fs::remove_file(&self.part);
    }

    pub(super) fn file(&self) -> &File {
        self.lent.successor.get().unwrap_or(&self.file)
    }

    /// A file that was taken over and that the download does not continue is replaced by the complete download,
    /// whatever the rule for taken names is.
    pub fn replace_lent(&self) {
        if let Some(loan) = self.lent.loan().as_mut() {
            loan.otherwise = Otherwise::Replace;
        }
    }

    /// Gives a file that was taken over its name and length back. Returns whether there was one.
    fn give_back(&self) -> Result<bool, Failure> {
        let mut lent = self.lent.loan();
        let Some(Loan { bytes, otherwise }) = *lent else {
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
        match otherwise {
            Otherwise::TakeAnotherName => Ok(true),
            Otherwise::Replace => {
                self.replaces.store(true, Ordering::Relaxed);
                Ok(true)
            }
            Otherwise::Fail => Err(Failure::new(
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
    fn begin_beside(&self) -> Result<(), Failure> {
        let created = os::create_own(&self.part).and_then(|file| {
            file.try_lock()?;
            Ok(file)
        });
        let file = created.map_err(|error| Failure::disk("create", &self.part, &error))?;
        self.lent.successor.set(file).expect("a file is given back once");
        Ok(())
    }

    fn append(&self, act: impl FnOnce(&mut Journal) -> io::Result<()>) -> Result<(), Failure> {
        match self.journal().as_mut() {
            Some(journal) => act(journal).map_err(|error| Failure::disk("write", &self.journal_path(), &error)),
            None => Ok(()),
        }
    }

    pub(super) fn journal(&self) -> MutexGuard<'_, Option<Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal_path(&self) -> PathBuf {
        self.directory.join(self.name.with_suffix(JOURNAL_SUFFIX))
    }
}

/// Reads a part file without moving its cursor.
struct PartReader<'a> {
    pub(super) part: &'a PartFile,
    at: u64,
}

impl io::Read for PartReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = os::read_at(self.part.file(), bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
