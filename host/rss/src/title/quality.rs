//! Picture, medium and revision, from what stands behind the episode.

use std::{fmt, sync::LazyLock};

use regex::Regex;

/// Where a release was taken from, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Medium {
    /// A camera in a cinema.
    Cam,
    /// Before it was published.
    Screener,
    /// Analogue or unnamed broadcast.
    Tv,
    /// DVD.
    Dvd,
    /// High-definition broadcast.
    Hdtv,
    /// A stream, recorded.
    WebRip,
    /// A stream's files.
    WebDl,
    /// Blu-ray.
    BluRay,
}

/// Each medium by the words that name it, in small letters without separators.
const MEDIA: &[(Medium, &[&str])] = &[
    (
        Medium::Cam,
        &["cam", "camrip", "hdcam", "hdts", "telesync", "telecine", "hdtc"],
    ),
    (
        Medium::Screener,
        &["scr", "screener", "dvdscr", "bdscr", "workprint", "r5"],
    ),
    (Medium::Tv, &["tvrip", "satrip", "dsr", "pdtv", "dvbrip", "sdtv"]),
    (Medium::Dvd, &["dvd", "dvdrip", "dvd5", "dvd9"]),
    (Medium::Hdtv, &["hdtv", "hdtvrip", "uhdtv", "hdrip"]),
    (Medium::WebRip, &["webrip", "web-rip"]),
    (Medium::WebDl, &["web", "webdl", "web-dl", "amzn", "nf", "dsnp"]),
    (
        Medium::BluRay,
        &["bluray", "blu-ray", "bdrip", "brrip", "bd", "bdremux", "remux", "uhdbd"],
    ),
];

/// The picture of a release, as far as its title says; ordered from worse to better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Quality {
    /// Lines; 0 is not said.
    pub lines: u16,
    /// Where it comes from.
    pub medium: Option<Medium>,
}

static LINES: LazyLock<Regex> = LazyLock::new(|| {
    let before = r"(?:^|[^\pL\pN]|bd|web|dvd)";
    let number = r"(?:(?<p>\d{3,4})[pi](?:\d{2})?|\d{3,4}x(?<x>\d{3,4})|(?<k>[48])k|(?<u>uhd))";
    let pattern = format!(r"(?i){before}{number}(?:[^\pL\pN]|$)");
    Regex::new(&pattern).expect("the pattern is a constant")
});

static REVISED: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)(?:^|[^\pL\pN])(?:(?:proper|repack|rerip|real)(?<n>\d)?|v(?<v>[2-9]))(?:[^\pL\pN]|$)";
    Regex::new(pattern).expect("the pattern is a constant")
});

impl Quality {
    /// Reads what a title says behind its episode.
    pub(super) fn read(text: &str) -> Self {
        let lines = LINES.captures(text).and_then(|found| {
            let number = |name| found.name(name).and_then(|group| group.as_str().parse().ok());
            let of_thousands = found.name("k").map(|k| if k.as_str() == "8" { 4320 } else { 2160 });
            let by_name = found.name("u").map(|_| 2160);
            number("p").or_else(|| number("x")).or(of_thousands).or(by_name)
        });
        Self {
            lines: lines.unwrap_or(0),
            medium: medium(text),
        }
    }

    /// Whether it is what `wanted` asks for; what `wanted` does not say matches everything.
    pub fn meets(self, wanted: Self) -> bool {
        (wanted.lines == 0 || wanted.lines == self.lines) && (wanted.medium.is_none() || wanted.medium == self.medium)
    }

    /// Reads a wish such as `1080p`, `web-dl` or `1080p bluray`.
    pub fn parse(text: &str) -> Option<Self> {
        let wanted = Self::read(text);
        let words = text.split_whitespace().count();
        let said = usize::from(wanted.lines != 0) + usize::from(wanted.medium.is_some());
        (said > 0 && said == words).then_some(wanted)
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let medium = self
            .medium
            .and_then(|medium| MEDIA.iter().find(|(known, _)| *known == medium));
        let medium = medium.and_then(|(_, words)| words.first());
        match (self.lines, medium) {
            (0, None) => f.write_str("unknown"),
            (0, Some(medium)) => f.write_str(medium),
            (lines, None) => write!(f, "{lines}p"),
            (lines, Some(medium)) => write!(f, "{lines}p {medium}"),
        }
    }
}

fn medium(text: &str) -> Option<Medium> {
    let lower = text.to_lowercase();
    // `WEB-DL` and `Blu-ray` are one word; other hyphens separate.
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '-');
    words.filter(|word| !word.is_empty()).find_map(|word| {
        let whole = named(word);
        whole.or_else(|| word.split('-').find_map(named))
    })
}

fn named(word: &str) -> Option<Medium> {
    MEDIA
        .iter()
        .find(|(_, words)| words.contains(&word))
        .map(|(medium, _)| *medium)
}

/// How often a release was corrected: every PROPER, REPACK, RERIP and REAL counts, and every version after the first.
pub(super) fn revision(text: &str, version: Option<u8>) -> u8 {
    let mut corrections = 0_u8;
    let mut version = version;
    // Each search begins at the separator that ended the one before, because both words need it.
    let mut at = 0;
    while let Some(found) = REVISED.captures_at(text, at) {
        let digit = |name| found.name(name).and_then(|group| group.as_str().parse::<u8>().ok());
        match digit("v") {
            Some(of_title) => version = version.or(Some(of_title)),
            None => corrections = corrections.saturating_add(digit("n").unwrap_or(1).max(1)),
        }
        let end = found.get_match().end();
        at = text.floor_char_boundary(end.saturating_sub(1)).max(at + 1);
        if at >= text.len() {
            break;
        }
        at = text.ceil_char_boundary(at);
    }
    corrections.saturating_add(version.map_or(0, |version| version.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read_whole_or_not_at_all() {
        let wish = |text| Quality::parse(text).map(|quality| quality.to_string());
        assert_eq!(wish("1080p").as_deref(), Some("1080p"));
        assert_eq!(wish("1080p BluRay").as_deref(), Some("1080p bluray"));
        assert_eq!(wish("4k").as_deref(), Some("2160p"));
        assert_eq!(wish("web-dl").as_deref(), Some("web"));
        assert_eq!(wish("1080q"), None);
        assert_eq!(wish("1080p please"), None);
        assert_eq!(wish(""), None);
    }

    #[test]
    fn neighbouring_corrections_count_each() {
        assert_eq!(revision(".REAL.PROPER.720p", None), 2);
        assert_eq!(revision(" REPACK2 ", None), 2);
        assert_eq!(revision(" v3 ", None), 2);
        assert_eq!(revision(" PROPER", Some(2)), 2);
        assert_eq!(revision("-Properly.720p", None), 0);
    }
}
