//! A ZIP archive of texts with a limited size.

use std::{
    fs::File,
    io::{Cursor, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use anyhow::Context as _;
use serde::Serialize;
use zip::{ZipWriter, write::SimpleFileOptions};

/// The last bytes of each log file. All files together fit into an e-mail.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) struct Bundle {
    zip: ZipWriter<Cursor<Vec<u8>>>,
}

impl Bundle {
    pub(crate) fn new() -> Self {
        Self {
            zip: ZipWriter::new(Cursor::default()),
        }
    }

    pub(crate) fn add_json(&mut self, name: &str, content: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(content).context("cannot write JSON")?;
        self.add(name, &text)
    }

    /// Adds the end of a log file, from the beginning of a line.
    pub(crate) fn add_end_of(&mut self, path: &Path) -> anyhow::Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let text = end_of(path).with_context(|| format!("cannot read {}", path.display()))?;
        self.add(&format!("logs/{name}"), &text)
    }

    fn add(&mut self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let options = SimpleFileOptions::default().unix_permissions(0o600);
        self.zip.start_file(name, options)?;
        self.zip.write_all(content).context("cannot compress")
    }

    pub(crate) fn finish(self) -> anyhow::Result<Vec<u8>> {
        Ok(self.zip.finish()?.into_inner())
    }
}

fn end_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let cut = file.metadata()?.len().saturating_sub(MAX_LOG_BYTES);
    file.seek(SeekFrom::Start(cut))?;
    let mut text = Vec::new();
    // The file may grow while it is read.
    file.take(MAX_LOG_BYTES).read_to_end(&mut text)?;
    if cut > 0 {
        let line = text.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        text.drain(..line);
    }
    Ok(text)
}
