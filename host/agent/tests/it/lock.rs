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
    let Holder { pass, .. } = agent::holder(&directory).unwrap().expect("it runs");
    let pass = pass.expect("it tells its user's programs what to show");
    let expect = Holder {
        process,
        pass: Some(pass.clone()),
        address,
    };
    assert_eq!(agent::holder(&directory).unwrap(), Some(expect));
    world.agent.leave(Duration::from_secs(1)).await;
    assert_eq!(agent::holder(&directory).unwrap(), None);
    // Also to somebody who looks while it ends.
    let said = std::fs::read_to_string(directory.join("agent.lock")).unwrap();
    assert_eq!(said, format!("{}\n{}\n", std::process::id(), pass.expose()));
}
