//! Who may come in. Every request passes here before any route sees it, and what is decided is decided in `judge`, from
//! facts alone.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use data_encoding::BASE64URL_NOPAD;
use tracing::Instrument as _;

use crate::{
    config::Host,
    key::KeyDigest,
    metrics::Metrics,
    problem::Problem,
    settings::Settings,
    throttle::{Source, Throttle},
    vault::Vault,
};

/// What browsers and tools offer on `/rpc`, and what is chosen.
pub(crate) const RPC_PROTOCOL: &str = "svc.rpc.v1";

/// Before the access key in a sub-protocol.
const RPC_TOKEN_PREFIX: &str = "svc.token.";

const SETUP_REQUIRED: &str = "setup required: set the access key first";
const NO_CLIENT: &str = "missing X-Svc-Client header";
const WRONG_TOKEN: &str = "invalid or missing token";
const EXPOSED: &str = "set an access key first: others can reach this service";
const NO_KEY: &str = "management API requires a token; set an access key first";
pub(crate) const UNKNOWN_ENDPOINT: &str = "unknown endpoint";
const REQUEST_ID: &str = "x-request-id";
/// The longest name of a request that is taken from outside; a UUID has 36.
const MAX_REQUEST_ID: usize = 64;
const METHODS: &str = "GET, POST, PUT, DELETE, OPTIONS";
const EXTENSIONS: [&str; 3] = ["chrome-extension", "moz-extension", "safari-web-extension"];

/// What a path belongs to. Paths that belong to nothing never reach a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    Page,
    Health,
    Setup,
    Description,
    Management,
    Rpc,
    Web,
    Takeover,
    Jsonrpc,
    Mcp,
    Metrics,
    Nothing,
}

impl Surface {
    pub(crate) const ALL: [Self; 12] = [
        Self::Page,
        Self::Health,
        Self::Setup,
        Self::Description,
        Self::Management,
        Self::Rpc,
        Self::Web,
        Self::Takeover,
        Self::Jsonrpc,
        Self::Mcp,
        Self::Metrics,
        Self::Nothing,
    ];

    /// As it is called where requests are counted.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Health => "health",
            Self::Setup => "setup",
            Self::Description => "description",
            Self::Management => "management",
            Self::Rpc => "rpc",
            Self::Web => "web",
            Self::Takeover => "takeover",
            Self::Jsonrpc => "jsonrpc",
            Self::Mcp => "mcp",
            Self::Metrics => "metrics",
            Self::Nothing => "nothing",
        }
    }

    pub(crate) fn of(method: &Method, path: &str) -> Self {
        match path {
            "/" => Self::Page,
            "/ping" => Self::Health,
            "/api/v1/setup" | "/api/v1/setup/status" => Self::Setup,
            "/api/v1/openapi.json" | "/api/v1/docs" => Self::Description,
            _ if path.starts_with("/api/v1/docs/") => Self::Description,
            // XML-RPC of aria2's clients; our own RPC is a WebSocket.
            "/rpc" if method == Method::POST => Self::Jsonrpc,
            "/rpc" => Self::Rpc,
            "/download" | "/download/batch" => Self::Takeover,
            "/jsonrpc" => Self::Jsonrpc,
            "/mcp" => Self::Mcp,
            "/metrics" => Self::Metrics,
            _ if path.starts_with("/api/v1/") => Self::Management,
            _ if path.starts_with("/api/web/") => Self::Web,
            _ => Self::Nothing,
        }
    }

    fn is_offered(self, host: Host, settings: &Settings) -> bool {
        if host == Host::DropIn {
            return self == Self::Jsonrpc;
        }
        match self {
            Self::Page | Self::Health | Self::Rpc => true,
            Self::Setup | Self::Web => host == Host::Headless,
            Self::Description | Self::Management | Self::Metrics => settings.api,
            Self::Takeover => settings.takeover,
            Self::Jsonrpc => settings.jsonrpc,
            Self::Mcp => settings.mcp,
            Self::Nothing => false,
        }
    }

    fn needs_key(self) -> bool {
        match self {
            Self::Management | Self::Rpc | Self::Web | Self::Mcp | Self::Metrics => true,
            // A desktop that nobody else can reach takes over without one.
            Self::Takeover => false,
            // aria2's calls say their key themselves.
            Self::Page | Self::Health | Self::Setup | Self::Description | Self::Jsonrpc => false,
            Self::Nothing => false,
        }
    }
}

