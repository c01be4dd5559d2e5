//! Requests to other devices.

use std::time::Duration;

use bytes::Bytes;
use egress::{ClientConfig, HttpClient, Names, Pins, Request, SendError, client::ClientError, tls};
use serde::Deserialize;
use tokio::time::timeout;
use url::Url;

use crate::{
    constants::{MAX_BODY_BYTES, PING_TIMEOUT},
    crypto::{identity::Fingerprint, transcript::About},
    device::Place,
    pairing::hello::check_about,
};

/// A device's answer.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: u16,
    /// Whether it says that its body is sealed.
    pub(crate) is_sealed: bool,
    /// The body.
    pub(crate) body: Vec<u8>,
}

/// No answer came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{address} does not answer: {why}")]
pub(crate) struct Unreachable {
    /// The address.
    pub(crate) address: String,
    /// Why not.
    pub(crate) why: String,
    /// Something answers, but not as a device does.
    pub(crate) is_nonsense: bool,
}

/// What a device says on `/ping`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pong {
    /// Its fingerprint, if the device link is on there. Unproved.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// What it says of itself.
    pub(crate) about: About,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PongBody {
    app: String,
    #[serde(default)]
    version: String,
    link_fingerprint: Option<String>,
    link_name: Option<String>,
    link_platform: Option<String>,
}

/// Why an address gave no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PingError {
    /// No answer.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// Another program.
    #[error("what answers there is not Svc")]
    NotSvc,
}

/// Sends requests to devices.
#[derive(Debug)]
pub(crate) struct Peers {
    http: HttpClient,
}

impl Peers {
    /// A client that resolves names with `names`.
    pub(crate) fn new(names: Names) -> Result<Self, ClientError> {
        let http = HttpClient::new(ClientConfig {
            user_agent: egress::USER_AGENT.to_owned(),
            tls: tls::trusting_mozilla(&[]).unwrap_or_else(|_| tls::trusting_system()),
            connect_timeout: PING_TIMEOUT,
            // Devices move between networks; a connection that is kept may lead nowhere.
            idle_connections: 0,
            names,
        })?;
        Ok(Self { http })
    }

    async fn request(
        &self,
        place: &Place,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Bytes,
    ) -> Result<Reply, Unreachable> {
        let failed = |why: String, is_nonsense: bool| Unreachable {
            address: place.address.clone(),
            why,
            is_nonsense,
        };
        let from_client = |error: SendError| failed(error.to_string(), matches!(error, SendError::NotHttp(_)));
        let url = Url::parse(&format!("http://{}{path}", place.address));
        let url = url.map_err(|error| failed(error.to_string(), false))?;
        // Each request stands for itself; the fingerprint decides who answers.
        let pins = Pins::default();
        let sent = self.http.send(Request {
            method,
            url,
            headers,
            body,
            reach: place.reach(),
            pins: &pins,
            proxy: None,
        });
        let mut response = sent.await.map_err(from_client)?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(from_client)? {
            if body.len() + piece.len() > MAX_BODY_BYTES {
                return Err(failed("its answer is too long".to_owned(), true));
            }
            body.extend_from_slice(&piece);
        }
        Ok(Reply {
            status: response.status(),
            is_sealed: response.header("x-svclink-enc") == Some("v2"),
            body,
        })
    }

    /// Sends a body.
    pub(crate) async fn post(
        &self,
        place: &Place,
        path: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Reply, Unreachable> {
        let asked = timeout(limit, self.request(place, "POST", path, headers, body.into())).await;
        asked.unwrap_or_else(|_| Err(silent(place, limit)))
    }

    /// Asks an address which device it is.
    pub(crate) async fn ping(&self, place: &Place) -> Result<Pong, PingError> {
        let asked = timeout(PING_TIMEOUT, self.request(place, "GET", "/ping", &[], Bytes::new())).await;
        let reply = match asked.unwrap_or_else(|_| Err(silent(place, PING_TIMEOUT))) {
            Ok(reply) => reply,
            Err(error) if error.is_nonsense => return Err(PingError::NotSvc),
            Err(error) => return Err(error.into()),
        };
        let body: PongBody = serde_json::from_slice(&reply.body).map_err(|_| PingError::NotSvc)?;
        if reply.status != 200 || body.app != "Svc" {
            return Err(PingError::NotSvc);
        }
        let about = About {
            name: body.link_name.unwrap_or_default(),
            platform: body.link_platform.unwrap_or_default(),
            app_version: body.version,
        };
        check_about(&about).map_err(|_| PingError::NotSvc)?;
        let fingerprint = body.link_fingerprint.as_deref().and_then(Fingerprint::read);
        Ok(Pong { fingerprint, about })
    }
}

fn silent(place: &Place, limit: Duration) -> Unreachable {
    Unreachable {
        address: place.address.clone(),
        why: format!("no answer within {} s", limit.as_secs()),
        is_nonsense: false,
    }
}

/// A user's address as `host`, `port` and `host:port`; `None` if it is none.
pub(crate) fn read_address(host: &str, port: u16) -> Option<(String, Place)> {
    // A URL would be read without them.
    if host.contains(char::is_control) {
        return None;
    }
    let bare = host.trim().trim_start_matches('[').trim_end_matches(']');
    let spelled = if bare.contains(':') {
        format!("[{bare}]")
    } else {
        bare.to_owned()
    };
    let url = Url::parse(&format!("http://{spelled}:{port}/")).ok()?;
    let is_plain = url.path() == "/" && url.username().is_empty() && url.query().is_none() && port != 0;
    let host = url.host_str().filter(|host| is_plain && !host.is_empty())?;
    let address = format!("{host}:{port}");
    let host = host.trim_matches(['[', ']']).to_owned();
    Some((
        host,
        Place {
            address,
            is_given: true,
        },
    ))
}

/// Reads `host`, `host:port` or `http://host[:port]`.
pub fn split_address(text: &str, default_port: u16) -> Option<(String, u16)> {
    let text = text.trim();
    let bare = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    if bare.is_empty() || bare.contains(['/', '@', '?', '#']) {
        return None;
    }
    if let Ok(address) = bare.parse::<std::net::IpAddr>() {
        return Some((address.to_string(), default_port));
    }
    match bare.rsplit_once(':') {
        Some((host, port)) if !bare.ends_with(']') => Some((host.to_owned(), port.parse().ok()?)),
        _ => Some((bare.to_owned(), default_port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_all_their_forms() {
        let split = |text: &str| split_address(text, 17800);
        assert_eq!(split("nas.local"), Some(("nas.local".to_owned(), 17800)));
        assert_eq!(split("http://10.0.0.2:80/"), Some(("10.0.0.2".to_owned(), 80)));
        assert_eq!(split("fd00::1"), Some(("fd00::1".to_owned(), 17800)));
        assert_eq!(split("[fd00::1]:9"), Some(("[fd00::1]".to_owned(), 9)));
        assert_eq!(split("https://h"), None);
        assert_eq!(split("h/x"), None);
        let (host, place) = read_address("[fd00::1]", 9).unwrap();
        assert_eq!((host.as_str(), place.address.as_str()), ("fd00::1", "[fd00::1]:9"));
        assert!(
            read_address("10.0.0\r\n.1", 9).is_none() && read_address("h\t", 9).is_none(),
            "what a URL is read without"
        );
        assert!(
            read_address("h/../x", 9).is_none() && read_address("a@b", 9).is_none() && read_address("h", 0).is_none()
        );
    }
}
