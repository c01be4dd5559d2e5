//! Rotating log files of a process: the current and the previous one.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

/// The directory of log files in the data directory.
pub const LOG_DIR: &str = "logs";

/// The two files cover some weeks of an idle service and some hours of a busy one.
const MAX_FILE_BYTES: u64 = 5 * 1024 * 1024;

/// Both files of both processes of a service, twice: bounds an export.
const MAX_FILES: usize = 8;

/// The names and the last bytes of the log files of a directory, each from the beginning of a line.
pub fn ends(directory: &Path, max_bytes: u64) -> io::Result<Vec<(String, Vec<u8>)>> {
    let named = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, end_of(&path, max_bytes)?))
    };
    files(directory)?.into_iter().take(MAX_FILES).map(named).collect()
}

fn end_of(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let cut = file.metadata()?.len().saturating_sub(max_bytes);
    file.seek(SeekFrom::Start(cut))?;
    let mut text = Vec::new();
    // The file may grow while it is read.
    file.take(max_bytes).read_to_end(&mut text)?;
    if cut > 0 {
        let line = text.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        text.drain(..line);
    }
    Ok(text)
}

fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    let mut paths: Vec<_> = paths.into_iter().filter(is_log).collect();
    paths.sort_unstable();
    Ok(paths)
}

/// A log file that is rotated when it is full.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    before: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
}

impl Kept {
    /// Appends to the log file of this process.
    pub(super) fn open(directory: &Path, process: &str) -> io::Result<Self> {
        Self::with_limit(directory, process, MAX_FILE_BYTES)
    }

    fn with_limit(directory: &Path, process: &str, max_bytes: u64) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        builder.mode(0o700);
        builder.create(directory)?;
        let path = directory.join(format!("{process}.log"));
        let file = append(&path)?;
        Ok(Self {
            bytes: file.metadata()?.len(),
            before: directory.join(format!("{process}.1.log")),
            path,
            file,
            max_bytes,
        })
    }
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    options.mode(0o600);
    options.open(path)
}

impl Write for Kept {
    /// Called with a complete line each time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.bytes >= self.max_bytes {
            fs::rename(&self.path, &self.before)?;
            self.file = append(&self.path)?;
            self.bytes = 0;
        }
        let written = self.file.write(line)?;
        self.bytes += u64::try_from(written).unwrap_or(u64::MAX);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_are_kept_and_none_grows_beyond_its_size_by_more_than_a_line() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("data/logs");
        let mut kept = Kept::with_limit(&directory, "agent", 10).unwrap();
        for line in ["one 45678\n", "two\n", "three 678\n", "four\n"] {
            kept.write_all(line.as_bytes()).unwrap();
        }
        drop(kept);
        let mut kept = Kept::with_limit(&directory, "agent", 10).unwrap();
        kept.write_all(b"five\n").unwrap();
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        assert_eq!(read("agent.1.log"), "two\nthree 678\n");
        assert_eq!(read("agent.log"), "four\nfive\n");
        fs::write(directory.join("other.txt"), "").unwrap();
        let end = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
        assert_eq!(
            ends(&directory, 12).unwrap(),
            [end("agent.1.log", "three 678\n"), end("agent.log", "four\nfive\n")]
        );
        assert_eq!(ends(&directory, 7).unwrap()[1], end("agent.log", "five\n"));
        assert!(ends(&root.path().join("nothing"), 10).unwrap().is_empty());
    }
}
