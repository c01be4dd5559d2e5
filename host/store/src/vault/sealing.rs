//! Seals and opens single values with a key.

use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};

/// Length of the key.
pub(super) const KEY_BYTES: usize = 32;

/// Length of the nonce that starts a sealed value. Random: 2^32 values under one key keep the chance of a repeat
/// below 2^-32, and we seal a few per task.
const NONCE_BYTES: usize = 12;

pub(super) type KeyBytes = [u8; KEY_BYTES];

/// Why a value was not sealed or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The value was changed, belongs to another row, or was sealed with another key.
    #[error("a sealed value does not open: it was changed, moved, or sealed with another key file")]
    Forged,
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers")]
    Random,
}

pub(super) fn cipher(key: &KeyBytes) -> ChaCha20Poly1305 {
    ChaCha20Poly1305::new(&(*key).into())
}

pub(super) fn seal(cipher: &ChaCha20Poly1305, context: &str, plain: &[u8]) -> Result<Vec<u8>, SealError> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|_| SealError::Random)?;
    let payload = Payload {
        msg: plain,
        aad: context.as_bytes(),
    };
    let sealed = cipher.encrypt(&Nonce::from(nonce), payload);
    Ok([&nonce[..], &sealed.map_err(|_| SealError::Forged)?].concat())
}

pub(super) fn unseal(cipher: &ChaCha20Poly1305, context: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or(SealError::Forged)?;
    let payload = Payload {
        msg: sealed,
        aad: context.as_bytes(),
    };
    let opened = cipher.decrypt(&Nonce::from(*nonce), payload);
    opened.map_err(|_| SealError::Forged)
}

pub(super) fn random_key() -> Result<KeyBytes, getrandom::Error> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key)?;
    Ok(key)
}
