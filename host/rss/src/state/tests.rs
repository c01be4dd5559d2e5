//! Tests of the state machine: single cases, and random histories in `histories`.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use transfer::SafeUrl;
use uuid::Uuid;

use super::*;
use crate::{
    feed::{Enclosure, Entry, Feed, Hints},
    model::{
        after,
        item::{Item, Mark, Phase, TaskId},
        since,
        source::{Source, SourceId, SourceSpec, Validators},
    },
};
use protocol::{RssItemStatus, RssSourceDto};

mod histories;
mod once;
mod polling;

const A: SourceId = SourceId(Uuid::from_u128(1));
const B: SourceId = SourceId(Uuid::from_u128(2));

/// A state, and a model of the driver, the database and the engine.
struct World {
    state: State,
    now: Timestamp,
    /// Live fetches, with the moment of their start.
    fetches: Vec<(Fetch, Timestamp)>,
    /// Starts of fetches per host.
    starts: BTreeMap<String, Vec<Timestamp>>,
    /// Tasks that were asked for and not answered.
    asked: Vec<Dispatch>,
    /// Every task that was ever created; whether it still exists.
    tasks: BTreeMap<TaskId, (Dispatch, bool)>,
    events: Vec<Event>,
    saved: Saved,
}

/// Rows, as the database would hold them.
#[derive(Debug, Clone, Default, PartialEq)]
struct Saved {
    sources: BTreeMap<SourceId, Source>,
    items: BTreeMap<u64, Item>,
    pruned: Vec<(SourceId, Mark)>,
}

impl Saved {
    fn save(&mut self, row: Row) {
        match row {
            Row::Source(source) => drop(self.sources.insert(source.id, (*source).clone())),
            Row::SourceDeleted(id) => {
                self.sources.remove(&id);
                self.items.retain(|_, item| item.source != id);
                self.pruned.retain(|(source, _)| *source != id);
            }
            Row::Item(item) => drop(self.items.insert(item.serial, (*item).clone())),
            Row::ItemDeleted(serial) => drop(self.items.remove(&serial)),
            Row::Pruned(source, mark) => self.pruned.push((source, mark)),
            Row::PrunedDeleted(source, mark) => self.pruned.retain(|row| *row != (source, mark)),
        }
    }

    fn loaded(&self) -> Loaded {
        Loaded {
            sources: self.sources.values().cloned().collect(),
            items: self.items.values().cloned().collect(),
            pruned: self.pruned.clone(),
        }
    }
}

/// Where a crash ends the work on the effects of one input.
#[derive(Debug, Clone, Copy)]
enum Crash {
    Never,
    BeforeRows,
    /// Behind the rows, and behind so many tasks.
    AfterTasks(usize),
}

impl World {
    fn new() -> Self {
        Self {
            state: State::load(Loaded::default(), 7, Timestamp::UNIX_EPOCH, &mut Vec::new()),
            now: "2024-05-17T10:00:00Z".parse().unwrap(),
            fetches: Vec::new(),
            starts: BTreeMap::new(),
            asked: Vec::new(),
            tasks: BTreeMap::new(),
            events: Vec::new(),
            saved: Saved::default(),
        }
    }

    /// A world with a source that downloads everything, and has been seeded with nothing.
    fn seeded(ids: &[SourceId]) -> Self {
        let mut world = Self::new();
        for (number, id) in ids.iter().enumerate() {
            let settings = settings(&format!("https://host{number}.example/feed"));
            world.command(Command::Add(*id, Box::new(settings)));
            world.answer(*id, Vec::new());
        }
        world
    }

    fn command(&mut self, command: Command) {
        self.try_command(command).unwrap();
    }

    fn try_command(&mut self, command: Command) -> Result<(), CommandError> {
        self.input(Input::Command(command), Crash::Never)
    }

    fn input(&mut self, input: Input, crash: Crash) -> Result<(), CommandError> {
        let mut effects = Vec::new();
        let reply = self.state.apply(self.now, input, &mut effects);
        self.perform(effects, crash);
        reply
    }

