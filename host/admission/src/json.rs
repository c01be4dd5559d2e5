//! Scans JSON text before it is parsed: where strings end, and how much memory parsing would take. Pure; accepts any
//! bytes.

/// The largest tree that one message may become, in JSON or XML. See [`Node`].
pub const MAX_TREE_BYTES: usize = 16 * 1024 * 1024;

/// The index of the quote that ends the string starting at the first byte of `text`. `None` if the text ends before it.
pub fn string_end(text: &[u8]) -> Option<usize> {
    let mut place = 1;
    loop {
        place += match text.get(place)? {
            b'"' => return Some(place),
            b'\\' => 2,
            _ => 1,
        };
    }
}

/// The bytes outside of strings, with their indexes. Of a string, only the opening quote.
pub fn outside_strings(text: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let place = next;
        let byte = *text.get(place)?;
        next = match byte {
            b'"' => string_end(&text[place..]).map_or(text.len(), |end| place + end + 1),
            _ => place + 1,
        };
        Some((place, byte))
    })
}

/// A part of a tree of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// Anything in a list or a map, whatever it is.
    Member,
    /// A list, without its members.
    List,
    /// A map, without its members.
    Map,
}

impl Node {
    /// Upper bound of its memory, without strings: a value in a list has 32 bytes, a list room for four, a map nodes of
    /// eleven members.
    const fn bytes(self) -> usize {
        match self {
            Self::Member => 64,
            Self::List => 160,
            Self::Map => 700,
        }
    }
}

/// Counts the memory of a tree that is built value by value, up to [`MAX_TREE_BYTES`].
#[derive(Debug)]
pub struct Growth(usize);

impl Default for Growth {
    fn default() -> Self {
        Self(MAX_TREE_BYTES)
    }
}

impl Growth {
    /// Counts a part before it is built.
    pub fn add(&mut self, node: Node) -> Result<(), TooManyValues> {
        self.0 = self.0.checked_sub(node.bytes()).ok_or(TooManyValues)?;
        Ok(())
    }
}

/// Upper bound of the memory of a JSON text parsed into a tree, without its strings, which are no longer than the text
/// itself. Only brackets and commas count, so this is far cheaper than parsing. Text that is not JSON gives a number,
/// too.
fn tree_bytes(json: &[u8]) -> usize {
    let cost = |(_, byte)| match byte {
        b',' => Node::Member.bytes(),
        b'[' => Node::List.bytes(),
        b'{' => Node::Map.bytes(),
        _ => 0,
    };
    outside_strings(json).map(cost).sum()
}

/// Refuses text that would become too large a tree. Small texts cannot and are not scanned.
pub fn check_tree(json: &[u8]) -> Result<(), TooManyValues> {
    /// A map of one member, the worst there is, takes eight bytes of text.
    const UNCHECKED_BYTES: usize = 16 * 1024;
    if json.len() > UNCHECKED_BYTES && tree_bytes(json) > MAX_TREE_BYTES {
        return Err(TooManyValues);
    }
    Ok(())
}

/// A text has too many values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has too many lists, objects or values (more than {} MiB of them); send it in parts", MAX_TREE_BYTES >> 20)]
pub struct TooManyValues;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_multiplies_in_memory_is_refused_and_what_is_merely_long_is_not() {
        let many = |part: &str| format!("[{}0]", part.repeat(4 * 1024 * 1024 / part.len()));
        for bomb in ["0,", "[],", "{\"\":0},", "\"\","] {
            assert_eq!(check_tree(many(bomb).as_bytes()), Err(TooManyValues), "{bomb}");
        }
        let long = format!("[\"{}\"]", ",[{\\\"".repeat(600_000));
        assert_eq!(check_tree(long.as_bytes()), Ok(()));
    }

    #[test]
    fn a_tree_that_is_built_is_bounded_like_one_that_is_parsed() {
        let mut growth = Growth::default();
        let lists = MAX_TREE_BYTES / Node::List.bytes();
        assert!((0..lists).all(|_| growth.add(Node::List).is_ok()));
        assert_eq!(growth.add(Node::List), Err(TooManyValues));
    }

    #[test]
    fn what_is_within_a_string_is_not_seen() {
        let seen = |text: &str| {
            outside_strings(text.as_bytes())
                .map(|(_, byte)| char::from(byte))
                .collect::<String>()
        };
        assert_eq!(seen(r#"["a,\"b\\",{"c":"#), r#"[",{":"#);
        assert_eq!(seen(r#"["never ends"#), r#"[""#);
        assert_eq!((string_end(br#""a\""x"#), string_end(br#""a\""#)), (Some(4), None));
    }
}
