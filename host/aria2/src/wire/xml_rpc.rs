//! XML-RPC calls and answers. Pure: any text parses into a call or an error.

use std::{borrow::Cow, fmt, iter::once};

use admission::json::{Growth, Node, TooManyValues};
use bytes::Bytes;
use metalink_reader::xml::{Event, Events, NotXml};
use serde::{
    Deserializer,
    de::{DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use super::pieces::grouped;
use crate::vocabulary::{fault::Fault, params::Params};

const HEAD: &str = "<?xml version=\"1.0\"?><methodResponse>";
const TAIL: &str = "</methodResponse>";

/// Why a text is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// It is not XML, or not a call.
    #[error("it is no XML-RPC call")]
    NotACall,
    /// Its parameters would take too much memory.
    #[error(transparent)]
    TooManyValues(#[from] TooManyValues),
}

impl From<NotXml> for Unreadable {
    fn from(NotXml: NotXml) -> Self {
        Self::NotACall
    }
}

/// Parses a call: method name and parameters. Values are built as their tags arrive, in the memory that the same call
/// may take in JSON.
pub(crate) fn read(text: &str) -> Result<(String, Params), Unreadable> {
    let (events, growth) = (Events::of(text), Growth::default());
    Reading { events, growth }.call()
}

struct Reading<'t> {
    events: Events<'t>,
    growth: Growth,
}

impl Reading<'_> {
    fn call(&mut self) -> Result<(String, Params), Unreadable> {
        if self.events.child()?.is_none_or(|root| root.name() != "methodCall") {
            return Err(Unreadable::NotACall);
        }
        let (mut method, mut params) = (None, None);
        while let Some(tag) = self.events.child()? {
            match tag.name() {
                "methodName" if method.is_none() => method = Some(self.events.text()?.trim().to_owned()),
                "params" if params.is_none() => {
                    let mut list = Vec::new();
                    self.each("param", |param| {
                        list.extend(param.first_value()?);
                        Ok(())
                    })?;
                    params = Some(list);
                }
                _ => self.events.skip()?,
            }
        }
        self.events.read()?;
        Ok((method.ok_or(Unreadable::NotACall)?, Params(params.unwrap_or_default())))
    }

    /// Reads each child of this name; others are skipped.
    fn each(
        &mut self,
        name: &str,
        mut read: impl FnMut(&mut Self) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        while let Some(tag) = self.events.child()? {
            if tag.name() == name {
                read(self)?;
            } else {
                self.events.skip()?;
            }
        }
        Ok(())
    }

    /// The first `value` in a `param`.
    fn first_value(&mut self) -> Result<Option<Value>, Unreadable> {
        let mut first = None;
        self.each("value", |value| {
            let value = value.value()?;
            first.get_or_insert(value);
            Ok(())
        })?;
        Ok(first)
    }

    /// A `value` without a type is a string.
    fn value(&mut self) -> Result<Value, Unreadable> {
        self.growth.add(Node::Member)?;
        let mut untyped = String::new();
        loop {
            match self.events.read()? {
                Event::Text(text) => untyped.push_str(&text),
                Event::Start(tag) => {
                    let value = self.typed(tag.name())?;
                    self.events.skip()?;
                    return Ok(value);
                }
                Event::End | Event::Eof => return Ok(Value::from(untyped)),
            }
        }
    }

    fn typed(&mut self, name: &str) -> Result<Value, Unreadable> {
        let events = &mut self.events;
        Ok(match name {
            "string" => events.text()?.into(),
            "int" | "i4" | "i8" => events.text()?.trim().parse::<i64>().map_err(|_| NotXml)?.into(),
            "double" => events.text()?.trim().parse::<f64>().map_err(|_| NotXml)?.into(),
            "boolean" => (events.text()?.trim() == "1").into(),
            // It stays base64, as in JSON.
            "base64" => events.text()?.split_ascii_whitespace().collect::<String>().into(),
            "nil" => {
                events.skip()?;
                Value::Null
            }
            "array" => {
                self.growth.add(Node::List)?;
                let mut list = None;
                self.each("data", |data| {
                    let list = list.get_or_insert_with(Vec::new);
                    data.each("value", |value| {
                        list.push(value.value()?);
                        Ok(())
                    })
                })?;
                list.ok_or(Unreadable::NotACall)?.into()
            }
            "struct" => {
                self.growth.add(Node::Map)?;
                let mut members = Map::new();
                self.each("member", |member| {
                    let (name, value) = member.member()?;
                    members.insert(name, value);
                    Ok(())
                })?;
                members.into()
            }
            _ => return Err(Unreadable::NotACall),
        })
    }

    fn member(&mut self) -> Result<(String, Value), Unreadable> {
        let (mut name, mut content) = (None, None);
        while let Some(tag) = self.events.child()? {
            match tag.name() {
                "name" if name.is_none() => name = Some(self.events.text()?.into_owned()),
                "value" if content.is_none() => content = Some(self.value()?),
                _ => self.events.skip()?,
            }
        }
        name.zip(content).ok_or(Unreadable::NotACall)
    }
}

