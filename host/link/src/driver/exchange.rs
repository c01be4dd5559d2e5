//! Sealed requests to a paired device.

use data_encoding::HEXLOWER;
use serde_json::Value;
use tokio::time::Duration;

use super::{
    Link,
    clock::{lock, unix_now},
};
use crate::{
    crypto::{
        identity::Fingerprint,
        random,
        seal::{Envelope, Keys},
    },
    device::{Device, Place},
    pairing::initiator::shortened,
    peer::Reply,
};

/// Why a paired device did not carry a request out.
#[derive(Debug)]
pub(super) enum Failure {
    /// No address of it answers, or what answers is another device.
    Away(String),
    /// It answered 401. Not authenticated.
    Unauthorized { reason: String, server_time: Option<i64> },
    /// It refused; its words. Not authenticated.
    Refused(String),
    /// It cannot now; its words. Not authenticated.
    Later { status: u16, message: String },
    /// The answer is not from that device.
    Forged(String),
}

/// A request before it is sealed.
pub(super) struct Call<'a> {
    pub(super) path: &'static str,
    pub(super) plain: &'a [u8],
    pub(super) limit: Duration,
}

impl Link {
    /// The addresses of a device, those that worked first.
    fn places(&self, fingerprint: &Fingerprint, device: &Device) -> Vec<Place> {
        let mut places = device.places.clone();
        let nearby = lock(&self.0.nearby);
        let hint = nearby.snapshot.hint(fingerprint).and_then(|hint| Place::reported(hint));
        places.extend(hint.filter(|hint| !device.places.iter().any(|known| known.address == hint.address)));
        places
    }

    /// Sends a sealed request to the first address at which the device says it is, and opens the answer. Gives the
    /// address, too.
    pub(super) async fn exchange(
        &self,
        fingerprint: &Fingerprint,
        device: &Device,
        call: &Call<'_>,
    ) -> Result<(Vec<u8>, Place), Failure> {
        let mut why = format!(
            "{} has no known address; let it call first, or search for it",
            device.name
        );
        for place in self.places(fingerprint, device) {
            match self.0.peers.ping(&place).await {
                Ok(pong) if pong.fingerprint.as_ref() == Some(fingerprint) => {
                    let opened = self.exchange_at(&place, fingerprint, device, call).await?;
                    return Ok((opened, place));
                }
                Ok(_) => why = format!("another device answers at {}", place.address),
                Err(error) => why = error.to_string(),
            }
        }
        Err(Failure::Away(why))
    }

    async fn exchange_at(
        &self,
        place: &Place,
        fingerprint: &Fingerprint,
        device: &Device,
        call: &Call<'_>,
    ) -> Result<Vec<u8>, Failure> {
        let Call { path, plain, limit } = *call;
        let away = |why: &str| Failure::Away(why.to_owned());
        let own = self.fingerprint().ok_or_else(|| away("this device has no key yet"))?;
        let key = device
            .link_key()
            .ok_or_else(|| away("its stored key is damaged; pair again"))?;
        let keys = Keys::of(&key).map_err(|error| away(&error.to_string()))?;
        let no_random = |_| away("the operating system gives no random numbers");
        let nonce = HEXLOWER.encode(&random::<16>().map_err(no_random)?);
        let envelope = Envelope {
            method: "POST",
            path,
            sender: own,
            receiver: fingerprint,
            nonce: &nonce,
        };
        let sealed = keys.seal_request(&envelope, random().map_err(no_random)?, plain);
        let timestamp = unix_now().to_string();
        let headers = [
            ("content-type", "application/octet-stream"),
            ("x-svclink-enc", "v2"),
            ("x-svclink-device", own.as_str()),
            ("x-svclink-ts", &timestamp),
            ("x-svclink-nonce", &nonce),
            ("x-svclink-tag", &keys.tag(&envelope, &timestamp, &sealed)),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let reply = self.0.peers.post(place, path, &headers, sealed, limit).await;
        let reply = reply.map_err(|error| Failure::Away(error.to_string()))?;
        if reply.status != 200 {
            return Err(refused(&reply));
        }
        if !reply.is_sealed {
            return Err(Failure::Forged("the answer is not sealed".to_owned()));
        }
        keys.open_response(&envelope, &reply.body)
            .map_err(|_| Failure::Forged("the answer does not open".to_owned()))
    }
}

fn refused(reply: &Reply) -> Failure {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let text = |name: &str| {
        body.get(name)
            .and_then(Value::as_str)
            .map(shortened)
            .unwrap_or_default()
    };
    match reply.status {
        401 => Failure::Unauthorized {
            reason: text("reason"),
            server_time: body.get("serverTime").and_then(Value::as_i64),
        },
        // Unknown routes, restarts and full disks pass; a 404 is a device whose link is switched off.
        404 | 405 | 408 | 429 | 500..=599 => Failure::Later {
            status: reply.status,
            message: text("message"),
        },
        _ => Failure::Refused(text("message")),
    }
}
