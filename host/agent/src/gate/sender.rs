//! The identity of a request's sender and the reason that it was authorized, for handlers.

use std::sync::Arc;

use admission::throttle::{Form, Source};

use crate::access::{key::KeyDigest, session::Purpose};

/// Why a request was authorized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Authorization {
    /// The route needs no key, or its calls carry the key themselves.
    Unchecked,
    /// The request carried the access key or the pass.
    Key,
    /// No key is configured; a local process of the desktop's own user sent it.
    OwnUser,
    /// No key is configured; a browser of the desktop's own user sent it, on behalf of this extension if known.
    Browser(Arc<str>),
    /// No key is configured and none is required.
    Unrestricted,
}

/// What rate limits count and interfaces decide on.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) source: Source,
    pub(crate) form: Form,
    /// Whether it came from this machine, under a name of this machine, through no proxy.
    pub(crate) is_local: bool,
    /// Whether browser headers are present.
    pub(crate) is_browser: bool,
    /// The access key that authorized it; none if no key was needed or the pass was used.
    pub(crate) key: Option<KeyDigest>,
    pub(crate) authorization: Authorization,
    /// The session of a page that authorized it.
    pub(crate) session: Option<Purpose>,
}
