//! What both sides of a pairing sign, and the secrets that they derive.

use curve25519_dalek::montgomery::MontgomeryPoint;
use ring::{
    digest::{SHA256, digest},
    hkdf::{self, HKDF_SHA256, Salt},
};

use super::bytes::frame;

const COMMIT_LABEL: &[u8] = b"svc-link-commit-v2";
const HELLO_LABEL: &[u8] = b"svc-link-hello-v2";
const INFO_LABEL: &[u8] = b"svc-link-resp-info-v2";
const SESSION_LABEL: &[u8] = b"svc-link-session-v2";
const RESPONDER_LABEL: &[u8] = b"svc-link-resp-v2";
const SAS_SALT: &[u8] = b"svc-link-sas-v2";
const KEY_SALT: &[u8] = b"svc-link-key-salt-v2";
const KEY_LABEL: &[u8] = b"svc-link-key-v2";

/// The public half of an ephemeral key.
pub fn ephemeral_public(secret: &[u8; 32]) -> [u8; 32] {
    MontgomeryPoint::mul_base_clamped(*secret).to_bytes()
}

/// The shared secret; `None` if it would be all zeros, because the other side sent a point of small order.
pub fn agree(secret: &[u8; 32], public: &[u8; 32]) -> Option<[u8; 32]> {
    let shared = MontgomeryPoint(*public).mul_clamped(*secret).to_bytes();
    (shared.iter().fold(0, |all, byte| all | byte) != 0).then_some(shared)
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

/// What the initiator binds itself to before it sees the responder's values.
pub fn commitment(ephemeral: &[u8; 32], nonce: &[u8; 32]) -> [u8; 32] {
    sha256(&[COMMIT_LABEL, ephemeral, nonce].concat())
}

/// What a device says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its platform; empty: not said.
    pub platform: String,
    /// Its version; empty: not said.
    pub app_version: String,
}

/// The message that the initiator signs.
pub fn hello_message(
    code: &str,
    public: &[u8; 32],
    commitment: &[u8; 32],
    about: &About,
    addresses: &[String],
) -> Vec<u8> {
    let mut message = HELLO_LABEL.to_vec();
    frame(&mut message, code.as_bytes());
    message.extend_from_slice(public);
    message.extend_from_slice(commitment);
    for text in [&about.name, &about.platform, &about.app_version] {
        frame(&mut message, text.as_bytes());
    }
    let count = u32::try_from(addresses.len()).expect("there are at most four addresses");
    message.extend_from_slice(&count.to_le_bytes());
    for address in addresses {
        frame(&mut message, address.as_bytes());
    }
    message
}

/// All that both sides have said.
#[derive(Debug, Clone, Copy)]
pub struct Transcript<'a> {
    /// The first message.
    pub hello: &'a [u8],
    /// Public keys, initiator's first.
    pub identities: [&'a [u8; 32]; 2],
    /// Ephemeral public keys, initiator's first.
    pub ephemerals: [&'a [u8; 32]; 2],
    /// Nonces, initiator's first.
    pub nonces: [&'a [u8; 32]; 2],
    /// What the responder says of itself.
    pub responder: &'a About,
}

impl Transcript<'_> {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut info = INFO_LABEL.to_vec();
        for text in [
            &self.responder.name,
            &self.responder.platform,
            &self.responder.app_version,
        ] {
            frame(&mut info, text.as_bytes());
        }
        let mut bytes = SESSION_LABEL.to_vec();
        bytes.extend_from_slice(&sha256(self.hello));
        for pair in [self.identities, self.ephemerals, self.nonces] {
            bytes.extend_from_slice(pair[0]);
            bytes.extend_from_slice(pair[1]);
        }
        bytes.extend_from_slice(&sha256(&info));
        bytes
    }
}

/// The message that the responder signs.
pub fn responder_message(transcript: &[u8]) -> Vec<u8> {
    [RESPONDER_LABEL, transcript].concat()
}

/// What a pairing ends with.
pub struct Secrets {
    /// Six digits, for people to compare.
    pub sas: String,
    /// The key of the pair of devices.
    pub link_key: [u8; 32],
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(***)")
    }
}

/// A derivation failed. It cannot for these lengths; there is no other value to go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key could not be derived")]
pub struct DeriveError;

/// Derives what the shared secret and the transcript lead to.
pub fn secrets(shared: &[u8; 32], transcript: &[u8]) -> Result<Secrets, DeriveError> {
    let hash = sha256(transcript);
    let mut short = [0; 4];
    hkdf(shared, SAS_SALT, &[&hash], &mut short)?;
    let mut link_key = [0; 32];
    hkdf(shared, KEY_SALT, &[KEY_LABEL, &hash], &mut link_key)?;
    let sas = format!("{:06}", u32::from_be_bytes(short) % 1_000_000);
    Ok(Secrets { sas, link_key })
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-SHA256.
pub(crate) fn hkdf(secret: &[u8], salt: &[u8], info: &[&[u8]], out: &mut [u8]) -> Result<(), DeriveError> {
    let extracted = Salt::new(HKDF_SHA256, salt).extract(secret);
    let expanded = extracted.expand(info, Length(out.len())).map_err(|_| DeriveError)?;
    expanded.fill(out).map_err(|_| DeriveError)
}
