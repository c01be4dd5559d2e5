//! Programs of others in one swarm without us: what they do there is theirs, and what fails beside us is ours.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::path::PathBuf;

use support::{
    Content,
    swarm::{Aria2c, HostilePeer, Libtorrent, Made, MakeTorrent, Manner, Opentracker, Tracker, Transmission},
};
use tempfile::TempDir;

const PIECE: u64 = 64 * 1024;

/// A file with its torrent.
struct Scene {
    content: Content,
    source: TempDir,
    target: TempDir,
    made: Made,
    maker: Libtorrent,
}

impl Scene {
    fn new() -> Self {
        let content = Content::seeded(31, 2_000_003);
        let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = source.path().join("one.bin");
        std::fs::write(&path, content.to_vec()).unwrap();
        let mut maker = Libtorrent::start();
        let made = maker.make(
            &path,
            &MakeTorrent {
                piece: PIECE,
                ..MakeTorrent::default()
            },
        );
        Self {
            content,
            source,
            target,
            made,
            maker,
        }
    }

    fn arrived(&self) -> PathBuf {
        self.target.path().join("one.bin")
    }

    fn check(&self) {
        assert_eq!(self.content.difference(&self.arrived()).unwrap(), None);
    }
}

#[test]
fn aria2c_downloads_from_libtorrent_that_opentracker_knows() {
    let mut scene = Scene::new();
    let tracker = Opentracker::start(&[&scene.made.hash]);
    // Over one protocol it is announced to the tracker, over the other it is found.
    scene
        .maker
        .seed(&scene.made.path, scene.source.path(), &[&tracker.udp()]);
    Aria2c::leech(&scene.made.path, scene.target.path(), &tracker.http()).wait();
    scene.check();
    assert_eq!(scene.maker.uploaded(), scene.content.len());
}

#[test]
fn libtorrent_downloads_from_transmission_and_transmission_from_it() {
    let mut scene = Scene::new();
    let mut seeder = Transmission::start();
    seeder.add(&scene.made.bytes(), scene.source.path());
    seeder.wait_until_seeding();
    scene.maker.leech(&scene.made.path, scene.target.path(), &[]);
    scene.maker.connect(&[seeder.peer()]);
    scene.maker.wait_until_seeding();
    scene.check();
    let mut leecher = Transmission::start();
    let other = tempfile::tempdir().unwrap();
    leecher.add(&scene.made.bytes(), other.path());
    scene.maker.connect(&[leecher.peer()]);
    leecher.wait_until_complete();
    assert_eq!(scene.content.difference(&other.path().join("one.bin")).unwrap(), None);
}

#[test]
fn peers_misbehave_as_they_say() {
    let scene = Scene::new();
    for (manner, arrives) in [(Manner::Honest, true), (Manner::Wrong, false)] {
        let peer = HostilePeer::start(&scene.made.hash, &scene.content, PIECE, manner);
        let tracker = Tracker::with_peers(&[peer.address()]);
        let mut leecher = Libtorrent::start();
        leecher.leech(&scene.made.path, scene.target.path(), &[&tracker.url()]);
        if arrives {
            leecher.wait_until_seeding();
            scene.check();
            assert_eq!(peer.sent(), scene.content.len());
            std::fs::remove_file(scene.arrived()).unwrap();
        } else {
            leecher.wait_until("it has seen a wrong piece", |state| {
                state["failed"].as_u64() >= Some(PIECE)
            });
        }
        let told = tracker.announces();
        assert_eq!(
            (told[0].hash.as_str(), told[0].event.as_str()),
            (scene.made.hash.as_str(), "started")
        );
    }
}