    fn perform(&mut self, effects: Vec<Effect>, crash: Crash) {
        if matches!(crash, Crash::BeforeRows) {
            return self.restart();
        }
        let mut tasks = 0;
        for effect in effects {
            match effect {
                Effect::Save(row) => self.saved.save(row),
                Effect::Fetch(fetch) => self.begin(*fetch),
                Effect::Cancel(run) => self.fetches.retain(|(fetch, _)| fetch.run != run),
                Effect::Create(dispatch) => {
                    if matches!(crash, Crash::AfterTasks(most) if tasks >= most) {
                        continue;
                    }
                    tasks += 1;
                    let waits = |item: &Item| item.phase == Phase::Dispatching(dispatch.task);
                    assert!(
                        self.saved.items.values().any(waits),
                        "a task is created before its row is saved"
                    );
                    self.asked.push(*dispatch);
                }
                Effect::Emit(event) => self.events.push(event),
            }
        }
        if matches!(crash, Crash::AfterTasks(_)) {
            // The engine created the tasks, but its answers were lost.
            self.engine_creates_all();
            self.restart();
        }
    }

    fn begin(&mut self, fetch: Fetch) {
        let host = fetch.spec.url().as_url().host_str().unwrap().to_owned();
        let is_of_host = |(other, _): &&(Fetch, Timestamp)| other.spec.url().as_url().host_str() == Some(host.as_str());
        assert_eq!(
            self.fetches.iter().filter(is_of_host).count(),
            0,
            "two fetches of one host"
        );
        assert!(
            self.fetches.iter().all(|(other, _)| other.source != fetch.source),
            "two fetches of one source"
        );
        assert!(self.fetches.len() < MAX_FETCHES, "too many fetches");
        let starts = self.starts.entry(host).or_default();
        assert!(
            starts.last().is_none_or(|last| since(self.now, *last) >= HOST_GAP),
            "the host was asked just now"
        );
        starts.push(self.now);
        self.fetches.push((fetch, self.now));
    }

    fn restart(&mut self) {
        self.fetches.clear();
        self.asked.clear();
        // A restart takes longer than the gap between two fetches.
        self.wait(HOST_GAP);
        let mut effects = Vec::new();
        self.state = State::load(self.saved.loaded(), 7, self.now, &mut effects);
        self.perform(effects, Crash::Never);
    }

    fn wait(&mut self, time: Duration) {
        self.now = after(self.now, time);
    }

    fn tick(&mut self, time: Duration) {
        self.wait(time);
        self.input(Input::Clock, Crash::Never).unwrap();
    }

    /// Lets time pass until a fetch of a source begins, and ends it with a feed.
    fn answer(&mut self, id: SourceId, entries: Vec<Entry>) {
        self.end(
            id,
            Fetched::Feed(Box::new(feed(entries)), Validators::default(), None),
            Crash::Never,
        );
    }

    fn end(&mut self, id: SourceId, fetched: Fetched, crash: Crash) {
        for _ in 0..100 {
            if let Some(at) = self.fetches.iter().position(|(fetch, _)| fetch.source == id) {
                let (fetch, _) = self.fetches.remove(at);
                self.input(Input::Fetched(id, fetch.run, fetched), crash).unwrap();
                return;
            }
            self.fail_others_of_host(id);
            let wake = self.state.wake_at().unwrap_or(after(self.now, HOST_GAP));
            self.tick(since(wake, self.now));
        }
        panic!("the source is never fetched");
    }

    /// Ends the fetch that a source waits for because it is of the same host.
    fn fail_others_of_host(&mut self, id: SourceId) {
        let host = |spec: &SourceSpec| spec.url().as_url().host_str().map(ToOwned::to_owned);
        let own = host(&self.state.sources[&id].spec);
        if let Some(at) = self.fetches.iter().position(|(fetch, _)| host(&fetch.spec) == own) {
            let (fetch, _) = self.fetches.remove(at);
            let failed = Fetched::Failed("in the way".to_owned(), None);
            self.input(Input::Fetched(fetch.source, fetch.run, failed), Crash::Never)
                .unwrap();
        }
    }

