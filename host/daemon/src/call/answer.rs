//! The caller of a method and the outcome of its call, which decides when the reply may be sent.

use std::sync::Arc;

use engine::Task;
use protocol::{Id, OkResult, RpcError};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{hub::ring::Streamed, refusal::Refuse as _, selection::Listener};

#[derive(Debug, Clone, Default)]
pub(crate) struct Peer {
    /// Said hello as the agent of this machine, which may read passwords.
    pub(crate) is_local_agent: bool,
    /// Asked in hello for the event sequence in the reply to a write.
    pub(crate) wants_sequences: bool,
    /// Its subscription to questions of tasks; `None` before hello.
    pub(crate) listener: Option<Arc<Listener>>,
}

#[derive(Debug)]
pub(crate) enum Answer {
    /// Nothing changed.
    Read(Box<RawValue>),
    /// State changed, or the result names what has: the reply is sent after the events of that.
    Wrote(Box<RawValue>),
    /// A result with all tasks, and the sequence if it is a snapshot.
    Streamed(StreamedResult, Option<u64>),
    /// The service shuts down after this reply.
    Stop(Box<RawValue>),
}

/// A result whose tasks are encoded while it is sent, so that it is never in memory as a whole.
#[derive(Debug)]
pub(crate) struct StreamedResult {
    pub(super) head: String,
    pub(super) tasks: Arc<[Arc<Task>]>,
    pub(super) tail: String,
}

impl StreamedResult {
    /// Wraps the result as the reply to the call `id`.
    pub(crate) fn for_reply(self, id: &Id) -> Streamed {
        let id = serde_json::to_string(id).expect("an id always encodes");
        Streamed {
            head: format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}", self.head),
            tasks: self.tasks,
            tail: self.tail + "}",
        }
    }
}

pub(super) fn raw(value: &impl Serialize) -> Result<Box<RawValue>, RpcError> {
    serde_json::value::to_raw_value(value).map_err(|error| RpcError::internal(error.to_string()))
}

pub(super) fn read(value: &impl Serialize) -> Result<Answer, RpcError> {
    raw(value).map(Answer::Read)
}

pub(super) fn wrote(value: &impl Serialize) -> Result<Answer, RpcError> {
    raw(value).map(Answer::Wrote)
}

pub(super) fn done() -> Result<Answer, RpcError> {
    wrote(&OkResult::OK)
}

pub(super) fn finish(outcome: Result<(), engine::CommandError>) -> Result<Answer, RpcError> {
    outcome.refused()?;
    done()
}
