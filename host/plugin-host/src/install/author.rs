//! Plugins for author tools: loaded and tried out without being installed.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use plugin_package::{Manifest, Package, manifest::Reading};

pub use crate::package::archive::ABI;
use crate::{
    error::CommandError,
    fixture::{self, Fixture, FixtureCall, FixtureError, Input, RecordError, Recorded, Replayed, Unsendable},
    lifecycle::registry::Running,
    package::{
        archive::{self},
        disk::blocking,
        folder, load,
    },
    policy::grant::Permissions,
    runtime::{Interface, Runtime},
};

/// The first host with plugins.
const FIRST_HOST: (u64, u64, u64) = (0, 1, 0);

/// Functions added later, with the first host version that has each.
const SINCE: &[(&str, (u64, u64, u64))] = &[];

/// A plugin that is loaded and not installed.
#[derive(Clone)]
pub struct Candidate {
    manifest: Arc<Manifest>,
    running: Running,
    code: Bytes,
    fixtures: Arc<Vec<(String, Result<Fixture, FixtureError>)>>,
}

impl std::fmt::Debug for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Candidate")
            .field("manifest", &self.manifest)
            .finish_non_exhaustive()
    }
}

impl Candidate {
    /// The plugin in its author's folder.
    pub async fn of_folder(runtime: &dyn Runtime, folder: &Path) -> Result<Self, CommandError> {
        let manifest = Arc::new(load::read_folder_manifest(folder).await?);
        let (code, language) = load::read_code(folder, &manifest).await?;
        let running = load::load_code(runtime, &manifest, language, code.clone()).await?;
        let (folder, of) = (folder.to_owned(), Arc::clone(&manifest));
        let fixtures = blocking(move || Ok(folder_fixtures(&folder, &of))).await?;
        Ok(Self {
            manifest,
            running,
            code,
            fixtures: Arc::new(fixtures),
        })
    }

    /// The plugin in an archive, checked as when it is installed.
    pub async fn of_archive(runtime: &dyn Runtime, archive: Vec<u8>) -> Result<(Self, Package), CommandError> {
        let (package, manifest, _) = blocking(move || archive::parse(&archive, Reading::Strict)).await?;
        let code = package.file(&manifest.entry, "entry")?.clone();
        let running = load::load_code(runtime, &manifest, manifest.language, code.clone()).await?;
        let fixtures = fixture::of_files(&manifest, &package.files);
        let candidate = Self {
            manifest: Arc::new(manifest),
            running,
            code,
            fixtures: Arc::new(fixtures),
        };
        Ok((candidate, package))
    }

    /// Its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The interface of its code.
    pub fn interface(&self) -> &Interface {
        self.running.guest.interface()
    }

    /// The permissions that a user is asked for.
    pub fn needed(&self) -> &Permissions {
        &self.running.needed
    }

    /// Its code.
    pub fn code(&self) -> &Bytes {
        &self.code
    }

    /// Its recorded calls, by the paths of their files.
    pub fn fixtures(&self) -> &[(String, Result<Fixture, FixtureError>)] {
        &self.fixtures
    }

    /// Replays a fixture in the sandbox.
    pub async fn replay(&self, fixture: &Fixture) -> Replayed {
        fixture::replay(&self.manifest, &self.running.guest, fixture).await
    }

    /// The requests of a fixture that the plugin could not send even with all permissions of its manifest.
    pub fn unsendable(&self, fixture: &Fixture) -> Vec<Unsendable> {
        fixture::unsendable(&self.manifest, &*self.running.guest, fixture)
    }

    /// Records a call over the real network, with all permissions of the manifest, and without secrets in the result.
    pub async fn record(
        &self,
        call: FixtureCall,
        input: Input,
        settings: &BTreeMap<String, String>,
    ) -> Result<Recorded, RecordError> {
        fixture::record(&self.manifest, &self.running.guest, call, input, settings).await
    }
}

/// The oldest host version that has everything the code imports.
pub fn oldest_host(interface: &Interface) -> semver::Version {
    let (major, minor, patch) = SINCE
        .iter()
        .filter(|(function, _)| interface.imports.iter().any(|import| import == function))
        .map(|(_, version)| *version)
        .fold(FIRST_HOST, std::cmp::max);
    semver::Version::new(major, minor, patch)
}

fn folder_fixtures(folder: &Path, manifest: &Manifest) -> Vec<(String, Result<Fixture, FixtureError>)> {
    let mut paths = files(folder, manifest).unwrap_or_default();
    paths.sort();
    let read = |path: &Path| folder::read(folder, path);
    let fixture = |path: PathBuf| {
        let name = path.display().to_string().replace('\\', "/");
        (name, Fixture::read_with(&path, read))
    };
    paths.into_iter().map(fixture).collect()
}

/// The files that the manifest's `tests` name, relative to the folder.
fn files(folder: &Path, manifest: &Manifest) -> io::Result<Vec<PathBuf>> {
    let within = PathBuf::from(fixture::folder(manifest));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join(&within))? {
        let path = within.join(entry?.file_name());
        if path.to_str().is_some_and(|path| fixture::is_fixture(manifest, path)) {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_interface_is_that_of_its_description() {
        let description = include_str!("../../../../plugin-sdk/wit/plugin.wit");
        assert!(description.starts_with(&format!("package svc:plugin@{ABI}.")));
    }

    #[test]
    fn the_oldest_host_that_plugins_need_is_one_that_exists() {
        let everything = Interface {
            imports: SINCE.iter().map(|(function, _)| (*function).to_owned()).collect(),
            ..Interface::default()
        };
        assert!(oldest_host(&everything) <= archive::host_version());
    }
}
