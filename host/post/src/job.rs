//! Chains of steps, as a pure state machine: inputs go in, effects come out, and the time plays no part.
//!
//! # What always holds
//!
//! - At most [`UNPACKS`] unpack steps and [`OTHERS`] other steps run at a time; jobs begin in the order in which they were
//!   added.
//! - Each start has a run of its own. What a run says that is not the current one of its job is ignored.
//! - A job is saved before something is done in its name: before a step starts, before a file gets the path that the step
//!   intends for it, and before the originals of an archive are removed.
//! - A run that intends something is not stopped any more: what it moves, its job knows. A cancelled job begins no step after
//!   it.
//! - The originals of an archive are removed only after the result of its step was saved, and not if the job was cancelled.
//! - A job that awaits files begins no step before they are there.
//! - A job whose steps are all done, failed or cancelled does nothing until it is retried or forgotten.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    pin::Pin,
};

use serde::{Deserialize, Serialize};
use transfer::Secret;

use crate::{
    checksum::Digest,
    dir::Original,
    rename::{Known, RenameTemplate},
    stage::RunId,
    volumes::is_archive,
};

/// Unpack steps that run at a time: each uses a processor and a disk as much as it can.
pub const UNPACKS: usize = 1;

/// Other steps that run at a time.
pub const OTHERS: usize = 4;

/// Jobs that wait or run.
pub const MAX_OPEN_JOBS: usize = 10_000;

/// Jobs that ended and are remembered; of more, the oldest are forgotten.
pub const MAX_ENDED_JOBS: usize = 1000;

/// Steps of a job.
pub const MAX_STEPS: usize = 16;

/// Files of a job: the volumes of an archive are the most.
pub const MAX_FILES: usize = 1000;

/// Identifies a job; the caller chooses it, in increasing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u64);

/// Counts the starts of a job's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Run(pub u32);

/// Passwords of archives. Their text is in the serialised form: the store seals it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passwords(pub Vec<Secret>);

impl Serialize for Passwords {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Secret::expose))
    }
}

impl<'de> Deserialize<'de> for Passwords {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        Ok(Self(texts.into_iter().map(Secret::new).collect()))
    }
}

/// A container of audio and video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "their names say what they are")]
pub enum Container {
    Mp4,
    Matroska,
    WebM,
}

/// A step of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Step {
    /// Unpacks the archive among the files; the result is the directory that appears.
    Unpack {
        /// Tried in their order.
        #[serde(default)]
        passwords: Passwords,
        /// Whether the archive is removed when its content is there.
        #[serde(default)]
        delete_original: bool,
        /// Where the result appears; beside the archive if there is none.
        #[serde(default)]
        into: Option<PathBuf>,
    },
    /// Moves each file after a template.
    Rename {
        /// The template ([`RenameTemplate`]).
        template: String,
    },
    /// Writes checksum files beside the files.
    Checksum {
        /// One file is written for each.
        algorithms: Vec<Digest>,
    },
    /// Joins a picture track and a sound track.
    Mux {
        /// Of the result.
        container: Container,
    },
    /// Puts tracks into another container.
    Remux {
        /// Of the result.
        container: Container,
    },
    /// Calls a plugin.
    Plugin {
        /// The plugin.
        identity: String,
    },
}

impl Step {
    fn is_unpack(&self) -> bool {
        matches!(self, Self::Unpack { .. })
    }

    /// Whether it has something to do with these files, as they are downloaded. A chain that was set for every download
    /// leaves out what does not.
    pub fn concerns(&self, files: &[PathBuf]) -> bool {
        match self {
            Self::Unpack { .. } => files.iter().any(|file| is_archive(&name_of(file))),
            Self::Mux { .. } => files.len() == 2 && files.iter().all(|file| is_media(file)),
            Self::Remux { .. } => matches!(files, [file] if is_media(file)),
            Self::Rename { .. } | Self::Checksum { .. } | Self::Plugin { .. } => true,
        }
    }

