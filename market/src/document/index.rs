//! Which plugins there are.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use semver::Version;
use serde_json::value::RawValue;

use crate::{
    Abi, Digest, Identity, MAX_ENTRIES, MAX_PACKAGE_BYTES, PublicKey,
    format::{
        record::{EntryRecord, IndexRecord, PluginRecord, RotationRecord},
        signature::{Compact, Purpose},
    },
};

/// The most mirrors of a package.
const MAX_MIRRORS: usize = 8;

/// Most versions of a plugin that an index keeps.
const MAX_VERSIONS: usize = 200;

/// Most changes of an author's key that are followed.
const MAX_ROTATIONS: usize = 16;

/// The index of a source. No plugin has a version or a number twice.
#[derive(Debug, Clone, Default)]
pub struct Index {
    pub(crate) seq: u64,
    pub(crate) expires: Timestamp,
    plugins: BTreeMap<Identity, Plugin>,
}

/// A plugin of a source.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// What users read.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where to read more.
    pub homepage: Option<String>,
    /// Search terms.
    pub tags: Vec<String>,
    /// Who signs it.
    pub author: Author,
    /// Its versions.
    pub versions: Vec<Entry>,
}

/// Who signs a plugin.
#[derive(Debug, Clone)]
pub struct Author {
    /// What users read.
    pub name: String,
    /// The key that signs packages now.
    pub key: PublicKey,
    rotations: Vec<RotationRecord>,
}

/// A version of a plugin.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The version.
    pub version: Version,
    /// Its number, which stands for one package for ever.
    pub seq: u64,
    /// The package's digest.
    pub sha256: Digest,
    /// The package's size in bytes.
    pub size: u64,
    /// Where it is: paths of the source, or https URLs.
    pub mirrors: Vec<String>,
    /// The oldest host that it runs on.
    pub min_host: Option<Version>,
    /// The version of the plugin interface that it uses.
    pub abi: Abi,
    /// What it asks for, as in its manifest.
    pub permissions: Box<RawValue>,
    /// Digest of the functions that its code imports.
    pub imports_digest: Option<Digest>,
    /// When it was added, as the index says.
    pub published: Timestamp,
    /// The author's.
    pub signature: Compact,
    /// How many recorded exchanges it brings to try it with.
    pub fixtures: u32,
    /// Why it must not be installed any more.
    pub yanked: Option<String>,
}

impl Index {
    /// Its number.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// All plugins.
    pub fn plugins(&self) -> impl ExactSizeIterator<Item = (&Identity, &Plugin)> {
        self.plugins.iter()
    }

    /// One of them.
    pub fn plugin(&self, identity: &Identity) -> Option<&Plugin> {
        self.plugins.get(identity)
    }
}

impl Author {
    /// Whether a chain of rotations, each signed by the key before it, leads from `old` to the present key.
    pub(crate) fn follows(&self, identity: &Identity, old: PublicKey) -> bool {
        let mut key = old;
        for rotation in &self.rotations {
            if rotation.from != key {
                continue;
            }
            let purpose = Purpose::Author {
                identity,
                from: &rotation.from,
                to: &rotation.to,
            };
            if !rotation.signature.is_by(&key, purpose.to_string().as_bytes(), purpose) {
                return false;
            }
            key = rotation.to;
        }
        key == self.key
    }
}

impl TryFrom<IndexRecord> for Index {
    type Error = String;

    fn try_from(record: IndexRecord) -> Result<Self, String> {
        let entries: usize = record.plugins.values().map(|plugin| plugin.versions.len()).sum();
        if entries > MAX_ENTRIES {
            return Err(format!("{entries} versions; the limit is {MAX_ENTRIES}"));
        }
        let plugins = record.plugins.into_iter().map(|(identity, record)| {
            let plugin = plugin(record).map_err(|reason| format!("{identity}: {reason}"))?;
            Ok((identity, plugin))
        });
        Ok(Self {
            seq: record.seq,
            expires: record.expires,
            plugins: plugins.collect::<Result<_, String>>()?,
        })
    }
}

fn plugin(record: PluginRecord) -> Result<Plugin, String> {
    if record.author.rotations.len() > MAX_ROTATIONS {
        return Err(format!("its author's key changed more than {MAX_ROTATIONS} times"));
    }
    if record.versions.len() > MAX_VERSIONS {
        return Err(format!(
            "{} versions; the limit is {MAX_VERSIONS}",
            record.versions.len()
        ));
    }
    let (mut versions, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for entry in &record.versions {
        if !versions.insert(&entry.version) || !numbers.insert(entry.seq) {
            return Err(format!("version {} or its number is there twice", entry.version));
        }
        if entry.size > MAX_PACKAGE_BYTES {
            return Err(format!(
                "version {} has {} bytes; the limit is {MAX_PACKAGE_BYTES}",
                entry.version, entry.size
            ));
        }
        if entry.mirrors.is_empty() || entry.mirrors.len() > MAX_MIRRORS {
            return Err(format!(
                "version {} is at {} places; 1 to {MAX_MIRRORS} are possible",
                entry.version,
                entry.mirrors.len()
            ));
        }
    }
    Ok(Plugin {
        name: record.name,
        description: record.description,
        // It becomes a link on a page of the service: other schemes could run scripts.
        homepage: record
            .homepage
            .filter(|url| url.starts_with("https://") || url.starts_with("http://")),
        tags: record.tags,
        author: Author {
            name: record.author.name,
            key: record.author.key,
            rotations: record.author.rotations,
        },
        versions: record.versions.into_iter().map(Entry::from).collect(),
    })
}

impl From<EntryRecord> for Entry {
    fn from(record: EntryRecord) -> Self {
        Self {
            version: record.version,
            seq: record.seq,
            sha256: record.sha256,
            size: record.size,
            mirrors: record.mirrors,
            min_host: record.min_host,
            abi: record.abi,
            permissions: record.permissions,
            imports_digest: record.imports_digest,
            published: record.published,
            signature: record.signature,
            fixtures: record.fixtures,
            yanked: record.yanked,
        }
    }
}
