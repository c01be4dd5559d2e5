//! A transport that reaches no network: what a run does is written in the test.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use transfer::{Finished, Job, Outcome, RunEvent, RunFuture, Transport};

/// A [`Transport`] for tests of what uses one: queues, events, clients.
pub struct FakeTransport {
    schemes: &'static [&'static str],
    run: Box<dyn Fn(Job) -> RunFuture + Send + Sync>,
}

impl fmt::Debug for FakeTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeTransport")
            .field("schemes", &self.schemes)
            .finish_non_exhaustive()
    }
}

impl FakeTransport {
    /// Each run of a URL with one of these schemes is what `run` makes of its job.
    pub fn new<F>(schemes: &'static [&'static str], run: impl Fn(Job) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        Self {
            schemes,
            run: Box::new(move |job| Box::pin(run(job))),
        }
    }

    /// Runs move nothing until they are stopped.
    pub fn idle(schemes: &'static [&'static str]) -> Self {
        Self::new(schemes, async |job: Job| wait_for_stop(&job).await)
    }
}

impl Transport for FakeTransport {
    fn schemes(&self) -> &'static [&'static str] {
        self.schemes
    }

    fn run(&self, job: Job) -> RunFuture {
        (self.run)(job)
    }
}

/// The host of the job's URL: tests name what a run shall do there.
pub fn host(job: &Job) -> &str {
    job.source.urls[0].as_url().host_str().unwrap_or_default()
}

/// The file that the URL's path names, in the job's directory.
pub fn path(job: &Job) -> PathBuf {
    let name = job.source.urls[0].as_url().path().trim_start_matches('/');
    job.target.directory.join(name)
}

/// Reports that the run has reserved [`path`] for a file of this size, without making it.
pub async fn reserve(job: &Job, size_bytes: u64) -> PathBuf {
    let path = path(job);
    let reserved = RunEvent::Reserved {
        path: path.clone(),
        total_bytes: Some(size_bytes),
    };
    job.reporter.event(reserved).await;
    path
}

/// Writes this content to [`path`].
pub async fn finish(job: &Job, content: &[u8]) -> Outcome {
    let path = reserve(job, content.len() as u64).await;
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("the directory can be made");
    std::fs::write(&path, content).expect("the file can be written");
    finished(path, content.len() as u64)
}

/// A run that has fetched all of this file.
pub fn finished(path: PathBuf, size_bytes: u64) -> Outcome {
    Outcome::Finished(Finished {
        path,
        size_bytes,
        received_bytes: size_bytes,
        is_own: true,
        can_seed: false,
    })
}

/// Moves nothing until the run is stopped.
pub async fn wait_for_stop(job: &Job) -> Outcome {
    job.stop.cancelled().await;
    Outcome::Stopped
}
