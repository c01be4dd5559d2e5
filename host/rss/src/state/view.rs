//! Sources and items as clients see them.

use std::{cmp::Reverse, collections::HashSet};

use jiff::Timestamp;

use super::{machine::State, step::CommandError};
use crate::model::{
    item::{Item, Phase},
    source::{Source, SourceId, SourceSpec},
};
use protocol::{RssItemDto, RssItemStatus, RssSourceDto};

impl State {
    /// All sources, in their order.
    pub fn sources(&self) -> Vec<RssSourceDto> {
        let mut sources: Vec<_> = self.sources.values().map(|source| self.shown(source)).collect();
        sources.sort_by(|a, b| (a.position, &a.name, &a.source_id).cmp(&(b.position, &b.name, &b.source_id)));
        sources
    }

    /// The settings of a source, secrets included.
    pub fn spec(&self, id: SourceId) -> Option<SourceSpec> {
        self.sources.get(&id).map(|source| source.spec.clone())
    }

    /// The URLs of all sources, as they are shown.
    pub fn urls(&self) -> HashSet<String> {
        self.sources.values().map(|source| source.spec.shown().url).collect()
    }

    /// The items of a source, newest first.
    pub fn items(&self, id: SourceId) -> Result<Vec<RssItemDto>, CommandError> {
        let source = self.source(id)?;
        let serials = self.index.of_source.get(&id).into_iter().flatten();
        let mut items: Vec<_> = serials.filter_map(|serial| self.items.get(serial)).collect();
        items.sort_by_key(|item| Reverse((item.time(), item.serial)));
        Ok(items.into_iter().map(|item| shown_item(item, source.name())).collect())
    }

    fn shown(&self, source: &Source) -> RssSourceDto {
        let history = &source.history;
        let seconds = |time: Option<Timestamp>| time.map_or(0, Timestamp::as_second);
        RssSourceDto {
            source_id: source.id.to_string(),
            name: source.name().to_owned(),
            last_fetch_at: seconds(history.last_fetch),
            last_success_at: seconds(history.last_success),
            next_fetch_at: seconds(Some(history.next_fetch).filter(|at| *at < Timestamp::MAX)),
            last_error: history.last_error.clone(),
            fail_count: history.fail_count,
            seeded: history.is_seeded,
            unread_count: self.index.unread.get(&source.id).copied().unwrap_or(0),
            ..source.spec.shown()
        }
    }
}

fn shown_item(item: &Item, feed: &str) -> RssItemDto {
    let entry = &item.entry;
    RssItemDto {
        source_id: item.source.to_string(),
        guid: entry.guid.clone(),
        title: entry.title.clone(),
        link: entry.link.as_ref().map_or(String::new(), |url| url.expose().to_owned()),
        enclosure_url: entry
            .enclosure
            .as_ref()
            .map_or(String::new(), |file| file.url.expose().to_owned()),
        enclosure_length: entry.bytes().unwrap_or(0),
        pub_date: entry.published.map_or(0, Timestamp::as_second),
        fetched_at: item.fetched.as_second(),
        status: match item.phase {
            Phase::New => RssItemStatus::New,
            Phase::Dispatching(_) | Phase::Downloaded(_) => RssItemStatus::Downloaded,
            Phase::Ignored => RssItemStatus::Ignored,
            Phase::Missed => RssItemStatus::RuleMiss,
            Phase::Duplicate => RssItemStatus::DuplicateEpisode,
            Phase::Seeded => RssItemStatus::Seeded,
        },
        // The task of one that is being dispatched may not exist yet, and nobody can ask for it.
        task_id: match item.phase {
            Phase::Downloaded(task) => task.0.to_string(),
            _ => String::new(),
        },
        episode_key: item.release().key(feed),
        reason: item.reason.as_str().to_owned(),
        detail: item.detail.clone(),
    }
}
