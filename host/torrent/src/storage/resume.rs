//! What is known about the files of a torrent after a restart.
//!
//! The record begins with a snapshot: the pieces that are there, where each file is, its size and time of change. While
//! the torrent runs, the number of each piece is appended after the piece was written. What is believed:
//!
//! - After an orderly stop the snapshot is complete and was written after the data was synced. A file that has another size
//!   or time than the snapshot says is hashed again.
//! - After a kill, within the same boot of the machine, everything that was written is in the page cache. A file that changed
//!   after the last piece was recorded, or that is gone, is hashed again.
//! - After a power cut everything is hashed again.
//!
//! So nothing is believed that is not verified, and nothing is downloaded again that is on the disk and was recorded.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use metainfo::{Info, InfoHash};
use transfer::{Failure, FileName};

use super::places::{Place, Places, Stamp};
use crate::bitfield::{Bitfield, bytes_of};

/// The first bytes; another digit is another format.
const MAGIC: &[u8; 12] = b"svcresume 1\n";

/// The largest record that is read: the snapshot of the most pieces and files with long names.
const MAX_RECORD_BYTES: u64 = 64 * 1024 * 1024;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// The directory that the places are in: in another one, another torrent could have the same names.
    pub(crate) directory: String,
    pub(crate) have: Bitfield,
    pub(crate) places: Places,
    pub(crate) stamps: Vec<Stamp>,
    /// The snapshot was written after everything was synced, and nothing was appended.
    pub(crate) is_clean: bool,
    /// Which boot of the machine it was written in, if known.
    pub(crate) boot: String,
    /// When a piece was last appended.
    pub(crate) written_nanos: u64,
}

/// Which files are to be hashed again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    Nothing,
    Files(Vec<usize>),
    Everything,
}

impl Record {
    /// What cannot be believed, given how the files are now and the current boot.
    pub(crate) fn doubt(&self, now: &[Stamp], boot: Option<&str>) -> Doubt {
        let differing = |differs: &dyn Fn(usize) -> bool| {
            let files: Vec<_> = (0..now.len()).filter(|index| differs(*index)).collect();
            if files.is_empty() {
                Doubt::Nothing
            } else {
                Doubt::Files(files)
            }
        };
        if self.is_clean {
            return differing(&|index| self.stamps.get(index) != now.get(index));
        }
        if self.boot.is_empty() || boot != Some(&self.boot) {
            return Doubt::Everything;
        }
        // A file that is gone has no time of change, and nothing of it is there.
        differing(&|index| now[index] == Stamp::default() || now[index].changed_nanos > self.written_nanos)
    }

    fn encode(&self, info_hash: InfoHash) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(info_hash.as_bytes());
        bytes.push(u8::from(self.is_clean));
        text(&self.boot, &mut bytes);
        text(&self.directory, &mut bytes);
        text(&self.places.top, &mut bytes);
        bytes.extend_from_slice(&self.have.len().to_be_bytes());
        bytes.extend_from_slice(self.have.as_bytes());
        let count = u32::try_from(self.places.files.len()).expect("torrents have fewer files");
        bytes.extend_from_slice(&count.to_be_bytes());
        for (place, stamp) in self.places.files.iter().zip(&self.stamps) {
            bytes.push(u8::from(place.is_finished) | u8::from(place.in_parts) << 1);
            text(place.renamed.as_deref().unwrap_or_default(), &mut bytes);
            bytes.extend_from_slice(&stamp.bytes.to_be_bytes());
            bytes.extend_from_slice(&stamp.changed_nanos.to_be_bytes());
        }
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Reads a record of the torrent; `None` if it is none, or damaged. Appended pieces end at the first damaged one.
    pub(crate) fn decode(bytes: &[u8], info_hash: InfoHash) -> Option<Self> {
        let mut reader = Reader { bytes, at: 0 };
        if reader.take(MAGIC.len())? != MAGIC || reader.take(20)? != info_hash.as_bytes() {
            return None;
        }
        let is_clean = reader.take(1)? == [1];
        let boot = reader.text()?;
        let directory = reader.text()?;
        let top = reader.text()?;
        let pieces = reader.number()?;
        let bits = reader.take(bytes_of(pieces))?;
        let mut have = Bitfield::from_bytes(bits, pieces)?;
        let count = reader.number()?;
        let (mut files, mut stamps) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let flags = reader.take(1)?[0];
            let renamed = Some(reader.text()?).filter(|path| !path.is_empty());
            files.push(Place {
                renamed,
                is_finished: flags & 1 != 0,
                in_parts: flags & 2 != 0,
            });
            stamps.push(Stamp {
                bytes: reader.long()?,
                changed_nanos: reader.long()?,
            });
        }
        let sum = crc32fast::hash(&bytes[..reader.at]);
        if reader.number()? != sum {
            return None;
        }
        let mut appended = 0;
        while let (Some(entry), Some(check)) = (reader.number(), reader.number()) {
            if check != check_of(entry) {
                break;
            }
            appended += 1;
            match entry.checked_sub(FINISHED) {
                Some(file) => {
                    if let Some(place) = files.get_mut(file as usize) {
                        place.is_finished = true;
                    }
                }
                None => drop(have.insert(entry)),
            }
        }
        Some(Self {
            directory,
            have,
            places: Places { top, files },
            stamps,
            is_clean: is_clean && appended == 0,
            boot,
            written_nanos: 0,
        })
    }
}

