//! The part file: where a download's bytes go until they are the file.
//!
//! It lies beside its target as `<name>.svcpart`, is locked while somebody works on it, and has a journal
//! (`<name>.svcpart.journal`) that says which bytes are there. A name belongs to whoever created its part file anew;
//! the target itself appears at once and whole, by a rename, when the bytes are proved and on the disk. Both acts are
//! announced before they are done, so that whoever keeps records has them there in time.

use std::{
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use crate::{
    failure::{Failure, FailureKind},
    file_name::FileName,
    journal::{Checkpoint, Journal, Mark, Origin},
    names, os,
    os::{CarryError, KernelPipe, Stranger},
    range_set::{ByteRange, RangeSet},
    transport::{OnConflict, Recorded},
};

/// What is added to a name for its part file.
pub const PART_SUFFIX: &str = ".svcpart";

/// What is added to a name for the journal of its part file.
pub const JOURNAL_SUFFIX: &str = ".svcpart.journal";

/// What is added to a name for a journal that is being written, before it takes the place of the one there.
pub const NEW_JOURNAL_SUFFIX: &str = ".svcpart.journal-new";

/// The last number tried in `name (n).ext` before a name is given up.
const LAST_NUMBER: u32 = 9999;

/// Space left free on the disk when a download is checked against it, so that the system itself can go on.
const SPACE_MARGIN_BYTES: u64 = 1024 * 1024;

/// A name that somebody wants for a file.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The directory; made if it does not exist.
    pub directory: &'a Path,
    /// The name.
    pub name: &'a FileName,
    /// What to do if it is taken.
    pub on_conflict: OnConflict,
    /// [`Origin::source`] of who claims.
    pub source: &'a str,
    /// Whether a part file of the same source that nobody holds is continued.
    pub adopt: bool,
}

/// What a claim came to.
#[derive(Debug)]
pub enum Claimed {
    /// A part file, new and empty.
    New(PartFile),
    /// A part file that was begun before, and what of it is there.
    Begun(PartFile, Begun),
    /// The name is taken and the rule is [`OnConflict::Skip`].
    Exists(PathBuf),
}

/// What an earlier run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// What the bytes are a part of.
    pub origin: Origin,
    /// The bytes that are there.
    pub done: RangeSet,
    /// The last mark of a file that is joined, if its bytes are there.
    pub mark: Option<Mark>,
}

/// A proved part file that is about to become the file at `path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// The final path.
    pub path: PathBuf,
    /// The file's number on its file system, by which it is known under any name.
    pub inode: u64,
    /// Its size.
    pub size_bytes: u64,
}

impl Landing {
    /// Whether the file is there: this one, not another of its name.
    pub fn has_happened(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|metadata| {
            metadata.is_file() && os::inode(&metadata) == self.inode && metadata.len() == self.size_bytes
        })
    }
}

/// A locked part file. Bytes are written at positions, from one thread or several; what was written is told to
/// [`PartFile::record`].
#[derive(Debug)]
pub struct PartFile {
    file: File,
    part: PathBuf,
    directory: PathBuf,
    name: FileName,
    replaces: bool,
    journal: Mutex<Option<Journal>>,
}

impl PartFile {
    /// Claims a name: creates its part file anew, continues one that may be continued, or takes the next name. Each
    /// final path is announced before anything is made for it; the next name is taken if that says so.
    pub async fn claim(
        claim: &Claim<'_>,
        mut announce: impl AsyncFnMut(&Path) -> Result<Recorded, Failure>,
    ) -> Result<Claimed, Failure> {
        if !claim.directory.is_dir() {
            fs::create_dir_all(claim.directory).map_err(|error| directory_failure(claim.directory, &error))?;
        }
        for number in 0..=LAST_NUMBER {
            let name = if number == 0 {
                claim.name.clone()
            } else {
                claim.name.numbered(number)
            };
            if let Some(claimed) = attempt(claim, name, &mut announce).await? {
                return Ok(claimed);
            }
        }
        Err(Failure::new(
            FailureKind::Exists,
            format!(
                "{} and {LAST_NUMBER} numbered alternatives exist in {}",
                claim.name,
                claim.directory.display()
            ),
        ))
    }

