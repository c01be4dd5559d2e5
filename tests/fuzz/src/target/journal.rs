//! What a run left beside its part file, read by the run that continues it.

use std::{fs, io::Write as _};

use transfer::{ByteRange, Claim, FileName, OnConflict, Origin, PartFile, RangeSet, SafeUrl};

use super::Target;

/// The source that the part file is of; the journals of the corpus name it, too.
const URL: &str = "http://127.0.0.1:18999/f.bin";

const PART_BYTES: u64 = 64 * 1024;

/// Bytes of a record before its checksum.
const RECORD_BYTES: usize = 17;

/// A journal: as it is, or, if the first byte is odd, records in good frames behind those of a good journal.
pub(super) fn journal() -> Target {
    let origin = Origin::at(&SafeUrl::parse(URL).expect("it is a URL"));
    let name = FileName::sanitise("f.bin");
    Box::new(move |data| {
        let directory = tempfile::tempdir().expect("there is room for temporary files");
        let directory = directory.path();
        let [part, journal] = ["f.bin.svcpart", "f.bin.svcpart.journal"].map(|name| directory.join(name));
        let content = vec![b'x'; usize::try_from(PART_BYTES).expect("it is small")];
        match data.split_first() {
            Some((kind, records)) if kind % 2 == 1 => {
                let begun = directory.join("f.bin");
                fs::write(&begun, content).expect("a temporary directory is writable");
                let done = RangeSet::from_iter([ByteRange::new(0, PART_BYTES / 2)]);
                PartFile::take_over(&begun, &origin, &done).expect("an ordinary file can be taken over");
                let mut file = fs::OpenOptions::new().append(true).open(&journal).expect("it is there");
                for record in records.chunks_exact(RECORD_BYTES) {
                    let sum = crc32fast::hash(record).to_le_bytes();
                    file.write_all(&[record, &sum[..]].concat()).expect("there is room");
                }
            }
            _ => {
                fs::write(&part, content).expect("a temporary directory is writable");
                fs::write(&journal, data).expect("a temporary directory is writable");
            }
        }
        let claim = Claim {
            directory,
            name: &name,
            on_conflict: OnConflict::Rename,
            source: &origin.source,
            adopt: true,
        };
        if let Ok(Some((_part, begun))) = PartFile::find_begun(&claim) {
            let end = begun.done.iter().map(|range| range.end).max().unwrap_or(0);
            assert!(end <= PART_BYTES, "bytes are believed that are not there: {begun:?}");
        }
    })
}
