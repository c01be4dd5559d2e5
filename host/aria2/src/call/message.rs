//! Executes the calls of a message in order and builds its answer.

use std::{fmt, iter::once, str};

use bytes::Bytes;
use protocol::CreateTaskRequest;

use super::{
    outcome::{Answered, Outcome},
    tally::Tally,
    tell::Listing,
};
use crate::{
    caller::Caller,
    dialect::MAX_TEXT_BYTES,
    service::{Rights, Room},
    visitor::KEY_FIRST,
    vocabulary::{fault::Fault, method::Method, params::Params},
    wire::{
        json::{self, Call, Children, JsonMessage, Named, RawParams},
        xml_rpc::{self, Unreadable},
    },
};

/// Tasks created together when a message adds many, and the bytes of their calls.
const MADE_AT_ONCE: usize = 1000;
const MADE_AT_ONCE_BYTES: usize = 1024 * 1024;

/// Limit of calls in a message whose first call has no valid token. Their answers fit into the unauthenticated
/// allowance.
const FREE_CALLS: usize = 64;

/// Calls executed before yielding to other tasks of the runtime.
const CALLS_AT_ONCE: usize = 64;

/// Upper bound of the size of an XML result relative to JSON: that of a download is three times as long.
const XML_FACTOR: usize = 4;

/// The answer to a message.
pub enum Answer {
    /// The answer as one text.
    Text(Vec<u8>),
    /// In order.
    Streamed(Box<dyn Iterator<Item = Bytes> + Send + Sync>),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text",
            Self::Streamed(_) => "Streamed",
        })
    }
}

/// Receives the id and outcome of each call.
type Write<'w> = dyn FnMut(&str, Result<&str, &Fault>) + Send + 'w;

fn write_outcome(write: &mut Write<'_>, id: &str, outcome: &Outcome) {
    write(id, outcome.as_ref().map(|result| text_of(result)));
}

/// A result as text; it is valid UTF-8, because this crate serialized it.
fn text_of(result: &[u8]) -> &str {
    str::from_utf8(result).expect("results are made of texts")
}

/// Consecutive adds that are created together, and the ids of their calls.
#[derive(Default)]
struct Adds<'a> {
    ids: Vec<&'a str>,
    requests: Vec<CreateTaskRequest>,
    /// Bytes of their calls.
    bytes: usize,
}

impl Caller {
    /// Answers a message in JSON.
    pub async fn answer(&self, message: &[u8], room: &mut dyn Room) -> Answer {
        let mut answer = Vec::new();
        let mut tally = Tally::of(room, 1, self.is_known());
        match JsonMessage::read(message) {
            asked if asked.len() > FREE_CALLS && !self.is_known() && !self.shows_key(message) => {
                json::write(&mut answer, json::NO_ID, Err(&Fault::unauthorized()));
            }
            JsonMessage::One(Call { id, named }) => {
                json::begin(&mut answer, id);
                match self.single(named, &mut tally, MAX_TEXT_BYTES, &mut answer).await {
                    Ok(Answered::Written) => answer.push(b'}'),
                    Ok(Answered::Text(result)) => {
                        answer.extend_from_slice(&result);
                        answer.push(b'}');
                    }
                    Ok(Answered::List(list)) => {
                        let pieces = once(Bytes::from(answer)).chain(list.pieces());
                        let pieces = pieces.chain(once(Bytes::from_static(b"}")));
                        return Answer::Streamed(Box::new(pieces));
                    }
                    Err(fault) => {
                        answer.clear();
                        json::write(&mut answer, id, Err(&fault));
                    }
                }
            }
            JsonMessage::Batch(calls) => {
                answer.push(b'[');
                let mut write = |id: &str, outcome: Result<&str, &Fault>| {
                    if answer.len() > 1 {
                        answer.push(b',');
                    }
                    json::write(&mut answer, id, outcome);
                };
                let mut calls = calls.into_iter().map(Call::read);
                self.in_order(&mut calls, &mut tally, true, &mut write).await;
                answer.push(b']');
            }
        }
        Answer::Text(answer)
    }

    /// Whether the first call of a message carries a valid token.
    fn shows_key(&self, message: &[u8]) -> bool {
        self.is_right(json::find_token(message).as_deref())
    }

