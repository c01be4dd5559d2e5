//! aria2's dialect: JSON-RPC over POST, GET and WebSocket on `/jsonrpc`, XML-RPC on `POST /rpc`. A peer of the management
//! API over the same session with the daemon and the same projection.
//!
//! `call` says who may call and which method does what; `json` and `xml_rpc` read and write messages; `tell` answers from
//! the projection in the orders of `board`; `add` and `control` have the daemon do things; `option` knows aria2's options. `visitor` is
//! what browsers may do without a key. `client` is the dialect for whoever
//! shares the process.

mod add;
mod board;
mod call;
mod client;
mod connection;
mod control;
mod fault;
mod gid;
mod json;
mod metalink;
pub mod option;
mod params;
mod status;
mod tell;
pub(crate) mod visitor;
mod xml;
mod xml_rpc;

use std::sync::Arc;

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

pub(crate) use self::board::Board;
pub use self::{
    board::Kind,
    call::{FEATURES, VERSION},
    client::{Aria2, Notices},
};
use self::{
    call::{Answer, Caller, NoBody, shown_key},
    fault::Fault,
    option::Options,
    tell::Answers,
};
use crate::{
    access::{
        Seat,
        budget::{Exhausted, FREE_BODY_BYTES},
    },
    gate::{
        credentials::text,
        sender::{Sender, Standing},
    },
    problem::{Problem, ResultMessage},
    settings::config::SessionFile,
    surface::{
        http::{extract::seat, socket},
        state::App,
    },
};

/// Bytes of a session's name.
const SESSION_BYTES: usize = 20;

/// How a client wants the service to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Connections finish what they are at.
    InOrder,
    /// At once.
    AtOnce,
}

/// What is known of this dialect beyond the tasks, as long as the process lives.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Names this start of the agent, in hexadecimal.
    session: String,
    /// Options for downloads to come that no setting stands for.
    template: watch::Sender<Arc<Options>>,
    /// What the program was started with, as far as clients are told.
    started_with: Options,
    answers: Answers,
    ending: watch::Sender<Option<Ending>>,
    session_file: Option<Arc<dyn SessionFile>>,
}

impl Dialect {
    /// Begins a session; `epoch` names this start of the agent.
    pub(crate) fn new(epoch: &str, started_with: Options, session_file: Option<Arc<dyn SessionFile>>) -> Self {
        let digest = Sha256::digest(epoch.as_bytes());
        Self {
            session: HEXLOWER.encode(&digest[..SESSION_BYTES]),
            template: watch::Sender::default(),
            started_with,
            answers: Answers::default(),
            ending: watch::Sender::default(),
            session_file,
        }
    }

    fn template(&self) -> Arc<Options> {
        Arc::clone(&self.template.borrow())
    }

    fn change_template(&self, options: Options) {
        self.template
            .send_modify(|template| *template = Arc::new(options.over(template)));
    }

    fn ask_to_end(&self, is_forced: bool) {
        let ending = if is_forced { Ending::AtOnce } else { Ending::InOrder };
        self.ending.send_replace(Some(ending));
    }

