//! Webhooks: endpoints, and what was delivered to them.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// An endpoint, an element of the array in the setting `webhook.endpoints`. The setting is replaced as a whole; secrets
/// are shown as `***` and stay as they are when an endpoint of the same id has that value or leaves them out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are the members of the record on the wire"
)]
pub struct WebhookEndpointDto {
    /// Its id: 1 to 64 letters, digits, `-`, `_` and `.`.
    pub id: String,
    /// Its name; empty is the id.
    pub name: String,
    /// The body: `json`, `discord`, `slack`, `telegram`, `ntfy` or `gotify`; empty is `json`.
    pub preset: String,
    /// Where deliveries are sent. Shown as `https://host/***`, because path and query are a credential at most services;
    /// that text means "unchanged".
    pub url: String,
    /// Events are delivered.
    pub enabled: bool,
    /// The events; empty is `task.completed` and `task.failed`.
    pub events: Vec<String>,
    /// Only events of this queue, which must exist when it is set; empty is every queue.
    pub queue_id: String,
    /// Headers of the requests. Shown with `***` as values; left out, or a value of `***`: unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// The body instead of the preset's, with fields such as `{{task.fileName}}`; empty is the preset's.
    pub body_template: String,
    /// Signs deliveries (`X-Svc-Signature`). Shown as `***` if there is one; left out or `***`: unchanged; empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_secret: Option<String>,
    /// The URL may be plain HTTP.
    pub allow_http: bool,
    /// The URL may lead to private addresses: this machine and the local network.
    pub allow_private: bool,
    /// Requests go through the proxy of the settings.
    pub use_proxy: bool,
}

impl Default for WebhookEndpointDto {
    fn default() -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            preset: String::new(),
            url: String::new(),
            enabled: true,
            events: Vec::new(),
            queue_id: String::new(),
            headers: None,
            body_template: String::new(),
            sign_secret: None,
            allow_http: false,
            allow_private: false,
            use_proxy: false,
        }
    }
}

impl fmt::Debug for WebhookEndpointDto {
    /// Without URL, headers and secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookEndpointDto({}, {}, ***)", self.id, self.name)
    }
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WebhookDeliveryStatus {
    /// It waits for its turn or is being sent.
    #[default]
    Pending,
    /// An attempt failed; another one follows.
    Retrying,
    /// The endpoint answered with 2xx.
    Delivered,
    /// No attempt succeeded.
    Failed,
    /// It was given up without an attempt that succeeded: the queue was full, or its endpoint was removed.
    Dropped,
}

/// A delivery to an endpoint. Secrets of the endpoint are replaced by `***`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookDeliveryDto {
    /// Its id, as in the header `X-Svc-Delivery`.
    pub delivery_id: String,
    /// The endpoint.
    pub endpoint_id: String,
    /// The endpoint's name at that time.
    pub endpoint_name: String,
    /// The event.
    pub event: String,
    /// The task; empty for events of queues.
    pub task_id: String,
    /// Sent by `daemon.webhook.test` or `simulate`.
    pub test: bool,
    /// What became of it.
    pub status: WebhookDeliveryStatus,
    /// Attempts that have ended.
    pub attempts: u32,
    /// The status of the last response; 0: none.
    pub http_status: u16,
    /// Why the last attempt failed; else empty.
    pub error: String,
    /// The first 2,000 characters of the request's body.
    pub request_body: String,
    /// The first 2,000 characters of the last response's body.
    pub response_body: String,
    /// When the event happened, in Unix milliseconds.
    pub created_at_ms: i64,
    /// When it ended, in Unix milliseconds; 0: not yet.
    pub ended_at_ms: i64,
}

/// Result of `daemon.webhook.get`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookDeliveries {
    /// The newest 1,000 since the start of the daemon, newest first.
    pub deliveries: Vec<WebhookDeliveryDto>,
    /// Deliveries since the start that were dropped because 256 others waited.
    pub dropped: u64,
    /// Events since the start that were lost because too many happened at once.
    pub missed: u64,
}

/// Params of `daemon.webhook.simulate`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookSimulateParams {
    /// The event; empty is `task.completed`.
    pub event: String,
}

/// Result of `daemon.webhook.simulate`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookSimulated {
    /// To how many endpoints it is being delivered.
    pub count: usize,
}

/// Params of `daemon.webhook.test`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookTestParams {
    /// A draft of an endpoint; need not be stored. Secrets of a stored one with its id are used as in the setting.
    pub endpoint: WebhookEndpointDto,
    /// The event; empty is `task.completed`.
    pub event: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_an_endpoint_shows_no_secret() {
        let endpoint = WebhookEndpointDto {
            id: "a".into(),
            url: "https://host/canary".into(),
            headers: Some([("Authorization".to_owned(), "canary".to_owned())].into()),
            sign_secret: Some("canary".into()),
            ..WebhookEndpointDto::default()
        };
        assert!(!format!("{endpoint:?}").contains("canary"));
    }

    #[test]
    fn what_is_left_out_is_told_from_what_is_empty() {
        let read = |text: &str| serde_json::from_str::<WebhookEndpointDto>(text).unwrap();
        assert_eq!(read("{}").sign_secret, None);
        assert!(read("{}").enabled);
        assert_eq!(read(r#"{"signSecret":""}"#).sign_secret, Some(String::new()));
        assert_eq!(read(r#"{"headers":{}}"#).headers, Some(BTreeMap::new()));
    }
}
