//! Shared parts of all commands of `svc`: exit codes, environment, and printing.
//!
//! *Owns* the exit codes, the environment variables, default directories, logging, signals, how the user's browser is opened,
//! how the executable was installed, and formatting of amounts and text. Commands are in `get`, `cli`, `aria2c` and `author`; the executable combines them.
//!
//! *Never* depends on a command, and opens no connection.
//!
//! # Layers
//! - `log`, `ssh`
//! - `print`, `runtime`
//! - `terminal`
//! - `amount`, `browser`, `descriptors`, `directories`, `dumpable`, `environment`, `installation`, `memory`, `netrc`, `prompt`, `stop`
//! - `exit`, `usage`

pub mod amount;
pub mod browser;
pub mod descriptors;
pub mod directories;
pub mod dumpable;
pub mod environment;
pub mod exit;
pub mod installation;
pub mod log;
pub mod memory;
pub mod netrc;
mod print;
pub mod prompt;
pub mod runtime;
pub mod ssh;
pub mod stop;
pub mod terminal;
mod usage;

pub use exit::Exit;
pub use print::{note, print_bytes, print_json, print_lines, print_now, warn};
pub use usage::UsageError;
