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

pub mod choice;
pub mod fetch;
pub mod http;
mod index;
mod json;
mod key;
mod link;
pub mod merge;
mod origin;
mod package;
pub mod path;
pub mod record;
mod revocation;
mod root;
pub mod signature;
mod state;
pub mod text;
mod timestamp;
pub mod verify;

pub use index::{Abi, Author, Entry, Index, InvalidAbi, Plugin};
pub use key::{InvalidKey, KeyId, PublicKey};
pub use link::{InvalidLink, Link};
pub use origin::{Embedded, Folder, Origin, OriginError, Reading};
pub use package::{AuthorSignature, FILES, FILES_SIGNATURE, PackageError, VerifiedPackage, files_list, verify_files};
pub use plugin_package::{Digest, Identity, InvalidDigest, InvalidIdentity};
pub use revocation::{Level, Revocation, Revocations, VersionRange};
pub use root::{InvalidSourceId, Role, Root, SourceId};
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
