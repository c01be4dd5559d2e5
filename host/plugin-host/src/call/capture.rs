//! Saves failed calls of a plugin under development as fixtures in its author's folder, so that they can be replayed
//! until fixed.

use std::{io, path::Path, sync::Arc};

use crate::{
    fixture,
    install::Shared,
    lifecycle::{Source, registry::Loaded},
    package::folder::FolderHandle,
    policy::fault::{GuestError, PluginFault},
    runtime::{Ask, Call, CallId, World},
};

/// Folder of the captures; the default `tests` of a manifest does not include it.
const FOLDER: &str = "fixtures/_captured";

/// The oldest captures are deleted beyond this.
const MAX_CAPTURED: usize = 50;

/// A call that is saved if it fails.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    world: World,
    id: CallId,
    settings: Arc<std::collections::BTreeMap<String, String>>,
    url: url::Url,
}

impl Capture {
    pub(crate) fn of(call: &Call) -> Self {
        Self {
            world: call.world.clone(),
            id: call.id,
            settings: Arc::clone(&call.settings),
            url: call.given.url.clone(),
        }
    }
}

impl Shared {
    /// Saves a failed call, if its plugin runs from its author's folder. Declining a URL is not a failure.
    pub(crate) fn capture(&self, loaded: &Loaded, capture: Capture, ask: &Ask, fault: Option<&PluginFault>) {
        let (Source::Development(folder), World::Watched(watch)) = (&loaded.installation.source, capture.world) else {
            return;
        };
        let Some(fault) = fault.filter(|fault| **fault != PluginFault::Answer(GuestError::NotMatched)) else {
            return;
        };
        let (call, input) = ask.in_fixture(&capture.url);
        let settings = (*capture.settings).clone();
        let found = fixture::failed(fault);
        let (folder, id) = (folder.clone(), capture.id);
        self.tasks.spawn_blocking(move || {
            let written = fixture::to_fixture(&watch, call, input, settings, &found)
                .map_err(io::Error::other)
                .and_then(|fixture| keep(&folder, id, &serde_json::to_vec_pretty(&fixture)?));
            if let Err(error) = written {
                tracing::warn!(call.id = %id, %error, "a call that failed could not be kept as a fixture");
            }
        });
    }
}

/// Writes a fixture into an author's folder and deletes the oldest. Symbolic links are not followed: they could lead
/// out of the folder.
fn keep(folder: &Path, id: CallId, text: &[u8]) -> io::Result<()> {
    let handle = FolderHandle::of(folder)?.below(Path::new(FOLDER), true)?;
    handle.write(&format!("{id}.json"), text)?;
    let mut kept = handle.files()?;
    kept.retain(|(_, name)| Path::new(name).extension().is_some_and(|extension| extension == "json"));
    kept.sort();
    let excess = kept.len().saturating_sub(MAX_CAPTURED);
    kept.iter().take(excess).try_for_each(|(_, name)| handle.remove(name))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn nothing_is_written_where_links_lead() {
        let other = tempfile::tempdir().unwrap();
        for link in ["fixtures", FOLDER] {
            let folder = tempfile::tempdir().unwrap();
            let link = folder.path().join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(other.path(), link).unwrap();
            assert!(keep(folder.path(), CallId(1), b"{}").is_err());
        }
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join(FOLDER);
        fs::create_dir_all(&at).unwrap();
        let target = other.path().join("file");
        for name in ["1.json", ".1.json.new"] {
            symlink(&target, at.join(name)).unwrap();
        }
        keep(folder.path(), CallId(1), b"{}").unwrap();
        assert!(at.join("1.json").symlink_metadata().unwrap().is_file());
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_newest_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join(FOLDER);
        for id in 0..MAX_CAPTURED as u64 + 3 {
            keep(folder.path(), CallId(id), b"{}").unwrap();
        }
        assert_eq!(fs::read_dir(&at).unwrap().count(), MAX_CAPTURED);
        assert!(at.join(format!("{}.json", MAX_CAPTURED + 2)).exists());
    }
}
