//! The state, its indices, and the rows and events that a change causes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;

use super::step::{CommandError, Effect, Event, Row, RunId};
use crate::{
    model::{
        item::{Item, Mark, Phase, TaskId, marks, title_and_time},
        source::{Source, SourceId},
    },
    rule::{Claim, Reason, Taken},
};

/// All sources and items.
#[derive(Debug, Default)]
pub struct State {
    pub(super) sources: BTreeMap<SourceId, Arc<Source>>,
    pub(super) items: BTreeMap<u64, Arc<Item>>,
    /// Identifiers of items that are not kept, oldest first.
    pub(super) pruned: BTreeMap<SourceId, VecDeque<Mark>>,
    pub(super) index: Index,
    pub(super) polling: Polling,
    pub(super) changes: Changes,
    /// The number of the next item.
    pub(super) next_serial: u64,
    /// Makes the times of fetches differ from those of other installations.
    pub(super) seed: u64,
}

/// What follows from sources and items.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Index {
    pub(super) of_source: BTreeMap<SourceId, BTreeSet<u64>>,
    pub(super) by_guid: HashMap<Mark, u64>,
    /// Items with a mark; twins have one of their own.
    pub(super) by_mark: HashMap<Mark, BTreeSet<u64>>,
    pub(super) by_task: HashMap<TaskId, u64>,
    pub(super) taken: Taken,
    /// What items would have that were left because another one has it.
    pub(super) duplicates: Taken,
    pub(super) unread: BTreeMap<SourceId, u32>,
}

/// Fetches that are due or alive. Not saved.
#[derive(Debug, Default)]
pub(super) struct Polling {
    /// Sources by when they are due.
    pub(super) due: BTreeSet<(Timestamp, SourceId)>,
    pub(super) alive: BTreeMap<SourceId, (RunId, String)>,
    /// When a host may be asked again.
    pub(super) free_at: HashMap<String, Timestamp>,
    pub(super) next_run: u64,
}

/// What changed since the last flush.
#[derive(Debug, Default)]
pub(super) struct Changes {
    sources: BTreeSet<SourceId>,
    items: BTreeSet<u64>,
    /// Rows of what does not exist any more, or marks.
    pub(super) others: Vec<Row>,
    pub(super) is_list_changed: bool,
    /// Titles of new downloads of sources whose items changed.
    pub(super) titles: BTreeMap<SourceId, Vec<String>>,
    /// Effects that come after the rows.
    pub(super) then: Vec<Effect>,
}

impl State {
    pub(super) fn source(&self, id: SourceId) -> Result<&Arc<Source>, CommandError> {
        self.sources.get(&id).ok_or(CommandError::UnknownSource(id))
    }

    /// Changes a source and notes that it did.
    pub(super) fn edit_source(&mut self, id: SourceId, edit: impl FnOnce(&mut Source)) {
        let Some(source) = self.sources.get_mut(&id) else {
            return;
        };
        let source = Arc::make_mut(source);
        self.polling.due.remove(&(source.history.next_fetch, id));
        edit(source);
        self.polling.due.insert((source.history.next_fetch, id));
        self.changes.sources.insert(id);
        self.changes.is_list_changed = true;
    }

    /// Adds an item, or replaces what is known of it.
    pub(super) fn put_item(&mut self, item: Item) {
        self.unindex(item.serial);
        self.changes.items.insert(item.serial);
        self.changes.titles.entry(item.source).or_default();
        self.changes.is_list_changed = true;
        self.next_serial = self.next_serial.max(item.serial + 1);
        self.index(&item);
        self.items.insert(item.serial, Arc::new(item));
    }

    pub(super) fn edit_item(&mut self, serial: u64, edit: impl FnOnce(&mut Item)) {
        if let Some(item) = self.items.get(&serial) {
            let mut item = (**item).clone();
            edit(&mut item);
            self.put_item(item);
        }
    }

    pub(super) fn remove_item(&mut self, serial: u64) {
        self.unindex(serial);
        if let Some(item) = self.items.remove(&serial) {
            self.changes.items.remove(&serial);
            self.changes.others.push(Row::ItemDeleted(serial));
            self.changes.titles.entry(item.source).or_default();
        }
    }

