//! Printing: results on standard output, remarks on standard error.

use std::io::{self, Write as _};

use anyhow::Context as _;
use serde::Serialize;

use crate::{Exit, UsageError, terminal::printable};

/// Prints the result of a command. A closed pipe (`svc man | head`) is not a failure.
pub fn print_bytes(text: &[u8]) -> anyhow::Result<Exit> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(Exit::Success),
    }
}

/// Prints lines, with control characters removed.
pub fn print_lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> anyhow::Result<Exit> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&printable(line.as_ref()));
        text.push('\n');
    }
    print_bytes(text.as_bytes())
}

/// Prints a line of a command that continues, unbuffered. A closed pipe is not a failure.
pub fn print_now(text: &str) {
    let _closed = writeln!(io::stdout(), "{}", printable(text)).and_then(|()| io::stdout().flush());
}

/// Prints a JSON record.
pub fn print_json(record: &impl Serialize) -> anyhow::Result<Exit> {
    let mut text = serde_json::to_string_pretty(record).context("cannot write JSON")?;
    text.push('\n');
    print_bytes(text.as_bytes())
}

/// Prints a remark to standard error. A closed one is not a failure.
pub fn note(sentence: &str) {
    let _closed = writeln!(io::stderr(), "{}", printable(sentence));
}

/// Prints a problem that does not stop the command.
pub fn warn(problem: &UsageError) {
    let text = problem.to_string();
    let _closed = writeln!(io::stderr(), "warning: {}", printable(&text));
}
