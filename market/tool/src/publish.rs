//! Making visible what was signed, with the key that has only this to say.

use jiff::{SignedDuration, Timestamp};
use market::{
    Digest, Index, Origin, Refreshed, Role, Root, SourceState,
    fetch::{self, Source},
    merge, path,
    record::{self, FileRecord, NumberRecord, SPEC, TimestampRecord},
};

use crate::{Repository, SigningKey, ToolError, draft::Draft, repository::KEPT};

/// How long a timestamp is believed: whoever keeps newer ones from users is noticed after so long.
pub const TIMESTAMP_LIFE: SignedDuration = SignedDuration::from_hours(24 * 7);

/// Publishes the newest index, revocations and root of the folder, after the client accepted them. To be repeated before
/// [`TIMESTAMP_LIFE`] is over, although nothing is new.
pub async fn publish(repository: &Repository, key: &SigningKey, now: Timestamp) -> Result<Refreshed, ToolError> {
    let before = repository.timestamp()?;
    let root = repository.root()?;
    let (index_seq, index) = newest(repository, Role::Index)?;
    let (revocations_seq, revocations) = newest(repository, Role::Revocations)?;
    let file = |seq, bytes: &[u8]| FileRecord {
        seq,
        sha256: Digest::of(bytes),
        size: bytes.len() as u64,
    };
    let timestamp = TimestampRecord {
        spec: SPEC.to_owned(),
        seq: before.map_or(0, |before| before.seq) + 1,
        issued: now,
        expires: now + TIMESTAMP_LIFE,
        root: NumberRecord { seq: root.seq },
        index: file(index_seq, &index),
        revocations: file(revocations_seq, &revocations),
    };
    let mut draft = Draft::new(repository);
    for from in index_seq.saturating_sub(KEPT)..index_seq {
        let old = repository.find(&path::document(Role::Index, from))?;
        if let Some(patch) = old.and_then(|old| merge::diff(&old, &index)) {
            draft.put(path::diff(from, index_seq), patch);
        }
    }
    let seq = timestamp.seq;
    draft.sign(Role::Timestamp, seq, record::to_bytes(&timestamp), &[key]);
    let refreshed = draft.check(now).await?;
    draft.write()?;
    repository.prune(Role::Index, index_seq)?;
    repository.prune(Role::Revocations, revocations_seq)?;
    repository.prune(Role::Timestamp, seq)?;
    Ok(refreshed)
}

fn newest(repository: &Repository, role: Role) -> Result<(u64, Vec<u8>), ToolError> {
    let seq = repository.newest(role)?;
    let seq = seq.ok_or_else(|| ToolError::source(path::document(role, 1), &"is missing; is this a source?"))?;
    Ok((seq, repository.read(&path::document(role, seq))?))
}

/// A source that was checked.
#[derive(Debug)]
pub struct Checked {
    /// Its newest root.
    pub root: Root,
    /// Its plugins.
    pub index: Index,
    /// How many packages were downloaded and checked.
    pub packages: usize,
}

/// Checks a source as a client does that believes `anchor`, and all its packages.
pub async fn check(origin: &dyn Origin, anchor: &SourceState, now: Timestamp) -> Result<Checked, ToolError> {
    let source = Source {
        state: anchor,
        origins: &[origin],
    };
    let refreshed = fetch::refresh(source, now).await.map_err(ToolError::Refresh)?;
    let mut packages = 0;
    for (identity, plugin) in refreshed.index.plugins() {
        let present = plugin
            .versions
            .iter()
            .filter(|entry| entry.signature.key_id() == plugin.author.key.id());
        for entry in present {
            let package = fetch::download(&[origin], identity, entry, &plugin.author.key).await;
            package.map_err(ToolError::Download)?;
            packages += 1;
        }
    }
    let root = refreshed
        .state
        .root()
        .cloned()
        .expect("a source that is believed has a root");
    Ok(Checked {
        root,
        index: refreshed.index,
        packages,
    })
}
