//! What plugins can do with the files of a download, and what they cannot.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use post::{Outcome, RunId, WorkError, Workspace, sweep};
use transfer::Secret;

use crate::{
    rig::{Rig, command, files, names, run},
    tar_writer::{entry, tar},
    zip_writer::{ZipFile, zip},
};

const OTHER: &str = "other.txt";

impl Rig {
    /// Downloads of one job, beside a file that is none of it.
    fn with_job(files: &[&str]) -> Self {
        let rig = Self::with(OTHER, b"of somebody else");
        for name in files {
            fs::write(rig.downloads().join(name), name).unwrap();
        }
        rig
    }

    fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(|name| self.downloads().join(name)).collect()
    }

    fn open(&self, names: &[&str]) -> Arc<Workspace> {
        self.open_again(names, &[], "job-1", &[]).unwrap()
    }

    fn open_again(
        &self,
        names: &[&str],
        intended: &[PathBuf],
        id: &str,
        interrupted: &[&str],
    ) -> Result<Arc<Workspace>, WorkError> {
        let interrupted: Vec<RunId> = interrupted.iter().map(|id| run(id)).collect();
        let files = self.paths(names);
        Workspace::open((&self.downloads(), &files), intended, run(id), interrupted).map(Arc::new)
    }

    /// What is there, without stages.
    fn visible(&self) -> Vec<String> {
        let names = names(&self.downloads());
        names.into_iter().filter(|name| !name.starts_with('.')).collect()
    }
}

/// Ends a plugin's work well.
fn commit(work: &Workspace) -> Outcome {
    let targets = work.finish();
    work.commit(&targets).unwrap()
}

fn originals(outcome: &Outcome) -> Vec<PathBuf> {
    outcome.originals.iter().map(|original| original.path.clone()).collect()
}

async fn unpack(work: &Arc<Workspace>, name: &str, passwords: &[&str]) -> Result<String, WorkError> {
    let passwords = passwords.iter().map(|text| Secret::new(*text)).collect();
    work.unpack(&command(), name, passwords, |_| {}).await
}

#[test]
fn nothing_but_the_files_of_the_job_is_there() {
    let rig = Rig::with_job(&["a.bin", "b.bin"]);
    let work = rig.open(&["a.bin", "b.bin"]);
    assert_eq!(
        (work.names(), work.main()),
        (vec!["a.bin".into(), "b.bin".into()], "a.bin".into())
    );
    assert_eq!(work.size("a.bin").unwrap(), 5);
    assert_eq!(work.read("a.bin", 2, 100).unwrap(), b"bin");
    assert_eq!(work.read("a.bin", 100, 100).unwrap(), b"");
    assert!(matches!(work.read("a.bin", 0, (8 << 20) + 1), Err(WorkError::Read(_))));
    symlink(rig.downloads().join(OTHER), rig.downloads().join("link")).unwrap();
    let absolute = rig.downloads().join("a.bin").display().to_string();
    let tricks = [
        OTHER,
        "link",
        "",
        ".",
        "..",
        "./a.bin",
        "../downloads/a.bin",
        "a.bin/",
        "/etc/passwd",
        &absolute,
        "a.bin\0",
        "A.BIN",
    ];
    for name in tricks {
        assert!(matches!(work.size(name), Err(WorkError::Unknown(_))), "{name:?}");
        assert!(matches!(work.read(name, 0, 1), Err(WorkError::Unknown(_))), "{name:?}");
        assert!(matches!(work.rename(name, "c"), Err(WorkError::Unknown(_))), "{name:?}");
        assert!(matches!(work.on_disk(name), Err(WorkError::Unknown(_))), "{name:?}");
        assert!(
            matches!(work.remove_archive(name), Err(WorkError::Unknown(_))),
            "{name:?}"
        );
    }
    // A link or a pipe that takes a file's place is not followed or waited for.
    fs::remove_file(rig.downloads().join("a.bin")).unwrap();
    symlink(rig.downloads().join(OTHER), rig.downloads().join("a.bin")).unwrap();
    assert!(work.read("a.bin", 0, 1).is_err());
    fs::remove_file(rig.downloads().join("b.bin")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, rig.downloads().join("b.bin"), rustix::fs::Mode::RWXU).unwrap();
    assert!(work.read("b.bin", 0, 1).is_err());
}

