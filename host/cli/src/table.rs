//! Tables with aligned columns, by display width (a CJK character takes two). Pure.

use unicode_width::UnicodeWidthStr as _;

/// The lines of a table, header first. A heading that begins with `>` aligns its column to the right.
pub(crate) fn lines<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> Vec<String> {
    let is_right = head.map(|name| name.starts_with('>'));
    let head = head.map(|name| name.trim_start_matches('>').to_owned());
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let widths: [usize; COLUMNS] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0));
    let line = |row: &[String; COLUMNS]| {
        let mut line = String::new();
        for ((cell, width), is_right) in row.iter().zip(widths).zip(is_right) {
            let padding = " ".repeat(width - cell.width());
            let (before, after) = if is_right {
                (padding.as_str(), "")
            } else {
                ("", padding.as_str())
            };
            line.extend([before, cell, after, "  "]);
        }
        line.truncate(line.trim_end().len());
        line
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [["a1", "1.0 KiB", "電影.mkv"], ["b", "", ""]].map(|row| row.map(str::to_owned));
        let lines = lines(["ID", ">SIZE", "NAME"], rows);
        assert_eq!(lines, ["ID     SIZE  NAME", "a1  1.0 KiB  電影.mkv", "b"]);
    }
}
