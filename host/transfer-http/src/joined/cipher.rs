//! Decrypts a segment while it arrives: AES-128 in CBC mode with PKCS #7 padding.

use aes::Aes128;
use cbc::{
    Decryptor as Cbc,
    cipher::{Array, BlockModeDecrypt as _, KeyIvInit as _, block_padding::Pkcs7},
};
use transfer::{Failure, failure::FailureKind};

/// Length of a block of the cipher.
const BLOCK_BYTES: usize = 16;

/// Decrypts one segment.
pub(crate) struct Decryptor {
    cipher: Cbc<Aes128>,
    /// Received but not decrypted: at most a block, because any block may be the last, which has padding.
    held: Vec<u8>,
    plain: Vec<u8>,
}

impl Decryptor {
    pub(crate) fn new(key: &[u8; 16], iv: &[u8; 16]) -> Self {
        Self {
            cipher: Cbc::new(&(*key).into(), &(*iv).into()),
            held: Vec::new(),
            plain: Vec::new(),
        }
    }

    /// Decrypts `bytes`.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> &[u8] {
        self.plain.clear();
        self.plain.append(&mut self.held);
        self.plain.extend_from_slice(bytes);
        let ready = self.plain.len().saturating_sub(1) / BLOCK_BYTES * BLOCK_BYTES;
        self.held.extend(self.plain.drain(ready..));
        let (blocks, _) = Array::slice_as_chunks_mut(&mut self.plain);
        self.cipher.decrypt_blocks(blocks);
        &self.plain
    }

    /// The last plain bytes. Fails if the segment is truncated or the padding is invalid, as with a wrong key.
    pub(crate) fn finish(self) -> Result<Vec<u8>, Failure> {
        if self.held.len() != BLOCK_BYTES {
            return Err(Failure::new(
                FailureKind::SizeMismatch,
                "it is encrypted and came cut off: its length is no number of whole blocks",
            ));
        }
        self.cipher.decrypt_padded_vec::<Pkcs7>(&self.held).map_err(|_| {
            Failure::new(
                FailureKind::Encoding,
                "it cannot be decrypted: its key is wrong, or it is damaged",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use cbc::{Encryptor, cipher::BlockModeEncrypt as _};
    use proptest::prelude::*;

    use super::*;

    fn encrypt(key: [u8; 16], iv: [u8; 16], plain: &[u8]) -> Vec<u8> {
        Encryptor::<Aes128>::new(&key.into(), &iv.into()).encrypt_padded_vec::<Pkcs7>(plain)
    }

    fn decrypt(key: [u8; 16], iv: [u8; 16], bytes: &[u8], step: usize) -> Result<Vec<u8>, Failure> {
        let mut decryptor = Decryptor::new(&key, &iv);
        let mut plain = Vec::new();
        for bytes in bytes.chunks(step) {
            plain.extend(decryptor.push(bytes));
        }
        plain.extend(decryptor.finish()?);
        Ok(plain)
    }

    proptest! {
        #[test]
        fn what_was_encrypted_comes_back_however_it_is_cut(
            plain in prop::collection::vec(any::<u8>(), 0..200),
            key: [u8; 16],
            iv: [u8; 16],
            step in 1usize..70,
        ) {
            prop_assert_eq!(decrypt(key, iv, &encrypt(key, iv, &plain), step).unwrap(), plain);
        }
    }

    #[test]
    fn cut_off_and_wrongly_keyed_segments_fail() {
        let whole = encrypt([1; 16], [2; 16], &[200; 100]);
        let kind = |key, bytes: &[u8]| decrypt(key, [2; 16], bytes, 64).unwrap_err().kind;
        assert_eq!(kind([1; 16], &[]), FailureKind::SizeMismatch);
        assert_eq!(kind([1; 16], &whole[..50]), FailureKind::SizeMismatch);
        assert_eq!(kind([1; 16], &whole[..48]), FailureKind::Encoding);
        assert_eq!(kind([3; 16], &whole), FailureKind::Encoding);
    }
}