    /// Indexes the items of a source again, after what it does with them changed.
    pub(super) fn reindex(&mut self, source: SourceId) {
        let serials = self.index.of_source.get(&source).cloned().unwrap_or_default();
        for serial in serials {
            self.unindex(serial);
            if let Some(item) = self.items.get(&serial).cloned() {
                self.index(&item);
            }
        }
    }

    pub(super) fn index(&mut self, item: &Item) {
        let index = &mut self.index;
        index.of_source.entry(item.source).or_default().insert(item.serial);
        index
            .by_guid
            .insert(Mark::of_guid(item.source, &item.entry.guid), item.serial);
        for mark in marks(&item.entry)
            .into_iter()
            .chain(title_and_time(item.source, &item.entry))
        {
            index.by_mark.entry(mark).or_default().insert(item.serial);
        }
        if let Some(task) = item.task() {
            index.by_task.insert(task, item.serial);
        }
        if item.phase == Phase::New {
            *index.unread.entry(item.source).or_default() += 1;
        }
        // An item whose task cannot be created does not keep others from the episode.
        let is_stuck = item.phase == Phase::New && item.failures > 0;
        let has_episode = self.claims(item) && !item.has_failed && !is_stuck;
        if has_episode || item.reason == Reason::DuplicateEpisode {
            let release = item.release();
            let claim = Claim {
                quality: release.quality,
                revision: release.revision,
                item: item.serial,
            };
            let identity = release.identity(self.feed_title(item.source));
            let index = &mut self.index;
            let of = if has_episode {
                &mut index.taken
            } else {
                &mut index.duplicates
            };
            of.set(identity, claim);
        }
    }

    fn unindex(&mut self, serial: u64) {
        let Some(item) = self.items.get(&serial).cloned() else {
            return;
        };
        let index = &mut self.index;
        index.taken.remove(serial);
        index.duplicates.remove(serial);
        let serials = index.of_source.get_mut(&item.source);
        if serials.is_some_and(|serials| serials.remove(&serial) && serials.is_empty()) {
            index.of_source.remove(&item.source);
        }
        index.by_guid.remove(&Mark::of_guid(item.source, &item.entry.guid));
        for mark in marks(&item.entry)
            .into_iter()
            .chain(title_and_time(item.source, &item.entry))
        {
            let serials = index.by_mark.get_mut(&mark);
            if serials.is_some_and(|serials| serials.remove(&serial) && serials.is_empty()) {
                index.by_mark.remove(&mark);
            }
        }
        if let Some(task) = item.task() {
            index.by_task.remove(&task);
        }
        if item.phase == Phase::New {
            let unread = index.unread.entry(item.source).or_default();
            *unread -= 1;
            if *unread == 0 {
                index.unread.remove(&item.source);
            }
        }
    }

    /// Whether what the item is must not be downloaded again: it was, or it will be without being asked for.
    pub(super) fn claims(&self, item: &Item) -> bool {
        let downloads = || {
            self.sources
                .get(&item.source)
                .is_some_and(|source| source.spec.downloads())
        };
        item.is_settled() || (item.phase == Phase::New && (item.reason == Reason::Manual || downloads()))
    }

    /// The name under which a feed's items that name no series are known.
    pub(super) fn feed_title(&self, source: SourceId) -> &str {
        self.sources.get(&source).map_or("", |source| source.name())
    }

    /// Appends the rows of what changed, then what depends on them, then the events.
    pub(super) fn flush(&mut self, effects: &mut Vec<Effect>) {
        let changes = std::mem::take(&mut self.changes);
        let sources = changes.sources.iter().filter_map(|id| self.sources.get(id));
        effects.extend(sources.map(|source| Effect::Save(Row::Source(Arc::clone(source)))));
        let items = changes.items.iter().filter_map(|serial| self.items.get(serial));
        effects.extend(items.map(|item| Effect::Save(Row::Item(Arc::clone(item)))));
        effects.extend(changes.others.into_iter().map(Effect::Save));
        effects.extend(changes.then);
        let events = changes
            .titles
            .into_iter()
            .filter(|(source, _)| self.sources.contains_key(source));
        effects.extend(events.map(|(source, titles)| Effect::Emit(Event::ItemsChanged(source, titles))));
        if changes.is_list_changed {
            effects.push(Effect::Emit(Event::SourcesChanged));
        }
    }
}
