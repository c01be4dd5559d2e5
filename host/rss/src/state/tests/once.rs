//! What counts as the same item, and what ends a claim on an episode.

use super::*;

fn dated(guid: &str, title: &str, second: i64) -> Entry {
    Entry {
        published: Timestamp::from_second(second).ok(),
        ..entry(guid, title)
    }
}

#[test]
fn a_failed_task_leaves_its_episode_to_another_release() {
    let mut world = World::seeded(&[A]);
    world.round(
        A,
        vec![
            entry("1", "Show S01E01 720p GroupA"),
            entry("2", "Show S01E01 720p GroupB"),
        ],
    );
    let items = world.items(A);
    assert_eq!(
        items.iter().filter(|item| item.2 == "dup_episode").count(),
        1,
        "{items:?}"
    );
    let task = *world.tasks.keys().next().unwrap();
    world.input(Input::TaskChanged(task, true), Crash::Never).unwrap();
    world.restart();
    world.end(A, Fetched::NotModified, Crash::Never);
    world.confirm_all();
    assert_eq!(world.tasks.len(), 2, "the other release of the episode");
    world.round(A, vec![entry("3", "Show S01E01 720p GroupC")]);
    assert_eq!(world.tasks.len(), 2, "the other one has the episode now");
    assert!(world.titles_of_tasks().iter().any(|url| url.ends_with("GroupA")));
    assert!(world.titles_of_tasks().iter().any(|url| url.ends_with("GroupB")));
}

#[test]
fn a_failed_task_is_not_made_again() {
    let mut world = World::seeded(&[A, B]);
    let one = || vec![entry("1", "Show S01E01")];
    world.round(A, one());
    let task = *world.tasks.keys().next().unwrap();
    world.input(Input::TaskChanged(task, true), Crash::Never).unwrap();
    world.round(A, one());
    world.round(B, one());
    assert_eq!(world.tasks.len(), 1, "the same file would fail again");
    world.input(Input::TaskChanged(task, false), Crash::Never).unwrap();
    world.round(A, vec![entry("2", "Show S01E01 1080p")]);
    assert_eq!(world.tasks.len(), 1, "the user resumed it, and it completed");
}

#[test]
fn entries_of_one_document_with_one_title_and_time_are_two() {
    let mut world = World::seeded(&[A]);
    let twin = |guid: &str| Entry {
        enclosure: entry("", guid).enclosure,
        ..dated(guid, "Daily news", 1000)
    };
    world.round(A, vec![twin("1"), twin("2")]);
    assert_eq!(world.tasks.len(), 2);
    world.round(A, vec![twin("1"), twin("2")]);
    assert_eq!(world.items(A).len(), 2);
}

#[test]
fn a_feed_that_moved_goes_on_where_it_was() {
    let mut world = World::new();
    world.command(Command::Add(A, Box::new(settings("https://a.example/feed"))));
    world.round(A, vec![dated("2", "Two", 2000), dated("1", "One", 1000)]);
    world.command(Command::Update(A, Box::new(settings("https://b.example/feed"))));
    world.round(
        A,
        vec![
            dated("3", "Three", 3000),
            dated("2", "Two", 2000),
            dated("0", "Zero", 500),
        ],
    );
    assert_eq!(world.titles_of_tasks(), ["https://files.example/Three"]);
}

#[test]
fn another_feed_begins_with_its_own_first_round() {
    let mut world = World::new();
    world.command(Command::Add(A, Box::new(settings("https://a.example/feed?q=one"))));
    world.round(A, vec![dated("1", "One", 1000)]);
    world.command(Command::Update(A, Box::new(settings("https://a.example/feed?q=all"))));
    world.round(A, vec![dated("9", "Nine", 9000), dated("8", "Eight", 8000)]);
    assert!(world.tasks.is_empty());
    world.round(A, vec![dated("10", "Ten", 10_000)]);
    assert_eq!(world.titles_of_tasks(), ["https://files.example/Ten"]);
}

