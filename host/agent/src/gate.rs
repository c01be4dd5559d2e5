//! Authorization. Every request passes this layer before it reaches a route. [`verdict`] decides, from facts alone;
//! this module collects the facts, compares keys and counts wrong ones.

pub(crate) mod credentials;
pub(crate) mod sender;
mod verdict;

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use admission::throttle::{Form, Source, Throttle};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rest::{Problem, too_many};
use tracing::Instrument as _;

use self::{
    credentials::{header_key, query, shown_key, text},
    sender::{Authorization, Sender},
    verdict::{Facts, Verdict, is_extension, is_loopback_name, is_same_origin, is_unambiguous, judge},
};
use crate::{
    access::{
        ConnectionSlot,
        area::Area,
        key::KeyDigest,
        peer_user::{Peer, PeerUser, PeerUsers},
        session::Sessions,
        ticket::Tickets,
    },
    metrics::Metrics,
    settings::{file::SettingsFile, switches::Settings},
};

const WRONG_TOKEN: &str = "invalid or missing token";
const OTHER_USER: &str =
    "set an access key first: without one only programs of the user who runs this service may call";
const FROM_ELSEWHERE: &str = "set an access key first: without one nothing is taken that a proxy passes on";
const UNKNOWN_USER: &str =
    "set an access key first: without one the user of a program must be known, and /proc/net/tcp does not tell it";
const REQUEST_ID: &str = "x-request-id";
/// The longest client-supplied request id that is accepted; a UUID has 36 characters.
const MAX_REQUEST_ID: usize = 64;
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE, OPTIONS";
/// `Host` names that are remembered because the right key came with them.
const MAX_NAMES: usize = 64;
/// The owner of downloads from a browser that names no extension.
const ANY_BROWSER: &str = "browser";
/// Proxy headers, beside all that begin with `x-forwarded-`.
const FORWARDED: [&str; 8] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "true-client-ip",
    "cf-connecting-ip",
];

#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) settings: Arc<SettingsFile>,
    is_loopback_only: bool,
    pub(crate) trusted_proxies: Vec<IpAddr>,
    /// Locked briefly by every request that carries a key.
    throttle: Mutex<Throttle>,
    /// `Host` names that came with the right key.
    names: Mutex<BTreeSet<String>>,
    peers: PeerUsers,
    pub(crate) tickets: Tickets,
    pub(crate) sessions: Sessions,
    pub(crate) metrics: Arc<Metrics>,
    request_ids: RequestIds,
}

/// Makes request ids: a random half for this process, and a count. Random ids would cost a system call for each request.
#[derive(Debug)]
struct RequestIds {
    of_process: u64,
    next: AtomicU64,
}

impl RequestIds {
    fn new() -> Self {
        let (of_process, _) = uuid::Uuid::new_v4().as_u64_pair();
        let next = AtomicU64::new(0);
        Self { of_process, next }
    }

    fn take(&self) -> String {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{:016x}{count:016x}", self.of_process)
    }
}

