//! Reads archives in memory and checks them meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read as _,
};

use bytes::Bytes;
use flate2::read::DeflateDecoder;
use transfer::{ByteCount, FileName};

use super::format::{
    CENTRAL, CENTRAL_BYTES, DEFLATED, END, END_BYTES, FOLDER, FORBIDDEN_FLAGS, KIND_MASK, LOCAL, LOCAL_BYTES,
    MAX_ARCHIVE_BYTES, MAX_DEPTH, MAX_ENTRIES, MAX_FILE_BYTES, MAX_PATH_BYTES, MAX_RATIO, MAX_TOTAL_BYTES, REGULAR,
    STORED, is_bomb,
};
use crate::refusal::{Check, Result, refuse};

/// The files of an archive, by their paths.
pub(crate) fn unpack(archive: &[u8]) -> Result<BTreeMap<String, Bytes>> {
    if archive.len() > MAX_ARCHIVE_BYTES {
        let reason = format!("it is larger than {}", ByteCount(MAX_ARCHIVE_BYTES as u64));
        return refuse(Check::ArchiveSize, None, reason);
    }
    let entries = directory(archive)?;
    check_names(&entries)?;
    let mut files = BTreeMap::new();
    let mut total = 0;
    let mut taken = Vec::new();
    for entry in entries {
        let (start, data) = packed_bytes(archive, &entry)?;
        taken.push((start, entry.offset, entry.name.clone()));
        if entry.is_folder() {
            continue;
        }
        total += u64::from(entry.size);
        if total > MAX_TOTAL_BYTES {
            return refuse(
                Check::Size,
                None,
                format!("it unpacks to more than {}", ByteCount(MAX_TOTAL_BYTES)),
            );
        }
        let bytes = inflate(&entry, data)?;
        files.insert(entry.name, bytes);
    }
    check_overlaps(taken)?;
    Ok(files)
}

/// An entry of the central directory.
#[derive(Debug)]
struct ArchiveEntry {
    name: String,
    flags: u16,
    method: u16,
    checksum: u32,
    packed: u32,
    size: u32,
    /// Of its local header.
    offset: u32,
}

impl ArchiveEntry {
    fn is_folder(&self) -> bool {
        self.name.ends_with('/')
    }
}

/// Little-endian numbers at an offset. An offset out of bounds means a truncated archive.
fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(chunk) => Ok(u16::from_le_bytes(*chunk)),
        None => refuse(Check::Format, None, "the archive ends too early"),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(chunk) => Ok(u32::from_le_bytes(*chunk)),
        None => refuse(Check::Format, None, "the archive ends too early"),
    }
}

fn size_at(bytes: &[u8], at: usize) -> Result<usize> {
    Ok(usize::from(u16_at(bytes, at)?))
}

/// The offset of the end record: the last one whose comment ends where the archive does.
fn end_record(archive: &[u8]) -> Result<usize> {
    let last = archive.len().checked_sub(END_BYTES);
    let found = last.and_then(|last| {
        (last.saturating_sub(usize::from(u16::MAX))..=last).rev().find(|at| {
            let comment = size_at(archive, at + 20).unwrap_or(usize::MAX);
            archive[*at..].starts_with(END) && comment == last - at
        })
    });
    found.map_or_else(|| refuse(Check::Format, None, "this is no ZIP archive"), Ok)
}

