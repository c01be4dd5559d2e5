//! Checksums: parsing, printing and computing them.

use std::{fmt, io, str::FromStr};

use md5::Digest as _;

/// A hash algorithm that a checksum may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// MD5 (RFC 1321): against accidents only.
    Md5,
    /// SHA-1 (FIPS 180-4): against accidents only.
    Sha1,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// SHA-512 (FIPS 180-4).
    Sha512,
    /// CRC-32 (ISO 3309), as in zip and SFV files: against accidents only.
    Crc32,
    /// BLAKE3, 256 bit.
    Blake3,
}

impl Algorithm {
    /// Every algorithm, in the order that messages name them.
    pub const ALL: [Self; 6] = [
        Self::Md5,
        Self::Sha1,
        Self::Sha256,
        Self::Sha512,
        Self::Crc32,
        Self::Blake3,
    ];

    /// The canonical name (`sha-256`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha-1",
            Self::Sha256 => "sha-256",
            Self::Sha512 => "sha-512",
            Self::Crc32 => "crc32",
            Self::Blake3 => "blake3",
        }
    }

    /// Length of a digest in bytes.
    pub fn digest_bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 | Self::Blake3 => 32,
            Self::Sha512 => 64,
            Self::Crc32 => 4,
        }
    }

    /// The algorithm of this name, with or without hyphens and in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let plain: String = name
            .chars()
            .filter(|c| *c != '-' && *c != '_')
            .collect::<String>()
            .to_ascii_lowercase();
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name().replace('-', "") == plain)
    }
}

impl FromStr for Algorithm {
    type Err = InvalidChecksum;

    fn from_str(name: &str) -> Result<Self, InvalidChecksum> {
        let name = name.trim();
        Self::from_name(name).ok_or_else(|| InvalidChecksum::Algorithm(name.to_owned()))
    }
}

/// A checksum: `algorithm=hex`, such as `sha-256=9f86…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Checksum {
    algorithm: Algorithm,
    digest: Vec<u8>,
}

/// A text that is no checksum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChecksum {
    /// There is no `=`.
    #[error("a checksum is written algorithm=hex, such as sha-256=9f86d0…")]
    Form,
    /// The algorithm is not one of ours.
    #[error("unknown checksum algorithm \"{0}\"; known are md5, sha-1, sha-256, sha-512, crc32 and blake3")]
    Algorithm(String),
    /// The digest is not hexadecimal, or has another length than the algorithm's.
    #[error("a {algorithm} digest has {expected} hexadecimal digits; this has {found}")]
    Digest {
        /// The algorithm's name.
        algorithm: &'static str,
        /// Digits it needs.
        expected: usize,
        /// The invalid digest: a number of digits, or the note that they are not hexadecimal.
        found: String,
    },
}

impl Checksum {
    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The digest.
    pub fn digest(&self) -> &[u8] {
        &self.digest
    }

    /// The digest, lower-case hexadecimal.
    pub fn hex(&self) -> String {
        data_encoding::HEXLOWER.encode(&self.digest)
    }

    /// The checksum of everything `reader` yields.
    pub fn compute(algorithm: Algorithm, reader: &mut dyn io::Read) -> io::Result<Self> {
        let mut hasher = Hasher::new(algorithm);
        let mut buffer = vec![0; HASH_BUFFER_BYTES];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(hasher.finish()),
                Ok(n) => hasher.update(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Read size when hashing; fits a second-level cache.
const HASH_BUFFER_BYTES: usize = 256 * 1024;

impl FromStr for Checksum {
    type Err = InvalidChecksum;

    fn from_str(text: &str) -> Result<Self, InvalidChecksum> {
        let (name, hex) = text.trim().split_once('=').ok_or(InvalidChecksum::Form)?;
        let algorithm = name.parse::<Algorithm>()?;
        let hex = hex.trim();
        let refuse = |found: String| InvalidChecksum::Digest {
            algorithm: algorithm.name(),
            expected: algorithm.digest_bytes() * 2,
            found,
        };
        let digest = data_encoding::HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).map_err(|_| {
            refuse(format!(
                "{} characters that are not all hexadecimal",
                hex.chars().count()
            ))
        })?;
        if digest.len() != algorithm.digest_bytes() {
            return Err(refuse(hex.len().to_string()));
        }
        Ok(Self { algorithm, digest })
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.algorithm.name(), self.hex())
    }
}

/// A running hash.
enum Hasher {
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
    Crc32(crc32fast::Hasher),
    Blake3(Box<blake3::Hasher>),
}

impl Hasher {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Md5 => Self::Md5(md5::Md5::new()),
            Algorithm::Sha1 => Self::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => Self::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(sha2::Sha512::new()),
            Algorithm::Crc32 => Self::Crc32(crc32fast::Hasher::new()),
            Algorithm::Blake3 => Self::Blake3(Box::new(blake3::Hasher::new())),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(hasher) => hasher.update(bytes),
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
            Self::Crc32(hasher) => hasher.update(bytes),
            Self::Blake3(hasher) => {
                hasher.update(bytes);
            }
        }
    }

    fn finish(self) -> Checksum {
        let (algorithm, digest) = match self {
            Self::Md5(hasher) => (Algorithm::Md5, hasher.finalize().to_vec()),
            Self::Sha1(hasher) => (Algorithm::Sha1, hasher.finalize().to_vec()),
            Self::Sha256(hasher) => (Algorithm::Sha256, hasher.finalize().to_vec()),
            Self::Sha512(hasher) => (Algorithm::Sha512, hasher.finalize().to_vec()),
            Self::Crc32(hasher) => (Algorithm::Crc32, hasher.finalize().to_be_bytes().to_vec()),
            Self::Blake3(hasher) => (Algorithm::Blake3, hasher.finalize().as_bytes().to_vec()),
        };
        Checksum { algorithm, digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published test vectors for "abc".
    const ABC: [&str; 6] = [
        "md5=900150983cd24fb0d6963f7d28e17f72",
        "sha-1=a9993e364706816aba3e25717850c26c9cd0d89d",
        "sha-256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "sha-512=ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "crc32=352441c2",
        "blake3=6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
    ];

    #[test]
    fn published_vectors_hold_and_print_back() {
        for text in ABC {
            let wanted: Checksum = text.parse().unwrap();
            let found = Checksum::compute(wanted.algorithm(), &mut &b"abc"[..]).unwrap();
            assert_eq!(found, wanted);
            assert_eq!(found.to_string(), text);
        }
    }

    #[test]
    fn names_are_read_with_and_without_hyphen_and_in_any_case() {
        let hex = "A9993E364706816ABA3E25717850C26C9CD0D89D";
        let one: Checksum = format!("SHA1={hex}").parse().unwrap();
        assert_eq!(one, format!(" sha-1 = {hex}").parse().unwrap());
    }

    #[test]
    fn bad_texts_say_what_is_wrong() {
        let message = |text: &str| text.parse::<Checksum>().unwrap_err().to_string();
        assert!(message("900150983cd24fb0").contains("algorithm=hex"));
        assert!(message("sha3=00").contains("sha3"));
        assert!(message("md5=00").contains("32"));
        assert!(message("md5=zz0150983cd24fb0d6963f7d28e17f72").contains("not all hexadecimal"));
    }
}
