//! Prints how long the engine takes with many tasks: `cargo run --release -p engine --example engine_load [directory]`.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::{path::PathBuf, sync::Arc, time::Instant};

use engine::{Config, Engine, MIGRATIONS, QueueId, TaskSpec};
use store::{DataDir, Store, Vault};
use support::transport::FakeTransport;
use transfer::SafeUrl;

const TASKS: usize = 100_000;
const SINGLE: usize = 20_000;
const CALLERS: usize = 16;

#[tokio::main]
async fn main() {
    let root = std::env::args()
        .nth(1)
        .map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let root = root.join(format!("engine-load-{}", std::process::id()));
    let (engine, store, data) = open(&root).await;
    let start = Instant::now();
    for chunk in 0..TASKS / 10_000 {
        let start = Instant::now();
        engine
            .create_many((0..10_000).map(|n| spec(chunk * 10_000 + n)).collect())
            .await
            .expect("tasks are made");
        if chunk == 0 {
            println!("create_many of 10,000      {:>8.0?}", start.elapsed());
        }
    }
    println!(
        "create {TASKS} in tens of thousands {:>8.0?}, resident {} MiB",
        start.elapsed(),
        resident_mib()
    );
    let start = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let engine = engine.clone();
        callers.spawn(async move {
            for n in 0..SINGLE / CALLERS {
                engine.create(spec(caller * SINGLE + n)).await.expect("a task is made");
            }
        });
    }
    callers.join_all().await;
    println!("create one by one, {CALLERS} callers {:>8.0}/s", rate(SINGLE, start));
    let start = Instant::now();
    for n in 0..SINGLE / 4 {
        engine.create(spec(n)).await.expect("a task is made");
    }
    println!("create one by one, 1 caller   {:>8.0}/s", rate(SINGLE / 4, start));
    let start = Instant::now();
    let count = engine.snapshot().await.expect("the engine lives").tasks.len();
    println!("snapshot of {count}        {:>8.1?}", start.elapsed());
    engine.shutdown(std::time::Duration::from_secs(5)).await;
    store.close().await;
    drop((engine, store, data));
    let start = Instant::now();
    let (engine, store, data) = open(&root).await;
    engine.snapshot().await.expect("the engine lives");
    println!(
        "start with {count}         {:>8.0?}, resident {} MiB",
        start.elapsed(),
        resident_mib()
    );
    engine.shutdown(std::time::Duration::from_secs(5)).await;
    store.close().await;
    drop(data);
    std::fs::remove_dir_all(root).expect("the directory is ours");
}

async fn open(root: &std::path::Path) -> (Engine, Store, DataDir) {
    let data = DataDir::lock(root).expect("the directory is free");
    let store = Store::open(data.join("db"), &[MIGRATIONS]).expect("the database opens");
    let vault = Arc::new(Vault::open(&data, &store).await.expect("the vault opens"));
    let engine = Engine::start(
        Config::new(root),
        store.clone(),
        vault,
        vec![Arc::new(FakeTransport::idle(&["http"]))],
    )
    .await
    .expect("it starts");
    (engine, store, data)
}

fn spec(n: usize) -> TaskSpec {
    let url = SafeUrl::parse(&format!("http://files.example.test/some/directory/file-number-{n}.bin")).expect("a URL");
    TaskSpec {
        queue: Some(QueueId::Later),
        ..TaskSpec::new(url)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(count: usize, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

fn resident_mib() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or(0)
        * 4096
        / 1024
        / 1024
}