/// The answer to a call.
pub fn answer(outcome: Result<&str, &Fault>) -> String {
    let mut text = HEAD.to_owned();
    match outcome {
        Ok(result) => {
            text.push_str("<params><param>");
            write_json(&mut text, result);
            text.push_str("</param></params>");
        }
        Err(fault) => {
            text.push_str("<fault>");
            let fault = Map::from_iter([
                ("faultCode".to_owned(), fault.code.into()),
                ("faultString".to_owned(), fault.message.as_str().into()),
            ]);
            write_json(&mut text, &Value::from(fault).to_string());
            text.push_str("</fault>");
        }
    }
    text.push_str(TAIL);
    text
}

/// An answer that is a list of these values, each a JSON text.
pub(crate) fn list(values: impl Iterator<Item = Vec<u8>> + Send + Sync) -> impl Iterator<Item = Bytes> + Send + Sync {
    let head = [HEAD, "<params><param><value><array><data>"].concat();
    let tail = ["</data></array></value></param></params>", TAIL].concat();
    let values = values.map(|value| {
        let mut text = String::with_capacity(value.len() * 3);
        write_json(&mut text, str::from_utf8(&value).unwrap_or("null"));
        text.into_bytes()
    });
    grouped(once(head.into_bytes()).chain(values).chain(once(tail.into_bytes())))
}

/// Converts a JSON text; an invalid one becomes an empty string.
fn write_json(text: &mut String, json: &str) {
    let before = text.len();
    let mut reader = serde_json::Deserializer::from_str(json);
    if reader.deserialize_any(Writer(text)).is_err() {
        text.truncate(before);
        text.push_str("<value><string></string></value>");
    }
}

/// Writes the value that it deserializes.
struct Writer<'t>(&'t mut String);

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.push_str("<value><string></string></value>");
        Ok(())
    }

    fn visit_bool<E>(self, is_true: bool) -> Result<(), E> {
        let digit = if is_true { "1" } else { "0" };
        self.0.extend(["<value><boolean>", digit, "</boolean></value>"]);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.0.extend(["<value><int>", &number.to_string(), "</int></value>"]);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.0.extend(["<value><int>", &number.to_string(), "</int></value>"]);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.0
            .extend(["<value><int>", &Value::from(number).to_string(), "</int></value>"]);
        Ok(())
    }

    fn visit_str<E>(self, string: &str) -> Result<(), E> {
        self.0.push_str("<value><string>");
        escape(self.0, string);
        self.0.push_str("</string></value>");
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.push_str("<value><array><data>");
        while list.next_element_seed(Writer(self.0))?.is_some() {}
        self.0.push_str("</data></array></value>");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.push_str("<value><struct>");
        while let Some(name) = members.next_key::<Cow<'_, str>>()? {
            self.0.push_str("<member><name>");
            escape(self.0, &name);
            self.0.push_str("</name>");
            members.next_value_seed(Writer(self.0))?;
            self.0.push_str("</member>");
        }
        self.0.push_str("</struct></value>");
        Ok(())
    }
}

/// The token in the beginning of a call: the first value with the token prefix. Nothing before it is interpreted.
pub fn find_token(begun: &[u8]) -> Option<Cow<'_, str>> {
    const BEGIN: &[u8] = b">token:";
    let place = begun.windows(BEGIN.len()).position(|window| window == BEGIN)?;
    let rest = &begun[place + BEGIN.len()..];
    let end = rest.iter().position(|byte| *byte == b'<')?;
    let token = str::from_utf8(&rest[..end]).ok()?;
    if !token.contains('&') {
        return Some(Cow::Borrowed(token));
    }
    let element = ["<t>", token, "</t>"].concat();
    let mut events = Events::of(&element);
    events.child().ok()?;
    Some(Cow::Owned(events.text().ok()?.into_owned()))
}

