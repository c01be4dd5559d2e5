//! From files to something that can be called.

use std::{path::Path, sync::Arc};

use bytes::Bytes;

use crate::{
    disk::Disk,
    error::CommandError,
    grant::Permissions,
    lifecycle::{Installation, Release, Source},
    manifest::{self, Manifest, Reading},
    registry::Running,
    runtime::{Code, Guest, Language, Runtime},
};

/// What runs of an installation, and its manifest as far as there is one.
pub(crate) type Loading = (Option<Arc<Manifest>>, Result<Running, String>);

/// Loads what is to run. Of what waits for consent only the manifest is read.
pub(crate) async fn load(runtime: &dyn Runtime, disk: &Disk, installation: &Installation) -> Loading {
    match (&installation.source, &installation.active, &installation.staged) {
        (Source::Development(folder), ..) => match load_folder(runtime, folder).await {
            Ok((manifest, running)) => (Some(manifest), Ok(running)),
            Err(error) => (None, Err(chain(&error))),
        },
        (_, Some(release), _) => load_release(runtime, disk, release).await,
        (_, None, staged) => {
            let manifest = match staged {
                Some(staged) => read_manifest(disk, staged).await.ok(),
                None => None,
            };
            (manifest, Err("it waits for consent".to_owned()))
        }
    }
}

/// The manifest is given also when the code does not load: the plugin's URLs stay its own.
async fn load_release(runtime: &dyn Runtime, disk: &Disk, release: &Release) -> Loading {
    let manifest = match read_manifest(disk, release).await {
        Ok(manifest) => manifest,
        Err(error) => return (None, Err(chain(&error))),
    };
    let (disk, digest, entry) = (disk.clone(), release.digest, manifest.entry.clone());
    let running = match blocking(move || Ok(disk.read(digest, &entry)?)).await {
        Ok(code) => load_code(runtime, &manifest, manifest.language, code).await,
        Err(error) => Err(error),
    };
    (Some(manifest), running.map_err(|error| chain(&error)))
}

async fn read_manifest(disk: &Disk, release: &Release) -> Result<Arc<Manifest>, CommandError> {
    let (disk, digest) = (disk.clone(), release.digest);
    blocking(move || {
        let text = disk.read(digest, manifest::FILE)?;
        // It was read strictly when it was installed, if that was right.
        let (manifest, _unknown) = Manifest::parse(&text, Reading::Lenient)?;
        Ok(Arc::new(manifest))
    })
    .await
}

/// Loads an author's folder as it is now.
pub(crate) async fn load_folder(
    runtime: &dyn Runtime,
    folder: &Path,
) -> Result<(Arc<Manifest>, Running), CommandError> {
    let manifest = read_folder_manifest(folder).await?;
    let path = folder.join(&manifest.entry);
    let code = blocking(move || read_file(&path)).await?;
    let language = match manifest.language {
        Language::Component if is_core_module(&code) => Language::CoreModule,
        other => other,
    };
    let manifest = Arc::new(manifest);
    let running = load_code(runtime, &manifest, language, code).await?;
    Ok((manifest, running))
}

/// The manifest of an author's folder.
pub(crate) async fn read_folder_manifest(folder: &Path) -> Result<Manifest, CommandError> {
    let path = folder.join(manifest::FILE);
    let text = blocking(move || read_file(&path)).await?;
    Ok(Manifest::parse(&text, Reading::Strict)?.0)
}

fn read_file(path: &Path) -> Result<Bytes, CommandError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes.into()),
        Err(source) => Err(CommandError::Folder {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Compilers make core modules; whether a file is one or a component stands behind the magic number, in the upper half
/// of the version.
fn is_core_module(code: &[u8]) -> bool {
    code.starts_with(b"\0asm") && code.get(6..8) == Some(&[0, 0])
}

/// Has the runtime load code, and compares what it shows with what the manifest says.
pub(crate) async fn load_code(
    runtime: &dyn Runtime,
    manifest: &Manifest,
    language: Language,
    bytes: Bytes,
) -> Result<Running, CommandError> {
    let code = Code {
        plugin: manifest.identity.clone(),
        language,
        bytes,
        memory_bytes: manifest.permissions.memory_bytes,
    };
    let guest = runtime.load(code).await?;
    check_exports(manifest, &*guest)?;
    let needed = Permissions::needed(manifest, guest.interface());
    Ok(Running { guest, needed })
}

/// A plugin exports exactly what its manifest claims: less would fail when it is called, more was never agreed to.
fn check_exports(manifest: &Manifest, guest: &dyn Guest) -> Result<(), CommandError> {
    let capabilities = &manifest.capabilities;
    let claims = [
        ("resolver", "resolver", capabilities.resolver.is_some()),
        ("preview", "previewer", capabilities.preview),
        ("feed", "feed-handler", capabilities.feed.is_some()),
        ("login", "login", !capabilities.login.is_empty()),
        ("post", "post-processor", capabilities.post.is_some()),
        ("hook", "hook-handler", capabilities.hook.is_some()),
    ];
    for (capability, export, is_claimed) in claims {
        let is_exported = guest.interface().exports.iter().any(|exported| exported == export);
        if is_claimed != is_exported {
            let reason = if is_claimed {
                format!("{capability} is claimed, but the code does not export {export}")
            } else {
                format!("the code exports {export}, but {capability} is not claimed")
            };
            return Err(CommandError::Exports(reason));
        }
    }
    Ok(())
}

/// Runs `work` where it may wait for the disk.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T, CommandError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, CommandError> + Send + 'static,
{
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| CommandError::Closed)?
}

/// An error with its causes, for somebody who reads one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
