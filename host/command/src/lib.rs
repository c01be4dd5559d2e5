//! What every command of `svc` has in common: how it ends, what it reads of its surroundings, and how it prints.
//!
//! *Owns* the exit codes, the environment variables, the usual directories, logging, signals, amounts and text as people
//! read them. Commands are in `get`, `cli`, `aria2c` and `author`; the executable puts them together.
//!
//! *Never* knows a command, and opens no connection.
//!
//! # Layers
//! - `log`
//! - `print`, `runtime`
//! - `terminal`
//! - `amount`, `cookies`, `descriptors`, `directories`, `environment`, `stop`
//! - `exit`, `usage`

pub mod amount;
pub mod cookies;
pub mod descriptors;
pub mod directories;
pub mod environment;
pub mod exit;
pub mod log;
mod print;
pub mod runtime;
pub mod stop;
pub mod terminal;
mod usage;

pub use exit::Exit;
pub use print::{note, print_json, print_lines, print_now, print_whole, warn};
pub use usage::UsageError;
