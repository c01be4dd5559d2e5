//! Reads the first message of a pairing.

use std::net::SocketAddr;

use protocol::LinkPairHelloRequest;
use serde_json::Value;

use super::refusal::Refusal;
use crate::{
    constants::{DIGITS, MAX_ADDRESSES, MAX_NAME_BYTES, MAX_WORD_BYTES, PAIRING_VERSION},
    crypto::{identity::PeerKey, read_base64, transcript::About},
};

/// A first message of the right version and shape.
#[derive(Debug, Clone)]
pub struct Hello {
    pub(crate) code: String,
    pub(crate) peer: PeerKey,
    pub(crate) commitment: [u8; 32],
    pub(crate) signature: [u8; 64],
    pub(crate) about: About,
    pub(crate) addresses: Vec<String>,
}

/// How legacy peers recognise that the other side does not know their message.
const PREFIX: &str = "invalid link hello payload";

fn bad(what: &str) -> Refusal {
    Refusal::BadPayload(format!("{PREFIX}: {what}"))
}

impl Hello {
    /// Reads the body of a request.
    pub fn read(body: &[u8]) -> Result<Self, Refusal> {
        let value: Value = serde_json::from_slice(body).map_err(|_| bad("not JSON"))?;
        let object = value.as_object().ok_or_else(|| bad("not a JSON object"))?;
        match object.get("protocolVersion") {
            None => return Err(Refusal::VersionMismatch),
            Some(version) if version.as_i64() == Some(PAIRING_VERSION) => {}
            Some(Value::Number(_)) => return Err(Refusal::VersionMismatch),
            Some(_) => return Err(bad("protocolVersion must be a number")),
        }
        let hello: LinkPairHelloRequest = serde_json::from_value(value).map_err(|error| bad(&error.to_string()))?;
        Self::check(hello)
    }

    fn check(hello: LinkPairHelloRequest) -> Result<Self, Refusal> {
        let LinkPairHelloRequest {
            protocol_version: _,
            code,
            initiator_id_pub,
            initiator_commit,
            initiator_sig,
            name,
            platform,
            app_version,
            initiator_addrs,
        } = hello;
        if !is_code(&code) {
            return Err(bad("code must be six digits"));
        }
        let key = read_base64(&initiator_id_pub).and_then(|bytes| PeerKey::read(&bytes));
        let about = About {
            name,
            platform,
            app_version,
        };
        check_about(&about).map_err(bad)?;
        check_addresses(&initiator_addrs).map_err(bad)?;
        Ok(Self {
            code,
            peer: key.ok_or_else(|| bad("initiatorIdPub must be a strong Ed25519 key in base64"))?,
            commitment: read_base64(&initiator_commit)
                .ok_or_else(|| bad("initiatorCommit must be 32 bytes in base64"))?,
            signature: read_base64(&initiator_sig).ok_or_else(|| bad("initiatorSig must be 64 bytes in base64"))?,
            about,
            addresses: initiator_addrs,
        })
    }
}

/// Whether `text` has the form of a pairing code.
pub(crate) fn is_code(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks what another device says of itself.
pub(crate) fn check_about(about: &About) -> Result<(), &'static str> {
    let is_plain = |text: &str, most: usize| text.len() <= most && !text.chars().any(char::is_control);
    if !is_plain(&about.name, MAX_NAME_BYTES) {
        return Err("name must be at most 64 bytes without control characters");
    }
    if !is_plain(&about.platform, MAX_WORD_BYTES) || !is_plain(&about.app_version, MAX_WORD_BYTES) {
        return Err("platform and appVersion must be at most 32 bytes without control characters");
    }
    Ok(())
}

/// Checks addresses that another device tells of itself: their form, not where they lead.
pub(crate) fn check_addresses(addresses: &[String]) -> Result<(), &'static str> {
    if addresses.len() > MAX_ADDRESSES {
        return Err("there can be at most four addresses");
    }
    let is_address = |text: &String| text.parse::<SocketAddr>().is_ok_and(|address| address.port() != 0);
    if addresses.iter().all(is_address) {
        Ok(())
    } else {
        Err("an address must be ip:port, IPv6 in brackets")
    }
}

/// `None` for an empty text, as records have it.
pub(crate) fn said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
