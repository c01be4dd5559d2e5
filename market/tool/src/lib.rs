//! The tools of maintainers and authors: everything in the market that needs a private key.
//!
//! *Owns* key files, the folder that a source is published from, signing packages, and the commands for all that.
//!
//! *Never* is part of the running service, and never shows a private key or a passphrase. Before anything is published,
//! the client's own code verifies it, so that a mistake is found here and not by users.
//!
//! Start reading at [`command`] (the commands), then [`Repository`] (the folder), then the operations on it:
//! [`init()`], [`index`], [`revoke()`], [`root`], [`publish()`].
//!
//! # Layers
//! - `command`: the commands
//! - `author`, `index`, `mirror`, `root`, `serve`: operations of authors, on the index and the root, and on whole
//!   sources
//! - `init`, `revoke`: creation of a source, and revocations
//! - `publish`: publication and verification
//! - `draft`, `package`: changes that are not yet written, and packages
//! - `key`, `repository`: key files, and the folder that a source is published from
//! - `error`: the errors of the commands

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
pub use key::{Fixed, Passphrases, SigningKey};
pub use mirror::mirror;
pub use package::Package;
pub use publish::{Checked, TIMESTAMP_LIFE, check, publish};
pub use repository::Repository;
pub use revoke::{pardon, revoke};
pub use serve::serve;
