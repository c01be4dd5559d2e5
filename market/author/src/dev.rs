//! `svc plugin dev`: runs a plugin from its folder in a service, and reloads every change.

mod tail;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use cli::{Client, Observer, RemoteError, ServiceArgs, attend};
use command::{Exit, environment::Environment, print_now};
use plugin_host::manifest;
use protocol::{
    DaemonEvent, EventBody, InstallPluginDevRequest, InstalledPlugin, Method, PluginDto, agent::AgentSnapshot,
};

use crate::{
    build,
    loader::{FolderArgs, read_manifest},
};

pub(super) const EXAMPLES: &str = "Examples:
  svc plugin dev                                   the plugin in this folder, in the service of this machine
  svc plugin dev my-site --url http://127.0.0.1:17800

The plugin runs from its folder, with everything allowed that its manifest asks for; what it logs,
and how its calls end, is shown. Sources are built when they change, and the service loads what
was built within a second; what does not load leaves the version before running. A call that fails
is kept in fixtures/_captured as a fixture. It ends with Ctrl-C; the plugin stays installed until
\"svc plugin rm\".";

/// The polling interval of the sources.
const INTERVAL: Duration = Duration::from_millis(250);

/// Folders without sources.
const NOT_SOURCES: &[&str] = &["target", "fixtures", "schema", "node_modules"];

/// Limit of watched files; a plugin has fewer.
const MAX_SOURCES: usize = 2000;

#[derive(Debug, clap::Args)]
pub struct DevArgs {
    #[command(flatten)]
    folder: FolderArgs,
    #[command(flatten)]
    service: ServiceArgs,
}

pub(super) async fn run(args: DevArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let target = args.service.target(environment)?;
    let folder = fs::canonicalize(&args.folder.folder)
        .with_context(|| format!("cannot find {}", args.folder.folder.display()))?;
    let mut client = Client::connect(&target).await?;
    let mut bench = Bench::new(folder);
    bench.build();
    let params = InstallPluginDevRequest {
        dir_path: bench.folder.display().to_string(),
    };
    let installed: InstalledPlugin = client.call(Method::PluginInstallDev, &params).await?;
    bench.identity.clone_from(&installed.identity);
    print_now(&format!(
        "{} {} runs from {}",
        installed.identity,
        installed.version,
        bench.folder.display()
    ));
    tokio::select! {
        ended = attend(client, &mut bench) => ended.map(|_| Exit::Success),
        never = tail::follow(&target, &installed.identity) => match never {},
    }
}

/// Modification time and size of a file.
type Stamp = (SystemTime, u64);

/// The last printed state of the running plugin: code digest, version, URL patterns and permissions.
type Running = (String, String, Vec<String>, Vec<String>);

struct Bench {
    folder: PathBuf,
    identity: String,
    sources: BTreeMap<PathBuf, Stamp>,
    captured: BTreeMap<PathBuf, Stamp>,
    running: Running,
    error: Option<String>,
}

impl Bench {
    fn new(folder: PathBuf) -> Self {
        let mut bench = Self {
            sources: BTreeMap::new(),
            captured: BTreeMap::new(),
            identity: String::new(),
            running: Running::default(),
            error: None,
            folder,
        };
        bench.sources = bench.source_stamps();
        bench.captured = bench.captured_stamps();
        bench
    }

    /// Builds the component if it has sources; the compiler prints its own errors.
    fn build(&mut self) {
        match build::build(&self.folder) {
            Ok(Some(built)) => print_now(&format!("built in {} ms", built.took.as_millis())),
            Ok(None) => {}
            Err(error) => print_now(&format!("not built: {error:#}")),
        }
    }

    /// The source files of the plugin, without build results.
    fn source_stamps(&self) -> BTreeMap<PathBuf, Stamp> {
        let mut found = BTreeMap::new();
        collect_stamps(&self.folder, &mut found);
        if let Ok(manifest) = read_manifest(&self.folder)
            && self.folder.join("Cargo.toml").is_file()
        {
            found.remove(&self.folder.join(&manifest.entry));
        }
        found
    }

