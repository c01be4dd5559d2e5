//! Copying a source that is believed. The copy needs no key: its readers check it as they check the first one.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use market::{MAX_ROOT_BYTES, MAX_SIGNATURES_BYTES, Origin, PublicKey, Reading, Role, SourceState, path};

use crate::{
    Repository, ToolError,
    publish::{Checked, check},
};

/// Copies the source at `origin` into a folder, after it and all its packages were checked.
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
    // Those who believe an older root follow the row from there.
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
    // Signatures before what they sign, and last of all the one that makes the rest visible.
    files.sort_by_key(|(place, _)| (place == path::TIMESTAMP_SIGNATURE, !place.ends_with(".minisig")));
    files
        .iter()
        .try_for_each(|(place, bytes)| repository.write(place, bytes))?;
    Ok(checked)
}

/// Keeps what is read.
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
            // Packages at other servers stay there.
            if !place.contains("://") {
                let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
                files.retain(|(name, _)| name != place);
                files.push((place.to_owned(), into.clone()));
            }
            Ok(())
        })
    }
}
