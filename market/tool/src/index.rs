//! Changes of the index, the list of plugins and versions that a source offers: add a version, yank one, extend its
//! expiry. Each signs the index with the maintainer's index key and saves it in the repository; clients see it after
//! `publish`.

use std::path::Path;

use jiff::Timestamp;
use market::{
    Author, AuthorSignature, Digest, Entry, Identity, PackageError, Plugin, PublicKey, Role, path,
    record::{self, IndexRecord, RotationRecord},
    signature::Purpose,
};
use semver::Version;

use crate::{Package, Repository, SigningKey, ToolError, draft::Draft, init::INDEX_LIFE};

/// Gives the digest of the names of host functions that the code of a package imports, or why the code is invalid.
/// Passed in, because reading code needs a runtime for plugins, which this crate does not depend on.
pub type Imports<'a> = &'a (dyn Fn(&Package) -> Result<Digest, String> + Sync);

/// What `add` needs besides the package.
#[derive(Clone)]
pub struct Addition<'a> {
    /// The previous author's statement that the plugin now belongs to the key that signed this package.
    pub rotation: Option<RotationRecord>,
    /// Computes the digest of the imports.
    pub imports: Imports<'a>,
}

impl std::fmt::Debug for Addition<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addition")
            .field("rotation", &self.rotation)
            .finish_non_exhaustive()
    }
}

/// Adds the package at `package`, with its signature beside it, after everything about it was checked: its files, that
/// it is signed by the plugin's author, and that the version is new.
pub fn add(
    repository: &Repository,
    key: &SigningKey,
    package: &Path,
    addition: Addition<'_>,
    now: Timestamp,
) -> Result<(Identity, Version), ToolError> {
    let read = Package::read(package)?;
    let author = read.author_key()?;
    if read.verify_files()? == AuthorSignature::Unsigned {
        return Err(ToolError::Archive(
            "it is not signed; sign it with svc plugin sign".to_owned(),
        ));
    }
    let signature = read.signature_beside(package, &author)?;
    let imports = (addition.imports)(&read).map_err(ToolError::Archive)?;
    let (identity, version) = (read.identity().clone(), read.version().clone());
    let mut index = repository.index()?;
    let plugin = index
        .plugins
        .entry(identity.clone())
        .or_insert_with(|| new_plugin(&read, author));
    check_author(repository, &identity, plugin, author, addition.rotation)?;
    if plugin.versions.iter().any(|entry| entry.version == version) {
        return Err(ToolError::Refused(format!(
            "{identity} {version} is in the index already and cannot be replaced; add a new version"
        )));
    }
    let place = path::package(&identity, &version);
    plugin.versions.push(Entry {
        seq: plugin.versions.iter().map(|entry| entry.seq).max().unwrap_or(0) + 1,
        sha256: Digest::of(&read.bytes),
        size: read.bytes.len() as u64,
        mirrors: vec![place.clone()],
        min_host: read.manifest.min_host.clone(),
        abi: read.abi()?,
        permissions: read.permissions.clone(),
        imports_digest: Some(imports),
        published: now,
        signature,
        fixtures: read.fixtures(),
        yanked: None,
        version: version.clone(),
    });
    // Users see the name and description of the version that was added last.
    plugin.name.clone_from(&read.manifest.name);
    plugin.description.clone_from(&read.manifest.description);
    plugin.homepage.clone_from(&read.manifest.homepage);
    let mut draft = Draft::new(repository);
    draft.put(place, read.bytes.to_vec());
    sign(draft, index, key, now)?;
    Ok((identity, version))
}

fn new_plugin(package: &Package, author: PublicKey) -> Plugin {
    Plugin {
        name: String::new(),
        description: String::new(),
        homepage: None,
        tags: Vec::new(),
        author: Author {
            name: package
                .manifest
                .author
                .as_ref()
                .map(|author| author.name.clone())
                .unwrap_or_default(),
            key: author,
            rotations: Vec::new(),
        },
        versions: Vec::new(),
    }
}

/// Accepts `key` as the author's if it is the present one, if the root names it, or if the present one signed a
/// rotation to it; records the change.
fn check_author(
    repository: &Repository,
    identity: &Identity,
    plugin: &mut Plugin,
    key: PublicKey,
    rotation: Option<RotationRecord>,
) -> Result<(), ToolError> {
    let root = repository.root()?;
    let vouched = root.authors.get(identity).is_some_and(|word| word.key == key);
    if plugin.author.key == key || vouched {
        plugin.author.key = key;
        return Ok(());
    }
    let Some(rotation) = rotation else {
        return Err(ToolError::Refused(format!(
            "{identity} is signed with another key than before: the author hands it over with svc plugin handover \
             (--handover), or, if the old key is lost, svc market vouch sets the new one"
        )));
    };
    let purpose = Purpose::Author {
        identity,
        from: &rotation.from,
        to: &rotation.to,
    };
    let is_theirs = rotation.from == plugin.author.key
        && rotation.to == key
        && rotation
            .signature
            .is_by(&rotation.from, purpose.to_string().as_bytes(), purpose);
    if !is_theirs {
        return Err(PackageError::Signature.into());
    }
    plugin.author.key = key;
    plugin.author.rotations.push(rotation);
    Ok(())
}

/// Yanks a version: it is no longer offered, and keeps running where it is installed. To stop it there, revoke it.
pub fn withdraw(
    repository: &Repository,
    key: &SigningKey,
    (identity, version): (&Identity, &Version),
    reason: &str,
    now: Timestamp,
) -> Result<(), ToolError> {
    let mut index = repository.index()?;
    let versions = index.plugins.get_mut(identity).map(|plugin| &mut plugin.versions);
    let entry = versions.into_iter().flatten().find(|entry| entry.version == *version);
    let entry = entry.ok_or_else(|| ToolError::Refused(format!("{identity} {version} is not in the index")))?;
    entry.yanked = Some(reason.to_owned());
    sign(Draft::new(repository), index, key, now)
}

/// Signs the index again with a later expiry.
pub fn renew(repository: &Repository, key: &SigningKey, now: Timestamp) -> Result<(), ToolError> {
    let index = repository.index()?;
    sign(Draft::new(repository), index, key, now)
}

fn sign(mut draft: Draft<'_>, mut index: IndexRecord, key: &SigningKey, now: Timestamp) -> Result<(), ToolError> {
    index.seq += 1;
    index.expires = now + INDEX_LIFE;
    draft.sign(Role::Index, index.seq, record::to_bytes(&index), &[key]);
    draft.write()
}
