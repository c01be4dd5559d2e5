//! The plugins that came with the service. They are not signed: an attacker who could change them could change the
//! executable.

use bytes::Bytes;
use market::{Digest, Identity};
use plugin_package::{Manifest, manifest::Reading};
use semver::Version;

use crate::{error::CommandError, package::archive};

/// A package in the executable.
#[derive(Debug, Clone, Copy)]
pub struct Bundled {
    /// `name@author`.
    pub identity: &'static str,
    pub version: &'static str,
    pub zip: &'static [u8],
}

/// A bundled package, parsed.
#[derive(Debug, Clone)]
pub(crate) struct BundledPlugin {
    pub(crate) manifest: Manifest,
    pub(crate) digest: Digest,
    pub(crate) zip: Bytes,
}

impl BundledPlugin {
    /// Parses the package, whose manifest must have the identity and version that the executable lists.
    pub(crate) fn open(bundled: &Bundled) -> Result<Self, CommandError> {
        let (package, manifest, _) = archive::parse(bundled.zip, Reading::Lenient)?;
        let (identity, version) = (manifest.identity.to_string(), manifest.version.to_string());
        if identity != bundled.identity || version != bundled.version {
            return Err(CommandError::NotAsListed("identity or version"));
        }
        Ok(Self {
            manifest,
            digest: package.digest,
            zip: Bytes::from_static(bundled.zip),
        })
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.manifest.identity
    }

    pub(crate) fn version(&self) -> &Version {
        &self.manifest.version
    }
}
