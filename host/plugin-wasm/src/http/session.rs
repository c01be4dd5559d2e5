//! The requests of one call: grants, redirects, cookies and limits, over whatever [`Network`] there is.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use bytes::Bytes;
use cookie_store::CookieStore;
use futures_util::{StreamExt as _, stream};
use plugin_host::{Denial, Grants};
use url::Url;

use super::{Answer, Cookies, Exchange, Network, NetworkError, Request, Response, header};
use crate::{call::TaskCookies, limits::HttpLimits};

/// Why a request got no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FetchError {
    /// The host, or one that a redirect leads to, was not granted.
    Denied(Denial),
    /// The call has made all the requests it may make.
    TooManyRequests,
    /// The request cannot be sent, or the redirects lead nowhere.
    Invalid(String),
    /// The network failed.
    Network(NetworkError),
}

/// What one call does over the network.
#[derive(Debug)]
pub(crate) struct Session {
    network: Arc<dyn Network>,
    grants: Grants,
    limits: HttpLimits,
    task_cookies: Option<TaskCookies>,
    /// A lock, because requests of one call run side by side; it is never held while waiting.
    ledger: Mutex<Ledger>,
}

/// What the requests of a call share.
#[derive(Debug, Default)]
struct Ledger {
    requests: u32,
    bytes: u64,
    jar: CookieStore,
    cached: HashMap<CacheKey, Response>,
    denied: Vec<Denial>,
}

type CacheKey = (Url, Vec<(String, String)>);

/// What a call did over the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) requests: u32,
    pub(crate) bytes: u64,
    pub(crate) denied: Vec<Denial>,
}

