//! What a fetch brought: new items, and what becomes of them.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;

use super::{
    machine::State,
    step::{Fetched, Row, RunId},
};
use crate::{
    feed::{Entry, Feed},
    model::{
        item::{Item, Mark, Phase, complete, marks, title_and_time},
        source::{Source, SourceId},
    },
    rule::{Candidate, Reason, Taken, Verdict},
    title::Release,
};

/// Items that are kept per source. Those that were downloaded, and those that stand in the feed, are kept beyond it.
pub const MAX_ITEMS: usize = 500;

/// New items of a source that wait for their download. Further ones are left out, or a feed of endless news would grow
/// without end: what waits is not let go of.
pub const MAX_WAITING: u32 = 1000;

/// Identifiers that are kept per source of items that are not, so that a feed that shows them again brings nothing new.
pub const MAX_PRUNED: usize = 5000;

impl State {
    pub(super) fn fetched(&mut self, now: Timestamp, id: SourceId, run: RunId, fetched: Fetched) {
        // A fetch that was cancelled, of a source that may not exist any more.
        if !self.end_fetch(id, run) {
            return;
        }
        match fetched {
            Fetched::Failed(reason, retry_after) => {
                self.fetch_failed(now, id, reason, retry_after);
                // What waits is not of this fetch.
                self.dispatch_new(now, id);
            }
            Fetched::NotModified => {
                self.fetch_succeeded(now, id, None);
                self.dispatch_new(now, id);
            }
            Fetched::Feed(feed, validators, feed_url) => {
                self.edit_source(id, |source| {
                    let history = &mut source.history;
                    // The page names another feed now, which has a first round of its own.
                    history.is_seeded &= history.feed_url == feed_url;
                    history.feed_url = feed_url;
                });
                let listed = self.take(now, id, *feed);
                self.fetch_succeeded(now, id, Some(validators));
                self.prune(id, &listed);
                self.dispatch_new(now, id);
            }
        }
    }

    /// Takes in a feed. Returns which items it lists.
    fn take(&mut self, now: Timestamp, id: SourceId, feed: Feed) -> BTreeSet<u64> {
        let Feed {
            title, hints, entries, ..
        } = feed;
        let Some(source) = self.sources.get(&id) else {
            return BTreeSet::new();
        };
        let (was_seeded, had_title) = (source.history.is_seeded, source.name().to_owned());
        self.edit_source(id, |source| {
            if !title.is_empty() {
                source.history.title = title;
            }
            source.history.hints = hints;
            source.history.is_seeded = true;
        });
        if self.feed_title(id) != had_title {
            // Items that name no series have that of the feed.
            self.reindex(id);
        }
        let newest = self.newest(id);
        let guids: HashSet<_> = entries.iter().map(|entry| Mark::of_guid(id, &entry.guid)).collect();
        let (mut listed, mut new) = (BTreeSet::new(), Vec::new());
        let mut lists_known = false;
        for entry in oldest_first(entries) {
            match self.known(id, &entry, &guids) {
                Known::Item(serial) => {
                    self.refresh_item(serial, &entry);
                    listed.insert(serial);
                    lists_known = true;
                    let item = &self.items[&serial];
                    // Its file was added to the feed after its title.
                    if was_seeded && item.reason == Reason::NothingToDownload && item.entry.target().is_some() {
                        new.push(serial);
                    }
                }
                Known::Pruned => lists_known = true,
                Known::No => {
                    let item = self.new_item(now, id, entry);
                    listed.insert(item.serial);
                    new.push(item.serial);
                    self.put_item(item);
                }
            }
        }
        if !was_seeded {
            // The first round of another URL: if it lists what the last one listed, the feed has moved, and what came
            // since then is new.
            let is_newer = |serial: &u64| newest.is_some() && self.items[serial].entry.published > newest;
            new.retain(|serial| lists_known && is_newer(serial));
        }
        self.judge_all(id, new);
        listed
    }

    /// When the newest item of a source was published.
    fn newest(&self, id: SourceId) -> Option<Timestamp> {
        let serials = self.index.of_source.get(&id)?.iter();
        serials.filter_map(|serial| self.items[serial].entry.published).max()
    }

    fn new_item(&mut self, now: Timestamp, source: SourceId, entry: Entry) -> Item {
        Item {
            serial: self.next_serial,
            source,
            entry,
            fetched: now,
            phase: Phase::Seeded,
            reason: Reason::SeedSkipped,
            detail: String::new(),
            tasks: 0,
            failures: 0,
            not_before: None,
            has_failed: false,
        }
    }

    /// Which item of its source an entry is, if its identifier or everything else is that of one. An item whose own
    /// identifier is among the `guids` of the document is no other entry's.
    fn known(&self, id: SourceId, entry: &Entry, guids: &HashSet<Mark>) -> Known {
        let guid = Mark::of_guid(id, &entry.guid);
        if let Some(serial) = self.index.by_guid.get(&guid) {
            return Known::Item(*serial);
        }
        if self.pruned.get(&id).is_some_and(|marks| marks.contains(&guid)) {
            return Known::Pruned;
        }
        let all = marks(entry).into_iter().chain(title_and_time(id, entry));
        let mut serials = all.filter_map(|mark| self.index.by_mark.get(&mark)).flatten();
        let is_free = |item: &Item| item.source == id && !guids.contains(&Mark::of_guid(id, &item.entry.guid));
        let own = serials.find(|serial| is_free(&self.items[serial]));
        own.map_or(Known::No, |serial| Known::Item(*serial))
    }

