//! The sandbox of this process, with plugins that are not installed. Used by the commands for authors.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use command::{UsageError, directories};
use plugin_host::{
    CommandError,
    author::Candidate,
    manifest::{self, Manifest, Reading},
};
use plugin_package::Package;
use plugin_wasm::LazyRuntime;
use tempfile::TempDir;

/// The folder of a plugin, for the commands that need no more.
#[derive(Debug, clap::Args)]
pub(crate) struct FolderArgs {
    /// The plugin's folder
    #[arg(default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub(super) folder: PathBuf,
}

/// Creates a sandbox like the service's, with its compilation cache in the given folder.
pub type Sandbox<'a> = &'a (dyn Fn(PathBuf) -> anyhow::Result<LazyRuntime> + Sync);

pub(crate) struct PluginLoader {
    runtime: LazyRuntime,
    /// The compilation cache if the user has no cache directory.
    _scratch: Option<TempDir>,
}

impl PluginLoader {
    pub(crate) fn open(sandbox: Sandbox<'_>) -> anyhow::Result<Self> {
        let usual = directories::author_cache().filter(|folder| fs::create_dir_all(folder).is_ok());
        let (folder, scratch) = if let Some(folder) = usual {
            (folder, None)
        } else {
            let scratch = TempDir::new().context("cannot make a temporary folder")?;
            (scratch.path().join("plugins"), Some(scratch))
        };
        Ok(Self {
            runtime: sandbox(folder.join("cache"))?,
            _scratch: scratch,
        })
    }

    /// Loads a plugin from a folder.
    pub(super) async fn folder(&self, folder: &Path) -> Result<Candidate, UsageError> {
        let opened = Candidate::of_folder(&self.runtime, folder).await;
        opened.map_err(|error| refused(folder, &error))
    }

    /// Loads a plugin from an archive that was read from `path`.
    pub(crate) async fn archive(&self, path: &Path, archive: Vec<u8>) -> Result<(Candidate, Package), UsageError> {
        let opened = Candidate::of_archive(&self.runtime, archive).await;
        opened.map_err(|error| refused(path, &error))
    }
}

pub(super) fn read_manifest(folder: &Path) -> Result<Manifest, UsageError> {
    let path = folder.join(manifest::FILE);
    let text = read(&path)?;
    let read = Manifest::parse(&text, Reading::Strict);
    read.map(|(manifest, _)| manifest)
        .map_err(|error| UsageError::new(folder.display().to_string(), error.to_string()))
}

/// Reads a required file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, UsageError> {
    fs::read(path).map_err(|error| UsageError::new(path.display().to_string(), format!("cannot be read: {error}")))
}

/// The error of a plugin, on one line.
fn refused(path: &Path, error: &CommandError) -> UsageError {
    let mut problem = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        problem = format!("{problem}: {error}");
        cause = error.source();
    }
    if let CommandError::Folder { .. } = error {
        problem.push_str(if path.join(manifest::FILE).is_file() {
            "; \"svc plugin build\" makes the component of a plugin in Rust"
        } else {
            "; \"svc plugin new\" makes the folder of a plugin"
        });
    }
    UsageError::new(path.display().to_string(), problem)
}

/// The lines of a plugin's log entry. Line breaks were escaped together with other control characters.
pub(super) fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.trim_end_matches("\\n").split("\\n")
}

/// A fixture's file name without extension, which identifies it in reports.
pub(super) fn file_name(path: &str) -> &str {
    let file = Path::new(path).file_stem().and_then(|stem| stem.to_str());
    file.unwrap_or(path)
}
