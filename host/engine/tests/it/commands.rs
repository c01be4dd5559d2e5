//! Commands as a caller sees them: answers, refusals, files, events.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use engine::{
    CommandError, Event, FileFate, FileMissingAction, InvalidSpec, QueueId, QueueSpec, Settings, Site, Status, Task,
    TaskId,
};
use transfer::{Credentials, SafeUrl, Secret};

use crate::world::{World, next, spec};

#[tokio::test]
async fn a_scheme_that_nothing_moves_is_refused_with_those_that_work() {
    let world = World::new().await;
    let error = world.engine.create(spec("gopher://a.test/x")).await.unwrap_err();
    assert!(matches!(error, CommandError::InvalidSpec(InvalidSpec::Scheme { .. })));
    let text = error.to_string();
    assert!(text.contains("gopher") && text.contains("fake, fakes"), "{text}");
    assert!(world.engine.snapshot().await.unwrap().tasks.is_empty());
}

#[tokio::test]
async fn events_continue_a_snapshot_without_a_gap() {
    let world = World::new().await;
    let mut events = world.engine.events();
    world.create("fake://finish/early").await;
    let snapshot = world.engine.snapshot().await.unwrap();
    let mut mirror: BTreeMap<TaskId, Arc<Task>> =
        snapshot.tasks.iter().map(|task| (task.id, Arc::clone(task))).collect();
    let mut last = None;
    for n in 0..20 {
        last = Some(world.create(&format!("fake://finish/{n}")).await);
    }
    let last = last.unwrap();
    world.completed(last).await;
    world.delete(last, FileFate::Delete).await;
    let end = world.engine.snapshot().await.unwrap();
    let mut sequence = 0;
    while sequence < end.sequence {
        let (seen, event) = events.next().await.unwrap().unwrap();
        assert_eq!(seen, sequence + 1, "sequence numbers have no hole");
        sequence = seen;
        match event {
            Event::TasksChanged(tasks) if seen > snapshot.sequence => {
                mirror.extend(tasks.iter().map(|task| (task.id, Arc::clone(task))));
            }
            Event::TasksDeleted(tasks) => tasks.iter().for_each(|task| drop(mirror.remove(task))),
            _ => {}
        }
    }
    let known: BTreeMap<TaskId, Arc<Task>> = end.tasks.iter().map(|task| (task.id, Arc::clone(task))).collect();
    assert_eq!(mirror.keys().collect::<Vec<_>>(), known.keys().collect::<Vec<_>>());
    assert!(!known.contains_key(&last));
    assert!(world.engine.sequence() >= end.sequence);
}

#[tokio::test]
async fn a_subscriber_that_is_too_slow_is_told_of_the_gap() {
    let world = World::new().await;
    let mut events = world.engine.events();
    let id = world
        .engine
        .create(engine::TaskSpec {
            start_paused: true,
            ..spec("fake://held/a")
        })
        .await
        .unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..5000_u64 {
        let engine = world.engine.clone();
        calls.spawn(async move { engine.set_speed_limit(id, n).await.unwrap() });
    }
    calls.join_all().await;
    let gap = events.next().await.unwrap().unwrap_err();
    assert!(gap.0 >= 900, "{gap}");
    assert!(events.next().await.unwrap().is_ok(), "and then goes on");
}

#[tokio::test]
async fn deleting_answers_when_the_files_are_gone_and_leaves_foreign_ones() {
    let world = World::new().await;
    let (kept, gone) = (
        world.create("fake://finish/kept").await,
        world.create("fake://finish/gone").await,
    );
    world.completed(kept).await;
    world.completed(gone).await;
    std::fs::write(world.download("gone.svcpart"), "not ours").unwrap();
    world.delete(kept, FileFate::Keep).await;
    world.delete(gone, FileFate::Delete).await;
    assert!(world.download("kept").exists());
    assert!(!world.download("gone").exists());
    assert!(world.download("gone.svcpart").exists());
    assert_eq!(
        world.engine.task(gone).await.unwrap_err(),
        CommandError::UnknownTask(gone)
    );
    world
        .engine
        .delete_many(vec![gone, kept], FileFate::Delete)
        .await
        .unwrap();
}

