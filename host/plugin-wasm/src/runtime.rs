//! Loads plugins: screens, compiles and links them.

use std::{fmt, path::PathBuf, sync::Arc};

use plugin_host::runtime::{Interface, Language};
use tokio::sync::{OnceCell, Semaphore};
use wasmparser::Parser;
use wasmtime::{
    Engine,
    component::{Component, HasSelf, Linker},
};

use crate::{
    capability::{
        bindings::{
            Sandbox,
            exports::svc::{
                plugin::{feed_handler, hook_handler, login, post_processor, previewer, resolver},
                script::script as scripting,
            },
        },
        state::CallState,
    },
    code::{
        cache::{Cache, Code, ContentHash},
        compile::compile,
        interface,
        screen::{Kind, screen},
    },
    engine::{self, Machine, SharedState, Ticker},
    error::{LoadError, StartError},
    limits::meter::Share,
    loaded::{
        Guest, Loaded,
        script::{self, Script},
    },
};
use confined::OwnCommand;

/// Concurrent searches of long texts.
const SEARCHES: usize = 2;

/// Memory of all calls together: enough for thirty-two at their limit.
const ALL_MEMORY_BYTES: usize = 2 << 30;

/// Configuration of a runtime.
#[derive(Clone)]
pub struct RuntimeConfig {
    pub cache_folder: PathBuf,
    /// Authenticates cached code. It must be secret and must not change.
    pub cache_key: [u8; 32],
    pub compiler: OwnCommand,
    pub host_version: String,
}

impl fmt::Debug for RuntimeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeConfig")
            .field("cache_folder", &self.cache_folder)
            .field("compiler", &self.compiler)
            .finish_non_exhaustive()
    }
}

/// Runs plugins. Clones share everything.
#[derive(Debug, Clone)]
pub struct Runtime(Arc<Shared>);

struct Shared {
    machine: Machine,
    linker: Linker<CallState>,
    cache: Cache,
    compiler: OwnCommand,
    /// Serializes loading.
    loading: Semaphore,
    /// The script engine, loaded with the first script and shared.
    scripting: OnceCell<Arc<Guest>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Starts a runtime. It ends with its last clone and the last plugin that it loaded.
    pub fn start(config: RuntimeConfig) -> Result<Self, StartError> {
        let failed = |error: wasmtime::Error| StartError::Engine(format!("{error:#}"));
        let engine = engine::runner().map_err(failed)?;
        let linker = linker(&engine).map_err(failed)?;
        Ok(Self(Arc::new(Shared {
            machine: Machine {
                ticker: Arc::new(Ticker::start(engine.weak()).map_err(StartError::Thread)?),
                shared: Arc::new(SharedState {
                    version: config.host_version,
                    memory: Share::of(ALL_MEMORY_BYTES),
                    searches: Arc::new(Semaphore::new(SEARCHES)),
                }),
                engine: engine.clone(),
            },
            cache: Cache::new(&config.cache_folder, &config.cache_key, &engine),
            compiler: config.compiler,
            loading: Semaphore::new(1),
            scripting: OnceCell::new(),
            linker,
        })))
    }

    /// Loads a plugin from its bytes. On the first load, it is compiled in a separate process.
    pub async fn load(&self, bytes: Vec<u8>, language: Language) -> Result<Loaded, LoadError> {
        let _turn = self.0.loading.acquire().await.expect("it is never closed");
        let loaded = match language {
            Language::Component => self.load_code(bytes, Form::Component).await?,
            Language::CoreModule => self.load_code(bytes, Form::CoreModule).await?,
            Language::Script => self.load_script(bytes).await?,
        };
        loaded.evict_code();
        Ok(loaded)
    }

    async fn load_code(&self, bytes: Vec<u8>, form: Form) -> Result<Loaded, LoadError> {
        let guest = self.guest(bytes, form).await?;
        Loaded::of_component(self.0.machine.clone(), Arc::new(guest)).await
    }

    async fn load_script(&self, bytes: Vec<u8>) -> Result<Loaded, LoadError> {
        let script = Script::new(bytes)?;
        let engine = || async {
            let engine = self.guest(script::engine(), Form::CoreModule).await;
            engine.map(Arc::new)
        };
        let engine = self.0.scripting.get_or_try_init(engine).await?;
        Loaded::of_script(self.0.machine.clone(), Arc::clone(engine), script).await
    }

    /// Compiles and links `bytes`.
    async fn guest(&self, bytes: Vec<u8>, form: Form) -> Result<Guest, LoadError> {
        let runtime = self.clone();
        // Cached code is linked in the same step: each step may run on another thread, whose allocator then keeps what
        // the step needed besides its result.
        let (hash, found) = blocking(move || {
            let hash = ContentHash::of(&bytes);
            // Cached code was screened before it was compiled.
            let may_be_cached = form == Form::CoreModule || Parser::is_component(&bytes);
            let found = match may_be_cached.then(|| runtime.0.cache.load(hash)).flatten() {
                Some(code) => Found::Cached(runtime.link(&code, hash)?),
                None => Found::Component(component(bytes, form)?),
            };
            Ok::<_, LoadError>((hash, found))
        })
        .await??;
        let bytes = match found {
            Found::Cached(guest) => return Ok(guest),
            Found::Component(bytes) => bytes,
        };
        let code = self.compile(&bytes, hash).await?;
        let runtime = self.clone();
        blocking(move || runtime.link(&code, hash)).await?
    }

