//! Parses and validates one message: method, revision of the protocol, and consistency of headers and body. Pure.

use admission::json::check_tree;
use axum::http::{HeaderMap, StatusCode};
use data_encoding::BASE64;
use serde_json::{Map, Value, json};

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL_ERROR: i64 = -32603;
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Revision {
    /// Begins with `initialize`; later requests may name the agreed revision.
    Handshake,
    /// No handshake: every request is self-contained.
    Stateless,
}

/// Supported revisions, oldest first.
pub(super) const REVISIONS: [(&str, Revision); 3] = [
    ("2025-06-18", Revision::Handshake),
    ("2025-11-25", Revision::Handshake),
    ("2026-07-28", Revision::Stateless),
];

pub(super) enum Message {
    /// A notification, which has no answer.
    Notice,
    Request(Request),
}

pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
    pub(super) revision: Revision,
}

#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) id: Value,
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Request {
    /// An error answer. Clients of the newest revision expect the error in the HTTP status, too.
    pub(super) fn refuse(&self, code: i64, message: impl Into<String>) -> Refusal {
        let status = match (self.revision, code) {
            (Revision::Handshake, _) => StatusCode::OK,
            (Revision::Stateless, METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
            (Revision::Stateless, _) => StatusCode::BAD_REQUEST,
        };
        Refusal {
            status,
            ..refusal(self.id.clone(), code, message)
        }
    }
}

fn refusal(id: Value, code: i64, message: impl Into<String>) -> Refusal {
    Refusal {
        status: StatusCode::BAD_REQUEST,
        id,
        code,
        message: message.into(),
        data: None,
    }
}

/// Parses a message. Batches are refused.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Message, Refusal> {
    let invalid = |message: &str| refusal(Value::Null, INVALID_REQUEST, message);
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(invalid(
            "the body must be one JSON-RPC object; several at once are not taken",
        ));
    }
    check_tree(body).map_err(|error| invalid(&format!("the body is too large: {error}")))?;
    let message: Value =
        serde_json::from_slice(body).map_err(|error| refusal(Value::Null, PARSE_ERROR, format!("no JSON: {error}")))?;
    let Value::Object(mut message) = message else {
        return Err(invalid("the body must be one JSON-RPC object"));
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("jsonrpc must be \"2.0\""));
    }
    let id = message.remove("id");
    let Some(Value::String(method)) = message.remove("method") else {
        // A response: the server sends no requests, so nothing waits for it.
        let is_response = message.contains_key("result") || message.contains_key("error");
        return is_response
            .then_some(Message::Notice)
            .ok_or_else(|| invalid("method must be a text"));
    };
    let id = match id {
        None => {
            known_version(headers, Value::Null)?;
            return Ok(Message::Notice);
        }
        Some(id @ (Value::String(_) | Value::Number(_))) => id,
        Some(_) => return Err(invalid("id must be a text or a number")),
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(refusal(id, INVALID_PARAMS, "params must be an object")),
    };
    let mut request = Request {
        id,
        method,
        params,
        revision: Revision::Handshake,
    };
    if request.method == "initialize" {
        return Ok(Message::Request(request));
    }
    let has_own_version = request
        .params
        .get("_meta")
        .is_some_and(|meta| meta.get(VERSION_KEY).is_some());
    if known_version(headers, request.id.clone())? == Some(Revision::Stateless) || has_own_version {
        request.revision = Revision::Stateless;
        check_stateless(headers, &request)?;
    }
    Ok(Message::Request(request))
}

/// The revision in the header, if present.
fn known_version(headers: &HeaderMap, id: Value) -> Result<Option<Revision>, Refusal> {
    let Some(named) = headers.get(VERSION_HEADER) else {
        return Ok(None);
    };
    let found = REVISIONS.iter().find(|(name, _)| named.as_bytes() == name.as_bytes());
    match found {
        Some((_, revision)) => Ok(Some(*revision)),
        None => Err(unsupported(id, &String::from_utf8_lossy(named.as_bytes()))),
    }
}

fn unsupported(id: Value, requested: &str) -> Refusal {
    let supported = REVISIONS.map(|(name, _)| name);
    Refusal {
        data: Some(json!({ "supported": supported, "requested": requested })),
        ..refusal(id, UNSUPPORTED_VERSION, "unsupported protocol version")
    }
}