impl Gate {
    pub(crate) fn new(
        settings: Arc<SettingsFile>,
        is_loopback_only: bool,
        trusted_proxies: Vec<IpAddr>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            settings,
            is_loopback_only,
            trusted_proxies,
            throttle: Mutex::default(),
            names: Mutex::default(),
            peers: PeerUsers::default(),
            tickets: Tickets::default(),
            sessions: Sessions::default(),
            metrics,
            request_ids: RequestIds::new(),
        }
    }

    /// The request id for logs: the client's, if it is short and plain, else a new one.
    fn request_id(&self, headers: &HeaderMap) -> String {
        let is_plain = |id: &&str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            (1..=MAX_REQUEST_ID).contains(&id.len()) && id.bytes().all(is_plain)
        };
        let theirs = text(headers, REQUEST_ID).filter(is_plain);
        theirs.map_or_else(|| self.request_ids.take(), str::to_owned)
    }

    fn sender(&self, peer: SocketAddr, request: &Request, facts: &Facts<'_>) -> Sender {
        let headers = request.headers();
        let peer = peer.ip().to_canonical();
        let mut address = peer;
        if self.trusted_proxies.contains(&peer) {
            let lists = headers
                .get_all("x-forwarded-for")
                .iter()
                .filter_map(|value| value.to_str().ok());
            let hops: Vec<&str> = lists.flat_map(|list| list.split(',')).collect();
            for hop in hops.into_iter().rev() {
                let Ok(hop) = hop.trim().parse::<IpAddr>() else { break };
                address = hop.to_canonical();
                if !self.trusted_proxies.contains(&address) {
                    break;
                }
            }
        }
        let is_forwarded = headers
            .keys()
            .any(|name| name.as_str().starts_with("x-forwarded-") || FORWARDED.contains(&name.as_str()));
        Sender {
            source: Source::of(address),
            form: self.form(request, facts),
            is_local: peer.is_loopback() && !is_forwarded && facts.host.is_some_and(is_loopback_name),
            is_browser: facts.origin.is_some() || headers.contains_key("sec-fetch-site"),
            key: None,
            authorization: Authorization::Unchecked,
            session: None,
        }
    }

    /// How the request carries its key. What a page can send from its visitor's browser must not count as
    /// [`Form::Header`]: calls in a query, keys from a foreign origin, and keys for a host name that the page may
    /// control (DNS rebinding), until the right key came with that name.
    fn form(&self, request: &Request, facts: &Facts<'_>) -> Form {
        let headers = request.headers();
        let is_get = request.method() == Method::GET;
        let is_query = match facts.area {
            Area::Web => header_key(headers, facts.area).is_none(),
            Area::Jsonrpc => is_get && !headers.contains_key(header::UPGRADE),
            _ => false,
        };
        if is_query {
            return Form::Query;
        }
        let is_page = match facts.origin {
            Some(origin) if is_extension(origin) => false,
            Some(origin) if !is_same_origin(origin, facts.host.unwrap_or_default()) => true,
            _ => {
                let is_foreign = || text(headers, "sec-fetch-site").is_some_and(|site| site.ends_with("-site"));
                is_foreign() || !facts.host.is_none_or(|host| self.knows(host))
            }
        };
        if is_page { Form::Page } else { Form::Header }
    }

    fn knows(&self, host: &str) -> bool {
        let names = || self.names.lock().unwrap_or_else(PoisonError::into_inner);
        is_unambiguous(host) || names().contains(&host.to_ascii_lowercase())
    }

    /// Records a `Host` that came with the right key.
    fn remember_host(&self, host: Option<&str>) {
        let Some(host) = host.filter(|host| !self.knows(host)) else {
            return;
        };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() < MAX_NAMES {
            names.insert(host.to_ascii_lowercase());
        }
    }

    /// Whether the request carries the pass, which only programs of the agent's own user can read, or the session of a
    /// page that this user opened; the latter is recorded in `sender`. Browsers never qualify by the pass.
    fn is_own(&self, request: &Request, facts: &Facts<'_>, sender: &mut Sender) -> bool {
        if !sender.is_local {
            return false;
        }
        let Some(shown) = shown_key(request, facts.area).map(|shown| KeyDigest::of(&shown)) else {
            return false;
        };
        let is_of_page = facts
            .origin
            .is_none_or(|origin| facts.host.is_some_and(|host| is_same_origin(origin, host)));
        if is_of_page {
            sender.session = self.sessions.purpose(shown);
        }
        sender.session.is_some() || self.is_pass(shown, sender)
    }

    /// Whether `shown` is the pass, and this sender may use it.
    pub(crate) fn is_pass(&self, shown: KeyDigest, sender: &Sender) -> bool {
        sender.is_local && !sender.is_browser && shown == self.settings.pass()
    }

    /// The authorization of a request when no key is configured, or why it is refused. Forwarded requests are refused: a
    /// proxy hides whose request it is.
    async fn keyless(
        &self,
        peer: Option<&Peer>,
        is_local: bool,
        browser: Option<Arc<str>>,
    ) -> Result<Authorization, &'static str> {
        let user = match peer {
            Some(_) if !is_local => return Err(FROM_ELSEWHERE),
            Some(peer) => self.peers.of(peer).await,
            None => PeerUser::Unknown,
        };
        match (user, browser) {
            (PeerUser::Unknown, _) => Err(UNKNOWN_USER),
            (user, _) if !user.is_own() => Err(OTHER_USER),
            (_, Some(browser)) => Ok(Authorization::Browser(browser)),
            (_, None) => Ok(Authorization::OwnUser),
        }
    }

    /// Whether a process of the agent's own user sent this from this machine itself.
    pub(crate) async fn is_own_users(&self, peer: &Peer, sender: &Sender) -> bool {
        sender.is_local && self.peers.of(peer).await.is_own()
    }

    /// Whether a client must send the set-up code to set the first key. Only local processes of the service's own user
    /// or root need none; browser extensions always do.
    pub(crate) async fn needs_code(&self, peer: &Peer, sender: &Sender, headers: &HeaderMap) -> bool {
        let is_by_extension = text(headers, header::ORIGIN).is_some_and(is_extension);
        !sender.is_local || is_by_extension || !self.peers.of(peer).await.is_own_or_root()
    }

    /// The remaining lock-out in seconds.
    pub(crate) fn wait(&self, source: Source, form: Form) -> Option<u64> {
        let throttle = self.throttle.lock().unwrap_or_else(PoisonError::into_inner);
        throttle
            .wait(source, form, Instant::now())
            .map(|left| left.as_secs() + 1)
    }

    pub(crate) fn count(&self, source: Source, form: Form, is_right: bool) {
        let mut throttle = self.throttle.lock().unwrap_or_else(PoisonError::into_inner);
        if is_right {
            throttle.succeeded(source, form);
        } else {
            throttle.failed(source, form, Instant::now());
        }
    }

    fn check_key(&self, request: &Request, area: Area, key: KeyDigest, sender: &Sender) -> Option<Response> {
        // Tickets are issued to authenticated clients only, and guessing one must not lock out the key's owner.
        if area == Area::Web
            && request.method() == Method::GET
            && query(request, "ticket").is_some_and(|ticket| self.tickets.take(&ticket, request.uri().path()))
        {
            return None;
        }
        if let Some(seconds) = self.wait(sender.source, sender.form) {
            return Some(too_many(seconds));
        }
        let shown = shown_key(request, area);
        let is_right = shown.as_deref().is_some_and(|shown| KeyDigest::of(shown) == key);
        if shown.is_some() {
            self.count(sender.source, sender.form, is_right);
        }
        if is_right {
            self.remember_host(text(request.headers(), header::HOST));
        }
        (!is_right).then(|| unauthorized(area))
    }
}

