//! Archives in several files: which files belong together, and reading them as one.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::FileExt as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::fs::CWD;
use transfer::FileName;

use crate::{
    dir::{Original, open_regular},
    refusal::{Reason, Refusal, Result},
};

/// The most volumes of an archive. Each is an open file of the unpacker.
pub(crate) const MAX_VOLUMES: usize = 500;

/// How the volumes of a set are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// `name.part1.rar`, with any number of leading zeros.
    Part { width: usize },
    /// `name.7z.001`, `name.zip.001`, `name.tar.gz.001`.
    Numbered,
    /// `name.z01`, `name.z02`, …, and `name.zip` at the end.
    Zip,
    /// `name.rar`, `name.r00`, `name.r01`, …
    Rar,
    /// One file.
    Single,
}

/// An archive by its name: the files it may consist of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parsed {
    stem: String,
    naming: Naming,
    /// Counted from one; of [`Naming::Zip`] and [`Naming::Rar`], that of the file without a number is zero.
    number: usize,
}

/// The endings of files that hold an archive, beside the numbers of volumes.
const ENDINGS: [&str; 13] = [
    ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tgz", ".tbz2", ".tbz", ".txz", ".tzst", ".tar", ".zip", ".7z",
    ".rar",
];

/// Whether a file of this name is one that can be unpacked: an archive, or the first volume of one. Other volumes are
/// not, so that a set is unpacked once.
pub fn is_archive(name: &str) -> bool {
    match parse(name) {
        Parsed {
            naming: Naming::Single, ..
        } => ending(name).is_some(),
        Parsed {
            naming: Naming::Zip | Naming::Rar,
            number,
            ..
        } => number == 0,
        Parsed { number, .. } => number == 1,
    }
}

/// What all volumes of an archive have in common that may consist of several files; `None` for other files.
pub fn volume_set(name: &str) -> Option<String> {
    let Parsed { stem, naming, .. } = parse(name);
    let kind = match naming {
        Naming::Part { .. } => "part",
        Naming::Numbered => "number",
        Naming::Zip => "zip",
        Naming::Rar => "rar",
        Naming::Single => return None,
    };
    Some(format!("{kind}/{}", stem.to_ascii_lowercase()))
}

/// The name of the directory for an archive's content: the archive's, without its ending and number.
pub fn directory_name(name: &str) -> FileName {
    let Parsed { stem, .. } = parse(name);
    let stem = ending(&stem).map_or(stem.as_str(), |ending| &stem[..stem.len() - ending.len()]);
    FileName::sanitise_or_none(stem).unwrap_or_else(|| FileName::sanitise(name))
}

/// The volumes of the archive that has a file `name`, in their order, out of the `names` in its directory. A missing
/// one between others is an error.
pub fn volumes(name: &str, names: &[String]) -> std::result::Result<Vec<String>, Refusal> {
    let parsed = parse(name);
    let set = match parsed.naming {
        Naming::Single => vec![name.to_owned()],
        Naming::Part { .. } | Naming::Numbered => numbered(&parsed, 1, names)?,
        Naming::Zip => {
            let mut set = numbered(&parsed, 1, names)?;
            set.push(find(&parsed, 0, names)?);
            set
        }
        Naming::Rar => {
            let mut set = vec![find(&parsed, 0, names)?];
            set.extend(numbered(&parsed, 1, names)?);
            set
        }
    };
    if set.len() > MAX_VOLUMES {
        return Err(Reason::Volumes { limit: MAX_VOLUMES }.of_archive());
    }
    Ok(set)
}

/// The volumes from `first` on, up to the highest number that there is.
fn numbered(parsed: &Parsed, first: usize, names: &[String]) -> std::result::Result<Vec<String>, Refusal> {
    let same_set = |name: &&String| {
        let other = parse(name);
        other.stem.eq_ignore_ascii_case(&parsed.stem)
            && std::mem::discriminant(&other.naming) == std::mem::discriminant(&parsed.naming)
    };
    let numbers = names.iter().filter(same_set).map(|name| parse(name).number);
    let last = numbers.max().unwrap_or(0).min(MAX_VOLUMES + 1);
    (first..=last).map(|number| find(parsed, number, names)).collect()
}

fn find(parsed: &Parsed, number: usize, names: &[String]) -> std::result::Result<String, Refusal> {
    let wanted = written(parsed, number);
    let is_wanted = |name: &&String| {
        let other = parse(name);
        name.eq_ignore_ascii_case(&wanted)
            || (matches!(parsed.naming, Naming::Part { .. })
                && matches!(other.naming, Naming::Part { .. })
                && other.stem.eq_ignore_ascii_case(&parsed.stem)
                && other.number == number)
    };
    let found = names.iter().find(is_wanted).cloned();
    found.ok_or_else(|| Reason::MissingVolume { name: wanted }.of_archive())
}

/// The usual name of a volume.
fn written(parsed: &Parsed, number: usize) -> String {
    let stem = &parsed.stem;
    match parsed.naming {
        Naming::Single => stem.clone(),
        Naming::Part { width } => format!("{stem}.part{number:0width$}.rar"),
        Naming::Numbered => format!("{stem}.{number:03}"),
        Naming::Zip if number == 0 => format!("{stem}.zip"),
        Naming::Zip => format!("{stem}.z{number:02}"),
        Naming::Rar if number == 0 => format!("{stem}.rar"),
        Naming::Rar => format!("{stem}.r{:02}", number - 1),
    }
}

