//! The adapter of `chains`: which chain a queue has, and how steps with the user's programs and plugins are executed.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use chains::ChainOf;
use post::{
    Events, Outcome,
    job::{Container, Step, Tool, ToolRun},
};
use tools::{Inputs, Tools};
use transfer::FileName;

use crate::{
    configuration::Configuration,
    refusal::chain,
    start::{
        media::{Output, blocking, make, opened},
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
            self.convert(run, container, events).await
        })
    }
}

impl OfUser {
    /// Writes the result in a hidden directory, and then gives it a free name beside the files.
    async fn convert(&self, run: ToolRun<'_>, container: Container, events: &dyn Events) -> Result<Outcome, String> {
        let tools = self.tools.as_ref().ok_or("this service starts no programs")?;
        let (container, ending) = match container {
            Container::Mp4 => (tools::Container::Mp4, "mp4"),
            Container::Matroska => (tools::Container::Matroska, "mkv"),
            Container::WebM => (tools::Container::WebM, "webm"),
        };
        let work = opened(run).await?;
        if let Some(made) = work.made() {
            return Ok(result(made.to_owned()));
        }
        let names = work.names();
        let inputs = inputs(run.step, &names)?;
        let stem = Path::new(&names[0]).file_stem().unwrap_or_default().to_string_lossy();
        let name = work.free_name(&FileName::sanitise(&format!("{stem}.{ending}")));
        let name = name.map_err(|error| chain(&error))?;
        let output = Output { name, container };
        let progress = |thousandths| events.progress(thousandths);
        make(tools, &work, (inputs, output), progress).await?;
        let targets = work.finish();
        events.intends(targets.clone()).await;
        let made = targets.last().cloned().ok_or("nothing was made")?;
        blocking(move || work.commit(&targets)).await?;
        Ok(result(made))
    }
}

fn result(file: PathBuf) -> Outcome {
    Outcome {
        files: vec![file],
        originals: Vec::new(),
    }
}

/// What is joined or converted, of the names of a job's files.
fn inputs(step: &Step, names: &[String]) -> Result<Inputs, String> {
    // They are plain ones, or they would not be names of a workspace.
    match (step, names) {
        (Step::Mux { .. }, [video, audio]) => Ok(Inputs::Mux {
            video: FileName::sanitise(video),
            audio: FileName::sanitise(audio),
        }),
        (Step::Remux { .. }, [input]) => Ok(Inputs::Remux {
            input: FileName::sanitise(input),
        }),
        (Step::Mux { .. }, _) => Err(format!("{} files; mux joins two, in one directory", names.len())),
        _ => Err(format!("{} files; remux takes one", names.len())),
    }
}
