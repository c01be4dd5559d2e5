//! Claiming a name: creates its part file, or continues one of an earlier run. A part file that another user may have
//! planted is never continued.

use std::{
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, atomic::AtomicBool},
    time::Duration,
};

use crate::{
    failure::{Failure, FailureKind},
    file_name::{FileName, JOURNAL_SUFFIX, LAST_NUMBER, PART_SUFFIX},
    os::{self, Exposure},
    part_file::{
        file::PartFile,
        journal::{Begun, Journal, Origin},
        lent::{Lent, Loan, Otherwise},
        names,
    },
    range_set::{ByteRange, RangeSet},
};

/// How often, and how far apart, a new part file is tried to be locked. A look at a file takes microseconds.
const LOOKS: u32 = 20;
const LOOK_TIME: Duration = Duration::from_millis(5);

/// What to do when the name that a file should get is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnConflict {
    /// Take `stem (1).ext`, `stem (2).ext`, …
    #[default]
    Rename,
    /// Replace the finished file of that name, once the new one is verified. Never a part file or a directory.
    Overwrite,
    /// Download nothing and end as [`crate::Outcome::Skipped`].
    Skip,
}

impl OnConflict {
    /// Every rule with the name that requests and settings have for it.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("rename", Self::Rename),
        ("overwrite", Self::Overwrite),
        ("skip", Self::Skip),
    ];

    /// This rule for a name under which a file is there, or is not.
    fn with_target(self, is_target_there: bool) -> Rule {
        Rule {
            on_conflict: self,
            replaces: is_target_there && self == Self::Overwrite,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, rule)| *rule == self);
        found.map_or("", |(name, _)| name)
    }

    /// The rule of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, rule)| *rule)
    }
}

/// The result of recording an event of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is on disk, if the listener keeps records.
    Done,
    /// It was not recorded: the path is another task's.
    Taken,
}

/// A request for a file name.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The directory; created if missing.
    pub directory: &'a Path,
    /// The name.
    pub name: &'a FileName,
    /// What to do if it is taken.
    pub on_conflict: OnConflict,
    /// [`Origin::source`] of the claiming run.
    pub source: &'a str,
    /// Whether an unlocked part file of the same source is continued.
    pub adopt: bool,
}

/// The result of a claim.
#[derive(Debug)]
pub enum Claimed {
    /// A part file, new and empty.
    New(PartFile),
    /// A part file of an earlier run, and which of its bytes are valid.
    Begun(PartFile, Begun),
    /// The name is taken and the rule is [`OnConflict::Skip`].
    Exists(PathBuf),
}