    fn check(&self) -> Result<(), JobError> {
        match self {
            Self::Rename { template } => RenameTemplate::compile(template).map(drop).map_err(JobError::Template),
            Self::Checksum { algorithms } if algorithms.is_empty() => Err(JobError::NoAlgorithm),
            Self::Unpack { into: Some(into), .. } if !into.is_absolute() => Err(JobError::Relative(into.clone())),
            _ => Ok(()),
        }
    }

    /// Whether it works on a directory, which is what is left of an archive.
    fn takes_directory(&self) -> bool {
        matches!(self, Self::Rename { .. } | Self::Plugin { .. })
    }
}

/// Checks the steps of a chain, as [`Input::Add`] does.
pub fn check_chain(steps: &[Step]) -> Result<(), JobError> {
    if !(1..=MAX_STEPS).contains(&steps.len()) {
        return Err(JobError::Steps(steps.len()));
    }
    steps.iter().try_for_each(Step::check)?;
    let mut after = steps.iter().skip_while(|step| !step.is_unpack()).skip(1);
    if after.all(Step::takes_directory) {
        Ok(())
    } else {
        Err(JobError::AfterUnpack)
    }
}

/// Checks what a job works on, and its chain.
fn check(files: &[PathBuf], steps: &[Step]) -> Result<(), JobError> {
    check_chain(steps)?;
    if (1..=MAX_FILES).contains(&files.len()) {
        Ok(())
    } else {
        Err(JobError::Files(files.len()))
    }
}

fn name_of(file: &Path) -> std::borrow::Cow<'_, str> {
    file.file_name().unwrap_or_default().to_string_lossy()
}

/// Whether a file holds tracks, by its ending: what servers say of it is gone when it is complete.
fn is_media(file: &Path) -> bool {
    const ENDINGS: [&str; 16] = [
        "aac", "avi", "flac", "flv", "m2ts", "m4a", "m4v", "mkv", "mov", "mp3", "mp4", "mpg", "ogg", "opus", "ts",
        "webm",
    ];
    let ending = file
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    ENDINGS.contains(&ending.as_str())
}

/// What a run says while it runs.
pub trait Events: Send + Sync {
    /// It has come so far, in thousandths ([`Input::Progress`]).
    fn progress(&self, thousandths: u16);

    /// It is about to move its files, or to let something else appear ([`Input::Intends`]); completes when that is saved. From
    /// then on the run goes on to its end, also if the job is cancelled.
    fn intends(&self, paths: Vec<PathBuf>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What a step results in: the fields of [`Input::Finished`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What the next step works on.
    pub files: Vec<PathBuf>,
    /// The files of archives that were unpacked.
    pub originals: Vec<Original>,
}

/// A run of a step by a [`Tool`].
#[derive(Debug, Clone, Copy)]
pub struct ToolRun<'a> {
    /// The step.
    pub step: &'a Step,
    /// The save directory of the task. Below it, links are not followed.
    pub root: &'a Path,
    /// What it works on.
    pub files: &'a [PathBuf],
    /// What is known of the download.
    pub known: &'a Known,
    /// The run.
    pub run: &'a RunId,
    /// Those before it that the end of a process interrupted.
    pub interrupted: &'a [RunId],
    /// What they intended ([`Start::intended`]).
    pub intended: &'a [PathBuf],
}

/// What a user's programs and plugins do for a chain; the host implements it.
pub trait Tool: Send + Sync {
    /// Runs a [`Step::Mux`], [`Step::Remux`] or [`Step::Plugin`]. Dropping the future ends it.
    fn run<'a>(
        &'a self,
        run: ToolRun<'a>,
        events: &'a dyn Events,
    ) -> Pin<Box<dyn Future<Output = Result<Outcome, String>> + Send + 'a>>;
}

/// Where a job is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Phase {
    /// For its turn.
    Waiting,
    /// A step runs.
    Running,
    /// The originals of an unpacked archive are being removed.
    Removing {
        /// The files; none in a job of an older version, whose archive is kept.
        #[serde(default)]
        files: Vec<Original>,
    },
    /// All steps were done.
    Done,
    /// A step failed; those after it were not begun.
    Failed {
        /// Why.
        reason: String,
    },
    /// By the user.
    Cancelled,
}

