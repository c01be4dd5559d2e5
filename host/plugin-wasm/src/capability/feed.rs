//! The sink that a feed plugin fills in.

use wasmtime::component::Resource;

use crate::{
    capability::{bindings::svc::plugin::feed_sink, state::CallState},
    feed::{ItemRef, SinkHandle},
};

impl feed_sink::Host for CallState {}

impl feed_sink::HostSink for CallState {
    fn title(&mut self, _: Resource<SinkHandle>, s: String) -> wasmtime::Result<()> {
        Ok(self.feed.set_title(s)?)
    }

    fn etag(&mut self, _: Resource<SinkHandle>, s: String) -> wasmtime::Result<()> {
        Ok(self.feed.set_etag(s)?)
    }

    fn add(
        &mut self,
        _: Resource<SinkHandle>,
        guid: String,
        title: String,
        link: String,
    ) -> wasmtime::Result<Resource<ItemRef>> {
        let item = self.feed.add(guid, title, &link)?;
        Ok(self.table.push(item)?)
    }

    fn ttl_seconds(&mut self, _: Resource<SinkHandle>, n: u32) -> wasmtime::Result<()> {
        self.feed.set_ttl(n);
        Ok(())
    }

    fn drop(&mut self, handle: Resource<SinkHandle>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}

impl feed_sink::HostItem for CallState {
    fn published_ms(&mut self, item: Resource<ItemRef>, t: u64) -> wasmtime::Result<()> {
        let at = *self.table.get(&item)?;
        self.feed.item_mut(at).published_ms = Some(t);
        Ok(())
    }

    fn summary(&mut self, item: Resource<ItemRef>, s: String) -> wasmtime::Result<()> {
        let at = *self.table.get(&item)?;
        Ok(self.feed.set_summary(at, s)?)
    }

    fn size(&mut self, item: Resource<ItemRef>, bytes: u64) -> wasmtime::Result<()> {
        let at = *self.table.get(&item)?;
        self.feed.item_mut(at).size = Some(bytes);
        Ok(())
    }

    fn enclosure(&mut self, item: Resource<ItemRef>, url: String, media_type: String) -> wasmtime::Result<()> {
        let at = *self.table.get(&item)?;
        Ok(self.feed.set_enclosure(at, &url, media_type)?)
    }

    fn infohash(&mut self, item: Resource<ItemRef>, hex: String) -> wasmtime::Result<()> {
        let at = *self.table.get(&item)?;
        Ok(self.feed.set_infohash(at, &hex)?)
    }

    fn resolve_with_plugin(&mut self, item: Resource<ItemRef>, b: bool) -> wasmtime::Result<()> {
        let at = *self.table.get(&item)?;
        self.feed.item_mut(at).resolve_with_plugin = b;
        Ok(())
    }

    fn drop(&mut self, item: Resource<ItemRef>) -> wasmtime::Result<()> {
        self.table.delete(item)?;
        Ok(())
    }
}
