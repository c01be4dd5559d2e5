//! The settings file: readable by its owner only, because it holds the access key, and replaced whole at each change.
//!
//! A lock file keeps a second agent out. It also says where the agent listens, with a pass that the commands of the
//! same user authenticate with.

use std::{
    fs::{File, Permissions},
    io::{self, Read as _},
    net::SocketAddr,
    os::unix::fs::{FileExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use private_files::{FileError, Lock};
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    access::key::{AccessKey, KeyDigest, NoRandom},
    settings::{
        config::{Config, Edition},
        switches::{PatchError, STORED_VERSION, Settings},
    },
};

const SETTINGS_FILE: &str = "settings.json";
const LOCK_FILE: &str = "agent.lock";

/// Only the owner may read the lock file, because it holds the pass, which is as good as the access key.
const SECRET_MODE: u32 = 0o600;

/// Why an agent's directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory or a file in it cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another agent uses it.
    #[error("{} is in use by another agent{}", path.display(), holder.process.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Who holds it.
        holder: Holder,
    },
    /// The settings file is not valid.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A newer version wrote the settings.
    #[error("{} was written by a newer version (format {found}, this version reads {STORED_VERSION})", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// The system has no random numbers for a key.
    #[error(transparent)]
    NoRandom(#[from] NoRandom),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    #[error(transparent)]
    Refused(#[from] PatchError),
    /// Another client set a key first.
    #[error("there is a key already")]
    KeyExists,
    #[error("the settings could not be stored")]
    NotStored(#[from] FileError),
}

/// Owns the settings. Changes are serialized and stored before readers see them.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    /// `None` keeps everything in memory.
    directory: Option<LockedDirectory>,
    edition: Edition,
    settings: watch::Sender<Arc<Settings>>,
    /// Serialises changes. Held across a write to the disk, so only on threads that may block.
    changing: Mutex<()>,
    pass: AccessKey,
}

#[derive(Debug)]
struct LockedDirectory {
    path: PathBuf,
    /// Held as long as the agent lives; contains a [`Holder`].
    lock: Arc<File>,
}

impl SettingsFile {
    /// Opens or creates the directory. Blocks.
    pub(crate) fn open(config: &Config) -> Result<Self, DirectoryError> {
        let pass = AccessKey::random()?;
        let Some(path) = config.directory.clone() else {
            let mut settings = Settings::fresh(config.edition).started(config.edition, config.preset_key.clone())?;
            settings.cors = config.allows_any_origin;
            return Ok(Self::new(None, config.edition, settings, pass));
        };
        private_files::make_directory(&path)?;
        let lock = Arc::new(lock(&path, &pass)?);
        let stored = read(&path, config.edition)?;
        let settings = stored
            .clone()
            .or_else(|| Settings::imported(config.edition, &config.older))
            .unwrap_or_else(|| Settings::fresh(config.edition))
            .started(config.edition, config.preset_key.clone())?;
        // Stores imported settings in the current format at once, so that the key remains in no other file.
        // A disk that is full does not keep the service from starting, so that downloads can be deleted.
        if stored.as_ref() != Some(&settings) {
            write(&path, &settings)?;
        }
        let directory = LockedDirectory { path, lock };
        Ok(Self::new(Some(directory), config.edition, settings, pass))
    }

    fn new(directory: Option<LockedDirectory>, edition: Edition, settings: Settings, pass: AccessKey) -> Self {
        Self {
            directory,
            edition,
            settings: watch::Sender::new(Arc::new(settings)),
            changing: Mutex::new(()),
            pass,
        }
    }

    /// The digest of the pass with which programs of the same user authenticate: random at every start, and readable in
    /// the lock file.
    pub(crate) fn pass(&self) -> KeyDigest {
        self.pass.digest()
    }

    /// Writes the address of the listener into the lock file; `None` once it is closed, because another program may
    /// take the port and would be sent the pass.
    pub(crate) async fn publish_address(&self, address: Option<SocketAddr>) -> Result<(), DirectoryError> {
        let Some(LockedDirectory { path, lock }) = &self.directory else {
            return Ok(());
        };
        let (lock, path) = (Arc::clone(lock), path.join(LOCK_FILE));
        let mut holder = Holder::this(&self.pass);
        holder.address = address;
        let write = move || holder.write(&lock);
        let written = tokio::task::spawn_blocking(write).await;
        let written = written.expect("writing neither panics nor is aborted");
        Ok(written.map_err(FileError::at("write", path))?)
    }

    pub(crate) fn edition(&self) -> Edition {
        self.edition
    }

    pub(crate) fn current(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    pub(crate) fn follow(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.subscribe()
    }

    /// Stores what `next` makes of the settings, then publishes it. A change that began completes even if its caller is
    /// cancelled.
    pub(crate) async fn change(
        self: &Arc<Self>,
        next: impl FnOnce(&Settings) -> Result<Settings, ChangeError> + Send + 'static,
    ) -> Result<Arc<Settings>, ChangeError> {
        let file = Arc::clone(self);
        let change = move || {
            let _one_at_a_time = file.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let now = file.current();
            let next = Arc::new(next(&now)?);
            if next != now {
                if let Some(directory) = &file.directory {
                    write(&directory.path, &next)?;
                }
                log_switches(&now, &next);
                file.settings.send_replace(Arc::clone(&next));
            }
            Ok(next)
        };
        tokio::task::spawn_blocking(change)
            .await
            .expect("the change neither panics nor is aborted")
    }
}

fn log_switches(before: &Settings, settings: &Settings) {
    let is_key_new = before.key != settings.key;
    tracing::info!(
        settings.enabled,
        settings.takeover,
        settings.jsonrpc,
        settings.api,
        settings.mcp,
        settings.cors,
        settings.lan,
        settings.port,
        is_key_new,
        "settings changed"
    );
}

/// The settings that the commands of the same user read from the file, whether or not an agent runs.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The access key, if set.
    pub key: Option<AccessKey>,
    /// The port of a desktop installation.
    pub port: u16,
}

/// The settings stored in a directory; none before the first start. Blocks.
pub fn stored(directory: &Path) -> Result<Option<Stored>, DirectoryError> {
    let settings = read(directory, Edition::Desktop)?;
    Ok(settings.map(|Settings { key, port, .. }| Stored { key, port }))
}

/// The agent that runs on a directory, as its lock file describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// The process id.
    pub process: Option<u32>,
    /// What programs of the same user send instead of the access key, over loopback, while this agent runs.
    pub pass: Option<AccessKey>,
    /// The listening address; none while it starts or ends.
    pub address: Option<SocketAddr>,
}

