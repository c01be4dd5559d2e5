//! Peers that break the protocol, flood or lie. Each is a case: what it does, and what becomes of it.

use std::time::Duration;

use tokio::{io::AsyncWriteExt as _, net::TcpListener, net::TcpStream};
use torrent::{Content, Status};

use crate::{
    content::{Files, address, connect, seed, session, spec, until, until_view},
    wire::{Peer, handshake, message, numbers},
};

const PIECE: usize = 32 * 1024;

fn files() -> Files {
    Files::single("one.bin", 10 * PIECE - 1000, PIECE)
}

/// What becomes of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Closed,
    Kept,
}

/// Bytes that a peer sends after its handshake to one who downloads, and to one who seeds.
#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<(&'static str, Vec<u8>, Fate)> {
    let flood = |count: usize, message: &[u8]| message.repeat(count);
    let extended = |number: u8, content: &[u8]| message(20, &[&[number], content].concat());
    let deep = [b"d1:m".to_vec(), vec![b'l'; 5000]].concat();
    let offered = extended(0, b"d1:md11:ut_metadatai1eee");
    vec![
        ("a message of 4 GiB", vec![0xff, 0xff, 0xff, 0xff, 20], Fate::Closed),
        (
            "a message of 1 GiB of an unknown kind",
            vec![0x40, 0, 0, 0, 99],
            Fate::Closed,
        ),
        (
            "a block of 32 KiB",
            [&[0, 0, 0x80, 9, 7][..], &[0; 64]].concat(),
            Fate::Closed,
        ),
        (
            "an empty block",
            vec![0, 0, 0, 9, 7, 0, 0, 0, 0, 0, 0, 0, 0],
            Fate::Closed,
        ),
        ("an empty block message", message(7, &[]), Fate::Closed),
        ("a piece that does not exist", message(4, &numbers(&[10])), Fate::Closed),
        (
            "a piece beyond all numbers",
            message(4, &numbers(&[u32::MAX])),
            Fate::Closed,
        ),
        ("a bitfield that is too short", message(5, &[0]), Fate::Closed),
        ("a bitfield that is too long", message(5, &[0, 0, 0]), Fate::Closed),
        ("a bitfield of a megabyte", vec![0, 0x10, 0, 1, 5], Fate::Closed),
        ("a bitfield with spare bits", message(5, &[0, 0x3f]), Fate::Closed),
        ("a thousand bitfields", flood(1000, &message(5, &[0, 0])), Fate::Kept),
        (
            "a bitfield after a piece",
            [message(4, &numbers(&[1])), message(5, &[0, 0])].concat(),
            Fate::Kept,
        ),
        ("a choke with a body", message(0, &[1]), Fate::Closed),
        (
            "a request that is too short",
            message(6, &numbers(&[0, 0])),
            Fate::Closed,
        ),
        (
            "a request of a piece that does not exist",
            message(6, &numbers(&[10, 0, 16_384])),
            Fate::Closed,
        ),
        (
            "a request beyond its piece",
            message(6, &numbers(&[0, 32_768, 1])),
            Fate::Closed,
        ),
        (
            "a request whose end overflows",
            message(6, &numbers(&[0, u32::MAX, u32::MAX])),
            Fate::Closed,
        ),
        ("a request of nothing", message(6, &numbers(&[0, 0, 0])), Fate::Closed),
        (
            "a request of 1 MiB",
            message(6, &numbers(&[0, 0, 1 << 20])),
            Fate::Closed,
        ),
        ("an extension that was not agreed on", extended(77, b""), Fate::Closed),
        (
            "an extension handshake that is no dictionary",
            extended(0, b"i5e"),
            Fate::Kept,
        ),
        (
            "an extension handshake that is not bencode",
            extended(0, b"xyz"),
            Fate::Closed,
        ),
        (
            "an extension handshake of 5,000 levels",
            extended(0, &deep),
            Fate::Closed,
        ),
        (
            "an extension handshake of 64 KiB",
            [&[0, 1, 0, 0, 20, 0][..], &[b'l'; 100]].concat(),
            Fate::Closed,
        ),
        ("an extension message without a number", message(20, &[]), Fate::Closed),
        (
            "a flood of metadata requests",
            [offered.clone(), flood(100, &extended(1, b"d8:msg_typei0e5:piecei0ee"))].concat(),
            Fate::Closed,
        ),
        (
            "metadata of a size below zero",
            extended(0, b"d1:md11:ut_metadatai1ee13:metadata_sizei-5ee"),
            Fate::Kept,
        ),
        (
            "metadata of 8 EiB",
            extended(0, b"d1:md11:ut_metadatai1ee13:metadata_sizei9223372036854775807ee"),
            Fate::Kept,
        ),
        (
            "addresses twice at once",
            flood(2, &extended(2, b"d5:added6:abcdefe")),
            Fate::Closed,
        ),
        (
            "a loss of a piece that does not exist",
            extended(3, &numbers(&[99])),
            Fate::Closed,
        ),
        ("unknown kinds", flood(1000, &message(50, b"what")), Fate::Kept),
        (
            "100,000 times interested and not",
            flood(100_000, &[message(2, &[]), message(3, &[])].concat()),
            Fate::Kept,
        ),
        ("a long silence", flood(10, &[0; 4]), Fate::Kept),
        (
            "cancelling what was not asked for",
            flood(1000, &message(8, &numbers(&[0, 0, 16_384]))),
            Fate::Kept,
        ),
        (
            "rejecting what was not asked for",
            flood(1000, &message(16, &numbers(&[0, 0, 16_384]))),
            Fate::Kept,
        ),
        (
            "pieces allowed fast that do not exist",
            flood(1000, &message(17, &numbers(&[u32::MAX]))),
            Fate::Kept,
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_messages_are_refused_and_others_are_still_served() {
    let files = files();
    let (seeding, seeder) = seed(&files).await;
    let target = tempfile::tempdir().unwrap();
    let downloading = session(target.path()).await;
    let torrent = downloading
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    until(&torrent, |status| *status == Status::Downloading).await;
    let mut wrong = Vec::new();
    for (session, side) in [(&seeding, "seeding"), (&downloading, "downloading")] {
        for (number, (name, bytes, expected)) in cases().into_iter().enumerate() {
            let id = u8::try_from(number).unwrap() + 100;
            let mut peer = Peer::connect(address(session), &files.info, id).await;
            // The connection may be closed before everything is sent.
            let _refused = peer.0.write_all(&bytes).await;
            let fate = if expected == Fate::Closed {
                if peer.is_closed().await {
                    Fate::Closed
                } else {
                    Fate::Kept
                }
            } else {
                // It still answers: a keep-alive does no harm, and the connection stays open for a moment.
                let _closed = peer.0.write_all(&[0; 4]).await;
                let closed = tokio::time::timeout(Duration::from_millis(200), peer.is_closed()).await;
                if closed == Ok(true) { Fate::Closed } else { Fate::Kept }
            };
            if fate != expected {
                wrong.push(format!("{side}: {name}: {fate:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    until_view(&seeder, |view| view.uploaded >= files.info.total_length()).await;
    downloading.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_a_handshake_do_not_keep_others_out() {
    let files = files();
    let (seeding, _seeder) = seed(&files).await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(address(&seeding)).await.unwrap());
    }
    let mut garbage = TcpStream::connect(address(&seeding)).await.unwrap();
    // More than an obfuscated connection may begin with.
    garbage.write_all(&[b'x'; 700]).await.unwrap();
    let mut stranger = TcpStream::connect(address(&seeding)).await.unwrap();
    let other = Files::single("other.bin", 5, PIECE);
    stranger.write_all(&handshake(&other.info, 1)).await.unwrap();
    assert!(Peer(garbage).is_closed().await);
    assert!(Peer(stranger).is_closed().await);
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_sends_wrong_pieces_is_banned_and_the_download_completes() {
    let files = files();
    let content = files.all();
    let liar = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, liar.local_addr().unwrap()).await;
    let mut peer = Peer::accept(&liar, &files.info, 7).await;
    peer.send(14, &[]).await;
    peer.send(1, &[]).await;
    let sent = peer.serve(&content, PIECE, |block| block[100] ^= 1).await;
    assert!(sent <= content.len(), "it is not asked again: {sent} bytes");
    until_view(&torrent, |view| view.banned == 1 && view.pieces_have == 0).await;
    let (seeding, _seeder) = seed(&files).await;
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    // The same identity is not let in again.
    let mut again = Peer::connect(address(&session), &files.info, 7).await;
    assert!(again.is_closed().await);
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_blocks_that_nobody_asked_for_is_cut_off() {
    let files = files();
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    until(&torrent, |status| *status == Status::Downloading).await;
    let mut peer = Peer::connect(address(&session), &files.info, 9).await;
    let block = message(7, &[numbers(&[0, 0]), vec![1; 16 * 1024]].concat());
    let mut sent = 0;
    while sent < 64 << 20 && peer.0.write_all(&block).await.is_ok() {
        sent += block.len();
    }
    assert!(sent < 32 << 20, "{sent} bytes");
    assert_eq!(torrent.view().pieces_have, 0);
    session.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_metadata_is_not_believed_and_its_peer_is_banned() {
    let files = files();
    let liar = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Hash(files.info.hash()), target.path()))
        .unwrap();
    connect(&torrent, liar.local_addr().unwrap()).await;
    let mut peer = Peer::accept(&liar, &files.info, 7).await;
    peer.send(20, b"\0d1:md11:ut_metadatai5ee13:metadata_sizei100ee").await;
    loop {
        let request = peer.wait_for(20).await;
        if request[0] == 5 {
            break;
        }
    }
    let lie = [&b"\x01d8:msg_typei1e5:piecei0e10:total_sizei100ee"[..], &[b'x'; 100]].concat();
    peer.send(20, &lie).await;
    assert!(peer.is_closed().await);
    until_view(&torrent, |view| view.banned == 1).await;
    let (seeding, _seeder) = seed(&files).await;
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    session.shutdown().await;
    seeding.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_takes_requests_and_sends_nothing_does_not_hold_up_the_end() {
    let files = files();
    let idler = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = tempfile::tempdir().unwrap();
    let session = session(target.path()).await;
    let torrent = session
        .add(spec(Content::Info(files.info.clone()), target.path()))
        .unwrap();
    connect(&torrent, idler.local_addr().unwrap()).await;
    let mut peer = Peer::accept(&idler, &files.info, 7).await;
    peer.send(14, &[]).await;
    peer.send(1, &[]).await;
    peer.wait_for(6).await;
    let (seeding, _seeder) = seed(&files).await;
    connect(&torrent, address(&seeding)).await;
    until(&torrent, |status| *status == Status::Seeding).await;
    files.check(target.path(), |_| true);
    session.shutdown().await;
    seeding.shutdown().await;
}
