//! A disk that does not answer.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

use tempfile::TempDir;

use crate::python;

/// Whatever looks into it waits until this is dropped. Making one needs the right to mount.
#[derive(Debug)]
pub struct HungDisk {
    folder: TempDir,
    server: Child,
    said: BufReader<ChildStdout>,
}

impl HungDisk {
    /// Mounts one, without any request so far.
    #[track_caller]
    pub fn mount() -> Self {
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let mut server = Command::new("python3")
            .arg(python::path("clients/hung_disk.py"))
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python is there");
        let said = BufReader::new(server.stdout.take().expect("it is piped"));
        let mut disk = Self { folder, server, said };
        disk.expect("mounted");
        disk
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Waits until the first request for its content.
    #[track_caller]
    pub fn wait_until_asked(&mut self) {
        self.expect("asked");
    }

    #[track_caller]
    fn expect(&mut self, word: &str) {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it writes text");
        assert_eq!(line.trim_end(), word, "see what it wrote above (this test needs root)");
    }
}

impl Drop for HungDisk {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _has_unmounted = self.server.wait();
    }
}
