//! The answers that most routes give.

use std::convert::Infallible;

use axum::{
    Json,
    body::Body,
    http::header,
    response::{IntoResponse as _, Response},
};
use futures_util::stream;

use crate::{problem::ResultMessage, projection::tasks::Listing};

/// It is done.
pub(crate) fn ok() -> Json<ResultMessage> {
    Json(ResultMessage {
        success: true,
        message: "ok".to_owned(),
    })
}

/// Text that is JSON already.
pub(crate) fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// A list, written while it is sent; a short one at once.
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