    /// Answers an XML-RPC call; the result takes more bytes than in JSON. None if it is not a call.
    pub async fn answer_xml(&self, message: &[u8], room: &mut dyn Room) -> Option<Answer> {
        let (method, params) = match xml_rpc::read(str::from_utf8(message).ok()?) {
            Ok(call) => call,
            Err(Unreadable::NotACall) => return None,
            Err(Unreadable::TooManyValues(error)) => {
                let refused = xml_rpc::answer(Err(&Fault::too_large(error)));
                return Some(Answer::Text(refused.into_bytes()));
            }
        };
        let named = Named {
            method: method.into(),
            given: RawParams::Read(params),
        };
        let (mut tally, mut result) = (Tally::of(room, XML_FACTOR, self.is_known()), Vec::new());
        let called = self.single(Ok(named), &mut tally, MAX_TEXT_BYTES / XML_FACTOR, &mut result);
        let answer = match called.await {
            Ok(Answered::List(list)) => {
                let pieces = xml_rpc::list(list.texts());
                return Some(Answer::Streamed(Box::new(pieces)));
            }
            Ok(Answered::Text(result)) => xml_rpc::answer(Ok(text_of(&result))),
            Ok(Answered::Written) => xml_rpc::answer(Ok(text_of(&result))),
            Err(fault) => xml_rpc::answer(Err(&fault)),
        };
        Some(Answer::Text(answer.into_bytes()))
    }

    /// Executes the only call of a message. Writes the result to `out`, or returns a list if its text would exceed
    /// `most` bytes.
    async fn single(
        &self,
        named: Result<Named<'_>, Fault>,
        tally: &mut Tally<'_>,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<Answered<Listing>, Fault> {
        let named = match named {
            Ok(Named { method, given }) => match Method::parse(&method) {
                Some(method @ (Method::TellActive | Method::TellWaiting | Method::TellStopped)) => {
                    let caller = match self.rights(given.token().as_deref())? {
                        Rights::Full => self.clone(),
                        Rights::Visitor(visitor) => self.for_visitor(visitor),
                    };
                    caller.wait_for_start(method).await;
                    return caller.tell_list(method, &given.read()?, most).await;
                }
                Some(Method::Multicall) => {
                    return Box::pin(self.multicall(given, tally, out))
                        .await
                        .map(|()| Answered::Written);
                }
                _ => Ok(Named { method, given }),
            },
            Err(fault) => Err(fault),
        };
        let mut refused = None;
        let mut write = |_: &str, outcome: Result<&str, &Fault>| match outcome {
            Ok(result) => out.extend_from_slice(result.as_bytes()),
            Err(fault) => refused = Some(fault.clone()),
        };
        self.in_order(&mut once(without_id(named)), tally, true, &mut write)
            .await;
        refused.map_or(Ok(Answered::Written), Err)
    }

    /// Executes a call of this process itself.
    pub(crate) async fn call(&self, method: Method, params: Params) -> Outcome {
        let mut tally = Tally::unbounded();
        if method == Method::Multicall {
            let mut result = Vec::new();
            self.multicall(RawParams::Read(params), &mut tally, &mut result).await?;
            return Ok(result.into());
        }
        self.dispatch(method, &params, &tally).await
    }

