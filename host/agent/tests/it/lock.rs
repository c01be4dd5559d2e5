//! The content of the lock file, for other programs of the same user.

use std::time::Duration;

use agent::Holder;

use crate::world::{KEY, World};

#[tokio::test]
async fn the_lock_file_has_the_address_while_the_agent_listens() {
    let world = World::alone(agent::Edition::Headless, Some(KEY)).await;
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
    world.agent.shutdown_keeping_daemon(Duration::from_secs(1)).await;
    assert_eq!(agent::holder(&directory).unwrap(), None);
    // Also for a program that reads it during the shutdown.
    let said = std::fs::read_to_string(directory.join("agent.lock")).unwrap();
    assert_eq!(said, format!("{}\n{}\n", std::process::id(), pass.expose()));
}
