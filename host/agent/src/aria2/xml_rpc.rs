//! Calls and answers as XML-RPC. Pure: any text gives a call or none.

use serde_json::{Map, Value};

use super::{
    call::Outcome,
    params::Params,
    xml::{Element, NotXml},
};

const HEAD: &str = "<?xml version=\"1.0\"?><methodResponse>";

/// Reads a call: the method's name and its parameters.
pub(super) fn read(text: &str) -> Result<(String, Params), NotXml> {
    let call = Element::read(text)?;
    let method = call
        .child("methodName")
        .filter(|_| call.name == "methodCall")
        .ok_or(NotXml)?;
    let params = call.child("params").map(|params| {
        let values = params.children("param").filter_map(|param| param.child("value"));
        values.map(value).collect::<Result<_, _>>()
    });
    let params = params.transpose()?.unwrap_or_default();
    Ok((method.text.trim().to_owned(), Params(params)))
}

fn value(element: &Element) -> Result<Value, NotXml> {
    let Some(typed) = element.children.first() else {
        return Ok(Value::from(element.text.as_str()));
    };
    let text = typed.text.as_str();
    Ok(match typed.name.as_str() {
        "string" => text.into(),
        "int" | "i4" | "i8" => text.trim().parse::<i64>().map_err(|_| NotXml)?.into(),
        "double" => text.trim().parse::<f64>().map_err(|_| NotXml)?.into(),
        "boolean" => (text.trim() == "1").into(),
        // It stays in base64, as it is in JSON.
        "base64" => text.split_ascii_whitespace().collect::<String>().into(),
        "nil" => Value::Null,
        "array" => {
            let data = typed.child("data").ok_or(NotXml)?;
            data.children("value").map(value).collect::<Result<Vec<_>, _>>()?.into()
        }
        "struct" => {
            let member = |member: &Element| {
                let name = member.child("name").ok_or(NotXml)?.text.clone();
                Ok((name, value(member.child("value").ok_or(NotXml)?)?))
            };
            let members = typed.children("member").map(member);
            members.collect::<Result<Map<_, _>, NotXml>>()?.into()
        }
        _ => return Err(NotXml),
    })
}

/// The answer to a call.
pub(super) fn answer(outcome: &Outcome) -> String {
    let mut text = HEAD.to_owned();
    match outcome {
        Ok(result) => {
            let result = serde_json::from_str(result.get()).unwrap_or(Value::Null);
            text.push_str("<params><param>");
            write(&mut text, &result);
            text.push_str("</param></params>");
        }
        Err(fault) => {
            text.push_str("<fault>");
            let fault = Map::from_iter([
                ("faultCode".to_owned(), fault.code.into()),
                ("faultString".to_owned(), fault.message.as_str().into()),
            ]);
            write(&mut text, &fault.into());
            text.push_str("</fault>");
        }
    }
    text.push_str("</methodResponse>");
    text
}

fn write(text: &mut String, value: &Value) {
    text.push_str("<value>");
    match value {
        Value::Null => text.push_str("<string></string>"),
        Value::Bool(is_true) => text.extend(["<boolean>", if *is_true { "1" } else { "0" }, "</boolean>"]),
        Value::Number(number) => text.extend(["<int>", &number.to_string(), "</int>"]),
        Value::String(string) => {
            text.push_str("<string>");
            escape(text, string);
            text.push_str("</string>");
        }
        Value::Array(values) => {
            text.push_str("<array><data>");
            for value in values {
                write(text, value);
            }
            text.push_str("</data></array>");
        }
        Value::Object(members) => {
            text.push_str("<struct>");
            for (name, value) in members {
                text.push_str("<member><name>");
                escape(text, name);
                text.push_str("</name>");
                write(text, value);
                text.push_str("</member>");
            }
            text.push_str("</struct>");
        }
    }
    text.push_str("</value>");
}

/// Text as XML carries it. Characters that no document may have are left out.
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
    use crate::aria2::fault::Fault;

    fn call(params: &[Value]) -> String {
        let mut text = "<methodCall><methodName>m</methodName><params>".to_owned();
        for param in params {
            text.push_str("<param>");
            write(&mut text, param);
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
        ] {
            assert_eq!(read(bad), Err(NotXml), "{bad}");
        }
    }

    #[test]
    fn answers_look_like_aria2s() {
        let result = serde_json::value::to_raw_value(&json!({"a": ["<", 1]})).unwrap();
        assert_eq!(
            answer(&Ok(result.into())),
            "<?xml version=\"1.0\"?><methodResponse><params><param><value><struct><member><name>a</name><value><array>\
             <data><value><string>&lt;</string></value><value><int>1</int></value></data></array></value></member>\
             </struct></value></param></params></methodResponse>"
        );
        assert_eq!(
            answer(&Err(Fault::unauthorized())),
            "<?xml version=\"1.0\"?><methodResponse><fault><value><struct><member><name>faultCode</name><value><int>1\
             </int></value></member><member><name>faultString</name><value><string>Unauthorized</string></value>\
             </member></struct></value></fault></methodResponse>"
        );
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
            prop_assert!(Element::read(&answer(&Ok(result.into()))).is_ok());
        }
    }
}
