//! Svc as a library for programs that embed it, and the heart of its executable.
//!
//! *Owns* the assembly: which crates make up a service and a command line, the processes of a service (an agent and the
//! daemon beside it), and the plugins that come with it. Re-exports the crates below it, so that a program that embeds the
//! service needs to name only this one.
//!
//! *Never* decides how bytes move or what a task may do: that is `transfer` and its transports, and `engine`.
//!
//! # Layers
//! - `executable`: the command line of `svc`, see [`executable::main`]
//! - `host`: a whole service in the process of a program that embeds it
//! - `plugins`, `programs`: how plugins and programs of the user are run

pub mod executable;
mod host;
mod plugins;
mod programs;

pub use agent;
pub use daemon;
pub use engine;
pub use protocol;
pub use store;
pub use transfer;
pub use transfer_http;

pub use self::host::{Builder, Host, StartError};
