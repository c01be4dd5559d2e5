//! Errors of loading plugins and starting the runtime.

use std::io;

use plugin_host::PluginFault;
use tokio::task::JoinError;
use transfer::ByteCount;

use crate::code::{compile::CompileError, screen::ScreenError};

/// The largest script. It is read in every call; a megabyte takes some 20 ms.
pub const MAX_SCRIPT_BYTES: usize = 1024 * 1024;

/// Why the runtime does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("plugins cannot run on this machine: {0}")]
    Engine(String),
    #[error("cannot start the thread that counts the time of plugins")]
    Thread(#[source] io::Error),
}

/// Why a plugin was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Screen(#[from] ScreenError),
    /// A core module, where only components are accepted, or one that does not match the contract.
    #[error("it is not a component: {0}")]
    NotComponent(String),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error("it does not fit this host: {reason}")]
    Abi {
        /// The interface that does not fit, where one can be named.
        interface: Option<String>,
        reason: String,
    },
    #[error("it does not start")]
    TryOut(#[from] PluginFault),
    /// The host failed; the plugin is not to blame.
    #[error("the host failed while loading it")]
    Host(#[source] JoinError),
}

impl LoadError {
    pub(crate) fn abi(interface: Option<String>, error: &wasmtime::Error) -> Self {
        let reason = format!("{error:#}");
        Self::Abi { interface, reason }
    }
}

/// Why a text is not a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("it is longer than {}", ByteCount(MAX_SCRIPT_BYTES as u64))]
    TooLong,
    #[error("it is not UTF-8")]
    NotText,
    #[error("{}", with_position(*line, *column, message))]
    Mistake {
        message: String,
        /// In which line, from 1.
        line: Option<u32>,
        /// In which column, from 1.
        column: Option<u32>,
    },
}

fn with_position(line: Option<u32>, column: Option<u32>, message: &str) -> String {
    let number = |number: Option<u32>| number.map(|number| format!(":{number}")).unwrap_or_default();
    format!("plugin.js{}{}: {message}", number(line), number(column))
}
