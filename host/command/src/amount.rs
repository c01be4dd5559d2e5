//! Parses and formats sizes, rates and durations.

use std::time::Duration;

use transfer::ByteCount;

/// Each unit is 1024 times the previous one.
const UNITS: [char; 4] = ['K', 'M', 'G', 'T'];

/// Fraction digits that are parsed; nine distinguish single bytes of a gigabyte.
const MAX_FRACTION_DIGITS: usize = 9;

/// Parses a size: `4096`, `64K`, `2.5M`, `1G`, `1GiB`, `1T`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const FORM: &str = "write a number of bytes such as 4096, 64K, 2.5M or 1G (1024-based)";
    let text = text.trim();
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let factor = unit_factor(unit).ok_or(FORM)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(FORM.to_owned());
    }
    let fraction = &fraction[..fraction.len().min(MAX_FRACTION_DIGITS)];
    let scale = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or(0));
    let scaled = format!("{whole}{fraction}")
        .parse::<u128>()
        .ok()
        .and_then(|number| number.checked_mul(factor));
    let bytes = scaled
        .map(|scaled| scaled / scale)
        .and_then(|bytes| i64::try_from(bytes).ok());
    bytes
        .map(i64::unsigned_abs)
        .ok_or_else(|| "too large; the limit is 8388607T".to_owned())
}

/// Parses a rate in bytes per second, with an optional `/s`; `0` means unlimited.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    let text = text.trim();
    parse_bytes(text.strip_suffix("/s").unwrap_or(text))
        .map_err(|_| "write bytes per second such as 500K, 2.5M or 1G (1024-based), or 0 for no limit".to_owned())
}

fn unit_factor(unit: &str) -> Option<u128> {
    let mut characters = unit.chars();
    let Some(letter) = characters.next() else {
        return Some(1);
    };
    let power = UNITS.iter().position(|known| known.eq_ignore_ascii_case(&letter))?;
    let is_whole = matches!(characters.as_str(), "" | "iB" | "ib");
    is_whole.then(|| 1024_u128.pow(u32::try_from(power).unwrap_or(0) + 1))
}

/// Parses seconds, with fractions, between `least` and `most`.
pub fn parse_seconds(text: &str, least: f64, most: f64) -> Result<Duration, String> {
    let seconds = text
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|seconds| (least..=most).contains(seconds));
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| format!("write seconds between {least} and {most}, such as 2.5"))
}

/// Formats a size: `999 B`, `1.5 MiB`.
pub fn bytes(count: u64) -> String {
    format!("{:.1}", ByteCount(count))
}

/// Formats a rate: `1.5 MiB/s`.
pub fn rate(bytes_per_second: u64) -> String {
    format!("{}/s", bytes(bytes_per_second))
}

/// Formats a duration with at most two units: `0.4s`, `6s`, `12s`, `3m05s`, `2h07m`, `4d03h`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 if time.subsec_nanos() > 0 => format!("{}.{}s", seconds, time.subsec_millis() / 100),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Whole percent, rounded down so that 100 means complete.
pub fn percent(done: u64, total: u64) -> u8 {
    if total == 0 {
        return 100;
    }
    u8::try_from((u128::from(done) * 100 / u128::from(total)).min(100)).unwrap_or(100)
}

/// A number of things: "1 task", "2 tasks".
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_units_of_1024() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("2.5M", 5 << 19),
            (".5M", 1 << 19),
            (" 1G ", 1 << 30),
            ("1GiB", 1 << 30),
            ("3T", 3 << 40),
            ("0.000000001K", 0),
            ("1.9999999999999999999999", 1),
        ] {
            assert_eq!(parse_bytes(text), Ok(expected), "{text}");
        }
        assert_eq!(parse_rate("2.5M/s"), Ok(5 << 19));
    }

    #[test]
    fn what_is_no_size_is_refused_with_the_form() {
        for text in ["", ".", "K", "-1", "1.2.3", "1X", "1MB", "1e3", "0x10", "ten"] {
            assert!(parse_bytes(text).unwrap_err().contains("2.5M"), "{text}");
            assert!(parse_rate(text).unwrap_err().contains("2.5M"), "{text}");
        }
        for text in [
            "99999999999T",
            "340282366920938463463374607431768211455T",
            "9223372036854775808",
        ] {
            assert!(parse_bytes(text).unwrap_err().contains("too large"), "{text}");
        }
    }

    #[test]
    fn times_are_read_within_their_limits() {
        assert_eq!(parse_seconds("2.5", 0.0, 10.0), Ok(Duration::from_millis(2500)));
        for text in ["", "-1", "11", "NaN", "inf", "2s"] {
            assert!(
                parse_seconds(text, 0.0, 10.0).unwrap_err().contains("between 0 and 10"),
                "{text}"
            );
        }
    }

    #[test]
    fn amounts_have_one_decimal() {
        for (count, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1_048_575, "1.0 MiB"),
            (1 << 20, "1.0 MiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(bytes(count), expected);
        }
        for (millis, expected) in [
            (440, "0.4s"),
            (6000, "6s"),
            (12_000, "12s"),
            (185_000, "3m05s"),
            (7_620_000, "2h07m"),
            (356_400_000, "4d03h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), expected);
        }
        assert_eq!(
            [
                percent(0, 3),
                percent(2, 3),
                percent(3, 3),
                percent(999, 1000),
                percent(0, 0)
            ],
            [0, 66, 100, 99, 100]
        );
    }
}
