//! The runtime as `plugin-host` knows it: its calls become ours, and what a call remembers and says goes to it.

use std::{
    fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use plugin_host::{
    BoundSecret, CallLog, Link, Listing, LogLevel, RequestLine, SecretError, Secrets, StorageError,
    runtime::{self as policy, Call, Called, Code, Interface},
};
use tokio::sync::OnceCell;
use transfer::Secret;
use url::Url;

use crate::{
    call::{CallContext, LogSink, Pending, Storage, TaskSite, Vault},
    compile::{CompileError, CompilerCommand},
    http::{Internet, InternetConfig, InternetError, Network, Profile},
    limits::Limits,
    loaded::{Loaded, Wanted},
    recording,
    runtime::{LoadError, Runtime, RuntimeConfig, StartError},
};

/// How [`LazyRuntime`] starts its runtime.
#[derive(Debug, Clone)]
pub struct LazyConfig {
    /// Where compiled plugins are kept, and beside them the key that proves that they were compiled by us.
    pub cache_folder: PathBuf,
    /// How to start the compiler.
    pub compiler: CompilerCommand,
    /// What plugins are told about this host.
    pub host_version: String,
    /// The user's language (BCP 47).
    pub locale: String,
    /// How plugins reach the network.
    pub internet: InternetConfig,
}

/// A runtime that starts with the first plugin: without plugins it costs nothing.
pub struct LazyRuntime {
    config: LazyConfig,
    started: OnceCell<Started>,
}

struct Started {
    runtime: Runtime,
    internet: Internet,
}

impl fmt::Debug for LazyRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyRuntime")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl LazyRuntime {
    /// A runtime that is started so when it is needed.
    pub fn new(config: LazyConfig) -> Self {
        Self {
            config,
            started: OnceCell::new(),
        }
    }

    async fn started(&self) -> Result<&Started, policy::LoadError> {
        let start = || async {
            let config = self.config.clone();
            let started = tokio::task::spawn_blocking(move || start(config)).await;
            started.map_err(failed)?.map_err(failed)
        };
        self.started.get_or_try_init(start).await
    }

    async fn load_guest(&self, code: Code) -> Result<Arc<dyn policy::Guest>, policy::LoadError> {
        let started = self.started().await?;
        let loaded = started.runtime.load(code.bytes.to_vec(), code.language).await?;
        Ok(Arc::new(Guest {
            loaded,
            memory_bytes: usize::try_from(code.memory_bytes).unwrap_or(usize::MAX),
            locale: self.config.locale.clone(),
            network: Arc::new(started.internet.for_plugin()),
            profile: Arc::default(),
        }))
    }
}

impl policy::Runtime for LazyRuntime {
    fn load(&self, code: Code) -> BoxFuture<'_, Result<Arc<dyn policy::Guest>, policy::LoadError>> {
        Box::pin(self.load_guest(code))
    }
}

/// Why the runtime does not start.
#[derive(Debug, thiserror::Error)]
enum LazyStartError {
    #[error("cannot use {}: {source}", path.display())]
    Key { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Runtime(#[from] StartError),
    #[error(transparent)]
    Internet(#[from] InternetError),
}

fn start(config: LazyConfig) -> Result<Started, LazyStartError> {
    let path = config.cache_folder.with_extension("key");
    let key = cache_key(&path).map_err(|source| LazyStartError::Key { path, source })?;
    Ok(Started {
        runtime: Runtime::start(RuntimeConfig {
            cache_folder: config.cache_folder,
            cache_key: key,
            compiler: config.compiler,
            host_version: config.host_version,
        })?,
        internet: Internet::new(&config.internet)?,
    })
}

/// The key in `path`; a new one, if there is none or not a whole one. Processes that start side by side have the same.
fn cache_key(path: &Path) -> io::Result<[u8; 32]> {
    let is_missing = match fs::read(path).map(<[u8; 32]>::try_from) {
        Ok(Ok(key)) => return Ok(key),
        Ok(Err(_)) => false,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(error),
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    // Nobody but its owner may read a temporary file, nor what it becomes.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&key)?;
    file.as_file().sync_all()?;
    if !is_missing {
        file.persist(path)?;
        return Ok(key);
    }
    match file.persist_noclobber(path) {
        Ok(_) => Ok(key),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => cache_key(path),
        Err(error) => Err(error.error),
    }
}

fn failed(error: impl fmt::Display) -> policy::LoadError {
    policy::LoadError::Failed(error.to_string())
}

impl From<LoadError> for policy::LoadError {
    fn from(error: LoadError) -> Self {
        let refused = |check, error: &dyn fmt::Display| Self::Refused {
            check,
            reason: error.to_string(),
        };
        match error {
            LoadError::Screen(error) => refused("screen", &error),
            LoadError::NotComponent(_) => refused("kind", &error),
            LoadError::Script(error) => refused("script", &error),
            LoadError::Compile(CompileError::Limit(limit)) => Self::CompileLimit(limit),
            LoadError::Compile(CompileError::Refused(reason)) => refused("compiler", &reason),
            LoadError::Compile(CompileError::Run { program, source }) => {
                failed(format_args!("cannot run the compiler {}: {source}", program.display()))
            }
            LoadError::Abi { interface, reason } => Self::Abi {
                interface: interface.unwrap_or_else(|| "svc:plugin".to_owned()),
                reason,
            },
            LoadError::TryOut(fault) => refused("start", &fault),
            LoadError::Host(error) => failed(error),
        }
    }
}

/// A loaded plugin, and what all its calls share.
struct Guest {
    loaded: Loaded,
    memory_bytes: usize,
    locale: String,
    network: Arc<dyn Network>,
    profile: Arc<Profile>,
}

impl Guest {
    /// What `call` says, with `limits` for its kind.
    fn prepare(&self, call: Call, limits: Limits) -> (String, CallContext, Limits) {
        let (network, ambient) = recording::around(call.world, Arc::clone(&self.network), &self.profile);
        let context = CallContext {
            settings: Arc::unwrap_or_clone(call.settings),
            locale: self.locale.clone(),
            grants: call.hosts,
            task: Some(TaskSite::new(call.given.url.clone(), call.given.request)),
            proxies: call.given.proxies,
            vault: Arc::new(call.secrets),
            profile: Arc::clone(&self.profile),
            ambient,
            network,
            storage: Arc::new(call.storage),
            log: Arc::new(call.log),
        };
        let limits = Limits {
            wall: call.wall,
            memory_bytes: self.memory_bytes,
            ..limits
        };
        (call.given.url.into(), context, limits)
    }
}

impl policy::Guest for Guest {
    fn interface(&self) -> &Interface {
        self.loaded.interface()
    }

    fn resolve(&self, call: Call, password: Option<Secret>) -> BoxFuture<'_, Called<Listing>> {
        let (url, context, limits) = self.prepare(call, Limits::resolve());
        Box::pin(async move {
            let password = password.as_ref().map(Secret::expose);
            self.loaded.resolve(&url, password, context, limits).await
        })
    }

    fn more(&self, call: Call, token: String) -> BoxFuture<'_, Called<Listing>> {
        let (url, context, limits) = self.prepare(call, Limits::resolve());
        Box::pin(async move { self.loaded.more(&url, &token, context, limits).await })
    }

    fn link_for(&self, call: Call, entry: String, variant: Option<String>) -> BoxFuture<'_, Called<Link>> {
        let (url, context, limits) = self.prepare(call, Limits::link());
        Box::pin(async move {
            let wanted = Wanted {
                url: &url,
                entry_id: &entry,
                variant_id: variant.as_deref(),
            };
            self.loaded.link(wanted, context, limits).await
        })
    }

    fn preview(&self, call: Call) -> BoxFuture<'_, Called<Listing>> {
        let (url, context, limits) = self.prepare(call, Limits::preview());
        Box::pin(async move { self.loaded.preview(&url, context, limits).await })
    }
}