    fn refresh_item(&mut self, serial: u64, entry: &Entry) {
        let mut known = self.items[&serial].entry.clone();
        let has_moved = known.guid != entry.guid;
        if complete(&mut known, entry) || has_moved {
            known.guid.clone_from(&entry.guid);
            self.edit_item(serial, |item| item.entry = known);
        }
    }

    /// Judges items. Of one episode in several qualities the best is judged first.
    pub(super) fn judge_all(&mut self, id: SourceId, mut serials: Vec<u64>) {
        let Some(source) = self.sources.get(&id).cloned() else {
            return;
        };
        let rank = |state: &Self, serial: &u64| {
            let release = state.items[serial].release();
            (
                source.spec.rules().rank(release.quality),
                std::cmp::Reverse(release.revision),
            )
        };
        if source.spec.rules().is_smart() {
            serials.sort_by_cached_key(|serial| rank(self, serial));
        }
        for serial in serials {
            let (mut phase, mut reason) = self.judge(&source, &self.items[&serial]);
            let waiting = self.index.unread.get(&id).copied().unwrap_or(0);
            if phase == Phase::New && waiting >= MAX_WAITING {
                (phase, reason) = (Phase::Missed, Reason::TooMany);
            }
            let item = &self.items[&serial];
            if (item.phase, item.reason) != (phase, reason) {
                self.edit_item(serial, |item| (item.phase, item.reason) = (phase, reason));
            }
        }
    }

    /// What becomes of an item by its source's rules, and by what was downloaded before.
    pub(super) fn judge(&self, source: &Source, item: &Item) -> (Phase, Reason) {
        let is_own = |other: &Item| other.serial == item.serial;
        let verdict = self.verdict(source, &item.entry, &self.index.taken, is_own);
        let phase = match verdict.reason {
            _ if verdict.is_taken => Phase::New,
            Reason::DuplicateEpisode | Reason::DuplicateItem => Phase::Duplicate,
            _ => Phase::Missed,
        };
        (phase, verdict.reason)
    }

    /// The verdict of a source's rules on an entry, unless there is nothing to download, or the same thing is downloaded
    /// by an item that does not count as `is_own`.
    pub(super) fn verdict(
        &self,
        source: &Source,
        entry: &Entry,
        taken: &Taken,
        is_own: impl Fn(&Item) -> bool,
    ) -> Verdict {
        let left = |reason, detail: &str| Verdict {
            is_taken: false,
            reason,
            detail: detail.to_owned(),
            rule: None,
        };
        if entry.target().is_none() {
            return left(Reason::NothingToDownload, "it links to nothing that can be downloaded");
        }
        let release = Release::parse(&entry.title);
        let verdict = source.spec.rules().judge(candidate(entry, &release, source), taken);
        let same = marks(entry)
            .into_iter()
            .filter_map(|mark| self.index.by_mark.get(&mark))
            .flatten();
        let mut others = same.map(|serial| &self.items[serial]).filter(|item| !is_own(item));
        if verdict.is_taken && others.any(|item| self.claims(item)) {
            return left(Reason::DuplicateItem, "the same was downloaded before");
        }
        verdict
    }

    /// Lets go of the oldest items, but remembers that they were known.
    fn prune(&mut self, id: SourceId, listed: &BTreeSet<u64>) {
        let serials = self.index.of_source.get(&id).cloned().unwrap_or_default();
        let surplus = serials.len().saturating_sub(MAX_ITEMS);
        let is_free = |serial: &u64| !listed.contains(serial) && !self.claims(&self.items[serial]);
        let surplus: Vec<_> = serials.into_iter().filter(is_free).take(surplus).collect();
        for serial in surplus {
            let mark = Mark::of_guid(id, &self.items[&serial].entry.guid);
            self.remove_item(serial);
            let pruned = self.pruned.entry(id).or_default();
            pruned.push_back(mark);
            self.changes.others.push(Row::Pruned(id, mark));
            if pruned.len() > MAX_PRUNED {
                let oldest = pruned.pop_front();
                self.changes
                    .others
                    .extend(oldest.map(|mark| Row::PrunedDeleted(id, mark)));
            }
        }
    }
}

/// Whether an entry is known.
enum Known {
    Item(u64),
    Pruned,
    No,
}

/// What the rules judge of an entry.
pub(super) fn candidate<'a>(entry: &'a Entry, release: &'a Release, source: &'a Source) -> Candidate<'a> {
    Candidate {
        title: &entry.title,
        release,
        bytes: entry.bytes(),
        feed: source.name(),
    }
}

/// In the order of their publication. Feeds list the newest first; entries without a date stay in that order.
fn oldest_first(entries: Vec<Entry>) -> Vec<Entry> {
    let mut entries: Vec<_> = entries.into_iter().rev().collect();
    if entries.iter().all(|entry| entry.published.is_some()) {
        entries.sort_by_key(|entry| entry.published);
    }
    entries
}
