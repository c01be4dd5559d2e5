//! What a file of a test holds: any stretch of it can be computed, so that large files need no memory.

use std::{
    fs::File,
    io::{self, Read},
    ops::Range,
    path::Path,
    sync::Arc,
};

/// Read at a time when comparing a file.
const COMPARE_BYTES: usize = 256 * 1024;

/// The bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Seeded { seed: u64, len: u64 },
    Bytes(Arc<[u8]>),
}

impl Content {
    /// `len` bytes that look random and follow from `seed`. A longer content of the same seed starts with the shorter.
    pub fn seeded(seed: u64, len: u64) -> Self {
        Self(Kind::Seeded { seed, len })
    }

    /// Exactly these bytes.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Kind::Bytes(bytes.into().into()))
    }

    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Kind::Seeded { len, .. } => *len,
            Kind::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` with the bytes from `offset` on, which must all exist.
    pub fn fill(&self, offset: u64, buffer: &mut [u8]) {
        match &self.0 {
            Kind::Seeded { seed, .. } => fill_seeded(*seed, offset, buffer),
            Kind::Bytes(bytes) => {
                let start = index(offset);
                buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
            }
        }
    }

    /// The bytes of `range`.
    pub fn slice(&self, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; index(range.end - range.start)];
        self.fill(range.start, &mut bytes);
        bytes
    }

    /// All bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.slice(0..self.len())
    }

    /// Where the file at `path` differs from this content; `None` if it is identical.
    pub fn difference(&self, path: &Path) -> io::Result<Option<String>> {
        let mut file = File::open(path)?;
        let found_len = file.metadata()?.len();
        let (mut found, mut wanted) = (vec![0; COMPARE_BYTES], vec![0; COMPARE_BYTES]);
        let common = found_len.min(self.len());
        let mut offset = 0;
        while offset < common {
            let n = index((common - offset).min(COMPARE_BYTES as u64));
            file.read_exact(&mut found[..n])?;
            self.fill(offset, &mut wanted[..n]);
            if let Some(at) = (0..n).find(|i| found[*i] != wanted[*i]) {
                return Ok(Some(format!("byte {} differs (of {})", offset + at as u64, self.len())));
            }
            offset += n as u64;
        }
        Ok((found_len != self.len()).then(|| format!("{found_len} bytes instead of {}", self.len())))
    }
}

/// Tests run where every length fits.
fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("a test's content fits the address space")
}

fn fill_seeded(seed: u64, offset: u64, buffer: &mut [u8]) {
    let mut filled = 0;
    while filled < buffer.len() {
        let position = offset + filled as u64;
        let word = splitmix(seed, position / 8).to_le_bytes();
        let skip = index(position % 8);
        let n = (8 - skip).min(buffer.len() - filled);
        buffer[filled..filled + n].copy_from_slice(&word[skip..skip + n]);
        filled += n;
    }
}

/// The `n`th output of splitmix64, which needs no outputs before it.
pub(crate) fn splitmix(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_stretch_agrees_with_the_whole() {
        let content = Content::seeded(7, 1000);
        let whole = content.to_vec();
        for (start, end) in [(0, 1000), (1, 9), (7, 8), (8, 16), (333, 998), (999, 1000), (5, 5)] {
            let (from, to) = (usize::try_from(start).unwrap(), usize::try_from(end).unwrap());
            assert_eq!(content.slice(start..end), whole[from..to]);
        }
        assert_eq!(Content::seeded(7, 100).to_vec(), whole[..100]);
        assert_ne!(Content::seeded(8, 1000).to_vec(), whole);
    }

    #[test]
    fn a_difference_is_found_and_told() {
        let path = std::env::temp_dir().join(format!("support-content-{}", std::process::id()));
        let content = Content::seeded(1, 700_000);
        let told = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            content.difference(&path).unwrap()
        };
        let mut bytes = content.to_vec();
        assert_eq!(told(&bytes), None);
        assert!(
            told(&bytes[..600_000])
                .unwrap()
                .contains("600000 bytes instead of 700000")
        );
        bytes[650_001] ^= 1;
        assert!(told(&bytes).unwrap().contains("byte 650001 differs"));
        std::fs::remove_file(&path).unwrap();
    }
}
