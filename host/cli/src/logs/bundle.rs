//! A ZIP archive of texts with a limited size.

use std::io::{Cursor, Write as _};

use anyhow::Context as _;
use serde::Serialize;
use zip::{ZipWriter, write::SimpleFileOptions};

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

    pub(crate) fn add(&mut self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let options = SimpleFileOptions::default().unix_permissions(0o600);
        self.zip.start_file(name, options)?;
        self.zip.write_all(content).context("cannot compress")
    }

    pub(crate) fn finish(self) -> anyhow::Result<Vec<u8>> {
        Ok(self.zip.finish()?.into_inner())
    }
}
