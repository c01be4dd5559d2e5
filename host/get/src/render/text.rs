//! Texts of events and progress, for terminals and logs. Pure.

use std::time::Duration;

use command::{
    amount,
    terminal::{fit, printable},
};
use transfer::Stage;
use unicode_width::UnicodeWidthStr as _;

use super::{Event, FileView, Totals};

/// Whether to use colours.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Palette {
    pub(super) is_colored: bool,
}

/// The meaning of a word, which determines its colour.
#[derive(Debug, Clone, Copy)]
enum Tone {
    Good,
    Bad,
    Caution,
    Quiet,
}

impl Palette {
    fn paint(self, tone: Tone, text: &str) -> String {
        // SGR: green, bold red, yellow, dim.
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "1;31",
            Tone::Caution => "33",
            Tone::Quiet => "2",
        };
        if self.is_colored {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// The line of an event; `None` for events that are not shown.
pub(super) fn event(file: &FileView, event: &Event<'_>, palette: Palette) -> Option<String> {
    let title = file.title();
    let line = match event {
        Event::Started => return None,
        Event::Named { total_bytes, .. } => {
            let size = total_bytes
                .map(|total| format!(" ({})", amount::bytes(total)))
                .unwrap_or_default();
            let downloading = palette.paint(Tone::Quiet, "downloading");
            format!("{downloading} {title}{size} from {}", printable(&file.url))
        }
        Event::Notice(text) => format!("{} {title}: {}", palette.paint(Tone::Caution, "note"), printable(text)),
        Event::Retrying { failure, wait } => format!(
            "{} {title} in {}: {}",
            palette.paint(Tone::Caution, "retrying"),
            amount::duration(*wait),
            printable(&failure.message)
        ),
        Event::Finished {
            size_bytes,
            received_bytes,
            elapsed,
            ..
        } => {
            let finished = palette.paint(Tone::Good, "finished");
            format!(
                "{finished} {title} ({}{})",
                amount::bytes(*size_bytes),
                pace(*received_bytes, *elapsed)
            )
        }
        Event::Skipped { existing } => format!(
            "{} {}: {} exists",
            palette.paint(Tone::Caution, "skipped"),
            printable(&file.url),
            printable(&existing.to_string_lossy())
        ),
        Event::Failed(failure) => format!(
            "{} {}: {} [{}]",
            palette.paint(Tone::Bad, "failed"),
            printable(&file.url),
            printable(&failure.message),
            failure.kind
        ),
    };
    Some(line)
}

/// Progress of a file, as a log line.
pub(super) fn progress(file: &FileView) -> String {
    let rate = amount::rate(file.bytes_per_second);
    let connections = match file.connections {
        1 => "1 connection".to_owned(),
        count => format!("{count} connections"),
    };
    match file.total_bytes {
        Some(total) => {
            let percent = amount::percent(file.done_bytes, total);
            let left = time_left(file).map_or(String::new(), |left| format!(", {} left", amount::duration(left)));
            format!(
                "{}: {percent}% of {}, {rate}{left}, {connections}",
                file.title(),
                amount::bytes(total)
            )
        }
        None => format!(
            "{}: {}, {rate}, {connections}",
            file.title(),
            amount::bytes(file.done_bytes)
        ),
    }
}

/// The result; `None` if the line of the only file says it already.
pub(super) fn summary(totals: &Totals) -> Option<String> {
    if totals.count == 1 && totals.unfinished() == 0 {
        return None;
    }
    let parts = [
        (totals.finished, "finished"),
        (totals.failed, "failed"),
        (totals.skipped, "skipped"),
        (totals.unfinished(), "unfinished"),
    ];
    let shown: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let bytes = amount::bytes(totals.received_bytes);
    let ended = format!(
        "{}; received {bytes} in {}",
        shown.join(", "),
        amount::duration(totals.elapsed)
    );
    let advice = match (totals.unfinished(), totals.is_left_to_service) {
        (0, _) => "",
        (_, true) => "\nthe service continues",
        (_, false) => "\nsaved; run the same command again to continue",
    };
    Some(ended + advice)
}

/// The overview line below the bars.
pub(super) fn overview(active: &[&FileView], hidden: usize, totals: &Totals) -> String {
    let ended = totals.count - totals.unfinished();
    let rate: u64 = active.iter().map(|file| file.bytes_per_second).sum();
    let failed = if totals.failed > 0 {
        format!(", {} failed", totals.failed)
    } else {
        String::new()
    };
    let more = if hidden > 0 {
        format!(", {hidden} more under way")
    } else {
        String::new()
    };
    format!(
        "{ended} of {} files{failed}{more}, {}",
        totals.count,
        amount::rate(rate)
    )
}

const BAR_COLUMNS: usize = 20;

/// Columns for percent, bytes, rate, time left, and connections.
const FIGURES_COLUMNS: usize = 53;

/// The minimum for names; figures are omitted to keep it.
const NAME_COLUMNS: usize = 16;

/// The progress line of a file, in at most `columns`.
pub(super) fn bar(file: &FileView, columns: usize, palette: Palette) -> String {
    let percent = file.total_bytes.map(|total| amount::percent(file.done_bytes, total));
    let percent_text = percent.map_or_else(String::new, |percent| format!("{percent}%"));
    let has_figures = columns >= NAME_COLUMNS + FIGURES_COLUMNS;
    let has_bar = columns >= NAME_COLUMNS + FIGURES_COLUMNS + BAR_COLUMNS + 2;
    let figures = if has_figures {
        figures(file, &percent_text)
    } else {
        format!(" {percent_text:>4}")
    };
    let bar_columns = if has_bar { BAR_COLUMNS + 2 } else { 0 };
    let name_columns = columns.saturating_sub(figures.width() + bar_columns);
    let mut line = fit(&file.title(), name_columns);
    if has_bar {
        let filled = percent.map_or(0, |percent| BAR_COLUMNS * usize::from(percent) / 100);
        let full = palette.paint(Tone::Good, &"━".repeat(filled));
        line = format!(
            "{line}  {full}{}",
            palette.paint(Tone::Quiet, &"─".repeat(BAR_COLUMNS - filled))
        );
    }
    line + &figures
}

fn figures(file: &FileView, percent: &str) -> String {
    let doing = match file.stage {
        Stage::Preparing => "preparing".to_owned(),
        Stage::Verifying => "verifying".to_owned(),
        Stage::Seeding => "seeding".to_owned(),
        Stage::Moving => amount::rate(file.bytes_per_second),
    };
    let done = amount::bytes(file.done_bytes);
    let bytes = file
        .total_bytes
        .map_or(done.clone(), |total| format!("{done}/{}", amount::bytes(total)));
    let left = time_left(file).map(amount::duration).unwrap_or_default();
    format!(
        " {percent:>4} {bytes:>21} {doing:>12} {left:>7} {:>3}c",
        file.connections
    )
}

/// The remaining time at the current rate.
fn time_left(file: &FileView) -> Option<Duration> {
    let left = file.total_bytes?.checked_sub(file.done_bytes)?;
    (left > 0 && file.bytes_per_second > 0).then(|| Duration::from_secs(left.div_ceil(file.bytes_per_second)))
}

/// Duration and average rate; empty for a file that took no time, whose rate is meaningless.
fn pace(received_bytes: u64, elapsed: Duration) -> String {
    if elapsed < Duration::from_millis(100) {
        return String::new();
    }
    let rate = u64::try_from(u128::from(received_bytes) * 1000 / elapsed.as_millis()).unwrap_or(u64::MAX);
    format!(" in {}, {}", amount::duration(elapsed), amount::rate(rate))
}
