//! Calls: who may make them, which method does what, and many of them in one message.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use axum::http::HeaderMap;
use protocol::{CreateTaskRequest, Method, OkResult};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    Dialect,
    fault::Fault,
    json::{self, Asked, BadCall, Call},
    params::Params,
};
use crate::{
    gate::{self, Sender, Standing},
    hub::Hub,
    key::KeyDigest,
    rest::App,
    throttle::{Form, Source},
};

/// How a call went.
pub(super) type Outcome = Result<Arc<RawValue>, Fault>;

/// Every method, in aria2's order.
pub(super) const METHODS: [&str; 36] = [
    "aria2.addUri",
    "aria2.addTorrent",
    "aria2.getPeers",
    "aria2.addMetalink",
    "aria2.remove",
    "aria2.pause",
    "aria2.forcePause",
    "aria2.pauseAll",
    "aria2.forcePauseAll",
    "aria2.unpause",
    "aria2.unpauseAll",
    "aria2.forceRemove",
    "aria2.changePosition",
    "aria2.tellStatus",
    "aria2.getUris",
    "aria2.getFiles",
    "aria2.getServers",
    "aria2.tellActive",
    "aria2.tellWaiting",
    "aria2.tellStopped",
    "aria2.getOption",
    "aria2.changeUri",
    "aria2.changeOption",
    "aria2.getGlobalOption",
    "aria2.changeGlobalOption",
    "aria2.purgeDownloadResult",
    "aria2.removeDownloadResult",
    "aria2.getVersion",
    "aria2.getSessionInfo",
    "aria2.shutdown",
    "aria2.forceShutdown",
    "aria2.getGlobalStat",
    "aria2.saveSession",
    "system.multicall",
    "system.listMethods",
    "system.listNotifications",
];

const NOTIFICATIONS: [&str; 6] = [
    "aria2.onDownloadStart",
    "aria2.onDownloadPause",
    "aria2.onDownloadStop",
    "aria2.onDownloadComplete",
    "aria2.onDownloadError",
    "aria2.onBtDownloadComplete",
];

/// The version of aria2 whose methods these are.
pub const VERSION: &str = "1.37.0";

/// What of aria2 there is here.
pub const FEATURES: [&str; 5] = ["Async DNS", "HTTPS", "Message Digest", "Metalink", "XML-RPC"];

const MULTICALL: &str = "system.multicall";

/// Tasks that are made at once when a message asks for many.
const MADE_AT_ONCE: usize = 1000;

/// The result as JSON.
pub(super) fn raw(result: &impl Serialize) -> Outcome {
    let result = serde_json::value::to_raw_value(result).map_err(|error| Fault::new(error.to_string()))?;
    Ok(result.into())
}

pub(super) fn ok() -> Outcome {
    raw(&"OK")
}

/// Somebody who calls, for one message or one connection.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) app: App,
    sender: Sender,
    /// The key came in a header: calls need not say it again.
    has_key: bool,
    /// For whom this call is, if it may do no more than a browser without a key.
    pub(super) visitor: Option<Arc<str>>,
    /// What code and text of a fault are called within a result.
    fault_names: [&'static str; 2],
}

/// A call of a message, without its id.
type Named = (String, Params);

/// What a call may do.
enum Power {
    /// Whatever its method does.
    Full,
    /// What the downloads of this visitor need.
    Visitor(Arc<str>),
}

impl Caller {
    /// Somebody whom the gate let pass, who showed this key in a header, if any.
    pub(super) fn new(app: App, sender: Sender, shown: Option<&str>) -> Self {
        let mut caller = Self {
            app,
            has_key: sender.standing == Standing::Keyed,
            sender,
            visitor: None,
            fault_names: ["code", "message"],
        };
        caller.has_key = caller.has_key || shown.is_some_and(|shown| caller.knows_key(shown));
        caller
    }