/// What is known of a request.
#[derive(Debug)]
struct Facts<'a> {
    surface: Surface,
    method: &'a Method,
    host: Option<&'a str>,
    forwarded_host: Option<&'a str>,
    /// An origin that is no text is as foreign as `null`.
    origin: Option<&'a str>,
    /// Whether it says who hands over.
    has_client: bool,
    /// Whether a program of the agent's own user sent it, from this machine.
    is_own: bool,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Goes on to its route.
    Pass,
    /// Goes on if it has this key.
    NeedsKey(KeyDigest),
    /// Goes on unless too many wrong keys came from there; its calls bring the key themselves.
    OwnKeys,
    /// A question of a browser, answered here.
    Preflight,
    Refused(StatusCode, &'static str),
}

fn judge(facts: &Facts<'_>, host: Host, is_loopback_only: bool, settings: &Settings) -> Verdict {
    if is_loopback_only && !facts.host.is_some_and(is_loopback_name) {
        return Verdict::Refused(StatusCode::FORBIDDEN, "host not allowed");
    }
    if facts.method == Method::OPTIONS {
        return Verdict::Preflight;
    }
    if !facts.surface.is_offered(host, settings) {
        return Verdict::Refused(StatusCode::NOT_FOUND, UNKNOWN_ENDPOINT);
    }
    if !passes_origin(facts, settings) {
        return Verdict::Refused(StatusCode::FORBIDDEN, "origin not allowed");
    }
    let key = settings.key_digest();
    // A server is nobody's before its set-up.
    if facts.is_own && facts.surface.needs_key() && (host == Host::Desktop || key.is_some()) {
        return Verdict::Pass;
    }
    let Some(key) = key else {
        return match facts.surface {
            Surface::Page | Surface::Health | Surface::Setup | Surface::Description => Verdict::Pass,
            // Whoever started it gave it none.
            _ if host == Host::DropIn => Verdict::Pass,
            _ if host == Host::Headless => Verdict::Refused(StatusCode::FORBIDDEN, SETUP_REQUIRED),
            surface if surface.needs_key() => Verdict::Refused(StatusCode::FORBIDDEN, NO_KEY),
            _ if !is_loopback_only || settings.cors => Verdict::Refused(StatusCode::FORBIDDEN, EXPOSED),
            Surface::Takeover if !facts.has_client => Verdict::Refused(StatusCode::FORBIDDEN, NO_CLIENT),
            _ => Verdict::Pass,
        };
    };
    if facts.surface == Surface::Takeover && !facts.has_client {
        return Verdict::Refused(StatusCode::FORBIDDEN, NO_CLIENT);
    }
    match facts.surface {
        Surface::Jsonrpc => Verdict::OwnKeys,
        surface if surface.needs_key() || surface == Surface::Takeover => Verdict::NeedsKey(key),
        _ => Verdict::Pass,
    }
}

fn passes_origin(facts: &Facts<'_>, settings: &Settings) -> bool {
    let Some(origin) = facts.origin else { return true };
    let is_same = || {
        [facts.host, facts.forwarded_host]
            .into_iter()
            .flatten()
            .any(|host| is_same_origin(origin, host))
    };
    match facts.surface {
        Surface::Takeover | Surface::Jsonrpc | Surface::Mcp => {
            settings.cors || is_extension(origin) || facts.host.is_some_and(|host| is_same_origin(origin, host))
        }
        Surface::Setup if facts.method == Method::POST => {
            is_extension(origin) || facts.host.is_some_and(|host| is_same_origin(origin, host))
        }
        Surface::Rpc => is_same(),
        _ => true,
    }
}

fn is_extension(origin: &str) -> bool {
    let extension = origin.split_once("://");
    extension.is_some_and(|(scheme, rest)| EXTENSIONS.contains(&scheme) && !rest.is_empty())
}

fn is_same_origin(origin: &str, host: &str) -> bool {
    let (authority, default_port) = match origin.split_once("://") {
        Some(("http", authority)) => (authority, ":80"),
        Some(("https", authority)) => (authority, ":443"),
        _ => return false,
    };
    let plain = |text: &str| text.strip_suffix(default_port).unwrap_or(text).to_ascii_lowercase();
    !authority.is_empty() && plain(authority) == plain(host)
}

