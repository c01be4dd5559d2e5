//! What runs tell and how they end.

use std::time::Duration;

use engine::{Event, FileFate, Phase, Settings, Status};
use transfer::{Failure, FailureKind, Landing, Outcome, Progress, Recorded, RunEvent, Stage};

use crate::world::{Held, World, next, spec};

#[tokio::test]
async fn a_task_runs_to_its_file() {
    let world = World::new().await;
    let id = world.create("fake://finish/a.bin").await;
    let task = world.completed(id).await;
    assert_eq!(task.path.as_deref(), Some(world.download("a.bin").as_path()));
    assert_eq!((task.done_bytes, task.total_bytes, task.owns_file), (4, Some(4), true));
    assert!(task.completed_at.is_some() && world.engine.progress(id).is_none());
}

#[tokio::test]
async fn progress_notices_and_retries_are_told_in_order() {
    let mut world = World::new().await;
    let mut events = world.engine.events();
    let id = world.create("fake://held/a").await;
    let run = world.next_run().await;
    let progress = Progress {
        stage: Stage::Moving,
        done_bytes: 7,
        connections: 3,
        ..Progress::default()
    };
    run.job.reporter.progress(progress);
    while !matches!(next(&mut events).await, Event::Progress(samples) if samples[0].1.done_bytes == 7) {}
    let live = world.engine.progress(id).unwrap();
    assert_eq!((live.progress.connections, world.engine.all_progress().len()), (3, 1));
    assert_eq!(world.task(id).await.status(), Status::Downloading);
    let failure = Failure::new(FailureKind::Network, "reset");
    run.job.reporter.event(RunEvent::Notice("starting over".into())).await;
    run.job
        .reporter
        .event(RunEvent::Retrying {
            failure: failure.clone(),
            wait_ms: 20,
        })
        .await;
    run.job.reporter.progress(Progress {
        done_bytes: 9,
        ..Progress::default()
    });
    run.end
        .send(Outcome::Failed(Failure::new(FailureKind::NotFound, "404")))
        .unwrap();
    let mut told = Vec::new();
    loop {
        match next(&mut events).await {
            Event::Notice { message, .. } => told.push(message.to_string()),
            Event::AttemptFailed {
                failure: seen, wait, ..
            } => {
                assert_eq!((&*seen, wait), (&failure, Duration::from_millis(20)));
                told.push("attempt".to_owned());
            }
            Event::TasksChanged(tasks) if tasks[0].status() == Status::Error => {
                assert_eq!(
                    tasks[0].done_bytes, 9,
                    "the last progress counts although no sample was due"
                );
                break;
            }
            _ => {}
        }
    }
    assert_eq!(told, ["starting over", "attempt"]);
}

#[tokio::test]
async fn a_panic_fails_the_task_and_nothing_else() {
    let world = World::new().await;
    let id = world.create("fake://panic/a").await;
    let task = world.until(id, |phase| matches!(phase, Phase::Failed(_))).await;
    let failure = task.failure().unwrap();
    assert_eq!(failure.kind, FailureKind::Internal);
    assert!(failure.message.contains("on purpose"), "{failure}");
    let next = world.create("fake://finish/b").await;
    world.completed(next).await;
}

#[tokio::test]
async fn pausing_stops_the_run_and_resuming_goes_on_from_its_path() {
    let mut world = World::new().await;
    let id = world.create("fake://held/a").await;
    let run = world.next_run().await;
    let path = world.download("a");
    run.job
        .reporter
        .event(RunEvent::Reserved {
            path: path.clone(),
            total_bytes: Some(10),
        })
        .await;
    world.engine.pause(id).await.unwrap();
    run.job.stop.cancelled().await;
    world.engine.resume(id).await.unwrap();
    assert!(world.held.try_recv().is_err(), "the first run still lives");
    run.end.send(Outcome::Stopped).unwrap();
    let run = world.next_run().await;
    assert_eq!(run.job.target.reserved, Some(path));
}

#[tokio::test]
async fn a_transient_failure_is_tried_again() {
    let mut world = World::new().await;
    let settings = Settings {
        auto_retry_delay_secs: 0,
        max_auto_retries: Some(1),
        ..Settings::default()
    };
    world.engine.change_settings(Some(0), settings).await.unwrap();
    let id = world.create("fake://held/a").await;
    for _ in 0..2 {
        let run = world.next_run().await;
        run.end
            .send(Outcome::Failed(Failure::new(FailureKind::Network, "reset")))
            .unwrap();
    }
    let task = world.until(id, |phase| matches!(phase, Phase::Failed(_))).await;
    assert_eq!(task.attempts, 1);
}

