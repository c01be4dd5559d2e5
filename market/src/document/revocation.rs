//! What must not run.

use jiff::Timestamp;
use semver::Version;

use crate::{
    Digest, Identity, Level,
    format::record::{RangeRecord, RevocationsRecord},
};

/// A range of versions, in the order of semantic versions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VersionRange {
    from: Option<Version>,
    before: Option<Version>,
}

impl VersionRange {
    /// Whether `version` is in it.
    pub fn contains(&self, version: &Version) -> bool {
        self.from.as_ref().is_none_or(|from| version >= from) && self.before.as_ref().is_none_or(|end| version < end)
    }

    /// Whether every version is.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.before.is_none()
    }
}

impl From<RangeRecord> for VersionRange {
    fn from(record: RangeRecord) -> Self {
        Self {
            from: record.from,
            before: record.before,
        }
    }
}

/// Something that is revoked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Revocation {
    /// Which plugin.
    pub identity: Identity,
    /// Which of its versions.
    pub versions: VersionRange,
    /// Which package only.
    pub sha256: Option<Digest>,
    /// How bad it is.
    pub level: Level,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// What must not run.
#[derive(Debug, Clone, Default)]
pub struct Revocations {
    items: Vec<Revocation>,
}

impl Revocations {
    /// All of them.
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

    /// Whether a plugin is revoked as a whole, so that it may be missing in an index.
    pub(crate) fn has_all_of(&self, identity: &Identity) -> bool {
        let mut items = self.items.iter();
        items.any(|item| item.identity == *identity && item.versions.is_all() && item.sha256.is_none())
    }
}

impl From<RevocationsRecord> for Revocations {
    fn from(record: RevocationsRecord) -> Self {
        let items = record.items.into_iter().map(|item| Revocation {
            identity: item.identity,
            versions: item.versions.into(),
            sha256: item.sha256,
            level: item.level,
            reason: item.reason,
            since: item.since,
        });
        Self { items: items.collect() }
    }
}
