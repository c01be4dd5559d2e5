//! The daemon: the process that owns the tasks, and what it says over `/rpc`.
//!
//! *Owns* the composition of engine and store, the events' numbers and their ring, the configuration as a whole, the
//! histories of tasks, and the loopback listener with `/rpc`, uploads, exports and finished files.
//!
//! *Never* speaks a public dialect: browsers, scripts and aria2 clients talk to the agent.
//!
//! Start reading at [`Daemon`], then `connection` (how a call comes in), `call` (what it does) and `hub` (how its
//! effects are told).
//!
//! # Reading one's own writes
//!
//! A write is answered once it is on disk. Its reply waits until the hub has told the events of it, carries the
//! sequence of the newest if the client asked for that, and is sent on its connection after them.
//!
//! # Memory
//!
//! Nothing grows with the number of clients times the number of tasks: an event is encoded once for all connections,
//! and a snapshot is encoded in pieces while it is sent, from tasks that the engine holds anyway.

mod access;
mod blobs;
mod call;
mod configuration;
mod connection;
mod create;
mod disk;
mod endpoint;
mod files;
mod history;
mod http;
mod hub;
mod keys;
mod proxy_test;
mod refusal;
mod ring;
mod rows;
mod service;
mod start;
mod view;
mod writer;

pub use create::request as request_of;
pub use endpoint::EndpointError;
pub use rows::MIGRATIONS;
pub use service::LearnedLimits;
pub use start::{Config, Connector, Daemon, StartError};
