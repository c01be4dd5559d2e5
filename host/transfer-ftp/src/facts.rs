//! What a server says about a file: its size (SIZE) and the time of its last change (MDTM, RFC 3659). Pure.

use std::time::{Duration, SystemTime};

use crate::reply::Reply;

/// The longest time that a server may give: fourteen digits and a fraction.
const MAX_TIME_BYTES: usize = 32;

/// The facts of a file, by which a later run recognises it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its size in bytes.
    pub size: Option<u64>,
    /// When it was changed, as the server writes it: `YYYYMMDDHHMMSS`, perhaps with a fraction.
    pub changed: Option<String>,
}

impl Facts {
    /// What proves that the file is another one than that of `earlier` facts. What one of them does not have proves nothing.
    pub fn contradiction(&self, earlier: &Self) -> Option<String> {
        match (earlier.size, self.size) {
            (Some(before), Some(now)) if before != now => {
                return Some(format!("it had {before} bytes, and has {now} now"));
            }
            _ => {}
        }
        match (&earlier.changed, &self.changed) {
            (Some(before), Some(now)) if before != now => Some(format!("it was changed at {now}, before at {before}")),
            _ => None,
        }
    }

    /// When the file was changed.
    pub fn changed_at(&self) -> Option<SystemTime> {
        let text = self.changed.as_deref()?;
        let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
        let (year, month, day) = (part(0..4)?, part(4..6)?, part(6..8)?);
        let (hour, minute, second) = (part(8..10)?, part(10..12)?, part(12..14)?);
        let is_valid = (1970..10_000).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second <= 60;
        if !is_valid {
            return None;
        }
        let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    }
}

/// Days since 1970-01-01 in the Gregorian calendar, for years from 1970 on.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years that begin in March, so that the leap day is the last one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_years = year * 365 + year / 4 - year / 100 + year / 400;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    of_years + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// The size in a reply to SIZE.
pub fn size(reply: &Reply) -> Option<u64> {
    let text = value(reply)?;
    text.parse()
        .ok()
        .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The time in a reply to MDTM.
pub fn changed(reply: &Reply) -> Option<String> {
    value(reply).filter(|text| is_time(text)).map(str::to_owned)
}

/// Whether `text` is a time as servers write it. It may come from a journal on the disk.
pub fn is_time(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= MAX_TIME_BYTES && whole.len() == 14 && is_number(whole) && is_number(fraction)
}

fn value(reply: &Reply) -> Option<&str> {
    let line = reply.lines.last().filter(|_| reply.code == 213)?;
    std::str::from_utf8(line).ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Reply {
        Reply {
            code: 213,
            lines: vec![text.as_bytes().into()],
        }
    }

    fn facts(size: Option<u64>, changed: &str) -> Facts {
        let changed = Some(changed.to_owned()).filter(|text| !text.is_empty());
        Facts { size, changed }
    }

    #[test]
    fn only_numbers_and_times_are_facts() {
        for (text, expect) in [
            ("12", Some(12)),
            (" 0 ", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("+1", None),
            ("", None),
            ("1 2", None),
        ] {
            assert_eq!(size(&reply(text)), expect, "{text}");
        }
        for good in ["20260102030405", "20260102030405.123"] {
            assert_eq!(changed(&reply(good)).as_deref(), Some(good));
        }
        for bad in ["", "2026", "20260102030405.", "2026010203040x", &"1".repeat(33)] {
            assert_eq!(changed(&reply(bad)), None, "{bad}");
        }
    }

    #[test]
    fn facts_contradict_each_other_only_where_both_are_known() {
        let is_other = |one: &Facts, other: &Facts| one.contradiction(other).is_some();
        let known = facts(Some(5), "20260102030405");
        assert!(!is_other(&known, &known));
        assert!(is_other(&facts(Some(6), ""), &known));
        assert!(is_other(&facts(Some(5), "20260102030406"), &known));
        assert!(!is_other(&facts(None, ""), &known));
        assert!(!is_other(&facts(Some(5), ""), &known));
    }

    #[test]
    fn a_time_is_one_of_the_calendar() {
        let seconds = |text: &str| {
            let at = facts(None, text).changed_at()?;
            at.duration_since(SystemTime::UNIX_EPOCH)
                .ok()
                .map(|time| time.as_secs())
        };
        assert_eq!(seconds("19700101000000"), Some(0));
        assert_eq!(seconds("20000229123456"), Some(951_827_696));
        assert_eq!(seconds("20261123235959.5"), Some(1_795_478_399));
        for bad in ["20261323000000", "19691231235959", "20260100000000", "20260101240000"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
