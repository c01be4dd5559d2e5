//! Dates that no standard of feeds allows, and feeds have: without a time zone, or without a time.

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};

/// What is read beside RFC 2822 and RFC 3339, which `feed-rs` reads.
const TIMES: &[&str] = &[
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%a, %d %b %Y %H:%M:%S",
    "%d %b %Y %H:%M:%S",
];
const DAYS: &[&str] = &["%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d %b %Y"];

/// A date that names no zone is one of `zone`.
pub(super) fn without_zone(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let time = TIMES.iter().find_map(|format| DateTime::strptime(format, text).ok());
    let day = || DAYS.iter().find_map(|format| Date::strptime(format, text).ok());
    let civil = time.or_else(|| day().map(DateTime::from))?;
    Some(zone.to_zoned(civil).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_without_a_zone_is_a_local_one() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let read = |text| without_zone(text, &zone).map(|time| time.to_string());
        for text in [
            "2026-03-04T05:06:07",
            "2026-03-04 05:06:07.0",
            "2026/03/04 05:06:07",
            "Wed, 04 Mar 2026 05:06:07",
        ] {
            assert_eq!(read(text).as_deref(), Some("2026-03-04T03:06:07Z"), "{text}");
        }
        assert_eq!(read("2026-03-04").as_deref(), Some("2026-03-03T22:00:00Z"));
        for text in [
            "2026-03-04T05:06:07Z",
            "Wed, 04 Mar 2026 05:06:07 GMT",
            "yesterday",
            "2026-13-01",
            "2026",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
