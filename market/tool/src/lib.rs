//! The maintainer's and the author's side of a market: everything that needs a private key.
//!
//! *Owns* key files, the folder that a source is published from, signing packages, and the commands for all that.
//!
//! *Never* is part of the running service, and never shows a private key or a passphrase. What it is about to publish it
//! checks with the client's own code first, so that a mistake is found here and not by users.
//!
//! Start reading at [`command`] (what can be asked for), then [`Repository`] (the folder), then the operations on it:
//! [`init()`], [`index`], [`revoke()`], [`root`], [`publish()`].
//!
//! # Layers
//! - `command`: what can be asked for
//! - `author`, `index`, `mirror`, `root`, `serve`: what authors and maintainers do, and what shows a source
//! - `init`, `revoke`: a source begins; a version must not run any more
//! - `publish`: what was changed is signed and checked as a client does
//! - `draft`, `package`: the index in the making, and packages as authors make them
//! - `key`, `repository`: key files, and the folder that a source is published from
//! - `error`: why a command is refused

pub mod author;
pub mod command;
mod draft;
mod error;
pub mod index;
mod init;
mod key;
mod mirror;
mod package;
mod publish;
mod repository;
mod revoke;
pub mod root;
mod serve;

pub use error::{Kind, ToolError};
pub use init::{Init, init};
pub use key::{Fixed, Passphrases, SigningKey, Terminal};
pub use mirror::mirror;
pub use package::Package;
pub use publish::{Checked, TIMESTAMP_LIFE, check, publish};
pub use repository::Repository;
pub use revoke::{pardon, revoke};
pub use serve::serve;
