//! What happens inside, logged to standard error for people who look for a cause.

use std::io;

use tracing_subscriber::EnvFilter;

use super::UsageError;
use crate::environment::{self, Environment};

/// Starts logging if `--verbose` (given `verbosity` times), the environment or the command's `usual` level asks for it;
/// the environment wins.
pub(super) fn start(verbosity: u8, usual: Option<&str>, environment: &Environment) -> Result<(), UsageError> {
    let from_option = match verbosity {
        0 => usual,
        1 => Some("info"),
        2 => Some("debug"),
        _ => Some("trace"),
    };
    let Some(directives) = environment.log_level.as_deref().or(from_option) else {
        return Ok(());
    };
    let filter = EnvFilter::builder().parse(directives).map_err(|error| {
        UsageError::new(
            environment::LOG_LEVEL,
            format!("{error}; write off, error, warn, info, debug or trace"),
        )
    })?;
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(!environment.is_colorless && io::IsTerminal::is_terminal(&io::stderr()))
        .with_env_filter(filter);
    // Only a second start in one process fails, and then logging is on already.
    let _already_started = subscriber.try_init();
    Ok(())
}
