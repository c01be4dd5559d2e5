//! Parses records from JSON. Errors have the path and the expected type, but never the value found, which may be a
//! misplaced secret.

use std::fmt;

use serde::{Deserializer, de::DeserializeOwned};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// Why a text is not the record that was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The members on the way to the place, with dots between; empty for the record itself.
    place: String,
    reason: String,
}

impl Misfit {
    fn new(place: &Path, error: &serde_json::Error) -> Self {
        let known = place.iter().filter(|step| !matches!(step, Segment::Unknown));
        let steps: Vec<_> = known.map(ToString::to_string).collect();
        let text = error.to_string();
        Self {
            place: steps.join("."),
            reason: match text.rsplit_once(", expected ") {
                Some((fault, expected)) => {
                    let what_is_wrong = fault.split([':', '`']).next().unwrap_or_default();
                    format!("{}, expected {expected}", what_is_wrong.trim_end())
                }
                None => text,
            },
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Misfit {}

/// Reads a record from a JSON text.
pub fn from_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, Misfit> {
    // Only the error path pays for tracking the position.
    serde_json::from_slice(text).or_else(|error| {
        located(&mut serde_json::Deserializer::from_slice(text)).and_then(|_: T| {
            // The record is whole; more comes behind it.
            Err(Misfit {
                place: String::new(),
                reason: error.to_string(),
            })
        })
    })
}

/// Reads a record from a JSON value.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Misfit> {
    located(value)
}

fn located<'de, T: DeserializeOwned, D: Deserializer<'de, Error = serde_json::Error>>(from: D) -> Result<T, Misfit> {
    serde_path_to_error::deserialize(from).map_err(|error| Misfit::new(error.path(), error.inner()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::CreateTaskRequest;

    fn misfit(value: &Value) -> String {
        let text = value.to_string();
        let from_text = from_json::<CreateTaskRequest>(text.as_bytes()).unwrap_err().to_string();
        let from_value = from_value::<CreateTaskRequest>(value.clone()).unwrap_err().to_string();
        assert!(from_text.starts_with(&from_value), "{from_text}\n{from_value}");
        from_text
    }

    #[test]
    fn the_place_and_what_belongs_there_are_told_and_not_what_was_there() {
        let told = misfit(&json!({"url": "http://a/", "headers": "secret, expected of nobody"}));
        assert!(
            told.starts_with("headers: invalid type, expected a map at line 1"),
            "{told}"
        );
        let told = misfit(&json!({"url": "http://a/", "headers": {"Cookie": 17}}));
        assert!(
            told.starts_with("headers.Cookie: invalid type, expected a string at"),
            "{told}"
        );
        assert_eq!(from_json::<CreateTaskRequest>(b"{").unwrap_err().place, "");
    }

    #[test]
    fn what_comes_behind_a_record_is_told() {
        let told = from_json::<crate::TaskIdParams>(br#"{"taskId": "a"} x"#)
            .unwrap_err()
            .to_string();
        assert!(told.starts_with("trailing characters"), "{told}");
    }
}
