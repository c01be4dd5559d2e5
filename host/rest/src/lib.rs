//! The management API over HTTP: tasks, groups, queues, plugins, subscriptions, logins of sites, files for browsers, the
//! set-up, the web interface, and the `OpenAPI` description of all interfaces. Any program that implements [`Service`] can
//! serve it.
//!
//! *Owns* the routes with their records, the mapping of errors to HTTP answers ([`Problem`]), the limits of request bodies
//! ([`Body`], [`Incoming`]), and the committed `openapi.json`.
//!
//! *Never* opens a connection, knows a key or keeps a task: the program implements [`Service`] (calls of the daemon, reads
//! of its state, the set-up) and decides, before a route sees a request, whether its sender may make it.
//!
//! Start reading at [`router`] (the table of routes), then `route` (the handlers) and [`Service`].
//!
//! # Layers
//! - `routes`: the table of routes, and the description
//! - `route`: the handlers, by subject
//! - `answer`: the answers of most routes
//! - `extract`: bodies and query parameters, within limits
//! - `packed`: committed descriptions, compressed
//! - `problem`: errors as HTTP answers
//! - `app`: what handlers share
//! - `service`: what the API needs of the service

mod answer;
mod app;
mod extract;
mod packed;
mod problem;
mod route;
mod routes;
mod service;

#[doc(hidden)]
pub use pastey::paste;

pub use answer::{Ack, Answer, Forwarded, Passed};
pub use app::App;
pub use extract::{Body, Bounded, FREE_TIME, Incoming, Raw, Unread};
pub use packed::unpacked;
pub use problem::{Called, Gated, Named, Problem, ResultMessage, Sent, UNKNOWN_ENDPOINT, Unanswered, too_many};
pub use route::page::is_page_file;
pub use routes::{methods_of, openapi, path_of, router};
pub use service::{About, Device, FileTicket, Filter, Page, PageError, Part, Service, SetupError};
