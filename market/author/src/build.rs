//! `svc plugin build`: compiles the component that the manifest names.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use command::{Exit, UsageError, print_lines};
use plugin_host::{
    author::Candidate,
    manifest::{Manifest, OptionalHosts},
    runtime::{Interface, Language},
};
use serde::Deserialize;
use transfer::ByteCount;

use crate::loader::{FolderArgs, PluginLoader, Sandbox, read, read_manifest};

pub(super) const EXAMPLES: &str = "Examples:
  svc plugin build                                 the plugin in this folder
  svc plugin build my-site

It runs cargo with whatever can build for WebAssembly here, makes a component of the outcome and
puts it where \"entry\" of plugin.json says. A plugin in JavaScript needs no building; its syntax is
checked.";

/// The compilation target.
const TARGET: &str = "wasm32-unknown-unknown";

#[derive(Debug, clap::Args)]
pub struct BuildArgs {
    #[command(flatten)]
    folder: FolderArgs,
}

pub(super) async fn run(args: BuildArgs, sandbox: Sandbox<'_>) -> anyhow::Result<Exit> {
    let folder = &args.folder.folder;
    let built = build(folder)?;
    let candidate = PluginLoader::open(sandbox)?.folder(folder).await?;
    let mut lines = Vec::new();
    match &built {
        Some(built) => lines.push(format!(
            "built {} in {:.1} s: {} ({})",
            built.path.display(),
            built.took.as_secs_f64(),
            ByteCount(candidate.code().len() as u64),
            built.how
        )),
        None => lines.push(format!(
            "nothing to build: {} is JavaScript, and loads",
            candidate.manifest().entry
        )),
    }
    lines.extend(abilities(&candidate));
    print_lines(lines)
}

/// The abilities of a plugin, for display.
pub(super) fn abilities(candidate: &Candidate) -> Vec<String> {
    let Interface { exports, imports } = candidate.interface();
    let mut lines = vec![format!("exports: {}", exports.join(", "))];
    lines.push(match candidate.manifest().language {
        Language::Script => "imports: whatever scripts can import, for all of them share an engine".to_owned(),
        Language::Component | Language::CoreModule => format!("imports: {}", imports.join(", ")),
    });
    match candidate.needed().descriptions() {
        asked if asked.is_empty() => lines.push("users are asked for nothing".to_owned()),
        asked => {
            lines.push("users are asked to agree that it".to_owned());
            lines.extend(asked.iter().map(|words| format!("  {words}")));
        }
    }
    if candidate.manifest().language != Language::Script && !sends(candidate.interface()) {
        lines.push("it can contact no host: the code sends no request".to_owned());
    }
    let unused = unused_permissions(candidate.manifest(), candidate.interface());
    lines.extend(unused.iter().map(|unused| format!("warning: {unused}")));
    lines
}

/// Whether the code imports the HTTP interface.
fn sends(interface: &Interface) -> bool {
    interface.imports.iter().any(|import| import.starts_with("http.send"))
}

/// Permissions in the manifest that the code cannot use.
pub(super) fn unused_permissions(manifest: &Manifest, interface: &Interface) -> Vec<String> {
    let asked = &manifest.permissions;
    // The script engine imports everything, whatever the script uses.
    if manifest.language == Language::Script {
        return Vec::new();
    }
    let imports = |prefix: &str| interface.imports.iter().any(|import| import.starts_with(prefix));
    let sends = sends(interface);
    let asks_hosts = !asked.hosts.is_empty() || asked.optional_hosts != OptionalHosts::default() || asked.input_host;
    let uses_secrets = imports("http.[method]request.secret") || imports("listing.[method]link.secret");
    [
        (
            asks_hosts && !sends,
            "/permissions: hosts are asked for, but the code sends no request",
        ),
        (
            asked.reads_cookies && !sends,
            "/permissions/cookies: the code sends no request",
        ),
        (
            !asked.secrets.is_empty() && !uses_secrets && !imports("vault."),
            "/permissions/secrets: the code uses no secret",
        ),
    ]
    .into_iter()
    .filter(|(is_unused, _)| *is_unused)
    .map(|(_, text)| text.to_owned())
    .collect()
}

pub(super) struct Built {
    pub(super) path: PathBuf,
    pub(super) how: &'static str,
    pub(super) took: Duration,
}

