//! Dates of RSS.

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// The moment of `Sat, 14 Mar 2026 17:10:42 +0200`, in milliseconds of the Unix epoch.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let date = text.split_once(',').map_or(text, |(_, date)| date);
    let mut words = date.split_whitespace();
    let day = within(words.next()?, 1, 31)?;
    let name = words.next()?.get(..3)?.to_ascii_lowercase();
    let month = (1..).zip(MONTHS).find(|(_, month)| *month == name)?.0;
    let year = within(words.next()?, 1970, 9999)?;
    let mut clock = words.next()?.splitn(3, ':');
    let (hour, minute) = (within(clock.next()?, 0, 23)?, within(clock.next()?, 0, 59)?);
    let second = within(clock.next().unwrap_or("0"), 0, 60)?;
    let offset = words.next().map_or(Some(0), offset_minutes)?;
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - offset;
    u64::try_from((minutes * 60 + second) * 1000).ok()
}

fn within(text: &str, least: i64, most: i64) -> Option<i64> {
    let number = text.parse().ok()?;
    (least..=most).contains(&number).then_some(number)
}

/// Minutes east of Greenwich; names of zones count as Greenwich, which nearly all of them mean.
fn offset_minutes(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return Some(0),
    };
    let number = within(digits, 0, 2359)?;
    Some(sign * (number / 100 * 60 + number % 100))
}

/// Days from 1970-01-01 on, in the Gregorian calendar. Years begin in March, so that the leap day is the last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_their_zones() {
        let check = |text, expected| assert_eq!(milliseconds(text), expected, "{text}");
        check("Thu, 01 Jan 1970 00:00:01 +0000", Some(1000));
        check("Sat, 14 Mar 2026 17:10:42 +0200", Some(1_773_501_042_000));
        check("29 Feb 2024 23:59 GMT", Some(1_709_251_140_000));
        check("Thu, 01 Jan 1970 00:00:00 +0100", None);
        for broken in [
            "",
            "yesterday",
            "Sat, 14 Mar",
            "Sat, 99 Mar 2026 17:10:42 +0000",
            "1 Xyz 2026 1:1:1",
            "1 Jan 2026 1:1:1 +99999999999999999999",
        ] {
            check(broken, None);
        }
    }
}