/// One step of a request on its way through redirects.
struct Hop {
    method: String,
    url: Url,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Session {
    pub(crate) fn new(
        network: Arc<dyn Network>,
        grants: Grants,
        limits: HttpLimits,
        task_cookies: Option<TaskCookies>,
    ) -> Self {
        Self {
            network,
            grants,
            limits,
            task_cookies,
            ledger: Mutex::default(),
        }
    }

    pub(crate) fn limits(&self) -> &HttpLimits {
        &self.limits
    }

    pub(crate) fn traffic(&self) -> Traffic {
        let ledger = self.ledger();
        Traffic {
            requests: ledger.requests,
            bytes: ledger.bytes,
            denied: ledger.denied.clone(),
        }
    }

    /// Sends all of them, some at a time; the results are in the order of the requests.
    pub(crate) async fn send_all(&self, requests: Vec<Request>) -> Vec<Result<Response, FetchError>> {
        let sent = requests.into_iter().map(|request| self.send(request));
        stream::iter(sent).buffered(self.limits.in_flight).collect().await
    }

    /// Sends `request` and follows where it leads.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, FetchError> {
        if let Some(reason) = &request.invalid {
            return Err(FetchError::Invalid(reason.clone()));
        }
        let url = request
            .url
            .clone()
            .ok_or_else(|| FetchError::Invalid("not a URL".to_owned()))?;
        self.check_size(&request)?;
        let key = (request.is_cached && request.method == "GET").then(|| (url.clone(), request.headers.clone()));
        if let Some(cached) = key.as_ref().and_then(|key| self.ledger().cached.get(key).cloned()) {
            return Ok(cached);
        }
        let timeout = request
            .timeout
            .unwrap_or(self.limits.timeout)
            .min(self.limits.max_timeout);
        let response = tokio::time::timeout(timeout, self.follow(&request, url))
            .await
            .unwrap_or(Err(FetchError::Network(NetworkError::Timeout)))?;
        if let Some(key) = key {
            self.ledger().cached.insert(key, response.clone());
        }
        Ok(response)
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

    async fn follow(&self, request: &Request, url: Url) -> Result<Response, FetchError> {
        let mut hop = Hop {
            method: request.method.clone(),
            url,
            headers: request.headers.clone(),
            body: request.body.clone(),
        };
        let mut redirects = 0;
        loop {
            let answer = self.exchange(request, &hop).await?;
            let target = request
                .follows_redirects
                .then(|| redirect_target(&answer, &hop.url))
                .flatten();
            let Some(target) = target else {
                return Ok(Response::new(answer, hop.url));
            };
            redirects += 1;
            if redirects > self.limits.redirects {
                return Err(FetchError::Invalid("too many redirects".to_owned()));
            }
            hop = hop.redirected(answer.status, target)?;
        }
    }

    async fn exchange(&self, request: &Request, hop: &Hop) -> Result<Answer, FetchError> {
        let reach = self.grants.check(&hop.url).map_err(|denial| self.deny(denial))?;
        let max_bytes = self.reserve(request)?;
        let exchange = Exchange {
            method: hop.method.clone(),
            url: hop.url.clone(),
            headers: self.with_cookies(request.cookies, hop),
            body: hop.body.clone(),
            reach,
            max_bytes,
        };
        let answer = self.network.exchange(exchange).await.map_err(FetchError::Network)?;
        self.account(request, &hop.url, &answer)?;
        Ok(answer)
    }

    /// Counts a request, and tells how long its answer may be.
    fn reserve(&self, request: &Request) -> Result<u64, FetchError> {
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

    /// Takes note of an answer. Answers on their way at the same time can together pass the limit; the next ones then
    /// get nothing.
    fn account(&self, request: &Request, url: &Url, answer: &Answer) -> Result<(), FetchError> {
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
        if request.cookies != Cookies::None {
            let fields = answer
                .headers
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
            for (_, cookie) in fields {
                // A cookie that the jar refuses (another domain, malformed) is one the site may not set.
                let _ = ledger.jar.parse(cookie, url);
            }
        }
        Ok(())
    }

    fn with_cookies(&self, cookies: Cookies, hop: &Hop) -> Vec<(String, String)> {
        let mut values = Vec::new();
        if cookies != Cookies::None {
            let ledger = self.ledger();
            values.extend(
                ledger
                    .jar
                    .get_request_values(&hop.url)
                    .map(|(name, value)| format!("{name}={value}")),
            );
        }
        if cookies == Cookies::JarAndTask {
            let task = self.task_cookies.as_ref().filter(|task| task.belong_to(&hop.url));
            values.extend(task.map(|task| task.value().to_owned()));
        }
        let mut headers = hop.headers.clone();
        if !values.is_empty() {
            headers.push(("cookie".to_owned(), values.join("; ")));
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

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("nobody panics while holding the ledger")
    }
}

impl Hop {
    /// The next step. Another origin gets neither credentials nor a body.
    fn redirected(self, status: u16, url: Url) -> Result<Self, FetchError> {
        let keeps_method = matches!(status, 307 | 308) || matches!(self.method.as_str(), "GET" | "HEAD");
        let crosses = self.url.origin() != url.origin();
        if keeps_method && crosses && !self.body.is_empty() {
            let reason = "a redirect would send the body to another origin";
            return Err(FetchError::Invalid(reason.to_owned()));
        }
        let (method, body) = if keeps_method {
            (self.method, self.body)
        } else {
            ("GET".to_owned(), Bytes::new())
        };
        let stays = |name: &str| !crosses || header::crosses_origins(name);
        let has_body = keeps_method;
        let fits = |name: &str| has_body || name != "content-type";
        let headers = self.headers.into_iter().filter(|(name, _)| stays(name) && fits(name));
        Ok(Self {
            method,
            url,
            headers: headers.collect(),
            body,
        })
    }
}

fn redirect_target(answer: &Answer, from: &Url) -> Option<Url> {
    if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = answer
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("location"));
    let mut target = from.join(&location?.1).ok()?;
    if target.fragment().is_none() {
        target.set_fragment(from.fragment());
    }
    Some(target)
}

#[cfg(test)]
mod tests;
