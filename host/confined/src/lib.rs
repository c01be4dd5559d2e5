//! Child processes of our own executable, with hard limits: input that makes a library take gigabytes and minutes, or
//! finds a defect in it, can only end that process.
//!
//! *Owns* how such a child is started ([`OwnCommand`]) and how it limits itself ([`Limits`]).
//!
//! *Never* knows what the child does, nor how long its parent waits for it.

use std::{ffi::OsString, io, path::Path, path::PathBuf, process::Stdio};

use rustix::process::{Resource, Rlimit, nice, setrlimit};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// Exit status of a child that refused its input, as opposed to one that hit a limit.
pub const REFUSED: u8 = 2;

/// How to start a child: this executable, with an argument that makes it run the child's main function.
#[derive(Debug, Clone)]
pub struct OwnCommand {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments; never anything secret.
    pub args: Vec<OsString>,
}

/// A started child. Dropping it kills the process.
#[derive(Debug)]
pub struct Running {
    /// The process.
    pub child: Child,
    /// Where its input is written.
    pub stdin: ChildStdin,
    /// Where its output is read.
    pub stdout: ChildStdout,
    /// Where its messages are read.
    pub stderr: ChildStderr,
}

impl OwnCommand {
    /// Starts the child with an empty environment, in `directory` if one is given.
    pub fn start(&self, directory: Option<&Path>) -> io::Result<Running> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn()?;
        Ok(Running {
            stdin: child.stdin.take().expect("it was piped"),
            stdout: child.stdout.take().expect("it was piped"),
            stderr: child.stderr.take().expect("it was piped"),
            child,
        })
    }
}

/// What a child may use at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of address space.
    pub address_space_bytes: u64,
    /// Seconds of processor time.
    pub cpu_seconds: u64,
    /// Bytes of a file that it writes.
    pub file_bytes: u64,
    /// Open descriptors, with the standard three.
    pub descriptors: u64,
    /// Added to the priority's number, so that the child gives way to the service.
    pub niceness: i32,
}

impl Limits {
    /// Applies the limits to this process, for good. Must be the first thing in it.
    pub fn apply(&self) -> io::Result<()> {
        let limits = [
            (Resource::As, self.address_space_bytes),
            (Resource::Cpu, self.cpu_seconds),
            (Resource::Core, 0),
            (Resource::Fsize, self.file_bytes),
            (Resource::Nofile, self.descriptors),
        ];
        for (resource, limit) in limits {
            let (current, maximum) = (Some(limit), Some(limit));
            setrlimit(resource, Rlimit { current, maximum })?;
        }
        nice(self.niceness)?;
        Ok(())
    }
}
