//! What torrents share: the hash table, lists of trackers, and what private torrents have none of.

use std::net::UdpSocket;

use peer_discovery::{Config, Discovery, Settings, TorrentSpec, TrackerSource};
use tokio::time::timeout;
use transfer::{GivenBy, SafeUrl};

use crate::house::{House, HttpTracker, PATIENCE, answer, config, next, spec, trackers_only, view};

/// A port that is free for datagrams now.
fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// A session with a node on the loopback that knows the other one.
fn with_node(port: u16, other: u16, own: u16) -> Config {
    Config {
        port: own,
        dht_addresses: vec![([127, 0, 0, 1], port).into()],
        dht_bootstrap: vec![("127.0.0.1".to_owned(), other)],
        ..config(Settings {
            is_dht_on: true,
            ..trackers_only()
        })
    }
}

async fn knows_nodes(discovery: &Discovery) {
    let knowing = async {
        while discovery.status().dht.v4.is_none_or(|node| node.nodes == 0) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, knowing).await.expect("the nodes know each other");
}

#[tokio::test]
async fn two_nodes_find_each_others_torrent_and_keep_what_they_know() {
    let (one, other) = (free_port(), free_port());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dht");
    let kept = Config {
        dht_file: Some(file.clone()),
        ..with_node(one, other, 7001)
    };
    let (first, second) = (House::of(kept), House::of(with_node(other, one, 7002)));
    knows_nodes(&first.discovery).await;
    knows_nodes(&second.discovery).await;
    let mut there = first.add(&[]).await;
    let mut here = second.add(&[]).await;
    let found = tokio::select! {
        found = next(&mut there) => (found, "127.0.0.1:7002"),
        found = next(&mut here) => (found, "127.0.0.1:7001"),
    };
    assert_eq!(found.0, [found.1.parse().unwrap()]);
    first.close().await;
    second.close().await;
    assert!(std::fs::read(&file).unwrap().starts_with(b"d2:id20:"));

    // A file that is damaged is none.
    std::fs::write(&file, b"d2:id20:").unwrap();
    let third = House::of(Config {
        dht_file: Some(file),
        ..with_node(one, other, 7001)
    });
    third.close().await;
}

#[tokio::test]
async fn a_private_torrent_is_known_to_its_trackers_only() {
    let (one, other) = (free_port(), free_port());
    let more = HttpTracker::answering(vec![answer(b"d5:peers6:\x5d\xb8\xd8\x22\0\x09e")]).await;
    let settings = Settings {
        additional_trackers: vec![SafeUrl::parse(&more.url).unwrap()],
        ..with_node(one, other, 1).settings
    };
    let first = House::of(Config {
        settings,
        ..with_node(one, other, 7001)
    });
    let second = House::of(with_node(other, one, 7002));
    knows_nodes(&first.discovery).await;
    knows_nodes(&second.discovery).await;
    let own = HttpTracker::answering(vec![answer(b"d5:peers6:\x5d\xb8\xd8\x22\0\x01e")]).await;
    let private = TorrentSpec {
        is_private: true,
        proxy: None,
        ..spec(&[&own.url], GivenBy::User)
    };
    let mut there = first.discovery.add(private).await;
    let _here = second.add(&[]).await;
    assert_eq!(next(&mut there).await, ["93.184.216.34:1".parse().unwrap()]);
    assert_eq!(there.trackers().await.len(), 1);
    // Long enough for the searches that the test above needs.
    let more_found = timeout(std::time::Duration::from_secs(3), there.next()).await;
    assert!(more_found.is_err(), "{more_found:?}");
    first.close().await;
    second.close().await;
}

#[tokio::test]
async fn trackers_of_lists_are_asked_and_lists_that_fail_are_named() {
    let list = HttpTracker::answering(vec![answer(b"# list\nudp://93.184.216.34:1/announce\n\nnonsense\n")]).await;
    let empty = HttpTracker::answering(vec![answer(b"<html>")]).await;
    let endless = HttpTracker::endless(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()).await;
    let urls = [&list.url, &empty.url, &endless.url].map(|url| SafeUrl::parse(url).unwrap());
    let house = House::of(config(Settings {
        tracker_lists: urls.to_vec(),
        ..trackers_only()
    }));
    let torrent = house.add(&[]).await;
    let listed = view(&torrent, |view| view.source == TrackerSource::List).await;
    assert_eq!(listed.url.expose(), "udp://93.184.216.34:1/announce");
    let lists = timeout(PATIENCE, house.discovery.refresh_lists()).await.unwrap();
    let results: Vec<_> = lists.into_iter().map(|list| list.trackers).collect();
    assert_eq!(results[0], Ok(1));
    assert!(results[1].as_ref().unwrap_err().contains("no tracker"));
    assert!(results[2].as_ref().unwrap_err().contains("longer than 1 MiB"));
    // Switched off, they are forgotten.
    house.discovery.set(trackers_only());
    let forgotten = async {
        while !torrent.trackers().await.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, forgotten).await.unwrap();
    house.close().await;
}

#[tokio::test]
async fn torrents_of_one_local_network_find_each_other() {
    let in_network = |port: u16| {
        House::of(Config {
            port,
            ..config(Settings {
                is_lsd_on: true,
                ..trackers_only()
            })
        })
    };
    let (first, second) = (in_network(7004), in_network(7005));
    let mut there = first.add(&[]).await;
    let mut here = second.add(&[]).await;
    let lsd_error = first.discovery.status().lsd_error;
    assert_eq!(lsd_error, None, "this test needs a network with multicast");
    let (theirs, ours) = tokio::join!(next(&mut there), next(&mut here));
    assert_eq!((theirs[0].port(), ours[0].port()), (7005, 7004));
    first.close().await;
    second.close().await;
}

#[tokio::test]
async fn a_session_ends_when_nobody_holds_it() {
    let tracker = HttpTracker::answering(vec![answer(b"d5:peers6:\x5d\xb8\xd8\x22\0\x01e")]).await;
    let config = config(trackers_only());
    let spawned = config.tracker.clone();
    let discovery = Discovery::start(config);
    let mut torrent = discovery.add(spec(&[&tracker.url], GivenBy::User)).await;
    drop(discovery);
    assert_eq!(next(&mut torrent).await.len(), 1);
    drop(torrent);
    spawned.close();
    timeout(PATIENCE, spawned.wait()).await.expect("the session ends");
}
