//! Progress bars on a terminal: one line per active file, as many as fit, below the events.

use std::{io, time::Duration};

use command::terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Event, FileView, Screen, Totals, text};

/// The interval of redraws: smooth enough, at negligible cost.
const INTERVAL: Duration = Duration::from_millis(200);

/// More bars are not readable.
const MAX_BARS: usize = 12;

/// Rows reserved for the overview and the cursor's line.
const OTHER_ROWS: usize = 3;

/// All bars are one block that is drawn at once, so the cost is per redraw and not per event.
#[derive(Debug)]
pub(super) struct Bars {
    block: ProgressBar,
    palette: text::Palette,
    /// Event lines since the last redraw.
    lines: Vec<String>,
}

impl Bars {
    pub(super) fn new(palette: text::Palette) -> Self {
        let block = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        block.set_style(ProgressStyle::with_template("{msg}").expect("the template is a constant"));
        Self {
            block,
            palette,
            lines: Vec::new(),
        }
    }

    fn print_lines(&mut self) {
        if !self.lines.is_empty() {
            self.block.println(self.lines.join("\n"));
            self.lines.clear();
        }
    }
}

impl Screen for Bars {
    fn interval(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn report(&mut self, file: &FileView, event: &Event<'_>) {
        // The bar itself shows that the file started.
        if !matches!(event, Event::Named { .. }) {
            self.lines.extend(text::event(file, event, self.palette));
        }
    }

    fn progress(&mut self, active: &[&FileView], totals: &Totals) {
        self.print_lines();
        self.block
            .set_message(block(active, totals, terminal::size(), self.palette));
        self.block.tick();
    }

    fn summary(&mut self, totals: &Totals) {
        self.lines.extend(text::summary(totals));
        self.print_lines();
        self.block.finish_and_clear();
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The block for a terminal of `(columns, rows)`.
fn block(active: &[&FileView], totals: &Totals, (columns, rows): (usize, usize), palette: text::Palette) -> String {
    let shown = active.len().min(rows.saturating_sub(OTHER_ROWS).clamp(1, MAX_BARS));
    // Some terminals wrap after a line that fills the last column.
    let columns = columns.saturating_sub(1);
    let mut lines: Vec<_> = active[..shown]
        .iter()
        .map(|file| text::bar(file, columns, palette))
        .collect();
    if totals.count > 1 {
        lines.push(terminal::fit(
            &text::overview(active, active.len() - shown, totals),
            columns,
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_as_many_bars_as_fit_and_the_rest_in_the_overview() {
        let files: Vec<_> = (0..30)
            .map(|index| FileView {
                index,
                name: Some(format!("file{index}")),
                bytes_per_second: 1024,
                ..FileView::default()
            })
            .collect();
        let active: Vec<_> = files.iter().collect();
        let totals = Totals {
            count: 100,
            finished: 5,
            failed: 1,
            ..Totals::default()
        };
        for (rows, bars) in [(24, 12), (10, 7), (2, 1)] {
            let block = block(&active, &totals, (80, rows), text::Palette::default());
            let lines: Vec<_> = block.lines().collect();
            assert_eq!(lines.len(), bars + 1);
            assert!(lines[0].starts_with("file0 "));
            let overview = format!("6 of 100 files, 1 failed, {} more under way, 30.0 KiB/s", 30 - bars);
            assert_eq!(lines[bars].trim_end(), overview);
        }
    }
}
