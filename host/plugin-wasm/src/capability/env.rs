//! The environment of the call. All time and randomness of a guest come from here.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};

use super::FEATURES;
use plugin_host::PluginFault;

use crate::{
    call::Ambient,
    capability::{bindings::svc::plugin::env, state::CallState},
};

/// The most random bytes given at once.
const MAX_RANDOM_BYTES: u32 = 1024;

impl env::Host for CallState {
    fn now_ms(&mut self) -> wasmtime::Result<u64> {
        Ok(match self.context.ambient {
            Ambient::System => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
            }
            Ambient::Fixed { now_ms, .. } => now_ms,
        })
    }

    fn monotonic_ms(&mut self) -> wasmtime::Result<u64> {
        Ok(match self.context.ambient {
            Ambient::System => u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            Ambient::Fixed { .. } => 0,
        })
    }

    fn random(&mut self, len: u32) -> wasmtime::Result<Vec<u8>> {
        if len > MAX_RANDOM_BYTES {
            let kind = format!("it asked for {len} random bytes at once; the limit is {MAX_RANDOM_BYTES}");
            let frames = Vec::new();
            return Err(PluginFault::Trap { kind, frames }.into());
        }
        let mut bytes = vec![0; len as usize];
        match self.context.ambient {
            Ambient::System => getrandom::fill(&mut bytes).map_err(|error| wasmtime::format_err!("{error}"))?,
            Ambient::Fixed { seed, .. } => {
                for chunk in bytes.chunks_mut(SHA256.output_len()) {
                    let block = [seed.to_le_bytes(), self.random_blocks.to_le_bytes()].concat();
                    self.random_blocks += 1;
                    chunk.copy_from_slice(&digest(&SHA256, &block).as_ref()[..chunk.len()]);
                }
            }
        }
        Ok(bytes)
    }

    fn locale(&mut self) -> wasmtime::Result<String> {
        Ok(self.context.locale.clone())
    }

    fn host_version(&mut self) -> wasmtime::Result<String> {
        Ok(self.shared.version.clone())
    }

    fn setting(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.context.settings.get(&key).cloned())
    }

    fn has_feature(&mut self, name: String) -> wasmtime::Result<bool> {
        Ok(FEATURES.contains(&name.as_str()))
    }

    fn time_left_ms(&mut self) -> wasmtime::Result<u32> {
        Ok(u32::try_from(self.time_left().as_millis()).unwrap_or(u32::MAX))
    }
}