impl PartFile {
    /// Claims a name: creates its part file, continues one that may be continued, or tries the next name. Each final
    /// path is announced before anything is created for it; if `announce` refuses it, the next name is tried.
    pub async fn claim(
        claim: &Claim<'_>,
        mut announce: impl AsyncFnMut(&Path) -> Result<Recorded, Failure>,
    ) -> Result<Claimed, Failure> {
        if !names::exists(claim.directory) {
            make_directory(claim.directory)?;
        }
        for name in claim.name.alternatives() {
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

    /// Continues an unlocked part file of the same source, if [`Claim::adopt`] allows it and one exists under the name
    /// or one of its numbered alternatives.
    pub fn find_begun(claim: &Claim<'_>) -> Result<Option<(Self, Begun)>, Failure> {
        for name in claim.name.alternatives() {
            if !names::may_have(claim.directory, &name) {
                return Ok(None);
            }
            let paths = Paths::new(claim.directory, &name);
            let is_target_there = fs::symlink_metadata(&paths.target).is_ok();
            match open_existing(&paths, Proof::None)? {
                Existing::Free(file) if claim.adopt => {
                    let is_ours = matches!(paths.journal(Proof::None), Ok(Some((_, begun))) if begun.origin.source == claim.source);
                    let rule = claim.on_conflict.with_target(is_target_there);
                    if is_ours
                        && let Some(Claimed::Begun(part, begun)) = paths.begun_or_new(file, name, rule, Proof::None)?
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

    /// Opens the finished file at `path` for reading, if it is an ordinary file of this size.
    pub fn finished(path: &Path, size_bytes: u64) -> Option<File> {
        if !is_plain_file(path) {
            return None;
        }
        let file = os::open_in_place(OpenOptions::new().read(true), path).ok()?;
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && metadata.len() == size_bytes).then_some(file)
    }

    /// Why the part file of `name` in `directory` is not continued although it exists: it may be another user's.
    pub fn not_ours(directory: &Path, name: &FileName) -> Option<String> {
        let paths = Paths::new(directory, name);
        let about = |path: &Path| {
            let metadata = fs::symlink_metadata(path).ok()?;
            let why = match os::exposure(&metadata)? {
                Exposure::NoFile => "it is no ordinary file",
                Exposure::SeveralNames => "it has several names",
                Exposure::Owns => "it does not belong to you",
                Exposure::MayWrite => "other users may write it",
            };
            Some(format!("{} is not continued, since {why}", path.display()))
        };
        about(&paths.part).or_else(|| about(&paths.journal))
    }

    /// Turns an unfinished file of another program into a part file of this origin; a run with `adopt` continues after
    /// the `done` bytes. Its version is unknown, so that run first compares its last bytes with the server's. Blocks.
    pub fn take_over(path: &Path, origin: &Origin, done: &RangeSet) -> io::Result<()> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let paths = Paths::new(directory, &FileName::sanitise(&name.to_string_lossy()));
        if paths.target != path || fs::symlink_metadata(&paths.part).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = os::open_in_place(OpenOptions::new().read(true).write(true), path)?;
        match os::exposure(&file.metadata()?) {
            None => {}
            // A part file must be writable by its owner only.
            Some(Exposure::MayWrite) => os::make_own(&file)?,
            Some(Exposure::NoFile | Exposure::SeveralNames | Exposure::Owns) => {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
        file.sync_all()?;
        Journal::create(&paths.journal, origin, done)?;
        os::rename_new(path, &paths.part)
    }

    /// Reopens the part file of `path`, which an earlier run reserved. If it is missing, the name is claimed again.
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
                match paths.begun_or_new(file, name.clone(), claim.on_conflict.with_target(true), Proof::Reserved)? {
                    Some(claimed) => Ok(claimed),
                    None => Self::claim(&claim, announce).await,
                }
            }
            Existing::Held(holder) => Err(in_use(&paths.part, holder)),
            Existing::Missing | Existing::Foreign => Self::claim(&claim, announce).await,
        }
    }
}

/// What a continued part file does with a file of its name.
#[derive(Debug, Clone, Copy)]
struct Rule {
    on_conflict: OnConflict,
    /// Whether the file that is there is replaced.
    replaces: bool,
}

/// The final path of a name, its part file and its journal.
struct Paths {
    directory: PathBuf,
    target: PathBuf,
    part: PathBuf,
    journal: PathBuf,
}

/// What exists at a part file's path.
enum Existing {
    Missing,
    /// An ordinary file, now locked by us.
    Free(File),
    /// Locked by another process, with its id if known.
    Held(Option<u32>),
    /// Not a part file of ours: a symbolic link, a directory or another user's file.
    Foreign,
}

/// Evidence, beside the file itself, that a part file is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// None: anyone who can create files in the directory may have planted it.
    None,
    /// The engine's record that a run reserved this path.
    Reserved,
}

impl Proof {
    /// Whether a file with this metadata in `directory` may be ours.
    fn accepts(self, metadata: &Metadata, directory: &Path) -> bool {
        match os::exposure(metadata) {
            None => true,
            Some(Exposure::NoFile | Exposure::SeveralNames) => false,
            // We create files without write access for others, so the owner granted it later, or the file system has no
            // permissions.
            Some(Exposure::MayWrite) => self == Self::Reserved,
            Some(Exposure::Owns) => self == Self::Reserved && !os::keeps_owners(directory),
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
            lent: Lent::default(),
            file,
            part: self.part,
            directory: self.directory,
            name,
            replaces: AtomicBool::new(replaces),
            journal: Mutex::new(journal),
            has_disk: OnceLock::new(),
        }
    }

    /// Deletes journals of an earlier part file of this name. Returns whether none is left.
    fn remove_stale_journals(&self) -> bool {
        let new_journal = self.journal.with_extension("journal-new");
        [&self.journal, &new_journal]
            .into_iter()
            .all(|path| match fs::remove_file(path) {
                Ok(()) => true,
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            })
    }

    /// The journal, if there is a trustworthy one.
    fn journal(&self, proof: Proof) -> io::Result<Option<(Journal, Begun)>> {
        Journal::open(&self.journal, |metadata| proof.accepts(metadata, &self.directory))
    }

    /// The part file in `file` with the valid bytes according to its journal, truncated if there are none. `None` if a
    /// foreign file blocks the journal's path: without a journal no run could resume. A journal that cannot be read now
    /// (no descriptor is left, a server is away) is a failure: the bytes may be read another time.
    fn begun_or_new(self, file: File, name: FileName, rule: Rule, proof: Proof) -> Result<Option<Claimed>, Failure> {
        let Rule { on_conflict, replaces } = rule;
        let (journal, mut begun) = match self.journal(proof) {
            Ok(Some(begun)) => begun,
            Ok(None) => {
                if !self.remove_stale_journals() {
                    return Ok(None);
                }
                let _emptied = file.set_len(0);
                return Ok(Some(Claimed::New(self.part_file(file, name, replaces, None))));
            }
            Err(error) if is_blocked(&self.journal, &error) => return Ok(None),
            Err(error) => return Err(Failure::disk("open", &self.journal, &error)),
        };
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        begun.done.remove(ByteRange::new(length, u64::MAX));
        begun.mark = begun.mark.filter(|mark| mark.end <= length);
        let mut part = self.part_file(file, name, replaces, Some(journal));
        if let Some(bytes) = begun.origin.lent_bytes {
            let otherwise = match on_conflict {
                OnConflict::Rename => Otherwise::TakeAnotherName,
                OnConflict::Overwrite => Otherwise::Replace,
                OnConflict::Skip => Otherwise::Fail,
            };
            part.lent = Lent::of(Loan { bytes, otherwise });
        }
        Ok(Some(Claimed::Begun(part, begun)))
    }
}

/// Whether something that is no journal of ours stands at its path.
fn is_blocked(journal: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
        || fs::symlink_metadata(journal).is_ok_and(|metadata| !metadata.is_file())
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
    let mut is_clear = !names::may_have_leftovers(claim.directory, &name);
    loop {
        let existing = if is_clear {
            Existing::Missing
        } else {
            open_existing(&paths, Proof::None)?
        };
        let begun = match existing {
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
            Some(file) => {
                let rule = Rule {
                    on_conflict: claim.on_conflict,
                    replaces,
                };
                return paths.begun_or_new(file, name, rule, Proof::None);
            }
            None => create_new(&paths)?,
        };
        // Another process created it first: treat it like a file that existed before.
        let Some(file) = file else {
            is_clear = false;
            continue;
        };
        if !lock_new(&file, &paths.part).await? {
            match claim.on_conflict {
                OnConflict::Rename => return Ok(None),
                OnConflict::Overwrite | OnConflict::Skip => return Err(in_use(&paths.part, os::lock_holder(&file))),
            }
        }
        if !is_clear && !paths.remove_stale_journals() {
            // A foreign file at the journal's path would block every journal of ours.
            let _nothing_in_it = fs::remove_file(&paths.part);
            return Ok(None);
        }
        names::add(claim.directory, name.as_str());
        return Ok(Some(Claimed::New(paths.part_file(file, name, replaces, None))));
    }
}

impl Claim<'_> {
    /// Whether the unlocked part file at `paths` may be continued.
    fn may_continue(&self, paths: &Paths) -> bool {
        let is_other =
            || matches!(paths.journal(Proof::None), Ok(Some((_, begun))) if begun.origin.source != self.source);
        self.adopt && !is_other()
    }
}

/// Creates a new part file; `None` if the path is taken. The directory may have been deleted since it was listed.
fn create_new(paths: &Paths) -> Result<Option<File>, Failure> {
    let created = match os::create_own(&paths.part) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directory(&paths.directory)?;
            os::create_own(&paths.part)
        }
        created => created,
    };
    match created {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(Failure::disk("create", &paths.part, &error)),
    }
}

/// Locks a part file that this run has just created. Another run that looks for something to continue locks it for a
/// moment; one that keeps it has taken the name, and the answer is false.
async fn lock_new(file: &File, path: &Path) -> Result<bool, Failure> {
    for _ in 0..LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK_TIME).await,
            Err(TryLockError::Error(error)) => return Err(Failure::disk("lock", path, &error)),
        }
    }
    Ok(false)
}

fn make_directory(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|error| Failure::directory(directory, &error))
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
    // Between the checks, opening and locking, its holder may have finished it, or another file may have replaced it.
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
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_look_at_a_new_part_file_does_not_take_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file.bin.svcpart");
        let created = File::create_new(&path).unwrap();
        let looking = File::open(&path).unwrap();
        looking.lock().unwrap();
        assert!(
            !lock_new(&created, &path).await.unwrap(),
            "who keeps the lock has the name"
        );
        let look = async {
            tokio::time::sleep(2 * LOOK_TIME).await;
            drop(looking);
        };
        let (locked, ()) = tokio::join!(lock_new(&created, &path), look);
        assert!(locked.unwrap());
    }
}
