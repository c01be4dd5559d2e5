//! Tests of when sources are fetched.

use super::*;

fn minutes(minutes: u64) -> Duration {
    Duration::from_mins(minutes)
}

/// How long until a source is due.
fn due_in(world: &World, id: SourceId) -> Duration {
    since(world.state.sources[&id].history.next_fetch, world.now)
}

fn failed(reason: &str, retry_after: Option<Duration>) -> Fetched {
    Fetched::Failed(reason.to_owned(), retry_after)
}

#[test]
fn failures_wait_longer_each_time_and_a_success_ends_that() {
    let mut world = World::seeded(&[A]);
    let mut waits = Vec::new();
    for _ in 0..6 {
        world.end(A, failed("HTTP 500", None), Crash::Never);
        waits.push(due_in(&world, A));
    }
    let lower = [60, 120, 240, 360, 360, 360].map(minutes);
    for (wait, lower) in waits.iter().zip(lower) {
        assert!(*wait >= lower && *wait <= lower * 11 / 10, "{waits:?}");
    }
    let source = world.source(A);
    assert_eq!((source.fail_count, source.last_error.as_str()), (6, "HTTP 500"));
    assert!(source.next_fetch_at > source.last_fetch_at);
    world.answer(A, Vec::new());
    assert_eq!(
        (world.source(A).fail_count, world.source(A).last_error.as_str()),
        (0, "")
    );
    assert!(due_in(&world, A) <= minutes(33));
}

#[test]
fn a_shorter_interval_counts_at_once_but_not_against_the_site() {
    let mut world = World::seeded(&[A]);
    let every = |minutes: u32| {
        let settings = RssSourceDto {
            interval_minutes: minutes,
            ..settings("https://host0.example/feed")
        };
        Command::Update(A, Box::new(settings))
    };
    world.command(every(24 * 60));
    world.answer(A, Vec::new());
    assert!(due_in(&world, A) >= minutes(24 * 60));
    world.command(every(60));
    assert!((minutes(60)..=minutes(66)).contains(&due_in(&world, A)));
    world.end(A, failed("HTTP 429", Some(minutes(8 * 60))), Crash::Never);
    world.command(every(1));
    assert!(due_in(&world, A) >= minutes(8 * 60));
}

#[test]
fn a_server_that_asks_for_time_gets_it_up_to_a_day() {
    let mut world = World::seeded(&[A]);
    world.end(A, failed("HTTP 429", Some(minutes(8 * 60))), Crash::Never);
    assert!(due_in(&world, A) >= minutes(8 * 60));
    world.end(A, failed("HTTP 429", Some(minutes(8000))), Crash::Never);
    assert!(due_in(&world, A) <= minutes(24 * 60 * 11 / 10));
}

#[test]
fn the_feeds_own_times_are_heeded() {
    let mut world = World::seeded(&[A]);
    let with = |hints: Hints| {
        Fetched::Feed(
            Box::new(Feed {
                hints,
                ..Feed::default()
            }),
            Validators::default(),
            None,
        )
    };
    world.end(
        A,
        with(Hints {
            ttl: minutes(300),
            ..Hints::default()
        }),
        Crash::Never,
    );
    assert!(due_in(&world, A) >= minutes(300));
    // All hours but 3 are skipped, and Saturday, which is tomorrow.
    let hints = Hints {
        skip_hours: !(1 << 3) & 0xff_ffff,
        skip_days: 1 << 5,
        ..Hints::default()
    };
    world.now = "2024-05-17T10:00:00Z".parse().unwrap();
    world.command(Command::Refresh(A));
    world.end(A, with(hints), Crash::Never);
    let next = world.state.sources[&A].history.next_fetch;
    let free: Timestamp = "2024-05-19T03:00:00Z".parse().unwrap();
    assert!((free..=after(free, minutes(5))).contains(&next), "{next}");
    // A feed that skips everything skips nothing.
    world.command(Command::Refresh(A));
    world.end(
        A,
        with(Hints {
            skip_hours: 0xff_ffff,
            ..Hints::default()
        }),
        Crash::Never,
    );
    assert!(due_in(&world, A) <= minutes(33));
}