    /// One round of a source: its feed, and the answers of the engine.
    fn round(&mut self, id: SourceId, entries: Vec<Entry>) {
        self.answer(id, entries);
        self.confirm_all();
    }

    fn engine_creates(&mut self, dispatch: Dispatch) -> Created {
        match self.tasks.get(&dispatch.task) {
            Some((_, false)) => return Created::WasDeleted,
            Some((known, true)) => assert_eq!(known.url, dispatch.url, "two items have one task"),
            None => drop(self.tasks.insert(dispatch.task, (dispatch, true))),
        }
        Created::Exists
    }

    fn engine_creates_all(&mut self) {
        for dispatch in std::mem::take(&mut self.asked) {
            self.engine_creates(dispatch);
        }
    }

    fn confirm_all(&mut self) {
        for dispatch in std::mem::take(&mut self.asked) {
            let task = dispatch.task;
            let created = self.engine_creates(dispatch);
            self.input(Input::Created(task, created), Crash::Never).unwrap();
        }
    }

    fn delete_task(&mut self, task: TaskId, crash: Crash) {
        self.tasks.get_mut(&task).unwrap().1 = false;
        self.input(Input::TaskDeleted(task), crash).unwrap();
    }

    /// Every item of a source, newest first: its title, status and reason.
    fn items(&self, id: SourceId) -> Vec<(String, RssItemStatus, String)> {
        let items = self.state.items(id).unwrap().into_iter();
        items.map(|item| (item.title, item.status, item.reason)).collect()
    }

    fn titles_of_tasks(&self) -> Vec<String> {
        let mut urls: Vec<_> = self
            .tasks
            .values()
            .map(|(dispatch, _)| dispatch.url.expose().to_owned())
            .collect();
        urls.sort();
        urls
    }

    fn source(&self, id: SourceId) -> RssSourceDto {
        let mut sources = self.state.sources().into_iter();
        sources.find(|source| source.source_id == id.to_string()).unwrap()
    }
}

fn settings(url: &str) -> RssSourceDto {
    RssSourceDto {
        url: url.to_owned(),
        download_all: true,
        smart_episode: true,
        ..RssSourceDto::default()
    }
}

fn feed(entries: Vec<Entry>) -> Feed {
    Feed {
        title: "Feed".to_owned(),
        entries,
        ..Feed::default()
    }
}

fn entry(guid: &str, title: &str) -> Entry {
    let url = format!("https://files.example/{}", title.replace(' ', "."));
    Entry {
        guid: guid.to_owned(),
        title: title.to_owned(),
        enclosure: Some(Enclosure {
            url: SafeUrl::parse(&url).unwrap(),
            bytes: None,
            is_torrent: false,
        }),
        ..Entry::default()
    }
}

fn status(all: &[(String, RssItemStatus, String)]) -> Vec<(&str, u8, &str)> {
    all.iter()
        .map(|(title, status, reason)| (title.as_str(), u8::from(*status), reason.as_str()))
        .collect()
}

#[test]
fn a_task_is_named_once_it_exists() {
    let mut world = World::seeded(&[A]);
    world.answer(A, vec![entry("1", "Show S01E01")]);
    let named = |world: &World| world.state.items(A).unwrap().remove(0).task_id;
    assert_eq!(world.asked.len(), 1);
    assert_eq!(named(&world), "");
    world.restart();
    assert_eq!(named(&world), "");
    world.confirm_all();
    let task = world.tasks.keys().next().unwrap();
    assert_eq!(named(&world), task.0.to_string());
}

