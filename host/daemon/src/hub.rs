//! Turns the engine's events into the daemon's: numbers them, encodes each once, and keeps them in the ring that all
//! connections read. This file is the handle; `worker` is the task behind it.

pub(crate) mod ask;
pub(crate) mod disk;
pub(crate) mod history;
pub(crate) mod ring;
mod sums;
pub(crate) mod worker;

use std::sync::Arc;

use chains::Jobs;
use engine::Engine;
use hooks::Hooks;
use plugin_host::Plugins;
use protocol::RuntimeStats;
use rss::Subscriptions;
use tokio::sync::{mpsc, oneshot, watch};
use transfer_torrent::Torrents;

use crate::{
    configuration::Configuration,
    hub::{
        ask::{Ask, Ended, Reached, UnencodedSnapshot},
        disk::FreeSpace,
        history::History,
        ring::Ring,
        worker::{Outputs, Sources, Worker},
    },
    selection::Selections,
};

const ASK_BACKLOG: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct Hub {
    asks: mpsc::Sender<Ask>,
    reached: watch::Receiver<Reached>,
    engine: Engine,
    ring: Arc<Ring>,
    epoch: Arc<str>,
}

impl Hub {
    pub(crate) fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Identifies this start of the daemon: sequence numbers of another epoch mean nothing in this one.
    pub(crate) fn epoch(&self) -> &str {
        &self.epoch
    }

    /// The sequence number once all changes that the engine has acknowledged so far are in the ring.
    pub(crate) async fn sequence_of_now(&self) -> Result<u64, Ended> {
        let engine = self.engine.sequence();
        let mut reached = self.reached.clone();
        let reached = reached
            .wait_for(|reached| reached.engine >= engine)
            .await
            .map_err(|_| Ended)?;
        Ok(reached.own)
    }

    /// A consistent snapshot, as of one event.
    pub(crate) async fn moment(&self) -> Result<UnencodedSnapshot, Ended> {
        self.ask(Ask::UnencodedSnapshot).await?
    }

    pub(crate) async fn stats(&self) -> Result<RuntimeStats, Ended> {
        self.ask(Ask::Stats).await
    }

    /// Flushes the history. Callers read the store afterwards.
    pub(crate) async fn save_history(&self) -> Result<(), Ended> {
        self.ask(Ask::SaveHistory).await
    }

    /// Publishes the configuration to all connections.
    pub(crate) async fn config_changed(&self) -> Result<(), Ended> {
        self.ask(Ask::ConfigChanged).await
    }

    /// Publishes the plugins if they changed since they were last published.
    pub(crate) async fn plugins_changed(&self) -> Result<(), Ended> {
        self.ask(Ask::PluginsChanged).await
    }

    /// Publishes what changed in the log of webhooks so far.
    pub(crate) async fn webhooks_changed(&self) -> Result<(), Ended> {
        self.ask(Ask::WebhooksChanged).await
    }

    /// Publishes that jobs which follow downloads changed, if they did.
    pub(crate) async fn post_changed(&self) -> Result<(), Ended> {
        self.ask(Ask::PostChanged).await
    }

    /// Publishes what became of questions so far.
    pub(crate) async fn selections_changed(&self) -> Result<(), Ended> {
        self.ask(Ask::SelectionsChanged).await
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Ended> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(ask(reply)).await.map_err(|_| Ended)?;
        answer.await.map_err(|_| Ended)
    }
}

/// The subsystems whose changes are published.
pub(crate) struct Subsystems {
    pub(crate) engine: Engine,
    pub(crate) plugins: Option<Plugins>,
    pub(crate) rss: Subscriptions,
    pub(crate) hooks: Hooks,
    pub(crate) jobs: Jobs,
    pub(crate) torrents: Option<Torrents>,
    pub(crate) selections: Selections,
}

/// The caller spawns `Worker::run`.
pub(crate) async fn start(
    Subsystems {
        engine,
        plugins,
        rss,
        hooks,
        jobs,
        torrents,
        selections,
    }: Subsystems,
    configuration: Arc<Configuration>,
    history: History,
    free_space: FreeSpace,
    epoch: Arc<str>,
) -> Result<(Hub, Worker), engine::CommandError> {
    let events = engine.events();
    let snapshot = engine.snapshot().await?;
    let ring = Arc::new(Ring::new());
    let (ask, asks) = mpsc::channel(ASK_BACKLOG);
    let (reached_sender, reached) = watch::channel(Reached {
        engine: snapshot.sequence,
        own: 0,
    });
    let hub = Hub {
        asks: ask,
        reached,
        engine: engine.clone(),
        ring: Arc::clone(&ring),
        epoch: Arc::clone(&epoch),
    };
    let plugins = plugins.map(|plugins| {
        let changes = plugins.changes();
        (plugins, changes)
    });
    let changes = rss.changes();
    let rss = (rss, changes);
    let changes = hooks.changes();
    let hooks = (hooks, changes);
    let changes = selections.changes();
    let selections = (selections, changes);
    let worker = Worker::new(
        Sources {
            engine,
            plugins,
            rss,
            hooks,
            jobs: jobs.changes(),
            torrents,
            selections,
            events,
            asks,
            configuration,
        },
        Outputs {
            ring,
            epoch,
            reached: reached_sender,
        },
        history,
        free_space,
        &snapshot,
    );
    Ok((hub, worker))
}
