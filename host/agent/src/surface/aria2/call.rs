//! Calls: who may make them, which method does what, and many of them in one message.

use std::{
    borrow::Cow,
    iter::once,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, StatusCode},
};
use futures_util::stream;
use protocol::{CreateTaskRequest, Method, OkResult};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    Dialect,
    fault::Fault,
    json::{self, Asked, Call, Children, Given, Named},
    params::Params,
    tell::{Listing, MAX_TEXT_BYTES},
    xml_rpc,
};
use crate::{
    access::{
        Seat,
        budget::{Budget, Exhausted, FREE_ANSWER_BYTES, FREE_BODY_BYTES, MAX_ANSWER_BYTES, Share},
        key::KeyDigest,
        throttle::{Form, Source},
    },
    gate::{
        credentials::text,
        sender::{KEY_FIRST, Sender, Standing},
    },
    problem::Problem,
    projection::hub::Hub,
    surface::{
        http::extract::{FREE_TIME, Incoming},
        state::App,
    },
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

/// The methods whose results are as long as there are downloads.
const TELLS: [&str; 3] = ["aria2.tellActive", "aria2.tellWaiting", "aria2.tellStopped"];

/// Tasks that are made at once when a message asks for many, and how much text they may have come from.
const MADE_AT_ONCE: usize = 1000;
const MADE_AT_ONCE_BYTES: usize = 1024 * 1024;

/// Calls of a message without a right token in its first call. Their answers fit into what every client may have.
const FREE_CALLS: usize = 64;

/// Calls between which others have their turn.
const CALLS_AT_ONCE: usize = 64;

/// How much longer a result is in XML than in JSON, at most: that of a download is three times as long.
const XML_FACTOR: usize = 4;

/// What an answer has beside its result.
const RESULT_BYTES: usize = 64;

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
    /// The connection's, which is kept once a call shows the key.
    seat: Option<Arc<Seat>>,
    /// The key came in a header: calls need not say it again.
    has_key: bool,
    /// For whom this call is, if it may do no more than a browser without a key.
    pub(super) visitor: Option<Arc<str>>,
    /// What code and text of a fault are called within a result.
    fault_names: [&'static str; 2],
}

/// An answer on its way.
pub(super) enum Answer {
    Whole(Bytes),
    /// Piece by piece, in this order.
    Streamed(Box<dyn Iterator<Item = Bytes> + Send + Sync>),
}

impl Answer {
    pub(super) fn into_body(self) -> Body {
        match self {
            Self::Whole(text) => text.into(),
            Self::Streamed(pieces) => Body::from_stream(stream::iter(pieces.map(Ok::<_, std::convert::Infallible>))),
        }
    }
}

/// What takes the results of calls: the id of each, and how it went.
type Write<'w> = dyn FnMut(&str, Result<&str, &Fault>) + Send + 'w;

fn told(write: &mut Write<'_>, id: &str, outcome: &Outcome) {
    write(id, outcome.as_ref().map(|result| result.get()));
}

/// Downloads that are made together, and the ids of their calls.
#[derive(Default)]
struct Adds<'a> {
    ids: Vec<&'a str>,
    requests: Vec<CreateTaskRequest>,
    /// What they were asked for with.
    bytes: usize,
}

/// The result of the only call of a message.
pub(super) enum Told {
    Written,
    Whole(Arc<RawValue>),
    /// A list that is too long to be held as text.
    List(Listing),
}

/// What the results of a message have, and the room for it once it is much.
pub(super) struct Tally<'b> {
    /// None has no bounds, for callers within the process.
    budget: Option<&'b Budget>,
    most: usize,
    /// The same once a call of the message has shown the key.
    most_if_known: usize,
    bytes: usize,
    share: Option<Share>,
    is_over: bool,
}

