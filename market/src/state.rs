//! What is remembered of a source between two refreshes. It is a value: whoever holds it writes it down in one step.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    Digest, Entry, Identity, Index, PublicKey, Revocations, Role, Root, VerifiedPackage,
    document::timestamp::File,
    format::{
        json,
        record::{IndexRecord, KeyText, RevocationsRecord, RootRecord},
        text,
    },
};

/// The version of [`StoredState::head`].
const VERSION: u32 = 1;

/// A source, as far as it is known and believed.
#[derive(Debug, Clone)]
pub struct SourceState {
    pub(crate) anchor: Anchor,
    pub(crate) ratchets: Ratchets,
    /// From when on nothing is known to be the newest.
    pub(crate) until: Option<Timestamp>,
    pub(crate) index: Option<Held>,
    pub(crate) revocations: Option<Held>,
    pins: BTreeMap<Identity, Pin>,
}

/// What belief in a source starts from.
#[derive(Debug, Clone)]
pub(crate) enum Anchor {
    /// One of the keys of its newest root; the user saw it.
    Key(PublicKey),
    /// A root.
    Root(Box<TrustedRoot>),
}

/// A root that is believed, and its text.
#[derive(Debug, Clone)]
pub(crate) struct TrustedRoot {
    pub(crate) root: Root,
    pub(crate) body: Bytes,
}

/// A file that was checked.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) file: File,
    pub(crate) body: Bytes,
}

/// How far each key has counted. A role's numbers never go back, but only for as long as its keys stay: whoever stole a
/// key and counted to the end is forgotten with the key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ratchets(BTreeMap<Role, BTreeMap<PublicKey, Mark>>);

/// The last that a key said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) seq: u64,
    pub(crate) sha256: Digest,
    /// When, if it said so.
    pub(crate) issued: Option<Timestamp>,
}

impl Ratchets {
    /// The furthest that one of the role's present keys went.
    pub(crate) fn mark(&self, role: Role) -> Option<Mark> {
        let marks = self.0.get(&role)?;
        marks.values().copied().max_by_key(|mark| mark.seq)
    }

    /// The newest moment that one of the role's present keys knew of.
    pub(crate) fn newest_issued(&self) -> Option<Timestamp> {
        self.0
            .values()
            .flat_map(BTreeMap::values)
            .filter_map(|mark| mark.issued)
            .max()
    }

    /// Forgets what keys said that no longer speak.
    pub(crate) fn keep_keys_of(&mut self, root: &Root) {
        for (role, marks) in &mut self.0 {
            let keys = root.role(*role).all();
            marks.retain(|key, _| keys.contains(key));
        }
    }

    pub(crate) fn advance(&mut self, role: Role, keys: impl IntoIterator<Item = PublicKey>, mark: Mark) {
        let marks = self.0.entry(role).or_default();
        for key in keys {
            // A later file that claims to be made earlier does not turn the clock back.
            let issued = marks.get(&key).and_then(|before| before.issued).max(mark.issued);
            marks.insert(key, Mark { issued, ..mark });
        }
    }
}

/// What is remembered of an installed plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The author's key.
    pub key: PublicKey,
    /// The number of the installed version.
    pub seq: u64,
    /// Its package.
    pub sha256: Digest,
    /// When newer versions were first seen here, by their number.
    pub seen: BTreeMap<u64, Timestamp>,
}

/// Whether what is known of a source is up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Until then.
    Fresh(Timestamp),
    /// Since then it may be that something newer is kept from us. Nothing is installed or updated; what is installed
    /// goes on.
    Stale(Timestamp),
    /// Nothing is known yet.
    Unknown,
}

/// A source as a database holds it: a short text, and two files that are not parsed to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredState {
    /// Everything but the files, as JSON.
    pub head: String,
    /// The index.
    pub index: Option<Bytes>,
    /// The revocations.
    pub revocations: Option<Bytes>,
}

/// A stored source that no version wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored state of a source is damaged: {0}")]
pub struct InvalidState(String);

impl SourceState {
    /// A source that is known by one of its root keys.
    pub fn with_key(key: PublicKey) -> Self {
        Self::new(Anchor::Key(key))
    }

    /// A source whose root came with the program. Nobody is asked whether to believe it.
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

    /// The root that is believed.
    pub fn root(&self) -> Option<&Root> {
        match &self.anchor {
            Anchor::Key(_) => None,
            Anchor::Root(trusted) => Some(&trusted.root),
        }
    }

    /// The plugins, parsed anew.
    pub fn index(&self) -> Result<Option<Index>, InvalidState> {
        let read = |held: &Held| {
            let record: IndexRecord = json::read(&held.body).map_err(damaged)?;
            Index::try_from(record).map_err(InvalidState)
        };
        self.index.as_ref().map(read).transpose()
    }

    /// What must not run, parsed anew; nothing if nothing is known.
    pub fn revocations(&self) -> Result<Revocations, InvalidState> {
        let Some(held) = &self.revocations else {
            return Ok(Revocations::default());
        };
        let record: RevocationsRecord = json::read(&held.body).map_err(damaged)?;
        Ok(record.into())
    }

    /// The time that it is at least: a clock that was set back does not make old news new.
    pub fn time(&self, now: Timestamp) -> Timestamp {
        self.ratchets.newest_issued().map_or(now, |issued| issued.max(now))
    }

    /// Whether what is known is up to date.
    pub fn freshness(&self, now: Timestamp) -> Freshness {
        match self.until {
            Some(until) if self.time(now) < until => Freshness::Fresh(until),
            Some(until) => Freshness::Stale(until),
            None => Freshness::Unknown,
        }
    }

    /// Remembers that a package of this source was installed: its author's key stays, and its number does not go back by
    /// itself.
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

