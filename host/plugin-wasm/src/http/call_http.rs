//! The HTTP client of one call: applies grants, redirects, cookies and limits on top of a [`Network`].

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use egress::{Pins, Redirects, Refusal};
use futures_util::{StreamExt as _, stream};
use plugin_host::{
    Denial, Grants, Proxies, RequestLine,
    runtime::{CallClock, TimedOut},
};
use serde_json::{Map, Value};
use tokio::time::Instant;
use transfer::SafeUrl;
use url::{Url, form_urlencoded};

use super::{
    Answer, Cookies, Exchange, FetchError, Network, NetworkError, Profile, Request, Response,
    account::CallAccounts,
    charset,
    computing::Computing,
    header,
    profile::{CacheKey, cache_key},
    secret::{RequestSecrets, SecretPosition},
};
use crate::{http::TaskSite, limits::HttpLimits, outside::LogSink};

/// The permissions and resources of a call's requests.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) network: Arc<dyn Network>,
    pub(crate) grants: Grants,
    pub(crate) task: Option<TaskSite>,
    pub(crate) proxies: Proxies,
    pub(crate) accounts: Arc<CallAccounts>,
    pub(crate) log: Arc<dyn LogSink>,
    pub(crate) clock: CallClock,
}

/// The HTTP client of one call.
#[derive(Debug)]
pub(crate) struct CallHttp {
    access: Access,
    limits: HttpLimits,
    /// What earlier requests learned about names.
    pins: Arc<Pins>,
    /// Never locked across an await.
    ledger: Mutex<Traffic>,
    /// Time spent on removing secrets.
    computing: Computing,
}

/// The traffic of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) requests: u32,
    pub(crate) bytes: u64,
    pub(crate) denied: Vec<Denial>,
}

/// One step of a request through redirects. It contains no secrets: they are filled in for each step.
struct Hop {
    method: String,
    url: Url,
    headers: Vec<(String, String)>,
    body: Bytes,
    /// Whether the body is still sent, and with it its secrets.
    sends_body: bool,
}

impl CallHttp {
    pub(crate) fn new(access: Access, limits: HttpLimits) -> Self {
        Self {
            access,
            limits,
            pins: Arc::default(),
            ledger: Mutex::default(),
            computing: Computing::default(),
        }
    }

    /// Stores the cookies that responses set.
    pub(crate) async fn save_cookies(&self) {
        self.access.accounts.save().await;
    }

    /// Loads the plugin's own cookies.
    pub(crate) async fn load_cookies(&self) {
        let own = self.access.accounts.own();
        own.profile.load(&*own.vault).await;
    }

    pub(crate) fn limits(&self) -> &HttpLimits {
        &self.limits
    }

    /// The time that it spends computing.
    pub(crate) fn computing(&self) -> &Computing {
        &self.computing
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.ledger().clone()
    }

    /// Sends all requests, some concurrently; the results are in their order.
    pub(crate) async fn send_all(&self, requests: Vec<Request>) -> Vec<Result<Response, FetchError>> {
        let sent = requests.into_iter().map(|request| self.send(request));
        stream::iter(sent).buffered(self.limits.in_flight).collect().await
    }

