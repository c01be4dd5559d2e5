//! The settings that a manifest defines, and which values each takes.

use regex::Regex;
use transfer::ByteCount;

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
