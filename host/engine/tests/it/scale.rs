//! A hundred thousand tasks.

use engine::{FileFate, QueueId, TaskSpec};

use crate::world::{World, spec};

#[tokio::test]
async fn a_hundred_thousand_tasks_are_made_read_back_and_deleted() {
    let world = World::new().await;
    let later = |n: u32| TaskSpec {
        queue: Some(QueueId::Later),
        ..spec(&format!("fake://stuck/file-{n}.bin"))
    };
    let mut ids = Vec::new();
    for chunk in 0..10 {
        ids.extend(
            world
                .engine
                .create_many((0..10_000).map(|n| later(chunk * 10_000 + n)).collect())
                .await
                .unwrap(),
        );
    }
    let world = world.restart().await;
    let snapshot = world.engine.snapshot().await.unwrap();
    assert_eq!(snapshot.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), ids);
    world.engine.delete_many(ids, FileFate::Delete).await.unwrap();
    let world = world.restart().await;
    assert!(world.engine.snapshot().await.unwrap().tasks.is_empty());
}