    /// Continues a part file of the same source that nobody holds, if [`Claim::adopt`] allows it and there is one under
    /// the name or one of its numbered alternatives in use.
    pub fn find_begun(claim: &Claim<'_>) -> Result<Option<(Self, Begun)>, Failure> {
        for number in 0..=LAST_NUMBER {
            let name = if number == 0 {
                claim.name.clone()
            } else {
                claim.name.numbered(number)
            };
            let paths = Paths::new(claim.directory, &name);
            let is_target_there = fs::symlink_metadata(&paths.target).is_ok();
            match open_existing(&paths, Proof::None)? {
                Existing::Free(file) if claim.adopt => {
                    let is_ours = matches!(paths.journal(Proof::None), Ok(Some((_, begun))) if begun.origin.source == claim.source);
                    let replaces = is_target_there && claim.on_conflict == OnConflict::Overwrite;
                    if is_ours
                        && let Some(Claimed::Begun(part, begun)) = paths.begun_or_new(file, name, replaces, Proof::None)
                    {
                        return Ok(Some((part, begun)));
                    }
                }
                Existing::Missing if !is_target_there => return Ok(None),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Why the part file of `name` in `directory` is not continued although there is one: it may be another user's.
    pub fn not_ours(directory: &Path, name: &FileName) -> Option<String> {
        let paths = Paths::new(directory, name);
        let about = |path: &Path| {
            let metadata = fs::symlink_metadata(path).ok()?;
            let why = match os::strangers_access(&metadata)? {
                Stranger::NoFile => "it is no ordinary file",
                Stranger::SeveralNames => "it has several names",
                Stranger::Owns => "it does not belong to you",
                Stranger::MayWrite => "other users may write it",
            };
            Some(format!("{} is not continued, since {why}", path.display()))
        };
        about(&paths.part).or_else(|| about(&paths.journal))
    }

    /// Makes the file at `path`, which another program left unfinished, a part file of this origin: a run that adopts goes
    /// on with what is `done`. As nothing is known of the version that it is a part of, the run compares the last of its
    /// bytes with the server's first. Blocks.
    pub fn take_over(path: &Path, origin: &Origin, done: &RangeSet) -> io::Result<()> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let paths = Paths::new(directory, &FileName::sanitise(&name.to_string_lossy()));
        if paths.target != path || fs::symlink_metadata(&paths.part).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = os::open_in_place(OpenOptions::new().read(true).write(true), path)?;
        match os::strangers_access(&file.metadata()?) {
            None => {}
            // It is to be a part file, which nobody but its owner writes.
            Some(Stranger::MayWrite) => os::make_own(&file)?,
            Some(Stranger::NoFile | Stranger::SeveralNames | Stranger::Owns) => {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
        file.sync_all()?;
        Journal::create(&paths.journal, origin, done)?;
        os::rename_new(path, &paths.part)
    }

    /// Takes up the part file of `path`, which an earlier run reserved. If it is gone, the name is claimed again.
    pub async fn reclaim(
        path: &Path,
        claim: &Claim<'_>,
        announce: impl AsyncFnMut(&Path) -> Result<Recorded, Failure>,
    ) -> Result<Claimed, Failure> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Self::claim(claim, announce).await;
        };
        let name = FileName::sanitise(&name.to_string_lossy());
        let claim = Claim {
            directory,
            name: &name,
            ..*claim
        };
        let paths = Paths::new(directory, &name);
        match open_existing(&paths, Proof::Reserved)? {
            Existing::Free(file) => {
                let replaces = claim.on_conflict == OnConflict::Overwrite;
                match paths.begun_or_new(file, name.clone(), replaces, Proof::Reserved) {
                    Some(claimed) => Ok(claimed),
                    None => Self::claim(&claim, announce).await,
                }
            }
            Existing::Held(holder) => Err(in_use(&paths.part, holder)),
            Existing::Missing | Existing::Foreign => Self::claim(&claim, announce).await,
        }
    }

    /// The path that the file will have, unless somebody takes it meanwhile.
    pub fn final_path(&self) -> PathBuf {
        self.directory.join(self.name.as_str())
    }

    /// The part file's own path.
    pub fn path(&self) -> &Path {
        &self.part
    }

    /// Starts the journal, if none is there, so that a later run can go on from what is recorded from now on. A part
    /// file without one starts over.
    pub fn begin_journal(&self, origin: &Origin) -> Result<(), Failure> {
        let mut journal = self.journal();
        if journal.is_none() {
            let path = self.journal_path();
            let created = Journal::create(&path, origin, &RangeSet::new());
            *journal = Some(created.map_err(|error| Failure::disk("write", &path, &error))?);
        }
        Ok(())
    }

    /// Writes the journal anew: `synced` is on the disk, `written` is in the part file.
    pub fn rewrite_journal(&self, origin: &Origin, synced: &RangeSet, written: &RangeSet) -> Result<(), Failure> {
        let path = self.journal_path();
        let rewritten = Journal::create(&path, origin, synced).and_then(|mut journal| {
            written.iter().try_for_each(|range| journal.written(range))?;
            Ok(journal)
        });
        *self.journal() = Some(rewritten.map_err(|error| Failure::disk("write", &path, &error))?);
        Ok(())
    }

    /// Writes the journal of a file that is joined anew; what `mark` says is on the disk.
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

    /// Whether the journal has grown so long that [`PartFile::rewrite_journal`] should follow the next sync.
    pub fn is_journal_long(&self) -> bool {
        self.journal().as_ref().is_some_and(Journal::is_long)
    }

    /// Writes `bytes` at `offset`. Blocks.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Failure> {
        os::write_all_at(&self.file, bytes, offset).map_err(|error| Failure::disk("write", &self.part, &error))
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
        pipe.carry(socket, &self.file, offset, limit)
    }

    /// The failure that a disk error of [`PartFile::carry_at`] means.
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

    /// Records in the journal, if there is one, how far a file that is joined has come.
    pub fn record_joined(&self, mark: Mark) -> Result<(), Failure> {
        self.append(|journal| journal.joined(mark))
    }

    /// Records in the journal, if there is one, that the bytes of `range` are no longer believed.
    pub fn distrust(&self, range: ByteRange) -> Result<(), Failure> {
        self.append(|journal| journal.dropped(range))
    }

    /// Forgets all bytes, for a file that changed at its source.
    pub fn start_over(&self) -> Result<(), Failure> {
        if let Some(journal) = self.journal().take() {
            journal
                .remove()
                .map_err(|error| Failure::disk("remove", &self.journal_path(), &error))?;
        }
        self.file
            .set_len(0)
            .map_err(|error| Failure::disk("empty", &self.part, &error))
    }

    /// Fails if the file system has no room for the rest of a file of `size` bytes.
    pub fn check_space(&self, size: u64) -> Result<(), Failure> {
        let (Ok(free), Ok(held)) = (os::free_bytes(&self.directory), os::allocated_bytes(&self.file)) else {
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
    /// for long on some file systems, so it is called off the lanes, while bytes already arrive.
    pub fn reserve(&self, size: u64) -> Result<(), Failure> {
        os::reserve(&self.file, size).map_err(|error| Failure::disk("reserve space for", &self.part, &error))
    }

    /// Puts what has been recorded so far on the disk: first the bytes, then the word that they are there. Blocks for
    /// long. After a failure nothing that was recorded since the last success may be believed.
    pub fn sync(&self) -> Result<(), Failure> {
        let checkpoint = self.journal().as_mut().map(Journal::checkpoint).transpose();
        let synced = checkpoint.and_then(|checkpoint| {
            self.file.sync_data()?;
            checkpoint.map_or(Ok(()), Checkpoint::commit)
        });
        synced.map_err(|error| Failure::disk("sync", &self.part, &error))
    }

    /// Whether [`PartFile::finish`] and [`PartFile::sync`] have a disk to wait for.
    pub fn has_disk(&self) -> bool {
        !os::is_in_memory(&self.file)
    }

    /// Makes the part file, `size` bytes and proved, the file: synced, with its modification time, under its final
    /// name, which is another one if somebody took it meanwhile. Each name is announced before it is taken. Blocks for
    /// long. Returns the final path.
    pub fn finish(
        &self,
        size: u64,
        modified: Option<SystemTime>,
        announce: impl Fn(Landing) -> Result<(), Failure>,
    ) -> Result<PathBuf, Failure> {
        let failed = |act: &str, error: &io::Error| Failure::disk(act, &self.part, error);
        let metadata = self.file.metadata().map_err(|error| failed("read", &error))?;
        if metadata.len() != size {
            self.file.set_len(size).map_err(|error| failed("cut", &error))?;
        }
        if let Some(time) = modified {
            self.file
                .set_modified(time)
                .map_err(|error| failed("set the time of", &error))?;
        }
        os::make_usual(&self.file).map_err(|error| failed("set the permissions of", &error))?;
        self.file.sync_all().map_err(|error| failed("sync", &error))?;
        let inode = os::inode(&metadata);
        let path = self.rename_to_final(|path| {
            announce(Landing {
                path: path.to_owned(),
                inode,
                size_bytes: size,
            })
        })?;
        sync_directory(&self.directory).map_err(|error| Failure::disk("sync", &self.directory, &error))?;
        if let Some(journal) = self.journal().take() {
            // The file is there; a journal that stays behind is cleared by the next claim of its name.
            let _leftover = journal.remove();
        }
        Ok(path)
    }

    /// Removes the part file and its journal. Errors are not told: what stays is cleared by the next claim.
    pub fn discard(&self) {
        if let Some(journal) = self.journal().take() {
            let _leftover = journal.remove();
        }
        let _leftover = fs::remove_file(&self.part);
    }

    fn rename_to_final(&self, announce: impl Fn(&Path) -> Result<(), Failure>) -> Result<PathBuf, Failure> {
        let first = self.final_path();
        if self.replaces {
            announce(&first)?;
            fs::rename(&self.part, &first).map_err(|error| Failure::disk("replace", &first, &error))?;
            return Ok(first);
        }
        for number in 0..=LAST_NUMBER {
            let path = if number == 0 {
                first.clone()
            } else {
                self.directory.join(self.name.numbered(number).as_str())
            };
            announce(&path)?;
            match os::rename_new(&self.part, &path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::disk("name", &path, &error)),
            }
        }
        Err(Failure::new(
            FailureKind::Exists,
            format!("{} and all its alternatives exist", first.display()),
        ))
    }

    fn append(&self, act: impl FnOnce(&mut Journal) -> io::Result<()>) -> Result<(), Failure> {
        match self.journal().as_mut() {
            Some(journal) => act(journal).map_err(|error| Failure::disk("write", &self.journal_path(), &error)),
            None => Ok(()),
        }
    }

    fn journal(&self) -> MutexGuard<'_, Option<Journal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal_path(&self) -> PathBuf {
        self.directory.join(self.name.with_suffix(JOURNAL_SUFFIX))
    }
}

/// Reads a part file without moving its cursor.
struct PartReader<'a> {
    part: &'a PartFile,
    at: u64,
}

