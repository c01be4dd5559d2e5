//! The files of a source and of a package, as they are written and as they are used once they were checked. The JSON
//! Schemas beside this library are generated from these types. Unknown fields are skipped when a file is read, so that
//! a later version of the formats can add some.

use std::collections::BTreeMap;

use jiff::Timestamp;
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Abi, Digest, Identity, Level, PublicKey, Role, SourceId, format::signature::Compact};

/// The version of the formats that this library writes.
pub const SPEC: &str = "1.0";

macro_rules! records {
    ($($(#[$attribute:meta])* struct $name:ident {
        $($(#[doc = $doc:literal])+ $(#[serde($($serde:tt)*)])? $(#[schema($($schema:tt)*)])? $field:ident: $type:ty),* $(,)?
    })*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[doc = $doc])+ $(#[serde($($serde)*)])? $(#[cfg_attr(test, schemars($($schema)*))])? pub $field: $type),*
        }
    )*};
}

records! {
    /// `root.<seq>.json`: the keys that sign the documents of a source. Signed by a threshold of its own root keys and
    /// of the root keys of the root before it.
    struct RootRecord {
        /// The version of the format.
        spec: String,
        /// One more than the root before it; the first root is number 1.
        seq: u64,
        /// Clients reject the root from this time on.
        #[schema(with = "String")]
        expires: Timestamp,
        /// The source that this root belongs to.
        source: SourceRecord,
        /// The keys of every role.
        roles: RolesRecord,
        /// Keys of authors that the root keys vouch for, because the author's previous key is lost or stolen.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        #[schema(with = "BTreeMap<String, OverrideRecord>")]
        authors: BTreeMap<Identity, OverrideRecord>,
    }

    /// The source that a root belongs to; the id never changes.
    struct SourceRecord {
        /// Distinguishes sources; lower-case letters, digits, `-` and `.`.
        id: SourceId,
        /// The name that users see.
        name: String,
    }

    /// The keys of all roles.
    struct RolesRecord {
        /// Signs roots; its keys are kept offline.
        root: RoleRecord,
        /// Signs timestamps, every few days.
        timestamp: RoleRecord,
        /// Signs the list of plugins.
        index: RoleRecord,
        /// Signs the list of revoked versions.
        revocations: RoleRecord,
    }

    /// The keys of one role.
    #[derive(PartialEq, Eq)]
    struct RoleRecord {
        /// Minisign public keys.
        keys: Vec<PublicKey>,
        /// How many of the keys must sign a document.
        threshold: usize,
    }

    /// A root's statement that an author uses another key.
    struct OverrideRecord {
        /// The author's key.
        key: PublicKey,
        /// The reason, shown to users.
        reason: String,
    }

    /// `timestamp.<seq>.json`: the newest files of a source. Its signature, `timestamp.minisig`, is the only file of a
    /// source whose content changes.
    struct TimestampRecord {
        /// The version of the format.
        spec: String,
        /// Higher than that of every timestamp before it.
        seq: u64,
        /// When it was signed.
        #[schema(with = "String")]
        issued: Timestamp,
        /// Clients reject the timestamp from this time on.
        #[schema(with = "String")]
        expires: Timestamp,
        /// The newest root.
        root: NumberRecord,
        /// The newest index.
        index: FileRecord,
        /// The newest revocations.
        revocations: FileRecord,
    }

    /// A file, identified by its number.
    struct NumberRecord {
        /// The number of the file.
        seq: u64,
    }

    /// A file, identified by its number and its content.
    #[derive(Copy, PartialEq, Eq)]
    struct FileRecord {
        /// The number of the file.
        seq: u64,
        /// SHA-256 of the file, in hexadecimal digits.
        #[schema(with = "String")]
        sha256: Digest,
        /// The size of the file in bytes.
        size: u64,
    }

    /// `index.<seq>.json`: the plugins of a source. Written without spaces and with sorted keys, so that a merge patch
    /// (RFC 7396) of the index before it, `diff/<from>-<to>.json`, gives exactly these bytes.
    struct IndexRecord {
        /// The version of the format.
        spec: String,
        /// Higher than that of every index before it.
        seq: u64,
        /// Clients reject the index from this time on.
        #[schema(with = "String")]
        expires: Timestamp,
        /// The plugins by their identities.
        #[schema(with = "BTreeMap<String, Plugin>")]
        plugins: BTreeMap<Identity, Plugin>,
    }

    /// A plugin of a source.
    struct Plugin {
        /// The name that users see.
        name: String,
        /// What the plugin does.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        description: String,
        /// A page about the plugin. Only http and https URLs are shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        homepage: Option<String>,
        /// Search terms.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tags: Vec<String>,
        /// The author, who signs the packages.
        author: Author,
        /// The versions in the order of their publication.
        versions: Vec<Entry>,
    }

    /// The author of a plugin.
    struct Author {
        /// The name that users see.
        name: String,
        /// The key that signs packages now.
        key: PublicKey,
        /// How the author's key changed, the oldest change first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rotations: Vec<RotationRecord>,
    }

    /// A change of an author's key, signed with the old one.
    struct RotationRecord {
        /// The old key.
        from: PublicKey,
        /// The new key.
        to: PublicKey,
        /// The second and fourth line of a minisign signature of the trusted comment, which is
        /// `svc-market v1 role=author plugin=<identity> from=<key> to=<key>`.
        signature: Compact,
    }

    /// A version of a plugin.
    struct Entry {
        /// The version.
        #[schema(with = "String")]
        version: Version,
        /// The number of the version. It is never given to another package.
        seq: u64,
        /// SHA-256 of the package, in hexadecimal digits.
        #[schema(with = "String")]
        sha256: Digest,
        /// The size of the package in bytes.
        size: u64,
        /// Where to download the package: paths below the source, or https URLs.
        mirrors: Vec<String>,
        /// The oldest version of the service that can run it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(with = "Option<String>")]
        min_host: Option<Version>,
        /// The version of the plugin interface that it uses.
        abi: Abi,
        /// The permissions in its `plugin.json`.
        #[schema(with = "serde_json::Value")]
        permissions: Box<RawValue>,
        /// Digest of the functions that its code imports.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(with = "Option<String>")]
        imports_digest: Option<Digest>,
        /// When it was added.
        #[schema(with = "String")]
        published: Timestamp,
        /// The second and fourth line of the author's minisign signature of the package. Its trusted comment is
        /// `svc-market v1 role=package plugin=<identity> version=<version> sha256=<hex>`.
        signature: Compact,
        /// The number of recorded exchanges in the package, with which an update is tried before it is installed.
        #[serde(default)]
        fixtures: u32,
        /// Why the version is no longer offered, if it was withdrawn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        yanked: Option<String>,
    }

    /// `revocations.<seq>.json`: the versions that must not run.
    struct RevocationsRecord {
        /// The version of the format.
        spec: String,
        /// Higher than that of every list before it.
        seq: u64,
        /// The revocations.
        items: Vec<Revocation>,
    }

    /// A revocation of versions of a plugin.
    #[derive(PartialEq, Eq, Hash)]
    struct Revocation {
        /// The plugin.
        #[schema(with = "String")]
        identity: Identity,
        /// The versions; all of them if the range is empty.
        #[serde(default)]
        versions: VersionRange,
        /// Restricts the revocation to the package with this SHA-256.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(with = "Option<String>")]
        sha256: Option<Digest>,
        /// How dangerous they are.
        level: Level,
        /// The reason, shown to users.
        reason: String,
        /// When they were revoked.
        #[schema(with = "String")]
        since: Timestamp,
    }

    /// A range of versions, in the order of semantic versions. An empty one contains every version.
    #[derive(Default, PartialEq, Eq, Hash)]
    struct VersionRange {
        /// The first version of the range.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(with = "Option<String>")]
        from: Option<Version>,
        /// The first version after the range.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(with = "Option<String>")]
        before: Option<Version>,
    }

    /// `META/files.json` of a package: every other file of the package, by its path.
    struct FilesRecord {
        /// The version of the format.
        spec: String,
        /// The files.
        files: BTreeMap<String, ContentRecord>,
    }

    /// The content of a file.
    #[derive(PartialEq, Eq)]
    struct ContentRecord {
        /// SHA-256 of the file, in hexadecimal digits.
        #[schema(with = "String")]
        sha256: Digest,
        /// The size of the file in bytes.
        size: u64,
    }
}

