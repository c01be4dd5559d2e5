//! Trackers, clients and nodes of other people's making: opentracker, libtorrent.

use std::{
    net::{TcpListener, UdpSocket},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Stdio,
};

use peer_discovery::{Config, Settings, TrackerStatus};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::house::{HASH, House, PATIENCE, config, next, trackers_only, view};

/// A port that nothing uses now, for both protocols.
fn free_port() -> u16 {
    loop {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// opentracker on a port of both protocols. Debian's serves only torrents of a list, which it reads as another user.
fn opentracker(port: u16, directory: &Path) -> Child {
    let (port, list) = (port.to_string(), directory.join("torrents"));
    std::fs::write(&list, format!("{HASH}\n")).unwrap();
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    Command::new("opentracker")
        .args(["-i", "127.0.0.1", "-p", &port, "-P", &port, "-w"])
        .arg(list)
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("this test needs the program opentracker (apt-get install opentracker); tests/run installs it")
}

/// A client of libtorrent with this torrent.
struct Libtorrent {
    _child: Child,
    _stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Libtorrent {
    fn start(port: u16, node: u16, other: u16, trackers: &[&str]) -> Self {
        let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients");
        let mut child = Command::new(clients.join("python"))
            .arg(clients.join("libtorrent_peers.py"))
            .arg(HASH.to_string())
            .args([port, node, other].map(|number| number.to_string()))
            .args(trackers)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the launcher is a script of ours");
        Self {
            _stdin: child.stdin.take().unwrap(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            _child: child,
        }
    }

    /// Waits until it says something with all of this in it, and returns that. Its first start may have to install it.
    async fn says(&mut self, parts: &[&str]) -> String {
        let reading = async {
            let mut said = Vec::new();
            while let Some(line) = self.lines.next_line().await.unwrap() {
                assert!(!line.contains("\"error\""), "{line}");
                if parts.iter().all(|part| line.contains(part)) {
                    return line;
                }
                said.push(line);
            }
            panic!("libtorrent ended after {said:#?}");
        };
        timeout(PATIENCE * 8, reading).await.expect("libtorrent gets there")
    }
}

#[tokio::test]
async fn opentracker_brings_us_and_libtorrent_together_over_both_protocols() {
    let port = free_port();
    let directory = tempfile::tempdir().unwrap();
    let _tracker = opentracker(port, directory.path());
    let (http, udp) = (
        format!("http://127.0.0.1:{port}/announce"),
        format!("udp://127.0.0.1:{port}"),
    );
    // Nothing listens on this port, which is below the range of ephemeral ports.
    let ours = 7002;
    let mut libtorrent = Libtorrent::start(0, 0, 0, &[&http]);
    let listening = libtorrent.says(&["\"listening\""]).await;
    let theirs = listening.trim_matches(|other: char| !other.is_ascii_digit());
    let expected = format!("127.0.0.1:{theirs}").parse().unwrap();
    libtorrent.says(&["\"tracker\"", &http]).await;
    for url in [&http, &udp] {
        let house = House::of(Config {
            port: ours,
            ..config(trackers_only())
        });
        let mut torrent = house.add(&[url]).await;
        // The tracker lists us, too.
        let found = next(&mut torrent).await;
        assert!(found.contains(&expected), "{url}: {found:?}, not {expected}");
        let working = view(&torrent, |view| view.status == TrackerStatus::Working).await;
        assert_eq!((working.leechers, working.message), (Some(2), None), "{url}");
        torrent.stop().await;
        house.close().await;
    }
    // We have said that we are gone, over UDP last: a client that comes now finds the other one only.
    let house = House::with_trackers();
    let mut torrent = house.add(&[&udp]).await;
    let ours = format!("127.0.0.1:{ours}").parse().unwrap();
    assert!(!next(&mut torrent).await.contains(&ours));
    house.close().await;
}

#[tokio::test]
async fn nodes_of_libtorrent_and_ours_are_one_hash_table() {
    let ports = [free_port(), free_port(), free_port()];
    let [first, second, ours] = ports;
    // A node of libtorrent listens on the port of its client.
    let mut announcer = Libtorrent::start(first, first, ours, &[]);
    let mut searcher = Libtorrent::start(second, second, first, &[]);
    let settings = Settings {
        is_dht_on: true,
        ..trackers_only()
    };
    let house = House::of(Config {
        port: 7003,
        dht_addresses: vec![([127, 0, 0, 1], ours).into()],
        dht_bootstrap: [first, second].map(|port| ("127.0.0.1".to_owned(), port)).to_vec(),
        ..config(settings)
    });
    let mut torrent = house.add(&[]).await;
    // They find us through the table,
    announcer.says(&["\"dht\"", "127.0.0.1:7003"]).await;
    searcher.says(&["\"dht\"", "127.0.0.1:7003"]).await;
    // and we find them.
    let expected = [first, second].map(|port| format!("127.0.0.1:{port}").parse().unwrap());
    while !next(&mut torrent).await.iter().any(|peer| expected.contains(peer)) {}
    house.close().await;
}
