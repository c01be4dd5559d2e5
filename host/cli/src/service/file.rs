//! The stored configuration of the client commands: a JSON file that only the user can read.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use command::{UsageError, amount, directories};
use serde::{Deserialize, Serialize};

use super::Address;

/// The longest timeout: a day.
const MAX_TIMEOUT_SECONDS: f64 = 86_400.0;

/// The shortest timeout that any network can meet.
const MIN_TIMEOUT_SECONDS: f64 = 0.1;

/// Parses a timeout in seconds.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    amount::parse_seconds(text, MIN_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS)
}

/// Missing members have their defaults.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClientFile {
    /// The address of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The timeout of answers, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<f64>,
}

/// A key of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Key {
    /// Address of the service
    Url,
    /// Its access key
    Token,
    /// How long to wait for an answer, in seconds
    Timeout,
}

impl Key {
    pub(crate) const ALL: [Self; 3] = [Self::Url, Self::Token, Self::Timeout];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Token => "token",
            Self::Timeout => "timeout",
        }
    }
}

impl ClientFile {
    pub(crate) fn path() -> anyhow::Result<PathBuf> {
        directories::client_file().context("there is no home directory to keep the configuration in")
    }

    /// Reads the file; a missing one is empty.
    pub(crate) fn read() -> anyhow::Result<Self> {
        match directories::client_file() {
            Some(path) => Self::read_from(&path),
            None => Ok(Self::default()),
        }
    }

    fn read_from(path: &Path) -> anyhow::Result<Self> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        // A message of serde could contain the value of a secret.
        serde_json::from_slice(&text).map_err(|error| {
            let place = format!("{}, line {}", path.display(), error.line());
            UsageError::new(
                place,
                "not as it should be: a JSON object with \"url\", \"token\" and \"timeout\"",
            )
            .into()
        })
    }

    /// Replaces the file atomically.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        self.write_to(&Self::path()?)
    }

    fn write_to(&self, path: &Path) -> anyhow::Result<()> {
        let new = path.with_extension("json.new");
        let write = || -> io::Result<()> {
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            // A file that an earlier attempt left behind may be readable by others.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = secret_options().open(&new)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&new, path)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// A value for display; secrets are masked.
    pub(crate) fn shown(&self, key: Key) -> Option<String> {
        match key {
            Key::Url => self.url.clone(),
            Key::Token => self.token.as_deref().map(masked),
            Key::Timeout => self.timeout.map(|seconds| seconds.to_string()),
        }
    }

    pub(crate) fn set(&mut self, key: Key, value: &str) -> Result<(), UsageError> {
        let refuse = |problem| UsageError::new(key.name(), problem);
        match key {
            Key::Url => self.url = Some(Address::parse(value).map_err(refuse)?.to_string()),
            Key::Token if value.is_empty() => return Err(refuse("the key is empty".to_owned())),
            Key::Token => self.token = Some(value.to_owned()),
            Key::Timeout => self.timeout = Some(parse_timeout(value).map_err(refuse)?.as_secs_f64()),
        }
        Ok(())
    }

    pub(crate) fn unset(&mut self, key: Key) {
        match key {
            Key::Url => self.url = None,
            Key::Token => self.token = None,
            Key::Timeout => self.timeout = None,
        }
    }
}

/// The first characters of a key, so that users can recognize it.
pub(crate) fn masked(token: &str) -> String {
    // At most a quarter of the shortest allowed key.
    let shown: String = token.chars().take(2).collect();
    format!("{shown}… ({} characters)", token.chars().count())
}

fn secret_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_by_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("svc/config.json");
        let mut file = ClientFile::read_from(&path).unwrap();
        file.set(Key::Url, "https://nas.test/").unwrap();
        file.set(Key::Token, "the-access-key-1").unwrap();
        file.set(Key::Timeout, "2.5").unwrap();
        file.write_to(&path).unwrap();
        let mut again = ClientFile::read_from(&path).unwrap();
        assert!(again == file);
        assert_eq!(again.shown(Key::Url).as_deref(), Some("https://nas.test"));
        assert_eq!(again.shown(Key::Token).as_deref(), Some("th… (16 characters)"));
        again.unset(Key::Token);
        again.write_to(&path).unwrap();
        assert_eq!(ClientFile::read_from(&path).unwrap().shown(Key::Token), None);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_damaged_file_is_named_and_not_repeated() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        for text in ["{\"token\": 5}", "{\"tokn\": \"hunter2\"}", "\"hunter2\"", "hunter2"] {
            fs::write(&path, text).unwrap();
            let refusal = format!("{:#}", ClientFile::read_from(&path).err().unwrap());
            assert!(
                refusal.contains("config.json, line 1") && !refusal.contains("hunter2"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn values_that_cannot_be_are_refused() {
        let mut file = ClientFile::default();
        for (key, value) in [
            (Key::Url, "nas"),
            (Key::Token, ""),
            (Key::Timeout, "soon"),
            (Key::Timeout, "0"),
        ] {
            assert!(file.set(key, value).is_err(), "{value:?}");
        }
        assert!(file == ClientFile::default());
    }
}