/// Reads the central directory, which must fill the space between the files and the end record exactly.
fn directory(archive: &[u8]) -> Result<Vec<ArchiveEntry>> {
    let end = end_record(archive)?;
    let (disk, central_disk) = (u16_at(archive, end + 4)?, u16_at(archive, end + 6)?);
    let (here, count) = (size_at(archive, end + 8)?, size_at(archive, end + 10)?);
    let (length, offset) = (u32_at(archive, end + 12)?, u32_at(archive, end + 16)?);
    if disk != 0 || central_disk != 0 || here != count {
        return refuse(Check::Format, None, "the archive has several parts");
    }
    if count > MAX_ENTRIES {
        return refuse(
            Check::Entries,
            None,
            format!("{count} entries; the limit is {MAX_ENTRIES}"),
        );
    }
    let mut at = offset as usize;
    if at.checked_add(length as usize) != Some(end) {
        return refuse(
            Check::Layout,
            None,
            "the directory does not end where the archive's end begins",
        );
    }
    let mut entries = Vec::with_capacity(count);
    while at < end {
        if entries.len() == count {
            return refuse(
                Check::Entries,
                None,
                format!("more entries than the {count} that the archive's end says"),
            );
        }
        let (entry, next) = central_entry(&archive[..end], at)?;
        entries.push(entry);
        at = next;
    }
    if entries.len() != count {
        let reason = format!("{} entries, {count} at the archive's end", entries.len());
        return refuse(Check::Entries, None, reason);
    }
    Ok(entries)
}

fn central_entry(archive: &[u8], at: usize) -> Result<(ArchiveEntry, usize)> {
    if !archive[at..].starts_with(CENTRAL) {
        return refuse(Check::Format, None, "the directory is damaged");
    }
    let lengths = (
        size_at(archive, at + 28)?,
        size_at(archive, at + 30)?,
        size_at(archive, at + 32)?,
    );
    let name = name_at(archive, at + CENTRAL_BYTES, lengths.0)?;
    let entry = ArchiveEntry {
        flags: u16_at(archive, at + 8)?,
        method: u16_at(archive, at + 10)?,
        checksum: u32_at(archive, at + 16)?,
        packed: u32_at(archive, at + 20)?,
        size: u32_at(archive, at + 24)?,
        offset: u32_at(archive, at + 42)?,
        name,
    };
    let name = Some(entry.name.as_str());
    // The upper half holds the Unix mode; other systems leave it zero.
    let kind = (u32_at(archive, at + 38)? >> 16) & KIND_MASK;
    let expected = if entry.is_folder() { FOLDER } else { REGULAR };
    if kind != 0 && kind != expected {
        return refuse(Check::Kind, name, "is neither a regular file nor a folder");
    }
    if entry.is_folder() && entry.size != 0 {
        return refuse(Check::Kind, name, "is a folder with content");
    }
    if entry.flags & FORBIDDEN_FLAGS != 0 {
        return refuse(Check::Method, name, "is encrypted or a patch");
    }
    if !matches!(entry.method, STORED | DEFLATED) {
        let reason = format!(
            "is packed with method {}; stored and deflated are accepted",
            entry.method
        );
        return refuse(Check::Method, name, reason);
    }
    if u64::from(entry.size) > MAX_FILE_BYTES {
        let reason = format!("is larger than {}", ByteCount(MAX_FILE_BYTES));
        return refuse(Check::Size, name, reason);
    }
    if is_bomb(entry.size.into(), entry.packed.into()) {
        let reason = format!(
            "{} out of {}; the limit is {MAX_RATIO} to one",
            ByteCount(entry.size.into()),
            ByteCount(entry.packed.into())
        );
        return refuse(Check::Ratio, name, reason);
    }
    let next = at + CENTRAL_BYTES + lengths.0 + lengths.1 + lengths.2;
    if next > archive.len() {
        return refuse(Check::Layout, name, "reaches beyond the directory");
    }
    Ok((entry, next))
}

