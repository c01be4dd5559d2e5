//! Days of the week as people write them, and as bits: bit 0 is Monday. Pure.

const NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

const EVERY: u8 = 0x7f;

/// Parses `mon,wed`, `mon-fri` (a range may pass Sunday: `sat-mon`), or `daily`.
pub(super) fn parse(text: &str) -> Result<u8, String> {
    if text == "daily" {
        return Ok(EVERY);
    }
    let problem = || {
        format!(
            "write days such as mon-fri or sat,sun, or daily; the names are {}",
            NAMES.join(", ")
        )
    };
    let place = |name: &str| {
        let found = NAMES.iter().position(|known| name.eq_ignore_ascii_case(known));
        found.ok_or_else(problem)
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (place(first.trim())?, place(last.trim())?);
        let count = (last + NAMES.len() - first) % NAMES.len() + 1;
        bits |= (first..first + count).fold(0, |bits, day| bits | 1 << (day % NAMES.len()));
    }
    Ok(bits)
}

/// The days as [`parse`] reads them.
pub(super) fn name(bits: u8) -> String {
    if bits & EVERY == EVERY || bits == 0 {
        return "daily".to_owned();
    }
    let days = NAMES.iter().enumerate().filter(|(day, _)| bits & (1 << day) != 0);
    days.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_bits_from_monday_on() {
        for (text, bits) in [
            ("mon", 1),
            ("mon-fri", 0x1f),
            ("sat,Sun", 0x60),
            ("sat-mon", 0x61),
            ("daily", 0x7f),
            ("wed,mon-tue", 7),
        ] {
            assert_eq!(parse(text), Ok(bits), "{text}");
            assert_eq!(parse(&name(bits)), Ok(bits), "{text}");
        }
        assert!(parse("monday").is_err() && parse("").is_err() && parse("mon-").is_err());
    }
}
