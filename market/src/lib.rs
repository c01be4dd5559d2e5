//! The market: where plugins come from, and why a user can believe what it says.
//!
//! *Owns* the formats of a source (root, timestamp, index, diffs, revocations) and of a package's signature, the checks
//! of them ([`verify`]), what is remembered between two refreshes ([`SourceState`]), which version of a plugin is
//! offered ([`choice`]), and fetching from whatever holds the bytes ([`Origin`]).
//!
//! *Never* sees a private key, touches the host's disk or database, parses a package before its signature was checked,
//! or trusts a place that bytes came from.
//!
//! Start reading at [`verify`] (the checks, in their order), then [`fetch`] (the same order, with bytes from
//! somewhere), then [`choice`].
//!
//! # Layers
//! - `fetch`: a refresh and a download, with bytes from wherever they are
//! - `http`, `link`: places on the web, and the links by which users add a source
//! - `origin`: whatever holds the bytes
//! - `verify`, `choice`: whether a source is believed, and which version of a plugin it offers
//! - `state`: what is remembered of a source between two refreshes
//! - `package`: the bytes that an index promised, and the list of files that the author signed
//! - `document`: what the signed files say
//! - `format`: how they are written

pub mod choice;
mod document;
pub mod fetch;
mod format;
pub mod http;
mod link;
mod origin;
mod package;
mod state;
pub mod verify;

pub use document::index::{Author, Entry, Index, Plugin};
pub use document::revocation::{Revocation, Revocations, VersionRange};
pub use document::root::{InvalidSourceId, Root, SourceId};
pub use format::abi::{Abi, InvalidAbi};
pub use format::key::{InvalidKey, KeyId, PublicKey};
pub use format::level::Level;
pub use format::role::Role;
pub use format::{merge, path, record, signature, text};
pub use link::{InvalidLink, Link};
pub use origin::{Embedded, Folder, Origin, OriginError, Reading};
pub use package::{AuthorSignature, FILES, FILES_SIGNATURE, PackageError, VerifiedPackage, files_list, verify_files};
pub use plugin_package::{Digest, Identity, InvalidDigest, InvalidIdentity};
pub use state::{Freshness, InvalidState, Pin, SourceState, StoredState};
pub use verify::{AuthorChange, Changes, Consent, Document, Refreshed, VerifyError};

/// The largest root. It holds keys and, rarely, a word on an author's key.
pub const MAX_ROOT_BYTES: u64 = 16 * 1024;

/// The largest timestamp; an honest one is below one KiB.
pub const MAX_TIMESTAMP_BYTES: u64 = 16 * 1024;

/// The largest file of signatures; one is about 350 bytes, and during a change of keys there are a few.
pub const MAX_SIGNATURES_BYTES: u64 = 8 * 1024;

/// The largest index: room for [`MAX_ENTRIES`] versions.
pub const MAX_INDEX_BYTES: u64 = 8 * 1024 * 1024;

/// Most versions of all plugins of a source together. What is parsed of them stays below 20 MiB.
pub const MAX_ENTRIES: usize = 10_000;

/// The largest list of revocations; one is about 200 bytes.
pub const MAX_REVOCATIONS_BYTES: u64 = 1024 * 1024;

/// The largest package: what the host takes as an archive.
pub const MAX_PACKAGE_BYTES: u64 = plugin_package::MAX_ARCHIVE_BYTES as u64;
