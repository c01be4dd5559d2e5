//! Tar archives: the formats of POSIX (ustar, pax) and GNU. The reader is ours, for the same reason as that of ZIP: sizes
//! that two readers take from different headers let one of them see files that the other does not.

use std::io::{self, Read};

use crate::{
    archive::Attempt,
    names::Kind,
    refusal::{Reason, Result},
    text::NameDecoder,
    tree::{Entry, check_mode, stream_reason},
};

const BLOCK: usize = 512;

/// The longest name or pax header, in bytes.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

/// What follows the end of an archive, at most: tapes are written in large records of zeros. Anything else there would be
/// unpacked by one reader and not by another.
const MAX_PADDING_BYTES: u64 = 16 << 20;

/// Unpacks a tar archive from `input`.
pub(super) fn unpack(input: &mut dyn Read, attempt: &mut Attempt<'_>) -> Result<()> {
    let mut said = Said::default();
    while let Some(header) = next(input)? {
        match header.kind {
            b'L' => said.name = Some(extension(input, &header, "a long name")?),
            // The target of a link: the link is refused by itself.
            b'K' => drop(extension(input, &header, "a long target")?),
            b'x' => said.add(&extension(input, &header, "a pax header")?)?,
            b'g' => check_global(&extension(input, &header, "a global header")?)?,
            _ => entry(input, header, std::mem::take(&mut said), attempt)?,
        }
    }
    let mut padding = (&mut *input).take(MAX_PADDING_BYTES);
    let is_zero = is_zero(&mut padding).map_err(|error| stream_reason(&error).of_archive())?;
    if !is_zero || padding.limit() == 0 {
        return Err(Reason::AfterEnd.of_archive());
    }
    Ok(())
}

/// Whether nothing but zeros comes.
fn is_zero(input: &mut dyn Read) -> io::Result<bool> {
    let mut buffer = [0; BLOCK * 16];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(true),
            Ok(read) if buffer[..read].iter().any(|byte| *byte != 0) => return Ok(false),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Whether `block` can be the first one of a tar archive.
pub(super) fn is_header(block: &[u8]) -> bool {
    block.first_chunk().is_some_and(|block| Header::parse(block).is_some())
}

/// What headers before an entry's own say about it.
#[derive(Default)]
struct Said {
    name: Option<Vec<u8>>,
    size: Option<u64>,
    modified: Option<i64>,
}

impl Said {
    /// Reads a pax header: lines of `length key=value`.
    fn add(&mut self, mut records: &[u8]) -> Result<()> {
        let damaged = || Reason::damaged("a pax header").of_archive();
        while !records.is_empty() {
            let (key, value, rest) = record(records).ok_or_else(damaged)?;
            let number = || std::str::from_utf8(value).ok();
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"size" => self.size = Some(number().and_then(|text| text.parse().ok()).ok_or_else(damaged)?),
                b"mtime" => {
                    let seconds = number().and_then(|text| text.split('.').next());
                    self.modified = seconds.and_then(|seconds| seconds.parse().ok());
                }
                _ if key.starts_with(b"GNU.sparse") => return Err(sparse().of_archive()),
                _ => {}
            }
            records = rest;
        }
        Ok(())
    }
}

fn sparse() -> Reason {
    Reason::Kind {
        what: "a file with holes".to_owned(),
    }
}

/// A global header may hold comments, as those of Git do, and nothing that changes entries.
fn check_global(records: &[u8]) -> Result<()> {
    let mut said = Said::default();
    said.add(records)?;
    if said.name.is_some() || said.size.is_some() {
        let what = "a name or size for all entries".to_owned();
        return Err(Reason::Kind { what }.of_archive());
    }
    Ok(())
}

fn record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
    let (line, rest) = records.split_at_checked(length)?;
    let line = line.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = line.iter().position(|byte| *byte == b'=')?;
    Some((&line[..equals], &line[equals + 1..], rest))
}

fn entry(input: &mut dyn Read, header: Header, said: Said, attempt: &mut Attempt<'_>) -> Result<()> {
    let name = said.name.unwrap_or(header.name);
    let decoder = NameDecoder::guess(std::iter::once(name.as_slice()));
    let raw = decoder
        .decode(&name)
        .map_err(|reason| reason.of(&String::from_utf8_lossy(&name)))?;
    let size = said.size.unwrap_or(header.size);
    let kind = kind(header.kind, &raw).map_err(|reason| reason.of(&raw))?;
    let path = attempt.tree.names.admit(&raw, kind)?;
    // The type is in the kind; some writers put other bits there.
    let is_executable = check_mode(header.mode & 0o7777, kind).map_err(|reason| reason.of(&raw))?;
    if kind == Kind::Directory {
        if size != 0 {
            let what = "a directory with content".to_owned();
            return Err(Reason::Mismatch { what }.of(&raw));
        }
        return attempt.tree.directory(&raw, &path);
    }
    let entry = Entry {
        size: Some(size),
        is_executable,
        modified: said.modified.or(header.modified),
        path,
        raw: raw.clone(),
    };
    attempt.tree.file(entry, &mut (&mut *input).take(size))?;
    skip_padding(input, size).map_err(|reason| reason.of(&raw))
}

