//! A runtime in a temporary folder, and everything around a call.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use plugin_host::{Grants, LogLevel, RequestLine, runtime::Language};
use plugin_wasm::{
    Ambient, CallContext, CompilerCommand, Internet, InternetConfig, Loaded, LogSink, Pending, Runtime, RuntimeConfig,
    Storage,
};
use tempfile::TempDir;

pub(crate) struct Rig {
    pub(crate) runtime: Runtime,
    pub(crate) folder: TempDir,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_compile-plugin"));
        Self::with_compiler(program, &[])
    }

    pub(crate) fn with_compiler(program: PathBuf, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = runtime(folder.path(), program, args);
        Self { runtime, folder }
    }

    /// Another runtime on the same folder.
    pub(crate) fn restarted(&self, program: &str) -> Runtime {
        self.restarted_with(program, &[])
    }

    /// The same, whose compiler is told this.
    pub(crate) fn restarted_with(&self, program: &str, args: &[&str]) -> Runtime {
        runtime(self.folder.path(), program.into(), args)
    }

    pub(crate) async fn load(&self, bytes: Vec<u8>) -> Loaded {
        self.runtime.load(bytes, Language::Component).await.unwrap()
    }
}

/// A runtime whose compiled code stays: the engine of scripts is compiled once for all tests.
pub(crate) fn scripts() -> Runtime {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scripts");
    runtime(&folder, env!("CARGO_BIN_EXE_compile-plugin").into(), &[])
}

fn runtime(folder: &Path, program: PathBuf, args: &[&str]) -> Runtime {
    Runtime::start(RuntimeConfig {
        cache_folder: folder.to_owned(),
        cache_key: [7; 32],
        compiler: CompilerCommand {
            program,
            args: args.iter().map(Into::into).collect(),
        },
        host_version: "0.1.0".to_owned(),
    })
    .unwrap()
}

/// A context that grants nothing, and its log.
pub(crate) fn context() -> (CallContext, Arc<Log>) {
    let log = Arc::new(Log::default());
    let context = CallContext {
        settings: BTreeMap::new(),
        locale: "en".to_owned(),
        grants: Grants::default(),
        ambient: Ambient::System,
        network: Arc::new(Internet::new(&InternetConfig::default()).unwrap()),
        storage: Arc::new(Memory::default()),
        log: log.clone(),
        ..CallContext::isolated()
    };
    (context, log)
}

/// What plugins said.
#[derive(Debug, Default)]
pub(crate) struct Log(pub(crate) Mutex<Vec<String>>);

impl LogSink for Log {
    fn write(&self, level: LogLevel, message: &str) {
        self.0.lock().unwrap().push(format!("{level:?}: {message}"));
    }

    fn progress(&self, done: u32, _: Option<u32>, note: &str) {
        self.0.lock().unwrap().push(format!("{done} {note}"));
    }

    fn exchanged(&self, line: RequestLine) {
        self.0.lock().unwrap().push(format!("{} {}", line.method, line.address));
    }
}

/// A storage that forgets when the test ends.
#[derive(Debug, Default)]
struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Storage for Memory {
    fn get(&self, key: String) -> Pending<'_, Option<Vec<u8>>> {
        Box::pin(async move { self.0.lock().unwrap().get(&key).cloned() })
    }

    fn set(&self, key: String, value: Vec<u8>, _: Option<Duration>) -> Pending<'_, Result<(), String>> {
        Box::pin(async move {
            self.0.lock().unwrap().insert(key, value);
            Ok(())
        })
    }

    fn remove(&self, key: String) -> Pending<'_, ()> {
        Box::pin(async move {
            self.0.lock().unwrap().remove(&key);
        })
    }

    fn keys(&self, prefix: String) -> Pending<'_, Vec<String>> {
        Box::pin(async move {
            let values = self.0.lock().unwrap();
            values.keys().filter(|key| key.starts_with(&prefix)).cloned().collect()
        })
    }
}
