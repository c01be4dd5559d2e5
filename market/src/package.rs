//! A package: the bytes that an index promised, and the list of files that its author signed.

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

/// The bytes of a package which are what the index promised and what the author signed. Whatever is inside them is not
/// yet checked; that its manifest names the same plugin and version is for whoever reads it.
#[derive(Debug, Clone)]
pub struct VerifiedPackage {
    bytes: Bytes,
    identity: Identity,
    version: Version,
    seq: u64,
    sha256: Digest,
    author: PublicKey,
}

/// Why a package is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// Other bytes than promised.
    #[error("the package is not the one that the index names")]
    Mismatch,
    /// Not the author's.
    #[error("the package is not signed by the author of the plugin")]
    Signature,
    /// Signed files that do not say what they are.
    #[error("{FILES} is not as it should be: {0}")]
    List(String),
    /// A signature without the list, or the other way round.
    #[error("{FILES} and {FILES_SIGNATURE} belong together; one is missing")]
    Halved,
    /// A file that the author did not sign.
    #[error("{0} is not as the author signed it")]
    File(String),
    /// Signed, and nobody says by whom.
    #[error("the package is signed, but its manifest names no key")]
    NoKey,
}

impl VerifiedPackage {
    /// Checks `bytes` against what the index says, and the author's signature.
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

/// Whether somebody answers for the files of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorSignature {
    /// Nobody.
    Unsigned,
    /// The owner of this key.
    Signed(PublicKey),
}

/// Checks the signature of a package's files, by their paths. `key` is the author's key: the pinned one of an installed
/// plugin, or else the one that the manifest names. A signature that is there and wrong is an error, always.
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
    let listed = |path: &String, bytes: &Bytes| {
        let content = record.files.get(path);
        content.is_some_and(|content| content.size == bytes.len() as u64 && content.sha256 == Digest::of(bytes))
    };
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

/// The list of `files`, by their paths.
pub fn files_list(files: &BTreeMap<String, Bytes>) -> Vec<u8> {
    let contents = files.iter().filter(|(path, _)| is_content(path)).map(|(path, bytes)| {
        let content = ContentRecord {
            sha256: Digest::of(bytes),
            size: bytes.len() as u64,
        };
        (path.clone(), content)
    });
    record::to_bytes(&FilesRecord {
        spec: record::SPEC.to_owned(),
        files: contents.collect(),
    })
}

fn is_content(path: &str) -> bool {
    path != FILES && path != FILES_SIGNATURE
}
