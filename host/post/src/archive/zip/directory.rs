//! The directory of a ZIP archive. Each entry has to be described in the same way in its local header, and no byte may
//! belong to two entries.

use jiff::{civil, tz::TimeZone};

use crate::{
    names::MAX_ENTRIES,
    refusal::{Reason, Result},
    volumes::Volumes,
};

const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;

/// Lengths of the records' fixed parts.
const END_BYTES: u64 = 22;
const END64_BYTES: usize = 56;
const LOCATOR64_BYTES: usize = 20;
const CENTRAL_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;

/// The largest directory: what the most entries need with long names and extra fields.
const MAX_DIRECTORY_BYTES: u64 = 64 << 20;

/// Flags of entries.
pub(super) const ENCRYPTED: u16 = 0x0001;
const DESCRIBED_LATER: u16 = 0x0008;
const UNICODE: u16 = 0x0800;
/// Patches, strong encryption, and masked headers.
pub(super) const UNREADABLE: u16 = 0x0020 | 0x0040 | 0x2000;

/// The method of entries that AES encrypts; the true one is in an extra field.
pub(super) const AES: u16 = 99;

/// Extra fields.
const EXTRA_ZIP64: u16 = 0x0001;
const EXTRA_TIME: u16 = 0x5455;
const EXTRA_AES: u16 = 0x9901;

/// An entry of the directory.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: Vec<u8>,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) checksum: u32,
    pub(super) packed: u64,
    pub(super) size: u64,
    pub(super) modified: Option<i64>,
    /// The time as MS-DOS has it, which also checks passwords.
    pub(super) dos_time: u16,
    /// The mode of Unix; zero if it was made on another system.
    pub(super) mode: u32,
    pub(super) aes: Option<Aes>,
    /// Where its local header begins, and where its packed bytes do, in all volumes together.
    header: u64,
    pub(super) data: u64,
}

/// How an entry is encrypted with AES.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aes {
    /// Of the key, in bytes.
    pub(super) key_bytes: usize,
    pub(super) method: u16,
    pub(super) is_without_checksum: bool,
}

impl Listed {
    /// Whether the archive says that the name is Unicode.
    pub(super) fn is_unicode(&self) -> bool {
        self.flags & UNICODE != 0
    }

    /// The byte by which a wrong password is found.
    pub(super) fn password_check(&self) -> u8 {
        if self.flags & DESCRIBED_LATER == 0 {
            self.checksum.to_be_bytes()[0]
        } else {
            self.dos_time.to_be_bytes()[0]
        }
    }
}

/// Reads the directory and checks it against the local headers.
pub(super) fn read(volumes: &Volumes) -> Result<Vec<Listed>> {
    let end = End::find(volumes)?;
    let bytes = end.after_directory - end.directory;
    if bytes > MAX_DIRECTORY_BYTES || end.entries > MAX_ENTRIES as u64 {
        return Err(Reason::Entries { limit: MAX_ENTRIES }.of_archive());
    }
    let mut directory = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
    volumes.read_at(end.directory, &mut directory)?;
    let mut rest = Cursor(&directory);
    let mut entries = Vec::new();
    while !rest.0.is_empty() {
        if entries.len() as u64 == end.entries {
            return Err(mismatch("number of entries").of_archive());
        }
        let mut entry = central(volumes, &mut rest, end.volume).map_err(Reason::of_archive)?;
        check_local(volumes, &mut entry)?;
        entries.push(entry);
    }
    if entries.len() as u64 != end.entries {
        return Err(mismatch("number of entries").of_archive());
    }
    check_overlaps(&entries, end.directory)?;
    Ok(entries)
}

fn mismatch(what: &str) -> Reason {
    Reason::Mismatch { what: what.to_owned() }
}

/// What the end of an archive says.
struct End {
    /// The index of the last volume.
    volume: u32,
    entries: u64,
    /// Where the directory is, in all volumes together.
    directory: u64,
    after_directory: u64,
}

