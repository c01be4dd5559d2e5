//! The form of D-Bus messages, as far as the calls of a desktop need it. Pure: any bytes are read as a message or refused.

use crate::Method;

/// The longest message that is read. Answers here are object paths and keys.
pub(crate) const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// Byte order, kind, flags, version, lengths: what every message begins with.
pub(crate) const FIXED_BYTES: usize = 16;

/// The bytes are no message, or one of another type than was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Builds a value.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Pads to a multiple of `to`.
    pub fn align(&mut self, to: usize) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
        self
    }

    /// One byte.
    pub fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.push(byte);
        self
    }

    /// A boolean.
    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.number(value.into())
    }

    /// An unsigned number of 32 bits, or the bits of a signed one.
    pub fn number(&mut self, number: u32) -> &mut Self {
        self.align(4).0.extend(number.to_le_bytes());
        self
    }

    /// A string or an object path.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.number(u32::try_from(text.len()).expect("texts are short"));
        self.0.extend(text.as_bytes());
        self.byte(0)
    }

    /// A signature.
    pub fn signature(&mut self, text: &str) -> &mut Self {
        self.byte(u8::try_from(text.len()).expect("signatures are short"));
        self.0.extend(text.as_bytes());
        self.byte(0)
    }

    /// An array of bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(u32::try_from(bytes.len()).expect("secrets are short"));
        self.0.extend(bytes);
        self
    }

    /// An array of strings.
    pub fn texts(&mut self, texts: &[&str]) -> &mut Self {
        self.number(0);
        let start = self.0.len();
        for text in texts {
            self.text(text);
        }
        let length = u32::try_from(self.0.len() - start).expect("arrays are short");
        self.0[start - 4..start].copy_from_slice(&length.to_le_bytes());
        self
    }

    /// An array of structures or dictionary entries: `fill` writes them, each aligned to 8.
    pub fn structures(&mut self, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.array(8, fill)
    }

    /// An array of variants: `fill` writes them, each a signature and its value.
    pub fn variants(&mut self, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.array(1, fill)
    }

    fn array(&mut self, alignment: usize, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.number(0);
        let length_at = self.0.len() - 4;
        let start = self.align(alignment).0.len();
        fill(self);
        let length = u32::try_from(self.0.len() - start).expect("arrays are short");
        self.0[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
        self
    }
}

/// No answer is wanted.
const NO_REPLY: u8 = 1;

/// A message of a kind of the specification: `fields` writes the header fields but the signature of the body.
fn message_of(
    kind: u8,
    flags: u8,
    serial: u32,
    (signature, body): (&str, &Writer),
    fields: impl FnOnce(&mut Writer),
) -> Vec<u8> {
    let mut message = Writer::default();
    message.byte(b'l').byte(kind).byte(flags).byte(1);
    message.number(u32::try_from(body.0.len()).expect("bodies are short"));
    message.number(serial);
    message.structures(|all| {
        fields(all);
        if !signature.is_empty() {
            all.align(8).byte(8).signature("g").signature(signature);
        }
    });
    message.align(8);
    message.0.extend(&body.0);
    message.0
}

/// Writes header fields that are texts: each a code, its type and its value.
fn text_fields<const COUNT: usize>(all: &mut Writer, fields: [(u8, &str, &str); COUNT]) {
    for (code, kind, text) in fields {
        all.align(8).byte(code).signature(kind).text(text);
    }
}

/// A call as a message.
pub(crate) fn call(serial: u32, method: Method<'_>, signature: &str, arguments: &Writer) -> Vec<u8> {
    message_of(1, 0, serial, (signature, arguments), |all| {
        let fields = [
            (1, "o", method.path),
            (2, "s", method.interface),
            (3, "s", method.member),
            (6, "s", method.destination),
        ];
        text_fields(all, fields);
    })
}

