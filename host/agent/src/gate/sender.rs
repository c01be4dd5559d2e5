//! Who sent a request, and by what right it passed the gate.

use std::sync::Arc;

use crate::access::{
    key::KeyDigest,
    throttle::{Form, Source},
};

/// By what right a request passed the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The route asks for nothing, or its calls bring the key themselves.
    Open,
    /// It showed the access key, or the pass of the agent's own user.
    Keyed,
    /// No key is set, and a program of the desktop's own user sent it.
    OwnUser,
    /// No key is set, and a browser of the desktop's own user sent it: for whom, an extension most likely.
    Visitor(Arc<str>),
    /// No key is set where none has to be.
    Free,
}

/// Who sent a request: what rate limits count and interfaces decide on.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) source: Source,
    /// In which form it brings a key, if it brings one.
    pub(crate) form: Form,
    /// Whether it came from this machine, for this machine's own name, through no proxy.
    pub(crate) is_local: bool,
    /// Whether a browser sent it, as far as it says so.
    pub(crate) is_browser: bool,
    /// The key that let it in; none where none is needed, and for programs of the agent's own user.
    pub(crate) key: Option<KeyDigest>,
    pub(crate) standing: Standing,
}
