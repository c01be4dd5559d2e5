//! Requests through the host. It knows which hosts the plugin may reach, follows redirects, keeps cookies and limits
//! everything; see [`get`].

use std::time::Duration;

use crate::{
    Error, Result,
    host::http::{self as host, HttpError},
    text::Node,
};

/// A GET request.
///
/// ```
/// use svc_plugin::{http, test};
///
/// let host = test::Host::new().page("https://example.org/api?id=7", test::Page::json(r#"{"name": "a.zip"}"#));
/// let name = host.run(|| http::get("https://example.org/api").query("id", "7").send()?.string("/name"));
/// assert_eq!(name, Ok("a.zip".to_owned()));
/// ```
pub fn get(url: impl AsRef<str>) -> Request {
    Request::new("GET", url)
}

/// A POST request.
pub fn post(url: impl AsRef<str>) -> Request {
    Request::new("POST", url)
}

/// Sends all of them side by side. The results are in the order of the requests.
pub fn send_all(requests: impl IntoIterator<Item = Request>) -> Vec<Result<Response>> {
    let (requests, slots): (Vec<_>, Vec<_>) = requests
        .into_iter()
        .map(|request| (request.inner, request.slot))
        .unzip();
    let results = host::send_all(requests).into_iter().zip(slots);
    results
        .map(|(result, slot)| Response { inner: result?, slot }.successful())
        .collect()
}

/// A request before it is sent.
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    inner: host::Request,
    /// The slot of its account, which an answer of 401 is about.
    slot: Option<String>,
}

impl Request {
    /// A request with any method.
    pub fn new(method: &str, url: impl AsRef<str>) -> Self {
        Self {
            inner: host::Request::new(method, url.as_ref()),
            slot: None,
        }
    }

    /// Sends it as the account of this slot: with its cookies, and templates have its secrets. What it captures becomes the
    /// account's. Without it, both are those of the plugin itself.
    pub fn account(mut self, slot: &str) -> Self {
        self.inner.account(slot);
        self.slot = Some(slot.to_owned());
        self
    }

