//! A compact form of JSON objects: members that many objects share are interned and referred to by number. Pure.
//!
//! Tasks are similar: of the thousand bytes of one, about a hundred are its own. Serializing copies the members one
//! after the other.

use std::{
    collections::{HashMap, HashSet},
    str,
    sync::{Arc, OnceLock},
};

use admission::json::string_end;
use serde_json::value::RawValue;

/// Interned values per name. A member with more distinct values (an id, a URL) rarely repeats.
const MAX_VALUES: usize = 32;

/// Longer values are not interned; they would make the table large.
const MAX_VALUE_BYTES: usize = 256;

/// About eight times as many as a task has. Members beyond it are stored with their object.
const MAX_NAMES: usize = 256;

/// Marks a member that is stored with its object, including the name.
const NO_NAME: usize = 0;

/// Strings allocated together.
const CHUNK: usize = 128;

/// Enough for every name with all its values.
const CHUNKS: usize = (1 + MAX_NAMES * (1 + MAX_VALUES)).div_ceil(CHUNK);

/// Members that change during a run more often than the task's record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Live {
    Downloaded,
    Total,
    Uploaded,
}

#[derive(Debug)]
struct Interned {
    /// `"name":`, with the value if that is interned as well.
    text: Arc<str>,
    /// Bytes before the value.
    name_bytes: usize,
    /// Whether the value is stored in the object.
    is_open: bool,
    live: Option<Live>,
    /// Whether the value is the one that a reader of sparse objects assumes.
    is_usual: bool,
}

/// The interned strings. Append-only, so objects can refer to them and readers need no lock.
#[derive(Debug)]
struct StringTable([OnceLock<Box<[OnceLock<Interned>; CHUNK]>>; CHUNKS]);

impl StringTable {
    fn new() -> Self {
        Self([const { OnceLock::new() }; CHUNKS])
    }

    fn get(&self, number: usize) -> Option<&Interned> {
        self.0.get(number / CHUNK)?.get()?[number % CHUNK].get()
    }

    fn set(&self, number: usize, interned: Interned) {
        let chunk = self.0[number / CHUNK].get_or_init(|| Box::new([const { OnceLock::new() }; CHUNK]));
        chunk[number % CHUNK].set(interned).expect("every number is given once");
    }
}

/// The numbers of its strings; after an open one, the length and text of its value.
#[derive(Debug)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    strings: Arc<StringTable>,
}

/// Current values that replace those in the object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveBytes {
    pub(crate) downloaded: u64,
    /// 0 is unknown.
    pub(crate) total: u64,
    pub(crate) uploaded: u64,
}

impl LiveBytes {
    fn value(self, live: Live) -> Option<u64> {
        match live {
            Live::Downloaded => Some(self.downloaded),
            Live::Total => Some(self.total).filter(|total| *total > 0),
            Live::Uploaded => Some(self.uploaded),
        }
    }
}

impl Packed {
    /// Serializes the object, with `live` replacing its own members. A sparse one leaves out members with usual values.
    pub(crate) fn write(&self, live: Option<LiveBytes>, is_sparse: bool, text: &mut Vec<u8>) {
        let mut before = b'{';
        for (string, value) in self.parts() {
            if is_sparse && string.is_usual && (live.is_none() || string.live.is_none()) {
                continue;
            }
            text.push(before);
            before = b',';
            let measured = string.live.and_then(|member| live?.value(member));
            if let Some(number) = measured {
                text.extend_from_slice(&string.text.as_bytes()[..string.name_bytes]);
                text.extend_from_slice(number.to_string().as_bytes());
            } else {
                text.extend_from_slice(string.text.as_bytes());
                text.extend_from_slice(value);
            }
        }
        if before == b'{' {
            text.push(before);
        }
        text.push(b'}');
    }

    /// Visits each member: name, and value as JSON.
    pub(crate) fn members<'p>(&'p self, show: &mut dyn FnMut(&'p str, &'p str)) {
        for (string, value) in self.parts() {
            let value = str::from_utf8(value).expect("objects are packed as text");
            let (name, rest) = if string.name_bytes == 0 {
                let end = string_end(value.as_bytes()).map_or(value.len(), |end| end + 2);
                value.split_at(end)
            } else if string.is_open {
                (&*string.text, value)
            } else {
                string.text.split_at(string.name_bytes)
            };
            // Strips the quotes and the colon.
            show(name.get(1..name.len().saturating_sub(2)).unwrap_or_default(), rest);
        }
    }

    fn parts(&self) -> impl Iterator<Item = (&Interned, &[u8])> {
        let mut packed = &*self.bytes;
        std::iter::from_fn(move || {
            let string = self.strings.get(take_number(&mut packed)?)?;
            if !string.is_open {
                return Some((string, &packed[..0]));
            }
            let length = take_number(&mut packed).unwrap_or(0).min(packed.len());
            let (value, rest) = packed.split_at(length);
            packed = rest;
            Some((string, value))
        })
    }
}

