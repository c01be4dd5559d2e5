//! The end of a process in the middle of the work.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use confined::OwnCommand;
use post::{Reason, UnpackError, recover, sweep};

use crate::{
    rig::{MIB, Rig, command, files, names, run},
    tar_writer::{entry, tar},
    zip_writer::{ZipFile, zip},
};

/// An archive that takes a while: many files, some of them large.
fn large() -> Vec<u8> {
    let large = (0..8_u8).map(|n| entry(&format!("set/large {n}"), b'0', vec![n; 4 * MIB as usize]));
    let small = (0..3000).map(|n| entry(&format!("set/{}/{n}", n % 50), b'0', format!("{n}")));
    tar(&large.chain(small).collect::<Vec<_>>())
}

/// A script that runs the unpacker so that the test can end it.
fn through(rig: &Rig, script: &str) -> OwnCommand {
    let path = rig.root.path().join("through");
    let program = command().program;
    fs::write(
        &path,
        format!("#!/bin/sh\n{}\n", script.replace("{}", program.to_str().unwrap())),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    OwnCommand {
        program: path,
        args: Vec::new(),
    }
}

#[tokio::test]
async fn a_killed_unpacker_leaves_nothing_visible() {
    for delay in ["0.01", "0.05", "0.1", "0.2"] {
        let rig = Rig::with("a.tar", &large());
        let script = format!("exec 3<&0; {{}} <&3 & pid=$!\nsleep {delay}; kill -9 $pid; wait $pid");
        let request = rig.request("a.tar", &[]);
        let result = post::unpack(&through(&rig, &script), request, |_| {}, std::future::pending()).await;
        match result {
            Ok(unpacked) => assert_eq!(files(&rig.downloads().join(unpacked.placed.name)).len(), 3058),
            Err(UnpackError::Died { .. }) => assert_eq!(names(&rig.downloads()), ["a.tar"]),
            Err(error) => panic!("{error}"),
        }
    }
}

/// The service itself is killed: its unpacker and its stage are left.
#[tokio::test]
async fn what_a_killed_service_leaves_is_swept_when_the_unpacker_has_ended() {
    let rig = Rig::with("a.tar", &large());
    let request = rig.request("a.tar", &[]);
    let stage = rig
        .downloads()
        .join(format!(".a.svcunpack-{}", String::from(request.run.clone())));
    let (program, started) = (command(), std::time::Instant::now());
    {
        // Dropped in the middle, without the cleanup that follows an end.
        let work = post::unpack(&program, request, |_| {}, std::future::pending());
        let _ = tokio::time::timeout(Duration::from_millis(60), work).await;
    }
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(stage.exists(), "it was in the middle");
    let visible: Vec<_> = names(&rig.downloads())
        .into_iter()
        .filter(|name| !name.starts_with('.'))
        .collect();
    assert_eq!(visible, ["a.tar"]);
    for _ in 0..200 {
        if sweep(&rig.downloads(), &[]).unwrap().removed == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(names(&rig.downloads()), ["a.tar"]);
}

#[tokio::test]
async fn a_cancelled_unpacking_leaves_nothing() {
    let rig = Rig::with("a.tar", &large());
    let request = rig.request("a.tar", &[]);
    let cancelled = tokio::time::sleep(Duration::from_millis(40));
    let result = post::unpack(&command(), request, |_| {}, cancelled).await;
    assert!(matches!(result, Err(UnpackError::Cancelled)), "{result:?}");
    assert_eq!(names(&rig.downloads()), ["a.tar"]);
}

/// A stage as a crash leaves it after everything was unpacked and synced.
fn complete_stage(rig: &Rig, id: &str) -> std::path::PathBuf {
    let stage = rig.downloads().join(format!(".a.svcunpack-{id}"));
    fs::create_dir_all(stage.join("payload-0/set")).unwrap();
    fs::set_permissions(&stage, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(stage.join("payload-0/set/file"), "content").unwrap();
    let placed = r#"{"name":"set","files":1,"bytes":7}"#;
    let marker = format!(
        r#"{{"format":"svcunpack 1","run":"{id}","complete":{{"payload":"payload-0/set","placed":{placed}}}}}"#
    );
    fs::write(stage.join("svcunpack.json"), marker).unwrap();
    stage
}

#[test]
fn a_crash_before_and_after_the_rename_is_continued() {
    let rig = Rig::new();
    complete_stage(&rig, "one");
    assert_eq!(recover(&rig.downloads(), &run("other")).unwrap(), None);
    let placed = recover(&rig.downloads(), &run("one")).unwrap().unwrap();
    let placed = placed.placed;
    assert_eq!((placed.name.as_str(), placed.files, placed.bytes), ("set", 1, 7));
    assert_eq!(
        recover(&rig.downloads(), &run("one")).unwrap().unwrap().placed,
        placed,
        "until it is swept"
    );
    assert_eq!(sweep(&rig.downloads(), &[]).unwrap().removed, 1);
    assert_eq!(names(&rig.downloads()), ["set"]);
    // Meanwhile the name was taken.
    complete_stage(&rig, "two");
    assert_eq!(
        recover(&rig.downloads(), &run("two")).unwrap().unwrap().placed.name,
        "set (1)"
    );
    sweep(&rig.downloads(), &[]).unwrap();
    // The rename was the last thing that happened.
    let stage = complete_stage(&rig, "three");
    fs::remove_dir_all(stage.join("payload-0/set")).unwrap();
    assert_eq!(
        recover(&rig.downloads(), &run("three")).unwrap().unwrap().placed.name,
        "set"
    );
    sweep(&rig.downloads(), &[]).unwrap();
    assert_eq!(names(&rig.downloads()), ["set", "set (1)"]);
}

#[test]
fn a_stage_is_found_among_others_that_end_like_it() {
    let rig = Rig::new();
    for number in 0..8 {
        fs::create_dir(rig.downloads().join(format!(".{number}.svcunpack-one"))).unwrap();
    }
    complete_stage(&rig, "one");
    assert!(recover(&rig.downloads(), &run("one")).unwrap().is_some());
}

#[test]
fn only_what_is_ours_and_unused_is_swept() {
    let rig = Rig::new();
    // Whether it is in use cannot be told.
    let unknown = complete_stage(&rig, "unknown");
    fs::create_dir(unknown.join("lock")).unwrap();
    complete_stage(&rig, "kept");
    complete_stage(&rig, "left");
    let used = complete_stage(&rig, "used");
    fs::write(used.join("lock"), "").unwrap();
    let lock = fs::File::open(used.join("lock")).unwrap();
    lock.lock_shared().unwrap();
    let made = rig.downloads().join(".made.svcunpack-now");
    fs::create_dir(&made).unwrap();
    fs::set_permissions(&made, fs::Permissions::from_mode(0o700)).unwrap();
    // Where others write, a marker says nothing.
    let open = complete_stage(&rig, "open");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let foreign = rig.downloads().join(".foreign.svcunpack-1");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.txt"), "").unwrap();
    fs::create_dir(rig.downloads().join("visible.svcunpack-1")).unwrap();
    std::os::unix::fs::symlink(&foreign, rig.downloads().join(".link.svcunpack-1")).unwrap();
    let swept = sweep(&rig.downloads(), &[run("kept")]).unwrap();
    assert_eq!((swept.removed, swept.in_use), (2, 2));
    let expected = [
        ".a.svcunpack-kept",
        ".a.svcunpack-open",
        ".a.svcunpack-unknown",
        ".a.svcunpack-used",
        ".foreign.svcunpack-1",
        ".link.svcunpack-1",
        "visible.svcunpack-1",
    ];
    assert_eq!(names(&rig.downloads()), expected);
    drop(lock);
    let swept = sweep(&rig.downloads(), &[]).unwrap();
    assert_eq!((swept.removed, swept.in_use), (2, 1));
}

#[tokio::test]
async fn an_unpacker_that_misbehaves_is_told_from_a_refusal() {
    let rig = Rig::with("a.zip", &zip(&[ZipFile::new("a", "1")]));
    for script in [
        "exit 0",
        "echo '{\"unpacked\":1}'",
        "yes x",
        "kill -9 $$",
        "echo {} >&2; exit 3",
    ] {
        let request = rig.request("a.zip", &[]);
        let result = post::unpack(&through(&rig, script), request, |_| {}, std::future::pending()).await;
        assert!(matches!(result, Err(UnpackError::Died { .. })), "{script}: {result:?}");
        assert_eq!(names(&rig.downloads()), ["a.zip"]);
    }
    let missing = OwnCommand {
        program: "/nonexistent".into(),
        args: Vec::new(),
    };
    let result = post::unpack(&missing, rig.request("a.zip", &[]), |_| {}, std::future::pending()).await;
    assert!(matches!(result, Err(UnpackError::Run { .. })), "{result:?}");
}

/// Passwords reach the unpacker on its standard input only.
#[tokio::test]
async fn passwords_are_in_no_argument_and_no_environment() {
    let rig = Rig::with("a.zip", &zip(&[ZipFile::new("a", "1").with(|file| file.flags |= 1)]));
    let seen = rig.root.path().join("seen");
    let script = format!("(echo \"$0 $@\"; env) > {}\nexec {{}}", seen.display());
    let request = rig.request("a.zip", &["canary-password"]);
    assert!(!format!("{request:?}").contains("canary"));
    let result = post::unpack(&through(&rig, &script), request, |_| {}, std::future::pending()).await;
    match result {
        Err(UnpackError::Refused { refusal, .. }) => assert!(!matches!(refusal.reason, Reason::Encrypted)),
        other => panic!("{other:?}"),
    }
    assert!(!fs::read_to_string(seen).unwrap().contains("canary"));
}

/// Others may write to the directory for downloads: they put a link where the stage was.
#[tokio::test]
async fn what_takes_the_place_of_a_stage_is_neither_written_to_nor_removed() {
    for (end, is_unpacked) in [("exec {}", true), ("exit 3", false)] {
        let rig = Rig::with("a.zip", &zip(&[ZipFile::new("a", "1"), ZipFile::new("b", "2")]));
        let victim = rig.root.path().join("victim");
        fs::create_dir_all(victim.join("papers")).unwrap();
        fs::write(victim.join("papers/thesis"), "years").unwrap();
        let before = files(&victim);
        let request = rig.request("a.zip", &[]);
        let stage = rig
            .downloads()
            .join(format!(".a.svcunpack-{}", String::from(request.run.clone())));
        let (stage, moved) = (stage.display(), stage.with_extension("moved"));
        let script = format!(
            "mv {stage} {}; ln -s {} {stage}\n{end}",
            moved.display(),
            victim.display()
        );
        let result = post::unpack(&through(&rig, &script), request, |_| {}, std::future::pending()).await;
        assert_eq!(result.is_ok(), is_unpacked, "{result:?}");
        if let Ok(unpacked) = result {
            assert_eq!(files(&rig.downloads().join(unpacked.placed.name)).len(), 2);
        }
        sweep(&rig.downloads(), &[]).unwrap();
        assert_eq!(files(&victim), before);
    }
}

/// A stage that the child left payload in which is a link to somewhere else.
#[test]
fn a_payload_that_is_reached_through_a_link_is_not_placed() {
    let rig = Rig::new();
    let stage = complete_stage(&rig, "one");
    let victim = rig.root.path().join("victim");
    fs::rename(stage.join("payload-0"), &victim).unwrap();
    std::os::unix::fs::symlink(&victim, stage.join("payload-0")).unwrap();
    assert!(recover(&rig.downloads(), &run("one")).is_err());
    sweep(&rig.downloads(), &[]).unwrap();
    assert_eq!(names(&rig.downloads()), Vec::<String>::new());
    assert_eq!(files(&victim).len(), 2);
}

/// It neither reads its job, nor says anything after its first line, nor closes its output.
#[tokio::test]
async fn an_unpacker_that_is_silent_is_ended() {
    let rig = Rig::with("a.zip", &zip(&[ZipFile::new("a", "1")]));
    let fifo = rig.root.path().join("alive");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let script = format!(
        "exec 9>{}\necho '{{\"progress\":{{\"files\":0,\"bytes\":0,\"thousandths\":0,\"isSyncing\":false}}}}'\nexec sleep 3600",
        fifo.display()
    );
    let end = std::thread::spawn(move || fs::read(fifo).unwrap());
    // From its first line on, the clock goes as fast as nothing happens.
    let progress = |_| tokio::time::pause();
    let long = "p".repeat(64 * 1024);
    let request = rig.request("a.zip", &[long.as_str(); 30]);
    let result = post::unpack(&through(&rig, &script), request, progress, std::future::pending()).await;
    assert!(matches!(result, Err(UnpackError::Stalled)), "{result:?}");
    end.join().unwrap();
    assert_eq!(names(&rig.downloads()), ["a.zip"]);
}

#[tokio::test]
async fn only_the_archive_that_was_unpacked_is_removed() {
    let bytes = zip(&[ZipFile::new("a", "1")]);
    let rig = Rig::with("a.zip", &bytes);
    let archive = rig.downloads().join("a.zip");
    let unpacked = rig.unpack("a.zip", &[]).await.unwrap();
    // The same bytes under the same name, and another file nevertheless.
    fs::rename(&archive, rig.root.path().join("elsewhere")).unwrap();
    fs::write(&archive, &bytes).unwrap();
    assert_eq!(
        post::remove_originals(&unpacked.originals).unwrap(),
        std::slice::from_ref(&archive)
    );
    assert!(archive.exists());
    // The same file with other bytes.
    let unpacked = rig.unpack("a.zip", &[]).await.unwrap();
    let written = fs::File::options().append(true).open(&archive).unwrap();
    std::io::Write::write_all(&mut &written, b"more").unwrap();
    assert_eq!(
        post::remove_originals(&unpacked.originals).unwrap(),
        std::slice::from_ref(&archive)
    );
    // A link to it.
    fs::write(&archive, &bytes).unwrap();
    let unpacked = rig.unpack("a.zip", &[]).await.unwrap();
    fs::rename(&archive, rig.downloads().join("b.zip")).unwrap();
    std::os::unix::fs::symlink(rig.downloads().join("b.zip"), &archive).unwrap();
    assert_eq!(
        post::remove_originals(&unpacked.originals).unwrap(),
        std::slice::from_ref(&archive)
    );
    fs::remove_file(&archive).unwrap();
    fs::rename(rig.downloads().join("b.zip"), &archive).unwrap();
    assert_eq!(
        post::remove_originals(&unpacked.originals).unwrap(),
        Vec::<std::path::PathBuf>::new()
    );
    assert!(!archive.exists());
}
