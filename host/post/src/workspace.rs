//! The files of a finished download as a plugin works on them.
//!
//! # What always holds
//!
//! - Nothing but these files is read, and only by plain names, which are looked up in a directory that was opened once, and
//!   never through a link.
//! - Nothing is replaced.
//! - What the plugin does counts only if it succeeds: new files and unpacked archives wait in hidden directories, new names
//!   in memory, until [`commit`](Workspace::commit). What is left of a plugin that failed, or of a crash, is swept.
//! - A file is removed only if it is part of an archive that was unpacked here, and not by this module: its caller saves the
//!   result first.

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::FileExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use confined::OwnCommand;
use private_files::FileError;
use rustix::fs::Stat;
use transfer::{ByteCount, FileName, Secret, file_name::fold};

use crate::{
    dir::{Dir, Identity, Original, is_directory, is_file, open_regular, rename_new},
    job::Outcome,
    refusal::Refusal,
    rename::free_path,
    stage::{Appeared, Hidden, InvalidRun, RunId, Stage, recover_hidden},
    unpack::{Attempt, MAX_PASSWORDS, Progress, Ready, UnpackError, unpack_hidden},
    volumes::{is_archive, volumes},
};

/// What is read at once.
const MAX_READ_BYTES: usize = 8 << 20;

/// What is written, all new files together: texts, checksums and small pictures, not another download.
const MAX_WRITTEN_BYTES: u64 = 64 << 20;

/// New files.
const MAX_NEW_FILES: usize = 256;

/// Attempts at unpacking. Each is a process that may take minutes.
const MAX_UNPACKS: usize = 100;

/// Files of a directory that are listed; a larger one is none that a plugin works on.
const MAX_NAMES: usize = 10_000;

/// The directory for new files in the stage, where no other file of ours is.
const NEW: &str = "new";