impl Holder {
    fn this(pass: &AccessKey) -> Self {
        Self {
            process: Some(std::process::id()),
            pass: Some(pass.clone()),
            address: None,
        }
    }

    /// Reads the three lines of a lock file. A line without its line break is not complete, and is ignored.
    fn read(mut lock: &File) -> io::Result<Self> {
        let mut text = String::new();
        lock.read_to_string(&mut text)?;
        let mut lines = text.split_inclusive('\n').map_while(|line| line.strip_suffix('\n'));
        Ok(Self {
            process: lines.next().and_then(|line| line.parse().ok()),
            pass: lines.next().and_then(|line| AccessKey::new(line).ok()),
            address: lines.next().and_then(|line| line.parse().ok()),
        })
    }

    fn write(&self, lock: &File) -> io::Result<()> {
        let lines = [
            self.process.map(|pid| pid.to_string()),
            self.pass.as_ref().map(|pass| pass.expose().to_owned()),
            self.address.map(|address| address.to_string()),
        ];
        let text: String = lines.into_iter().flatten().map(|line| line + "\n").collect();
        lock.set_len(0)?;
        lock.write_all_at(text.as_bytes(), 0)
    }
}

/// The agent that holds the directory's lock, if any. Blocks.
pub fn holder(directory: &Path) -> Result<Option<Holder>, DirectoryError> {
    let path = directory.join(LOCK_FILE);
    let read = |file: File| Holder::read(&file).map_err(FileError::at("read", &path));
    Ok(private_files::held(&path)?.map(read).transpose()?)
}

fn lock(directory: &Path, pass: &AccessKey) -> Result<File, DirectoryError> {
    let path = directory.join(LOCK_FILE);
    let file = match private_files::lock(&path)? {
        Lock::Ours(file) => file,
        Lock::Held(file) => {
            return Err(DirectoryError::InUse {
                path: directory.to_owned(),
                holder: Holder::read(&file).unwrap_or_default(),
            });
        }
    };
    // An older version may have created it without a secret and with a wider mode.
    file.set_permissions(Permissions::from_mode(SECRET_MODE))
        .and_then(|()| Holder::this(pass).write(&file))
        .map_err(FileError::at("write", path))?;
    Ok(file)
}

