//! Revocations of versions. They need only two keys, that of the revocations and that of the timestamp, to reach users
//! quickly.

use market::{Identity, Revocation, Role, record};

use crate::{Repository, SigningKey, ToolError, draft::Draft};

/// Adds a revocation. It replaces one of the same versions.
pub fn revoke(repository: &Repository, key: &SigningKey, revocation: Revocation) -> Result<(), ToolError> {
    change(repository, key, |items| {
        items.retain(|item| {
            (&item.identity, &item.versions, item.sha256)
                != (&revocation.identity, &revocation.versions, revocation.sha256)
        });
        items.push(revocation);
        Ok(())
    })
}

/// Removes all revocations of a plugin.
pub fn pardon(repository: &Repository, key: &SigningKey, identity: &Identity) -> Result<(), ToolError> {
    change(repository, key, |items| {
        let before = items.len();
        items.retain(|item| item.identity != *identity);
        if items.len() == before {
            return Err(ToolError::Refused(format!("{identity} has no revocations")));
        }
        Ok(())
    })
}

fn change(
    repository: &Repository,
    key: &SigningKey,
    change: impl FnOnce(&mut Vec<Revocation>) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    let mut revocations = repository.revocations()?;
    change(&mut revocations.items)?;
    revocations.seq += 1;
    let mut draft = Draft::new(repository);
    draft.sign(
        Role::Revocations,
        revocations.seq,
        record::to_bytes(&revocations),
        &[key],
    );
    draft.write()
}