    /// Executes calls in order and passes each outcome with the id to `write`. Consecutive adds are created together.
    async fn in_order(
        &self,
        calls: &mut (dyn Iterator<Item = Call<'_>> + Send),
        tally: &mut Tally<'_>,
        allows_multicall: bool,
        write: &mut Write<'_>,
    ) {
        let mut adds = Adds::default();
        for (number, Call { id, named }) in calls.enumerate() {
            if number % CALLS_AT_ONCE == CALLS_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            let outcome = match named {
                _ if tally.is_over => Err(tally.too_long()),
                Err(fault) => Err(fault),
                Ok(Named { method, given })
                    if allows_multicall && Method::parse(&method) == Some(Method::Multicall) =>
                {
                    // Pending adds precede this call, so they must take effect first.
                    self.make(&mut adds, tally, write).await;
                    let mut text = Vec::new();
                    // Inner calls count their own results.
                    match Box::pin(self.multicall(given, tally, &mut text)).await {
                        Ok(()) => write(id, Ok(text_of(&text))),
                        Err(fault) => write(id, Err(&fault)),
                    }
                    continue;
                }
                Ok(named) => match self.call_or_add(named, id, &mut adds, tally, write).await {
                    Some(outcome) => outcome,
                    None => continue,
                },
            };
            self.make(&mut adds, tally, write).await;
            write_outcome(write, id, &tally.count(outcome).await);
        }
        self.make(&mut adds, tally, write).await;
    }

    /// Executes a call, or appends its download to the pending adds.
    async fn call_or_add<'a>(
        &self,
        Named { method: name, given }: Named<'a>,
        id: &'a str,
        adds: &mut Adds<'a>,
        tally: &mut Tally<'_>,
        write: &mut Write<'_>,
    ) -> Option<Outcome> {
        let method = Method::parse(&name);
        let mut rights = Rights::Full;
        if !method.is_some_and(Method::is_open) {
            rights = match self.rights(given.token().as_deref()) {
                Ok(rights) => rights,
                Err(fault) => return Some(Err(fault)),
            };
            tally.know_sender();
        }
        let bytes = given.len() + self.dialect.template().bytes();
        let params = match given.read() {
            Ok(params) => params,
            Err(fault) => return Some(Err(fault)),
        };
        if matches!((&rights, method), (Rights::Full, Some(Method::AddUri)))
            && let Some(request) = self.plain_add(&params)
        {
            adds.ids.push(id);
            adds.requests.push(request);
            adds.bytes += bytes;
            if adds.requests.len() >= MADE_AT_ONCE || adds.bytes >= MADE_AT_ONCE_BYTES {
                self.make(adds, tally, write).await;
            }
            return None;
        }
        self.make(adds, tally, write).await;
        Some(match (rights, method) {
            (Rights::Full, Some(method)) => self.dispatch(method, &params, tally).await,
            (Rights::Full, None) => Err(Fault::unknown_method(&name)),
            (Rights::Visitor(visitor), Some(method)) if method.is_for_visitors() => {
                self.for_visitor(visitor).dispatch(method, &params, tally).await
            }
            (Rights::Visitor(_), _) => Err(Fault::new(KEY_FIRST)),
        })
    }

    async fn make(&self, adds: &mut Adds<'_>, tally: &mut Tally<'_>, write: &mut Write<'_>) {
        if adds.requests.is_empty() {
            return;
        }
        let Adds { ids, requests, .. } = std::mem::take(adds);
        for (id, outcome) in ids.into_iter().zip(Box::pin(self.make_all(requests)).await) {
            write_outcome(write, id, &tally.count(outcome).await);
        }
    }

    /// Executes the calls of a `system.multicall`, each with its own token, and writes the list of results to `out`.
    async fn multicall(&self, given: RawParams<'_>, tally: &mut Tally<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let children = Children::of(given)?;
        if children.len() > FREE_CALLS && !self.is_known() && !self.is_right(children.token().as_deref()) {
            return Err(Fault::unauthorized());
        }
        let begin = out.len() + 1;
        out.push(b'[');
        let mut write = |_: &str, outcome: Result<&str, &Fault>| {
            if out.len() > begin {
                out.push(b',');
            }
            match outcome {
                Ok(result) => [b"[", result.as_bytes(), b"]"]
                    .iter()
                    .for_each(|part| out.extend_from_slice(part)),
                Err(fault) => {
                    let [code, message] = self.fault_names;
                    let fault = serde_json::json!({code: fault.code, message: fault.message});
                    out.extend_from_slice(fault.to_string().as_bytes());
                }
            }
        };
        let mut calls: Box<dyn Iterator<Item = Call<'_>> + Send + '_> = match children {
            Children::Text(calls) => Box::new(calls.into_iter().map(json::child).map(without_id)),
            Children::Read(calls) => Box::new(calls.into_iter().map(|call| without_id(json::read_child(call)))),
        };
        self.in_order(&mut *calls, tally, false, &mut write).await;
        out.push(b']');
        Ok(())
    }
}

fn without_id(named: Result<Named<'_>, Fault>) -> Call<'_> {
    let id = json::NO_ID;
    Call { id, named }
}