#[test]
fn names_that_lead_elsewhere_or_mean_something_else_are_not_given() {
    let rig = Rig::with_job(&["a.bin"]);
    let work = rig.open(&["a.bin"]);
    let long = "x".repeat(300);
    let tricks = [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "/x",
        "C:x",
        ".hidden",
        ".x.svcunpack-job-2",
        "x.svcpart",
        "x.SvcPart",
        "x.svcpart.journal",
        "con",
        "nul.txt",
        "COM1.txt",
        "x.",
        "x ",
        "a\nb",
        "a\0b",
        "a\u{202e}b",
        "what?",
        &long,
    ];
    for name in tricks {
        assert!(
            matches!(work.write_new(name, b"x"), Err(WorkError::Name(_))),
            "{name:?}"
        );
        assert!(
            matches!(work.rename("a.bin", name), Err(WorkError::Name(_))),
            "{name:?}"
        );
    }
    for name in [OTHER, "a.bin", "A.bin"] {
        assert!(
            matches!(work.write_new(name, b"x"), Err(WorkError::Taken(_))),
            "{name:?}"
        );
    }
    assert!(matches!(work.rename("a.bin", OTHER), Err(WorkError::Taken(_))));
    assert_eq!(names(&rig.downloads()), ["a.bin", OTHER], "not even a hidden directory");
}