/// Why something is not done.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The files of the job are not those of one directory.
    #[error("the files are in several directories; a plugin works on those of one")]
    Apart,
    /// One of them is neither where it was nor where it was to be.
    #[error("{} is not there any more", .0.display())]
    Gone(PathBuf),
    /// One of them is a directory beside others, or something else.
    #[error("{} is no regular file", .0.display())]
    NotFile(PathBuf),
    /// One of them has a name that plugins are not given.
    #[error("{} has a name that is not given to plugins; rename it first", .0.display())]
    Unsafe(PathBuf),
    /// Too many of them.
    #[error("{} has more than {MAX_NAMES} files; that is the limit for a plugin", .0.display())]
    TooManyFiles(PathBuf),
    /// A name that no file may have.
    #[error(
        "{0:?} is no name for a file: plain names without a path are, which are not hidden and work on every system"
    )]
    Name(String),
    /// There is no such file.
    #[error("the download has no file {0:?}")]
    Unknown(String),
    /// The name is taken.
    #[error("{0:?} is there already; nothing is replaced")]
    Taken(String),
    /// The name is that of a new file, which is not complete before the end.
    #[error("{0:?} is new; only files that were downloaded can be used for this")]
    New(String),
    /// More is read at once than possible.
    #[error("{} bytes; at most {} are read at once", .0, ByteCount(MAX_READ_BYTES as u64))]
    Read(u64),
    /// More is written than possible.
    #[error(
        "new files have at most {} together, and are at most {MAX_NEW_FILES}",
        ByteCount(MAX_WRITTEN_BYTES)
    )]
    Written,
    /// The file is no archive.
    #[error("{0:?} is no archive, or not its first volume")]
    NotArchive(String),
    /// The archive was not unpacked here.
    #[error("{0:?} was not unpacked; only an archive that was can be removed")]
    NotUnpacked(String),
    /// Too many attempts.
    #[error("{MAX_UNPACKS} archives were unpacked; that is the limit for one call")]
    Unpacks,
    /// Too many passwords.
    #[error("{0} passwords; {MAX_PASSWORDS} are tried")]
    Passwords(usize),
    /// Nothing is done any more.
    #[error("the call has ended")]
    Ended,
    /// A volume is missing.
    #[error(transparent)]
    Volumes(#[from] Refusal),
    /// The archive is not unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// The run has a name that is too long.
    #[error(transparent)]
    Run(#[from] InvalidRun),
    /// The disk.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The result of everything here.
type Result<T> = std::result::Result<T, WorkError>;

/// The files of a download, and what becomes of them if a plugin succeeds. Everything but unpacking blocks.
#[derive(Debug)]
pub struct Workspace {
    root: Dir,
    run: RunId,
    interrupted: Vec<RunId>,
    /// Where an interrupted commit was about to put new files: those that are there are ours.
    intended: Vec<PathBuf>,
    /// The directory that an archive was unpacked to, if that is what the job works on.
    directory: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<Downloaded>,
    /// Names of files in the stage.
    new: Vec<String>,
    written_bytes: u64,
    /// The directory of new files, with the stage that it is in.
    stage: Option<(Stage, Dir)>,
    unpacked: Vec<Archive>,
    unpacks: usize,
    has_ended: bool,
}

/// A file that was downloaded.
#[derive(Debug)]
struct Downloaded {
    /// On the disk.
    present: String,
    /// As the plugin knows it.
    name: String,
}

/// An archive that was unpacked.
#[derive(Debug)]
struct Archive {
    /// The name of its first volume on the disk.
    present: String,
    /// Waits for the commit.
    ready: Ready,
    is_removed: bool,
}

impl Workspace {
    /// The files of a job: some of one directory, or all that are directly in the directory that an archive was unpacked to.
    /// Below `root`, the save directory, links are not followed. A file that an interrupted commit has moved to where that
    /// intended it is moved back: what the plugin does counts only if it succeeds.
    pub fn open(
        (root, files): (&Path, &[PathBuf]),
        intended: &[PathBuf],
        run: RunId,
        interrupted: Vec<RunId>,
    ) -> Result<Self> {
        let parent = files.first().and_then(|file| file.parent());
        let parent = parent.filter(|parent| files.iter().all(|file| file.parent() == Some(*parent)));
        let beside = Dir::open_below(root, parent.ok_or(WorkError::Apart)?)?;
        move_back(&beside, files, intended)?;
        let found = files.iter().map(|file| {
            let found = beside.find(file.file_name().unwrap_or_default());
            found.ok_or_else(|| WorkError::Gone(file.clone()))
        });
        let found: Vec<_> = found.collect::<Result<_>>()?;
        let directory = match (files, found.as_slice()) {
            ([only], [found]) if is_directory(found) => Some(only.clone()),
            _ => None,
        };
        let (root, names) = if let Some(directory) = &directory {
            let root = beside.enter(directory.file_name().unwrap_or_default())?;
            let names = listed(&root)?;
            (root, names)
        } else {
            let names = files.iter().zip(&found).map(|(file, found)| plain_name(file, found));
            let names = names.collect::<Result<_>>()?;
            (beside, names)
        };
        let files_of_job = files.len();
        let files = names.into_iter().map(|name| Downloaded {
            present: name.clone(),
            name,
        });
        Ok(Self {
            root,
            run,
            interrupted,
            intended: intended.iter().skip(files_of_job).cloned().collect(),
            directory,
            state: Mutex::new(State {
                files: files.collect(),
                ..State::default()
            }),
        })
    }

    /// The directory that the files are in.
    pub fn directory(&self) -> &Path {
        self.root.path()
    }

    /// The file that the download is about: its archive, or else the first; empty in a directory that was unpacked.
    pub fn main(&self) -> String {
        if self.directory.is_some() {
            return String::new();
        }
        let state = self.state();
        let archive = state.files.iter().find(|file| is_archive(&file.present));
        let main = archive.or(state.files.first());
        main.map(|file| file.name.clone()).unwrap_or_default()
    }

    /// The names of all files, those that were downloaded first.
    pub fn names(&self) -> Vec<String> {
        let state = self.state();
        let downloaded = state.files.iter().map(|file| &file.name);
        downloaded.chain(&state.new).cloned().collect()
    }

    /// The names of archives among those that were downloaded; of several volumes the first.
    pub fn archives(&self) -> Vec<String> {
        let state = self.state();
        let archives = state.files.iter().filter(|file| is_archive(&file.present));
        archives.map(|file| file.name.clone()).collect()
    }

    /// The size of a file in bytes.
    pub fn size(&self, name: &str) -> Result<u64> {
        Ok(self.open_file(name)?.1)
    }

    /// Bytes of a file; fewer than `length` only at its end.
    pub fn read(&self, name: &str, offset: u64, length: u32) -> Result<Vec<u8>> {
        if usize::try_from(length).is_ok_and(|length| length > MAX_READ_BYTES) {
            return Err(WorkError::Read(length.into()));
        }
        let (file, size) = self.open_file(name)?;
        let length = size.saturating_sub(offset).min(length.into());
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(MAX_READ_BYTES)];
        let read = file.read_exact_at(&mut bytes, offset);
        read.map_err(|error| self.root.error("read", name, error))?;
        Ok(bytes)
    }

    /// A new file.
    pub fn write_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut state = self.working()?;
        self.check_free(&state, name)?;
        let written = state.written_bytes.saturating_add(bytes.len() as u64);
        if written > MAX_WRITTEN_BYTES || state.new.len() >= MAX_NEW_FILES {
            return Err(WorkError::Written);
        }
        // The file creation mask of the process applies, as for downloads.
        self.new_files(&mut state)?.write_new(name, 0o644, bytes)?;
        state.written_bytes = written;
        state.new.push(name.to_owned());
        Ok(())
    }

    /// A directory for a program that writes a new file: [`adopt`](Self::adopt) takes it from there. Only the user of this
    /// process may use it, and the files of the job are in the directory above.
    pub fn scratch(&self) -> Result<Scratch> {
        let mut state = self.working()?;
        self.new_files(&mut state)?;
        let (stage, _) = state.stage.as_ref().expect("it was just made");
        let dir = stage.dir().again()?;
        let path = dir.path().to_owned();
        Ok(Scratch {
            fd: Arc::new(dir.into()),
            path,
        })
    }

    /// The new file, if an interrupted run has put one where it intended.
    pub fn made(&self) -> Option<&Path> {
        let intended = self.intended.first()?;
        let found = intended.file_name().and_then(|name| self.root.find(name))?;
        is_file(&found).then_some(intended.as_path())
    }

    /// The name for a new file that is wanted, or its next free number.
    pub fn free_name(&self, wanted: &FileName) -> Result<FileName> {
        let numbered = (1..=u32::from(u16::MAX)).map(|number| wanted.numbered(number));
        for name in std::iter::once(wanted.clone()).chain(numbered) {
            match self.check_new(name.as_str()) {
                Err(WorkError::Taken(_)) => {}
                checked => return checked.map(|()| name),
            }
        }
        Err(WorkError::Taken(wanted.as_str().to_owned()))
    }

    /// Takes a complete file of this name in the [`scratch`](Self::scratch) directory as a new one.
    pub fn adopt(&self, scratch: &Scratch, from: &str, name: &str) -> Result<()> {
        let mut state = self.working()?;
        self.check_free(&state, name)?;
        if state.new.len() >= MAX_NEW_FILES {
            return Err(WorkError::Written);
        }
        let new = self.new_files(&mut state)?;
        let sync = open_regular(&scratch.fd, from).and_then(|file| file.sync_all());
        let moved = sync.and_then(|()| rename_new(&scratch.fd, Path::new(from), new, Path::new(name)));
        moved.map_err(FileError::at("rename", scratch.path.join(from)))?;
        state.new.push(name.to_owned());
        Ok(())
    }

    /// Whether a new file may have this name.
    pub fn check_new(&self, name: &str) -> Result<()> {
        let state = self.working()?;
        self.check_free(&state, name)
    }

    /// The name of a downloaded file on the disk, for programs.
    pub fn on_disk(&self, name: &str) -> Result<FileName> {
        let state = self.working()?;
        let file = downloaded(&state, name)?;
        // It is a plain one, or it would not be among the files.
        Ok(FileName::sanitise(&file.present))
    }

    /// Gives a file another name.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut state = self.working()?;
        if let Some(index) = state.new.iter().position(|name| name == from) {
            if from != to {
                self.check_free(&state, to)?;
                let new = self.new_files(&mut state)?;
                new.rename(from, new, to)
                    .map_err(|error| new.error("rename", from, error))?;
                to.clone_into(&mut state.new[index]);
            }
            return Ok(());
        }
        let file = downloaded(&state, from)?;
        if file.present != to && from != to {
            self.check_free(&state, to)?;
        }
        let file = state.files.iter_mut().find(|file| file.name == from);
        if let Some(file) = file {
            to.clone_into(&mut file.name);
        }
        Ok(())
    }

    /// Unpacks an archive; the name of the directory that appears at the end, unless it is taken. Dropping the future ends
    /// it.
    pub async fn unpack(
        self: &Arc<Self>,
        command: &OwnCommand,
        name: &str,
        passwords: Vec<Secret>,
        progress: impl FnMut(Progress),
    ) -> Result<String> {
        if passwords.len() > MAX_PASSWORDS {
            return Err(WorkError::Passwords(passwords.len()));
        }
        let (work, of) = (Arc::clone(self), name.to_owned());
        let begun = tokio::task::spawn_blocking(move || work.begin_unpack(&of)).await;
        let (present, originals) = match begun.expect("beginning does not panic")? {
            Begun::Done(directory) => return Ok(directory),
            Begun::Wanted { present, originals } => (present, originals),
        };
        let ready = if let Some(hidden) = self.recovered(&present).await? {
            Ready::recovered(hidden)
        } else {
            let attempt = Attempt {
                originals,
                destination: self.root.again()?,
                run: self.run.part(&present)?,
                passwords,
                max_bytes: u64::MAX,
            };
            let never = std::future::pending();
            unpack_hidden(command, attempt, progress, never).await?
        };
        let archive = Archive {
            present,
            ready,
            is_removed: false,
        };
        let directory = archive.ready.name().as_str().to_owned();
        self.working()?.unpacked.push(archive);
        Ok(directory)
    }

    /// Has an archive removed that was unpacked here, with its volumes, once the result of the plugin is saved.
    pub fn remove_archive(&self, name: &str) -> Result<()> {
        let mut state = self.working()?;
        let present = downloaded(&state, name)?.present.clone();
        let unpacked = state.unpacked.iter_mut().find(|archive| archive.present == present);
        let archive = unpacked.ok_or_else(|| WorkError::NotUnpacked(name.to_owned()))?;
        archive.is_removed = true;
        Ok(())
    }

    /// Where files get by the commit: those that the job works on, and then new ones. Empty if none is moved or new. Nothing
    /// is done any more from now on.
    pub fn finish(&self) -> Vec<PathBuf> {
        let mut state = self.state();
        state.has_ended = true;
        let is_moved = state.files.iter().any(|file| file.name != file.present);
        if !is_moved && state.new.is_empty() {
            return Vec::new();
        }
        let of_job: Vec<_> = match &self.directory {
            Some(directory) => vec![directory.clone()],
            None => state.files.iter().map(|file| self.target(file)).collect(),
        };
        let new = state.new.iter().map(|name| self.place_of_new(name));
        of_job.into_iter().chain(new).collect()
    }

    /// Does what the plugin wanted. `targets` are those of [`finish`](Self::finish), and saved: after a crash in the middle,
    /// the next run finds the files by them. If something of it fails, all of it is taken back.
    pub fn commit(&self, targets: &[PathBuf]) -> Result<Outcome> {
        let state = self.take_state();
        let mut done = Vec::new();
        let committed = self.commit_all(&state, targets, &mut done);
        if committed.is_err() {
            for step in done.into_iter().rev() {
                // The first error is the one that says what is wrong.
                let _is_left = step.take_back(&self.root);
            }
        }
        committed
    }

    fn commit_all<'a>(&'a self, state: &'a State, targets: &[PathBuf], done: &mut Vec<Done<'a>>) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut directories = Vec::new();
        for archive in &state.unpacked {
            if archive.is_removed {
                outcome.originals.extend(archive.ready.originals().iter().cloned());
            }
            let appeared = archive.ready.place()?;
            directories.push(self.path().join(&appeared.placed.name));
            done.push(Done::Placed(&archive.ready, appeared));
        }
        let packed = state.unpacked.iter().flat_map(|archive| archive.ready.originals());
        let packed: Vec<_> = packed.collect();
        let new = self.place_new(state, targets, done)?;
        for file in &state.files {
            let from = self.path().join(&file.present);
            let to = self.moved(&state.files, file, targets);
            if from != to {
                let name = to.file_name().unwrap_or_default();
                let identity = self.root.identity(&file.present)?;
                let moved = self.root.rename(&file.present, &self.root, name);
                moved.map_err(|error| self.root.error("rename", &file.present, error))?;
                done.push(Done::Moved((&self.root, file.present.clone()), identity, to.clone()));
            }
            if !packed.iter().any(|original| original.path == from) {
                outcome.files.push(to);
            } else if let Some(original) = outcome.originals.iter_mut().find(|original| original.path == from) {
                original.path = to;
            }
        }
        outcome.files.extend(new);
        outcome.files.extend(directories);
        if let Some(directory) = &self.directory {
            outcome.files = vec![directory.clone()];
        }
        self.root.sync()?;
        Ok(outcome)
    }
}

