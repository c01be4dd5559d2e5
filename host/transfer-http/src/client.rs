//! An HTTP/1.1 client: it shows what the server really sent, which the truth checks need, and leaves a body in the socket
//! until the kernel has moved it into the file.
//!
//! `fetch` (one request, with its redirects, cookies and logins) → `exchange` (one request and its answer) → `body` →
//! `connection` (open, idle) → `connect` (proxies, TLS) → `shared`.

pub(crate) mod body;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod decode;
pub(crate) mod exchange;
pub(crate) mod fetch;
pub(crate) mod head;
pub(crate) mod host_caps;
pub(crate) mod shared;
pub(crate) mod text;
