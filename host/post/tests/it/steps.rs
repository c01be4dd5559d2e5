//! Checksum files and templates.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use post::{
    Events, Outcome, Runner,
    checksum::{self, line},
    job::{JobId, Run, Start, Step, Tool, ToolRun},
    rename::{Known, RenameTemplate, free_path, rename},
};
use transfer::checksum::Algorithm;

use crate::{
    rig::{Rig, command, files, names, run, run_program},
    zip_writer::{ZipFile, zip},
};

#[test]
fn coreutils_check_what_is_written() {
    let rig = Rig::new();
    let directory = rig.downloads();
    for name in ["a b.iso", "größe.bin", "-c.txt"] {
        fs::write(directory.join(name), name).unwrap();
        for (algorithm, program) in [
            (Algorithm::Md5, "md5sum"),
            (Algorithm::Sha1, "sha1sum"),
            (Algorithm::Sha256, "sha256sum"),
            (Algorithm::Sha512, "sha512sum"),
        ] {
            let written = checksum::write(&directory, &directory.join(name), algorithm, &run("1")).unwrap();
            run_program(&directory, &[program, "--check", "--strict", written.to_str().unwrap()]);
        }
    }
    let odd = directory.join("back\\slash\nline");
    fs::write(&odd, "odd").unwrap();
    let written = checksum::write(&directory, &odd, Algorithm::Sha256, &run("1")).unwrap();
    run_program(
        &directory,
        &["sha256sum", "--check", "--strict", written.to_str().unwrap()],
    );
}

#[test]
fn a_checksum_file_replaces_nothing_and_is_written_once() {
    let rig = Rig::new();
    let file = rig.downloads().join("a.bin");
    fs::write(&file, "abc").unwrap();
    fs::write(rig.downloads().join("a.bin.sha256"), "the server's own").unwrap();
    let first = checksum::write(&rig.downloads(), &file, Algorithm::Sha256, &run("1")).unwrap();
    let again = checksum::write(&rig.downloads(), &file, Algorithm::Sha256, &run("1")).unwrap();
    assert_eq!(first, again);
    assert_eq!(
        fs::read_to_string(rig.downloads().join("a.bin.sha256")).unwrap(),
        "the server's own"
    );
    assert_eq!(names(&rig.downloads()).len(), 3);
    let checksum = "crc32=352441c2".parse().unwrap();
    assert_eq!(line("a.bin", &checksum), "a.bin 352441C2\n");
}

#[test]
fn templates_name_files() {
    let known = Known {
        title: Some("A: title/part".to_owned()),
        host: None,
        date: Some("2026-11-23".to_owned()),
        source: None,
    };
    let path = |template: &str| RenameTemplate::compile(template).unwrap().path("x.tar.gz", &known);
    assert_eq!(path("{title}"), Path::new("A_ title_part.tar.gz"));
    assert_eq!(
        path("{host}/{date}/{name} of {date}"),
        Path::new("2026-11-23/x of 2026-11-23.tar.gz")
    );
    assert_eq!(path("{name}.old.{extension}"), Path::new("x.old.tar.gz"));
    assert_eq!(path("dir/{host}"), Path::new("dir/x.tar.gz"), "an unknown name stays");
    for wrong in ["", "../{name}", "/{name}", "{nome}", "{name", "a/b/c/d/e/f/g/h/i"] {
        assert!(RenameTemplate::compile(wrong).is_err(), "{wrong}");
    }
    let error = RenameTemplate::compile("{nome}").unwrap_err();
    assert!(error.contains("{title}, {host} and {date}"), "{error}");
}

#[test]
fn a_move_can_be_repeated_and_replaces_nothing() {
    let rig = Rig::new();
    let root = rig.downloads();
    fs::write(root.join("a.bin"), "1").unwrap();
    fs::create_dir(root.join("new")).unwrap();
    fs::write(root.join("new/b.bin"), "other").unwrap();
    let to = free_path(&root, Path::new("new/b.bin"));
    assert_eq!(to, root.join("new/b (1).bin"));
    rename(&root, &root.join("a.bin"), &to).unwrap();
    rename(&root, &root.join("a.bin"), &to).unwrap();
    assert_eq!(fs::read_to_string(to).unwrap(), "1");
    fs::write(root.join("a.bin"), "2").unwrap();
    assert!(rename(&root, &root.join("a.bin"), &root.join("new/b.bin")).is_err());
}

