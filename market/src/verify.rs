//! Whether to believe a source: functions of bytes and of what is remembered, which give what to remember from now on,
//! or why not. No clock, no disk, no network.
//!
//! [`heads`] follows the roots from the one that is believed to the newest and checks the timestamp with it, which says
//! what else is [`wanted`](Heads::wanted); [`Heads::complete`] checks that. Nothing is remembered of a source that fails
//! anywhere.

use bytes::Bytes;
use jiff::Timestamp as Time;
use semver::Version;
use serde::de::DeserializeOwned;

use crate::{
    Digest, Identity, Index, MAX_ROOT_BYTES, MAX_TIMESTAMP_BYTES, PublicKey, Revocation, Revocations, Role, Root,
    SourceState,
    document::{
        root::Keys,
        timestamp::{File, Timestamp},
    },
    format::{
        json::{self, Malformed},
        merge,
        record::{IndexRecord, RevocationsRecord, RootRecord, TimestampRecord},
        signature::{self, Purpose},
    },
    state::{Anchor, Held, Mark, Ratchets, TrustedRoot},
};

mod continuity;

/// A file, as messages name it.
pub type Document = Role;

/// A file and minisign's signatures of it.
#[derive(Debug, Clone, Default)]
pub struct Signed {
    /// The file.
    pub body: Bytes,
    /// One or more signatures.
    pub signatures: Bytes,
}

/// The rest of a source.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// The index, if it is wanted.
    pub index: Option<IndexPart>,
    /// The revocations, if they are wanted.
    pub revocations: Option<Signed>,
}

/// An index.
#[derive(Debug, Clone)]
pub enum IndexPart {
    /// All of it.
    Whole(Signed),
    /// What is different to the one that is held, and the signatures of the whole one.
    Patch(Signed),
}

/// A source that is believed, newer than before or the same.
#[derive(Debug)]
pub struct Refreshed {
    /// What to remember, in one step.
    pub state: SourceState,
    /// The plugins.
    pub index: Index,
    /// What must not run.
    pub revocations: Revocations,
    /// What is different now.
    pub changes: Changes,
}

/// What a refresh brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Plugins that were not there.
    pub added: Vec<Identity>,
    /// Plugins that are gone; all of them are revoked.
    pub removed: Vec<Identity>,
    /// New versions of plugins that were there.
    pub versions: Vec<(Identity, Version)>,
    /// New revocations.
    pub revoked: Vec<Revocation>,
    /// Plugins that another key speaks for.
    pub authors: Vec<AuthorChange>,
    /// The number of a new root.
    pub root: Option<u64>,
}

/// Another key speaks for a plugin. Users are told, whoever said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorChange {
    /// For which.
    pub identity: Identity,
    /// The key before.
    pub from: PublicKey,
    /// The key now.
    pub to: PublicKey,
    /// Who said so.
    pub by: Consent,
}

/// Who said that another key speaks for a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// The key before.
    Author,
    /// The source's root, with a reason, since the key before is lost or stolen.
    Root(String),
}