    /// Somebody within this process.
    pub(super) fn within(app: App) -> Self {
        let sender = Sender {
            source: Source::of(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            form: Form::Header,
            is_local: true,
            is_browser: false,
            key: None,
            standing: Standing::Keyed,
        };
        Self::new(app, sender, None)
    }

    /// The same, answered in XML-RPC.
    pub(super) fn for_xml(mut self) -> Self {
        self.fault_names = ["faultCode", "faultString"];
        self
    }

    /// Whether `shown` is the access key, or the pass that stands for it. Wrong ones are counted, and after too many
    /// nothing is right for a while.
    fn knows_key(&self, shown: &str) -> bool {
        let gate = &self.app.gate;
        if gate.is_pass(shown, &self.sender) {
            return true;
        }
        let Some(key) = gate.vault.settings().key_digest() else {
            return false;
        };
        let Sender { source, form, .. } = self.sender;
        if gate.wait(source, form).is_some() {
            return false;
        }
        let is_right = KeyDigest::of(shown) == key;
        gate.count(source, form, is_right);
        is_right
    }

    /// Whether too many wrong keys came from there.
    pub(super) fn must_wait(&self) -> bool {
        self.app.gate.wait(self.sender.source, self.sender.form).is_some()
    }

    /// What a call with this token may do now. Where the key was taken away while a connection was open, whose process it
    /// is was never looked up, and so it may do nothing.
    fn power(&self, token: Option<&str>) -> Result<Power, Fault> {
        if self.has_key {
            return Ok(Power::Full);
        }
        if self.app.gate.vault.settings().key.is_some() {
            let is_right = token.is_some_and(|token| self.knows_key(token));
            return if is_right {
                Ok(Power::Full)
            } else {
                Err(Fault::unauthorized())
            };
        }
        match &self.sender.standing {
            Standing::Free | Standing::OwnUser | Standing::Keyed => Ok(Power::Full),
            Standing::Visitor(visitor) => Ok(Power::Visitor(Arc::clone(visitor))),
            Standing::Open if token.is_some_and(|token| self.knows_key(token)) => Ok(Power::Full),
            Standing::Open => Err(Fault::new(gate::KEY_FIRST)),
        }
    }

    /// Whose downloads alone may be told of on this connection; none tells of all.
    pub(super) fn told_visitor(&self) -> Option<&str> {
        match &self.sender.standing {
            Standing::Visitor(visitor) => Some(visitor),
            _ => None,
        }
    }

    pub(super) fn hub(&self) -> Result<&Hub, Fault> {
        Ok(self.app.daemon.known()?)
    }

    pub(super) fn dialect(&self) -> &Dialect {
        &self.app.aria2
    }

    /// Has the daemon do something; what it did can be read afterwards.
    pub(super) async fn tell(&self, method: Method, params: &(impl Serialize + Sync)) -> Result<(), Fault> {
        let _: OkResult = self.app.daemon.call(method, params).await?;
        Ok(())
    }

    /// The answer to a message, as JSON.
    pub(super) async fn answer(&self, asked: Asked) -> Vec<u8> {
        let mut answer = Vec::new();
        match asked {
            Asked::One(Ok(Call { id, method, params })) => {
                let outcome = self.one(method, params).await;
                json::write(&mut answer, &id, &outcome);
            }
            Asked::One(Err(BadCall { id, fault })) => json::write(&mut answer, &id, &Err(fault)),
            Asked::Batch(calls) => {
                let (ids, calls): (Vec<_>, Vec<_>) = calls.into_iter().map(split).unzip();
                let outcomes = self.in_order(calls, true).await;
                answer.push(b'[');
                for (number, (id, outcome)) in ids.iter().zip(&outcomes).enumerate() {
                    if number > 0 {
                        answer.push(b',');
                    }
                    json::write(&mut answer, id, outcome);
                }
                answer.push(b']');
            }
        }
        answer
    }

    /// One call.
    pub(super) async fn one(&self, method: String, params: Params) -> Outcome {
        let outcome = self.in_order(vec![Ok((method, params))], true).await.pop();
        outcome.unwrap_or_else(|| Err(Fault::invalid_request()))
    }

    /// Calls in order. Downloads that are added one after the other are made together.
    async fn in_order(&self, calls: Vec<Result<Named, Fault>>, allows_multicall: bool) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(calls.len());
        let mut adds = Vec::new();
        for call in calls {
            let (method, mut params) = match call {
                Ok(call) => call,
                Err(fault) => {
                    outcomes.extend(self.make(&mut adds).await);
                    outcomes.push(Err(fault));
                    continue;
                }
            };
            let token = params.take_token();
            let is_open = matches!(
                method.as_str(),
                "system.listMethods" | "system.listNotifications" | MULTICALL
            );
            let power = if is_open {
                Ok(Power::Full)
            } else {
                self.power(token.as_deref())
            };
            if matches!(power, Ok(Power::Full))
                && method == "aria2.addUri"
                && let Some(request) = self.plain_add(&params)
            {
                adds.push(request);
                if adds.len() >= MADE_AT_ONCE {
                    outcomes.extend(self.make(&mut adds).await);
                }
                continue;
            }
            outcomes.extend(self.make(&mut adds).await);
            outcomes.push(match power {
                Err(fault) => Err(fault),
                Ok(Power::Visitor(visitor)) => self.dispatch_for(visitor, &method, &params).await,
                Ok(Power::Full) if method == MULTICALL && allows_multicall => Box::pin(self.multicall(params)).await,
                Ok(Power::Full) => self.dispatch(&method, &params).await,
            });
        }
        outcomes.extend(self.make(&mut adds).await);
        outcomes
    }

    async fn make(&self, adds: &mut Vec<CreateTaskRequest>) -> Vec<Outcome> {
        let adds = std::mem::take(adds);
        if adds.is_empty() {
            Vec::new()
        } else {
            self.make_all(adds).await
        }
    }