#[test]
fn what_is_done_appears_at_the_end_and_replaces_nothing() {
    let rig = Rig::with_job(&["a.bin", "b.bin"]);
    let work = rig.open(&["a.bin", "b.bin"]);
    work.write_new("note.txt", b"new").unwrap();
    work.write_new("second.txt", b"2").unwrap();
    work.rename("second.txt", "two.txt").unwrap();
    work.rename("a.bin", "c.bin").unwrap();
    work.rename("c.bin", "d.bin").unwrap();
    assert_eq!(work.names(), ["d.bin", "b.bin", "note.txt", "two.txt"]);
    assert_eq!(work.read("note.txt", 1, 10).unwrap(), b"ew");
    assert_eq!(work.read("d.bin", 0, 10).unwrap(), b"a.bin");
    assert!(matches!(work.rename("b.bin", "note.txt"), Err(WorkError::Taken(_))));
    assert!(
        matches!(work.write_new("a.bin", b""), Err(WorkError::Taken(_))),
        "until the end"
    );
    assert!(matches!(work.on_disk("note.txt"), Err(WorkError::New(_))));
    assert_eq!(work.on_disk("d.bin").unwrap().as_str(), "a.bin");
    assert_eq!(rig.visible(), ["a.bin", "b.bin", OTHER]);
    // Meanwhile somebody takes a name.
    fs::write(rig.downloads().join("note.txt"), "theirs").unwrap();
    let targets = work.finish();
    assert_eq!(targets, rig.paths(&["d.bin", "b.bin", "note (1).txt", "two.txt"]));
    assert!(matches!(work.write_new("late.txt", b""), Err(WorkError::Ended)));
    let outcome = work.commit(&targets).unwrap();
    assert_eq!(outcome.files, targets);
    assert_eq!(originals(&outcome), Vec::<PathBuf>::new());
    drop(work);
    assert_eq!(sweep(&rig.downloads(), &[]).unwrap().removed, 1);
    assert_eq!(
        names(&rig.downloads()),
        ["b.bin", "d.bin", "note (1).txt", "note.txt", OTHER, "two.txt"]
    );
    let content = |name: &str| fs::read_to_string(rig.downloads().join(name)).unwrap();
    assert_eq!(
        (content("note (1).txt"), content("note.txt")),
        ("new".into(), "theirs".into())
    );
    let mode = fs::metadata(rig.downloads().join("two.txt"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o133, 0, "nothing that is executed, nothing that others write");
}

#[test]
fn of_work_that_failed_nothing_is_left() {
    let rig = Rig::with_job(&["a.bin"]);
    let work = rig.open(&["a.bin"]);
    work.write_new("note.txt", b"new").unwrap();
    work.rename("a.bin", "b.bin").unwrap();
    assert_eq!(sweep(&rig.downloads(), &[]).unwrap().removed, 0, "it is in use");
    drop(work);
    assert_eq!(
        sweep(&rig.downloads(), &[run("job-1")]).unwrap().removed,
        0,
        "until the step has ended"
    );
    assert_eq!(sweep(&rig.downloads(), &[run("job-2")]).unwrap().removed, 1);
    assert_eq!(names(&rig.downloads()), ["a.bin", OTHER]);
}

#[test]
fn new_files_have_limits() {
    let rig = Rig::with_job(&["a.bin"]);
    let work = rig.open(&["a.bin"]);
    let large = vec![0; 32 << 20];
    work.write_new("1", &large).unwrap();
    work.write_new("2", &large).unwrap();
    assert!(matches!(work.write_new("3", b"x"), Err(WorkError::Written)));
    let work = rig.open_again(&["a.bin"], &[], "job-2", &[]).unwrap();
    for number in 0..256 {
        work.write_new(&format!("{number}.txt"), b"").unwrap();
    }
    assert!(matches!(work.write_new("more.txt", b""), Err(WorkError::Written)));
}

#[tokio::test]
async fn an_archive_is_unpacked_and_removed_by_whoever_has_saved_that() {
    let rig = Rig::with_job(&["readme.txt"]);
    let archive = zip(&[ZipFile::new("a", "1"), ZipFile::new("b", "2")]);
    fs::write(rig.downloads().join("set.zip"), archive).unwrap();
    let work = rig.open(&["readme.txt", "set.zip"]);
    assert_eq!(
        (work.archives(), work.main()),
        (vec!["set.zip".into()], "set.zip".into())
    );
    assert!(matches!(work.remove_archive("set.zip"), Err(WorkError::NotUnpacked(_))));
    assert!(matches!(
        unpack(&work, "readme.txt", &[]).await,
        Err(WorkError::NotArchive(_))
    ));
    assert!(matches!(unpack(&work, OTHER, &[]).await, Err(WorkError::Unknown(_))));
    assert!(matches!(
        unpack(&work, "set.zip", &["p"; 101]).await,
        Err(WorkError::Passwords(101))
    ));
    assert_eq!(unpack(&work, "set.zip", &[]).await.unwrap(), "set");
    assert_eq!(unpack(&work, "set.zip", &[]).await.unwrap(), "set", "once");
    assert_eq!(rig.visible(), [OTHER, "readme.txt", "set.zip"], "not before the end");
    // A second name changes nothing of which files are the archive's.
    work.rename("set.zip", "done.zip").unwrap();
    work.remove_archive("done.zip").unwrap();
    let outcome = commit(&work);
    drop(work);
    assert_eq!(outcome.files, rig.paths(&["readme.txt", "set"]));
    assert_eq!(originals(&outcome), rig.paths(&["done.zip"]));
    assert_eq!(
        rig.visible(),
        ["done.zip", OTHER, "readme.txt", "set"],
        "its caller removes it"
    );
    sweep(&rig.downloads(), &[]).unwrap();
    rig.assert_tidy();
    // What was unpacked is what the next plugin works on.
    let work = rig.open_again(&["set"], &[], "job-2", &[]).unwrap();
    assert_eq!(
        (work.names(), work.main()),
        (vec!["a".into(), "b".into()], String::new())
    );
    work.rename("a", "c").unwrap();
    work.write_new("d", b"3").unwrap();
    let outcome = commit(&work);
    assert_eq!(outcome.files, rig.paths(&["set"]));
    drop(work);
    sweep(&rig.downloads().join("set"), &[]).unwrap();
    assert_eq!(names(&rig.downloads().join("set")), ["b", "c", "d"]);
}

#[tokio::test]
async fn volumes_of_others_are_not_read() {
    let rig = Rig::new();
    let first = include_bytes!("../data/set.part1.rar");
    let second = include_bytes!("../data/set.part2.rar");
    fs::write(rig.downloads().join("set.part1.rar"), first).unwrap();
    fs::write(rig.downloads().join("set.part2.rar"), second).unwrap();
    let work = rig.open(&["set.part1.rar"]);
    let refused = unpack(&work, "set.part1.rar", &["secret"]).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(rig.visible(), ["set.part1.rar", "set.part2.rar"]);
    let work = rig
        .open_again(&["set.part1.rar", "set.part2.rar"], &[], "job-2", &[])
        .unwrap();
    assert_eq!(work.archives(), ["set.part1.rar"]);
    unpack(&work, "set.part1.rar", &["secret"]).await.unwrap();
    work.remove_archive("set.part1.rar").unwrap();
    let outcome = commit(&work);
    assert_eq!(originals(&outcome), rig.paths(&["set.part1.rar", "set.part2.rar"]));
}

#[tokio::test]
async fn a_crash_in_the_commit_is_continued_by_the_next_run() {
    let rig = Rig::with_job(&["a.bin"]);
    let set = [entry("set/text", b'0', "1")];
    fs::write(rig.downloads().join("set.tar"), tar(&set)).unwrap();
    let work = rig.open(&["a.bin", "set.tar"]);
    unpack(&work, "set.tar", &[]).await.unwrap();
    work.write_new("note.txt", b"new").unwrap();
    work.rename("a.bin", "my a.bin").unwrap();
    work.rename("set.tar", "done.tar").unwrap();
    let targets = work.finish();
    work.commit(&targets).unwrap();
    drop(work);
    assert_eq!(rig.visible(), ["done.tar", "my a.bin", "note.txt", OTHER, "set"]);
    // The run was interrupted before its result was saved: what it left is kept for the next one.
    assert_eq!(sweep(&rig.downloads(), &[run("job-1")]).unwrap().removed, 0);
    let files_of_job = ["a.bin", "set.tar"];
    let work = rig.open_again(&files_of_job, &targets, "job-2", &["job-1"]).unwrap();
    assert_eq!(work.names(), ["a.bin", "set.tar"], "the plugin begins again");
    assert_eq!(unpack(&work, "set.tar", &[]).await.unwrap(), "set");
    work.write_new("note.txt", b"new").unwrap();
    work.rename("a.bin", "my a.bin").unwrap();
    let outcome = commit(&work);
    drop(work);
    assert_eq!(outcome.files, rig.paths(&["my a.bin", "note.txt", "set"]));
    sweep(&rig.downloads(), &[]).unwrap();
    assert_eq!(
        names(&rig.downloads()),
        ["my a.bin", "note.txt", OTHER, "set", "set.tar"]
    );
    assert_eq!(files(&rig.downloads().join("set")).len(), 1);
}

#[tokio::test]
async fn what_an_interrupted_commit_let_appear_counts_only_if_the_next_one_succeeds() {
    let rig = Rig::with_job(&[]);
    fs::write(rig.downloads().join("set.tar"), tar(&[entry("set/text", b'0', "1")])).unwrap();
    let work = rig.open(&["set.tar"]);
    unpack(&work, "set.tar", &[]).await.unwrap();
    let targets = work.finish();
    work.commit(&targets).unwrap();
    drop(work);
    assert_eq!(rig.visible(), [OTHER, "set", "set.tar"]);
    // The next run fails after it has found that.
    let work = rig.open_again(&["set.tar"], &targets, "job-2", &["job-1"]).unwrap();
    assert_eq!(unpack(&work, "set.tar", &[]).await.unwrap(), "set");
    drop(work);
    sweep(&rig.downloads(), &[]).unwrap();
    assert_eq!(names(&rig.downloads()), [OTHER, "set.tar"]);
}

#[tokio::test]
async fn what_took_the_name_of_a_directory_that_had_appeared_is_not_touched() {
    let rig = Rig::with_job(&[]);
    fs::write(rig.downloads().join("set.tar"), tar(&[entry("set/text", b'0', "1")])).unwrap();
    let work = rig.open(&["set.tar"]);
    unpack(&work, "set.tar", &[]).await.unwrap();
    work.commit(&work.finish()).unwrap();
    drop(work);
    fs::rename(rig.downloads().join("set"), rig.downloads().join("mine")).unwrap();
    fs::create_dir(rig.downloads().join("set")).unwrap();
    fs::write(rig.downloads().join("set/thesis"), "years").unwrap();
    let work = rig.open_again(&["set.tar"], &[], "job-2", &["job-1"]).unwrap();
    unpack(&work, "set.tar", &[]).await.unwrap();
    assert!(rig.downloads().join("set/thesis").exists());
    let outcome = commit(&work);
    drop(work);
    assert_eq!(outcome.files, rig.paths(&["set (1)"]));
    sweep(&rig.downloads(), &[]).unwrap();
    assert_eq!(names(&rig.downloads()), ["mine", OTHER, "set", "set (1)", "set.tar"]);
    assert!(rig.downloads().join("set/thesis").exists());
}

#[test]
fn files_are_found_after_two_crashes_with_other_intentions() {
    let rig = Rig::with_job(&["a.bin"]);
    let work = rig.open(&["a.bin"]);
    work.rename("a.bin", "b.bin").unwrap();
    let first = work.finish();
    work.commit(&first).unwrap();
    drop(work);
    let work = rig.open_again(&["a.bin"], &first, "job-2", &["job-1"]).unwrap();
    work.rename("a.bin", "c.bin").unwrap();
    let second = work.finish();
    // The service ends before that is done.
    drop(work);
    let work = rig
        .open_again(&["a.bin"], &second, "job-3", &["job-1", "job-2"])
        .unwrap();
    assert_eq!(work.names(), ["a.bin"]);
    assert_eq!(rig.visible(), ["a.bin", OTHER]);
}

#[test]
fn files_in_a_directory_that_is_a_link_of_others_are_refused() {
    let rig = Rig::with_job(&["a.bin"]);
    let victim = rig.root.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("x"), "").unwrap();
    symlink(&victim, rig.downloads().join("host")).unwrap();
    assert!(rig.open_again(&["host/x"], &[], "job-1", &[]).is_err());
}

