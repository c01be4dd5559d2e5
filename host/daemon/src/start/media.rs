//! What the user's programs do: what `yt-dlp` finds, for plugins, and what `ffmpeg` converts.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use plugin_host::runtime::{self, Page, ToolError};
use tokio::sync::watch;
use tools::{Conversion, Extraction, Inputs, Tools};
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

/// Has `ffmpeg` write the output of `job`, a temporary name, in whose way nothing is; where it is then. `progress` is called
/// with thousandths.
pub(super) async fn converted(
    tools: &Tools,
    job: Conversion,
    mut progress: impl FnMut(u16),
) -> Result<PathBuf, String> {
    let temporary = job.directory.join(job.output.as_str());
    let left_over = temporary.clone();
    blocking(move || private_files::remove(&left_over)).await?;
    let total = total_bytes(&job.directory, &job.inputs);
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
    Ok(temporary)
}

/// What the result will be about as large as.
fn total_bytes(directory: &Path, inputs: &Inputs) -> u64 {
    let size = |name: &FileName| {
        let metadata = std::fs::metadata(directory.join(name.as_str()));
        metadata.map_or(0, |metadata| metadata.len())
    };
    match inputs {
        Inputs::Mux { video, audio } => size(video).saturating_add(size(audio)),
        Inputs::Remux { input } => size(input),
    }
}

/// Does what blocks, on a thread for that.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, private_files::FileError> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| "a defect ended it".to_owned())?;
    done.map_err(|error| chain(&error))
}
