//! One value out of a JSON text, without building the rest of it in memory.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::limit::{TextError, check_pattern};

/// The longest pointer.
const MAX_POINTER_BYTES: usize = 1024;

/// The raw text of what `pointer` (RFC 6901) means in `json`, or `None` if there is nothing. The empty pointer is the
/// whole text. Of keys that occur twice, the first counts.
pub fn json_at<'a>(json: &'a str, pointer: &str) -> Result<Option<&'a str>, TextError> {
    check_pattern(pointer, MAX_POINTER_BYTES)?;
    let steps: Vec<_> = match pointer.strip_prefix('/') {
        Some(steps) => steps.split('/').map(unescape).collect(),
        None if pointer.is_empty() => Vec::new(),
        None => return Err(TextError::invalid("pointer", "it does not begin with a slash")),
    };
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let found = Walk(&steps)
        .deserialize(&mut deserializer)
        .and_then(|found| deserializer.end().map(|()| found))
        .map_err(|error| TextError::invalid("JSON", error))?;
    Ok(found.map(RawValue::get))
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Goes down one value along the steps that are left.
struct Walk<'s>(&'s [String]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return serde::Deserialize::deserialize(deserializer).map(Some);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (step, rest) = self
            .0
            .split_first()
            .ok_or_else(|| A::Error::custom("no step is left"))?;
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if found.is_none() && key == *step {
                found = map.next_value_seed(Walk(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let (step, rest) = self
            .0
            .split_first()
            .ok_or_else(|| A::Error::custom("no step is left"))?;
        let wanted = index(step);
        let mut found = None;
        for position in 0_usize.. {
            if wanted == Some(position) {
                match seq.next_element_seed(Walk(rest))? {
                    Some(element) => found = element,
                    None => break,
                }
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(found)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// An index as pointers write it: digits, no leading zero.
fn index(step: &str) -> Option<usize> {
    let is_canonical = step == "0" || !step.starts_with('0');
    let is_digits = step.bytes().all(|byte| byte.is_ascii_digit());
    (is_canonical && is_digits).then(|| step.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"files": [{"name": "a \" b"}, {"size": 12.5e1, "a/b~": null}], "0": true}"#;

    fn check(pointer: &str, expect: Option<&str>) {
        assert_eq!(json_at(JSON, pointer).unwrap(), expect, "{pointer}");
    }

    #[test]
    fn pointers_find_what_they_mean() {
        check("", Some(JSON));
        check("/files/0/name", Some(r#""a \" b""#));
        check("/files/1/size", Some("12.5e1"));
        check("/files/1/a~1b~0", Some("null"));
        check("/0", Some("true"));
        for nothing in [
            "/nothing",
            "/files/2",
            "/files/01",
            "/files/-",
            "/files/0/name/0",
            "/0/x",
        ] {
            check(nothing, None);
        }
    }

    #[test]
    fn what_is_not_json_is_an_error_even_behind_the_found_value() {
        assert!(json_at(r#"{"a": 1, "b": }"#, "/a").is_err());
        assert!(json_at("{} x", "").is_err());
        assert!(json_at("{}", "a").is_err());
        assert!(json_at(&"[".repeat(100_000), "/0").is_err());
    }
}