/// The stored settings, or those of the previous product after conversion.
fn read(directory: &Path, edition: Edition) -> Result<Option<Settings>, DirectoryError> {
    let path = directory.join(SETTINGS_FILE);
    let Some(text) = private_files::read(&path)? else {
        return Ok(None);
    };
    let damaged = |source| DirectoryError::Damaged {
        path: path.clone(),
        source,
    };
    let members: serde_json::Map<String, Value> = serde_json::from_slice(&text).map_err(damaged)?;
    if let Some(imported) = Settings::imported(edition, &members) {
        return Ok(Some(imported));
    }
    match members.get("version").and_then(Value::as_u64) {
        Some(found) if found > u64::from(STORED_VERSION) => Err(DirectoryError::Newer { path, found }),
        _ => serde_json::from_value(members.into()).map(Some).map_err(damaged),
    }
}

fn write(directory: &Path, settings: &Settings) -> Result<(), FileError> {
    let text = serde_json::to_vec_pretty(settings).expect("settings have text keys only");
    private_files::replace(&directory.join(SETTINGS_FILE), &text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::settings::config::{DEFAULT_PORT, PresetKey};

    fn config(directory: &Path) -> Config {
        Config::new(Edition::Headless, directory.join("agent"))
    }

    #[tokio::test]
    async fn a_change_is_seen_at_once_and_after_a_restart_and_its_file_is_secret() {
        let directory = tempfile::tempdir().unwrap();
        let file = Arc::new(SettingsFile::open(&config(directory.path())).unwrap());
        let key = AccessKey::new("secret-key-1").unwrap();
        let with_key = key.clone();
        let set = move |settings: &Settings| {
            Ok(Settings {
                key: Some(with_key),
                ..settings.clone()
            })
        };
        file.change(set).await.unwrap();
        assert_eq!(file.current().key, Some(key.clone()));
        drop(file);
        let again = SettingsFile::open(&config(directory.path())).unwrap();
        assert_eq!(again.current().key, Some(key));
        let metadata = fs::metadata(directory.path().join("agent").join(SETTINGS_FILE)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, SECRET_MODE);
    }

    #[tokio::test]
    async fn others_of_the_same_user_can_look() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent");
        assert!(stored(&path).unwrap().is_none());
        assert_eq!(holder(&path).unwrap(), None);
        let mut config = config(directory.path());
        let key = AccessKey::new("preset-key-1").unwrap();
        config.preset_key = Some(PresetKey::Initial(key.clone()));
        let file = SettingsFile::open(&config).unwrap();
        let found = stored(&path).unwrap().expect("it was started once");
        assert_eq!((found.key, found.port), (Some(key), DEFAULT_PORT));
        let process = Some(std::process::id());
        for address in [
            None,
            Some("127.0.0.1:65535".parse().unwrap()),
            Some("[::]:81".parse().unwrap()),
            None,
        ] {
            file.publish_address(address).await.unwrap();
            let found = holder(&path).unwrap().expect("it runs");
            assert_eq!((found.process, found.address), (process, address));
            assert_eq!(found.pass.map(|pass| pass.digest()), Some(file.pass()));
        }
        drop(file);
        assert_eq!(holder(&path).unwrap(), None);
    }

    #[test]
    fn half_of_an_address_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            Holder::read(&File::open(&path).unwrap()).unwrap()
        };
        let address = Some("127.0.0.1:81".parse().unwrap());
        let whole = Holder {
            process: Some(7),
            pass: Some(AccessKey::new("secret-key-1").unwrap()),
            address,
        };
        assert_eq!(read("7\nsecret-key-1\n127.0.0.1:81\n"), whole);
        let of_half = |half: &str| read(half).address;
        assert_eq!(of_half("7\nsecret-key-1\n127.0.0.1:8"), None);
        assert_eq!(read("7\nsecret-k").pass, None);
        assert_eq!(read("7"), Holder::default());
    }

    #[test]
    fn a_second_agent_gets_the_holder_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let _held = SettingsFile::open(&config(directory.path())).unwrap();
        let refused = SettingsFile::open(&config(directory.path())).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("process {}", std::process::id())),
            "{refused}"
        );
    }

    #[test]
    fn settings_of_a_newer_version_or_damaged_ones_stop_the_start() {
        let directory = tempfile::tempdir().unwrap();
        drop(SettingsFile::open(&config(directory.path())).unwrap());
        let path = directory.path().join("agent").join(SETTINGS_FILE);
        fs::write(&path, r#"{"version":2,"moon":true}"#).unwrap();
        let refused = SettingsFile::open(&config(directory.path())).unwrap_err();
        assert!(matches!(refused, DirectoryError::Newer { found: 2, .. }));
        fs::write(&path, "{").unwrap();
        let refused = SettingsFile::open(&config(directory.path())).unwrap_err();
        assert!(matches!(refused, DirectoryError::Damaged { .. }));
    }
}
