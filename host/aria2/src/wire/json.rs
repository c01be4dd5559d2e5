//! JSON-RPC calls and answers. Pure: any bytes parse into calls or a fault.
//!
//! A message is not parsed into a tree. Its calls, ids and parameters remain slices of the text until a call is
//! executed: a message of many calls takes little more memory than its text, and the parameters of a refused call are
//! never parsed.

use std::{borrow::Cow, fmt};

use data_encoding::{BASE64, BASE64_NOPAD};
use serde::{
    Deserialize, Deserializer as _,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::vocabulary::{fault::Fault, params::Params};
use admission::json::{check_tree, outside_strings, string_end};

/// Limit of calls in a batch or a `system.multicall`.
pub(crate) const MAX_CALLS: usize = 10_000;

/// The id in the answer to a call without one.
pub const NO_ID: &str = "null";

/// The prefix of a first parameter that is the client's key.
const TOKEN: &str = "token:";

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RawParams<'a> {
    /// A list, not parsed yet.
    Text(&'a str),
    Read(Params),
}

/// A method with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Named<'a> {
    pub(crate) method: Cow<'a, str>,
    pub(crate) given: RawParams<'a>,
}

/// The id is returned unchanged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call<'a> {
    pub(crate) id: &'a str,
    pub(crate) named: Result<Named<'a>, Fault>,
}

/// A JSON-RPC message: a call or a batch of calls.
#[derive(Debug)]
pub(crate) enum JsonMessage<'a> {
    One(Call<'a>),
    /// Executed and answered in this order. Each is parsed with [`Call::read`] when it is executed.
    Batch(Vec<&'a RawValue>),
}

impl<'a> JsonMessage<'a> {
    /// Parses the outermost level. Text that is not JSON, and JSON that is not a call, become a call whose answer is
    /// the JSON-RPC error for it.
    pub(crate) fn read(text: &'a [u8]) -> Self {
        match text.trim_ascii_start().first() {
            Some(b'[') => items(text).map_or_else(|fault| Self::One(Call::bad(fault)), Self::Batch),
            Some(b'{') => Self::One(match serde_json::from_slice(text) {
                Ok(head) => Call::of(head),
                Err(_) => Call::bad(Fault::parse()),
            }),
            _ => Self::One(Call::bad(match serde_json::from_slice::<IgnoredAny>(text) {
                Ok(_) => Fault::invalid_request(),
                Err(_) => Fault::parse(),
            })),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Batch(calls) => calls.len(),
        }
    }
}

/// Converts the query of a GET (`method`, `id` and `params`, or a batch in `params` alone) into a message. An invalid
/// query becomes a message that is refused.
pub fn query_message(query: &str) -> Vec<u8> {
    let (mut method, mut id, mut params) = (None, Value::Null, None);
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "method" => method = Some(Value::from(value.into_owned())),
            "id" => id = Value::from(value.into_owned()),
            "params" => params = Some(value.into_owned()),
            _ => {}
        }
    }
    let no_message = || b"0".to_vec();
    let params = match params.map(|params| decode(&params)) {
        None => None,
        Some(Some(params)) => Some(params),
        Some(None) => return no_message(),
    };
    match (method, params) {
        (None, Some(batch)) => batch,
        (None, None) => no_message(),
        (Some(method), params) => {
            let mut message = format!("{{\"id\":{id},\"method\":{method},\"params\":").into_bytes();
            message.extend(params.unwrap_or_else(|| b"[]".to_vec()));
            message.push(b'}');
            message
        }
    }
}

/// Base64 with or without padding.
fn decode(text: &str) -> Option<Vec<u8>> {
    let plain = text.trim_end_matches('=');
    let bytes = BASE64_NOPAD
        .decode(plain.as_bytes())
        .or_else(|_| BASE64.decode(text.as_bytes()));
    bytes
        .ok()
        .filter(|bytes| serde_json::from_slice::<IgnoredAny>(bytes).is_ok())
}

