//! What is answered is on disk, and what is secret is not readable there.

use std::time::Duration;

use engine::{Phase, ProxyChoice, Settings, TaskSpec};
use store::sql::Connection;
use transfer::{Credentials, Failure, FailureKind, OnConflict, Outcome, RequestBody, RetryPolicy, SafeUrl, Secret};

use crate::world::{World, spec};

#[tokio::test]
async fn a_created_task_is_on_disk_when_the_call_is_answered() {
    let world = World::new().await;
    let other = Connection::open(world.database()).unwrap();
    let count = || {
        other
            .query_row("SELECT count(*) FROM task", [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    for n in 1..=20 {
        world.create(&format!("fake://stuck/{n}")).await;
        assert_eq!(count(), n);
    }
    let all: Vec<_> = world
        .engine
        .snapshot()
        .await
        .unwrap()
        .tasks
        .iter()
        .map(|task| task.id)
        .collect();
    world.engine.pause_many(all[5..].to_vec()).await.unwrap();
    let paused = "SELECT count(*) FROM task WHERE phase = 2";
    assert_eq!(other.query_row(paused, [], |row| row.get::<_, i64>(0)).unwrap(), 15);
}

fn everything() -> TaskSpec {
    let mut spec = TaskSpec {
        urls: vec![
            SafeUrl::parse("fake://user:urlsecret@held/a").unwrap(),
            SafeUrl::parse("fakes://mirror/a?x=1").unwrap(),
        ],
        segments: 9,
        max_connections: Some(3),
        min_split_bytes: Some(77),
        proxy: ProxyChoice::Through(SafeUrl::parse("socks5://p:proxysecret@p.test:1").unwrap()),
        ignore_tls_errors: true,
        checksum: Some("md5=900150983cd24fb0d6963f7d28e17f72".parse().unwrap()),
        promised_size: Some(12),
        promised_type: Some("video/mp4".into()),
        speed_limit_bytes: 4,
        on_conflict: Some(OnConflict::Overwrite),
        retry: Some(RetryPolicy {
            attempts: None,
            base: Duration::from_millis(3),
            cap: Duration::from_secs(4),
            ..RetryPolicy::default()
        }),
        adopt: true,
        use_server_time: Some(true),
        lowest_speed_bytes: 5,
        max_not_found: 6,
        check_integrity: true,
        no_netrc: true,
        tags: vec!["linux".into(), "iso".into()],
        ..TaskSpec::default()
    };
    spec.request.method = Some("POST".into());
    spec.request.body = Some(RequestBody::Raw {
        bytes: b"bodysecret\0\xff".to_vec(),
        content_type: Some("a/b".into()),
    });
    spec.request.headers = vec![("X-Key".into(), Secret::new("headersecret"))];
    spec.request.cookies = Secret::new("c=cookiesecret");
    spec.request.referrer = "http://referrer.test/".into();
    spec.request.user_agent = "agent".into();
    spec.request.credentials = Some(Credentials {
        user: "u".into(),
        password: Secret::new("basicsecret"),
    });
    spec
}

#[tokio::test]
async fn every_field_survives_a_restart_and_no_secret_is_readable_on_disk() {
    let world = World::new().await;
    let id = world
        .engine
        .create(TaskSpec {
            start_paused: true,
            ..everything()
        })
        .await
        .unwrap();
    let settings = Settings {
        proxy_password: Secret::new("settingsecret"),
        ..Settings::default()
    };
    world.engine.change_settings(None, settings.clone()).await.unwrap();
    let site = "http://site.test".parse().unwrap();
    world
        .engine
        .site_save(
            site,
            Credentials {
                user: "u".into(),
                password: Secret::new("sitesecret"),
            },
        )
        .await
        .unwrap();
    let before = world.task(id).await;
    let world = world.restart().await;
    assert_eq!(*world.task(id).await, *before);
    let asked = world.task(id).await.spec();
    assert_eq!(
        TaskSpec {
            save_dir: None,
            queue: None,
            ..asked
        },
        everything()
    );
    assert_eq!(*world.engine.settings().settings, settings);
    world.engine.shutdown(Duration::ZERO).await;
    world.store.close().await;
    let bytes = std::fs::read(world.database()).unwrap();
    for secret in ["url", "proxy", "body", "header", "cookie", "basic", "setting", "site"] {
        let secret = format!("{secret}secret");
        let shown = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!shown, "{secret} is readable in the database");
    }
}

#[tokio::test]
async fn retries_that_a_plugin_asked_for_are_counted_across_a_restart() {
    let mut world = World::new().await;
    let id = world.create("fake://held/a").await;
    let failure = Failure::new(FailureKind::NotFound, "gone");
    world.next_run().await.end.send(Outcome::Failed(failure)).unwrap();
    world.until(id, |phase| matches!(phase, Phase::Failed(_))).await;
    world.engine.request_retry(id, Duration::from_hours(1)).await.unwrap();
    let world = world.restart().await;
    assert_eq!(world.task(id).await.asked_retries, 1);
}

#[tokio::test]
async fn the_longest_url_that_is_accepted_is_read_again() {
    // Two bytes that become six.
    let long = |count: usize| format!("fake://held/{}", "é".repeat(count));
    let most = (transfer::safe_url::MAX_URL_BYTES - long(0).len()) / 6;
    assert!(
        SafeUrl::parse(&long(most + 1)).is_err(),
        "it is too long as it is stored"
    );
    let world = World::new().await;
    let id = world.create(&long(most)).await;
    let world = world.restart().await;
    assert_eq!(
        world.task(id).await.url().expose(),
        SafeUrl::parse(&long(most)).unwrap().expose()
    );
}

#[tokio::test]
async fn rows_sealed_with_another_key_stop_the_start_and_are_kept() {
    let world = World::new().await;
    let mut secret = spec("fake://held/a");
    secret.request.cookies = Secret::new("c=1");
    world.engine.create(secret).await.unwrap();
    world.engine.shutdown(Duration::ZERO).await;
    world.store.close().await;
    let store = store::Store::open(world.database(), &[engine::MIGRATIONS]).unwrap();
    let other_key = std::sync::Arc::new(store::Vault::ephemeral().unwrap());
    let config = engine::Config::new(world.root.path());
    let error = engine::Engine::start(config, store.clone(), other_key, Vec::new())
        .await
        .unwrap_err();
    assert!(matches!(error, engine::StartError::Sealed { .. }), "{error}");
    let rows: i64 = store
        .read(|connection| connection.query_row("SELECT count(*) FROM task", [], |row| row.get(0)))
        .await
        .unwrap();
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn a_database_of_the_first_version_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let dump = include_str!("../fixtures/version_1.sql");
    Connection::open(&path).unwrap().execute_batch(dump).unwrap();
    let store = store::Store::open(&path, &[engine::MIGRATIONS]).unwrap();
    let vault = std::sync::Arc::new(store::Vault::ephemeral().unwrap());
    let engine = engine::Engine::start(engine::Config::new(dir.path()), store, vault, Vec::new())
        .await
        .unwrap();
    let snapshot = engine.snapshot().await.unwrap();
    let seen: Vec<_> = snapshot
        .tasks
        .iter()
        .map(|task| (task.file_name(), task.status() as u8))
        .collect();
    assert_eq!(
        seen,
        [
            ("done.iso".to_owned(), 3),
            ("waits.zip".to_owned(), 2),
            ("broken".to_owned(), 4)
        ]
    );
    assert_eq!(
        snapshot.tasks[1].spec().checksum.unwrap().hex(),
        "900150983cd24fb0d6963f7d28e17f72"
    );
    assert_eq!(snapshot.tasks[2].failure().unwrap().kind, FailureKind::NotFound);
    assert_eq!(
        snapshot
            .queues
            .iter()
            .map(|queue| queue.spec.name.as_str())
            .collect::<Vec<_>>(),
        ["main", "later", "night"]
    );
    assert_eq!(snapshot.groups.len(), 1);
    assert_eq!(
        (
            snapshot.settings.revision,
            snapshot.settings.settings.max_concurrent_tasks
        ),
        (4, 9)
    );
}
