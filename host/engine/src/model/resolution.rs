//! Which plugin resolves a URL, and which of the files it lists is meant.

use std::{fmt, str::FromStr, sync::Arc};

/// Limit for an item and a variant each: what plugins may use.
const MAX_NAME_BYTES: usize = 1024;

/// Identifies a resolver. Tasks keep it even while the plugin is not installed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResolverId(Arc<str>);

impl ResolverId {
    /// The resolver of this name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResolverId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identifies one file of a resolver's list, in one of its variants. Written `id@variant`; without a variant `id`, or `id@`
/// if the id contains an `@`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The resolver's name for the file.
    pub id: Box<str>,
    /// The resolver's name for the quality or format; `None` if there is only one.
    pub variant: Option<Box<str>>,
}

/// A text that is not an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an item is written id, id@ or id@variant, each of 1 to {MAX_NAME_BYTES} bytes")]
pub struct InvalidItem;

impl Item {
    /// An item with names of allowed lengths.
    pub fn new(id: &str, variant: Option<&str>) -> Result<Self, InvalidItem> {
        let is_name = |name: &str| (1..=MAX_NAME_BYTES).contains(&name.len());
        if !is_name(id) || !variant.is_none_or(|variant| is_name(variant) && !variant.contains('@')) {
            return Err(InvalidItem);
        }
        Ok(Self::stored(id, variant))
    }

    fn stored(id: &str, variant: Option<&str>) -> Self {
        Self {
            id: id.into(),
            variant: variant.map(Into::into),
        }
    }

    /// Splits what was written, without a look at lengths: they may have been others in another version, and what was
    /// stored must be readable.
    pub(crate) fn read(text: &str) -> Self {
        let (id, variant) = Self::split(text);
        Self::stored(id, variant)
    }

    /// At the last `@`, because an id may contain others.
    fn split(text: &str) -> (&str, Option<&str>) {
        let (id, variant) = text.rsplit_once('@').unwrap_or((text, ""));
        (id, Some(variant).filter(|variant| !variant.is_empty()))
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        match &self.variant {
            Some(variant) => write!(f, "@{variant}"),
            None if self.id.contains('@') => f.write_str("@"),
            None => Ok(()),
        }
    }
}

impl FromStr for Item {
    type Err = InvalidItem;

    fn from_str(text: &str) -> Result<Self, InvalidItem> {
        let (id, variant) = Self::split(text);
        Self::new(id, variant)
    }
}

/// The resolver of a task's URL, and the file of its list that the task downloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The resolver.
    pub resolver: ResolverId,
    /// The file; `None` until the resolver has listed its files.
    pub item: Option<Item>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_read_as_it_is_written() {
        for (text, id, variant) in [
            ("a", "a", None),
            ("a@hd", "a", Some("hd")),
            ("a@b@hd", "a@b", Some("hd")),
            ("a@b@", "a@b", None),
        ] {
            let item: Item = text.parse().unwrap();
            assert_eq!((&*item.id, item.variant.as_deref()), (id, variant));
            assert_eq!(item.to_string(), text);
        }
        for text in ["", "@", "@hd", &"x".repeat(1025)] {
            assert_eq!(text.parse::<Item>(), Err(InvalidItem), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_an_item_is_read_again(id in "[a@é]{0,4}", variant in proptest::option::of("[b@]{0,3}")) {
            if let Ok(item) = Item::new(&id, variant.as_deref()) {
                let text = item.to_string();
                proptest::prop_assert_eq!(&Item::read(&text), &item);
                proptest::prop_assert_eq!(text.parse(), Ok(item));
            }
        }
    }
}
