//! Bars on a terminal: one line per file under way, as many as fit, and what has ended above them.

use std::{io, time::Duration};

use command::terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Event, FileView, Screen, Totals, text};

/// Redraws per second: what looks alive, and costs nothing.
const INTERVAL: Duration = Duration::from_millis(200);

/// More bars than this are no longer read.
const MAX_BARS: usize = 12;

/// Rows that stay free for the overview and the line below it.
const OTHER_ROWS: usize = 3;

/// All bars are one block that is drawn at once, so the cost is per redraw and not per event.
#[derive(Debug)]
pub(super) struct Bars {
    block: ProgressBar,
    palette: text::Palette,
    /// Lines told since the last redraw.
    told: Vec<String>,
}

impl Bars {
    pub(super) fn new(palette: text::Palette) -> Self {
        let block = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        block.set_style(ProgressStyle::with_template("{msg}").expect("the template is a constant"));
        Self {
            block,
            palette,
            told: Vec::new(),
        }
    }

    fn print_told(&mut self) {
        if !self.told.is_empty() {
            self.block.println(self.told.join("\n"));
            self.told.clear();
        }
    }
}

impl Screen for Bars {
    fn interval(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn tell(&mut self, file: &FileView, event: &Event<'_>) {
        // The bar itself shows that a file has begun.
        if !matches!(event, Event::Named { .. }) {
            self.told.extend(text::event(file, event, self.palette));
        }
    }

    fn progress(&mut self, active: &[&FileView], totals: &Totals) {
        self.print_told();
        self.block
            .set_message(block(active, totals, terminal::size(), self.palette));
        self.block.tick();
    }

    fn summary(&mut self, totals: &Totals) {
        self.told.extend(text::summary(totals));
        self.print_told();
        self.block.finish_and_clear();
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The block of bars for a terminal of `(columns, rows)`.
fn block(active: &[&FileView], totals: &Totals, (columns, rows): (usize, usize), palette: text::Palette) -> String {
    let shown = active.len().min(rows.saturating_sub(OTHER_ROWS).clamp(1, MAX_BARS));
    // A line that fills the last column makes some terminals go to the next row.
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
