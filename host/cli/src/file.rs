//! Reads text files that arguments name.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use anyhow::Context as _;
use command::UsageError;

/// The text of a file of at most this many bytes; `-` is standard input.
pub(crate) fn read_text(path: &Path, max_bytes: u64) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().take(max_bytes + 1).read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|file| file.take(max_bytes + 1).read_to_string(&mut text))
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > max_bytes {
        let problem = format!("{} is larger than {max_bytes} bytes", path.display());
        return Err(UsageError::new("FILE", problem).into());
    }
    Ok(text)
}
