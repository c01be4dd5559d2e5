//! Values that rows keep as texts, for `#[serde(with = "…")]`. The text of a key, version or permission never changes,
//! whatever becomes of its type.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

fn parse<T: FromStr<Err: Display>, E: Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(|error| E::custom(format!("{text:?}: {error}")))
}

/// One value.
pub(crate) enum Text {}

impl Text {
    pub(crate) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        parse(&String::deserialize(deserializer)?)
    }
}

/// A value that may be missing.
pub(crate) enum OptionalText {}

impl OptionalText {
    #[expect(clippy::ref_option, reason = "serde passes fields by reference")]
    pub(crate) fn serialize<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(T::to_string).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| parse(&text)).transpose()
    }
}

/// The elements of a set.
pub(crate) enum Texts {}

impl Texts {
    pub(crate) fn serialize<T: Display, S: Serializer>(set: &BTreeSet<T>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(set.iter().map(T::to_string))
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<BTreeSet<T>, D::Error>
    where
        T: FromStr<Err: Display> + Ord,
        D: Deserializer<'de>,
    {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| parse(text)).collect()
    }
}

/// The keys of a map.
pub(crate) enum TextKeys {}

impl TextKeys {
    pub(crate) fn serialize<K, V, S>(map: &BTreeMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
    where
        K: Display,
        V: Serialize,
        S: Serializer,
    {
        serializer.collect_map(map.iter().map(|(key, value)| (key.to_string(), value)))
    }

    pub(crate) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: FromStr<Err: Display> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let map = BTreeMap::<String, V>::deserialize(deserializer)?;
        map.into_iter().map(|(key, value)| Ok((parse(&key)?, value))).collect()
    }
}