    /// Sends `request` and follows redirects.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, FetchError> {
        if let Some(reason) = &request.invalid {
            return Err(FetchError::Invalid(reason.clone()));
        }
        let url = request
            .url
            .clone()
            .ok_or_else(|| FetchError::Invalid("not a URL".to_owned()))?;
        self.check_size(&request)?;
        let timeout = request
            .timeout
            .unwrap_or(self.limits.timeout)
            .min(self.limits.max_timeout);
        let clock = self.access.clock.of_request();
        clock
            .timeout(timeout, self.fetch(&request, url, &clock))
            .await
            .unwrap_or_else(|TimedOut| Err(FetchError::Network(NetworkError::Timeout)))
    }

    async fn fetch(&self, request: &Request, url: Url, clock: &CallClock) -> Result<Response, FetchError> {
        let accounts = Arc::clone(&self.access.accounts);
        let of_call = (self.access.task.clone(), self.computing.clone());
        let mut unlocked = RequestSecrets::of(request, &url, accounts, of_call).await?;
        let key = self.cache_key(request, &url, &unlocked);
        let cached = key.as_ref().and_then(|key| unlocked.profile().cached(key));
        if let Some(cached) = cached.filter(|cached| self.may_still_reach(&url, cached)) {
            // Counted like a new one: what is kept for each handle takes as much memory.
            let (most, bytes) = (self.reserve(request)?, cached.body.len() as u64);
            if bytes > most {
                return Err(FetchError::Network(NetworkError::TooLarge(most)));
            }
            self.ledger().bytes += bytes;
            return Ok(cached);
        }
        let (answer, url) = self.fetch_with(request, url, &mut unlocked, clock).await?;
        let mut response = Response::new(answer, url);
        // The cookies of an account are its credentials.
        response.shows_cookies = self.access.grants.reads_cookies && request.account.is_none();
        if let Some(key) = key.filter(|_| response.status < 400) {
            unlocked.profile().keep(key, &response, request.cached_for);
        }
        Ok(response)
    }

    /// Sends a request and takes out of its response what the plugin may not read.
    async fn fetch_with(
        &self,
        request: &Request,
        url: Url,
        unlocked: &mut RequestSecrets,
        clock: &CallClock,
    ) -> Result<(Answer, Url), FetchError> {
        let mut hops = vec![url];
        let mut answer = self.follow(request, &mut hops, unlocked, clock).await?;
        let mut url = hops.last().cloned().expect("it began with one");
        if !charset::decode(&mut answer, self.limits.response_bytes, &self.computing).await {
            return Err(FetchError::Network(NetworkError::TooLarge(self.limits.response_bytes)));
        }
        unlocked.withhold_part(&mut answer, &hops).await;
        unlocked.capture(&request.captures, (&answer, &url), &hops).await?;
        unlocked.scrub(&mut answer, &mut url, &hops).await;
        Ok((answer, url))
    }

    /// The cache key, unless the request has secrets: those are always sent.
    fn cache_key(&self, request: &Request, url: &Url, unlocked: &RequestSecrets) -> Option<CacheKey> {
        let is_plain = request.secrets.is_empty() && request.captures.is_empty() && request.follows_redirects;
        let is_cached = request.cached_for > Duration::ZERO && request.method == "GET" && is_plain;
        is_cached.then(|| {
            cache_key(
                url,
                &self.with_site_fields(request.cookies, (url, unlocked.profile()), request.headers.clone()),
            )
        })
    }

    /// Grants may have been revoked since the response was cached.
    fn may_still_reach(&self, url: &Url, cached: &Response) -> bool {
        self.access.grants.check(url).is_ok() && self.access.grants.check(&cached.final_url).is_ok()
    }

    fn check_size(&self, request: &Request) -> Result<(), FetchError> {
        let header_bytes: usize = request
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        let fits = request.body.len() <= self.limits.request_bytes
            && header_bytes <= self.limits.header_bytes
            && request.headers.len() <= self.limits.header_lines;
        fits.then_some(())
            .ok_or_else(|| FetchError::Invalid("the request is larger than plugins may send".to_owned()))
    }

    /// Adds to `hops`, which holds the first, what redirects lead to, and returns the last answer.
    async fn follow(
        &self,
        request: &Request,
        hops: &mut Vec<Url>,
        unlocked: &RequestSecrets,
        clock: &CallClock,
    ) -> Result<Answer, FetchError> {
        let mut hop = Hop {
            method: request.method.clone(),
            url: hops.last().cloned().expect("it begins with one"),
            headers: request.headers.clone(),
            body: request.body.clone(),
            sends_body: true,
        };
        // From HTTPS to HTTP is allowed here: `exchange` checks each hop against the grants, which name scheme and host.
        let mut redirects = Redirects::at_most(self.limits.redirects).with_plain_targets();
        loop {
            let answer = self.exchange(request, (&hop, hops), unlocked, clock).await?;
            let location = location(&answer).filter(|_| request.follows_redirects);
            let Some(location) = location else {
                return Ok(answer);
            };
            let target = match redirects.follow(&hop.url, location) {
                Ok(target) => target,
                Err(Refusal::Unusable(_)) => return Ok(answer),
                Err(Refusal::TooMany(_)) => return Err(FetchError::Invalid("too many redirects".to_owned())),
                Err(Refusal::Scheme(_)) => return Err(self.deny(Denial::UrlNotAllowed)),
                Err(refusal) => return Err(FetchError::Invalid(refusal.to_string())),
            };
            if let Some(name) = unlocked.leaked_by(&target, hops).await {
                // The plugin reads the reason, and the host may be what it should not read.
                let reason = format!("a redirect would carry the secret {name} to a host that it is not for");
                return Err(FetchError::Secret(reason));
            }
            if unlocked.has_secrets() && self.access.grants.check(&target).is_err() {
                return Err(self.deny(Denial::UrlNotAllowed));
            }
            hop = hop.redirected(answer.status, target, request.has_secret_body())?;
            hops.push(hop.url.clone());
        }
    }

    async fn exchange(
        &self,
        request: &Request,
        (hop, hops): (&Hop, &[Url]),
        unlocked: &RequestSecrets,
        clock: &CallClock,
    ) -> Result<Answer, FetchError> {
        let reach = self.access.grants.check(&hop.url).map_err(|denial| self.deny(denial))?;
        let proxy = SafeUrl::parse(hop.url.as_str()).ok();
        let mut exchange = Exchange {
            method: hop.method.clone(),
            url: hop.url.clone(),
            headers: self.with_site_fields(request.cookies, (&hop.url, unlocked.profile()), hop.headers.clone()),
            body: hop.body.clone(),
            reach,
            pins: Arc::clone(&self.pins),
            proxy: proxy.and_then(|url| self.access.proxies.for_url(&url)),
            max_bytes: self.reserve(request)?,
            clock: clock.clone(),
        };
        put_secrets(&mut exchange, request, hop, unlocked)?;
        let started = Instant::now();
        let answer = self.access.network.exchange(exchange).await;
        let mut line = line(hop, &answer, started.elapsed());
        line.address = unlocked.scrubbed(&line.address, hops).await;
        self.access.log.exchanged(line);
        let answer = answer.map_err(FetchError::Network)?;
        self.count(&answer)?;
        unlocked.take_cookies(request, &hop.url, &answer);
        Ok(answer)
    }

    /// Counts a request and returns the limit of its body.
    fn reserve(&self, request: &Request) -> Result<u64, FetchError> {
        if self.computing.is_used_up() {
            return Err(FetchError::TooMuchWork);
        }
        let mut ledger = self.ledger();
        if ledger.requests >= self.limits.requests {
            return Err(FetchError::TooManyRequests);
        }
        ledger.requests += 1;
        let left = self.limits.total_bytes.saturating_sub(ledger.bytes);
        Ok(request
            .max_bytes
            .unwrap_or(u64::MAX)
            .min(self.limits.response_bytes)
            .min(left))
    }

    /// Counts a response. Concurrent responses can exceed the limit together; later requests then fail.
    fn count(&self, answer: &Answer) -> Result<(), FetchError> {
        let mut ledger = self.ledger();
        ledger.bytes += answer.body.len() as u64;
        let header_bytes: usize = answer
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        if header_bytes > self.limits.header_bytes || answer.headers.len() > self.limits.header_lines {
            return Err(FetchError::Network(NetworkError::TooLarge(
                self.limits.header_bytes as u64,
            )));
        }
        Ok(())
    }

    /// Adds the headers for the site of `url`: its cookies, and the user's own for the task.
    fn with_site_fields(
        &self,
        mode: Cookies,
        (url, profile): (&Url, &Profile),
        mut headers: Vec<(String, String)>,
    ) -> Vec<(String, String)> {
        let mut cookies = Vec::new();
        if mode != Cookies::None {
            cookies = profile.cookies_for(url);
        }
        if mode == Cookies::JarAndTask
            && let Some(task) = &self.access.task
        {
            let (of_task, fields) = task.fields_for(url);
            cookies.extend(of_task.map(str::to_owned));
            for (name, value) in fields {
                // The plugin's own headers take precedence.
                if !headers.iter().any(|(known, _)| *known == name) {
                    headers.push((name, value));
                }
            }
        }
        if !cookies.is_empty() {
            headers.push(("cookie".to_owned(), cookies.join("; ")));
        }
        headers
    }

    fn deny(&self, denial: Denial) -> FetchError {
        let mut ledger = self.ledger();
        if !ledger.denied.contains(&denial) {
            ledger.denied.push(denial.clone());
        }
        FetchError::Denied(denial)
    }

    fn ledger(&self) -> MutexGuard<'_, Traffic> {
        self.ledger.lock().expect("nobody panics while holding the ledger")
    }
}

