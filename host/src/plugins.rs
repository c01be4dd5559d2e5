//! The plugins of a service: what runs their code, the process of its compiler, and where they are installed from.

mod bundled;
mod internet;

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use plugin_wasm::{CompilerCommand, InternetConfig, LazyConfig, LazyRuntime};

pub(crate) use self::internet::{Internet, proxies};

/// The first argument of a compiler's process. It is between our own processes and no command for people.
pub(crate) const COMPILE: &str = "compile-plugin";

/// The language that plugins are told unless the user has another.
const LANGUAGE: &str = "en";

/// What runs plugins; it starts with the first one, and keeps what it compiles in `cache_folder`. Its compiler is a
/// process of this executable.
pub(crate) fn sandbox(cache_folder: PathBuf, language: Option<&str>) -> anyhow::Result<LazyRuntime> {
    let program = std::env::current_exe().context("cannot find this executable")?;
    Ok(sandbox_with(cache_folder, program, language))
}

/// The same with the `svc` executable at `program` as its compiler.
pub(crate) fn sandbox_with(cache_folder: PathBuf, program: PathBuf, language: Option<&str>) -> LazyRuntime {
    LazyRuntime::new(LazyConfig {
        cache_folder,
        compiler: CompilerCommand {
            program,
            args: vec![COMPILE.into()],
        },
        host_version: env!("CARGO_PKG_VERSION").to_owned(),
        locale: language.unwrap_or(LANGUAGE).to_owned(),
        internet: InternetConfig {
            user_agent: concat!("Svc/", env!("CARGO_PKG_VERSION")).to_owned(),
            ..InternetConfig::default()
        },
    })
}

/// The market of a daemon: our own plugins, and the Internet.
pub(crate) fn market() -> plugin_host::market::Config {
    plugin_host::market::Config {
        origins: Arc::new(Internet),
        bundled: bundled::BUNDLED,
    }
}
