//! Plugins as steps of chains: which files they work on, and what becomes of what they did.

use std::{path::Path, sync::Arc};

use confined::OwnCommand;
use engine::Proxies;
use futures_util::future::BoxFuture;
use plugin_host::{CallTarget, Identity, Plugins, runtime};
use post::{Events, Outcome, WorkError, Workspace, job::ToolRun};
use tokio::sync::{Semaphore, watch};
use tools::{Container, Inputs, Tools};
use transfer::{FileName, SafeUrl, Secret};

use crate::{
    refusal::{chain, of_call},
    start::media::{Output, blocking, make, opened},
};

/// How plugins are called for a chain.
pub(super) struct PluginSteps {
    pub(super) plugins: Plugins,
    pub(super) unpacker: Option<OwnCommand>,
    pub(super) tools: Option<Tools>,
    /// Those of the settings, for what plugins ask of the network.
    pub(super) proxies: Box<dyn Fn() -> Proxies + Send + Sync>,
    /// One archive of plugins at a time is unpacked, beside one of the chains' own steps.
    pub(super) unpacking: Arc<Semaphore>,
}

impl PluginSteps {
    /// Has a plugin work on the files of a job. Nothing of that is there if this fails or is dropped, but hidden directories,
    /// which the caller sweeps.
    pub(super) async fn run(&self, plugin: &str, run: ToolRun<'_>, events: &dyn Events) -> Result<Outcome, String> {
        let identity: Identity = plugin.parse().map_err(|_| format!("{plugin} is no plugin"))?;
        let source = run.known.source.as_ref();
        let source = source.ok_or("the URL of the download is not known: the job is of an older version")?;
        let url = SafeUrl::parse(&source.url).map_err(|error| chain(&error))?;
        let target = CallTarget {
            by_user: source.by_user,
            proxies: (self.proxies)(),
            ..CallTarget::by_user(url.as_url().clone())
        };
        let (progress, mut seen) = watch::channel(0);
        let files = Arc::new(self.open(run, progress).await?);
        let main = files.work.main();
        let calling = self
            .plugins
            .post_process(identity, target, main, Arc::clone(&files) as _);
        tokio::pin!(calling);
        let called = loop {
            tokio::select! {
                called = &mut calling => break called,
                Ok(()) = seen.changed() => {
                    let thousandths = *seen.borrow_and_update();
                    events.progress(thousandths);
                }
            }
        };
        called.map_err(|error| of_call(&error))?;
        let targets = files.work.finish();
        events.intends(targets.clone()).await;
        files.blocking(move |work| work.commit(&targets)).await
    }

    async fn open(&self, run: ToolRun<'_>, progress: watch::Sender<u16>) -> Result<Files, String> {
        Ok(Files {
            work: opened(run).await?,
            unpacker: self.unpacker.clone(),
            tools: self.tools.clone(),
            unpacking: Arc::clone(&self.unpacking),
            progress,
        })
    }
}

/// The files of a job, as a plugin works on them.
#[derive(Debug)]
struct Files {
    work: Arc<Workspace>,
    unpacker: Option<OwnCommand>,
    tools: Option<Tools>,
    unpacking: Arc<Semaphore>,
    /// Of what is unpacked or joined, in thousandths.
    progress: watch::Sender<u16>,
}

impl Files {
    async fn blocking<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Workspace) -> Result<T, WorkError> + Send + 'static,
    ) -> Result<T, String> {
        let work = Arc::clone(&self.work);
        let done = blocking(move || act(&work)).await;
        done.map_err(|reason| self.without_place(&reason))
    }

    /// A reason, without the place of the files: plugins are not told where they are.
    fn without_place(&self, reason: &str) -> String {
        reason.replace(&*self.work.directory().to_string_lossy(), "…")
    }

    async fn join(&self, video: String, audio: String, output: String) -> Result<(), String> {
        let tools = self.tools.as_ref().ok_or("this service starts no programs")?;
        let container =
            container(&output).ok_or_else(|| format!("{output:?} ends with none of .mp4, .mkv and .webm"))?;
        let name = FileName::sanitise(&output);
        let inputs = self.blocking(move |work| {
            work.check_new(&output)?;
            Ok(Inputs::Mux {
                video: work.on_disk(&video)?,
                audio: work.on_disk(&audio)?,
            })
        });
        let job = (inputs.await?, Output { name, container });
        let progress = |thousandths| _ = self.progress.send_replace(thousandths);
        let made = make(tools, &self.work, job, progress).await;
        made.map_err(|reason| self.without_place(&reason))
    }
}

impl runtime::Workspace for Files {
    fn names(&self) -> Vec<String> {
        self.work.names()
    }

    fn archives(&self) -> Vec<String> {
        self.work.archives()
    }

    fn size(&self, name: String) -> BoxFuture<'_, Result<u64, String>> {
        Box::pin(self.blocking(move |work| work.size(&name)))
    }

    fn read(&self, name: String, offset: u64, length: u32) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        Box::pin(self.blocking(move |work| work.read(&name, offset, length)))
    }

    fn write_new(&self, name: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.blocking(move |work| work.write_new(&name, &bytes)))
    }

    fn rename(&self, from: String, to: String) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.blocking(move |work| work.rename(&from, &to)))
    }

    fn unpack(&self, name: String, passwords: Vec<Secret>) -> BoxFuture<'_, Result<Vec<String>, String>> {
        Box::pin(async move {
            let command = self.unpacker.as_ref();
            let command = command.ok_or("this service cannot unpack archives")?;
            let _turn = self.unpacking.acquire().await.expect("it is never closed");
            let progress = |progress: post::Progress| _ = self.progress.send_replace(progress.thousandths);
            let unpacked = self.work.unpack(command, &name, passwords, progress).await;
            let directory = unpacked.map_err(|error| self.without_place(&chain(&error)))?;
            Ok(vec![directory])
        })
    }

    fn remove_archive(&self, name: String) -> Result<(), String> {
        let removed = self.work.remove_archive(&name);
        removed.map_err(|error| self.without_place(&chain(&error)))
    }

    fn mux(&self, video: String, audio: String, output: String) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.join(video, audio, output))
    }
}

/// The container of a file with this name.
fn container(name: &str) -> Option<Container> {
    let ending = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
    match ending.as_str() {
        "mp4" => Some(Container::Mp4),
        "mkv" => Some(Container::Matroska),
        "webm" => Some(Container::WebM),
        _ => None,
    }
}