impl Tally<'_> {
    fn unbounded() -> Self {
        Self {
            budget: None,
            most: usize::MAX,
            most_if_known: usize::MAX,
            bytes: 0,
            share: None,
            is_over: false,
        }
    }

    /// Counts a result, or replaces it if it is too much.
    async fn count(&mut self, outcome: Outcome) -> Outcome {
        let Some(budget) = self.budget else { return outcome };
        let length = match &outcome {
            Ok(result) => result.get().len(),
            Err(fault) => fault.message.len(),
        };
        // What changes something has a short result, which is told even if it is the last one.
        if length > FREE_ANSWER_BYTES && self.bytes + length > self.most {
            self.is_over = true;
            return Err(self.too_long());
        }
        self.bytes += length + RESULT_BYTES;
        self.is_over |= self.bytes > self.most;
        if self.bytes > FREE_ANSWER_BYTES && self.share.is_none() {
            self.share = budget.answer().await.ok();
            self.is_over |= self.share.is_none();
        }
        outcome
    }

    fn too_long(&self) -> Fault {
        Fault::new(format!(
            "The results of one message have at most {} KiB: call this in a message of its own, or for fewer keys or downloads.",
            self.most >> 10
        ))
    }
}

/// Why a body is not answered by calls.
pub(super) enum NoBody {
    Refused(Problem),
    /// The token that it begins with is wrong.
    Unauthorized,
}

impl<T: Into<Problem>> From<T> for NoBody {
    fn from(problem: T) -> Self {
        Self::Refused(problem.into())
    }
}

/// What a call may do.
enum Power {
    /// Whatever its method does.
    Full,
    /// What the downloads of this visitor need.
    Visitor(Arc<str>),
}

