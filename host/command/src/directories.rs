//! Where things are on this machine unless somebody says otherwise.

use std::path::{Path, PathBuf};

/// The data directory that everybody of this user shares: `$XDG_DATA_HOME/svc` or what the system has in its place.
/// None where there is neither that nor a home.
pub fn data() -> Option<PathBuf> {
    dirs::data_local_dir().map(|dir| dir.join("svc"))
}

/// The agent's part of a data directory.
pub fn agent(data: &Path) -> PathBuf {
    data.join("agent")
}

/// Where the daemon keeps what the compiler made of plugins; it may be thrown away.
pub fn compiled_plugins(data: &Path) -> PathBuf {
    data.join("plugins").join("cache")
}

/// Where the commands for authors of plugins keep what the compiler made; it may be thrown away.
pub fn author_cache() -> Option<PathBuf> {
    dirs::cache_dir().map(|dir| dir.join("svc").join("plugins"))
}

/// What the commands that talk to a service know of it: `$XDG_CONFIG_HOME/svc/config.json`, or what the system has in
/// its place.
pub fn client_file() -> Option<PathBuf> {
    dirs::config_dir().map(|dir| dir.join("svc").join("config.json"))
}

/// Where downloads go: the user's directory for them, else where we stand.
pub fn downloads() -> PathBuf {
    let home = || dirs::home_dir().map(|home| home.join("Downloads"));
    dirs::download_dir().or_else(home).unwrap_or_else(|| PathBuf::from("."))
}
