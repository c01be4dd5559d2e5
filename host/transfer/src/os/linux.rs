//! Linux.

use std::{fs::File, io, path::Path};

use rustix::{
    fs::{FallocateFlags, fallocate, fstatfs, statvfs},
    io::Errno,
};

use crate::os::file::link_then_unlink;

/// `f_type` of tmpfs and ramfs (`linux/magic.h`): reserving space there means touching every page at once.
const MEMORY_FILE_SYSTEMS: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// `f_type` of FAT, exFAT, NTFS (two drivers), FUSE, NFS, SMB (two versions) and 9P (`linux/magic.h`), where the server
/// or a mount option determines the owner of a file.
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

pub(super) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
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
