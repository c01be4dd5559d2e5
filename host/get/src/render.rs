//! What the user is told meanwhile: one set of facts, four ways to tell them.

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

/// One file, as it is doing.
#[derive(Debug, Clone, Default)]
pub struct FileView {
    /// The position of the file in the input, from 0.
    pub index: usize,
    /// Its URL, without secrets.
    pub url: String,
    /// What people call it: its path seen from the current directory, once that is known.
    pub name: Option<String>,
    pub stage: Stage,
    pub total_bytes: Option<u64>,
    pub done_bytes: u64,
    pub bytes_per_second: u64,
    pub connections: u16,
}

impl FileView {
    /// Its name, or its URL while it has none; nothing in it controls a terminal.
    fn title(&self) -> Cow<'_, str> {
        printable(self.name.as_deref().unwrap_or(&self.url))
    }
}

/// Something that happened to a file.
#[derive(Debug)]
pub enum Event<'a> {
    /// Its turn came.
    Started,
    /// Its final path is known.
    Named { path: &'a Path, total_bytes: Option<u64> },
    /// Something worth telling.
    Notice(&'a str),
    /// An attempt failed and will be repeated.
    Retrying { failure: &'a Failure, wait: Duration },
    /// It is there.
    Finished {
        path: &'a Path,
        size_bytes: u64,
        received_bytes: u64,
        elapsed: Duration,
    },
    /// It was there before.
    Skipped { existing: &'a Path },
    /// It will not come.
    Failed(&'a Failure),
}

/// All files together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// How many there are.
    pub count: usize,
    pub finished: usize,
    pub failed: usize,
    pub skipped: usize,
    /// Bytes received, for files under way too.
    pub received_bytes: u64,
    pub elapsed: Duration,
    /// Whether a service goes on with what is unfinished; else this command does, when it is run again.
    pub is_left_to_service: bool,
}

impl Totals {
    /// How many have not come to an end.
    pub fn unfinished(&self) -> usize {
        self.count - self.finished - self.failed - self.skipped
    }
}

/// A way to tell what happens. Telling never waits for a slow terminal longer than one write.
pub trait Screen {
    /// How often [`Screen::progress`] is wanted; `None` is never.
    fn interval(&self) -> Option<Duration>;

    /// Tells an event.
    fn tell(&mut self, file: &FileView, event: &Event<'_>);

    /// Tells how the files under way are doing, in their order.
    fn progress(&mut self, active: &[&FileView], totals: &Totals);

    /// Tells how all ended; the last call.
    fn summary(&mut self, totals: &Totals);

    /// Lets everything told so far be seen. Fails if what reads our standard output has gone.
    fn flush(&mut self) -> io::Result<()>;
}

/// The way that `output` and the surroundings ask for.
pub fn screen(output: &OutputArgs, environment: &Environment) -> Box<dyn Screen> {
    if output.json {
        return Box::new(json::JsonLines::new(io::stdout()));
    }
    if output.quiet {
        return Box::new(lines::Errors::new(io::stderr()));
    }
    // Bars would be torn by log lines.
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
