//! ZIP archives, also in volumes, with ZIP64 and both usual ciphers. The reader is ours, because readers that find
//! different files in the same bytes are how checks of archives are fooled: this one refuses what has two meanings.

mod cipher;
mod directory;

use std::io::{self, Read};

use self::{
    cipher::Plain,
    directory::{AES, ENCRYPTED, Listed},
};
use crate::{
    archive::Attempt,
    codec::zip_method,
    names::Kind,
    refusal::{Reason, Refusal, Result},
    text::NameDecoder,
    tree::{Entry, check_ratio, stream_reason},
    volumes::Volumes,
};

/// Unpacks a ZIP archive.
pub(super) fn unpack(volumes: &Volumes, attempt: &mut Attempt<'_>) -> Result<()> {
    let listed = directory::read(volumes)?;
    let legacy = listed.iter().filter(|entry| !entry.is_unicode());
    let decoder = NameDecoder::guess(legacy.map(|entry| entry.name.as_slice()));
    let mut entries = Vec::with_capacity(listed.len());
    for entry in listed {
        let raw = entry.text(decoder)?;
        let path = attempt.tree.names.admit(&raw, entry.kind())?;
        let is_executable = entry.check(&raw)?;
        let described = Entry {
            size: Some(entry.size),
            is_executable,
            modified: entry.modified,
            path,
            raw,
        };
        entries.push((entry, described));
    }
    let mut total: u64 = 0;
    for (entry, described) in &entries {
        check_ratio(entry.size, entry.packed).map_err(|reason| reason.of(&described.raw))?;
        total = total.saturating_add(entry.size);
    }
    attempt.tree.announce(total)?;
    for (entry, described) in entries {
        match entry.kind() {
            Kind::Directory => attempt.tree.directory(&described.raw, &described.path)?,
            Kind::File => file(volumes, &entry, described, attempt)?,
        }
    }
    Ok(())
}

fn file(volumes: &Volumes, entry: &Listed, described: Entry, attempt: &mut Attempt<'_>) -> Result<()> {
    let raw = described.raw.clone();
    let of_entry = |reason: Reason| reason.of(&raw);
    let packed = Packed {
        volumes,
        at: entry.data,
        left: entry.packed,
    };
    let mut plain = if entry.flags & ENCRYPTED == 0 {
        Plain::open(packed)
    } else {
        attempt.is_encrypted = true;
        let password = attempt.password.ok_or_else(|| of_entry(Reason::Encrypted))?;
        Plain::decrypt(packed, entry, password.expose().as_bytes()).map_err(of_entry)?
    };
    let method = entry.aes.map_or(entry.method, |aes| aes.method);
    let checksum = decode(method, described, &mut plain, attempt)?;
    // Authenticated entries have none.
    if !entry.aes.is_some_and(|aes| aes.is_without_checksum) && checksum != entry.checksum {
        return Err(of_entry(Reason::Checksum));
    }
    // Behind the data is what authenticates it.
    io::copy(&mut plain, &mut io::sink()).map_err(|error| of_entry(stream_reason(&error)))?;
    Ok(())
}

/// Unpacks an entry's content and returns its checksum.
fn decode(method: u16, described: Entry, plain: &mut Plain<'_>, attempt: &mut Attempt<'_>) -> Result<u32> {
    let raw = described.raw.clone();
    let decoder = zip_method(method, described.size.unwrap_or_default(), plain);
    let decoder = decoder.ok_or_else(|| unsupported(method).of(&raw))?;
    let mut checked = Checked {
        inner: decoder.map_err(|error| stream_reason(&error).of(&raw))?,
        hasher: crc32fast::Hasher::new(),
    };
    attempt.tree.file(described, &mut checked)?;
    Ok(checked.hasher.finalize())
}

fn unsupported(method: u16) -> Reason {
    let method = match method {
        1..=6 => "an obsolete method".to_owned(),
        9 => "Deflate64".to_owned(),
        98 => "PPMd".to_owned(),
        _ => format!("method {method}"),
    };
    Reason::Method { method }
}

impl Listed {
    fn kind(&self) -> Kind {
        if matches!(self.name.last(), Some(b'/' | b'\\')) {
            Kind::Directory
        } else {
            Kind::File
        }
    }

    fn text(&self, decoder: NameDecoder) -> Result<String> {
        let decoded = if self.is_unicode() {
            std::str::from_utf8(&self.name)
                .map(ToOwned::to_owned)
                .map_err(|_| Reason::NameEncoding)
        } else {
            decoder.decode(&self.name)
        };
        decoded.map_err(|reason| reason.of(&String::from_utf8_lossy(&self.name)))
    }

    /// Whether the entry is one that is unpacked, and executable.
    fn check(&self, raw: &str) -> Result<bool> {
        let of_entry = |reason: Reason| reason.of(raw);
        let kind = self.kind();
        let is_executable = crate::tree::check_mode(self.mode, kind).map_err(of_entry)?;
        if kind == Kind::Directory && self.size != 0 {
            let what = "a directory with content".to_owned();
            return Err(of_entry(Reason::Mismatch { what }));
        }
        if self.flags & directory::UNREADABLE != 0 {
            let method = "strong encryption or patches".to_owned();
            return Err(of_entry(Reason::Method { method }));
        }
        if self.method == AES && self.aes.is_none() {
            return Err(of_entry(Reason::damaged("its encryption is not described")));
        }
        Ok(is_executable)
    }
}

/// The packed bytes of an entry.
pub(super) struct Packed<'a> {
    volumes: &'a Volumes,
    at: u64,
    left: u64,
}

impl Read for Packed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.volumes.read_at(self.at, &mut buffer[..length]);
        read.map_err(|refusal: Refusal| io::Error::other(refusal))?;
        self.at += length as u64;
        self.left -= length as u64;
        Ok(length)
    }
}

struct Checked<R> {
    inner: R,
    hasher: crc32fast::Hasher,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}
