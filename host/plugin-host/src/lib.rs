//! Plugins: installation, permissions, and the policy of their calls.
//!
//! *Owns* consents, settings and storage of plugins, installation and updates, and every decision about a call: which
//! plugin claims a URL, whether it may be called now, with which hosts and secrets, and what its failure means.
//!
//! *Never* runs guest code itself, and names no engine that does: that is the task of a [`runtime::Runtime`].
//! `plugin-package` defines archives and manifests, `market` verifies sources.
//!
//! Start reading at [`Plugins`] (the handle), then `lifecycle` (the state machine of an installation), then `call`.
//!
//! # Layers
//! - `plugins`: commands and queries of the handle, opening and closing
//! - `market`: refreshes sources and fetches packages
//! - `call`: one call of a plugin, from its URL to the consequences of its result; the engine's resolver
//! - `install`: changes of what is installed, by users, sources and authors' folders
//! - `catalogue`: the state of sources, as a value and as rows
//! - `package`: packages and folders on the disk, and how their code is loaded
//! - `fixture`: replays and records calls
//! - `lifecycle`: installations: the pure state machine, their rows, and the snapshot that calls read
//! - `error`: why commands and calls are refused
//! - `runtime`: the trait that runs guest code, and every record that crosses it
//! - `secret`: secrets that plugins use but never read
//! - `policy`: permissions, grants, faults, and how many calls there may be
//! - `as_text`: values that rows keep as texts

#![expect(
    missing_docs,
    reason = "fields and variants whose names or messages say what they are have no comment"
)]

mod as_text;
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
pub use call::{FeedRefusal, Previewed, Resolved};
pub use engine::{LeftOut, LeftOutKind, Proxies};
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
    grant::{CallTarget, Grant, HostChoice, InvalidPermission, Permission, Permissions},
    health::Condition,
    host::{Denial, Grants, InputHost, METHODS, Others},
};
pub use runtime::{
    CallLog, Entry, Event, Facts, Feed, FeedEnclosure, FeedItem, FeedRequest, FileKind, Gap, Journal, JournalEntry,
    Line, Link, Listing, LogLevel, RecordedClock, Replay, RequestLine, Sent, Storage, StorageError, Totals, Variant,
    Watch, World,
};
pub use secret::{BoundSecret, SecretError, Secrets, Template, not_bound, replace, spellings};
