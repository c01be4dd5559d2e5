//! The info dictionary of a magnet link, from peers (BEP 9). Pure.
//!
//! Peers claim its size before anything is proved. Blocks are collected for one claimed size at a time, and memory grows
//! with the blocks that arrived, so that a claim costs nothing.

use std::{collections::BTreeMap, time::Duration};

use metainfo::MAX_INFO_BYTES;

use super::{PeerId, ban::Suspect};
use crate::wire::extension::METADATA_BLOCK_BYTES;

/// How long a peer may take to answer a request.
const ANSWER_TIME: Duration = Duration::from_secs(15);

/// Requests open with one peer.
const MAX_OPEN: usize = 2;

/// How often a peer may refuse before it is asked for nothing more.
const MAX_REFUSALS: u8 = 3;

/// A peer that has metadata.
#[derive(Debug)]
struct Source {
    claimed_bytes: u64,
    open: Vec<(u32, Duration)>,
    refusals: u8,
}

/// Collects the metadata.
#[derive(Debug, Default)]
pub(crate) struct Fetch {
    sources: BTreeMap<PeerId, Source>,
    /// The size that is being collected.
    total_bytes: u64,
    blocks: BTreeMap<u32, (Vec<u8>, Suspect)>,
    /// Only one peer is asked at a time: what several sent together was wrong, and only so it shows whose fault it is.
    is_one_by_one: bool,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Ask(PeerId, u32),
    /// Everything of the claimed size is here, from these peers; only its hash shows whether it is right.
    Check(Vec<u8>, Vec<Suspect>),
}

/// Why a peer's message ends its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused;

impl Fetch {
    /// A peer says that it has metadata of this size.
    pub(crate) fn claim(&mut self, peer: PeerId, bytes: u64) -> Result<(), Refused> {
        if bytes == 0 || bytes > MAX_INFO_BYTES as u64 {
            return Err(Refused);
        }
        self.sources.entry(peer).or_insert(Source {
            claimed_bytes: bytes,
            open: Vec::new(),
            refusals: 0,
        });
        Ok(())
    }

    pub(crate) fn leave(&mut self, peer: PeerId) {
        self.sources.remove(&peer);
    }

    /// Peers that said they have metadata.
    pub(crate) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// A block arrived. Data that was not asked for, or of the wrong length, ends the connection.
    pub(crate) fn data(&mut self, peer: PeerId, suspect: Suspect, block: u32, data: &[u8]) -> Result<(), Refused> {
        let source = self.sources.get_mut(&peer).ok_or(Refused)?;
        let open = source.open.iter().position(|(open, _)| *open == block).ok_or(Refused)?;
        source.open.swap_remove(open);
        if source.claimed_bytes != self.total_bytes {
            return Ok(());
        }
        let begin = block as usize * METADATA_BLOCK_BYTES;
        let rest = usize::try_from(self.total_bytes)
            .unwrap_or(usize::MAX)
            .saturating_sub(begin);
        if data.len() != rest.min(METADATA_BLOCK_BYTES) {
            return Err(Refused);
        }
        self.blocks.entry(block).or_insert_with(|| (data.to_vec(), suspect));
        Ok(())
    }

    pub(crate) fn refused(&mut self, peer: PeerId, block: u32) {
        if let Some(source) = self.sources.get_mut(&peer) {
            source.open.retain(|(open, _)| *open != block);
            source.refusals = source.refusals.saturating_add(1);
        }
    }

    /// What was collected has another hash.
    pub(crate) fn was_wrong(&mut self) {
        self.blocks.clear();
        self.total_bytes = 0;
        self.is_one_by_one = true;
    }

    /// What to do now. Called after every change and once a second.
    pub(crate) fn next(&mut self, now: Duration) -> Vec<Step> {
        for source in self.sources.values_mut() {
            let before = source.open.len();
            source
                .open
                .retain(|(_, since)| now.saturating_sub(*since) < ANSWER_TIME);
            if source.open.len() < before {
                source.refusals = source.refusals.saturating_add(1);
            }
        }
        let usable = |source: &Source| source.refusals < MAX_REFUSALS;
        let is_served = |bytes| {
            let mut sources = self.sources.values();
            sources.any(|source| usable(source) && source.claimed_bytes == bytes)
        };
        if self.total_bytes == 0 || !is_served(self.total_bytes) {
            let mut votes = BTreeMap::<u64, usize>::new();
            for source in self.sources.values().filter(|source| usable(source)) {
                *votes.entry(source.claimed_bytes).or_default() += 1;
            }
            let Some((bytes, _)) = votes.into_iter().max_by_key(|(_, votes)| *votes) else {
                return Vec::new();
            };
            if bytes != self.total_bytes {
                self.total_bytes = bytes;
                self.blocks.clear();
            }
        }
        let count = blocks_of(self.total_bytes);
        if self.blocks.len() == count as usize {
            let data = self.blocks.values().flat_map(|(data, _)| data).copied().collect();
            let mut suspects = Vec::new();
            for (_, suspect) in self.blocks.values() {
                if !suspects.contains(suspect) {
                    suspects.push(*suspect);
                }
            }
            return vec![Step::Check(data, suspects)];
        }
        self.ask(count, now)
    }

