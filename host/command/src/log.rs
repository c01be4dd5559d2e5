//! Sets up logging: to standard error, and for the service to files as well.

mod kept;

use std::{io, path::Path, sync::Mutex};

use tracing_subscriber::{
    EnvFilter, Layer as _, Registry, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use self::kept::Kept;
use crate::{
    UsageError,
    environment::{self, Environment},
};

pub use self::kept::{LOG_DIR, ends};

/// The default filters of a service, for standard error and for its files.
const SHOWN: &str = "warn";
const KEPT: &str = "info";

type Layered = Box<dyn tracing_subscriber::Layer<Registry> + Send + Sync>;

/// Logs to standard error if `--verbose` (given `verbosity` times) or the environment requests it; the environment
/// takes precedence.
pub fn start(verbosity: u8, environment: &Environment) -> Result<(), UsageError> {
    if let Some(directives) = requested_level(verbosity, environment) {
        begin(vec![shown(directives, environment)?]);
    }
    Ok(())
}

/// Logs of a service process: to standard error, and to its files in the data directory.
pub fn start_kept(verbosity: u8, environment: &Environment, data_dir: &Path, process: &str) -> anyhow::Result<()> {
    let asked = requested_level(verbosity, environment);
    let mut layers = vec![shown(asked.unwrap_or(SHOWN), environment)?];
    match Kept::open(&data_dir.join(LOG_DIR), process) {
        Ok(kept) => {
            let filter = filter(asked.unwrap_or(KEPT))?;
            let layer = fmt::layer().with_ansi(false).with_writer(Mutex::new(kept));
            layers.push(layer.with_filter(filter).boxed());
        }
        // The service itself reports an unwritable data directory, with a better message.
        Err(error) => crate::warn(&UsageError::new("logs", format!("not kept: {error}"))),
    }
    begin(layers);
    Ok(())
}

fn requested_level(verbosity: u8, environment: &Environment) -> Option<&str> {
    let by_option = match verbosity {
        0 => None,
        1 => Some("info"),
        2 => Some("debug"),
        _ => Some("trace"),
    };
    environment.log_level.as_deref().or(by_option)
}

fn shown(directives: &str, environment: &Environment) -> Result<Layered, UsageError> {
    let layer = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(!environment.is_colorless && io::IsTerminal::is_terminal(&io::stderr()));
    Ok(layer.with_filter(filter(directives)?).boxed())
}

fn filter(directives: &str) -> Result<EnvFilter, UsageError> {
    EnvFilter::builder().parse(directives).map_err(|error| {
        UsageError::new(
            environment::LOG_LEVEL,
            format!("{error}; write off, error, warn, info, debug or trace"),
        )
    })
}

fn begin(layers: Vec<Layered>) {
    // Fails only if logging was started already in this process.
    let _already_started = tracing_subscriber::registry().with(layers).try_init();
}
