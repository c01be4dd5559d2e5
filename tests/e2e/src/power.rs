//! A disk whose power can be cut: a file system of its own that forgets everything which was not synced.

use std::{
    ffi::OsStr,
    io::{Read as _, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::service::wait_until;

/// Waits for a byte and asks the file system to stop at once and to write nothing more, neither data nor its journal: the
/// ioctl `EXT4_IOC_SHUTDOWN` with `EXT4_GOING_FLAGS_NOLOGFLUSH` (2), from the kernel's `fs/ext4/ext4.h`. The kernel's
/// developers test their file systems against power cuts with it.
const CUT: &str = "import fcntl, os, struct, sys\n\
    disk = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)\n\
    os.read(0, 1)\n\
    fcntl.ioctl(disk, 0x8004587d, struct.pack('I', 2))\n\
    os.write(1, b'cut')";

/// Of what is not synced as little as possible survives: data are not written together with the names that lead to them,
/// a replaced file is not written before its name, and the journal is committed only when somebody asks for it.
const STRICT: &str = "loop,data=writeback,noauto_da_alloc,commit=300";

/// An ext4 file system in a file. Making one needs the right to mount.
#[derive(Debug)]
pub struct PowerDisk {
    folder: TempDir,
    /// Cuts the power as soon as it is told to, without the time that a process takes to start.
    switch: Option<Child>,
}

impl PowerDisk {
    /// An empty disk of this size.
    #[track_caller]
    pub fn new(mebibytes: u32) -> Self {
        let mut disk = Self {
            folder: tempfile::tempdir().expect("there is room for temporary files"),
            switch: None,
        };
        std::fs::create_dir(disk.path()).expect("a temporary directory is writable");
        let image = disk.image();
        run(
            "truncate",
            &[
                OsStr::new("-s"),
                OsStr::new(&format!("{mebibytes}M")),
                image.as_os_str(),
            ],
        );
        // The tables of inodes are made now rather than by a thread of the kernel while the tests run.
        let options = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"].map(OsStr::new);
        run("mkfs.ext4", &[options.as_slice(), &[image.as_os_str()]].concat());
        disk.mount();
        disk
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// Cuts the power: from now on every access fails, and what was not synced is lost. A sync that is under way may
    /// nevertheless report success, because this kernel does not look again when it ends: only what was acknowledged
    /// before this call counts.
    #[track_caller]
    pub fn cut(&mut self) {
        let mut switch = self.switch.take().expect("the power is on");
        let (input, output) = (switch.stdin.take(), switch.stdout.take());
        input.expect("it is piped").write_all(b"!").expect("the switch waits");
        let mut said = String::new();
        output
            .expect("it is piped")
            .read_to_string(&mut said)
            .expect("it writes text");
        assert!(said == "cut" && switch.wait().is_ok(), "the power is still on: {said}");
    }

    /// Starts the disk again as it is after a power cut. No process may use it any more.
    #[track_caller]
    pub fn restart(&mut self) {
        wait_until("the disk is not used any more", || {
            let unmounted = Command::new("umount").arg(self.path()).output();
            unmounted.is_ok_and(|output| output.status.success())
        });
        self.mount();
    }

    #[track_caller]
    fn mount(&mut self) {
        let (image, path) = (self.image(), self.path());
        run(
            "mount",
            &[
                OsStr::new("-o"),
                OsStr::new(STRICT),
                image.as_os_str(),
                path.as_os_str(),
            ],
        );
        let switch = Command::new("python3")
            .args([OsStr::new("-c"), OsStr::new(CUT), path.as_os_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        self.switch = Some(switch.expect("Python is there"));
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }
}

impl Drop for PowerDisk {
    fn drop(&mut self) {
        if let Some(mut switch) = self.switch.take() {
            let _may_have_ended = switch.kill().and_then(|()| switch.wait());
        }
        // A process that still uses it keeps it until it ends.
        let _may_be_unmounted = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

#[track_caller]
fn run(program: &str, arguments: &[impl AsRef<OsStr>]) {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} fails (this test needs root): {said}"
    );
}
