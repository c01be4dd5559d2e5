//! The client of an aria2 call: one that the gate let pass, and the key (`token:`) in the parameters of its calls.
//! Bodies and answers have a share of the service's memory budget until they are sent.

use std::{borrow::Cow, sync::Arc};

use admission::budget::{Budget, Exhausted, FREE_ANSWER_BYTES, FREE_BODY_BYTES, MAX_ANSWER_BYTES, Share};
use aria2::{Answer, Caller, Client, Fault, KEY_FIRST, Rights, Room};
use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, StatusCode},
};
use futures_util::{
    future::{BoxFuture, FutureExt as _},
    stream,
};
use rest::{FREE_TIME, Incoming, Problem};

use crate::{
    access::{ConnectionSlot, key::KeyDigest},
    gate::{
        Gate,
        credentials::text,
        sender::{Authorization, Sender},
    },
    surface::state::App,
};

/// Lives for one message or one connection.
#[derive(Debug)]
pub(super) struct GateClient {
    gate: Arc<Gate>,
    sender: Sender,
    /// The connection's permit; a call with the key marks it as authenticated.
    slot: Option<Arc<ConnectionSlot>>,
    /// The key came in a header, so calls need not repeat it.
    has_key: bool,
}

impl GateClient {
    /// `shown` is the key of a header, if any.
    pub(super) fn new(gate: Arc<Gate>, sender: Sender, slot: Option<Arc<ConnectionSlot>>, shown: Option<&str>) -> Self {
        let mut client = Self {
            has_key: sender.authorization == Authorization::Key,
            gate,
            sender,
            slot,
        };
        client.has_key = client.has_key || shown.is_some_and(|shown| client.knows_key(shown));
        client
    }

    /// Whether the connection counts as authenticated.
    pub(super) fn is_authenticated(&self) -> bool {
        self.slot.as_ref().is_none_or(|slot| slot.is_authenticated())
    }

    /// Whether the connection sent too much before its first call with the key.
    pub(super) fn is_overdrawn(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.is_overdrawn())
    }

    /// Resolves when the connection must close to make room for a newer one. Cancel-safe.
    pub(super) async fn evicted(&self) {
        match &self.slot {
            Some(slot) => slot.evicted().await,
            None => std::future::pending().await,
        }
    }

    /// Whether `shown` is the access key or the pass. Wrong ones are counted; a locked-out source always gets `false`.
    fn knows_key(&self, shown: &str) -> bool {
        let shown = KeyDigest::of(shown);
        if self.gate.is_pass(shown, &self.sender) {
            return true;
        }
        let Some(key) = self.gate.settings.current().key_digest() else {
            return false;
        };
        let Sender { source, form, .. } = self.sender;
        if self.gate.wait(source, form).is_some() {
            return false;
        }
        let is_right = shown == key;
        self.gate.count(source, form, is_right);
        if is_right && let Some(slot) = &self.slot {
            slot.authenticate();
        }
        is_right
    }

    /// Whether the source is locked out.
    pub(super) fn must_wait(&self) -> bool {
        self.gate.wait(self.sender.source, self.sender.form).is_some()
    }

    /// Reads a request body. A large one is read to its end only after `find` found a valid token at its beginning.
    pub(super) async fn body(
        &self,
        budget: &Budget,
        request: Request,
        find: impl Fn(&[u8]) -> Option<Cow<'_, str>>,
    ) -> Result<Bytes, BodyError> {
        let mut body = Incoming::of(request, FREE_TIME);
        if self.rights(None).is_ok() {
            body.read_all(budget).await?;
        } else if !body.read(FREE_BODY_BYTES).await? {
            let token = find(body.so_far()).ok_or_else(no_token)?;
            if !self.knows_key(&token) {
                return Err(BodyError::Unauthorized);
            }
            body.read_on(budget).await?;
        }
        Ok(body.into_bytes())
    }
}

