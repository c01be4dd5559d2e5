//! Progress output: one set of events, four formats.

use std::{
    borrow::Cow,
    io::{self, IsTerminal as _},
    path::Path,
    time::Duration,
};

use command::{environment::Environment, terminal::printable};
use transfer::{Failure, Stage};

use crate::args::OutputArgs;

mod bars;
mod json;
mod lines;
#[cfg(test)]
mod recorder;
mod text;

#[cfg(test)]
pub(crate) use recorder::Recorder;

/// The displayed state of a file.
#[derive(Debug, Clone, Default)]
pub struct FileView {
    /// The position in the input, from 0.
    pub index: usize,
    /// Without secrets.
    pub url: String,
    /// The path relative to the current directory, once known.
    pub name: Option<String>,
    pub stage: Stage,
    pub total_bytes: Option<u64>,
    pub done_bytes: u64,
    pub bytes_per_second: u64,
    pub connections: u16,
}

impl FileView {
    /// The name, or the URL before it is known; without control characters.
    fn title(&self) -> Cow<'_, str> {
        printable(self.name.as_deref().unwrap_or(&self.url))
    }
}

/// An event of a file.
#[derive(Debug)]
pub enum Event<'a> {
    /// Its run started.
    Started,
    /// Its final path is known.
    Named { path: &'a Path, total_bytes: Option<u64> },
    /// A remark of the run.
    Notice(&'a str),
    /// An attempt failed and will be retried.
    Retrying { failure: &'a Failure, wait: Duration },
    /// The file is complete.
    Finished {
        path: &'a Path,
        size_bytes: u64,
        received_bytes: u64,
        elapsed: Duration,
    },
    /// It existed already.
    Skipped { existing: &'a Path },
    /// It failed permanently.
    Failed(&'a Failure),
}

/// Totals of all files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of files.
    pub count: usize,
    pub finished: usize,
    pub failed: usize,
    pub skipped: usize,
    /// Received bytes, including those of files in progress.
    pub received_bytes: u64,
    pub elapsed: Duration,
    /// Whether a service continues the unfinished files; otherwise running this command again does.
    pub is_left_to_service: bool,
}

impl Totals {
    /// Number of files that have not ended.
    pub fn unfinished(&self) -> usize {
        self.count - self.finished - self.failed - self.skipped
    }
}

/// An output format. Calls must not block longer than one write.
pub trait Screen {
    /// How often [`Screen::progress`] is wanted; `None` is never.
    fn interval(&self) -> Option<Duration>;

    /// Reports an event.
    fn report(&mut self, file: &FileView, event: &Event<'_>);

    /// Reports the progress of active files, in input order.
    fn progress(&mut self, active: &[&FileView], totals: &Totals);

    /// Reports the result; the last call.
    fn summary(&mut self, totals: &Totals);

    /// Flushes all output. Fails if the reader of standard output has closed it.
    fn flush(&mut self) -> io::Result<()>;
}

/// The format that options and terminal determine.
pub fn screen(output: &OutputArgs, environment: &Environment) -> Box<dyn Screen> {
    if output.json {
        return Box::new(json::JsonLines::new(io::stdout()));
    }
    if output.quiet {
        return Box::new(lines::Errors::new(io::stderr()));
    }
    // Log lines would break the bars.
    if io::stderr().is_terminal()
        && !environment.is_dumb_terminal
        && output.verbose == 0
        && environment.log_level.is_none()
    {
        return Box::new(bars::Bars::new(text::Palette {
            is_colored: !environment.is_colorless,
        }));
    }
    Box::new(lines::Lines::new(io::stderr()))
}

#[cfg(test)]
mod tests;
