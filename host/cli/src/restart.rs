//! `svc restart`: restarts a service, and waits until it answers again.

use std::time::Duration;

use command::{Exit, environment::Environment};
use protocol::{Method, OkResult};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::service::{Client, RemoteError, ServiceArgs};

pub(crate) const HELP: &str = "\
Use it after an update of the executable. The process and its address stay the same, also under a service manager or in a
container; downloads save their progress and go on, and other clients reconnect. If the executable cannot be started, the
service says so and goes on as it is.

Examples:
  svc restart
  svc restart --url https://nas.example.com";

/// The end of a service takes 15 s at most; its start verifies the database.
const RESTART_TIME: Duration = Duration::from_mins(1);

const LOOK_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub struct RestartArgs {
    #[command(flatten)]
    service: ServiceArgs,
}

pub(crate) async fn run(args: &RestartArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let key = args.service.given_key(environment)?;
    let mut client = Client::connect(&args.service.target_with(key.clone())?).await?;
    let before = client.version.clone();
    let _done: OkResult = client.ask(Method::ServiceRestart).await?;
    let until = Instant::now() + RESTART_TIME;
    // It closes the connection when it stops listening; nothing else comes before that.
    let closing = async { while client.event().await.is_ok() {} };
    let _late = tokio::time::timeout_at(until, closing).await;
    let mut target = client.target.as_ref().clone();
    let client = loop {
        match Client::connect(&target).await {
            Ok(client) => break client,
            Err(error) if Instant::now() >= until => return Err(error.into()),
            // A desktop may listen elsewhere now.
            Err(RemoteError::NoKey { .. }) => target = args.service.target_with(key.clone())?,
            Err(error) if error.is_temporary() => {}
            Err(error) => return Err(error.into()),
        }
        sleep(LOOK_EVERY).await;
    };
    let address = client.target.address.to_string();
    let record = json!({ "url": address, "version": client.version, "versionBefore": before });
    let sentence = format!("restarted: Svc {} at {address}", client.version);
    args.service.print_done(&record, &sentence)
}
