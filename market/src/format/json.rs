//! Strict parsing of untrusted JSON: no duplicate keys, no deep nesting, no trailing data. Parsers that treat duplicate
//! keys differently could be played off against each other.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize,
    de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor},
};

/// Deeper documents are not read. The deepest honest one has eight levels.
pub(crate) const MAX_DEPTH: usize = 24;

/// The version of the formats that this library reads; others with the same number before the point have more fields.
const MAJOR: &str = "1";

/// Why a text is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is not JSON, or not of the expected form.
    #[error("{0}")]
    Json(String),
    /// Its version is not supported.
    #[error("is of version {0}; this host reads version {MAJOR}")]
    Version(String),
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    spec: std::borrow::Cow<'a, str>,
}

/// Parses a record. Unknown keys are skipped: a later version may add some.
pub(crate) fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Malformed> {
    check(text)?;
    let head: Head<'_> = serde_json::from_slice(text).map_err(malformed)?;
    if head.spec.split_once('.').is_none_or(|(major, _)| major != MAJOR) {
        return Err(Malformed::Version(head.spec.chars().take(20).collect()));
    }
    serde_json::from_slice(text).map_err(malformed)
}

/// Checks that `text` is one JSON value without duplicate keys or deep nesting, so that all parsers read the same.
pub(crate) fn check(text: &[u8]) -> Result<(), Malformed> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    Plain(MAX_DEPTH).deserialize(&mut deserializer).map_err(malformed)?;
    deserializer.end().map_err(malformed)
}

#[expect(clippy::needless_pass_by_value, reason = "it is used as a function of errors")]
pub(crate) fn malformed(error: serde_json::Error) -> Malformed {
    Malformed::Json(error.to_string())
}

/// Any value; holds the number of levels that may still be nested in it.
struct Plain(usize);

impl Plain {
    fn inner<E: serde::de::Error>(&self) -> Result<Self, E> {
        let left = self.0.checked_sub(1);
        left.map(Self)
            .ok_or_else(|| E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")))
    }
}

impl<'de> DeserializeSeed<'de> for Plain {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Plain {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _value: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _value: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _value: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _value: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _value: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.inner()?)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = entries.next_key::<std::borrow::Cow<'de, str>>()? {
            if let Some(key) = seen.replace(key) {
                return Err(A::Error::custom(format_args!("key {key:?} is there twice")));
            }
            entries.next_value_seed(self.inner()?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_meaning_or_none() {
        for good in [&b"{}"[..], b"[1,-2,3.5,\"x\",null,true,{\"a\":{\"a\":1}}]", b" 1 "] {
            check(good).unwrap();
        }
        let deep = "[".repeat(MAX_DEPTH + 2) + &"]".repeat(MAX_DEPTH + 2);
        let bad = [
            r#"{"a":1,"a":1}"#,
            r#"{"b":{"a":1,"\u0061":2}}"#,
            r#"[{"a":[],"a":[]}]"#,
            "{} {}",
            "{",
            "",
            &deep,
        ];
        for bad in bad {
            check(bad.as_bytes()).unwrap_err();
        }
        check("[".repeat(1_000_000).as_bytes()).unwrap_err();
    }

    #[test]
    fn versions_that_only_add_are_read_and_others_named() {
        #[derive(Debug, serde::Deserialize)]
        struct Any {}
        let spec = |spec: &str| read::<Any>(format!(r#"{{"spec":"{spec}","new":1}}"#).as_bytes());
        spec("1.0").unwrap();
        spec("1.7").unwrap();
        for other in ["2.0", "1", "", "10.0", "01.0"] {
            assert_eq!(spec(other).unwrap_err(), Malformed::Version(other.to_owned()));
        }
    }
}