    /// Resolves once a client asked that the service ends.
    pub(crate) async fn asked_to_end(&self) -> Ending {
        let mut ending = self.ending.subscribe();
        let asked = ending.wait_for(Option::is_some).await.map(|ending| *ending);
        match asked {
            Ok(Some(ending)) => ending,
            // The sender is this very value.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

fn answered(answer: Result<Answer, Exhausted>) -> Response {
    match answer {
        Ok(answer) => ([(header::CONTENT_TYPE, "application/json-rpc")], answer.into_body()).into_response(),
        Err(error) => Problem::from(error).into_response(),
    }
}

/// What is answered when a body is not read.
fn refused(no_body: NoBody, unauthorized: impl FnOnce(&Fault) -> Response) -> Response {
    match no_body {
        NoBody::Refused(problem) => problem.into_response(),
        NoBody::Unauthorized => unauthorized(&Fault::unauthorized()),
    }
}

/// Take calls of aria2's clients.
///
/// A JSON-RPC object, or an array of them. Errors are in the answer, whose status is 200. The key is `token:…` as the
/// first parameter, as with aria2.
#[utoipa::path(post, path = "/jsonrpc", request_body(content = serde_json::Value, content_type = "application/json"),
    responses((status = 200, description = "The answers", content_type = "application/json-rpc"),
    (status = 400, body = ResultMessage), (status = 403, body = ResultMessage), (status = 404, body = ResultMessage),
    (status = 408, body = ResultMessage), (status = 413, body = ResultMessage), (status = 429, body = ResultMessage),
    (status = 503, body = ResultMessage)))]
pub(crate) async fn json_call(
    State(app): State<App>,
    Extension(sender): Extension<Sender>,
    request: Request,
) -> Response {
    let caller = Caller::new(app, sender, seat(&request), shown_key(request.headers()));
    match caller.body(request, json::find_token).await {
        Ok(body) => answered(caller.answer(&body).await),
        Err(no_body) => refused(no_body, |fault| {
            let mut text = Vec::new();
            json::write(&mut text, json::NO_ID, Err(fault));
            answered(Ok(Answer::Whole(text.into())))
        }),
    }
}

/// Open a connection for aria2's clients.
///
/// A WebSocket with aria2's calls and notifications. Without an upgrade it is one call, with `params` in base64.
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
        let seat = seat(&request);
        let (parts, _) = request.into_parts();
        return json_query(app, sender, seat, &parts).await;
    }
    let seat = seat(&request);
    let (response, upgrade) = socket::accept(&mut request);
    let Some(upgrade) = upgrade else { return response };
    let (tracker, cut) = (app.tracker.clone(), app.cut.clone());
    if let Some(seat) = &seat {
        // A header counts for what the connection may cost before its first call, which says the key itself.
        if sender.standing == Standing::Open {
            drop(Caller::new(
                app.clone(),
                sender.clone(),
                Some(Arc::clone(seat)),
                shown_key(request.headers()),
            ));
        }
        seat.limit_reading(FREE_BODY_BYTES);
    }
    if sender.standing == Standing::Keyed {
        sender.standing = Standing::Open;
    }
    let caller = Caller::new(app, sender, seat, None);
    tracker.spawn(cut.run_until_cancelled_owned(async move {
        match upgrade.await {
            Ok(upgraded) => connection::serve(caller, upgraded).await,
            Err(error) => tracing::debug!(%error, "a client went away while its connection was upgraded"),
        }
    }));
    response
}

/// A page can have a browser send such a request without saying where it comes from. So it needs the key, always, and a
/// browser that does say so is believed.
async fn json_query(app: App, sender: Sender, seat: Option<Arc<Seat>>, request: &Parts) -> Response {
    let headers = &request.headers;
    let is_foreign = text(headers, "sec-fetch-site").is_some_and(|site| site.ends_with("-site"));
    if is_foreign || app.gate.vault.settings().key.is_none() {
        let message = "calls in a query need an access key, and a browser only sends its own page's";
        return Problem::new(StatusCode::FORBIDDEN, message).into_response();
    }
    let caller = Caller::new(app, sender, seat, shown_key(headers));
    let message = json::query_message(request.uri.query().unwrap_or_default());
    answered(caller.answer(&message).await)
}

/// Take a call of aria2's clients as XML-RPC.
///
/// Errors are in the answer, whose status is 200.
#[utoipa::path(post, path = "/rpc", request_body(content = String, content_type = "text/xml"),
    responses((status = 200, description = "The answer", content_type = "text/xml"),
    (status = 400, body = ResultMessage), (status = 403, body = ResultMessage), (status = 404, body = ResultMessage),
    (status = 408, body = ResultMessage), (status = 413, body = ResultMessage), (status = 429, body = ResultMessage),
    (status = 503, body = ResultMessage)))]
pub(crate) async fn xml_call(
    State(app): State<App>,
    Extension(sender): Extension<Sender>,
    request: Request,
) -> Response {
    let caller = Caller::new(app, sender, seat(&request), shown_key(request.headers())).for_xml();
    let text = |body: Body| ([(header::CONTENT_TYPE, "text/xml")], body).into_response();
    let body = match caller.body(request, xml_rpc::find_token).await {
        Ok(body) => body,
        Err(no_body) => return refused(no_body, |fault| text(xml_rpc::answer(Err(fault)).into())),
    };
    match caller.answer_xml(&body).await {
        Ok(Some(answer)) => text(answer.into_body()),
        Ok(None) => Problem::invalid("invalid body: it must be an XML-RPC call").into_response(),
        Err(error) => Problem::from(error).into_response(),
    }
}
