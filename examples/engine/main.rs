//! Downloads a file with the engine alone, without a service: `cargo run -p host --example engine -- https://example.com/file DIR`.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::{sync::Arc, time::Duration};

use host::{
    engine::{self, Config, Engine, Event, Phase, TaskSpec},
    store::{Store, Vault},
    transfer::SafeUrl,
    transfer_http::{self, HttpTransport},
};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let [url, directory] = <[String; 2]>::try_from(std::env::args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "write a URL and a directory")?;

    // In memory: nothing but the file is kept. With `Store::open`, tasks survive the process.
    let store = Store::in_memory(&[engine::MIGRATIONS])?;
    let vault = Arc::new(Vault::ephemeral()?);
    let transport = HttpTransport::new(transfer_http::Config::default())?;
    let config = Config::new(std::path::absolute(directory)?);
    let engine = Engine::start(config, store.clone(), vault, vec![Arc::new(transport)]).await?;

    let mut events = engine.events();
    let id = engine.create(TaskSpec::new(SafeUrl::parse(&url)?)).await?;
    while let Some(event) = events.next().await {
        let (_, event) = event?;
        let Event::TasksChanged(tasks) = event else { continue };
        let Some(task) = tasks.iter().find(|task| task.id == id) else {
            continue;
        };
        match &task.phase {
            Phase::Completed => {
                println!("{:?} is there", task.path);
                break;
            }
            Phase::Failed(failure) => return Err(failure.to_string().into()),
            _ => {}
        }
    }

    engine.shutdown(Duration::from_secs(5)).await;
    store.close().await;
    Ok(())
}
