//! An HTTP/1.1 client: it exposes what the server really sent, which the checks in `answer` need, and can leave a body
//! in the socket so that the kernel moves it into the file.
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
pub(crate) mod shared;
