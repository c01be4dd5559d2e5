//! Confined access to an author's folder: anyone who can write to the folder could place links in it, and the service
//! has all rights of its user.

#[cfg(unix)]
#[path = "folder/unix.rs"]
mod system;
#[cfg(not(unix))]
#[path = "folder/other.rs"]
mod system;

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use transfer::ByteCount;

pub(crate) use system::FolderHandle;

/// The largest file that is read: no file of a package may be larger.
const MAX_FILE_BYTES: u64 = plugin_package::MAX_FILE_BYTES;

/// Opens the file at `path` in `folder`. Links are followed only within the folder.
pub(crate) fn open(folder: &Path, path: &Path) -> io::Result<File> {
    let root = folder.canonicalize()?;
    let real = root.join(path).canonicalize()?;
    let inside = real.strip_prefix(&root).map_err(|_| {
        let reason = format!("it is {}, outside of the plugin's folder", real.display());
        io::Error::new(io::ErrorKind::PermissionDenied, reason)
    })?;
    let file = FolderHandle::of(&root)?.file(inside)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(too_large());
    }
    Ok(file)
}

/// Reads the file at `path` in `folder`; see [`open`].
pub(crate) fn read(folder: &Path, path: &Path) -> io::Result<Vec<u8>> {
    read_all(&open(folder, path)?)
}

/// Reads a file to its end, up to the limit: it may grow meanwhile.
pub(crate) fn read_all(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large());
    }
    Ok(bytes)
}

fn too_large() -> io::Error {
    let reason = format!("it is larger than {}", ByteCount(MAX_FILE_BYTES));
    io::Error::new(io::ErrorKind::FileTooLarge, reason)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn links_are_followed_within_the_folder_and_nowhere_else() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, secret) = (folder.path(), other.path().join("secret"));
        fs::create_dir(at.join("real")).unwrap();
        fs::write(at.join("real/file"), "mine").unwrap();
        fs::write(&secret, "another's").unwrap();
        symlink("real", at.join("link")).unwrap();
        symlink(other.path(), at.join("out")).unwrap();
        symlink(&secret, at.join("file-out")).unwrap();
        assert_eq!(read(at, Path::new("link/file")).unwrap(), b"mine");
        for outside in [
            "out/secret",
            "file-out",
            "../x",
            "link/../../x",
            secret.to_str().unwrap(),
        ] {
            assert!(read(at, Path::new(outside)).is_err(), "{outside}");
        }
        let refused = read(at, Path::new("file-out")).unwrap_err().to_string();
        assert!(refused.contains("outside of the plugin's folder"), "{refused}");
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        fs::create_dir(at.join("folder")).unwrap();
        symlink("/dev/zero", at.join("endless")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        File::create(at.join("huge"))
            .unwrap()
            .set_len(MAX_FILE_BYTES + 1)
            .unwrap();
        for path in ["folder", "endless", "pipe", "huge", "missing"] {
            assert!(read(at, Path::new(path)).is_err(), "{path}");
        }
    }
}