    /// Compiles a plugin that is not cached, or waits for another process that compiles it.
    async fn compile(&self, bytes: &[u8], hash: ContentHash) -> Result<Code, LoadError> {
        let _turn = self.0.cache.compile_lock(hash).await;
        let shared = self.0.clone();
        if let Some(code) = blocking(move || shared.cache.load(hash)).await? {
            return Ok(code);
        }
        let code = compile(&self.0.compiler, bytes).await?;
        let shared = self.0.clone();
        blocking(move || {
            if let Err(error) = shared.cache.store(hash, &code) {
                tracing::warn!(%error, "cannot keep a compiled plugin; it will be compiled again");
                return Code::Bytes(code);
            }
            shared.cache.load(hash).unwrap_or(Code::Bytes(code))
        })
        .await
    }

    /// The component that code is, and whether it is mapped from its file.
    #[expect(
        unsafe_code,
        reason = "deserialised code is native code; this is what the compiler wrote, proved by the cache's tag"
    )]
    fn component(&self, code: &Code) -> wasmtime::Result<(Component, bool)> {
        let engine = &self.0.machine.engine;
        let file = match code {
            // SAFETY: they came out of our compiler's process just now, or the cache has checked their tag in memory.
            Code::Bytes(bytes) => return Ok((unsafe { Component::deserialize(engine, bytes) }?, false)),
            Code::File(file) => file,
        };
        // SAFETY: the cache has checked the tag of this very file, which nobody changes.
        let mapped = unsafe { Component::deserialize_file(engine, Code::path(file)) };
        mapped.map(|component| (component, true)).or_else(|error| {
            tracing::debug!(%error, "compiled code cannot run from its file; it is copied");
            // SAFETY: as above.
            let copied = unsafe { Component::deserialize(engine, Code::copied(file)?) };
            Ok((copied?, false))
        })
    }

    fn link(&self, code: &Code, hash: ContentHash) -> Result<Guest, LoadError> {
        let engine = &self.0.machine.engine;
        let (component, is_mapped) = self.component(code).map_err(|error| LoadError::abi(None, &error))?;
        let interface = interface::of(engine, &component);
        let pre = self
            .0
            .linker
            .instantiate_pre(&component)
            .map_err(|error| LoadError::abi(interface::unknown_import(engine, &component), &error))?;
        let resolver = indices(&interface, "resolver", || resolver::GuestIndices::new(&pre))?;
        let feed = indices(&interface, "feed-handler", || feed_handler::GuestIndices::new(&pre))?;
        let hook = indices(&interface, "hook-handler", || hook_handler::GuestIndices::new(&pre))?;
        let post = indices(&interface, "post-processor", || post_processor::GuestIndices::new(&pre))?;
        let login = indices(&interface, "login", || login::GuestIndices::new(&pre))?;
        let previewer = indices(&interface, "previewer", || previewer::GuestIndices::new(&pre))?;
        Ok(Guest {
            script: scripting::GuestIndices::new(&pre).ok(),
            pre,
            resolver,
            previewer,
            feed,
            hook,
            post,
            login,
            hash,
            interface,
            is_mapped,
        })
    }
}

/// The accepted forms of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Component,
    /// A component, or a core module to be converted.
    CoreModule,
}

/// A linked plugin, or one that is not compiled yet.
#[expect(clippy::large_enum_variant, reason = "one at a time")]
enum Found {
    Cached(Guest),
    Component(Vec<u8>),
}

/// Runs long work on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LoadError> {
    tokio::task::spawn_blocking(work).await.map_err(LoadError::Host)
}

/// Converts a core module to a component; a component is returned unchanged.
pub fn componentise(code: Vec<u8>) -> Result<Vec<u8>, LoadError> {
    component(code, Form::CoreModule)
}

/// The component of `bytes`, converted if `form` allows.
fn component(bytes: Vec<u8>, form: Form) -> Result<Vec<u8>, LoadError> {
    let off = engine::features_off();
    let kind = screen(&bytes, off)?;
    match (form, kind) {
        (_, Kind::Component) => Ok(bytes),
        (Form::Component, Kind::Module) => Err(LoadError::NotComponent("it is a core module".to_owned())),
        (Form::CoreModule, Kind::Module) => {
            let encoded = wit_component::ComponentEncoder::default()
                .module(&bytes)
                .and_then(|mut encoder| encoder.encode())
                .map_err(|error| LoadError::NotComponent(format!("{error:#}")))?;
            screen(&encoded, off)?;
            Ok(encoded)
        }
    }
}

fn linker(engine: &Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    Sandbox::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    Ok(linker)
}

/// The functions of an interface that the plugin exports.
fn indices<T>(
    interface: &Interface,
    name: &str,
    find: impl FnOnce() -> wasmtime::Result<T>,
) -> Result<Option<T>, LoadError> {
    let is_exported = interface.exports.iter().any(|export| export == name);
    let found = is_exported.then(find).transpose();
    found.map_err(|error| LoadError::abi(Some(name.to_owned()), &error))
}
