//! What the key of the revocations says: what must not run. It needs no other key than that of the timestamp to reach
//! users.

use market::{
    Identity, Role,
    record::{self, RevocationRecord},
};

use crate::{Repository, SigningKey, ToolError, draft::Draft};

/// Adds a revocation, instead of one of the same versions if there is one.
pub fn revoke(repository: &Repository, key: &SigningKey, revocation: RevocationRecord) -> Result<(), ToolError> {
    change(repository, key, |items| {
        items.retain(|item| {
            (&item.identity, &item.versions, item.sha256)
                != (&revocation.identity, &revocation.versions, revocation.sha256)
        });
        items.push(revocation);
        Ok(())
    })
}

/// Takes all revocations of a plugin back.
pub fn pardon(repository: &Repository, key: &SigningKey, identity: &Identity) -> Result<(), ToolError> {
    change(repository, key, |items| {
        let before = items.len();
        items.retain(|item| item.identity != *identity);
        if items.len() == before {
            return Err(ToolError::Refused(format!("nothing of {identity} is revoked")));
        }
        Ok(())
    })
}

fn change(
    repository: &Repository,
    key: &SigningKey,
    change: impl FnOnce(&mut Vec<RevocationRecord>) -> Result<(), ToolError>,
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
