//! Changes of the root, which names the keys of all roles. A new root is visible at once. A new key of another role
//! first signs what is published now, beside the old key, so that clients accept the published documents at every
//! moment.

use jiff::Timestamp;
use market::{
    Identity, PublicKey, Role, path,
    record::{self, OverrideRecord, RoleRecord, RootRecord},
};

use crate::{
    Repository, SigningKey, ToolError,
    draft::{self, Draft},
    init::{ROOT_LIFE, role_record},
};

/// A change of the keys of one role. An empty one renews the root for another year.
#[derive(Debug, Clone)]
pub struct Rotation {
    /// The role.
    pub role: Role,
    /// Keys to add. Root keys sign the new root; the others sign what is published now.
    pub add: Vec<SigningKey>,
    /// Keys to remove: lost, stolen or retired.
    pub remove: Vec<PublicKey>,
}

/// Changes the keys of a role. `root_keys` must be as many as the threshold of the root role. Returns the new root's
/// number.
pub async fn rotate(
    repository: &Repository,
    root_keys: &[SigningKey],
    rotation: &Rotation,
    now: Timestamp,
) -> Result<u64, ToolError> {
    let mut root = repository.root()?;
    let role = rotation.role;
    let record = root.roles.of_mut(role);
    *record = changed(record, rotation)?;
    let mut draft = Draft::new(repository);
    let mut signers: Vec<_> = root_keys.iter().collect();
    if role == Role::Root {
        signers.extend(&rotation.add);
    } else if !rotation.add.is_empty() {
        cosign(&mut draft, repository, rotation)?;
    }
    finish(draft, root, &signers, now).await
}

/// Sets the key of a plugin's author, who cannot hand it over because the previous key is lost or stolen. Returns the
/// new root's number.
pub async fn vouch(
    repository: &Repository,
    root_keys: &[SigningKey],
    identity: Identity,
    word: OverrideRecord,
    now: Timestamp,
) -> Result<u64, ToolError> {
    let mut root = repository.root()?;
    root.authors.insert(identity, word);
    let signers: Vec<_> = root_keys.iter().collect();
    finish(Draft::new(repository), root, &signers, now).await
}

fn changed(record: &RoleRecord, rotation: &Rotation) -> Result<RoleRecord, ToolError> {
    let mut keys = record.keys.clone();
    for key in &rotation.remove {
        let place = keys.iter().position(|present| present == key);
        let place = place.ok_or_else(|| ToolError::Refused(format!("{key} is not a key of role {}", rotation.role)))?;
        keys.remove(place);
    }
    keys.extend(rotation.add.iter().map(SigningKey::public));
    if keys.len() < record.threshold {
        let reason = format!(
            "role {} needs {} keys; add a new key for each that is removed",
            rotation.role, record.threshold
        );
        return Err(ToolError::Refused(reason));
    }
    Ok(role_record(&keys, record.threshold))
}

/// Adds signatures by the new keys to the published documents of the role.
fn cosign(draft: &mut Draft<'_>, repository: &Repository, rotation: &Rotation) -> Result<(), ToolError> {
    let role = rotation.role;
    let keys: Vec<_> = rotation.add.iter().collect();
    let published = repository.timestamp()?;
    let published = published.ok_or_else(|| ToolError::Refused("nothing is published yet".to_owned()))?;
    let seq = match role {
        Role::Timestamp => published.seq,
        Role::Index => published.index.seq,
        Role::Revocations => published.revocations.seq,
        Role::Root => published.root.seq,
    };
    // Documents that are signed but not yet published need them, too.
    for seq in seq..=repository.newest(role)?.unwrap_or(seq).max(seq) {
        let body = repository.read(&path::document(role, seq))?;
        let place = path::signatures(role, seq);
        let mut signatures = repository.read(&place)?;
        signatures.extend(draft::signatures(role, seq, &body, &keys));
        draft.put(place, signatures);
    }
    Ok(())
}

async fn finish(
    mut draft: Draft<'_>,
    mut root: RootRecord,
    signers: &[&SigningKey],
    now: Timestamp,
) -> Result<u64, ToolError> {
    root.seq += 1;
    root.expires = now + ROOT_LIFE;
    draft.sign(Role::Root, root.seq, record::to_bytes(&root), signers);
    draft.check(now).await?;
    draft.write()?;
    Ok(root.seq)
}
