//! aria2's interface over HTTP: JSON-RPC over POST, GET and WebSocket on `/jsonrpc`, XML-RPC on `POST /rpc`. It uses
//! the same session with the daemon and the same projection as the management API.
//!
//! The crate `aria2` implements the calls; this module handles connections, bodies and keys.

mod client;
mod connection;
pub(crate) mod service;

use std::sync::Arc;

use admission::budget::{Exhausted, FREE_BODY_BYTES};
use aria2::{Caller, Fault, json, xml_rpc};
use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use rest::{Problem, ResultMessage, Unanswered};

use self::client::{BodyError, GateClient, Reply, answer, answer_xml, shown_key};
use crate::{
    access::{ConnectionSlot, slot},
    gate::{
        credentials::text,
        sender::{Authorization, Sender},
    },
    surface::{socket, state::App},
};

/// The client that sent `request`, with the key of a header if there is one.
fn client_of(app: &App, sender: Sender, request: &Request) -> GateClient {
    let shown = shown_key(request.headers());
    GateClient::new(Arc::clone(&app.gate), sender, slot(request), shown)
}

fn caller(app: &App, client: GateClient) -> (Caller, Arc<GateClient>) {
    let client = Arc::new(client);
    let judge: Arc<GateClient> = Arc::clone(&client);
    (Caller::new(Arc::clone(&app.aria2), judge), client)
}

fn answered(answer: Result<Reply, Exhausted>) -> Response {
    match answer {
        Ok(answer) => ([(header::CONTENT_TYPE, "application/json-rpc")], answer.into_body()).into_response(),
        Err(error) => Problem::from(error).into_response(),
    }
}

fn refused(error: BodyError, unauthorized: impl FnOnce(&Fault) -> Response) -> Response {
    match error {
        BodyError::Refused(problem) => problem.into_response(),
        BodyError::Unauthorized => unauthorized(&Fault::unauthorized()),
    }
}

/// Call a method of aria2's interface.
///
/// A JSON-RPC object, or an array of them. Errors are in the answer, whose status is 200. The key is `token:…` as the
/// first parameter, as with aria2.
#[utoipa::path(post, path = "/jsonrpc", request_body(content = serde_json::Value, content_type = "application/json"),
    responses((status = 200, description = "The answers", content_type = "application/json-rpc"), Unanswered))]
pub(crate) async fn json_call(
    State(app): State<App>,
    Extension(sender): Extension<Sender>,
    request: Request,
) -> Response {
    let (caller, client) = caller(&app, client_of(&app, sender, &request));
    match client.body(&app.budget, request, json::find_token).await {
        Ok(body) => answered(answer(&app, &caller, &body).await),
        Err(error) => refused(error, |fault| {
            let mut text = Vec::new();
            json::write(&mut text, json::NO_ID, Err(fault));
            answered(Ok(Reply::Text(text.into())))
        }),
    }
}

/// Open a WebSocket for aria2's clients.
///
/// With aria2's calls and notifications. A request without an upgrade is one call, with `params` in base64.
#[utoipa::path(get, path = "/jsonrpc", params(("method" = Option<String>, Query), ("id" = Option<String>, Query),
    ("params" = Option<String>, Query)), responses((status = 101, description = "A WebSocket"),
    (status = 200, description = "The answers", content_type = "application/json-rpc"),
    (status = 403, body = ResultMessage), (status = 404, body = ResultMessage), (status = 426, body = ResultMessage),
    (status = 429, body = ResultMessage), (status = 503, body = ResultMessage)))]
pub(crate) async fn json_connect(
    State(app): State<App>,
    Extension(mut sender): Extension<Sender>,
    mut request: Request,
) -> Response {
    if !request.headers().contains_key(header::UPGRADE) {
        let slot = slot(&request);
        let (parts, _) = request.into_parts();
        return json_query(app, sender, slot, &parts).await;
    }
    let slot = slot(&request);
    let (response, upgrade) = socket::accept(&mut request);
    let Some(upgrade) = upgrade else { return response };
    let shutdown = app.shutdown.clone();
    if let Some(slot) = &slot {
        // The header limits what the connection may cost before its first call, which carries the key itself.
        if sender.authorization == Authorization::Unchecked {
            drop(client_of(&app, sender.clone(), &request));
        }
        slot.limit_reading(FREE_BODY_BYTES);
    }
    if sender.authorization == Authorization::Key {
        sender.authorization = Authorization::Unchecked;
    }
    let (caller, client) = caller(&app, GateClient::new(Arc::clone(&app.gate), sender, slot, None));
    shutdown.spawn_connection(async move {
        match upgrade.await {
            Ok(upgraded) => connection::serve(&app, caller, &client, upgraded).await,
            Err(error) => tracing::debug!(%error, "a client went away while its connection was upgraded"),
        }
    });
    response
}

/// A page can cause such a request without an `Origin`. So the key is always required, and an `Origin` that is present
/// is checked.
async fn json_query(app: App, sender: Sender, slot: Option<Arc<ConnectionSlot>>, request: &Parts) -> Response {
    let headers = &request.headers;
    let is_foreign = text(headers, "sec-fetch-site").is_some_and(|site| site.ends_with("-site"));
    if is_foreign || app.gate.settings.current().key.is_none() {
        let message = "calls in a query need an access key, and a browser only sends its own page's";
        return Problem::new(StatusCode::FORBIDDEN, message).into_response();
    }
    let (caller, _) = caller(
        &app,
        GateClient::new(Arc::clone(&app.gate), sender, slot, shown_key(headers)),
    );
    let message = json::query_message(request.uri.query().unwrap_or_default());
    answered(answer(&app, &caller, &message).await)
}

/// Call a method of aria2's interface as XML-RPC.
///
/// Errors are in the answer, whose status is 200.
#[utoipa::path(post, path = "/rpc", request_body(content = String, content_type = "text/xml"),
    responses((status = 200, description = "The answer", content_type = "text/xml"), Unanswered))]
pub(crate) async fn xml_call(
    State(app): State<App>,
    Extension(sender): Extension<Sender>,
    request: Request,
) -> Response {
    let (caller, client) = caller(&app, client_of(&app, sender, &request));
    let caller = caller.for_xml();
    let text = |body: Body| ([(header::CONTENT_TYPE, "text/xml")], body).into_response();
    let body = match client.body(&app.budget, request, xml_rpc::find_token).await {
        Ok(body) => body,
        Err(error) => return refused(error, |fault| text(xml_rpc::answer(Err(fault)).into())),
    };
    match answer_xml(&app, &caller, &body).await {
        Ok(Some(answer)) => text(answer.into_body()),
        Ok(None) => Problem::invalid("invalid body: it must be an XML-RPC call").into_response(),
        Err(error) => Problem::from(error).into_response(),
    }
}
