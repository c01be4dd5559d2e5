//! Plugins that are scripts: text, handed to the one component that runs all of them. In every call it is a fresh instance,
//! which can do what any plugin can do and nothing else.

use std::{fmt, sync::Arc};

use plugin_host::PluginFault;
use transfer::ByteCount;
use wasmtime::{Store, component::Instance};

use crate::{
    bindings::{exports::svc::script::script as scripting, svc::script::answer},
    outcome::clipped,
    state::CallState,
};

/// The engine that runs scripts, as a core module; built from its sources by a script beside it.
pub(crate) const ENGINE: &[u8] = include_bytes!("../../../plugins/js-runtime/js-runtime.wasm");

/// The largest script. It is read in every call; a megabyte takes some 20 ms.
pub const MAX_SCRIPT_BYTES: usize = 1024 * 1024;

/// Why a text is not a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It is too long.
    #[error("it is longer than {}", ByteCount(MAX_SCRIPT_BYTES as u64))]
    TooLong,
    /// It is no text.
    #[error("it is not UTF-8")]
    NotText,
    /// It cannot be parsed, or its top level fails.
    #[error("{}", place(*line, *column, message))]
    Mistake {
        /// What is wrong.
        message: String,
        /// In which line, from 1.
        line: Option<u32>,
        /// In which column, from 1.
        column: Option<u32>,
    },
}

fn place(line: Option<u32>, column: Option<u32>, message: &str) -> String {
    let number = |number: Option<u32>| number.map(|number| format!(":{number}")).unwrap_or_default();
    format!("plugin.js{}{}: {message}", number(line), number(column))
}

impl From<scripting::Mistake> for ScriptError {
    fn from(mistake: scripting::Mistake) -> Self {
        Self::Mistake {
            message: mistake.message,
            line: mistake.line,
            column: mistake.column,
        }
    }
}

impl answer::Host for CallState {
    fn unusable(&mut self, reason: String) -> wasmtime::Result<()> {
        let (field, reason) = ("answer", clipped(reason));
        Err(PluginFault::InvalidOutput { field, reason }.into())
    }
}

/// A plugin's script.
#[derive(Clone)]
pub(crate) struct Script(Arc<str>);

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({} bytes)", self.0.len())
    }
}

impl Script {
    pub(crate) fn new(bytes: Vec<u8>) -> Result<Self, ScriptError> {
        if bytes.len() > MAX_SCRIPT_BYTES {
            return Err(ScriptError::TooLong);
        }
        let text = String::from_utf8(bytes).map_err(|_| ScriptError::NotText)?;
        Ok(Self(text.into()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Hands the script to a fresh instance of its engine; answers with its functions.
    pub(crate) async fn hand_over(
        &self,
        engine: &scripting::GuestIndices,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> wasmtime::Result<Result<Vec<String>, ScriptError>> {
        let engine = engine.load(&mut *store, instance)?;
        let handed_over = engine.call_load(store, &self.0).await?;
        Ok(handed_over.map_err(ScriptError::from))
    }
}

/// The interfaces that stand for a script's functions.
pub(crate) fn exports(functions: &[String]) -> Vec<String> {
    let interfaces = [("resolve", "resolver"), ("preview", "previewer")];
    let has = |function: &str| functions.iter().any(|has| has == function);
    let exported = interfaces.into_iter().filter(|(function, _)| has(function));
    exported.map(|(_, interface)| interface.to_owned()).collect()
}