#[test]
fn the_first_round_seeds_only_and_the_next_downloads_what_is_new() {
    let mut world = World::new();
    world.command(Command::Add(A, Box::new(settings("https://a.example/feed"))));
    world.round(A, vec![entry("1", "Show S01E01")]);
    assert_eq!(status(&world.items(A)), [("Show S01E01", 5, "seed_skipped")]);
    assert!(world.tasks.is_empty());
    world.round(A, vec![entry("2", "Show S01E02"), entry("1", "Show S01E01")]);
    let expected = [("Show S01E02", 1, "included"), ("Show S01E01", 5, "seed_skipped")];
    assert_eq!(status(&world.items(A)), expected);
    assert_eq!(world.titles_of_tasks(), ["https://files.example/Show.S01E02"]);
    assert!(
        world
            .events
            .contains(&Event::ItemsChanged(A, vec!["Show S01E02".to_owned()]))
    );
    assert_eq!(world.source(A).name, "Feed", "the name is that of the feed");
}

#[test]
fn a_source_that_would_download_everything_needs_a_confirmation() {
    let mut world = World::new();
    let plain = RssSourceDto {
        download_all: false,
        ..settings("https://a.example/feed")
    };
    let add = |settings: &RssSourceDto| Command::Add(A, Box::new(settings.clone()));
    let refused = world.try_command(add(&plain)).unwrap_err();
    assert!(
        matches!(&refused, CommandError::InvalidField(field) if field.field == "downloadAll"),
        "{refused}"
    );
    world.command(add(&RssSourceDto {
        include_pattern: "show".to_owned(),
        ..plain.clone()
    }));
    let update = Command::Update(A, Box::new(plain));
    assert!(matches!(world.try_command(update), Err(CommandError::InvalidField(_))));
    assert_eq!(
        world.source(A).include_pattern,
        "show",
        "a refused command changes nothing"
    );
}

#[test]
fn a_deleted_task_never_comes_back() {
    let mut world = World::seeded(&[A, B]);
    let one = || vec![entry("1", "Show S01E01")];
    world.round(A, one());
    let task = *world.tasks.keys().next().unwrap();
    world.delete_task(task, Crash::Never);
    assert_eq!(status(&world.items(A)), [("Show S01E01", 2, "task_deleted")]);
    world.restart();
    world.round(A, vec![entry("other", "Show S01E01")]);
    world.round(B, one());
    world.round(B, vec![entry("2", "Show S01E01 720p")]);
    assert_eq!(world.tasks.len(), 1);
    assert_eq!(status(&world.items(B))[0].1, 4);
}

#[test]
fn a_crash_between_the_row_and_the_answer_makes_one_task() {
    for crash in [Crash::BeforeRows, Crash::AfterTasks(0), Crash::AfterTasks(1)] {
        let mut world = World::seeded(&[A]);
        let one = || vec![entry("1", "Show S01E01")];
        world.end(
            A,
            Fetched::Feed(Box::new(feed(one())), Validators::default(), None),
            crash,
        );
        world.round(A, one());
        assert_eq!(world.tasks.len(), 1, "{crash:?}");
        assert_eq!(status(&world.items(A)), [("Show S01E01", 1, "included")]);
    }
}

#[test]
fn a_task_that_was_deleted_before_its_creation_was_confirmed_stays_deleted() {
    let mut world = World::seeded(&[A]);
    world.end(
        A,
        Fetched::Feed(Box::new(feed(vec![entry("1", "Show")])), Validators::default(), None),
        Crash::Never,
    );
    let task = world.asked[0].task;
    world.engine_creates_all();
    world.tasks.get_mut(&task).unwrap().1 = false;
    world.restart();
    world.confirm_all();
    assert_eq!(status(&world.items(A)), [("Show", 2, "task_deleted")]);
}

