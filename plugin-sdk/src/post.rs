//! The files of a finished download, for plugins that work on them.

use crate::{Error, Result, host::workspace as host, text::Url};

/// Bytes that [`Work::read_all`] asks for at once.
const PIECE_BYTES: u32 = 1024 * 1024;

/// The arguments of a call about a finished download.
#[derive(Debug)]
pub struct PostCall {
    url: Url,
    main: String,
}

impl PostCall {
    pub(crate) fn new(url: String, main: String) -> Result<Self> {
        let url = Url::parse(url)?;
        Ok(Self { url, main })
    }

    /// The URL that the user gave, without a login.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The file that the download is about: its archive, or else the first. Empty if the files are those that a step before
    /// has unpacked.
    pub fn main(&self) -> &str {
        &self.main
    }
}

/// The files of a finished download, by names without a path; nothing else of their directory can be seen. Nothing is
/// replaced. What is done here appears when the call has succeeded, and not at all if it fails.
///
/// The reasons that the host gives become [`Error::InvalidInput`], which users see as they are.
#[derive(Debug)]
pub struct Work<'a>(&'a host::Dir);

impl<'a> Work<'a> {
    pub(crate) fn new(dir: &'a host::Dir) -> Self {
        Self(dir)
    }

    /// The names of all files: those that were downloaded, and then new ones.
    pub fn names(&self) -> Vec<String> {
        self.0.names()
    }

    /// The names of the archives that can be unpacked; of several volumes the first.
    pub fn archives(&self) -> Vec<String> {
        self.0.archives()
    }

    /// The size of a file in bytes.
    pub fn size(&self, name: &str) -> Result<u64> {
        told(self.0.size(name))
    }

    /// Bytes of a file, at most 8 MiB; fewer than `length` only at its end.
    pub fn read(&self, name: &str, offset: u64, length: u32) -> Result<Vec<u8>> {
        told(self.0.read(name, offset, length))
    }

    /// All bytes of a file, which have to fit in the plugin's memory.
    pub fn read_all(&self, name: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let piece = self.read(name, bytes.len() as u64, PIECE_BYTES)?;
            let is_last = piece.len() < PIECE_BYTES as usize;
            bytes.extend(piece);
            if is_last {
                return Ok(bytes);
            }
        }
    }

    /// Makes a file. All files of a call may have 64 MiB together.
    pub fn write_new(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        told(self.0.write_new(name, bytes.as_ref()))
    }

    /// Gives a file another name.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        told(self.0.rename(from, to))
    }

    /// Unpacks an archive with all of its volumes; the names of the directories that will appear. Passwords are tried in
    /// their order, after none. `capabilities.post.tools` of the manifest has to name `unpack`.
    pub fn unpack(&self, name: &str, passwords: &[impl AsRef<str>]) -> Result<Vec<String>> {
        let passwords: Vec<_> = passwords.iter().map(|text| text.as_ref().to_owned()).collect();
        told(self.0.unpack(name, &passwords))
    }

    /// Has an archive that was unpacked in this call removed, with its volumes, once the result of the call is saved.
    pub fn remove_archive(&self, name: &str) -> Result<()> {
        told(self.0.remove_archive(name))
    }

    /// Joins the picture of one file and the sound of another into a new one, with the user's `ffmpeg`. The new name ends
    /// with `.mp4`, `.mkv` or `.webm`. `capabilities.post.tools` of the manifest has to name `mux`.
    pub fn mux(&self, video: &str, audio: &str, output: &str) -> Result<()> {
        told(self.0.mux(video, audio, output))
    }
}

fn told<T>(result: Result<T, String>) -> Result<T> {
    result.map_err(Error::InvalidInput)
}
