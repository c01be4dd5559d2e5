//! Numbers of episodes, among them halves (`12.5` is a recap between two episodes), in digits or Chinese numerals.

use std::{fmt, ops::RangeInclusive};

/// The most episodes that one release may hold; a longer range is two numbers that do not belong together.
const MAX_RANGE: u32 = 400;

/// The number of an episode, in tenths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(u32);

impl Number {
    /// Below and above all others.
    pub const MIN: Self = Self(0);
    /// See [`Number::MIN`].
    pub const MAX: Self = Self(u32::MAX);

    /// A whole number.
    pub fn whole(number: u16) -> Self {
        Self(u32::from(number) * 10)
    }

    /// Reads digits with an optional tenth (`12.5`), or Chinese numerals.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some((whole, tenth)) = text.split_once('.') {
            let tenth: u32 = tenth.parse().ok().filter(|tenth| *tenth < 10)?;
            return Some(Self(u32::from(whole.parse::<u16>().ok()?) * 10 + tenth));
        }
        small(text).map(Self::whole)
    }

    /// The range from `first` to `last`; only `first` if the two cannot be one.
    pub(super) fn range(first: Self, last: Option<Self>) -> RangeInclusive<Self> {
        let last = last.filter(|last| *last > first && last.0 - first.0 <= MAX_RANGE * 10);
        first..=last.unwrap_or(first)
    }

    /// Whether it could be a year and is therefore not taken for an episode without a mark.
    pub(super) fn is_like_year(self) -> bool {
        (19_000..21_000).contains(&self.0)
    }

    /// Every number of a range.
    pub(super) fn between(range: &RangeInclusive<Self>) -> impl Iterator<Item = Self> {
        let (first, last) = (range.start().0, range.end().0);
        (first..=last).step_by(10).map(Self)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (whole, 0) => write!(f, "{whole:02}"),
            (whole, tenth) => write!(f, "{whole:02}.{tenth}"),
        }
    }
}

/// Reads digits, or Chinese numerals up to 999.
pub(super) fn small(text: &str) -> Option<u16> {
    text.parse().ok().or_else(|| chinese(text))
}

fn chinese(text: &str) -> Option<u16> {
    let (mut total, mut digit): (u16, Option<u16>) = (0, None);
    for c in text.chars() {
        let unit = match c {
            '百' => 100,
            '十' => 10,
            _ => {
                digit = Some(
                    u16::try_from(
                        "〇一二三四五六七八九"
                            .chars()
                            .position(|d| d == c || (c, d) == ('零', '〇'))?,
                    )
                    .ok()?,
                );
                continue;
            }
        };
        total = total.checked_add(digit.take().unwrap_or(1) * unit)?;
    }
    (!text.is_empty()).then(|| total + digit.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_numerals_are_numbers() {
        for (text, number) in [
            ("三", 3),
            ("十", 10),
            ("十二", 12),
            ("二十", 20),
            ("二十四", 24),
            ("一百零五", 105),
            ("〇", 0),
        ] {
            assert_eq!(small(text), Some(number), "{text}");
        }
        assert_eq!(small("話"), None);
        assert_eq!(small(""), None);
        assert_eq!(small("99999"), None);
    }

    #[test]
    fn halves_are_between_their_neighbours() {
        let half = Number::parse("12.5").unwrap();
        assert!(Number::whole(12) < half && half < Number::whole(13));
        assert_eq!(half.to_string(), "12.5");
        assert_eq!(Number::parse("12.55"), None);
    }

    #[test]
    fn two_numbers_that_cannot_be_a_range_are_one_number() {
        let range = |first, last| Number::range(Number::whole(first), Some(Number::whole(last)));
        assert_eq!(range(1, 12), Number::whole(1)..=Number::whole(12));
        assert_eq!(range(5, 3), Number::whole(5)..=Number::whole(5));
        assert_eq!(range(5, 1080), Number::whole(5)..=Number::whole(5));
    }
}
