//! Which plugin resolves a URL, and which of the files it lists is meant.

use std::{fmt, str::FromStr, sync::Arc};

/// Limit for a resolver, an item and a variant each.
const MAX_NAME_BYTES: usize = 512;

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

/// Identifies one file of a resolver's list, in one of its variants: `id` or `id@variant`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The resolver's name for the file.
    pub id: Box<str>,
    /// The resolver's name for the quality or format; `None` if there is only one.
    pub variant: Option<Box<str>>,
}

/// A text that is not an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an item is written id or id@variant, each of 1 to {MAX_NAME_BYTES} bytes")]
pub struct InvalidItem;

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "@{variant}"))
    }
}

impl FromStr for Item {
    type Err = InvalidItem;

    /// Splits at the last `@`, because an id may contain others.
    fn from_str(text: &str) -> Result<Self, InvalidItem> {
        let (id, variant) = text
            .rsplit_once('@')
            .map_or((text, None), |(id, variant)| (id, Some(variant)));
        let is_name = |name: &str| (1..=MAX_NAME_BYTES).contains(&name.len());
        if !is_name(id) || !variant.is_none_or(is_name) {
            return Err(InvalidItem);
        }
        Ok(Self {
            id: id.into(),
            variant: variant.map(Into::into),
        })
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
        ] {
            let item: Item = text.parse().unwrap();
            assert_eq!((&*item.id, item.variant.as_deref()), (id, variant));
            assert_eq!(item.to_string(), text);
        }
        for text in ["", "@", "a@", "@hd", &"x".repeat(513)] {
            assert_eq!(text.parse::<Item>(), Err(InvalidItem), "{text}");
        }
    }
}
