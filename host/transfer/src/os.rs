//! What differs between operating systems, in one place. Linux has everything; elsewhere the portable fall-back is
//! taken, and what has none answers `Unsupported`.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

/// A pipe inside the kernel through which bytes go from a socket to a file without touching user space.
#[derive(Debug)]
pub struct KernelPipe(imp::Pipe);

/// Why [`KernelPipe::carry`] moved nothing more.
#[derive(Debug)]
pub enum CarryError {
    /// Reading from the socket; `WouldBlock` when nothing is there yet.
    Socket(io::Error),
    /// Writing to the file. What was already taken from the socket is lost; the pipe must not be used again.
    Disk(io::Error),
}

#[cfg(target_os = "linux")]
mod imp {
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    use rustix::{
        fs::{FallocateFlags, fallocate, fstatfs, statvfs},
        io::Errno,
        pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice},
    };

    use super::{CarryError, File, KernelPipe, Path, io, link_then_unlink, write_all_at};

    /// As large as an unprivileged pipe may be (`/proc/sys/fs/pipe-max-size`): fewer system calls per byte.
    const PIPE_BYTES: usize = 1024 * 1024;

    /// `f_type` of tmpfs and ramfs (`linux/magic.h`): reserving space there means touching every page at once.
    const MEMORY_FILE_SYSTEMS: [u64; 2] = [0x0102_1994, 0x8584_58f6];

    /// `f_type` of FAT, exFAT, NTFS (two drivers), FUSE, NFS, SMB (two versions) and 9P (`linux/magic.h`), whose servers or
    /// mount options decide what owner a file shows.
    const WITHOUT_OWNERS: [u64; 9] = [
        0x4d44,
        0x2011_bab0,
        0x5346_544e,
        0x7366_746e,
        0x6573_5546,
        0x6969,
        0xff53_4d42,
        0xfe53_4d42,
        0x0102_1997,
    ];

    #[derive(Debug)]
    pub(super) struct Pipe {
        read: OwnedFd,
        write: OwnedFd,
    }

    impl KernelPipe {
        /// A pipe as large as the system allows.
        pub fn new() -> io::Result<Self> {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            // A smaller pipe only means more calls.
            let _smaller = fcntl_setpipe_size(&write, PIPE_BYTES);
            Ok(Self(Pipe { read, write }))
        }

        /// Takes up to `limit` bytes that wait at `socket` and writes them to `file` at `offset`. Returns how many,
        /// 0 at the end of the stream. Blocks on the disk, never on the socket.
        pub fn carry(
            &self,
            socket: BorrowedFd<'_>,
            file: &File,
            offset: u64,
            limit: usize,
        ) -> Result<usize, CarryError> {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            let taken = splice(socket, None, &self.0.write, None, limit.min(PIPE_BYTES), flags)
                .map_err(|errno| CarryError::Socket(errno.into()))?;
            let mut at = offset;
            let end = offset + taken as u64;
            while at < end {
                let left = usize::try_from(end - at).unwrap_or(PIPE_BYTES);
                match splice(&self.0.read, None, file.as_fd(), Some(&mut at), left, SpliceFlags::MOVE) {
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

        /// Writes what is in the pipe by hand, for file systems that the kernel cannot splice to.
        fn copy_out(&self, file: &File, mut at: u64, end: u64) -> io::Result<()> {
            let mut buffer = vec![0; 64 * 1024];
            while at < end {
                let read = rustix::io::read(&self.0.read, &mut buffer)?;
                write_all_at(file, &buffer[..read], at)?;
                at += read as u64;
            }
            Ok(())
        }
    }

    pub(super) fn boot_id() -> Option<String> {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned())
    }

    pub(super) fn free_bytes(directory: &Path) -> io::Result<u64> {
        let stat = statvfs(directory)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    pub(super) fn allocated_bytes(file: &File) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt as _;
        Ok(file.metadata()?.blocks() * 512)
    }

    pub(super) fn is_in_memory(file: &File) -> bool {
        fstatfs(file).is_ok_and(|stat| MEMORY_FILE_SYSTEMS.contains(&stat.f_type.cast_unsigned()))
    }

    pub(super) fn reserve(file: &File, size: u64) -> io::Result<()> {
        if is_in_memory(file) {
            return file.set_len(size);
        }
        match fallocate(file, FallocateFlags::empty(), 0, size) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => file.set_len(size),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => link_then_unlink(from, to),
            result => Ok(result?),
        }
    }

    pub(super) fn device(path: &Path) -> Option<u64> {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(path).ok().map(|metadata| metadata.dev())
    }

    pub(super) fn inode(file: &std::fs::Metadata) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        file.ino()
    }

    pub(super) fn keeps_owners(directory: &Path) -> bool {
        !rustix::fs::statfs(directory).is_ok_and(|stat| WITHOUT_OWNERS.contains(&stat.f_type.cast_unsigned()))
    }

    pub(super) fn usual_mode() -> Option<u32> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
        let umask = u32::from_str_radix(umask.trim(), 8).ok()?;
        Some(0o666 & !umask)
    }

    /// The process that holds an advisory lock on `file`, from the kernel's table. Its lines read
    /// `1: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF`.
    pub(super) fn lock_holder(file: &File) -> Option<u32> {
        let inode = inode(&file.metadata().ok()?).to_string();
        let table = std::fs::read_to_string("/proc/locks").ok()?;
        table.lines().find_map(|line| {
            let mut fields = line.split_whitespace().skip_while(|field| *field != "FLOCK").skip(3);
            let holder = fields.next()?.parse().ok()?;
            (fields.next()?.rsplit(':').next()? == inode).then_some(holder)
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use super::{File, KernelPipe, Path, io, link_then_unlink};

    #[derive(Debug)]
    pub(super) struct Pipe;

    impl KernelPipe {
        /// Not on this system: bytes go through a buffer.
        pub fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    pub(super) fn boot_id() -> Option<String> {
        None
    }

    pub(super) fn free_bytes(_directory: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    pub(super) fn allocated_bytes(file: &File) -> io::Result<u64> {
        Ok(file.metadata()?.len())
    }

    pub(super) fn is_in_memory(_file: &File) -> bool {
        false
    }

    pub(super) fn reserve(file: &File, size: u64) -> io::Result<()> {
        file.set_len(size)
    }

    pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
        link_then_unlink(from, to)
    }

    pub(super) fn device(_path: &Path) -> Option<u64> {
        None
    }

    pub(super) fn inode(_file: &std::fs::Metadata) -> u64 {
        0
    }

    pub(super) fn keeps_owners(_directory: &Path) -> bool {
        cfg!(unix)
    }

    pub(super) fn usual_mode() -> Option<u32> {
        None
    }

    pub(super) fn lock_holder(_file: &File) -> Option<u32> {
        None
    }
}

/// Names this boot of the machine: what was written to the page cache is there as long as it stays the same. `None`
/// where that cannot be told; then only synced data count after a restart.
pub(crate) fn boot_id() -> Option<String> {
    imp::boot_id()
}

/// Bytes that a file in `directory` may still take.
pub(crate) fn free_bytes(directory: &Path) -> io::Result<u64> {
    imp::free_bytes(directory)
}

/// Bytes of the disk that `file` already occupies.
pub(crate) fn allocated_bytes(file: &File) -> io::Result<u64> {
    imp::allocated_bytes(file)
}

/// Reserves `size` bytes for `file` without writing them; where that is not supported, makes a sparse file.
pub(crate) fn reserve(file: &File, size: u64) -> io::Result<()> {
    imp::reserve(file, size)
}

/// Whether `file` lies on a file system that is kept in memory, so that there is nothing to sync.
pub(crate) fn is_in_memory(file: &File) -> bool {
    imp::is_in_memory(file)
}

/// Renames `from` to `to`; `AlreadyExists` if `to` is taken, atomically.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    imp::rename_new(from, to)
}

/// A number for the file system that `path` lies on.
pub(crate) fn device(path: &Path) -> Option<u64> {
    imp::device(path)
}

/// A number for the file on its file system, the same under another name.
pub(crate) fn inode(metadata: &std::fs::Metadata) -> u64 {
    imp::inode(metadata)
}

/// The process that holds a lock on `file`, if the system tells.
pub(crate) fn lock_holder(file: &File) -> Option<u32> {
    imp::lock_holder(file)
}

/// Opens a file for reading and writing as `options` say. A link in its place is an error, and nothing is waited for if
/// it is a pipe.
#[cfg(unix)]
pub(crate) fn open_in_place(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

/// Opens a file for reading and writing as `options` say. Whoever calls looks first whether a link is in its place.
#[cfg(not(unix))]
pub(crate) fn open_in_place(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.open(path)
}

/// Why another user could have made the file that `metadata` is about, or could write into it; `None` if only ourselves
/// and the administrator can.
#[cfg(unix)]
pub(crate) fn strangers_access(metadata: &std::fs::Metadata) -> Option<Stranger> {
    use std::os::unix::fs::MetadataExt as _;
    if !metadata.is_file() {
        Some(Stranger::NoFile)
    } else if metadata.nlink() != 1 {
        Some(Stranger::SeveralNames)
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        Some(Stranger::Owns)
    } else if metadata.mode() & 0o022 != 0 {
        Some(Stranger::MayWrite)
    } else {
        None
    }
}

/// Nothing is known of owners here, so every file could be another user's.
#[cfg(not(unix))]
pub(crate) fn strangers_access(metadata: &std::fs::Metadata) -> Option<Stranger> {
    Some(if metadata.is_file() {
        Stranger::Owns
    } else {
        Stranger::NoFile
    })
}

/// How another user may have to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// It is a link, a directory, a pipe or a device.
    NoFile,
    /// It has several names, and another one may be in another user's hands.
    SeveralNames,
    /// It belongs to another user, or that cannot be known.
    Owns,
    /// Its permissions let others write.
    MayWrite,
}

/// Whether files in `directory` have owners of their own. Network and removable file systems often show one for all.
pub(crate) fn keeps_owners(directory: &Path) -> bool {
    imp::keeps_owners(directory)
}

/// The permissions of an ordinary new file of this process, if the system tells. Asked once: no code here changes them,
/// and the answer takes longer than writing a small file.
pub(crate) fn usual_mode() -> Option<u32> {
    static MODE: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    *MODE.get_or_init(imp::usual_mode)
}

/// Creates a file that only its owner can write, whatever the process lets others do; `AlreadyExists` if anything is
/// there.
pub(crate) fn create_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
    options.open(path)
}

/// Takes the permission to write from everybody but the owner.
#[cfg(unix)]
pub(crate) fn make_own(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let now = file.metadata()?.permissions().mode() & 0o777;
    file.set_permissions(std::fs::Permissions::from_mode(now & !0o022))
}

/// Nothing is known of who may write.
#[cfg(not(unix))]
pub(crate) fn make_own(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Gives a file that was made by [`create_own`] the permissions of an ordinary new file.
#[cfg(unix)]
pub(crate) fn make_usual(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let now = file.metadata()?.permissions().mode() & 0o777;
    match usual_mode().map(|usual| usual | now) {
        Some(usual) if usual != now => file.set_permissions(std::fs::Permissions::from_mode(usual)),
        _ => Ok(()),
    }
}

/// Gives a file that was made by [`create_own`] the permissions of an ordinary new file.
#[cfg(not(unix))]
pub(crate) fn make_usual(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Writes all of `bytes` at `offset`, whatever the file's cursor.
#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Reads what is at `offset`, whatever the file's cursor.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, offset)
}

/// Writes all of `bytes` at `offset`.
#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

/// Reads what is at `offset`.
#[cfg(windows)]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, offset)
}

fn link_then_unlink(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}