#[test]
fn a_task_that_cannot_be_created_is_tried_again_later() {
    let mut world = World::seeded(&[A]);
    let one = || vec![entry("1", "Show S01E01")];
    world.answer(A, one());
    let first = world.asked.remove(0).task;
    world
        .input(Input::Created(first, Created::Failed("later".to_owned())), Crash::Never)
        .unwrap();
    assert_eq!(status(&world.items(A)), [("Show S01E01", 0, "not_started")]);
    world.command(Command::Refresh(A));
    world.answer(A, one());
    assert!(world.asked.is_empty(), "it waits");
    world.round(A, one());
    assert_eq!(
        world.tasks.keys().copied().collect::<Vec<_>>(),
        [first],
        "its id is still the same"
    );
}

#[test]
fn changed_identifiers_bring_nothing_new() {
    let mut world = World::seeded(&[A]);
    let dated = |guid: &str, title: &str| Entry {
        published: Some(Timestamp::UNIX_EPOCH),
        ..entry(guid, title)
    };
    world.round(A, vec![entry("1", "One"), dated("2", "Two")]);
    assert_eq!(world.tasks.len(), 2);
    // The first keeps its file, the second its title and day.
    let moved = Entry {
        enclosure: entry("", "elsewhere").enclosure,
        ..dated("https://2", "Two")
    };
    world.round(A, vec![entry("https://1", "One"), moved]);
    assert_eq!(world.tasks.len(), 2);
    let guids: Vec<_> = world
        .state
        .items(A)
        .unwrap()
        .into_iter()
        .map(|item| item.guid)
        .collect();
    assert_eq!(guids, ["https://1", "https://2"]);
}

#[test]
fn a_new_file_behind_the_same_link_is_new() {
    let mut world = World::seeded(&[A]);
    let version = |title: &str| Entry {
        enclosure: entry("", "latest").enclosure,
        ..entry(title, title)
    };
    world.round(A, vec![version("1.0")]);
    world.round(A, vec![version("1.1"), version("1.0")]);
    assert_eq!(world.tasks.len(), 2);
}

#[test]
fn an_item_of_two_sources_is_downloaded_once() {
    let mut world = World::seeded(&[A, B]);
    let hash = |title: &str| Entry {
        infohash: Some("a".repeat(40)),
        ..entry(title, title)
    };
    world.round(A, vec![hash("Film")]);
    world.round(B, vec![hash("the same film"), entry("x", "Other")]);
    let mut items = world.items(B);
    items.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        status(&items),
        [("Other", 1, "included"), ("the same film", 4, "dup_item")]
    );
}

#[test]
fn a_source_that_does_not_download_claims_nothing() {
    let mut world = World::seeded(&[A, B]);
    let quiet = RssSourceDto {
        auto_download: false,
        ..settings("https://host0.example/feed")
    };
    world.command(Command::Update(A, Box::new(quiet)));
    world.round(A, vec![entry("1", "Show S01E01")]);
    assert_eq!(status(&world.items(A)), [("Show S01E01", 0, "included")]);
    assert_eq!(world.source(A).unread_count, 1);
    world.round(B, vec![entry("1", "Show S01E01")]);
    assert_eq!(world.tasks.len(), 1);
}

#[test]
fn the_best_of_one_round_and_the_oldest_first() {
    let mut world = World::seeded(&[A]);
    let choosy = RssSourceDto {
        qualities: vec!["1080p".to_owned(), "720p".to_owned()],
        max_per_fetch: 1,
        ..settings("https://host0.example/feed")
    };
    world.command(Command::Update(A, Box::new(choosy)));
    let listed = || {
        vec![
            entry("3", "Show S01E02 720p"),
            entry("2", "Show S01E01 1080p"),
            entry("1", "Show S01E01 720p"),
        ]
    };
    world.round(A, listed());
    assert_eq!(world.titles_of_tasks(), ["https://files.example/Show.S01E01.1080p"]);
    // What one fetch may not begin, the next does, even if nothing has changed.
    world.end(A, Fetched::NotModified, Crash::Never);
    world.confirm_all();
    assert_eq!(world.titles_of_tasks()[1..], ["https://files.example/Show.S01E02.720p"]);
}