/// Appended numbers from here on are files that got their final name; there are fewer pieces and files than this.
const FINISHED: u32 = 1 << 31;

/// Tells a whole entry from one that a power cut truncated.
fn check_of(entry: u32) -> u32 {
    crc32fast::hash(&entry.to_be_bytes())
}

fn text(text: &str, into: &mut Vec<u8>) {
    let length = u32::try_from(text.len()).expect("names are short");
    into.extend_from_slice(&length.to_be_bytes());
    into.extend_from_slice(text.as_bytes());
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    fn long(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(u64::from_be_bytes(bytes))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }
}

/// The record on the disk.
#[derive(Debug)]
pub(crate) struct ResumeFile {
    path: PathBuf,
    info_hash: InfoHash,
    appending: Option<File>,
}

impl ResumeFile {
    pub(crate) fn new(directory: &Path, info_hash: InfoHash) -> Self {
        Self {
            path: directory.join(format!("{info_hash}.resume")),
            info_hash,
            appending: None,
        }
    }

    /// Reads the record. A damaged one counts as none: everything is then hashed or downloaded again.
    pub(crate) fn read(&self) -> Option<Record> {
        let metadata = fs::metadata(&self.path)
            .ok()
            .filter(|metadata| metadata.len() <= MAX_RECORD_BYTES)?;
        let bytes = fs::read(&self.path).ok()?;
        let mut record = Record::decode(&bytes, self.info_hash)?;
        let written = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        record.written_nanos = u64::try_from(written.as_nanos()).ok()?;
        Some(record)
    }

    /// Reads the record of a torrent that is stored there. One of another directory counts as none: what is there does not
    /// belong to the torrent. One of another name does, too, unless the very files that it tells of have this name now:
    /// then they were renamed as a whole.
    pub(crate) fn read_for(&self, info: &Info, directory: &Path, name: Option<&FileName>) -> Option<Record> {
        let mut record = self.read().filter(|record| {
            let counts = (record.have.len(), record.places.files.len());
            counts == (info.piece_count(), info.files().len()) && record.directory == directory.to_string_lossy()
        })?;
        let Some(name) = name.filter(|name| name.as_str() != record.places.top) else {
            return Some(record);
        };
        name.as_str().clone_into(&mut record.places.top);
        let is_whole = record.is_clean && record.stamps.iter().any(|stamp| stamp.bytes > 0);
        (is_whole && record.places.stamps(info, directory) == record.stamps).then_some(record)
    }

    /// Replaces the record. For a clean one, the caller has synced the files.
    pub(crate) fn write(&mut self, record: &Record) -> Result<(), private_files::FileError> {
        self.appending = None;
        if let Some(directory) = self.path.parent() {
            private_files::make_directory(directory)?;
        }
        private_files::replace(&self.path, &record.encode(self.info_hash))
    }