fn parse(name: &str) -> Parsed {
    let of = |stem: &str, naming, number| Parsed {
        stem: stem.to_owned(),
        naming,
        number,
    };
    let Some((stem, extension)) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) else {
        return of(name, Naming::Single, 0);
    };
    let extension = extension.to_ascii_lowercase();
    let number = |digits: &str, least: usize| {
        let is_number = (least..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<usize>().ok().filter(|_| is_number)
    };
    if extension == "rar" {
        let part = stem.rsplit_once('.').and_then(|(stem, part)| {
            let digits = part.to_ascii_lowercase();
            let digits = digits.strip_prefix("part")?;
            Some((stem, digits.len(), number(digits, 1).filter(|number| *number > 0)?))
        });
        return match part {
            Some((stem, width, number)) => of(stem, Naming::Part { width }, number),
            None => of(stem, Naming::Rar, 0),
        };
    }
    if extension == "zip" {
        return of(stem, Naming::Zip, 0);
    }
    if let Some(number) = number(&extension, 3).filter(|number| *number > 0 && ending(stem).is_some()) {
        return of(stem, Naming::Numbered, number);
    }
    if let Some(number) = extension.strip_prefix('z').and_then(|digits| number(digits, 2))
        && number > 0
    {
        return of(stem, Naming::Zip, number);
    }
    if let Some(number) = extension.strip_prefix('r').and_then(|digits| number(digits, 2)) {
        return of(stem, Naming::Rar, number + 1);
    }
    of(name, Naming::Single, 0)
}

fn ending(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let ends = |ending: &&&str| lower.len() > ending.len() && lower.ends_with(**ending);
    ENDINGS.iter().find(ends).copied()
}

/// The volumes of an archive, opened, as one file.
#[derive(Debug, Clone)]
pub(crate) struct Volumes {
    parts: Arc<[Part]>,
    position: u64,
    /// Bytes that were read by all copies: how far unpacking is.
    read: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Part {
    file: File,
    /// Where its first byte is in the whole.
    start: u64,
    bytes: u64,
}

impl Volumes {
    /// Opens these files, none of them through a link, and no others that took their places.
    pub(crate) fn open(originals: &[Original]) -> Result<Self> {
        let mut start = 0;
        let mut parts = Vec::with_capacity(originals.len());
        for original in originals {
            let opened = open_regular(CWD, &original.path).and_then(|file| {
                let is_same = original.is(&file)?;
                Ok((file.metadata()?.len(), is_same, file))
            });
            let (bytes, is_same, file) = opened.map_err(|error| Reason::read(&error).of_archive())?;
            if !is_same {
                return Err(Reason::Replaced.of_archive());
            }
            parts.push(Part { file, start, bytes });
            start += bytes;
        }
        Ok(Self {
            parts: parts.into(),
            position: 0,
            read: Arc::default(),
        })
    }

    /// Bytes of all volumes.
    pub(crate) fn size(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.start + part.bytes)
    }

    /// How much of the archive was read, in thousandths. Some formats read parts of it twice.
    pub(crate) fn thousandths(&self) -> u16 {
        let read = u128::from(self.read.load(Ordering::Relaxed)) * 1000;
        let part = read / u128::from(self.size().max(1));
        u16::try_from(part.min(999)).unwrap_or(999)
    }

    /// How many volumes there are.
    pub(crate) fn count(&self) -> usize {
        self.parts.len()
    }

    /// Where volume `index` begins.
    pub(crate) fn start(&self, index: usize) -> Option<u64> {
        self.parts.get(index).map(|part| part.start)
    }

    /// Volume `index` alone.
    pub(crate) fn part(&self, index: usize) -> Volume {
        Volume {
            all: self.clone(),
            index,
            position: 0,
        }
    }

    /// Fills `buffer` from the position `at`.
    pub(crate) fn read_at(&self, mut at: u64, mut buffer: &mut [u8]) -> Result<()> {
        while !buffer.is_empty() {
            match self.read_some(at, buffer) {
                Ok(0) => return Err(Reason::damaged("it ends too early").of_archive()),
                Ok(read) => {
                    at += read as u64;
                    buffer = &mut buffer[read..];
                }
                Err(error) => return Err(Reason::read(&error).of_archive()),
            }
        }
        Ok(())
    }

    fn read_some(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let index = self.parts.partition_point(|part| part.start + part.bytes <= at);
        let Some(part) = self.parts.get(index) else {
            return Ok(0);
        };
        let left = usize::try_from(part.start + part.bytes - at).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let read = part.file.read_at(&mut buffer[..length], at - part.start)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Read for Volumes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read_some(self.position, buffer)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for Volumes {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = seek(self.position, self.size(), to)?;
        Ok(self.position)
    }
}

/// One volume as a file of its own.
#[derive(Debug)]
pub(crate) struct Volume {
    all: Volumes,
    index: usize,
    position: u64,
}

impl Read for Volume {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let part = &self.all.parts[self.index];
        let read = part.file.read_at(buffer, self.position)?;
        self.all.read.fetch_add(read as u64, Ordering::Relaxed);
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for Volume {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = seek(self.position, self.all.parts[self.index].bytes, to)?;
        Ok(self.position)
    }
}

fn seek(position: u64, end: u64, to: SeekFrom) -> io::Result<u64> {
    let position = match to {
        SeekFrom::Start(position) => Some(position),
        SeekFrom::End(offset) => end.checked_add_signed(offset),
        SeekFrom::Current(offset) => position.checked_add_signed(offset),
    };
    position.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
