//! The page at the root: what this is, and how to go on.

use axum::{
    extract::State,
    http::header,
    response::{Html, IntoResponse, Response},
};

use super::App;
use crate::{config::Host, problem::ResultMessage};

/// Nothing is loaded, nothing runs, nobody frames it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

const HEAD: &str = "<!doctype html><html lang=en><meta charset=utf-8>\
<meta name=viewport content='width=device-width,initial-scale=1'><title>Svc</title>\
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}\
pre{background:#8882;padding:.8rem;overflow:auto;border-radius:.4rem}</style>\
<h1>Svc</h1><p>A download service. It is running.</p>";

const SETUP: &str = "<h2>Set-up needed</h2><p>There is no access key yet. On the machine itself:</p>\
<pre>curl -H 'Content-Type: application/json' \\\n  -d '{\"token\":\"choose-a-key-1\"}' http://127.0.0.1:17800/api/v1/setup</pre>\
<p>From elsewhere, add <code>\"code\"</code> with the code that was shown where the server was started. A key has 8 to \
128 visible characters, at least one letter and one digit.</p>";

const READY: &str = "<h2>How to go on</h2><p>Add a download with your access key:</p>\
<pre>curl -H 'Authorization: Bearer YOUR-KEY' \\\n  -d '{\"url\":\"https://example.com/file\"}' http://127.0.0.1:17800/api/v1/tasks</pre>\
<p>The whole interface is described in <a href=/api/v1/openapi.json>openapi.json</a> while the management API is on.</p>";

/// What this is and how to go on.
#[utoipa::path(get, path = "/", responses(
    (status = 200, description = "A page", content_type = "text/html"), (status = 403, body = ResultMessage)))]
pub(super) async fn page_view(State(app): State<App>) -> Response {
    let vault = &app.gate.vault;
    let is_open = vault.host() == Host::Headless && vault.settings().key.is_none();
    let page = format!("{HEAD}{}", if is_open { SETUP } else { READY });
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(page)).into_response()
}
