//! An engine on a temporary directory, with a transport whose runs the test conducts.

use std::{path::PathBuf, sync::Arc, time::Duration};

use engine::{Config, Engine, Event, Events, FileFate, MIGRATIONS, Phase, Task, TaskId, TaskSpec};
use store::{DataDir, Store, Vault, sql::Connection};
use support::transport::{self, FakeTransport};
use tokio::sync::{mpsc, oneshot};
use transfer::{Job, Outcome, SafeUrl};

/// How long anything may take before a test is called stuck.
const PATIENCE: Duration = Duration::from_secs(20);

/// A run that waits for the test to end it.
pub(crate) struct Held {
    pub(crate) job: Job,
    pub(crate) end: oneshot::Sender<Outcome>,
}

/// A run does what the host of the URL says: `finish`, `panic` or `stuck`. Any other is held for the test.
async fn run(job: Job, held: mpsc::UnboundedSender<Held>) -> Outcome {
    match transport::host(&job) {
        "finish" => transport::finish(&job, b"done").await,
        "panic" => panic!("on purpose"),
        "stuck" => std::future::pending().await,
        _ => {
            let (end, outcome) = oneshot::channel();
            let _test_ended = held.send(Held { job, end });
            outcome.await.unwrap_or(Outcome::Stopped)
        }
    }
}

pub(crate) struct World {
    pub(crate) root: tempfile::TempDir,
    pub(crate) engine: Engine,
    pub(crate) store: Store,
    pub(crate) held: mpsc::UnboundedReceiver<Held>,
    data: Option<DataDir>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::at(tempfile::tempdir().unwrap(), change).await
    }

    async fn at(root: tempfile::TempDir, change: impl FnOnce(&mut Config)) -> Self {
        let data = DataDir::lock(root.path().join("data")).unwrap();
        let store = Store::open(data.join("db"), &[MIGRATIONS]).unwrap();
        let vault = Arc::new(Vault::open(&data, &store).await.unwrap());
        let (sender, held) = mpsc::unbounded_channel();
        let mut config = Config {
            sample_interval: Duration::from_millis(5),
            ..Config::new(root.path().join("downloads"))
        };
        change(&mut config);
        let transport = FakeTransport::new(&["fake", "fakes"], move |job| run(job, sender.clone()));
        let engine = Engine::start(config, store.clone(), vault, vec![Arc::new(transport)])
            .await
            .unwrap();
        Self {
            root,
            engine,
            store,
            held,
            data: Some(data),
        }
    }

    /// Shuts down and starts again.
    pub(crate) async fn restart(self) -> Self {
        self.restart_with(|_| ()).await
    }

    /// [`World::restart`] with another configuration.
    pub(crate) async fn restart_with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        tokio::time::timeout(PATIENCE, self.engine.shutdown(PATIENCE / 2))
            .await
            .expect("the engine ends");
        tokio::time::timeout(PATIENCE, self.store.close())
            .await
            .expect("the store closes");
        drop(self.data.take());
        Self::at(self.root, change).await
    }

    /// Starts the engine again on what it had on the disk at this moment, as if it had been killed. The files of tasks
    /// are as the test left them.
    pub(crate) async fn kill(self) -> Self {
        self.kill_with(|_| ()).await
    }

    /// As [`World::kill`], after `change` has edited the database.
    pub(crate) async fn kill_with(mut self, change: impl FnOnce(&Connection)) -> Self {
        let image = self.root.path().join("image");
        let database = Connection::open(self.database()).unwrap();
        database.execute("VACUUM INTO ?1", [image.to_str().unwrap()]).unwrap();
        drop(database);
        change(&Connection::open(&image).unwrap());
        tokio::time::timeout(PATIENCE, self.engine.shutdown(Duration::ZERO))
            .await
            .expect("the engine ends");
        self.store.close().await;
        drop(self.data.take());
        std::fs::rename(image, self.database()).unwrap();
        Self::at(self.root, |_| ()).await
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.path().join("data/db")
    }

    pub(crate) fn download(&self, name: &str) -> PathBuf {
        self.root.path().join("downloads").join(name)
    }

    /// The next run that the test must end.
    pub(crate) async fn next_run(&mut self) -> Held {
        tokio::time::timeout(PATIENCE, self.held.recv())
            .await
            .expect("a run starts")
            .unwrap()
    }

    pub(crate) async fn create(&self, url: &str) -> TaskId {
        self.engine.create(spec(url)).await.unwrap()
    }

    pub(crate) async fn task(&self, id: TaskId) -> Arc<Task> {
        self.engine.task(id).await.unwrap()
    }

    /// Waits until the task is in a phase that `wanted` accepts.
    pub(crate) async fn until(&self, id: TaskId, wanted: impl Fn(&Phase) -> bool) -> Arc<Task> {
        self.until_task(id, |task| wanted(&task.phase)).await
    }

    /// Waits until an event leaves the task as `wanted` says.
    pub(crate) async fn until_task(&self, id: TaskId, wanted: impl Fn(&Task) -> bool) -> Arc<Task> {
        let mut events = self.engine.events();
        let waiting = async {
            loop {
                let task = self.task(id).await;
                if wanted(&task) {
                    return task;
                }
                next(&mut events).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .expect("the task gets there")
    }

    pub(crate) async fn completed(&self, id: TaskId) -> Arc<Task> {
        self.until(id, |phase| *phase == Phase::Completed).await
    }

    pub(crate) async fn delete(&self, id: TaskId, fate: FileFate) {
        self.engine.delete(id, fate).await.unwrap();
    }
}

pub(crate) fn spec(url: &str) -> TaskSpec {
    TaskSpec::new(SafeUrl::parse(url).unwrap())
}

pub(crate) async fn next(events: &mut Events) -> Event {
    let event = tokio::time::timeout(PATIENCE, events.next())
        .await
        .expect("an event comes");
    event.expect("the engine lives").expect("no event was missed").1
}
