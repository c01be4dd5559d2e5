//! Downloads that browsers hand over, and those of them that wait for their user's word.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::record::task::RequestBody;

/// A download as a browser hands it over. Only `url` must be there; `null` is as good as nothing.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DownloadRequest {
    /// The source, or several with a line each.
    #[serde(deserialize_with = "or_default")]
    #[schema(required, example = "https://example.com/file.zip")]
    pub url: String,
    /// The file's name; empty takes it from the server or the URL.
    #[serde(deserialize_with = "or_default")]
    pub filename: String,
    /// The directory; empty is the default one.
    #[serde(deserialize_with = "or_default")]
    pub save_dir: String,
    /// The page that it was found on.
    #[serde(deserialize_with = "or_default")]
    pub referrer: String,
    /// A `Cookie` value.
    #[serde(deserialize_with = "or_default")]
    pub cookies: String,
    /// The headers that the browser sent or would send.
    pub headers: Option<BTreeMap<String, String>>,
    /// What the browser knows of its size, to be shown; -1 is unknown. What the server says is what counts.
    #[serde(deserialize_with = "size")]
    pub file_size: Option<i64>,
    /// What the browser knows of its type. If the server sends a web page instead, the download fails.
    pub mime_type: Option<String>,
    /// The method; none is GET.
    pub method: Option<String>,
    /// The body of the request.
    pub body: Option<RequestBody>,
    /// A separate audio track.
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
    /// Whether to make the task without asking; none is as the user set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<bool>,
}

/// What became of a download that was handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CaptureResult {
    /// It is these tasks now.
    TaskIds(Vec<String>),
    /// It waits for its user's word under these names.
    TransactionIds(Vec<String>),
    /// Handing over is switched off.
    Ignored(bool),
}

/// Params of `agent.capture.resolve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaptureResolveParams {
    /// Which download.
    pub transaction_id: String,
    /// Whether it is wanted.
    pub accepted: bool,
    /// What the user changed: where it goes, its name, which of its URLs. What is empty stays as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<DownloadRequest>,
}

/// Result of `agent.capture.resolve`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaptureResolved {
    /// Whether it is a task now.
    #[serde(default)]
    pub accepted: bool,
    /// The task, or the first of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// All of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
}

/// A download that waits for its user's word. No value of a cookie or header is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PendingCaptureDto {
    /// Its name.
    pub transaction_id: String,
    /// Its URLs, a line each.
    pub url: String,
    /// The name that the browser would give its file.
    pub file_name: String,
    /// When it was handed over: Unix milliseconds.
    pub created_at_unix_ms: u64,
    /// What the browser knows of its size; 0 is unknown.
    pub file_size: u64,
    /// The page that it was found on.
    pub referrer: String,
    /// Where it would go; empty is the default directory.
    pub save_dir: String,
    /// Whether it came with cookies.
    pub has_cookies: bool,
    /// The names of the headers that it came with.
    pub header_names: Vec<String>,
    /// The method; empty is GET.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// The beginning of the request's body, as text; empty is none.
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