/// Escapes text and drops characters that XML does not allow.
fn escape(text: &mut String, plain: &str) {
    for char in plain.chars() {
        match char {
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '&' => text.push_str("&amp;"),
            '\r' => text.push_str("&#13;"),
            '\t' | '\n' | ' '.. if !matches!(char, '\u{fffe}' | '\u{ffff}') => text.push(char),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn call(params: &[Value]) -> String {
        let mut text = "<methodCall><methodName>m</methodName><params>".to_owned();
        for param in params {
            text.push_str("<param>");
            write_json(&mut text, &param.to_string());
            text.push_str("</param>");
        }
        text + "</params></methodCall>"
    }

    #[test]
    fn a_call_is_read_whatever_its_values_are() {
        let params = [json!("a<&>b\n"), json!(-7), json!(true), json!([[], {}, {"k": ["v"]}])];
        assert_eq!(read(&call(&params)), Ok(("m".to_owned(), Params(params.to_vec()))));
        let untyped = "<methodCall><methodName> m </methodName><params><param><value>x</value></param>\
                       <param><value><base64> YQ\n== </base64></value></param></params></methodCall>";
        assert_eq!(
            read(untyped),
            Ok(("m".to_owned(), Params(vec![json!("x"), json!("YQ==")])))
        );
        let more = "<methodCall><x><methodName>n</methodName></x><methodName>m</methodName><params>\
                    <param><x/><value>a<int>1</int>b<int>x</int></value><value>2</value></param><param/>\
                    <param><value><struct><member><value/><name>k</name><x/></member></struct></value></param>\
                    </params><params/></methodCall>";
        assert_eq!(
            read(more),
            Ok(("m".to_owned(), Params(vec![json!(1), json!({"k": ""})])))
        );
        let none = "<methodCall><methodName>m</methodName></methodCall>";
        assert_eq!(read(none), Ok(("m".to_owned(), Params::default())));
    }

    #[test]
    fn what_is_no_call_is_refused() {
        for bad in [
            "<x/>",
            "<methodCall/>",
            "<methodCall><methodName>m</methodName><params><param><value><int>x</int></value></param></params></methodCall>",
            "<methodCall><methodName>m</methodName><params><param><value><date/></value></param></params></methodCall>",
            "<methodCall><methodName>m</methodName><params><param><value><array/></value></param></params></methodCall>",
            "<methodCall><methodName>m</methodName></methodCall><x/>",
            "<methodCall><methodName>m</methodName>",
        ] {
            assert_eq!(read(bad), Err(Unreadable::NotACall), "{bad}");
        }
    }

    #[test]
    fn what_multiplies_in_memory_is_refused_and_what_is_merely_long_is_not() {
        const BYTES: usize = 4 * 1024 * 1024;
        let with = |data: &str| {
            format!(
                "<methodCall><methodName>m</methodName><params><param><value><array><data>{data}</data></array></value>\
                 </param></params></methodCall>"
            )
        };
        let list = "<value><array><data/></array></value>";
        let map = "<value><struct/></value>";
        for bomb in ["<value/>", list, map] {
            let bomb = with(&bomb.repeat(BYTES / bomb.len()));
            assert!(read(&bomb) == Err(Unreadable::TooManyValues(TooManyValues)));
        }
        for long in ["a".repeat(BYTES), "<a/>".repeat(BYTES / 4)] {
            assert!(read(&with(&long)).is_ok());
        }
    }

    #[test]
    fn answers_look_like_aria2s() {
        let result = serde_json::value::to_raw_value(&json!({"a": ["<", 1]})).unwrap();
        assert_eq!(
            answer(Ok(result.get())),
            "<?xml version=\"1.0\"?><methodResponse><params><param><value><struct><member><name>a</name><value><array>\
             <data><value><string>&lt;</string></value><value><int>1</int></value></data></array></value></member>\
             </struct></value></param></params></methodResponse>"
        );
        assert_eq!(
            answer(Err(&Fault::unauthorized())),
            "<?xml version=\"1.0\"?><methodResponse><fault><value><struct><member><name>faultCode</name><value><int>1\
             </int></value></member><member><name>faultString</name><value><string>Unauthorized</string></value>\
             </member></struct></value></fault></methodResponse>"
        );
    }

    #[test]
    fn the_token_is_seen_before_the_rest_has_come() {
        let begun = |token: &str| format!("<methodCall><params><param><value><string>token:{token}");
        let check = |text: String, expect: Option<&str>| assert_eq!(find_token(text.as_bytes()).as_deref(), expect);
        check(begun("key</string>AAA"), Some("key"));
        check(begun("a&amp;b&#x41;</string>"), Some("a&bA"));
        check(begun("a&b</string>"), None);
        check(begun("ke"), None);
        check("<methodCall>".to_owned(), None);
    }

    #[test]
    fn a_list_that_is_sent_in_pieces_is_the_same_document() {
        let values = [json!({"gid": "<1>"}), json!(["a", 2, -3, true, null])];
        let whole = serde_json::value::to_raw_value(&values).unwrap();
        let pieces = list(values.into_iter().map(|value| value.to_string().into_bytes()));
        let text: Vec<u8> = pieces.flatten().collect();
        assert_eq!(String::from_utf8(text).unwrap(), answer(Ok(whole.get())));
    }

    proptest! {
        #[test]
        fn every_text_arrives(text in "\\PC{0,40}") {
            let params = [Value::from(text)];
            prop_assert_eq!(read(&call(&params)), Ok(("m".to_owned(), Params(params.to_vec()))));
        }

        #[test]
        fn no_answer_makes_a_document_that_is_none(text in any::<String>()) {
            let result = serde_json::value::to_raw_value(&json!([text])).unwrap();
            let text = answer(Ok(result.get()));
            prop_assert!(metalink_reader::xml::Element::read(&text).is_ok());
        }
    }
}
