//! The preferences of user interfaces that the agent and its desktop obey: what they may be, and what holds without one.
//! Pure.

use protocol::{ConfigSchema, SettingDto, SettingKind};
use serde_json::Value;

use super::config::Edition;

/// A preference that acts.
#[derive(Debug)]
pub struct Preference {
    /// Its name in `agent.preferences.patch`.
    pub name: &'static str,
    /// What holds if it is not set.
    pub usual: &'static str,
    /// What it may be; empty: `true` or `false`.
    choices: &'static [&'static str],
    meaning: &'static str,
}

pub(crate) const CONFIRMATION: Preference = Preference {
    name: "confirmation",
    usual: "window",
    choices: &["window", "notification"],
    meaning: "Where downloads that browsers hand over are confirmed: in a small window, or in notifications.",
};
pub(crate) const SILENT: Preference = switch(
    "silent_download_enabled",
    "false",
    "Downloads that browsers hand over are added without asking.",
);
pub(crate) const UNATTENDED: Preference = switch(
    "silent_skip_selection",
    "false",
    "Of downloads that browsers hand over, it is not asked either which of their files are wanted: all of them.",
);
pub(crate) const NOTIFY_FINISHED: Preference = switch(
    "notify_finished",
    "true",
    "Finished downloads are shown in notifications.",
);
pub(crate) const DO_NOT_DISTURB: Preference = switch(
    "do_not_disturb",
    "false",
    "No window and no notification appears by itself.",
);
pub(crate) const TRAY: Preference = switch("tray", "true", "An icon is in the tray.");
pub(crate) const KEEP_AWAKE: Preference = switch(
    "keep_awake",
    "true",
    "The computer is not suspended while tasks transfer.",
);
pub(crate) const AFTER_FINISH: Preference = Preference {
    name: "after_finish",
    usual: "nothing",
    choices: &["nothing", "quit", "suspend"],
    meaning: "What follows the last download, once: after a minute in which it can be cancelled.",
};

/// All of them, in the order in which people look for them.
pub const PREFERENCES: [&Preference; 8] = [
    &CONFIRMATION,
    &SILENT,
    &UNATTENDED,
    &NOTIFY_FINISHED,
    &DO_NOT_DISTURB,
    &TRAY,
    &KEEP_AWAKE,
    &AFTER_FINISH,
];

const fn switch(name: &'static str, usual: &'static str, meaning: &'static str) -> Preference {
    Preference {
        name,
        usual,
        choices: &[],
        meaning,
    }
}

impl Preference {
    /// Reads a value that a user wrote.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        if self.choices.is_empty() {
            return match text {
                "true" | "1" => Ok(Value::Bool(true)),
                "false" | "0" => Ok(Value::Bool(false)),
                _ => Err("write true or false".to_owned()),
            };
        }
        if self.choices.contains(&text) {
            return Ok(text.into());
        }
        let (last, others) = self.choices.split_last().unwrap_or((&"", &[]));
        Err(format!("write {} or {last}", others.join(", ")))
    }

    /// The value in force as a text; `stored` may be what an older user interface wrote.
    pub fn in_force(&self, stored: Option<&Value>) -> String {
        match stored {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => self.usual.to_owned(),
        }
    }

    /// Whether it is on.
    pub(super) fn is_on(&self, stored: Option<&Value>) -> bool {
        stored.and_then(is_on).unwrap_or(self.usual == "true")
    }

    fn setting(&self) -> SettingDto {
        SettingDto {
            key: self.name.to_owned(),
            group: "desktop".to_owned(),
            kind: if self.choices.is_empty() {
                SettingKind::Switch
            } else {
                SettingKind::Choice
            },
            default: self.usual.to_owned(),
            min: None,
            max: None,
            choices: self.choices.iter().map(|&choice| choice.to_owned()).collect(),
            unit: String::new(),
            restart: false,
            secret: false,
            meaning: self.meaning.to_owned(),
        }
    }
}

/// The preferences that an agent of this edition obeys: a server has no desktop and asks no questions.
pub(crate) fn schema(edition: Edition) -> ConfigSchema {
    let obeyed = PREFERENCES.iter().filter(|_| edition == Edition::Desktop);
    ConfigSchema {
        settings: obeyed.map(|preference| preference.setting()).collect(),
    }
}

/// The value of a switch: a boolean, or a string of older user interfaces; none if it is neither.
pub(super) fn is_on(switch: &Value) -> Option<bool> {
    match switch {
        Value::Bool(is_on) => Some(*is_on),
        Value::String(word) => match word.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" | "" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_desktop_describes_each_preference_and_reads_every_value_that_it_names() {
        assert!(schema(Edition::Headless).settings.is_empty());
        let settings = schema(Edition::Desktop).settings;
        assert_eq!(settings.len(), PREFERENCES.len());
        for (setting, preference) in settings.iter().zip(PREFERENCES) {
            let named: Vec<_> = match setting.kind {
                SettingKind::Switch => vec!["true".to_owned(), "false".to_owned()],
                _ => setting.choices.clone(),
            };
            assert!(named.contains(&setting.default), "{}", setting.key);
            for text in &named {
                let value = preference.read(text).unwrap();
                assert_eq!(preference.in_force(Some(&value)), *text);
            }
            let refused = preference.read("maybe").unwrap_err();
            assert!(named.iter().all(|text| refused.contains(text)), "{refused}");
        }
        assert_eq!(
            AFTER_FINISH.read("sleep").unwrap_err(),
            "write nothing, quit or suspend"
        );
    }

    #[test]
    fn texts_of_older_user_interfaces_count_and_anything_else_is_as_usual() {
        assert!(TRAY.is_on(None) && !SILENT.is_on(None));
        assert!(!TRAY.is_on(Some(&"false".into())) && SILENT.is_on(Some(&"1".into())));
        assert!(TRAY.is_on(Some(&"maybe".into())) && !SILENT.is_on(Some(&Value::Null)));
    }
}
