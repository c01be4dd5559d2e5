//! The main loop: submits the files to an engine in this process in batches, and forwards the engine's events to the
//! screen.

use std::{
    collections::{HashSet, VecDeque},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use command::Exit;
use engine::{Engine, Event, Events, FileFate, Phase, SeedState, Seeding, Settings, TaskId, TaskSpec};
use tokio::time::{Interval, MissedTickBehavior};
use transfer::{FailureKind, GivenBy, SafeUrl, Transport};
use transfer_torrent::Torrents;

use crate::{
    interrupt::Interrupt,
    ledger::{Change, Ledger},
    plan::Plan,
    render::{self, Screen},
    wanted,
};

/// Files that the engine knows at a time, which bounds memory for lists of any length.
const AHEAD: usize = 1000;

/// Files per batch: few enough that the first starts immediately, many enough to amortize the call.
const BATCH: usize = 200;

/// How long runs may take to save their progress; a busy disk with 16 files needs a second or two.
const GRACE: Duration = Duration::from_secs(10);

/// After the grace, for the summary.
const ROOM_FOR_SUMMARY: Duration = Duration::from_secs(2);

/// The interval of progress updates when the screen requests none; keeps the sum of bytes current.
const QUIET_INTERVAL: Duration = Duration::from_secs(1);

/// Downloads the files of `plan` and reports to `screen`.
pub(super) async fn drive(
    plan: &Plan,
    transports: Vec<Arc<dyn Transport>>,
    torrents: &Torrents,
    screen: Box<dyn Screen>,
) -> anyhow::Result<Exit> {
    let mut interrupt = Interrupt::listen(GRACE + ROOM_FOR_SUMMARY).context("cannot listen for signals")?;
    let current_dir = std::env::current_dir().context("cannot find the current directory")?;
    keep_torrents(plan, torrents).await?;
    let mut config = engine::Config::new(&current_dir);
    config.netrc = plan.netrc.clone().map(Arc::new);
    let engine = Engine::start_unsaved(config, transports)
        .await
        .context("cannot start the engine")?;
    engine.change_settings(None, settings(plan)).await?;
    let mut drive = Drive {
        events: engine.events(),
        engine,
        plan,
        waiting: plan.wanted.tasks().enumerate(),
        followed: VecDeque::new(),
        documents: Vec::new(),
        is_all_handed_over: false,
        ledger: Ledger::new(plan.wanted.count, current_dir),
        screen,
        arrived: Vec::new(),
        seeds: HashSet::new(),
        paused: Vec::new(),
    };
    let end = drive.run(&mut interrupt).await;
    drive.look();
    drive.save().await;
    torrents.shutdown().await;
    let totals = drive.ledger.totals();
    drive.screen.summary(&totals);
    let written = drive.screen.flush();
    match end? {
        End::ReaderGone => Ok(Exit::Unfinished),
        End::Stopped if totals.unfinished() > 0 => Ok(Exit::Unfinished),
        End::Stopped | End::Done => {
            is_reader_there(written)?;
            Ok(drive.ledger.last_failure().map_or(Exit::Success, Exit::from))
        }
    }
}

/// Stores the torrent files that the user named, so that their tasks find them.
async fn keep_torrents(plan: &Plan, torrents: &Torrents) -> anyhow::Result<()> {
    if plan.wanted.has_torrents {
        let dir = plan.swarm.dir();
        let made = tokio::fs::create_dir_all(dir).await;
        made.with_context(|| format!("cannot make {}", dir.display()))?;
    }
    for torrent in plan.wanted.torrent_files() {
        let kept = torrents.keep(torrent.bytes.clone()).await;
        kept.with_context(|| format!("cannot keep {}", torrent.name))?;
    }
    Ok(())
}

/// The engine's settings. Runs retry by themselves, as configured; nothing retries a failed task.
fn settings(plan: &Plan) -> Settings {
    Settings {
        max_concurrent_tasks: plan.jobs.into(),
        speed_limit_bytes: plan.limit_bytes_per_second,
        max_auto_retries: Some(0),
        ..Settings::default()
    }
}

/// `false` if the output was closed; other write errors are returned.
fn is_reader_there(written: io::Result<()>) -> anyhow::Result<bool> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).context("cannot write to standard output"),
    }
}

