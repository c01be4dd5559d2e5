//! The files of a finished download, and what a call may do with them.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use plugin_package::manifest::Tool;
use svc_plugin_fixture::work::Files;
use transfer::Secret;

/// The files of a finished download; implemented by the embedder. What is done with them counts only if the
/// call succeeds. Errors are for the plugin and its user: they say nothing of where the files are. Dropping a future ends
/// what it does.
pub trait Workspace: fmt::Debug + Send + Sync + 'static {
    /// The names of all files.
    fn names(&self) -> Vec<String>;

    /// The names of archives among them.
    fn archives(&self) -> Vec<String>;

    /// The size of a file in bytes.
    fn size(&self, name: String) -> BoxFuture<'_, Result<u64, String>>;

    /// Bytes of a file.
    fn read(&self, name: String, offset: u64, length: u32) -> BoxFuture<'_, Result<Vec<u8>, String>>;

    /// Makes a file.
    fn write_new(&self, name: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), String>>;

    /// Gives a file another name.
    fn rename(&self, from: String, to: String) -> BoxFuture<'_, Result<(), String>>;

    /// Unpacks an archive; the names that will appear.
    fn unpack(&self, name: String, passwords: Vec<Secret>) -> BoxFuture<'_, Result<Vec<String>, String>>;

    /// Has an archive removed that was unpacked.
    fn remove_archive(&self, name: String) -> Result<(), String>;

    /// Joins picture and sound.
    fn mux(&self, video: String, audio: String, output: String) -> BoxFuture<'_, Result<(), String>>;
}

/// The files that one call works on, and the tools that it may use.
#[derive(Debug, Clone)]
pub struct CallWorkspace {
    files: Arc<dyn Workspace>,
    tools: Vec<Tool>,
}

impl CallWorkspace {
    /// These files, for a plugin that may use these tools.
    pub fn new(files: Arc<dyn Workspace>, tools: Vec<Tool>) -> Self {
        Self { files, tools }
    }

    /// The files, for what needs no tool.
    pub fn files(&self) -> &dyn Workspace {
        &*self.files
    }

    /// As [`Workspace::unpack`], if the user has allowed it.
    pub async fn unpack(&self, name: String, passwords: Vec<Secret>) -> Result<Vec<String>, String> {
        self.check(Tool::Unpack)?;
        self.files.unpack(name, passwords).await
    }

    /// As [`Workspace::mux`], if the user has allowed it.
    pub async fn mux(&self, video: String, audio: String, output: String) -> Result<(), String> {
        self.check(Tool::Mux)?;
        self.files.mux(video, audio, output).await
    }

    fn check(&self, tool: Tool) -> Result<(), String> {
        if self.tools.contains(&tool) {
            return Ok(());
        }
        Err(format!(
            "this plugin may not use {tool}: its manifest does not name it in /capabilities/post/tools"
        ))
    }
}

/// The files of a fixture.
#[derive(Debug)]
pub(crate) struct InMemory(std::sync::Mutex<Files>);

impl InMemory {
    pub(crate) fn new(files: Files) -> Self {
        Self(files.into())
    }

    /// Does something with the files.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Files) -> T) -> T {
        let mut files = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        work(&mut files)
    }
}

impl Workspace for InMemory {
    fn names(&self) -> Vec<String> {
        self.with(|files| files.names())
    }

    fn archives(&self) -> Vec<String> {
        self.with(|files| files.archives())
    }

    fn size(&self, name: String) -> BoxFuture<'_, Result<u64, String>> {
        Box::pin(async move { self.with(|files| files.size(&name)) })
    }

    fn read(&self, name: String, offset: u64, length: u32) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        Box::pin(async move { self.with(|files| files.read(&name, offset, length)) })
    }

    fn write_new(&self, name: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move { self.with(|files| files.write_new(&name, &bytes)) })
    }

    fn rename(&self, from: String, to: String) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move { self.with(|files| files.rename(&from, &to)) })
    }

    fn unpack(&self, name: String, passwords: Vec<Secret>) -> BoxFuture<'_, Result<Vec<String>, String>> {
        Box::pin(async move {
            let passwords: Vec<_> = passwords.iter().map(Secret::expose).collect();
            self.with(|files| files.unpack(&name, &passwords))
        })
    }

    fn remove_archive(&self, name: String) -> Result<(), String> {
        self.with(|files| files.remove_archive(&name))
    }

    fn mux(&self, video: String, audio: String, output: String) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move { self.with(|files| files.mux(&video, &audio, &output)) })
    }
}