/// A plugin whose secrets cannot be read now is told that there are none.
impl Vault for Secrets {
    fn find(&self, name: String) -> Pending<'_, Option<BoundSecret>> {
        Box::pin(async move { or_none(self.find(&name).await) })
    }

    fn capture(&self, name: String, value: Secret, url: Url) -> Pending<'_, Result<(), String>> {
        Box::pin(async move {
            self.capture(&name, &value, &url)
                .await
                .map_err(|error| error.to_string())
        })
    }

    fn forget(&self, name: String) -> Pending<'_, ()> {
        Box::pin(async move { or_none(self.forget(&name).await) })
    }

    fn cookies(&self) -> Pending<'_, Option<Vec<u8>>> {
        Box::pin(async move { or_none(self.cookies().await) })
    }

    fn keep_cookies(&self, cookies: Vec<u8>) -> Pending<'_, ()> {
        Box::pin(async move { or_none(self.keep_cookies(&cookies).await) })
    }
}

fn or_none<T: Default>(found: Result<T, SecretError>) -> T {
    found.unwrap_or_else(|error| {
        tracing::warn!(%error, "the secrets of a plugin cannot be used");
        T::default()
    })
}

/// A plugin that cannot be given what it remembers is told that there is nothing: it has to manage without.
impl Storage for plugin_host::Storage {
    fn get(&self, key: String) -> Pending<'_, Option<Vec<u8>>> {
        Box::pin(async move { or_nothing(self.get(&key).await) })
    }

    fn set(&self, key: String, value: Vec<u8>, lifetime: Option<Duration>) -> Pending<'_, Result<(), String>> {
        Box::pin(async move {
            let set = self.set(&key, value, lifetime).await;
            set.map_err(|error| match error {
                StorageError::Key(_) | StorageError::Value(_) | StorageError::Full { .. } => error.to_string(),
                StorageError::Write(_) | StorageError::Read(_) => {
                    tracing::warn!(%error, "a plugin's memory cannot be written");
                    "the host cannot keep it now".to_owned()
                }
            })
        })
    }

    fn remove(&self, key: String) -> Pending<'_, ()> {
        Box::pin(async move { or_nothing(self.remove(&key).await) })
    }

    fn keys(&self, prefix: String) -> Pending<'_, Vec<String>> {
        Box::pin(async move { or_nothing(self.keys(&prefix).await) })
    }
}

fn or_nothing<T: Default>(remembered: Result<T, StorageError>) -> T {
    remembered.unwrap_or_else(|error| {
        tracing::warn!(%error, "a plugin's memory cannot be read");
        T::default()
    })
}

impl LogSink for CallLog {
    fn write(&self, level: LogLevel, message: &str) {
        self.write(level, message);
    }

    fn progress(&self, done: u32, total: Option<u32>, note: &str) {
        let total = total.map(|total| format!("/{total}")).unwrap_or_default();
        self.write(LogLevel::Debug, &format!("{done}{total} {note}"));
    }

    fn exchanged(&self, line: RequestLine) {
        self.sent(line);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_key_stays_the_same_and_is_the_owner_s_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache/key");
        let key = cache_key(&path).unwrap();
        assert_eq!(cache_key(&path).unwrap(), key);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let other = folder.path().join("other/key");
        let keys = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| cache_key(&other).unwrap())).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect::<std::collections::BTreeSet<_>>()
        });
        assert_eq!(keys.len(), 1, "made side by side");
        fs::write(&path, &key[..5]).unwrap();
        assert_ne!(cache_key(&path).unwrap(), key);
    }
}
