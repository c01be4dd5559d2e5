//! Unpacking for the service: starts the unpacker's process, watches it, and lets the result appear.

use std::{
    ffi::OsString,
    future::Future,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use confined::{OwnCommand, Running};
use private_files::FileError;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStderr, ChildStdout},
};
use transfer::{FileName, Secret, free_bytes};

use crate::{
    dir::{Dir, Original},
    refusal::{Reason, Refusal},
    stage::{Appeared, Hidden, RunId, Stage, Unpacked},
    volumes::{directory_name, volumes},
    wire::{Job, Line, MAX_LINE_BYTES},
};

/// Space of the disk that unpacking leaves free.
pub const RESERVE_BYTES: u64 = 256 << 20;

/// How long the unpacker may be silent. It reports every second, except while the disk writes what it has.
const MAX_SILENCE: Duration = Duration::from_mins(15);

/// What is kept of the unpacker's messages when it dies.
const MAX_MESSAGE_BYTES: u64 = 2048;

/// The most passwords that are tried.
pub const MAX_PASSWORDS: usize = 100;

/// What to unpack.
#[derive(Debug)]
pub struct Request {
    /// The save directory. Below it, links are not followed.
    pub root: PathBuf,
    /// The archive, or any volume of one. The others are beside it.
    pub archive: PathBuf,
    /// The directory that the result appears in.
    pub destination: PathBuf,
    /// Names this attempt.
    pub run: RunId,
    /// Tried in their order if the archive is encrypted; at most [`MAX_PASSWORDS`].
    pub passwords: Vec<Secret>,
    /// Bytes that may be unpacked; less if the disk has less.
    pub max_bytes: u64,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files that are unpacked.
    pub files: u64,
    /// Bytes that are.
    pub bytes: u64,
    /// How much of the archive was read, in thousandths.
    pub thousandths: u16,
    /// Whether only writing to the disk is left.
    pub is_syncing: bool,
}

/// An attempt whose files were found.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The files of the archive, in their order.
    pub(crate) originals: Vec<Original>,
    /// The directory that the result appears in.
    pub(crate) destination: Dir,
    pub(crate) run: RunId,
    pub(crate) passwords: Vec<Secret>,
    pub(crate) max_bytes: u64,
}

/// An archive whose content is unpacked, verified and synced, and not visible yet. Dropping it leaves its stage to the next
/// [`sweep`](crate::sweep).
#[derive(Debug)]
pub(crate) struct Ready {
    stage: Stage,
    content: Content,
    originals: Vec<Original>,
}

/// What is about to appear.
#[derive(Debug)]
struct Content {
    /// Relative to the stage.
    payload: PathBuf,
    wanted: FileName,
    files: u64,
    bytes: u64,
}

impl Ready {
    /// The name that the directory gets, unless it is taken.
    pub(crate) fn name(&self) -> &FileName {
        &self.content.wanted
    }

    /// The files of the archive.
    pub(crate) fn originals(&self) -> &[Original] {
        &self.originals
    }

    /// What an interrupted run has unpacked.
    pub(crate) fn recovered(hidden: Hidden) -> Self {
        let Hidden {
            stage,
            payload,
            wanted,
            originals,
        } = hidden;
        let content = Content {
            payload,
            wanted: FileName::sanitise(&wanted.name),
            files: wanted.files,
            bytes: wanted.bytes,
        };
        Self {
            stage,
            content,
            originals,
        }
    }

    /// Lets the content appear. Blocks.
    pub(crate) fn place(&self) -> Result<Appeared, FileError> {
        let Content {
            payload,
            wanted,
            files,
            bytes,
        } = &self.content;
        self.stage.place(payload, wanted, (*files, *bytes), &self.originals)
    }

    /// Takes back what appeared. Blocks.
    pub(crate) fn take_back(&self, appeared: &Appeared) -> Result<(), FileError> {
        self.stage.take_back(&self.content.payload, appeared)
    }
}

/// Why an archive was not unpacked. Nothing of it is visible then.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive is not one that is unpacked.
    #[error("{}: {refusal}", archive.display())]
    Refused {
        /// The archive.
        archive: PathBuf,
        /// The entry and the reason.
        refusal: Refusal,
    },
    /// The unpacker's process cannot be started or talked to.
    #[error("cannot run the unpacker {}", program.display())]
    Run {
        /// The executable.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The process ended by itself: a limit of memory or processor time, or a defect of a library.
    #[error(
        "the unpacker ended ({status}): the archive takes more memory or time than it may, or is damaged; {message}"
    )]
    Died {
        /// How it ended.
        status: String,
        /// What it said last.
        message: String,
    },
    /// The process does nothing any more.
    #[error("the unpacker was silent for {} minutes", MAX_SILENCE.as_secs() / 60)]
    Stalled,
    /// The caller cancelled it.
    #[error("unpacking was cancelled")]
    Cancelled,
    /// An action on the directories failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Unpacks an archive. It appears whole or not at all, and the archive is kept. When `cancelled` completes, or the future
