//! Draws QR codes with half blocks: two rows of modules in a line.

use qrcodegen::{QrCode, QrCodeEcc};

/// The margin around a code that readers need, in modules.
const MARGIN: i32 = 4;

/// Black on white whatever the colours of the terminal are: many readers do not know inverted codes.
const COLOURS: &str = "\x1b[38;5;16;48;5;231m";
const RESET: &str = "\x1b[0m";

/// The lines of a code; `None` if it is wider than `columns`, or the payload has more than a code holds.
pub(super) fn draw(payload: &str, columns: usize) -> Option<Vec<String>> {
    let code = QrCode::encode_text(payload, QrCodeEcc::Low).ok()?;
    let places = -MARGIN..code.size() + MARGIN;
    if places.len() > columns {
        return None;
    }
    let line = |y: i32| {
        let blocks = places
            .clone()
            .map(|x| block([code.get_module(x, y), code.get_module(x, y + 1)]));
        format!("{COLOURS}{}{RESET}", blocks.collect::<String>())
    };
    Some(places.clone().step_by(2).map(line).collect())
}

/// The character of a dark or light module above another one.
fn block(is_dark: [bool; 2]) -> char {
    match is_dark {
        [true, true] => '█',
        [true, false] => '▀',
        [false, true] => '▄',
        [false, false] => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: &str = "https://login.example/qr?token=0123456789abcdef";

    /// The rows of modules that lines show; dark is `true`.
    fn modules(lines: &[String]) -> Vec<Vec<bool>> {
        let blocks = |line: &String| -> Vec<char> {
            let blocks = line.strip_prefix(COLOURS).unwrap().strip_suffix(RESET).unwrap();
            blocks.chars().collect()
        };
        let rows = lines.iter().flat_map(|line| {
            let blocks = blocks(line);
            let row = |dark: [char; 2]| blocks.iter().map(|block| dark.contains(block)).collect::<Vec<_>>();
            [row(['█', '▀']), row(['█', '▄'])]
        });
        rows.collect()
    }

    /// Draws dark modules as `#`, without the margin.
    fn shown(modules: &[Vec<bool>], rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> Vec<String> {
        let text = |row: &Vec<bool>| {
            row[columns.clone()]
                .iter()
                .map(|dark| if *dark { '#' } else { '.' })
                .collect()
        };
        modules[rows].iter().map(text).collect()
    }

    #[test]
    fn a_code_has_its_three_corners_within_a_light_margin() {
        let modules = modules(&draw(PAYLOAD, 80).unwrap());
        let (width, margin) = (modules[0].len(), usize::try_from(MARGIN).unwrap());
        let size = width - 2 * margin;
        assert_eq!((size - 17) % 4, 0, "the size of a version");
        let corner = [
            "#######", "#.....#", "#.###.#", "#.###.#", "#.###.#", "#.....#", "#######",
        ];
        let (start, end) = (margin..margin + 7, margin + size - 7..margin + size);
        for (rows, columns) in [
            (start.clone(), start.clone()),
            (start.clone(), end.clone()),
            (end, start),
        ] {
            assert_eq!(shown(&modules, rows, columns), corner);
        }
        let is_margin = |place: usize| !(margin..margin + size).contains(&place);
        for (y, row) in modules.iter().enumerate() {
            for (x, is_dark) in row.iter().enumerate() {
                assert!(!(*is_dark && (is_margin(x) || is_margin(y))), "{x} {y}");
            }
        }
    }

    #[test]
    fn every_module_is_where_the_code_has_it() {
        let code = QrCode::encode_text(PAYLOAD, QrCodeEcc::Low).unwrap();
        let modules = modules(&draw(PAYLOAD, 80).unwrap());
        for (y, row) in (-MARGIN..).zip(&modules) {
            for (x, is_dark) in (-MARGIN..).zip(row) {
                assert_eq!(*is_dark, code.get_module(x, y), "{x} {y}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_not_drawn() {
        let width = modules(&draw(PAYLOAD, 80).unwrap())[0].len();
        assert!(draw(PAYLOAD, width).is_some() && draw(PAYLOAD, width - 1).is_none());
        assert!(draw(&"x".repeat(4000), 1000).is_none());
    }
}
