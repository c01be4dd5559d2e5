//! Human-readable byte counts.

use std::fmt;

/// Units above a byte, each 1024 of the one before.
const UNITS: [char; 4] = ['K', 'M', 'G', 'T'];

/// So many bytes, printed in the largest unit that fits: `999 B`, `4 MiB`, `1.5 GiB`. With a precision (`{:.1}`) the
/// decimal is always printed, so that columns keep their width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteCount(pub u64);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count) = *self;
        if count < 1024 {
            return write!(f, "{count} B");
        }
        let mut power = 0;
        // Tenths of the unit, rounded; stays exact for any count.
        let mut tenths = (u128::from(count) * 10 + 512) / 1024;
        while tenths >= 10_240 && power + 1 < UNITS.len() {
            tenths = (tenths + 512) / 1024;
            power += 1;
        }
        write!(f, "{}", tenths / 10)?;
        if f.precision().is_some() || tenths % 10 != 0 {
            write!(f, ".{}", tenths % 10)?;
        }
        write!(f, " {}iB", UNITS[power])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_told_in_the_largest_unit_that_fits() {
        for (count, short, aligned) in [
            (0, "0 B", "0 B"),
            (1023, "1023 B", "1023 B"),
            (1024, "1 KiB", "1.0 KiB"),
            (1536, "1.5 KiB", "1.5 KiB"),
            (1_048_575, "1 MiB", "1.0 MiB"),
            (4 << 20, "4 MiB", "4.0 MiB"),
            (u64::MAX, "16777216 TiB", "16777216.0 TiB"),
        ] {
            assert_eq!(ByteCount(count).to_string(), short);
            assert_eq!(format!("{:.1}", ByteCount(count)), aligned);
        }
    }
}