/// Builds the component of the manifest; none if it has no sources here.
pub(super) fn build(folder: &Path) -> anyhow::Result<Option<Built>> {
    let manifest = read_manifest(folder)?;
    if manifest.language == Language::Script {
        return Ok(None);
    }
    let cargo_file = folder.join("Cargo.toml");
    if !cargo_file.is_file() {
        let problem = format!(
            "there is no Cargo.toml; build the component yourself and put it at {}",
            manifest.entry
        );
        return Err(UsageError::new(folder.display().to_string(), problem).into());
    }
    let started = Instant::now();
    let way = Way::find()?;
    let module = way.build(folder)?;
    let component = plugin_wasm::componentise(read(&module)?)
        .with_context(|| format!("{} does not become a component", module.display()))?;
    let path = folder.join(&manifest.entry);
    replace(&path, &component).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Some(Built {
        path,
        how: way.name(),
        took: started.elapsed(),
    }))
}

/// Replaces a file by a rename, so that a concurrent reader (a service that runs the plugin from this folder) never
/// reads half a component. It is not synced: after a crash it is built again.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.persist(path)?;
    Ok(())
}

/// How WebAssembly can be compiled on this machine.
enum Way {
    /// The Rust target is installed.
    Installed,
    /// The standard library is compiled from its sources, with this linker.
    FromSource(Option<PathBuf>),
}

impl Way {
    /// The first available toolchain.
    fn find() -> anyhow::Result<Self> {
        let library = rustc(&["--print", "target-libdir", "--target", TARGET])?;
        if fs::read_dir(&library).is_ok_and(|mut files| files.next().is_some()) {
            return Ok(Self::Installed);
        }
        let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?);
        if sysroot.join("lib/rustlib/src/rust/library/std").is_dir() {
            return Ok(Self::FromSource(linker()));
        }
        Err(UsageError::new(
            TARGET,
            "Rust cannot compile for it here. With rustup: rustup target add wasm32-unknown-unknown. \
             On Debian: apt-get install rust-src lld. A plugin in JavaScript needs neither: svc plugin new --lang js",
        )
        .into())
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Installed => "cargo, with the installed target",
            Self::FromSource(_) => "cargo, with the standard library from source",
        }
    }

    /// Runs cargo, whose messages stay visible, and returns the path of the built module.
    fn build(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--release", "--lib", "--target", TARGET]);
        cargo.arg("--message-format=json-render-diagnostics");
        cargo.current_dir(folder).stdout(Stdio::piped());
        if let Self::FromSource(linker) = self {
            cargo
                .args(["-Z", "build-std=std,panic_abort"])
                .env("RUSTC_BOOTSTRAP", "1");
            if let Some(linker) = linker {
                cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
            }
        }
        let child = cargo.spawn().context("cannot run cargo")?;
        let output = child.wait_with_output().context("cannot wait for cargo")?;
        anyhow::ensure!(output.status.success(), "the plugin does not compile");
        let mut modules = output.stdout.split(|byte| *byte == b'\n').filter_map(module);
        modules
            .next_back()
            .context("cargo made no module; the library needs crate-type \"cdylib\"")
    }
}

/// The output of rustc.
fn rustc(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("rustc").args(arguments).stderr(Stdio::null()).output();
    let output = output.context("cannot run rustc; install Rust from https://rustup.rs")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A WebAssembly linker, by the names of distributions; none if rustc includes one.
fn linker() -> Option<PathBuf> {
    let folder = Path::new("/usr/bin");
    let names = ["wasm-ld", "wasm-ld-20", "wasm-ld-19", "wasm-ld-18"];
    names.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// A message of cargo about a built artifact.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

fn module(line: &[u8]) -> Option<PathBuf> {
    let message: Message = serde_json::from_slice(line).ok()?;
    let mut made = message
        .filenames
        .into_iter()
        .filter(|_| message.reason == "compiler-artifact");
    made.find(|path| path.extension().is_some_and(|extension| extension == "wasm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_found_in_what_cargo_says() {
        let made = br#"{"reason": "compiler-artifact", "filenames": ["/t/libx.rlib", "/t/x.wasm"], "fresh": true}"#;
        assert_eq!(module(made), Some(PathBuf::from("/t/x.wasm")));
        for other in [
            r#"{"reason": "compiler-artifact", "filenames": ["/t/libx.rlib"]}"#,
            r#"{"reason": "build-finished", "success": true}"#,
            "",
        ] {
            assert_eq!(module(other.as_bytes()), None, "{other}");
        }
    }
}
