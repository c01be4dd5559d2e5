//! Resumes partial files of other programs: aria2's control files list the received bytes; `--continue` means that the
//! whole file is a received prefix.

use std::{
    fs,
    path::{Path, PathBuf},
};

use aria2::{
    files::{Entry, control_file},
    option::Options,
};
use transfer::{
    ByteRange, Origin, PartFile, RangeSet, SafeUrl,
    part_file::{JOURNAL_SUFFIX, PART_SUFFIX},
};

/// The largest control file: that of a terabyte in pieces of aria2's minimum size.
const MAX_CONTROL_BYTES: u64 = 1024 * 1024;

/// An existing file that is resumed without proof that it is incomplete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Borrowed {
    path: PathBuf,
    length: u64,
}

/// Converts a partial file into one that a run resumes. The name must be known in advance: from `--out`, or the plain
/// last segment of the URI.
pub(super) fn take(entry: &Entry, usual: &Options) -> Option<Borrowed> {
    let url = SafeUrl::parse(entry.uris.first()?).ok()?;
    let last = || {
        url.as_url()
            .path()
            .rsplit('/')
            .next()
            .filter(|name| !name.contains('%'))
    };
    let name = entry.options.get("out").or_else(last).filter(|name| !name.is_empty())?;
    let of = |name: &str| entry.options.get(name).or_else(|| usual.get(name)).unwrap_or_default();
    let path = Path::new(usual.get("dir").unwrap_or_default())
        .join(of("dir"))
        .join(name);
    let length = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?.len();
    let control = control_file(&path);
    if !control.exists() {
        let is_to_continue = of("continue") == "true" && length > 0;
        let done = std::iter::once(ByteRange::new(0, length)).collect();
        let origin = Origin {
            lent_bytes: Some(length),
            ..Origin::at(&url)
        };
        let is_taken = is_to_continue && PartFile::take_over(&path, &origin, &done).is_ok();
        return is_taken.then_some(Borrowed { path, length });
    }
    let (total, mut done) = read(&control)?;
    done.remove(ByteRange::new(length, u64::MAX));
    let origin = Origin {
        total_bytes: Some(total),
        ..Origin::at(&url)
    };
    if PartFile::take_over(&path, &origin, &done).is_ok() {
        // The part file's journal now has its content.
        let _stays_and_says_too_little = fs::remove_file(control);
    }
    None
}

impl Borrowed {
    /// Restores the file if the run failed: it may have been complete.
    pub(super) fn give_back(&self) {
        let part = beside(&self.path, PART_SUFFIX);
        let is_as_it_was = fs::metadata(&part).is_ok_and(|metadata| metadata.len() == self.length);
        if is_as_it_was && !self.path.exists() && fs::rename(&part, &self.path).is_ok() {
            let _stale = fs::remove_file(beside(&self.path, JOURNAL_SUFFIX));
        }
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn read(path: &Path) -> Option<(u64, RangeSet)> {
    let length = fs::metadata(path).ok()?.len();
    let bytes = (length <= MAX_CONTROL_BYTES).then(|| fs::read(path).ok()).flatten()?;
    control(&bytes)
}

/// Parses the file size and complete pieces from aria2's control file version 1. Control files of torrents are
/// rejected.
fn control(bytes: &[u8]) -> Option<(u64, RangeSet)> {
    let mut rest = bytes;
    let mut take = |count: usize| {
        let (taken, behind) = rest.split_at_checked(count)?;
        rest = behind;
        Some(taken)
    };
    let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let (version, extension, hash_bytes) = (number(take(2)?), number(take(4)?), number(take(4)?));
    let (piece_bytes, total) = (number(take(4)?), number(take(8)?));
    let (_uploaded, field_bytes) = (take(8)?, number(take(4)?));
    let pieces = total
        .checked_add(piece_bytes)?
        .checked_sub(1)?
        .checked_div(piece_bytes)?;
    if (version, extension, hash_bytes) != (1, 0, 0) || field_bytes != pieces.div_ceil(8) {
        return None;
    }
    let field = take(usize::try_from(field_bytes).ok()?)?;
    let is_there = |piece: &u64| usize::try_from(piece / 8).is_ok_and(|byte| field[byte] & (0x80 >> (piece % 8)) != 0);
    let range = |piece: u64| ByteRange::new(piece * piece_bytes, ((piece + 1) * piece_bytes).min(total));
    Some((total, (0..pieces).filter(is_there).map(range).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The control file of 2.5 MiB in pieces of 1 MiB, of which the first and last are complete.
    fn example() -> Vec<u8> {
        let numbers = [
            &[0, 1][..],
            &[0; 8],
            &[0, 0x10, 0, 0],
            &[0, 0, 0, 0, 0, 0x28, 0, 0],
            &[0; 8],
            &[0, 0, 0, 1],
        ];
        [numbers.concat(), vec![0b1010_0000, 0, 0, 0, 0]].concat()
    }

    #[test]
    fn a_control_file_says_which_bytes_are_there() {
        let (total, done) = control(&example()).unwrap();
        assert_eq!(total, 0x28_0000);
        let ranges: Vec<_> = done.iter().collect();
        assert_eq!(ranges, [ByteRange::new(0, 1 << 20), ByteRange::new(2 << 20, 0x28_0000)]);
        let mut of_torrent = example();
        of_torrent[9] = 20;
        assert_eq!(control(&of_torrent), None);
        assert_eq!(control(&example()[..34]), None);
    }

    proptest! {
        #[test]
        fn nothing_beyond_the_file_is_believed(bytes in prop::collection::vec(any::<u8>(), 0..80), at in 0_usize..39, new: u8) {
            let mut changed = example();
            changed[at] = new;
            for bytes in [bytes, changed] {
                if let Some((total, done)) = control(&bytes) {
                    prop_assert!(done.iter().all(|range| range.end <= total));
                }
            }
        }
    }
}
