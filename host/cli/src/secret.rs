//! Reads secrets from where other users of the machine cannot see them: a file, standard input, or the terminal.

use std::{
    fs,
    io::{self, IsTerminal as _, Read as _},
    path::Path,
};

use anyhow::Context as _;
use command::{UsageError, prompt::ask_secret};
use transfer::Secret;

/// Keys have at most 128 characters, passwords hardly more.
const MAX_BYTES: u64 = 4096;

/// The first line of a file that an option names; `-` is standard input.
pub(crate) fn first_line(option: &str, path: &Path) -> Result<Secret, UsageError> {
    let refuse = |problem: String| UsageError::new(option, problem);
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().take(MAX_BYTES).read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text))
    };
    read.map_err(|error| refuse(format!("cannot read {}: {error}", path.display())))?;
    match text.lines().next().map(str::trim).unwrap_or_default() {
        "" => Err(refuse(format!("the first line of {} is empty", path.display()))),
        line => Ok(Secret::new(line)),
    }
}

/// A new secret: from the file that an option names, else asked for twice on a terminal, else from standard input.
pub(crate) fn choose(option: &str, file: Option<&Path>, question: &str) -> anyhow::Result<Secret> {
    if let Some(path) = file {
        return Ok(first_line(option, path)?);
    }
    if !io::stdin().is_terminal() {
        return Ok(first_line(option, Path::new("-"))?);
    }
    let ask = |question: &str| ask_secret(question).context("cannot ask on the terminal");
    let secret = ask(&format!("{question}: "))?;
    if ask("Once more: ")? != secret {
        return Err(UsageError::new(question, "the two are not the same").into());
    }
    Ok(Secret::new(secret))
}