    /// Records a piece that was written.
    pub(crate) fn append_piece(&mut self, piece: u32) -> io::Result<()> {
        self.append(piece)
    }

    /// Records that a file got its final name.
    pub(crate) fn append_finished(&mut self, file: usize) -> io::Result<()> {
        self.append(FINISHED + u32::try_from(file).expect("torrents have fewer files"))
    }

    fn append(&mut self, entry: u32) -> io::Result<()> {
        let file = match &mut self.appending {
            Some(file) => file,
            None => self.appending.insert(OpenOptions::new().append(true).open(&self.path)?),
        };
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&entry.to_be_bytes());
        bytes[4..].copy_from_slice(&check_of(entry).to_be_bytes());
        file.write_all(&bytes)
    }

    pub(crate) fn remove(&mut self) -> Result<(), Failure> {
        self.appending = None;
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Failure::disk("remove", &self.path, &error)),
            _ => Ok(()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: InfoHash = InfoHash([7; 20]);

    fn record(is_clean: bool) -> Record {
        let mut have = Bitfield::new(20);
        have.insert(3);
        Record {
            directory: "/downloads".to_owned(),
            have,
            places: Places {
                top: "Top".to_owned(),
                files: vec![
                    Place::default(),
                    Place {
                        renamed: Some("b/c".to_owned()),
                        is_finished: true,
                        in_parts: false,
                    },
                ],
            },
            stamps: vec![
                Stamp::default(),
                Stamp {
                    bytes: 9,
                    changed_nanos: 50,
                },
            ],
            is_clean,
            boot: "boot".to_owned(),
            written_nanos: 0,
        }
    }

    #[test]
    fn pieces_are_appended_and_a_truncated_one_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = ResumeFile::new(directory.path(), HASH);
        assert_eq!(file.read(), None);
        file.write(&record(true)).unwrap();
        assert!(file.read().unwrap().is_clean);
        file.append_piece(5).unwrap();
        file.append_finished(0).unwrap();
        file.append_piece(6).unwrap();
        let read = file.read().unwrap();
        assert_eq!(read.have.iter().collect::<Vec<_>>(), [3, 5, 6]);
        assert!(read.places.files[0].is_finished && !read.is_clean);
        let bytes = fs::read(&file.path).unwrap();
        for lost in 1..=8 {
            let read = Record::decode(&bytes[..bytes.len() - lost], HASH).unwrap();
            assert_eq!(read.have.iter().collect::<Vec<_>>(), [3, 5], "{lost} bytes lost");
        }
        assert_eq!(Record::decode(&bytes, InfoHash([8; 20])), None, "another torrent");
    }

    #[test]
    fn a_damaged_snapshot_is_none() {
        let bytes = record(true).encode(HASH);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Record::decode(&damaged, HASH), None, "byte {at}");
            assert_eq!(Record::decode(&bytes[..at], HASH), None, "cut at {at}");
        }
    }

    #[test]
    fn what_changed_is_doubted() {
        let record = Record {
            written_nanos: 100,
            ..record(false)
        };
        let stamp = |changed_nanos| Stamp {
            bytes: 1,
            changed_nanos,
        };
        assert_eq!(record.doubt(&[stamp(99), stamp(100)], Some("boot")), Doubt::Nothing);
        assert_eq!(
            record.doubt(&[stamp(99), stamp(101)], Some("boot")),
            Doubt::Files(vec![1])
        );
        assert_eq!(
            record.doubt(&[stamp(99), Stamp::default()], Some("boot")),
            Doubt::Files(vec![1]),
            "it is gone"
        );
        assert_eq!(record.doubt(&[stamp(99), stamp(100)], Some("other")), Doubt::Everything);
        assert_eq!(record.doubt(&[stamp(99), stamp(100)], None), Doubt::Everything);
        let clean = Record {
            is_clean: true,
            ..record
        };
        assert_eq!(clean.doubt(&clean.stamps, None), Doubt::Nothing);
        assert_eq!(
            clean.doubt(&[Stamp::default(), stamp(50)], Some("boot")),
            Doubt::Files(vec![1])
        );
    }
}
