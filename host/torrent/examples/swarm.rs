//! The engine by itself: `swarm TORRENT DIRECTORY [seed | PEER…]`. Downloads from the peers, or seeds what is in the
//! directory, and says how long it took. If TORRENT is a directory of torrents, all of them are seeded.

#![expect(clippy::print_stdout, reason = "what it finds out is for the person at the terminal")]

use std::{net::IpAddr, path::PathBuf, time::Instant};

use egress::peer::PeerReach;
use torrent::{Connections, Content, EventKind, PeerSource, Session, SessionConfig, TorrentSpec};
use transfer::Lanes;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(torrent), Some(directory)) = (arguments.next(), arguments.next()) else {
        panic!("swarm TORRENT DIRECTORY [seed | PEER…]")
    };
    let peers: Vec<String> = arguments.collect();
    let is_seed = peers.first().is_some_and(|word| word == "seed");
    let directory = PathBuf::from(directory);
    let session = Session::start(SessionConfig {
        ports: 0..=0,
        addresses: vec![IpAddr::from([127, 0, 0, 1])],
        state_directory: directory.join(".state"),
        lanes: Lanes::default(),
        connections: Connections::default(),
        is_exchange_on: true,
        encryption: torrent::Encryption::default(),
        names: egress::Names::default(),
        filter: None,
        webseeds: None,
    })
    .expect("a port is free");
    let mut events = session.events();
    if std::path::Path::new(&torrent).is_dir() {
        seed_all(&session, &torrent, &directory).await;
        return;
    }
    let info = read(torrent.as_ref());
    let begun = Instant::now();
    let bytes = info.total_length();
    let handle = session
        .add(TorrentSpec {
            uses_existing: is_seed,
            reach: PeerReach::AlsoThisMachine,
            ..TorrentSpec::new(Content::Info(info), directory)
        })
        .expect("it is the first one");
    if !is_seed {
        let peers = peers
            .iter()
            .map(|peer| peer.parse().expect("PEER is ADDRESS:PORT"))
            .collect();
        let reach = PeerReach::AlsoThisMachine;
        handle
            .add_peers(peers, PeerSource::User, reach)
            .await
            .expect("the session runs");
    }
    while let Ok(event) = events.recv().await {
        match event.kind {
            EventKind::Completed if is_seed => println!("seeding on port {}", session.port().unwrap_or(0)),
            EventKind::Completed => break,
            EventKind::Failed(failure) => panic!("{failure}"),
            _ => {}
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let view = handle.view();
    println!(
        "{bytes} bytes in {seconds:.2} s; {} downloaded, {} wasted",
        view.downloaded, view.wasted
    );
    session.shutdown().await;
}

fn read(torrent: &std::path::Path) -> metainfo::Info {
    let bytes = std::fs::read(torrent).expect("TORRENT can be read");
    metainfo::Metainfo::parse(&bytes).expect("TORRENT is one").info
}

/// Seeds every torrent of a directory until the process is ended.
async fn seed_all(session: &Session, torrents: &str, directory: &std::path::Path) {
    let mut handles = Vec::new();
    for entry in std::fs::read_dir(torrents).expect("TORRENT is a directory") {
        let info = read(&entry.expect("it can be listed").path());
        let spec = TorrentSpec {
            uses_existing: true,
            ..TorrentSpec::new(Content::Info(info), directory.to_owned())
        };
        handles.push(session.add(spec).expect("each is another one"));
    }
    for handle in &handles {
        let mut views = handle.watch();
        let seeding = views.wait_for(|view| view.status == torrent::Status::Seeding);
        drop(seeding.await.expect("the session runs"));
    }
    println!(
        "seeding {} torrents on port {}",
        handles.len(),
        session.port().unwrap_or(0)
    );
    std::future::pending::<()>().await;
}