#[test]
fn actions_of_users_are_done() {
    let mut world = World::seeded(&[A]);
    let quiet = RssSourceDto {
        auto_download: false,
        ..settings("https://host0.example/feed")
    };
    world.command(Command::Update(A, Box::new(quiet)));
    let page = Entry {
        enclosure: None,
        ..entry("4", "nothing")
    };
    world.round(A, vec![entry("1", "One"), entry("2", "Two"), entry("3", "Three"), page]);
    let act = |guid: &str, action| Command::Act(A, guid.to_owned(), action);
    world.command(act("1", Action::Download));
    world.command(act("1", Action::Download));
    world.command(act("2", Action::Ignore));
    assert_eq!(world.source(A).unread_count, 1);
    world.command(Command::ReadAll(A));
    world.confirm_all();
    assert_eq!(world.source(A).unread_count, 0);
    let mut items = world.items(A);
    items.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("One", 1, "manual"),
        ("Three", 2, "read"),
        ("Two", 2, "ignored"),
        ("nothing", 3, "nothing_to_download"),
    ];
    assert_eq!(status(&items), expected);
    // Again, although it was downloaded: a new task.
    world.command(act("1", Action::Download));
    world.confirm_all();
    assert_eq!(world.tasks.len(), 2);
    assert_eq!(
        world.try_command(act("4", Action::Download)),
        Err(CommandError::NothingToDownload)
    );
    assert_eq!(
        world.try_command(act("5", Action::Read)),
        Err(CommandError::UnknownItem)
    );
    assert_eq!(
        world.try_command(Command::ReadAll(B)),
        Err(CommandError::UnknownSource(B))
    );
}

#[test]
fn a_deleted_source_takes_its_items_and_leaves_its_tasks() {
    let mut world = World::seeded(&[A]);
    world.answer(A, vec![entry("1", "One")]);
    world.command(Command::Delete(A));
    world.confirm_all();
    assert_eq!(world.saved, Saved::default());
    assert_eq!(world.tasks.len(), 1);
    assert_eq!(world.state.index, machine::Index::default());
}

#[test]
fn old_items_are_pruned_but_not_new_again() {
    let mut world = World::seeded(&[A]);
    let none = RssSourceDto {
        include_pattern: "x".to_owned(),
        ..settings("https://host0.example/feed")
    };
    world.command(Command::Update(A, Box::new(none)));
    let many = |from: usize, to: usize| {
        (from..to)
            .rev()
            .map(|n| entry(&n.to_string(), &n.to_string()))
            .collect()
    };
    world.round(A, many(0, MAX_ITEMS));
    world.round(A, many(MAX_ITEMS, MAX_ITEMS + 10));
    assert_eq!(world.items(A).len(), MAX_ITEMS);
    assert_eq!(world.saved.pruned.len(), 10);
    let all = RssSourceDto {
        include_pattern: String::new(),
        ..settings("https://host0.example/feed")
    };
    world.command(Command::Update(A, Box::new(all)));
    world.restart();
    world.round(A, many(0, 10));
    assert_eq!(world.tasks.len(), 0);
}

#[test]
fn secrets_are_kept_and_not_shown() {
    let mut world = World::new();
    let secret = RssSourceDto {
        cookies: "session=1".to_owned(),
        proxy_url: "http://user:pass@proxy.example:3128/".to_owned(),
        ..settings("https://user:pass@host.example/feed?passkey=x")
    };
    world.command(Command::Add(A, Box::new(secret.clone())));
    let shown = world.source(A);
    assert!(!format!("{shown:?} {}", serde_json::to_string(&shown).unwrap()).contains("pass@"));
    assert_eq!(shown.cookies, "***");
    world.command(Command::Update(
        A,
        Box::new(RssSourceDto {
            name: "N".to_owned(),
            ..shown
        }),
    ));
    let kept = world.saved.sources[&A].spec.settings();
    assert_eq!(
        (&kept.url, &kept.cookies, &kept.proxy_url),
        (&secret.url, &secret.cookies, &secret.proxy_url)
    );
}