impl Phase {
    /// Whether nothing happens any more by itself.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Done | Self::Failed { .. } | Self::Cancelled)
    }
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The job.
    pub id: JobId,
    /// What the current step works on.
    pub files: Vec<PathBuf>,
    /// All steps.
    pub steps: Vec<Step>,
    /// The index of the current one.
    pub step: usize,
    /// The last run; the next one is greater.
    pub run: Run,
    /// The first run of the current step that was not seen to end.
    #[serde(default)]
    pub first: Option<Run>,
    /// Where it is.
    pub phase: Phase,
    /// Where the running step moves its files: for each file that it began with, in their order.
    #[serde(default)]
    pub intended: Vec<PathBuf>,
    /// Files that belong to the others and are not there yet, in words for the user. It begins when there are none.
    #[serde(default)]
    pub awaits: Vec<String>,
    /// Files of unpacked archives that were to be removed and are kept.
    #[serde(default)]
    pub kept: Vec<PathBuf>,
}

impl Record {
    /// Whether it waits for files, and not for its turn.
    pub fn is_awaiting(&self) -> bool {
        self.phase == Phase::Waiting && !self.awaits.is_empty()
    }
}

/// A job as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View<'a> {
    /// As it is stored.
    pub record: &'a Record,
    /// Of the running step, in thousandths, if it is known.
    pub progress: Option<u16>,
}

/// What happened or is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A new job.
    Add {
        /// Greater than that of every other job.
        id: JobId,
        /// What the first step works on.
        files: Vec<PathBuf>,
        /// At least one.
        steps: Vec<Step>,
        /// What else it will work on ([`Record::awaits`]).
        awaits: Vec<String>,
    },
    /// Files have come that a job awaits, or are not awaited any more. Nothing happens if it awaits none.
    Arrived {
        /// The job.
        id: JobId,
        /// What its first step works on.
        files: Vec<PathBuf>,
        /// At least one.
        steps: Vec<Step>,
        /// What is still missing.
        awaits: Vec<String>,
    },
    /// A job that awaits files cannot go on with those that came: it has failed, for this reason. Nothing happens if it awaits
    /// none.
    Unusable(JobId, String),
    /// A run has come so far, in thousandths.
    Progress(JobId, Run, u16),
    /// A run is about to move its files to these paths, of which there may be none; it waits for [`Effect::Proceed`].
    Intends(JobId, Run, Vec<PathBuf>),
    /// A run is done.
    Finished {
        /// The job.
        id: JobId,
        /// The run.
        run: Run,
        /// What the next step works on.
        files: Vec<PathBuf>,
        /// The files of an archive that was unpacked. They are removed if the step is one that says so, or a plugin's, which
        /// names only those that shall be.
        originals: Vec<Original>,
    },
    /// A run ended without a result. After [`Effect::Stop`], this or [`Input::Finished`] comes.
    Failed(JobId, Run, String),
    /// The originals are removed, but these, in whose places are other files, or which cannot be removed.
    Removed(JobId, Run, Vec<PathBuf>),
    /// By the user.
    Cancel(JobId),
    /// Begins the failed or cancelled step of a job again.
    Retry(JobId),
    /// Forgets a job that ended.
    Forget(JobId),
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Store this, before the effects that follow it.
    Save(Record),
    /// Remove it from the store.
    Delete(JobId),
    /// Start a step.
    Start(Start),
    /// The paths that a run intends are saved.
    Proceed(JobId, Run),
    /// End a run.
    Stop(JobId, Run),
    /// Remove the files of an archive.
    RemoveOriginals(JobId, Run, Vec<Original>),
    /// Show the job as it is now.
    Publish(JobId),
}

/// A step to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The job.
    pub id: JobId,
    /// The run.
    pub run: Run,
    /// What to do.
    pub step: Step,
    /// With what.
    pub files: Vec<PathBuf>,
    /// The runs of this step before this one that the end of a process interrupted, the oldest first: what one of them
    /// completed is found by it ([`recover`](crate::recover)).
    pub interrupted: Vec<Run>,
    /// What that run intended: files that are there already were moved.
    pub intended: Vec<PathBuf>,
}

