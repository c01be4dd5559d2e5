//! Checks of this machine that need no running service: directories, locks, disk space and clock.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
    time::{Duration, SystemTime},
};

use command::{amount, directories};
use protocol::endpoint::{ENDPOINT_FILE, Endpoint};
use store::DataDir;

use super::finding::{Finding, shown, with_causes};

/// The name of the check of the download directory.
pub(crate) const SAVE_DIR: &str = "save directory";

/// With less free space, typical downloads do not fit.
const LITTLE_SPACE_BYTES: u64 = 1024 * 1024 * 1024;

/// The tolerated clock difference; signatures of paired devices allow no more.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_mins(2);

/// 2025: an earlier clock is wrong, because this program did not exist.
const EARLIEST: Duration = Duration::from_hours(482_136);

/// The state of the data directory.
pub(crate) struct DataDirReport {
    pub(crate) findings: Vec<Finding>,
    /// Whether a running service holds its lock.
    pub(crate) is_in_use: bool,
}

/// Checks the data directory and the clock.
pub(crate) fn check(data_dir: &Path) -> DataDirReport {
    const CHECK: &str = "data directory";
    let path = shown(data_dir);
    if !data_dir.is_dir() {
        let finding = if data_dir.exists() {
            Finding::fail(
                CHECK,
                format!("{path} is no directory"),
                "name another with --data-dir or SVC_DATA_DIR",
            )
        } else {
            Finding::warn(
                CHECK,
                format!("{path} is not there yet"),
                "the first start of the service makes it",
            )
        };
        return DataDirReport {
            findings: vec![finding],
            is_in_use: false,
        };
    }
    let mut findings = Vec::new();
    match written_at(data_dir) {
        Ok(at) => {
            findings.push(Finding::ok(CHECK, format!("{path} can be written")));
            findings.push(clock(at));
        }
        Err(error) => findings.push(Finding::fail(
            CHECK,
            format!("{path} cannot be written: {error}"),
            "make it writable for this user, or run this as the user of the service",
        )),
    }
    let holders = [daemon_holder(data_dir), agent_holder(data_dir)];
    let is_in_use = holders.iter().any(|(_, is_held)| *is_held);
    findings.extend(holders.map(|(finding, _)| finding));
    findings.extend(stored(data_dir));
    findings.extend(endpoint(data_dir));
    DataDirReport { findings, is_in_use }
}

/// Writes and removes a file; returns its modification time, which shows the clock of the file system.
fn written_at(directory: &Path) -> io::Result<SystemTime> {
    let path = directory.join(format!(".svc-doctor-{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
    let at = file.write_all(b"x").and_then(|()| file.metadata()?.modified());
    fs::remove_file(&path)?;
    at
}

fn clock(file_system: SystemTime) -> Finding {
    const CHECK: &str = "clock";
    const ADVICE: &str = "set it, best by a time service; schedules, certificates and paired devices depend on it";
    let now = SystemTime::now();
    let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let off = difference(now, file_system);
    if since_epoch < EARLIEST {
        Finding::fail(CHECK, "it is years behind", ADVICE)
    } else if off > CLOCK_TOLERANCE {
        let found = format!(
            "it and that of the data directory's disk differ by {}",
            amount::duration(off)
        );
        Finding::warn(CHECK, found, ADVICE)
    } else {
        Finding::ok(CHECK, "agrees with that of the disk")
    }
}

/// The absolute difference.
pub(crate) fn difference(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).unwrap_or_else(|error| error.duration())
}

fn daemon_holder(data_dir: &Path) -> (Finding, bool) {
    const CHECK: &str = "daemon's lock";
    match DataDir::holder_of(data_dir) {
        Ok(Some(holder)) => (Finding::ok(CHECK, format!("held by {holder}")), true),
        Ok(None) => (Finding::ok(CHECK, "free: no daemon runs on it"), false),
        Err(error) => (unreadable(CHECK, &error), false),
    }
}

fn agent_holder(data_dir: &Path) -> (Finding, bool) {
    const CHECK: &str = "agent's lock";
    match agent::holder(&directories::agent(data_dir)) {
        Ok(Some(agent::Holder { process, address, .. })) => {
            let process = process.map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}"));
            let place = address.map(|address| format!(", which listens on {address}"));
            (
                Finding::ok(CHECK, format!("held by {process}{}", place.unwrap_or_default())),
                true,
            )
        }
        Ok(None) => (Finding::ok(CHECK, "free: no agent runs on it"), false),
        Err(error) => (unreadable(CHECK, &error), false),
    }
}

fn unreadable(check: &'static str, error: &dyn std::error::Error) -> Finding {
    Finding::fail(check, with_causes(error), "run this as the user of the service")
}

