use std::{
    cell::RefCell,
    fs::{self, OpenOptions},
    io::Read as _,
    path::Path,
    time::SystemTime,
};

use futures_util::FutureExt as _;

use super::*;
use crate::{
    failure::{Failure, FailureKind},
    file_name::FileName,
    range_set::{ByteRange, RangeSet},
};

struct TestDir {
    directory: tempfile::TempDir,
    name: FileName,
}

impl TestDir {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            name: FileName::sanitise("file.bin"),
        }
    }

    fn claim(&self, on_conflict: OnConflict, adopt: bool) -> Result<Claimed, Failure> {
        self.claim_as("source", on_conflict, adopt)
    }

    fn claim_as(&self, source: &str, on_conflict: OnConflict, adopt: bool) -> Result<Claimed, Failure> {
        self.claim_announcing(source, on_conflict, adopt, |_| Recorded::Done)
    }

    fn claim_announcing(
        &self,
        source: &str,
        on_conflict: OnConflict,
        adopt: bool,
        announce: impl Fn(&Path) -> Recorded,
    ) -> Result<Claimed, Failure> {
        let claim = Claim {
            directory: self.path(),
            name: &self.name,
            on_conflict,
            source,
            adopt,
        };
        at_once(PartFile::claim(&claim, async |path| Ok(announce(path))))
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// The result of a future that is ready at once.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("nothing is waited for")
}

fn new(claimed: Result<Claimed, Failure>) -> PartFile {
    match claimed {
        Ok(Claimed::New(part)) => part,
        other => panic!("expected a new part file, got {other:?}"),
    }
}

fn origin() -> Origin {
    Origin {
        source: "source".into(),
        total_bytes: Some(8),
        ..Origin::default()
    }
}

#[test]
fn a_finished_file_has_its_name_and_nothing_else_stays() {
    let dir = TestDir::new();
    let part = new(dir.claim(OnConflict::Rename, false));
    part.begin_journal(&origin()).unwrap();
    part.write_at(b"efgh", 4).unwrap();
    part.write_at(b"abcd", 0).unwrap();
    assert_eq!(dir.names(), ["file.bin.svcpart", "file.bin.svcpart.journal"]);
    let path = part.finish(8, Some(SystemTime::UNIX_EPOCH), |_| Ok(())).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"abcdefgh");
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), SystemTime::UNIX_EPOCH);
    assert_eq!(dir.names(), ["file.bin"]);
}

#[test]
fn a_name_is_taken_in_any_case() {
    let dir = TestDir::new();
    fs::write(dir.path().join("FILE.BIN"), "theirs").unwrap();
    let part = new(dir.claim(OnConflict::Rename, false));
    assert_eq!(part.final_path(), dir.path().join("file (1).bin"));
}

#[test]
fn overwrite_replaces_a_file_only_at_the_end_and_never_a_directory() {
    let dir = TestDir::new();
    let target = dir.path().join("file.bin");
    fs::write(&target, "old").unwrap();
    let part = new(dir.claim(OnConflict::Overwrite, false));
    part.write_at(b"new", 0).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"old");
    assert_eq!(part.finish(3, None, |_| Ok(())).unwrap(), target);
    assert_eq!(fs::read(&target).unwrap(), b"new");

    fs::remove_file(&target).unwrap();
    fs::create_dir(&target).unwrap();
    assert_eq!(
        new(dir.claim(OnConflict::Overwrite, false)).final_path(),
        dir.path().join("file (1).bin")
    );
}

#[test]
fn skip_leaves_what_is_there() {
    let dir = TestDir::new();
    fs::write(dir.path().join("file.bin"), "theirs").unwrap();
    assert!(matches!(dir.claim(OnConflict::Skip, false), Ok(Claimed::Exists(path)) if path.ends_with("file.bin")));
}

#[test]
fn a_file_that_appears_meanwhile_is_not_replaced() {
    let dir = TestDir::new();
    let part = new(dir.claim(OnConflict::Rename, false));
    fs::write(dir.path().join("file.bin"), "theirs").unwrap();
    let path = part.finish(0, None, |_| Ok(())).unwrap();
    assert_eq!(path, dir.path().join("file (1).bin"));
    assert_eq!(fs::read(dir.path().join("file.bin")).unwrap(), b"theirs");
}

#[test]
fn two_claims_never_share_a_part_file() {
    let dir = TestDir::new();
    let one = new(dir.claim(OnConflict::Rename, true));
    let two = new(dir.claim(OnConflict::Rename, true));
    assert_ne!(one.path(), two.path());
    let refused = dir.claim(OnConflict::Overwrite, true).unwrap_err();
    assert_eq!(refused.kind, FailureKind::InUse);
    if cfg!(target_os = "linux") {
        assert!(refused.message.contains(&std::process::id().to_string()), "{refused}");
    }
}