    /// Calls within a call, each with a token of its own.
    async fn multicall(&self, mut params: Params) -> Outcome {
        let Value::Array(calls) = params.0.first_mut().map(Value::take).unwrap_or_default() else {
            // It says what is missing or wrong.
            return params.list(0).map(|_| ()).and_then(|()| Err(Fault::invalid_request()));
        };
        let outcomes = self.in_order(calls.into_iter().map(child).collect(), false).await;
        let mut text = String::from("[");
        for (number, outcome) in outcomes.iter().enumerate() {
            text.push_str(if number == 0 { "" } else { "," });
            match outcome {
                Ok(result) => text.extend(["[", result.get(), "]"]),
                Err(fault) => {
                    let [code, message] = self.fault_names;
                    let fault = serde_json::json!({code: fault.code, message: fault.message});
                    text.push_str(&fault.to_string());
                }
            }
        }
        text.push(']');
        let result = RawValue::from_string(text).map_err(|error| Fault::new(error.to_string()))?;
        Ok(result.into())
    }

    pub(super) async fn dispatch(&self, method: &str, params: &Params) -> Outcome {
        match method {
            "aria2.addUri" => self.add_uri(params).await,
            "aria2.addTorrent" => Self::add_torrent(params),
            "aria2.addMetalink" => self.add_metalink(params).await,
            "aria2.remove" | "aria2.forceRemove" => self.remove(params).await,
            "aria2.pause" | "aria2.forcePause" => self.pause(params).await,
            "aria2.pauseAll" | "aria2.forcePauseAll" => self.pause_all().await,
            "aria2.unpause" => self.unpause(params).await,
            "aria2.unpauseAll" => self.unpause_all().await,
            "aria2.changePosition" => self.change_position(params).await,
            "aria2.tellStatus" => self.tell_status(params),
            "aria2.tellActive" => self.tell_active(params),
            "aria2.tellWaiting" => self.tell_waiting(params),
            "aria2.tellStopped" => self.tell_stopped(params),
            "aria2.getUris" => self.get_uris(params),
            "aria2.getFiles" => self.get_files(params),
            "aria2.getServers" => self.get_servers(params),
            "aria2.getPeers" => self.get_peers(params),
            "aria2.getOption" => self.get_option(params).await,
            "aria2.changeOption" => self.change_option(params).await,
            "aria2.changeUri" => self.change_uri(params).await,
            "aria2.getGlobalOption" => self.get_global_option(),
            "aria2.changeGlobalOption" => self.change_global_option(params).await,
            "aria2.getGlobalStat" => self.get_global_stat(),
            "aria2.purgeDownloadResult" => self.purge_download_result().await,
            "aria2.removeDownloadResult" => self.remove_download_result(params).await,
            "aria2.getVersion" => raw(&serde_json::json!({"enabledFeatures": FEATURES, "version": VERSION})),
            "aria2.getSessionInfo" => raw(&serde_json::json!({"sessionId": self.dialect().session})),
            "aria2.shutdown" | "aria2.forceShutdown" => self.shutdown(method == "aria2.forceShutdown"),
            "aria2.saveSession" => self.save_session().await,
            "system.listMethods" => raw(&METHODS.as_slice()),
            "system.listNotifications" => raw(&NOTIFICATIONS),
            MULTICALL => Err(Fault::new("Recursive system.multicall forbidden.")),
            _ => Err(Fault::new(format!("No such method: {method}"))),
        }
    }
}

/// A call's id, and the rest of it.
fn split(call: Result<Call, BadCall>) -> (Value, Result<Named, Fault>) {
    match call {
        Ok(Call { id, method, params }) => (id, Ok((method, params))),
        Err(BadCall { id, fault }) => (id, Err(fault)),
    }
}

/// A call within a call.
fn child(call: Value) -> Result<Named, Fault> {
    let Value::Object(mut members) = call else {
        return Err(Fault::new("system.multicall expected struct."));
    };
    let take = |members: &mut Map<String, Value>, name: &str| members.remove(name).unwrap_or_default();
    let Value::String(method) = take(&mut members, "methodName") else {
        return Err(Fault::new("Missing methodName."));
    };
    let params = match take(&mut members, "params") {
        Value::Array(params) => Params(params),
        _ => Params::default(),
    };
    Ok((method, params))
}

/// The key of a request for aria2's methods: only this header carries one.
pub(super) fn shown_key(headers: &HeaderMap) -> Option<&str> {
    gate::text(headers, "x-svc-token").filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_child_of_a_call_makes_it_panic(text in "[\\[\\]{}\",:a-zA-Z0-9 ]{0,80}") {
            if let Ok(call) = serde_json::from_str(&text) {
                let _any = child(call);
            }
        }
    }
}