/// The members of a call. A member that is `null` counts as missing.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Members of a call within a `system.multicall`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChildHead<'a> {
    #[serde(borrow, default)]
    method_name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Whether clients can parse the id when it is returned unchanged: no number out of range, no lone surrogate, no
/// excessive nesting. Plain strings need no check.
fn is_readable(id: &str) -> bool {
    let is_plain = id.starts_with('"') && !id.contains('\\');
    is_plain || serde_json::from_str::<Value>(id).is_ok()
}

impl<'a> Call<'a> {
    fn bad(fault: Fault) -> Self {
        let named = Err(fault);
        Self { id: NO_ID, named }
    }

    /// Parses an item of a batch.
    pub(crate) fn read(item: &'a RawValue) -> Self {
        if !item.get().starts_with('{') {
            return Self::bad(Fault::invalid_request());
        }
        serde_json::from_str(item.get()).map_or_else(|_| Self::bad(Fault::parse()), Self::of)
    }

    fn of(Head { id, method, params }: Head<'a>) -> Self {
        let id = id.map_or(NO_ID, RawValue::get);
        if !is_readable(id) {
            return Self::bad(Fault::parse());
        }
        let named = match method.and_then(text) {
            None => Err(Fault::invalid_request()),
            Some(method) => match params.map(RawValue::get) {
                None => Ok(RawParams::Read(Params::default())),
                Some(list) if list.starts_with('[') => Ok(RawParams::Text(list)),
                Some(_) => Err(Fault::new("Invalid params.")),
            }
            .map(|given| Named { method, given }),
        };
        Self { id, named }
    }
}

/// The string, if it is one.
fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let plain = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if plain.contains('\\') {
        return serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(plain))
}

/// The items of a list.
fn items(text: &[u8]) -> Result<Vec<&RawValue>, Fault> {
    struct Bounded(bool);

    impl<'de> Visitor<'de> for &mut Bounded {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = list.next_element()? {
                if items.len() == MAX_CALLS {
                    self.0 = true;
                    break;
                }
                items.push(item);
            }
            Ok(items)
        }
    }

    let (mut reader, mut bounded) = (serde_json::Deserializer::from_slice(text), Bounded(false));
    let items = reader.deserialize_seq(&mut bounded);
    if bounded.0 {
        return Err(too_many());
    }
    let items = items.map_err(|_| Fault::parse())?;
    reader.end().map_err(|_| Fault::parse())?;
    Ok(items)
}

/// Parameters as a tree or as text.
impl RawParams<'_> {
    /// The token, if the first parameter is one. The rest is not parsed.
    pub(crate) fn token(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text(list) => token_at(list.as_bytes().get(1..)?),
            Self::Read(params) => params.token().map(Cow::Borrowed),
        }
    }

    /// The bytes of the text, if it is one.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(list) => list.len(),
            Self::Read(_) => 0,
        }
    }

    /// Parses the parameters after the token.
    pub(crate) fn read(self) -> Result<Params, Fault> {
        let mut params = match self {
            Self::Read(params) => params,
            Self::Text(list) => {
                check_tree(list.as_bytes()).map_err(Fault::too_large)?;
                Params(serde_json::from_str(list).map_err(|_| Fault::parse())?)
            }
        };
        params.drop_token();
        Ok(params)
    }
}

/// The calls of a `system.multicall`.
pub(crate) enum Children<'a> {
    Text(Vec<&'a RawValue>),
    Read(Vec<Value>),
}

impl<'a> Children<'a> {
    /// Reads the first parameter of a `system.multicall`.
    pub(crate) fn of(given: RawParams<'a>) -> Result<Self, Fault> {
        let wrong = |params: &Params| match params.list(0) {
            Err(fault) => fault,
            Ok(_) => Fault::invalid_request(),
        };
        match given {
            RawParams::Text(list) => {
                let mut params = items(list.as_bytes())?.into_iter().peekable();
                let _token = params.next_if(|first| token_at(first.get().as_bytes()).is_some());
                match params.next() {
                    Some(first) if first.get().starts_with('[') => items(first.get().as_bytes()).map(Self::Text),
                    Some(_) => Err(wrong(&Params(vec![Value::Null]))),
                    None => Err(wrong(&Params::default())),
                }
            }
            given @ RawParams::Read(_) => {
                let mut params = given.read()?;
                match params.0.first_mut() {
                    Some(Value::Array(children)) if children.len() <= MAX_CALLS => {
                        Ok(Self::Read(std::mem::take(children)))
                    }
                    Some(Value::Array(_)) => Err(too_many()),
                    _ => Err(wrong(&params)),
                }
            }
        }
    }
}