/// Why an input is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// There is no such job.
    #[error("there is no job {}", .0.0)]
    Unknown(JobId),
    /// The identifier is not new.
    #[error("job {} is there already, or was", .0.0)]
    NotNew(JobId),
    /// Too many wait.
    #[error("{MAX_OPEN_JOBS} jobs wait or run; that is the limit")]
    Full,
    /// Too few or too many steps.
    #[error("{0} steps; a job has 1 to {MAX_STEPS}")]
    Steps(usize),
    /// Too few or too many files.
    #[error("{0} files; a job has 1 to {MAX_FILES}")]
    Files(usize),
    /// A step of checksums without an algorithm.
    #[error("a checksum step names at least one algorithm")]
    NoAlgorithm,
    /// A directory to unpack to is no absolute path.
    #[error("{} is no absolute path", .0.display())]
    Relative(PathBuf),
    /// After unpacking there is a directory, and a step after it works on files.
    #[error("after unpack only rename and plugin steps are possible; put the others before it")]
    AfterUnpack,
    /// A template is invalid.
    #[error("the template is invalid: {0}")]
    Template(String),
    /// The job has not ended.
    #[error("job {} has not ended; cancel it first", .0.0)]
    NotEnded(JobId),
    /// The job has ended.
    #[error("job {} has ended", .0.0)]
    Ended(JobId),
}

#[derive(Debug)]
struct Job {
    record: Record,
    progress: Option<u16>,
    is_cancelled: bool,
    /// Whether the current run has begun what it intends.
    has_intended: bool,
}

/// All jobs.
#[derive(Debug, Default)]
pub struct State {
    jobs: BTreeMap<JobId, Job>,
    last: Option<JobId>,
}

impl State {
    /// Continues with what was stored. Steps that ran are started again, under new runs.
    pub fn load(records: Vec<Record>, effects: &mut Vec<Effect>) -> Self {
        let mut state = Self::default();
        for record in records {
            state.last = state.last.max(Some(record.id));
            let mut job = Job {
                progress: None,
                is_cancelled: false,
                has_intended: false,
                record,
            };
            match &job.record.phase {
                Phase::Running => job.record.phase = Phase::Waiting,
                Phase::Removing { files } => {
                    let effect = Effect::RemoveOriginals(job.record.id, job.record.run, files.clone());
                    effects.push(effect);
                }
                _ => {}
            }
            state.jobs.insert(job.record.id, job);
        }
        state.start(effects);
        state
    }

    /// Applies an input. Nothing changes if it is refused.
    pub fn apply(&mut self, input: Input, effects: &mut Vec<Effect>) -> Result<(), JobError> {
        match input {
            Input::Add {
                id,
                files,
                steps,
                awaits,
            } => self.add((id, files, steps, awaits), effects)?,
            Input::Arrived {
                id,
                files,
                steps,
                awaits,
            } => {
                check(&files, &steps)?;
                let job = self.jobs.get_mut(&id).ok_or(JobError::Unknown(id))?;
                let record = &mut job.record;
                if record.is_awaiting() && (&record.files, &record.steps, &record.awaits) != (&files, &steps, &awaits) {
                    (record.files, record.steps, record.awaits) = (files, steps, awaits);
                    job.enter(Phase::Waiting, effects);
                }
            }
            Input::Unusable(id, reason) => {
                let job = self.jobs.get_mut(&id).ok_or(JobError::Unknown(id))?;
                if job.record.is_awaiting() {
                    job.enter(Phase::Failed { reason }, effects);
                }
            }
            Input::Progress(id, run, progress) => {
                if let Some(job) = self.running(id, run) {
                    job.progress = Some(progress.min(1000));
                    effects.push(Effect::Publish(id));
                }
            }
            Input::Intends(id, run, paths) => {
                if let Some(job) = self.running(id, run).filter(|job| !job.is_cancelled) {
                    job.record.intended = paths;
                    job.has_intended = true;
                    effects.push(Effect::Save(job.record.clone()));
                    effects.push(Effect::Proceed(id, run));
                }
            }
            Input::Finished {
                id,
                run,
                files,
                originals,
            } => self.finished(id, run, files, originals, effects),
            Input::Failed(id, run, reason) => self.failed(id, run, reason, effects),
            Input::Removed(id, run, kept) => {
                let job = self.jobs.get_mut(&id).filter(|job| job.record.run == run);
                if let Some(job) = job.filter(|job| matches!(job.record.phase, Phase::Removing { .. })) {
                    job.record.kept.extend(kept);
                    job.record.kept.truncate(MAX_FILES);
                    job.advance(effects);
                }
            }
            Input::Cancel(id) => self.cancel(id, effects)?,
            Input::Retry(id) => {
                let job = self.ended(id)?;
                if job.record.phase != Phase::Done {
                    job.is_cancelled = false;
                    job.enter(Phase::Waiting, effects);
                }
            }
            Input::Forget(id) => {
                self.ended(id)?;
                self.jobs.remove(&id);
                effects.push(Effect::Delete(id));
            }
        }
        self.forget_oldest(effects);
        self.start(effects);
        Ok(())
    }

