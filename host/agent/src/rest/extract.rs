//! What comes in with a request, refused in one way.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Query, Request},
    http::{StatusCode, request::Parts},
};
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use crate::problem::Problem;

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_mins(1);

/// A JSON body, whatever its content type says.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let Raw(bytes) = Raw::from_request(request, state).await?;
        read_object(&bytes).map(Self).map_err(Problem::invalid)
    }
}

/// A record from a JSON object. An array would be read as its members in order.
pub(super) fn read_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err("invalid body: it must be a JSON object".to_owned());
    }
    protocol::from_json(bytes).map_err(|misfit| format!("invalid body: {misfit}"))
}

/// A whole body.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary, description = "The file as it is")]
pub(crate) struct Raw(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        whole(request, state, StatusCode::PAYLOAD_TOO_LARGE).await.map(Self)
    }
}

/// A plugin's archive. One that is too large is as wrong as any other that cannot be used.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary, description = "The ZIP archive as it is")]
pub(crate) struct Archive(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Archive {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        whole(request, state, StatusCode::BAD_REQUEST).await.map(Self)
    }
}

async fn whole<S: Send + Sync>(request: Request, state: &S, too_large: StatusCode) -> Result<Bytes, Problem> {
    let read = tokio::time::timeout(BODY_TIME, Bytes::from_request(request, state)).await;
    let read = read.map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long"))?;
    read.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
            too_large,
            format!("the body is larger than {} MiB", super::MAX_BODY_BYTES >> 20),
        ),
        _ => Problem::invalid(error.body_text()),
    })
}

/// The parameters after the `?`.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        read.map(|Query(params)| Self(params))
            .map_err(|error| Problem::invalid(error.body_text()))
    }
}