/// Whether a `Host` names this machine itself.
pub(crate) fn is_loopback_name(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, port),
        _ => (host, "0"),
    };
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port && (name == "127.0.0.1" || name == "[::1]" || name.eq_ignore_ascii_case("localhost"))
}

/// The address that a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Who sent a request, for whoever counts or trusts senders.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender {
    pub(crate) source: Source,
    /// Whether somebody at this machine sent it, to this machine's own name, past no proxy.
    pub(crate) is_local: bool,
    /// The key that let it in; none where none is needed, and for programs of the agent's own user.
    pub(crate) key: Option<KeyDigest>,
}

/// The gate, and what it remembers.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) vault: Arc<Vault>,
    /// Whether the desktop's listener is on the loopback.
    pub(crate) is_loopback_only: bool,
    pub(crate) trusted_proxies: Vec<IpAddr>,
    /// Looked at for a moment, by every request that brings a key.
    pub(crate) throttle: Mutex<Throttle>,
    pub(crate) tickets: crate::ticket::Tickets,
    pub(crate) metrics: Arc<Metrics>,
}

impl Gate {
    fn sender(&self, peer: SocketAddr, headers: &HeaderMap) -> Sender {
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
        let is_forwarded = ["x-forwarded-for", "x-real-ip", "forwarded", "x-forwarded-host"]
            .into_iter()
            .any(|name| headers.contains_key(name));
        let host = text(headers, header::HOST);
        Sender {
            source: Source::of(address),
            is_local: peer.is_loopback() && !is_forwarded && host.is_some_and(is_loopback_name),
            key: None,
        }
    }

    /// Whether a request shows what only programs of this agent's user can know. No page ever does.
    fn is_own(&self, request: &Request, surface: Surface, sender: Sender) -> bool {
        let is_shown = || shown_key(request, surface).is_some_and(|shown| KeyDigest::of(&shown) == self.vault.pass());
        sender.is_local && !request.headers().contains_key(header::ORIGIN) && is_shown()
    }

    /// Whether the source has to wait, in seconds.
    pub(crate) fn wait(&self, source: Source) -> Option<u64> {
        let throttle = self.throttle.lock().unwrap_or_else(PoisonError::into_inner);
        throttle.wait(source, Instant::now()).map(|left| left.as_secs() + 1)
    }

    /// Counts a right or wrong secret of a source.
    pub(crate) fn count(&self, source: Source, is_right: bool) {
        let mut throttle = self.throttle.lock().unwrap_or_else(PoisonError::into_inner);
        if is_right {
            throttle.succeeded(source);
        } else {
            throttle.failed(source, Instant::now());
        }
    }

    fn check_key(&self, request: &Request, surface: Surface, key: KeyDigest, sender: Sender) -> Option<Response> {
        if let Some(seconds) = self.wait(sender.source) {
            return Some(too_many(seconds));
        }
        if surface == Surface::Web
            && request.method() == Method::GET
            && query(request, "ticket").is_some_and(|ticket| self.tickets.take(&ticket, request.uri().path()))
        {
            return None;
        }
        let shown = shown_key(request, surface);
        let is_right = shown.as_deref().is_some_and(|shown| KeyDigest::of(shown) == key);
        if shown.is_some() {
            self.count(sender.source, is_right);
        }
        (!is_right).then(|| unauthorized(surface))
    }
}

/// The answer to a wrong key, or none.
fn unauthorized(surface: Surface) -> Response {
    let message = match surface {
        Surface::Takeover => WRONG_TOKEN,
        _ => "unauthorized",
    };
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, message).into_response();
    let scheme = HeaderValue::from_static("Bearer realm=\"Svc\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    response
}