/// A part of a commit, which can be taken back.
enum Done<'a> {
    Placed(&'a Ready, Appeared),
    /// From a name in a directory to a path in that of the files.
    Moved((&'a Dir, String), Identity, PathBuf),
}

impl Done<'_> {
    fn take_back(self, root: &Dir) -> std::result::Result<(), FileError> {
        match self {
            Self::Placed(ready, appeared) => ready.take_back(&appeared),
            Self::Moved((directory, name), identity, to) => {
                root.rename_same(to.file_name().unwrap_or_default(), identity, directory, &name)
            }
        }
    }
}

/// A directory that only the user of this process may use ([`Workspace::scratch`]). What is left in it is removed with the
/// rest of what a run leaves.
#[derive(Debug, Clone)]
pub struct Scratch {
    fd: Arc<OwnedFd>,
    /// Where it was made, for messages.
    path: PathBuf,
}

impl Scratch {
    /// The open directory.
    pub fn fd(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }
}

/// The start of unpacking.
enum Begun {
    /// It was unpacked already, to this directory.
    Done(String),
    Wanted {
        present: String,
        originals: Vec<Original>,
    },
}

impl Workspace {
    fn path(&self) -> &Path {
        self.root.path()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, which nothing is done with any more.
    fn take_state(&self) -> State {
        let ended = State {
            has_ended: true,
            ..State::default()
        };
        std::mem::replace(&mut *self.state(), ended)
    }

    /// The state, unless the call has ended.
    fn working(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.has_ended {
            return Err(WorkError::Ended);
        }
        Ok(state)
    }

    /// Opens a file, and its size.
    fn open_file(&self, name: &str) -> Result<(File, u64)> {
        let state = self.working()?;
        let opened = match &state.stage {
            Some((_, new)) if state.new.iter().any(|new| new == name) => new.open_regular(name),
            _ => self.root.open_regular(&downloaded(&state, name)?.present),
        };
        let opened = opened.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = opened.map_err(|error| self.root.error("open", name, error))?;
        Ok((file, bytes))
    }

    /// Whether a name is one that a file may have, and that none has.
    fn check_free(&self, state: &State, name: &str) -> Result<()> {
        if !is_plain(name) {
            return Err(WorkError::Name(name.to_owned()));
        }
        let key = fold(name);
        let known = state.files.iter().flat_map(|file| [&file.name, &file.present]);
        let is_known = known.chain(&state.new).any(|taken| fold(taken) == key);
        let is_there = self.root.find(name).is_some();
        if is_known || (is_there && !self.intended.contains(&self.path().join(name))) {
            return Err(WorkError::Taken(name.to_owned()));
        }
        Ok(())
    }

    /// The directory of new files, made when the first one is.
    fn new_files<'a>(&self, state: &'a mut State) -> Result<&'a Dir> {
        if state.stage.is_none() {
            let stage = Stage::make(&self.root, &FileName::sanitise(NEW), &self.run)?;
            let new = stage.dir().make(NEW)?;
            state.stage = Some((stage, new));
        }
        let (_, new) = state.stage.as_ref().expect("it was just made");
        Ok(new)
    }

    fn begin_unpack(&self, name: &str) -> Result<Begun> {
        let mut state = self.working()?;
        let present = downloaded(&state, name)?.present.clone();
        if let Some(archive) = state.unpacked.iter().find(|archive| archive.present == present) {
            return Ok(Begun::Done(archive.ready.name().as_str().to_owned()));
        }
        if !is_archive(&present) {
            return Err(WorkError::NotArchive(name.to_owned()));
        }
        if state.unpacks >= MAX_UNPACKS {
            return Err(WorkError::Unpacks);
        }
        state.unpacks += 1;
        let all: Vec<_> = state.files.iter().map(|file| file.present.clone()).collect();
        let originals = volumes(&present, &all)?.into_iter().map(|volume| {
            let path = self.path().join(&volume);
            let file = self.root.open_regular(&volume);
            let original = file.and_then(|file| Original::of(path, &file));
            Ok(original.map_err(|error| self.root.error("open", &volume, error))?)
        });
        let originals = originals.collect::<Result<_>>()?;
        Ok(Begun::Wanted { present, originals })
    }

    /// The directory that an interrupted run has unpacked an archive to.
    async fn recovered(&self, present: &str) -> Result<Option<Hidden>> {
        for run in &self.interrupted {
            let (run, directory) = (run.part(present)?, self.root.again()?);
            let recovering = tokio::task::spawn_blocking(move || recover_hidden(directory, &run));
            let hidden = recovering.await.expect("recovering does not panic")?;
            if hidden.is_some() {
                return Ok(hidden);
            }
        }
        Ok(None)
    }

    /// Where a downloaded file gets: its new name, or one like it if that was taken meanwhile.
    fn target(&self, file: &Downloaded) -> PathBuf {
        if file.name == file.present {
            self.path().join(&file.name)
        } else {
            free_path(self.path(), Path::new(&file.name))
        }
    }

    /// Where a new file gets, in the same way. One of the same name that an interrupted commit has put there is it.
    fn place_of_new(&self, name: &str) -> PathBuf {
        let wanted = self.path().join(name);
        if self.intended.contains(&wanted) {
            return wanted;
        }
        free_path(self.path(), Path::new(name))
    }

    /// Where a file gets by the saved targets.
    fn moved(&self, files: &[Downloaded], file: &Downloaded, targets: &[PathBuf]) -> PathBuf {
        let index = files.iter().position(|other| other.present == file.present);
        let target = index
            .and_then(|index| targets.get(index))
            .filter(|_| self.directory.is_none());
        match target {
            Some(target) => target.clone(),
            None => self.target(file),
        }
    }

    /// Moves new files to the targets that follow those of the job.
    fn place_new<'a>(
        &'a self,
        state: &'a State,
        targets: &[PathBuf],
        done: &mut Vec<Done<'a>>,
    ) -> Result<Vec<PathBuf>> {
        let Some((_, new)) = &state.stage else {
            return Ok(Vec::new());
        };
        let places = &targets[targets.len().saturating_sub(state.new.len())..];
        for (name, to) in state.new.iter().zip(places) {
            let identity = new.identity(name)?;
            match new.rename(name, &self.root, to.file_name().unwrap_or_default()) {
                Ok(()) => done.push(Done::Moved((new, name.clone()), identity, to.clone())),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.intended.contains(to) => {}
                Err(error) => return Err(new.error("rename", name, error).into()),
            }
        }
        Ok(places.to_vec())
    }
}

