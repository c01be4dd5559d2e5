//! What a user may set for a plugin. Values are texts; a change of many is checked whole and made whole. Secret values
//! are never given back, neither to clients nor to the plugin: they only leave in requests to hosts they are bound to.

use std::collections::BTreeMap;

use regex::Regex;
use transfer::{ByteCount, Secret};

/// The longest value in bytes: a text area with a long list fits.
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// One setting of a manifest.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Names it to the plugin.
    pub key: String,
    /// What the user reads.
    pub title: String,
    /// And more of it.
    pub description: String,
    /// How it is shown, which also says what its values are.
    pub widget: Widget,
    /// What a select offers.
    pub options: Vec<Choice>,
    /// Its value until the user sets one.
    pub default: Option<String>,
    /// Whether it may not be emptied.
    pub is_required: bool,
    /// Whether it is kept sealed.
    pub is_secret: bool,
    /// The least number.
    pub min: Option<f64>,
    /// The greatest number.
    pub max: Option<f64>,
    /// What is found in every good text.
    pub pattern: Option<Regex>,
}

/// How a setting is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Widget {
    /// One line.
    Text,
    /// One line that nobody may read.
    Password,
    /// Many lines.
    Textarea,
    /// One of several texts.
    Select,
    /// `true` or `false`.
    Toggle,
    /// A number.
    Number,
    /// A directory.
    Folder,
}

impl Widget {
    /// Its name in manifests and interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Password => "password",
            Self::Textarea => "textarea",
            Self::Select => "select",
            Self::Toggle => "toggle",
            Self::Number => "number",
            Self::Folder => "folder",
        }
    }

    /// The type of the values it shows, as manifests and interfaces call it.
    pub fn value_type(self) -> &'static str {
        match self {
            Self::Text | Self::Password | Self::Textarea | Self::Select | Self::Folder => "string",
            Self::Toggle => "boolean",
            Self::Number => "number",
        }
    }
}

/// What a select offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The value.
    pub value: String,
    /// What the user reads.
    pub label: String,
}

impl Definition {
    /// Whether `value` may be set; the reason never repeats it.
    pub fn check(&self, value: &str) -> Result<(), String> {
        if value.len() > MAX_VALUE_BYTES {
            return Err(format!("is longer than {}", ByteCount(MAX_VALUE_BYTES as u64)));
        }
        if value.is_empty() {
            return if self.is_required {
                Err("must not be empty".to_owned())
            } else {
                Ok(())
            };
        }
        match self.widget {
            Widget::Toggle if !matches!(value, "true" | "false") => return Err("is neither true nor false".to_owned()),
            Widget::Select if !self.options.iter().any(|option| option.value == value) => {
                return Err("is none of the options".to_owned());
            }
            Widget::Number => self.check_number(value)?,
            _ => {}
        }
        match &self.pattern {
            Some(pattern) if !pattern.is_match(value) => Err(format!("does not match {pattern}")),
            _ => Ok(()),
        }
    }

    fn check_number(&self, value: &str) -> Result<(), String> {
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.ok_or("is no number")?;
        match (self.min, self.max) {
            (Some(min), _) if number < min => Err(format!("is less than {min}")),
            (_, Some(max)) if number > max => Err(format!("is more than {max}")),
            _ => Ok(()),
        }
    }
}

/// A change of settings that was refused; nothing of it was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {key}: {reason}")]
pub struct InvalidSetting {
    /// Which one, the first of those that are wrong.
    pub key: String,
    /// What is wrong.
    pub reason: String,
}

/// The values that a user has set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values {
    /// Those that anybody may read.
    pub plain: BTreeMap<String, String>,
    /// The others.
    pub secret: BTreeMap<String, Secret>,
}

impl Values {
    /// These values with `batch` in them. A setting is emptied by the empty text.
    pub fn with(&self, definitions: &[Definition], batch: &BTreeMap<String, String>) -> Result<Self, InvalidSetting> {
        let mut values = self.clone();
        for (key, value) in batch {
            let refused = |reason: String| InvalidSetting {
                key: key.clone(),
                reason,
            };
            let definition = definitions.iter().find(|definition| definition.key == *key);
            let definition = definition.ok_or_else(|| refused("is unknown".to_owned()))?;
            definition.check(value).map_err(refused)?;
            match (definition.is_secret, value.is_empty()) {
                (true, true) => drop(values.secret.remove(key)),
                (true, false) => drop(values.secret.insert(key.clone(), Secret::new(value.clone()))),
                (false, _) => drop(values.plain.insert(key.clone(), value.clone())),
            }
        }
        Ok(values)
    }

    /// What the plugin reads: the user's values that are still good for `definitions`, else the defaults. A value of an
    /// earlier version that no longer fits is as if it were not set.
    pub fn effective(&self, definitions: &[Definition]) -> BTreeMap<String, String> {
        definitions
            .iter()
            .filter(|definition| !definition.is_secret)
            .filter_map(|definition| {
                let set = self.plain.get(&definition.key);
                let value = set
                    .filter(|value| definition.check(value).is_ok())
                    .or(definition.default.as_ref())?;
                Some((definition.key.clone(), value.clone()))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
