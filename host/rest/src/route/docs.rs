//! Interactive documentation: Swagger UI, embedded in the executable; nothing is loaded from elsewhere.

use std::sync::LazyLock;

use axum::{
    body::Bytes,
    extract::Path,
    http::header,
    response::{Html, IntoResponse, Response},
};
use data_encoding::BASE64;
use sha2::{Digest as _, Sha256};

use crate::{
    packed,
    problem::{Problem, ResultMessage},
};

const PAGE: &str = include_str!("docs.html");

/// Packed by `assets/vendor`: name, content type, bytes.
const ASSETS: [(&str, &str, &[u8]); 2] = [
    (
        "swagger-ui.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/swagger-ui.js.gz"),
    ),
    (
        "swagger-ui.css",
        "text/css; charset=utf-8",
        include_bytes!("../../assets/swagger-ui.css.gz"),
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

/// The CSP hash of the inline `<tag>` of the page.
fn inline(page: &str, tag: &str) -> String {
    let text = page.split_once(&format!("<{tag}>")).map_or("", |(_, rest)| rest);
    let text = text.split_once(&format!("</{tag}>")).map_or("", |(text, _)| text);
    format!("sha256-{}", BASE64.encode(&Sha256::digest(text)))
}

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

/// This description, as `OpenAPI` 3.1.
///
/// Needs no key. It is made from the routes of the running version, so it is never out of date.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses(
    (status = 200, description = "OpenAPI 3.1", content_type = "application/json"),
    (status = 403, body = ResultMessage),
    (status = 404, body = ResultMessage, description = "The management API is off")))]
pub(crate) async fn openapi_view() -> Response {
    /// Unpacked once, because the route needs no key, and the text has a quarter of a mebibyte.
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| packed::openapi().into());
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}
