//! Who may download from us. Pure.

use std::time::Duration;

use super::PeerId;

/// How often the choice is made anew (BEP 3).
pub(crate) const RECHOKE_EVERY: Duration = Duration::from_secs(10);

/// How long the optimistic slot stays with a peer (BEP 3).
pub(crate) const OPTIMISTIC_FOR: Duration = Duration::from_secs(30);

/// A peer that was served this long makes way for others while we only upload.
const ROUND: Duration = Duration::from_mins(1);

/// A peer that wants data of us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) peer: PeerId,
    /// Bytes per second that it sent us while we download, or that we sent it while we only upload.
    pub(crate) rate: u64,
    pub(crate) is_unchoked: bool,
    /// Since when it has been choked or unchoked.
    pub(crate) since: Duration,
}

/// Who is served next.
#[derive(Debug, Default)]
pub(crate) struct Choker {
    optimistic: Option<(PeerId, Duration)>,
}

impl Choker {
    /// The peers to serve, at most `slots`. The best ones, and one that waited longest, so that a peer that we know nothing
    /// about can show what it gives.
    pub(crate) fn choose(
        &mut self,
        mut candidates: Vec<Candidate>,
        slots: usize,
        is_seeding: bool,
        now: Duration,
    ) -> Vec<PeerId> {
        if candidates.len() <= slots {
            self.optimistic = None;
            return candidates.into_iter().map(|candidate| candidate.peer).collect();
        }
        let has_had_its_round =
            |candidate: &Candidate| is_seeding && candidate.is_unchoked && now.saturating_sub(candidate.since) >= ROUND;
        candidates.sort_by_key(|candidate| {
            let waited = (!candidate.is_unchoked).then_some(candidate.since);
            (
                has_had_its_round(candidate),
                std::cmp::Reverse(candidate.rate),
                waited.unwrap_or(Duration::MAX),
                candidate.peer,
            )
        });
        let Some(regular) = slots.checked_sub(1) else {
            return Vec::new();
        };
        let mut served: Vec<_> = candidates[..regular].iter().map(|candidate| candidate.peer).collect();
        let rest = &candidates[regular..];
        let stays = self.optimistic.filter(|(peer, since)| {
            now.saturating_sub(*since) < OPTIMISTIC_FOR && rest.iter().any(|candidate| candidate.peer == *peer)
        });
        let optimistic = stays.unwrap_or_else(|| {
            let waiting = rest.iter().filter(|candidate| !candidate.is_unchoked);
            let longest = waiting.min_by_key(|candidate| (candidate.since, candidate.peer));
            (longest.unwrap_or(&rest[0]).peer, now)
        });
        self.optimistic = Some(optimistic);
        served.push(optimistic.0);
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(peer: u64, rate: u64, unchoked_since: Option<u64>) -> Candidate {
        Candidate {
            peer: PeerId(peer),
            rate,
            is_unchoked: unchoked_since.is_some(),
            since: Duration::from_secs(unchoked_since.unwrap_or(0)),
        }
    }

    fn check(candidates: &[Candidate], is_seeding: bool, now: u64, expected: &[u64]) {
        let mut choker = Choker::default();
        let served = choker.choose(candidates.to_vec(), 2, is_seeding, Duration::from_secs(now));
        assert_eq!(served, expected.iter().copied().map(PeerId).collect::<Vec<_>>());
    }

    #[test]
    fn the_best_peer_and_the_one_that_waited_longest_are_served() {
        let all = [
            candidate(1, 10, Some(5)),
            candidate(2, 90, None),
            candidate(3, 20, Some(5)),
            candidate(4, 0, None),
        ];
        check(&all[..2], false, 10, &[1, 2]);
        check(&all, false, 10, &[2, 4]);
    }

    #[test]
    fn while_seeding_a_peer_makes_way_after_its_round() {
        let all = [
            candidate(1, 90, Some(0)),
            candidate(2, 10, Some(0)),
            candidate(3, 0, None),
        ];
        check(&all, true, 30, &[1, 3]);
        check(&all, true, 61, &[3, 1]);
    }

    #[test]
    fn the_optimistic_slot_moves_on_after_its_time() {
        let all = [candidate(1, 90, None), candidate(2, 0, None), candidate(3, 0, None)];
        let mut choker = Choker::default();
        let at = |choker: &mut Choker, all: &[Candidate], now| {
            choker.choose(all.to_vec(), 2, false, Duration::from_secs(now))[1]
        };
        assert_eq!(at(&mut choker, &all, 0), PeerId(2));
        let served = [
            all[0],
            Candidate {
                is_unchoked: true,
                ..all[1]
            },
            all[2],
        ];
        assert_eq!(at(&mut choker, &served, 10), PeerId(2));
        assert_eq!(at(&mut choker, &served, 30), PeerId(3));
    }
}
