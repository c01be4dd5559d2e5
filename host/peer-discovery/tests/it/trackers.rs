//! Trackers that do what they should.

use std::time::{Duration, Instant};

use peer_discovery::{Config, Counters, Origin, STOP_TIME, Settings, TrackerStatus};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};
use transfer::{GivenBy, SafeUrl};

use crate::house::{HASH, House, HttpTracker, PATIENCE, answer, config, next, spec, trackers_only, udp_tracker, view};

const ONE_PEER: &[u8] = b"d8:completei3e10:incompletei4e8:intervali1800e5:peers6:\x5d\xb8\xd8\x22\x1a\xe1e";

#[tokio::test]
async fn a_torrent_announces_itself_from_its_beginning_to_its_end() {
    let mut tracker = HttpTracker::answering(vec![answer(ONE_PEER)]).await;
    let house = House::with_trackers();
    let mut torrent = house.add(&[&tracker.url]).await;
    let found = timeout(PATIENCE, torrent.next()).await.unwrap().unwrap();
    assert_eq!(
        (found.origin, &*found.peers),
        (Origin::Tracker, &["93.184.216.34:6881".parse().unwrap()][..])
    );
    let started = tracker.next_request().await;
    assert!(
        started.contains("event=started") && started.contains("&port=6999&"),
        "{started}"
    );
    assert!(
        started.contains(&format!("info_hash={}", "Z".repeat(20))) && started.contains("&left=100&"),
        "{started}"
    );

    torrent.report(Counters {
        uploaded: 7,
        downloaded: 100,
        ..Counters::default()
    });
    torrent.completed().await;
    let completed = tracker.next_request().await;
    assert!(
        completed.contains("event=completed") && completed.contains("uploaded=7&downloaded=100&left=0"),
        "{completed}"
    );
    let shown = view(&torrent, |view| view.status == TrackerStatus::Working).await;
    assert_eq!((shown.seeds, shown.leechers, shown.peers), (Some(3), Some(4), Some(1)));
    assert!(shown.next_announce.unwrap() > Instant::now() + Duration::from_mins(29));

    torrent.stop().await;
    let stopped = tracker.next_request().await;
    assert!(
        stopped.contains("event=stopped") && stopped.contains("numwant=0"),
        "{stopped}"
    );
    house.close().await;
}

#[tokio::test]
async fn dropped_subscriptions_and_the_end_of_the_session_tell_the_trackers() {
    let mut tracker = HttpTracker::answering(vec![answer(ONE_PEER)]).await;
    let house = House::with_trackers();
    let mut torrents = Vec::new();
    for _ in 0..3 {
        let mut torrent = house.add(&[&tracker.url]).await;
        next(&mut torrent).await;
        assert!(tracker.next_request().await.contains("event=started"));
        torrents.push(torrent);
    }
    torrents.pop();
    assert!(tracker.next_request().await.contains("event=stopped"));
    house.close().await;
    for _ in 0..2 {
        assert!(tracker.next_request().await.contains("event=stopped"));
    }
    // The session is over, and says so.
    assert!(torrents.pop().unwrap().next().await.is_none());
}

#[tokio::test]
async fn trackers_are_read_and_asked_by_hash_while_somebody_subscribes_to_the_torrent() {
    let mut tracker = HttpTracker::answering(vec![answer(ONE_PEER)]).await;
    let house = House::with_trackers();
    assert!(!house.discovery.announce_now(HASH).await);
    assert_eq!(house.discovery.trackers(HASH).await, None);
    let mut torrent = house.add(&[&tracker.url]).await;
    next(&mut torrent).await;
    let views = house.discovery.trackers(HASH).await.unwrap();
    assert_eq!(views[0].url.expose(), tracker.url);
    assert!(house.discovery.announce_now(HASH).await);
    assert!(tracker.next_request().await.contains("event=started"));
    torrent.stop().await;
    assert_eq!(house.discovery.trackers(HASH).await, None);
    assert!(!house.discovery.announce_now(HASH).await);
    house.close().await;
}

#[tokio::test]
async fn a_tracker_that_hangs_delays_no_end() {
    // It answers `started`, and then accepts without answering.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a", listener.local_addr().unwrap());
    let house = House::with_trackers();
    let mut torrent = house.add(&[&url]).await;
    let (mut stream, _) = listener.accept().await.unwrap();
    let _head = stream.read(&mut [0; 4096]).await.unwrap();
    stream.write_all(&answer(ONE_PEER)).await.unwrap();
    next(&mut torrent).await;
    let begin = Instant::now();
    torrent.stop().await;
    let (_hanging, _) = listener.accept().await.unwrap();
    let waited = begin.elapsed();
    assert!(
        waited > STOP_TIME / 2 && waited < STOP_TIME + Duration::from_secs(3),
        "{waited:?}"
    );
    house.close().await;
}

