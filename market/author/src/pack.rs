//! `svc plugin pack`: creates a plugin's archive. Reproducible: the same folder yields the same bytes at any time on
//! any machine.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use bytes::Bytes;
use command::{Exit, UsageError, print_lines};
use plugin_host::{
    Digest,
    author::{ABI, Candidate, oldest_host},
    manifest::{self, Manifest},
    runtime::Language,
};
use plugin_package::pack;
use serde_json::Value;
use transfer::ByteCount;

use crate::{
    build, lint,
    loader::{FolderArgs, PluginLoader, Sandbox, read},
    test,
};

pub(super) const EXAMPLES: &str = "Examples:
  svc plugin pack                                  makes name@author-version.zip in this folder
  svc plugin pack my-site -o site.zip
  svc plugin pack --no-test                        without the fixtures and the checks before it

What goes in: plugin.json (with abi and minHost filled in), the component, the icon, README.md,
LICENSE files, fixtures and locales. The result is read as strictly as an installation reads it;
\"svc plugin sign\" adds the digest of each file and a signature.";

/// The component's path in an archive.
const ENTRY: &str = "plugin.wasm";

/// Optional files of an archive.
const BESIDE: &[&str] = &[
    "README.md",
    "LICENSE",
    "LICENSE.md",
    "LICENSE.txt",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// Folders of an archive. Names that begin with `.` or `_` are excluded.
const FOLDERS: &[&str] = &["fixtures", "locales"];

#[derive(Debug, clap::Args)]
pub struct PackArgs {
    #[command(flatten)]
    folder: FolderArgs,
    /// The archive to make; without it, name@author-version.zip in the plugin's folder
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Skip the fixtures and the checks of "svc plugin lint"
    #[arg(long)]
    no_test: bool,
    /// Pack what is there instead of building it first
    #[arg(long)]
    no_build: bool,
}

pub(super) async fn run(args: PackArgs, sandbox: Sandbox<'_>) -> anyhow::Result<Exit> {
    let folder = &args.folder.folder;
    if !args.no_build && folder.join("Cargo.toml").is_file() {
        build::build(folder)?;
    }
    let loader = PluginLoader::open(sandbox)?;
    let candidate = loader.folder(folder).await?;
    if !args.no_test && !is_fit(&candidate, folder).await? {
        return Ok(Exit::Unfit);
    }
    let archive = pack(&files(&candidate, folder)?)?;
    let output = args.output.clone().unwrap_or_else(|| {
        let Manifest { identity, version, .. } = candidate.manifest();
        folder.join(format!("{identity}-{version}.zip"))
    });
    let (packed, _) = loader.archive(&output, archive.clone()).await?;
    fs::write(&output, &archive).with_context(|| format!("cannot write {}", output.display()))?;
    print_lines([
        format!("packed {}: {}", output.display(), ByteCount(archive.len() as u64)),
        format!("sha256 {}", Digest::of(&archive)),
        format!(
            "{} fixtures; {} of plugin.json is {}",
            packed.fixtures().len(),
            "minHost",
            oldest_host(packed.interface())
        ),
    ])
}

/// Whether the plugin passes all checks; prints the problems otherwise.
async fn is_fit(candidate: &Candidate, folder: &Path) -> anyhow::Result<bool> {
    let findings = lint::findings(candidate, folder)?;
    let is_clean = findings.iter().all(|finding| finding.level == lint::Level::Warning);
    print_lines(findings.iter().map(lint::Finding::line))?;
    let played = test::check(candidate).await;
    if played.failed > 0 {
        print_lines(&played.lines)?;
    }
    Ok(is_clean && played.failed == 0)
}

/// All files of the archive, by path.
fn files(candidate: &Candidate, folder: &Path) -> anyhow::Result<BTreeMap<String, Bytes>> {
    let manifest = candidate.manifest();
    let mut files = BTreeMap::new();
    let entry = match manifest.language {
        Language::Script => manifest.entry.clone(),
        Language::Component | Language::CoreModule => ENTRY.to_owned(),
    };
    let code = match manifest.language {
        Language::Script => candidate.code().clone(),
        Language::Component | Language::CoreModule => plugin_wasm::componentise(candidate.code().to_vec())?.into(),
    };
    files.insert(entry.clone(), code);
    files.insert(manifest::FILE.to_owned(), filled_in(candidate, folder, &entry)?);
    for name in BESIDE.iter().copied().chain(manifest.icon.as_deref()) {
        let path = folder.join(name);
        if path.is_file() {
            files.insert(name.to_owned(), read(&path)?.into());
        }
    }
    for name in FOLDERS {
        collect(folder, name, &mut files)?;
    }
    Ok(files)
}

/// The manifest, completed with computed fields.
fn filled_in(candidate: &Candidate, folder: &Path, entry: &str) -> anyhow::Result<Bytes> {
    let mut text: Value = serde_json::from_slice(&read(&folder.join(manifest::FILE))?)?;
    let fields = text.as_object_mut().context("plugin.json is no object")?;
    fields.remove("$schema");
    fields.insert("entry".to_owned(), entry.into());
    fields.insert("abi".to_owned(), ABI.into());
    let oldest = oldest_host(candidate.interface()).to_string();
    fields.insert("minHost".to_owned(), oldest.into());
    Ok(serde_json::to_vec_pretty(&text)?.into())
}

/// Adds the files below `path`, relative to `folder`, if it exists.
fn collect(folder: &Path, path: &str, files: &mut BTreeMap<String, Bytes>) -> anyhow::Result<()> {
    let full = folder.join(path);
    if !full.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&full).with_context(|| format!("cannot list {}", full.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", full.display()))?;
        let name = entry.file_name();
        let name = name
            .to_str()
            .ok_or_else(|| UsageError::new(full.display().to_string(), "a name in it is not UTF-8"))?;
        if name.starts_with(['.', '_']) {
            continue;
        }
        let path = format!("{path}/{name}");
        if entry.path().is_dir() {
            collect(folder, &path, files)?;
        } else {
            files.insert(path, read(&entry.path())?.into());
        }
    }
    Ok(())
}
