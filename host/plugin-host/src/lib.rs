//! Plugins: installation, permissions, and the policy of their calls.
//!
//! *Owns* consents, settings and storage of plugins, installation and updates, and every decision about a call: which
//! plugin claims a URL, whether it may be called now, with which hosts and secrets, and what its failure means.
//!
//! *Never* runs guest code itself, and names no engine that does: that is the task of a [`runtime::Runtime`].
//! `plugin-package` defines archives and manifests, `market` verifies sources, `accounts` keeps secrets.
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
//! - `logins`: the logins that are going on
//! - `lifecycle`: installations: the pure state machine, their rows, and the snapshot that calls read
//! - `error`: why commands and calls are refused
//! - `runtime`: the trait that runs guest code, and every record that crosses it
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
mod logins;
pub mod market;
mod package;
mod plugins;
mod policy;
pub mod runtime;

/// The columns of sealed values, for the rotation of their key.
pub const SEALED: [store::SealedColumn; 2] = [lifecycle::rows::SEALED, accounts::SEALED];

pub use ::market::{Digest, Identity, InvalidDigest, InvalidIdentity};
pub use accounts::{Account, Ended as LoginEnd, Refusal as LoginRefusal};
pub use call::{FeedRefusal, LoginError, LoginRequest, LoginView, Previewed, Resolved, SlotSummary};
pub use engine::{LeftOut, LeftOutKind, Proxies};
pub use error::{CallError, CallFailure, CommandError, DiskError, InvalidSetting, Refusal, RowError, StartError};
pub use install::{Installed, Plugins, author, imports_digest};
pub use lifecycle::{
    Source, Status,
    registry::{DevelopmentError, Idle},
    rows::MIGRATIONS,
};
pub use logins::LoggedIn;
pub use plugin_package::{
    Definition, HostPattern, InvalidHostPattern, InvalidUrlPattern, UrlPattern,
    domain::{is_public_suffix, registrable},
    manifest,
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
