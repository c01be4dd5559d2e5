//! The root document: which keys may sign which documents of a source.

use std::{collections::BTreeMap, fmt, str::FromStr};

use jiff::Timestamp;

use crate::{
    Identity, PublicKey, Role,
    format::record::{OverrideRecord, RoleRecord, RootRecord},
};

/// The longest name of a source that users are shown, in characters.
const MAX_NAME_CHARACTERS: usize = 80;

/// The longest identifier of a source in bytes; it is part of file names.
const MAX_ID_BYTES: usize = 64;

/// The permanent id of a source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(String);

/// A text that names no source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a source is named with lower-case letters, digits, '-' and '.', at most {MAX_ID_BYTES} bytes")]
pub struct InvalidSourceId;

impl FromStr for SourceId {
    type Err = InvalidSourceId;

    fn from_str(text: &str) -> Result<Self, InvalidSourceId> {
        let is_valid = (1..=MAX_ID_BYTES).contains(&text.len())
            && text
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'));
        is_valid.then(|| Self(text.to_owned())).ok_or(InvalidSourceId)
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A root document, validated and signed by the required keys.
#[derive(Debug, Clone)]
pub struct Root {
    seq: u64,
    expires: Timestamp,
    source: SourceId,
    name: String,
    roles: BTreeMap<Role, Keys>,
    authors: BTreeMap<Identity, OverrideRecord>,
}

/// The keys of a role: no key twice, and at least as many as must sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    keys: Vec<PublicKey>,
    threshold: usize,
}

impl Keys {
    /// The keys.
    pub fn all(&self) -> &[PublicKey] {
        &self.keys
    }

    /// How many of them must sign.
    pub fn threshold(&self) -> usize {
        self.threshold
    }
}

impl Root {
    /// Its number.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// When it expires.
    pub fn expires(&self) -> Timestamp {
        self.expires
    }

    /// What the source calls itself.
    pub fn source(&self) -> &SourceId {
        &self.source
    }

    /// What users read.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The keys of `role`.
    pub fn role(&self, role: Role) -> &Keys {
        &self.roles[&role]
    }

    /// The key and the reason for it, if the root vouches for the key of this plugin's author.
    pub fn author(&self, identity: &Identity) -> Option<(&PublicKey, &str)> {
        let found = self.authors.get(identity)?;
        Some((&found.key, &found.reason))
    }
}

impl TryFrom<RootRecord> for Root {
    type Error = String;

    fn try_from(record: RootRecord) -> Result<Self, String> {
        let roles = [
            (Role::Root, record.roles.root),
            (Role::Timestamp, record.roles.timestamp),
            (Role::Index, record.roles.index),
            (Role::Revocations, record.roles.revocations),
        ];
        let roles = roles
            .into_iter()
            .map(|(role, record)| Ok((role, keys(role, record)?)))
            .collect::<Result<_, String>>()?;
        if record.seq == 0 {
            return Err("the first root is number 1".to_owned());
        }
        if record.source.name.chars().count() > MAX_NAME_CHARACTERS {
            return Err(format!(
                "the source's name is longer than {MAX_NAME_CHARACTERS} characters"
            ));
        }
        Ok(Self {
            seq: record.seq,
            expires: record.expires,
            source: record
                .source
                .id
                .parse()
                .map_err(|error: InvalidSourceId| error.to_string())?,
            name: record.source.name,
            roles,
            authors: record.authors,
        })
    }
}

fn keys(role: Role, record: RoleRecord) -> Result<Keys, String> {
    let keys: Vec<_> = record.keys.into_iter().map(|key| key.0).collect();
    let mut points: Vec<_> = keys.iter().map(PublicKey::point).collect();
    points.sort_unstable();
    points.dedup();
    if points.len() != keys.len() {
        return Err(format!("role {role} names a key twice"));
    }
    if record.threshold == 0 || record.threshold > keys.len() {
        return Err(format!(
            "role {role} wants {} signatures of {} keys",
            record.threshold,
            keys.len()
        ));
    }
    Ok(Keys {
        keys,
        threshold: record.threshold,
    })
}
