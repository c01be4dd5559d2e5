//! The handle by which the service uses tools: one method per job.

use std::{
    fs,
    future::Future,
    io,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::safe_url;

use crate::{
    Choice, Config, Container, Conversion, Extraction, Isolation, Media, Progress, Settings, Tool, ToolError,
    ffmpeg::{self, ProgressReader},
    locate,
    order::Limits,
    places::{Full, Places},
    proxy::{self, Gate, Outbound},
    run::{Ended, Invocation, run},
    yt_dlp,
};

/// The most conversions at once. More would only share the same disk.
const MAX_CONVERSIONS: usize = 2;

/// Limits of a run that prints the version. One form of `yt-dlp` unpacks itself first, which takes seconds.
const VERSION_LIMITS: Limits = Limits {
    wall: Duration::from_secs(20),
    cpu_seconds: 20,
    address_space_bytes: None,
    data_bytes: 1 << 30,
    file_bytes: 128 * 1024 * 1024,
};

/// The most that is read of a version: `ffmpeg` adds how it was built.
const MAX_VERSION_BYTES: u64 = 64 * 1024;

/// The tools of a service. Clones share them.
#[derive(Debug, Clone)]
pub struct Tools(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: Config,
    settings: watch::Receiver<Settings>,
    ffmpeg: Semaphore,
    extractions: Places,
    /// Runs outlive the futures of their callers, until nothing that they started is left.
    runs: TaskTracker,
    stop: CancellationToken,
}

/// What is known of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTool {
    /// The tool.
    pub tool: Tool,
    /// Whether the user allows it.
    pub is_enabled: bool,
    /// Whether the user gave its path, so that `PATH` is not searched.
    pub is_manual: bool,
    /// The program that is used, or would be if it were allowed.
    pub path: Option<PathBuf>,
    /// Its version.
    pub version: Option<String>,
    /// How far this system lets it be separated; none if it could not be started.
    pub isolation: Option<Isolation>,
    /// Why it cannot be used although it is allowed.
    pub problem: Option<String>,
}

