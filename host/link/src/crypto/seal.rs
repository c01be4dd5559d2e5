//! Sealed bodies and tags of the data plane.

use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};
use data_encoding::HEXLOWER;
use ring::hmac;

use super::{
    bytes::frame,
    identity::Fingerprint,
    transcript::{DeriveError, hkdf, sha256},
};

const AEAD_SALT: &[u8] = b"svc-link-aead-salt-v2";
const AEAD_LABEL: &[u8] = b"svc-link-aead-v2";
const AAD_LABEL: &[u8] = b"svclink-aad-v2";
const TAG_LABEL: &str = "svclink-v2";

/// Nonce and tag of the cipher: a shorter body holds nothing.
const LEAST_BYTES: usize = NONCE_BYTES + 16;
const NONCE_BYTES: usize = 12;

/// A body does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body does not open: it was changed, or sealed for something else")]
pub struct OpenError;

/// One request, as tag and associated data contain it.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// Upper-case.
    pub method: &'a str,
    /// Without a query.
    pub path: &'a str,
    /// Who sends the request.
    pub sender: &'a Fingerprint,
    /// Who receives it.
    pub receiver: &'a Fingerprint,
    /// `X-SvcLink-Nonce`.
    pub nonce: &'a str,
}

impl Envelope<'_> {
    fn request_aad(&self) -> Vec<u8> {
        let mut aad = AAD_LABEL.to_vec();
        frame(&mut aad, b"request");
        for text in [
            self.method,
            self.path,
            self.sender.as_str(),
            self.receiver.as_str(),
            self.nonce,
        ] {
            frame(&mut aad, text.as_bytes());
        }
        aad
    }

    fn response_aad(&self) -> Vec<u8> {
        let mut aad = AAD_LABEL.to_vec();
        frame(&mut aad, b"response");
        frame(&mut aad, self.nonce.as_bytes());
        aad
    }

    fn tagged(&self, timestamp: &str, body: &[u8]) -> String {
        let hash = HEXLOWER.encode(&sha256(body));
        [
            TAG_LABEL,
            self.method,
            self.path,
            timestamp,
            self.nonce,
            self.sender.as_str(),
            self.receiver.as_str(),
            &hash,
        ]
        .join("\n")
    }
}

/// The keys of a pair of devices.
pub struct Keys {
    mac: hmac::Key,
    cipher: ChaCha20Poly1305,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(***)")
    }
}

impl Keys {
    /// Derives them from the link key.
    pub fn of(link_key: &[u8; 32]) -> Result<Self, DeriveError> {
        let mut key = [0; 32];
        hkdf(link_key, AEAD_SALT, &[AEAD_LABEL], &mut key)?;
        Ok(Self {
            mac: hmac::Key::new(hmac::HMAC_SHA256, link_key),
            cipher: ChaCha20Poly1305::new(&key.into()),
        })
    }

    /// The tag of a request with this sealed body.
    pub fn tag(&self, envelope: &Envelope<'_>, timestamp: &str, body: &[u8]) -> String {
        let tag = hmac::sign(&self.mac, envelope.tagged(timestamp, body).as_bytes());
        HEXLOWER.encode(tag.as_ref())
    }

    /// Whether `tag` is that of the request, in constant time.
    pub fn verifies(&self, envelope: &Envelope<'_>, timestamp: &str, body: &[u8], tag: &str) -> bool {
        let Ok(tag) = HEXLOWER.decode(tag.as_bytes()) else {
            return false;
        };
        hmac::verify(&self.mac, envelope.tagged(timestamp, body).as_bytes(), &tag).is_ok()
    }

    /// Seals the body of a request with a random nonce of the cipher.
    pub fn seal_request(&self, envelope: &Envelope<'_>, random: [u8; NONCE_BYTES], plain: &[u8]) -> Vec<u8> {
        self.seal(&envelope.request_aad(), random, plain)
    }

    /// Opens the body of a request.
    pub fn open_request(&self, envelope: &Envelope<'_>, sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        self.open(&envelope.request_aad(), sealed)
    }

    /// Seals the body of the response to a request.
    pub fn seal_response(&self, envelope: &Envelope<'_>, random: [u8; NONCE_BYTES], plain: &[u8]) -> Vec<u8> {
        self.seal(&envelope.response_aad(), random, plain)
    }

    /// Opens the body of the response to a request.
    pub fn open_response(&self, envelope: &Envelope<'_>, sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        self.open(&envelope.response_aad(), sealed)
    }

    fn seal(&self, aad: &[u8], random: [u8; NONCE_BYTES], plain: &[u8]) -> Vec<u8> {
        let payload = Payload { msg: plain, aad };
        let sealed = self.cipher.encrypt(&Nonce::from(random), payload);
        let sealed = sealed.expect("bodies are far below the limit of the cipher");
        [&random[..], &sealed].concat()
    }

    fn open(&self, aad: &[u8], sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        if sealed.len() < LEAST_BYTES {
            return Err(OpenError);
        }
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or(OpenError)?;
        let payload = Payload { msg: sealed, aad };
        let opened = self.cipher.decrypt(&Nonce::from(*nonce), payload);
        opened.map_err(|_| OpenError)
    }
}
