//! One JSON-RPC 2.0 object per frame, read strictly: what is not in the envelope's own list of keys is refused.

use std::{any, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::{event::ServiceEventParams, frame::error::RpcError, frame::method::Method, frame::mismatch};

/// The notification that carries an event; its params are [`crate::ServiceEventParams`].
pub const SERVICE_EVENT: &str = "service.event";

/// Identifies a call and its reply: a text or a signed 64-bit integer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a signed 64-bit integer as id")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Id, E> {
                Ok(Id::Number(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
                i64::try_from(number)
                    .map(Id::Number)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
                Ok(Id::Text(text.to_owned()))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// A call, or a notification if it has no id.
#[derive(Debug, Clone)]
pub struct Request {
    /// The id; `None` for a notification.
    pub id: Option<Id>,
    /// The method.
    pub method: String,
    /// The params, not parsed yet.
    pub params: Option<Box<RawValue>>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The id of the call; `None` if the call could not be parsed.
    pub id: Option<Id>,
    /// The result or error.
    pub outcome: Result<Box<RawValue>, RpcError>,
    /// The sequence of the newest event that the call caused, if the client asked for it.
    pub sequence: Option<u64>,
}

/// What a client can receive.
#[derive(Debug, Clone)]
pub enum ServerFrame {
    /// The answer to a call.
    Reply(Reply),
    /// An event.
    Event(ServiceEventParams),
    /// Another notification, which clients ignore.
    Notification {
        /// Its method.
        method: String,
    },
}

/// Every key an envelope may have. `P` are the params.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a, P> {
    jsonrpc: &'a str,
    #[serde(default, deserialize_with = "present", borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default = "Option::default")]
    params: Option<P>,
    #[serde(default, deserialize_with = "present_box")]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<RpcError>,
    #[serde(default)]
    sequence: Option<u64>,
}

/// Distinguishes `null` from a missing member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn present_box<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl<'a, P: Deserialize<'a>> Envelope<'a, P> {
    fn read(text: &'a str) -> Result<Self, RpcError> {
        if !text.trim_start().starts_with('{') {
            // Not as a value: a tree takes up to a hundred times as much memory as its text.
            let _is_json: de::IgnoredAny =
                serde_json::from_str(text).map_err(|error| RpcError::parse(error.to_string()))?;
            return Err(RpcError::invalid_request("a frame is one JSON-RPC object"));
        }
        let envelope: Self = serde_json::from_str(text).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => RpcError::invalid_request(error.to_string()),
            _ => RpcError::parse(error.to_string()),
        })?;
        if envelope.jsonrpc == "2.0" {
            Ok(envelope)
        } else {
            Err(RpcError::invalid_request("jsonrpc must be \"2.0\""))
        }
    }

    fn id(&self) -> Result<Option<Id>, RpcError> {
        self.id
            .map(|id| serde_json::from_str(id.get()))
            .transpose()
            .map_err(|_| RpcError::invalid_request("id must be a string or a signed 64-bit integer"))
    }
}

impl Request {
    /// Parses a frame on a server. The error must be answered with `id: null`.
    pub fn read(text: &str) -> Result<Self, RpcError> {
        let envelope = Envelope::<Box<RawValue>>::read(text)?;
        if envelope.result.is_some() || envelope.error.is_some() || envelope.sequence.is_some() {
            return Err(RpcError::invalid_request("a request has no result, error or sequence"));
        }
        let id = envelope.id()?;
        let method = envelope
            .method
            .ok_or_else(|| RpcError::invalid_request("method is missing"))?;
        let params = envelope.params;
        if params
            .as_ref()
            .is_some_and(|params| !params.get().starts_with(['{', '[']))
        {
            return Err(RpcError::invalid_request("params must be an object"));
        }
        Ok(Self { id, method, params })
    }

    /// The params as the record that the method takes; none at all is an empty object.
    pub fn params<T: de::DeserializeOwned>(&self) -> Result<T, RpcError> {
        debug_assert!(
            Method::parse(&self.method).is_none_or(|method| method.params_type() == any::type_name::<T>()),
            "{} is read as {}",
            self.method,
            any::type_name::<T>()
        );
        self.part()
    }