impl End {
    /// Finds the end record: the last one whose comment ends where the archive does.
    fn find(volumes: &Volumes) -> Result<Self> {
        let total = volumes.size();
        let length = total.min(END_BYTES + u64::from(u16::MAX));
        let mut tail = vec![0; usize::try_from(length).unwrap_or(0)];
        volumes.read_at(total - length, &mut tail)?;
        let is_end = |at: &usize| {
            let mut record = Cursor(&tail[*at..]);
            let is_signature = record.u32() == Some(END);
            let comment = record.skip(16).and_then(|()| record.u16());
            is_signature && comment.is_some_and(|comment| record.0.len() == usize::from(comment))
        };
        let last = tail.len().checked_sub(22);
        let found = last.and_then(|last| (0..=last).rev().find(is_end));
        let Some(at) = found else {
            return Err(Reason::damaged("it has no directory at its end").of_archive());
        };
        let at_in_all = total - length + at as u64;
        Self::read(volumes, Cursor(&tail[at + 4..]), at_in_all)
    }

    fn read(volumes: &Volumes, mut record: Cursor<'_>, at: u64) -> Result<Self> {
        let cut = || Reason::damaged("it ends too early").of_archive();
        let mut volume = u32::from(record.u16().ok_or_else(cut)?);
        let mut directory_volume = u32::from(record.u16().ok_or_else(cut)?);
        record.skip(2).ok_or_else(cut)?;
        let mut entries = u64::from(record.u16().ok_or_else(cut)?);
        let mut bytes = u64::from(record.u32().ok_or_else(cut)?);
        let mut offset = u64::from(record.u32().ok_or_else(cut)?);
        let mut after_directory = at;
        if let Some(end64) = Self::end64(volumes, at)? {
            let mut record = Cursor(&end64.record);
            record.skip(12).ok_or_else(cut)?;
            volume = record.u32().ok_or_else(cut)?;
            directory_volume = record.u32().ok_or_else(cut)?;
            record.skip(8).ok_or_else(cut)?;
            entries = record.u64().ok_or_else(cut)?;
            bytes = record.u64().ok_or_else(cut)?;
            offset = record.u64().ok_or_else(cut)?;
            after_directory = end64.at;
        }
        if volume != 0 && volume as usize + 1 != volumes.count() {
            let name = format!("volume {}", volumes.count() + 1);
            return Err(Reason::MissingVolume { name }.of_archive());
        }
        let directory = position(volumes, volume, directory_volume, offset).map_err(Reason::of_archive)?;
        if directory.checked_add(bytes) != Some(after_directory) {
            return Err(mismatch("where its directory is").of_archive());
        }
        Ok(Self {
            volume,
            entries,
            directory,
            after_directory,
        })
    }

    /// The larger end record, if the bytes before the smaller one at `at` point to one.
    fn end64(volumes: &Volumes, at: u64) -> Result<Option<End64>> {
        let Some(locator_at) = at.checked_sub(LOCATOR64_BYTES as u64) else {
            return Ok(None);
        };
        let mut locator = [0; LOCATOR64_BYTES];
        volumes.read_at(locator_at, &mut locator)?;
        if Cursor(&locator).u32() != Some(LOCATOR64) {
            return Ok(None);
        }
        let Some(record_at) = locator_at.checked_sub(END64_BYTES as u64) else {
            return Err(mismatch("where its directory ends").of_archive());
        };
        let mut record = [0; END64_BYTES];
        volumes.read_at(record_at, &mut record)?;
        if Cursor(&record).u32() != Some(END64) {
            return Err(mismatch("where its directory ends").of_archive());
        }
        let record = record[4..].to_vec();
        Ok(Some(End64 { record, at: record_at }))
    }
}

struct End64 {
    /// What follows the signature: length and versions, then the fields.
    record: Vec<u8>,
    at: u64,
}

/// Where `offset` in `volume` is in all volumes together. If the archive has one volume only, a file that was split
/// afterwards counts as whole.
fn position(volumes: &Volumes, last: u32, volume: u32, offset: u64) -> std::result::Result<u64, Reason> {
    let start = if last == 0 {
        (volume == 0).then_some(0)
    } else {
        volumes.start(volume as usize)
    };
    let position = start.and_then(|start| start.checked_add(offset));
    position.ok_or_else(|| mismatch("number of a volume"))
}