    /// A job as it is now.
    pub fn view(&self, id: JobId) -> Option<View<'_>> {
        self.jobs.get(&id).map(Job::view)
    }

    /// All jobs, the oldest first.
    pub fn views(&self) -> impl Iterator<Item = View<'_>> {
        self.jobs.values().map(Job::view)
    }

    /// Runs that the end of a process interrupted and that nothing followed yet: what they left is still needed
    /// ([`sweep`](crate::sweep)).
    pub fn interrupted(&self) -> impl Iterator<Item = (JobId, Run)> {
        self.jobs.iter().flat_map(|(id, job)| {
            let runs = job.record.first.map(|first| first.0..=job.record.run.0);
            runs.into_iter().flatten().map(|run| (*id, Run(run)))
        })
    }

    fn add(
        &mut self,
        (id, files, steps, awaits): (JobId, Vec<PathBuf>, Vec<Step>, Vec<String>),
        effects: &mut Vec<Effect>,
    ) -> Result<(), JobError> {
        if self.last >= Some(id) {
            return Err(JobError::NotNew(id));
        }
        check(&files, &steps)?;
        let open = self.jobs.values().filter(|job| !job.record.phase.is_ended());
        if open.count() >= MAX_OPEN_JOBS {
            return Err(JobError::Full);
        }
        let record = Record {
            id,
            files,
            steps,
            step: 0,
            run: Run::default(),
            first: None,
            phase: Phase::Waiting,
            intended: Vec::new(),
            awaits,
            kept: Vec::new(),
        };
        effects.push(Effect::Save(record.clone()));
        effects.push(Effect::Publish(id));
        let job = Job {
            record,
            progress: None,
            is_cancelled: false,
            has_intended: false,
        };
        self.jobs.insert(id, job);
        self.last = Some(id);
        Ok(())
    }

    fn finished(
        &mut self,
        id: JobId,
        run: Run,
        files: Vec<PathBuf>,
        originals: Vec<Original>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(job) = self.running(id, run) else {
            return;
        };
        if !files.is_empty() {
            job.record.files = files;
        }
        let deletes = match job.current() {
            Step::Unpack { delete_original, .. } => *delete_original,
            step => matches!(step, Step::Plugin { .. }),
        };
        if deletes && !job.is_cancelled && !originals.is_empty() {
            let removing = originals.clone();
            // What the run left is not needed any more once this is saved.
            job.record.first = None;
            job.enter(Phase::Removing { files: originals }, effects);
            effects.push(Effect::RemoveOriginals(id, run, removing));
        } else {
            job.advance(effects);
        }
    }

    fn failed(&mut self, id: JobId, run: Run, reason: String, effects: &mut Vec<Effect>) {
        if let Some(job) = self.running(id, run) {
            job.record.first = None;
            // What a step makes anew it takes back when it fails: what is there then is not its own.
            job.record.intended.truncate(job.record.files.len());
            let phase = if job.is_cancelled {
                Phase::Cancelled
            } else {
                Phase::Failed { reason }
            };
            job.enter(phase, effects);
        }
    }

    fn cancel(&mut self, id: JobId, effects: &mut Vec<Effect>) -> Result<(), JobError> {
        let job = self.jobs.get_mut(&id).ok_or(JobError::Unknown(id))?;
        match job.record.phase {
            Phase::Waiting => job.enter(Phase::Cancelled, effects),
            Phase::Running if job.is_cancelled => {}
            Phase::Running => {
                job.is_cancelled = true;
                if !job.has_intended {
                    effects.push(Effect::Stop(id, job.record.run));
                }
            }
            // The step is done; the next one is not begun.
            Phase::Removing { .. } => job.is_cancelled = true,
            Phase::Done | Phase::Failed { .. } | Phase::Cancelled => return Err(JobError::Ended(id)),
        }
        Ok(())
    }

    fn running(&mut self, id: JobId, run: Run) -> Option<&mut Job> {
        let job = self.jobs.get_mut(&id)?;
        (job.record.run == run && job.record.phase == Phase::Running).then_some(job)
    }

    fn ended(&mut self, id: JobId) -> Result<&mut Job, JobError> {
        let job = self.jobs.get_mut(&id).ok_or(JobError::Unknown(id))?;
        if job.record.phase.is_ended() {
            Ok(job)
        } else {
            Err(JobError::NotEnded(id))
        }
    }

    /// Starts what may run, in order.
    fn start(&mut self, effects: &mut Vec<Effect>) {
        let running = |is_unpack: bool| {
            let jobs = self.jobs.values().filter(|job| job.record.phase == Phase::Running);
            jobs.filter(|job| job.current().is_unpack() == is_unpack).count()
        };
        let mut unpacks = UNPACKS.saturating_sub(running(true));
        let mut others = OTHERS.saturating_sub(running(false));
        let waiting = self.jobs.values_mut();
        let is_ready = |job: &&mut Job| job.record.phase == Phase::Waiting && job.record.awaits.is_empty();
        for job in waiting.filter(is_ready) {
            let free = if job.current().is_unpack() {
                &mut unpacks
            } else {
                &mut others
            };
            if *free > 0 {
                *free -= 1;
                job.start(effects);
            }
            if unpacks == 0 && others == 0 {
                return;
            }
        }
    }

    fn forget_oldest(&mut self, effects: &mut Vec<Effect>) {
        let ended = self.jobs.iter().filter(|(_, job)| job.record.phase.is_ended());
        let ended: Vec<_> = ended.map(|(id, _)| *id).collect();
        let surplus = ended.len().saturating_sub(MAX_ENDED_JOBS);
        for id in &ended[..surplus] {
            self.jobs.remove(id);
            effects.push(Effect::Delete(*id));
        }
    }
}

