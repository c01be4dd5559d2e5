//! Doing it: hands the files to an engine of its own, a batch at a time, and passes on what the engine tells.

use std::{io, sync::Arc, time::Duration};

use anyhow::Context as _;
use command::{Exit, stop::StopRequests};
use engine::{Engine, Event, Events, FileFate, Settings, TaskId, TaskSpec};
use tokio::time::{Interval, MissedTickBehavior};
use transfer::Transport;

use crate::{
    ledger::{Change, Ledger},
    plan::Plan,
    render::{self, Screen},
};

/// Files that the engine knows at a time; a list of any length costs no more memory than these.
const AHEAD: usize = 1000;

/// Files handed over at once: few enough that the first starts at once, many enough that handing over costs nothing.
const BATCH: usize = 200;

/// How long runs may take to save what they have; a disk that is busy with 16 files needs a second or two.
const GRACE: Duration = Duration::from_secs(10);

/// How often progress is looked at when the screen does not ask for it: so often the sum of bytes is brought up to date.
const QUIET_INTERVAL: Duration = Duration::from_secs(1);

/// Downloads what `plan` says and tells `screen`.
pub(super) async fn drive(plan: &Plan, transport: Arc<dyn Transport>, screen: Box<dyn Screen>) -> anyhow::Result<Exit> {
    let mut stop = StopRequests::listen().context("cannot listen for signals")?;
    let current_dir = std::env::current_dir().context("cannot find the current directory")?;
    let config = engine::Config::new(&current_dir);
    let engine = Engine::start_unsaved(config, vec![transport])
        .await
        .context("cannot start the engine")?;
    engine.change_settings(None, settings(plan)).await?;
    let mut drive = Drive {
        events: engine.events(),
        engine,
        waiting: plan.wanted.tasks().enumerate(),
        is_all_handed_over: false,
        ledger: Ledger::new(plan.wanted.count, current_dir),
        screen,
        arrived: Vec::new(),
    };
    let end = drive.run(&mut stop).await;
    drive.look();
    drive.save(&mut stop).await;
    let totals = drive.ledger.totals();
    drive.screen.summary(&totals);
    let told = drive.screen.flush();
    match end? {
        End::ReaderGone => Ok(Exit::Unfinished),
        End::Stopped if totals.unfinished() > 0 => Ok(Exit::Unfinished),
        End::Stopped | End::Done => {
            is_reader_there(told)?;
            Ok(drive.ledger.last_failure().map_or(Exit::Success, Exit::from))
        }
    }
}

/// The engine's settings for a run of the command. Runs retry by themselves, as the user asked; nobody retries them.
fn settings(plan: &Plan) -> Settings {
    Settings {
        max_concurrent_tasks: plan.jobs.into(),
        speed_limit_bytes: plan.limit_bytes_per_second,
        max_auto_retries: Some(0),
        ..Settings::default()
    }
}

/// Whether anybody still reads what is told; `Err` if telling failed otherwise.
fn is_reader_there(told: io::Result<()>) -> anyhow::Result<bool> {
    match told {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        told => told.map(|()| true).context("cannot write to standard output"),
    }
}

/// Why the loop ended.
enum End {
    /// Every file came to an end.
    Done,
    /// The user wants to stop.
    Stopped,
    /// What read our standard output has gone; so nobody wants the rest.
    ReaderGone,
}

/// What can happen while files are under way.
enum Happening {
    StopRequested,
    LookNow,
    Told(Option<Result<(u64, Event), engine::Gap>>),
    /// Nothing is left to pass on for now.
    CaughtUp,
}

struct Drive<W: Iterator<Item = (usize, TaskSpec)>> {
    engine: Engine,
    events: Events,
    waiting: W,
    is_all_handed_over: bool,
    ledger: Ledger,
    screen: Box<dyn Screen>,
    /// Tasks whose files are there and which the engine may forget.
    arrived: Vec<TaskId>,
}

