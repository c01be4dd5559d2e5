//! The web interface: the files of `host/web/dist`, embedded as they were built. All of its references are relative, so it
//! works below any prefix of a proxy.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};

use crate::{app::App, packed, problem::ResultMessage};

/// A file, in the forms in which it was built.
#[derive(Debug)]
struct File {
    /// Its path below `/`.
    name: &'static str,
    plain: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
    brotli: Option<&'static [u8]>,
}

/// Listed by the build script.
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The document itself, at `/`.
const DOCUMENT: &str = "index.html";

/// Files whose names contain the hash of their content.
const HASHED: &str = "assets/";

/// Only the page's own files, no inline script or style, no framing, and only the two policies that the page makes may
/// turn text into a script's address or into markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; \
     connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors \
     'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html svc-url";

/// Whether `path` is a file of the web interface, other than the document at `/`.
pub fn is_page_file(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|name| named(name).is_some())
}

/// Show the web interface.
///
/// For people who open the service's address in a browser. It asks for the key, or lets the first one be set. The page
/// itself needs no key and has nothing of the service's state; neither have its other files, below `/assets/` and beside
/// it.
#[utoipa::path(get, path = "/", responses(
    (status = 200, description = "A page", content_type = "text/html"), (status = 403, body = ResultMessage)))]
pub(crate) async fn page_view(headers: HeaderMap) -> Response {
    match named(DOCUMENT) {
        Some(document) => document.answer(&headers),
        // The build script refuses to build without it.
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A route for each file.
pub(crate) fn routes() -> impl Iterator<Item = (String, MethodRouter<App>)> {
    FILES.iter().map(|file| {
        let handler = get(async move |headers: HeaderMap| file.answer(&headers));
        (format!("/{}", file.name), handler)
    })
}

fn named(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

impl File {
    fn answer(&self, headers: &HeaderMap) -> Response {
        let (encoding, bytes) = match (self.brotli, self.gzip, self.plain) {
            (Some(brotli), ..) if accepts(headers, "br") => (Some("br"), brotli.into()),
            (_, Some(gzip), _) if accepts(headers, "gzip") => (Some("gzip"), gzip.into()),
            (.., Some(plain)) => (None, plain.into()),
            (_, Some(gzip), None) => (None, packed::unpacked(gzip).into()),
            (_, None, None) => return StatusCode::NOT_ACCEPTABLE.into_response(),
        };
        let bytes: axum::body::Bytes = bytes;
        let is_document = self.name == DOCUMENT;
        let lifetime = if self.name.starts_with(HASHED) {
            "public, max-age=31536000, immutable"
        } else if is_document {
            "no-store"
        } else {
            "no-cache"
        };
        let mut response = (StatusCode::OK, bytes).into_response();
        let set = response.headers_mut();
        let mut set = |name, value| drop(set.insert(name, HeaderValue::from_static(value)));
        set(header::CONTENT_TYPE, kind(self.name));
        set(header::CACHE_CONTROL, lifetime);
        set(header::VARY, "accept-encoding");
        if let Some(encoding) = encoding {
            set(header::CONTENT_ENCODING, encoding);
        }
        set(header::CONTENT_SECURITY_POLICY, POLICY);
        set(
            header::HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        );
        set(
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        );
        response
    }
}

/// Whether the client takes the encoding: it names it, and not with the quality 0.
fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut offers = lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','));
    offers.any(|offer| {
        let mut parts = offer.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        let is_refused = |part: &str| {
            part.strip_prefix("q=")
                .is_some_and(|quality| quality.parse() == Ok(0.0))
        };
        is_named && !parts.any(is_refused)
    })
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(encodings: &'static str) -> HeaderMap {
        [(header::ACCEPT_ENCODING, HeaderValue::from_static(encodings))]
            .into_iter()
            .collect()
    }

    fn header(response: &Response, name: &str) -> String {
        let value = response
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap_or_default());
        value.unwrap_or_default().to_owned()
    }

    #[test]
    fn a_client_gets_the_smallest_form_that_it_takes() {
        let file = File {
            name: "assets/a-1.js",
            plain: Some(b"plain"),
            gzip: Some(b"gzip"),
            brotli: Some(b"brotli"),
        };
        for (encodings, expected) in [
            ("gzip, deflate, br", "br"),
            ("br;q=0, gzip", "gzip"),
            ("br;q=0.5", "br"),
            ("identity", ""),
            ("brr, x-gzip", ""),
        ] {
            let response = file.answer(&asked(encodings));
            assert_eq!(header(&response, "content-encoding"), expected, "{encodings}");
            assert_eq!(header(&response, "vary"), "accept-encoding");
        }
    }

    #[test]
    fn only_names_with_a_hash_are_kept_for_ever() {
        let lifetime = |name| {
            let file = File {
                name,
                plain: Some(b""),
                gzip: None,
                brotli: None,
            };
            header(&file.answer(&HeaderMap::new()), "cache-control")
        };
        assert!(lifetime("assets/a-1.js").ends_with("immutable"));
        assert_eq!(lifetime("index.html"), "no-store");
        assert_eq!(lifetime("manifest.webmanifest"), "no-cache");
    }

    #[test]
    fn a_file_that_was_only_packed_is_unpacked_for_who_needs_that() {
        use std::io::Write as _;

        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"text").unwrap();
        let file = File {
            name: "assets/a-1.css",
            plain: None,
            gzip: Some(packed.finish().unwrap().leak()),
            brotli: None,
        };
        let plain = file.answer(&HeaderMap::new());
        assert_eq!(
            (plain.status(), header(&plain, "content-encoding")),
            (StatusCode::OK, String::new())
        );
        assert_eq!(header(&file.answer(&asked("gzip")), "content-encoding"), "gzip");
    }
}
