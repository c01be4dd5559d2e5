//! Peers that sent wrong data. Pure.

use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
};

/// Bans that are remembered. Beyond that the oldest is forgotten: a ban saves traffic, and nothing depends on it.
const MAX_BANS: usize = 1000;

/// What a ban names. Peers are banned by address, whatever their port. Only on this machine, where several clients
/// share an address, also by the identity that they choose. Web servers have no address here, only an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspect {
    ip: IpAddr,
    peer_id: Option<[u8; 20]>,
}

impl Suspect {
    pub(crate) fn new(address: SocketAddr, peer_id: [u8; 20]) -> Self {
        let ip = address.ip().to_canonical();
        Self {
            ip,
            peer_id: (ip.is_loopback() || ip.is_unspecified()).then_some(peer_id),
        }
    }
}

/// Who is banned, and who is under suspicion: a peer that sent a part of a wrong piece and is asked only for whole pieces
/// until one proves it right or wrong.
#[derive(Debug, Default)]
pub(crate) struct Bans {
    banned: VecDeque<Suspect>,
    suspects: VecDeque<Suspect>,
}

impl Bans {
    pub(crate) fn is_banned(&self, suspect: Suspect) -> bool {
        self.banned.contains(&suspect)
    }

    pub(crate) fn is_suspect(&self, suspect: Suspect) -> bool {
        !self.suspects.is_empty() && self.suspects.contains(&suspect)
    }

    /// Number of bans.
    pub(crate) fn len(&self) -> usize {
        self.banned.len()
    }

    /// A piece of these peers was wrong. Returns the one that must have done it; otherwise all of them are suspects.
    pub(crate) fn accuse(&mut self, contributors: &[Suspect]) -> Option<Suspect> {
        if let [culprit] = contributors {
            self.suspects.retain(|suspect| suspect != culprit);
            if !self.is_banned(*culprit) {
                push(&mut self.banned, *culprit);
            }
            return Some(*culprit);
        }
        for suspect in contributors {
            if !self.is_suspect(*suspect) {
                push(&mut self.suspects, *suspect);
            }
        }
        None
    }

    /// A whole piece of this peer was right.
    pub(crate) fn acquit(&mut self, suspect: Suspect) {
        self.suspects.retain(|other| *other != suspect);
    }
}

fn push(list: &mut VecDeque<Suspect>, suspect: Suspect) {
    if list.len() == MAX_BANS {
        list.pop_front();
    }
    list.push_back(suspect);
}