impl Hop {
    /// The next step. Another origin gets neither credentials nor a body.
    fn redirected(self, status: u16, url: Url, has_secret_form: bool) -> Result<Self, FetchError> {
        let keeps_method = matches!(status, 307 | 308) || matches!(self.method.as_str(), "GET" | "HEAD");
        let crosses = self.url.origin() != url.origin();
        let has_body = self.sends_body && (has_secret_form || !self.body.is_empty());
        if keeps_method && crosses && has_body {
            let reason = "a redirect would send the body to another origin";
            return Err(FetchError::Invalid(reason.to_owned()));
        }
        let (method, body) = if keeps_method {
            (self.method, self.body)
        } else {
            ("GET".to_owned(), Bytes::new())
        };
        let stays = |name: &str| !crosses || header::crosses_origins(name);
        let fits = |name: &str| keeps_method || name != "content-type";
        let headers = self.headers.into_iter().filter(|(name, _)| stays(name) && fits(name));
        Ok(Self {
            method,
            url,
            headers: headers.collect(),
            body,
            sends_body: self.sends_body && keeps_method,
        })
    }
}

/// Fills the secrets of a request into one step, if they may be sent there.
fn put_secrets(
    exchange: &mut Exchange,
    request: &Request,
    hop: &Hop,
    unlocked: &RequestSecrets,
) -> Result<(), FetchError> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (place, name, value) in unlocked.fill(&request.secrets, &hop.url) {
        let value = value.expose();
        match place {
            SecretPosition::Header if !header::is_value(value) => {
                return Err(FetchError::Invalid(format!(
                    "the secret for the field {name} cannot be sent"
                )));
            }
            SecretPosition::Header => {
                exchange.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
                exchange.headers.push((name.to_ascii_lowercase(), value.to_owned()));
            }
            // Only the first step: a redirect has a URL of its own.
            SecretPosition::Query if Some(&hop.url) == request.url.as_ref() => {
                exchange.url.query_pairs_mut().append_pair(&name, value);
            }
            SecretPosition::Form if hop.sends_body => drop(form.append_pair(&name, value)),
            SecretPosition::Json if hop.sends_body => {
                exchange.body = with_json(&exchange.body, &name, value)?;
            }
            SecretPosition::Query | SecretPosition::Form | SecretPosition::Json => {}
        }
    }
    let form = form.finish();
    if !form.is_empty() {
        let before = String::from_utf8_lossy(&exchange.body);
        let parts = [&*before, &form].into_iter().filter(|part| !part.is_empty());
        exchange.body = parts.collect::<Vec<_>>().join("&").into();
    }
    Ok(())
}

