//! Downloads that browsers hand over, and those of them that wait for their user's word.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::record::task::RequestBody;

/// A download that a browser submits. Only `url` is required; `null` counts as missing.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DownloadRequest {
    /// The URL, or several separated by line breaks.
    #[serde(deserialize_with = "or_default")]
    #[schema(required, example = "https://example.com/file.zip")]
    pub url: String,
    /// The file name; empty: the server's, else the URL's.
    #[serde(deserialize_with = "or_default")]
    pub filename: String,
    /// The directory; empty: the default one.
    #[serde(deserialize_with = "or_default")]
    pub save_dir: String,
    /// The URL of the page that contains the link.
    #[serde(deserialize_with = "or_default")]
    pub referrer: String,
    /// The `Cookie` header.
    #[serde(deserialize_with = "or_default")]
    pub cookies: String,
    /// The headers of the browser's request.
    pub headers: Option<BTreeMap<String, String>>,
    /// The size according to the browser, for display only; -1: unknown.
    #[serde(deserialize_with = "size")]
    pub file_size: Option<i64>,
    /// The media type according to the browser. If the server sends a web page instead, the download fails.
    pub mime_type: Option<String>,
    /// The HTTP method; `null`: GET.
    pub method: Option<String>,
    /// The body of the HTTP request.
    pub body: Option<RequestBody>,
    /// The URL of a separate audio track.
    pub audio_url: Option<String>,
}

fn or_default<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Scripts have one kind of number; a size that is none is a hint less.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    serde_json::Value::deserialize(deserializer).map(|value| value.as_i64())
}

impl fmt::Debug for DownloadRequest {
    /// Almost every field may hold a secret, the URL's query included.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DownloadRequest(***)")
    }
}

/// Params of `agent.capture.submit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureSubmitParams {
    /// The download.
    pub request: DownloadRequest,
    /// Whether to create the task without asking the user; `null`: as in the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<bool>,
}

/// The outcome of a submitted download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CaptureResult {
    /// These tasks were created.
    TaskIds(Vec<String>),
    /// The user is asked; these are the ids of the pending captures.
    TransactionIds(Vec<String>),
    /// Captures are disabled in the settings.
    Ignored(bool),
}

/// Params of `agent.capture.resolve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaptureResolveParams {
    /// The id of the pending capture.
    pub transaction_id: String,
    /// Whether the user accepts the download.
    pub accepted: bool,
    /// The user's changes to directory, file name and selected URLs. Empty fields change nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<DownloadRequest>,
}

/// Result of `agent.capture.resolve`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaptureResolved {
    /// Whether a task was created.
    #[serde(default)]
    pub accepted: bool,
    /// The id of the task, or of the first of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The ids of all created tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
}

/// A download that waits for the user's decision. Contains no values of cookies and headers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PendingCaptureDto {
    /// The id of the pending capture.
    pub transaction_id: String,
    /// The URLs, separated by line breaks.
    pub url: String,
    /// The file name that the browser suggests.
    pub file_name: String,
    /// The time of submission in Unix milliseconds.
    pub created_at_unix_ms: u64,
    /// The size according to the browser; 0: unknown.
    pub file_size: u64,
    /// The URL of the page that contains the link.
    pub referrer: String,
    /// `link:` and the fingerprint of the paired device that sent it, or the extension that did so without a key; empty: another
    /// sender.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    /// The directory; empty: the default one.
    pub save_dir: String,
    /// Whether it was submitted with cookies.
    pub has_cookies: bool,
    /// The names of the submitted headers.
    pub header_names: Vec<String>,
    /// The HTTP method; empty: GET.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// The beginning of the request's body as text; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_may_send_nulls_and_numbers_of_any_kind() {
        let read = |text: &str| serde_json::from_str::<DownloadRequest>(text).unwrap();
        let full = read(r#"{"url":"http://a/","filename":null,"headers":null,"fileSize":5,"unknown":1}"#);
        assert_eq!(
            (full.url.as_str(), full.filename.as_str(), full.file_size),
            ("http://a/", "", Some(5))
        );
        assert_eq!(read(r#"{"fileSize":-1}"#).file_size, Some(-1));
        assert_eq!(read(r#"{"fileSize":"large"}"#).file_size, None);
        assert_eq!(format!("{full:?}"), "DownloadRequest(***)");
    }

    #[test]
    fn what_became_of_it_has_one_member() {
        let text = |result: &CaptureResult| serde_json::to_string(result).unwrap();
        assert_eq!(text(&CaptureResult::TaskIds(vec!["a".into()])), r#"{"taskIds":["a"]}"#);
        assert_eq!(text(&CaptureResult::Ignored(true)), r#"{"ignored":true}"#);
    }
}
