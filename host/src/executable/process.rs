//! Common parts of long-running commands: directories, logging, runtime, and shutdown.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use clap::ValueEnum;
use command::{
    UsageError, directories,
    environment::{self, Environment},
    log,
};

/// How long responses and runs may take at shutdown. Service managers wait 90 s, containers 10 s.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Options of every host process.
#[derive(Debug, clap::Args)]
pub(super) struct HostArgs {
    /// Directory for the service's own state [default: svc in the user's data directory]
    #[arg(long, value_name = "DIR", env = environment::DATA_DIR)]
    data_dir: Option<PathBuf>,
    /// Directory for downloads unless a setting, queue or task names another [default: the user's Downloads]
    #[arg(long, value_name = "DIR", env = environment::SAVE_DIR)]
    save_dir: Option<PathBuf>,
    /// Where the key is kept that stored logins, cookies and tokens are sealed with [default: desktop for "svc agent";
    /// otherwise where it is, at first its file]
    #[arg(long, value_name = "PLACE", value_enum, env = environment::KEYS)]
    keys: Option<Keys>,
    /// Log more to standard error: -v info, -vv debug, -vvv trace
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// Where the key of stored secrets is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Keys {
    /// In the file vault.key, which only this user can read; moved there if it is in the desktop's key store
    File,
    /// In the desktop's key store, if it is there and unlocked; else in the file
    Desktop,
}

/// Directories of a host as absolute paths, because its processes may have different working directories.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) data: PathBuf,
    pub(super) downloads: PathBuf,
    /// `None` is where it is.
    pub(super) keys: Option<Keys>,
    verbose: u8,
}

impl HostArgs {
    /// Resolves the directories and starts logging under the name of this process.
    pub(super) fn begin(self, environment: &Environment, process: &str) -> anyhow::Result<Places> {
        let data = self.data_dir.or_else(directories::data).ok_or_else(|| {
            UsageError::new(
                "--data-dir",
                "there is no home directory to put it in by default; name one",
            )
        })?;
        let data = absolute(&data)?;
        let downloads = absolute(&self.save_dir.unwrap_or_else(directories::downloads))?;
        for directory in [&data, &downloads] {
            note_foreign(directory);
        }
        log::start_kept(self.verbose, environment, &data, process)?;
        Ok(Places {
            data,
            downloads,
            keys: self.keys,
            verbose: self.verbose,
        })
    }
}

impl Places {
    /// The arguments of a daemon with the same directories.
    pub(super) fn daemon_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["daemon".into()];
        arguments.extend(["--data-dir".into(), self.data.clone().into()]);
        arguments.extend(["--save-dir".into(), self.downloads.clone().into()]);
        if let Some(place) = self.keys {
            let place = place.to_possible_value().expect("no place is hidden");
            arguments.extend(["--keys".into(), place.get_name().into()]);
        }
        arguments.extend((0..self.verbose).map(|_| OsString::from("--verbose")));
        arguments
    }
}

/// Says whose a directory is that this process may not write to: in containers and services its user is a setting, and the
/// errors that follow name the file only.
#[cfg(unix)]
fn note_foreign(directory: &Path) {
    use rustix::{fs, process};

    let may_write = fs::access(directory, fs::Access::WRITE_OK);
    if may_write == Err(rustix::io::Errno::ACCESS)
        && let Ok(owner) = fs::stat(directory)
    {
        let (user, group) = (process::geteuid().as_raw(), process::getegid().as_raw());
        command::note(&format!(
            "{} belongs to user {}, group {}; this process is user {user}, group {group}, and may not write there: run it as \
             the owner (in a container, PUID and PGID), or give the directory to {user}:{group} with chown",
            directory.display(),
            owner.st_uid,
            owner.st_gid,
        ));
    }
}

#[cfg(not(unix))]
fn note_foreign(_directory: &Path) {}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot find out where {} is", path.display()))
}