#[test]
fn refreshing_is_done_at_once_and_once() {
    let mut world = World::seeded(&[A]);
    assert!(world.fetches.is_empty());
    world.wait(HOST_GAP);
    world.command(Command::Refresh(A));
    assert_eq!(world.fetches.len(), 1);
    world.command(Command::Refresh(A));
    assert_eq!(world.fetches.len(), 1, "it is being fetched");
    world.answer(A, Vec::new());
    assert!(world.fetches.is_empty());
    assert_eq!(
        world.try_command(Command::Refresh(B)),
        Err(CommandError::UnknownSource(B))
    );
}

#[test]
fn a_source_that_is_not_enabled_is_fetched_only_when_asked() {
    let mut world = World::new();
    let off = RssSourceDto {
        enabled: false,
        ..settings("https://a.example/feed")
    };
    world.command(Command::Add(A, Box::new(off.clone())));
    world.tick(minutes(10_000));
    assert!(world.fetches.is_empty());
    assert_eq!(world.state.wake_at(), None);
    world.command(Command::Refresh(A));
    world.answer(A, Vec::new());
    assert_eq!(world.state.wake_at(), None);
    world.command(Command::Update(
        A,
        Box::new(RssSourceDto {
            enabled: true,
            ..off.clone()
        }),
    ));
    world.tick(HOST_GAP);
    assert_eq!(world.fetches.len(), 1);
    world.command(Command::Update(A, Box::new(off)));
    assert!(world.fetches.is_empty(), "and its fetch is cancelled");
}

#[test]
fn validators_are_sent_until_the_feed_is_another() {
    let mut world = World::seeded(&[A]);
    let validators = Validators {
        etag: "\"1\"".to_owned(),
        last_modified: "yesterday".to_owned(),
    };
    let with = Fetched::Feed(Box::new(feed(Vec::new())), validators.clone(), None);
    world.end(A, with, Crash::Never);
    world.restart();
    world.end(A, Fetched::NotModified, Crash::Never);
    world.tick(minutes(40));
    assert_eq!(world.fetches[0].0.validators, validators);
    assert!(world.fetches[0].0.since.is_some());
    world.command(Command::Update(A, Box::new(settings("https://host0.example/other"))));
    world.tick(HOST_GAP);
    assert_eq!(world.fetches[0].0.validators, Validators::default());
    assert_eq!(world.fetches[0].0.since, None);
    assert!(
        !world.source(A).seeded,
        "what is at another URL has a first round of its own"
    );
}

#[test]
fn late_results_of_an_earlier_fetch_are_dropped() {
    let mut world = World::seeded(&[A]);
    world.tick(minutes(40));
    let run = world.fetches[0].0.run;
    world.command(Command::Update(A, Box::new(settings("https://host0.example/other"))));
    let late = Fetched::Feed(Box::new(feed(vec![entry("1", "One")])), Validators::default(), None);
    world.input(Input::Fetched(A, run, late), Crash::Never).unwrap();
    assert!(world.items(A).is_empty());
}

#[test]
fn many_sources_do_not_start_as_a_herd() {
    let mut world = World::new();
    let ids: Vec<_> = (0..60).map(|number| SourceId(Uuid::from_u128(100 + number))).collect();
    for (number, id) in ids.iter().enumerate() {
        let url = format!("https://host{}.example/{number}", number % 20);
        world.command(Command::Add(*id, Box::new(settings(&url))));
    }
    assert_eq!(world.fetches.len(), MAX_FETCHES);
    for id in &ids {
        world.answer(*id, Vec::new());
    }
    world.wait(minutes(600));
    world.restart();
    assert!(world.fetches.is_empty(), "what is overdue after a start is spread");
    let due: std::collections::BTreeSet<_> = ids.iter().map(|id| due_in(&world, *id).as_secs()).collect();
    assert!(due.len() > 40 && due.last().is_some_and(|last| *last <= 300), "{due:?}");
    let woken = world.state.wake_at().unwrap();
    assert!(woken > world.now, "an idle driver sleeps");
}
