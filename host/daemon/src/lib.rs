//! The daemon: the process that owns the tasks, and its API over `/rpc`.
//!
//! *Owns* the composition of engine and store, the events' numbers and their ring, the configuration as a whole, the
//! histories of tasks, and the loopback listener with `/rpc`, uploads, exports and finished files.
//!
//! *Never* speaks a public dialect: browsers, scripts and aria2 clients talk to the agent.
//!
//! Start reading at [`Daemon`], then `http::connection` (how a call is received), `call` (what it does) and `hub` (how
//! its effects are published).
//!
//! # Reading one's own writes
//!
//! A write is answered once it is on disk. Its reply waits until the hub has published its events, carries the sequence
//! of the newest if the client asked for that, and is sent on its connection after them.
//!
//! # Memory
//!
//! Nothing grows with the number of clients times the number of tasks: an event is encoded once for all connections,
//! and a snapshot is encoded in pieces while it is sent, from tasks that the engine holds anyway.
//!
//! # Layers
//!
//! - `start`: the daemon as a whole
//! - `http`: the listener, and connections of `/rpc`
//! - `call`: what each method does
//! - `service`: what the calls of all connections share
//! - `hub`: events
//! - `configuration`
//! - `selection`: questions that tasks ask their user
//! - `options`: a task's options on the wire and in the engine
//! - `view`, `refusal`, `rows`: records for clients, errors for clients, tables

mod call;
mod configuration;
mod http;
mod hub;
mod options;
mod refusal;
mod rows;
mod selection;
mod service;
mod start;
mod view;

pub use options::request as request_of;
pub use rows::{MIGRATIONS, SEALED};
pub use service::{LearnedLimits, LogEnds, Logs};
pub use start::{Config, Connector, Daemon, StartError, endpoint::EndpointError};
