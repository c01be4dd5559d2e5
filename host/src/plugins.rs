//! Plugin support of a service: sandbox, compiler process, and market.

mod bundled;
mod internet;

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use plugin_wasm::{CompilerCommand, InternetConfig, LazyConfig, LazyRuntime};

pub(crate) use self::internet::{Internet, proxies};

/// The first argument of a compiler process; internal, therefore not a documented command.
pub(crate) const COMPILE: &str = "compile-plugin";

/// The default language of plugins.
const LANGUAGE: &str = "en";

/// The lazily started sandbox, which caches compiled code in `cache_folder`. Its compiler is a child process of this
/// executable.
pub(crate) fn sandbox(cache_folder: PathBuf, language: Option<&str>) -> anyhow::Result<LazyRuntime> {
    let program = std::env::current_exe().context("cannot find this executable")?;
    Ok(sandbox_with(cache_folder, program, language))
}

/// Like [`sandbox`], with the `svc` executable at `program` as the compiler.
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
            user_agent: egress::USER_AGENT.to_owned(),
            ..InternetConfig::default()
        },
    })
}

/// The market configuration of a daemon: bundled plugins, and sources on the Internet.
pub(crate) fn market() -> plugin_host::market::Config {
    plugin_host::market::Config {
        origins: Arc::new(Internet),
        bundled: bundled::BUNDLED,
    }
}
