//! What the user's programs do: what `yt-dlp` finds, for plugins, and what `ffmpeg` converts.

use std::{path::Path, sync::Arc};

use futures_util::future::BoxFuture;
use plugin_host::runtime::{self, Page, ToolError};
use post::{WorkError, Workspace, job::ToolRun};
use tokio::sync::watch;
use tools::{Container, Conversion, Extraction, Inputs, Tools};
use transfer::FileName;

use crate::refusal::chain;

/// The tools of the daemon as the plugins use them.
#[derive(Debug)]
pub(super) struct PluginTools(pub(super) Tools);

impl runtime::Tools for PluginTools {
    fn discover(&self, page: Page) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async move {
            let job = Extraction {
                url: page.url,
                given_by: page.given_by,
                proxy: page.proxy,
            };
            let media = self.0.extract(job).await.map_err(|error| told(&error))?;
            media.to_json().map_err(|error| ToolError::TooMuch(error.to_string()))
        })
    }
}

fn told(error: &tools::ToolError) -> ToolError {
    use tools::ToolError as Error;

    let reason = chain(error);
    match error {
        Error::Off { .. }
        | Error::NotFound { .. }
        | Error::NotExecutable { .. }
        | Error::Unsupported { .. }
        | Error::TooOld { .. }
        | Error::Proxy { .. } => ToolError::NotAllowed(reason),
        Error::Forbidden(_) | Error::Scheme { .. } => ToolError::Denied(reason),
        Error::Busy { .. } => ToolError::Busy(reason),
        Error::TimedOut { .. } | Error::TooMuchOutput { .. } => ToolError::TooMuch(reason),
        Error::Run { .. }
        | Error::Failed { .. }
        | Error::Stopped { .. }
        | Error::Output { .. }
        | Error::Input { .. }
        | Error::OutputExists { .. } => ToolError::Failed(reason),
    }
}

/// What `ffmpeg` makes.
pub(super) struct Output {
    /// A name that is free.
    pub(super) name: FileName,
    pub(super) container: Container,
}

/// The files of a job.
pub(super) async fn opened(run: ToolRun<'_>) -> Result<Arc<Workspace>, String> {
    let (root, files, intended) = (run.root.to_owned(), run.files.to_vec(), run.intended.to_vec());
    let (id, interrupted) = (run.run.clone(), run.interrupted.to_vec());
    let opened = blocking(move || Workspace::open((&root, &files), &intended, id, interrupted)).await?;
    Ok(Arc::new(opened))
}

/// Has `ffmpeg` make a new file of some that are in `work`. `progress` is called with thousandths.
pub(super) async fn make(
    tools: &Tools,
    work: &Arc<Workspace>,
    (inputs, output): (Inputs, Output),
    mut progress: impl FnMut(u16),
) -> Result<(), String> {
    let Output { name, container } = output;
    let place = Arc::clone(work);
    let prepared = blocking(move || {
        let total = total_bytes(place.directory(), &inputs);
        Ok((place.scratch()?, inputs, total))
    });
    let (scratch, inputs, total) = prepared.await?;
    let made = FileName::sanitise(&format!("made {name}"));
    let job = Conversion {
        directory: scratch.fd(),
        inputs,
        output: made.clone(),
        container,
    };
    let (written, mut seen) = watch::channel(tools::Progress::default());
    let converting = tools.convert(job, written);
    tokio::pin!(converting);
    let converted = loop {
        tokio::select! {
            result = &mut converting => break result,
            Ok(()) = seen.changed() => {
                let written = seen.borrow_and_update().written_bytes;
                let thousandths = written.saturating_mul(1000) / total.max(1);
                progress(u16::try_from(thousandths).unwrap_or(1000).min(1000));
            }
        }
    };
    converted.map_err(|error| chain(&error))?;
    let work = Arc::clone(work);
    blocking(move || work.adopt(&scratch, made.as_str(), name.as_str())).await
}

/// What the result will be about as large as.
fn total_bytes(directory: &Path, inputs: &Inputs) -> u64 {
    let size = |name: &FileName| {
        let metadata = std::fs::symlink_metadata(directory.join(name.as_str()));
        metadata.map_or(0, |metadata| metadata.len())
    };
    match inputs {
        Inputs::Mux { video, audio } => size(video).saturating_add(size(audio)),
        Inputs::Remux { input } => size(input),
    }
}

/// Does what blocks, on a thread for that.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkError> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| "a defect ended it".to_owned())?;
    done.map_err(|error| chain(&error))
}