impl Tools {
    /// Tools that follow `settings`. Empties [`Config::scratch`]; nothing is started yet.
    pub fn new(config: Config, settings: watch::Receiver<Settings>) -> Self {
        match fs::remove_dir_all(&config.scratch) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %config.scratch.display(), %error, "temporary files of tools stay");
            }
            _ => {}
        }
        Self(Arc::new(Shared {
            config,
            settings,
            ffmpeg: Semaphore::new(MAX_CONVERSIONS),
            extractions: Places::new(),
            runs: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Ends all runs, and waits until nothing that they started is left.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.runs.close();
        self.0.runs.wait().await;
    }

    /// Whether the user allows `tool` and it is installed.
    pub fn check(&self, tool: Tool) -> Result<(), ToolError> {
        self.0.program(tool).map(|_| ())
    }

    /// Joins audio and video, or changes a container. When it fails or is dropped, nothing is left of the output.
    ///
    /// Two conversions run at once; another one waits as long as the caller does. Dropping the future ends `ffmpeg`.
    pub async fn convert(&self, job: Conversion, progress: watch::Sender<Progress>) -> Result<(), ToolError> {
        let shared = Arc::clone(&self.0);
        self.track(|cancel| async move { shared.convert(job, &progress, &cancel).await })
            .await
    }

    /// Finds the media of a page.
    ///
    /// Four extractions run at once, two of them for the same host; another one waits for its place, and fails with
    /// [`ToolError::Busy`] if there is none within 20 seconds. Dropping the future ends `yt-dlp`.
    pub async fn extract(&self, job: Extraction) -> Result<Media, ToolError> {
        let shared = Arc::clone(&self.0);
        self.track(|cancel| async move { shared.extract(job, &cancel).await })
            .await
    }

    /// Looks for a tool, and asks it for its version even if the user does not allow it.
    pub async fn find(&self, tool: Tool) -> FoundTool {
        let shared = Arc::clone(&self.0);
        self.track(|cancel| async move { shared.find(tool, &cancel).await })
            .await
    }

    /// Runs `work` to its end; its token is cancelled when the returned future is dropped.
    async fn track<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> T {
        let cancel = self.0.stop.child_token();
        let _cancels = cancel.clone().drop_guard();
        match self.0.runs.spawn(work(cancel)).await {
            Ok(done) => done,
            Err(error) => resume_unwind(error.into_panic()),
        }
    }
}

impl Shared {
    fn program(&self, tool: Tool) -> Result<PathBuf, ToolError> {
        locate::locate(tool, self.settings.borrow().of(tool), &self.config.launcher.path)
    }

    async fn convert(
        &self,
        job: Conversion,
        progress: &watch::Sender<Progress>,
        cancel: &CancellationToken,
    ) -> Result<(), ToolError> {
        let tool = Tool::Ffmpeg;
        let permit = cancel.run_until_cancelled(self.ffmpeg.acquire()).await;
        let _permit = permit.ok_or(ToolError::Stopped { tool })?.expect("it is never closed");
        let program = self.program(tool)?;
        let opened = job.clone();
        let (limits, inputs) = blocking(move || opened.open()).await?;
        let home = self.home(tool).await?;
        let invocation = Invocation {
            tool,
            program,
            arguments: job.arguments(),
            inputs,
            directory: job.path(),
            home: home.path().to_owned(),
            limits,
            output_bytes: ffmpeg::MAX_OUTPUT_BYTES,
            gate: None,
        };
        let mut reader = ProgressReader::default();
        let mut sink = |piece: &[u8]| {
            if let Some(now) = reader.read(piece) {
                progress.send_replace(now);
            }
        };
        let ended = run(&self.config.launcher, &invocation, cancel, &mut sink).await;
        let outcome = ended.and_then(|ended| ended.check(tool));
        blocking(move || {
            drop(home);
            let output = job.output_path();
            let written = outcome.and_then(|()| match check_whole(&output, job.container) {
                Ok(true) => Ok(()),
                Ok(false) => Err(not_written(
                    tool,
                    "its result is not complete; the disk may be full",
                    None,
                )),
                Err(error) => Err(not_written(tool, "its result cannot be read", Some(error))),
            });
            written.inspect_err(|_| remove_unfinished(&output))
        })
        .await
    }

    async fn extract(&self, job: Extraction, cancel: &CancellationToken) -> Result<Media, ToolError> {
        let tool = Tool::YtDlp;
        let Extraction { url, given_by, proxy } = job;
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme().to_owned();
            return Err(ToolError::Scheme { scheme });
        }
        if let Some(proxy) = proxy.as_ref().filter(|proxy| !proxy::is_usable(proxy)) {
            let scheme = proxy.scheme().to_owned();
            return Err(ToolError::Proxy { scheme });
        }
        let program = self.program(tool)?;
        let host = url.as_url().host_str().unwrap_or_default();
        let place = cancel.run_until_cancelled(self.extractions.take(host)).await;
        let place = place.ok_or(ToolError::Stopped { tool })?;
        let _place = place.map_err(|Full| ToolError::Busy { tool })?;
        let home = self.home(tool).await?;
        let url_file = home.path().join(yt_dlp::URL_FILE);
        let text = format!("{}\n", url.expose());
        let written = url_file.clone();
        let written = blocking(move || private_files::replace(&written, text.as_bytes())).await;
        written.map_err(|error| not_run(tool, "cannot write the URL", io::Error::other(error)))?;
        let outbound = Outbound {
            url,
            given_by,
            upstream: proxy,
        };
        let gate = Gate::new(outbound, self.config.names.clone());
        let gate = Arc::new(gate.map_err(|error| not_run(tool, "no password for its proxy", error))?);
        let invocation = Invocation {
            tool,
            program: program.clone(),
            arguments: yt_dlp::arguments(&url_file),
            inputs: Vec::new(),
            directory: home.path().to_owned(),
            home: home.path().to_owned(),
            limits: yt_dlp::limits(),
            output_bytes: yt_dlp::MAX_OUTPUT_BYTES,
            gate: Some(Arc::clone(&gate)),
        };
        let mut json = Vec::new();
        let mut sink = |piece: &[u8]| json.extend_from_slice(piece);
        let ended = run(&self.config.launcher, &invocation, cancel, &mut sink).await;
        let checked = ended.and_then(|ended| ended.check(tool));
        blocking(move || drop(home)).await;
        match (checked, gate.refused()) {
            (Ok(()), _) => {}
            (Err(ToolError::Failed { .. }), Some(forbidden)) => return Err(ToolError::Forbidden(forbidden)),
            (Err(error @ ToolError::Failed { .. }), None) => {
                // An option that it does not know is a failure like any other.
                return match self.version(tool, &program, cancel).await {
                    Ok((Some(found), _)) if !yt_dlp::is_recent(&found) => Err(too_old(found)),
                    _ => Err(error),
                };
            }
            (Err(error), _) => return Err(error),
        }
        // Sixteen MiB take a moment, in which other tasks of this thread wait otherwise.
        let media = blocking(move || Media::read(&json)).await;
        let media = media.map_err(|error| ToolError::Output {
            tool,
            reason: safe_url::masked(&error.to_string()),
        })?;
        media.ok_or_else(|| ToolError::Failed {
            tool,
            status: "exit code 0".to_owned(),
            explanation: "it found nothing".to_owned(),
        })
    }

    async fn find(&self, tool: Tool, cancel: &CancellationToken) -> FoundTool {
        let choice = self.settings.borrow().of(tool).clone();
        let path = &self.config.launcher.path;
        let located = match &choice {
            Choice::Off => locate::search(tool, path).ok_or(ToolError::NotFound { tool }),
            choice => locate::locate(tool, choice, path),
        };
        let mut found = FoundTool {
            tool,
            is_enabled: choice != Choice::Off,
            is_manual: matches!(choice, Choice::At(_)),
            path: located.as_ref().ok().cloned(),
            version: None,
            isolation: None,
            problem: None,
        };
        let asked = match located {
            Ok(program) => self.version(tool, &program, cancel).await,
            Err(error) => Err(error),
        };
        let problem = match asked {
            Ok((version, isolation)) => {
                found.isolation = Some(isolation);
                found.version.clone_from(&version);
                let old = version.filter(|version| tool == Tool::YtDlp && !yt_dlp::is_recent(version));
                old.map(too_old)
            }
            Err(error) => Some(error),
        };
        let problem = problem.filter(|_| found.is_enabled);
        found.problem = problem.map(|error| described(&error));
        found
    }

    /// Asks a program for its version; none if it prints something else.
    async fn version(
        &self,
        tool: Tool,
        program: &Path,
        cancel: &CancellationToken,
    ) -> Result<(Option<String>, Isolation), ToolError> {
        let home = self.home(tool).await?;
        let argument = match tool {
            Tool::Ffmpeg => "-version",
            Tool::YtDlp => "--version",
        };
        let invocation = Invocation {
            tool,
            program: program.to_owned(),
            arguments: vec![argument.into()],
            inputs: Vec::new(),
            directory: home.path().to_owned(),
            home: home.path().to_owned(),
            limits: VERSION_LIMITS,
            output_bytes: MAX_VERSION_BYTES,
            gate: None,
        };
        let mut printed = Vec::new();
        let mut sink = |piece: &[u8]| printed.extend_from_slice(piece);
        let ended = run(&self.config.launcher, &invocation, cancel, &mut sink).await;
        blocking(move || drop(home)).await;
        let ended: Ended = ended?;
        ended.check(tool)?;
        let printed = String::from_utf8_lossy(&printed);
        let version = match tool {
            Tool::Ffmpeg => ffmpeg::version(&printed),
            Tool::YtDlp => yt_dlp::version(&printed),
        };
        Ok((version, ended.isolation))
    }

    /// A temporary directory for one run, removed with everything in it.
    async fn home(&self, tool: Tool) -> Result<TempDir, ToolError> {
        let scratch = self.config.scratch.clone();
        let made = blocking(move || {
            private_files::make_directory(&scratch).map_err(io::Error::other)?;
            let mut builder = tempfile::Builder::new();
            builder.prefix("tool-");
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
            builder.tempdir_in(&scratch)
        });
        made.await
            .map_err(|error| not_run(tool, "no temporary directory for it", error))
    }
}

fn not_run(tool: Tool, act: &str, source: io::Error) -> ToolError {
    ToolError::Run {
        tool,
        act: act.to_owned(),
        source: Some(source),
    }
}

fn too_old(found: String) -> ToolError {
    ToolError::TooOld {
        tool: Tool::YtDlp,
        found,
        least: yt_dlp::LEAST_VERSION,
    }
}

/// An error with its sources.
fn described(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", described(source)),
        None => error.to_string(),
    }
}

/// The tool made the file: there was none of that name before.
fn check_whole(output: &Path, container: Container) -> io::Result<bool> {
    if !output.symlink_metadata()?.is_file() {
        return Ok(false);
    }
    ffmpeg::is_whole(&fs::File::open(output)?, container)
}

fn not_written(tool: Tool, act: &str, source: Option<io::Error>) -> ToolError {
    let act = act.to_owned();
    ToolError::Run { tool, act, source }
}

fn remove_unfinished(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(path = %path.display(), %error, "an unfinished file stays"),
    }
}

/// Runs `work` where it may block on a disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => resume_unwind(error.into_panic()),
    }
}