/// The longest JSON pointer of a secret, and its most steps: objects are made for them, and what reads them recurses.
const MAX_POINTER_BYTES: usize = 1024;
const MAX_POINTER_STEPS: usize = 64;

/// A JSON body with a text at a pointer. Objects on the way there are made.
fn with_json(body: &[u8], pointer: &str, text: &str) -> Result<Bytes, FetchError> {
    let invalid = |reason: String| FetchError::Invalid(reason);
    let mut json: Value = if body.is_empty() {
        Value::Object(Map::new())
    } else {
        serde_json::from_slice(body).map_err(|error| invalid(format!("the body is no JSON: {error}")))?
    };
    let mut place = &mut json;
    if pointer.len() > MAX_POINTER_BYTES || pointer.split('/').count() > MAX_POINTER_STEPS {
        let limits = format!("{MAX_POINTER_BYTES} bytes and {MAX_POINTER_STEPS} steps");
        return Err(invalid(format!("a JSON pointer has at most {limits}")));
    }
    let steps = pointer
        .strip_prefix('/')
        .ok_or_else(|| invalid(format!("{pointer} is no JSON pointer")))?;
    for step in steps.split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let next = match place {
            Value::Object(object) => Some(object.entry(step).or_insert(Value::Null)),
            Value::Array(elements) => step.parse().ok().and_then(|at: usize| elements.get_mut(at)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        place = next.ok_or_else(|| invalid(format!("the body has no place for {pointer}")))?;
    }
    *place = Value::String(text.to_owned());
    Ok(json.to_string().into())
}

/// The journal line of a request, without query, headers and body, and without the parameters of its path: servers put
/// sessions there (`;jsessionid=`).
fn line(hop: &Hop, answer: &Result<Answer, NetworkError>, elapsed: Duration) -> RequestLine {
    let mut address = hop.url.clone();
    let _no_password_to_remove = address.set_password(None);
    let _no_user_to_remove = address.set_username("");
    address.set_query(None);
    address.set_fragment(None);
    let segments = address.path().split('/');
    let segments = segments.map(|segment| segment.split_once(';').map_or(segment, |(name, _)| name));
    let path = segments.collect::<Vec<_>>().join("/");
    address.set_path(&path);
    RequestLine {
        method: hop.method.clone(),
        address: address.into(),
        status: answer.as_ref().ok().map(|answer| answer.status),
        received_bytes: answer.as_ref().map_or(0, |answer| answer.body.len() as u64),
        elapsed,
    }
}

/// The target of a redirect.
fn location(answer: &Answer) -> Option<&str> {
    let mut headers = answer.headers.iter();
    let found = headers.find(|(name, _)| name.eq_ignore_ascii_case("location"));
    found
        .map(|(_, value)| value.as_str())
        .filter(|_| Redirects::is_redirect(answer.status))
}

#[cfg(test)]
mod tests;
