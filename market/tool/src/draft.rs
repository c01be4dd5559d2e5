//! Changes of a repository that are not yet written. The client's own code reads a draft as if it were written already,
//! so that only what clients accept is published.

use jiff::Timestamp;
use market::{
    Digest, Folder, Origin, Reading, Refreshed, Role, SourceState,
    fetch::{self, Source},
    path,
    signature::Purpose,
};

use crate::{Repository, SigningKey, ToolError};

/// Files to write, in their order, and the repository below them.
#[derive(Debug)]
pub(crate) struct Draft<'r> {
    repository: &'r Repository,
    below: Folder,
    files: Vec<(String, Vec<u8>)>,
}

impl<'r> Draft<'r> {
    pub(crate) fn new(repository: &'r Repository) -> Self {
        Self {
            repository,
            below: Folder::new(repository.folder()),
            files: Vec::new(),
        }
    }

    pub(crate) fn put(&mut self, place: String, bytes: Vec<u8>) {
        self.files.push((place, bytes));
    }

    /// Adds a document and its signatures. The signatures come first, so that the document is never without them.
    pub(crate) fn sign(&mut self, role: Role, seq: u64, body: Vec<u8>, keys: &[&SigningKey]) {
        let signatures = signatures(role, seq, &body, keys);
        if role == Role::Timestamp {
            // The signature has a fixed name and so makes the timestamp visible.
            self.put(path::document(role, seq), body);
            self.put(path::signatures(role, seq), signatures);
        } else {
            self.put(path::signatures(role, seq), signatures);
            self.put(path::document(role, seq), body);
        }
    }

    /// Refreshes from the draft as two clients do at `time`: one that only knows the first root, and one that knows
    /// what is published now. Returns what the second one sees.
    pub(crate) async fn check(&self, time: Timestamp) -> Result<Refreshed, ToolError> {
        let place = path::document(Role::Root, 1);
        let drafted = self.files.iter().find(|(name, _)| *name == place);
        let first = drafted.map_or_else(|| self.repository.read(&place), |(_, bytes)| Ok(bytes.clone()))?;
        let new = SourceState::with_root(&first).map_err(|error| ToolError::source(place, &error))?;
        let refresh = async |state: &SourceState, origin: &dyn Origin| {
            let origins = &[origin];
            fetch::refresh(Source { state, origins }, time).await
        };
        let known = refresh(&new, &self.below).await;
        let known = known.map_or_else(|_| new.clone(), |refreshed| refreshed.state);
        refresh(&new, self).await.map_err(ToolError::Refresh)?;
        refresh(&known, self).await.map_err(ToolError::Refresh)
    }

    /// Writes the files in their order.
    pub(crate) fn write(self) -> Result<(), ToolError> {
        self.files
            .iter()
            .try_for_each(|(place, bytes)| self.repository.write(place, bytes))
    }
}

/// Signatures of a document by all `keys`, one file after another.
pub(crate) fn signatures(role: Role, seq: u64, body: &[u8], keys: &[&SigningKey]) -> Vec<u8> {
    let purpose = Purpose::Document {
        role,
        seq,
        sha256: Digest::of(body),
    };
    let signatures: String = keys.iter().map(|key| key.sign(body, purpose)).collect();
    signatures.into_bytes()
}

impl Origin for Draft<'_> {
    fn read<'a>(&'a self, place: &'a str, limit: u64, into: &'a mut Vec<u8>) -> Reading<'a> {
        match self.files.iter().rfind(|(name, _)| name == place) {
            Some((_, bytes)) => {
                into.clone_from(bytes);
                Box::pin(std::future::ready(Ok(())))
            }
            None => self.below.read(place, limit, into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_visible_before_what_it_needs() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::open(folder.path()).unwrap();
        let key = SigningKey::generate(&folder.path().join("a.key"), None).unwrap();
        let mut draft = Draft::new(&repository);
        draft.sign(Role::Root, 2, b"{}".to_vec(), &[&key]);
        draft.sign(Role::Timestamp, 3, b"{}".to_vec(), &[&key]);
        let places: Vec<_> = draft.files.iter().map(|(place, _)| place.as_str()).collect();
        let order = [
            "root.2.json.minisig",
            "root.2.json",
            "timestamp.3.json",
            path::TIMESTAMP_SIGNATURE,
        ];
        assert_eq!(places, order);
    }
}
