//! Packages to install, and what their source's index says about them.

use bytes::Bytes;
use market::{Digest, Identity, VerifiedPackage};
use plugin_package::Manifest;

use crate::{
    catalogue::BundledPlugin,
    error::CommandError,
    lifecycle::{Source, registry::Running},
    policy::Interface,
};

/// An archive to install, and what it must be.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) archive: Bytes,
    pub(crate) source: Source,
    pub(crate) expected: Expected,
    pub(crate) reason: InstallReason,
}

/// Whether the user requested an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallReason {
    User,
    Update,
}

/// Constraints on an archive.
#[derive(Debug)]
pub(crate) enum Expected {
    Anything,
    Plugin(Identity),
    /// The plugin as listed in the source's index.
    Listed(Box<Listed>),
}

/// What a source's index says of a package, besides its digest, which is checked before.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) package: VerifiedPackage,
    pub(crate) permissions: serde_json::Value,
    pub(crate) imports: Option<Digest>,
}

impl Delivery {
    pub(crate) fn bundled(plugin: &BundledPlugin) -> Self {
        Self {
            archive: plugin.zip.clone(),
            source: Source::Bundled,
            expected: Expected::Plugin(plugin.identity().clone()),
            reason: InstallReason::User,
        }
    }
}

impl Expected {
    /// The package, if it is from a market source.
    pub(crate) fn package(&self) -> Option<&VerifiedPackage> {
        match self {
            Self::Listed(listed) => Some(&listed.package),
            Self::Anything | Self::Plugin(_) => None,
        }
    }

    /// Checks the manifest against the index. A difference is treated as an attack: users decide by the index.
    pub(crate) fn check_manifest(&self, manifest: &Manifest, text: &[u8]) -> Result<(), CommandError> {
        let plugin = match self {
            Self::Anything => return Ok(()),
            Self::Plugin(plugin) => plugin,
            Self::Listed(listed) => listed.package.identity(),
        };
        if *plugin != manifest.identity {
            return Err(CommandError::OtherPlugin {
                asked: plugin.clone(),
                found: manifest.identity.clone(),
            });
        }
        let Self::Listed(listed) = self else { return Ok(()) };
        if *listed.package.version() != manifest.version {
            return Err(CommandError::NotAsListed("version"));
        }
        let manifest: serde_json::Value = serde_json::from_slice(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text))
            .map_err(|_| CommandError::NotAsListed("manifest"))?;
        let nothing = serde_json::json!({});
        if *manifest.get("permissions").unwrap_or(&nothing) != listed.permissions {
            return Err(CommandError::NotAsListed("permissions"));
        }
        Ok(())
    }

    /// Checks the code's imports against the index.
    pub(crate) fn check_code(&self, running: &Running) -> Result<(), CommandError> {
        let listed = match self {
            Self::Listed(listed) => listed.imports,
            Self::Anything | Self::Plugin(_) => None,
        };
        let is_as_listed = listed.is_none_or(|listed| imports_digest(running.guest.interface()) == listed);
        is_as_listed.then_some(()).ok_or(CommandError::NotAsListed("imports"))
    }
}

/// Digest of the functions that code imports, as in a source's index.
pub fn imports_digest(interface: &Interface) -> Digest {
    let mut imports = interface.imports.clone();
    imports.sort_unstable();
    imports.dedup();
    Digest::of(imports.join("\n").as_bytes())
}
