//! Sets up logging: to standard error, and for the service to files as well.

mod json;
mod kept;

use std::{io, path::Path, sync::Mutex};

use tracing_subscriber::{
    EnvFilter, Layer as _, Registry,
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use self::{
    json::{JsonEvents, JsonFields},
    kept::Kept,
};
use crate::{
    UsageError,
    environment::{self, Environment},
};

pub use self::kept::{LOG_DIR, ends};

/// The default filters of a service, for standard error and for its files.
const SHOWN: &str = "warn";
const KEPT: &str = "info";

type Layered = Box<dyn tracing_subscriber::Layer<Registry> + Send + Sync>;

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl Format {
    /// The format that [`environment::LOG_FORMAT`] names.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("write text or json"),
        }
    }

    fn of(environment: &Environment) -> Result<Self, UsageError> {
        let named = environment.log_format.as_deref().map_or(Ok(Self::Text), Self::parse);
        named.map_err(|problem| UsageError::new(environment::LOG_FORMAT, problem))
    }

    fn layer<W>(self, writer: W, is_colored: bool, filter: EnvFilter) -> Layered
    where
        W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
    {
        let layer = fmt::layer().with_writer(writer).with_ansi(is_colored);
        match self {
            Self::Text => layer.with_filter(filter).boxed(),
            Self::Json => {
                let layer = layer.event_format(JsonEvents).fmt_fields(JsonFields);
                layer.with_filter(filter).boxed()
            }
        }
    }
}

/// Logs to standard error if `--verbose` (given `verbosity` times) or the environment requests it; the environment
/// takes precedence.
pub fn start(verbosity: u8, environment: &Environment) -> Result<(), UsageError> {
    let format = Format::of(environment)?;
    if let Some(directives) = requested_level(verbosity, environment) {
        begin(vec![shown(directives, format, environment)?]);
    }
    Ok(())
}

/// Logs of a service process: to standard error, and to its files in the data directory.
pub fn start_kept(verbosity: u8, environment: &Environment, data_dir: &Path, process: &str) -> anyhow::Result<()> {
    let format = Format::of(environment)?;
    let asked = requested_level(verbosity, environment);
    let mut layers = vec![shown(asked.unwrap_or(SHOWN), format, environment)?];
    match Kept::open(&data_dir.join(LOG_DIR), process) {
        Ok(kept) => layers.push(format.layer(Mutex::new(kept), false, filter(asked.unwrap_or(KEPT))?)),
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

fn shown(directives: &str, format: Format, environment: &Environment) -> Result<Layered, UsageError> {
    let is_colored = !environment.is_colorless && io::IsTerminal::is_terminal(&io::stderr());
    Ok(format.layer(io::stderr, is_colored, filter(directives)?))
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