#[tokio::test]
async fn renaming_a_finished_file_moves_it_and_replaces_none() {
    let world = World::new().await;
    let id = world.create("fake://finish/old").await;
    world.completed(id).await;
    std::fs::write(world.download("taken"), "other").unwrap();
    let taken = world.engine.rename(id, "taken").await;
    assert_eq!(taken, Err(CommandError::TargetExists(world.download("taken"))));
    assert_eq!(world.engine.rename(id, "../up").await, Err(CommandError::InvalidName));
    assert_eq!(world.engine.rename(id, "...").await, Err(CommandError::InvalidName));
    world.engine.rename(id, "new").await.unwrap();
    assert_eq!(std::fs::read(world.download("new")).unwrap(), b"done");
    assert!(!world.download("old").exists());
    let world = world.restart().await;
    let task = world.task(id).await;
    assert_eq!(
        (task.file_name(), task.path.as_deref()),
        ("new".to_owned(), Some(world.download("new").as_path()))
    );
}

#[tokio::test]
async fn a_rescan_notices_files_that_are_gone() {
    let world = World::new().await;
    let id = world.create("fake://finish/a").await;
    world.completed(id).await;
    std::fs::remove_file(world.download("a")).unwrap();
    world.engine.rescan().await.unwrap();
    assert!(world.task(id).await.file_missing);
    std::fs::write(world.download("a"), "back").unwrap();
    world.engine.rescan().await.unwrap();
    assert!(!world.task(id).await.file_missing);
}

#[tokio::test]
async fn files_that_are_gone_are_noticed_without_being_asked() {
    let world = World::with(|config| config.file_check_interval = Duration::from_millis(5)).await;
    let (gone, kept) = (
        world.create("fake://finish/gone").await,
        world.create("fake://finish/kept").await,
    );
    world.completed(gone).await;
    world.completed(kept).await;
    std::fs::remove_file(world.download("gone")).unwrap();
    world.until_task(gone, |task| task.file_missing).await;
    std::fs::write(world.download("gone"), "back").unwrap();
    world.until_task(gone, |task| !task.file_missing).await;
    assert!(!world.task(kept).await.file_missing);
}

#[tokio::test]
async fn a_round_looks_at_some_files_and_the_next_one_at_those_after_them() {
    let world = World::with(|config| config.file_check_interval = Duration::from_millis(5)).await;
    let specs = (0..1_001).map(|n| spec(&format!("fake://finish/{n}"))).collect();
    let tasks = world.engine.create_many(specs).await.unwrap();
    for task in &tasks {
        world.completed(*task).await;
    }
    let (oldest, newest) = (tasks[0], tasks[1_000]);
    for (task, name) in [(newest, "1000"), (oldest, "0")] {
        std::fs::remove_file(world.download(name)).unwrap();
        world.until_task(task, |task| task.file_missing).await;
    }
}