/// A request without a session must state revision and client capabilities; its headers must match the body, so that
/// proxies that route by headers and this server see the same request.
fn check_stateless(headers: &HeaderMap, request: &Request) -> Result<(), Refusal> {
    let meta = request.params.get("_meta").and_then(Value::as_object);
    let own = |key: &str| meta.and_then(|meta| meta.get(key));
    for key in [VERSION_KEY, CAPABILITIES_KEY] {
        if own(key).is_none() {
            return Err(request.refuse(INVALID_PARAMS, format!("params._meta needs {key}")));
        }
    }
    let version = own(VERSION_KEY).and_then(Value::as_str).unwrap_or_default();
    let name = request.params.get("name").and_then(Value::as_str);
    let mirrors = [
        (VERSION_HEADER, Some(version)),
        (METHOD_HEADER, Some(request.method.as_str())),
        (NAME_HEADER, name.filter(|_| request.method == "tools/call")),
    ];
    for (header, expect) in mirrors {
        if expect.is_some() && one(headers, header).as_deref() != expect {
            return Err(request.refuse(
                HEADER_MISMATCH,
                format!("the header {header} is not what the body says"),
            ));
        }
    }
    let is_served = REVISIONS.contains(&(version, Revision::Stateless));
    is_served
        .then_some(())
        .ok_or_else(|| unsupported(request.id.clone(), version))
}

/// The only value of a header, decoded. Two values would be ambiguous.
fn one(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    match value
        .strip_prefix("=?base64?")
        .and_then(|value| value.strip_suffix("?="))
    {
        Some(encoded) => String::from_utf8(BASE64.decode(encoded.as_bytes()).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn check(headers: &[(&'static str, &'static str)], body: &Value, expect: Result<Option<Revision>, (i64, u16)>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let found = match read(&map, body.to_string().as_bytes()) {
            Ok(Message::Notice) => Ok(None),
            Ok(Message::Request(request)) => Ok(Some(request.revision)),
            Err(refusal) => Err((refusal.code, refusal.status.as_u16())),
        };
        assert_eq!(found, expect, "{headers:?} {body}");
    }

    #[test]
    fn one_object_is_one_message() {
        let handshake = Ok(Some(Revision::Handshake));
        check(&[], &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}), handshake);
        check(
            &[],
            &json!({"jsonrpc": "2.0", "id": "a", "method": "ping", "params": null}),
            handshake,
        );
        check(
            &[],
            &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            Ok(None),
        );
        check(&[], &json!({"jsonrpc": "2.0", "id": 1, "result": {}}), Ok(None));
        for body in [
            json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]),
            json!(1),
            json!({"id": 1, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 1}),
            json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
        ] {
            check(&[], &body, Err((INVALID_REQUEST, 400)));
        }
        check(
            &[],
            &json!({"jsonrpc": "2.0", "id": 1, "method": "a", "params": []}),
            Err((INVALID_PARAMS, 400)),
        );
        let broken = read(&HeaderMap::new(), b"{").err().map(|refusal| refusal.code);
        assert_eq!(broken, Some(PARSE_ERROR));
    }

    #[test]
    fn an_unknown_version_is_refused_except_in_the_first_request() {
        let old = &[(VERSION_HEADER, "1900-01-01")];
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        check(old, &ping, Err((UNSUPPORTED_VERSION, 400)));
        check(
            old,
            &json!({"jsonrpc": "2.0", "method": "a"}),
            Err((UNSUPPORTED_VERSION, 400)),
        );
        let first = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"});
        check(old, &first, Ok(Some(Revision::Handshake)));
        check(&[(VERSION_HEADER, "2025-11-25")], &ping, Ok(Some(Revision::Handshake)));
    }

    #[test]
    fn without_a_session_headers_and_body_say_the_same() {
        let body = |version: &str| {
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "queue_list",
                "_meta": {VERSION_KEY: version, CAPABILITIES_KEY: {}}}})
        };
        let version = (VERSION_HEADER, "2026-07-28");
        let (method, name) = ((METHOD_HEADER, "tools/call"), (NAME_HEADER, "queue_list"));
        check(
            &[version, method, name],
            &body("2026-07-28"),
            Ok(Some(Revision::Stateless)),
        );
        let encoded = (NAME_HEADER, "=?base64?cXVldWVfbGlzdA==?=");
        check(
            &[version, method, encoded],
            &body("2026-07-28"),
            Ok(Some(Revision::Stateless)),
        );
        for headers in [
            &[][..],
            &[version],
            &[version, method],
            &[version, method, (NAME_HEADER, "other")],
            &[version, (METHOD_HEADER, "ping"), name],
            &[version, method, name, name],
        ] {
            check(headers, &body("2026-07-28"), Err((HEADER_MISMATCH, 400)));
        }
        check(
            &[version, method, name],
            &body("2027-01-01"),
            Err((HEADER_MISMATCH, 400)),
        );
        check(&[method, name], &body("2027-01-01"), Err((HEADER_MISMATCH, 400)));
        let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        check(&[version, (METHOD_HEADER, "ping")], &bare, Err((INVALID_PARAMS, 400)));
    }
}
