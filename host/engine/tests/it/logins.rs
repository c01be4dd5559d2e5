//! Tasks that wait for a login, over restarts.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use engine::{
    AccountKey, Link, LoginNeed, Phase, ResolveFuture, ResolveRequest, Resolved, Resolver, ResolverId, Status,
    Unresolved,
};
use transfer::{Failure, FailureKind, SafeUrl};

use crate::world::World;

/// A plugin for the host `shelf`, which gives links to whoever has logged in.
#[derive(Debug, Default)]
struct Shelf {
    is_logged_in: AtomicBool,
    asked: AtomicUsize,
}

fn shelf() -> ResolverId {
    ResolverId::new("shelf@us")
}

fn link(path: &str) -> Link {
    Link {
        urls: vec![SafeUrl::parse(&format!("fake://finish{path}")).unwrap()],
        headers: Vec::new(),
        file_name: None,
        promised_size: None,
        checksum: None,
        is_single_use: false,
        is_whole_only: false,
        max_connections: None,
        segments: Arc::default(),
        account: None,
    }
}

impl Resolver for Shelf {
    fn claim(&self, url: &SafeUrl) -> Option<ResolverId> {
        (url.as_url().host_str() == Some("shelf")).then(shelf)
    }

    fn resolve(&self, request: ResolveRequest) -> ResolveFuture {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = if self.is_logged_in.load(Ordering::Relaxed) {
            Ok(Resolved::Link(Box::new(link(request.url.as_url().path()))))
        } else {
            Err(Unresolved {
                failure: Failure::new(FailureKind::LoginRequired, "a login is required"),
                login: LoginNeed::new(shelf(), "main", None).ok(),
            })
        };
        Box::pin(async { answer })
    }
}

#[tokio::test]
async fn a_task_waits_for_a_login_over_a_restart_and_then_finishes_by_itself() {
    let plugin = Arc::new(Shelf::default());
    let resolver = || Some(Arc::clone(&plugin) as Arc<dyn Resolver>);
    let world = World::with(|config| config.resolver = resolver()).await;
    let id = world.create("fake://shelf/a").await;
    let before = world.until(id, |phase| matches!(phase, Phase::NeedsLogin(_))).await;
    let world = world.restart_with(|config| config.resolver = resolver()).await;
    assert_eq!(*world.task(id).await, *before);
    assert_eq!(before.status(), Status::Error);
    assert_eq!(plugin.asked.load(Ordering::Relaxed), 1, "it is not asked in vain");
    plugin.is_logged_in.store(true, Ordering::Relaxed);
    let account = AccountKey::new(shelf(), "main", "ann").unwrap();
    world.engine.logged_in(account).await.unwrap();
    world.completed(id).await;
}

#[tokio::test]
async fn a_login_for_more_tasks_than_one_turn_resumes_reaches_all_of_them() {
    /// More than two turns.
    const TASKS: usize = 600;
    let plugin = Arc::new(Shelf::default());
    let resolver = Arc::clone(&plugin) as Arc<dyn Resolver>;
    let world = World::with(|config| config.resolver = Some(resolver)).await;
    let specs = (0..TASKS).map(|n| crate::world::spec(&format!("fake://shelf/{n}")));
    let ids = world.engine.create_many(specs.collect()).await.unwrap();
    for id in &ids {
        world.until(*id, |phase| matches!(phase, Phase::NeedsLogin(_))).await;
    }
    plugin.is_logged_in.store(true, Ordering::Relaxed);
    let account = AccountKey::new(shelf(), "main", "ann").unwrap();
    world.engine.logged_in(account).await.unwrap();
    for id in &ids {
        world.completed(*id).await;
    }
}
