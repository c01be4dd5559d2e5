//! RAR archives, also in volumes: versions 1.5 to 7.

use std::{
    cell::RefCell,
    collections::HashMap,
    io::{self, Write},
    rc::Rc,
};

use rars::{
    Archive, ArchiveMember, ArchiveMemberDetail, ArchiveReadOptions, ArchiveReader, AttrSource, Error, ErrorKind,
    ExtractedEntryMeta,
};

use crate::{
    archive::Attempt,
    codec::MAX_DICTIONARY_BYTES,
    names::{Kind, MAX_ENTRIES},
    refusal::{Reason, Refusal, Result},
    text::NameDecoder,
    tree::{Entry, NewFile, Tree, check_mode},
    volumes::Volumes,
};

/// The most bytes of all headers of a volume.
const MAX_HEADER_BYTES: u64 = 64 << 20;

/// Members larger than this are decoded piece by piece; smaller ones at once.
const BUFFERED_BYTES: u64 = 32 << 20;

/// Unpacks a RAR archive. The library compares each file with its size and checksum.
pub(super) fn unpack(volumes: &Volumes, attempt: &mut Attempt<'_>) -> Result<()> {
    let password = attempt.password.map(|password| password.expose().as_bytes());
    let options = ArchiveReadOptions::with_optional_password(password)
        .with_max_header_count(2 * MAX_ENTRIES as u64)
        .with_max_header_bytes(MAX_HEADER_BYTES)
        .with_rar50_dictionary_size_limit(MAX_DICTIONARY_BYTES)
        .with_rar50_buffered_decode_limit(BUFFERED_BYTES)
        .with_max_reader_workspace_bytes(MAX_DICTIONARY_BYTES);
    let opened =
        (0..volumes.count()).map(|index| ArchiveReader::read_reader_with_options(volumes.part(index), options));
    let archives: Vec<_> = opened.collect::<std::result::Result<_, _>>().map_err(|error| {
        // Names can be encrypted too; then a wrong password makes noise of them.
        attempt.is_encrypted |= password.is_some();
        reason(&error).of_archive()
    })?;
    let members = rars::volume_members(&archives).map_err(|error| reason(&error).of_archive())?;
    let legacy = members.iter().filter(|member| !member.name_is_unicode());
    let decoder = NameDecoder::guess(legacy.map(|member| member.meta.name_bytes()));
    let mut entries = admit(&members, decoder, attempt)?;
    let refusal = Rc::new(RefCell::new(None));
    let extracted = extract(&archives, options, |meta| {
        open(meta, &mut entries, attempt.tree, &refusal)
    });
    // The writers are gone now, each having completed its file.
    let refusal = refusal.borrow_mut().take();
    match (refusal, extracted) {
        // The library knows better why a file is not complete.
        (Some(refusal), Err(error)) if matches!(refusal.reason, Reason::Size { .. }) => Err(of_member(&error)),
        (Some(refusal), _) => Err(refusal),
        (None, Err(error)) => Err(of_member(&error)),
        (None, Ok(())) if entries.is_empty() => Ok(()),
        (None, Ok(())) => Err(Reason::damaged("it lists entries that it does not have").of_archive()),
    }
}

fn extract(
    archives: &[Archive],
    options: ArchiveReadOptions<'_>,
    open: impl FnMut(&ExtractedEntryMeta) -> rars::Result<Box<dyn Write>>,
) -> rars::Result<()> {
    match archives {
        [archive] => archive.extract_to_with_options(options, open),
        _ => rars::extract_volumes_to_with_options(archives, options, open),
    }
}