enum End {
    /// Every file has ended.
    Done,
    /// The user requested a stop.
    Stopped,
    /// Standard output was closed by its reader, so the rest is not wanted.
    ReaderGone,
}

enum Wakeup {
    StopRequested,
    LookNow,
    Engine(Option<Result<(u64, Event), engine::Gap>>),
    /// No event is pending.
    CaughtUp,
}

struct Drive<'a, W: Iterator<Item = (usize, TaskSpec)>> {
    engine: Engine,
    events: Events,
    plan: &'a Plan,
    waiting: W,
    /// Files of documents that were downloaded.
    followed: VecDeque<(usize, TaskSpec)>,
    /// Metalink documents that are complete and not read yet, with their URLs.
    documents: Vec<(PathBuf, SafeUrl)>,
    is_all_handed_over: bool,
    ledger: Ledger,
    screen: Box<dyn Screen>,
    /// Tasks of complete files, which the engine may forget.
    arrived: Vec<TaskId>,
    /// Tasks of complete torrents that are seeded.
    seeds: HashSet<TaskId>,
    /// Files of a directory so large that the engine asks before it downloads them; the user named it.
    paused: Vec<TaskId>,
}

impl<W: Iterator<Item = (usize, TaskSpec)>> Drive<'_, W> {
    async fn run(&mut self, interrupt: &mut Interrupt) -> anyhow::Result<End> {
        let mut look = look_interval(self.screen.as_ref());
        let mut is_caught_up = true;
        loop {
            self.hand_over().await?;
            if !self.paused.is_empty() {
                self.engine.resume_many(std::mem::take(&mut self.paused)).await?;
            }
            if self.ledger.is_empty() && self.is_all_handed_over && self.followed.is_empty() && self.seeds.is_empty() {
                return Ok(End::Done);
            }
            let wakeup = tokio::select! {
                biased;
                () = interrupt.requested() => Wakeup::StopRequested,
                _ = look.tick() => Wakeup::LookNow,
                event = self.events.next() => Wakeup::Engine(event),
                () = std::future::ready(()), if !is_caught_up => Wakeup::CaughtUp,
            };
            is_caught_up = matches!(wakeup, Wakeup::CaughtUp);
            match wakeup {
                Wakeup::StopRequested => return Ok(End::Stopped),
                Wakeup::LookNow => self.look(),
                Wakeup::Engine(Some(Ok((_, event)))) => self.pass_on(&event),
                Wakeup::Engine(Some(Err(_gap))) => self.catch_up().await?,
                Wakeup::Engine(None) => anyhow::bail!("the engine ended before the files did"),
                Wakeup::CaughtUp if !is_reader_there(self.screen.flush())? => return Ok(End::ReaderGone),
                Wakeup::CaughtUp => {}
            }
        }
    }

    /// Submits further files, and removes completed ones from the engine.
    async fn hand_over(&mut self) -> anyhow::Result<()> {
        if self.arrived.len() >= BATCH {
            self.engine
                .delete_many(std::mem::take(&mut self.arrived), FileFate::Keep)
                .await?;
        }
        self.read_documents();
        if (self.is_all_handed_over && self.followed.is_empty()) || self.ledger.len() + self.seeds.len() + BATCH > AHEAD
        {
            return Ok(());
        }
        let mut batch: Vec<_> = self.waiting.by_ref().take(BATCH).collect();
        self.is_all_handed_over = batch.len() < BATCH;
        let room = BATCH - batch.len();
        batch.extend(self.followed.drain(..self.followed.len().min(room)));
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

    /// Queries the progress of runs and shows it.
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
            Event::Notice { task, message } => self.ledger.report(*task, &render::Event::Notice(message), screen),
            Event::SourceFailed { task, source } => {
                self.ledger
                    .report(*task, &render::Event::Notice(&source.to_string()), screen);
            }
            Event::AttemptFailed { task, failure, wait } => {
                self.ledger
                    .report(*task, &render::Event::Retrying { failure, wait: *wait }, screen);
            }
            Event::Skipped { task, existing } => self.ledger.skipped(*task, existing),
            // A run that ended since the last query is in no query.
            Event::Progress(samples) => {
                for (task, progress) in samples.iter() {
                    self.ledger.progressed(*task, progress);
                }
            }
            // The others concern ended tasks, or features that this command does not use.
            _ => {}
        }
    }

    fn changed(&mut self, task: &engine::Task) {
        // Nothing starts again after its end, so what has not ended and is not known is new.
        let is_under_way = matches!(task.phase, Phase::Pending | Phase::Paused | Phase::Running(_));
        if task.group.is_some() && is_under_way {
            self.ledger.note_listed(task.id, task.url().to_string());
        }
        if matches!(task.phase, Phase::Paused) {
            self.paused.push(task.id);
        }
        let is_complete = self.ledger.changed(task.id, Change::from(task), self.screen.as_mut());
        let is_seeded = matches!(task.phase, Phase::Completed) && task.seeding.as_deref().is_some_and(seeds_on);
        if is_seeded {
            if self.seeds.insert(task.id) {
                command::note(&format!("{} is seeded now; Ctrl-C ends that", shown_name(task)));
            }
        } else if self.seeds.remove(&task.id) || is_complete {
            self.arrived.push(task.id);
        }
        if !is_complete {
            return;
        }
        // Files of a document are not followed: two documents could lead to each other for ever.
        let is_users = task.spec().given_by == GivenBy::User;
        let path = task.path.as_deref().filter(|_| self.plan.follows_documents && is_users);
        if let Some(path) = path.filter(|path| metalink_reader::is_document_name(&path.to_string_lossy())) {
            self.documents.push((path.to_owned(), task.url().clone()));
        }
    }

    /// Queues the files of documents that have arrived. One that is refused is a failure of the command, although the
    /// document itself is there.
    fn read_documents(&mut self) {
        for (path, url) in std::mem::take(&mut self.documents) {
            let dir = path.parent().unwrap_or(Path::new("/"));
            let tasks = wanted::read(&url.to_string(), &path, metalink_reader::MAX_DOCUMENT_BYTES as u64)
                .and_then(|bytes| self.plan.wanted.follow(&bytes, &url, dir));
            match tasks {
                Ok(tasks) => {
                    let indexes = self.ledger.expect_more(tasks.len());
                    self.followed.extend(indexes.zip(tasks));
                }
                Err(problem) => {
                    command::note(&problem.to_string());
                    self.ledger.fail_with(FailureKind::NotTheFile);
                }
            }
        }
    }

    /// Events were lost, because this process was too slow: reads the current state of all tasks instead.
    async fn catch_up(&mut self) -> anyhow::Result<()> {
        for task in &self.engine.snapshot().await?.tasks {
            self.changed(task);
        }
        Ok(())
    }

    /// Shuts the engine down, so that every run saves its progress.
    async fn save(&mut self) {
        // What transports keep for complete files goes with their tasks.
        self.arrived.extend(self.seeds.drain());
        let _closed = self
            .engine
            .delete_many(std::mem::take(&mut self.arrived), FileFate::Keep)
            .await;
        let _report = self.engine.shutdown(GRACE).await;
        // Reports files that ended during the shutdown.
        while let Some(event) = self.events.next().await {
            if let Ok((_, event)) = event {
                self.pass_on(&event);
            }
        }
    }
}

/// Whether it seeds, or is going to.
fn seeds_on(seeding: &Seeding) -> bool {
    matches!(
        seeding.state,
        SeedState::Waiting | SeedState::Seeding(_) | SeedState::Stopping(..)
    )
}

fn shown_name(task: &engine::Task) -> String {
    let name = task.path.as_deref().and_then(Path::file_name);
    name.map_or_else(|| task.url().to_string(), |name| name.to_string_lossy().into_owned())
}

fn look_interval(screen: &dyn Screen) -> Interval {
    let mut interval = tokio::time::interval(screen.interval().unwrap_or(QUIET_INTERVAL));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

#[cfg(test)]
mod tests;
