//! Values of `svc torrent`: numbers of files, and limits of seeding.

use std::{fmt, str::FromStr};

use get::args::{SelectedFiles, parse_ratio, parse_selected};

/// Files by their numbers from 1, such as `1,4-7`; or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numbers {
    text: String,
    /// None: all.
    selected: Option<SelectedFiles>,
}

impl Numbers {
    /// Their places in the torrent, which are counted from 0; none for all.
    pub(super) fn places(&self) -> Vec<u32> {
        let selected = self.selected.iter();
        selected.flat_map(|SelectedFiles(places)| places).copied().collect()
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.selected {
            None => f.write_str("all files"),
            Some(SelectedFiles(places)) if places.len() == 1 => write!(f, "file {}", self.text),
            Some(_) => write!(f, "files {}", self.text),
        }
    }
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_all = text.eq_ignore_ascii_case("all");
        Ok(Self {
            text: text.to_owned(),
            selected: (!is_all).then(|| parse_selected(text)).transpose()?,
        })
    }
}

/// A limit of seeding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit(i64);

impl Limit {
    const DEFAULT: Self = Self(-2);
    const NONE: Self = Self(-1);

    /// On the wire.
    pub(super) fn number(self) -> i64 {
        self.0
    }

    /// A ratio in thousandths.
    pub(super) fn ratio(text: &str) -> Result<Self, String> {
        if let Some(word) = Self::word(text) {
            return Ok(word);
        }
        let milli = parse_ratio(text).map_err(|problem| format!("{problem}; or \"none\", or \"default\""))?;
        Ok(Self(i64::try_from(milli).unwrap_or(i64::MAX)))
    }

    pub(super) fn minutes(text: &str) -> Result<Self, String> {
        let problem = "a time is a number of whole minutes, \"none\" or \"default\"";
        let own = || text.parse::<u32>().ok().filter(|minutes| *minutes > 0);
        let limit = Self::word(text).or_else(|| own().map(|minutes| Self(minutes.into())));
        limit.ok_or_else(|| problem.to_owned())
    }

    fn word(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::NONE),
            "default" => Some(Self::DEFAULT),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_from_one() {
        let places = |text: &str| text.parse::<Numbers>().map(|numbers| numbers.places());
        assert_eq!(places("1,4-6,5").unwrap(), [0, 3, 4, 5]);
        assert_eq!(places("all").unwrap(), [0_u32; 0]);
        for text in ["", "0", "3-1", "1,", "x", "1-9999999"] {
            assert!(places(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_is_a_number_or_a_word() {
        assert_eq!(Limit::ratio("1.5").unwrap().number(), 1500);
        assert_eq!(Limit::ratio("none").unwrap().number(), -1);
        assert_eq!(Limit::minutes("default").unwrap().number(), -2);
        assert_eq!(Limit::minutes("90").unwrap().number(), 90);
        for text in ["0", "-1", "x", "NaN"] {
            assert!(Limit::ratio(text).is_err() && Limit::minutes(text).is_err(), "{text}");
        }
    }
}
