//! Script plugins: text that one component, the script engine, interprets. Every call has a fresh instance, with the
//! same restrictions as any plugin.

use std::{fmt, io::Read as _, sync::Arc};

use plugin_host::PluginFault;
use wasmtime::{Store, component::Instance};

use crate::{
    capability::{
        bindings::{exports::svc::script::script as scripting, svc::script::answer},
        state::CallState,
    },
    error::{MAX_SCRIPT_BYTES, ScriptError},
    loaded::outcome::clipped,
};

/// The engine that runs scripts, as a core module; built from its sources by a script beside it. Compressed, it is a third
/// of its size, and it is only read when the first script is loaded.
pub(crate) fn engine() -> Vec<u8> {
    const COMPRESSED: &[u8] = include_bytes!("../../../../plugins/js-runtime/js-runtime.wasm.gz");
    let mut module = Vec::new();
    let unpacked = flate2::read::GzDecoder::new(COMPRESSED).read_to_end(&mut module);
    unpacked.expect("what is embedded was packed by its build");
    module
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

/// The interfaces of a script's functions.
pub(crate) fn exports(functions: &[String]) -> Vec<String> {
    let interfaces = [
        ("resolve", "resolver"),
        ("preview", "previewer"),
        ("feed", "feed-handler"),
        ("hook", "hook-handler"),
        ("login", "login"),
    ];
    let has = |function: &str| functions.iter().any(|has| has == function);
    let exported = interfaces.into_iter().filter(|(function, _)| has(function));
    exported.map(|(_, interface)| interface.to_owned()).collect()
}
