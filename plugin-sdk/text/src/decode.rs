//! Base64, digests, and the one cipher that sites hide their links with.

use aes::{Aes128, Aes192, Aes256};
use cbc::cipher::{BlockModeDecrypt as _, KeyIvInit as _, block_padding::Pkcs7};
use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

use crate::limit::{MAX_INPUT_BYTES, TextError, check_input};

/// The bytes that `text` stands for in base64, either alphabet, padded or not, line breaks ignored.
pub fn base64_decode(text: &str) -> Result<Vec<u8>, TextError> {
    check_input(text)?;
    let text: String = text.split_ascii_whitespace().collect();
    let is_url_alphabet = text.contains(['-', '_']);
    let encoding = match (is_url_alphabet, text.ends_with('=')) {
        (false, true) => BASE64,
        (false, false) => BASE64_NOPAD,
        (true, true) => BASE64URL,
        (true, false) => BASE64URL_NOPAD,
    };
    encoding
        .decode(text.as_bytes())
        .map_err(|error| TextError::invalid("base64", error))
}

/// Decrypts AES-CBC with PKCS#7 padding; the key's length chooses AES-128, -192 or -256.
pub fn aes_decrypt_cbc(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, TextError> {
    check_length(data)?;
    let wrong_iv = |_| TextError::invalid("initialisation vector", "it needs 16 bytes");
    let plain = match key.len() {
        16 => cbc::Decryptor::<Aes128>::new_from_slices(key, iv)
            .map_err(wrong_iv)?
            .decrypt_padded_vec::<Pkcs7>(data),
        24 => cbc::Decryptor::<Aes192>::new_from_slices(key, iv)
            .map_err(wrong_iv)?
            .decrypt_padded_vec::<Pkcs7>(data),
        32 => cbc::Decryptor::<Aes256>::new_from_slices(key, iv)
            .map_err(wrong_iv)?
            .decrypt_padded_vec::<Pkcs7>(data),
        _ => return Err(TextError::invalid("key", "it needs 16, 24 or 32 bytes")),
    };
    plain.map_err(|_| TextError::invalid("ciphertext", "its padding is wrong"))
}

/// The digest of `data` by `md5`, `sha1`, `sha256` or `sha512`.
pub fn digest(algorithm: &str, data: &[u8]) -> Result<Vec<u8>, TextError> {
    check_length(data)?;
    match algorithm {
        "md5" => Ok(Md5::digest(data).to_vec()),
        "sha1" => Ok(Sha1::digest(data).to_vec()),
        "sha256" => Ok(Sha256::digest(data).to_vec()),
        "sha512" => Ok(Sha512::digest(data).to_vec()),
        _ => Err(TextError::invalid(
            "algorithm",
            "md5, sha1, sha256 and sha512 are known",
        )),
    }
}

fn check_length(data: &[u8]) -> Result<(), TextError> {
    if data.len() > MAX_INPUT_BYTES {
        return Err(TextError::InputTooLong);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_in_all_its_spellings() {
        for text in ["+/8=", "+/8", "-_8=", "-_8", "+/\r\n8="] {
            assert_eq!(base64_decode(text).unwrap(), [0xfb, 0xff], "{text:?}");
        }
        assert!(base64_decode("a$").is_err());
    }

    #[test]
    fn digests_are_the_known_ones() {
        let hex = |algorithm| data_encoding::HEXLOWER.encode(&digest(algorithm, b"abc").unwrap());
        assert_eq!(hex("md5"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(hex("sha1"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert!(hex("sha256").starts_with("ba7816bf"));
        assert!(hex("sha512").starts_with("ddaf35a1"));
        assert!(digest("crc", b"").is_err());
    }

    #[test]
    fn aes_gives_back_what_was_encrypted() {
        // The first vector of SP 800-38A, F.2.1, with a block of padding behind it.
        let hex = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap();
        let key = hex("2b7e151628aed2a6abf7158809cf4f3c");
        let iv = hex("000102030405060708090a0b0c0d0e0f");
        let data = hex("7649abac8119b246cee98e9b12e9197d8964e0b149c10b7b682e6e39aaeb731c");
        assert_eq!(
            aes_decrypt_cbc(&key, &iv, &data).unwrap(),
            hex("6bc1bee22e409f96e93d7e117393172a")
        );
        assert!(aes_decrypt_cbc(&key, &iv[1..], &data).is_err());
        assert!(aes_decrypt_cbc(&key[1..], &iv, &data).is_err());
        assert!(aes_decrypt_cbc(&key, &iv, &data[1..]).is_err());
    }
}
