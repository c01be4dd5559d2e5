//! Addresses of peers that a torrent may connect to. Pure.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use egress::peer::PeerReach;

use super::limits::MAX_CANDIDATES;
use crate::config::PeerSource;

/// The first pause after a failed connection; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// Failures after which an address is forgotten.
const MAX_FAILURES: u32 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    /// It is connected to, or is about to be.
    Called,
    /// It broke the protocol, sent a wrong piece, or is this program; it stays here so that it is not called again when
    /// others name it.
    Banned,
}

#[derive(Debug)]
struct Candidate {
    source: PeerSource,
    reach: PeerReach,
    failures: u32,
    not_before: Duration,
    used: Use,
    /// It had everything when it was connected: of no use while we only upload.
    is_seed: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Candidates(BTreeMap<SocketAddr, Candidate>);

impl Candidates {
    /// Adds an address. When there are too many, only the user's are added, in place of another one.
    pub(super) fn add(&mut self, address: SocketAddr, source: PeerSource, reach: PeerReach) {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        if !reach.allows(address) {
            return;
        }
        if self.0.len() >= MAX_CANDIDATES && !self.0.contains_key(&address) {
            let replaced = self
                .0
                .iter()
                .find(|(_, candidate)| candidate.used != Use::Called && candidate.source != PeerSource::User);
            match replaced.map(|(address, _)| *address) {
                Some(replaced) if source == PeerSource::User => drop(self.0.remove(&replaced)),
                _ => return,
            }
        }
        let known = self.0.entry(address).or_insert(Candidate {
            source,
            reach,
            failures: 0,
            not_before: Duration::ZERO,
            used: Use::Free,
            is_seed: false,
        });
        if source == PeerSource::User {
            known.source = source;
            known.reach = reach;
            known.not_before = Duration::ZERO;
        }
    }

    /// The next address to connect to, marked as in use.
    pub(super) fn next(&mut self, now: Duration, is_seeding: bool) -> Option<(SocketAddr, PeerReach)> {
        let free = self.0.iter_mut().filter(|(_, candidate)| {
            candidate.used == Use::Free && candidate.not_before <= now && !(is_seeding && candidate.is_seed)
        });
        let (address, candidate) = free.min_by_key(|(_, candidate)| (candidate.failures, candidate.source))?;
        candidate.used = Use::Called;
        Some((*address, candidate.reach))
    }

    /// The connection ended, or was not made.
    pub(super) fn ended(&mut self, address: SocketAddr, was_useful: bool, now: Duration) {
        let Some(candidate) = self.0.get_mut(&address) else {
            return;
        };
        if candidate.used == Use::Banned {
            return;
        }
        candidate.used = Use::Free;
        candidate.failures = if was_useful { 0 } else { candidate.failures + 1 };
        candidate.not_before = now + FIRST_PAUSE * 2_u32.pow(candidate.failures.saturating_sub(1).min(6));
        if was_useful {
            candidate.not_before = now + Duration::from_secs(10);
        }
        if candidate.failures > MAX_FAILURES && candidate.source != PeerSource::User {
            self.0.remove(&address);
        }
    }

    pub(super) fn remove(&mut self, address: SocketAddr) {
        self.0.remove(&address);
    }

    pub(super) fn source(&self, address: SocketAddr) -> Option<PeerSource> {
        self.0.get(&address).map(|candidate| candidate.source)
    }

    /// Never calls the address again.
    pub(super) fn ban(&mut self, address: SocketAddr) {
        if let Some(candidate) = self.0.get_mut(&address) {
            candidate.used = Use::Banned;
        }
    }

    /// The peer has everything.
    pub(super) fn note_seed(&mut self, address: SocketAddr) {
        if let Some(candidate) = self.0.get_mut(&address) {
            candidate.is_seed = true;
        }
    }

    /// Whether there is an address to connect to, now or later.
    pub(super) fn are_any(&self, is_seeding: bool) -> bool {
        self.0
            .values()
            .any(|candidate| candidate.used != Use::Banned && !(is_seeding && candidate.is_seed))
    }

    /// No connection is left.
    pub(super) fn release_all(&mut self) {
        for candidate in self.0.values_mut() {
            if candidate.used == Use::Called {
                candidate.used = Use::Free;
            }
            candidate.not_before = Duration::ZERO;
        }
    }
}
