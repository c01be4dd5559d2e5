//! The responses of most routes.

use std::{convert::Infallible, marker::PhantomData};

use axum::{
    Json,
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use protocol::{Method, OkResult};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    app::App,
    extract::PageParams,
    problem::{Problem, ResultMessage},
    service::Part,
};

/// The record that a route answers with.
pub type Answer<T> = Result<Json<T>, Problem>;

/// The answer of a route without a result.
pub type Ack = Answer<ResultMessage>;

/// The record `T` as the daemon encoded it: passed on, and not decoded and encoded again.
#[derive(Debug)]
pub struct Passed<T>(Box<RawValue>, PhantomData<fn() -> T>);

impl<T> IntoResponse for Passed<T> {
    fn into_response(self) -> Response {
        json(String::from(Box::<str>::from(self.0)))
    }
}

/// The record of the daemon that a route answers with.
pub type Forwarded<T> = Result<Passed<T>, Problem>;

/// Calls a method and answers with its result.
pub(crate) async fn call<T>(app: &App, method: Method, params: &(impl Serialize + Sync)) -> Forwarded<T> {
    Ok(Passed(app.daemon.raw(method, params).await?, PhantomData))
}

/// Calls a method without a result and acknowledges it.
pub(crate) async fn done(app: &App, method: Method, params: &(impl Serialize + Sync)) -> Ack {
    let OkResult { .. } = app.daemon.call(method, params).await?;
    Ok(ok())
}

/// A list that the service has as JSON, if it is current.
pub(crate) async fn part(app: &App, part: Part) -> Result<Response, Problem> {
    Ok(json(app.daemon.part(part).await?))
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
pub(crate) fn list(mut pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Response {
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
