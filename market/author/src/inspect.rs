//! `svc plugin inspect`: shows the content and abilities of a plugin, as its bytes prove them.

use std::path::PathBuf;

use command::{Exit, print_json, print_lines};
use plugin_host::{Digest, author::Candidate, manifest::Manifest};
use serde::Serialize;
use transfer::ByteCount;

use crate::{
    build::abilities,
    loader::{PluginLoader, Sandbox, read},
};

pub(super) const EXAMPLES: &str = "Examples:
  svc plugin inspect site@author-1.2.0.zip
  svc plugin inspect my-site --json

Nothing is installed, and nothing of the plugin is run. What users are asked to allow is taken
from what the code imports, not from what the manifest says about it.";

#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// The plugin's ZIP archive, or its folder
    #[arg(value_name = "FILE|FOLDER", default_value = ".", value_hint = clap::ValueHint::AnyPath)]
    path: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// The record of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InspectionView<'c> {
    identity: String,
    name: &'c str,
    version: String,
    license: Option<&'c str>,
    /// The digest of the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    archive_bytes: Option<usize>,
    code_bytes: usize,
    matches: Vec<String>,
    exports: &'c [String],
    imports: &'c [String],
    /// Permissions that users must grant.
    permissions: Vec<String>,
    /// Hosts that work without a grant.
    optional_hosts: Vec<String>,
    /// The digest of the permissions that users must grant.
    consent: String,
    fixtures: usize,
}

pub(super) async fn run(args: InspectArgs, sandbox: Sandbox<'_>) -> anyhow::Result<Exit> {
    let loader = PluginLoader::open(sandbox)?;
    let (candidate, archive) = if args.path.is_dir() {
        (loader.folder(&args.path).await?, None)
    } else {
        let archive = read(&args.path)?;
        let (digest, bytes) = (Digest::of(&archive), archive.len());
        (loader.archive(&args.path, archive).await?.0, Some((digest, bytes)))
    };
    if args.json {
        print_json(&view(&candidate, archive))
    } else {
        print_lines(lines(&candidate, archive))
    }
}

fn view(candidate: &Candidate, archive: Option<(Digest, usize)>) -> InspectionView<'_> {
    let (manifest, interface) = (candidate.manifest(), candidate.interface());
    InspectionView {
        identity: manifest.identity.to_string(),
        name: &manifest.name,
        version: manifest.version.to_string(),
        license: manifest.license.as_deref(),
        sha256: archive.map(|(digest, _)| digest.to_string()),
        archive_bytes: archive.map(|(_, bytes)| bytes),
        code_bytes: candidate.code().len(),
        matches: matches(manifest),
        exports: &interface.exports,
        imports: &interface.imports,
        permissions: candidate.needed().texts(),
        optional_hosts: optional_hosts(manifest),
        consent: candidate.needed().digest().to_string(),
        fixtures: candidate.fixtures().len(),
    }
}

fn lines(candidate: &Candidate, archive: Option<(Digest, usize)>) -> Vec<String> {
    let manifest = candidate.manifest();
    let mut lines = vec![format!("{} {}: {}", manifest.identity, manifest.version, manifest.name)];
    if let Some((digest, bytes)) = archive {
        lines.push(format!("archive: {}, sha256 {digest}", ByteCount(bytes as u64)));
    }
    lines.push(format!("code: {}", ByteCount(candidate.code().len() as u64)));
    for (what, patterns) in [("for", matches(manifest)), ("reads the feeds of", feeds(manifest))] {
        if !patterns.is_empty() {
            lines.push(format!("{what}: {}", patterns.join(", ")));
        }
    }
    lines.extend(abilities(candidate));
    lines.extend(later(manifest));
    lines.push(format!("fixtures: {}", candidate.fixtures().len()));
    lines
}

/// Permissions that users may be asked for later, when needed.
fn later(manifest: &Manifest) -> Option<String> {
    let optional = &manifest.permissions.optional_hosts;
    let mut hosts: Vec<_> = optional.named.iter().map(ToString::to_string).collect();
    hosts.extend(optional.any.then(|| "any other host, each by itself".to_owned()));
    (!hosts.is_empty()).then(|| format!("may later ask to contact: {}", hosts.join(", ")))
}

fn matches(manifest: &Manifest) -> Vec<String> {
    let resolver = manifest.capabilities.resolver.as_ref();
    let patterns = resolver.into_iter().flat_map(|resolver| &resolver.matches);
    let setting = resolver.and_then(|resolver| resolver.match_setting.as_ref());
    let of_setting = setting.map(|key| format!("the sites that its setting {key} names"));
    patterns.map(ToString::to_string).chain(of_setting).collect()
}

fn feeds(manifest: &Manifest) -> Vec<String> {
    let patterns = manifest.capabilities.feed.iter().flat_map(|feed| &feed.matches);
    patterns.map(ToString::to_string).collect()
}

fn optional_hosts(manifest: &Manifest) -> Vec<String> {
    let optional = &manifest.permissions.optional_hosts;
    let named = optional.named.iter().map(ToString::to_string);
    named.chain(optional.any.then(|| "*".to_owned())).collect()
}
