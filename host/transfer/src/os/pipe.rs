//! Moves bytes from a socket to a file inside the kernel.

use std::io;
#[cfg(target_os = "linux")]
use std::{
    fs::File,
    os::fd::{AsFd as _, BorrowedFd},
};

#[cfg(target_os = "linux")]
use rustix::{
    io::Errno,
    pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice},
};

#[cfg(target_os = "linux")]
use crate::os::file::write_all_at;

#[cfg(target_os = "linux")]
/// As large as an unprivileged pipe may be (`/proc/sys/fs/pipe-max-size`): fewer system calls per byte.
const PIPE_BYTES: usize = 1024 * 1024;

/// A pipe inside the kernel through which bytes go from a socket to a file without touching user space.
#[derive(Debug)]
pub struct KernelPipe {
    #[cfg(target_os = "linux")]
    read: std::os::fd::OwnedFd,
    #[cfg(target_os = "linux")]
    write: std::os::fd::OwnedFd,
}

/// Why [`KernelPipe::carry`] stopped.
#[derive(Debug)]
pub enum CarryError {
    /// Reading from the socket; `WouldBlock` when nothing is there yet.
    Socket(io::Error),
    /// Writing to the file. Bytes already read from the socket are lost; the pipe must not be used again.
    Disk(io::Error),
}

#[cfg(target_os = "linux")]
impl KernelPipe {
    /// A pipe as large as the system allows.
    pub fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller pipe only means more calls.
        let _smaller = fcntl_setpipe_size(&write, PIPE_BYTES);
        Ok(Self { read, write })
    }

    /// Moves up to `limit` bytes that are available at `socket` to `file` at `offset`. Returns how many, 0 at the end
    /// of the stream. Blocks on the disk, never on the socket.
    pub fn carry(&self, socket: BorrowedFd<'_>, file: &File, offset: u64, limit: usize) -> Result<usize, CarryError> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let taken = splice(socket, None, &self.write, None, limit.min(PIPE_BYTES), flags)
            .map_err(|errno| CarryError::Socket(errno.into()))?;
        let mut at = offset;
        let end = offset + taken as u64;
        while at < end {
            let left = usize::try_from(end - at).unwrap_or(PIPE_BYTES);
            match splice(&self.read, None, file.as_fd(), Some(&mut at), left, SpliceFlags::MOVE) {
                Ok(0) => return Err(CarryError::Disk(io::ErrorKind::WriteZero.into())),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::INVAL) => {
                    self.copy_out(file, at, end).map_err(CarryError::Disk)?;
                    at = end;
                }
                Err(errno) => return Err(CarryError::Disk(errno.into())),
            }
        }
        Ok(taken)
    }

    /// Writes the content of the pipe through user space, for file systems that the kernel cannot splice to.
    fn copy_out(&self, file: &File, mut at: u64, end: u64) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        while at < end {
            let read = rustix::io::read(&self.read, &mut buffer)?;
            write_all_at(file, &buffer[..read], at)?;
            at += read as u64;
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
impl KernelPipe {
    /// Unsupported on this system: callers copy through a buffer.
    pub fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