    /// Sets a header field.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.inner.header(name, value);
        self
    }

    /// Sets a header field to a text with a secret in it, such as `Bearer {token}`: the host fills it in, and only
    /// for hosts that the manifest binds it to. The plugin never sees it.
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// let host = test::Host::new().page("https://example.org/", test::Page::json("{}"));
    /// host.run(|| http::get("https://example.org/").secret_header("Authorization", "Bearer {token}").send()).unwrap();
    /// assert_eq!(host.sent()[0].headers, [("authorization".to_owned(), "Bearer {token}".to_owned())]);
    /// ```
    pub fn secret_header(self, name: &str, template: &str) -> Self {
        self.inner.secret_header(name, template);
        self
    }

    /// Adds a parameter with a secret in it to the URL, as [`Request::secret_header`] does.
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// let host = test::Host::new().page("https://example.org/?key=‹secret:token›", test::Page::json("{}"));
    /// host.run(|| http::get("https://example.org/").secret_query("key", "{token}").send()).unwrap();
    /// ```
    pub fn secret_query(self, name: &str, template: &str) -> Self {
        self.inner.secret_query(name, template);
        self
    }

    /// Adds a field with a secret in it to the form that is the body, as [`Request::secret_header`] does. It is sent after
    /// those of [`Request::form`].
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// let host = test::Host::new().page("https://example.org/login", test::Page::json("{}"));
    /// let request = || http::post("https://example.org/login").form([("user", "ann")]).secret_form("password", "{password}");
    /// host.run(|| request().send()).unwrap();
    /// assert_eq!(host.sent()[0].body, "user=ann&password=‹secret:password›".as_bytes());
    /// ```
    pub fn secret_form(self, name: &str, template: &str) -> Self {
        self.inner.secret_form(name, template);
        self
    }

    /// Sets the string at a pointer (RFC 6901) of the JSON that is the body to a text with a secret in it, as
    /// [`Request::secret_header`] does. Without a body it begins with an empty object; objects on the way there are added.
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// let host = test::Host::new().page("https://example.org/login", test::Page::json("{}"));
    /// let request = || {
    ///     let request = http::post("https://example.org/login").text(r#"{"user":"ann"}"#, "application/json");
    ///     request.secret_json("/proof/password", "{password}")
    /// };
    /// host.run(|| request().send()).unwrap();
    /// assert_eq!(host.sent()[0].body, r#"{"proof":{"password":"‹secret:password›"},"user":"ann"}"#.as_bytes());
    /// ```
    pub fn secret_json(self, pointer: &str, template: &str) -> Self {
        self.inner.secret_json(pointer, template);
        self
    }

    /// Keeps the text or number at a pointer of the response's JSON as the secret `name`: what the plugin reads there is
    /// `‹secret:name›`. A value that is not there is not kept, and a secret of that name stays as it is. Values have 4 to
    /// 4096 bytes.
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// let host = test::Host::new().page("https://example.org/token", test::Page::json(r#"{"access": "abcdef"}"#));
    /// let request = || http::post("https://example.org/token").account("main").capture_json("/access", "access");
    /// let answer = host.run(|| request().send()?.string("/access"));
    /// assert_eq!(answer.as_deref(), Ok("‹secret:access›"));
    /// assert_eq!(host.secrets("main"), ["access"]);
    /// ```
    pub fn capture_json(self, pointer: &str, name: &str) -> Self {
        self.inner.capture_json(pointer, name);
        self
    }

    /// Keeps the value of a field of the response as the secret `name`, as [`Request::capture_json`] does.
    pub fn capture_header(self, field: &str, name: &str) -> Self {
        self.inner.capture_header(field, name);
        self
    }

    /// Keeps the value of a cookie that the site sets, also on the way through redirects, as the secret `name`. Only for
    /// what needs its value elsewhere: the jar of the account keeps and sends cookies without it.
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// let page = test::Page::html("").header("Set-Cookie", "session=abcdef; HttpOnly");
    /// let host = test::Host::new().page("https://example.org/", page);
    /// host.run(|| http::get("https://example.org/").capture_cookie("session", "session").send()).unwrap();
    /// assert_eq!(host.secrets(""), ["session"]);
    /// ```
    pub fn capture_cookie(self, cookie: &str, name: &str) -> Self {
        self.inner.capture_cookie(cookie, name);
        self
    }

    /// Keeps the value of a field of the page's form as the secret `name`: that of the first element that the selector
    /// selects (an `input`, a `textarea`, or a `meta` with its `content`).
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// let page = test::Page::html("<form><input type=hidden name=csrf value=abcdef></form>");
    /// let host = test::Host::new().page("https://example.org/login", page);
    /// let request = || http::get("https://example.org/login").capture_form("input[name=csrf]", "csrf");
    /// let inputs = host.run(|| request().send()?.select("input")).unwrap();
    /// assert_eq!(inputs[0].attribute("value"), Some("‹secret:csrf›"));
    /// ```
    pub fn capture_form(self, css: &str, name: &str) -> Self {
        self.inner.capture_form(css, name);
        self
    }

    /// Adds a parameter to the URL.
    pub fn query(self, name: &str, value: &str) -> Self {
        self.inner.query(name, value);
        self
    }

    /// Sets the body to these bytes, without a content type.
    pub fn bytes(self, body: &[u8]) -> Self {
        self.inner.body_bytes(body);
        self
    }

    /// Sets the body to this text, and its content type.
    pub fn text(self, body: &str, content_type: &str) -> Self {
        self.inner.body_text(body, content_type);
        self
    }

    /// Sets the body to a form (`application/x-www-form-urlencoded`).
    pub fn form<'a>(self, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let fields: Vec<_> = fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        self.inner.body_form(&fields);
        self
    }

    /// Fails with [`Error::Network`] after this time: 10 s unless set, 30 s at most.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.inner
            .timeout_ms(u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Fails with [`Error::Internal`] if the body is longer; the host's own limit is 8 MiB.
    pub fn max_bytes(self, bytes: u32) -> Self {
        self.inner.max_bytes(bytes);
        self
    }

    /// Returns a redirect as the response instead of following it.
    pub fn no_redirects(self) -> Self {
        self.inner.redirects(host::Redirects::Manual);
        self
    }

    /// Sends and keeps no cookies.
    pub fn no_cookies(self) -> Self {
        self.inner.cookies(host::Cookies::None);
        self
    }

    /// Sends the cookies that the user gave for the task, too, if the host is the task's own. The plugin does not see
    /// them.
    pub fn task_cookies(self) -> Self {
        self.inner.cookies(host::Cookies::JarAndTask);
        self
    }

    /// Requests the bytes from `first` to `last`, both included; without `last`, to the end.
    pub fn range(self, first: u64, last: Option<u64>) -> Self {
        self.inner.range(first, last);
        self
    }

    /// Lets the host answer later calls that send the same request from memory, for this time.
    pub fn cached(self, lifetime: Duration) -> Self {
        self.inner
            .cache_seconds(u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX));
        self
    }

    /// Sends the request. A status that is no success is an error: 401 becomes [`Error::LoginRequired`] (of the slot of
    /// [`Request::account`]), 404 [`Error::NotFound`], 429 [`Error::RateLimited`], and so on.
    pub fn send(self) -> Result<Response> {
        self.send_any()?.successful()
    }

    /// Sends the request; every status is a response.
    pub fn send_any(self) -> Result<Response> {
        Ok(Response {
            inner: host::send(self.inner)?,
            slot: self.slot,
        })
    }
}

/// A response. Its body stays with the host, which searches it; only what is found comes into the plugin.
#[derive(Debug)]
pub struct Response {
    inner: host::Response,
    slot: Option<String>,
}

