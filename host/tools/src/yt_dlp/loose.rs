//! Tolerant readers: a value of another kind than expected counts as missing, and lists have an end. Extractors are written
//! by many people, and one odd field must not cost the rest.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

/// The longest text that is kept, in bytes; a longer one counts as missing, as half a URL would be of no use.
const MAX_TEXT_BYTES: usize = 32 * 1024;

/// A value without parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Scalar {
    #[default]
    Nothing,
    Flag(bool),
    Whole(u64),
    Real(f64),
    Text(String),
}

impl Scalar {
    pub(super) fn text(self) -> Option<String> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            Self::Whole(number) => Some(number.to_string()),
            _ => None,
        }
    }

    pub(super) fn real(&self) -> Option<f64> {
        match self {
            #[expect(
                clippy::cast_precision_loss,
                reason = "sizes and times are given as such numbers, too"
            )]
            Self::Whole(number) => Some(*number as f64),
            Self::Real(number) => Some(*number),
            _ => None,
        }
    }

    /// A number that is not negative, rounded down.
    pub(super) fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => Some(*number),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is in the range"
            )]
            Self::Real(number) if (0.0..1e18).contains(number) => Some(*number as u64),
            _ => None,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        *self == Self::Flag(true)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarReader)
    }
}

struct ScalarReader;

impl<'de> Visitor<'de> for ScalarReader {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::Nothing)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Scalar, E> {
        Ok(Scalar::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(number))
    }

    fn visit_i64<E>(self, _negative: i64) -> Result<Scalar, E> {
        Ok(Scalar::Nothing)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Real(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(if text.len() <= MAX_TEXT_BYTES {
            Scalar::Text(text.to_owned())
        } else {
            Scalar::Nothing
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Scalar, A::Error> {
        skip_list(list).map(|()| Scalar::Nothing)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Scalar, A::Error> {
        skip_map(map).map(|()| Scalar::Nothing)
    }
}

fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// A list of objects: the first `MAX` of them, without what is no object. Anything else than a list is an empty one.
#[derive(Debug)]
pub(super) struct Objects<T, const MAX: usize>(pub(super) Vec<T>);

impl<T, const MAX: usize> Default for Objects<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Objects<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(Self::default()))
    }
}

/// An object; anything else is none.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(Self::default()))
    }
}

/// Reads into what it holds, which stays as it is if the value is of another kind.
struct Reader<T>(T);

/// What differs between the readers of [`Objects`] and [`Object`].
trait Parts<'de>: Sized {
    fn list<A: SeqAccess<'de>>(self, list: A) -> Result<Self, A::Error> {
        skip_list(list).map(|()| self)
    }

    fn map<A: MapAccess<'de>>(self, map: A) -> Result<Self, A::Error> {
        skip_map(map).map(|()| self)
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Parts<'de> for Objects<T, MAX> {
    fn list<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self, A::Error> {
        while self.0.len() < MAX {
            let Some(Object(object)) = list.next_element()? else {
                return Ok(self);
            };
            self.0.extend(object);
        }
        skip_list(list).map(|()| self)
    }
}

impl<'de, T: Deserialize<'de>> Parts<'de> for Object<T> {
    fn map<A: MapAccess<'de>>(self, map: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|object| Self(Some(object)))
    }
}

impl<'de, T: Parts<'de>> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(self.0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(self.0)
    }

    fn visit_u64<E>(self, _: u64) -> Result<T, E> {
        Ok(self.0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(self.0)
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(self.0)
    }

    fn visit_str<E>(self, _: &str) -> Result<T, E> {
        Ok(self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        self.0.list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        self.0.map(map)
    }
}
