//! From the saved rows to a state.

use std::sync::Arc;

use jiff::Timestamp;

use super::{machine::State, step::Effect};
use crate::model::{
    item::{Item, Mark, Phase},
    source::{Source, SourceId},
};

/// All saved rows.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The sources.
    pub sources: Vec<Source>,
    /// Their items.
    pub items: Vec<Item>,
    /// Identifiers of items that are not kept, oldest first.
    pub pruned: Vec<(SourceId, Mark)>,
}

impl State {
    /// Continues from saved rows at `now`: tasks whose creation was not confirmed are asked for again, with the same
    /// ids. `seed` is a random number of the installation.
    pub fn load(loaded: Loaded, seed: u64, now: Timestamp, effects: &mut Vec<Effect>) -> Self {
        let mut state = Self {
            seed,
            ..Self::default()
        };
        for source in loaded.sources {
            state.polling.due.insert((source.history.next_fetch, source.id));
            state.sources.insert(source.id, Arc::new(source));
        }
        for (source, mark) in loaded.pruned {
            state.pruned.entry(source).or_default().push_back(mark);
        }
        // A source that was deleted has no items, whatever a crash left of them.
        let known = loaded
            .items
            .into_iter()
            .filter(|item| state.sources.contains_key(&item.source));
        let items: Vec<_> = known.collect();
        for item in items {
            state.next_serial = state.next_serial.max(item.serial + 1);
            state.index(&item);
            state.items.insert(item.serial, Arc::new(item));
        }
        let unconfirmed = state
            .items
            .values()
            .filter(|item| matches!(item.phase, Phase::Dispatching(_)));
        let unconfirmed: Vec<_> = unconfirmed.map(|item| item.serial).collect();
        for serial in unconfirmed {
            state.create(serial);
        }
        state.spread_overdue(now);
        state.start_due(now, effects);
        state.flush(effects);
        state
    }
}
