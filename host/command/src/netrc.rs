//! Reads the user's `.netrc`, which must be readable by its owner only.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use transfer::Netrc;

/// The largest file; one has a line for each host that the user has a login for.
const MAX_BYTES: u64 = 1024 * 1024;

/// Where the file usually is.
pub fn usual_path() -> Option<PathBuf> {
    dirs::home_dir().map(|home| home.join(".netrc"))
}

/// Reads the file at `path`; none if nothing is there. Like aria2, a file that others may read is not used, because its
/// passwords are known then. The error says why.
pub fn read(path: &Path) -> Result<Option<Netrc>, String> {
    let about = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(about(&error)),
    };
    let metadata = file.metadata().map_err(|error| about(&error))?;
    if !metadata.is_file() {
        return Err(about(&"it is no ordinary file"));
    }
    if is_open_to_others(&metadata) {
        return Err(about(
            &"others may read it, so it is not used; chmod 600 makes it yours",
        ));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| about(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(about(&format!("it is longer than {MAX_BYTES} bytes")));
    }
    Ok(Some(Netrc::parse(&text)))
}

#[cfg(unix)]
fn is_open_to_others(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.mode() & 0o077 != 0
}

/// Permissions are unknown on this system.
#[cfg(not(unix))]
fn is_open_to_others(_metadata: &std::fs::Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn only_a_file_of_ones_own_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("netrc");
        assert_eq!(read(&path), Ok(None));
        fs::write(&path, "machine a.test login u password p").unwrap();
        for (mode, is_used) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o620, false),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let login = read(&path).map(|netrc| netrc.and_then(|netrc| netrc.login("a.test").cloned()));
            assert_eq!(login.is_ok_and(|login| login.is_some()), is_used, "{mode:o}");
        }
        assert!(read(directory.path()).unwrap_err().contains("no ordinary file"));
    }
}
