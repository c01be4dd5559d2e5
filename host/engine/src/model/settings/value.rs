//! Values of settings as texts.

use std::str::FromStr;

use crate::model::settings::InvalidSetting;

const BOOL: &str = "true or false";

/// The largest ratio.
const MAX_RATIO: f64 = 1_000_000.0;

pub(crate) fn name_of<T: PartialEq + Copy>(names: &[(&str, T)], value: T) -> String {
    names
        .iter()
        .find(|(_, known)| *known == value)
        .map(|(name, _)| (*name).to_owned())
        .unwrap_or_default()
}

pub(crate) fn one_of<T: Copy>(
    key: &'static str,
    value: &str,
    names: &[(&str, T)],
    allowed: &'static str,
) -> Result<T, InvalidSetting> {
    let found = names.iter().find(|(name, _)| *name == value);
    found
        .map(|(_, value)| *value)
        .ok_or(InvalidSetting::Value { key, allowed })
}

pub(crate) fn number<T: FromStr + PartialOrd + Copy>(
    key: &'static str,
    value: &str,
    least: T,
    most: T,
    allowed: &'static str,
) -> Result<T, InvalidSetting> {
    value
        .parse()
        .ok()
        .filter(|n| *n >= least && *n <= most)
        .ok_or(InvalidSetting::Value { key, allowed })
}

pub(crate) fn boolean(key: &'static str, value: &str) -> Result<bool, InvalidSetting> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(InvalidSetting::Value { key, allowed: BOOL }),
    }
}

/// A number with up to three digits after the point, in thousandths.
pub(crate) fn milli(key: &'static str, value: &str) -> Result<u64, InvalidSetting> {
    let number = value
        .parse()
        .ok()
        .filter(|ratio: &f64| (0.0..=MAX_RATIO).contains(ratio));
    let number = number.ok_or(InvalidSetting::Value {
        key,
        allowed: "a ratio from 0 (no limit) to 1000000",
    })?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    Ok((number * 1000.0).round() as u64)
}

/// The text of thousandths.
pub(crate) fn of_milli(milli: u64) -> String {
    let digits = format!("{}.{:03}", milli / 1000, milli % 1000);
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}
