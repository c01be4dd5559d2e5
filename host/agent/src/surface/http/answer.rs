//! The responses of most routes.

use std::convert::Infallible;

use axum::{
    Json,
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use futures_util::stream;
use protocol::{Method, OkResult};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    problem::{Problem, ResultMessage},
    projection::tasks::{Listing, Projection},
    surface::{http::extract::PageParams, state::App},
};

/// The record that a route answers with.
pub(crate) type Answer<T> = Result<Json<T>, Problem>;

/// The answer of a route without a result.
pub(crate) type Ack = Answer<ResultMessage>;

/// Calls a method and answers with its result.
pub(crate) async fn call<T: DeserializeOwned>(
    app: &App,
    method: Method,
    params: &(impl Serialize + Sync),
) -> Answer<T> {
    Ok(Json(app.daemon.call(method, params).await?))
}

/// Calls a method without a result and acknowledges it.
pub(crate) async fn done(app: &App, method: Method, params: &(impl Serialize + Sync)) -> Ack {
    let OkResult { .. } = app.daemon.call(method, params).await?;
    Ok(ok())
}

/// A part of the projection, if it is current.
pub(crate) fn part(app: &App, part: impl FnOnce(&Projection) -> &str) -> Result<Response, Problem> {
    Ok(json(app.daemon.known()?.with_tasks(|daemon| part(daemon).to_owned())))
}

pub(crate) fn ok() -> Json<ResultMessage> {
    Json(ResultMessage {
        success: true,
        message: "ok".to_owned(),
        code: None,
    })
}

/// `text` is JSON already.
pub(crate) fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// A list that is serialized while it is sent; a short one is sent at once.
pub(crate) fn list(mut pieces: Listing) -> Response {
    let first = pieces.next().unwrap_or_default();
    let body = match pieces.next() {
        None => Body::from(first),
        Some(second) => {
            let all = [first, second].into_iter().chain(pieces).map(Ok::<_, Infallible>);
            Body::from_stream(stream::iter(all))
        }
    };
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// The entries after the cursor, at most `limit`, and the cursor of the next page. A cursor is the name of the last entry of
/// the page before, as `name` gives it: no two entries have the same.
pub(crate) fn cut<'a, T>(
    entries: &'a [T],
    limit: Option<usize>,
    cursor: Option<&str>,
    name: impl Fn(&T) -> String,
) -> Result<(&'a [T], Option<String>), Problem> {
    let after = match cursor {
        None => 0,
        Some(cursor) => {
            let last = entries.iter().position(|entry| name(entry) == cursor);
            last.ok_or_else(PageParams::bad_cursor)? + 1
        }
    };
    let rest = &entries[after..];
    let page = &rest[..limit.map_or(rest.len(), |limit| limit.min(rest.len()))];
    let next = page.last().filter(|_| page.len() < rest.len()).map(name);
    Ok((page, next))
}

/// One page of a list: where the next one begins, if there is one, and how many entries all pages have together.
pub(crate) fn page(mut response: Response, next: Option<String>, total: Option<usize>) -> Response {
    let headers = response.headers_mut();
    if let Some(next) = next.and_then(|next| HeaderValue::try_from(next).ok()) {
        headers.insert(HeaderName::from_static("x-next-cursor"), next);
    }
    if let Some(total) = total {
        headers.insert(HeaderName::from_static("x-total-count"), total.into());
    }
    response
}
