//! Packages of authors: an archive that contains a signed list of its files, and a signature of the whole archive in a
//! file beside it. The same files give the same archive, byte for byte.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use market::{
    Abi, AuthorSignature, Digest, FILES, FILES_SIGNATURE, Identity, PublicKey, files_list,
    signature::{Compact, Purpose},
    verify_files,
};
use plugin_package::{
    MAX_ARCHIVE_BYTES, Manifest, Package as Archive,
    manifest::{FILE as MANIFEST, Reading},
    pack,
};
use private_files::FileError;
use semver::Version;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{SigningKey, ToolError};

/// The folder of recorded exchanges in a package.
const FIXTURES: &str = "fixtures/";

/// A package with a valid manifest. Its signatures are not verified yet.
#[derive(Debug)]
pub struct Package {
    /// The bytes of the archive.
    pub bytes: Bytes,
    /// The files of the archive, by their paths.
    pub files: BTreeMap<String, Bytes>,
    pub(crate) manifest: Manifest,
    /// The permissions as the manifest has them.
    pub(crate) permissions: Box<RawValue>,
}

/// The part of a manifest that an index repeats word for word.
#[derive(Deserialize)]
struct Permissions {
    permissions: Option<Box<RawValue>>,
}

impl Package {
    /// Reads an archive from a file.
    pub fn read(path: &Path) -> Result<Self, ToolError> {
        let file = fs::File::open(path).map_err(FileError::at("read", path))?;
        let mut bytes = Vec::new();
        let limited = file.take(MAX_ARCHIVE_BYTES as u64 + 1).read_to_end(&mut bytes);
        limited.map_err(FileError::at("read", path))?;
        Self::parse(bytes.into())
    }

    /// Reads an archive from memory.
    pub fn parse(bytes: Bytes) -> Result<Self, ToolError> {
        let Archive { files, .. } = Archive::open(&bytes).map_err(|error| ToolError::archive(&error))?;
        let text = files.get(MANIFEST).map_or(&[][..], |manifest| &manifest[..]);
        // As the client of a source reads it.
        let (manifest, _) = Manifest::parse(text, Reading::Lenient).map_err(|error| ToolError::archive(&error))?;
        let Permissions { permissions } = serde_json::from_slice(text).map_err(|error| ToolError::archive(&error))?;
        let none = || RawValue::from_string("{}".to_owned()).expect("an empty object is JSON");
        Ok(Self {
            bytes,
            files,
            permissions: permissions.unwrap_or_else(none),
            manifest,
        })
    }

    /// The identity of the plugin.
    pub fn identity(&self) -> &Identity {
        &self.manifest.identity
    }

    /// The version of the plugin.
    pub fn version(&self) -> &Version {
        &self.manifest.version
    }

    /// The author's key in the manifest.
    pub fn author_key(&self) -> Result<PublicKey, ToolError> {
        let key = self.manifest.author.as_ref().and_then(|author| author.key.as_deref());
        let key = key.ok_or_else(|| ToolError::Archive(format!("{MANIFEST} names no key of the author")))?;
        key.parse()
            .map_err(|error| ToolError::Archive(format!("{MANIFEST}: {error}")))
    }

    /// Signs the list of files. A package that this key has signed is returned unchanged.
    pub fn sign(self, key: &SigningKey) -> Result<Self, ToolError> {
        if self.author_key()? != key.public() {
            return Err(ToolError::Refused(format!(
                "{MANIFEST} names another key of the author; sign with that key, or change /author/key"
            )));
        }
        if let Ok(AuthorSignature::Signed(_)) = self.verify_files() {
            return Ok(self);
        }
        let Self {
            mut files, manifest, ..
        } = self;
        files.remove(FILES_SIGNATURE);
        let list = files_list(&files);
        let purpose = Purpose::Files {
            identity: &manifest.identity,
            version: &manifest.version,
            sha256: Digest::of(&list),
        };
        files.insert(FILES_SIGNATURE.to_owned(), key.sign(&list, purpose).into());
        files.insert(FILES.to_owned(), list.into());
        Self::parse(pack(&files).map_err(|error| ToolError::archive(&error))?.into())
    }

    /// Verifies the signed list of files with the key in the manifest.
    pub fn verify_files(&self) -> Result<AuthorSignature, ToolError> {
        let key = self.author_key().ok();
        Ok(verify_files(
            &self.files,
            self.identity(),
            self.version(),
            key.as_ref(),
        )?)
    }

    /// The purpose of a signature of the whole package.
    pub(crate) fn purpose(&self) -> Purpose<'_> {
        Purpose::Package {
            identity: self.identity(),
            version: self.version(),
            sha256: Digest::of(&self.bytes),
        }
    }

    /// The signature in the file beside the archive, if `key` made it.
    pub fn signature_beside(&self, path: &Path, key: &PublicKey) -> Result<Compact, ToolError> {
        let path = beside(path);
        let text = fs::read_to_string(&path).map_err(FileError::at("read", &path))?;
        let signature = Compact::from_file(&text).map_err(|error| ToolError::archive(&error))?;
        if signature.is_by(key, &self.bytes, self.purpose()) {
            Ok(signature)
        } else {
            Err(market::PackageError::Signature.into())
        }
    }

    pub(crate) fn abi(&self) -> Result<Abi, ToolError> {
        let abi = self.manifest.abi.as_deref();
        let abi = abi.ok_or_else(|| {
            ToolError::Archive(format!(
                "{MANIFEST} names no plugin interface; make the package with svc plugin pack"
            ))
        })?;
        abi.parse()
            .map_err(|error| ToolError::Archive(format!("{MANIFEST}: {error}")))
    }

    pub(crate) fn fixtures(&self) -> u32 {
        let fixtures = self.files.keys().filter(|path| path.starts_with(FIXTURES)).count();
        u32::try_from(fixtures).unwrap_or(u32::MAX)
    }
}

/// The path of the signature of the package at `path`.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".minisig");
    beside.into()
}
