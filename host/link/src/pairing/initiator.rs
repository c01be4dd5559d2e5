//! The device on which the code is entered. Pure: each step takes what the other device answered and gives what to send
//! next, so that a pairing can only go forward.

use std::{collections::BTreeMap, time::Instant};

use protocol::{
    LinkPairConfirmResponse, LinkPairHelloRequest, LinkPairHelloResponse, LinkPairRevealRequest, LinkPairRevealResponse,
};
use serde_json::Value;

use super::{
    NewDevice,
    hello::{check_about, is_code},
};
use crate::{
    constants::{MAX_OUTGOING, PAIRING_VERSION, SESSION_TTL},
    crypto::{
        identity::{Fingerprint, Identity, PeerKey},
        read_base64,
        transcript::{
            About, Secrets, Transcript, agree, commitment, ephemeral_public, hello_message, responder_message, secrets,
        },
        write_base64,
    },
};

/// Why a pairing that began here ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InitiateError {
    /// The user's input is not a code.
    #[error("code must be six digits")]
    NoCode,
    /// The other device refused; its words.
    #[error("the other device refused: {0}")]
    Refused(String),
    /// The code is wrong, used or expired.
    #[error("the pairing code is wrong, used or expired; generate a new one on the other device")]
    CodeInvalid,
    /// The other device counted too many wrong codes.
    #[error("the other device takes no codes now, because too many were wrong; wait two minutes")]
    Throttled,
    /// The versions differ.
    #[error("the devices speak different versions of the pairing (this one: 2); update Svc on both")]
    VersionMismatch,
    /// The answer is not one of this protocol.
    #[error("what answers there is not Svc, or broken: {0}")]
    Nonsense(&'static str),
    /// The other device is this one.
    #[error("this device cannot be paired with itself")]
    SelfPairing,
    /// Another device than the one that was found at this address.
    #[error("another device answers at this address than the one that was found there; search again")]
    OtherIdentity,
    /// The other device's signature does not verify.
    #[error("the signature of the other device does not verify: a third device alters the messages")]
    SignatureInvalid,
    /// The other device's session is over.
    #[error("the pairing session is unknown or expired; start the pairing again")]
    SessionExpired,
    /// A derivation failed, or there are no random numbers.
    #[error("{0}")]
    Crypto(String),
}

/// After the first message was made.
#[derive(Debug)]
pub struct Begun {
    hello: Vec<u8>,
    ephemeral: Secret,
    nonce: [u8; 32],
}

struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// After the second message was made.
#[derive(Debug)]
pub struct Revealing {
    session_id: String,
    peer: PeerKey,
    about: About,
    transcript: Vec<u8>,
    secrets: Secrets,
}

/// Waits for this device's user.
#[derive(Debug)]
pub struct Pending {
    /// The other device's name of the session.
    pub session_id: String,
    /// Six digits to compare.
    pub sas: String,
    /// The device, if both users agree.
    pub device: NewDevice,
}

/// Begins: the first message, and what to go on with.
pub fn begin(
    identity: &Identity,
    about: &About,
    code: &str,
    addresses: Vec<String>,
    ephemeral: [u8; 32],
    nonce: [u8; 32],
) -> Result<(LinkPairHelloRequest, Begun), InitiateError> {
    if !is_code(code) {
        return Err(InitiateError::NoCode);
    }
    let committed = commitment(&ephemeral_public(&ephemeral), &nonce);
    let hello = hello_message(code, &identity.public(), &committed, about, &addresses);
    let request = LinkPairHelloRequest {
        protocol_version: PAIRING_VERSION,
        code: code.to_owned(),
        initiator_id_pub: write_base64(&identity.public()),
        initiator_commit: write_base64(&committed),
        initiator_sig: write_base64(&identity.sign(&hello)),
        name: about.name.clone(),
        platform: about.platform.clone(),
        app_version: about.app_version.clone(),
        initiator_addrs: addresses,
    };
    let ephemeral = Secret(ephemeral);
    Ok((
        request,
        Begun {
            hello,
            ephemeral,
            nonce,
        },
    ))
}

/// Why the other device refused, from its answer.
fn refused(status: u16, body: &[u8]) -> InitiateError {
    let message = serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|value| Some(value.get("message")?.as_str()?.to_owned()));
    match (status, message) {
        (429, _) => InitiateError::Throttled,
        (400, Some(message)) if message.starts_with("invalid link hello payload") => InitiateError::VersionMismatch,
        (400, Some(message)) if message.contains("version") => InitiateError::VersionMismatch,
        (400, Some(message)) if message.contains("code") => InitiateError::CodeInvalid,
        (400, Some(message)) if message.contains("session") => InitiateError::SessionExpired,
        (400, Some(message)) => InitiateError::Refused(shortened(&message)),
        (404, _) => InitiateError::Refused("pairing is switched off there".to_owned()),
        (403, _) => InitiateError::Refused("it is not set up yet, or does not take requests from here".to_owned()),
        _ => InitiateError::Nonsense("an unexpected status"),
    }
}

/// Words of another device, for this one's user.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(200).collect()
}

