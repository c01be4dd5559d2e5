//! Lines of a stream, each of bounded length. Pure.

/// The part of a stream that has no line end yet, and the lines before it.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    held: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Everything before was searched for a line end.
    searched: usize,
}

/// A line is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    /// Adds bytes of the stream. The caller takes all lines before it adds more, so that no more is held than one line and
    /// one read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The next complete line without its end, which is LF or CR LF; `None` if more bytes are needed.
    pub(crate) fn take(&mut self, limit: usize) -> Result<Option<&[u8]>, TooLong> {
        let end = self.held[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end.map(|end| self.searched + end) else {
            self.searched = self.held.len();
            return if self.held.len() - self.start > limit {
                Err(TooLong)
            } else {
                Ok(None)
            };
        };
        let line = &self.held[self.start..end];
        if line.len() > limit {
            return Err(TooLong);
        }
        (self.start, self.searched) = (end + 1, end + 1);
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// What follows the last line end.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.held[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(chunks: &[&[u8]], limit: usize) -> (Vec<Vec<u8>>, bool) {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for chunk in chunks {
            lines.push(chunk);
            loop {
                match lines.take(limit) {
                    Ok(Some(line)) => found.push(line.to_vec()),
                    Ok(None) => break,
                    Err(TooLong) => return (found, true),
                }
            }
        }
        (found, false)
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_the_stream_is_cut(
            text in "[ab\r\n]{0,40}", cuts in prop::collection::vec(0usize..41, 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let whole = all(&[bytes], 100);
            prop_assert_eq!(&all(&chunks, 100), &whole);
            prop_assert_eq!(whole.0.len(), text.matches('\n').count());
        }

        #[test]
        fn a_line_is_refused_exactly_if_it_is_too_long(length in 0usize..20, limit in 0usize..20, has_end: bool) {
            let mut bytes = vec![b'x'; length];
            if has_end {
                bytes.push(b'\n');
            }
            prop_assert_eq!(all(&[&bytes], limit).1, length > limit);
        }
    }
}
