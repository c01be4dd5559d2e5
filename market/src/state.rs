//! The state of a source between two refreshes. It is a value; its owner stores it in one transaction.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    Digest, Entry, Identity, Index, PublicKey, Revocations, Role, Root, VerifiedPackage,
    format::{
        json,
        record::{FileRecord, IndexRecord, RevocationsRecord, RootRecord},
    },
};

/// The version of [`StoredState::head`].
const VERSION: u32 = 1;

/// The verified state of a source.
#[derive(Debug, Clone)]
pub struct SourceState {
    pub(crate) anchor: Anchor,
    pub(crate) ratchets: Ratchets,
    /// When the first of root, timestamp and index expires.
    pub(crate) until: Option<Timestamp>,
    pub(crate) index: Option<Held>,
    pub(crate) revocations: Option<Held>,
    pins: BTreeMap<Identity, Pin>,
}

/// What the trust in a source starts from.
#[derive(Debug, Clone)]
pub(crate) enum Anchor {
    /// One of the root keys, with which the user added the source. No root was verified yet.
    Key(PublicKey),
    /// The newest verified root.
    Root(Box<TrustedRoot>),
}

/// A trusted root and its bytes.
#[derive(Debug, Clone)]
pub(crate) struct TrustedRoot {
    pub(crate) root: Root,
    pub(crate) body: Bytes,
}

/// A verified document.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) file: FileRecord,
    pub(crate) body: Bytes,
}

/// The newest document that each key signed, by the key's role. The numbers of a role never go back, but only while its
/// keys stay: the numbers that a thief signed are forgotten when the stolen key is removed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ratchets(BTreeMap<Role, Vec<Mark>>);

/// The newest document that a key signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Mark {
    key: PublicKey,
    pub(crate) seq: u64,
    pub(crate) sha256: Digest,
    /// The latest time of issue among the timestamps that the key signed.
    issued: Option<Timestamp>,
}

impl Ratchets {
    /// The newest document that one of the role's present keys signed.
    pub(crate) fn mark(&self, role: Role) -> Option<Mark> {
        self.0.get(&role)?.iter().copied().max_by_key(|mark| mark.seq)
    }

    /// The time, given that it is `now` by the clock: at least when the newest known timestamp was issued, so that a
    /// clock that was set back does not make an expired file valid.
    pub(crate) fn time(&self, now: Timestamp) -> Timestamp {
        let issued = self.0.values().flatten().filter_map(|mark| mark.issued).max();
        issued.map_or(now, |issued| issued.max(now))
    }

    /// Removes the marks of keys that are no longer in the root.
    pub(crate) fn keep_keys_of(&mut self, root: &Root) {
        for (role, marks) in &mut self.0 {
            let present = &root.role(*role).keys;
            marks.retain(|mark| present.contains(&mark.key));
        }
    }

    /// Records that `keys` signed `file`, which was issued at `issued` if it says so.
    pub(crate) fn advance(&mut self, role: Role, keys: Vec<PublicKey>, file: &FileRecord, issued: Option<Timestamp>) {
        let marks = self.0.entry(role).or_default();
        for key in keys {
            let before = marks.iter().position(|mark| mark.key == key);
            let before = before.map(|at| marks.swap_remove(at));
            marks.push(Mark {
                key,
                seq: file.seq,
                sha256: file.sha256,
                // A newer file with an earlier time of issue does not turn the clock back.
                issued: before.and_then(|mark| mark.issued).max(issued),
            });
        }
    }
}

/// The record of an installed plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pin {
    /// The author's key.
    pub key: PublicKey,
    /// The number of the installed version.
    pub seq: u64,
    /// The digest of its package.
    pub sha256: Digest,
    /// When newer versions were first seen by this client, by their numbers.
    pub seen: BTreeMap<u64, Timestamp>,
}

