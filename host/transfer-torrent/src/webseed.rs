//! Web servers that have the files of a torrent (BEP 19), asked over the connections that `egress` allows.

use std::{future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use egress::{HttpClient, Redirects, Request, Response, SendError};
use tokio::time::timeout;
use torrent::{WebseedAnswer, WebseedBody, WebseedClient, WebseedError, WebseedRequest};

/// For the head of an answer, redirects included, and for each part of its body.
const PATIENCE: Duration = Duration::from_secs(30);

/// Mirrors are usually one redirect away; nothing else needs more.
const MAX_REDIRECTS: u32 = 5;

/// Asks web servers for ranges of files.
#[derive(Debug)]
pub(crate) struct Webseeds {
    http: HttpClient,
}

impl Webseeds {
    pub(crate) fn new(http: HttpClient) -> Self {
        Self { http }
    }

    /// The answer to a request for these bytes, and for no others.
    async fn ask(&self, request: &WebseedRequest<'_>) -> Result<Response, WebseedError> {
        let last = request.offset + request.length - 1;
        let headers = [
            ("Range".to_owned(), format!("bytes={}-{last}", request.offset)),
            ("Accept-Encoding".to_owned(), "identity".to_owned()),
        ];
        let home = request.webseed.url.as_url();
        let mut redirects = Redirects::at_most(MAX_REDIRECTS);
        let mut url = request.url.as_url().clone();
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WebseedError::Refused);
        }
        loop {
            let sent = self.http.send(Request {
                method: "GET",
                url: url.clone(),
                headers: &headers,
                body: Bytes::new(),
                reach: egress::reach::of(&request.webseed.given_by, home, &url),
                pins: request.pins,
                proxy: request.proxy,
            });
            let response = sent.await.map_err(|error| {
                tracing::debug!(url = %request.url, %error, "a web server of a torrent gave nothing");
                refusal(&error)
            })?;
            let status = response.status();
            if let Some(location) = response.header("location").filter(|_| Redirects::is_redirect(status)) {
                url = redirects.follow(&url, location).map_err(|_| WebseedError::Refused)?;
                continue;
            }
            return if has_range(&response, request) {
                Ok(response)
            } else {
                tracing::debug!(url = %request.url, status, "a web server of a torrent does not serve the range");
                Err(match status {
                    408 | 425 | 429 | 500..=599 => WebseedError::Unavailable,
                    _ => WebseedError::Refused,
                })
            };
        }
    }
}

impl WebseedClient for Webseeds {
    fn fetch<'a>(&'a self, request: WebseedRequest<'a>) -> WebseedAnswer<'a> {
        Box::pin(async move {
            let asking = timeout(PATIENCE, self.ask(&request));
            let response = asking.await.map_err(|_| WebseedError::Unavailable)??;
            Ok(Box::new(Body(response)) as Box<dyn WebseedBody>)
        })
    }
}

/// Whether the body is what was asked for. A server without ranges may send a whole file, if that is what is wanted.
fn has_range(response: &Response, request: &WebseedRequest<'_>) -> bool {
    let is_plain = response
        .header("content-encoding")
        .is_none_or(|encoding| encoding.eq_ignore_ascii_case("identity"));
    let has_length = response.content_length().is_none_or(|length| length == request.length);
    match response.status() {
        200 => is_plain && request.offset == 0 && response.content_length() == Some(request.length),
        206 => {
            is_plain
                && has_length
                && response
                    .header("content-range")
                    .is_some_and(|range| fits(range, request))
        }
        _ => false,
    }
}

/// Whether `Content-Range` names the bytes that were asked for.
fn fits(range: &str, request: &WebseedRequest<'_>) -> bool {
    let of_unit = range.trim().strip_prefix("bytes ").map(str::trim);
    let bounds = of_unit.and_then(|bytes| bytes.split_once('/')?.0.split_once('-'));
    let parsed = bounds.and_then(|(first, last)| Some((first.trim().parse().ok()?, last.trim().parse().ok()?)));
    parsed == Some((request.offset, request.offset + request.length - 1))
}

fn refusal(error: &SendError) -> WebseedError {
    match error {
        SendError::Forbidden(_) | SendError::Tls(_) => WebseedError::Refused,
        SendError::Timeout | SendError::NotHttp(_) | SendError::Failed(_) => WebseedError::Unavailable,
    }
}

struct Body(Response);

impl WebseedBody for Body {
    fn chunk(&mut self) -> Pin<Box<dyn Future<Output = Result<Option<Bytes>, WebseedError>> + Send + '_>> {
        Box::pin(async move {
            let read = timeout(PATIENCE, self.0.chunk()).await;
            read.map_err(|_| WebseedError::Unavailable)?
                .map_err(|error| refusal(&error))
        })
    }
}

#[cfg(test)]
mod tests;
