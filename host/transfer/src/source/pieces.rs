//! Hashes of a file's pieces: they say which bytes are wrong, so that only those are fetched again.

use std::{fmt, io, ops::Range, str::FromStr};

use data_encoding::BASE64;

use crate::{
    range_set::{ByteRange, RangeSet},
    source::checksum::{Algorithm, Checksum, InvalidChecksum},
};

/// The most bytes that all digests of a file may have together: 26,214 pieces with SHA-1, which is a DVD image in pieces
/// of 256 KiB. With their base64 text, a request stays below the 1 MiB that a service takes.
pub const MAX_DIGEST_BYTES: usize = 512 * 1024;

/// The hash of each piece of a file. All pieces are equally long, except the last one, which may be shorter. Written
/// `algorithm=bytes:base64`, with the digests one after the other, such as `sha-1=262144:4bTS…`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PieceHashes {
    algorithm: Algorithm,
    piece_bytes: u64,
    /// One after the other; never empty.
    digests: Box<[u8]>,
}

/// Why something is no list of piece hashes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPieces {
    /// The text has another form.
    #[error("piece hashes are written algorithm=bytes:base64, such as sha-1=262144:4bTS…")]
    Form,
    /// The algorithm is not one of ours.
    #[error(transparent)]
    Algorithm(#[from] InvalidChecksum),
    /// A piece has no bytes.
    #[error("the length of a piece is 0; the least is 1")]
    NoLength,
    /// The digests do not fill a whole number of hashes.
    #[error("{found} bytes of {algorithm} digests are no whole number of pieces; each has {expected}")]
    Digests {
        /// The algorithm's name.
        algorithm: &'static str,
        /// Bytes of one digest.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// There are more than [`MAX_DIGEST_BYTES`].
    #[error("the piece hashes have {0} bytes; the limit is {MAX_DIGEST_BYTES}")]
    TooMany(usize),
}

impl PieceHashes {
    /// The hashes of pieces of this length, one after the other.
    pub fn new(algorithm: Algorithm, piece_bytes: u64, digests: Vec<u8>) -> Result<Self, InvalidPieces> {
        if piece_bytes == 0 {
            return Err(InvalidPieces::NoLength);
        }
        if digests.len() > MAX_DIGEST_BYTES {
            return Err(InvalidPieces::TooMany(digests.len()));
        }
        let expected = algorithm.digest_bytes();
        if digests.is_empty() || !digests.len().is_multiple_of(expected) {
            return Err(InvalidPieces::Digests {
                algorithm: algorithm.name(),
                expected,
                found: digests.len(),
            });
        }
        Ok(Self {
            algorithm,
            piece_bytes,
            digests: digests.into(),
        })
    }

    /// Their algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The length of each piece but the last, in bytes.
    pub fn piece_bytes(&self) -> u64 {
        self.piece_bytes
    }

    /// The number of pieces; never 0.
    pub fn count(&self) -> u64 {
        (self.digests.len() / self.algorithm.digest_bytes()) as u64
    }

    /// Memory of the digests.
    pub fn digest_bytes(&self) -> usize {
        self.digests.len()
    }

    /// Whether a file of `total` bytes has as many pieces. One without bytes has none.
    pub fn fits(&self, total: u64) -> bool {
        total.div_ceil(self.piece_bytes) == self.count()
    }

    /// The ranges of the pieces that do not have their hash, of everything that `reader` yields. It must yield as many
    /// bytes as [`PieceHashes::fits`] was asked for.
    pub fn wrong(&self, reader: &mut dyn io::Read) -> io::Result<RangeSet> {
        let mut wrong = RangeSet::new();
        let mut start = 0;
        for digest in self.digests.chunks_exact(self.algorithm.digest_bytes()) {
            let mut piece = CountingReader {
                reader: &mut *reader,
                left: self.piece_bytes,
            };
            let found = Checksum::compute(self.algorithm, &mut piece)?;
            let end = start + (self.piece_bytes - piece.left);
            if found.digest() != digest {
                wrong.insert(ByteRange::new(start, end));
            }
            start = end;
        }
        Ok(wrong)
    }

    /// The pieces that a range lies in, as numbers from 0.
    pub fn pieces_of(&self, range: ByteRange) -> Range<u64> {
        range.start / self.piece_bytes..range.end.div_ceil(self.piece_bytes)
    }
}

/// Yields at most `left` bytes.
struct CountingReader<'a> {
    reader: &'a mut dyn io::Read,
    left: u64,
}

