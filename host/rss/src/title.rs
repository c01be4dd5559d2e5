//! Reads the title of a release: which series, which episode, which revision, which quality.
//!
//! Titles are written by people and programs of many languages. Each form is one pattern in [`pattern`]; the first form
//! in order of trust that is found decides, and what stands before it is the series. Every pattern is matched in linear
//! time, over a title of bounded length.

mod number;
mod pattern;
mod quality;
mod series;

use std::{fmt, ops::RangeInclusive};

use jiff::civil::Date;
use unicode_normalization::UnicodeNormalization as _;

pub use {
    number::Number,
    quality::{Medium, Quality},
};

/// The longest title that is looked at, in bytes; the rest of a longer one says nothing about the episode.
pub const MAX_TITLE_BYTES: usize = 1024;

/// Which part of a series a release is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Episode {
    /// Episodes of a season, inclusive.
    Numbered(u16, RangeInclusive<Number>),
    /// Episodes counted through all seasons, inclusive.
    Absolute(RangeInclusive<Number>),
    /// Whole seasons, inclusive.
    Seasons(RangeInclusive<u16>),
    /// The show of a day.
    Day(Date),
}

/// What the title of a release says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The series; empty if the title does not name one, as podcasts do.
    pub series: String,
    /// The episode, if the title has a form that is known.
    pub episode: Option<Episode>,
    /// How often it was corrected: PROPER, REPACK, `v2`.
    pub revision: u8,
    /// Its picture.
    pub quality: Quality,
}

impl Release {
    /// Reads a title.
    pub fn parse(title: &str) -> Self {
        let composed: String = truncate(title, MAX_TITLE_BYTES).nfkc().collect();
        let text = truncate(&composed, MAX_TITLE_BYTES);
        let found = pattern::find(text);
        let (series_end, rest_start) = found.as_ref().map_or((text.len(), 0), |found| (found.start, found.end));
        let rest = text.get(rest_start..).unwrap_or("");
        let is_episode = found.is_some();
        let version = found.as_ref().and_then(|found| found.version);
        Self {
            series: series::read(text.get(..series_end).unwrap_or("")),
            episode: found.map(|found| found.episode),
            // Without an episode there is nothing to correct: `v2.3` is the version of a program.
            revision: if is_episode {
                quality::revision(rest, version)
            } else {
                0
            },
            quality: Quality::read(rest),
        }
    }

    /// What identifies it beside other releases. A title that names no series belongs to that of `feed`. `None` without
    /// an episode or a series.
    pub fn identity(&self, feed: &str) -> Option<Identity> {
        let own = series::normal(&self.series);
        let series = if own.is_empty() { series::normal(feed) } else { own };
        let episode = self.episode.clone().filter(|_| !series.is_empty())?;
        Some(Identity { series, episode })
    }

    /// The identity as one text, which is the item's `episodeKey`; empty without one.
    pub fn key(&self, feed: &str) -> String {
        self.identity(feed)
            .map_or(String::new(), |identity| identity.to_string())
    }

    /// The season, for directories; absolute numbers and days have none.
    pub fn season(&self) -> Option<u16> {
        match self.episode.as_ref()? {
            Episode::Numbered(season, _) => Some(*season),
            Episode::Seasons(seasons) => Some(*seasons.start()),
            Episode::Absolute(_) | Episode::Day(_) => None,
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key(""))
    }
}

/// Which episodes of which series a release has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// In small letters and digits, with single spaces.
    pub series: String,
    /// The episodes.
    pub episode: Episode,
}

/// One of the parts of a release: an episode, a season or a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// An episode of a season.
    Numbered(u16, Number),
    /// An episode counted through all seasons.
    Absolute(Number),
    /// A whole season.
    Season(u16),
    /// The show of a day.
    Day(Date),
}

impl Identity {
    /// The parts: one for an episode, a day or a season, several for a range.
    pub fn parts(&self) -> Vec<Part> {
        match &self.episode {
            Episode::Numbered(season, numbers) => Number::between(numbers)
                .map(|number| Part::Numbered(*season, number))
                .collect(),
            Episode::Absolute(numbers) => Number::between(numbers).map(Part::Absolute).collect(),
            Episode::Seasons(seasons) => seasons.clone().map(Part::Season).collect(),
            Episode::Day(day) => vec![Part::Day(*day)],
        }
    }
}

impl fmt::Display for Identity {
    /// The series, `#` and the episodes: `show#S01E02`, `show#S01E01-E03`, `show#S01-S03`, `show#E112`, `show#2024-05-01`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#", self.series)?;
        // The numbers of a range keep the tenths of the first, so the last part may be below the end of the range.
        match (&self.episode, self.parts().last()) {
            (Episode::Numbered(season, numbers), Some(Part::Numbered(_, last))) if last != numbers.start() => {
                write!(f, "S{season:02}E{}-E{last}", numbers.start())
            }
            (Episode::Numbered(season, numbers), _) => write!(f, "S{season:02}E{}", numbers.start()),
            (Episode::Absolute(numbers), Some(Part::Absolute(last))) if last != numbers.start() => {
                write!(f, "E{}-E{last}", numbers.start())
            }
            (Episode::Absolute(numbers), _) => write!(f, "E{}", numbers.start()),
            (Episode::Seasons(seasons), _) if seasons.start() == seasons.end() => write!(f, "S{:02}", seasons.start()),
            (Episode::Seasons(seasons), _) => write!(f, "S{:02}-S{:02}", seasons.start(), seasons.end()),
            (Episode::Day(day), _) => write!(f, "{day}"),
        }
    }
}

/// The beginning of `text`, at most `most` bytes.
pub(crate) fn truncate(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
