//! Peers that lie, flood, dawdle or say nothing, found through a tracker beside an honest one.

use std::time::Duration;

use e2e::Home;
use serde_json::json;
use support::swarm::{HostilePeer, Manner, Tracker};

use super::{MIB, PIECE, Shared, below, serve, wait_until, wait_until_complete};

/// Resident memory of a process in bytes.
fn resident(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
    kib * 1024
}

#[test]
fn a_peer_that_sends_wrong_pieces_is_banned_and_the_file_is_right() {
    let mut shared = Shared::one_file(21, 4 * MIB);
    let liar = HostilePeer::start(&shared.made.hash, &shared.content, PIECE, Manner::Wrong);
    let tracker = Tracker::with_peers(&[liar.address()]);
    let home = Home::new();
    let service = serve(&home);
    let request = json!({"url": "", "torrentB64": shared.base64(), "torrent": {"trackers": [tracker.url()]}});
    let id = service.create(&request);
    wait_until("the liar was heard", || liar.sent() >= PIECE);
    let seeder = shared.seed(&[]);
    tracker.add_peer(seeder);
    service
        .rpc()
        .call("daemon.torrent.reannounce", &json!({"taskId": id}))
        .unwrap();
    wait_until_complete(&service, &id);
    shared.check(&home.downloads().join("one.bin"));
    let (sent, connections) = (liar.sent(), liar.connections());
    assert!(sent <= 4 * MIB, "it is not asked for ever: {sent} bytes");
    assert!(
        connections <= 2,
        "a peer that is banned is not asked again: {connections} connections"
    );
}

#[test]
fn peers_that_flood_dawdle_or_are_silent_cost_little_and_hold_nothing_up() {
    for manner in [Manner::Floods, Manner::Slow(Duration::from_millis(300)), Manner::Silent] {
        let mut shared = Shared::one_file(22, 6 * MIB);
        let seeder = shared.seed(&[]);
        let hostile: Vec<_> = (0..4)
            .map(|_| HostilePeer::start(&shared.made.hash, &shared.content, PIECE, manner))
            .collect();
        let mut all: Vec<_> = hostile.iter().map(HostilePeer::address).collect();
        all.push(seeder);
        let tracker = Tracker::with_peers(&all);
        let home = Home::new();
        let service = serve(&home);
        let daemon = home.daemon().unwrap().pid;
        let before = resident(daemon);
        let id = service.create(&json!({"url": shared.made.magnet(&format!("&tr={}", tracker.url()))}));
        wait_until_complete(&service, &id);
        shared.check(&home.downloads().join("one.bin"));
        assert_eq!(below(&home.downloads()), ["one.bin"], "{manner:?}");
        let more = resident(daemon).saturating_sub(before);
        assert!(more < 48 * MIB, "{manner:?}: {more} bytes of memory");
        if manner == Manner::Floods {
            let sent = hostile.iter().map(HostilePeer::sent).max().unwrap();
            assert!(sent < 64 * MIB, "a flood is cut off: {sent} bytes");
        }
    }
}
