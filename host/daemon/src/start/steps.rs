//! What `chains` is told: which chain a queue has, and how steps with the user's programs are executed.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use chains::ChainOf;
use post::{
    job::{Container, Step, Tool},
    rename::{free_path, rename},
};
use tokio::sync::watch;
use tools::{Conversion, Inputs, Tools};
use transfer::FileName;

use crate::{configuration::Configuration, refusal::chain};

/// The chain of a queue, or else that of the settings. What another version stored is none.
pub(super) fn chain_of(configuration: Arc<Configuration>) -> ChainOf {
    Arc::new(move |queue| {
        let own = queue.map(|queue| queue.spec.post_chain.clone());
        let own = own.filter(|text| !text.is_empty());
        let text = own.unwrap_or_else(|| configuration.post_chain());
        chains::chain_of(&text).unwrap_or_else(|error| {
            tracing::warn!(%error, "the stored chain of steps is not used");
            Vec::new()
        })
    })
}

/// Programs of the user.
#[derive(Debug)]
pub(super) struct OfUser {
    pub(super) tools: Option<Tools>,
}

impl Tool for OfUser {
    fn run<'a>(
        &'a self,
        step: &'a Step,
        files: &'a [PathBuf],
        progress: &'a (dyn Fn(u16) + Send + Sync),
    ) -> Pin<Box<dyn Future<Output = Result<Vec<PathBuf>, String>> + Send + 'a>> {
        Box::pin(async move {
            let container = match step {
                Step::Mux { container } | Step::Remux { container } => *container,
                Step::Plugin { identity } => {
                    return Err(format!(
                        "{identity} cannot be called: this version calls no plugin here"
                    ));
                }
                Step::Unpack { .. } | Step::Rename { .. } | Step::Checksum { .. } => {
                    return Err("this step needs no program".to_owned());
                }
            };
            let inputs = inputs(step, files)?;
            let result = self.convert(inputs, &files[0], container, progress).await?;
            Ok(vec![result])
        })
    }
}

impl OfUser {
    /// Writes the result under a temporary name, and then gives it a free one beside the first file.
    async fn convert(
        &self,
        inputs: Inputs,
        first: &Path,
        container: Container,
        progress: &(dyn Fn(u16) + Send + Sync),
    ) -> Result<PathBuf, String> {
        let tools = self.tools.as_ref().ok_or("this service starts no programs")?;
        let directory = first.parent().unwrap_or(Path::new("/")).to_owned();
        let total = total_bytes(&directory, &inputs);
        let (container, ending) = match container {
            Container::Mp4 => (tools::Container::Mp4, "mp4"),
            Container::Matroska => (tools::Container::Matroska, "mkv"),
            Container::WebM => (tools::Container::WebM, "webm"),
        };
        let stem = first.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let output = FileName::sanitise_entry(&format!(".{stem}.svcmux.{ending}")).ok_or("the file has no name")?;
        let temporary = directory.join(output.as_str());
        let left_over = temporary.clone();
        blocking(move || private_files::remove(&left_over)).await?;
        let (written, mut seen) = watch::channel(tools::Progress::default());
        let conversion = Conversion {
            directory: directory.clone(),
            inputs,
            output,
            container,
        };
        let converting = tools.convert(conversion, written);
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
        let wanted = PathBuf::from(format!("{stem}.{ending}"));
        let to = free_path(&directory, &wanted);
        blocking(move || rename(&temporary, &to).map(|()| to)).await
    }
}

fn inputs(step: &Step, files: &[PathBuf]) -> Result<Inputs, String> {
    match (step, files) {
        (Step::Mux { .. }, [video, audio]) if video.parent() == audio.parent() => Ok(Inputs::Mux {
            video: plain_name(video)?,
            audio: plain_name(audio)?,
        }),
        (Step::Remux { .. }, [input]) => Ok(Inputs::Remux {
            input: plain_name(input)?,
        }),
        (Step::Mux { .. }, _) => Err(format!("{} files; mux joins two, in one directory", files.len())),
        _ => Err(format!("{} files; remux takes one", files.len())),
    }
}

fn plain_name(file: &Path) -> Result<FileName, String> {
    let name = file.file_name().and_then(|name| name.to_str());
    let plain = name
        .and_then(FileName::sanitise_entry)
        .filter(|plain| name == Some(plain.as_str()));
    plain.ok_or_else(|| {
        format!(
            "{} has a name that is not given to programs; rename it first",
            file.display()
        )
    })
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

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, private_files::FileError> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| "a defect ended it".to_owned())?;
    done.map_err(|error| chain(&error))
}
