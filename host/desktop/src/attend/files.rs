//! Finished files on the desktop: opened with the program of their type, or shown in their directory by the file manager. The
//! only file of this crate that knows how; desktops of freedesktop.org have both.
//!
//! Names of files are chosen by others. They reach other programs percent-encoded in a `file:` URI, so that a line break, a
//! leading dash or a colon in them means nothing there.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::Path,
    time::Duration,
};

use command::browser::detached;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use tokio::{process::Command, sync::oneshot, time::timeout};

/// Bytes of a path that a URI has as they are.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// Extensions of files that desktops run, or that make them run something else.
const PROGRAMS: [&str; 20] = [
    "appimage", "bat", "cmd", "com", "desktop", "exe", "hta", "jar", "lnk", "msi", "pif", "pl", "ps1", "py", "rb",
    "run", "scr", "sh", "url", "vbs",
];

/// The beginnings of programs: of Linux, of Windows, of scripts.
const BEGINNINGS: [&[u8]; 3] = [b"\x7fELF", b"MZ", b"#!"];

/// The first line of a desktop entry, below comments.
const DESKTOP_ENTRY: &[u8] = b"[Desktop Entry]";

/// Bytes of a file that are looked at.
const HEAD_BYTES: u64 = 1024;

/// A starter that fails does so within this time. One that lasts longer has become the program that it starts.
const START_TIME: Duration = Duration::from_secs(3);

/// The URI of an absolute path.
pub(super) fn uri(path: &Path) -> String {
    format!("file://{}", percent_encode(path.as_os_str().as_bytes(), UNESCAPED))
}

/// Opens a file with the program of its type, or a directory in the file manager. Programs are refused.
pub(super) async fn open(path: &Path) -> Result<(), String> {
    let owned = path.to_owned();
    let checked = tokio::task::spawn_blocking(move || refusal(&owned)).await;
    match checked {
        Ok(Ok(None)) => start(&uri(path)).await,
        Ok(Ok(Some(what))) => Err(format!(
            "this is {what}, and is not opened from here; show it in its directory instead"
        )),
        Ok(Err(error)) => Err(unreadable(&error)),
        Err(error) => Err(error.to_string()),
    }
}

fn unreadable(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        "the file is gone: it was moved, renamed or removed after the download".to_owned()
    } else {
        format!("the file cannot be read: {error}")
    }
}

/// Shows a file in its directory. `show` asks the file manager; if there is none, the directory is opened.
pub(super) async fn reveal(path: &Path, show: impl FnOnce() -> oneshot::Receiver<bool>) -> Result<(), String> {
    let found = tokio::fs::symlink_metadata(path).await;
    found.map_err(|error| unreadable(&error))?;
    if show().await == Ok(true) {
        return Ok(());
    }
    start(&uri(path.parent().unwrap_or(path))).await
}

/// What the file is, if it must not be opened.
fn refusal(path: &Path) -> io::Result<Option<&'static str>> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        return Ok(None);
    }
    if !metadata.is_file() {
        return Ok(Some("a link or a device"));
    }
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    if extension.is_some_and(|extension| PROGRAMS.contains(&extension.as_str())) {
        return Ok(Some("a program, or a file that starts one"));
    }
    if metadata.permissions().mode() & 0o111 != 0 {
        return Ok(Some("a file that may be executed"));
    }
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    let is_program = BEGINNINGS.iter().any(|beginning| head.starts_with(beginning));
    let is_entry = head.windows(DESKTOP_ENTRY.len()).any(|part| part == DESKTOP_ENTRY);
    Ok((is_program || is_entry).then_some("a program, or a file that starts one"))
}

async fn start(uri: &str) -> Result<(), String> {
    if cfg!(target_os = "macos") {
        return Err("files are opened on desktops of Linux and BSD only".to_owned());
    }
    let mut command = Command::from(detached("xdg-open"));
    let mut child = command.arg(uri).spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "xdg-open is not installed (Debian: xdg-utils)".to_owned(),
        _ => format!("xdg-open cannot be started: {error}"),
    })?;
    match timeout(START_TIME, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err("the desktop has no program for this type of file".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_nothing_in_a_uri() {
        for (path, expected) in [
            ("/d/a.iso", "file:///d/a.iso"),
            ("/d/-rf %41", "file:///d/-rf%20%2541"),
            ("/d/a\nhttp://b/;c", "file:///d/a%0Ahttp%3A//b/%3Bc"),
            ("/d/<b>&\u{202e}\"'", "file:///d/%3Cb%3E%26%E2%80%AE%22%27"),
        ] {
            assert_eq!(uri(Path::new(path)), expected);
        }
    }

    #[test]
    fn programs_are_refused_by_name_by_mode_and_by_content() {
        let directory = tempfile::tempdir().unwrap();
        let refused = |name: &str, content: &[u8], mode: u32| {
            let path = directory.path().join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            refusal(&path).unwrap().is_some()
        };
        assert!(!refused("film.mkv", b"abc", 0o644));
        assert!(!refused("empty", b"", 0o600));
        assert!(!refused("exe", b"a name without an extension", 0o600));
        assert!(refused("film.mkv.Desktop", b"", 0o644));
        assert!(refused("setup.EXE", b"abc", 0o644));
        assert!(refused("film.mp4", b"abc", 0o744));
        assert!(refused("film.avi", b"\x7fELF\x02", 0o644));
        assert!(refused("notes.txt", b"#!/bin/sh\n", 0o644));
        assert!(refused("notes", b"# x\n[Desktop Entry]\nExec=x\n", 0o644));
        std::os::unix::fs::symlink("/bin/sh", directory.path().join("link.txt")).unwrap();
        assert!(refusal(&directory.path().join("link.txt")).unwrap().is_some());
        assert_eq!(refusal(directory.path()).unwrap(), None);
        assert!(refusal(&directory.path().join("gone")).is_err());
    }
}
