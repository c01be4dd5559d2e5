//! Plain lines for logs and pipes, and errors only for `--quiet`.

use std::{
    collections::HashMap,
    io::{self, BufWriter, Write},
    time::{Duration, Instant},
};

use command::amount;

use super::{Event, FileView, Screen, Totals, text};

/// A file with progress is reported at least this often.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);

/// A file is also reported whenever it gained this many percent.
const STEP_PERCENT: u8 = 10;

/// How often both conditions are checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// One line per event, and progress at intervals.
#[derive(Debug)]
pub(super) struct Lines<W: Write> {
    out: BufWriter<W>,
    /// The last report of each active file.
    reported: HashMap<usize, Reported>,
}

#[derive(Debug, Clone, Copy)]
struct Reported {
    step: u8,
    at: Instant,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out: BufWriter::new(out),
            reported: HashMap::new(),
        }
    }

    fn line(&mut self, line: &str) {
        // A write error cannot be reported anywhere.
        let _closed = writeln!(self.out, "{line}");
    }

    /// Whether to report the progress of `file` at `now`.
    fn is_due(&mut self, file: &FileView, now: Instant) -> bool {
        let step = file
            .total_bytes
            .map_or(0, |total| amount::percent(file.done_bytes, total) / STEP_PERCENT);
        let reported = self.reported.entry(file.index).or_insert(Reported { step: 0, at: now });
        let is_due = step > reported.step || now.saturating_duration_since(reported.at) >= LONGEST_SILENCE;
        if is_due {
            *reported = Reported { step, at: now };
        }
        is_due
    }
}

impl<W: Write> Screen for Lines<W> {
    fn interval(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn report(&mut self, file: &FileView, event: &Event<'_>) {
        if matches!(event, Event::Finished { .. } | Event::Skipped { .. } | Event::Failed(_)) {
            self.reported.remove(&file.index);
        }
        if let Some(line) = text::event(file, event, text::Palette::default()) {
            self.line(&line);
        }
    }

    fn progress(&mut self, active: &[&FileView], _totals: &Totals) {
        let now = Instant::now();
        for file in active {
            if self.is_due(file, now) {
                self.line(&text::progress(file));
            }
        }
    }

    fn summary(&mut self, totals: &Totals) {
        if let Some(line) = text::summary(totals) {
            self.line(&line);
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let _closed = self.out.flush();
        Ok(())
    }
}

/// Failures only.
#[derive(Debug)]
pub(super) struct Errors<W: Write>(W);

impl<W: Write> Errors<W> {
    pub(super) fn new(out: W) -> Self {
        Self(out)
    }
}

impl<W: Write> Screen for Errors<W> {
    fn interval(&self) -> Option<Duration> {
        None
    }

    fn report(&mut self, file: &FileView, event: &Event<'_>) {
        if let Event::Failed(_) = event
            && let Some(line) = text::event(file, event, text::Palette::default())
        {
            let _closed = writeln!(self.0, "{line}");
        }
    }

    fn progress(&mut self, _active: &[&FileView], _totals: &Totals) {}

    fn summary(&mut self, _totals: &Totals) {}

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_mentioned_each_ten_percent_or_ten_seconds() {
        let mut lines = Lines::new(Vec::new());
        let start = Instant::now();
        let mut file = FileView {
            total_bytes: Some(1000),
            ..FileView::default()
        };
        let mut is_due = |done_bytes, seconds| {
            file.done_bytes = done_bytes;
            lines.is_due(&file, start + Duration::from_secs(seconds))
        };
        assert!(!is_due(0, 0));
        assert!(!is_due(99, 1));
        assert!(is_due(350, 2));
        assert!(!is_due(399, 11));
        assert!(is_due(399, 12));
        assert!(is_due(1000, 13));
        assert!(!is_due(1000, 14));
    }
}
