//! A directory with an archive in it, and the unpacker.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
};

use confined::OwnCommand;
use post::{Reason, Request, RunId, UnpackError, Unpacked};
use transfer::Secret;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) struct Rig {
    pub(crate) root: tempfile::TempDir,
    pub(crate) max_bytes: u64,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("downloads")).unwrap();
        Self {
            root,
            max_bytes: 512 * MIB,
        }
    }

    pub(crate) fn with(name: &str, bytes: &[u8]) -> Self {
        let rig = Self::new();
        fs::write(rig.downloads().join(name), bytes).unwrap();
        rig
    }

    pub(crate) fn downloads(&self) -> PathBuf {
        self.root.path().join("downloads")
    }

    pub(crate) async fn unpack(&self, name: &str, passwords: &[&str]) -> Result<Unpacked, UnpackError> {
        let request = self.request(name, passwords);
        let unpacked = post::unpack(&command(), request, |_| {}, std::future::pending()).await;
        // As whoever has saved the result does.
        post::sweep(&self.downloads(), &[]).unwrap();
        unpacked
    }

    pub(crate) fn request(&self, name: &str, passwords: &[&str]) -> Request {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        Request {
            root: self.downloads(),
            archive: self.downloads().join(name),
            destination: self.downloads(),
            run: run(&format!("test-{}", RUNS.fetch_add(1, Ordering::Relaxed))),
            passwords: passwords.iter().map(|text| Secret::new(*text)).collect(),
            max_bytes: self.max_bytes,
        }
    }

    /// Unpacks and returns the files that appeared, by their paths.
    pub(crate) async fn content(&self, name: &str, passwords: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let unpacked = self.unpack(name, passwords).await.unwrap();
        self.assert_tidy();
        files(&self.downloads().join(unpacked.placed.name))
    }

    /// Unpacks, is refused, and nothing but the archive is there afterwards.
    pub(crate) async fn refused(&self, name: &str, passwords: &[&str]) -> Reason {
        let before = files(self.root.path());
        let result = self.unpack(name, passwords).await;
        assert_eq!(files(self.root.path()), before, "a refused archive leaves nothing");
        match result {
            Err(UnpackError::Refused { refusal, .. }) => refusal.reason,
            other => panic!("it must be refused by name: {other:?}"),
        }
    }

    /// Does what others can do in a directory that is shared with them: puts links to `victim` in the places of all stages.
    pub(crate) fn replace_stages(&self, victim: &Path) {
        let names = names(&self.downloads()).into_iter();
        for stage in names.filter(|name| name.contains(".svcunpack-")) {
            let stage = self.downloads().join(stage);
            fs::rename(&stage, stage.with_extension("moved")).unwrap();
            std::os::unix::fs::symlink(victim, stage).unwrap();
        }
    }

    /// No stage is left.
    pub(crate) fn assert_tidy(&self) {
        let hidden: Vec<_> = names(&self.downloads())
            .into_iter()
            .filter(|name| name.starts_with('.'))
            .collect();
        assert!(hidden.is_empty(), "{hidden:?}");
    }
}

pub(crate) fn run(text: &str) -> RunId {
    RunId::try_from(text.to_owned()).unwrap()
}

pub(crate) fn command() -> OwnCommand {
    OwnCommand {
        program: env!("CARGO_BIN_EXE_unpack-archive").into(),
        args: Vec::new(),
    }
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// All files below a directory; directories end with a slash.
pub(crate) fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, at: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                found.insert(format!("{name}/"), Vec::new());
                walk(root, &path, found);
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

/// Runs a program in `directory`; tests/run installs those that are not part of every system.
pub(crate) fn run_program(directory: &Path, line: &[&str]) {
    let output = Command::new(line[0]).args(&line[1..]).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("{} (tests/run installs it): {error}", line[0]));
    assert!(output.status.success(), "{line:?}: {output:?}");
}
