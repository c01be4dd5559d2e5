//! Interactive documentation: Swagger UI, embedded in the executable; nothing is loaded from elsewhere.

use std::sync::LazyLock;

use axum::{
    extract::Path,
    http::header,
    response::{Html, IntoResponse, Response},
};

use super::page::inline;
use crate::problem::{Problem, ResultMessage};

const PAGE: &str = include_str!("docs.html");

/// Packed by `assets/vendor`: name, content type, bytes.
const ASSETS: [(&str, &str, &[u8]); 2] = [
    (
        "swagger-ui.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../../assets/swagger-ui.js.gz"),
    ),
    (
        "swagger-ui.css",
        "text/css; charset=utf-8",
        include_bytes!("../../../assets/swagger-ui.css.gz"),
    ),
];

/// Content security policy: only the page's own parts, and requests to this server only. Images are data URLs in the
/// style sheet.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src 'self' '{}'; script-src 'self' '{}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        inline(PAGE, "style"),
        inline(PAGE, "script")
    )
});

/// Read and try the interface in a browser.
///
/// A page made of `openapi.json`. To try a call, enter the access key under "Authorize"; the page forgets it when it is
/// closed.
#[utoipa::path(get, path = "/api/v1/docs", responses(
    (status = 200, description = "A page", content_type = "text/html"), (status = 403, body = ResultMessage),
    (status = 404, body = ResultMessage, description = "The management API is off")))]
pub(crate) async fn docs_view() -> Response {
    ([(header::CONTENT_SECURITY_POLICY, POLICY.as_str())], Html(PAGE)).into_response()
}

/// Get a part of the page.
///
/// Its script or its style sheet, compressed.
#[utoipa::path(get, path = "/api/v1/docs/{file}", params(("file" = String, Path)), responses(
    (status = 200, description = "The part", content_type = "text/javascript"), (status = 403, body = ResultMessage),
    (status = 404, body = ResultMessage)))]
pub(crate) async fn docs_asset(Path(file): Path<String>) -> Result<Response, Problem> {
    let asset = ASSETS.into_iter().find(|(name, ..)| *name == file);
    let (_, kind, bytes) = asset.ok_or_else(Problem::not_found)?;
    let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_ENCODING, "gzip")];
    Ok((headers, bytes).into_response())
}