    /// Some of the params, as a record with some members of the one that the method takes.
    pub fn part<T: de::DeserializeOwned>(&self) -> Result<T, RpcError> {
        let text = self.params.as_ref().map_or("{}", |params| params.get());
        if text.starts_with('[') {
            return Err(RpcError::invalid_params("params must be an object"));
        }
        mismatch::from_json(text.as_bytes()).map_err(|mismatch| RpcError::invalid_params(mismatch.to_string()))
    }
}

impl ServerFrame {
    /// Parses a frame on a client. An event, by far the most frequent frame, is scanned once.
    pub fn read(text: &str) -> Result<Self, RpcError> {
        let envelope = match Envelope::<ServiceEventParams>::read(text) {
            Ok(envelope) => envelope,
            Err(error) => return Self::read_notification(text).ok_or(error),
        };
        if let Some(method) = envelope.method {
            if envelope.id.is_some() || envelope.result.is_some() || envelope.error.is_some() {
                return Err(RpcError::invalid_request("a server sends no calls"));
            }
            return match envelope.params {
                Some(params) if method == SERVICE_EVENT => Ok(Self::Event(params)),
                None if method == SERVICE_EVENT => Err(RpcError::invalid_request("an event has params")),
                _ => Ok(Self::Notification { method }),
            };
        }
        let id = match envelope.id {
            Some(id) if id.get() == "null" => None,
            Some(_) => envelope.id()?,
            None => return Err(RpcError::invalid_request("a reply has an id")),
        };
        let outcome = match (envelope.result, envelope.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            _ => return Err(RpcError::invalid_request("a reply has either a result or an error")),
        };
        let sequence = envelope.sequence;
        Ok(Self::Reply(Reply { id, outcome, sequence }))
    }

    /// A notification that is no event, whatever its params are.
    fn read_notification(text: &str) -> Option<Self> {
        let envelope = Envelope::<de::IgnoredAny>::read(text).ok()?;
        let method = envelope.method.filter(|method| method != SERVICE_EVENT)?;
        envelope.id.is_none().then_some(Self::Notification { method })
    }
}

#[derive(Serialize)]
struct Outgoing<'a, T> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Id>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a T>,
}

/// A call as text.
pub fn encode_request<T: Serialize>(id: &Id, method: &str, params: Option<&T>) -> Result<String, RpcError> {
    encode(&Outgoing {
        jsonrpc: "2.0",
        id: Some(id),
        method,
        params,
    })
}

/// A notification as text.
pub fn encode_notification<T: Serialize>(method: &str, params: &T) -> Result<String, RpcError> {
    encode(&Outgoing {
        jsonrpc: "2.0",
        id: None,
        method,
        params: Some(params),
    })
}

#[derive(Serialize)]
struct Success<'a> {
    jsonrpc: &'static str,
    id: &'a Id,
    result: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
}

#[derive(Serialize)]
struct Failed<'a> {
    jsonrpc: &'static str,
    /// `null` if the call could not be read.
    id: Option<&'a Id>,
    error: &'a RpcError,
}

impl Reply {
    /// The answer `result` to the call `id`.
    pub fn success<T: Serialize>(id: Id, result: &T) -> Result<Self, RpcError> {
        let result = serde_json::value::to_raw_value(result).map_err(|error| RpcError::internal(error.to_string()))?;
        Ok(Self {
            id: Some(id),
            outcome: Ok(result),
            sequence: None,
        })
    }

    /// A refusal.
    pub fn failure(id: Option<Id>, error: RpcError) -> Self {
        Self {
            id,
            outcome: Err(error),
            sequence: None,
        }
    }

    /// The frame's text.
    pub fn encode(&self) -> String {
        let jsonrpc = "2.0";
        let encoded = match (&self.id, &self.outcome) {
            (Some(id), Ok(result)) => serde_json::to_string(&Success {
                jsonrpc,
                id,
                result,
                sequence: self.sequence,
            }),
            (id, Err(error)) => serde_json::to_string(&Failed {
                jsonrpc,
                id: id.as_ref(),
                error,
            }),
            (None, Ok(_)) => serde_json::to_string(&Failed {
                jsonrpc,
                id: None,
                error: &RpcError::internal("a result without a call"),
            }),
        };
        encoded.expect("texts, numbers and valid JSON always encode")
    }
}