/// Checks every entry before one is unpacked. Directories are made at once; the files are returned by their names.
fn admit(
    members: &[ArchiveMember],
    decoder: NameDecoder,
    attempt: &mut Attempt<'_>,
) -> Result<HashMap<Vec<u8>, Entry>> {
    let mut entries = HashMap::new();
    let mut directories = Vec::new();
    let mut total: u64 = 0;
    for member in members {
        let meta = &member.meta;
        let raw = decoder
            .decode(meta.name_bytes())
            .map_err(|reason| reason.of(&meta.name_lossy()))?;
        let of_entry = |reason: Reason| reason.of(&raw);
        let kind = if meta.is_directory { Kind::Directory } else { Kind::File };
        let path = attempt.tree.names.admit(&raw, kind)?;
        let is_executable = check(member, kind).map_err(of_entry)?;
        if meta.is_encrypted {
            attempt.is_encrypted = true;
            if attempt.password.is_none() {
                return Err(of_entry(Reason::Encrypted));
            }
        }
        if meta.is_split_before || meta.is_split_after {
            let name = "the one that this entry begins or ends in".to_owned();
            return Err(of_entry(Reason::MissingVolume { name }));
        }
        if meta.is_directory {
            directories.push((raw, path));
            continue;
        }
        total = total.saturating_add(meta.unpacked_size);
        let entry = Entry {
            size: Some(meta.unpacked_size),
            is_executable,
            modified: modified(member),
            path,
            raw,
        };
        entries.insert(meta.name.clone(), entry);
    }
    attempt.tree.announce(total)?;
    for (raw, path) in directories {
        attempt.tree.directory(&raw, &path)?;
    }
    Ok(entries)
}

/// Whether a member is one that is unpacked, and executable.
fn check(member: &ArchiveMember, kind: Kind) -> std::result::Result<bool, Reason> {
    if let ArchiveMemberDetail::Rar50Plus {
        redirection: Some(link),
        ..
    } = &member.detail
    {
        return Err(match link.redirection_type {
            4 | 5 => Reason::HardLink,
            _ => Reason::SymbolicLink,
        });
    }
    if member.meta.is_redirection {
        return Err(Reason::SymbolicLink);
    }
    match member.meta.attr_source() {
        AttrSource::Unix => check_mode(u32::try_from(member.meta.file_attr).unwrap_or(u32::MAX), kind),
        _ => Ok(false),
    }
}

fn modified(member: &ArchiveMember) -> Option<i64> {
    let since = member.meta.modification_time()?.duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.ok()?.as_secs()).ok()
}

/// What the library writes a member to.
fn open(
    meta: &ExtractedEntryMeta,
    entries: &mut HashMap<Vec<u8>, Entry>,
    tree: &mut Tree,
    refusal: &Rc<RefCell<Option<Refusal>>>,
) -> rars::Result<Box<dyn Write>> {
    if meta.is_directory {
        return Ok(Box::new(io::sink()));
    }
    let entry = entries.remove(meta.name_bytes());
    let unlisted = || Reason::damaged("it has an entry that it does not list").of(&meta.name_lossy());
    let created = entry.ok_or_else(unlisted).and_then(|entry| tree.create(entry));
    match created {
        Ok(file) => Ok(Box::new(Member {
            file: Some(file),
            refusal: Rc::clone(refusal),
        })),
        Err(error) => Err(keep(refusal, error).into()),
    }
}

/// A file that the library writes; it is complete when the library drops it.
struct Member {
    file: Option<NewFile>,
    refusal: Rc<RefCell<Option<Refusal>>>,
}

impl Write for Member {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file
            && let Err(refusal) = file.write(bytes)
        {
            let error = keep(&self.refusal, refusal);
            self.file = None;
            return Err(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(Err(refusal)) = self.file.take().map(NewFile::finish) {
            drop(keep(&self.refusal, refusal));
        }
    }
}

/// Remembers the first refusal; the error is for the library.
fn keep(kept: &Rc<RefCell<Option<Refusal>>>, refusal: Refusal) -> io::Error {
    kept.borrow_mut().get_or_insert(refusal);
    io::Error::other("refused")
}

fn of_member(error: &Error) -> Refusal {
    match error.entry_context() {
        Some((name, _)) => reason(error).of(&String::from_utf8_lossy(name)),
        None => reason(error).of_archive(),
    }
}

fn reason(error: &Error) -> Reason {
    match error.kind() {
        ErrorKind::PasswordRequired => Reason::Encrypted,
        ErrorKind::BadPassword => Reason::WrongPassword,
        ErrorKind::ChecksumMismatch => Reason::Checksum,
        ErrorKind::ResourceLimit => Reason::Memory {
            limit: MAX_DICTIONARY_BYTES,
        },
        ErrorKind::UnsupportedFormat | ErrorKind::UnsupportedFeature => Reason::Method {
            method: error.to_string().chars().take(200).collect(),
        },
        _ => Reason::damaged(error),
    }
}
