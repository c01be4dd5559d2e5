//! The facade of Svc and the heart of its executable.
//!
//! *Owns* the command line, the reading of environment and files that configure a process, the wiring of agent, daemon,
//! engine and transports, and the processes: an agent and the daemon beside it; re-exports the crates below it, so that an embedder needs to name only this one.
//!
//! *Never* decides how bytes move or what a task may do: that is `transfer` and its transports, and `engine`.
//!
//! Start reading at [`cli::main`], the table of contents of the executable.

pub mod cli;
mod descriptors;
pub mod directories;
pub mod environment;
pub mod sibling;

pub use agent;
pub use daemon;
pub use engine;
pub use store;
pub use transfer;
pub use transfer_http;
