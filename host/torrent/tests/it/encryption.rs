//! Obfuscated connections, with ourselves, libtorrent and aria2, and what is no such connection.

use std::time::Duration;

use serde_json::json;
use support::swarm::{Libtorrent, MakeTorrent};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use torrent::{Content, Encryption, Status};

use crate::{
    content::{Files, address, connect, seed, session_with, spec, until, until_view},
    wire::{Peer, handshake},
};

fn files() -> Files {
    Files::several(&[("a", 700_000), ("b", 1_300_001)], 64 * 1024)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_agree_or_do_not_connect() {
    use Encryption::{Disabled, Enabled, Forced};
    let files = files();
    let (seeding, seeder) = seed(&files).await;
    for (theirs, ours, agree) in [
        (Forced, Forced, true),
        (Forced, Enabled, true),
        (Enabled, Forced, true),
        (Enabled, Disabled, true),
        (Disabled, Enabled, true),
        (Disabled, Forced, false),
        (Forced, Disabled, false),
    ] {
        seeding.set_encryption(theirs);
        let target = tempfile::tempdir().unwrap();
        let session = session_with(target.path(), |config| config.encryption = ours).await;
        let torrent = session
            .add(spec(Content::Info(files.info.clone()), target.path()))
            .unwrap();
        connect(&torrent, address(&seeding)).await;
        if agree {
            until(&torrent, |status| *status == Status::Seeding).await;
            files.check(target.path(), |_| true);
        } else {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(torrent.view().peers, 0, "{theirs:?} {ours:?}");
        }
        session.shutdown().await;
        until_view(&seeder, |view| view.peers == 0).await;
    }
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn libtorrent_that_insists_is_reached_and_reaches_us() {
    const FORCED: u8 = 0;
    const RC4: u8 = 2;
    let files = files();
    let settings = json!({"in_enc_policy": FORCED, "out_enc_policy": FORCED, "allowed_enc_level": RC4});
    let mut other = Libtorrent::with(&settings);
    let top = files.directory.path().join("top");
    let how = MakeTorrent {
        piece: 64 * 1024,
        ..MakeTorrent::default()
    };
    let made = other.make(&top, &how);
    let info = metainfo::Metainfo::parse(&made.bytes()).unwrap().info;
    let seeder = other.seed(&made.path, files.directory.path(), &[]);
    for encryption in [Encryption::Enabled, Encryption::Forced] {
        let target = tempfile::tempdir().unwrap();
        let session = session_with(target.path(), |config| config.encryption = encryption).await;
        let torrent = session.add(spec(Content::Info(info.clone()), target.path())).unwrap();
        connect(&torrent, seeder).await;
        until(&torrent, |status| *status == Status::Seeding).await;
        files.check(target.path(), |_| true);
        let mut leecher = Libtorrent::with(&settings);
        let copy = tempfile::tempdir().unwrap();
        leecher.leech(&made.path, copy.path(), &[]);
        leecher.connect(&[address(&session)]);
        leecher.wait_until_seeding();
        files.check(copy.path(), |_| true);
        session.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_begins_like_an_obfuscated_connection_and_is_none_is_closed() {
    let files = files();
    let (seeding, seeder) = seed(&files).await;
    let mut stuffed = vec![7; 96 + 512 + 19];
    stuffed.push(9);
    for said in [vec![0; 96], vec![0xff; 96], stuffed] {
        let mut stream = TcpStream::connect(address(&seeding)).await.unwrap();
        stream.write_all(&said).await.unwrap();
        let mut peer = Peer(stream);
        assert!(peer.is_closed().await, "{} bytes", said.len());
    }
    // In clear, when that is not wanted.
    seeding.set_encryption(Encryption::Forced);
    let mut stream = TcpStream::connect(address(&seeding)).await.unwrap();
    stream.write_all(&handshake(&files.info, 7)).await.unwrap();
    assert!(Peer(stream).is_closed().await);
    assert_eq!(seeder.view().peers, 0);
    seeding.shutdown().await;
}