/// Interns strings and packs objects.
#[derive(Debug)]
pub(crate) struct Packer {
    strings: Arc<StringTable>,
    numbers: HashMap<Arc<str>, usize>,
    /// Number of interned values, by the name's number.
    values: HashMap<usize, usize>,
    /// The strings of the last object. The next one has most of them in the same places, which saves parsing them.
    last: Vec<usize>,
    /// Members with their usual values, as they are interned.
    usual: HashSet<Box<str>>,
}

impl Default for Packer {
    fn default() -> Self {
        Self::with_usual(std::iter::empty())
    }
}

impl Packer {
    /// A packer of objects some of whose members usually have these values, as JSON.
    pub(crate) fn with_usual(usual: impl Iterator<Item = (String, String)>) -> Self {
        let mut packer = Self {
            usual: usual
                .map(|(name, value)| format!("\"{name}\":{value}").into())
                .collect(),
            strings: Arc::new(StringTable::new()),
            numbers: HashMap::new(),
            values: HashMap::new(),
            last: Vec::new(),
        };
        packer.add("", 0, true);
        packer
    }

    /// Packs an object and visits its members. `json` must be an object without whitespace, as `serde_json` writes it.
    pub(crate) fn pack(
        &mut self,
        json: &str,
        mut show: impl FnMut(&str, &str) -> Result<(), serde_json::Error>,
    ) -> Result<Packed, serde_json::Error> {
        let mut packed = Vec::with_capacity(json.len() / 4);
        let mut rest = json.strip_prefix('{').ok_or_else(malformed)?;
        let mut place = 0;
        while rest != "}" {
            let next = if place == 0 { Some(rest) } else { rest.strip_prefix(',') };
            let text = next.ok_or_else(malformed)?;
            let (name_bytes, bytes) = if let Some((number, string)) = self.expected(place, text) {
                put_number(&mut packed, number);
                (string.name_bytes, string.text.len())
            } else {
                let (name_bytes, bytes) = measure(text)?;
                let number = self.put(&text[..bytes], name_bytes, &mut packed);
                self.last.resize(self.last.len().max(place + 1), NO_NAME);
                self.last[place] = number;
                (name_bytes, bytes)
            };
            show(&text[1..name_bytes - 2], &text[name_bytes..bytes])?;
            rest = &text[bytes..];
            place += 1;
        }
        Ok(Packed {
            bytes: packed.as_slice().into(),
            strings: Arc::clone(&self.strings),
        })
    }

    /// The string that the last object had in this place, if `text` begins with it.
    fn expected(&self, place: usize, text: &str) -> Option<(usize, &Interned)> {
        let number = *self.last.get(place)?;
        let string = self.strings.get(number).filter(|string| !string.is_open)?;
        let ends = text.strip_prefix(&*string.text)?.starts_with([',', '}']);
        ends.then_some((number, string))
    }

    /// Packs a member; returns the number of its string.
    fn put(&mut self, member: &str, name_bytes: usize, packed: &mut Vec<u8>) -> usize {
        let is_short = member.len() - name_bytes <= MAX_VALUE_BYTES;
        let known = self.numbers.get(member).copied().filter(|_| is_short);
        let name = known.unwrap_or_else(|| self.name(&member[..name_bytes]));
        let shared = known.or_else(|| is_short.then(|| self.share(name, member, name_bytes)).flatten());
        put_number(packed, shared.unwrap_or(name));
        if shared.is_none() {
            let own = if name == NO_NAME { member } else { &member[name_bytes..] };
            put_number(packed, own.len());
            packed.extend_from_slice(own.as_bytes());
        }
        shared.unwrap_or(name)
    }

    fn name(&mut self, name: &str) -> usize {
        match self.numbers.get(name) {
            Some(number) => *number,
            None if self.values.len() >= MAX_NAMES => NO_NAME,
            None => {
                let number = self.add(name, name.len(), true);
                self.values.insert(number, 0);
                number
            }
        }
    }

    fn share(&mut self, name: usize, member: &str, name_bytes: usize) -> Option<usize> {
        let values = self.values.get_mut(&name)?;
        if *values >= MAX_VALUES {
            return None;
        }
        *values += 1;
        Some(self.add(member, name_bytes, false))
    }

    fn add(&mut self, text: &str, name_bytes: usize, is_open: bool) -> usize {
        let text: Arc<str> = text.into();
        let live = match &text[..name_bytes] {
            "\"downloadedBytes\":" => Some(Live::Downloaded),
            "\"totalBytes\":" => Some(Live::Total),
            "\"uploadedBytes\":" => Some(Live::Uploaded),
            _ => None,
        };
        let is_usual = !is_open && self.usual.contains(&*text);
        let number = self.numbers.len();
        self.numbers.insert(Arc::clone(&text), number);
        self.strings.set(
            number,
            Interned {
                text,
                name_bytes,
                is_open,
                live,
                is_usual,
            },
        );
        number
    }
}

