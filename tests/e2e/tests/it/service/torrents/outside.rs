//! Who is asked besides peers, and who is not: web servers, trackers of the user, the hash table, proxies.

use std::{fs, time::Duration};

use e2e::{Home, Nginx};
use serde_json::json;
use support::{
    Proxy,
    swarm::{HostilePeer, Libtorrent, MakeTorrent, Manner, Silence, Tracker, free_port},
};

use super::{
    BASE64, Content, MIB, PIECE, Shared, below, many_files, peers, serve, set, wait_until, wait_until_complete,
};

/// Long enough for everything that a torrent sends at its start.
const A_WHILE: Duration = Duration::from_secs(3);

/// Waits, for something that must not happen.
#[expect(clippy::disallowed_methods, reason = "what does not happen cannot be waited for")]
fn wait_a_while() {
    std::thread::sleep(A_WHILE);
}

#[test]
fn files_arrive_from_a_web_server_alone() {
    let source = tempfile::tempdir().unwrap();
    let site = source.path().join("site");
    let top = site.join("many");
    fs::create_dir_all(&top).unwrap();
    let mut files = many_files(&top, 20);
    let large = Content::seeded(99, 3 * MIB + 1);
    fs::write(top.join("large file.bin"), large.to_vec()).unwrap();
    files.push(("large file.bin".to_owned(), large));
    let nginx = Nginx::serve(&site);
    let mut maker = Libtorrent::start();
    let made = maker.make(
        &top,
        &MakeTorrent {
            piece: PIECE,
            webseeds: &[&nginx.url()],
            ..MakeTorrent::default()
        },
    );
    let home = Home::new();
    let service = serve(&home);
    let id = service.create(&json!({"url": "", "torrentB64": BASE64.encode(&made.bytes())}));
    wait_until_complete(&service, &id);
    for (name, content) in &files {
        let path = home.downloads().join("many").join(name);
        assert_eq!(content.difference(&path).unwrap(), None, "{name}");
    }
    assert_eq!(below(&home.downloads()).len(), files.len());
    let sent: u64 = nginx.answers().iter().map(|(.., bytes)| bytes).sum();
    let total: u64 = files.iter().map(|(_, content)| content.len()).sum();
    assert!(sent <= total + MIB, "{sent} bytes for {total}");
}

#[test]
fn a_web_server_and_peers_share_the_work_of_a_magnet_link() {
    let mut shared = Shared::one_file(61, 8 * MIB);
    let nginx = Nginx::serve(shared.source.path());
    let seeder = shared.seed(&[]);
    shared.libtorrent.limit_upload(1 << 20);
    let home = Home::new();
    let service = serve(&home);
    let url = shared
        .made
        .magnet(&format!("&ws={}one.bin{}", nginx.url(), peers(&[seeder])));
    let id = service.create(&json!({"url": url}));
    wait_until_complete(&service, &id);
    shared.check(&home.downloads().join("one.bin"));
    let of_server: u64 = nginx.answers().iter().map(|(.., bytes)| bytes).sum();
    assert!(
        of_server > MIB,
        "{of_server} bytes from the server, {} from the peer",
        shared.libtorrent.uploaded()
    );
}

#[test]
fn a_private_torrent_is_known_to_its_trackers_only() {
    for is_private in [true, false] {
        let (own, of_user) = (Tracker::with_peers(&[]), Tracker::with_peers(&[]));
        let url = own.url();
        let how = MakeTorrent {
            is_private,
            trackers: &[&url],
            ..MakeTorrent::default()
        };
        let mut shared = Shared::made_so(62, 2 * MIB, &how);
        let seeder = shared.seed(&[]);
        own.add_peer(seeder);
        let home = Home::new();
        let service = serve(&home);
        set(
            &service,
            &[("bt_enable_dht", "true"), ("bt_custom_trackers", &of_user.url())],
        );
        let request = json!({"url": "", "torrentB64": shared.base64(), "torrent": {"trackers": [of_user.url()]}});
        let id = service.create(&request);
        wait_until_complete(&service, &id);
        shared.check(&home.downloads().join("one.bin"));
        assert!(!own.announces().is_empty());
        let description = service
            .rpc()
            .call("daemon.torrent.get", &json!({"taskId": id}))
            .unwrap();
        assert_eq!(description["isPrivate"], is_private, "{description}");
        if is_private {
            wait_a_while();
            assert_eq!(of_user.announces(), [], "a private torrent is told to no other tracker");
        } else {
            wait_until("the user's tracker is told", || !of_user.announces().is_empty());
        }
    }
}

#[test]
fn with_a_proxy_trackers_are_asked_through_it_and_no_datagram_is_sent() {
    let mut shared = Shared::one_file(64, 2 * MIB);
    let seeder = shared.seed(&[]);
    let tracker = Tracker::with_peers(&[seeder]);
    let silence = Silence::start();
    let proxy = Proxy::socks5(&[], None);
    let home = Home::new();
    let service = serve(&home);
    set(&service, &[("bt_enable_dht", "true")]);
    let url = shared.made.magnet(&format!(
        "&tr=udp://{}/announce&tr={}",
        silence.address(),
        tracker.url()
    ));
    let id = service.create(&json!({"url": url, "proxyUrl": format!("socks5://127.0.0.1:{}", proxy.port())}));
    wait_until("the tracker is asked", || !tracker.announces().is_empty());
    let asked = proxy.requests();
    assert!(
        asked.iter().any(|request| tracker.url().contains(&request.target)),
        "the tracker is asked through the proxy: {asked:?}"
    );
    wait_a_while();
    assert_eq!(
        silence.received(),
        0,
        "a datagram would show the address that the proxy hides"
    );
    // Peers are reached through it, too, or not at all.
    let direct = shared.libtorrent.state()["peers"].as_u64().unwrap();
    let through = proxy
        .requests()
        .iter()
        .filter(|request| request.target == seeder.to_string())
        .count();
    assert!(
        direct == 0 || through > 0,
        "a peer was reached past the proxy: {}",
        service.task(&id)
    );
}

#[test]
fn a_peer_that_only_another_peer_names_is_not_looked_for_on_this_machine() {
    // It would be a way to have the service connect to anything that listens here.
    let shared = Shared::one_file(65, MIB);
    let listener = std::net::TcpListener::bind(("127.0.0.1", free_port())).unwrap();
    listener.set_nonblocking(true).unwrap();
    let named = listener.local_addr().unwrap();
    let manner = Manner::Names(named);
    let peer = HostilePeer::start(&shared.made.hash, &shared.content, PIECE, manner);
    let home = Home::new();
    let service = serve(&home);
    let _id = service.create(&json!({"url": shared.made.magnet(&peers(&[peer.address()]))}));
    wait_until("the peer is asked", || peer.connections() > 0);
    wait_a_while();
    assert!(listener.accept().is_err(), "the service connected to {named}");
}
