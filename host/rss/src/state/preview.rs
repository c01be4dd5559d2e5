//! Dry runs: what rules would do with a feed, or with the stored items of a source, and why.

use super::machine::State;
use crate::{
    feed::{Entry, Feed},
    model::source::{History, Source, SourceId, SourceSpec},
    rule::{Claim, Taken, Verdict},
    title::Release,
};
use protocol::RssValidatedItem;

/// The number under which the first judged entry takes its episodes, behind all numbers of items.
const FIRST_PREVIEW: u64 = 1 << 63;

impl State {
    /// What a source of this kind would do with a feed. What was downloaded before counts, as it would.
    pub fn preview(&self, spec: &SourceSpec, feed: &Feed) -> Vec<RssValidatedItem> {
        let history = History {
            title: feed.title.clone(),
            ..History::default()
        };
        let source = Source {
            id: SourceId(uuid::Uuid::nil()),
            spec: spec.clone(),
            history,
        };
        self.judge_each(&source, feed.entries.iter(), self.index.taken.clone())
    }

    /// What other rules would have done with the stored items of a source, each as if it came now. The source's own
    /// downloads do not count, because they are what is tried.
    pub fn preview_history(&self, id: SourceId, spec: &SourceSpec) -> Vec<RssValidatedItem> {
        let Some(source) = self.sources.get(&id) else {
            return Vec::new();
        };
        let source = Source {
            spec: spec.clone(),
            ..(**source).clone()
        };
        let serials = self.index.of_source.get(&id).into_iter().flatten();
        let items: Vec<_> = serials.filter_map(|serial| self.items.get(serial)).collect();
        let mut taken = self.index.taken.clone();
        for item in &items {
            taken.remove(item.serial);
        }
        self.judge_each(&source, items.iter().map(|item| &item.entry), taken)
    }

    fn judge_each<'a>(
        &self,
        source: &Source,
        entries: impl Iterator<Item = &'a Entry>,
        mut taken: Taken,
    ) -> Vec<RssValidatedItem> {
        let judged = (FIRST_PREVIEW..).zip(entries).map(|(serial, entry)| {
            let release = Release::parse(&entry.title);
            let verdict = self.verdict(source, entry, &taken, |item| item.source == source.id);
            if verdict.is_taken {
                let claim = Claim {
                    quality: release.quality,
                    revision: release.revision,
                    item: serial,
                };
                taken.set(release.identity(source.name()), claim);
            }
            shown(entry, &release, source, verdict)
        });
        judged.collect()
    }
}

fn shown(entry: &Entry, release: &Release, source: &Source, verdict: Verdict) -> RssValidatedItem {
    let rule = verdict.rule.and_then(|rule| source.spec.settings().rules.get(rule));
    let text = |url: Option<&transfer::SafeUrl>| url.map_or(String::new(), |url| url.expose().to_owned());
    RssValidatedItem {
        guid: entry.guid.clone(),
        title: entry.title.clone(),
        link: text(entry.link.as_ref()),
        enclosure_url: text(entry.enclosure.as_ref().map(|enclosure| &enclosure.url)),
        enclosure_length: entry.bytes().unwrap_or(0),
        pub_date: entry.published.map_or(0, jiff::Timestamp::as_second),
        episode_key: release.key(source.name()),
        taken: verdict.is_taken,
        rule: rule.map_or(String::new(), |rule| rule.name.clone()),
        reason: verdict.reason.as_str().to_owned(),
        detail: verdict.detail,
    }
}