impl RolesRecord {
    /// The keys of `role`.
    pub fn of(&self, role: Role) -> &RoleRecord {
        match role {
            Role::Root => &self.root,
            Role::Timestamp => &self.timestamp,
            Role::Index => &self.index,
            Role::Revocations => &self.revocations,
        }
    }

    /// The keys of `role`, to be changed.
    pub fn of_mut(&mut self, role: Role) -> &mut RoleRecord {
        match role {
            Role::Root => &mut self.root,
            Role::Timestamp => &mut self.timestamp,
            Role::Index => &mut self.index,
            Role::Revocations => &mut self.revocations,
        }
    }
}

impl FileRecord {
    /// Identifies file number `seq` with these bytes.
    pub fn of(seq: u64, bytes: &[u8]) -> Self {
        let ContentRecord { sha256, size } = ContentRecord::of(bytes);
        Self { seq, sha256, size }
    }
}

impl ContentRecord {
    /// Identifies these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            sha256: Digest::of(bytes),
            size: bytes.len() as u64,
        }
    }
}

/// The bytes of `record` as files hold them: without spaces, keys sorted.
pub fn to_bytes(record: &impl Serialize) -> Vec<u8> {
    crate::format::merge::canonical(&serde_json::to_vec(record).expect("records have only what JSON has"))
        .expect("a record is JSON of a few levels")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[track_caller]
    fn check<T: schemars::JsonSchema>(name: &str) {
        let schema = schemars::generate::SchemaSettings::draft2020_12().into_generator();
        let text = serde_json::to_string_pretty(&schema.into_root_schema_for::<T>()).unwrap() + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{name}.json"));
        if std::env::vars().any(|(name, _)| name == "UPDATE_EXPECT") {
            std::fs::write(path, text).unwrap();
            return;
        }
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            stored == text,
            "schemas/{name}.json is stale; rewrite it with UPDATE_EXPECT=1"
        );
    }

    #[test]
    fn the_schemas_are_those_of_the_records() {
        check::<RootRecord>("root");
        check::<TimestampRecord>("timestamp");
        check::<IndexRecord>("index");
        check::<RevocationsRecord>("revocations");
        check::<FilesRecord>("files");
    }
}
