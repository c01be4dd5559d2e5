//! What runs the code of plugins in a daemon, and the process of its compiler.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use plugin_wasm::{CompilerCommand, InternetConfig, LazyConfig, LazyRuntime};

use super::host::Places;
use crate::{directories, environment::Environment};

/// The first argument of a compiler's process. It is between our own processes and no command for people.
pub(super) const COMPILE: &str = "compile-plugin";

/// What plugins are told as the user's language unless the environment says otherwise.
const LANGUAGE: &str = "en";

/// The runtime of a daemon. It starts with the first plugin.
pub(super) fn runtime(places: &Places, environment: &Environment) -> anyhow::Result<Arc<LazyRuntime>> {
    Ok(Arc::new(runtime_in(
        directories::compiled_plugins(&places.data),
        environment,
    )?))
}

/// A runtime that keeps what it compiles in `cache_folder`.
pub(super) fn runtime_in(cache_folder: PathBuf, environment: &Environment) -> anyhow::Result<LazyRuntime> {
    Ok(LazyRuntime::new(LazyConfig {
        cache_folder,
        compiler: CompilerCommand {
            program: std::env::current_exe().context("cannot find this executable")?,
            args: vec![COMPILE.into()],
        },
        host_version: env!("CARGO_PKG_VERSION").to_owned(),
        locale: environment.language.clone().unwrap_or_else(|| LANGUAGE.to_owned()),
        internet: InternetConfig {
            user_agent: concat!("Svc/", env!("CARGO_PKG_VERSION")).to_owned(),
            ..InternetConfig::default()
        },
    }))
}
