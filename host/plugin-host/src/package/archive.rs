//! Parses archives for this host version.

use plugin_package::{
    InvalidManifest, Manifest, Package,
    manifest::{self, Reading},
};

use crate::error::CommandError;

/// The version of the interface between host and plugins, as `abi` of a manifest names it.
pub const ABI: &str = "0.1";

/// The version of the host, which all its crates share.
pub(crate) fn host_version() -> semver::Version {
    env!("CARGO_PKG_VERSION")
        .parse()
        .expect("cargo accepts semantic versions only")
}

/// Opens an archive. Also returns the manifest keys that this host does not know.
pub(crate) fn parse(archive: &[u8], reading: Reading) -> Result<(Package, Manifest, Vec<String>), CommandError> {
    let package = Package::open(archive)?;
    let (manifest, unknown) = Manifest::parse(package.file(manifest::FILE, "manifest")?, reading)?;
    if let Some(oldest) = manifest.min_host.as_ref().filter(|oldest| **oldest > host_version()) {
        let reason = format!("needs a host of version {oldest} or later");
        return Err(InvalidManifest::new("/minHost", reason).into());
    }
    if let Some(icon) = &manifest.icon {
        package.check_icon(icon)?;
    }
    Ok((package, manifest, unknown))
}