/// Why a source is not believed. What was remembered of it stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// It is longer than such a file may be.
    #[error("the {0} file is too long")]
    TooLarge(Document),
    /// It cannot be read.
    #[error("the {0} file is not as it should be")]
    Malformed(Document, #[source] Malformed),
    /// It contradicts itself.
    #[error("the {0} file is not as it should be: {1}")]
    Invalid(Document, String),
    /// Too few of those who may have signed it.
    #[error("the {document} file has {valid} of {threshold} signatures that are needed")]
    Signatures {
        /// Which file.
        document: Document,
        /// How many there are.
        valid: usize,
        /// How many are needed.
        threshold: usize,
    },
    /// The key that the user gave did not sign the root.
    #[error("the root is not signed with the key that this source was added with")]
    OtherKey,
    /// A root is missing in the row.
    #[error("the root is number {found} where {expected} should be")]
    RootNumber {
        /// What should be there.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// There is a newer root, which is kept from us.
    #[error("root {needed} is not there; the newest is {known}")]
    RootMissing {
        /// The newest that came.
        known: u64,
        /// The one that the timestamp names.
        needed: u64,
    },
    /// It became another source.
    #[error("the source calls itself {0} now")]
    OtherSource(String),
    /// It is too old.
    #[error("the {0} file expired at {1}")]
    Expired(Document, Time),
    /// It is older than one that was seen.
    #[error("the {document} file is number {offered}, older than number {seen}, which was seen before")]
    Rollback {
        /// Which file.
        document: Document,
        /// What was seen.
        seen: u64,
        /// What came.
        offered: u64,
    },
    /// Others are told something else.
    #[error("there are two {0} files with number {1}")]
    TwoFaced(Document, u64),
    /// It is not the file that the timestamp names.
    #[error("the {0} file is not the one that the timestamp names")]
    Mismatch(Document),
    /// It did not come.
    #[error("the {0} file is missing")]
    Missing(Document),
    /// The difference to the index before does not fit.
    #[error("the difference to the index before does not give the new one")]
    Patch,
    /// A plugin disappeared and was not revoked.
    #[error("plugin {0} is no longer in the index and was not revoked")]
    Vanished(Identity),
    /// A number stands for another package than before.
    #[error("plugin {0}: number {1} stands for another package than before")]
    Reused(Identity, u64),
    /// Somebody else speaks for a plugin, and neither the author nor the root said so.
    #[error("plugin {0} is signed by somebody else than before")]
    OtherAuthor(Identity),
}

/// The newest root and the timestamp, checked.
#[derive(Debug)]
pub struct Heads<'s> {
    state: &'s SourceState,
    root: TrustedRoot,
    ratchets: Ratchets,
    timestamp: Timestamp,
    time: Time,
}

/// Which files are wanted besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The index, and the number of the one that is held.
    pub index: Option<(File, Option<u64>)>,
    /// The revocations.
    pub revocations: Option<File>,
}

/// Follows `roots`, which are those after the believed one in their order, or the newest if none is believed yet, and
/// checks `timestamp`.
pub fn heads<'s>(
    state: &'s SourceState,
    roots: &[Signed],
    timestamp: &Signed,
    now: Time,
) -> Result<Heads<'s>, VerifyError> {
    let root = newest_root(&state.anchor, roots)?;
    let mut ratchets = state.ratchets.clone();
    ratchets.keep_keys_of(&root.root);

    let role = Role::Timestamp;
    let record: TimestampRecord = read(role, &timestamp.body, MAX_TIMESTAMP_BYTES)?;
    let stamp = Timestamp::try_from(record).map_err(|reason| VerifyError::Invalid(role, reason))?;
    let file = File {
        seq: stamp.seq,
        sha256: Digest::of(&timestamp.body),
        size: timestamp.body.len() as u64,
    };
    let signers = signed_by(root.root.role(role), role, &file, timestamp)?;
    check_ratchet(&ratchets, role, &file)?;
    check_ratchet(&ratchets, Role::Index, &stamp.index)?;
    check_ratchet(&ratchets, Role::Revocations, &stamp.revocations)?;
    if stamp.root_seq > root.root.seq() {
        return Err(VerifyError::RootMissing {
            known: root.root.seq(),
            needed: stamp.root_seq,
        });
    }
    let mark = Mark {
        seq: file.seq,
        sha256: file.sha256,
        issued: Some(stamp.issued),
    };
    ratchets.advance(role, signers, mark);
    // A clock that was set back does not make an old file new: it is at least as late as we were ever told.
    let time = ratchets.newest_issued().map_or(now, |issued| issued.max(now));
    check_expiry(Role::Root, root.root.expires(), time)?;
    check_expiry(role, stamp.expires, time)?;
    Ok(Heads {
        state,
        root,
        ratchets,
        timestamp: stamp,
        time,
    })
}

/// The number of the root that a timestamp names, before anything is checked: with it, a root is asked for when none is
/// believed yet.
pub fn claimed_root(timestamp: &[u8]) -> Result<u64, VerifyError> {
    let record: TimestampRecord = read(Role::Timestamp, timestamp, MAX_TIMESTAMP_BYTES)?;
    Ok(record.root.seq)
}

