//! Digits so large that they can be compared across a room.

/// Rows of each digit, from the top; a bit is a block, the highest of three on the left.
const SHAPES: [[u8; 5]; 10] = [
    [7, 5, 5, 5, 7],
    [2, 6, 2, 2, 7],
    [7, 1, 7, 4, 7],
    [7, 1, 7, 1, 7],
    [5, 5, 7, 1, 1],
    [7, 4, 7, 1, 7],
    [7, 4, 7, 5, 7],
    [7, 1, 2, 2, 2],
    [7, 5, 7, 5, 7],
    [7, 5, 7, 1, 7],
];

/// The lines of `digits`, with a gap in the middle, and a line below that has them as text.
pub(super) fn large(digits: &str) -> Vec<String> {
    let values: Vec<usize> = digits
        .chars()
        .filter_map(|digit| digit.to_digit(10))
        .map(|digit| digit as usize)
        .collect();
    let mut lines = vec![String::new()];
    let shapes: Vec<&[u8; 5]> = values.iter().map(|value| &SHAPES[*value]).collect();
    lines.extend((0..5).map(|row| {
        let mut line = String::from("  ");
        for (place, shape) in shapes.iter().enumerate() {
            if place > 0 && place * 2 == shapes.len() {
                line.push_str("    ");
            }
            for bit in [4, 2, 1] {
                line.push_str(if shape[row] & bit == 0 { "  " } else { "██" });
            }
            line.push_str("  ");
        }
        line.trim_end().to_owned()
    }));
    lines.push(String::new());
    lines.push(format!("  {digits}"));
    lines.push(String::new());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_has_a_shape_of_its_own() {
        let lines = large("1234567890");
        assert_eq!(lines.len(), 9);
        assert!(lines[7].contains("1234567890"));
        for (digit, shape) in SHAPES.iter().enumerate() {
            assert_eq!(SHAPES.iter().filter(|other| *other == shape).count(), 1, "{digit}");
        }
    }
}