fn encode(value: &impl Serialize) -> Result<String, RpcError> {
    serde_json::to_string(value).map_err(|error| RpcError::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::error::{ErrorCode, code};

    #[test]
    fn a_frame_is_one_object_with_known_keys_only() {
        let check = |text: &str, expect: i64| assert_eq!(Request::read(text).unwrap_err().code, expect, "{text}");
        check("", code::PARSE);
        check("{", code::PARSE);
        check("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{]}", code::PARSE);
        check("[]", code::INVALID_REQUEST);
        check(
            r#"[{"jsonrpc":"2.0","id":1,"method":"system.ping"}]"#,
            code::INVALID_REQUEST,
        );
        check("7", code::INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":1}"#, code::INVALID_REQUEST);
        check(r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, code::INVALID_REQUEST);
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"a","extra":1}"#,
            code::INVALID_REQUEST,
        );
        check(r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"a"}"#, code::INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, code::INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, code::INVALID_REQUEST);
        check(
            r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"a"}"#,
            code::INVALID_REQUEST,
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":7}"#,
            code::INVALID_REQUEST,
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"a","result":7}"#,
            code::INVALID_REQUEST,
        );
    }

    #[test]
    fn calls_and_notifications_are_told_apart_by_their_id() {
        let call = Request::read(r#"{"jsonrpc":"2.0","id":"x","method":"a","params":{"taskId":"t"}}"#).unwrap();
        assert_eq!(call.id, Some(Id::Text("x".into())));
        assert_eq!(call.params::<crate::TaskIdParams>().unwrap().task_id, "t");
        let notification = Request::read(r#"{"jsonrpc":"2.0","method":"a"}"#).unwrap();
        assert_eq!(notification.id, None);
        assert_eq!(
            notification.params::<crate::TaskIdParams>().unwrap_err().code,
            code::INVALID_PARAMS
        );
    }

    #[test]
    fn what_a_server_encodes_a_client_reads() {
        let reply = Reply {
            sequence: Some(7),
            ..Reply::success(Id::Number(3), &vec![1, 2]).unwrap()
        };
        assert_eq!(
            reply.encode(),
            r#"{"jsonrpc":"2.0","id":3,"result":[1,2],"sequence":7}"#
        );
        let Ok(ServerFrame::Reply(read)) = ServerFrame::read(&reply.encode()) else {
            panic!("not a reply");
        };
        assert_eq!(
            (read.id, read.sequence, read.outcome.unwrap().get()),
            (Some(Id::Number(3)), Some(7), "[1,2]")
        );
        let refusal = Reply::failure(None, RpcError::parse("no JSON")).encode();
        assert_eq!(
            refusal,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#
        );
        let null = ServerFrame::read(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).unwrap();
        assert!(matches!(null, ServerFrame::Reply(Reply { outcome: Ok(_), .. })));
        for bad in [
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","result":1}"#,
        ] {
            assert!(ServerFrame::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_event_is_read_with_its_frame_and_another_notification_is_told_apart() {
        let event = r#"{"jsonrpc":"2.0","method":"service.event","params":{"epoch":"e","sequence":7,
            "event":{"service":"daemon","event":{"type":"moonRose","data":{"a":[1, 2]}}}}}"#;
        let Ok(ServerFrame::Event(read)) = ServerFrame::read(event) else {
            panic!("not an event");
        };
        assert_eq!((read.epoch.as_str(), read.sequence), ("e", 7));
        assert_eq!(read.event.event.data.get(), r#"{"a":[1, 2]}"#);
        for other in [
            r#"{"jsonrpc":"2.0","method":"moon.rose"}"#,
            r#"{"jsonrpc":"2.0","method":"moon.rose","params":{"height":7}}"#,
        ] {
            let read = ServerFrame::read(other).unwrap();
            assert!(matches!(read, ServerFrame::Notification { method } if method == "moon.rose"));
        }
        for bad in [
            r#"{"jsonrpc":"2.0","method":"service.event"}"#,
            r#"{"jsonrpc":"2.0","method":"service.event","params":{"epoch":"e"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"system.ping"}"#,
        ] {
            assert!(ServerFrame::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_application_errors_say_more() {
        let error = RpcError::application(ErrorCode::Conflict, "changed meanwhile").with_revision(4);
        assert_eq!(
            Reply::failure(Some(Id::Number(1)), error).encode(),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"changed meanwhile\",\
             \"data\":{\"code\":\"conflict\",\"retryable\":false,\"revision\":4}}}"
        );
    }
}
