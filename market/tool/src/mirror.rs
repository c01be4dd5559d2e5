//! Copies of a source. A copy needs no key, because clients verify it like the original.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use market::{MAX_ROOT_BYTES, MAX_SIGNATURES_BYTES, Origin, PublicKey, Reading, Role, SourceState, path};

use crate::{
    Repository, ToolError,
    publish::{Checked, check},
};

/// Verifies the source at `origin` with all its packages, and copies it into a folder.
pub async fn mirror(
    origin: &dyn Origin,
    key: PublicKey,
    repository: &Repository,
    now: Timestamp,
) -> Result<Checked, ToolError> {
    let recorder = Recorder {
        below: origin,
        files: Mutex::default(),
    };
    let checked = check(&recorder, &SourceState::with_key(key), now).await?;
    // Clients with an older root need every root after it.
    for seq in 1..checked.root.seq() {
        let files = [
            (path::signatures(Role::Root, seq), MAX_SIGNATURES_BYTES),
            (path::document(Role::Root, seq), MAX_ROOT_BYTES),
        ];
        for (place, limit) in files {
            let read = recorder.read(&place, limit, &mut Vec::new()).await;
            read.map_err(|error| ToolError::source(place, &error))?;
        }
    }
    let mut files = recorder.files.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Signatures before the documents, and last the one that makes the rest visible.
    files.sort_by_key(|(place, _)| (place == path::TIMESTAMP_SIGNATURE, !place.ends_with(".minisig")));
    files
        .iter()
        .try_for_each(|(place, bytes)| repository.write(place, bytes))?;
    Ok(checked)
}

/// An origin that keeps everything that is read from another one.
#[derive(Debug)]
struct Recorder<'o> {
    below: &'o dyn Origin,
    /// A lock, since an origin is shared; it is held for a moment only.
    files: Mutex<Vec<(String, Vec<u8>)>>,
}

impl Origin for Recorder<'_> {
    fn read<'a>(&'a self, place: &'a str, limit: u64, into: &'a mut Vec<u8>) -> Reading<'a> {
        Box::pin(async move {
            self.below.read(place, limit, into).await?;
            // Packages on other servers are not copied.
            if !place.contains("://") {
                let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
                files.retain(|(name, _)| name != place);
                files.push((place.to_owned(), into.clone()));
            }
            Ok(())
        })
    }
}