impl Client for GateClient {
    /// If the key was removed while a connection was open, its peer user was never looked up, so the client has no
    /// rights.
    fn rights(&self, token: Option<&str>) -> Result<Rights, Fault> {
        if self.has_key {
            return Ok(Rights::Full);
        }
        let is_right = || token.is_some_and(|token| self.knows_key(token));
        if self.gate.settings.current().key.is_some() {
            return if is_right() {
                Ok(Rights::Full)
            } else {
                Err(Fault::unauthorized())
            };
        }
        match &self.sender.authorization {
            Authorization::Unrestricted | Authorization::OwnUser | Authorization::Key => Ok(Rights::Full),
            Authorization::Browser(visitor) => Ok(Rights::Visitor(Arc::clone(visitor))),
            Authorization::Unchecked if is_right() => Ok(Rights::Full),
            Authorization::Unchecked => Err(Fault::new(KEY_FIRST)),
        }
    }

    fn restricted_to(&self) -> Option<&str> {
        match &self.sender.authorization {
            Authorization::Browser(visitor) => Some(visitor),
            _ => None,
        }
    }
}

/// Why a body was refused before its calls were read.
pub(super) enum BodyError {
    Refused(Problem),
    /// The token at the beginning of the body is wrong.
    Unauthorized,
}

impl<T: Into<Problem>> From<T> for BodyError {
    fn from(problem: T) -> Self {
        Self::Refused(problem.into())
    }
}

/// The refusal of a large body that does not begin with the token.
fn no_token() -> Problem {
    let message = format!(
        "without the access key a body has at most {} KiB: send the key in the header X-Svc-Token, or as \"token:<key>\" in \
         the first parameter of the first call, ahead of everything large",
        FREE_BODY_BYTES >> 10
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// The key header of aria2's interface.
pub(super) fn shown_key(headers: &HeaderMap) -> Option<&str> {
    text(headers, "x-svc-token").filter(|key| !key.is_empty())
}

/// The share of the memory budget for one answer, reserved once the answer is known to be large.
struct Reserved<'b> {
    budget: &'b Budget,
    share: Option<Share>,
}

impl<'b> Reserved<'b> {
    fn of(budget: &'b Budget) -> Self {
        Self { budget, share: None }
    }
}

impl Room for Reserved<'_> {
    fn bounds(&self) -> (usize, usize) {
        (FREE_ANSWER_BYTES, MAX_ANSWER_BYTES)
    }

    fn reserve(&mut self) -> BoxFuture<'_, bool> {
        async {
            self.share = self.budget.answer().await.ok();
            self.share.is_some()
        }
        .boxed()
    }
}

/// An answer that is being sent; it holds its share of the memory budget.
pub(super) enum Reply {
    Text(Bytes),
    /// Sent in pieces.
    Streamed(Box<dyn Iterator<Item = Bytes> + Send + Sync>),
}

impl Reply {
    pub(super) fn into_body(self) -> Body {
        match self {
            Self::Text(text) => text.into(),
            Self::Streamed(pieces) => Body::from_stream(stream::iter(pieces.map(Ok::<_, std::convert::Infallible>))),
        }
    }
}

async fn held(answer: Answer, room: Reserved<'_>) -> Result<Reply, Exhausted> {
    Ok(match answer {
        Answer::Text(text) => Reply::Text(room.budget.hold(text, room.share).await?),
        Answer::Streamed(pieces) => Reply::Streamed(pieces),
    })
}

/// A turn to process a message: large ones are parsed a few at a time, which bounds the memory of all of them.
async fn turn(budget: &Budget, message: &[u8]) -> Result<Option<Share>, Exhausted> {
    match message.len() {
        0..=FREE_BODY_BYTES => Ok(None),
        _ => budget.large().await.map(Some),
    }
}

/// Answers a JSON message.
pub(super) async fn answer(app: &App, caller: &Caller, message: &[u8]) -> Result<Reply, Exhausted> {
    let _turn = turn(&app.budget, message).await?;
    let mut room = Reserved::of(&app.budget);
    let answer = caller.answer(message, &mut room).await;
    held(answer, room).await
}

/// Answers an XML message; `None` if it is not a call.
pub(super) async fn answer_xml(app: &App, caller: &Caller, message: &[u8]) -> Result<Option<Reply>, Exhausted> {
    let _turn = turn(&app.budget, message).await?;
    let mut room = Reserved::of(&app.budget);
    match caller.answer_xml(message, &mut room).await {
        Some(answer) => held(answer, room).await.map(Some),
        None => Ok(None),
    }
}
