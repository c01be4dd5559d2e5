//! The directory that an archive is unpacked to: every file in it is new, and nothing is written outside.

use std::{
    cell::RefCell,
    collections::HashSet,
    ffi::OsStr,
    fs::File,
    io::{self, Read, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    rc::Rc,
    time::{Duration, SystemTime},
};

use rustix::fs::{Mode, OFlags, mkdirat, openat};

use crate::{
    names::{Kind, Names},
    refusal::{Reason, Refusal, Result},
};

/// The highest ratio of what is unpacked to the archive's size. Deflate reaches 1,032 for bytes that are all the same.
pub(crate) const MAX_RATIO: u64 = 1000;

/// Below this many bytes the ratio does not matter: what is small is no bomb.
const RATIO_FROM_BYTES: u64 = 64 << 20;

/// Bytes that are copied at once.
const BUFFER_BYTES: usize = 128 * 1024;

/// What the archive says about an entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    /// Its name, for refusals.
    pub(crate) raw: String,
    /// Its path, from [`Names::admit`].
    pub(crate) path: PathBuf,
    /// Its size in bytes, where that is known before it is unpacked.
    pub(crate) size: Option<u64>,
    /// Whether its owner may execute it.
    pub(crate) is_executable: bool,
    /// When it was modified, in seconds since 1970.
    pub(crate) modified: Option<i64>,
}

/// What was unpacked so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// How many bytes may be unpacked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Bytes of all files together.
    pub(crate) max_bytes: u64,
    /// Size of the archive, with all of its volumes.
    pub(crate) archive_bytes: u64,
}

impl Budget {
    /// Whether `bytes` in all are too many.
    pub(crate) fn check(&self, bytes: u64) -> std::result::Result<(), Reason> {
        if bytes > self.max_bytes {
            return Err(Reason::TotalSize { limit: self.max_bytes });
        }
        check_ratio(bytes, self.archive_bytes)
    }
}

/// Whether `bytes` are too many for `packed` bytes.
pub(crate) fn check_ratio(bytes: u64, packed: u64) -> std::result::Result<(), Reason> {
    if bytes > RATIO_FROM_BYTES && bytes / MAX_RATIO > packed {
        return Err(Reason::Ratio { ratio: MAX_RATIO });
    }
    Ok(())
}

/// Called with the counts, and whether only syncing is left; a failure ends the work.
pub(crate) type Report = Box<dyn FnMut(Counts, bool) -> io::Result<()>>;

/// The directory, with the names in it and what was unpacked.
pub(crate) struct Tree {
    root: OwnedFd,
    pub(crate) names: Names,
    meter: Rc<RefCell<Meter>>,
    made: HashSet<PathBuf>,
    /// The directory that was used last; entries of an archive are mostly ordered.
    recent: Option<(PathBuf, OwnedFd)>,
}

/// Counts what is unpacked, against the budget.
struct Meter {
    budget: Budget,
    counts: Counts,
    report: Report,
}

impl Meter {
    fn add(&mut self, bytes: u64, raw: &str) -> Result<()> {
        let total = self.counts.bytes.saturating_add(bytes);
        self.budget.check(total).map_err(|reason| reason.of(raw))?;
        self.counts.bytes = total;
        self.report(false)
    }

    fn announce(&self, bytes: Option<u64>, raw: &str) -> Result<()> {
        let total = self.counts.bytes.saturating_add(bytes.unwrap_or(0));
        self.budget.check(total).map_err(|reason| reason.of(raw))
    }

    fn report(&mut self, is_syncing: bool) -> Result<()> {
        (self.report)(self.counts, is_syncing).map_err(|error| Reason::write(&error).of_archive())
    }
}

/// A file that is being unpacked. It can outlive calls of the tree, because some libraries want to own it.
pub(crate) struct NewFile {
    entry: Entry,
    file: File,
    written: u64,
    meter: Rc<RefCell<Meter>>,
}

impl NewFile {
    /// Appends `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let raw = self.entry.raw.as_str();
        let length = bytes.len() as u64;
        if let Some(declared) = self.entry.size
            && self.written + length > declared
        {
            return Err(Reason::Size { declared }.of(raw));
        }
        self.meter.borrow_mut().add(length, raw)?;
        let written = self.file.write_all(bytes);
        written.map_err(|error| Reason::write(&error).of(raw))?;
        self.written += length;
        Ok(())
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<()> {
        if let Some(declared) = self.entry.size
            && self.written != declared
        {
            return Err(Reason::Size { declared }.of(&self.entry.raw));
        }
        if let Some(modified) = self.entry.modified {
            // A file system without times is no reason to refuse the content.
            let _ = self.file.set_modified(in_range(modified));
        }
        let mut meter = self.meter.borrow_mut();
        meter.counts.files += 1;
        meter.report(false)
    }
}

impl Tree {
    /// An empty tree in the directory `root`.
    pub(crate) fn new(root: OwnedFd, budget: Budget, report: Report) -> Self {
        let meter = Meter {
            budget,
            counts: Counts::default(),
            report,
        };
        Self {
            root,
            names: Names::default(),
            meter: Rc::new(RefCell::new(meter)),
            made: HashSet::new(),
            recent: None,
        }
    }

