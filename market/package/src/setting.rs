//! The settings that a manifest defines, and the validation of their values.

use regex::Regex;
use serde::Deserialize;
use transfer::ByteCount;

use crate::text::named_values;

/// The longest value in bytes. A long list in a text area fits.
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// One setting of a manifest.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The key by which the plugin reads the setting.
    pub key: String,
    /// The title that users see.
    pub title: String,
    /// An explanation for users.
    pub description: String,
    /// The control that shows it, which determines the type of its values.
    pub widget: Widget,
    /// The options of a select.
    pub options: Vec<Choice>,
    /// The value until the user sets one.
    pub default: Option<String>,
    /// Whether the value must not be empty.
    pub is_required: bool,
    /// Whether the value is stored encrypted and never shown.
    pub is_secret: bool,
    /// The smallest allowed number.
    pub min: Option<f64>,
    /// The largest allowed number.
    pub max: Option<f64>,
    /// A regular expression that every value must match.
    pub pattern: Option<Regex>,
}

named_values! {
    /// The control that shows a setting.
    pub enum Widget {
        /// A line of text.
        Text = "text",
        /// A line of text that is hidden while it is typed.
        Password = "password",
        /// Several lines of text.
        Textarea = "textarea",
        /// One of the options.
        Select = "select",
        /// A path of a directory.
        Folder = "folder",
        /// A switch, with the values `true` and `false`.
        Toggle = "toggle",
        /// A number.
        Number = "number",
    }

    /// The type of a setting's values.
    pub enum ValueType {
        /// Any text.
        String = "string",
        /// A number, written as in JSON.
        Number = "number",
        /// `true` or `false`.
        Boolean = "boolean",
    }
}

impl Widget {
    /// The type of the values that it shows.
    pub fn value_type(self) -> ValueType {
        match self {
            Self::Text | Self::Password | Self::Textarea | Self::Select | Self::Folder => ValueType::String,
            Self::Toggle => ValueType::Boolean,
            Self::Number => ValueType::Number,
        }
    }
}

/// An option of a select.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Choice {
    /// The value.
    pub value: String,
    /// The text that users see; the value if it is left out.
    #[serde(default)]
    pub label: String,
}

impl Choice {
    /// The choice with a label.
    pub(crate) fn labelled(mut self) -> Self {
        if self.label.is_empty() {
            self.label.clone_from(&self.value);
        }
        self
    }
}

impl Definition {
    /// Whether `value` is allowed. The reason of a refusal never contains the value, which may be a secret.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(key: &str, widget: Widget) -> Definition {
        Definition {
            key: key.to_owned(),
            title: key.to_owned(),
            description: String::new(),
            widget,
            options: vec![Choice {
                value: "hd".to_owned(),
                label: "HD".to_owned(),
            }],
            default: None,
            is_required: false,
            is_secret: widget == Widget::Password,
            min: Some(1.0),
            max: Some(5.0),
            pattern: None,
        }
    }

    #[test]
    fn a_value_must_fit_its_widget() {
        let check = |widget, good: &[&str], bad: &[&str]| {
            let definition = definition("k", widget);
            for value in good {
                assert_eq!(definition.check(value), Ok(()), "{widget:?} {value}");
            }
            for value in bad {
                assert!(definition.check(value).is_err(), "{widget:?} {value}");
            }
        };
        check(Widget::Toggle, &["true", "false", ""], &["yes", "True", "1"]);
        check(
            Widget::Number,
            &["1", "5", "2.5", ""],
            &["0.9", "5.1", "NaN", "inf", "x", " 2"],
        );
        check(Widget::Select, &["hd", ""], &["sd", "HD"]);
        check(Widget::Text, &["anything", ""], &[&"x".repeat(MAX_VALUE_BYTES + 1)]);
        let pattern = Definition {
            pattern: Some(Regex::new("^[a-z]+$").unwrap()),
            is_required: true,
            ..definition("k", Widget::Text)
        };
        assert_eq!(pattern.check("abc"), Ok(()));
        assert!(pattern.check("Abc").is_err() && pattern.check("").is_err());
    }
}
