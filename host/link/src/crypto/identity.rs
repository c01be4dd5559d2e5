//! The long-term key of a device, and what is accepted as one.

use std::fmt;

use data_encoding::HEXLOWER;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use ring::digest::{SHA256, digest};

/// The name of a device: lower-case hexadecimal SHA-256 of its public key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Reads 64 lower-case hexadecimal digits.
    pub fn read(text: &str) -> Option<Self> {
        is_lower_hex(text, 64).then(|| Self(text.to_owned()))
    }

    fn of(public: &[u8; 32]) -> Self {
        Self(HEXLOWER.encode(digest(&SHA256, public).as_ref()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve digits, the name that the device announces.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether `text` is exactly `digits` lower-case hexadecimal digits.
pub(crate) fn is_lower_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The private half.
pub struct Identity {
    key: SigningKey,
    fingerprint: Fingerprint,
}

impl Identity {
    /// The key of a seed.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        let fingerprint = Fingerprint::of(key.verifying_key().as_bytes());
        Self { key, fingerprint }
    }

    /// The public key.
    pub fn public(&self) -> [u8; 32] {
        self.key.verifying_key().to_bytes()
    }

    /// The name of this device.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Signs.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

/// The public key of another device. It can only be made of canonical bytes of a point that is not of small order:
/// others verify signatures of messages that were never signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerKey(VerifyingKey);

impl PeerKey {
    /// Reads a key; `None` if it is not acceptable.
    pub fn read(bytes: &[u8; 32]) -> Option<Self> {
        let key = VerifyingKey::from_bytes(bytes).ok()?;
        // `from_bytes` reduces the coordinate and ignores the sign of zero.
        let is_canonical = key.to_edwards().compress().as_bytes() == bytes;
        (is_canonical && !key.is_weak()).then_some(Self(key))
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The name of the device.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.0.as_bytes())
    }

    /// Whether the device signed `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}