impl io::Read for PartReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = os::read_at(&self.part.file, bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The three paths of one name.
struct Paths {
    directory: PathBuf,
    target: PathBuf,
    part: PathBuf,
    journal: PathBuf,
}

/// What lies at a part file's path.
enum Existing {
    Missing,
    /// An ordinary file, now locked by us.
    Free(File),
    /// Locked by somebody else: by this process, if the system tells.
    Held(Option<u32>),
    /// Something that is no part file of ours, such as a link, a directory or another user's file.
    Foreign,
}

/// What says that a part file is ours, beside the file itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Nothing: anybody who can make files in the directory may have planted it.
    None,
    /// The record of a run that reserved this path.
    Reserved,
}

impl Proof {
    /// Whether a file with this metadata in `directory` may be ours.
    fn accepts(self, metadata: &Metadata, directory: &Path) -> bool {
        match os::strangers_access(metadata) {
            None => true,
            Some(Stranger::NoFile | Stranger::SeveralNames) => false,
            // Files are made so that only their owner can write, so he allowed it, or the file system cannot forbid it.
            Some(Stranger::MayWrite) => self == Self::Reserved,
            Some(Stranger::Owns) => self == Self::Reserved && !os::keeps_owners(directory),
        }
    }
}

impl Paths {
    fn new(directory: &Path, name: &FileName) -> Self {
        Self {
            directory: directory.to_owned(),
            target: directory.join(name.as_str()),
            part: directory.join(name.with_suffix(PART_SUFFIX)),
            journal: directory.join(name.with_suffix(JOURNAL_SUFFIX)),
        }
    }

