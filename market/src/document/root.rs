//! The root document: which keys may sign which documents of a source.

use jiff::Timestamp;

use crate::{
    Identity, PublicKey, Role, SourceId,
    format::record::{RoleRecord, RootRecord},
};

/// The longest name of a source that users are shown, in characters.
const MAX_NAME_CHARACTERS: usize = 80;

/// A root document. No role has a key twice, and every role has at least as many keys as must sign.
#[derive(Debug, Clone)]
pub struct Root(RootRecord);

impl Root {
    /// Its number.
    pub fn seq(&self) -> u64 {
        self.0.seq
    }

    /// When it expires.
    pub fn expires(&self) -> Timestamp {
        self.0.expires
    }

    /// The id of its source.
    pub fn source(&self) -> &SourceId {
        &self.0.source.id
    }

    /// The name that users see.
    pub fn name(&self) -> &str {
        &self.0.source.name
    }

    /// The keys of `role`.
    pub fn role(&self, role: Role) -> &RoleRecord {
        self.0.roles.of(role)
    }

    /// The key and the reason for it, if the root vouches for the key of this plugin's author.
    pub fn author(&self, identity: &Identity) -> Option<(&PublicKey, &str)> {
        let found = self.0.authors.get(identity)?;
        Some((&found.key, &found.reason))
    }
}

impl TryFrom<RootRecord> for Root {
    type Error = String;

    fn try_from(record: RootRecord) -> Result<Self, String> {
        Role::ALL
            .iter()
            .try_for_each(|role| check(*role, record.roles.of(*role)))?;
        if record.seq == 0 {
            return Err("the first root is number 1".to_owned());
        }
        if record.source.name.chars().count() > MAX_NAME_CHARACTERS {
            return Err(format!(
                "the source's name is longer than {MAX_NAME_CHARACTERS} characters"
            ));
        }
        Ok(Self(record))
    }
}

fn check(role: Role, RoleRecord { keys, threshold }: &RoleRecord) -> Result<(), String> {
    let mut points: Vec<_> = keys.iter().map(PublicKey::point).collect();
    points.sort_unstable();
    points.dedup();
    if points.len() != keys.len() {
        return Err(format!("role {role} names a key twice"));
    }
    if *threshold == 0 || *threshold > keys.len() {
        return Err(format!(
            "role {role} needs {threshold} signatures of {} keys",
            keys.len()
        ));
    }
    Ok(())
}
