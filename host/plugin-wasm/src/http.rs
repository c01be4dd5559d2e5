//! The network as plugins see it: requests through the host only, to granted hosts only, every hop checked.

pub(crate) mod account;
pub(crate) mod call_http;
mod charset;
mod computing;
pub(crate) mod header;
pub(crate) mod network;
mod pace;
pub(crate) mod profile;
pub(crate) mod secret;
mod sizes;
mod task_site;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugin_host::{Denial, METHODS};
use url::Url;

pub use account::Profiles;
pub use network::{Answer, Exchange, Exchanged, Internet, InternetConfig, InternetError, Network, NetworkError};
pub(crate) use pace::{CONNECTIONS, PER_SECOND};
pub use profile::Profile;
pub use task_site::TaskSite;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FetchError {
    /// The host, or one that a redirect leads to, was not granted.
    Denied(Denial),
    /// A secret may not be sent to the host.
    Secret(String),
    /// Nobody is logged in to the account of this slot.
    LoginRequired(String),
    TooManyRequests,
    /// The host has computed for the plugin longer than the call may.
    TooMuchWork,
    /// The request or a redirect is invalid.
    Invalid(String),
    Network(NetworkError),
}

/// A request built by a plugin. Errors are reported when it is sent, because the functions that build it return
/// nothing.
#[derive(Debug, Clone)]
#[expect(unreachable_pub, reason = "the generated bindings hand it on as public")]
pub struct Request {
    pub(crate) method: String,
    pub(crate) url: Option<Url>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) follows_redirects: bool,
    pub(crate) cookies: Cookies,
    /// The slot of the account whose secrets and cookies it uses, instead of the plugin's own.
    pub(crate) account: Option<String>,
    /// How long its response may be reused.
    pub(crate) cached_for: Duration,
    pub(crate) secrets: Vec<secret::Field>,
    pub(crate) captures: Vec<secret::Capture>,
    pub(crate) invalid: Option<String>,
    /// The size of all its parts except the body.
    parts: usize,
}

/// Which cookies are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cookies {
    /// None, and none are stored.
    None,
    /// Those that sites set in this and earlier calls.
    Jar,
    /// Those, and the user's own for the task's site.
    JarAndTask,
}

/// A response with its complete body.
#[derive(Debug, Clone)]
#[expect(unreachable_pub, reason = "the generated bindings hand it on as public")]
pub struct Response {
    pub(crate) status: u16,
    pub(crate) final_url: Url,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// How much of the body has been read.
    pub(crate) position: usize,
    /// Whether the plugin may read which cookies are set.
    pub(crate) shows_cookies: bool,
    /// The decoded body, cached.
    text: Option<Arc<str>>,
}

impl Request {
    pub(crate) fn new(method: &str, url: &str) -> Self {
        let mut request = Self {
            method: method.to_ascii_uppercase(),
            url: Url::parse(url).ok(),
            headers: Vec::new(),
            body: Bytes::new(),
            timeout: None,
            max_bytes: None,
            follows_redirects: true,
            cookies: Cookies::Jar,
            account: None,
            cached_for: Duration::ZERO,
            secrets: Vec::new(),
            captures: Vec::new(),
            invalid: None,
            parts: 0,
        };
        if !METHODS.contains(&request.method.as_str()) {
            request.reject("the method is not one that plugins may use");
        }
        if request.url.is_none() {
            request.reject("not a URL");
        }
        request
    }

    /// Records an error; the first one counts.
    pub(crate) fn reject(&mut self, reason: impl Into<String>) {
        self.invalid.get_or_insert_with(|| reason.into());
    }

    /// Adds to its size; returns whether the limit allows it.
    pub(crate) fn grows_by(&mut self, bytes: usize, limit: usize) -> bool {
        self.parts = self.parts.saturating_add(bytes);
        let fits = self.parts <= limit;
        if !fits {
            self.reject("the request is longer than plugins may send");
        }
        fits
    }

    pub(crate) fn set_header(&mut self, name: &str, value: &str) {
        if !header::guest_may_send(name) {
            self.reject(format!("the field {name} is not for plugins to set"));
        } else if !header::is_value(value) {
            self.reject(format!("the value of {name} cannot be sent"));
        } else {
            self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }

    pub(crate) fn add_query(&mut self, name: &str, value: &str) {
        if let Some(url) = &mut self.url {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
}

impl Response {
    pub(crate) fn new(answer: Answer, final_url: Url) -> Self {
        Self {
            status: answer.status,
            final_url,
            headers: answer.headers,
            body: answer.body,
            position: 0,
            shows_cookies: false,
            text: None,
        }
    }

    /// Drops what it holds: it has neither headers nor a body afterwards.
    pub(crate) fn empty(&mut self) {
        self.headers = Vec::new();
        self.body = Bytes::new();
        self.position = 0;
        self.text = None;
    }

    /// The values of all fields of this name that a plugin may read.
    pub(crate) fn header_all(&self, name: &str) -> Vec<String> {
        let readable = self
            .headers
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name));
        readable
            .filter(|(other, _)| self.shows_cookies || header::guest_may_read(other))
            .map(|(_, value)| value.clone())
            .collect()
    }

    /// The next bytes of the body, at most `max`; empty at its end.
    pub(crate) fn read(&mut self, max: usize) -> Bytes {
        let end = self.body.len().min(self.position.saturating_add(max));
        let piece = self.body.slice(self.position..end);
        self.position = end;
        piece
    }

    /// The body as text. It is UTF-8, because bodies in other encodings are decoded before secrets are searched for.
    pub(crate) fn text(&mut self) -> Arc<str> {
        if let Some(text) = &self.text {
            return text.clone();
        }
        let (text, _) = encoding_rs::UTF_8.decode_with_bom_removal(&self.body);
        let text: Arc<str> = text.into();
        self.text = Some(text.clone());
        text
    }
}