/// The answer to a call: its body with its type, or the name of an error with a message.
pub(crate) fn answer(serial: u32, call: &Call, answer: Result<(&str, &Writer), (&str, &str)>) -> Vec<u8> {
    let mut text = Writer::default();
    let (kind, error, body) = match answer {
        Ok(body) => (2, None, body),
        Err((name, message)) => (3, Some(name), ("s", &*text.text(message))),
    };
    message_of(kind, NO_REPLY, serial, body, |all| {
        if let Some(error) = error {
            text_fields(all, [(4, "s", error)]);
        }
        all.align(8).byte(5).signature("u").number(call.serial);
        text_fields(all, [(6, "s", &call.sender)]);
    })
}

/// A signal of an object, to all who subscribed to it.
pub(crate) fn signal(
    serial: u32,
    path: &str,
    interface: &str,
    member: &str,
    signature: &str,
    body: &Writer,
) -> Vec<u8> {
    message_of(4, NO_REPLY, serial, (signature, body), |all| {
        text_fields(all, [(1, "o", path), (2, "s", interface), (3, "s", member)]);
    })
}

/// What kind of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Call,
    Return,
    Error,
    Signal,
    Other,
}

/// A call of a method of an object of this program.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    /// The object.
    pub path: String,
    /// The interface; empty if the caller names none.
    pub interface: String,
    /// The method.
    pub member: String,
    /// The type of the arguments.
    pub signature: String,
    /// The arguments.
    pub body: Reader,
    pub(crate) sender: String,
    pub(crate) serial: u32,
    pub(crate) wants_answer: bool,
}

/// What an object announced.
#[derive(Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its interface.
    pub interface: String,
    /// Its name.
    pub member: String,
    /// The type of its body.
    pub signature: String,
    /// Its body.
    pub body: Reader,
}

/// What is used of a header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) serial: u32,
    pub(crate) wants_answer: bool,
    pub(crate) sender: String,
    pub(crate) path: String,
    pub(crate) reply_serial: Option<u32>,
    pub(crate) error_name: String,
    pub(crate) interface: String,
    pub(crate) member: String,
    pub(crate) signature: String,
}

/// How many bytes follow the fixed part, and whether numbers are little-endian.
pub(crate) fn length(fixed: &[u8; FIXED_BYTES]) -> Result<(usize, bool), Malformed> {
    let is_little = match fixed[0] {
        b'l' => true,
        b'B' => false,
        _ => return Err(Malformed),
    };
    let number = |at: usize| {
        let bytes = [fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]];
        let number = if is_little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        };
        usize::try_from(number).map_err(|_| Malformed)
    };
    let (body, fields) = (number(4)?, number(12)?);
    if body > MAX_MESSAGE_BYTES || fields > MAX_MESSAGE_BYTES {
        return Err(Malformed);
    }
    Ok((fields.next_multiple_of(8) + body, is_little))
}

/// Reads a whole message: its header, and its body to be read on.
pub(crate) fn message(bytes: Vec<u8>, is_little: bool) -> Result<(Header, Reader), Malformed> {
    let mut reader = Reader {
        at: 1,
        start: 0,
        end: bytes.len(),
        is_little,
        bytes,
    };
    let kind = match reader.byte()? {
        1 => Kind::Call,
        2 => Kind::Return,
        3 => Kind::Error,
        4 => Kind::Signal,
        _ => Kind::Other,
    };
    let wants_answer = kind == Kind::Call && reader.byte()? & NO_REPLY == 0;
    reader.at = 8;
    let mut header = Header {
        kind,
        serial: reader.number()?,
        wants_answer,
        sender: String::new(),
        path: String::new(),
        reply_serial: None,
        error_name: String::new(),
        interface: String::new(),
        member: String::new(),
        signature: String::new(),
    };
    let end = reader.array(8)?;
    while reader.at < end {
        reader.align(8)?;
        let code = reader.byte()?;
        match (code, &*reader.signature()?) {
            (1, "o") => header.path = reader.text()?,
            (7, "s") => header.sender = reader.text()?,
            (5, "u") => header.reply_serial = Some(reader.number()?),
            (2, "s") => header.interface = reader.text()?,
            (3, "s") => header.member = reader.text()?,
            (4, "s") => header.error_name = reader.text()?,
            (8, "g") => header.signature = reader.signature()?,
            (_, "o" | "s") => drop(reader.text()?),
            (_, "g") => drop(reader.signature()?),
            (_, "u") => drop(reader.number()?),
            _ => return Err(Malformed),
        }
    }
    reader.align(8)?;
    reader.start = reader.at;
    Ok((header, reader))
}