impl Response {
    /// The response if its status is a success, else the error that [`Request::send`] makes of it: for those who look at
    /// some statuses themselves.
    pub fn successful(self) -> Result<Self> {
        let status = self.status();
        if (200..400).contains(&status) {
            return Ok(self);
        }
        let retry_after = self.header("retry-after").and_then(|seconds| seconds.parse().ok());
        Err(match Error::of_status(status, retry_after) {
            Error::LoginRequired(_) => Error::LoginRequired(self.slot),
            error => error,
        })
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.inner.status()
    }

    /// The URL that the response is from, after redirects.
    pub fn url(&self) -> String {
        self.inner.final_url()
    }

    /// The first field of this name. `Set-Cookie` is never shown.
    pub fn header(&self, name: &str) -> Option<String> {
        self.inner.header(name)
    }

    /// The whole body as text.
    pub fn text(&self) -> Result<String> {
        Ok(self.inner.text()?)
    }

    /// The whole body.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let piece = self.inner.read(PIECE_BYTES)?;
            if piece.is_empty() {
                return Ok(bytes);
            }
            bytes.extend(piece);
        }
    }

    /// The elements of the page that a CSS selector selects.
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// let host = test::Host::new().page("https://example.org/", test::Page::html("<a href=a.zip>A &amp; B</a>"));
    /// let links = host.run(|| http::get("https://example.org/").send()?.select("a[href$='.zip']")).unwrap();
    /// assert_eq!((links[0].text.as_str(), links[0].attribute("href")), ("A & B", Some("a.zip")));
    /// ```
    pub fn select(&self, css: &str) -> Result<Vec<Node>> {
        let nodes = self.inner.select(css).map_err(unreadable)?;
        Ok(nodes.into_iter().map(Node::from).collect())
    }

    /// The text of a group of a regular expression in each match; group 0 is the whole match.
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// let host = test::Host::new().page("https://example.org/", test::Page::html("<script>var id = 'a7';</script>"));
    /// let ids = host.run(|| http::get("https://example.org/").send()?.regex("id = '([^']+)'", 1));
    /// assert_eq!(ids.unwrap(), ["a7"]);
    /// ```
    pub fn regex(&self, pattern: &str, group: u32) -> Result<Vec<String>> {
        self.inner.regex(pattern, group).map_err(unreadable)
    }

    /// The JSON text that a pointer (RFC 6901) leads to.
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// let host = test::Host::new().page("https://example.org/", test::Page::json(r#"{"a": [{"b": true}]}"#));
    /// let page = host.run(|| http::get("https://example.org/").send()).unwrap();
    /// assert_eq!(host.run(|| page.raw_json("/a/0/b")).unwrap().as_deref(), Some("true"));
    /// assert_eq!(host.run(|| page.raw_json("/a/1")).unwrap(), None);
    /// ```
    pub fn raw_json(&self, pointer: &str) -> Result<Option<String>> {
        self.inner.json(pointer).map_err(unreadable)
    }

    /// The string that a pointer leads to. Needs no serde.
    pub fn string(&self, pointer: &str) -> Result<String> {
        let raw = self.raw_json(pointer)?.ok_or_else(|| missing(pointer))?;
        crate::json::string(&raw).ok_or_else(|| Error::Parse(format!("{pointer} is not a string")))
    }

    /// The number that a pointer leads to. Needs no serde.
    pub fn number(&self, pointer: &str) -> Result<u64> {
        let raw = self.raw_json(pointer)?.ok_or_else(|| missing(pointer))?;
        raw.trim()
            .parse()
            .map_err(|_| Error::Parse(format!("{pointer} is not a whole number")))
    }

    /// The value that a pointer leads to.
    ///
    /// ```
    /// use svc_plugin::{http, test};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct File { name: String, size: u64 }
    ///
    /// let host = test::Host::new().page("https://example.org/", test::Page::json(r#"{"files": [{"name": "a", "size": 5}]}"#));
    /// let files = host.run(|| http::get("https://example.org/").send()?.json::<Vec<File>>("/files")).unwrap();
    /// assert_eq!((files[0].name.as_str(), files[0].size), ("a", 5));
    /// ```
    #[cfg(feature = "serde")]
    pub fn json<T: serde::de::DeserializeOwned>(&self, pointer: &str) -> Result<T> {
        let raw = self.raw_json(pointer)?.ok_or_else(|| missing(pointer))?;
        Ok(serde_json::from_str(&raw)?)
    }
}

/// How much of a body crosses into the sandbox at once: small beside a plugin's 64 MiB of memory.
const PIECE_BYTES: u32 = 256 * 1024;

fn missing(pointer: &str) -> Error {
    Error::Parse(format!("there is no {pointer}"))
}

/// A body that cannot be searched means that the site has changed, which the host counts.
fn unreadable(error: HttpError) -> Error {
    match error {
        HttpError::Invalid(reason) => Error::Parse(reason),
        error => error.into(),
    }
}