#[test]
fn what_was_recorded_is_there_for_the_same_source_only() {
    let dir = TestDir::new();
    let part = new(dir.claim(OnConflict::Rename, true));
    part.begin_journal(&origin()).unwrap();
    part.write_at(b"abcd", 0).unwrap();
    part.record(ByteRange::new(0, 4)).unwrap();
    drop(part);

    let stranger = new(dir.claim_as("other", OnConflict::Rename, true));
    assert_eq!(stranger.final_path(), dir.path().join("file (1).bin"));
    let careful = new(dir.claim(OnConflict::Rename, false));
    assert_eq!(careful.final_path(), dir.path().join("file (2).bin"));
    match dir.claim(OnConflict::Rename, true) {
        Ok(Claimed::Begun(part, begun)) => {
            assert_eq!(begun.done.len(), 4);
            let mut bytes = [0; 4];
            part.read_at(&mut bytes, 0).unwrap();
            assert_eq!(&bytes, b"abcd");
        }
        other => panic!("expected what was begun, got {other:?}"),
    }
}

#[test]
fn bytes_past_the_end_of_a_cut_part_file_are_not_believed() {
    let dir = TestDir::new();
    let part = new(dir.claim(OnConflict::Rename, true));
    part.begin_journal(&origin()).unwrap();
    part.write_at(b"abcdefgh", 0).unwrap();
    part.record(ByteRange::new(0, 8)).unwrap();
    let path = part.path().to_owned();
    drop(part);
    OpenOptions::new().write(true).open(path).unwrap().set_len(3).unwrap();
    assert!(matches!(dir.claim(OnConflict::Rename, true), Ok(Claimed::Begun(_, begun)) if begun.done.len() == 3));
}

#[test]
fn a_name_is_announced_before_anything_is_made_for_it() {
    let dir = TestDir::new();
    let other = new(dir.claim(OnConflict::Rename, false));
    let announced = RefCell::new(Vec::new());
    let claimed = dir.claim_announcing("source", OnConflict::Rename, false, |path| {
        assert_eq!(dir.names(), ["file.bin.svcpart"], "nothing is made yet");
        announced.borrow_mut().push(path.to_owned());
        if announced.borrow().len() == 1 {
            Recorded::Taken
        } else {
            Recorded::Done
        }
    });
    let path = new(claimed).final_path();
    let numbered = |number| dir.path().join(dir.name.numbered(number).as_str());
    assert_eq!(
        path,
        numbered(2),
        "a name that is somebody's without a file is passed over"
    );
    assert_eq!(announced.into_inner(), [numbered(1), numbered(2)]);
    drop(other);
}

#[test]
fn a_name_that_is_taken_while_it_is_announced_is_not_shared() {
    let dir = TestDir::new();
    let other = RefCell::new(None);
    let claimed = dir.claim_announcing("source", OnConflict::Rename, false, |_| {
        let mut other = other.borrow_mut();
        other.get_or_insert_with(|| new(dir.claim(OnConflict::Rename, false)));
        Recorded::Done
    });
    assert_eq!(new(claimed).final_path(), dir.path().join("file (1).bin"));
}

#[test]
fn a_landing_is_announced_before_it_happens_and_known_when_it_has() {
    let dir = TestDir::new();
    let part = new(dir.claim(OnConflict::Rename, false));
    part.write_at(b"abc", 0).unwrap();
    fs::write(dir.path().join("file.bin"), "abc").unwrap();
    let announced = RefCell::new(Vec::new());
    let path = part.finish(3, None, |landing| {
        assert!(!landing.has_happened(), "{landing:?}");
        announced.borrow_mut().push(landing);
        Ok(())
    });
    let [first, second] = announced.into_inner().try_into().unwrap();
    assert_eq!((&path.unwrap(), second.has_happened()), (&second.path, true));
    assert!(!first.has_happened(), "another file of the name is not it");
}

#[test]
fn nothing_gets_its_name_that_could_not_be_announced() {
    let dir = TestDir::new();
    let part = new(dir.claim(OnConflict::Rename, false));
    let refused = || Failure::new(FailureKind::DiskIo, "no record");
    assert_eq!(part.finish(0, None, |_| Err(refused())), Err(refused()));
    assert_eq!(dir.names(), ["file.bin.svcpart"]);
}