    fn part_file(self, file: File, name: FileName, replaces: bool, journal: Option<Journal>) -> PartFile {
        PartFile {
            file,
            part: self.part,
            directory: self.directory,
            name,
            replaces,
            journal: Mutex::new(journal),
        }
    }

    /// Removes the journals that an earlier part file of the name left. Returns whether none is there now.
    fn remove_stale_journals(&self) -> bool {
        let new_journal = self.journal.with_extension("journal-new");
        [&self.journal, &new_journal]
            .into_iter()
            .all(|path| match fs::remove_file(path) {
                Ok(()) => true,
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            })
    }

    /// The journal, if there is one that can be believed.
    fn journal(&self, proof: Proof) -> io::Result<Option<(Journal, Begun)>> {
        Journal::open(&self.journal, |metadata| proof.accepts(metadata, &self.directory))
    }

    /// The part file in `file` with what its journal says, emptied if that says nothing. `None` if something is in the
    /// way of a journal of ours: nobody could go on from a part file without one.
    fn begun_or_new(self, file: File, name: FileName, replaces: bool, proof: Proof) -> Option<Claimed> {
        let Ok(Some((journal, mut begun))) = self.journal(proof) else {
            if !self.remove_stale_journals() {
                return None;
            }
            let _emptied = file.set_len(0);
            return Some(Claimed::New(self.part_file(file, name, replaces, None)));
        };
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        begun.done.remove(ByteRange::new(length, u64::MAX));
        begun.mark = begun.mark.filter(|mark| mark.end <= length);
        Some(Claimed::Begun(
            self.part_file(file, name, replaces, Some(journal)),
            begun,
        ))
    }
}