#[test]
fn no_more_items_wait_than_may() {
    let mut world = World::seeded(&[A]);
    for round in 0..2 {
        let many = (0..MAX_WAITING).map(|n| entry(&format!("{round}-{n}"), &format!("{round} {n}")));
        world.round(A, many.collect());
    }
    let items = world.items(A);
    let waiting = items.iter().filter(|item| item.1 == RssItemStatus::New).count();
    assert!(waiting <= MAX_WAITING as usize, "{waiting} wait");
    assert!(items.iter().any(|item| item.2 == "too_many"));
}

#[test]
fn a_refused_creation_says_why() {
    let mut world = World::seeded(&[A]);
    world.answer(A, vec![entry("1", "One")]);
    let task = world.asked.remove(0).task;
    let failed = Created::Failed("magnet URLs cannot be downloaded".to_owned());
    world.input(Input::Created(task, failed), Crash::Never).unwrap();
    let item = world.state.items(A).unwrap().remove(0);
    assert_eq!(
        (&*item.reason, &*item.detail),
        ("not_started", "magnet URLs cannot be downloaded")
    );
    world.command(Command::Act(A, "1".to_owned(), Action::Download));
    world.confirm_all();
    assert_eq!(world.state.items(A).unwrap()[0].detail, "");
}

#[test]
fn a_task_that_exists_although_its_creation_failed_stays_deleted() {
    let mut world = World::seeded(&[A]);
    world.answer(A, vec![entry("1", "One")]);
    let dispatch = world.asked.remove(0);
    let task = dispatch.task;
    world.engine_creates(dispatch);
    world
        .input(Input::Created(task, Created::Failed("later".to_owned())), Crash::Never)
        .unwrap();
    world.delete_task(task, Crash::Never);
    assert_eq!(status(&world.items(A)), [("One", 2, "task_deleted")]);
}

#[test]
fn fetches_that_a_clock_planned_for_another_year_are_due_when_it_is_set_right() {
    let mut world = World::new();
    let now = world.now;
    world.command(Command::Add(A, Box::new(settings("https://a.example/feed"))));
    world.wait(Duration::from_hours(24 * 365));
    world.answer(A, vec![entry("1", "One")]);
    world.now = after(now, Duration::from_hours(1));
    world.tick(Duration::from_mins(1));
    assert_eq!(world.fetches.len(), 1);
}

#[test]
fn a_failed_task_leaves_its_episode_to_other_sources_and_nothing_else() {
    let mut world = World::seeded(&[A, B]);
    world.round(
        A,
        vec![entry("1", "Show S01E01 720p A"), entry("2", "Show S01E02 720p A")],
    );
    world.round(
        B,
        vec![entry("1", "Show S01E01 720p B"), entry("2", "Show S01E02 720p B")],
    );
    assert_eq!(world.tasks.len(), 2);
    let failed = world.items(A).len();
    assert_eq!(failed, 2);
    let first = world
        .tasks
        .iter()
        .find(|(_, (dispatch, _))| of(dispatch).contains("S01E01"));
    let first = *first.unwrap().0;
    world.input(Input::TaskChanged(first, true), Crash::Never).unwrap();
    world.end(B, Fetched::NotModified, Crash::Never);
    world.confirm_all();
    let urls = world.titles_of_tasks();
    assert!(urls.iter().any(|url| url.ends_with("S01E01.720p.B")), "{urls:?}");
    assert_eq!(urls.len(), 3, "{urls:?}");
}

fn of(dispatch: &Dispatch) -> &str {
    dispatch.url.expose()
}

#[test]
fn another_feed_that_the_page_names_has_its_own_first_round() {
    let mut world = World::seeded(&[A]);
    let at = |url: &str, entries: Vec<Entry>| {
        Fetched::Feed(Box::new(feed(entries)), Validators::default(), SafeUrl::parse(url).ok())
    };
    world.end(
        A,
        at("https://host0.example/1.xml", vec![entry("1", "One")]),
        Crash::Never,
    );
    world.end(
        A,
        at("https://host0.example/1.xml", vec![entry("2", "Two")]),
        Crash::Never,
    );
    world.confirm_all();
    assert_eq!(world.titles_of_tasks(), ["https://files.example/Two"]);
    world.end(
        A,
        at("https://host0.example/2.xml", vec![entry("3", "Three")]),
        Crash::Never,
    );
    world.confirm_all();
    assert_eq!(world.tasks.len(), 1);
}