/// Reads values one after the other.
#[derive(Debug, PartialEq, Eq)]
pub struct Reader {
    bytes: Vec<u8>,
    at: usize,
    /// Where the body begins, which values are aligned to.
    start: usize,
    end: usize,
    is_little: bool,
}

impl Reader {
    fn take(&mut self, count: usize) -> Result<&[u8], Malformed> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.end);
        let taken = self.bytes.get(self.at..end.ok_or(Malformed)?).ok_or(Malformed)?;
        self.at += count;
        Ok(taken)
    }

    fn align(&mut self, to: usize) -> Result<(), Malformed> {
        let offset = self.at - self.start;
        self.take(offset.next_multiple_of(to) - offset).map(drop)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    /// An unsigned number of 32 bits.
    pub fn number(&mut self) -> Result<u32, Malformed> {
        self.align(4)?;
        let is_little = self.is_little;
        let bytes = self.take(4)?.try_into().map_err(|_| Malformed)?;
        Ok(if is_little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.number()?).map_err(|_| Malformed)
    }

    /// A string or an object path.
    pub fn text(&mut self) -> Result<String, Malformed> {
        let length = self.length()?;
        let text = String::from_utf8(self.take(length)?.to_vec()).map_err(|_| Malformed)?;
        (self.byte()? == 0).then_some(text).ok_or(Malformed)
    }

    /// A signature.
    pub fn signature(&mut self) -> Result<String, Malformed> {
        let length = self.byte()?.into();
        let text = String::from_utf8(self.take(length)?.to_vec()).map_err(|_| Malformed)?;
        (self.byte()? == 0).then_some(text).ok_or(Malformed)
    }

    /// An array of bytes.
    pub fn byte_array(&mut self) -> Result<Vec<u8>, Malformed> {
        let length = self.length()?;
        Ok(self.take(length)?.to_vec())
    }

    /// Begins a structure.
    pub fn structure(&mut self) -> Result<(), Malformed> {
        self.align(8)
    }

    /// An array of strings or object paths.
    pub fn paths(&mut self) -> Result<Vec<String>, Malformed> {
        let end = self.array(4)?;
        let mut paths = Vec::new();
        while self.at < end {
            paths.push(self.text()?);
        }
        Ok(paths)
    }

    /// Begins an array of elements with this alignment; returns its end.
    fn array(&mut self, alignment: usize) -> Result<usize, Malformed> {
        let length = self.length()?;
        self.align(alignment)?;
        let end = self.at.checked_add(length).ok_or(Malformed)?;
        (end <= self.end).then_some(end).ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A return of `serial` with this body, as a bus sends it.
    fn reply(serial: u32, signature: &str, body: &Writer) -> Vec<u8> {
        let mut message = Writer::default();
        message.byte(b'l').byte(2).byte(1).byte(1);
        message.number(u32::try_from(body.0.len()).unwrap()).number(7);
        message.structures(|fields| {
            fields.align(8).byte(5).signature("u").number(serial);
            fields.align(8).byte(7).signature("s").text(":1.1");
            fields.align(8).byte(8).signature("g").signature(signature);
        });
        message.align(8);
        message.0.extend(&body.0);
        message.0
    }

    fn read(bytes: &[u8]) -> Result<(Header, Reader), Malformed> {
        let fixed: [u8; FIXED_BYTES] = bytes.get(..FIXED_BYTES).ok_or(Malformed)?.try_into().unwrap();
        let (rest, is_little) = length(&fixed)?;
        if bytes.len() != FIXED_BYTES + rest {
            return Err(Malformed);
        }
        message(bytes.to_vec(), is_little)
    }

    /// What is called and answered here is read back as what it is.
    #[test]
    fn a_call_is_answered_to_its_sender() {
        let method = Method {
            destination: "d",
            path: "/p",
            interface: "i",
            member: "m",
        };
        let mut arguments = Writer::default();
        arguments.text("x");
        let (header, body) = read(&call(7, method, "s", &arguments)).unwrap();
        assert!(header.kind == Kind::Call && header.wants_answer);
        assert_eq!((header.serial, header.path.as_str()), (7, "/p"));
        let call = Call {
            path: header.path,
            interface: header.interface,
            member: header.member,
            signature: header.signature,
            body,
            sender: ":1.9".to_owned(),
            serial: header.serial,
            wants_answer: true,
        };
        let (header, mut body) = read(&answer(1, &call, Ok(("s", &arguments)))).unwrap();
        assert_eq!((header.kind, header.reply_serial), (Kind::Return, Some(7)));
        assert_eq!(body.text().unwrap(), "x");
        let (header, mut body) = read(&answer(2, &call, Err(("a.b", "why")))).unwrap();
        assert_eq!((header.kind, header.error_name.as_str()), (Kind::Error, "a.b"));
        assert_eq!(body.text().unwrap(), "why");
        let (header, _) = read(&signal(3, "/p", "i", "s", "", &Writer::default())).unwrap();
        assert_eq!(
            (header.kind, header.path.as_str(), header.member.as_str()),
            (Kind::Signal, "/p", "s")
        );
        // An array in a variant in an array, as menus have them.
        let mut nested = Writer::default();
        nested.variants(|all| {
            all.signature("(ias)").align(8).number(5).texts(&["a"]);
        });
        assert_eq!(nested.0.len(), 4 + 7 + 5 + 4 + 4 + 6);
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let mut body = Writer::default();
        body.align(8)
            .text("/session")
            .bytes(b"")
            .bytes(b"secret")
            .text("text/plain");
        let (header, mut reader) = read(&reply(9, "(oayays)", &body)).unwrap();
        assert_eq!((header.kind, header.reply_serial), (Kind::Return, Some(9)));
        assert_eq!(header.signature, "(oayays)");
        reader.structure().unwrap();
        assert_eq!(reader.text().unwrap(), "/session");
        assert_eq!(reader.byte_array().unwrap(), b"");
        assert_eq!(reader.byte_array().unwrap(), b"secret");
        assert_eq!(reader.text().unwrap(), "text/plain");
        assert!(reader.byte_array().is_err(), "there is no more");
    }

    /// As `busctl --json` prints what dbus-daemon takes.
    #[test]
    fn a_call_has_the_form_of_the_specification() {
        let method = Method {
            destination: "d",
            path: "/p",
            interface: "i",
            member: "m",
        };
        let mut arguments = Writer::default();
        arguments.text("x");
        let bytes = call(1, method, "s", &arguments);
        assert_eq!(&bytes[..16], b"l\x01\0\x01\x06\0\0\0\x01\0\0\0\x47\0\0\0");
        assert_eq!(&bytes[16..31], b"\x01\x01o\0\x02\0\0\0/p\0\0\0\0\0");
        assert_eq!(bytes.len(), 16 + 72 + 6);
        assert_eq!(&bytes[88..], b"\x01\0\0\0x\0");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), changed in any::<proptest::sample::Index>(), byte in any::<u8>(),
        ) {
            let _any = read(&bytes);
            let mut body = Writer::default();
            body.structures(|paths| { paths.text("/a"); });
            let mut good = reply(1, "ao", &body);
            let at = changed.index(good.len());
            good[at] = byte;
            if let Ok((_, mut reader)) = read(&good) {
                let _any = (reader.paths(), reader.text(), reader.byte_array());
            }
        }
    }
}