/// Tries to claim one name; `None` if it is taken.
async fn attempt(
    claim: &Claim<'_>,
    name: FileName,
    announce: &mut impl AsyncFnMut(&Path) -> Result<Recorded, Failure>,
) -> Result<Option<Claimed>, Failure> {
    let paths = Paths::new(claim.directory, &name);
    let mut replaces = false;
    if names::is_taken(claim.directory, name.as_str()) {
        match claim.on_conflict {
            OnConflict::Skip => return Ok(Some(Claimed::Exists(paths.target))),
            OnConflict::Overwrite if is_plain_file(&paths.target) => replaces = true,
            OnConflict::Overwrite | OnConflict::Rename => return Ok(None),
        }
    }
    loop {
        let begun = match open_existing(&paths, Proof::None)? {
            Existing::Missing => None,
            Existing::Free(file) if claim.may_continue(&paths) => Some(file),
            Existing::Held(holder) if claim.on_conflict != OnConflict::Rename => {
                return Err(in_use(&paths.part, holder));
            }
            _ => return Ok(None),
        };
        if announce(&paths.target).await? == Recorded::Taken {
            return Ok(None);
        }
        let file = match begun {
            Some(file) => return Ok(paths.begun_or_new(file, name, replaces, Proof::None)),
            None => create_new(&paths.part)?,
        };
        // Somebody who was quicker has it, and is looked at as whoever was there before.
        let Some(file) = file else { continue };
        file.try_lock().map_err(|error| lock_failure(&paths.part, &error))?;
        if !paths.remove_stale_journals() {
            // What another user put there would be in the way of every journal of ours.
            let _nothing_in_it = fs::remove_file(&paths.part);
            return Ok(None);
        }
        names::add(claim.directory, name.as_str());
        return Ok(Some(Claimed::New(paths.part_file(file, name, replaces, None))));
    }
}

impl Claim<'_> {
    /// Whether the part file at `paths`, which nobody holds, may be continued.
    fn may_continue(&self, paths: &Paths) -> bool {
        let is_other =
            || matches!(paths.journal(Proof::None), Ok(Some((_, begun))) if begun.origin.source != self.source);
        self.adopt && !is_other()
    }
}

/// `None` if something is there.
fn create_new(path: &Path) -> Result<Option<File>, Failure> {
    match os::create_own(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(Failure::disk("create", path, &error)),
    }
}

fn open_existing(paths: &Paths, proof: Proof) -> Result<Existing, Failure> {
    match fs::symlink_metadata(&paths.part) {
        Ok(metadata) if !proof.accepts(&metadata, &paths.directory) => return Ok(Existing::Foreign),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Existing::Missing),
        Err(error) => return Err(Failure::disk("open", &paths.part, &error)),
    }
    let file = match os::open_in_place(OpenOptions::new().read(true).write(true), &paths.part) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Existing::Missing),
        Err(error) => return Err(Failure::disk("open", &paths.part, &error)),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Existing::Held(os::lock_holder(&file))),
        Err(TryLockError::Error(error)) => return Err(Failure::disk("lock", &paths.part, &error)),
    }
    // Between looking, opening and locking its holder may have finished it, or another file may have come into its place.
    match (file.metadata(), fs::symlink_metadata(&paths.part)) {
        (Ok(opened), Ok(named)) if named.is_file() && os::inode(&opened) == os::inode(&named) => {
            Ok(if proof.accepts(&opened, &paths.directory) {
                Existing::Free(file)
            } else {
                Existing::Foreign
            })
        }
        _ => Ok(Existing::Missing),
    }
}

fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Puts the names of a directory on the disk. Blocks.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

fn directory_failure(directory: &Path, error: &io::Error) -> Failure {
    let mut failure = Failure::disk("make the directory", directory, error);
    if matches!(failure.kind, FailureKind::Exists | FailureKind::DiskIo) {
        failure.kind = FailureKind::Directory;
    }
    failure
}

fn lock_failure(path: &Path, error: &TryLockError) -> Failure {
    match error {
        TryLockError::WouldBlock => in_use(path, None),
        TryLockError::Error(error) => Failure::disk("lock", path, error),
    }
}

fn in_use(path: &Path, holder: Option<u32>) -> Failure {
    let who = holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
    Failure::new(
        FailureKind::InUse,
        format!(
            "{} is in use by {who}; wait until that ends, or choose another name",
            path.display()
        ),
    )
}

#[cfg(test)]
mod tests;
