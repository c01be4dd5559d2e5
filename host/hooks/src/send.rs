//! One attempt over HTTP.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use egress::{ClientConfig, HttpClient, Names, Pins, Request, Response, SendError, client::ClientError};
use tokio::sync::OnceCell;
use transfer::SafeUrl;

use crate::{
    endpoint::Endpoint,
    sign,
    state::{Attempt, Outcome},
};

/// For an attempt as a whole. Receivers that do work should answer first.
const TIMEOUT: Duration = Duration::from_secs(10);

/// For establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Deliveries are rare, so no connection is worth keeping.
const IDLE_CONNECTIONS: usize = 0;

/// Of a response's body; the rest is not read.
const MAX_ANSWER_BYTES: usize = 4096;

/// The proxy of the settings for a URL, if it needs one.
pub type ProxyFor = Arc<dyn Fn(&SafeUrl) -> Option<SafeUrl> + Send + Sync>;

/// Sends attempts. Clones share the client, which is made for the first of them: most users have no webhooks.
#[derive(Clone)]
pub(crate) struct Sender {
    client: Arc<OnceCell<HttpClient>>,
    names: Names,
    proxy_for: ProxyFor,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

impl Sender {
    pub(crate) fn new(names: Names, proxy_for: ProxyFor) -> Self {
        Self {
            client: Arc::default(),
            names,
            proxy_for,
        }
    }

    /// Sends `attempt`. Dropping the future cancels it.
    pub(crate) async fn send(&self, attempt: &Attempt) -> Outcome {
        match tokio::time::timeout(TIMEOUT, self.try_send(attempt)).await {
            Ok(Ok((status, body))) => Outcome::Answered { status, body },
            Ok(Err(SendError::Forbidden(forbidden))) => Outcome::Refused(format!(
                "{} is no public address: set allowPrivate of the webhook if it is meant",
                forbidden.host
            )),
            Ok(Err(error)) => Outcome::NoAnswer(error.to_string()),
            Err(_) => Outcome::NoAnswer(format!("no answer within {} s", TIMEOUT.as_secs())),
        }
    }

    async fn try_send(&self, attempt: &Attempt) -> Result<(u16, String), SendError> {
        let client = self.client.get_or_try_init(|| async { client(self.names.clone()) });
        let client = client.await.map_err(|error| SendError::Failed(error.to_string()))?;
        let endpoint = &attempt.endpoint;
        let proxy = endpoint.uses_proxy.then(|| (self.proxy_for)(&endpoint.url)).flatten();
        let headers = headers(attempt, jiff::Timestamp::now().as_second());
        let response = client
            .send(Request {
                method: "POST",
                url: endpoint.url.as_url().clone(),
                headers: &headers,
                body: Bytes::copy_from_slice(attempt.body.as_bytes()),
                reach: endpoint.reach(),
                // Each attempt stands for itself: what may be reached is decided for it alone.
                pins: &Pins::default(),
                proxy: proxy.as_ref(),
            })
            .await?;
        let status = response.status();
        Ok((status, beginning(response).await))
    }
}

fn client(names: Names) -> Result<HttpClient, ClientError> {
    HttpClient::new(ClientConfig {
        user_agent: egress::USER_AGENT.to_owned(),
        tls: egress::tls::trusting_system(),
        connect_timeout: CONNECT_TIMEOUT,
        idle_connections: IDLE_CONNECTIONS,
        names,
    })
}

fn headers(attempt: &Attempt, unix_seconds: i64) -> Vec<(String, String)> {
    let endpoint: &Endpoint = &attempt.endpoint;
    let mut headers = vec![
        ("X-Svc-Event".to_owned(), attempt.event.to_owned()),
        ("X-Svc-Delivery".to_owned(), attempt.delivery.0.to_string()),
        ("Content-Type".to_owned(), endpoint.media_type().to_owned()),
    ];
    if !endpoint.sign_secret.is_empty() {
        let signature = sign::signature(endpoint.sign_secret.expose(), unix_seconds, &attempt.body);
        headers.push((sign::HEADER.to_owned(), signature));
    }
    let own = endpoint.headers.iter();
    let own = own.filter(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
    headers.extend(own.map(|(name, value)| (name.clone(), value.expose().to_owned())));
    headers
}

/// The first bytes of a body, as text. A body that breaks off was answered all the same: the status came before it.
async fn beginning(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_ANSWER_BYTES {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = MAX_ANSWER_BYTES - bytes.len();
                bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            Ok(None) | Err(_) => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
