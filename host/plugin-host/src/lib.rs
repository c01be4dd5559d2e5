//! Plugins: which there are, what they may do, and when they are called.
//!
//! *Owns* what users agreed to, settings and memory of plugins, the life of an installation from the first byte to the
//! last, and every decision about a call: who claims a URL, whether it may be called now, with which hosts and secrets,
//! and what its failure means.
//!
//! *Never* runs guest code itself, and names no engine that does: that is what a [`runtime::Runtime`] is for. What an
//! archive and a manifest are is said by `plugin-package`, what a source of plugins is believed by `market`.
//!
//! Start reading at [`Plugins`] (what can be asked), then `lifecycle` (what happens to a plugin), then `call` (how one is
//! called).
//!
//! # Layers
//! - `plugins`: the commands and questions of the handle, and how it is opened
//! - `market`: sources are asked for news, packages fetched from them
//! - `call`: one call of a plugin from its URL to what follows from its end; the engine's resolver
//! - `install`: changes of what is installed, by users, sources and authors' folders
//! - `catalogue`: what is known of sources, as a value and as rows
//! - `package`: packages and folders on the disk, and how their code is loaded
//! - `fixture`: recorded calls are played and made
//! - `lifecycle`: what is installed, as a pure function, as rows and as the snapshot that calls read
//! - `error`: why commands and calls are refused
//! - `runtime`: the trait that runs guest code, and every record that crosses it
//! - `secret`: what plugins use and never read
//! - `policy`: permissions, grants, faults, and how many calls there may be

mod call;
mod catalogue;
mod error;
pub mod fixture;
mod install;
mod lifecycle;
pub mod market;
mod package;
mod plugins;
mod policy;
pub mod runtime;
mod secret;

pub use ::market::{Digest, Identity, InvalidDigest, InvalidIdentity};
pub use call::{Previewed, Resolved};
pub use engine::Proxies;
pub use error::{CallError, CallFailure, CommandError, DiskError, InvalidSetting, Refusal, RowError, StartError};
pub use install::{Installed, Plugins, author, imports_digest};
pub use lifecycle::{
    Source, Status,
    registry::{DevelopmentError, Idle},
    rows::MIGRATIONS,
};
pub use plugin_package::{
    Definition, HostPattern, InvalidHostPattern, InvalidUrlPattern, UrlPattern, domain::is_public_suffix, manifest,
};
pub use plugins::{Changes, Pending, PluginSummary};
pub use policy::{
    fault::{Exceeded, GuestError, PluginFault, Retry},
    grant::{Given, Grant, HostChoice, InvalidPermission, Permission, Permissions},
    host::{Denial, Grants, InputHost, METHODS, Others},
};
pub use runtime::{
    CallLog, Entry, Event, Facts, FileKind, Gap, Journal, JournalEntry, Line, Link, Listing, LogLevel, Moment, Replay,
    RequestLine, Sent, Storage, StorageError, Totals, Variant, Watch, World,
};
pub use secret::{BoundSecret, SecretError, Secrets, Template, not_bound, replace, spellings};
