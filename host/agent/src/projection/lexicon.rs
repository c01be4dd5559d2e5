//! JSON objects in few bytes: members that many of them share are held once and referred to by number. Pure.
//!
//! Tasks are alike: of the thousand bytes of one, some hundred are its own. Reading one is copying its members one
//! after the other.

use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Values of one name that are shared. A member that takes more (an id, a URL) is rarely the same twice.
const MAX_VALUES: usize = 32;

/// Values up to here are shared; longer ones would make the lexicon large.
const MAX_VALUE_BYTES: usize = 256;

/// Names; about eight times as many as a task has. Members beyond it are kept with their object.
const MAX_NAMES: usize = 256;

/// The word for a member that is kept with its object, name and all.
const NO_NAME: usize = 0;

#[derive(Debug, Clone)]
struct Word {
    /// `"name":`, with the value if that is shared as well.
    text: Arc<str>,
    /// Whether the value follows in the object.
    is_open: bool,
}

/// What objects are read with. Cheap to clone; words are only ever added.
#[derive(Debug, Clone)]
pub(crate) struct Words(Arc<Vec<Word>>);

/// An object in few bytes: the numbers of its words, and after an open one the length and text of its value.
pub(crate) type Packed = Box<[u8]>;

/// What objects are written with.
#[derive(Debug)]
pub(crate) struct Lexicon {
    words: Words,
    numbers: HashMap<Arc<str>, usize>,
    /// How many values of a name are shared, by the name's number.
    values: HashMap<usize, usize>,
}

impl Default for Lexicon {
    fn default() -> Self {
        let nothing = Word {
            text: "".into(),
            is_open: true,
        };
        Self {
            words: Words(Arc::new(vec![nothing])),
            numbers: HashMap::new(),
            values: HashMap::new(),
        }
    }
}

impl Lexicon {
    /// What its objects are read with, as of now.
    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    /// An object in few bytes. `json` must be one.
    pub(crate) fn pack(&mut self, json: &str) -> Result<Packed, serde_json::Error> {
        let Members(members) = serde_json::from_str(json)?;
        let mut packed = Vec::with_capacity(json.len() / 4);
        for (name, value) in members {
            let name = format!("{}:", serde_json::Value::from(name));
            let value = value.get();
            let number = self.name(&name);
            if let Some(shared) = self.shared(number, &name, value) {
                put_number(&mut packed, shared);
                continue;
            }
            let name = if number == NO_NAME { name.as_str() } else { "" };
            put_number(&mut packed, number);
            put_number(&mut packed, name.len() + value.len());
            packed.extend_from_slice(name.as_bytes());
            packed.extend_from_slice(value.as_bytes());
        }
        Ok(packed.as_slice().into())
    }

    fn name(&mut self, name: &str) -> usize {
        match self.numbers.get(name) {
            Some(number) => *number,
            None if self.values.len() >= MAX_NAMES => NO_NAME,
            None => {
                let number = self.add(name, true);
                self.values.insert(number, 0);
                number
            }
        }
    }

    fn shared(&mut self, name_number: usize, name: &str, value: &str) -> Option<usize> {
        let values = self.values.get_mut(&name_number)?;
        if value.len() > MAX_VALUE_BYTES {
            return None;
        }
        let member = format!("{name}{value}");
        if let Some(number) = self.numbers.get(member.as_str()) {
            return Some(*number);
        }
        if *values >= MAX_VALUES {
            return None;
        }
        *values += 1;
        Some(self.add(&member, false))
    }

    fn add(&mut self, text: &str, is_open: bool) -> usize {
        let text: Arc<str> = text.into();
        let words = Arc::make_mut(&mut self.words.0);
        self.numbers.insert(Arc::clone(&text), words.len());
        words.push(Word { text, is_open });
        words.len() - 1
    }
}

impl Words {
    /// Writes an object that was packed with these words, or with fewer of them.
    pub(crate) fn unpack(&self, mut packed: &[u8], text: &mut Vec<u8>) {
        let mut before = b'{';
        while let Some(word) = take_number(&mut packed).and_then(|number| self.0.get(number)) {
            text.push(before);
            before = b',';
            text.extend_from_slice(word.text.as_bytes());
            if word.is_open {
                let length = take_number(&mut packed).unwrap_or(0).min(packed.len());
                let (value, rest) = packed.split_at(length);
                text.extend_from_slice(value);
                packed = rest;
            }
        }
        if before == b'{' {
            text.push(before);
        }
        text.push(b'}');
    }
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
fn put_number(packed: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        packed.push(0x80 | number.to_le_bytes()[0]);
        number >>= 7;
    }
    packed.push(number.to_le_bytes()[0]);
}

fn take_number(packed: &mut &[u8]) -> Option<usize> {
    let end = packed.iter().position(|byte| byte & 0x80 == 0)?;
    let (bytes, rest) = packed.split_at(end + 1);
    *packed = rest;
    let add = |number: usize, byte: &u8| (number << 7) | usize::from(byte & 0x7f);
    Some(bytes.iter().rev().fold(0, add))
}

/// The members of an object, in order.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(map.size_hint().unwrap_or(40));
                while let Some(member) = map.next_entry::<Cow<'_, str>, _>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(lexicon: &Lexicon, packed: &[u8]) -> String {
        let mut text = Vec::new();
        lexicon.words().unpack(packed, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn what_is_packed_is_read_again_byte_for_byte() {
        let mut lexicon = Lexicon::default();
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
        for json in [
            "{}",
            r#"{"a":1}"#,
            r#"{"a":1,"b":"","c":null,"d":[1,{"e":2}],"f":"\"}\\ü","":0}"#,
            r#"{"quo\"te\n":true}"#,
            &long,
        ] {
            let packed = lexicon.pack(json).unwrap();
            assert_eq!(unpacked(&lexicon, &packed), json);
        }
        assert!(lexicon.pack("[]").is_err() && lexicon.pack("{").is_err());
    }

    #[test]
    fn what_objects_share_is_held_once() {
        let mut lexicon = Lexicon::default();
        let object = |number: usize| {
            let shared = format!(r#""directory":"{}""#, "d".repeat(200));
            format!(r#"{{"id":"{number:08}",{shared},"kind":"same","empty":""}}"#)
        };
        let all: Vec<_> = (0..10_000)
            .map(|number| lexicon.pack(&object(number)).unwrap())
            .collect();
        assert!(all[9_999].len() < 20, "{:?}", all[9_999]);
        for (number, packed) in all.iter().enumerate() {
            assert_eq!(unpacked(&lexicon, packed), object(number));
        }
        assert!(lexicon.words().0.len() < 50);
    }

    #[test]
    fn the_lexicon_is_bounded_and_what_was_packed_before_stays_readable() {
        let mut lexicon = Lexicon::default();
        let object = |number: usize| format!(r#"{{"name{number}":{number}}}"#);
        let first = lexicon.pack(&object(0)).unwrap();
        let words = lexicon.words().clone();
        for number in 1..10_000 {
            let packed = lexicon.pack(&object(number)).unwrap();
            assert_eq!(unpacked(&lexicon, &packed), object(number));
        }
        assert!(lexicon.words().0.len() <= 1 + 2 * MAX_NAMES);
        let mut text = Vec::new();
        words.unpack(&first, &mut text);
        assert_eq!(text, object(0).as_bytes());
    }
}