    fn captured_stamps(&self) -> BTreeMap<PathBuf, Stamp> {
        let mut found = BTreeMap::new();
        collect_stamps(&self.folder.join("fixtures/_captured"), &mut found);
        found.retain(|path, _| path.extension().is_some_and(|extension| extension == "json"));
        found
    }

    /// The time since the files that the service loads were changed.
    fn age(&self) -> Duration {
        let manifest = self.folder.join(manifest::FILE);
        let entry = read_manifest(&self.folder).map(|manifest| self.folder.join(manifest.entry));
        let files = [Some(manifest), entry.ok()].into_iter().flatten();
        let changed = files.filter_map(|path| fs::metadata(path).ok()?.modified().ok()).max();
        changed.and_then(|changed| changed.elapsed().ok()).unwrap_or_default()
    }

    /// Compares the service's state of the plugin with the last printed one, and prints differences.
    fn report_changes(&mut self, plugins: &[PluginDto]) {
        let Some(plugin) = plugins.iter().find(|plugin| plugin.identity == self.identity) else {
            return;
        };
        let load_error = Some(&plugin.load_error).filter(|error| !error.is_empty()).cloned();
        let error = match &plugin.dev_error {
            Some(error) => Some(format!("{}: {}", error.step, error.message)),
            None => load_error,
        };
        let running = (
            plugin.code_digest.clone(),
            plugin.version.clone(),
            plugin.capabilities.clone(),
            plugin.permissions.clone(),
        );
        match &error {
            Some(text) if self.error != error => {
                print_now(&format!("not loaded, the previous version keeps running: {text}"));
            }
            None if self.running != running => {
                let when = if self.running == Running::default() {
                    "as it is".to_owned()
                } else {
                    format!("{} ms after the change", self.age().as_millis())
                };
                print_now(&format!("{} {} loaded {when}", plugin.identity, plugin.version));
                self.running = running;
            }
            _ => {}
        }
        self.error = error;
    }
}

impl Observer for Bench {
    fn interval(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn snapshot(&mut self, snapshot: &AgentSnapshot) {
        self.report_changes(&snapshot.daemon.plugins);
    }

    fn event(&mut self, _: &EventBody, event: &DaemonEvent) {
        if let DaemonEvent::PluginsChanged(plugins) = event {
            self.report_changes(plugins);
        }
    }

    fn look(&mut self) {
        let sources = self.source_stamps();
        if sources != self.sources {
            self.sources = sources;
            // An error of this version is reported even if the previous version had the same.
            self.error = None;
            self.build();
        }
        let captured = self.captured_stamps();
        for (path, stamp) in &captured {
            if self.captured.get(path) != Some(stamp) {
                print_now(&format!("a call failed; it is kept as {}", path.display()));
            }
        }
        self.captured = captured;
    }

    fn away(&mut self, why: &RemoteError, _: Duration) {
        print_now(&format!("the service is away: {why}"));
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }

    fn is_done(&self) -> bool {
        false
    }
}

/// Adds all files below `folder`; unreadable ones are skipped.
fn collect_stamps(folder: &Path, found: &mut BTreeMap<PathBuf, Stamp>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || NOT_SOURCES.contains(&name.as_ref()) || found.len() >= MAX_SOURCES {
            continue;
        }
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            collect_stamps(&entry.path(), found);
        } else if let Ok(changed) = metadata.modified() {
            found.insert(entry.path(), (changed, metadata.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_what_the_author_writes() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            "src/lib.rs",
            "target/x",
            ".git/y",
            "fixtures/_captured/1.json",
            "plugin.wasm",
            "Cargo.toml",
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let manifest = include_str!("../../../plugin-sdk/templates/rust/plugin.json");
        fs::write(folder.path().join(manifest::FILE), manifest).unwrap();
        let bench = Bench::new(folder.path().to_owned());
        let sources: Vec<_> = bench.sources.keys().filter_map(|path| path.file_name()).collect();
        assert_eq!(sources, ["Cargo.toml", "plugin.json", "lib.rs"]);
        assert_eq!(bench.captured.len(), 1);
    }
}
