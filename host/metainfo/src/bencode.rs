//! Bencode (BEP 3). A [`Value`] is a checked slice of the input: parsing walks the input once, allocates nothing, and
//! what is read later cannot fail.
//!
//! Accepted is what libtorrent accepts, because torrents that some program wrote carelessly are shared for years under the
//! hash of these very bytes: keys in any order, repeated keys (the first counts), leading zeros. What a number beyond 64
//! bits means is unknown; it is passed over like an unknown key.

use std::fmt;

/// What a document may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Levels of lists and dictionaries, at most 127.
    pub depth: u32,
    /// Values and keys.
    pub items: u32,
}

impl Limits {
    /// For messages of peers, trackers and nodes: a tracker's answer with 200 peers as dictionaries has 1,400 items.
    pub const MESSAGE: Self = Self {
        depth: 32,
        items: 20_000,
    };

    /// For metainfo files. A file of a torrent has seven items; libtorrent's limit of depth is the same.
    pub const METAINFO: Self = Self {
        depth: 100,
        items: 2_000_000,
    };

    /// For what was checked before.
    const CHECKED: Self = Self {
        depth: 127,
        items: u32::MAX,
    };
}

/// Why bytes are not bencode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BencodeError {
    /// The input ends too early.
    #[error("the bencoded data ends in the middle of a value")]
    Truncated,
    /// No value begins like this.
    #[error("the bencoded data is invalid at byte {0}")]
    Invalid(usize),
    /// A text is longer than what follows.
    #[error("a text at byte {0} of the bencoded data is longer than the data")]
    TooLong(usize),
    /// Beyond [`Limits::depth`].
    #[error("the bencoded data has more than {0} levels")]
    TooDeep(u32),
    /// Beyond [`Limits::items`].
    #[error("the bencoded data has more than {0} values")]
    TooManyItems(u32),
    /// Something follows the value.
    #[error("something follows the bencoded data at byte {0}")]
    Trailing(usize),
}

/// Parses a message that is one value.
pub fn parse(bytes: &[u8]) -> Result<Value<'_>, BencodeError> {
    let (value, rest) = parse_prefix(bytes)?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(BencodeError::Trailing(bytes.len() - rest.len()))
    }
}

/// Parses the value at the beginning of a message, and returns what follows it.
pub fn parse_prefix(bytes: &[u8]) -> Result<(Value<'_>, &[u8]), BencodeError> {
    parse_within(bytes, Limits::MESSAGE)
}

/// Parses the value at the beginning of `bytes` within `limits`, and returns what follows it.
pub fn parse_within(bytes: &[u8], limits: Limits) -> Result<(Value<'_>, &[u8]), BencodeError> {
    let length = check(bytes, limits)?;
    let (value, rest) = bytes.split_at(length);
    Ok((Value(value), rest))
}

/// A value: an integer, a text of bytes, a list or a dictionary.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Value<'a>(&'a [u8]);

impl<'a> Value<'a> {
    /// Its bytes, as they were encoded.
    pub fn raw(self) -> &'a [u8] {
        self.0
    }

    /// The integer; `None` also if it needs more than 64 bits.
    pub fn as_integer(self) -> Option<i64> {
        let digits = self.0.strip_prefix(b"i")?.strip_suffix(b"e")?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// The text.
    pub fn as_bytes(self) -> Option<&'a [u8]> {
        if !self.0.first()?.is_ascii_digit() {
            return None;
        }
        let colon = self.0.iter().position(|byte| *byte == b':')?;
        Some(&self.0[colon + 1..])
    }

    /// The text, if it is UTF-8.
    pub fn as_text(self) -> Option<&'a str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }

    /// The elements of a list.
    pub fn as_list(self) -> Option<List<'a>> {
        let rest = self.0.strip_prefix(b"l")?.strip_suffix(b"e")?;
        Some(List(rest))
    }

    /// The entries of a dictionary.
    pub fn as_dict(self) -> Option<Dict<'a>> {
        let rest = self.0.strip_prefix(b"d")?.strip_suffix(b"e")?;
        Some(Dict(rest))
    }

    /// The first value of a key of a dictionary. `None` also if this is no dictionary.
    pub fn get(self, key: &[u8]) -> Option<Self> {
        self.as_dict()?.get(key)
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Peers choose these bytes, and piece hashes fill pages.
        let shown = &self.0[..self.0.len().min(64)];
        write!(f, "Value({})", shown.escape_ascii())
    }
}

/// The elements of a list, in their order.
#[derive(Debug, Clone)]
pub struct List<'a>(&'a [u8]);

impl<'a> Iterator for List<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.0.is_empty()).then(|| next_value(&mut self.0))
    }
}

/// The entries of a dictionary, in their order.
#[derive(Debug, Clone)]
pub struct Dict<'a>(&'a [u8]);

impl<'a> Dict<'a> {
    /// The first value of a key.
    pub fn get(&self, key: &[u8]) -> Option<Value<'a>> {
        self.clone().find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

impl<'a> Iterator for Dict<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let key = next_value(&mut self.0)
            .as_bytes()
            .expect("keys were checked to be texts");
        Some((key, next_value(&mut self.0)))
    }
}

