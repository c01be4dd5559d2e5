//! The key that an SSH server has to have, by its fingerprint.

use std::{fmt, str::FromStr};

use data_encoding::{BASE64_NOPAD, HEXLOWER_PERMISSIVE};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::Sha256;

/// The fingerprint of a server's public key: `SHA256:base64` as OpenSSH prints it, or `sha-1=hex` and `md5=hex` as aria2
/// takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKeyFingerprint {
    /// SHA-256.
    Sha256([u8; 32]),
    /// SHA-1.
    Sha1([u8; 20]),
    /// MD5.
    Md5([u8; 16]),
}

/// The text is no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write the fingerprint of a host key: SHA256:… as ssh-keygen -lf prints it, sha-1=HEX or md5=HEX")]
pub struct InvalidFingerprint;

impl HostKeyFingerprint {
    /// The fingerprint of the public key `blob` (RFC 4253, section 6.6) as OpenSSH prints it.
    pub fn of(blob: &[u8]) -> Self {
        Self::Sha256(Sha256::digest(blob).into())
    }

    /// Whether it is that of the public key `blob`.
    pub fn is_of(&self, blob: &[u8]) -> bool {
        match self {
            Self::Sha256(digest) => Sha256::digest(blob)[..] == digest[..],
            Self::Sha1(digest) => Sha1::digest(blob)[..] == digest[..],
            Self::Md5(digest) => Md5::digest(blob)[..] == digest[..],
        }
    }
}

impl FromStr for HostKeyFingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        let text = text.trim();
        let base64 = |text: &str| BASE64_NOPAD.decode(text.trim_end_matches('=').as_bytes()).ok();
        let hex = |text: &str| HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
        let read = || {
            if let Some(digest) = text.strip_prefix("SHA256:") {
                return Some(Self::Sha256(base64(digest)?.try_into().ok()?));
            }
            let (algorithm, digest) = text.split_once('=')?;
            match algorithm.to_ascii_lowercase().as_str() {
                "sha-1" => Some(Self::Sha1(hex(digest)?.try_into().ok()?)),
                "md5" => Some(Self::Md5(hex(digest)?.try_into().ok()?)),
                _ => None,
            }
        };
        read().ok_or(InvalidFingerprint)
    }
}

impl fmt::Display for HostKeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(digest) => write!(f, "SHA256:{}", BASE64_NOPAD.encode(digest)),
            Self::Sha1(digest) => write!(f, "sha-1={}", HEXLOWER_PERMISSIVE.encode(digest)),
            Self::Md5(digest) => write!(f, "md5={}", HEXLOWER_PERMISSIVE.encode(digest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_they_are_printed() {
        let blob = b"a public key";
        let sha1 = Sha1::digest(blob).into();
        let md5 = Md5::digest(blob).into();
        for fingerprint in [
            HostKeyFingerprint::of(blob),
            HostKeyFingerprint::Sha1(sha1),
            HostKeyFingerprint::Md5(md5),
        ] {
            assert!(fingerprint.is_of(blob) && !fingerprint.is_of(b"another"));
            assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        }
        let upper = HostKeyFingerprint::Md5(md5).to_string().to_uppercase();
        assert_eq!(upper.parse(), Ok(HostKeyFingerprint::Md5(md5)));
    }

    #[test]
    fn what_is_no_fingerprint_is_refused() {
        for text in [
            "",
            "SHA256:",
            "SHA256:AAAA",
            "sha-1=00",
            "md5=zz",
            "sha-256=00",
            "ssh-ed25519 AAAA",
        ] {
            assert_eq!(text.parse::<HostKeyFingerprint>(), Err(InvalidFingerprint), "{text}");
        }
    }
}
