//! The peers that other nodes announced to us, and the tokens that prove their addresses. Pure.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use metainfo::InfoHash;
use sha1::{Digest as _, Sha1};

/// A peer that is not announced again is forgotten; peers announce every half an hour at the latest.
const LIFE: Duration = Duration::from_mins(45);

/// Torrents of which peers are kept.
const MAX_TORRENTS: usize = 1_000;

/// Peers of a torrent that are kept.
const MAX_PEERS: usize = 100;

/// Peers of an answer, which must fit into a frame beside its nodes.
const MAX_ANSWER: usize = 40;

/// A token is valid between this and twice as long (BEP 5 says ten minutes).
const TOKEN_LIFE: Duration = Duration::from_mins(5);

const TOKEN_BYTES: usize = 8;

/// The secret of which tokens are made.
type Secret = [u8; 20];

#[derive(Debug)]
pub(super) struct Store {
    torrents: HashMap<InfoHash, HashMap<SocketAddr, Instant>>,
    secrets: [Secret; 2],
    changed: Instant,
}

impl Store {
    pub(super) fn new(secret: Secret, now: Instant) -> Self {
        Self {
            torrents: HashMap::new(),
            secrets: [secret; 2],
            changed: now,
        }
    }

    /// Forgets peers and tokens that are too old. `secret` is for new tokens.
    pub(super) fn maintain(&mut self, now: Instant, secret: Secret) {
        if now.duration_since(self.changed) >= TOKEN_LIFE {
            self.secrets = [secret, self.secrets[0]];
            self.changed = now;
        }
        self.torrents.retain(|_, peers| {
            peers.retain(|_, heard| now.duration_since(*heard) < LIFE);
            !peers.is_empty()
        });
    }

    /// What a node must return to announce a peer.
    pub(super) fn token(&self, node: IpAddr) -> [u8; TOKEN_BYTES] {
        token(&self.secrets[0], node)
    }

    pub(super) fn is_token(&self, node: IpAddr, token_given: &[u8]) -> bool {
        self.secrets.iter().any(|secret| token(secret, node) == token_given)
    }

    /// Keeps a peer, if there is room for it.
    pub(super) fn announce(&mut self, info_hash: InfoHash, peer: SocketAddr, now: Instant) {
        if self.torrents.len() >= MAX_TORRENTS && !self.torrents.contains_key(&info_hash) {
            return;
        }
        let peers = self.torrents.entry(info_hash).or_default();
        if peers.len() < MAX_PEERS || peers.contains_key(&peer) {
            peers.insert(peer, now);
        }
    }

    /// Some peers of a torrent.
    pub(super) fn peers(&self, info_hash: InfoHash) -> Vec<SocketAddr> {
        let peers = self.torrents.get(&info_hash).into_iter().flatten();
        peers.map(|(peer, _)| *peer).take(MAX_ANSWER).collect()
    }
}

fn token(secret: &Secret, node: IpAddr) -> [u8; TOKEN_BYTES] {
    let mut hash = Sha1::new();
    hash.update(secret);
    match node.to_canonical() {
        IpAddr::V4(v4) => hash.update(v4.octets()),
        IpAddr::V6(v6) => hash.update(v6.octets()),
    }
    let digest: [u8; 20] = hash.finalize().into();
    *digest.first_chunk().expect("a digest is longer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_announces_is_bounded_and_ends() {
        let now = Instant::now();
        let mut store = Store::new([1; 20], now);
        for number in 0..3_000_u32 {
            let mut hash = [0; 20];
            hash[..4].copy_from_slice(&number.to_be_bytes());
            let peer = SocketAddr::from((number.to_be_bytes(), 1));
            store.announce(InfoHash(hash), peer, now);
            store.announce(InfoHash([9; 20]), peer, now);
        }
        assert_eq!(store.torrents.len(), MAX_TORRENTS);
        assert_eq!(store.torrents[&InfoHash([9; 20])].len(), MAX_PEERS);
        assert_eq!(store.peers(InfoHash([9; 20])).len(), MAX_ANSWER);
        store.maintain(now + LIFE, [2; 20]);
        assert!(store.torrents.is_empty());
    }

    #[test]
    fn a_token_is_for_one_address_and_ten_minutes() {
        let now = Instant::now();
        let node = "1.2.3.4".parse().unwrap();
        let mut store = Store::new([1; 20], now);
        let token = store.token(node);
        assert!(store.is_token(node, &token));
        assert!(!store.is_token("1.2.3.5".parse().unwrap(), &token) && !store.is_token(node, b""));
        store.maintain(now + TOKEN_LIFE, [2; 20]);
        assert!(store.is_token(node, &token));
        store.maintain(now + TOKEN_LIFE * 2, [3; 20]);
        assert!(!store.is_token(node, &token));
    }
}
