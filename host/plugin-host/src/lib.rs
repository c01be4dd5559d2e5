//! Plugins: which there are, what they may do, and when they are called.
//!
//! *Owns* packages and their checks, manifests, what users agreed to, settings and memory of plugins, the life of an
//! installation from the first byte to the last, and every decision about a call: who claims a URL, whether it may be
//! called now, with which hosts and secrets, and what its failure means.
//!
//! *Never* runs guest code itself, and names no engine that does: that is what a [`runtime::Runtime`] is for.
//!
//! Start reading at [`Plugins`] (what can be asked), then [`lifecycle`] (what happens to a plugin), then [`call`] (how
//! one is called).

mod ask;
pub mod author;
mod breaker;
mod call;
mod capture;
mod development;
mod disk;
mod error;
mod fault;
mod fault_point;
pub mod fixture;
mod folder;
mod grant;
mod host;
mod journal;
mod keyed;
mod lifecycle;
mod listing;
mod load;
mod loading;
pub mod market;
mod plugins;
mod redact;
mod registry;
mod resolver;
pub mod runtime;
mod secret;
pub mod settings;
mod slots;
mod storage;
mod store;
mod summary;
mod world;

pub use ::market::{Digest, Identity, InvalidDigest, InvalidIdentity};
pub use call::{Previewed, Resolved};
pub use disk::DiskError;
pub use engine::Proxies;
pub use error::{CallError, CallFailure, CommandError, StartError};
pub use fault::{Exceeded, GuestError, PluginFault, Retry};
pub use grant::{Given, Grant, HostChoice, InvalidPermission, Permission, Permissions};
pub use host::{Denial, Grants, InputHost, METHODS, Others};
pub use journal::{CallLog, Entry as JournalEntry, Event, Journal, Line, LogLevel, RequestLine, Sent, Totals};
pub use lifecycle::{Refusal, Source, Status};
pub use listing::{Entry, Facts, FileKind, Link, Listing, Variant};
pub use market::imports_digest;
pub use plugin_package::{self as package, HostPattern, InvalidHostPattern, InvalidUrlPattern, UrlPattern, manifest};
pub use plugins::{Changes, Installed, Plugins};
pub use redact::{replace, spellings};
pub use registry::{DevelopmentError, Idle};
pub use secret::{BoundSecret, SecretError, Secrets, Template, is_public_suffix, not_bound};
pub use storage::{Storage, StorageError};
pub use store::{MIGRATIONS, RowError};
pub use summary::{Pending, PluginSummary};
pub use world::{Gap, Moment, Replay, Watch, World};
