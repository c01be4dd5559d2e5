//! What `chains` is told: which chain a queue has, and how steps with the user's programs and plugins are executed.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use chains::ChainOf;
use post::{
    Events, Outcome,
    job::{Container, Step, Tool, ToolRun},
    rename::{free_path, rename},
};
use tools::{Conversion, Inputs, Tools};
use transfer::FileName;

use crate::{
    configuration::Configuration,
    start::{
        media::{blocking, converted},
        plugin_step::PluginSteps,
    },
};

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

/// Programs of the user, and plugins.
pub(super) struct OfUser {
    pub(super) tools: Option<Tools>,
    pub(super) plugins: Option<PluginSteps>,
}

impl Tool for OfUser {
    fn run<'a>(
        &'a self,
        run: ToolRun<'a>,
        events: &'a dyn Events,
    ) -> Pin<Box<dyn Future<Output = Result<Outcome, String>> + Send + 'a>> {
        Box::pin(async move {
            let container = match run.step {
                Step::Mux { container } | Step::Remux { container } => *container,
                Step::Plugin { identity } => {
                    let plugins = self.plugins.as_ref().ok_or("this service runs no plugins")?;
                    return plugins.run(identity, run, events).await;
                }
                Step::Unpack { .. } | Step::Rename { .. } | Step::Checksum { .. } => {
                    return Err("this step needs no program".to_owned());
                }
            };
            let inputs = inputs(run.step, run.files)?;
            let result = self.convert(inputs, &run.files[0], container, events).await?;
            Ok(Outcome {
                files: vec![result],
                originals: Vec::new(),
            })
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
        events: &dyn Events,
    ) -> Result<PathBuf, String> {
        let tools = self.tools.as_ref().ok_or("this service starts no programs")?;
        let directory = first.parent().unwrap_or(Path::new("/")).to_owned();
        let (container, ending) = match container {
            Container::Mp4 => (tools::Container::Mp4, "mp4"),
            Container::Matroska => (tools::Container::Matroska, "mkv"),
            Container::WebM => (tools::Container::WebM, "webm"),
        };
        let stem = first.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let output = FileName::sanitise_entry(&format!(".{stem}.svcmux.{ending}")).ok_or("the file has no name")?;
        let conversion = Conversion {
            directory: directory.clone(),
            inputs,
            output,
            container,
        };
        let temporary = converted(tools, conversion, |thousandths| events.progress(thousandths)).await?;
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