impl io::Read for CountingReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let read = self.reader.read(&mut bytes[..room])?;
        self.left -= read as u64;
        Ok(read)
    }
}

impl FromStr for PieceHashes {
    type Err = InvalidPieces;

    fn from_str(text: &str) -> Result<Self, InvalidPieces> {
        let (name, rest) = text.trim().split_once('=').ok_or(InvalidPieces::Form)?;
        let (bytes, digests) = rest.split_once(':').ok_or(InvalidPieces::Form)?;
        let algorithm = name.parse::<Algorithm>()?;
        let piece_bytes = bytes.parse().map_err(|_| InvalidPieces::Form)?;
        if digests.len() > BASE64.encode_len(MAX_DIGEST_BYTES) {
            return Err(InvalidPieces::TooMany(digests.len() / 4 * 3));
        }
        let digests = BASE64.decode(digests.as_bytes()).map_err(|_| InvalidPieces::Form)?;
        Self::new(algorithm, piece_bytes, digests)
    }
}

impl fmt::Display for PieceHashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bytes) = (self.algorithm.name(), self.piece_bytes);
        write!(f, "{name}={bytes}:{}", BASE64.encode(&self.digests))
    }
}

impl fmt::Debug for PieceHashes {
    /// Without the digests, which may be half a megabyte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, bytes, name) = (self.count(), self.piece_bytes, self.algorithm.name());
        write!(f, "PieceHashes({count} of {bytes} bytes, {name})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hashes(bytes: &[u8], piece: usize) -> PieceHashes {
        let mut digests = Vec::new();
        for piece in bytes.chunks(piece) {
            digests.extend_from_slice(Checksum::compute(Algorithm::Sha1, &mut &*piece).unwrap().digest());
        }
        PieceHashes::new(Algorithm::Sha1, piece as u64, digests).unwrap()
    }

    #[test]
    fn bad_lists_say_what_is_wrong() {
        let message = |text: &str| text.parse::<PieceHashes>().unwrap_err().to_string();
        for text in ["", "sha-1", "sha-1=4", "sha-1=x:AAAA", "sha-1=4:!"] {
            assert!(message(text).contains("algorithm=bytes:base64"), "{text}");
        }
        assert!(message("sha-9=4:AAAA").contains("unknown checksum algorithm"));
        assert!(message("sha-1=0:AAAA").contains("the least is 1"));
        assert!(message("sha-1=4:AAAA").contains("3 bytes of sha-1 digests"));
        assert!(message("sha-1=4:").contains("0 bytes"));
        let many = BASE64.encode(&vec![0; MAX_DIGEST_BYTES + 20]);
        assert!(message(&format!("sha-1=4:{many}")).contains("limit is 524288"));
    }

    proptest! {
        #[test]
        fn exactly_the_changed_pieces_are_wrong(
            bytes in proptest::collection::vec(any::<u8>(), 1..200),
            piece in 1usize..40,
            changed in proptest::collection::vec(any::<proptest::sample::Index>(), 0..4),
        ) {
            let pieces = hashes(&bytes, piece);
            prop_assert!(pieces.fits(bytes.len() as u64));
            prop_assert_eq!(pieces.to_string().parse(), Ok(pieces.clone()));
            let mut other = bytes.clone();
            let mut expected = RangeSet::new();
            for index in changed {
                let at = index.index(bytes.len());
                other[at] = !bytes[at];
                let start = at / piece * piece;
                expected.insert(ByteRange::new(start as u64, (start + piece).min(bytes.len()) as u64));
            }
            prop_assert_eq!(pieces.wrong(&mut &other[..]).unwrap(), expected);
        }
    }
}
