//! Which episodes were taken, in which quality, and by which item.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::title::{Identity, Number, Part, Quality};

/// An episode as an item has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Claim {
    /// Its quality.
    pub quality: Quality,
    /// How often it was corrected.
    pub revision: u8,
    /// The item, by its serial number.
    pub item: u64,
}

/// The episodes that were taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// By series. One set for each, because a release of 400 episodes has as many entries.
    series: HashMap<String, BTreeSet<(Part, Claim)>>,
    of_item: BTreeMap<u64, (Identity, Claim)>,
}

impl Taken {
    /// Sets what an item takes; nothing, without an identity.
    pub fn set(&mut self, identity: Option<Identity>, claim: Claim) {
        self.remove(claim.item);
        let Some(identity) = identity else { return };
        let parts = identity.parts().into_iter().map(|part| (part, claim));
        self.series.entry(identity.series.clone()).or_default().extend(parts);
        self.of_item.insert(claim.item, (identity, claim));
    }

    /// Removes what an item took.
    pub fn remove(&mut self, item: u64) {
        let Some((identity, claim)) = self.of_item.remove(&item) else {
            return;
        };
        if let Some(claims) = self.series.get_mut(&identity.series) {
            for part in identity.parts() {
                claims.remove(&(part, claim));
            }
            if claims.is_empty() {
                self.series.remove(&identity.series);
            }
        }
    }

    /// Whether all parts were taken: an episode by itself or with its season; a season, if it or one of its episodes was.
    pub fn has_all(&self, identity: &Identity) -> bool {
        let Some(claims) = self.series.get(&identity.series) else {
            return false;
        };
        let has_any = |first, last| between(claims, first, last).next().is_some();
        identity.parts().into_iter().all(|part| {
            let with_others = match part {
                Part::Numbered(season, _) => has_any(Part::Season(season), Part::Season(season)),
                Part::Season(season) => {
                    has_any(Part::Numbered(season, Number::MIN), Part::Numbered(season, Number::MAX))
                }
                Part::Absolute(_) | Part::Day(_) => false,
            };
            with_others || has_any(part, part)
        })
    }

    /// The items that take one of its parts.
    pub fn items(&self, identity: &Identity) -> BTreeSet<u64> {
        let claims = self.series.get(&identity.series).into_iter();
        let of_parts = claims.flat_map(|claims| {
            let parts = identity.parts().into_iter();
            parts.flat_map(move |part| between(claims, part, part))
        });
        of_parts.map(|claim| claim.item).collect()
    }

    /// The best that was taken of an identity's parts: of the best rank, and of these the last correction.
    pub(super) fn best(&self, identity: &Identity, rank: impl Fn(&Claim) -> usize) -> Option<Claim> {
        let claims = self.series.get(&identity.series)?;
        let parts = identity.parts().into_iter();
        parts
            .flat_map(|part| between(claims, part, part))
            .min_by_key(|claim| (rank(claim), u8::MAX - claim.revision))
    }
}

/// The claims on the parts from `first` to `last`, inclusive.
fn between(claims: &BTreeSet<(Part, Claim)>, first: Part, last: Part) -> impl Iterator<Item = Claim> {
    let from = claims.range((first, Claim::default())..);
    from.take_while(move |(part, _)| *part <= last).map(|(_, claim)| *claim)
}
