//! Plugin support of a service: sandbox, compiler process, and market.

mod bundled;
mod internet;

use std::{path::PathBuf, sync::Arc};

use plugin_wasm::{CompilerCommand, InternetConfig, LazyConfig, LazyRuntime};

pub(crate) use self::internet::{Internet, proxies};

/// The first argument of a compiler process; internal, therefore not a documented command.
pub(crate) const COMPILE: &str = "compile-plugin";

/// The default language of plugins.
const LANGUAGE: &str = "en";

/// The lazily started sandbox, which caches compiled code in `cache_folder`. Its compiler is a process of the `svc`
/// executable at `program`.
pub(crate) fn sandbox(cache_folder: PathBuf, program: PathBuf, language: Option<&str>) -> LazyRuntime {
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
