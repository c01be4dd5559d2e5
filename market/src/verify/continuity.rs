//! Compares an index with the one before it. An index must not lose a plugin, give a version's number to another
//! package or replace an author's key by itself. So a thief of the index key cannot replace what is installed.

use std::collections::{BTreeMap, HashSet};

use semver::Version;
use serde::Deserialize;

use super::{AuthorChange, Changes, Consent, VerifyError};
use crate::{Digest, Identity, Index, Pin, Plugin, PublicKey, Revocations, Role, Root, SourceState, format::json};

/// The parts of the previous index that are compared. Parsing no more keeps the memory of a refresh near that of one
/// index.
#[derive(Deserialize, Default)]
struct Known {
    plugins: BTreeMap<Identity, KnownPlugin>,
}

#[derive(Deserialize)]
struct KnownPlugin {
    author: KnownAuthor,
    versions: Vec<KnownEntry>,
}

#[derive(Deserialize)]
struct KnownAuthor {
    key: PublicKey,
}

#[derive(Deserialize)]
struct KnownEntry {
    version: Version,
    seq: u64,
    sha256: Digest,
}

pub(super) fn compare(
    state: &SourceState,
    root: &Root,
    index: &Index,
    revocations: &Revocations,
) -> Result<Changes, VerifyError> {
    let known: Known = match &state.index {
        None => Known::default(),
        Some(held) => json::read(&held.body).map_err(VerifyError::malformed(Role::Index))?,
    };
    let mut changes = Changes {
        root: state
            .root()
            .is_none_or(|old| old.seq() != root.seq())
            .then_some(root.seq()),
        ..Changes::default()
    };
    for identity in known.plugins.keys().filter(|identity| index.plugin(identity).is_none()) {
        if !revocations.has_all_of(identity) {
            return Err(VerifyError::Vanished(identity.clone()));
        }
        changes.removed.push(identity.clone());
    }
    for (identity, plugin) in index.plugins() {
        let before = known.plugins.get(identity);
        let pin = state.pinned(identity);
        let key = pin.map(|pin| pin.key).or_else(|| before.map(|known| known.author.key));
        changes.authors.extend(author_change(identity, plugin, key, root)?);
        match before {
            None => changes.added.push(identity.clone()),
            Some(known) => {
                let is_new = |seq| known.versions.iter().all(|old| old.seq != seq);
                let new = plugin.versions.iter().filter(|entry| is_new(entry.seq));
                let new = new.map(|entry| (identity.clone(), entry.version.clone()));
                changes.versions.extend(new);
            }
        }
        check_numbers(identity, plugin, before, pin)?;
    }
    let old = state.revocations().unwrap_or_default();
    let old: HashSet<_> = old.items().iter().collect();
    let new = revocations.items().iter().filter(|item| !old.contains(item));
    changes.revoked = new.cloned().collect();
    Ok(changes)
}

fn author_change(
    identity: &Identity,
    plugin: &Plugin,
    before: Option<PublicKey>,
    root: &Root,
) -> Result<Option<AuthorChange>, VerifyError> {
    let author = &plugin.author;
    let Some(from) = before.filter(|key| *key != author.key) else {
        return Ok(None);
    };
    let follows_old = author.follows(identity, from);
    let by = match root.author(identity) {
        None if follows_old => Consent::Author,
        // If the root names a key, the chain must lead through it: the previous key may be stolen.
        Some((key, _)) if follows_old && author.follows(identity, *key) => Consent::Author,
        Some((key, reason)) if author.follows(identity, *key) => Consent::Root(reason.to_owned()),
        _ => return Err(VerifyError::OtherAuthor(identity.clone())),
    };
    Ok(Some(AuthorChange {
        identity: identity.clone(),
        from,
        to: author.key,
        by,
    }))
}

/// Known numbers belong to the same packages as before, and new versions have higher numbers than all known ones.
fn check_numbers(
    identity: &Identity,
    plugin: &Plugin,
    before: Option<&KnownPlugin>,
    pin: Option<&Pin>,
) -> Result<(), VerifyError> {
    let old = before.map(|known| known.versions.as_slice()).unwrap_or_default();
    let highest = old.iter().map(|entry| entry.seq).max();
    for entry in &plugin.versions {
        let is_as_listed = match old.iter().find(|old| old.seq == entry.seq) {
            Some(old) => old.sha256 == entry.sha256 && old.version == entry.version,
            None => highest.is_none_or(|highest| entry.seq > highest),
        };
        let is_as_installed = pin.is_none_or(|pin| pin.seq != entry.seq || pin.sha256 == entry.sha256);
        if !is_as_listed || !is_as_installed {
            return Err(VerifyError::Reused(identity.clone(), entry.seq));
        }
    }
    Ok(())
}
