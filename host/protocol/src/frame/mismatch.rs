//! Parses records from JSON. Errors have the path and the expected type, but never the value found, which may be a
//! misplaced secret.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

/// Why a text is not the record that was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordMismatch {
    /// The members on the way to the place, with dots between; empty for the record itself.
    place: String,
    reason: String,
    /// Line and column; none in a record that was never text.
    position: Option<(usize, usize)>,
}

impl RecordMismatch {
    fn new(text: &[u8], error: &serde_json::Error) -> Self {
        let place = error.is_data().then(|| place(text, offset(text, error)));
        let position = (error.line(), error.column());
        let reason = error.to_string();
        let reason = reason.strip_suffix(&shown(position)).unwrap_or(&reason);
        Self {
            place: place.unwrap_or_default(),
            reason: match reason.rsplit_once(", expected ") {
                Some((fault, expected)) => {
                    let what_is_wrong = fault.split([':', '`']).next().unwrap_or_default();
                    format!("{}, expected {expected}", what_is_wrong.trim_end())
                }
                None => reason.to_owned(),
            },
            position: Some(position),
        }
    }
}

/// As `serde_json` shows it.
fn shown((line, column): (usize, usize)) -> String {
    format!(" at line {line} column {column}")
}

/// Bytes of `text` that were read when the error occurred.
fn offset(text: &[u8], error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    before + error.column()
}

/// The members on the way to the value that ends or begins at `offset`, or whose name ends there. Looks at the text
/// again, so that records need no second, path-tracking implementation of `Deserialize`. An error that a record raises
/// only after its last member was read (a value of several kinds) cannot be error from a missing member of the record.
fn place(text: &[u8], offset: usize) -> String {
    let at = text[offset.min(text.len())..].as_ptr();
    let (mut steps, mut whole) = (Vec::new(), text.trim_ascii_start());
    while whole.as_ptr() < at
        && let Some((name, value)) = members(whole).find(|(_, value)| value.as_bytes().as_ptr_range().end >= at)
    {
        steps.push(name);
        whole = value.as_bytes();
    }
    steps.join(".")
}

/// The values directly within an object or list, in order.
fn members(text: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    let named: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(text).unwrap_or_default();
    let listed: Vec<&RawValue> = serde_json::from_slice(text).unwrap_or_default();
    let mut named: Vec<_> = named.into_iter().map(|(name, value)| (name, value.get())).collect();
    named.sort_unstable_by_key(|(_, value)| value.as_ptr());
    let listed = listed.into_iter().enumerate();
    let listed = listed.map(|(index, value)| (Cow::Owned(index.to_string()), value.get()));
    named.into_iter().chain(listed)
}

impl fmt::Display for RecordMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.reason)?;
        self.position.map_or(Ok(()), |position| f.write_str(&shown(position)))
    }
}

impl std::error::Error for RecordMismatch {}

/// Reads a record from a JSON text.
pub fn from_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, RecordMismatch> {
    // Checked once and not for each string. All records are read as text, so that each is compiled for that alone.
    let readable = str::from_utf8(text).map_err(|error| RecordMismatch {
        place: String::new(),
        reason: format!("it is not UTF-8 from byte {} on", error.valid_up_to()),
        position: None,
    })?;
    serde_json::from_str(readable).map_err(|error| RecordMismatch::new(text, &error))
}

/// Reads a record from a JSON value. Errors have no line and column.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, RecordMismatch> {
    let text = value.to_string();
    from_json(text.as_bytes()).map_err(|mismatch| RecordMismatch {
        position: None,
        ..mismatch
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{CreateTaskRequest, TaskIdParams};

    fn mismatch(value: &Value) -> String {
        let text = value.to_string();
        let from_text = from_json::<CreateTaskRequest>(text.as_bytes()).unwrap_err().to_string();
        let from_value = from_value::<CreateTaskRequest>(value).unwrap_err().to_string();
        assert!(from_text.starts_with(&from_value), "{from_text}\n{from_value}");
        from_text
    }

    #[test]
    fn the_place_and_what_belongs_there_are_told_and_not_what_was_there() {
        let error = mismatch(&json!({"url": "http://a/", "headers": "secret, expected of nobody"}));
        assert!(
            error.starts_with("headers: invalid type, expected a map at line 1"),
            "{error}"
        );
        let error = mismatch(&json!({"url": "http://a/", "headers": {"Cookie": 17}}));
        assert!(
            error.starts_with("headers.Cookie: invalid type, expected a string at"),
            "{error}"
        );
        assert_eq!(from_json::<CreateTaskRequest>(b"{").unwrap_err().place, "");
    }

    #[test]
    fn the_place_is_the_innermost_value_that_does_not_fit() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Strict {
            #[serde(rename = "inner")]
            _inner: Option<TaskIdParams>,
        }
        let check = |error: RecordMismatch, expect: &str| assert_eq!(error.place, expect, "{error}");
        for (text, expect) in [
            (r#"{"mirrors": ["a", 1]}"#, "mirrors.1"),
            (r#"{"mirrors": ["a", "b"], "segments": "x"}"#, "segments"),
            (r#"{"mirrors": {"a": []}, "segments": 1}"#, "mirrors"),
            (r#"{"headers": {"A": {"B": "C"}}}"#, "headers.A"),
            ("{\n  \"url\": \"a\",\n  \"segments\": []\n}", "segments"),
            (r#"{"body": {"kind": "raw"}, "segments": 1}"#, "body"),
            (" [1]", "0"),
            ("7", ""),
        ] {
            check(from_json::<CreateTaskRequest>(text.as_bytes()).unwrap_err(), expect);
        }
        for (text, expect) in [
            (r#"{"inner": {"x": 1}, "other": 1}"#, "inner"),
            (r#"{"inner": {"id": "a"}, "other": [1]}"#, "other"),
            (r#"{"inner": {"id": {}}}"#, "inner.id"),
        ] {
            check(from_json::<Strict>(text.as_bytes()).unwrap_err(), expect);
        }
    }

    #[test]
    fn what_comes_behind_a_record_is_told() {
        let error = from_json::<TaskIdParams>(br#"{"taskId": "a"} x"#)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("trailing characters"), "{error}");
    }
}
