//! Public keys, in minisign's form.

use std::{fmt, str::FromStr};

use data_encoding::{BASE64, HEXUPPER};

use crate::Digest;

/// The bytes of minisign's public key: the algorithm `Ed`, a random identifier of 8 bytes, and an Ed25519 point.
const KEY_BYTES: usize = 42;

/// The only supported algorithm.
const ALGORITHM: &[u8] = b"Ed";

/// A minisign public key. Its text is the second line of minisign's file, `RW…`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; KEY_BYTES]);

/// The identifier of a key, for display. It is not unique and proves nothing: two keys may have the same one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; 8]);

/// A text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a public key is the second line of minisign's file, 56 characters that begin with RW")]
pub struct InvalidKey;

impl PublicKey {
    /// Its identifier.
    pub fn id(&self) -> KeyId {
        let mut id = [0; 8];
        id.copy_from_slice(&self.0[2..10]);
        KeyId(id)
    }

    /// The Ed25519 point. Two keys with one point are one key, whatever their identifiers say.
    pub fn point(&self) -> &[u8] {
        &self.0[10..]
    }

    /// The fingerprint that users compare: the first 16 bytes of the whole key's SHA-256, in groups of four digits.
    pub fn fingerprint(&self) -> String {
        let digits = Digest::of(&self.0).to_string()[..32].to_uppercase();
        let groups: Vec<_> = digits.as_bytes().chunks(4).map(String::from_utf8_lossy).collect();
        groups.join(" ")
    }

    /// Whether `signature` is this key's, over `message`. Only signatures of the message's hash count, as minisign
    /// makes them today; the older kind cannot be distinguished from a signature of a message that looks like a hash.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &minisign_verify::Signature) -> bool {
        let key = minisign_verify::PublicKey::from_base64(&self.to_string());
        key.is_ok_and(|key| key.verify(message, signature, false).is_ok())
    }
}

impl FromStr for PublicKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let bytes = BASE64.decode(text.as_bytes()).map_err(|_| InvalidKey)?;
        let bytes: [u8; KEY_BYTES] = bytes.try_into().map_err(|_| InvalidKey)?;
        bytes.starts_with(ALGORITHM).then_some(Self(bytes)).ok_or(InvalidKey)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl KeyId {
    pub(crate) fn new(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for KeyId {
    /// As minisign prints it: a little-endian number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.0;
        bytes.reverse();
        f.write_str(&HEXUPPER.encode(&bytes))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

plugin_package::text_in_json!(PublicKey);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_minisign_writes_it() {
        let text = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
        let key: PublicKey = text.parse().unwrap();
        assert_eq!(key.to_string(), text);
        assert_eq!(key.id().to_string(), "E7620F1842B4E81F");
        assert_eq!(key.fingerprint().len(), 39);
        assert!(key.fingerprint().split(' ').all(|group| group.len() == 4));
        for bad in ["", "RWQf6LRC", &text[1..], &text.replace("RW", "AA"), "not a key"] {
            assert_eq!(bad.parse::<PublicKey>(), Err(InvalidKey), "{bad}");
        }
    }
}
