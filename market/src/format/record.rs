//! The files of a source and of a package, as they are written. The JSON Schemas beside this library are generated from
//! these types. Fields that are not known are skipped when a file is read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    Abi, Digest, Identity, Level, PublicKey,
    format::{signature::Compact, text},
};

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
    /// `root.<seq>.json`: who may speak for a source. Signed by a threshold of its own root keys and of the root keys of
    /// the root before it.
    struct RootRecord {
        /// The version of the format.
        spec: String,
        /// One more than the root before it.
        seq: u64,
        /// From when on nobody shall believe it.
        #[schema(with = "String")]
        expires: Timestamp,
        /// Which source this is.
        source: SourceRecord,
        /// Who speaks in which role.
        roles: RolesRecord,
        /// Keys of authors that these roots vouch for, since the ones before are lost or stolen.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        #[schema(with = "BTreeMap<String, OverrideRecord>")]
        authors: BTreeMap<Identity, OverrideRecord>,
    }

    /// Which source a root is of; never changes.
    struct SourceRecord {
        /// Tells sources apart, of lower-case letters, digits, `-` and `.`.
        id: String,
        /// What users read.
        name: String,
    }

    /// The keys of all roles.
    struct RolesRecord {
        /// Names the keys; kept offline.
        root: RoleRecord,
        /// Says every few days what the newest files are.
        timestamp: RoleRecord,
        /// Says which plugins there are.
        index: RoleRecord,
        /// Says which must not run.
        revocations: RoleRecord,
    }

    /// The keys of one role.
    struct RoleRecord {
        /// Minisign public keys.
        #[schema(with = "Vec<String>")]
        keys: Vec<KeyText>,
        /// How many of them must sign.
        threshold: usize,
    }

    /// A root's word on the key of an author.
    struct OverrideRecord {
        /// The key.
        #[serde(with = "text")]
        #[schema(with = "String")]
        key: PublicKey,
        /// Why; users read it.
        reason: String,
    }

    /// `timestamp.<seq>.json`: which files are the newest. Its signature, `timestamp.minisig`, is the one file of a source
    /// that is ever replaced.
    struct TimestampRecord {
        /// The version of the format.
        spec: String,
        /// Grows.
        seq: u64,
        /// When it was made.
        #[schema(with = "String")]
        issued: Timestamp,
        /// From when on it says nothing.
        #[schema(with = "String")]
        expires: Timestamp,
        /// The newest root.
        root: NumberRecord,
        /// The newest index.
        index: FileRecord,
        /// The newest revocations.
        revocations: FileRecord,
    }

    /// A file by its number.
    struct NumberRecord {
        /// The number.
        seq: u64,
    }

    /// A file by its number and its bytes.
    struct FileRecord {
        /// The number.
        seq: u64,
        /// SHA-256 of its bytes, in hexadecimal digits.
        #[serde(with = "text")]
        #[schema(with = "String")]
        sha256: Digest,
        /// How many they are.
        size: u64,
    }

    /// `index.<seq>.json`: which plugins there are. Written without spaces and with sorted keys, so that a merge patch
    /// (RFC 7396) of the index before it, `diff/<from>-<to>.json`, gives exactly these bytes.
    struct IndexRecord {
        /// The version of the format.
        spec: String,
        /// Grows.
        seq: u64,
        /// From when on nobody shall believe it.
        #[schema(with = "String")]
        expires: Timestamp,
        /// The plugins.
        #[schema(with = "BTreeMap<String, PluginRecord>")]
        plugins: BTreeMap<Identity, PluginRecord>,
    }

    /// A plugin of an index.
    struct PluginRecord {
        /// What users read.
        name: String,
        /// What it is for.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        description: String,
        /// Where to read more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        homepage: Option<String>,
        /// Words to find it by.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tags: Vec<String>,
        /// Who signs it.
        author: AuthorRecord,
        /// Its versions, in the order they came.
        versions: Vec<EntryRecord>,
    }

    /// Who signs a plugin.
    struct AuthorRecord {
        /// What users read.
        name: String,
        /// The key that signs packages now.
        #[serde(with = "text")]
        #[schema(with = "String")]
        key: PublicKey,
        /// The keys before it, the oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rotations: Vec<RotationRecord>,
    }

    /// An author's key says that another one follows it.
    struct RotationRecord {
        /// The key that says so.
        #[serde(with = "text")]
        #[schema(with = "String")]
        from: PublicKey,
        /// The key that follows.
        #[serde(with = "text")]
        #[schema(with = "String")]
        to: PublicKey,
        /// Two lines of a minisign signature of the trusted comment, which is
        /// `svc-market v1 role=author plugin=<identity> from=<key> to=<key>`.
        #[serde(with = "text")]
        #[schema(with = "String")]
        signature: Compact,
    }

    /// A version of a plugin.
    struct EntryRecord {
        /// The version.
        #[serde(with = "text")]
        #[schema(with = "String")]
        version: Version,
        /// Grows with every version of the plugin that is added, and stands for one package for ever.
        seq: u64,
        /// SHA-256 of the package.
        #[serde(with = "text")]
        #[schema(with = "String")]
        sha256: Digest,
        /// Its size in bytes.
        size: u64,
        /// Where it is: paths of this source, or https URLs.
        mirrors: Vec<String>,
        /// The oldest host that it runs on.
        #[serde(default, with = "text::optional", skip_serializing_if = "Option::is_none")]
        #[schema(with = "Option<String>")]
        min_host: Option<Version>,
        /// The version of the plugin interface that it uses.
        #[serde(with = "text")]
        #[schema(with = "String")]
        abi: Abi,
        /// What it asks for, as in `plugin.json`.
        #[schema(with = "serde_json::Value")]
        permissions: Box<RawValue>,
        /// Digest of the functions that its code imports.
        #[serde(default, with = "text::optional", skip_serializing_if = "Option::is_none")]
        #[schema(with = "Option<String>")]
        imports_digest: Option<Digest>,
        /// When it was added.
        #[schema(with = "String")]
        published: Timestamp,
        /// Two lines of the author's minisign signature of the package. Its trusted comment is
        /// `svc-market v1 role=package plugin=<identity> version=<version> sha256=<hex>`.
        #[serde(with = "text")]
        #[schema(with = "String")]
        signature: Compact,
        /// How many recorded exchanges it brings to try it with.
        #[serde(default)]
        fixtures: u32,
        /// Why nobody shall install it any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        yanked: Option<String>,
    }

    /// `revocations.<seq>.json`: what must not run.
    struct RevocationsRecord {
        /// The version of the format.
        spec: String,
        /// Grows.
        seq: u64,
        /// What is revoked.
        items: Vec<RevocationRecord>,
    }

    /// Something that is revoked.
    struct RevocationRecord {
        /// Which plugin.
        #[serde(with = "text")]
        #[schema(with = "String")]
        identity: Identity,
        /// Which of its versions.
        #[serde(default)]
        versions: RangeRecord,
        /// Which package only, if not all of these versions.
        #[serde(default, with = "text::optional", skip_serializing_if = "Option::is_none")]
        #[schema(with = "Option<String>")]
        sha256: Option<Digest>,
        /// How bad it is.
        level: Level,
        /// Why; users read it.
        reason: String,
        /// Since when.
        #[schema(with = "String")]
        since: Timestamp,
    }

    /// `META/files.json` of a package: every other file of it, by its path.
    struct FilesRecord {
        /// The version of the format.
        spec: String,
        /// The files.
        files: BTreeMap<String, ContentRecord>,
    }

    /// The bytes of a file.
    struct ContentRecord {
        /// SHA-256 of them.
        #[serde(with = "text")]
        #[schema(with = "String")]
        sha256: Digest,
        /// How many they are.
        size: u64,
    }
}

/// A range of versions, in the order of semantic versions. All of them if it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RangeRecord {
    /// The first one.
    #[serde(default, with = "text::optional", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub from: Option<Version>,
    /// The first one that is no longer in it.
    #[serde(default, with = "text::optional", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub before: Option<Version>,
}

/// A key in a list of keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyText(#[serde(with = "text")] pub PublicKey);

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