#[tokio::test]
async fn limits_apply_to_runs_that_live() {
    let mut world = World::new().await;
    let id = world.create("fake://held/a").await;
    let run = world.next_run().await;
    assert!(!run.job.limits.are_set());
    world.engine.set_speed_limit(id, 1000).await.unwrap();
    assert!(run.job.limits.are_set());
    world.engine.set_speed_limit(id, 0).await.unwrap();
    let settings = Settings {
        speed_limit_bytes: 5,
        ..Settings::default()
    };
    world.engine.change_settings(None, settings).await.unwrap();
    assert!(run.job.limits.are_set());
    world.engine.change_settings(None, Settings::default()).await.unwrap();
    let mut queue = world.engine.queues().await.unwrap()[0].spec.clone();
    assert!(!run.job.limits.are_set());
    queue.speed_limit_bytes = 9;
    world.engine.queue_update(engine::QueueId::Main, queue).await.unwrap();
    assert!(run.job.limits.are_set());
}

#[tokio::test]
async fn a_shutdown_waits_for_runs_and_cuts_off_what_hangs() {
    let mut world = World::new().await;
    let held = world.create("fake://held/a").await;
    let stuck = world.create("fake://stuck/b").await;
    let run = world.next_run().await;
    let engine = world.engine.clone();
    let shutdown = engine.shutdown(Duration::from_millis(50));
    let polite = async {
        run.job.stop.cancelled().await;
        run.job.reporter.progress(Progress {
            done_bytes: 42,
            ..Progress::default()
        });
        run.end.send(Outcome::Stopped).unwrap();
    };
    let (report, ()) = tokio::join!(shutdown, polite);
    assert_eq!(report.cut_off, [stuck]);
    assert_eq!(world.engine.pause(held).await, Err(engine::CommandError::Closed));
    let mut world = world.restart().await;
    let run = world.next_run().await;
    assert_eq!(run.job.source.urls[0].expose(), "fake://held/a");
    assert_eq!(world.task(held).await.done_bytes, 42);
    assert_eq!(
        world.engine.progress(held).unwrap().progress.done_bytes,
        42,
        "until the run knows better"
    );
    run.end
        .send(Outcome::Failed(Failure::new(FailureKind::NotFound, "404")))
        .unwrap();
    world.until(held, |phase| matches!(phase, Phase::Failed(_))).await;
    assert_eq!(world.task(held).await.done_bytes, 42);
}

/// Has the run reserve `name` and waits until that is on record.
async fn reserve(world: &World, run: &Held, name: &str) -> Recorded {
    let event = RunEvent::Reserved {
        path: world.download(name),
        total_bytes: Some(5),
    };
    run.job.reporter.record(event).await.unwrap()
}

#[tokio::test]
async fn what_a_run_has_recorded_survives_a_kill() {
    let mut world = World::new().await;
    let id = world.create("fake://held/a").await;
    let run = world.next_run().await;
    assert_eq!(reserve(&world, &run, "a").await, Recorded::Done);
    let mut world = world.kill().await;
    let run = world.next_run().await;
    assert_eq!(run.job.target.reserved, Some(world.download("a")));
    let other = world.create("fake://held/b").await;
    let other_run = world.next_run().await;
    assert_eq!(reserve(&world, &other_run, "a").await, Recorded::Taken);
    assert_eq!(world.task(other).await.path, None);
    assert_eq!(world.task(id).await.path.as_deref(), Some(&*world.download("a")));
}

#[tokio::test]
async fn a_file_that_landed_before_a_kill_is_its_tasks() {
    for has_landed in [true, false] {
        let mut world = World::new().await;
        let id = world.create("fake://held/a").await;
        let run = world.next_run().await;
        reserve(&world, &run, "a").await;
        let (part, path) = (world.download("a.svcpart"), world.download("a"));
        std::fs::create_dir_all(world.download("")).unwrap();
        std::fs::write(&part, b"whole").unwrap();
        std::fs::write(world.download("a.svcpart.journal"), b"").unwrap();
        let landing = Landing {
            path: path.clone(),
            inode: inode(&part),
            size_bytes: 5,
        };
        run.job.reporter.record(RunEvent::Landing(landing)).await.unwrap();
        if has_landed {
            std::fs::rename(&part, &path).unwrap();
        } else {
            std::fs::write(&path, b"other").unwrap();
        }
        let mut world = world.kill().await;
        let names = std::fs::read_dir(world.download("")).unwrap().count();
        if has_landed {
            assert_eq!(
                world.task(id).await.phase,
                Phase::Completed,
                "settled when the start is over"
            );
            assert_eq!(names, 1, "the journal is gone, too");
        } else {
            assert_eq!(world.next_run().await.job.target.reserved, Some(path));
            assert_eq!(names, 3, "nothing is removed");
        }
    }
}

