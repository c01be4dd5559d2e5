//! Disks that are full or read-only: the cause is named, what is there is kept, and the download goes on once there is
//! room. Needs the right to mount, and fails without it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{Run, Svc};
use support::{Content, Origin, Resource};
use tempfile::TempDir;

/// A small file system of its own.
struct Disk {
    root: TempDir,
}

impl Disk {
    fn mount(size: &str) -> Self {
        let root = tempfile::tempdir().expect("there is room for temporary files");
        let options = format!("size={size}");
        assert!(
            mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], root.path()),
            "this test mounts a small file system, so it must be run as root"
        );
        Self { root }
    }

    fn remount(&self, options: &str) {
        assert!(
            mount(&["-o", &format!("remount,{options}")], self.root.path()),
            "remounting with {options}"
        );
    }

    fn path(&self) -> &Path {
        self.root.path()
    }

    fn file(&self) -> PathBuf {
        self.path().join("f.bin")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(self.path()).status();
        assert!(
            unmounted.is_ok_and(|status| status.success()) || std::thread::panicking(),
            "umount failed"
        );
    }
}

fn mount(arguments: &[&str], path: &Path) -> bool {
    Command::new("mount")
        .args(arguments)
        .arg(path)
        .output()
        .is_ok_and(|output| output.status.success())
}

fn content() -> Content {
    Content::seeded(21, 3 << 20)
}

fn origin() -> Origin {
    Origin::start(vec![
        Resource::new("/f.bin", content()),
        Resource::new("/of-unknown-size.bin", content())
            .with(support::behaviour::ignore_ranges)
            .with(support::behaviour::framing(support::Framing::Close)),
    ])
}

fn get(disk: &Disk, url: &str) -> Run {
    Svc::get(disk.path())
        .args(["--out", "f.bin", "--retries", "2", "--retry-wait", "0.05"])
        .arg(url)
        .run()
}

#[test]
fn a_full_disk_is_named_and_the_download_goes_on_once_there_is_room() {
    let disk = Disk::mount("2m");
    let origin = origin();
    let url = origin.url("/f.bin");
    get(&disk, &url).assert_failure(9, "disk-full");
    assert!(!disk.file().exists());
    disk.remount("size=8m");
    get(&disk, &url).assert_success();
    assert_eq!(content().difference(&disk.file()).unwrap(), None);
}

#[test]
fn a_disk_that_fills_up_under_a_file_of_unknown_size_is_named() {
    let disk = Disk::mount("2m");
    let origin = origin();
    let url = origin.url("/of-unknown-size.bin");
    get(&disk, &url).assert_failure(9, "disk-full");
    assert!(!disk.file().exists());
    disk.remount("size=8m");
    get(&disk, &url).assert_success();
    assert_eq!(content().difference(&disk.file()).unwrap(), None);
}

#[test]
fn a_read_only_disk_is_named_and_the_download_works_once_it_is_writable() {
    let disk = Disk::mount("8m");
    let origin = origin();
    let url = origin.url("/f.bin");
    disk.remount("ro");
    get(&disk, &url).assert_failure(16, "read-only");
    disk.remount("rw");
    get(&disk, &url).assert_success();
    assert_eq!(content().difference(&disk.file()).unwrap(), None);
}

#[test]
fn a_full_disk_leaves_an_older_file_alone() {
    let disk = Disk::mount("2m");
    std::fs::write(disk.file(), b"older").unwrap();
    let origin = origin();
    let run = Svc::get(disk.path())
        .args(["--conflict", "overwrite", "--retries", "1"])
        .arg(origin.url("/f.bin"))
        .run();
    run.assert_failure(9, "disk-full");
    assert_eq!(std::fs::read(disk.file()).unwrap(), b"older");
}