#[test]
fn files_that_are_gone_apart_or_none_are_refused() {
    let rig = Rig::with_job(&["a.bin", ".hidden"]);
    fs::create_dir(rig.downloads().join("directory")).unwrap();
    symlink(OTHER, rig.downloads().join("link")).unwrap();
    let refused = |names: &[&str]| rig.open_again(names, &[], "job-1", &[]).unwrap_err();
    assert!(matches!(refused(&["none"]), WorkError::Gone(_)));
    fs::write(rig.downloads().join("directory/x"), "").unwrap();
    assert!(matches!(refused(&["a.bin", "directory/x"]), WorkError::Apart));
    assert!(matches!(refused(&["a.bin", "directory"]), WorkError::NotFile(_)));
    assert!(matches!(refused(&["link"]), WorkError::NotFile(_)));
    assert!(matches!(refused(&[".hidden"]), WorkError::Unsafe(_)));
    // Links and hidden files of a directory are not seen.
    symlink(rig.downloads().join(OTHER), rig.downloads().join("directory/link")).unwrap();
    fs::write(Path::new(&rig.downloads()).join("directory/.y"), "").unwrap();
    assert_eq!(rig.open(&["directory"]).names(), ["x"]);
}

#[tokio::test]
async fn a_commit_that_fails_in_its_middle_takes_everything_back() {
    let rig = Rig::with_job(&["a.bin", "b.bin"]);
    fs::write(rig.downloads().join("set.tar"), tar(&[entry("set/text", b'0', "1")])).unwrap();
    let job = ["a.bin", "b.bin", "set.tar"];
    let work = rig.open(&job);
    unpack(&work, "set.tar", &[]).await.unwrap();
    work.write_new("note.txt", b"new").unwrap();
    work.rename("a.bin", "c.bin").unwrap();
    work.rename("b.bin", "d.bin").unwrap();
    let targets = work.finish();
    // The last thing that is to be renamed meets a file of somebody else.
    fs::write(rig.downloads().join("d.bin"), "theirs").unwrap();
    assert!(matches!(work.commit(&targets), Err(WorkError::File(_))));
    drop(work);
    sweep(&rig.downloads(), &[]).unwrap();
    assert_eq!(
        names(&rig.downloads()),
        ["a.bin", "b.bin", "d.bin", OTHER, "set.tar"],
        "as if the plugin had not been called"
    );
    // The step is tried again.
    let work = rig.open_again(&job, &targets, "job-2", &[]).unwrap();
    unpack(&work, "set.tar", &[]).await.unwrap();
    work.write_new("note.txt", b"new").unwrap();
    let outcome = commit(&work);
    drop(work);
    assert_eq!(outcome.files, rig.paths(&["a.bin", "b.bin", "note.txt", "set"]));
    sweep(&rig.downloads(), &[]).unwrap();
    assert_eq!(
        names(&rig.downloads()),
        ["a.bin", "b.bin", "d.bin", "note.txt", OTHER, "set", "set.tar"]
    );
}

