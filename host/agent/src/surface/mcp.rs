//! The Model Context Protocol over HTTP. Stateless: no session is kept, whichever revision a client uses.
//!
//! Written by hand, because the service needs five methods only and must also serve clients that accept nothing but
//! JSON.

mod call;
mod envelope;
mod progress;
mod record;
mod schema;
mod tool;

use admission::budget::{FREE_BODY_BYTES, MAX_ANSWER_BYTES};
use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use rest::{Gated, Problem, Raw, ResultMessage};
use serde_json::{Map, Value, json};

pub use self::tool::described as mcp_tools;
use self::{
    envelope::{Message, REVISIONS, Refusal, Request, Revision},
    tool::Tool,
};
use crate::surface::{committed, state::App};

const INSTRUCTIONS: &str = "Downloads files to the machine that this service runs on. Add a URL with download_add, then \
    follow it with download_get until its status is 3 (completed) or 4 (error).";

/// How long clients may cache a list: tools change with the build only.
const TTL_MS: u64 = 3_600_000;

/// Call the tools for AI clients.
///
/// The Model Context Protocol: one JSON-RPC 2.0 object per request. `tools/list` lists the tools.
#[utoipa::path(post, path = "/mcp", request_body = Object, responses(
    (status = 200, description = "A JSON-RPC response, or events that end with one", body = Object),
    (status = 202, description = "The notification was accepted"),
    (status = 400, description = "A JSON-RPC error: not a request, or of another revision"),
    (status = 408, body = ResultMessage), (status = 413, body = ResultMessage), (status = 503, body = ResultMessage), Gated))]
pub(crate) async fn message(State(app): State<App>, headers: HeaderMap, Raw(body): Raw) -> Response {
    let turn = match body.len() {
        0..=FREE_BODY_BYTES => None,
        _ => match app.budget.large().await {
            Ok(turn) => Some(turn),
            Err(exhausted) => return Problem::from(exhausted).into_response(),
        },
    };
    let message = envelope::read(&headers, &body);
    drop((turn, body));
    match message {
        Ok(Message::Notice) => StatusCode::ACCEPTED.into_response(),
        Ok(Message::Request(request)) => answer(app, &headers, request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn answer(app: App, headers: &HeaderMap, request: Request) -> Response {
    let result = match (request.revision, request.method.as_str()) {
        (Revision::Handshake, "initialize") => Ok(initialized(&app, &request.params)),
        (Revision::Handshake, "ping") => Ok(json!({})),
        (Revision::Stateless, "server/discover") => Ok(discovered(&app)),
        (_, "tools/list") => tools(&request),
        (_, "tools/call") => match named(&request) {
            Ok((tool, arguments)) => {
                let token = progress::token(&request.params).filter(|_| accepts_events(headers));
                let answering = call::call(app.clone(), tool, arguments);
                if let Some(token) = token {
                    let finish = move |result| success(&app, &request, result);
                    return progress::events(token, answering, finish);
                }
                Ok(answering.await)
            }
            Err(refusal) => Err(refusal),
        },
        (_, method) => Err(request.refuse(envelope::METHOD_NOT_FOUND, format!("unknown method: {method}"))),
    };
    match result {
        Ok(result) => {
            let message = success(&app, &request, result).to_string();
            if message.len() > MAX_ANSWER_BYTES {
                let why = format!("the result has more than {} MiB", MAX_ANSWER_BYTES >> 20);
                return request.refuse(envelope::INTERNAL_ERROR, why).into_response();
            }
            match app.budget.hold(message.into_bytes(), None).await {
                Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
                Err(exhausted) => Problem::from(exhausted).into_response(),
            }
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Without a session, every result names the server.
fn success(app: &App, request: &Request, mut result: Value) -> Value {
    if request.revision == Revision::Stateless {
        result["resultType"] = "complete".into();
        result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server(app) });
    }
    json!({ "jsonrpc": "2.0", "id": request.id, "result": result })
}

fn server(app: &App) -> Value {
    json!({ "name": "Svc", "version": &*app.version })
}

fn capabilities() -> Value {
    json!({ "tools": { "listChanged": false } })
}

/// Negotiates the revision: the requested one if it is supported, else the newest one with a handshake.
fn initialized(app: &App, params: &Map<String, Value>) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let known = REVISIONS
        .iter()
        .find(|(name, revision)| *revision == Revision::Handshake && Some(*name) == asked);
    let newest = REVISIONS.iter().rfind(|(_, revision)| *revision == Revision::Handshake);
    json!({
        "protocolVersion": known.or(newest).map(|(name, _)| name),
        "capabilities": capabilities(),
        "serverInfo": server(app),
        "instructions": INSTRUCTIONS,
    })
}

fn discovered(app: &App) -> Value {
    json!({
        "supportedVersions": REVISIONS.map(|(name, _)| name),
        "capabilities": capabilities(),
        "serverInfo": server(app),
        "instructions": INSTRUCTIONS,
        "ttlMs": TTL_MS,
        "cacheScope": "private",
    })
}

fn tools(request: &Request) -> Result<Value, Refusal> {
    if request.params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(request.refuse(envelope::INVALID_PARAMS, "there is no such page"));
    }
    let tools: Value = serde_json::from_slice(&committed::mcp_tools()).expect("what was encoded decodes");
    let mut result = json!({ "tools": tools });
    if request.revision == Revision::Stateless {
        result["ttlMs"] = TTL_MS.into();
        result["cacheScope"] = "private".into();
    }
    Ok(result)
}

/// The called tool and its arguments.
fn named(request: &Request) -> Result<(Tool, Map<String, Value>), Refusal> {
    let refuse = |message: String| request.refuse(envelope::INVALID_PARAMS, message);
    let name = request.params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| refuse("params.name must be the name of a tool".to_owned()))?;
    let tool = Tool::parse(name).ok_or_else(|| refuse(format!("unknown tool: {name}")))?;
    match request.params.get("arguments") {
        None | Some(Value::Null) => Ok((tool, Map::new())),
        Some(Value::Object(arguments)) => Ok((tool, arguments.clone())),
        Some(_) => Err(refuse("params.arguments must be an object".to_owned())),
    }
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let lists = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|kind| {
        kind.split(';')
            .next()
            .is_some_and(|kind| kind.trim() == "text/event-stream")
    })
}

fn json_response(message: &Value) -> Response {
    let text = Bytes::from(message.to_string());
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = self.data {
            error["data"] = data;
        }
        let mut response = json_response(&json!({ "jsonrpc": "2.0", "id": self.id, "error": error }));
        *response.status_mut() = self.status;
        response
    }
}