impl Job {
    fn view(&self) -> View<'_> {
        View {
            record: &self.record,
            progress: self.progress,
        }
    }

    /// The step that runs or is next.
    fn current(&self) -> &Step {
        &self.record.steps[self.record.step.min(self.record.steps.len() - 1)]
    }

    fn enter(&mut self, phase: Phase, effects: &mut Vec<Effect>) {
        self.record.phase = phase;
        self.progress = None;
        effects.push(Effect::Save(self.record.clone()));
        effects.push(Effect::Publish(self.record.id));
    }

    fn start(&mut self, effects: &mut Vec<Effect>) {
        let intended = std::mem::take(&mut self.record.intended);
        self.record.run = Run(self.record.run.0 + 1);
        self.has_intended = false;
        let first = *self.record.first.get_or_insert(self.record.run);
        let interrupted = (first.0..self.record.run.0).map(Run).collect();
        // Still what the last run intended: should this one be interrupted before it intends anything.
        self.record.intended.clone_from(&intended);
        self.enter(Phase::Running, effects);
        effects.push(Effect::Start(Start {
            id: self.record.id,
            run: self.record.run,
            step: self.current().clone(),
            files: self.record.files.clone(),
            interrupted,
            intended,
        }));
    }

    /// The current step is done.
    fn advance(&mut self, effects: &mut Vec<Effect>) {
        self.record.step += 1;
        self.record.first = None;
        self.record.intended.clear();
        let phase = if self.record.step == self.record.steps.len() {
            Phase::Done
        } else if self.is_cancelled {
            Phase::Cancelled
        } else {
            Phase::Waiting
        };
        self.enter(phase, effects);
    }
}

#[cfg(test)]
mod tests;