/// Waits until file times have advanced by more than a millisecond, the resolution of task times.
async fn let_the_clock_tick(directory: &std::path::Path) {
    let now = || {
        let probe = tempfile::NamedTempFile::new_in(directory).unwrap();
        probe.as_file().metadata().unwrap().modified().unwrap()
    };
    let begin = now();
    while now() < begin + Duration::from_millis(5) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn only_a_file_that_was_removed_takes_its_task_along() {
    let world = World::new().await;
    std::fs::create_dir_all(world.download("")).unwrap();
    let_the_clock_tick(world.root.path()).await;
    let mut settings = Settings::clone(&world.engine.settings().settings);
    settings.file_missing_action = FileMissingAction::Delete;
    world.engine.change_settings(None, settings).await.unwrap();
    let (removed, away) = (
        world.create("fake://finish/removed").await,
        world.create("fake://finish/away").await,
    );
    world.completed(removed).await;
    world.completed(away).await;
    let (downloads, elsewhere) = (world.download(""), world.root.path().join("elsewhere"));
    std::fs::rename(&downloads, &elsewhere).unwrap();
    let is_kept_and_marked = async |case: &str| {
        world.engine.rescan().await.unwrap();
        for id in [removed, away] {
            assert!(world.task(id).await.file_missing, "{case}");
        }
    };
    is_kept_and_marked("the directory is gone").await;
    let_the_clock_tick(world.root.path()).await;
    std::fs::create_dir(&downloads).unwrap();
    is_kept_and_marked("another directory was made in its place").await;
    // The place of a mount has been there for long. Its birth time cannot be set; its last change tells.
    let place = std::fs::File::open(&downloads).unwrap();
    place.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    is_kept_and_marked("the empty place of a mount").await;
    std::fs::remove_dir(&downloads).unwrap();
    std::fs::rename(&elsewhere, &downloads).unwrap();
    std::fs::remove_file(world.download("removed")).unwrap();
    world.engine.rescan().await.unwrap();
    assert_eq!(
        world.engine.task(removed).await,
        Err(CommandError::UnknownTask(removed))
    );
    assert!(
        !world.task(away).await.file_missing,
        "what comes back is no longer missing"
    );
}

#[tokio::test]
async fn stored_credentials_are_listed_without_and_matched_with_their_password() {
    let world = World::new().await;
    let site: Site = "http://held.test".parse().unwrap();
    let credentials = Credentials {
        user: "me".into(),
        password: Secret::new("hunter2"),
    };
    world.engine.site_save(site.clone(), credentials.clone()).await.unwrap();
    let world = world.restart().await;
    assert_eq!(world.engine.sites().await.unwrap(), [(site.clone(), "me".to_owned())]);
    let url = |text: &str| SafeUrl::parse(text).unwrap();
    assert_eq!(
        world.engine.site_match(&url("http://held.test:80/x")).await.unwrap(),
        Some(credentials)
    );
    assert_eq!(
        world.engine.site_match(&url("https://held.test/x")).await.unwrap(),
        None
    );
    world.engine.site_delete(site.clone()).await.unwrap();
    assert_eq!(
        world.engine.site_delete(site.clone()).await,
        Err(CommandError::UnknownSite(site.to_string()))
    );
}

#[tokio::test]
async fn a_queue_holds_its_tasks_until_it_is_started() {
    let mut world = World::new().await;
    let named = |name: &str| QueueSpec {
        name: name.into(),
        max_concurrent: 1,
        ..QueueSpec::default()
    };
    let queue = world.engine.queue_create(named("own")).await.unwrap();
    world.engine.queue_stop(queue).await.unwrap();
    let in_queue = |n: u8| engine::TaskSpec {
        queue: Some(queue),
        ..spec(&format!("fake://held/{n}"))
    };
    let tasks = world.engine.create_many(vec![in_queue(1), in_queue(2)]).await.unwrap();
    assert_eq!(world.task(tasks[0]).await.status(), Status::Pending);
    world
        .engine
        .queue_reorder(queue, vec![tasks[1], tasks[0]])
        .await
        .unwrap();
    let mut world = {
        assert!(world.held.try_recv().is_err());
        world.restart().await
    };
    world.engine.queue_start(queue).await.unwrap();
    let run = world.next_run().await;
    assert_eq!(run.job.source.urls[0].expose(), "fake://held/2");
    assert!(world.held.try_recv().is_err(), "one at a time");
    world.engine.queue_delete(queue).await.unwrap();
    assert_eq!(world.task(tasks[0]).await.queue, QueueId::Main);
}

#[tokio::test]
async fn a_schedule_whose_start_passed_today_starts_its_queue_at_once() {
    let mut world = World::new().await;
    let waiting = engine::TaskSpec {
        queue: Some(QueueId::Later),
        ..spec("fake://held/a")
    };
    world.engine.create(waiting).await.unwrap();
    let midnight = engine::Schedule::parse_time("00:00").unwrap();
    let schedule = engine::Schedule {
        is_enabled: true,
        start: midnight,
        ..engine::Schedule::default()
    };
    world.engine.queue_schedule(QueueId::Later, schedule).await.unwrap();
    world.next_run().await;
}

#[tokio::test]
async fn an_attempt_to_subscribe_after_the_end_ends_at_once() {
    let world = World::new().await;
    let engine = world.engine.clone();
    let mut events = engine.events();
    let world = world.restart().await;
    while events.next().await.is_some() {}
    assert!(engine.events().next().await.is_none());
    assert_eq!(engine.snapshot().await.map(drop), Err(CommandError::Closed));
    let mut events = world.engine.events();
    world.create("fake://finish/a").await;
    next(&mut events).await;
}