fn central(volumes: &Volumes, rest: &mut Cursor<'_>, last: u32) -> std::result::Result<Listed, Reason> {
    let damaged = || Reason::damaged("an entry of its directory");
    let fixed = rest.take(CENTRAL_BYTES).ok_or_else(damaged)?;
    let mut field = Cursor(fixed);
    let signature = field.u32();
    let system = field.skip(1).and_then(|()| field.u8());
    let (flags, method) = field
        .skip(2)
        .and_then(|()| field.u16().zip(field.u16()))
        .ok_or_else(damaged)?;
    let (dos_time, dos_date) = field.u16().zip(field.u16()).ok_or_else(damaged)?;
    let checksum = field.u32().ok_or_else(damaged)?;
    let (mut packed, mut size) = wide(field.u32()).zip(wide(field.u32())).ok_or_else(damaged)?;
    let lengths = [field.u16(), field.u16(), field.u16()].map(|length| length.map(usize::from));
    let [Some(name), Some(extra), Some(comment)] = lengths else {
        return Err(damaged());
    };
    let mut volume = u32::from(field.u16().ok_or_else(damaged)?);
    let attributes = field.skip(2).and_then(|()| field.u32()).ok_or_else(damaged)?;
    let mut offset = wide(field.u32()).ok_or_else(damaged)?;
    if signature != Some(CENTRAL) {
        return Err(damaged());
    }
    let name = rest.take(name).ok_or_else(damaged)?.to_vec();
    let extra = Extra(rest.take(extra).ok_or_else(damaged)?);
    rest.take(comment).ok_or_else(damaged)?;
    if let Some(mut large) = extra.find(EXTRA_ZIP64) {
        for number in [&mut size, &mut packed, &mut offset] {
            if *number == u64::from(u32::MAX) {
                *number = large.u64().ok_or_else(damaged)?;
            }
        }
        if volume == u32::from(u16::MAX) {
            volume = large.u32().ok_or_else(damaged)?;
        }
    }
    // Unix and macOS; others leave the upper half to something else.
    let mode = if matches!(system, Some(3 | 19)) {
        attributes >> 16
    } else {
        0
    };
    Ok(Listed {
        header: position(volumes, last, volume, offset)?,
        modified: extra.modified().or_else(|| dos(dos_date, dos_time)),
        aes: extra.aes(method),
        data: 0,
        name,
        flags,
        method,
        checksum,
        packed,
        size,
        dos_time,
        mode,
    })
}

fn wide(number: Option<u32>) -> Option<u64> {
    number.map(u64::from)
}

/// Checks that the local header says the same as the directory, and finds the packed bytes behind it.
fn check_local(volumes: &Volumes, entry: &mut Listed) -> Result<()> {
    let name = String::from_utf8_lossy(&entry.name).into_owned();
    let mut fixed = [0; LOCAL_BYTES];
    volumes.read_at(entry.header, &mut fixed)?;
    let local = Local::read(&fixed).ok_or_else(|| mismatch("its header").of(&name))?;
    let mut variable = vec![0; local.name + local.extra];
    volumes.read_at(entry.header + LOCAL_BYTES as u64, &mut variable)?;
    let (local_name, extra) = variable.split_at(local.name);
    local
        .compare(entry, local_name, &Extra(extra))
        .map_err(|what| mismatch(what).of(&name))?;
    entry.data = entry.header + (LOCAL_BYTES + variable.len()) as u64;
    Ok(())
}

struct Local {
    flags: u16,
    method: u16,
    checksum: u32,
    packed: u32,
    size: u32,
    name: usize,
    extra: usize,
}