#[cfg(unix)]
fn inode(path: &std::path::Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap())
}

#[cfg(not(unix))]
fn inode(_path: &std::path::Path) -> u64 {
    0
}

#[tokio::test]
async fn a_run_that_waits_for_a_record_is_not_held_up_by_the_end() {
    let mut world = World::new().await;
    world.create("fake://held/a").await;
    let run = world.next_run().await;
    let engine = world.engine.clone();
    let shutdown = engine.shutdown(Duration::from_secs(10));
    let run_ends = async {
        run.job.stop.cancelled().await;
        let recorded = reserve(&world, &run, "a").await;
        run.end.send(Outcome::Stopped).unwrap();
        (recorded, run.job.reporter)
    };
    let (report, (recorded, reporter)) = tokio::join!(shutdown, run_ends);
    assert_eq!((report.cut_off.len(), recorded), (0, Recorded::Done));
    let event = RunEvent::Notice("anybody?".into());
    assert_eq!(
        reporter.record(event).await,
        Ok(Recorded::Done),
        "nobody is there to wait for"
    );
}

#[tokio::test]
async fn a_rename_that_a_kill_cut_short_is_over_when_the_start_is() {
    for is_done in [true, false] {
        let world = World::new().await;
        let id = world.create("fake://finish/old.bin").await;
        world.completed(id).await;
        // What is answered is on the disk, and so is what came before.
        world.engine.set_speed_limit(id, 0).await.unwrap();
        let (old, new) = (world.download("old.bin"), world.download("new.bin"));
        if is_done {
            std::fs::rename(&old, &new).unwrap();
        }
        let begin = r#"UPDATE task SET unsettled = '{"renaming":"new.bin"}'"#;
        let world = world.kill_with(|rows| assert_eq!(rows.execute(begin, []), Ok(1))).await;
        assert_eq!(world.task(id).await.path.as_deref(), Some(&*new));
        assert!(new.exists() && !old.exists());
        let world = world.restart().await;
        assert_eq!(world.task(id).await.file_name(), "new.bin");
    }
}

#[tokio::test]
async fn a_rename_is_on_the_disk_before_it_is_done() {
    let world = World::new().await;
    let id = world.create("fake://finish/old.bin").await;
    world.completed(id).await;
    std::fs::write(world.download("new.bin"), b"theirs").unwrap();
    let refused = world.engine.rename(id, "new.bin").await;
    assert_eq!(
        refused,
        Err(engine::CommandError::TargetExists(world.download("new.bin")))
    );
    world.engine.rename(id, "newer.bin").await.unwrap();
    let world = world.kill().await;
    assert_eq!(
        world.task(id).await.path.as_deref(),
        Some(&*world.download("newer.bin"))
    );
    assert_eq!(std::fs::read(world.download("newer.bin")).unwrap(), b"done");
    assert_eq!(std::fs::read(world.download("new.bin")).unwrap(), b"theirs");
}

#[tokio::test]
async fn the_engine_ends_with_its_last_handle() {
    let World { engine, held, .. } = World::new().await;
    engine.create(spec("fake://held/a")).await.unwrap();
    let mut events = engine.events();
    drop((engine, held));
    while let Some(event) = events.next().await {
        event.unwrap();
    }
}

#[tokio::test]
async fn deleting_a_running_task_removes_its_part_when_the_run_has_ended() {
    let mut world = World::new().await;
    let id = world.create("fake://held/a").await;
    let run = world.next_run().await;
    std::fs::create_dir_all(world.download("")).unwrap();
    for name in ["a.svcpart", "a.svcpart.journal", "a"] {
        std::fs::write(world.download(name), name).unwrap();
    }
    run.job
        .reporter
        .event(RunEvent::Reserved {
            path: world.download("a"),
            total_bytes: None,
        })
        .await;
    world.delete(id, FileFate::Delete).await;
    run.job.stop.cancelled().await;
    assert!(world.download("a.svcpart").exists(), "the run still writes it");
    run.end.send(Outcome::Stopped).unwrap();
    let world = world.restart().await;
    assert!(!world.download("a.svcpart").exists() && !world.download("a.svcpart.journal").exists());
    assert!(
        world.download("a").exists(),
        "a file of the reserved name that the run did not make is not ours"
    );
    assert!(world.engine.snapshot().await.unwrap().tasks.is_empty());
}