fn downloaded<'a>(state: &'a State, name: &str) -> Result<&'a Downloaded> {
    if state.new.iter().any(|new| new == name) {
        return Err(WorkError::New(name.to_owned()));
    }
    let file = state.files.iter().find(|file| file.name == name);
    file.ok_or_else(|| WorkError::Unknown(name.to_owned()))
}

/// Whether a name is one component that is safe everywhere, not hidden, and not that of a part file.
fn is_plain(name: &str) -> bool {
    FileName::sanitise_or_none(name).is_some_and(|plain| plain.as_str() == name)
}

/// Moves the files of a job that are where a commit intended them, and not in their places, there.
fn move_back(directory: &Dir, files: &[PathBuf], intended: &[PathBuf]) -> Result<()> {
    let mut is_moved = false;
    for (file, intended) in files.iter().zip(intended) {
        let (Some(name), Some(moved)) = (file.file_name(), intended.file_name()) else {
            continue;
        };
        let is_beside = intended.parent() == Some(directory.path());
        if is_beside && directory.find(name).is_none() && directory.find(moved).is_some() {
            let back = directory.rename(moved, directory, name);
            back.map_err(|error| directory.error("rename", moved, error))?;
            is_moved = true;
        }
    }
    if is_moved {
        // Before something else is intended.
        directory.sync()?;
    }
    Ok(())
}

/// The name of a file of the job.
fn plain_name(file: &Path, found: &Stat) -> Result<String> {
    if !is_file(found) {
        return Err(WorkError::NotFile(file.to_owned()));
    }
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| is_plain(name));
    name.map(ToOwned::to_owned)
        .ok_or_else(|| WorkError::Unsafe(file.to_owned()))
}

/// The names of the regular files directly in a directory, sorted, without those that plugins are not given.
fn listed(directory: &Dir) -> Result<Vec<String>> {
    let names = directory
        .names()?
        .into_iter()
        .filter_map(|name| name.into_string().ok());
    let is_file = |name: &String| {
        let found = directory.find(name);
        found.is_some_and(|found| is_file(&found))
    };
    let names = names.filter(|name| is_plain(name) && is_file(name));
    let mut names: Vec<_> = names.take(MAX_NAMES + 1).collect();
    if names.len() > MAX_NAMES {
        return Err(WorkError::TooManyFiles(directory.path().to_owned()));
    }
    names.sort();
    Ok(names)
}
