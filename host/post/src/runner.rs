//! Executes one step of a chain. The state machine decides which and when; their owner passes the outcome back in.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
};

use confined::OwnCommand;
use private_files::FileError;

use crate::{
    checksum::{self, Digest},
    dir::Dir,
    job::{Events, JobId, Outcome, Passwords, Run, Start, Step, Tool, ToolRun},
    rename::{Known, RenameTemplate, free_path, rename},
    stage::{RunId, Unpacked, recover},
    unpack::{Progress, Request, unpack},
    volumes::is_archive,
};

/// What steps are executed with.
pub struct Runner {
    /// This executable with the argument of its unpacker; `None` if the program has none.
    pub unpacker: Option<OwnCommand>,
    /// The user's programs, and plugins.
    pub tool: Arc<dyn Tool>,
    /// Distinguishes the stages of this data directory from those of others: up to 16 letters and digits.
    pub salt: String,
    /// Bytes that an archive may unpack to.
    pub max_bytes: u64,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner")
            .field("unpacker", &self.unpacker)
            .finish_non_exhaustive()
    }
}

impl Runner {
    /// The name of a run's stage, for [`sweep`](crate::sweep).
    pub fn run_id(&self, job: JobId, run: Run) -> Result<RunId, crate::InvalidRun> {
        RunId::try_from(format!("{}-{}-{}", self.salt, job.0, run.0))
    }

    /// Executes a step. `root` is the save directory of the task, `known` what templates may name. When `cancelled`
    /// completes, the step ends without a result. The error is a message for the user.
    pub async fn run(
        &self,
        start: &Start,
        root: &Path,
        known: &Known,
        events: &dyn Events,
        cancelled: impl Future<Output = ()> + Send,
    ) -> Result<Outcome, String> {
        match &start.step {
            Step::Unpack { passwords, into, .. } => {
                self.unpack(start, root, (passwords, into.as_deref()), events, cancelled)
                    .await
            }
            step => tokio::select! {
                result = self.other(start, step, (root, known), events) => result,
                () = cancelled => Err("it was cancelled".to_owned()),
            },
        }
    }

    async fn unpack(
        &self,
        start: &Start,
        root: &Path,
        (passwords, into): (&Passwords, Option<&Path>),
        events: &dyn Events,
        cancelled: impl Future<Output = ()> + Send,
    ) -> Result<Outcome, String> {
        let is_first = |path: &&PathBuf| path.file_name().is_some_and(|name| is_archive(&name.to_string_lossy()));
        let archive = start
            .files
            .iter()
            .find(is_first)
            .ok_or("there is no archive among the files")?;
        let destination = into.or(archive.parent()).unwrap_or(Path::new(".")).to_owned();
        let (below, made) = (root.to_owned(), destination.clone());
        blocking(move || Dir::make_below(&below, &made).map(drop)).await?;
        if let Some(unpacked) = self.recovered(start, &destination).await? {
            return Ok(outcome(&destination, unpacked));
        }
        let unpacker = self.unpacker.as_ref().ok_or("this program cannot unpack archives")?;
        let request = Request {
            root: root.to_owned(),
            archive: archive.clone(),
            destination: destination.clone(),
            run: self.run_id(start.id, start.run).map_err(|error| error.to_string())?,
            passwords: passwords.0.clone(),
            max_bytes: self.max_bytes,
        };
        let progress = |progress: Progress| events.progress(progress.thousandths);
        let unpacked = unpack(unpacker, request, progress, cancelled).await;
        let unpacked = unpacked.map_err(|error| described(&error))?;
        Ok(outcome(&destination, unpacked))
    }

    /// What an interrupted run completed.
    async fn recovered(&self, start: &Start, destination: &Path) -> Result<Option<Unpacked>, String> {
        for run in &start.interrupted {
            let run = self.run_id(start.id, *run).map_err(|error| error.to_string())?;
            let directory = destination.to_owned();
            let unpacked = blocking(move || recover(&directory, &run)).await?;
            if unpacked.is_some() {
                return Ok(unpacked);
            }
        }
        Ok(None)
    }

    async fn other(
        &self,
        start: &Start,
        step: &Step,
        (root, known): (&Path, &Known),
        events: &dyn Events,
    ) -> Result<Outcome, String> {
        let files = match step {
            Step::Rename { template } => move_files(start, template, (root, known), events).await?,
            Step::Checksum { algorithms } => {
                let run = self.run_id(start.id, start.run).map_err(|error| error.to_string())?;
                write_checksums(start, algorithms, (root, &run), events).await?
            }
            _ => return self.with_tool(start, step, (root, known), events).await,
        };
        Ok(Outcome {
            files,
            originals: Vec::new(),
        })
    }

    async fn with_tool(
        &self,
        start: &Start,
        step: &Step,
        (root, known): (&Path, &Known),
        events: &dyn Events,
    ) -> Result<Outcome, String> {
        let run_id = |run| self.run_id(start.id, run).map_err(|error| error.to_string());
        let run = run_id(start.run)?;
        let interrupted = start.interrupted.iter().map(|run| run_id(*run));
        let interrupted: Vec<_> = interrupted.collect::<Result<_, _>>()?;
        let run = ToolRun {
            step,
            root,
            files: &start.files,
            known,
            run: &run,
            interrupted: &interrupted,
            intended: &start.intended,
        };
        self.tool.run(run, events).await
    }
}

fn outcome(destination: &Path, unpacked: Unpacked) -> Outcome {
    Outcome {
        files: vec![destination.join(unpacked.placed.name)],
        originals: unpacked.originals,
    }
}

async fn move_files(
    start: &Start,
    template: &str,
    (root, known): (&Path, &Known),
    events: &dyn Events,
) -> Result<Vec<PathBuf>, String> {
    let template = RenameTemplate::compile(template)?;
    // What was moved before a crash is where it was intended to be.
    let mut targets = start.intended.clone();
    if targets.len() != start.files.len() {
        targets = start
            .files
            .iter()
            .map(|from| target(&template, from, root, known))
            .collect();
    }
    events.intends(targets.clone()).await;
    for (from, to) in start.files.iter().zip(&targets) {
        let (root, from, to) = (root.to_owned(), from.clone(), to.clone());
        blocking(move || rename(&root, &from, &to)).await?;
    }
    Ok(targets)
}

fn target(template: &RenameTemplate, from: &Path, root: &Path, known: &Known) -> PathBuf {
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    let relative = template.path(&name, known);
    // It has its name already.
    if root.join(&relative) == from {
        from.to_owned()
    } else {
        free_path(root, &relative)
    }
}

async fn write_checksums(
    start: &Start,
    algorithms: &[Digest],
    (root, run): (&Path, &RunId),
    events: &dyn Events,
) -> Result<Vec<PathBuf>, String> {
    let mut work = Vec::with_capacity(start.files.len() * algorithms.len());
    for file in &start.files {
        work.extend(algorithms.iter().map(|digest| (file.clone(), digest.0)));
    }
    let total = work.len();
    for (index, (file, algorithm)) in work.into_iter().enumerate() {
        let (root, run) = (root.to_owned(), run.clone());
        blocking(move || checksum::write(&root, &file, algorithm, &run)).await?;
        events.progress(u16::try_from((index + 1) * 1000 / total).unwrap_or(1000));
    }
    Ok(start.files.clone())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| "a defect ended it".to_owned())?
        .map_err(|error| described(&error))
}

/// An error with its causes.
fn described(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    causes.join(": ")
}
