//! Who calls, and how a call went.

use std::sync::Arc;

use engine::Task;
use protocol::{Id, OkResult, RpcError};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{hub::ring::Streamed, refusal::Refuse as _};

/// Who calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peer {
    /// The agent of this machine, which may read passwords.
    pub(crate) is_local_agent: bool,
    /// It wants the sequence of a write in its reply.
    pub(crate) wants_sequences: bool,
}

/// How a call went.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Nothing changed.
    Read(Box<RawValue>),
    /// Something changed; to be answered after the events of it.
    Wrote(Box<RawValue>),
    /// A result with many tasks, and the sequence if it is a snapshot.
    Streamed(StreamedResult, Option<u64>),
    /// The service is to end once this is answered.
    Stop(Box<RawValue>),
}

/// A result whose tasks are encoded while it is sent.
#[derive(Debug)]
pub(crate) struct StreamedResult {
    pub(super) head: String,
    pub(super) tasks: Arc<[Arc<Task>]>,
    pub(super) tail: String,
}

impl StreamedResult {
    /// As the reply to the call `id`.
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
