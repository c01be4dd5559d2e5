//! Confirmation before something is installed or trusted.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use command::{UsageError, terminal::printable};

/// Prints `lines` and asks the user. Without a terminal, the option `instead` is required.
pub(super) fn confirm(lines: &[String], question: &str, instead: &str) -> anyhow::Result<bool> {
    let shown: Vec<_> = lines.iter().map(|line| printable(line)).collect();
    let shown = shown.join("\n");
    if !io::stdin().is_terminal() {
        let problem = format!("cannot ask without a terminal: {question}\n{shown}");
        return Err(UsageError::new(instead, problem).into());
    }
    write!(io::stderr(), "{shown}\n{question} [y/N] ")?;
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        // Ctrl-D leaves the cursor behind the question.
        writeln!(io::stderr())?;
    }
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}
