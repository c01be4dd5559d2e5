//! Tools that are scripts in a temporary directory, and the service that runs them.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use egress::Names;
use tempfile::TempDir;
use tokio::sync::watch;
use tools::{Choice, Config, Launcher, Settings, Tools};

/// The longest time that a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const RUNNER: &str = env!("CARGO_BIN_EXE_run-tool");

/// What the scripts of tools begin with.
const PRELUDE: &str = "#!/usr/bin/python3 -I\nimport json, os, resource, signal, socket, sys, time\n";

pub(crate) struct Rig {
    pub(crate) folder: TempDir,
    pub(crate) tools: Tools,
    pub(crate) settings: watch::Sender<Settings>,
}

impl Rig {
    /// A service that is allowed the tools of its directory `bin`; the scripts follow [`PRELUDE`].
    pub(crate) fn new(scripts: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for directory in ["bin", "scratch", "downloads"] {
            fs::create_dir(folder.path().join(directory)).unwrap();
        }
        for (name, script) in scripts {
            write_script(&folder.path().join("bin").join(name), script);
        }
        let mut path: OsString = folder.path().join("bin").into();
        path.push(":/usr/bin:/bin");
        let config = Config {
            launcher: Launcher {
                supervisor: RUNNER.into(),
                arguments: Vec::new(),
                path,
            },
            scratch: folder.path().join("scratch"),
            names: Names::default(),
        };
        let (settings, followed) = watch::channel(Settings {
            ffmpeg: Choice::Auto,
            yt_dlp: Choice::Auto,
        });
        Self {
            tools: Tools::new(config, followed),
            folder,
            settings,
        }
    }

    pub(crate) fn downloads(&self) -> PathBuf {
        self.folder.path().join("downloads")
    }

    /// What a tool wrote there; waits until it has.
    pub(crate) async fn written(&self, name: &str) -> String {
        written(&self.downloads().join(name)).await
    }

    /// Whether the temporary directories of all runs are gone.
    pub(crate) fn is_clean(&self) -> bool {
        let left = fs::read_dir(self.folder.path().join("scratch")).unwrap();
        left.count() == 0
    }
}

/// Writes a program by another process: while this one had it open, a process that another test starts at that moment
/// would have it, too, and a program that is open for writing does not start.
pub(crate) fn write_script(path: &Path, script: &str) {
    let source = path.with_extension("source");
    fs::write(&source, format!("{PRELUDE}{script}")).unwrap();
    install(&source, path);
}

/// Copies a program.
pub(crate) fn install(from: &Path, to: &Path) {
    let installed = Command::new("install").args(["-m", "755"]).args([from, to]).status();
    assert!(installed.unwrap().success());
}

/// The lines that a tool writes into a file; the last of them is `end`.
pub(crate) async fn written(path: &Path) -> String {
    let read = async {
        loop {
            match fs::read_to_string(path) {
                Ok(text) if text.ends_with("end\n") => return text,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let read = tokio::time::timeout(PATIENCE, read).await;
    read.unwrap_or_else(|_| panic!("no tool wrote {}", path.display()))
}

/// Whether a process runs, by its number outside of all namespaces. One that ended and was not waited for does not.
pub(crate) fn is_running(number: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let state = state.rsplit(')').next().unwrap_or("").trim_start().chars().next();
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Waits until none of these processes runs. What ends them does not wait until the system has removed them.
pub(crate) async fn gone(numbers: impl IntoIterator<Item = impl AsRef<str>>) {
    for number in numbers {
        let ended = async {
            while is_running(number.as_ref()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(1), ended).await;
        assert!(ended.is_ok(), "{} still runs", number.as_ref());
    }
}
