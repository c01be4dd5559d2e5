//! Which bytes of a torrent are in which file. Pure.

use metainfo::Info;

/// Where the files lie in the torrent. What lies between them is padding.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Start and length of each file, in order.
    files: Box<[(u64, u64)]>,
}

/// A range of the torrent that lies in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) file: usize,
    pub(crate) file_offset: u64,
    pub(crate) torrent_offset: u64,
    pub(crate) length: u64,
}

impl Layout {
    pub(crate) fn of(info: &Info) -> Self {
        Self::new(info.files().iter().map(|file| (file.offset(), file.length())))
    }

    pub(crate) fn new(files: impl Iterator<Item = (u64, u64)>) -> Self {
        Self { files: files.collect() }
    }

    /// The parts of `offset..offset + length` that lie in files, in order.
    pub(crate) fn extents(&self, offset: u64, length: u64) -> impl Iterator<Item = Extent> + '_ {
        let end = offset + length;
        let first = self.files.partition_point(|(start, length)| start + length <= offset);
        let touched = (first..self.files.len()).take_while(move |index| self.files[*index].0 < end);
        let extents = touched.map(move |file| {
            let (start, length) = self.files[file];
            let begin = start.max(offset);
            Extent {
                file,
                file_offset: begin - start,
                torrent_offset: begin,
                length: (start + length).min(end).saturating_sub(begin),
            }
        });
        extents.filter(|extent| extent.length > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn extents_are_the_bytes_of_files_in_the_range(
            sizes in prop::collection::vec((0_u64..20, 0_u64..5), 0..8),
            offset in 0_u64..100,
            length in 0_u64..100,
        ) {
            let mut at = 0;
            let mut files = Vec::new();
            let mut bytes = Vec::new();
            for (index, (size, padding)) in sizes.into_iter().enumerate() {
                files.push((at, size));
                bytes.extend((0..size).map(|byte| Some((index, byte))));
                bytes.extend((0..padding).map(|_| None));
                at += size + padding;
            }
            let layout = Layout::new(files.into_iter());
            let mut found = Vec::new();
            for extent in layout.extents(offset, length) {
                prop_assert!(extent.length > 0);
                for byte in 0..extent.length {
                    found.push((extent.torrent_offset + byte, (extent.file, extent.file_offset + byte)));
                }
            }
            let expected: Vec<_> = (0_u64..).zip(bytes)
                .filter(|(at, _)| (offset..offset + length).contains(at))
                .filter_map(|(at, byte)| byte.map(|byte| (at, byte)))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
