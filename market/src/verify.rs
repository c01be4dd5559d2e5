//! Verification of a source. Pure functions of the bytes that an origin gave and of the state that is remembered: they
//! return the state to remember from now on, or why the source is rejected. No clock, no disk, no network.
//!
//! [`heads`] follows the roots from the trusted one to the newest and checks the timestamp with it. The timestamp says
//! which other files are [`wanted`](Heads::wanted); [`Heads::complete`] checks those. If any check fails, nothing of
//! the refresh is remembered.

use bytes::Bytes;
use jiff::Timestamp;
use semver::Version;
use serde::de::DeserializeOwned;

use crate::{
    Digest, Identity, Index, MAX_INDEX_BYTES, MAX_REVOCATIONS_BYTES, MAX_ROOT_BYTES, MAX_TIMESTAMP_BYTES, PublicKey,
    Revocation, Revocations, Role, Root, SourceState,
    format::{
        json::{self, Malformed},
        merge,
        record::{FileRecord, IndexRecord, RevocationsRecord, RoleRecord, RootRecord, TimestampRecord},
        signature::{self, Purpose},
    },
    state::{Anchor, Held, Ratchets, TrustedRoot},
};

mod continuity;

/// A kind of document, as messages name it.
pub type Document = Role;

/// A document and minisign's signatures of it.
#[derive(Debug, Clone, Default)]
pub struct Signed {
    /// The bytes of the document.
    pub body: Bytes,
    /// One or more files of minisign, one after another.
    pub signatures: Bytes,
}

/// The documents that a timestamp names.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// The index, if [`Heads::wanted`] names it.
    pub index: Option<IndexPart>,
    /// The revocations, if [`Heads::wanted`] names them.
    pub revocations: Option<Signed>,
}

/// An index, whole or as a patch.
#[derive(Debug, Clone)]
pub enum IndexPart {
    /// The whole index.
    Whole(Signed),
    /// A merge patch of the index that the client has, and the signatures of the resulting index.
    Patch(Signed),
}

/// A verified source, newer than before or unchanged.
#[derive(Debug)]
pub struct Refreshed {
    /// The state to store, in one transaction.
    pub state: SourceState,
    /// The plugins.
    pub index: Index,
    /// The versions that must not run.
    pub revocations: Revocations,
    /// The differences to the state before.
    pub changes: Changes,
}

/// The differences that a refresh found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// New plugins.
    pub added: Vec<Identity>,
    /// Plugins that were removed; all of them are revoked.
    pub removed: Vec<Identity>,
    /// New versions of plugins that were known.
    pub versions: Vec<(Identity, Version)>,
    /// New revocations.
    pub revoked: Vec<Revocation>,
    /// Plugins whose author signs with another key now.
    pub authors: Vec<AuthorChange>,
    /// The number of a new root.
    pub root: Option<u64>,
}

/// A change of the key that signs a plugin. Users are notified of every change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorChange {
    /// The plugin.
    pub identity: Identity,
    /// The previous key.
    pub from: PublicKey,
    /// The present key.
    pub to: PublicKey,
    /// Who authorised the change.
    pub by: Consent,
}

/// Who authorised a change of an author's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// The author, with the previous key.
    Author,
    /// The source's root, with a reason, because the previous key is lost or stolen.
    Root(String),
}