impl Heads<'_> {
    /// What else is wanted.
    pub fn wanted(&self) -> Wanted {
        // A file that was signed by keys which no longer speak is wanted again, although its bytes are here.
        let is_held = |role, held: &Option<Held>, file: &File| {
            self.ratchets.mark(role).is_some() && held.as_ref().is_some_and(|held| held.file == *file)
        };
        let (index, revocations) = (&self.timestamp.index, &self.timestamp.revocations);
        let has_index = is_held(Role::Index, &self.state.index, index);
        let has_revocations = is_held(Role::Revocations, &self.state.revocations, revocations);
        let held_seq = self.state.index.as_ref().map(|held| held.file.seq);
        Wanted {
            index: (!has_index).then_some((*index, held_seq)),
            revocations: (!has_revocations).then_some(*revocations),
        }
    }

    /// Checks the rest. It borrows, so that a patch that does not fit can be followed by the whole file.
    pub fn complete(&self, parts: &Parts) -> Result<Refreshed, VerifyError> {
        let wanted = self.wanted();
        let mut ratchets = self.ratchets.clone();

        let held_revocations = match wanted.revocations {
            None => self.state.revocations.clone(),
            Some(file) => {
                let part = parts.revocations.as_ref();
                let part = part.ok_or(VerifyError::Missing(Role::Revocations))?;
                Some(self.accept(Role::Revocations, file, part.clone(), &mut ratchets)?)
            }
        };
        let held_index = match wanted.index {
            None => self.state.index.clone(),
            Some((file, _)) => {
                let part = parts.index.as_ref().ok_or(VerifyError::Missing(Role::Index))?;
                Some(self.accept(Role::Index, file, self.whole(part, file)?, &mut ratchets)?)
            }
        };
        let (revocations_held, index_held) = held_revocations
            .zip(held_index)
            .expect("what is not wanted is held, and what is wanted was accepted");

        let record: RevocationsRecord =
            json::read(&revocations_held.body).map_err(VerifyError::malformed(Role::Revocations))?;
        check_number(Role::Revocations, record.seq, &revocations_held.file)?;
        let revocations = Revocations::from(record);
        let record: IndexRecord = json::read(&index_held.body).map_err(VerifyError::malformed(Role::Index))?;
        check_number(Role::Index, record.seq, &index_held.file)?;
        let index = Index::try_from(record).map_err(|reason| VerifyError::Invalid(Role::Index, reason))?;
        check_expiry(Role::Index, index.expires, self.time)?;

        let changes = continuity::compare(self.state, &self.root.root, &index, &revocations)?;
        let mut state = self.state.clone();
        let until = self.root.root.expires().min(self.timestamp.expires).min(index.expires);
        state.until = Some(until);
        state.anchor = Anchor::Root(Box::new(self.root.clone()));
        state.ratchets = ratchets;
        state.index = Some(index_held);
        state.revocations = Some(revocations_held);
        state.follow(&index, self.time);
        Ok(Refreshed {
            state,
            index,
            revocations,
            changes,
        })
    }

    fn whole(&self, part: &IndexPart, file: File) -> Result<Signed, VerifyError> {
        let (patch, held) = match (part, &self.state.index) {
            (IndexPart::Whole(signed), _) => return Ok(signed.clone()),
            (IndexPart::Patch(patch), Some(held)) => (patch, held),
            (IndexPart::Patch(_), None) => return Err(VerifyError::Patch),
        };
        // Whoever has nothing of the file can make it as long as both together, and no longer.
        let is_possible = file.size <= held.file.size + patch.body.len() as u64;
        let body = is_possible.then(|| merge::apply(&held.body, &patch.body));
        match body {
            Some(Ok(body)) if Digest::of(&body) == file.sha256 => Ok(Signed {
                body: body.into(),
                signatures: patch.signatures.clone(),
            }),
            _ => Err(VerifyError::Patch),
        }
    }

    /// A file that is the one which the timestamp names and that is signed.
    fn accept(&self, role: Role, file: File, signed: Signed, ratchets: &mut Ratchets) -> Result<Held, VerifyError> {
        if signed.body.len() as u64 != file.size || Digest::of(&signed.body) != file.sha256 {
            return Err(VerifyError::Mismatch(role));
        }
        let signers = signed_by(self.root.root.role(role), role, &file, &signed)?;
        let mark = Mark {
            seq: file.seq,
            sha256: file.sha256,
            issued: None,
        };
        ratchets.advance(role, signers, mark);
        Ok(Held {
            file,
            body: signed.body,
        })
    }
}

