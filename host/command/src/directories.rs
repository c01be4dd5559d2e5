//! Default directories.

use std::path::{Path, PathBuf};

/// The data directory that all processes of this user share: `$XDG_DATA_HOME/svc` or the system's equivalent. None
/// without a home directory.
pub fn data() -> Option<PathBuf> {
    dirs::data_local_dir().map(|dir| dir.join("svc"))
}

/// The agent's part of a data directory.
pub fn agent(data: &Path) -> PathBuf {
    data.join("agent")
}

/// The daemon's cache of compiled plugins; may be deleted.
pub fn compiled_plugins(data: &Path) -> PathBuf {
    data.join("plugins").join("cache")
}

/// The daemon's metainfo files and records of torrents.
pub fn torrents(data: &Path) -> PathBuf {
    data.join("torrents")
}

/// The cache of compiled plugins of the author commands; may be deleted.
pub fn author_cache() -> Option<PathBuf> {
    dirs::cache_dir().map(|dir| dir.join("svc").join("plugins"))
}

/// The configuration of the client commands: `$XDG_CONFIG_HOME/svc/config.json` or the system's equivalent.
pub fn client_file() -> Option<PathBuf> {
    configuration().map(|dir| dir.join("svc").join("config.json"))
}

/// What programs of the user's desktop share: `$XDG_DATA_HOME` or the system's equivalent.
pub fn shared_data() -> Option<PathBuf> {
    dirs::data_dir()
}

/// The configuration of the user's desktop: `$XDG_CONFIG_HOME` or the system's equivalent.
pub fn configuration() -> Option<PathBuf> {
    dirs::config_dir()
}

/// The user's home directory.
pub fn home() -> Option<PathBuf> {
    dirs::home_dir()
}

/// The user's download directory, else the current directory.
pub fn downloads() -> PathBuf {
    let home = || home().map(|home| home.join("Downloads"));
    dirs::download_dir().or_else(home).unwrap_or_else(|| PathBuf::from("."))
}
