//! Extractors for bodies and query parameters, with the same errors for every route.

use std::time::Duration;

use admission::{
    budget::{self, Budget, Exhausted, FREE_BODY_BYTES, MAX_BODY_BYTES, Share},
    json::check_tree,
};
use axum::{
    body::{self, Bytes, HttpBody as _},
    extract::{FromRef, FromRequest, FromRequestParts, Query, Request},
    http::{StatusCode, request::Parts},
};
use bytes::{Buf as _, BytesMut};
use http_body_util::BodyExt as _;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::problem::Problem;

const BODY_TIME: Duration = Duration::from_mins(1);

/// A large body occupies the shared budget: how long it may stall, beside the time per byte (64 KiB/s).
const LARGE_GRACE: Duration = Duration::from_secs(10);
const LARGE_PACE: Duration = Duration::from_nanos(15_259);

/// How long an unauthenticated client may take to send a body.
pub const FREE_TIME: Duration = Duration::from_secs(15);

/// A JSON body; the content type is ignored.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T>
where
    Budget: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let budget = Budget::from_ref(state);
        let bytes = read_body(request, &budget, StatusCode::PAYLOAD_TOO_LARGE).await?;
        let _turn = match bytes.len() {
            0..=FREE_BODY_BYTES => None,
            _ => Some(budget.large().await?),
        };
        read_object(&bytes).map(Self).map_err(Problem::invalid)
    }
}

/// A JSON body of at most this many bytes.
#[derive(Debug)]
pub struct Bounded<T, const MOST: usize>(pub T);

impl<T: DeserializeOwned, S: Send + Sync, const MOST: usize> FromRequest<S> for Bounded<T, MOST> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let mut body = Incoming::of(request, BODY_TIME);
        if !body.read(MOST).await? || body.so_far().len() > MOST {
            let message = format!("the body is larger than {} KiB", MOST >> 10);
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        read_object(body.so_far()).map(Self).map_err(Problem::invalid)
    }
}

/// Deserializes an object. `serde_json` alone would also accept an array, as the members in order.
pub(crate) fn read_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err("invalid body: it must be a JSON object".to_owned());
    }
    check_tree(bytes).map_err(|error| format!("invalid body: {error}"))?;
    protocol::from_json(bytes).map_err(|error| format!("invalid body: {error}"))
}

/// A whole body.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, format = Binary, description = "The file as it is")]
pub struct Raw(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw
where
    Budget: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let budget = Budget::from_ref(state);
        let read = read_body(request, &budget, StatusCode::PAYLOAD_TOO_LARGE);
        read.await.map(Self)
    }
}

/// A plugin's archive. One that is too large is answered like any other unusable one.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary, description = "The ZIP archive as it is")]
pub(crate) struct Archive(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Archive
where
    Budget: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let budget = Budget::from_ref(state);
        let read = read_body(request, &budget, StatusCode::BAD_REQUEST);
        read.await.map(Self)
    }
}

/// Reads the body of an authorized request.
async fn read_body(request: Request, budget: &Budget, too_large: StatusCode) -> Result<Bytes, Problem> {
    let mut body = Incoming::of(request, BODY_TIME);
    let read = body.read_all(budget).await;
    read.map_err(|error| match error {
        Unread::TooLarge => Problem::new(too_large, error.to_string()),
        error => error.into(),
    })?;
    Ok(body.into_bytes())
}

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// It has more than [`MAX_BODY_BYTES`].
    #[error("the body is larger than {} MiB", MAX_BODY_BYTES >> 20)]
    TooLarge,
    /// Its client sent too slowly.
    #[error("the body took too long")]
    TooSlow,
    /// There was no room for it in time.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The connection ended first.
    #[error("the body broke off")]
    Broken,
}

impl From<Unread> for Problem {
    fn from(error: Unread) -> Self {
        let status = match &error {
            Unread::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Unread::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Unread::Exhausted(_) => StatusCode::SERVICE_UNAVAILABLE,
            Unread::Broken => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.to_string())
    }
}

/// A body that is being read. Received pieces are merged, so that many small ones take no extra memory.
#[derive(Debug)]
pub struct Incoming {
    body: body::Body,
    /// The first piece, while it is the only one.
    first: Bytes,
    /// All pieces, once there are several.
    rest: BytesMut,
    until: Instant,
    /// Whether received bytes extend the deadline.
    is_paced: bool,
    share: Option<Share>,
}

