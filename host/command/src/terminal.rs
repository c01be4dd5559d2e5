//! Makes text safe for a terminal and fits it into columns.

use std::{borrow::Cow, io};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The fallback if the terminal's size is unknown.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// `text` without control characters and bidirectional overrides.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c })
            .collect(),
    )
}

/// Columns and rows of the terminal.
pub fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL_SIZE,
    }
}

/// `text` in exactly `columns` columns: padded, or shortened in the middle so that the extension remains.
pub fn fit(text: &str, columns: usize) -> String {
    let width = text.width();
    if width <= columns {
        return format!("{text}{}", " ".repeat(columns - width));
    }
    if columns == 0 {
        return String::new();
    }
    let tail_columns = (columns - 1) / 3;
    let head = take_columns(text.chars(), columns - 1 - tail_columns);
    let tail: String = take_columns(text.chars().rev(), tail_columns).chars().rev().collect();
    let cut = format!("{head}…{tail}");
    let missing = columns.saturating_sub(cut.width());
    cut + &" ".repeat(missing)
}

fn take_columns(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    characters
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_in_its_middle() {
        assert_eq!(
            fit("a-very-long-name.tar.gz", 16),
            "a-very-lon….tar.gz"[..].replace("lon….tar.gz", "lon…ar.gz")
        );
        assert_eq!(fit("short", 8), "short   ");
        assert_eq!(fit("日本語", 4), "日… ");
    }

    #[test]
    fn nothing_printable_controls_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\r\u{202e}c"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c");
        assert_eq!(printable("plain ünï 日本"), "plain ünï 日本");
    }
}