/// Whether the state of a source is up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// It is, until this time.
    Fresh(Timestamp),
    /// It expired at this time: an attacker may withhold newer documents. Nothing is installed or updated; installed
    /// plugins keep running.
    Stale(Timestamp),
    /// The source was never refreshed.
    Unknown,
}

/// The stored form of a source: a short text, and two documents as they were received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredState {
    /// Everything but the documents, as JSON.
    pub head: String,
    /// The index.
    pub index: Option<Bytes>,
    /// The list of revocations.
    pub revocations: Option<Bytes>,
}

/// A stored state that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored state of a source is damaged: {0}")]
pub struct InvalidState(String);

impl SourceState {
    /// A source that the user added with one of its root keys.
    pub fn with_key(key: PublicKey) -> Self {
        Self::new(Anchor::Key(key))
    }

    /// A source whose root is part of the program, and therefore trusted.
    pub fn with_root(body: &[u8]) -> Result<Self, InvalidState> {
        Ok(Self::new(Anchor::Root(Box::new(trusted_root(body)?))))
    }

    fn new(anchor: Anchor) -> Self {
        Self {
            anchor,
            ratchets: Ratchets::default(),
            until: None,
            index: None,
            revocations: None,
            pins: BTreeMap::new(),
        }
    }

    /// The trusted root; none before the first refresh of a source that was added with a key.
    pub fn root(&self) -> Option<&Root> {
        match &self.anchor {
            Anchor::Key(_) => None,
            Anchor::Root(trusted) => Some(&trusted.root),
        }
    }

    /// Parses the index.
    pub fn index(&self) -> Result<Option<Index>, InvalidState> {
        let read = |held: &Held| {
            let record: IndexRecord = json::read(&held.body).map_err(damaged)?;
            Index::try_from(record).map_err(InvalidState)
        };
        self.index.as_ref().map(read).transpose()
    }

    /// Parses the revocations; empty before the first refresh.
    pub fn revocations(&self) -> Result<Revocations, InvalidState> {
        let Some(held) = &self.revocations else {
            return Ok(Revocations::default());
        };
        let record: RevocationsRecord = json::read(&held.body).map_err(damaged)?;
        Ok(record.into())
    }

    /// The time, given that it is `now` by the clock: at least when the newest known timestamp was issued.
    pub fn time(&self, now: Timestamp) -> Timestamp {
        self.ratchets.time(now)
    }

    /// Whether the state is up to date.
    pub fn freshness(&self, now: Timestamp) -> Freshness {
        match self.until {
            Some(until) if self.time(now) < until => Freshness::Fresh(until),
            Some(until) => Freshness::Stale(until),
            None => Freshness::Unknown,
        }
    }

    /// Records that a package of this source was installed: updates must be signed with its author's key and have a
    /// higher number.
    pub fn pin(&mut self, package: &VerifiedPackage) {
        let seen = self.pins.remove(package.identity()).map(|pin| pin.seen);
        let newer = seen.into_iter().flatten().filter(|(number, _)| *number > package.seq());
        let pin = Pin {
            key: *package.author(),
            seq: package.seq(),
            sha256: package.sha256(),
            seen: newer.collect(),
        };
        self.pins.insert(package.identity().clone(), pin);
    }

    /// Removes the record of a plugin that was uninstalled.
    pub fn unpin(&mut self, identity: &Identity) {
        self.pins.remove(identity);
    }

    /// The record of an installed plugin.
    pub fn pinned(&self, identity: &Identity) -> Option<&Pin> {
        self.pins.get(identity)
    }

    /// The same with the records of `present` about installed plugins: some may have been installed or uninstalled
    /// during the refresh.
    #[must_use]
    pub fn with_pins_of(mut self, present: &Self, index: &Index, now: Timestamp) -> Self {
        self.pins.clone_from(&present.pins);
        let time = self.time(now);
        self.follow(index, time);
        self
    }

