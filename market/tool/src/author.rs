//! The commands of plugin authors, with the author's key: sign and verify a package, submit it to a source, and
//! transfer a plugin to another key.

use std::{
    fs,
    path::{Path, PathBuf},
};

use market::{AuthorSignature, Identity, PublicKey, record::RotationRecord, signature::Purpose};
use private_files::FileError;

use crate::{Package, SigningKey, ToolError, package::beside};

/// Signs the package at `path` twice: the list of its files, inside the archive, and the whole archive, in a file
/// beside it. Idempotent: signing again with the same key gives the same archive.
pub fn sign(path: &Path, key: &SigningKey) -> Result<Package, ToolError> {
    let package = Package::read(path)?.sign(key)?;
    fs::write(path, &package.bytes).map_err(FileError::at("write", path))?;
    let signature = key.sign(&package.bytes, package.purpose());
    fs::write(beside(path), signature).map_err(FileError::at("write", beside(path)))?;
    Ok(package)
}

/// Checks the files of the package at `path` and the signature beside it. `key` is the author's key if the caller knows
/// it independently; without it, any author's signature is accepted.
pub fn verify(path: &Path, key: Option<PublicKey>) -> Result<(Package, PublicKey), ToolError> {
    let package = Package::read(path)?;
    let named = package.author_key()?;
    if key.is_some_and(|key| key != named) {
        return Err(ToolError::Refused(format!("the package is signed by {named}")));
    }
    if package.verify_files()? == AuthorSignature::Unsigned {
        return Err(ToolError::Archive(
            "it is not signed; sign it with svc plugin sign".to_owned(),
        ));
    }
    package.signature_beside(path, &named)?;
    Ok((package, named))
}

/// Submits a signed package: checks it and copies it, with its signature, to the folder from which a maintainer adds
/// packages to a source. Returns the path of the copy.
pub fn hand_in(path: &Path, folder: &Path) -> Result<PathBuf, ToolError> {
    let (package, _) = verify(path, None)?;
    fs::create_dir_all(folder).map_err(FileError::at("make", folder))?;
    let target = folder.join(format!("{}-{}.zip", package.identity(), package.version()));
    // The signature first: the package is never there without it.
    let copies = [(beside(path), beside(&target)), (path.to_owned(), target.clone())];
    for (from, to) in copies {
        fs::copy(&from, &to).map_err(FileError::at("write", &to))?;
    }
    Ok(target)
}

/// A signed statement by the owner of `old` that the plugin now belongs to the owner of `new`.
pub fn hand_over(identity: &Identity, old: &SigningKey, new: PublicKey) -> RotationRecord {
    let from = old.public();
    let purpose = Purpose::Author {
        identity,
        from: &from,
        to: &new,
    };
    RotationRecord {
        from,
        to: new,
        signature: old.sign_compact(purpose.to_string().as_bytes(), purpose),
    }
}