#[tokio::test]
async fn a_tracker_over_udp_is_asked_by_the_standard() {
    let (socket, url) = udp_tracker().await;
    let house = House::with_trackers();
    let mut torrent = house.add(&[&url]).await;
    let mut buffer = [0; 2048];
    let (length, from) = timeout(PATIENCE, socket.recv_from(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(
        (length, &buffer[..12]),
        (16, &[0, 0, 4, 0x17, 0x27, 0x10, 0x19, 0x80, 0, 0, 0, 0][..])
    );
    let transaction = buffer[12..16].to_vec();
    // Not the transaction, from another socket, too short: none of them is the answer.
    let stranger = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let connected = |transaction: &[u8], id: u8| [&[0; 4][..], transaction, &[id; 8]].concat();
    stranger.send_to(&connected(&transaction, 1), from).await.unwrap();
    socket.send_to(&connected(&[0; 4], 2), from).await.unwrap();
    socket.send_to(&connected(&transaction, 3)[..15], from).await.unwrap();
    socket.send_to(&connected(&transaction, 4), from).await.unwrap();

    let (length, from) = timeout(PATIENCE, socket.recv_from(&mut buffer)).await.unwrap().unwrap();
    assert_eq!((&buffer[..8], &buffer[8..12]), (&[4; 8][..], &[0, 0, 0, 1][..]));
    assert_eq!((&buffer[16..36], &buffer[80..84]), (&HASH.0[..], &[0, 0, 0, 2][..]));
    assert_eq!(&buffer[98..length], b"\x02\x0f/announce?key=1");
    let peers = [
        &[0, 0, 0, 1][..],
        &buffer[12..16],
        &[0, 0, 7, 8, 0, 0, 0, 1, 0, 0, 0, 2, 93, 184, 216, 34, 0, 80],
    ]
    .concat();
    socket.send_to(&peers, from).await.unwrap();
    assert_eq!(next(&mut torrent).await, ["93.184.216.34:80".parse().unwrap()]);
    let shown = view(&torrent, |view| view.status == TrackerStatus::Working).await;
    assert_eq!((shown.seeds, shown.leechers), (Some(2), Some(1)));
    drop(torrent);
    house.close().await;
}

#[tokio::test]
async fn a_lost_packet_is_sent_again() {
    let (socket, url) = udp_tracker().await;
    let house = House::with_trackers();
    let torrent = house.add(&[&url]).await;
    let mut buffer = [0; 2048];
    for _ in 0..2 {
        let received = timeout(PATIENCE, socket.recv_from(&mut buffer)).await;
        assert_eq!(received.unwrap().unwrap().0, 16);
    }
    drop(torrent);
    house.close().await;
}

#[tokio::test]
async fn peers_on_this_machine_need_a_tracker_that_the_user_named_here() {
    let body = b"d5:peers12:\x7f\x00\x00\x01\x1a\xe1\x5d\xb8\xd8\x22\x1a\xe1e";
    let tracker = HttpTracker::answering(vec![answer(body)]).await;
    let house = House::with_trackers();
    let mut torrent = house.add(&[&tracker.url]).await;
    let both = ["127.0.0.1:6881", "93.184.216.34:6881"].map(|text| text.parse().unwrap());
    assert_eq!(next(&mut torrent).await, both);
    drop(torrent);
    house.close().await;
}

#[tokio::test]
async fn a_tracker_that_a_stranger_named_is_not_reached_here() {
    let mut tracker = HttpTracker::answering(vec![answer(ONE_PEER)]).await;
    let (udp, udp_url) = udp_tracker().await;
    let house = House::with_trackers();
    let stranger = GivenBy::Other { user_host: None };
    let torrent = house.discovery.add(spec(&[&tracker.url, &udp_url], stranger)).await;
    for url in [&tracker.url, &udp_url] {
        let refused = view(&torrent, |view| view.url.expose() == *url && view.message.is_some()).await;
        assert!(refused.message.unwrap().contains("not a public address"));
    }
    assert!(tracker.requests.try_recv().is_err());
    assert!(udp.try_recv_from(&mut [0; 16]).is_err());
    drop(torrent);
    house.close().await;
}

#[tokio::test]
async fn behind_a_proxy_nothing_goes_past_it() {
    let mut proxy = HttpTracker::answering(vec![answer(ONE_PEER)]).await;
    let settings = Settings {
        is_dht_on: true,
        proxy: SafeUrl::parse(&proxy.url.replace("/announce", "")).ok(),
        ..trackers_only()
    };
    let house = House::of(Config {
        dht_addresses: vec!["127.0.0.1:0".parse().unwrap()],
        ..config(settings)
    });
    let (http, udp) = ("http://93.184.216.34/announce", "udp://93.184.216.34:1");
    let mut torrent = house.add(&[http, udp]).await;
    assert_eq!(next(&mut torrent).await.len(), 1);
    let request = proxy.next_request().await;
    assert!(
        request.starts_with("GET http://93.184.216.34/announce?info_hash="),
        "{request}"
    );
    let refused = view(&torrent, |view| view.url.expose() == udp && view.message.is_some()).await;
    assert!(refused.message.unwrap().contains("proxy"));
    assert_eq!(house.discovery.status().dht.v4, None);
    // Without the proxy the hash table begins.
    house.discovery.set(Settings {
        is_dht_on: true,
        ..trackers_only()
    });
    let begins = async {
        while house.discovery.status().dht.v4.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, begins).await.unwrap();
    house.discovery.set(trackers_only());
    torrent.stop().await;
    house.close().await;
}

#[tokio::test]
async fn many_torrents_arrive_one_after_the_other_and_all_say_goodbye() {
    const COUNT: u16 = 200;
    let mut tracker = HttpTracker::answering(vec![answer(ONE_PEER)]).await;
    let house = House::with_trackers();
    let begin = Instant::now();
    let mut torrents = Vec::new();
    for number in 0..COUNT {
        let mut torrent = spec(&[&tracker.url], GivenBy::User);
        torrent.info_hash.0[..2].copy_from_slice(&number.to_be_bytes());
        torrents.push(house.discovery.add(torrent).await);
    }
    for _ in 0..COUNT {
        assert!(tracker.next_request().await.contains("event=started"));
    }
    // Twenty milliseconds lie between two of them.
    assert!(
        begin.elapsed() > Duration::from_millis(19) * u32::from(COUNT),
        "{:?}",
        begin.elapsed()
    );
    let end = Instant::now();
    house.close().await;
    assert!(end.elapsed() < STOP_TIME, "{:?}", end.elapsed());
    for _ in 0..COUNT {
        assert!(tracker.next_request().await.contains("event=stopped"));
    }
}
