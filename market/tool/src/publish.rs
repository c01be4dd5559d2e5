//! Publication: the timestamp, which names the newest documents and so makes them visible to clients.

use jiff::{SignedDuration, Timestamp};
use market::{
    Index, Origin, Refreshed, Role, Root, SourceState,
    fetch::{self, Source},
    merge, path,
    record::{self, FileRecord, NumberRecord, SPEC, TimestampRecord},
};

use crate::{Repository, SigningKey, ToolError, draft::Draft, repository::KEPT};

/// How long clients accept a timestamp. An attacker can withhold newer documents for at most this long.
pub const TIMESTAMP_LIFE: SignedDuration = SignedDuration::from_hours(24 * 7);

/// Publishes the newest index, revocations and root of the folder, if the client's code accepts them. Must be repeated
/// before [`TIMESTAMP_LIFE`] is over, even without changes.
pub async fn publish(repository: &Repository, key: &SigningKey, now: Timestamp) -> Result<Refreshed, ToolError> {
    let before = repository.timestamp()?;
    let root = repository.root()?;
    let (index_seq, index) = repository.newest_document(Role::Index)?;
    let (revocations_seq, revocations) = repository.newest_document(Role::Revocations)?;
    let timestamp = TimestampRecord {
        spec: SPEC.to_owned(),
        seq: before.map_or(0, |before| before.seq) + 1,
        issued: now,
        expires: now + TIMESTAMP_LIFE,
        root: NumberRecord { seq: root.seq },
        index: FileRecord::of(index_seq, &index),
        revocations: FileRecord::of(revocations_seq, &revocations),
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

/// The result of [`check`].
#[derive(Debug)]
pub struct Checked {
    /// The newest root of the source.
    pub root: Root,
    /// The plugins of the source.
    pub index: Index,
    /// The number of packages that were downloaded and verified.
    pub packages: usize,
}

/// Verifies a source and all its packages as a client with the state `anchor` does.
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
    let root = refreshed.state.root().cloned().expect("a verified source has a root");
    Ok(Checked {
        root,
        index: refreshed.index,
        packages,
    })
}