#[test]
fn new_files_are_not_written_to_what_takes_the_place_of_their_directory() {
    let rig = Rig::with_job(&["a.bin"]);
    let victim = rig.root.path().join("victim");
    fs::create_dir_all(victim.join("new")).unwrap();
    let work = rig.open(&["a.bin"]);
    work.write_new("1.txt", b"1").unwrap();
    let scratch = work.scratch().unwrap();
    rig.replace_stages(&victim);
    work.write_new("2.txt", b"2").unwrap();
    work.rename("1.txt", "one.txt").unwrap();
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    rustix::fs::openat(scratch.fd(), "made", flags, rustix::fs::Mode::RUSR).unwrap();
    work.adopt(&scratch, "made", "3.txt").unwrap();
    assert_eq!(work.read("2.txt", 0, 9).unwrap(), b"2");
    let outcome = commit(&work);
    drop((work, scratch));
    assert_eq!(outcome.files, rig.paths(&["a.bin", "one.txt", "2.txt", "3.txt"]));
    assert_eq!(files(&victim).len(), 1, "nothing but its own directory");
    assert!(outcome.files.iter().all(|file| file.exists()));
    sweep(&rig.downloads(), &[]).unwrap();
    assert_eq!(files(&victim).len(), 1);
}

#[test]
fn a_new_file_of_an_interrupted_run_is_found_and_a_taken_name_is_numbered() {
    let rig = Rig::with_job(&["v.mp4", "a.m4a", "v.mkv"]);
    let work = rig.open(&["v.mp4", "a.m4a"]);
    let wanted = transfer::FileName::sanitise("v.mkv");
    let name = work.free_name(&wanted).unwrap();
    assert_eq!(name.as_str(), "v (1).mkv");
    work.write_new(name.as_str(), b"both").unwrap();
    let targets = work.finish();
    assert_eq!(work.made(), None);
    work.commit(&targets).unwrap();
    drop(work);
    // The service ended before it saved that.
    let work = rig
        .open_again(&["v.mp4", "a.m4a"], &targets, "job-2", &["job-1"])
        .unwrap();
    assert_eq!(work.made(), Some(rig.downloads().join("v (1).mkv").as_path()));
    fs::remove_file(rig.downloads().join("v (1).mkv")).unwrap();
    assert_eq!(work.made(), None);
}
