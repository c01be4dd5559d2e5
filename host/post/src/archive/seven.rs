//! 7z archives.

use std::{collections::HashMap, path::PathBuf};

use sevenz_rust2::{Archive, ArchiveEntry, ArchiveReader, Error, Password};

use transfer::Secret;

use crate::{
    archive::Attempt,
    codec::{MAX_DICTIONARY_BYTES, MAX_DICTIONARY_KIB},
    names::{Kind, MAX_ENTRIES},
    refusal::{Reason, Refusal, Result},
    tree::{Entry, check_mode},
    volumes::Volumes,
};

/// Attributes of Windows that 7z stores, and the mark that the upper half is a mode of Unix.
const REPARSE_POINT: u32 = 0x0400;
const UNIX: u32 = 0x8000;

/// Unpacks a 7z archive. The library compares each file with its size and checksum.
pub(super) fn unpack(volumes: &Volumes, attempt: &mut Attempt<'_>) -> Result<()> {
    let password = attempt.password.map(Secret::expose);
    let to_library = Password::new(password.unwrap_or_default());
    let opened = ArchiveReader::new_with_memory_limit(volumes.clone(), to_library, MAX_DICTIONARY_KIB as usize);
    let mut reader = opened.map_err(|error| {
        // Names can be encrypted too; then a wrong password makes noise of them.
        attempt.is_encrypted |= password.is_some();
        reason(&error, password.is_some()).of_archive()
    })?;
    // Threads multiply the memory.
    reader.set_thread_count(1);
    let mut paths = admit(reader.archive(), attempt)?;
    let has_password = password.is_some();
    let mut refusal: Option<Refusal> = None;
    let result = reader.for_each_entries(|listed, content| {
        let unpacked = match paths.remove(&listed.name) {
            None => Ok(()),
            Some(path) if listed.is_directory => attempt.tree.directory(&listed.name, &path),
            Some(path) => attempt.tree.file(described(listed, path), content),
        };
        unpacked.map(|()| true).map_err(|error| {
            refusal = Some(error);
            Error::Other("refused".into())
        })
    });
    match (refusal, result) {
        (Some(refusal), _) => Err(refusal),
        (None, Err(error)) => Err(reason(&error, has_password).of_archive()),
        (None, Ok(())) if paths.is_empty() => Ok(()),
        (None, Ok(())) => Err(Reason::damaged("it lists entries that it does not have").of_archive()),
    }
}

/// Checks every entry before one is unpacked.
fn admit(archive: &Archive, attempt: &mut Attempt<'_>) -> Result<HashMap<String, PathBuf>> {
    if archive.files.len() > MAX_ENTRIES {
        return Err(Reason::Entries { limit: MAX_ENTRIES }.of_archive());
    }
    let mut paths = HashMap::new();
    let mut total: u64 = 0;
    for (index, entry) in archive.files.iter().enumerate() {
        let of_entry = |reason: Reason| reason.of(&entry.name);
        let kind = if entry.is_directory {
            Kind::Directory
        } else {
            Kind::File
        };
        let path = attempt.tree.names.admit(&entry.name, kind)?;
        is_executable(entry, kind).map_err(of_entry)?;
        if entry.is_anti_item {
            let what = "one that deletes".to_owned();
            return Err(of_entry(Reason::Kind { what }));
        }
        if archive.is_file_encrypted(index) {
            attempt.is_encrypted = true;
            if attempt.password.is_none() {
                return Err(of_entry(Reason::Encrypted));
            }
        }
        total = total.saturating_add(entry.size);
        paths.insert(entry.name.clone(), path);
    }
    attempt.tree.announce(total)?;
    Ok(paths)
}

fn is_executable(entry: &ArchiveEntry, kind: Kind) -> std::result::Result<bool, Reason> {
    let attributes = entry.windows_attributes;
    if attributes & REPARSE_POINT != 0 {
        return Err(Reason::SymbolicLink);
    }
    if attributes & UNIX == 0 {
        return Ok(false);
    }
    check_mode(attributes >> 16, kind)
}

fn described(entry: &ArchiveEntry, path: PathBuf) -> Entry {
    /// 1970 in the time of Windows: units of 100 ns since 1601.
    const EPOCH: u64 = 116_444_736_000_000_000;
    let ticks = u64::from(entry.last_modified_date).checked_sub(EPOCH);
    let seconds = ticks.and_then(|ticks| i64::try_from(ticks / 10_000_000).ok());
    Entry {
        raw: entry.name.clone(),
        path,
        size: Some(entry.size),
        is_executable: is_executable(entry, Kind::File).unwrap_or(false),
        modified: seconds.filter(|_| entry.has_last_modified_date),
    }
}

fn reason(error: &Error, has_password: bool) -> Reason {
    match error {
        Error::PasswordRequired => Reason::Encrypted,
        Error::MaybeBadPassword(_) if has_password => Reason::WrongPassword,
        Error::MaybeBadPassword(_) => Reason::Encrypted,
        Error::ChecksumVerificationFailed => Reason::Checksum,
        Error::UnsupportedCompressionMethod(method) => Reason::Method { method: method.clone() },
        Error::MaxMemLimited { .. } => Reason::Memory {
            limit: MAX_DICTIONARY_BYTES,
        },
        Error::Io(error, _) => crate::tree::stream_reason(error),
        other => Reason::damaged(other),
    }
}