/// is dropped, the process is ended. Whoever has saved the result then removes the empty stage with
/// [`sweep`](crate::sweep), which also removes what is left after a drop.
pub async fn unpack(
    command: &OwnCommand,
    request: Request,
    progress: impl FnMut(Progress),
    cancelled: impl Future<Output = ()>,
) -> Result<Unpacked, UnpackError> {
    let found = tokio::task::spawn_blocking(move || find(request)).await;
    let attempt = found.expect("finding does not panic")?;
    let ready = unpack_hidden(command, attempt, progress, cancelled).await?;
    let placed = tokio::task::spawn_blocking(move || {
        let placed = ready.place()?.placed;
        let originals = ready.originals;
        Ok(Unpacked { placed, originals })
    });
    placed.await.expect("placing does not panic")
}

/// As [`unpack`], up to the moment before the content appears.
pub(crate) async fn unpack_hidden(
    command: &OwnCommand,
    attempt: Attempt,
    mut progress: impl FnMut(Progress),
    cancelled: impl Future<Output = ()>,
) -> Result<Ready, UnpackError> {
    let archive = attempt.archive().to_owned();
    let prepared = tokio::task::spawn_blocking(move || prepare(attempt)).await;
    let (stage, job, name) = prepared.expect("preparing does not panic")?;
    let worked = tokio::select! {
        worked = work(command, &stage, &job, &mut progress) => worked,
        () = cancelled => Err(UnpackError::Cancelled),
    };
    match worked.and_then(|line| content(line, name, &archive)) {
        Ok(content) => Ok(Ready {
            stage,
            content,
            originals: job.volumes,
        }),
        Err(error) => {
            // The next sweep removes what cannot be removed now.
            let _left = tokio::task::spawn_blocking(move || stage.remove()).await;
            Err(error)
        }
    }
}

impl Attempt {
    /// The first file of the archive.
    fn archive(&self) -> &Path {
        self.originals.first().map_or(Path::new(""), |original| &original.path)
    }
}

/// Finds the files of an archive.
fn find(request: Request) -> Result<Attempt, UnpackError> {
    let absolute = std::path::absolute(&request.archive).map_err(FileError::at("find", &request.archive))?;
    let beside = Dir::open_below(&request.root, absolute.parent().unwrap_or(Path::new("/")))?;
    let volumes = find_volumes(&beside, &absolute)?;
    let originals = volumes.iter().map(|name| Original::of_name(&beside, name));
    let originals = originals
        .collect::<io::Result<_>>()
        .map_err(|error| UnpackError::Refused {
            archive: request.archive.clone(),
            refusal: Reason::read(&error).of_archive(),
        })?;
    Ok(Attempt {
        originals,
        destination: if request.destination == beside.path() {
            beside
        } else {
            Dir::open_below(&request.root, &request.destination)?
        },
        run: request.run,
        passwords: request.passwords,
        max_bytes: request.max_bytes,
    })
}

fn prepare(attempt: Attempt) -> Result<(Stage, Job, FileName), UnpackError> {
    let name = directory_name(&original_name(attempt.archive()));
    let stage = Stage::make(&attempt.destination, &name, &attempt.run)?;
    let job = Job {
        passwords: passwords(&attempt.passwords),
        max_bytes: budget(&attempt),
        volumes: attempt.originals,
    };
    Ok((stage, job, name))
}

/// Removes the files of an archive that was unpacked, as long as they are those that were read; returns where others took
/// their places, which are kept. Those that are gone already are no error, so that it can be repeated after a crash.
pub fn remove_originals(originals: &[Original]) -> Result<Vec<PathBuf>, FileError> {
    let mut kept = Vec::new();
    for original in originals {
        if !original.remove()? {
            kept.push(original.path.clone());
        }
    }
    let directory = originals.first().and_then(|original| original.path.parent());
    directory.map_or(Ok(()), private_files::sync_directory)?;
    Ok(kept)
}

/// What the last line of the unpacker says of an archive, which is `name` unless all of it is in one directory.
fn content(line: Line, name: FileName, archive: &Path) -> Result<Content, UnpackError> {
    let refused = |refusal| UnpackError::Refused {
        archive: archive.to_owned(),
        refusal,
    };
    match line {
        Line::Unpacked {
            files,
            bytes,
            payload,
            only_directory,
        } => {
            // The names are ours again only after they were made safe: they come from the unpacker.
            let payload = FileName::sanitise(&payload);
            let only = only_directory.as_deref().and_then(FileName::sanitise_entry);
            let path = match &only {
                Some(only) => Path::new(payload.as_str()).join(only.as_str()),
                None => PathBuf::from(payload.as_str()),
            };
            // Not hidden, whatever the archive says: what is hidden and ends like a stage would be one.
            let wanted = only.and_then(|only| FileName::sanitise_or_none(only.as_str()));
            Ok(Content {
                payload: path,
                wanted: wanted.unwrap_or(name),
                files,
                bytes,
            })
        }
        Line::Refused(refusal) => Err(refused(refusal)),
        Line::Progress { .. } => Err(refused(Reason::damaged("the unpacker's answer").of_archive())),
    }
}

