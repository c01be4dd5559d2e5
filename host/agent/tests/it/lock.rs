//! What the lock on the agent's directory tells other programs of the same user.

use std::time::Duration;

use agent::Holder;

use crate::world::{KEY, World};

#[tokio::test]
async fn the_lock_says_who_listens_where_for_as_long_as_it_does() {
    let world = World::alone(agent::Host::Headless, Some(KEY)).await;
    let directory = world.directory();
    let process = Some(std::process::id());
    let address = Some(world.address());
    assert_eq!(agent::holder(&directory).unwrap(), Some(Holder { process, address }));
    world.agent.leave(Duration::from_secs(1)).await;
    assert_eq!(agent::holder(&directory).unwrap(), None);
    // Also to somebody who looks while it ends.
    let said = std::fs::read_to_string(directory.join("agent.lock")).unwrap();
    assert_eq!(said, format!("{}\n", std::process::id()));
}