/// Checks that the agent's settings are readable.
fn stored(data_dir: &Path) -> Vec<Finding> {
    const CHECK: &str = "agent's settings";
    match agent::stored(&directories::agent(data_dir)) {
        Ok(Some(stored)) => {
            let key = if stored.key.is_some() { "with" } else { "without" };
            vec![Finding::ok(CHECK, format!("readable, {key} an access key"))]
        }
        Ok(None) => vec![Finding::warn(
            CHECK,
            "not there yet",
            "the first start of the service makes them",
        )],
        Err(error @ agent::DirectoryError::Newer { .. }) => {
            let advice = "use the newer version, or restore a backup made by this one";
            vec![Finding::fail(CHECK, error.to_string(), advice)]
        }
        Err(error) => vec![unreadable(CHECK, &error)],
    }
}

/// Checks the endpoint file of a running daemon.
fn endpoint(data_dir: &Path) -> Option<Finding> {
    const CHECK: &str = "daemon's version";
    let text = fs::read(data_dir.join(ENDPOINT_FILE)).ok()?;
    let Ok(Endpoint {
        service_version, port, ..
    }) = serde_json::from_slice(&text)
    else {
        let found = format!("{ENDPOINT_FILE} cannot be read");
        return Some(Finding::warn(CHECK, found, "delete it and start the service again"));
    };
    let found = format!("{service_version}, on port {port} for its agent");
    Some(if service_version == env!("CARGO_PKG_VERSION") {
        Finding::ok(CHECK, found)
    } else {
        Finding::warn(
            CHECK,
            found,
            "it is another than this executable's; start the service again with this one",
        )
    })
}

/// Checks that downloads can be written to `directory`, with this many free bytes.
pub(crate) fn save_dir(directory: &Path, free_bytes: Option<u64>) -> Finding {
    let path = shown(directory);
    let free = free_bytes
        .map(|bytes| format!(", {} free", amount::bytes(bytes)))
        .unwrap_or_default();
    if !directory.exists() {
        let advice = "the service makes it if it may; else name another with SVC_SAVE_DIR";
        return Finding::warn(SAVE_DIR, format!("{path} is not there yet"), advice);
    }
    if !is_writable(directory) {
        let advice = "make it writable for the user of the service, or name another with SVC_SAVE_DIR";
        return Finding::fail(SAVE_DIR, format!("{path} cannot be written"), advice);
    }
    if free_bytes.is_some_and(|bytes| bytes < LITTLE_SPACE_BYTES) {
        return Finding::warn(
            SAVE_DIR,
            format!("{path} can be written{free}"),
            "make room, or name another directory",
        );
    }
    Finding::ok(SAVE_DIR, format!("{path} can be written{free}"))
}

#[cfg(unix)]
fn is_writable(directory: &Path) -> bool {
    use rustix::fs::{Access, access};
    access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(directory: &Path) -> bool {
    written_at(directory).is_ok()
}

/// Free bytes on the disk of `directory`, if known.
pub(crate) fn free_bytes(directory: &Path) -> Option<u64> {
    #[cfg(unix)]
    return rustix::fs::statvfs(directory)
        .ok()
        .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    #[cfg(not(unix))]
    return Some(directory).and(None);
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn level(findings: &[Finding], check: &str) -> Level {
        findings
            .iter()
            .find(|finding| finding.check == check)
            .expect("it was looked at")
            .level
    }

    #[test]
    fn a_directory_that_is_not_there_yet_is_no_failure() {
        let root = tempfile::tempdir().unwrap();
        let place = check(&root.path().join("data"));
        assert_eq!(level(&place.findings, "data directory"), Level::Warn);
        assert!(!place.is_in_use && !root.path().join("data").exists());
    }

    #[test]
    fn the_holder_is_reported_and_no_file_is_left() {
        let root = tempfile::tempdir().unwrap();
        let data = DataDir::lock(root.path().join("data")).unwrap();
        let place = check(data.path());
        assert!(place.is_in_use);
        let held = place
            .findings
            .iter()
            .find(|finding| finding.check == "daemon's lock")
            .unwrap();
        assert!(held.found.contains(&std::process::id().to_string()), "{held:?}");
        assert_eq!(level(&place.findings, "clock"), Level::Ok);
        let left: Vec<_> = fs::read_dir(data.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["lock"]);
    }

    #[test]
    fn settings_of_a_newer_version_fail() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("agent")).unwrap();
        fs::write(root.path().join("agent/settings.json"), r#"{"version":99}"#).unwrap();
        assert_eq!(level(&check(root.path()).findings, "agent's settings"), Level::Fail);
    }

    #[test]
    fn a_nearly_full_disk_is_reported() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(save_dir(root.path(), Some(1)).level, Level::Warn);
        assert_eq!(save_dir(root.path(), Some(u64::MAX)).level, Level::Ok);
        assert_eq!(save_dir(&root.path().join("new"), None).level, Level::Warn);
    }
}
