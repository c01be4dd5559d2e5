//! The settings of seeding, with their wire names and ranges.

use crate::model::{
    fate::FileFate,
    seeding::{SeedOperator, SeedSettings, SeedThen},
    settings::{InvalidSetting, value},
};

const OPERATORS: &[(&str, SeedOperator)] = &[("or", SeedOperator::Any), ("and", SeedOperator::All)];
const THEN: &[(&str, SeedThen)] = &[
    ("stop", SeedThen::Stop),
    ("delete", SeedThen::Delete(FileFate::Keep)),
    ("delete_files", SeedThen::Delete(FileFate::Delete)),
];

/// A thousand years.
const MAX_MINUTES: u64 = 526_000_000;

const MINUTES: &str = "a number of minutes, 0 for no limit";

impl SeedSettings {
    /// Every key, in the order of the table.
    pub(super) const KEYS: [&'static str; 9] = [
        "bt_seed_enabled",
        "bt_auto_reseed",
        "bt_seed_max_active",
        "bt_seed_ratio_limit",
        "bt_seed_post_ratio_limit",
        "bt_seed_time_limit_minutes",
        "bt_seed_inactive_time_limit_minutes",
        "bt_seed_limit_operator",
        "bt_seed_then_action",
    ];

    pub(super) fn value(&self, key: &str) -> Option<String> {
        Some(match key {
            "bt_seed_enabled" => self.is_enabled.to_string(),
            "bt_auto_reseed" => self.continues_on_start.to_string(),
            "bt_seed_max_active" => self.max_active.to_string(),
            "bt_seed_ratio_limit" => value::of_milli(self.ratio_milli),
            "bt_seed_post_ratio_limit" => value::of_milli(self.post_ratio_milli),
            "bt_seed_time_limit_minutes" => self.time_minutes.to_string(),
            "bt_seed_inactive_time_limit_minutes" => self.idle_minutes.to_string(),
            "bt_seed_limit_operator" => value::name_of(OPERATORS, self.operator),
            "bt_seed_then_action" => value::name_of(THEN, self.then),
            _ => return None,
        })
    }

    /// As [`Settings::set`](super::Settings::set).
    pub(super) fn set(&mut self, key: &'static str, text: &str) -> Result<(), InvalidSetting> {
        match key {
            "bt_seed_enabled" => self.is_enabled = value::boolean(key, text)?,
            "bt_auto_reseed" => self.continues_on_start = value::boolean(key, text)?,
            "bt_seed_max_active" => {
                self.max_active = value::number(key, text, 0, 100_000, "a number from 0 (no limit) to 100000")?;
            }
            "bt_seed_ratio_limit" => self.ratio_milli = value::milli(key, text)?,
            "bt_seed_post_ratio_limit" => self.post_ratio_milli = value::milli(key, text)?,
            "bt_seed_time_limit_minutes" => self.time_minutes = value::number(key, text, 0, MAX_MINUTES, MINUTES)?,
            "bt_seed_inactive_time_limit_minutes" => {
                self.idle_minutes = value::number(key, text, 0, MAX_MINUTES, MINUTES)?;
            }
            "bt_seed_limit_operator" => self.operator = value::one_of(key, text, OPERATORS, "or or and")?,
            "bt_seed_then_action" => self.then = value::one_of(key, text, THEN, "stop, delete or delete_files")?,
            _ => return Err(InvalidSetting::UnknownKey(key.to_owned())),
        }
        Ok(())
    }
}