    /// Refuses entries that together are larger than may be unpacked, before any of them is.
    pub(crate) fn announce(&self, bytes: u64) -> Result<()> {
        let checked = self.meter.borrow().budget.check(bytes);
        checked.map_err(Reason::of_archive)
    }

    /// Unpacks a file.
    pub(crate) fn file(&mut self, entry: Entry, content: &mut dyn Read) -> Result<()> {
        let raw = entry.raw.clone();
        let mut file = self.create(entry)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match content.read(&mut buffer) {
                Ok(0) => return file.finish(),
                Ok(read) => file.write(&buffer[..read])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(stream_reason(&error).of(&raw)),
            }
        }
    }

    /// Creates a file.
    pub(crate) fn create(&mut self, entry: Entry) -> Result<NewFile> {
        self.meter.borrow().announce(entry.size, &entry.raw)?;
        let file = self.open_new(&entry);
        let file = file.map_err(|error| Reason::write(&error).of(&entry.raw))?;
        Ok(NewFile {
            entry,
            file,
            written: 0,
            meter: Rc::clone(&self.meter),
        })
    }

    /// Makes a directory; one that exists is no error.
    pub(crate) fn directory(&mut self, raw: &str, path: &Path) -> Result<()> {
        let made = self.open_directory(path).map(drop);
        made.map_err(|error| Reason::write(&error).of(raw))?;
        self.meter.borrow_mut().report(false)
    }

    /// Makes everything durable: on Linux at once, because syncing many small files one by one takes minutes.
    pub(crate) fn sync(&mut self) -> Result<Counts> {
        self.meter.borrow_mut().report(true)?;
        self.sync_all().map_err(|error| Reason::write(&error).of_archive())?;
        Ok(self.meter.borrow().counts)
    }

    #[cfg(target_os = "linux")]
    fn sync_all(&mut self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.root)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn sync_all(&mut self) -> io::Result<()> {
        let mut made: Vec<_> = self.made.iter().cloned().collect();
        made.sort();
        for path in made {
            rustix::fs::fsync(self.open_directory(&path)?)?;
        }
        Ok(rustix::fs::fsync(&self.root)?)
    }

    fn open_new(&mut self, entry: &Entry) -> io::Result<File> {
        let mode = if entry.is_executable { 0o755 } else { 0o644 };
        let name = entry.path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let directory = self.open_directory(entry.path.parent().unwrap_or(Path::new("")))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // The file creation mask of the process applies.
        let file = openat(directory.as_fd(), name, flags, Mode::from_raw_mode(mode))?;
        Ok(File::from(file))
    }

    /// Opens a directory below the root, component by component, and makes those that are missing.
    fn open_directory(&mut self, path: &Path) -> io::Result<&OwnedFd> {
        if path.as_os_str().is_empty() {
            return Ok(&self.root);
        }
        if self.recent.as_ref().is_none_or(|(recent, _)| recent != path) {
            let mut at = PathBuf::new();
            let mut opened: Option<OwnedFd> = None;
            for name in path {
                let parent = opened.as_ref().unwrap_or(&self.root);
                at.push(name);
                let child = enter(parent, name, self.made.insert(at.clone()))?;
                opened = Some(child);
            }
            self.recent = opened.map(|directory| (path.to_owned(), directory));
        }
        Ok(self.recent.as_ref().map_or(&self.root, |(_, directory)| directory))
    }
}

fn enter(parent: &OwnedFd, name: &OsStr, is_new: bool) -> io::Result<OwnedFd> {
    if is_new {
        mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// A time that was not, or is yet to come, becomes the nearest that is allowed.
fn in_range(seconds: i64) -> SystemTime {
    let now = SystemTime::now();
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let modified = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    modified.map_or(now, |modified| modified.min(now))
}

/// Why a decoder failed: its own words, or the refusal that a reader below it carries.
pub(crate) fn stream_reason(error: &io::Error) -> Reason {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()) {
        Some(refusal) => refusal.reason.clone(),
        None if matches!(error.kind(), io::ErrorKind::OutOfMemory) => Reason::Memory {
            limit: crate::codec::MAX_DICTIONARY_BYTES,
        },
        None => Reason::damaged(error),
    }
}

/// Whether a mode of Unix is one that is unpacked, and whether its owner may execute the file. Some archives leave the
/// type zero.
pub(crate) fn check_mode(mode: u32, kind: Kind) -> std::result::Result<bool, Reason> {
    const MASK: u32 = 0o170_000;
    match (mode & MASK, kind) {
        (0, _) | (0o100_000, Kind::File) | (0o040_000, Kind::Directory) => Ok(mode & 0o100 != 0),
        (0o120_000, _) => Err(Reason::SymbolicLink),
        (0o100_000 | 0o040_000, _) => Err(Reason::Mismatch {
            what: "file or directory".to_owned(),
        }),
        _ => Err(Reason::SpecialFile),
    }
}
