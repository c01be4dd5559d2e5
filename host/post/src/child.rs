//! The unpacker's process. It limits itself, reads its job from the standard input, writes below its working directory
//! only, and reports on its standard output. It ends when the service closes that input, also by its own end.

use std::{
    io::{self, BufRead as _, Read as _, Write as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use confined::{Limits, REFUSED};
use rustix::fs::{Mode, mkdirat};
use transfer::Secret;

use crate::{
    archive::{self, Outcome, Unpacked},
    codec::MAX_DICTIONARY_BYTES,
    dir::{Dir, Original},
    names::MAX_DEPTH,
    refusal::{Reason, Refusal, Result},
    tree::{Counts, MAX_RATIO, Report},
    volumes::Volumes,
    wire::{Job, LOCK, Line, MAX_JOB_BYTES},
};

/// Progress is reported this often.
const REPORT_EVERY: Duration = Duration::from_millis(500);

/// Address space: a dictionary, as much again for models and for growing a buffer, and the executable.
const MAX_ADDRESS_SPACE_BYTES: u64 = 2 * MAX_DICTIONARY_BYTES + (512 << 20);

/// Processor time of any archive, and what each piece of unpacked content adds: the slowest decoders do 2 MiB a second.
const BASE_CPU_SECONDS: u64 = 300;
const BYTES_PER_CPU_SECOND: u64 = 2 << 20;

/// The most processor time.
const MAX_CPU_SECONDS: u64 = 12 * 60 * 60;

/// The standard three, the stage with its lock, the file that is written, a directory of each level while an attempt is
/// removed, and some that libraries use; the volumes come on top.
const DESCRIPTORS: u64 = 32 + MAX_DEPTH as u64;

/// The unpacker's process: reads a job from its standard input and unpacks into its working directory. Must be the first
/// thing in the process.
pub fn unpack_child_main() -> ExitCode {
    let (line, code) = match read_job().and_then(|job| {
        watch_input();
        unpack(&job)
    }) {
        Ok(unpacked) => (unpacked, ExitCode::SUCCESS),
        Err(refusal) => (Line::Refused(refusal), ExitCode::from(REFUSED)),
    };
    match say(&line) {
        Ok(()) => code,
        // The service is gone.
        Err(_) => ExitCode::FAILURE,
    }
}

fn read_job() -> Result<Job> {
    let mut text = Vec::new();
    let read = io::stdin().lock().take(MAX_JOB_BYTES).read_until(b'\n', &mut text);
    let job = read.and_then(|_| Ok(serde_json::from_slice(&text)?));
    job.map_err(|error| internal(&error))
}

/// Ends the process when nothing more can come: the service has ended.
#[expect(
    clippy::exit,
    reason = "its decoders cannot be interrupted, and it has nothing to lose"
)]
fn watch_input() {
    std::thread::spawn(|| {
        let _ended = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(1);
    });
}

/// A failure that has nothing to do with the archive.
fn internal(error: &io::Error) -> Refusal {
    Reason::write(error).of_archive()
}

fn unpack(job: &Job) -> Result<Line> {
    let volumes = Volumes::open(&job.volumes)?;
    let expected = volumes.size().saturating_mul(MAX_RATIO).min(job.max_bytes);
    let limits = Limits {
        address_space_bytes: MAX_ADDRESS_SPACE_BYTES,
        cpu_seconds: (BASE_CPU_SECONDS + expected / BYTES_PER_CPU_SECOND).min(MAX_CPU_SECONDS),
        file_bytes: job.max_bytes,
        descriptors: DESCRIPTORS + volumes.count() as u64,
        niceness: 5,
    };
    limits.apply().map_err(|error| internal(&error))?;
    // Whoever sweeps the directory sees by it that it is in use, even if the service was killed.
    let stage = Dir::open_itself(Path::new(".")).map_err(|error| internal(&error.source))?;
    let lock = stage.open_regular(LOCK).map_err(|error| internal(&error))?;
    lock.lock_shared().map_err(|error| internal(&error))?;
    let passwords: Vec<_> = job.passwords.iter().map(Secret::new).collect();
    let (payload, unpacked) = try_passwords(&volumes, &passwords, job.max_bytes, &stage, || {
        reporter(volumes.clone())
    })?;
    Ok(line(payload, unpacked))
}

/// Unpacks in this process, for fuzzing and measurements: without the limits and the second wall of the unpacker's
/// process. Returns the name of a new directory in `into`.
pub fn unpack_in_process(
    volumes: &[PathBuf],
    passwords: &[Secret],
    max_bytes: u64,
    into: &Path,
) -> std::result::Result<String, Refusal> {
    let into = Dir::open(into).map_err(|error| internal(&error.source))?;
    let silent = || -> Report { Box::new(|_, _| Ok(())) };
    let originals = volumes.iter().map(|path| Original::at(path.clone()));
    let originals = originals.collect::<io::Result<Vec<_>>>();
    let volumes = Volumes::open(&originals.map_err(|error| Reason::read(&error).of_archive())?)?;
    let (payload, _) = try_passwords(&volumes, passwords, max_bytes, &into, silent)?;
    Ok(payload)
}

/// Tries no password and then each, in a directory of its own.
fn try_passwords(
    volumes: &Volumes,
    passwords: &[Secret],
    max_bytes: u64,
    into: &Dir,
    report: impl Fn() -> Report,
) -> Result<(String, Unpacked)> {
    let tries = std::iter::once(None).chain(passwords.iter().map(Some));
    let mut refusal = None;
    for (index, password) in tries.enumerate() {
        let payload = format!("payload-{index}");
        let root = make(into, &payload).map_err(|error| internal(&error))?;
        match archive::unpack(volumes, password, root, max_bytes, report())? {
            Outcome::Unpacked(unpacked) => return Ok((payload, unpacked)),
            Outcome::Password(reason) => refusal = Some(reason),
        }
        into.remove(&payload).map_err(|error| internal(&error.source))?;
    }
    let mut refusal = refusal.expect("the attempt without a password came first");
    if !passwords.is_empty() {
        refusal.reason = Reason::WrongPassword;
    }
    Err(refusal)
}

fn line(payload: String, unpacked: Unpacked) -> Line {
    Line::Unpacked {
        files: unpacked.counts.files,
        bytes: unpacked.counts.bytes,
        only_directory: unpacked.only_directory,
        payload,
    }
}

/// Makes a directory, which others may read when it is in its place, and opens it.
fn make(into: &Dir, name: &str) -> io::Result<OwnedFd> {
    mkdirat(into, name, Mode::from_raw_mode(0o755))?;
    let made = into.enter(name).map_err(|error| error.source)?;
    Ok(made.into())
}

fn reporter(volumes: Volumes) -> Report {
    let mut last = Instant::now();
    Box::new(move |counts: Counts, is_syncing| {
        if !is_syncing && last.elapsed() < REPORT_EVERY {
            return Ok(());
        }
        last = Instant::now();
        let Counts { files, bytes } = counts;
        say(&Line::Progress {
            files,
            bytes,
            thousandths: volumes.thousandths(),
            is_syncing,
        })
    })
}

fn say(line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&text)?;
    output.flush()
}
