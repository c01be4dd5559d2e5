//! Verification of a package against its entry in an index, and of its files against the list that its author signed.

use std::collections::BTreeMap;

use bytes::Bytes;
use semver::Version;

use crate::{
    Digest, Entry, Identity, PublicKey,
    format::{
        json,
        record::{self, ContentRecord, FilesRecord},
        signature::{self, Purpose},
    },
};

/// The list of a package's files.
pub const FILES: &str = "META/files.json";

/// The author's signature of [`FILES`].
pub const FILES_SIGNATURE: &str = "META/files.json.minisig";

/// A package with the size and digest of its index entry and a valid signature of its author. Its content is not
/// parsed: the reader must check that the manifest names the same plugin and version.
#[derive(Debug, Clone)]
pub struct VerifiedPackage {
    bytes: Bytes,
    identity: Identity,
    version: Version,
    seq: u64,
    sha256: Digest,
    author: PublicKey,
}

/// Why a package is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// Size or digest differ from the index entry.
    #[error("the package is not the one that the index names")]
    Mismatch,
    /// The signature is not by the author.
    #[error("the package is not signed by the author of the plugin")]
    Signature,
    /// The list of files cannot be parsed.
    #[error("{FILES} cannot be read: {0}")]
    List(String),
    /// The list of files or its signature is missing.
    #[error("{FILES} and {FILES_SIGNATURE} belong together; one is missing")]
    Halved,
    /// A file differs from the signed list, or is only in one of list and package.
    #[error("{0} differs from what the author signed")]
    File(String),
    /// The package is signed, but no key is known to check the signature with.
    #[error("the package is signed, but its manifest names no key")]
    NoKey,
}

impl VerifiedPackage {
    /// Verifies `bytes` against the index entry and the author's signature.
    pub fn new(bytes: Bytes, identity: &Identity, entry: &Entry, author: &PublicKey) -> Result<Self, PackageError> {
        if bytes.len() as u64 != entry.size || Digest::of(&bytes) != entry.sha256 {
            return Err(PackageError::Mismatch);
        }
        let purpose = Purpose::Package {
            identity,
            version: &entry.version,
            sha256: entry.sha256,
        };
        if !entry.signature.is_by(author, &bytes, purpose) {
            return Err(PackageError::Signature);
        }
        Ok(Self {
            bytes,
            identity: identity.clone(),
            version: entry.version.clone(),
            seq: entry.seq,
            sha256: entry.sha256,
            author: *author,
        })
    }

    /// The archive.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Which plugin its manifest must name.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Which version its manifest must name.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Its number at the source.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Its digest.
    pub fn sha256(&self) -> Digest {
        self.sha256
    }

    /// The key that signed it.
    pub fn author(&self) -> &PublicKey {
        &self.author
    }
}

/// Whether the files of a package are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorSignature {
    /// The package has no signature of its files.
    Unsigned,
    /// The files are signed with this key.
    Signed(PublicKey),
}

/// Verifies the signed list of a package's files. `key` is the author's key: the pinned one of an installed plugin, or
/// else the one that the manifest names. An invalid signature is always an error.
pub fn verify_files(
    files: &BTreeMap<String, Bytes>,
    identity: &Identity,
    version: &Version,
    key: Option<&PublicKey>,
) -> Result<AuthorSignature, PackageError> {
    let (list, signatures) = match (files.get(FILES), files.get(FILES_SIGNATURE)) {
        (None, None) => return Ok(AuthorSignature::Unsigned),
        (Some(list), Some(signatures)) => (list, signatures),
        _ => return Err(PackageError::Halved),
    };
    let key = key.ok_or(PackageError::NoKey)?;
    let purpose = Purpose::Files {
        identity,
        version,
        sha256: Digest::of(list),
    };
    if signature::signers(list, signatures, purpose, std::slice::from_ref(key)).is_empty() {
        return Err(PackageError::Signature);
    }
    let record: FilesRecord = json::read(list).map_err(|error| PackageError::List(error.to_string()))?;
    let listed = |path: &String, bytes: &Bytes| record.files.get(path) == Some(&ContentRecord::of(bytes));
    let mut contents = files.iter().filter(|(path, _)| is_content(path));
    if let Some((path, _)) = contents.find(|(path, bytes)| !listed(path, bytes)) {
        return Err(PackageError::File(path.clone()));
    }
    match record
        .files
        .keys()
        .find(|path| !is_content(path) || !files.contains_key(*path))
    {
        Some(path) => Err(PackageError::File(path.clone())),
        None => Ok(AuthorSignature::Signed(*key)),
    }
}

/// The text of [`FILES`] for `files`, which are given by their paths.
pub fn files_list(files: &BTreeMap<String, Bytes>) -> Vec<u8> {
    let contents = files.iter().filter(|(path, _)| is_content(path));
    let contents = contents.map(|(path, bytes)| (path.clone(), ContentRecord::of(bytes)));
    record::to_bytes(&FilesRecord {
        spec: record::SPEC.to_owned(),
        files: contents.collect(),
    })
}

fn is_content(path: &str) -> bool {
    path != FILES && path != FILES_SIGNATURE
}