impl Incoming {
    /// The body of a request, which may take this long until more is allowed to its sender.
    pub fn of(request: Request, time: Duration) -> Self {
        Self {
            body: request.into_body(),
            first: Bytes::new(),
            rest: BytesMut::new(),
            until: Instant::now() + time,
            is_paced: false,
            share: None,
        }
    }

    /// Reads all of it, for an authenticated sender.
    pub async fn read_all(&mut self, budget: &Budget) -> Result<(), Unread> {
        let announced = self.body.size_hint().lower();
        // A body that is announced as large reserves its room before any of it is read.
        let is_large = usize::try_from(announced).is_ok_and(|bytes| bytes > FREE_BODY_BYTES);
        self.until = Instant::now() + BODY_TIME;
        if is_large || !self.read(FREE_BODY_BYTES).await? {
            self.read_on(budget).await?;
        }
        Ok(())
    }

    /// The bytes received so far.
    pub fn so_far(&self) -> &[u8] {
        if self.rest.is_empty() { &self.first } else { &self.rest }
    }

    /// Reads until this many bytes were received. Returns whether the body has ended.
    pub async fn read(&mut self, bytes: usize) -> Result<bool, Unread> {
        while self.so_far().len() <= bytes {
            if self.body.is_end_stream() {
                return Ok(true);
            }
            let frame = timeout_at(self.until, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| Unread::TooSlow)? else {
                return Ok(true);
            };
            let Ok(mut piece) = frame.map_err(|_| Unread::Broken)?.into_data() else {
                continue;
            };
            if self.so_far().len() + piece.len() > MAX_BODY_BYTES {
                return Err(Unread::TooLarge);
            }
            if self.is_paced {
                self.until += LARGE_PACE * u32::try_from(piece.len()).unwrap_or(u32::MAX);
            }
            if self.so_far().is_empty() && !self.is_paced {
                self.first = piece;
            } else {
                self.rest.reserve(self.first.len() + piece.len());
                self.rest.extend_from_slice(&std::mem::take(&mut self.first));
                self.rest.extend_from_slice(&piece.copy_to_bytes(piece.len()));
            }
        }
        Ok(false)
    }

    /// Reads the rest after reserving room for it.
    pub async fn read_on(&mut self, budget: &Budget) -> Result<(), Unread> {
        let announced = self
            .body
            .size_hint()
            .exact()
            .and_then(|rest| usize::try_from(rest).ok());
        let size = announced.map_or(MAX_BODY_BYTES, |rest| self.so_far().len().saturating_add(rest));
        if size > MAX_BODY_BYTES {
            return Err(Unread::TooLarge);
        }
        self.share = Some(budget.body(size).await?);
        self.rest.reserve(size - self.rest.len());
        self.until = Instant::now() + LARGE_GRACE;
        self.is_paced = true;
        self.read(MAX_BODY_BYTES).await.map(|_| ())
    }

    /// The body; its reservation is released when it is dropped.
    pub fn into_bytes(self) -> Bytes {
        let bytes = if self.rest.is_empty() {
            self.first
        } else {
            self.rest.freeze()
        };
        match self.share {
            Some(share) => budget::with_share(bytes, share),
            None => bytes,
        }
    }
}

/// Query parameters.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        read.map(|Query(params)| Self(params))
            .map_err(|error| Problem::invalid(error.body_text()))
    }
}

/// The entries of one page at most.
const MAX_LIMIT: usize = 1000;

/// Which part of a list.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParams {
    /// At most this many, 1 to 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// What `X-Next-Cursor` said.
    pub(crate) cursor: Option<String>,
}

impl PageParams {
    pub(crate) fn limit(&self) -> Result<Option<usize>, Problem> {
        match self.limit {
            Some(limit) if !(1..=MAX_LIMIT).contains(&limit) => Err(Problem::invalid(format!(
                "limit must be a number from 1 to {MAX_LIMIT}"
            ))),
            limit => Ok(limit),
        }
    }

    pub(crate) fn bad_cursor() -> Problem {
        Problem::invalid("cursor must come from X-Next-Cursor of the same list; begin again without it")
    }
}
