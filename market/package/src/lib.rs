//! The package format of plugins: an archive, the files in it, and what its manifest says.
//!
//! Every reader and writer of packages uses this crate: the host when it installs one, the market's tool when it signs
//! or lists one, the author's commands when they pack one. So all of them refuse the same archives for the same
//! reasons.
//!
//! *Owns* the archive's reader and writer, every limit of a package, `plugin.json` with its JSON Schema, the patterns
//! of hosts and URLs that it names, and the identity and digest by which plugins and packages are known.
//!
//! *Never* touches a disk, checks a signature (that is `market`) or decides what a plugin may do (`plugin-host`).
//!
//! # Layers
//! - `package`: the files of an archive, with the limits of their contents
//! - `zip`: the archive's reader and writer
//! - `manifest`: `plugin.json`
//! - `setting`, `host_pattern`, `url_pattern`: what a manifest names
//! - `domain`: who owns a domain name
//! - `refusal`, `digest`, `identity`: vocabulary
//! - `text`: what values that are texts in JSON have in common

mod digest;
pub mod domain;
mod host_pattern;
mod identity;
pub mod manifest;
mod package;
mod refusal;
mod setting;
mod text;
mod url_pattern;
mod zip;

pub use digest::{Digest, InvalidDigest};
pub use host_pattern::{HostPattern, InvalidHostPattern};
pub use identity::{Identity, InvalidIdentity};
pub use manifest::{InvalidManifest, Language, Manifest};
pub use package::Package;
pub use refusal::{Check, InvalidPackage};
pub use setting::{Choice, Definition, ValueType, Widget};
pub use text::UnknownName;
pub use url_pattern::{InvalidUrlPattern, Matcher, UrlPattern};
pub use zip::{MAX_ARCHIVE_BYTES, MAX_FILE_BYTES, pack};
