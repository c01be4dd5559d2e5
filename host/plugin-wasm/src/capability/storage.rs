//! The storage interface of plugins.

use std::time::Duration;

use crate::capability::{bindings::svc::plugin::storage, state::CallState};

impl storage::Host for CallState {
    async fn get(&mut self, key: String) -> wasmtime::Result<Option<Vec<u8>>> {
        Ok(self.context.storage.get(key).await)
    }

    async fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
        ttl_seconds: Option<u32>,
    ) -> wasmtime::Result<Result<(), String>> {
        let lifetime = ttl_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        Ok(self.context.storage.set(key, value, lifetime).await)
    }

    async fn remove(&mut self, key: String) -> wasmtime::Result<()> {
        self.context.storage.remove(key).await;
        Ok(())
    }

    async fn keys(&mut self, prefix: String) -> wasmtime::Result<Vec<String>> {
        Ok(self.context.storage.keys(prefix).await)
    }
}
