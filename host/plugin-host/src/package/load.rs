//! Loads code from packages and folders.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use market::Digest;
use plugin_package::{
    Language, Manifest,
    manifest::{self, Reading},
};
use private_files::FileError;

use crate::{
    error::{CommandError, chain},
    lifecycle::{
        Installation, Release, Source,
        registry::{Idle, Running},
    },
    package::{
        disk::{Disk, blocking},
        folder,
    },
    policy::grant::Permissions,
    runtime::{Code, Guest, Runtime},
};

/// The manifest, if readable, and the running code.
pub(crate) type Loading = (Option<Arc<Manifest>>, Result<Running, Idle>);

/// The manifest of an installation whose code is not loaded yet: enough to claim its URLs.
pub(crate) async fn announce(disk: &Disk, installation: &Installation) -> Loading {
    let manifest = match (&installation.source, &installation.active, &installation.staged) {
        (Source::Development(folder), ..) => read_folder_manifest(folder).await.map(Arc::new),
        (_, Some(release), _) => read_manifest(disk, release).await,
        (_, None, Some(staged)) => return (read_manifest(disk, staged).await.ok(), Err(Idle::ConsentPending)),
        (_, None, None) => return (None, Err(Idle::ConsentPending)),
    };
    match manifest {
        Ok(manifest) => (Some(manifest), Err(Idle::Loading)),
        Err(error) => (None, Err(Idle::Failed(chain(&error)))),
    }
}

/// Loads the version to run. Of a version that waits for consent only the manifest is read. The manifest is returned
/// even if the code does not load: the plugin keeps its URLs.
pub(crate) async fn load(runtime: &dyn Runtime, disk: &Disk, installation: &Installation) -> Loading {
    let announced = announce(disk, installation).await;
    let (Some(manifest), Err(Idle::Loading)) = &announced else {
        return announced;
    };
    let code = match (&installation.source, &installation.active) {
        (Source::Development(folder), _) => read_code(folder, manifest).await,
        (_, Some(release)) => read_entry(disk, release, manifest).await,
        (_, None) => return announced,
    };
    let running = match code {
        Ok((code, language)) => load_code(runtime, manifest, language, code).await,
        Err(error) => Err(error),
    };
    (announced.0, running.map_err(|error| Idle::Failed(chain(&error))))
}

/// The code of a package, and its language.
async fn read_entry(disk: &Disk, release: &Release, manifest: &Manifest) -> Result<(Bytes, Language), CommandError> {
    let (disk, digest, entry) = (disk.clone(), release.digest, manifest.entry.clone());
    let code = blocking(move || Ok(disk.read(digest, &entry)?)).await?;
    Ok((code, manifest.language))
}

async fn read_manifest(disk: &Disk, release: &Release) -> Result<Arc<Manifest>, CommandError> {
    let (disk, digest) = (disk.clone(), release.digest);
    blocking(move || {
        let text = disk.read(digest, manifest::FILE)?;
        // It was parsed strictly on installation where required.
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
    let manifest = Arc::new(read_folder_manifest(folder).await?);
    let (code, language) = read_code(folder, &manifest).await?;
    let running = load_code(runtime, &manifest, language, code).await?;
    Ok((manifest, running))
}

/// The manifest of an author's folder.
pub(crate) async fn read_folder_manifest(folder: &Path) -> Result<Manifest, CommandError> {
    let text = read_file(folder, manifest::FILE).await?;
    Ok(Manifest::parse(&text, Reading::Strict)?.0)
}

/// The code in an author's folder, and its language.
pub(crate) async fn read_code(folder: &Path, manifest: &Manifest) -> Result<(Bytes, Language), CommandError> {
    let code = read_file(folder, &manifest.entry).await?;
    let language = language(manifest, &code);
    Ok((code, language))
}

/// The language of code. Compilers emit core modules, while packages contain components.
pub(crate) fn language(manifest: &Manifest, code: &[u8]) -> Language {
    match manifest.language {
        Language::Component if is_core_module(code) => Language::CoreModule,
        other => other,
    }
}

async fn read_file(folder: &Path, path: &str) -> Result<Bytes, CommandError> {
    let (folder, path) = (folder.to_owned(), path.to_owned());
    blocking(move || {
        let bytes = folder::read(&folder, Path::new(&path));
        let bytes = bytes.map_err(FileError::at("read", folder.join(path)));
        Ok(bytes.map_err(CommandError::Folder)?.into())
    })
    .await
}

/// The upper half of the version field, after the magic number, distinguishes core modules from components.
fn is_core_module(code: &[u8]) -> bool {
    code.starts_with(b"\0asm") && code.get(6..8) == Some(&[0, 0])
}

/// Loads code in the runtime and checks its exports against the manifest.
pub(crate) async fn load_code(
    runtime: &dyn Runtime,
    manifest: &Manifest,
    language: Language,
    bytes: Bytes,
) -> Result<Running, CommandError> {
    let digest = Digest::of(&bytes);
    let code = Code {
        plugin: manifest.identity.clone(),
        language,
        bytes,
        memory_bytes: manifest.permissions.memory_bytes,
    };
    let guest = runtime.load(code).await?;
    check_exports(manifest, language, &*guest)?;
    let needed = Permissions::needed(manifest, guest.interface());
    Ok(Running {
        guest,
        needed,
        code: digest,
    })
}

/// A plugin exports exactly what its manifest claims: less would fail when it is called, more was never agreed to.
fn check_exports(manifest: &Manifest, language: Language, guest: &dyn Guest) -> Result<(), CommandError> {
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
            let export = match (language, export) {
                (Language::Script, "resolver") => "a function \"resolve\"",
                (Language::Script, "previewer") => "a function \"preview\"",
                (Language::Script, "feed-handler") => "a function \"feed\"",
                (Language::Script, "hook-handler") => "a function like \"onDone\"",
                (Language::Script, "post-processor") => "what works on files, which scripts cannot",
                _ => export,
            };
            let reason = if is_claimed {
                format!("/capabilities/{capability} is claimed, but the code does not export {export}")
            } else {
                format!("the code exports {export}, but /capabilities/{capability} is not claimed")
            };
            return Err(CommandError::Exports(reason));
        }
    }
    Ok(())
}
