//! The versions of plugins that must not run.

use semver::Version;

use crate::{
    Digest, Identity, Revocation,
    format::record::{RevocationsRecord, VersionRange},
};

impl VersionRange {
    /// Whether the range contains `version`.
    pub fn contains(&self, version: &Version) -> bool {
        self.from.as_ref().is_none_or(|from| version >= from) && self.before.as_ref().is_none_or(|end| version < end)
    }
}

/// The revocations of a source.
#[derive(Debug, Clone, Default)]
pub struct Revocations {
    items: Vec<Revocation>,
}

impl Revocations {
    /// All revocations.
    pub fn items(&self) -> &[Revocation] {
        &self.items
    }

    /// The most severe revocation of a version.
    pub fn of(&self, identity: &Identity, version: &Version, sha256: &Digest) -> Option<&Revocation> {
        let hits = self.items.iter().filter(|item| {
            item.identity == *identity
                && item.versions.contains(version)
                && item.sha256.as_ref().is_none_or(|revoked| revoked == sha256)
        });
        hits.max_by_key(|item| item.level)
    }

    /// Whether all versions of a plugin are revoked, so that it may be missing in an index.
    pub(crate) fn has_all_of(&self, identity: &Identity) -> bool {
        let mut items = self.items.iter();
        items
            .any(|item| item.identity == *identity && item.versions == VersionRange::default() && item.sha256.is_none())
    }
}

impl From<RevocationsRecord> for Revocations {
    fn from(record: RevocationsRecord) -> Self {
        Self { items: record.items }
    }
}