fn newest_root(anchor: &Anchor, roots: &[Signed]) -> Result<TrustedRoot, VerifyError> {
    let mut roots = roots.iter();
    let mut newest = match anchor {
        Anchor::Root(trusted) => TrustedRoot::clone(trusted),
        Anchor::Key(key) => {
            let first = roots.next().ok_or(VerifyError::Missing(Role::Root))?;
            let (trusted, file) = root(first)?;
            let signers = signed_by(trusted.root.role(Role::Root), Role::Root, &file, first)?;
            if !signers.contains(key) {
                return Err(VerifyError::OtherKey);
            }
            trusted
        }
    };
    for signed in roots {
        let (next, file) = root(signed)?;
        let expected = newest.root.seq().saturating_add(1);
        if next.root.seq() != expected {
            return Err(VerifyError::RootNumber {
                expected,
                found: next.root.seq(),
            });
        }
        signed_by(newest.root.role(Role::Root), Role::Root, &file, signed)?;
        signed_by(next.root.role(Role::Root), Role::Root, &file, signed)?;
        if next.root.source() != newest.root.source() {
            return Err(VerifyError::OtherSource(next.root.source().to_string()));
        }
        newest = next;
    }
    Ok(newest)
}

/// A root, before anybody says that it is signed.
fn root(signed: &Signed) -> Result<(TrustedRoot, File), VerifyError> {
    let record: RootRecord = read(Role::Root, &signed.body, MAX_ROOT_BYTES)?;
    let root = Root::try_from(record).map_err(|reason| VerifyError::Invalid(Role::Root, reason))?;
    let file = File {
        seq: root.seq(),
        sha256: Digest::of(&signed.body),
        size: signed.body.len() as u64,
    };
    let body = signed.body.clone();
    Ok((TrustedRoot { root, body }, file))
}

fn read<T: DeserializeOwned>(document: Document, body: &[u8], limit: u64) -> Result<T, VerifyError> {
    if body.len() as u64 > limit {
        return Err(VerifyError::TooLarge(document));
    }
    json::read(body).map_err(VerifyError::malformed(document))
}

impl VerifyError {
    fn malformed(document: Document) -> impl FnOnce(Malformed) -> Self {
        move |error| Self::Malformed(document, error)
    }
}

/// Who of `keys` signed, if they are enough.
fn signed_by(keys: &Keys, role: Role, file: &File, signed: &Signed) -> Result<Vec<PublicKey>, VerifyError> {
    if signed.signatures.len() as u64 > crate::MAX_SIGNATURES_BYTES {
        return Err(VerifyError::TooLarge(role));
    }
    let purpose = Purpose::Document {
        role,
        seq: file.seq,
        sha256: file.sha256,
    };
    let signers = signature::signers(&signed.body, &signed.signatures, purpose, keys.all());
    if signers.len() < keys.threshold() {
        return Err(VerifyError::Signatures {
            document: role,
            valid: signers.len(),
            threshold: keys.threshold(),
        });
    }
    Ok(signers)
}

fn check_ratchet(ratchets: &Ratchets, document: Document, file: &File) -> Result<(), VerifyError> {
    match ratchets.mark(document) {
        Some(mark) if file.seq < mark.seq => Err(VerifyError::Rollback {
            document,
            seen: mark.seq,
            offered: file.seq,
        }),
        Some(mark) if file.seq == mark.seq && file.sha256 != mark.sha256 => {
            Err(VerifyError::TwoFaced(document, file.seq))
        }
        _ => Ok(()),
    }
}

fn check_expiry(document: Document, expires: Time, time: Time) -> Result<(), VerifyError> {
    if expires <= time {
        return Err(VerifyError::Expired(document, expires));
    }
    Ok(())
}

fn check_number(document: Document, found: u64, file: &File) -> Result<(), VerifyError> {
    if found != file.seq {
        return Err(VerifyError::Mismatch(document));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