/// The answer to a source that has to wait.
pub(crate) fn too_many(seconds: u64) -> Response {
    let mut response = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong keys; try later").into_response();
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

pub(crate) fn text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn query(request: &Request, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(request.uri().query()?.as_bytes());
    let mut found = pairs.filter(|(key, _)| key == name);
    found.next().map(|(_, value)| value.into_owned())
}

/// The key that a request brings, in the forms its surface takes. An empty one is none.
fn shown_key(request: &Request, surface: Surface) -> Option<String> {
    let headers = request.headers();
    let bearer = text(headers, header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let own = text(headers, "x-svc-token");
    let shown = match surface {
        Surface::Rpc => bearer.map(ToOwned::to_owned).or_else(|| protocol_key(headers)),
        Surface::Takeover => own.map(ToOwned::to_owned),
        Surface::Web => bearer.map(ToOwned::to_owned).or_else(|| query(request, "token")),
        _ => bearer.or(own).map(ToOwned::to_owned),
    };
    shown.filter(|key| !key.is_empty())
}

/// The key among the sub-protocols, if the protocol itself is offered as well.
fn protocol_key(headers: &HeaderMap) -> Option<String> {
    let lists = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let lists: Vec<&str> = lists.filter_map(|value| value.to_str().ok()).collect();
    let offered = || lists.iter().flat_map(|list| list.split(',')).map(str::trim);
    offered().find(|protocol| *protocol == RPC_PROTOCOL)?;
    let encoded = offered().find_map(|protocol| protocol.strip_prefix(RPC_TOKEN_PREFIX))?;
    String::from_utf8(BASE64URL_NOPAD.decode(encoded.as_bytes()).ok()?).ok()
}

/// The layer around all routes: names the request, lets it in or not, and counts its answer.
pub(crate) async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let surface = Surface::of(request.method(), request.uri().path());
    let id = request_id(request.headers());
    let span = tracing::info_span!("request", id, surface = surface.name());
    let method = request.method().clone();
    let mut response = judged(&gate, surface, request, next).instrument(span.clone()).await;
    let (status, elapsed) = (response.status().as_u16(), began.elapsed());
    // Neither path nor query: both may hold what is nobody's business.
    span.in_scope(|| tracing::debug!(%method, status, ?elapsed, "answered"));
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    gate.metrics.answered(surface, elapsed, status);
    response
}

/// By what the request is found in logs again: the name that its sender gave it, if it is a plain one.
fn request_id(headers: &HeaderMap) -> String {
    let is_plain = |id: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (1..=MAX_REQUEST_ID).contains(&id.len()) && id.bytes().all(is_plain)
    };
    match text(headers, REQUEST_ID).filter(is_plain) {
        Some(id) => id.to_owned(),
        None => uuid::Uuid::new_v4().simple().to_string(),
    }
}

async fn judged(gate: &Gate, surface: Surface, mut request: Request, next: Next) -> Response {
    let settings = gate.vault.settings();
    let headers = request.headers();
    let peer = request.extensions().get::<Peer>().map(|Peer(address)| *address);
    let mut sender = gate.sender(peer.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0))), headers);
    let forwarded = text(headers, "x-forwarded-host").and_then(|hosts| hosts.split(',').next());
    let facts = Facts {
        surface,
        method: request.method(),
        host: text(headers, header::HOST),
        forwarded_host: forwarded.map(str::trim),
        origin: headers
            .get(header::ORIGIN)
            .map(|origin| origin.to_str().unwrap_or("null")),
        has_client: text(headers, "x-svc-client").is_some_and(|client| !client.trim().is_empty()),
        is_own: gate.is_own(&request, surface, sender),
    };
    let asked_headers = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let refused = match judge(&facts, gate.vault.host(), gate.is_loopback_only, &settings) {
        Verdict::Pass => None,
        Verdict::OwnKeys => gate.wait(sender.source).map(too_many),
        Verdict::NeedsKey(key) => {
            sender.key = Some(key);
            gate.check_key(&request, surface, key, sender)
        }
        Verdict::Preflight => return preflight(&settings, asked_headers),
        Verdict::Refused(status, message) => Some(Problem::new(status, message).into_response()),
    };
    let mut response = if let Some(refused) = refused {
        refused
    } else {
        request.extensions_mut().insert(sender);
        next.run(request).await
    };
    dress(&mut response, &settings);
    response
}

/// What every answer carries.
fn dress(response: &mut Response, settings: &Settings) {
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
    set(header::CACHE_CONTROL, "no-store");
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    if settings.cors {
        set(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        set(header::ACCESS_CONTROL_EXPOSE_HEADERS, "*");
    }
}

fn preflight(settings: &Settings, asked_headers: Option<HeaderValue>) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    dress(&mut response, settings);
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

#[cfg(test)]
mod tests;