#[test]
fn a_checksum_is_neither_of_nor_compared_with_what_is_no_regular_file() {
    let rig = Rig::with("a.bin", b"abc");
    let root = rig.downloads();
    let write = |name: &str, id: &str| checksum::write(&root, &root.join(name), Algorithm::Sha256, &run(id));
    let first = write("a.bin", "1").unwrap();
    // Its content is the same, and the step did not make it.
    fs::rename(first, rig.root.path().join("elsewhere")).unwrap();
    symlink(rig.root.path().join("elsewhere"), root.join("a.bin.sha256")).unwrap();
    let second = write("a.bin", "1").unwrap();
    assert_ne!(second, root.join("a.bin.sha256"));
    fs::remove_file(&second).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &second, rustix::fs::Mode::RWXU).unwrap();
    assert_ne!(write("a.bin", "1").unwrap(), second);
    symlink("/dev/zero", root.join("zero")).unwrap();
    assert!(write("zero", "1").is_err());
    assert!(names(&root).iter().all(|name| !name.starts_with('.')));
}

#[test]
fn two_runs_that_write_a_checksum_do_not_meet() {
    let rig = Rig::with("a.bin", b"abc");
    let root = rig.downloads();
    // Where the other one writes.
    fs::create_dir(root.join(".a.bin.sha256.svcnew")).unwrap();
    fs::create_dir(root.join(".checksum.svcunpack-other")).unwrap();
    let written = checksum::write(&root, &root.join("a.bin"), Algorithm::Sha256, &run("1")).unwrap();
    assert_eq!(written, root.join("a.bin.sha256"));
}

/// No step of these tests needs it.
struct NoTool;

impl Tool for NoTool {
    fn run<'a>(
        &'a self,
        _run: ToolRun<'a>,
        _events: &'a dyn Events,
    ) -> Pin<Box<dyn Future<Output = Result<Outcome, String>> + Send + 'a>> {
        Box::pin(async { Err("there is none".to_owned()) })
    }
}

/// Counts how often a run says that it is about to commit.
#[derive(Default)]
struct Intentions(AtomicUsize);

impl Events for Intentions {
    fn progress(&self, _thousandths: u16) {}

    fn intends(&self, _paths: Vec<PathBuf>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {})
    }
}

/// It cannot be stopped in the middle then.
#[tokio::test]
async fn a_rename_says_that_it_begins_also_when_it_goes_on_after_a_crash() {
    let rig = Rig::with("a.bin", b"1");
    let root = rig.downloads();
    let runner = Runner {
        unpacker: None,
        tool: Arc::new(NoTool),
        salt: "salt".to_owned(),
        max_bytes: u64::MAX,
    };
    let mut start = Start {
        id: JobId(1),
        run: Run(1),
        step: Step::Rename {
            template: "dir/{name}".to_owned(),
        },
        files: vec![root.join("a.bin")],
        interrupted: Vec::new(),
        intended: Vec::new(),
    };
    for times in 1..=2 {
        let (events, known) = (Intentions::default(), Known::default());
        let outcome = runner.run(&start, &root, &known, &events, std::future::pending()).await;
        start.intended = outcome.unwrap().files;
        assert_eq!(start.intended, [root.join("dir/a.bin")]);
        assert_eq!(events.0.load(Ordering::Relaxed), 1, "in run {times}");
    }
}

/// Others may write to the save directory, and put a link where a template or a file leads.
#[tokio::test]
async fn no_step_leaves_the_save_directory_through_a_link_in_it() {
    let rig = Rig::with("a.bin", b"1");
    let (root, victim) = (
        rig.root.path().join("link to downloads"),
        rig.root.path().join("victim"),
    );
    symlink(rig.downloads(), &root).unwrap();
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("b.zip"), zip(&[ZipFile::new("a", "1")])).unwrap();
    symlink(&victim, rig.downloads().join("host")).unwrap();
    let before = files(&victim);
    for to in ["host/a.bin", "host/deep/a.bin"] {
        assert!(rename(&root, &root.join("a.bin"), &root.join(to)).is_err(), "{to}");
    }
    assert!(rename(&root, &root.join("host/b.zip"), &root.join("b.zip")).is_err());
    fs::copy(victim.join("b.zip"), rig.downloads().join("c.zip")).unwrap();
    for (archive, destination) in [("host/b.zip", ""), ("host/b.zip", "host"), ("c.zip", "host")] {
        let mut request = rig.request(archive, &[]);
        request.destination = rig.downloads().join(destination);
        let unpacked = post::unpack(&command(), request, |_| {}, std::future::pending()).await;
        assert!(unpacked.is_err(), "{unpacked:?}");
    }
    assert_eq!(files(&victim), before);
    // The user's own link is followed, and what is missing is made.
    rename(&root, &root.join("a.bin"), &root.join("of host/1/a.bin")).unwrap();
    rename(&root, &root.join("of host/1/a.bin"), &root.join("of host/1/a.bin")).unwrap();
    assert!(rig.downloads().join("of host/1/a.bin").is_file());
}