impl Children<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(calls) => calls.len(),
            Self::Read(calls) => calls.len(),
        }
    }

    /// The token of the first call.
    pub(crate) fn token(&self) -> Option<String> {
        let token = |named: Named<'_>| named.given.token().map(Cow::into_owned);
        match self {
            Self::Text(calls) => calls.first().and_then(|call| child(call).ok()).and_then(token),
            Self::Read(calls) => calls
                .first()
                .and_then(|call| read_child(call.clone()).ok())
                .and_then(token),
        }
    }
}

/// Parses a call of a `system.multicall`.
pub(crate) fn child(call: &RawValue) -> Result<Named<'_>, Fault> {
    let head = call.get().starts_with('{').then(|| serde_json::from_str(call.get()));
    let Some(Ok(ChildHead { method_name, params })) = head else {
        return Err(no_struct());
    };
    let method = method_name.and_then(text).ok_or_else(no_name)?;
    let given = match params.map(RawValue::get) {
        Some(list) if list.starts_with('[') => RawParams::Text(list),
        _ => RawParams::Read(Params::default()),
    };
    Ok(Named { method, given })
}

/// Like [`child`], for a call that is a tree already.
pub(crate) fn read_child(call: Value) -> Result<Named<'static>, Fault> {
    let Value::Object(mut members) = call else {
        return Err(no_struct());
    };
    let Some(Value::String(method)) = members.remove("methodName") else {
        return Err(no_name());
    };
    let params = match members.remove("params") {
        Some(Value::Array(params)) => Params(params),
        _ => Params::default(),
    };
    let method = Cow::Owned(method);
    let given = RawParams::Read(params);
    Ok(Named { method, given })
}

fn too_many() -> Fault {
    let message = format!("A message has at most {MAX_CALLS} calls; send more in several messages.");
    Fault::new(message)
}

fn no_struct() -> Fault {
    Fault::new("system.multicall expected struct.")
}

fn no_name() -> Fault {
    Fault::new("Missing methodName.")
}

/// The token of the first call in the beginning of a message: the first string at the start of a list with the token
/// prefix.
pub fn find_token(begun: &[u8]) -> Option<Cow<'_, str>> {
    let mut begins_list = false;
    for (place, byte) in outside_strings(begun) {
        if byte == b'"'
            && begins_list
            && let Some(token) = token_at(&begun[place..])
        {
            return Some(token);
        }
        begins_list = byte == b'[' || begins_list && byte.is_ascii_whitespace();
    }
    None
}

/// The token string at the start of these bytes, if it is complete.
fn token_at(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let bytes = bytes.trim_ascii_start();
    let begins = bytes
        .strip_prefix(b"\"")
        .is_some_and(|text| text.starts_with(TOKEN.as_bytes()));
    if !begins {
        return None;
    }
    let end = string_end(bytes)?;
    let literal = str::from_utf8(&bytes[..=end]).ok()?;
    if literal.contains('\\') {
        let text: String = serde_json::from_str(literal).ok()?;
        return text.strip_prefix(TOKEN).map(|token| Cow::Owned(token.to_owned()));
    }
    literal[1..end].strip_prefix(TOKEN).map(Cow::Borrowed)
}

/// Writes the beginning of an answer, before its result.
pub(crate) fn begin(answer: &mut Vec<u8>, id: &str) {
    for part in ["{\"id\":", id, ",\"jsonrpc\":\"2.0\",\"result\":"] {
        answer.extend_from_slice(part.as_bytes());
    }
}