#[cfg(unix)]
#[test]
fn a_link_in_the_way_is_not_followed() {
    let dir = TestDir::new();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, dir.path().join("file.bin.svcpart")).unwrap();
    let part = new(dir.claim(OnConflict::Rename, true));
    part.write_at(b"x", 0).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let dir = TestDir::new();
    fs::write(dir.path().join("plain"), "").unwrap();
    let directory = dir.path().join("plain/below");
    let claim = Claim {
        directory: &directory,
        name: &dir.name,
        on_conflict: OnConflict::Rename,
        source: "source",
        adopt: false,
    };
    let failure = at_once(PartFile::claim(&claim, async |_| Ok(Recorded::Done))).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Directory);
    assert!(failure.message.contains("plain/below"), "{failure}");
}

/// A complete part file of eight bytes and its journal, as an earlier run leaves them.
fn leave_complete(dir: &TestDir) {
    let part = new(dir.claim(OnConflict::Rename, true));
    part.begin_journal(&origin()).unwrap();
    part.write_at(b"abcdefgh", 0).unwrap();
    part.record(ByteRange::new(0, 8)).unwrap();
    part.sync().unwrap();
}

fn find(dir: &TestDir) -> Option<(PartFile, Begun)> {
    PartFile::find_begun(&Claim {
        directory: dir.path(),
        name: &dir.name,
        on_conflict: OnConflict::Rename,
        source: "source",
        adopt: true,
    })
    .unwrap()
}

#[cfg(unix)]
mod planted {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    type Harm = (&'static str, fn(&Path));

    /// What a link or loose permissions can do to a file.
    const HARMS: &[Harm] = &[
        ("writable by others", |path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("with a second name", |path| {
            fs::hard_link(path, path.with_file_name("second")).unwrap();
        }),
        ("a link", |path| {
            let real = path.with_file_name("real");
            fs::rename(path, &real).unwrap();
            symlink(&real, path).unwrap();
        }),
        ("a pipe", |path| {
            fs::remove_file(path).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        }),
    ];

    /// What only root can do: `tests/as-ordinary-user` leaves these out by their name.
    mod needs_root {
        use super::*;

        const GIVEN_AWAY: &[Harm] = &[("another user's", |path| {
            chown(path, Some(12345), None).expect("this test gives a file away, so it must be run as root");
        })];

        #[test]
        fn a_part_file_of_another_user_is_not_adopted() {
            adopts_no_part_file(GIVEN_AWAY);
        }

        #[test]
        fn a_journal_of_another_user_is_no_journal() {
            believes_no_journal(GIVEN_AWAY);
        }

        #[test]
        fn a_reserved_part_file_of_another_user_does_not_go_on() {
            continues_no_reserved_part_file(GIVEN_AWAY);
        }
    }

    #[test]
    fn only_an_ordinary_part_file_of_ours_is_adopted() {
        adopts_no_part_file(HARMS);
    }

    fn adopts_no_part_file(harms: &[Harm]) {
        for (what, harm) in harms {
            let dir = TestDir::new();
            leave_complete(&dir);
            harm(&dir.path().join("file.bin.svcpart"));
            assert!(find(&dir).is_none(), "{what}");
            let part = new(dir.claim(OnConflict::Rename, true));
            assert_eq!(part.final_path(), dir.path().join("file (1).bin"), "{what}");
        }
    }

    #[test]
    fn a_journal_that_is_not_surely_ours_is_no_journal() {
        believes_no_journal(HARMS);
    }

    fn believes_no_journal(harms: &[Harm]) {
        for (what, harm) in harms {
            let dir = TestDir::new();
            leave_complete(&dir);
            harm(&dir.path().join("file.bin.svcpart.journal"));
            assert!(find(&dir).is_none(), "{what}");
            let part = new(dir.claim(OnConflict::Rename, true));
            let mut bytes = Vec::new();
            part.reader().read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, b"", "{what}: nothing is believed of it");
            part.begin_journal(&origin()).unwrap();
            let real = dir.path().join("real");
            assert!(
                !real.exists() || fs::read(real).unwrap().starts_with(b"SVCJ1"),
                "{what}"
            );
        }
    }

    #[test]
    fn a_reserved_part_file_goes_on_unless_a_stranger_put_it_there() {
        continues_no_reserved_part_file(HARMS);
    }

    fn continues_no_reserved_part_file(harms: &[Harm]) {
        for (what, harm) in harms {
            let dir = TestDir::new();
            leave_complete(&dir);
            harm(&dir.path().join("file.bin.svcpart"));
            let claim = Claim {
                directory: dir.path(),
                name: &dir.name,
                on_conflict: OnConflict::Rename,
                source: "source",
                adopt: false,
            };
            let path = dir.path().join("file.bin");
            let claimed = at_once(PartFile::reclaim(&path, &claim, async |_| Ok(Recorded::Done)));
            if *what == "writable by others" {
                assert!(
                    matches!(claimed, Ok(Claimed::Begun(_, begun)) if begun.done.len() == 8),
                    "{what}"
                );
            } else {
                assert_eq!(new(claimed).final_path(), dir.path().join("file (1).bin"), "{what}");
            }
        }
    }

    #[test]
    fn a_journal_that_cannot_be_removed_costs_the_name_and_not_the_download() {
        let dir = TestDir::new();
        fs::create_dir(dir.path().join("file.bin.svcpart.journal")).unwrap();
        let part = new(dir.claim(OnConflict::Rename, true));
        assert_eq!(part.final_path(), dir.path().join("file (1).bin"));
        assert_eq!(dir.names(), ["file (1).bin.svcpart", "file.bin.svcpart.journal"]);
    }

    #[test]
    fn only_its_owner_writes_a_part_file_and_the_file_is_an_ordinary_one() {
        let dir = TestDir::new();
        let part = new(dir.claim(OnConflict::Rename, true));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(part.path()) & 0o022, 0);
        let path = part.finish(0, None, |_| Ok(())).unwrap();
        let ordinary = dir.path().join("ordinary");
        fs::write(&ordinary, "").unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!(mode(&path), mode(&ordinary));
        }
    }
}

