//! `svc torrent`, beside libtorrent and by itself.

use std::{fs, os::unix::fs::symlink};

use e2e::{Home, Run, Svc, binary, python};
use serde_json::Value;

fn torrent(home: &Home, arguments: &[&str]) -> Run {
    let directory = home.path().to_str().expect("its path is UTF-8");
    let arguments = arguments.iter().map(|argument| argument.replace("DIR", directory));
    Svc::new().arg("torrent").args(arguments).run()
}

#[track_caller]
fn record(run: &Run) -> Value {
    assert_eq!(run.code, Some(0), "{run:?}");
    serde_json::from_str(&run.stdout.join("\n")).expect("it prints a record")
}

#[test]
fn torrents_are_created_and_read_as_by_libtorrent() {
    let home = Home::new();
    let directory = home.path().join("work");
    let arguments = [binary::path(), &*directory].map(|path| path.to_str().expect("its path is UTF-8"));
    let said = python::run("clients/libtorrent_metainfo.py", &arguments);
    let counts: Value = serde_json::from_str(said.trim()).expect("it prints how much it compared");
    assert!(
        counts["created"].as_u64() >= Some(16) && counts["read"].as_u64() >= Some(60),
        "{counts}"
    );
}

#[test]
fn a_torrent_is_written_whole_and_replaces_nothing_unasked() {
    let home = Home::new();
    let files = home.path().join("photos");
    fs::create_dir_all(files.join("a")).unwrap();
    fs::write(files.join("a/one.jpg"), vec![1; 40_000]).unwrap();
    fs::write(files.join("two.jpg"), [2; 10]).unwrap();
    symlink("/etc/passwd", files.join("link")).unwrap();
    let create = [
        "create",
        "DIR/photos",
        "-o",
        "DIR/p.torrent",
        "--json",
        "--reproducible",
    ];
    let run = torrent(&home, &create);
    let created = record(&run);
    assert!(run.stderr.contains("link is left out"), "{}", run.stderr);
    assert_eq!(created["totalBytes"], 40_010);
    assert_eq!(created["files"][0]["path"], "photos/a/one.jpg");
    assert_eq!(created["createdAt"], Value::Null);
    let written = fs::read(home.path().join("p.torrent")).unwrap();
    assert_eq!(record(&torrent(&home, &["show", "DIR/p.torrent", "--json"])), created);

    fs::write(files.join("two.jpg"), [3; 10]).unwrap();
    let refused = torrent(&home, &create);
    assert_eq!(refused.code, Some(32));
    assert!(refused.stderr.contains("--overwrite"), "{}", refused.stderr);
    assert_eq!(fs::read(home.path().join("p.torrent")).unwrap(), written);
    let replaced = record(&torrent(&home, &[&create[..], &["--overwrite"]].concat()));
    assert_ne!(replaced["infoHash"], created["infoHash"]);
    // Nothing of an attempt is left beside it.
    let names: Vec<_> = fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        !names.iter().any(|name| name.to_string_lossy().ends_with(".new")),
        "{names:?}"
    );
}

#[test]
fn what_cannot_be_a_torrent_is_refused_with_what_to_do() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("empty")).unwrap();
    fs::create_dir_all(home.path().join("case")).unwrap();
    for name in ["case/a", "case/A", "file"] {
        fs::write(home.path().join(name), "x").unwrap();
    }
    for (arguments, expected) in [
        (&["create", "DIR/empty"][..], "at least one byte"),
        (&["create", "DIR/case"], "differ in case only"),
        (&["create", "DIR/file", "--piece-length", "20000"], "power of two"),
        (&["create", "DIR/file", "--piece-length", "8K"], "power of two"),
        (
            &["create", "DIR/file", "--tracker", "wss://t.test/"],
            "URL of http, https, udp",
        ),
        (
            &["create", "DIR/file", "--webseed", "ftp://t.test/"],
            "URL of http, https",
        ),
        (&["create", "DIR/file", "--name", "../x"], "leave its directory"),
        (&["create", "DIR/nothing"], "cannot read"),
        (&["show", "DIR/file"], "not a torrent"),
        (&["show", "magnet:?dn=x"], "no info hash"),
        (&["show", "magnet:?xt=urn:btmh:1220aa"], "version 2"),
    ] {
        let run = torrent(&home, arguments);
        assert!(run.code.is_some_and(|code| code != 0), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
}