    /// Forgets a plugin that was uninstalled.
    pub fn unpin(&mut self, identity: &Identity) {
        self.pins.remove(identity);
    }

    /// What is remembered of an installed plugin.
    pub fn pinned(&self, identity: &Identity) -> Option<&Pin> {
        self.pins.get(identity)
    }

    /// The same with what `present` remembers of installed plugins: some may have been installed or uninstalled while the
    /// news was on its way.
    #[must_use]
    pub fn with_pins_of(mut self, present: &Self, index: &Index, now: Timestamp) -> Self {
        self.pins.clone_from(&present.pins);
        let time = self.time(now);
        self.follow(index, time);
        self
    }

    /// Remembers keys that were handed over and when new versions of installed plugins came.
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

    /// What a database holds of it.
    pub fn to_stored(&self) -> StoredState {
        let body = |held: &Held| held.body.clone();
        let ratchets = self.ratchets.0.iter().map(|(role, marks)| {
            let marks = marks.iter().map(|(key, mark)| MarkRecord {
                key: KeyText(*key),
                seq: mark.seq,
                sha256: mark.sha256,
                issued: mark.issued,
            });
            (role.name().to_owned(), marks.collect())
        });
        let pins = self.pins.iter().map(|(identity, pin)| {
            let record = PinRecord {
                key: KeyText(pin.key),
                seq: pin.seq,
                sha256: pin.sha256,
                seen: pin.seen.clone(),
            };
            (identity.clone(), record)
        });
        let head = HeadRecord {
            version: VERSION,
            key: match &self.anchor {
                Anchor::Key(key) => Some(KeyText(*key)),
                Anchor::Root(_) => None,
            },
            root: match &self.anchor {
                Anchor::Key(_) => None,
                Anchor::Root(trusted) => Some(String::from_utf8_lossy(&trusted.body).into_owned()),
            },
            ratchets: ratchets.collect(),
            until: self.until,
            index_seq: self.index.as_ref().map(|held| held.file.seq),
            revocations_seq: self.revocations.as_ref().map(|held| held.file.seq),
            pins: pins.collect(),
        };
        StoredState {
            head: serde_json::to_string(&head).expect("the record has only what JSON has"),
            index: self.index.as_ref().map(body),
            revocations: self.revocations.as_ref().map(body),
        }
    }

    /// What a database held. A file that is not the one that was checked is not held, and nothing is known then until the
    /// source is asked again.
    pub fn from_stored(stored: StoredState) -> Result<Self, InvalidState> {
        let head: HeadRecord = serde_json::from_str(&stored.head).map_err(damaged)?;
        if head.version != VERSION {
            return Err(InvalidState(format!("it is of version {}", head.version)));
        }
        let anchor = match (head.key, head.root) {
            (Some(key), None) => Anchor::Key(key.0),
            (None, Some(root)) => Anchor::Root(Box::new(trusted_root(root.as_bytes())?)),
            _ => return Err(InvalidState("it has no root".to_owned())),
        };
        let ratchets = head.ratchets.into_iter().map(|(role, marks)| {
            let marks = marks.into_iter().map(|record| {
                let mark = Mark {
                    seq: record.seq,
                    sha256: record.sha256,
                    issued: record.issued,
                };
                (record.key.0, mark)
            });
            Ok((role.parse().map_err(damaged)?, marks.collect()))
        });
        let pins = head.pins.into_iter().map(|(identity, record)| {
            let pin = Pin {
                key: record.key.0,
                seq: record.seq,
                sha256: record.sha256,
                seen: record.seen,
            };
            (identity, pin)
        });
        let ratchets = Ratchets(ratchets.collect::<Result<_, InvalidState>>()?);
        let files = [
            (Role::Index, stored.index, head.index_seq),
            (Role::Revocations, stored.revocations, head.revocations_seq),
        ];
        let [index, revocations] = files.map(|(role, body, seq)| held(ratchets.mark(role), body, seq));
        Ok(Self {
            anchor,
            until: head.until.filter(|_| index.is_some() && revocations.is_some()),
            ratchets,
            index,
            revocations,
            pins: pins.collect(),
        })
    }
}

/// A root that needs no signature, because it is believed already.
pub(crate) fn trusted_root(body: &[u8]) -> Result<TrustedRoot, InvalidState> {
    let record: RootRecord = json::read(body).map_err(damaged)?;
    Ok(TrustedRoot {
        root: Root::try_from(record).map_err(InvalidState)?,
        body: Bytes::copy_from_slice(body),
    })
}

/// What was stored of a file, if it is what `mark` was set for.
fn held(mark: Option<Mark>, body: Option<Bytes>, seq: Option<u64>) -> Option<Held> {
    let (body, seq) = body.zip(seq)?;
    let file = File {
        seq,
        sha256: Digest::of(&body),
        size: body.len() as u64,
    };
    let is_whole = mark.is_some_and(|mark| mark.seq == seq && mark.sha256 == file.sha256);
    is_whole.then_some(Held { file, body })
}

#[expect(clippy::needless_pass_by_value, reason = "it is used as a function of errors")]
fn damaged(error: impl ToString) -> InvalidState {
    InvalidState(error.to_string())
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HeadRecord {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<KeyText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    ratchets: BTreeMap<String, Vec<MarkRecord>>,
    until: Option<Timestamp>,
    index_seq: Option<u64>,
    revocations_seq: Option<u64>,
    pins: BTreeMap<Identity, PinRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MarkRecord {
    key: KeyText,
    seq: u64,
    #[serde(with = "text")]
    sha256: Digest,
    issued: Option<Timestamp>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PinRecord {
    key: KeyText,
    seq: u64,
    #[serde(with = "text")]
    sha256: Digest,
    seen: BTreeMap<u64, Timestamp>,
}
