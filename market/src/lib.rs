//! The market: sources of plugins, and the verification of everything that they give.
//!
//! *Owns* the formats of a source (root, timestamp, index, diffs, revocations) and of a package's signature, the checks
//! of them ([`verify`]), the state between two refreshes ([`SourceState`]), which version of a plugin is
//! offered ([`choice`]), and fetching from untrusted places ([`Origin`]).
//!
//! *Never* sees a private key, touches the host's disk or database, parses a package before its signature was checked,
//! or trusts the origin of bytes.
//!
//! Start reading at [`verify`] (the checks, in their order), then [`fetch`] (the same order, with bytes from
//! an origin), then [`choice`].
//!
//! # Layers
//! - `fetch`: refreshes and downloads
//! - `http`, `link`: sources on web servers, and the links by which users add them
//! - `origin`: the places that hold the files of a source
//! - `verify`, `choice`: verification of a source, and which version of a plugin it offers
//! - `state`: the state of a source between two refreshes
//! - `package`: verification of packages and of their files
//! - `document`: the signed files of a source, validated
//! - `format`: file formats

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

pub use document::index::Index;
pub use document::revocation::Revocations;
pub use document::root::Root;
pub use format::abi::{Abi, InvalidAbi};
pub use format::key::{InvalidKey, KeyId, PublicKey};
pub use format::level::Level;
pub use format::record::{Author, Entry, Plugin, Revocation, VersionRange};
pub use format::role::Role;
pub use format::source_id::{InvalidSourceId, SourceId};
pub use format::{merge, path, record, signature};
pub use link::{InvalidLink, Link};
pub use origin::{Embedded, Folder, Origin, OriginError, Reading};
pub use package::{AuthorSignature, FILES, FILES_SIGNATURE, PackageError, VerifiedPackage, files_list, verify_files};
pub use plugin_package::{Digest, Identity, InvalidDigest, InvalidIdentity, UnknownName};
pub use state::{Freshness, InvalidState, Pin, SourceState, StoredState};
pub use verify::{AuthorChange, Changes, Consent, Document, Refreshed, VerifyError};

/// The largest root in bytes. It holds keys and, rarely, statements about the keys of authors.
pub const MAX_ROOT_BYTES: u64 = 16 * 1024;

/// The largest timestamp in bytes; an honest one has less than 1 KiB.
pub const MAX_TIMESTAMP_BYTES: u64 = 16 * 1024;

/// The largest file of signatures in bytes. A signature has about 350 bytes; during a change of keys there are a few.
pub const MAX_SIGNATURES_BYTES: u64 = 8 * 1024;

/// The largest index in bytes: room for [`MAX_ENTRIES`] versions.
pub const MAX_INDEX_BYTES: u64 = 8 * 1024 * 1024;

/// The most versions of all plugins of a source together. Parsed, they need less than 20 MiB.
pub const MAX_ENTRIES: usize = 10_000;

/// The largest list of revocations in bytes; a revocation has about 200.
pub const MAX_REVOCATIONS_BYTES: u64 = 1024 * 1024;

/// The largest package in bytes, which is the limit of archives.
pub const MAX_PACKAGE_BYTES: u64 = plugin_package::MAX_ARCHIVE_BYTES as u64;
