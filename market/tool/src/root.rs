//! What the root keys say: which keys there are. A new root is visible at once. Before it is, a key that begins to speak
//! signs what is published now, besides the one before it; so there is no moment in which a client believes neither.

use jiff::Timestamp;
use market::{
    Identity, PublicKey, Role, path,
    record::{self, KeyText, OverrideRecord, RoleRecord, RootRecord},
};

use crate::{
    Repository, SigningKey, ToolError,
    draft::{self, Draft},
    init::{ROOT_LIFE, role_record},
};

/// A change of the keys of one role. Without any, the root is only signed anew, for another year.
#[derive(Debug, Clone)]
pub struct Rotation {
    /// Which role's.
    pub role: Role,
    /// Keys that begin to speak. Root keys sign the new root; the others sign what is published now.
    pub add: Vec<SigningKey>,
    /// Keys that speak no more: lost, stolen or retired.
    pub remove: Vec<PublicKey>,
}

/// Changes the keys of a role, with as many root keys as must sign.
pub async fn rotate(
    repository: &Repository,
    root_keys: &[SigningKey],
    rotation: &Rotation,
    now: Timestamp,
) -> Result<u64, ToolError> {
    let mut root = repository.root()?;
    let role = rotation.role;
    let record = match role {
        Role::Root => &mut root.roles.root,
        Role::Timestamp => &mut root.roles.timestamp,
        Role::Index => &mut root.roles.index,
        Role::Revocations => &mut root.roles.revocations,
    };
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

/// Says which key speaks for a plugin, since its author cannot. Users are shown the reason.
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
    let mut keys: Vec<_> = record.keys.iter().map(|KeyText(key)| *key).collect();
    for key in &rotation.remove {
        let place = keys.iter().position(|present| present == key);
        let place = place.ok_or_else(|| ToolError::Refused(format!("{key} is no key of role {}", rotation.role)))?;
        keys.remove(place);
    }
    keys.extend(rotation.add.iter().map(SigningKey::public));
    if keys.len() < record.threshold {
        let reason = format!(
            "role {} needs {} keys; add others for those that go",
            rotation.role, record.threshold
        );
        return Err(ToolError::Refused(reason));
    }
    Ok(role_record(&keys, record.threshold))
}

/// The new keys sign what is published now, besides those who did.
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
    // What is signed and not yet published needs them, too.
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
