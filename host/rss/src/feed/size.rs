//! Sizes as texts of people: `1.4 GiB`, `700 MB`.

/// The factor of each unit. Feeds write `MB` for what is counted in 1024s.
const UNITS: &[(&str, f64)] = &[
    ("k", 1024.0),
    ("m", 1_048_576.0),
    ("g", 1_073_741_824.0),
    ("t", 1_099_511_627_776.0),
];

/// Reads a size: digits with an optional fraction, and a unit. Plain digits are bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(bytes) = text.parse() {
        return Some(bytes);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','))?;
    let number: f64 = text[..end].replace(',', ".").parse().ok()?;
    let unit = text[end..].trim().to_ascii_lowercase();
    let unit = unit.strip_suffix("bytes").or(unit.strip_suffix('b')).unwrap_or(&unit);
    let factor = match unit.strip_suffix('i').unwrap_or(unit) {
        "" => 1.0,
        unit => UNITS.iter().find(|(known, _)| *known == unit)?.1,
    };
    let bytes = number * factor;
    // Beyond this, no file exists and the conversion would lose digits.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range"
    )]
    (0.0..9e15).contains(&bytes).then_some(bytes as u64)
}

const BETWEEN: &[char] = &[' ', '\t', '\n', ':', '=', '-'];

/// A size within a description, behind the word.
pub(super) fn in_text(text: &str) -> Option<u64> {
    let lower = text.to_lowercase();
    let at = lower.find("size")? + "size".len();
    // Punctuation and tags may stand between word and number, but no other words.
    let mut behind = lower[at..].trim_start_matches(BETWEEN);
    while let Some((_, rest)) = behind.strip_prefix('<').and_then(|tag| tag.split_once('>')) {
        behind = rest.trim_start_matches(BETWEEN);
    }
    let mut words = behind.split(|c: char| c.is_whitespace() || matches!(c, '<' | '(' | ')' | ';'));
    let number = words.next()?;
    parse_size(number).filter(|_| number.ends_with('b')).or_else(|| {
        let unit = words.find(|word| !word.is_empty())?;
        unit.ends_with('b').then(|| parse_size(&format!("{number} {unit}")))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("1024", Some(1024)),
            ("1.5 GiB", Some(1_610_612_736)),
            ("700 MB", Some(734_003_200)),
            ("1,5GB", Some(1_610_612_736)),
            ("2T", Some(2_199_023_255_552)),
            ("12 bytes", Some(12)),
            ("GiB", None),
            ("1.2.3 GB", None),
            ("9999999 TB", None),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
    }

    #[test]
    fn a_size_is_found_in_a_description() {
        assert_eq!(in_text("Category: TV | Size: 1.5 GB | Seeders: 5"), Some(1_610_612_736));
        assert_eq!(in_text("<b>Size:</b> 700MB<br>"), Some(734_003_200));
        assert_eq!(in_text("Size of the house: 300 square metres"), None);
        assert_eq!(
            in_text("size unknown, 2 GB of something quite different entirely"),
            None
        );
    }
}
