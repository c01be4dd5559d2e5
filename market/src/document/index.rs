//! The list of plugins and versions that a source offers.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::{
    Author, Identity, MAX_ENTRIES, MAX_PACKAGE_BYTES, Plugin, PublicKey,
    format::{record::IndexRecord, signature::Purpose},
};

/// The most mirrors of a package: each may be tried at every origin.
const MAX_MIRRORS: usize = 8;

/// Most versions of a plugin that an index keeps.
const MAX_VERSIONS: usize = 200;

/// Most changes of an author's key that are followed.
const MAX_ROTATIONS: usize = 16;

/// The index of a source: its plugins. No plugin has two versions with the same version or number.
#[derive(Debug, Clone, Default)]
pub struct Index {
    pub(crate) seq: u64,
    pub(crate) expires: Timestamp,
    plugins: BTreeMap<Identity, Plugin>,
}

impl Index {
    /// The number of this index.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// All plugins.
    pub fn plugins(&self) -> impl ExactSizeIterator<Item = (&Identity, &Plugin)> {
        self.plugins.iter()
    }

    /// One plugin.
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
        let mut plugins = record.plugins;
        for (identity, plugin) in &mut plugins {
            check(plugin).map_err(|reason| format!("{identity}: {reason}"))?;
            // It becomes a link on a page of the service: other schemes could run scripts.
            plugin
                .homepage
                .take_if(|url| !url.starts_with("https://") && !url.starts_with("http://"));
        }
        Ok(Self {
            seq: record.seq,
            expires: record.expires,
            plugins,
        })
    }
}

fn check(plugin: &Plugin) -> Result<(), String> {
    if plugin.author.rotations.len() > MAX_ROTATIONS {
        return Err(format!("its author's key changed more than {MAX_ROTATIONS} times"));
    }
    if plugin.versions.len() > MAX_VERSIONS {
        return Err(format!(
            "{} versions; the limit is {MAX_VERSIONS}",
            plugin.versions.len()
        ));
    }
    let (mut versions, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for entry in &plugin.versions {
        if !versions.insert(&entry.version) || !numbers.insert(entry.seq) {
            return Err(format!("version {} or its number occurs twice", entry.version));
        }
        if entry.size > MAX_PACKAGE_BYTES {
            return Err(format!(
                "version {} has {} bytes; the limit is {MAX_PACKAGE_BYTES}",
                entry.version, entry.size
            ));
        }
        if entry.mirrors.is_empty() || entry.mirrors.len() > MAX_MIRRORS {
            return Err(format!(
                "version {} has {} mirrors; 1 to {MAX_MIRRORS} are allowed",
                entry.version,
                entry.mirrors.len()
            ));
        }
    }
    Ok(())
}
