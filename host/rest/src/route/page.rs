//! The start page at `/`: what the service is, how to set the first key, and where to continue.

use std::sync::LazyLock;

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::{Html, IntoResponse, Response},
};
use data_encoding::BASE64;
use sha2::{Digest as _, Sha256};

use super::files;
use crate::{app::App, problem::ResultMessage};

const PAGE: &str = include_str!("page.html");

/// Separates the parts of the template: common head, set-up, after the set-up, and the same with the management API
/// off.
const NEXT_PART: &str = "<!-- next part -->\n";

/// The longest `Host` that the page repeats: DNS names have at most 253 characters.
const MAX_HOST_CHARS: usize = 260;

/// Content security policy: only the inline style and script of the page, which sends requests to this server only; no
/// framing.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
        inline(PAGE, "style"),
        inline(PAGE, "script")
    )
});

/// The CSP hash of the inline `<tag>` of the page.
pub(crate) fn inline(page: &str, tag: &str) -> String {
    let text = page.split_once(&format!("<{tag}>")).map_or("", |(_, rest)| rest);
    let text = text.split_once(&format!("</{tag}>")).map_or("", |(text, _)| text);
    format!("sha256-{}", BASE64.encode(&Sha256::digest(text)))
}

/// Show the start page.
///
/// For people who open the service's address in a browser: the web interface, which asks for the key, or lets the first
/// one be set. The page itself needs no key and has nothing of the service's state; neither have its other files, below
/// `/assets/` and beside it.
#[utoipa::path(get, path = "/", responses(
    (status = 200, description = "A page", content_type = "text/html"), (status = 403, body = ResultMessage)))]
pub(crate) async fn page_view(State(app): State<App>, headers: HeaderMap) -> Response {
    if let Some(document) = files::document(&headers) {
        return document;
    }
    let port = app.about.port;
    let part = match (app.about.is_server, app.daemon.has_key()) {
        (true, false) => 1,
        _ if app.daemon.offers_api() => 2,
        _ => 3,
    };
    let mut parts = PAGE.split(NEXT_PART);
    let (head, body) = (parts.next().unwrap_or(""), parts.nth(part - 1).unwrap_or(""));
    let body = body
        .replace("{origin}", &origin(&headers, port))
        .replace("{port}", &port.to_string());
    (
        [(header::CONTENT_SECURITY_POLICY, POLICY.as_str())],
        Html(format!("{head}{body}")),
    )
        .into_response()
}

/// The origin under which the visitor sees this server. A `Host` that is not a plain name or address is not repeated,
/// because it could inject markup.
fn origin(headers: &HeaderMap, port: u16) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_plain = |host: &&str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte);
        (1..=MAX_HOST_CHARS).contains(&host.len()) && host.bytes().all(plain)
    };
    let scheme = if text("x-forwarded-proto") == Some("https") {
        "https"
    } else {
        "http"
    };
    match text("host").filter(is_plain) {
        Some(host) => format!("{scheme}://{host}"),
        None => format!("http://127.0.0.1:{port}"),
    }
}
