//! Torrents: from files, magnet links and URLs, with libtorrent as the other side.

use std::{
    fs,
    path::{Path, PathBuf},
};

use e2e::Svc;
use support::{
    Content, Origin, Resource,
    swarm::{Libtorrent, Made, MakeTorrent, Tracker},
};

use crate::place::Place;

const PIECE: u64 = 32 * 1024;

/// What the torrent has, by name, in its order.
fn files() -> [(&'static str, Content); 3] {
    [
        ("a.bin", Content::seeded(91, 700_001)),
        ("b.bin", Content::seeded(92, 300_000)),
        ("c.txt", Content::bytes(*b"the last one")),
    ]
}

/// A torrent of [`files`] that libtorrent seeds, known to a tracker.
struct Swarm {
    place: Place,
    libtorrent: Libtorrent,
    tracker: Tracker,
    made: Made,
}

impl Swarm {
    fn new() -> Self {
        let place = Place::new();
        let work = place.aside("seeds/work");
        fs::create_dir_all(&work).expect("a temporary directory is writable");
        for (name, content) in files() {
            fs::write(work.join(name), content.to_vec()).expect("a temporary directory is writable");
        }
        let tracker = Tracker::with_peers(&[]);
        let url = tracker.url();
        let mut libtorrent = Libtorrent::start();
        let how = MakeTorrent {
            piece: PIECE,
            trackers: &[&url],
            ..MakeTorrent::default()
        };
        let made = libtorrent.make(&work, &how);
        let address = libtorrent.seed(&made.path, &place.aside("seeds"), &[]);
        tracker.add_peer(address);
        Self {
            place,
            libtorrent,
            tracker,
            made,
        }
    }

    fn get(&self) -> Svc {
        Svc::get(self.place.path()).arg("--trackers-only")
    }

    fn torrent(&self) -> &Path {
        &self.made.path
    }

    fn magnet(&self) -> String {
        self.made.magnet(&format!("&dn=work&tr={}", self.tracker.url()))
    }

    /// Everything in the directory of downloads, with the directories of files.
    #[track_caller]
    fn assert_whole(&self, directory: &str) {
        assert_eq!(self.place.names(), [directory], "nothing else is left");
        for (name, content) in files() {
            self.place.assert_file(&format!("{directory}/{name}"), &content);
        }
    }

    fn copy(&self, name: &str) -> PathBuf {
        self.place.path().join("work").join(name)
    }
}

#[test]
fn a_torrent_file_becomes_its_files_and_nothing_else_is_left() {
    let swarm = Swarm::new();
    let run = swarm.get().arg(swarm.torrent()).run();
    run.assert_success();
    swarm.assert_whole("work");
    let sizes: u64 = files().iter().map(|(_, content)| content.len()).sum();
    let finished = run.event("finished").expect("it is reported");
    assert_eq!(finished["sizeBytes"], sizes);
    assert_eq!(finished["path"], swarm.place.path().join("work").to_str().unwrap());
    let stopped = swarm.tracker.announces();
    assert!(
        stopped.iter().any(|announce| announce.event == "stopped"),
        "{stopped:?}"
    );
}

#[test]
fn a_magnet_link_becomes_the_files_that_are_chosen() {
    let swarm = Swarm::new();
    let run = swarm.get().args(["--select-file", "1,3"]).arg(swarm.magnet()).run();
    run.assert_success();
    let [a, _, c] = files();
    swarm.place.assert_file("work/a.bin", &a.1);
    swarm.place.assert_file("work/c.txt", &c.1);
    assert!(!swarm.copy("b.bin").exists());
    assert_eq!(swarm.place.names(), ["work"]);
}

#[test]
fn a_url_of_a_torrent_file_is_followed_unless_that_is_not_wanted() {
    let swarm = Swarm::new();
    let origin = Origin::start(vec![Resource::new("/w.torrent", Content::bytes(swarm.made.bytes()))]);
    let run = swarm.get().arg(origin.url("/w.torrent")).run();
    run.assert_success();
    swarm.assert_whole("work");
    let summary = run.event("summary").expect("it is the last");
    assert_eq!(summary["finished"], 1);

    let saved = Place::new();
    let run = Svc::get(saved.path())
        .args(["--no-follow-torrent", &origin.url("/w.torrent")])
        .run();
    run.assert_success();
    assert_eq!(saved.names(), ["w.torrent"]);
    saved.assert_file("w.torrent", &Content::bytes(swarm.made.bytes()));
}

#[test]
fn a_killed_download_continues_where_it_was() {
    let mut swarm = Swarm::new();
    swarm.libtorrent.limit_upload(100_000);
    let mut run = swarm.get().arg(swarm.magnet()).spawn();
    let under_way = run.wait_for(|event| event["done"].as_u64() > Some(3 * PIECE));
    assert!(under_way.is_some(), "{:?}", run.finish());
    run.interrupt();
    assert_ne!(run.finish().code, Some(0));
    let before = swarm.libtorrent.uploaded();
    swarm.libtorrent.limit_upload(0);
    let run = swarm.get().arg(swarm.magnet()).run();
    run.assert_success();
    swarm.assert_whole("work");
    let sizes: u64 = files().iter().map(|(_, content)| content.len()).sum();
    let again = swarm.libtorrent.uploaded() - before;
    assert!(again < sizes - 2 * PIECE, "{again} of {sizes} were sent again");
}

#[test]
fn what_is_there_is_left_alone_unless_it_is_to_be_checked() {
    let swarm = Swarm::new();
    fs::create_dir_all(swarm.copy("a.bin").parent().unwrap()).unwrap();
    fs::write(swarm.copy("a.bin"), "the user's own").unwrap();
    swarm.get().arg(swarm.torrent()).run().assert_success();
    assert_eq!(fs::read(swarm.copy("a.bin")).unwrap(), b"the user's own");
    assert_eq!(swarm.place.names(), ["work", "work (1)"]);
    for (name, content) in files() {
        swarm.place.assert_file(&format!("work (1)/{name}"), &content);
    }

    let check = swarm.get().arg("--check-integrity").arg(swarm.torrent()).run();
    check.assert_success();
    let [a, ..] = files();
    swarm.place.assert_file("work/a.bin", &a.1);
}

#[test]
fn it_seeds_only_when_asked_and_until_the_ratio_is_reached() {
    let mut swarm = Swarm::new();
    let mut run = swarm.get().args(["--seed-ratio", "1"]).arg(swarm.torrent()).spawn();
    assert!(run.wait_for(|event| event["event"] == "finished").is_some());
    let announces = swarm.tracker.announces();
    let port = announces.last().expect("it announced itself").port;
    let mut leecher = Libtorrent::start();
    let directory = swarm.place.aside("leech");
    fs::create_dir_all(&directory).unwrap();
    leecher.leech(swarm.torrent(), &directory, &[]);
    leecher.connect(&[([127, 0, 0, 1], port).into()]);
    leecher.wait_until_seeding();
    let ended = run.finish();
    ended.assert_success();
    swarm.assert_whole("work");
    assert_eq!(swarm.libtorrent.state()["seeding"], true);
}

#[test]
fn what_no_torrent_has_is_refused_before_anything_starts() {
    let swarm = Swarm::new();
    let torrent = swarm.torrent().to_str().unwrap();
    let magnet = swarm.magnet();
    let cases: [(&[&str], &str); 6] = [
        (&["--select-file", "4", torrent], "names file 4, and it has 3"),
        (&["--select-file", "0", torrent], "write numbers from 1"),
        (&["--checksum", "crc32=352441c2", &magnet], "--checksum"),
        (&["--mirror", "http://a.test/", &magnet], "--mirror"),
        (&["magnet:?dn=nothing"], "info hash"),
        (&["nowhere.torrent"], "nowhere.torrent"),
    ];
    for (arguments, said) in cases {
        let run = swarm.get().args(arguments).run();
        assert_eq!(run.code, Some(32), "{arguments:?} {run:?}");
        assert!(run.stderr.contains(said), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(swarm.place.names(), Vec::<String>::new());
}