/// The names of all volumes in the directory of an archive.
fn find_volumes(directory: &Dir, archive: &Path) -> Result<Vec<OsString>, UnpackError> {
    let names = directory.names()?.into_iter();
    let names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
    let set = volumes(&original_name(archive), &names);
    let set = set.map_err(|refusal| UnpackError::Refused {
        archive: archive.to_owned(),
        refusal,
    })?;
    if set.len() == 1 {
        // Its name need not be Unicode.
        return Ok(archive.file_name().map(ToOwned::to_owned).into_iter().collect());
    }
    Ok(set.into_iter().map(OsString::from).collect())
}

fn original_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn passwords(secrets: &[Secret]) -> Vec<String> {
    let passwords = secrets.iter().map(|secret| secret.expose().to_owned());
    passwords.take(MAX_PASSWORDS).collect()
}

/// Bytes that may be unpacked. Where the free space is unknown, the disk itself is the limit.
fn budget(attempt: &Attempt) -> u64 {
    let free = free_bytes(attempt.destination.path()).unwrap_or(u64::MAX);
    attempt.max_bytes.min(free.saturating_sub(RESERVE_BYTES))
}

/// Runs the unpacker in the stage; its last line.
async fn work(
    command: &OwnCommand,
    stage: &Stage,
    job: &Job,
    progress: &mut impl FnMut(Progress),
) -> Result<Line, UnpackError> {
    let failed = |source| UnpackError::Run {
        program: command.program.clone(),
        source,
    };
    let running = command.start(Some(&stage.dir().reached())).map_err(failed)?;
    let Running {
        mut child,
        mut stdin,
        stdout,
        stderr,
    } = running;
    let mut text = serde_json::to_vec(job).map_err(|error| failed(error.into()))?;
    text.push(b'\n');
    // If the unpacker ended early, its exit status has the reason. It is open until then: its end is that of the service.
    let write = async {
        let _ = stdin.write_all(&text).await;
        let _ = stdin.flush().await;
        stdin
    };
    let others = async { tokio::join!(read_message(stderr), write) };
    tokio::pin!(others);
    let (lines, mut message) = (read_lines(stdout, progress), None);
    tokio::pin!(lines);
    // What it does not do, reading its job for one, must not keep its silence from being noticed.
    let last = loop {
        tokio::select! {
            last = &mut lines => break last?,
            read = &mut others, if message.is_none() => message = Some(read),
        }
    };
    let end = async {
        let (message, stdin) = match message {
            Some(read) => read,
            None => others.await,
        };
        let status = child.wait().await;
        drop(stdin);
        (message, status)
    };
    let ended = tokio::time::timeout(MAX_SILENCE, end).await;
    let (message, status) = ended.map_err(|_| UnpackError::Stalled)?;
    let status = status.map_err(failed)?;
    match last {
        Some(line) if status.success() || matches!(line, Line::Refused(_)) => Ok(line),
        _ => Err(UnpackError::Died {
            status: status.to_string(),
            message,
        }),
    }
}

/// Reads until the unpacker closes its output; the line that ends it, if there was one.
async fn read_lines(stdout: ChildStdout, progress: &mut impl FnMut(Progress)) -> Result<Option<Line>, UnpackError> {
    let mut stdout = BufReader::new(stdout);
    let mut last = None;
    loop {
        let line = tokio::time::timeout(MAX_SILENCE, next_line(&mut stdout)).await;
        match line.map_err(|_| UnpackError::Stalled)? {
            None => return Ok(last),
            Some(Line::Progress {
                files,
                bytes,
                thousandths,
                is_syncing,
            }) => progress(Progress {
                files,
                bytes,
                thousandths,
                is_syncing,
            }),
            Some(line) => last = Some(line),
        }
    }
}

/// The next line; `None` at the end, and if what was sent is no line of ours.
async fn next_line(stdout: &mut (impl AsyncBufRead + Unpin)) -> Option<Line> {
    let mut text = Vec::new();
    stdout.take(MAX_LINE_BYTES).read_until(b'\n', &mut text).await.ok()?;
    serde_json::from_slice(&text).ok()
}

async fn read_message(mut stderr: ChildStderr) -> String {
    let mut message = Vec::new();
    // Without its message the status must suffice.
    let _ = (&mut stderr).take(MAX_MESSAGE_BYTES).read_to_end(&mut message).await;
    let message = String::from_utf8_lossy(&message);
    message.chars().filter(|c| !c.is_control()).collect()
}
