//! Tables with aligned columns, by display width (a CJK character takes two). Pure.

use unicode_width::UnicodeWidthStr as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows with a header.
#[derive(Debug)]
pub(crate) struct Table<const COLUMNS: usize> {
    head: [(&'static str, Align); COLUMNS],
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(head: [(&'static str, Align); COLUMNS]) -> Self {
        Self { head, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: [String; COLUMNS]) {
        self.rows.push(row);
    }

    /// The lines, header first.
    pub(crate) fn lines(&self) -> Vec<String> {
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| row[column].width());
            cells.max().unwrap_or(0).max(self.head[column].0.width())
        });
        let head = self.head.map(|(name, _)| name.to_owned());
        std::iter::once(&head)
            .chain(&self.rows)
            .map(|row| self.line(row, &widths))
            .collect()
    }

    fn line(&self, row: &[String; COLUMNS], widths: &[usize; COLUMNS]) -> String {
        let mut line = String::new();
        for ((cell, width), (_, align)) in row.iter().zip(widths).zip(&self.head) {
            let padding = " ".repeat(width - cell.width());
            let (before, after) = match align {
                Align::Left => ("", padding.as_str()),
                Align::Right => (padding.as_str(), ""),
            };
            line.extend([before, cell, after, "  "]);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let mut table = Table::new([("ID", Align::Left), ("SIZE", Align::Right), ("NAME", Align::Left)]);
        table.push(["a1".into(), "1.0 KiB".into(), "電影.mkv".into()]);
        table.push(["b".into(), String::new(), String::new()]);
        assert_eq!(table.lines(), ["ID     SIZE  NAME", "a1  1.0 KiB  電影.mkv", "b"]);
    }
}