/// The answer to a missing or wrong key.
fn unauthorized(area: Area) -> Response {
    let message = match area {
        Area::Takeover => WRONG_TOKEN,
        _ => "unauthorized",
    };
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, message).into_response();
    let scheme = HeaderValue::from_static("Bearer realm=\"Svc\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    response
}

/// The middleware around all routes: assigns a request id, authorizes, and counts the answer.
pub(crate) async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let area = Area::of(request.method(), request.uri().path());
    let id = gate.request_id(request.headers());
    let span = tracing::info_span!("request", id, surface = area.name());
    let method = request.method().clone();
    let mut response = guard(&gate, area, request, next).instrument(span.clone()).await;
    let (status, elapsed) = (response.status().as_u16(), began.elapsed());
    // Path and query are not logged: both may contain secrets.
    tracing::debug!(parent: &span, %method, status, ?elapsed, "answered");
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    gate.metrics.answered(area, elapsed, status);
    response
}

async fn guard(gate: &Gate, area: Area, mut request: Request, next: Next) -> Response {
    let settings = gate.settings.current();
    let headers = request.headers();
    let peer = request.extensions().get::<Peer>().cloned();
    let address = peer.as_ref().map(|peer| peer.address);
    let forwarded = text(headers, "x-forwarded-host").and_then(|hosts| hosts.split(',').next());
    let mut facts = Facts {
        area,
        method: request.method(),
        host: text(headers, header::HOST),
        forwarded_host: forwarded.map(str::trim),
        origin: headers
            .get(header::ORIGIN)
            .map(|origin| origin.to_str().unwrap_or("null")),
        has_client: text(headers, "x-svc-client").is_some_and(|client| !client.trim().is_empty()),
        is_own: false,
    };
    let mut sender = gate.sender(address.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0))), &request, &facts);
    facts.is_own = gate.is_own(&request, &facts, &mut sender);
    let browser = sender.is_browser.then(|| facts.origin.unwrap_or(ANY_BROWSER).into());
    let asked_headers = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let authorized = match judge(&facts, gate.settings.edition(), gate.is_loopback_only, &settings) {
        Verdict::Pass if area == Area::Jsonrpc => Ok(Authorization::Unrestricted),
        Verdict::Pass => Ok(Authorization::Unchecked),
        Verdict::Own => Ok(Authorization::Key),
        Verdict::OwnUser => {
            let keyless = gate.keyless(peer.as_ref(), sender.is_local, browser).await;
            keyless.map_err(|message| Problem::new(StatusCode::FORBIDDEN, message).into_response())
        }
        Verdict::OwnKeys => match gate.wait(sender.source, sender.form) {
            Some(seconds) => Err(too_many(seconds)),
            None => Ok(Authorization::Unchecked),
        },
        Verdict::NeedsKey(key) => {
            sender.key = Some(key);
            match gate.check_key(&request, area, key, &sender) {
                Some(refused) => Err(refused),
                None => Ok(Authorization::Key),
            }
        }
        Verdict::Preflight => return preflight(&settings, asked_headers),
        Verdict::Refused(status, message) => Err(Problem::new(status, message).into_response()),
    };
    let mut response = match authorized {
        Err(refused) => refused,
        Ok(authorization) => {
            let is_authenticated = authorization != Authorization::Unchecked;
            if is_authenticated && let Some(slot) = request.extensions().get::<Arc<ConnectionSlot>>() {
                slot.authenticate();
            }
            sender.authorization = authorization;
            request.extensions_mut().insert(sender);
            next.run(request).await
        }
    };
    add_headers(&mut response, &settings);
    response
}

/// Headers of every answer.
fn add_headers(response: &mut Response, settings: &Settings) {
    let status = response.status();
    let is_json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    if (status.is_client_error() || status.is_server_error()) && !is_json {
        let allow = response.headers().get(header::ALLOW).cloned();
        let reason = status.canonical_reason().unwrap_or("refused").to_ascii_lowercase();
        *response = Problem::new(status, reason).into_response();
        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, allow);
        }
    }
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| headers.insert(name, HeaderValue::from_static(value));
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    // The files of the page say themselves how long they may be kept.
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let mut set = |name: HeaderName, value: &'static str| headers.insert(name, HeaderValue::from_static(value));
    if settings.cors {
        set(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        set(header::ACCESS_CONTROL_EXPOSE_HEADERS, "*");
    }
}

fn preflight(settings: &Settings, asked_headers: Option<HeaderValue>) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    add_headers(&mut response, settings);
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static(METHODS));
    if settings.cors {
        let asked = asked_headers.unwrap_or(HeaderValue::from_static("*"));
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        for network in ["private", "local"] {
            let name = HeaderName::try_from(format!("access-control-allow-{network}-network"));
            headers.insert(name.expect("a plain name"), HeaderValue::from_static("true"));
        }
    }
    response
}