impl Begun {
    /// Takes the answer to the first message. `expected` are the devices that were found at this address, if any were:
    /// another one gets no second message.
    pub fn answered(
        self,
        identity: &Identity,
        status: u16,
        body: &[u8],
        expected: &[Fingerprint],
    ) -> Result<(LinkPairRevealRequest, Revealing), InitiateError> {
        if status != 200 {
            return Err(refused(status, body));
        }
        let value: Value = serde_json::from_slice(body).map_err(|_| InitiateError::Nonsense("not JSON"))?;
        let version = value.get("protocolVersion").map_or(Some(0), Value::as_i64);
        if version != Some(PAIRING_VERSION) {
            return Err(match value.get("sessionId") {
                Some(_) => InitiateError::VersionMismatch,
                None => InitiateError::Nonsense("no session"),
            });
        }
        let response: LinkPairHelloResponse =
            serde_json::from_value(value).map_err(|_| InitiateError::Nonsense("members are missing"))?;
        let nonsense = InitiateError::Nonsense;
        let is_id = |id: &str| !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_id(&response.session_id) {
            return Err(nonsense("no session"));
        }
        let key = read_base64(&response.responder_id_pub).and_then(|bytes| PeerKey::read(&bytes));
        let peer = key.ok_or(nonsense("responderIdPub is no strong Ed25519 key"))?;
        let theirs = read_base64(&response.responder_eph_pub).ok_or(nonsense("responderEphPub is not 32 bytes"))?;
        let nonce = read_base64(&response.responder_nonce).ok_or(nonsense("responderNonce is not 32 bytes"))?;
        let about = About {
            name: response.name,
            platform: response.platform.unwrap_or_default(),
            app_version: response.app_version.unwrap_or_default(),
        };
        check_about(&about).map_err(nonsense)?;
        let fingerprint = peer.fingerprint();
        if fingerprint == *identity.fingerprint() {
            return Err(InitiateError::SelfPairing);
        }
        if !expected.is_empty() && !expected.contains(&fingerprint) {
            return Err(InitiateError::OtherIdentity);
        }
        let shared = agree(&self.ephemeral.0, &theirs).ok_or(nonsense("responderEphPub is of small order"))?;
        let own = ephemeral_public(&self.ephemeral.0);
        let transcript = Transcript {
            hello: &self.hello,
            identities: [&identity.public(), &peer.bytes()],
            ephemerals: [&own, &theirs],
            nonces: [&self.nonce, &nonce],
            responder: &about,
        };
        let transcript = transcript.encode();
        let secrets = secrets(&shared, &transcript).map_err(|error| InitiateError::Crypto(error.to_string()))?;
        let request = LinkPairRevealRequest {
            session_id: response.session_id.clone(),
            initiator_eph_pub: write_base64(&own),
            initiator_nonce: write_base64(&self.nonce),
        };
        let revealing = Revealing {
            session_id: response.session_id,
            peer,
            about,
            transcript,
            secrets,
        };
        Ok((request, revealing))
    }
}

impl Revealing {
    /// Takes the answer to the second message.
    pub fn answered(self, status: u16, body: &[u8]) -> Result<Pending, InitiateError> {
        if status != 200 {
            return Err(refused(status, body));
        }
        let response: LinkPairRevealResponse =
            serde_json::from_slice(body).map_err(|_| InitiateError::Nonsense("members are missing"))?;
        let signature = read_base64(&response.responder_sig).ok_or(InitiateError::SignatureInvalid)?;
        if !self.peer.verifies(&responder_message(&self.transcript), &signature) {
            return Err(InitiateError::SignatureInvalid);
        }
        Ok(Pending {
            session_id: self.session_id,
            sas: self.secrets.sas,
            device: NewDevice {
                fingerprint: self.peer.fingerprint(),
                about: self.about,
                addresses: Vec::new(),
                link_key: self.secrets.link_key,
            },
        })
    }
}

/// Takes the answer to the third message: whether both users agreed.
pub fn confirmed(status: u16, body: &[u8]) -> Result<bool, InitiateError> {
    if status != 200 {
        return Err(refused(status, body));
    }
    let response: LinkPairConfirmResponse =
        serde_json::from_slice(body).map_err(|_| InitiateError::Nonsense("members are missing"))?;
    Ok(response.success && response.paired)
}

/// The pairings that began here. A place is taken before the first message is sent.
#[derive(Debug)]
pub struct Places<T> {
    places: BTreeMap<String, Place<T>>,
}

#[derive(Debug)]
struct Place<T> {
    since: Instant,
    pending: Option<T>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        let places = BTreeMap::new();
        Self { places }
    }
}

impl<T> Places<T> {
    fn expire(&mut self, now: Instant) {
        self.places.retain(|_, place| now < place.since + SESSION_TTL);
    }

    /// Takes a place; `false` if all are taken.
    pub fn reserve(&mut self, token: String, now: Instant) -> bool {
        self.expire(now);
        let has_room = self.places.len() < MAX_OUTGOING;
        if has_room {
            let pending = None;
            self.places.insert(token, Place { since: now, pending });
        }
        has_room
    }

    /// Puts into the place what waits for the user; the place counts from its reservation.
    pub fn fill(&mut self, token: &str, pending: T) {
        if let Some(place) = self.places.get_mut(token) {
            place.pending = Some(pending);
        }
    }

    /// Frees a place.
    pub fn release(&mut self, token: &str) {
        self.places.remove(token);
    }

    /// Takes what waits for the user, once.
    pub fn take(&mut self, token: &str, now: Instant) -> Option<T> {
        self.expire(now);
        self.places.get(token)?.pending.as_ref()?;
        self.places.remove(token)?.pending
    }
}