fn kind(kind: u8, raw: &str) -> std::result::Result<Kind, Reason> {
    match kind {
        // Before POSIX, directories were files with a slash at the end.
        0 | b'0' | b'7' if raw.ends_with('/') => Ok(Kind::Directory),
        0 | b'0' | b'7' => Ok(Kind::File),
        b'5' => Ok(Kind::Directory),
        b'1' => Err(Reason::HardLink),
        b'2' => Err(Reason::SymbolicLink),
        b'3' | b'4' | b'6' => Err(Reason::SpecialFile),
        b'S' => Err(sparse()),
        other => Err(Reason::Kind {
            what: format!("type {:?}", char::from(other)),
        }),
    }
}

/// The content of a header about the next entry.
fn extension(input: &mut dyn Read, header: &Header, what: &str) -> Result<Vec<u8>> {
    if header.size > MAX_HEADER_BYTES {
        let reason = Reason::damaged(format!("{what} of {} bytes", header.size));
        return Err(reason.of_archive());
    }
    let mut content = Vec::new();
    let read = (&mut *input).take(header.size).read_to_end(&mut content);
    read.map_err(|error| stream_reason(&error).of_archive())?;
    if content.len() as u64 != header.size {
        return Err(Reason::damaged("it ends too early").of_archive());
    }
    skip_padding(input, header.size).map_err(Reason::of_archive)?;
    // Names end with a zero, pax records do not.
    while content.last() == Some(&0) {
        content.pop();
    }
    Ok(content)
}

fn skip_padding(input: &mut dyn Read, size: u64) -> std::result::Result<(), Reason> {
    let padding = size.next_multiple_of(BLOCK as u64) - size;
    let skipped = io::copy(&mut input.take(padding), &mut io::sink());
    match skipped {
        Ok(skipped) if skipped == padding => Ok(()),
        Ok(_) => Err(Reason::damaged("it ends too early")),
        Err(error) => Err(stream_reason(&error)),
    }
}

/// The next header; `None` at the end, which is a block of zeros or where the bytes end.
fn next(input: &mut dyn Read) -> Result<Option<Header>> {
    let mut block = [0; BLOCK];
    let mut read = 0;
    while read < BLOCK {
        match input.read(&mut block[read..]) {
            Ok(0) if read == 0 => return Ok(None),
            Ok(0) => return Err(Reason::damaged("it ends too early").of_archive()),
            Ok(some) => read += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(stream_reason(&error).of_archive()),
        }
    }
    if block == [0; BLOCK] {
        return Ok(None);
    }
    let header = Header::parse(&block);
    header
        .map(Some)
        .ok_or_else(|| Reason::damaged("a header is invalid").of_archive())
}

struct Header {
    name: Vec<u8>,
    mode: u32,
    size: u64,
    modified: Option<i64>,
    kind: u8,
}

impl Header {
    fn parse(block: &[u8; BLOCK]) -> Option<Self> {
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        let stored = &block[148..156];
        let blanked = sum - stored.iter().map(|byte| u64::from(*byte)).sum::<u64>() + 8 * u64::from(b' ');
        if octal(stored)? != blanked {
            return None;
        }
        let mut name = text(&block[..100]).to_vec();
        let prefix = text(&block[345..500]);
        if &block[257..263] == b"ustar\0" && !prefix.is_empty() {
            name = [prefix, b"/", &name].concat();
        }
        Some(Self {
            name,
            mode: u32::try_from(octal(&block[100..108])?).ok()?,
            size: number(&block[124..136])?,
            modified: number(&block[136..148]).and_then(|seconds| i64::try_from(seconds).ok()),
            kind: block[156],
        })
    }
}

/// What stands before the first zero.
fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    &field[..end.unwrap_or(field.len())]
}

/// A number in octal digits, or, as GNU writes large ones, in binary.
fn number(field: &[u8]) -> Option<u64> {
    match field.split_first() {
        Some((0x80, rest)) => rest.iter().try_fold(0_u64, |number, byte| {
            number.checked_mul(256)?.checked_add((*byte).into())
        }),
        _ => octal(field),
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text(field)).ok()?.trim_matches(' ');
    if digits.is_empty() {
        return Some(0);
    }
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    u64::from_str_radix(digits, 8).ok()
}