fn name_at(archive: &[u8], at: usize, length: usize) -> Result<String> {
    let bytes = archive.get(at..at + length).unwrap_or_default();
    match std::str::from_utf8(bytes) {
        Ok(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => refuse(
            Check::Name,
            Some(&String::from_utf8_lossy(bytes)),
            "is empty or no UTF-8",
        ),
    }
}

/// The compressed bytes of a file, and the offset of their end. The local header must agree with the directory.
fn packed_bytes<'a>(archive: &'a [u8], entry: &ArchiveEntry) -> Result<(usize, &'a [u8])> {
    let name = Some(entry.name.as_str());
    let at = entry.offset as usize;
    if !archive.get(at..).is_some_and(|rest| rest.starts_with(LOCAL)) {
        return refuse(Check::Layout, name, "has no header where the directory says");
    }
    let (name_length, extra_length) = (size_at(archive, at + 26)?, size_at(archive, at + 28)?);
    let same_name = archive.get(at + LOCAL_BYTES..at + LOCAL_BYTES + name_length) == Some(entry.name.as_bytes());
    if !same_name || u16_at(archive, at + 6)? != entry.flags || u16_at(archive, at + 8)? != entry.method {
        return refuse(
            Check::Layout,
            name,
            "is described differently in its header and in the directory",
        );
    }
    let start = at + LOCAL_BYTES + name_length + extra_length;
    match archive.get(start..start + entry.packed as usize) {
        Some(data) => Ok((start + data.len(), data)),
        None => refuse(Check::Layout, name, "reaches beyond the archive"),
    }
}

/// Unpacks a file, up to the size in the directory.
fn inflate(entry: &ArchiveEntry, data: &[u8]) -> Result<Bytes> {
    let name = Some(entry.name.as_str());
    let mut bytes = Vec::with_capacity(entry.size as usize);
    let limit = u64::from(entry.size) + 1;
    let unpacked = match entry.method {
        STORED => data.take(limit).read_to_end(&mut bytes),
        _ => DeflateDecoder::new(data).take(limit).read_to_end(&mut bytes),
    };
    if let Err(error) = unpacked {
        return refuse(Check::Format, name, format!("cannot be unpacked: {error}"));
    }
    if bytes.len() as u64 != u64::from(entry.size) {
        return refuse(
            Check::Size,
            name,
            format!("is not the {} bytes that the directory says", entry.size),
        );
    }
    if crc32fast::hash(&bytes) != entry.checksum {
        return refuse(Check::Checksum, name, "is damaged");
    }
    Ok(bytes.into())
}

/// Checks that no byte of the archive belongs to two files: small archives can unpack into huge ones that way.
fn check_overlaps(mut taken: Vec<(usize, u32, String)>) -> Result<()> {
    taken.sort_by_key(|(_, offset, _)| *offset);
    for pair in taken.windows(2) {
        let ((end, ..), (_, next, name)) = (&pair[0], &pair[1]);
        if *end > *next as usize {
            return refuse(Check::Layout, Some(name), "shares bytes with another file");
        }
    }
    Ok(())
}

/// Checks that every name is a relative path below the package and names the same single file on every system.
fn check_names(entries: &[ArchiveEntry]) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut files = BTreeSet::new();
    let mut folders = BTreeSet::new();
    for entry in entries {
        let name = Some(entry.name.as_str());
        let path = entry.name.strip_suffix('/').unwrap_or(&entry.name);
        if path.len() > MAX_PATH_BYTES {
            return refuse(
                Check::Name,
                name,
                format!("{} bytes; the limit is {MAX_PATH_BYTES}", path.len()),
            );
        }
        let parts: Vec<_> = path.split('/').collect();
        if parts.len() > MAX_DEPTH {
            return refuse(
                Check::Name,
                name,
                format!("{} levels deep; the limit is {MAX_DEPTH}", parts.len()),
            );
        }
        let is_portable = |part: &str| FileName::sanitise_or_none(part).is_some_and(|name| name.as_str() == part);
        if !parts.iter().all(|part| is_portable(part)) {
            return refuse(Check::Name, name, "is no path of names that are safe on every system");
        }
        let folded = path.to_lowercase();
        for (at, _) in folded.match_indices('/') {
            folders.insert(folded[..at].to_owned());
        }
        if !seen.insert(folded.clone()) {
            return refuse(Check::Duplicate, name, "is there twice, perhaps in another case");
        }
        if entry.is_folder() {
            folders.insert(folded);
        } else {
            files.insert(folded);
        }
    }
    match files.intersection(&folders).next() {
        Some(both) => refuse(Check::Duplicate, Some(both), "is a file and a folder"),
        None => Ok(()),
    }
}