/// Why a source is rejected. The remembered state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The document or its file of signatures exceeds its size limit.
    #[error("the {0} file is larger than allowed")]
    TooLarge(Document),
    /// The document cannot be parsed.
    #[error("the {0} file cannot be read")]
    Malformed(Document, #[source] Malformed),
    /// The document is inconsistent or exceeds a limit.
    #[error("the {0} file is invalid: {1}")]
    Invalid(Document, String),
    /// Fewer of the role's keys signed the document than its threshold.
    #[error("the {document} file has {valid} of {threshold} valid signatures")]
    Signatures {
        /// The document.
        document: Document,
        /// The number of the role's keys that signed it.
        valid: usize,
        /// The number of keys that must sign it.
        threshold: usize,
    },
    /// The key with which the user added the source did not sign the root.
    #[error("the root is not signed with the key that this source was added with")]
    OtherKey,
    /// A root does not follow the one before it.
    #[error("the root is number {found}; expected number {expected}")]
    RootNumber {
        /// The number after that of the root before it.
        expected: u64,
        /// The number of the root.
        found: u64,
    },
    /// The timestamp names a newer root than the origin gave.
    #[error("root {needed} is missing; the newest root is {known}")]
    RootMissing {
        /// The newest root that the origin gave.
        known: u64,
        /// The root that the timestamp names.
        needed: u64,
    },
    /// The id of the source changed.
    #[error("the id of the source changed to {0}")]
    OtherSource(String),
    /// The document has expired.
    #[error("the {0} file expired at {1}")]
    Expired(Document, Timestamp),
    /// The document is older than one that was verified before.
    #[error("the {document} file is number {offered}, older than number {seen}, which was seen before")]
    Rollback {
        /// The document.
        document: Document,
        /// The highest number that was verified before.
        seen: u64,
        /// The number of the document.
        offered: u64,
    },
    /// Two documents have the same number: the source gives clients different documents.
    #[error("there are two different {0} files with number {1}")]
    TwoFaced(Document, u64),
    /// The document is not the one that the timestamp names.
    #[error("the {0} file is not the one that the timestamp names")]
    Mismatch(Document),
    /// The document was not given.
    #[error("the {0} file is missing")]
    Missing(Document),
    /// The patch cannot be applied or does not result in the index that the timestamp names.
    #[error("the patch does not result in the new index")]
    Patch,
    /// A plugin was removed without a revocation.
    #[error("plugin {0} is no longer in the index and was not revoked")]
    Vanished(Identity),
    /// The number of a version was given to another package.
    #[error("plugin {0}: number {1} belongs to another package than before")]
    Reused(Identity, u64),
    /// The author's key changed, and neither the previous key nor the root authorised it.
    #[error("plugin {0} is signed with another key than before")]
    OtherAuthor(Identity),
}

/// The newest root and the timestamp, verified.
#[derive(Debug)]
pub struct Heads<'s> {
    state: &'s SourceState,
    root: TrustedRoot,
    ratchets: Ratchets,
    timestamp: TimestampRecord,
    time: Timestamp,
}

/// The documents that the client does not have yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The index, and the number of the index that the client has, which a patch may start from.
    pub index: Option<(FileRecord, Option<u64>)>,
    /// The revocations.
    pub revocations: Option<FileRecord>,
}

/// Verifies `roots` and `timestamp`. The roots are those after the trusted one, in their order; if none is trusted yet,
/// the newest one.
pub fn heads<'s>(
    state: &'s SourceState,
    roots: &[Signed],
    timestamp: &Signed,
    now: Timestamp,
) -> Result<Heads<'s>, VerifyError> {
    let root = newest_root(&state.anchor, roots)?;
    let mut ratchets = state.ratchets.clone();
    ratchets.keep_keys_of(&root.root);

    let role = Role::Timestamp;
    let stamp: TimestampRecord = read(role, &timestamp.body, MAX_TIMESTAMP_BYTES)?;
    for (document, file, limit) in [
        (Role::Index, &stamp.index, MAX_INDEX_BYTES),
        (Role::Revocations, &stamp.revocations, MAX_REVOCATIONS_BYTES),
    ] {
        if file.size > limit {
            let reason = format!("{document} of {} bytes; the limit is {limit}", file.size);
            return Err(VerifyError::Invalid(role, reason));
        }
    }
    let file = FileRecord::of(stamp.seq, &timestamp.body);
    let signers = signed_by(root.root.role(role), role, &file, timestamp)?;
    check_ratchet(&ratchets, role, &file)?;
    check_ratchet(&ratchets, Role::Index, &stamp.index)?;
    check_ratchet(&ratchets, Role::Revocations, &stamp.revocations)?;
    if stamp.root.seq > root.root.seq() {
        return Err(VerifyError::RootMissing {
            known: root.root.seq(),
            needed: stamp.root.seq,
        });
    }
    ratchets.advance(role, signers, &file, Some(stamp.issued));
    // A clock that was set back does not make an old file new: it is at least as late as the newest timestamp says.
    let time = ratchets.time(now);
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

