//! The runtime that starts with the first plugin.

use std::{
    fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use confined::OwnCommand;
use futures_util::future::BoxFuture;
use plugin_host::runtime::{self as policy, Code};
use tokio::sync::OnceCell;

use crate::{
    error::StartError,
    guest::Guest,
    http::{Internet, InternetConfig, InternetError},
    runtime::{Runtime, RuntimeConfig},
};

/// How [`LazyRuntime`] starts its runtime.
#[derive(Debug, Clone)]
pub struct LazyConfig {
    /// The cache of compiled plugins, with the key that authenticates them.
    pub cache_folder: PathBuf,
    pub compiler: OwnCommand,
    pub host_version: String,
    /// The user's language (BCP 47).
    pub locale: String,
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
    /// Creates a runtime that starts on first use.
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
            profiles: Arc::default(),
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

/// Reads the key at `path`, or creates one if it is missing or damaged. Concurrently starting processes get the same.
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
    // Temporary files are private to their owner, and stay so when renamed.
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
