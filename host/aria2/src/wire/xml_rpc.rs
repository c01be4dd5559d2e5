//! XML-RPC calls and answers. Pure: any text parses into a call or an error.

use std::{borrow::Cow, fmt, iter::once};

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

/// Parses a call: method name and parameters. Values are built as their tags arrive: `<value/>` needs the most memory
/// for its length, four times that of the text.
pub(crate) fn read(text: &str) -> Result<(String, Params), NotXml> {
    let mut events = Events::of(text);
    if events.child()?.is_none_or(|root| root.name() != "methodCall") {
        return Err(NotXml);
    }
    let (mut method, mut params) = (None, None);
    while let Some(tag) = events.child()? {
        match tag.name() {
            "methodName" if method.is_none() => method = Some(events.text()?.trim().to_owned()),
            "params" if params.is_none() => params = Some(values(&mut events, "param", only_value)?),
            _ => events.skip()?,
        }
    }
    events.read()?;
    let params = params.unwrap_or_default().into_iter().flatten().collect();
    Ok((method.ok_or(NotXml)?, Params(params)))
}

/// What `read` makes of each child of this name.
fn values<T>(
    events: &mut Events<'_>,
    name: &str,
    read: impl Fn(&mut Events<'_>) -> Result<T, NotXml>,
) -> Result<Vec<T>, NotXml> {
    let mut values = Vec::new();
    while let Some(tag) = events.child()? {
        if tag.name() == name {
            values.push(read(events)?);
        } else {
            events.skip()?;
        }
    }
    Ok(values)
}

/// The first `value` in a `param`.
fn only_value(events: &mut Events<'_>) -> Result<Option<Value>, NotXml> {
    Ok(values(events, "value", value)?.into_iter().next())
}

/// A `value` without a type is a string.
fn value(events: &mut Events<'_>) -> Result<Value, NotXml> {
    let mut untyped = String::new();
    loop {
        match events.read()? {
            Event::Text(text) => untyped.push_str(&text),
            Event::Start(tag) => {
                let value = typed(tag.name(), events)?;
                events.skip()?;
                return Ok(value);
            }
            Event::End | Event::Eof => return Ok(Value::from(untyped)),
        }
    }
}

fn typed(name: &str, events: &mut Events<'_>) -> Result<Value, NotXml> {
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
            let data = values(events, "data", |events| values(events, "value", value))?;
            data.into_iter().next().ok_or(NotXml)?.into()
        }
        "struct" => {
            let members = values(events, "member", member)?;
            members.into_iter().collect::<Map<_, _>>().into()
        }
        _ => return Err(NotXml),
    })
}

fn member(events: &mut Events<'_>) -> Result<(String, Value), NotXml> {
    let (mut name, mut content) = (None, None);
    while let Some(tag) = events.child()? {
        match tag.name() {
            "name" if name.is_none() => name = Some(events.text()?.into_owned()),
            "value" if content.is_none() => content = Some(value(events)?),
            _ => events.skip()?,
        }
    }
    name.zip(content).ok_or(NotXml)
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
            assert_eq!(read(bad), Err(NotXml), "{bad}");
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