#[test]
fn a_part_file_that_is_complete_is_found_again() {
    let dir = TestDir::new();
    leave_complete(&dir);
    assert!(find(&dir).is_some_and(|(_, begun)| begun.done.len() == 8));
}

/// A file of the user, taken as the beginning of a download and appended to.
fn lend(on_conflict: OnConflict) -> (TestDir, PartFile) {
    let dir = TestDir::new();
    let path = dir.path().join("file.bin");
    fs::write(&path, "mine").unwrap();
    let origin = Origin {
        total_bytes: None,
        lent_bytes: Some(4),
        ..origin()
    };
    PartFile::take_over(&path, &origin, &[ByteRange::new(0, 4)].into_iter().collect()).unwrap();
    assert_eq!(dir.names(), ["file.bin.svcpart", "file.bin.svcpart.journal"]);
    // The run that took it was killed: the next one knows as much.
    for _ in 0..2 {
        let (part, begun) = find(&dir).unwrap();
        part.rewrite_journal(&begun.origin, &begun.done, &RangeSet::new())
            .unwrap();
    }
    let Ok(Claimed::Begun(part, _)) = dir.claim(on_conflict, true) else {
        panic!("it is continued")
    };
    part.write_at(b"more", 4).unwrap();
    (dir, part)
}

fn read(dir: &TestDir, name: &str) -> String {
    fs::read_to_string(dir.path().join(name)).unwrap()
}

#[test]
fn a_file_of_the_user_that_is_not_continued_stays_and_the_download_goes_beside_it() {
    let (dir, part) = lend(OnConflict::Rename);
    part.start_over().unwrap();
    assert_eq!(dir.names(), ["file.bin", "file.bin.svcpart"]);
    part.begin_journal(&origin()).unwrap();
    part.write_at(b"xx", 0).unwrap();
    part.start_over().unwrap();
    part.write_at(b"other", 0).unwrap();
    let path = part.finish(5, None, |_| Ok(())).unwrap();
    assert_eq!(path, dir.path().join("file (1).bin"));
    assert_eq!(dir.names(), ["file (1).bin", "file.bin"]);
    assert_eq!(read(&dir, "file.bin"), "mine");
    assert_eq!(read(&dir, "file (1).bin"), "other");
}

#[test]
fn a_file_of_the_user_is_replaced_only_if_that_is_allowed_and_only_by_a_complete_one() {
    let (dir, part) = lend(OnConflict::Rename);
    part.replace_lent();
    part.start_over().unwrap();
    assert_eq!(read(&dir, "file.bin"), "mine");
    part.write_at(b"other", 0).unwrap();
    part.finish(5, None, |_| Ok(())).unwrap();
    assert_eq!(
        (dir.names(), read(&dir, "file.bin")),
        (vec!["file.bin".to_owned()], "other".to_owned())
    );
}

#[test]
fn a_download_that_may_have_no_other_name_ends_and_the_file_of_the_user_stays() {
    let (dir, part) = lend(OnConflict::Skip);
    let failure = part.start_over().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Exists, "{failure}");
    assert_eq!(
        (dir.names(), read(&dir, "file.bin")),
        (vec!["file.bin".to_owned()], "mine".to_owned())
    );
    let (dir, part) = lend(OnConflict::Rename);
    part.discard();
    assert_eq!(
        (dir.names(), read(&dir, "file.bin")),
        (vec!["file.bin".to_owned()], "mine".to_owned())
    );
}