fn next_value<'a>(rest: &mut &'a [u8]) -> Value<'a> {
    let length = check(rest, Limits::CHECKED).expect("parts of a checked value are values");
    let (value, after) = rest.split_at(length);
    *rest = after;
    Value(value)
}

/// The length of the value at the beginning of `bytes`.
fn check(bytes: &[u8], limits: Limits) -> Result<usize, BencodeError> {
    // A bit for each level, the innermost lowest: set in a dictionary.
    let mut levels: u128 = 0;
    let (mut depth, mut items, mut at) = (0, 0, 0);
    let mut is_key_next = false;
    loop {
        let byte = *bytes.get(at).ok_or(BencodeError::Truncated)?;
        let is_in_dict = depth > 0 && levels & 1 == 1;
        items += 1;
        let is_closed = byte == b'e' && depth > 0 && (is_key_next || !is_in_dict);
        if is_closed {
            levels >>= 1;
            depth -= 1;
            at += 1;
        } else if items > limits.items {
            return Err(BencodeError::TooManyItems(limits.items));
        } else if byte.is_ascii_digit() {
            at = end_of_text(bytes, at)?;
            if is_key_next {
                is_key_next = false;
                continue;
            }
        } else if is_key_next {
            return Err(BencodeError::Invalid(at));
        } else if byte == b'i' {
            at = end_of_integer(bytes, at)?;
        } else if matches!(byte, b'l' | b'd') {
            if depth == limits.depth.min(Limits::CHECKED.depth) {
                return Err(BencodeError::TooDeep(limits.depth));
            }
            depth += 1;
            levels = (levels << 1) | u128::from(byte == b'd');
            at += 1;
            is_key_next = byte == b'd';
            continue;
        } else {
            return Err(BencodeError::Invalid(at));
        }
        if depth == 0 {
            return Ok(at);
        }
        // A value is complete: a dictionary continues with a key.
        is_key_next = levels & 1 == 1;
    }
}

fn end_of_text(bytes: &[u8], start: usize) -> Result<usize, BencodeError> {
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let colon = start + digits;
    match bytes.get(colon) {
        None => return Err(BencodeError::Truncated),
        Some(b':') => {}
        Some(_) => return Err(BencodeError::Invalid(colon)),
    }
    let mut length = 0_usize;
    for digit in &bytes[start..colon] {
        let longer = length.checked_mul(10);
        length = longer
            .and_then(|longer| longer.checked_add(usize::from(digit - b'0')))
            .ok_or(BencodeError::TooLong(start))?;
    }
    let end = (colon + 1).checked_add(length);
    end.filter(|end| *end <= bytes.len())
        .ok_or(BencodeError::TooLong(start))
}

fn end_of_integer(bytes: &[u8], start: usize) -> Result<usize, BencodeError> {
    let sign = usize::from(bytes.get(start + 1) == Some(&b'-'));
    let first = start + 1 + sign;
    let digits = bytes[first.min(bytes.len())..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let end = first + digits;
    match bytes.get(end) {
        None => Err(BencodeError::Truncated),
        Some(b'e') if digits > 0 => Ok(end + 1),
        Some(_) => Err(BencodeError::Invalid(end)),
    }
}

/// Encodes one value.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// The encoding of the dictionary that `write` fills.
    pub fn dict(write: impl FnOnce(&mut DictWriter<'_>)) -> Vec<u8> {
        let mut writer = Self::default();
        writer.dict_value(write);
        writer.0
    }

    /// Appends an integer.
    pub fn integer(&mut self, value: i64) {
        self.0.extend_from_slice(format!("i{value}e").as_bytes());
    }

    /// Appends a text.
    pub fn bytes(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        self.0.extend_from_slice(format!("{}:", text.len()).as_bytes());
        self.0.extend_from_slice(text);
    }

    /// Appends a value that is encoded already.
    pub fn raw(&mut self, value: &[u8]) {
        self.0.extend_from_slice(value);
    }

    /// Appends a list of what `write` appends.
    pub fn list(&mut self, write: impl FnOnce(&mut Self)) {
        self.0.push(b'l');
        write(self);
        self.0.push(b'e');
    }

    /// Appends a list of texts.
    pub fn texts(&mut self, texts: impl IntoIterator<Item = impl AsRef<[u8]>>) {
        self.list(|list| {
            for text in texts {
                list.bytes(text);
            }
        });
    }

    /// Appends the dictionary that `write` fills.
    pub fn dict_value(&mut self, write: impl FnOnce(&mut DictWriter<'_>)) {
        self.0.push(b'd');
        write(&mut DictWriter {
            writer: self,
            last_key: None,
        });
        self.0.push(b'e');
    }
}

/// Fills a dictionary, in the order of keys.
#[derive(Debug)]
pub struct DictWriter<'w> {
    writer: &'w mut Writer,
    last_key: Option<Vec<u8>>,
}

impl DictWriter<'_> {
    /// Appends a key; exactly one value must be appended to what this returns. Keys must ascend: other programs refuse a
    /// dictionary out of order.
    pub fn entry(&mut self, key: impl AsRef<[u8]>) -> &mut Writer {
        let key = key.as_ref();
        debug_assert!(self.last_key.as_deref() < Some(key), "keys ascend");
        self.last_key = Some(key.to_vec());
        self.writer.bytes(key);
        self.writer
    }
}

#[cfg(test)]
mod tests;