    /// Takes over the present keys of authors, and records when newer versions of installed plugins were first seen.
    pub(crate) fn follow(&mut self, index: &Index, time: Timestamp) {
        for (identity, pin) in &mut self.pins {
            let Some(plugin) = index.plugin(identity) else {
                continue;
            };
            pin.key = plugin.author.key;
            let newer = |entry: &&Entry| entry.seq > pin.seq;
            let newer = plugin.versions.iter().filter(newer).map(|entry| entry.seq);
            pin.seen = newer
                .map(|seq| (seq, pin.seen.get(&seq).copied().unwrap_or(time)))
                .collect();
        }
    }

    /// Encodes the state for a database.
    pub fn to_stored(&self) -> StoredState {
        let (key, root) = match &self.anchor {
            Anchor::Key(key) => (Some(*key), None),
            Anchor::Root(trusted) => (None, Some(String::from_utf8_lossy(&trusted.body).into_owned())),
        };
        let head = HeadRecord {
            version: VERSION,
            key,
            root,
            ratchets: self.ratchets.clone(),
            until: self.until,
            index_seq: self.index.as_ref().map(|held| held.file.seq),
            revocations_seq: self.revocations.as_ref().map(|held| held.file.seq),
            pins: self.pins.clone(),
        };
        StoredState {
            head: serde_json::to_string(&head).expect("the record has only what JSON has"),
            index: self.index.as_ref().map(|held| held.body.clone()),
            revocations: self.revocations.as_ref().map(|held| held.body.clone()),
        }
    }

    /// Decodes a stored state. A file that is not the one that was verified is dropped; the source is then not fresh
    /// until it is refreshed.
    pub fn from_stored(stored: StoredState) -> Result<Self, InvalidState> {
        let head: HeadRecord = serde_json::from_str(&stored.head).map_err(damaged)?;
        if head.version != VERSION {
            return Err(InvalidState(format!(
                "it is of version {}; this program reads version {VERSION}",
                head.version
            )));
        }
        let anchor = match (head.key, head.root) {
            (Some(key), None) => Anchor::Key(key),
            (None, Some(root)) => Anchor::Root(Box::new(trusted_root(root.as_bytes())?)),
            _ => return Err(InvalidState("it has no root".to_owned())),
        };
        let files = [
            (Role::Index, stored.index, head.index_seq),
            (Role::Revocations, stored.revocations, head.revocations_seq),
        ];
        let [index, revocations] = files.map(|(role, body, seq)| held(head.ratchets.mark(role), body, seq));
        Ok(Self {
            anchor,
            until: head.until.filter(|_| index.is_some() && revocations.is_some()),
            ratchets: head.ratchets,
            index,
            revocations,
            pins: head.pins,
        })
    }
}

/// Parses a root whose signatures were verified before, or that is part of the program.
pub(crate) fn trusted_root(body: &[u8]) -> Result<TrustedRoot, InvalidState> {
    let record: RootRecord = json::read(body).map_err(damaged)?;
    Ok(TrustedRoot {
        root: Root::try_from(record).map_err(InvalidState)?,
        body: Bytes::copy_from_slice(body),
    })
}

/// A stored document, if it is the one that was verified when `mark` was set.
fn held(mark: Option<Mark>, body: Option<Bytes>, seq: Option<u64>) -> Option<Held> {
    let (body, seq) = body.zip(seq)?;
    let file = FileRecord::of(seq, &body);
    let is_whole = mark.is_some_and(|mark| mark.seq == seq && mark.sha256 == file.sha256);
    is_whole.then_some(Held { file, body })
}

#[expect(clippy::needless_pass_by_value, reason = "it is used as a function of errors")]
fn damaged(error: impl ToString) -> InvalidState {
    InvalidState(error.to_string())
}

/// The JSON of [`StoredState::head`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HeadRecord {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<PublicKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    ratchets: Ratchets,
    until: Option<Timestamp>,
    index_seq: Option<u64>,
    revocations_seq: Option<u64>,
    pins: BTreeMap<Identity, Pin>,
}
