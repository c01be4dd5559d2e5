//! Plugins that run from their author's folder. The few relevant files are polled: file watchers lose and repeat events
//! when editors replace files, and do not work on network and container mounts.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use market::{Digest, Identity};
use plugin_package::manifest;

use crate::{
    error::{CommandError, chain},
    install::Shared,
    lifecycle::{
        Source,
        registry::{DevelopmentError, Loaded, Snapshot},
    },
    package::{disk::blocking, folder, load},
    runtime::Event,
};

/// Polling interval. A change is loaded when two polls agree. Cheap: a poll reads one small file and the metadata of a
/// large one.
const INTERVAL: Duration = Duration::from_millis(100);

/// The files of a folder at one poll.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Look {
    manifest: Option<Digest>,
    code: Option<Code>,
}

/// The code file. It is read only if its metadata changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Code {
    path: PathBuf,
    bytes: u64,
    changed: SystemTime,
    digest: Digest,
}

/// The polling state of a folder.
#[derive(Debug, Clone, Default)]
struct Watched {
    last: Option<Look>,
    loaded: Option<Look>,
}

impl Watched {
    /// Whether to load the folder: it has not changed since the last poll, so no write is in progress, and it differs
    /// from what is loaded.
    fn observe(&mut self, look: Look) -> bool {
        let is_stable = self.last.as_ref() == Some(&look);
        let is_new = self.loaded.as_ref() != Some(&look);
        if is_stable && is_new {
            self.loaded = Some(look.clone());
        }
        self.last = Some(look);
        is_stable && is_new
    }
}

/// Reloads plugins under development when their folders change. Sleeps while there are none.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let mut changes = shared.registry.watch();
    let mut watched: BTreeMap<(Identity, PathBuf), Watched> = BTreeMap::new();
    loop {
        let folders = folders(&changes.borrow_and_update());
        watched.retain(|key, _| folders.contains(key));
        if folders.is_empty() {
            if changes.changed().await.is_err() {
                return;
            }
            continue;
        }
        tokio::time::sleep(INTERVAL).await;
        for (plugin, folder) in folders {
            let state = watched.entry((plugin.clone(), folder.clone())).or_default();
            let (at, before) = (folder.clone(), state.last.clone());
            let Ok(look) = blocking(move || Ok(look(&at, before.as_ref()))).await else {
                return;
            };
            if state.observe(look) {
                shared.reload(&plugin, &folder).await;
            }
        }
    }
}

fn folders(snapshot: &Snapshot) -> Vec<(Identity, PathBuf)> {
    let plugins = snapshot.plugins.iter();
    plugins
        .filter_map(|(plugin, loaded)| match &loaded.installation.source {
            Source::Development(folder) => Some((plugin.clone(), folder.clone())),
            Source::File | Source::Bundled | Source::Market(_) => None,
        })
        .collect()
}

fn look(folder: &Path, before: Option<&Look>) -> Look {
    let text = folder::read(folder, Path::new(manifest::FILE)).ok();
    let entry = text.as_ref().and_then(|text| {
        let value: serde_json::Value = serde_json::from_slice(text).ok()?;
        Some(PathBuf::from(value.get("entry")?.as_str()?))
    });
    let known = before.and_then(|look| look.code.as_ref());
    Look {
        manifest: text.as_deref().map(Digest::of),
        code: entry.and_then(|path| look_at_code(folder, path, known).ok()),
    }
}

fn look_at_code(folder: &Path, path: PathBuf, known: Option<&Code>) -> io::Result<Code> {
    let file = folder::open(folder, &path)?;
    let metadata = file.metadata()?;
    let (bytes, changed) = (metadata.len(), metadata.modified()?);
    let is_known = |known: &&Code| known.path == path && known.bytes == bytes && known.changed == changed;
    let digest = match known.filter(is_known) {
        Some(known) => known.digest,
        None => Digest::of(&folder::read_all(&file)?),
    };
    Ok(Code {
        path,
        bytes,
        changed,
        digest,
    })
}

impl Shared {
    /// Loads a folder again. If that fails, what ran before keeps running. The plugin can be changed or uninstalled
    /// meanwhile.
    async fn reload(&self, plugin: &Identity, folder: &Path) {
        let loading = load::load_folder(&*self.runtime, folder)
            .await
            .map_err(|error| failure(&error));
        let _turn = self.turn(plugin).await;
        let source = Source::Development(folder.to_owned());
        let Some(before) = self
            .registry
            .get(plugin)
            .filter(|loaded| loaded.installation.source == source)
        else {
            return;
        };
        let after = match loading {
            Ok((manifest, _)) if manifest.identity != *plugin => Err(DevelopmentError {
                step: "manifest",
                message: format!("the identity is {} now; install the folder again", manifest.identity),
            }),
            other => other,
        };
        let error = after.as_ref().err().map(|error| error.message.clone());
        let loaded = match after {
            Ok((manifest, running)) => Loaded {
                manifest: Some(manifest),
                running: Ok(running),
                development_error: None,
                ..(*before).clone()
            },
            Err(error) => Loaded {
                development_error: Some(error),
                ..(*before).clone()
            },
        };
        self.registry.put(plugin, Some(loaded));
        self.health.start_afresh(plugin);
        self.journal.record(plugin, Event::Loaded { error });
    }
}

fn failure(error: &CommandError) -> DevelopmentError {
    DevelopmentError {
        step: match error {
            CommandError::Folder { .. } => "read",
            CommandError::Manifest(_) => "manifest",
            _ => "load",
        },
        message: chain(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn look(n: u8) -> Look {
        Look {
            manifest: Some(Digest::of(&[n])),
            code: None,
        }
    }

    #[test]
    fn a_change_is_loaded_once_and_only_when_it_is_over() {
        let mut watched = Watched::default();
        let looks = [1, 1, 1, 2, 3, 3, 3, 4, 3, 3, 2, 2];
        let loads: Vec<_> = looks.into_iter().map(|n| watched.observe(look(n))).collect();
        let at: Vec<_> = (0..looks.len()).filter(|n| loads[*n]).collect();
        assert_eq!(at, [1, 5, 11]);
    }

    #[test]
    fn a_look_sees_the_manifest_and_the_code_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let nothing = super::look(folder.path(), None);
        assert_eq!(
            nothing,
            Look {
                manifest: None,
                code: None
            }
        );
        write("plugin.json", r#"{"entry": "a.wasm"}"#);
        write("a.wasm", "one");
        let first = super::look(folder.path(), None);
        assert_eq!(super::look(folder.path(), Some(&first)), first);
        write("a.wasm", "three");
        let second = super::look(folder.path(), Some(&first));
        assert_ne!(second.code, first.code);
        write("plugin.json", r#"{"entry": "b.wasm"}"#);
        assert_eq!(super::look(folder.path(), Some(&second)).code, None);
    }
}