#[test]
fn what_is_masked_is_put_back_for_its_own_site_only() {
    let before = RssSourceDto {
        cookies: "session=1".to_owned(),
        provider_id: "acme@test".to_owned(),
        provider_config: [("apiKey", "hunter2"), ("search", "x")]
            .map(|(k, v)| (k.into(), v.into()))
            .into(),
        ..settings("https://host.example/api")
    };
    let before = SourceSpec::new(before, None).unwrap();
    let masked = |url: &str, cookies: &str, key: &str, provider: &str| {
        let settings = RssSourceDto {
            cookies: cookies.to_owned(),
            provider_id: provider.to_owned(),
            provider_config: [("apiKey".to_owned(), key.to_owned())].into(),
            ..settings(url)
        };
        let spec = SourceSpec::new(settings, Some(&before)).map_err(|error| error.field)?;
        Ok((
            spec.settings().cookies.clone(),
            spec.settings().provider_config["apiKey"].clone(),
        ))
    };
    let secrets = |cookies: &str, key: &str| Ok((cookies.to_owned(), key.to_owned()));
    assert_eq!(
        masked("https://host.example/v2", "***", "***", "acme@test"),
        secrets("session=1", "hunter2")
    );
    assert_eq!(
        masked("https://evil.example/api", "a=b", "new", "acme@test"),
        secrets("a=b", "new")
    );
    let refused = |field: &str| Err(field.to_owned());
    assert_eq!(
        masked("https://evil.example/api", "***", "new", "acme@test"),
        refused("cookies")
    );
    assert_eq!(
        masked("https://evil.example/api", "", "***", "acme@test"),
        refused("providerConfig")
    );
    assert_eq!(
        masked("https://host.example/api", "", "***", "evil@test"),
        refused("providerConfig")
    );
}

#[test]
fn cookies_go_to_the_feeds_own_origin_only() {
    let mut world = World::seeded(&[A]);
    let secret = RssSourceDto {
        cookies: "session=1".to_owned(),
        ..settings("https://files.example/feed")
    };
    world.command(Command::Update(A, Box::new(secret)));
    world.answer(A, Vec::new());
    let elsewhere = Entry {
        enclosure: Some(Enclosure {
            url: SafeUrl::parse("https://other.example/x").unwrap(),
            bytes: None,
            is_torrent: true,
        }),
        ..entry("2", "Else")
    };
    world.answer(A, vec![entry("1", "One"), elsewhere]);
    let sent: Vec<_> = world
        .asked
        .iter()
        .map(|task| (task.cookies.expose(), task.target, &*task.referer))
        .collect();
    let expected = [
        ("", Target::File, "https://files.example/"),
        ("session=1", Target::File, "https://files.example/"),
    ];
    assert_eq!(sent, expected);
}

#[test]
fn a_dry_run_says_what_the_poller_would_do() {
    let mut world = World::seeded(&[A]);
    world.round(A, vec![entry("1", "Show S01E01 720p")]);
    let spec = SourceSpec::new(
        RssSourceDto {
            exclude_pattern: "cam".to_owned(),
            ..settings("https://c.example/")
        },
        None,
    )
    .unwrap();
    let seen = feed(vec![
        entry("a", "Show S01E01 720p"),
        entry("b", "Show S01E02 CAM"),
        entry("c", "Show S01E03"),
        entry("d", "Show S01E03 720p"),
    ]);
    let judged = world.state.preview(&spec, &seen);
    let reasons: Vec<_> = judged.iter().map(|item| (item.taken, item.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (false, "dup_episode"),
            (false, "excluded"),
            (true, "included"),
            (false, "dup_episode")
        ]
    );
    assert!(judged.iter().all(|item| !item.detail.is_empty()));
    let history = world.state.preview_history(A, &spec);
    assert!(history[0].taken, "the source's own downloads do not count");
}
