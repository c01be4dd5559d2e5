//! What values that are texts in JSON have in common. The macros are for `market`, too, whose formats have more of
//! them.

/// Implements serde's traits for types that are written with [`Display`](std::fmt::Display) and parsed with
/// [`FromStr`](std::str::FromStr), so that an error of parsing names the place in the document.
#[macro_export]
macro_rules! text_in_json {
    ($($type:ty),* $(,)?) => {$(
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> ::std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> ::std::result::Result<Self, D::Error> {
                let text = <::std::borrow::Cow<'de, str> as ::serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(::serde::de::Error::custom)
            }
        }

        #[cfg(test)]
        impl ::schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                <String as ::schemars::JsonSchema>::json_schema(generator)
            }
        }
    )*};
}

/// Defines enumerations whose values have one name each, in files and in interfaces, on command lines and in messages.
#[macro_export]
macro_rules! named_values {
    ($($(#[$attribute:meta])* $visibility:vis enum $type:ident {
        $($(#[$value_attribute:meta])* $value:ident = $name:literal),* $(,)?
    })*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        #[cfg_attr(test, derive(::schemars::JsonSchema))]
        $visibility enum $type { $($(#[$value_attribute])* #[serde(rename = $name)] $value),* }

        impl $type {
            /// Every value, in the order of their definition.
            $visibility const ALL: &[Self] = &[$(Self::$value),*];

            /// The name of this value.
            $visibility fn name(self) -> &'static str {
                match self { $(Self::$value => $name),* }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> ::std::result::Result<Self, $crate::UnknownName> {
                let found = Self::ALL.iter().copied().find(|value| value.name() == text);
                found.ok_or($crate::UnknownName(&[$($name),*]))
            }
        }
    )*};
}

/// A text that is none of the names of an enumeration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected one of: {}", .0.join(", "))]
pub struct UnknownName(pub &'static [&'static str]);

pub(crate) use {named_values, text_in_json};