impl Caller {
    /// A client that the gate let pass, which showed this key in a header, if any.
    pub(super) fn new(app: App, sender: Sender, seat: Option<Arc<Seat>>, shown: Option<&str>) -> Self {
        let mut caller = Self {
            app,
            has_key: sender.standing == Standing::Keyed,
            sender,
            seat,
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
        Self::new(app, sender, None, None)
    }

    /// Whether its connection is one of a client that may come and go as it likes.
    pub(super) fn is_authenticated(&self) -> bool {
        self.seat.as_ref().is_none_or(|seat| seat.is_authenticated())
    }

    /// Whether too much came before the key.
    pub(super) fn is_overdrawn(&self) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.is_overdrawn())
    }

    /// Resolves when its connection has to close for a newer one. Cancel-safe.
    pub(super) async fn evicted(&self) {
        match &self.seat {
            Some(seat) => seat.evicted().await,
            None => std::future::pending().await,
        }
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
        if is_right && let Some(seat) = &self.seat {
            seat.authenticate();
        }
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
            Standing::Open => Err(Fault::new(KEY_FIRST)),
        }
    }

    /// Whose downloads alone may be told of on this connection; none tells of all.
    pub(super) fn told_visitor(&self) -> Option<&str> {
        match &self.sender.standing {
            Standing::Visitor(visitor) => Some(visitor),
            _ => None,
        }
    }

    /// Whether calls need no token.
    fn is_known(&self) -> bool {
        self.power(None).is_ok()
    }

    /// Reads the body of a request. A large one is read on once its token is seen, which `find` looks for.
    pub(super) async fn body(
        &self,
        request: Request,
        find: impl Fn(&[u8]) -> Option<Cow<'_, str>>,
    ) -> Result<Bytes, NoBody> {
        let mut body = Incoming::of(request, FREE_TIME);
        if self.is_known() {
            body.read_whole(&self.app.budget).await?;
        } else if !body.read(FREE_BODY_BYTES).await? {
            let token = find(body.so_far()).ok_or_else(no_token)?;
            if !self.knows_key(&token) {
                return Err(NoBody::Unauthorized);
            }
            body.read_on(&self.app.budget).await?;
        }
        Ok(body.into_bytes())
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
    pub(super) async fn answer(&self, message: &[u8]) -> Result<Answer, Exhausted> {
        let budget = &self.app.budget;
        let _turn = match message.len() {
            0..=FREE_BODY_BYTES => None,
            _ => Some(budget.large().await?),
        };
        let mut answer = Vec::new();
        let mut tally = self.tally(MAX_ANSWER_BYTES);
        match Asked::read(message) {
            asked if asked.len() > FREE_CALLS && !self.is_known() && !self.shows_key(message) => {
                json::write(&mut answer, json::NO_ID, Err(&Fault::unauthorized()));
            }
            Asked::One(Call { id, named }) => {
                json::begin(&mut answer, id);
                match self.single(named, &mut tally, MAX_TEXT_BYTES, &mut answer).await {
                    Ok(Told::Written) => answer.push(b'}'),
                    Ok(Told::Whole(result)) => {
                        answer.extend_from_slice(result.get().as_bytes());
                        answer.push(b'}');
                    }
                    Ok(Told::List(list)) => {
                        let pieces = once(Bytes::from(answer)).chain(list.pieces());
                        let pieces = pieces.chain(once(Bytes::from_static(b"}")));
                        return Ok(Answer::Streamed(Box::new(pieces)));
                    }
                    Err(fault) => {
                        answer.clear();
                        json::write(&mut answer, id, Err(&fault));
                    }
                }
            }
            Asked::Batch(calls) => {
                answer.push(b'[');
                let mut write = |id: &str, outcome: Result<&str, &Fault>| {
                    if answer.len() > 1 {
                        answer.push(b',');
                    }
                    json::write(&mut answer, id, outcome);
                };
                let calls = calls.into_iter().map(Call::read);
                self.in_order(calls, &mut tally, true, &mut write).await;
                answer.push(b']');
            }
        }
        budget.hold(answer, tally.share).await.map(Answer::Whole)
    }

    /// Of a message whose results may have this many bytes once its sender is known.
    fn tally(&self, most: usize) -> Tally<'_> {
        Tally {
            budget: Some(&self.app.budget),
            most: if self.is_known() { most } else { FREE_ANSWER_BYTES },
            most_if_known: most,
            ..Tally::unbounded()
        }
    }

    /// Whether the first call of a message brings the key.
    fn shows_key(&self, message: &[u8]) -> bool {
        json::find_token(message).is_some_and(|token| self.knows_key(&token))
    }

    /// The answer to a call that came as XML, which takes more bytes than JSON for the same.
    pub(super) async fn answer_xml(&self, message: &[u8]) -> Result<Option<Answer>, Exhausted> {
        let budget = &self.app.budget;
        let _turn = match message.len() {
            0..=FREE_BODY_BYTES => None,
            _ => Some(budget.largest().await?),
        };
        let named = str::from_utf8(message).ok().and_then(|text| xml_rpc::read(text).ok());
        let Some((method, params)) = named else { return Ok(None) };
        let named = Named {
            method: method.into(),
            given: Given::Read(params),
        };
        let (mut tally, mut result) = (self.tally(MAX_ANSWER_BYTES / XML_FACTOR), Vec::new());
        let told = self.single(Ok(named), &mut tally, MAX_TEXT_BYTES / XML_FACTOR, &mut result);
        let answer = match told.await {
            Ok(Told::List(list)) => {
                let pieces = xml_rpc::list(list.texts());
                return Ok(Some(Answer::Streamed(Box::new(pieces))));
            }
            Ok(Told::Whole(result)) => xml_rpc::answer(Ok(result.get())),
            Ok(Told::Written) => xml_rpc::answer(Ok(str::from_utf8(&result).unwrap_or_default())),
            Err(fault) => xml_rpc::answer(Err(&fault)),
        };
        let answer = budget.hold(answer.into_bytes(), tally.share).await?;
        Ok(Some(Answer::Whole(answer)))
    }

    /// The only call of a message. Its result is written to `out`, or is a list, of which no text is made that is longer
    /// than `most` bytes.
    async fn single(
        &self,
        named: Result<Named<'_>, Fault>,
        tally: &mut Tally<'_>,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<Told, Fault> {
        let named = match named {
            Ok(Named { method, given }) if TELLS.contains(&&*method) => {
                return match self.power(given.token().as_deref())? {
                    Power::Full => self.tell_list(&method, &given.read()?, most),
                    Power::Visitor(visitor) => self.for_visitor(visitor).tell_list(&method, &given.read()?, most),
                };
            }
            Ok(Named { method, given }) if method == MULTICALL => {
                return self.multicall(given, tally, out).await.map(|()| Told::Written);
            }
            named => named,
        };
        let mut refused = None;
        let mut write = |_: &str, outcome: Result<&str, &Fault>| match outcome {
            Ok(result) => out.extend_from_slice(result.as_bytes()),
            Err(fault) => refused = Some(fault.clone()),
        };
        self.in_order(once(without_id(named)), tally, true, &mut write).await;
        refused.map_or(Ok(Told::Written), Err)
    }

    /// One call that this process itself makes.
    pub(super) async fn one(&self, method: &str, params: Params) -> Outcome {
        let named = Named {
            method: method.into(),
            given: Given::Read(params),
        };
        let (mut tally, mut result) = (Tally::unbounded(), Vec::new());
        match self.single(Ok(named), &mut tally, usize::MAX, &mut result).await? {
            Told::Whole(result) => Ok(result),
            Told::List(_) => Err(tally.too_long()),
            Told::Written => {
                let text = String::from_utf8(result).map_err(|error| Fault::new(error.to_string()))?;
                let result = RawValue::from_string(text).map_err(|error| Fault::new(error.to_string()))?;
                Ok(result.into())
            }
        }
    }

    /// Calls in order, whose results go to `write` as they come, with the id of the call. Downloads that are added one
    /// after the other are made together.
    async fn in_order<'a>(
        &self,
        calls: impl Iterator<Item = Call<'a>> + Send,
        tally: &mut Tally<'_>,
        allows_multicall: bool,
        write: &mut Write<'_>,
    ) {
        let mut adds = Adds::default();
        for (number, Call { id, named }) in calls.enumerate() {
            if number % CALLS_AT_ONCE == CALLS_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            let outcome = match named {
                _ if tally.is_over => Err(tally.too_long()),
                Err(fault) => Err(fault),
                Ok(Named { method, given }) if method == MULTICALL && allows_multicall => {
                    // What comes before it happens before it.
                    self.make(&mut adds, tally, write).await;
                    let mut text = Vec::new();
                    // What is within it is counted there.
                    match Box::pin(self.multicall(given, tally, &mut text)).await {
                        Ok(()) => write(id, Ok(str::from_utf8(&text).unwrap_or_default())),
                        Err(fault) => write(id, Err(&fault)),
                    }
                    continue;
                }
                Ok(named) => match self.call_or_add(named, id, &mut adds, tally, write).await {
                    Some(outcome) => outcome,
                    None => continue,
                },
            };
            self.make(&mut adds, tally, write).await;
            told(write, id, &tally.count(outcome).await);
        }
        self.make(&mut adds, tally, write).await;
    }

    /// Makes a call, or puts its download to others that are made together.
    async fn call_or_add<'a>(
        &self,
        Named { method, given }: Named<'a>,
        id: &'a str,
        adds: &mut Adds<'a>,
        tally: &mut Tally<'_>,
        write: &mut Write<'_>,
    ) -> Option<Outcome> {
        let is_open = matches!(&*method, "system.listMethods" | "system.listNotifications" | MULTICALL);
        let mut power = Power::Full;
        if !is_open {
            power = match self.power(given.token().as_deref()) {
                Ok(power) => power,
                Err(fault) => return Some(Err(fault)),
            };
            tally.most = tally.most_if_known;
        }
        let bytes = given.len() + self.dialect().template().bytes();
        let params = match given.read() {
            Ok(params) => params,
            Err(fault) => return Some(Err(fault)),
        };
        if matches!(power, Power::Full)
            && method == "aria2.addUri"
            && let Some(request) = self.plain_add(&params)
        {
            adds.ids.push(id);
            adds.requests.push(request);
            adds.bytes += bytes;
            if adds.requests.len() >= MADE_AT_ONCE || adds.bytes >= MADE_AT_ONCE_BYTES {
                self.make(adds, tally, write).await;
            }
            return None;
        }
        self.make(adds, tally, write).await;
        Some(match power {
            Power::Full => self.dispatch(&method, &params, tally).await,
            Power::Visitor(visitor) => self.dispatch_for(visitor, &method, &params, tally).await,
        })
    }

    async fn make(&self, adds: &mut Adds<'_>, tally: &mut Tally<'_>, write: &mut Write<'_>) {
        let Adds { ids, requests, .. } = std::mem::take(adds);
        if requests.is_empty() {
            return;
        }
        for (id, outcome) in ids.into_iter().zip(self.make_all(requests).await) {
            told(write, id, &tally.count(outcome).await);
        }
    }

    /// Calls within a call, each with a token of its own. The list of their results is written to `out`.
    async fn multicall(&self, given: Given<'_>, tally: &mut Tally<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let children = Children::of(given)?;
        if children.len() > FREE_CALLS && !self.is_known() {
            let token = children.token().ok_or_else(Fault::unauthorized)?;
            if !self.knows_key(&token) {
                return Err(Fault::unauthorized());
            }
        }
        let begin = out.len() + 1;
        out.push(b'[');
        let mut write = |_: &str, outcome: Result<&str, &Fault>| {
            if out.len() > begin {
                out.push(b',');
            }
            match outcome {
                Ok(result) => [b"[", result.as_bytes(), b"]"]
                    .iter()
                    .for_each(|part| out.extend_from_slice(part)),
                Err(fault) => {
                    let [code, message] = self.fault_names;
                    let fault = serde_json::json!({code: fault.code, message: fault.message});
                    out.extend_from_slice(fault.to_string().as_bytes());
                }
            }
        };
        match children {
            Children::Text(calls) => {
                let calls = calls.into_iter().map(json::child).map(without_id);
                self.in_order(calls, tally, false, &mut write).await;
            }
            Children::Read(calls) => {
                let calls = calls.into_iter().map(json::read_child).map(without_id);
                self.in_order(calls, tally, false, &mut write).await;
            }
        }
        out.push(b']');
        Ok(())
    }

    pub(super) async fn dispatch(&self, method: &str, params: &Params, tally: &Tally<'_>) -> Outcome {
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
            "aria2.tellActive" | "aria2.tellWaiting" | "aria2.tellStopped" => {
                let most = tally.budget.map_or(usize::MAX, |_| MAX_TEXT_BYTES);
                match self.tell_list(method, params, most)? {
                    Told::Whole(list) => Ok(list),
                    Told::List(_) | Told::Written => Err(tally.too_long()),
                }
            }
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

/// A call that is answered without an id.
fn without_id(named: Result<Named<'_>, Fault>) -> Call<'_> {
    let id = json::NO_ID;
    Call { id, named }
}

/// A large body without a token that could be seen.
fn no_token() -> Problem {
    let message = format!(
        "without the access key a body has at most {} KiB: send the key in the header X-Svc-Token, or as \"token:<key>\" in \
         the first parameter of the first call, ahead of everything large",
        FREE_BODY_BYTES >> 10
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// The key of a request for aria2's methods: only this header carries one.
pub(super) fn shown_key(headers: &HeaderMap) -> Option<&str> {
    text(headers, "x-svc-token").filter(|key| !key.is_empty())
}
