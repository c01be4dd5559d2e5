//! The files of a finished download. `plugin-host` says which tools the plugin may use, and its embedder what can be done
//! with the files.

use plugin_host::{PluginFault, runtime::CallWorkspace};
use transfer::Secret;
use wasmtime::component::Resource;

use crate::capability::{bindings::svc::plugin::workspace, state::CallState};

/// The guest's handle of the call's only directory.
#[expect(unreachable_pub, reason = "the generated bindings hand it on as public")]
pub struct DirHandle;

/// An answer whose error is a reason for the plugin.
type Told<T> = wasmtime::Result<Result<T, String>>;

impl CallState {
    /// The files. Only calls that have some hand out a handle.
    fn work(&self) -> wasmtime::Result<&CallWorkspace> {
        let work = self.context.work.as_ref();
        work.ok_or_else(|| PluginFault::Unsupported("finished files in this call").into())
    }
}

impl workspace::Host for CallState {}

impl workspace::HostDir for CallState {
    fn names(&mut self, _: Resource<DirHandle>) -> wasmtime::Result<Vec<String>> {
        Ok(self.work()?.files().names())
    }

    fn archives(&mut self, _: Resource<DirHandle>) -> wasmtime::Result<Vec<String>> {
        Ok(self.work()?.files().archives())
    }

    async fn size(&mut self, _: Resource<DirHandle>, name: String) -> Told<u64> {
        Ok(self.work()?.files().size(name).await)
    }

    async fn read(&mut self, _: Resource<DirHandle>, name: String, offset: u64, len: u32) -> Told<Vec<u8>> {
        Ok(self.work()?.files().read(name, offset, len).await)
    }

    async fn write_new(&mut self, _: Resource<DirHandle>, name: String, data: Vec<u8>) -> Told<()> {
        Ok(self.work()?.files().write_new(name, data).await)
    }

    async fn rename(&mut self, _: Resource<DirHandle>, old_name: String, new_name: String) -> Told<()> {
        Ok(self.work()?.files().rename(old_name, new_name).await)
    }

    async fn unpack(&mut self, _: Resource<DirHandle>, name: String, passwords: Vec<String>) -> Told<Vec<String>> {
        let passwords = passwords.into_iter().map(Secret::new).collect();
        Ok(self.work()?.unpack(name, passwords).await)
    }

    fn remove_archive(&mut self, _: Resource<DirHandle>, name: String) -> Told<()> {
        Ok(self.work()?.files().remove_archive(name))
    }

    async fn mux(&mut self, _: Resource<DirHandle>, video: String, audio: String, output: String) -> Told<()> {
        Ok(self.work()?.mux(video, audio, output).await)
    }

    fn drop(&mut self, handle: Resource<DirHandle>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}