/// The number of the root that an unverified timestamp names: that root is requested if none is trusted yet.
pub fn claimed_root(timestamp: &[u8]) -> Result<u64, VerifyError> {
    let record: TimestampRecord = read(Role::Timestamp, timestamp, MAX_TIMESTAMP_BYTES)?;
    Ok(record.root.seq)
}

impl Heads<'_> {
    /// The documents that [`Self::complete`] needs.
    pub fn wanted(&self) -> Wanted {
        // A document that was signed by keys which the root has since removed must be verified again.
        let is_held = |role, held: &Option<Held>, file: &FileRecord| {
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

    /// Verifies the other documents. Borrows, so that the caller can try again with the whole index if a patch fails.
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

    fn whole(&self, part: &IndexPart, file: FileRecord) -> Result<Signed, VerifyError> {
        let (patch, held) = match (part, &self.state.index) {
            (IndexPart::Whole(signed), _) => return Ok(signed.clone()),
            (IndexPart::Patch(patch), Some(held)) => (patch, held),
            (IndexPart::Patch(_), None) => return Err(VerifyError::Patch),
        };
        // Bounds the memory for a patch of an attacker: a result is at most as long as both together.
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

    /// Verifies that a document is the one which the timestamp names, and its signatures.
    fn accept(
        &self,
        role: Role,
        file: FileRecord,
        signed: Signed,
        ratchets: &mut Ratchets,
    ) -> Result<Held, VerifyError> {
        if FileRecord::of(file.seq, &signed.body) != file {
            return Err(VerifyError::Mismatch(role));
        }
        let signers = signed_by(self.root.root.role(role), role, &file, &signed)?;
        ratchets.advance(role, signers, &file, None);
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

/// Parses a root. Its signatures are not verified yet.
fn root(signed: &Signed) -> Result<(TrustedRoot, FileRecord), VerifyError> {
    let record: RootRecord = read(Role::Root, &signed.body, MAX_ROOT_BYTES)?;
    let root = Root::try_from(record).map_err(|reason| VerifyError::Invalid(Role::Root, reason))?;
    let file = FileRecord::of(root.seq(), &signed.body);
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

/// The keys that signed; an error if they are fewer than the threshold.
fn signed_by(keys: &RoleRecord, role: Role, file: &FileRecord, signed: &Signed) -> Result<Vec<PublicKey>, VerifyError> {
    if signed.signatures.len() as u64 > crate::MAX_SIGNATURES_BYTES {
        return Err(VerifyError::TooLarge(role));
    }
    let purpose = Purpose::Document {
        role,
        seq: file.seq,
        sha256: file.sha256,
    };
    let signers = signature::signers(&signed.body, &signed.signatures, purpose, &keys.keys);
    if signers.len() < keys.threshold {
        return Err(VerifyError::Signatures {
            document: role,
            valid: signers.len(),
            threshold: keys.threshold,
        });
    }
    Ok(signers)
}

fn check_ratchet(ratchets: &Ratchets, document: Document, file: &FileRecord) -> Result<(), VerifyError> {
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

fn check_expiry(document: Document, expires: Timestamp, time: Timestamp) -> Result<(), VerifyError> {
    if expires <= time {
        return Err(VerifyError::Expired(document, expires));
    }
    Ok(())
}

fn check_number(document: Document, found: u64, file: &FileRecord) -> Result<(), VerifyError> {
    if found != file.seq {
        return Err(VerifyError::Mismatch(document));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
