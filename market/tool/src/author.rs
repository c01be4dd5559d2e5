//! What authors of plugins do: sign packages, hand them in, and hand over to another key.

use std::{
    fs,
    path::{Path, PathBuf},
};

use market::{AuthorSignature, Identity, PublicKey, record::RotationRecord, signature::Purpose};

use crate::{Package, SigningKey, ToolError, package::beside};

/// Signs the package at `path`: the list of its files in it, and the whole of it beside it. Doing it again changes nothing
/// in the package.
pub fn sign(path: &Path, key: &SigningKey) -> Result<Package, ToolError> {
    let package = Package::read(path)?.sign(key)?;
    fs::write(path, &package.bytes).map_err(ToolError::io("write", path))?;
    let signature = key.sign(&package.bytes, package.purpose());
    fs::write(beside(path), signature).map_err(ToolError::io("write", beside(path)))?;
    Ok(package)
}

/// Checks the package at `path`: its files, and the signature beside it. `key` is the author's, if it is known from
/// somewhere else than the package.
pub fn verify(path: &Path, key: Option<PublicKey>) -> Result<(Package, PublicKey), ToolError> {
    let package = Package::read(path)?;
    let named = package.author_key()?;
    if key.is_some_and(|key| key != named) {
        return Err(ToolError::Refused(format!("the package is signed by {named}")));
    }
    if package.verify_files()? == AuthorSignature::Unsigned {
        return Err(ToolError::Archive("it is not signed".to_owned()));
    }
    package.signature_beside(path, &named)?;
    Ok((package, named))
}

/// Hands a signed package in: checks it and copies it, with its signature, to the folder where a maintainer of a source
/// looks for packages. The answer is where it is.
pub fn hand_in(path: &Path, folder: &Path) -> Result<PathBuf, ToolError> {
    let (package, _) = verify(path, None)?;
    fs::create_dir_all(folder).map_err(ToolError::io("create", folder))?;
    let target = folder.join(format!("{}-{}.zip", package.identity(), package.version()));
    // The signature first: the package is never there without it.
    let copies = [(beside(path), beside(&target)), (path.to_owned(), target.clone())];
    for (from, to) in copies {
        fs::copy(&from, &to).map_err(ToolError::io("write", &to))?;
    }
    Ok(target)
}

/// The statement with which the owner of `old` hands a plugin over to `new`.
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