#[test]
fn what_waits_begins_although_its_feed_fails() {
    let mut world = World::seeded(&[A]);
    let few = RssSourceDto {
        max_per_fetch: 1,
        ..settings("https://host0.example/feed")
    };
    world.command(Command::Update(A, Box::new(few)));
    world.round(A, vec![entry("1", "One"), entry("2", "Two")]);
    assert_eq!(world.tasks.len(), 1);
    world.end(A, Fetched::Failed("HTTP 410".to_owned(), None), Crash::Never);
    world.confirm_all();
    assert_eq!(world.tasks.len(), 2);
}

#[test]
fn an_item_is_judged_when_its_file_is_there() {
    let mut world = World::seeded(&[A]);
    let announced = Entry {
        enclosure: None,
        ..entry("1", "One")
    };
    world.round(A, vec![announced]);
    assert_eq!(world.items(A)[0].2, "nothing_to_download");
    world.round(A, vec![entry("1", "One")]);
    assert_eq!(world.titles_of_tasks(), ["https://files.example/One"]);
}

#[test]
fn a_task_that_cannot_be_created_leaves_its_episode_to_another_release() {
    let mut world = World::seeded(&[A]);
    world.answer(A, vec![entry("1", "Show S01E01 720p magnet")]);
    let task = world.asked.remove(0).task;
    let failed = Created::Failed("magnet URLs cannot be downloaded".to_owned());
    world.input(Input::Created(task, failed), Crash::Never).unwrap();
    world.round(A, vec![entry("2", "Show S01E01 720p")]);
    assert_eq!(world.titles_of_tasks(), ["https://files.example/Show.S01E01.720p"]);
    world.tick(Duration::from_hours(1));
    world.round(A, vec![entry("2", "Show S01E01 720p")]);
    assert_eq!(world.tasks.len(), 1, "it is the duplicate now");
}

#[test]
fn what_the_user_asked_for_is_tried_again_whatever_the_rules_say() {
    let mut world = World::seeded(&[A]);
    let none = RssSourceDto {
        auto_download: false,
        include_pattern: "nothing".to_owned(),
        ..settings("https://host0.example/feed")
    };
    world.command(Command::Update(A, Box::new(none)));
    world.answer(A, Vec::new());
    world.round(A, vec![entry("1", "One")]);
    world.command(Command::Act(A, "1".to_owned(), Action::Download));
    let task = world.asked.remove(0).task;
    world
        .input(Input::Created(task, Created::Failed("later".to_owned())), Crash::Never)
        .unwrap();
    world.restart();
    world.tick(Duration::from_hours(1));
    world.round(A, vec![entry("1", "One")]);
    assert_eq!(world.titles_of_tasks(), ["https://files.example/One"]);
}

#[test]
fn a_host_is_asked_again_when_the_clock_that_was_ahead_is_set_right() {
    let mut world = World::seeded(&[A]);
    let now = world.now;
    world.wait(Duration::from_hours(24 * 365));
    world.command(Command::Refresh(A));
    world.answer(A, Vec::new());
    world.now = after(now, Duration::from_hours(1));
    world.starts.clear();
    world.tick(Duration::from_mins(1));
    assert_eq!(world.fetches.len(), 1);
}

#[test]
fn what_a_client_was_shown_and_gives_back_is_no_name_and_no_password() {
    let mut world = World::seeded(&[A]);
    let shown = world.source(A);
    assert_eq!(shown.name, "Feed");
    world.command(Command::Update(A, Box::new(shown.clone())));
    assert_eq!(world.saved.sources[&A].spec.settings().name, "");
    let masked = RssSourceDto {
        proxy_url: "http://user:***@proxy.example:3129/".to_owned(),
        ..shown
    };
    let refused = world.try_command(Command::Update(A, Box::new(masked))).unwrap_err();
    assert!(
        matches!(&refused, CommandError::InvalidField(field) if field.field == "proxyUrl"),
        "{refused}"
    );
}