/// Writes a LEB128 number.
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

/// Bytes of the name with its colon, and of the whole member, at the beginning of `text`.
fn measure(text: &str) -> Result<(usize, usize), serde_json::Error> {
    let end = text.starts_with('"').then(|| string_end(text.as_bytes())).flatten();
    let name_bytes = end.ok_or_else(malformed)? + 2;
    if !text[name_bytes - 1..].starts_with(':') {
        return Err(malformed());
    }
    let mut values = serde_json::Deserializer::from_str(&text[name_bytes..]).into_iter::<&RawValue>();
    values.next().ok_or_else(malformed)??;
    Ok((name_bytes, name_bytes + values.byte_offset()))
}

fn malformed() -> serde_json::Error {
    serde::de::Error::custom("a task is a JSON object without whitespace")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &Packed) -> String {
        let mut text = Vec::new();
        packed.write(None, false, &mut text);
        String::from_utf8(text).unwrap()
    }

    fn pack(packer: &mut Packer, json: &str) -> Result<Packed, serde_json::Error> {
        packer.pack(json, |_, _| Ok(()))
    }

    #[test]
    fn what_is_packed_is_read_again_byte_for_byte() {
        let mut packer = Packer::default();
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
        for json in [
            "{}",
            r#"{"a":1}"#,
            r#"{"a":1,"b":"","c":null,"d":[1,{"e":2}],"f":"\"}\\ü","":0}"#,
            r#"{"quo\"te\n":true}"#,
            &long,
        ] {
            let packed = pack(&mut packer, json).unwrap();
            assert_eq!(unpacked(&packed), json);
        }
        for bad in [
            "[]",
            "{",
            "}",
            "",
            "{,}",
            "{\"a\":1,}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1",
            "{\"a\":1]",
            "{\"a\":1x}",
            "{a:1}",
        ] {
            assert!(pack(&mut packer, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn members_are_shown_as_they_were_and_written_with_what_was_measured_since() {
        let mut packer = Packer::default();
        for name in 0..MAX_NAMES {
            pack(&mut packer, &format!(r#"{{"name{name}":1}}"#)).unwrap();
        }
        let json = r#"{"downloadedBytes":1,"totalBytes":2,"uploadedBytes":4,"name7":"a\"b","ot\"her":[1]}"#;
        for mut packer in [Packer::default(), packer] {
            let packed = pack(&mut packer, json).unwrap();
            let mut shown = Vec::new();
            packed.members(&mut |name, value| shown.push(format!("{name}={value}")));
            assert_eq!(
                shown,
                [
                    "downloadedBytes=1",
                    "totalBytes=2",
                    "uploadedBytes=4",
                    r#"name7="a\"b""#,
                    r#"ot\"her=[1]"#
                ]
            );
        }
        let mut packer = Packer::default();
        let packed = pack(&mut packer, json).unwrap();
        let check = |downloaded: u64, total: u64, expect: &str| {
            let mut text = Vec::new();
            let live = LiveBytes {
                downloaded,
                total,
                uploaded: 3,
            };
            packed.write(Some(live), false, &mut text);
            let text = String::from_utf8(text).unwrap();
            assert!(text.starts_with(expect), "{text}");
        };
        check(
            70,
            90,
            r#"{"downloadedBytes":70,"totalBytes":90,"uploadedBytes":3,"name7""#,
        );
        check(0, 0, r#"{"downloadedBytes":0,"totalBytes":2,"uploadedBytes":3,"name7""#);
    }

    #[test]
    fn what_objects_share_is_held_once() {
        let mut packer = Packer::default();
        let object = |number: usize| {
            let shared = format!(r#""directory":"{}""#, "d".repeat(200));
            format!(r#"{{"id":"{number:08}",{shared},"kind":"same","empty":""}}"#)
        };
        let all: Vec<_> = (0..10_000)
            .map(|number| pack(&mut packer, &object(number)).unwrap())
            .collect();
        assert!(all[9_999].bytes.len() < 20, "{:?}", all[9_999].bytes);
        for (number, packed) in all.iter().enumerate() {
            assert_eq!(unpacked(packed), object(number));
        }
        assert!(packer.numbers.len() < 50);
    }

    #[test]
    fn the_table_is_bounded_and_what_was_packed_before_stays_readable() {
        let mut packer = Packer::default();
        let object = |number: usize| format!(r#"{{"name{number}":{number}}}"#);
        let first = pack(&mut packer, &object(0)).unwrap();
        for number in 1..10_000 {
            let packed = pack(&mut packer, &object(number)).unwrap();
            assert_eq!(unpacked(&packed), object(number));
        }
        assert!(packer.numbers.len() <= 1 + 2 * MAX_NAMES);
        assert_eq!(unpacked(&first), object(0));
    }
}