impl<W: Iterator<Item = (usize, TaskSpec)>> Drive<W> {
    async fn run(&mut self, stop: &mut StopRequests) -> anyhow::Result<End> {
        let mut look = look_interval(self.screen.as_ref());
        let mut is_caught_up = true;
        loop {
            self.hand_over().await?;
            if self.ledger.is_empty() && self.is_all_handed_over {
                return Ok(End::Done);
            }
            let happening = tokio::select! {
                biased;
                () = stop.next() => Happening::StopRequested,
                _ = look.tick() => Happening::LookNow,
                event = self.events.next() => Happening::Told(event),
                () = std::future::ready(()), if !is_caught_up => Happening::CaughtUp,
            };
            is_caught_up = matches!(happening, Happening::CaughtUp);
            match happening {
                Happening::StopRequested => return Ok(End::Stopped),
                Happening::LookNow => self.look(),
                Happening::Told(Some(Ok((_, event)))) => self.pass_on(&event),
                Happening::Told(Some(Err(_gap))) => self.catch_up().await?,
                Happening::Told(None) => anyhow::bail!("the engine ended before the files did"),
                Happening::CaughtUp if !is_reader_there(self.screen.flush())? => return Ok(End::ReaderGone),
                Happening::CaughtUp => {}
            }
        }
    }

    /// Keeps the engine supplied, and lets it forget what is done.
    async fn hand_over(&mut self) -> anyhow::Result<()> {
        if self.arrived.len() >= BATCH {
            self.engine
                .delete_many(std::mem::take(&mut self.arrived), FileFate::Keep)
                .await?;
        }
        if self.is_all_handed_over || self.ledger.len() + BATCH > AHEAD {
            return Ok(());
        }
        let batch: Vec<_> = self.waiting.by_ref().take(BATCH).collect();
        self.is_all_handed_over = batch.len() < BATCH;
        let (entries, specs): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .map(|(index, spec)| ((index, spec.urls[0].to_string()), spec))
            .unzip();
        let ids = self.engine.create_many(specs).await?;
        for (id, (index, url)) in ids.into_iter().zip(entries) {
            self.ledger.enter(id, index, url);
        }
        Ok(())
    }

    /// Looks how the runs are doing and shows it.
    fn look(&mut self) {
        for run in self.engine.all_progress() {
            self.ledger.progressed(run.task, &run.progress);
        }
        self.screen.progress(&self.ledger.active(), &self.ledger.totals());
    }

    fn pass_on(&mut self, event: &Event) {
        let screen = self.screen.as_mut();
        match event {
            Event::TasksChanged(tasks) => tasks.iter().for_each(|task| self.changed(task)),
            Event::Notice { task, message } => self.ledger.tell(*task, &render::Event::Notice(message), screen),
            Event::AttemptFailed { task, failure, wait } => {
                self.ledger
                    .tell(*task, &render::Event::Retrying { failure, wait: *wait }, screen);
            }
            Event::Skipped { task, existing } => self.ledger.skipped(*task, existing),
            // What is left concerns tasks that have ended here, or what this command does not use.
            _ => {}
        }
    }

    fn changed(&mut self, task: &engine::Task) {
        if self.ledger.changed(task.id, Change::from(task), self.screen.as_mut()) {
            self.arrived.push(task.id);
        }
    }

    /// Events were lost because we were too slow; what counts is how the tasks are now.
    async fn catch_up(&mut self) -> anyhow::Result<()> {
        for id in self.ledger.ids() {
            let task = self.engine.task(id).await?;
            self.changed(&task);
        }
        Ok(())
    }

    /// Ends the engine, so that every run saves what it has. A second request to stop ends the process at once.
    async fn save(&mut self, stop: &mut StopRequests) {
        tokio::select! {
            _report = self.engine.shutdown(GRACE) => {}
            () = stop.next() => exit_at_once(),
        }
        // Files that came to their end while the others were stopping.
        while let Some(event) = self.events.next().await {
            if let Ok((_, event)) = event {
                self.pass_on(&event);
            }
        }
    }
}

fn look_interval(screen: &dyn Screen) -> Interval {
    let mut interval = tokio::time::interval(screen.interval().unwrap_or(QUIET_INTERVAL));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

#[expect(
    clippy::exit,
    reason = "the user asked twice; what the journals hold by now is what is saved"
)]
fn exit_at_once() {
    std::process::exit(Exit::Unfinished.code().into());
}

#[cfg(test)]
mod tests;
