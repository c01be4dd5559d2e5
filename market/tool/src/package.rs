//! Packages as their authors make them: an archive with the list of its files, signed, and a signature of the whole
//! beside it. The same files give the same archive, byte for byte.

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
    text, verify_files,
};
use plugin_package::{MAX_ARCHIVE_BYTES, Package as Archive, manifest::FILE as MANIFEST, pack};
use semver::Version;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{SigningKey, ToolError};

/// Recorded exchanges are in this folder.
const FIXTURES: &str = "fixtures/";

/// A package: its archive, its files, and what its manifest says. Nothing says yet that it is signed.
#[derive(Debug)]
pub struct Package {
    /// The archive.
    pub bytes: Bytes,
    /// Its files, by their paths.
    pub files: BTreeMap<String, Bytes>,
    pub(crate) manifest: Manifest,
}

/// As much of a manifest as an index repeats.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) identity: Identity,
    pub(crate) name: String,
    #[serde(with = "text")]
    pub(crate) version: Version,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) homepage: Option<String>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    abi: Option<String>,
    #[serde(default, with = "text::optional")]
    min_host: Option<Version>,
    permissions: Option<Box<RawValue>>,
    pub(crate) author: Option<Author>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Author {
    pub(crate) name: String,
    key: Option<String>,
}

impl Package {
    /// Reads an archive from a file.
    pub fn read(path: &Path) -> Result<Self, ToolError> {
        let file = fs::File::open(path).map_err(ToolError::io("read", path))?;
        let mut bytes = Vec::new();
        let limited = file.take(MAX_ARCHIVE_BYTES as u64 + 1).read_to_end(&mut bytes);
        limited.map_err(ToolError::io("read", path))?;
        Self::parse(bytes.into())
    }

    /// Takes an archive apart.
    pub fn parse(bytes: Bytes) -> Result<Self, ToolError> {
        let Archive { files, .. } = Archive::open(&bytes)?;
        let manifest = files.get(MANIFEST).map_or(&[][..], |manifest| &manifest[..]);
        let manifest = serde_json::from_slice(manifest);
        let manifest = manifest.map_err(|error| ToolError::Archive(format!("{MANIFEST}: {error}")))?;
        Ok(Self { bytes, files, manifest })
    }

    /// Which plugin it is.
    pub fn identity(&self) -> &Identity {
        &self.manifest.identity
    }

    /// Which version it is.
    pub fn version(&self) -> &Version {
        &self.manifest.version
    }

    /// The key that its manifest names.
    pub fn author_key(&self) -> Result<PublicKey, ToolError> {
        let key = self.manifest.author.as_ref().and_then(|author| author.key.as_deref());
        let key = key.ok_or_else(|| ToolError::Archive(format!("{MANIFEST} names no key of the author")))?;
        key.parse()
            .map_err(|error| ToolError::Archive(format!("{MANIFEST}: {error}")))
    }

    /// The same package with the list of its files signed. A package that this key signed already stays as it is.
    pub fn sign(self, key: &SigningKey) -> Result<Self, ToolError> {
        if self.author_key()? != key.public() {
            return Err(ToolError::Refused(format!(
                "{MANIFEST} names another key of the author than this one"
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
        Self::parse(pack(&files)?.into())
    }

    /// Whether its files are as the key in its manifest signed them.
    pub fn verify_files(&self) -> Result<AuthorSignature, ToolError> {
        let key = self.author_key().ok();
        Ok(verify_files(
            &self.files,
            self.identity(),
            self.version(),
            key.as_ref(),
        )?)
    }

    /// What a signature of the whole package says.
    pub(crate) fn purpose(&self) -> Purpose<'_> {
        Purpose::Package {
            identity: self.identity(),
            version: self.version(),
            sha256: Digest::of(&self.bytes),
        }
    }

    /// The signature beside the archive, if it is `key`'s.
    pub fn signature_beside(&self, path: &Path, key: &PublicKey) -> Result<Compact, ToolError> {
        let path = beside(path);
        let text = fs::read_to_string(&path).map_err(ToolError::io("read", &path))?;
        let signature = Compact::from_file(&text).map_err(|error| ToolError::Archive(error.to_string()))?;
        if signature.is_by(key, &self.bytes, self.purpose()) {
            Ok(signature)
        } else {
            Err(market::PackageError::Signature.into())
        }
    }

    pub(crate) fn abi(&self) -> Result<Abi, ToolError> {
        let abi = self.manifest.abi.as_deref();
        let abi = abi.ok_or_else(|| ToolError::Archive(format!("{MANIFEST} names no plugin interface")))?;
        abi.parse()
            .map_err(|error| ToolError::Archive(format!("{MANIFEST}: {error}")))
    }

    pub(crate) fn min_host(&self) -> Option<Version> {
        self.manifest.min_host.clone()
    }

    pub(crate) fn permissions(&self) -> Box<RawValue> {
        let none = || RawValue::from_string("{}".to_owned()).expect("an empty object is JSON");
        self.manifest.permissions.clone().unwrap_or_else(none)
    }

    pub(crate) fn fixtures(&self) -> u32 {
        let fixtures = self.files.keys().filter(|path| path.starts_with(FIXTURES)).count();
        u32::try_from(fixtures).unwrap_or(u32::MAX)
    }
}

/// Where the signature of a package lies.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".minisig");
    beside.into()
}
