//! Commands of callers.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    machine::State,
    poll,
    step::{Action, Command, CommandError, Effect, Row},
};
use crate::{
    model::{
        item::{Item, Mark, Phase},
        source::{History, MAX_SOURCES, Source, SourceId, SourceSpec, Validators},
    },
    rule::Reason,
};
use protocol::RssSourceDto;

impl State {
    pub(super) fn command(
        &mut self,
        now: Timestamp,
        command: Command,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        match command {
            Command::Add(id, settings) => self.add(now, id, *settings),
            Command::Update(id, settings) => self.update(now, id, *settings, effects),
            Command::Delete(id) => self.delete(id, effects),
            Command::Refresh(id) => self.refresh(now, id),
            Command::Act(id, guid, action) => self.act(id, &guid, action),
            Command::ReadAll(id) => self.read_all(id),
        }
    }

    fn add(&mut self, now: Timestamp, id: SourceId, settings: RssSourceDto) -> Result<(), CommandError> {
        if self.sources.contains_key(&id) {
            return Err(CommandError::SourceExists(id));
        }
        if self.sources.len() >= MAX_SOURCES {
            return Err(CommandError::TooManySources(MAX_SOURCES));
        }
        let last = self
            .sources
            .values()
            .map(|source| source.spec.settings().position)
            .max();
        let spec = SourceSpec::new(settings, None)?.at(last.map_or(0, |last| last.saturating_add(1)));
        let history = History {
            next_fetch: if spec.settings().enabled { now } else { Timestamp::MAX },
            ..History::default()
        };
        self.sources.insert(id, Arc::new(Source { id, spec, history }));
        self.edit_source(id, |_| {});
        Ok(())
    }

    fn update(
        &mut self,
        now: Timestamp,
        id: SourceId,
        settings: RssSourceDto,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        let before = Arc::clone(self.source(id)?);
        // A client that gives back what it was shown does not name the source.
        let mut settings = settings;
        if before.spec.settings().name.is_empty() && settings.name == before.history.title {
            settings.name.clear();
        }
        let spec = SourceSpec::new(settings, Some(&before.spec))?;
        let is_same_feed = spec.is_same_feed(&before.spec);
        let (is_enabled, was_enabled) = (spec.settings().enabled, before.spec.settings().enabled);
        if !is_same_feed || !is_enabled {
            self.cancel(id, effects);
        }
        let seed = self.seed;
        self.edit_source(id, |source| {
            source.spec = spec;
            if !is_enabled {
                source.history.next_fetch = Timestamp::MAX;
            } else if !is_same_feed || !was_enabled {
                source.history.next_fetch = now;
            } else {
                source.history.next_fetch = poll::no_later(source, &before, seed);
            }
            if !is_same_feed {
                source.history.validators = Validators::default();
                source.history.feed_url = None;
                source.history.fail_count = 0;
                // What is at another URL begins with a first round of its own.
                source.history.is_seeded = false;
            }
        });
        self.reindex(id);
        Ok(())
    }

    fn delete(&mut self, id: SourceId, effects: &mut Vec<Effect>) -> Result<(), CommandError> {
        let source = Arc::clone(self.source(id)?);
        self.cancel(id, effects);
        for serial in self.index.of_source.get(&id).cloned().unwrap_or_default() {
            self.remove_item(serial);
        }
        self.sources.remove(&id);
        self.pruned.remove(&id);
        self.polling.due.remove(&(source.history.next_fetch, id));
        self.changes.others.push(Row::SourceDeleted(id));
        self.changes.is_list_changed = true;
        Ok(())
    }

    fn act(&mut self, id: SourceId, guid: &str, action: Action) -> Result<(), CommandError> {
        self.source(id)?;
        let serial = self.index.by_guid.get(&Mark::of_guid(id, guid)).copied();
        let serial = serial.ok_or(CommandError::UnknownItem)?;
        let phase = self.items[&serial].phase;
        match (action, phase) {
            // It is being done.
            (Action::Download, Phase::Dispatching(_)) => {}
            (Action::Download, _) if self.items[&serial].entry.target().is_none() => {
                return Err(CommandError::NothingToDownload);
            }
            (Action::Download, _) => self.dispatch(serial, Reason::Manual),
            // What was downloaded was; it stays linked to its task.
            (Action::Ignore | Action::Read, Phase::Dispatching(_) | Phase::Downloaded(_)) => {}
            // Ignored already, perhaps for a reason that counts.
            (Action::Ignore, Phase::Ignored) => {}
            (Action::Ignore, _) => self.edit_item(serial, |item| ignore(item, Reason::Ignored)),
            (Action::Read, Phase::New) => self.edit_item(serial, |item| ignore(item, Reason::Read)),
            (Action::Read, _) => {}
        }
        Ok(())
    }

    fn read_all(&mut self, id: SourceId) -> Result<(), CommandError> {
        self.source(id)?;
        let serials = self.index.of_source.get(&id).cloned().unwrap_or_default();
        for serial in serials
            .into_iter()
            .filter(|serial| self.items[serial].phase == Phase::New)
            .collect::<Vec<_>>()
        {
            self.edit_item(serial, |item| ignore(item, Reason::Read));
        }
        Ok(())
    }
}

fn ignore(item: &mut Item, reason: Reason) {
    item.phase = Phase::Ignored;
    item.reason = reason;
}
