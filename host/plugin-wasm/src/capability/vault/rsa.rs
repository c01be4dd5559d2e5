//! Encryption to the public key of a site, as login forms of sites do in the browser (RFC 8017).

use getrandom::SysRng;
use rsa::{
    Oaep, Pkcs1v15Encrypt, RsaPublicKey, pkcs1::DecodeRsaPublicKey as _, pkcs8::DecodePublicKey as _,
    rand_core::UnwrapErr,
};
use sha1::Sha1;

/// The most bytes of a key as text: one of 8,192 bits has 1.5 KiB.
const MAX_KEY_BYTES: usize = 4096;

/// Encrypts to a key in PEM, of X.509 (`PUBLIC KEY`) or PKCS #1 (`RSA PUBLIC KEY`): with OAEP, SHA-1 and no label, which
/// are the defaults of RFC 8017 and of browsers' libraries, or with the older PKCS #1 v1.5.
pub(super) fn encrypt(key: &str, plain: &[u8], is_oaep: bool) -> Result<Vec<u8>, String> {
    if key.len() > MAX_KEY_BYTES {
        let reason = format!("the key has {} bytes; the limit is {MAX_KEY_BYTES}", key.len());
        return Err(reason);
    }
    let key = RsaPublicKey::from_public_key_pem(key)
        .ok()
        .or_else(|| RsaPublicKey::from_pkcs1_pem(key).ok())
        .ok_or("it is no RSA key of 4,096 bits at most, as PEM of X.509 or PKCS #1")?;
    // The kernel either has random numbers or never had: a call that worked is followed by others that do.
    getrandom::fill(&mut [0; 32]).map_err(|error| format!("there are no random numbers: {error}"))?;
    let mut random = UnwrapErr(SysRng);
    let encrypted = if is_oaep {
        key.encrypt(&mut random, Oaep::<Sha1>::new(), plain)
    } else {
        key.encrypt(&mut random, Pkcs1v15Encrypt, plain)
    };
    encrypted.map_err(|error| format!("the secret cannot be encrypted to this key: {error}"))
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        process::{Command, Stdio},
    };

    use super::*;

    fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("openssl")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "openssl {arguments:?}");
        output.stdout
    }

    #[test]
    fn openssl_reads_what_is_encrypted_with_both_paddings_to_both_kinds_of_key() {
        let dir = tempfile::tempdir().unwrap();
        let private = dir.path().join("key.pem").display().to_string();
        openssl(&["genrsa", "-out", &private, "2048"], b"");
        for form in ["-pubout", "-RSAPublicKey_out"] {
            let public = String::from_utf8(openssl(&["rsa", "-in", &private, form], b"")).unwrap();
            for (is_oaep, padding) in [(true, "oaep"), (false, "pkcs1")] {
                let sealed = encrypt(&public, "pässword".as_bytes(), is_oaep).unwrap();
                let padding = format!("rsa_padding_mode:{padding}");
                let arguments = ["pkeyutl", "-decrypt", "-inkey", &private, "-pkeyopt", &padding];
                assert_eq!(openssl(&arguments, &sealed), "pässword".as_bytes(), "{form} {padding}");
                let again = encrypt(&public, "pässword".as_bytes(), is_oaep).unwrap();
                assert_ne!(sealed, again, "the padding is random");
            }
            assert!(encrypt(&public, &[7; 300], true).is_err(), "longer than the key");
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for key in [
            "",
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            &"x".repeat(5000),
        ] {
            assert!(encrypt(key, b"x", true).is_err());
        }
    }
}