impl Local {
    fn read(fixed: &[u8]) -> Option<Self> {
        let mut field = Cursor(fixed);
        if field.u32()? != LOCAL {
            return None;
        }
        field.skip(2)?;
        let (flags, method) = (field.u16()?, field.u16()?);
        field.skip(4)?;
        Some(Self {
            flags,
            method,
            checksum: field.u32()?,
            packed: field.u32()?,
            size: field.u32()?,
            name: field.u16()?.into(),
            extra: field.u16()?.into(),
        })
    }

    /// Whether header and directory agree; the error is what they differ in.
    fn compare(&self, entry: &Listed, name: &[u8], extra: &Extra<'_>) -> std::result::Result<(), &'static str> {
        if name != entry.name {
            return Err("name");
        }
        if self.flags != entry.flags {
            return Err("flags");
        }
        if self.method != entry.method {
            return Err("method");
        }
        let (mut packed, mut size) = (u64::from(self.packed), u64::from(self.size));
        if let Some(mut large) = extra.find(EXTRA_ZIP64) {
            for number in [&mut size, &mut packed] {
                if *number == u64::from(u32::MAX) {
                    *number = large.u64().ok_or("size")?;
                }
            }
        }
        // Written before the content was known: then they are behind the content, or zero where encryption hides them.
        let is_later = entry.flags & DESCRIBED_LATER != 0;
        let agrees = |local: u64, listed: u64| local == listed || (is_later && local == 0);
        if !agrees(size, entry.size) || !agrees(packed, entry.packed) {
            return Err("size");
        }
        if !agrees(self.checksum.into(), entry.checksum.into()) {
            return Err("checksum");
        }
        Ok(())
    }
}

/// Checks that no byte belongs to two entries: small archives can unpack into huge ones that way.
fn check_overlaps(entries: &[Listed], directory: u64) -> Result<()> {
    let mut ordered: Vec<_> = entries.iter().collect();
    ordered.sort_by_key(|entry| entry.header);
    let nexts = ordered.iter().skip(1).map(|next| next.header).chain([directory]);
    for (entry, next) in ordered.iter().zip(nexts) {
        if entry.data.checked_add(entry.packed).is_none_or(|end| end > next) {
            return Err(Reason::Overlap.of(&String::from_utf8_lossy(&entry.name)));
        }
    }
    Ok(())
}

fn dos(date: u16, time: u16) -> Option<i64> {
    let bits = |value: u16, from: u16, count: u16| i8::try_from((value >> from) & ((1 << count) - 1)).ok();
    let year = 1980 + i16::from(bits(date, 9, 7)?);
    let (hour, minute, second) = (bits(time, 11, 5)?, bits(time, 5, 6)?, bits(time, 0, 5)? * 2);
    let local = civil::DateTime::new(year, bits(date, 5, 4)?, bits(date, 0, 5)?, hour, minute, second, 0).ok()?;
    Some(local.to_zoned(TimeZone::system()).ok()?.timestamp().as_second())
}

/// Extra fields: a number, a length, and the content of each.
struct Extra<'a>(&'a [u8]);

impl<'a> Extra<'a> {
    fn find(&self, wanted: u16) -> Option<Cursor<'a>> {
        let mut rest = Cursor(self.0);
        loop {
            let (number, length) = rest.u16().zip(rest.u16())?;
            let content = rest.take(length.into())?;
            if number == wanted {
                return Some(Cursor(content));
            }
        }
    }

    fn modified(&self) -> Option<i64> {
        let mut content = self.find(EXTRA_TIME)?;
        let has_modified = content.u8()? & 1 != 0;
        let seconds = content.u32().filter(|_| has_modified)?;
        Some(i64::from(seconds.cast_signed()))
    }

    fn aes(&self, method: u16) -> Option<Aes> {
        let mut content = self.find(EXTRA_AES).filter(|_| method == AES)?;
        let version = content.u16()?;
        content.skip(2)?;
        let key_bytes = match content.u8()? {
            1 => 16,
            2 => 24,
            3 => 32,
            _ => return None,
        };
        Some(Aes {
            key_bytes,
            method: content.u16()?,
            is_without_checksum: version == 2,
        })
    }
}

/// Little-endian numbers, one after the other.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.take(length).map(drop)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