    fn ask(&mut self, count: u32, now: Duration) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut asked: Vec<u32> = self
            .sources
            .values()
            .flat_map(|source| &source.open)
            .map(|(block, _)| *block)
            .collect();
        let most = if self.is_one_by_one { 1 } else { usize::MAX };
        let usable = |source: &Source| source.refusals < MAX_REFUSALS && source.claimed_bytes == self.total_bytes;
        for (peer, source) in self.sources.iter_mut().filter(|(_, source)| usable(source)).take(most) {
            while source.open.len() < MAX_OPEN {
                let missing = |block: &u32| !self.blocks.contains_key(block);
                let Some(block) = (0..count).find(|block| missing(block) && !asked.contains(block)) else {
                    break;
                };
                asked.push(block);
                source.open.push((block, now));
                steps.push(Step::Ask(*peer, block));
            }
        }
        steps
    }
}

/// Blocks of metadata of this size.
pub(crate) fn blocks_of(total_bytes: u64) -> u32 {
    u32::try_from(total_bytes.div_ceil(METADATA_BLOCK_BYTES as u64)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: PeerId = PeerId(1);
    const TWO: PeerId = PeerId(2);

    fn suspect(number: u8) -> Suspect {
        Suspect::new(([192, 0, 2, number], 1).into(), [number; 20])
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn several_peers_share_the_work_and_a_slow_one_is_replaced() {
        let mut fetch = Fetch::default();
        fetch.claim(ONE, 40_000).unwrap();
        fetch.claim(TWO, 40_000).unwrap();
        assert_eq!(
            fetch.next(at(0)),
            [Step::Ask(ONE, 0), Step::Ask(ONE, 1), Step::Ask(TWO, 2)]
        );
        fetch
            .data(TWO, suspect(2), 2, &[3; 40_000 - 2 * METADATA_BLOCK_BYTES])
            .unwrap();
        fetch.data(ONE, suspect(1), 0, &[1; METADATA_BLOCK_BYTES]).unwrap();
        assert_eq!(fetch.next(at(1)), []);
        assert_eq!(fetch.next(at(15)), [Step::Ask(ONE, 1)]);
        fetch.leave(ONE);
        assert_eq!(fetch.next(at(16)), [Step::Ask(TWO, 1)]);
        fetch.data(TWO, suspect(2), 1, &[2; METADATA_BLOCK_BYTES]).unwrap();
        let [Step::Check(data, suspects)] = &fetch.next(at(17))[..] else {
            panic!("everything is here");
        };
        assert_eq!(data.len(), 40_000);
        assert_eq!(suspects[..], [suspect(1), suspect(2)]);
    }

    #[test]
    fn claims_and_data_that_cannot_be_right_are_refused() {
        let mut fetch = Fetch::default();
        assert_eq!(fetch.claim(ONE, 0), Err(Refused));
        assert_eq!(fetch.claim(ONE, MAX_INFO_BYTES as u64 + 1), Err(Refused));
        assert_eq!(fetch.data(ONE, suspect(1), 0, &[]), Err(Refused));
        fetch.claim(ONE, 100).unwrap();
        fetch.next(at(0));
        assert_eq!(fetch.data(ONE, suspect(1), 7, &[0; 100]), Err(Refused), "not asked for");
        assert_eq!(fetch.data(ONE, suspect(1), 0, &[0; 99]), Err(Refused), "too short");
    }

    #[test]
    fn after_wrong_metadata_one_peer_is_asked_at_a_time() {
        let mut fetch = Fetch::default();
        fetch.claim(ONE, 20_000).unwrap();
        fetch.claim(TWO, 20_000).unwrap();
        fetch.next(at(0));
        fetch.was_wrong();
        fetch.leave(ONE);
        fetch.claim(ONE, 20_000).unwrap();
        assert_eq!(fetch.next(at(1)), [Step::Ask(ONE, 0), Step::Ask(ONE, 1)]);
    }

    #[test]
    fn a_size_whose_peers_do_not_answer_is_given_up_for_another_one() {
        let mut fetch = Fetch::default();
        fetch.claim(ONE, 10).unwrap();
        for round in 0..u64::from(MAX_REFUSALS) {
            assert_eq!(fetch.next(at(15 * round)), [Step::Ask(ONE, 0)]);
        }
        assert_eq!(fetch.next(at(100)), []);
        fetch.claim(TWO, 20).unwrap();
        assert_eq!(fetch.next(at(100)), [Step::Ask(TWO, 0), Step::Ask(TWO, 0)][..1]);
    }
}
