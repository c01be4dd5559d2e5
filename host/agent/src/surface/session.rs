//! The page's way in: a probe that says whether the key is right, which a refused WebSocket does not tell a page, and
//! the exchange of the ticket of `svc open` for a session.

use axum::{Extension, Json, extract::State, http::StatusCode};
use protocol::agent::OpenTicket;
use rest::{Body, Gated, Problem, ResultMessage, Sent};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    access::{peer_user::Peer, session::Purpose, ticket::TICKET_TIME},
    gate::{Gate, sender::Sender},
    surface::state::App,
};

/// What a ticket is for; not a path, so that it opens no file.
const fn ticket_path(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Page => "session",
        Purpose::Confirmation => "confirmation",
    }
}

/// Check the access key.
///
/// Answers as `/rpc` would, under the same rules, so that a page learns why it may not connect: browsers do not show it the
/// status of a refused WebSocket.
#[utoipa::path(get, path = "/api/web/session", responses(
    (status = 204, description = "The key is right"), Gated))]
pub(crate) async fn web_session_view() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Begin a session in this machine's browser.
///
/// Exchanges the ticket that `svc open` puts behind the page's address, once and within a minute, for a credential that
/// the page uses in place of the access key. Only for browsers of the service's own user on its own machine; it ends
/// with the service.
#[utoipa::path(post, path = "/api/web/session", request_body = SessionBody, responses(
    (status = 200, body = Session), (status = 403, body = ResultMessage), (status = 404, body = ResultMessage), Sent,
    (status = 500, body = ResultMessage)))]
pub(crate) async fn web_session_create(
    State(app): State<App>,
    Extension(sender): Extension<Sender>,
    Extension(peer): Extension<Peer>,
    Body(SessionBody { ticket }): Body<SessionBody>,
) -> Result<Json<Session>, Problem> {
    if !app.gate.is_own_users(&peer, &sender).await {
        let message = "a session is for browsers of the user who runs this service, on its machine; use the access key";
        return Err(Problem::new(StatusCode::FORBIDDEN, message));
    }
    let issued_for = app.gate.tickets.take_any(&ticket);
    let purpose = [Purpose::Page, Purpose::Confirmation]
        .into_iter()
        .find(|purpose| issued_for.as_deref() == Some(ticket_path(*purpose)));
    let Some(purpose) = purpose else {
        let message = "this ticket is unknown, was used already or is older than a minute; run svc open again";
        return Err(Problem::new(StatusCode::NOT_FOUND, message));
    };
    let token = app.gate.sessions.begin(purpose);
    let token = token.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(Json(Session { token }))
}

/// A ticket for [`web_session_create`].
pub(crate) fn ticket(gate: &Gate, purpose: Purpose) -> Result<OpenTicket, protocol::proof::NoRandom> {
    Ok(OpenTicket {
        ticket: gate.tickets.make(ticket_path(purpose))?,
        expires_in_secs: TICKET_TIME.as_secs(),
    })
}

#[derive(Deserialize, ToSchema)]
pub(crate) struct SessionBody {
    /// What `svc open` put behind `#open=`.
    ticket: String,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Session {
    /// Used as the access key is.
    token: String,
}
