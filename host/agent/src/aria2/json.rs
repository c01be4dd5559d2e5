//! Calls and answers as JSON. Pure: any bytes give calls or a fault.

use data_encoding::{BASE64, BASE64_NOPAD};
use serde_json::Value;

use super::{call::Outcome, fault::Fault, params::Params};

/// A call. Its id goes back with the answer, whatever it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Params,
}

/// What is not even a call, and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BadCall {
    pub(super) id: Value,
    pub(super) fault: Fault,
}

/// What one message asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Asked {
    One(Result<Call, BadCall>),
    /// In this order; answered in this order.
    Batch(Vec<Result<Call, BadCall>>),
}

impl Asked {
    /// Reads a message.
    pub(super) fn read(text: &[u8]) -> Self {
        match serde_json::from_slice(text) {
            Ok(value) => Self::of(value),
            Err(_) => Self::bad(Fault::parse()),
        }
    }

    fn of(value: Value) -> Self {
        match value {
            Value::Array(calls) => Self::Batch(calls.into_iter().map(Call::read).collect()),
            value => Self::One(Call::read(value)),
        }
    }

    fn bad(fault: Fault) -> Self {
        let id = Value::Null;
        Self::One(Err(BadCall { id, fault }))
    }

    /// Reads the query of a GET: `method`, `id` and `params`, or a batch in `params` alone.
    pub(super) fn read_query(query: &str) -> Self {
        let (mut method, mut id, mut params) = (None, Value::Null, None);
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "method" => method = Some(value.into_owned()),
                "id" => id = Value::from(value.into_owned()),
                "params" => params = Some(value.into_owned()),
                _ => {}
            }
        }
        let params = match params.map(|params| decode(&params)) {
            None => None,
            Some(Some(params)) => Some(params),
            Some(None) => return Self::bad(Fault::invalid_request()),
        };
        match (method, params) {
            (None, Some(batch)) => Self::of(batch),
            (None, None) => Self::bad(Fault::invalid_request()),
            (Some(method), params) => {
                let mut call = serde_json::Map::from_iter([("id".into(), id), ("method".into(), method.into())]);
                call.extend(params.map(|params| ("params".into(), params)));
                Self::One(Call::read(call.into()))
            }
        }
    }
}

/// JSON in base64, with or without its padding.
fn decode(text: &str) -> Option<Value> {
    let plain = text.trim_end_matches('=');
    let bytes = BASE64_NOPAD
        .decode(plain.as_bytes())
        .or_else(|_| BASE64.decode(text.as_bytes()));
    serde_json::from_slice(&bytes.ok()?).ok()
}

impl Call {
    fn read(value: Value) -> Result<Self, BadCall> {
        let Value::Object(mut members) = value else {
            let id = Value::Null;
            return Err(BadCall {
                id,
                fault: Fault::invalid_request(),
            });
        };
        let id = members.remove("id").unwrap_or(Value::Null);
        let Some(Value::String(method)) = members.remove("method") else {
            return Err(BadCall {
                id,
                fault: Fault::invalid_request(),
            });
        };
        let params = match members.remove("params") {
            None | Some(Value::Null) => Params::default(),
            Some(Value::Array(params)) => Params(params),
            Some(_) => {
                let fault = Fault::new("Invalid params.");
                return Err(BadCall { id, fault });
            }
        };
        Ok(Self { id, method, params })
    }
}

/// The answer to a call.
pub(super) fn write(answer: &mut Vec<u8>, id: &Value, outcome: &Outcome) {
    answer.extend_from_slice(format!("{{\"id\":{id},\"jsonrpc\":\"2.0\",").as_bytes());
    match outcome {
        Ok(result) => {
            answer.extend_from_slice(b"\"result\":");
            answer.extend_from_slice(result.get().as_bytes());
        }
        Err(Fault { code, message }) => {
            let message = Value::from(message.as_str());
            let error = format!("\"error\":{{\"code\":{code},\"message\":{message}}}");
            answer.extend_from_slice(error.as_bytes());
        }
    }
    answer.push(b'}');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn code(asked: Asked) -> Option<i64> {
        match asked {
            Asked::One(Err(bad)) => Some(bad.fault.code),
            _ => None,
        }
    }

    #[test]
    fn what_is_no_call_is_refused_as_aria2_does() {
        let check = |text: &str, expect: Option<i64>| assert_eq!(code(Asked::read(text.as_bytes())), expect, "{text}");
        check("", Some(-32_700));
        check("{", Some(-32_700));
        check("7", Some(-32_600));
        check("{}", Some(-32_600));
        check(r#"{"id":1}"#, Some(-32_600));
        check(r#"{"id":1,"method":"a","params":{}}"#, Some(1));
        check(r#"{"id":1,"method":"a"}"#, None);
        check(r#"{"method":"a","params":[7]}"#, None);
        check("[]", None);
        assert_eq!(Asked::read(b"[]"), Asked::Batch(Vec::new()));
        let Asked::Batch(calls) = Asked::read(br#"[{"id":"x","method":"a"},7]"#) else {
            panic!("no batch")
        };
        assert_eq!(calls[0].as_ref().unwrap().id, "x");
        assert_eq!(calls[1].as_ref().unwrap_err().fault.code, -32_600);
    }

    #[test]
    fn a_query_carries_a_call_or_a_batch() {
        let check = |query: &str, expect: Asked| assert_eq!(Asked::read_query(query), expect, "{query}");
        let call = |id: Value, params: Value| Call {
            id,
            method: "m".into(),
            params: Params(params.as_array().unwrap().clone()),
        };
        check("method=m&id=foo", Asked::One(Ok(call("foo".into(), json!([])))));
        check(
            "method=m&id=foo&params=WyJhIl0%3D",
            Asked::One(Ok(call("foo".into(), json!(["a"])))),
        );
        check(
            "method=m&params=WyJhIl0",
            Asked::One(Ok(call(Value::Null, json!(["a"])))),
        );
        check(
            "params=W3siaWQiOjEsIm1ldGhvZCI6Im0ifV0%3D",
            Asked::Batch(vec![Ok(call(1.into(), json!([])))]),
        );
        for bad in [
            "",
            "id=1",
            "method=m&params=!!",
            "method=m&params=e30%3D",
            "params=e30%3D",
        ] {
            assert!(code(Asked::read_query(bad)).is_some(), "{bad}");
        }
    }

    #[test]
    fn an_answer_has_its_members_in_aria2s_order() {
        let mut answer = Vec::new();
        write(&mut answer, &json!("q"), &Err(Fault::unauthorized()));
        let text = r#"{"id":"q","jsonrpc":"2.0","error":{"code":1,"message":"Unauthorized"}}"#;
        assert_eq!(String::from_utf8(answer).unwrap(), text);
    }

    proptest! {
        #[test]
        fn no_message_makes_the_reader_panic(text in proptest::collection::vec(any::<u8>(), 0..200), query in ".{0,80}") {
            let _any = (Asked::read(&text), Asked::read_query(&query));
        }

        #[test]
        fn every_call_comes_back_as_it_was(id in ".{0,20}", method in ".{0,20}", param in ".{0,40}") {
            let text = json!({"id": id, "method": method, "params": [param]}).to_string();
            let call = Call { id: id.into(), method, params: Params(vec![param.into()]) };
            prop_assert_eq!(Asked::read(text.as_bytes()), Asked::One(Ok(call)));
        }
    }
}
