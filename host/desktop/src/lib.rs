//! What makes Svc part of a desktop: `svc integrate`, which installs and removes handlers, icon and start with the session,
//! and what `svc agent` does beside the agent: notifications, keeping the computer awake, the action after the last
//! download.
//!
//! *Owns* the files and entries by which a desktop knows the program, who may overwrite them, and the talk with the desktop's
//! own services.
//!
//! *Never* connects to a service of Svc, and never changes a file of another program or of the user.
//!
//! # Layers
//! - `integrate`: the command, and what it does on each system
//! - `attend`: beside the agent

#[cfg(unix)]
mod attend;
mod integrate;

#[cfg(unix)]
pub use attend::attend;
pub use integrate::{EXAMPLES, IntegrateArgs, run};