/// Writes the answer to a call.
pub fn write(answer: &mut Vec<u8>, id: &str, outcome: Result<&str, &Fault>) {
    match outcome {
        Ok(result) => {
            begin(answer, id);
            answer.extend_from_slice(result.as_bytes());
        }
        Err(Fault { code, message }) => {
            let message = Value::from(message.as_str());
            let error =
                format!("{{\"id\":{id},\"jsonrpc\":\"2.0\",\"error\":{{\"code\":{code},\"message\":{message}}}");
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

    fn code(text: &[u8]) -> Option<i64> {
        match JsonMessage::read(text) {
            JsonMessage::One(Call { named: Err(fault), .. }) => Some(fault.code),
            _ => None,
        }
    }

    fn one(text: &[u8]) -> (Value, String, Params) {
        let JsonMessage::One(Call { id, named }) = JsonMessage::read(text) else {
            panic!("a batch")
        };
        let named = named.unwrap();
        let id = serde_json::from_str(id).unwrap();
        (id, named.method.into_owned(), named.given.read().unwrap())
    }

    #[test]
    fn what_is_no_call_is_refused_as_aria2_does() {
        let check = |text: &str, expect: Option<i64>| assert_eq!(code(text.as_bytes()), expect, "{text}");
        check("", Some(-32_700));
        check("{", Some(-32_700));
        check("7", Some(-32_600));
        check("7 7", Some(-32_700));
        check("{}", Some(-32_600));
        check("{} 7", Some(-32_700));
        check("[1", Some(-32_700));
        check("[] 7", Some(-32_700));
        check(r#"{"id":1}"#, Some(-32_600));
        check(r#"{"id":1,"method":7}"#, Some(-32_600));
        check(r#"{"id":1,"method":"a","params":{}}"#, Some(1));
        check(r#"{"id":1,"method":"a"}"#, None);
        check(r#"{"id":1,"method":"a","params":null}"#, None);
        check(r#"{"method":"a","params":[7]}"#, None);
        check("[]", None);
        let JsonMessage::Batch(calls) = JsonMessage::read(br#" [{"id": "x","method":"a"},7]"#) else {
            panic!("no batch")
        };
        let calls: Vec<_> = calls.into_iter().map(Call::read).collect();
        assert_eq!((calls[0].id, calls[0].named.is_ok()), ("\"x\"", true));
        assert_eq!(
            (calls[1].id, calls[1].named.as_ref().unwrap_err().code),
            (NO_ID, -32_600)
        );
    }

    #[test]
    fn an_id_that_no_client_can_read_is_not_sent_back() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for id in ["1e999", "\"\\ud800\"", &deep] {
            assert!(!is_readable(id), "{id}");
        }
        for id in ["1", "-0.5e3", "null", "\"x\"", "\"\\u00e4\"", "[1]"] {
            assert!(is_readable(id), "{id}");
        }
        let text = r#"{"id":1e999,"method":"m"}"#;
        let call = Call::read(serde_json::from_str(text).unwrap());
        assert_eq!((call.id, call.named.unwrap_err().code), (NO_ID, -32_700));
    }

    #[test]
    fn a_query_carries_a_call_or_a_batch() {
        let check = |query: &str, id: Value, params: Value| {
            let message = query_message(query);
            let params = Params(params.as_array().unwrap().clone());
            assert_eq!(one(&message), (id, "m".to_owned(), params), "{query}");
        };
        check("method=m&id=foo", "foo".into(), json!([]));
        check("method=m&id=foo&params=WyJhIl0%3D", "foo".into(), json!(["a"]));
        check("method=m&params=WyJhIl0", Value::Null, json!(["a"]));
        let batch = query_message("params=W3siaWQiOjEsIm1ldGhvZCI6Im0ifV0%3D");
        assert_eq!(JsonMessage::read(&batch).len(), 1);
        assert!(matches!(JsonMessage::read(&batch), JsonMessage::Batch(_)));
        for bad in [
            "",
            "id=1",
            "method=m&params=!!",
            "method=m&params=e30%3D",
            "params=e30%3D",
            // Two values, which a parser could take for more members of the call.
            "method=m&params=W10sImEiOjA",
        ] {
            assert!(code(&query_message(bad)).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_message_of_too_many_calls_is_refused_before_they_are_read() {
        let batch = |calls: usize| format!("[{}0]", "0,".repeat(calls - 1));
        assert_eq!(JsonMessage::read(batch(MAX_CALLS).as_bytes()).len(), MAX_CALLS);
        let text = batch(MAX_CALLS + 1);
        let refused = JsonMessage::read(text.as_bytes());
        let JsonMessage::One(Call { named: Err(fault), .. }) = refused else {
            panic!("not refused")
        };
        assert!(fault.message.contains("10000"), "{fault}");
        let within = |text: &str| Children::of(RawParams::Text(text)).map(|_| ());
        assert_eq!(within(&format!("[{}]", batch(MAX_CALLS))), Ok(()));
        assert_eq!(within(&format!("[{}]", batch(MAX_CALLS + 1))), Err(fault.clone()));
        let read = |calls: usize| Children::of(RawParams::Read(Params(vec![json!(vec![0; calls])]))).map(|_| ());
        assert_eq!((read(MAX_CALLS), read(MAX_CALLS + 1)), (Ok(()), Err(fault)));
    }

    #[test]
    fn the_token_is_seen_before_the_rest_has_come() {
        let check =
            |begun: &str, expect: Option<&str>| assert_eq!(find_token(begun.as_bytes()).as_deref(), expect, "{begun}");
        check(
            r#"{"id":"a[\"token:x","params":[ "token:k\u0065y\"","AAAA"#,
            Some("key\""),
        );
        check(
            r#"{"method":"aria2.addTorrent","params":["token:key","AAAA"#,
            Some("key"),
        );
        check(
            r#"[{"method":"a","params":["token:one"]},{"params":["token:two"]}"#,
            Some("one"),
        );
        check(
            r#"{"params":[[{"methodName":"a","params":["token:key"]}]]}"#,
            Some("key"),
        );
        check(r#"{"params":["token:ke"#, None);
        check(r#"{"params":["x","token:key"]}"#, None);
        check(r#"{"params":["tok\u0065n:key"]}"#, None);
        check("", None);
    }

    #[test]
    fn an_answer_has_its_members_in_aria2s_order() {
        let mut answer = Vec::new();
        write(&mut answer, "\"q\"", Err(&Fault::unauthorized()));
        let text = r#"{"id":"q","jsonrpc":"2.0","error":{"code":1,"message":"Unauthorized"}}"#;
        assert_eq!(String::from_utf8(answer).unwrap(), text);
    }

    proptest! {
        #[test]
        fn no_message_makes_the_reader_panic(text in proptest::collection::vec(any::<u8>(), 0..200), query in ".{0,80}") {
            let _any = (JsonMessage::read(&text).len(), find_token(&text), query_message(&query));
        }

        #[test]
        fn no_call_makes_the_reader_panic(text in "[\\[\\]{}\",:a-z\\\\ ]{0,80}", token in "[\\[\" \\\\a:]{0,20}") {
            let text = format!("{{\"method\":\"m\",\"params\":[{text}]}}");
            if let JsonMessage::One(Call { named: Ok(named), .. }) = JsonMessage::read(text.as_bytes()) {
                let _any = (named.given.token().is_some(), named.given.clone().read().is_ok());
                if let Ok(Children::Text(children)) = Children::of(named.given) {
                    let _any = children.into_iter().filter(|call| child(call).is_ok()).count();
                }
            }
            let _any = token_at(format!("\"token:{token}").as_bytes());
        }

        #[test]
        fn every_call_comes_back_as_it_was(id in ".{0,20}", method in ".{0,20}", param in ".{0,40}", token in ".{0,20}") {
            let text = json!({"id": id, "method": method, "params": [format!("token:{token}"), param]}).to_string();
            prop_assert_eq!(one(text.as_bytes()), (id.into(), method, Params(vec![param.into()])));
            prop_assert_eq!(find_token(text.as_bytes()), Some(token.into()));
        }
    }
}
