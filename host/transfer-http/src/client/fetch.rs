//! Requests a file: builds the request from the user's options, follows redirects by our own rules, and sends secrets
//! only to the origin that they belong to.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    rc::Rc,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use cookie_store::{CookieStore, RawCookie};
use egress::{
    Pins, Redirects, Refusal,
    digest::{Challenge, Session},
    reach,
    route::not_reachable,
};
use transfer::{
    Cookie, Credentials, Failure, RequestBody, SafeUrl, Source,
    failure::FailureKind,
    source::{is_harmless_header, referrer},
    text::decode_guessing,
};

use crate::client::{
    connect::{Key, Route},
    connection::Connection,
    exchange::Response,
    head::{RequestHead, ResponseHead},
    shared::Shared,
};

/// As many as browsers follow.
const MAX_REDIRECTS: u32 = 20;

/// Cookies that are kept per origin for a run, and the longest one with its attributes, in bytes. Browsers keep 50 to 180 of
/// 4 KiB.
const MAX_COOKIES: usize = 300;
const MAX_COOKIE_BYTES: usize = 4096;

/// How often one request is sent again with an answer to a challenge: of a proxy, of the server, and of each because its
/// nonce has expired.
const MAX_ANSWERS: u32 = 4;

/// User headers that are ignored because the client sets them: framing, routing, ranges and codings.
const MANAGED_HEADERS: [&str; 15] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "if-match",
    "if-range",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A range to request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeWish {
    /// First byte.
    pub(crate) start: u64,
    /// One past the last byte; `None` is the end of the file.
    pub(crate) end: Option<u64>,
    /// The validator that the file must still have; otherwise the server sends the whole new file (RFC 9110, section
    /// 13.1.5).
    pub(crate) if_range: Option<String>,
}

/// A final response and its URL.
pub(crate) struct Fetched {
    pub(crate) response: Response,
    pub(crate) url: SafeUrl,
}

/// Sends the requests of one file. They share resolved names, and requests that start at the same origin share the
/// cookies set along the way; mirrors of other origins have their own.
pub(crate) struct Fetcher {
    shared: Arc<Shared>,
    source: Rc<Source>,
    /// The origin that the source's secrets belong to.
    owner: String,
    /// By the origin where a request starts.
    cookies: RefCell<HashMap<String, CookieStore>>,
    /// Challenges that are answered, by the origin that made them.
    digests: RefCell<HashMap<String, Session>>,
    /// The proxy's.
    proxy_digest: RefCell<Option<Session>>,
    pins: Pins,
}

impl Fetcher {
    /// Validates everything that goes into a request, before any is sent.
    pub(crate) fn new(shared: Arc<Shared>, source: Rc<Source>) -> Result<Self, Failure> {
        let invalid = |what: String| Failure::new(FailureKind::InvalidSource, what);
        let options = &source.request;
        for (name, value) in &options.headers {
            if name.is_empty() || !name.bytes().all(is_token_byte) {
                return Err(invalid(format!("\"{}\" is no header name", name.escape_default())));
            }
            check_value(name, value.expose())?;
        }
        check_value("cookies", options.cookies.expose())?;
        check_value("referrer", &options.referrer)?;
        check_value("user agent", &options.user_agent)?;
        if let Some(method) = &options.method
            && (method.is_empty() || !method.bytes().all(is_token_byte))
        {
            return Err(invalid(format!("\"{}\" is no HTTP method", method.escape_default())));
        }
        if let Some(RequestBody::Raw {
            content_type: Some(content_type),
            ..
        }) = &options.body
        {
            check_value("content type", content_type)?;
        }
        if let Some(proxy) = &source.proxy {
            transfer::proxy::check(proxy).map_err(|unusable| invalid(unusable.to_string()))?;
        }
        Ok(Self {
            owner: source.urls[0].origin(),
            shared,
            source,
            cookies: RefCell::default(),
            digests: RefCell::default(),
            proxy_digest: RefCell::default(),
            pins: Pins::default(),
        })
    }

    /// Whether requests can be repeated, in parts and in parallel: a plain GET.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.source.request.body.is_none()
            && self
                .source
                .request
                .method
                .as_deref()
                .is_none_or(|method| method.eq_ignore_ascii_case("GET"))
    }

    /// Requests the file at `url`, or a range of it, and follows redirects. `home` is the source's own URL that
    /// redirected to `url` earlier: origin and target of a request together decide whether it carries secrets.
    pub(crate) async fn fetch(
        &self,
        home: &SafeUrl,
        url: &SafeUrl,
        wish: Option<&RangeWish>,
    ) -> Result<Fetched, Failure> {
        let mut url = url.clone();
        let mut method = self
            .source
            .request
            .method
            .clone()
            .unwrap_or_else(|| "GET".to_owned())
            .to_ascii_uppercase();
        let mut has_body = self.source.request.body.is_some();
        let mut redirects = Redirects::at_most(MAX_REDIRECTS);
        loop {
            let cookies = self.cookie_header(home, &url);
            redirects
                .visit(format!("{method} {}\n{cookies}", url.expose()))
                .map_err(|refusal| not_followed(&url, None, &refusal))?;
            let route = self.route(home, &url);
            route
                .reach
                .check(url.as_url())
                .map_err(|forbidden| not_reachable(&forbidden))?;
            let shape = Shape {
                method: &method,
                has_body,
                cookies,
                wish,
            };
            let response = self.exchange(&route, home, &url, &shape).await?;
            if let Some(address) = response.address {
                self.pins.note(url.as_url(), address);
            }
            self.remember_cookies(home, &response.head, &url);
            let Some(next) = redirect(&mut redirects, &response.head, &url)? else {
                return Ok(Fetched { response, url });
            };
            tracing::debug!(from = %url, to = %next, status = response.head.status, "redirected");
            if response.head.status == 303 || (matches!(response.head.status, 301 | 302) && method == "POST") {
                "GET".clone_into(&mut method);
                has_body = false;
            }
            if has_body && !self.carries_secrets(home, &next) {
                return Err(Failure::new(
                    FailureKind::ForbiddenRedirect,
                    format!(
                        "{url} redirects to {next}, which would get what the request's body says: another site may not; ask for that URL itself if you trust it"
                    ),
                ));
            }
            response.body.drain().await;
            url = next;
        }
    }

    /// Sends a request. If it is challenged (HTTP Digest) and there is a login for it, sends it again with an answer.
    async fn exchange(
        &self,
        route: &Route,
        home: &SafeUrl,
        url: &SafeUrl,
        shape: &Shape<'_>,
    ) -> Result<Response, Failure> {
        let mut answers = 0;
        loop {
            let (of_server, of_proxy) = (self.has_digest(url), self.proxy_digest.borrow().is_some());
            let request = self.request(&route.key, home, url, shape);
            let response = Connection::exchange(&self.shared, route, &request, !shape.has_body).await?;
            let is_answered = match response.head.status {
                401 => self.answer_server(home, url, &response.head, of_server),
                407 => self.answer_proxy(&route.key, &response.head, of_proxy),
                _ => {
                    self.renew_digests(url, &response.head);
                    false
                }
            };
            if !is_answered || answers == MAX_ANSWERS {
                return Ok(response);
            }
            answers += 1;
            response.body.drain().await;
        }
    }

    fn has_digest(&self, url: &SafeUrl) -> bool {
        self.digests.borrow().contains_key(&url.origin())
    }

    /// Begins to answer a server's challenge. `false` if there is none, if there is no login for it, or if its answer was
    /// refused.
    fn answer_server(&self, home: &SafeUrl, url: &SafeUrl, head: &ResponseHead, was_answered: bool) -> bool {
        let challenge = Challenge::strongest(head.all("www-authenticate"));
        let Some(challenge) = challenge.filter(|challenge| !was_answered || challenge.is_stale) else {
            return false;
        };
        if self.login(home, url).is_none() {
            return false;
        }
        let mut digests = self.digests.borrow_mut();
        // Another connection may have answered it meanwhile; its counter goes on.
        if !digests
            .get(&url.origin())
            .is_some_and(|session| session.answers(&challenge))
        {
            digests.insert(url.origin(), Session::new(challenge));
        }
        true
    }

    /// Like [`Self::answer_server`], for a proxy that forwards single requests.
    fn answer_proxy(&self, key: &Key, head: &ResponseHead, was_answered: bool) -> bool {
        let challenge = Challenge::strongest(head.all("proxy-authenticate"));
        let Some(challenge) = challenge.filter(|challenge| !was_answered || challenge.is_stale) else {
            return false;
        };
        if key.forward_proxy().and_then(SafeUrl::credentials).is_none() {
            return false;
        }
        let mut digest = self.proxy_digest.borrow_mut();
        if !digest.as_ref().is_some_and(|session| session.answers(&challenge)) {
            *digest = Some(Session::new(challenge));
        }
        true
    }

    /// Takes the nonces that server and proxy want next.
    fn renew_digests(&self, url: &SafeUrl, head: &ResponseHead) {
        if let Some(info) = head.get("authentication-info")
            && let Some(session) = self.digests.borrow_mut().get_mut(&url.origin())
        {
            session.renew(info);
        }
        if let Some(info) = head.get("proxy-authentication-info")
            && let Some(session) = self.proxy_digest.borrow_mut().as_mut()
        {
            session.renew(info);
        }
    }

    /// Opens connections for requests to `url` in advance.
    pub(crate) async fn prepare(&self, home: &SafeUrl, url: &SafeUrl, count: u16) {
        if count > 0 {
            Connection::prepare(&self.shared, &self.route(home, url), count).await;
        }
    }

    /// Whether a request to `url` carries the source's secrets: it goes to the origin that they belong to, and it
    /// started there. A mirror may redirect to that origin, but then a third party chose the URL.
    fn carries_secrets(&self, home: &SafeUrl, url: &SafeUrl) -> bool {
        home.origin() == self.owner && url.origin() == self.owner
    }

    fn route(&self, home: &SafeUrl, url: &SafeUrl) -> Route {
        let reach = reach::of(&self.source.given_by, home.as_url(), url.as_url());
        Route {
            key: Key::of(url, self.source.proxy.as_ref(), self.source.ignore_tls_errors),
            reach: self.pins.narrow(url.as_url(), reach),
        }
    }

    fn request(&self, key: &Key, home: &SafeUrl, url: &SafeUrl, shape: &Shape<'_>) -> Vec<u8> {
        let parsed = url.as_url();
        let options = &self.source.request;
        let carries_secrets = self.carries_secrets(home, url);
        let path = parsed.query().map_or_else(
            || parsed.path().to_owned(),
            |query| format!("{}?{query}", parsed.path()),
        );
        let authority = match parsed.port() {
            Some(port) => format!("{}:{port}", parsed.host_str().unwrap_or("")),
            None => parsed.host_str().unwrap_or("").to_owned(),
        };
        let proxy = key.forward_proxy();
        let target = if proxy.is_some() {
            format!("{}://{authority}{path}", parsed.scheme())
        } else {
            path.clone()
        };
        let mut head = RequestHead::new(shape.method, &target);
        head.add("Host", &authority);
        let user_agent = Some(options.user_agent.as_str()).filter(|agent| !agent.is_empty());
        if user_agent.is_some() || !self.has_header("user-agent") {
            head.add("User-Agent", user_agent.unwrap_or(&self.shared.config.user_agent));
        }
        if !self.has_header("accept") {
            head.add("Accept", "*/*");
        }
        head.add("Accept-Encoding", "identity");
        if let Some(page) = referrer(&options.referrer, url, carries_secrets) {
            head.add("Referer", &page);
        }
        if let Some(login) = proxy.and_then(SafeUrl::credentials) {
            let value = match self.proxy_digest.borrow_mut().as_mut() {
                Some(session) => session.authorization(&login, shape.method, &target),
                None => login.basic(),
            };
            head.add("Proxy-Authorization", &value);
        }
        let login = self.login(home, url);
        if let Some(login) = &login {
            let value = match self.digests.borrow_mut().get_mut(&url.origin()) {
                Some(session) => session.authorization(login, shape.method, &path),
                None => login.basic(),
            };
            head.add("Authorization", &value);
        }
        if !shape.cookies.is_empty() {
            head.add("Cookie", &shape.cookies);
        }
        if let Some(RangeWish { start, end, if_range }) = shape.wish {
            let last = end.map_or_else(String::new, |end| (end - 1).to_string());
            head.add("Range", &format!("bytes={start}-{last}"));
            if let Some(validator) = if_range {
                head.add("If-Range", validator);
            }
        }
        for (name, value) in &options.headers {
            let lower = name.to_ascii_lowercase();
            let is_replaced = match lower.as_str() {
                "authorization" => login.is_some(),
                "cookie" => true,
                "referer" => !options.referrer.is_empty(),
                "user-agent" => user_agent.is_some(),
                other => MANAGED_HEADERS.contains(&other) || (other == "content-type" && shape.has_body),
            };
            if is_replaced || !(carries_secrets || is_harmless_header(name)) {
                continue;
            }
            if lower == "referer" {
                if let Some(page) = referrer(value.expose(), url, carries_secrets) {
                    head.add(name, &page);
                }
            } else {
                head.add(name, value.expose());
            }
        }
        let body = if shape.has_body {
            self.body(&mut head)
        } else {
            Vec::new()
        };
        head.encode(&body)
    }

    /// The login for a request to `url`: the one in it, or that of its own origin.
    fn login(&self, home: &SafeUrl, url: &SafeUrl) -> Option<Credentials> {
        let carries_secrets = self.carries_secrets(home, url);
        let is_own = home.origin() == url.origin();
        let given = url.credentials().or_else(|| {
            if carries_secrets {
                self.source.request.credentials.clone()
            } else if is_own {
                self.source.logins.get(&url.origin()).cloned()
            } else {
                None
            }
        });
        // A redirect must not choose which login of `.netrc` is sent, or over which scheme and port.
        given.or_else(|| self.login_of_netrc(url, carries_secrets).filter(|_| is_own))
    }

    /// The user's login for the host of `url`, unless the request has an `Authorization` of its own.
    fn login_of_netrc(&self, url: &SafeUrl, carries_secrets: bool) -> Option<Credentials> {
        let netrc = self.source.netrc.as_ref()?;
        if carries_secrets && self.has_header("authorization") {
            return None;
        }
        netrc.login(url.as_url().host_str()?).cloned()
    }

    /// Encodes the body and adds the headers that describe it.
    fn body(&self, head: &mut RequestHead) -> Vec<u8> {
        let (content_type, bytes) = match &self.source.request.body {
            None => return Vec::new(),
            Some(RequestBody::UrlEncoded(text)) => (
                Some("application/x-www-form-urlencoded".to_owned()),
                text.clone().into_bytes(),
            ),
            Some(RequestBody::Raw { bytes, content_type }) => (content_type.clone(), bytes.clone()),
            Some(RequestBody::FormData(fields)) => form_data(fields),
        };
        if let Some(content_type) = content_type {
            head.add("Content-Type", &content_type);
        }
        head.add("Content-Length", &bytes.len().to_string());
        bytes
    }

    fn has_header(&self, lower: &str) -> bool {
        self.source
            .request
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(lower))
    }

    /// The user's cookies for their own origin, what servers set on the way, and the stored ones of the site where the
    /// request began.
    fn cookie_header(&self, home: &SafeUrl, url: &SafeUrl) -> String {
        let mut pairs = Vec::new();
        if self.carries_secrets(home, url) {
            let headers = self.source.request.headers.iter();
            let given = headers
                .filter(|(name, _)| name.eq_ignore_ascii_case("cookie"))
                .map(|(_, value)| value.expose());
            let own = self.source.request.cookies.expose();
            pairs.extend(
                given
                    .chain([own])
                    .map(|text| text.trim().trim_end_matches(';'))
                    .filter(|text| !text.is_empty())
                    .map(str::to_owned),
            );
        }
        if let Some(jar) = self.cookies.borrow().get(&home.origin()) {
            pairs.extend(
                jar.get_request_values(url.as_url())
                    .map(|(name, value)| format!("{name}={value}")),
            );
        }
        if let Some(jar) = self.source.site_cookies.get(&home.origin()) {
            // What was given with the download, and what the site set meanwhile, is newer than what was stored.
            let newer = pairs.join(";");
            let names: BTreeSet<_> = newer.split(';').map(name_of_pair).collect();
            let stored = jar.matching(url, unix_seconds()).into_iter();
            pairs.extend(stored.filter(|cookie| !names.contains(&*cookie.name)).map(Cookie::pair));
        }
        pairs.join("; ")
    }

    fn remember_cookies(&self, home: &SafeUrl, head: &ResponseHead, url: &SafeUrl) {
        let cookies = head
            .all("set-cookie")
            .filter_map(|value| std::str::from_utf8(value).ok())
            .filter(|value| !value.chars().any(char::is_control))
            .filter_map(|value| RawCookie::parse(value.to_owned()).ok());
        let mut jars = self.cookies.borrow_mut();
        let jar = jars.entry(home.origin()).or_default();
        for cookie in cookies.filter(|cookie| cookie.to_string().len() <= MAX_COOKIE_BYTES) {
            // A run may have thousands of answers, each with as many cookies as its head has room for.
            if jar.iter_any().count() >= MAX_COOKIES {
                break;
            }
            jar.store_response_cookies(std::iter::once(cookie), url.as_url());
        }
    }
}

fn name_of_pair(pair: &str) -> &str {
    pair.split_once('=').map_or("", |(name, _)| name).trim()
}

fn unix_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// The parts of a request that change with a redirect.
struct Shape<'a> {
    method: &'a str,
    has_body: bool,
    cookies: String,
    wish: Option<&'a RangeWish>,
}

/// The target of a redirect, if it is one.
fn redirect(redirects: &mut Redirects, head: &ResponseHead, from: &SafeUrl) -> Result<Option<SafeUrl>, Failure> {
    if !Redirects::is_redirect(head.status) {
        return Ok(None);
    }
    let malformed = |message: String| Failure::new(FailureKind::MalformedResponse, message);
    let location = head
        .get("location")
        .map(decode_guessing)
        .filter(|text| !text.is_empty());
    let Some(location) = location else {
        return Err(malformed(format!(
            "{from} redirects (status {}) without saying where to",
            head.status
        )));
    };
    let next = from
        .join(&location)
        .map_err(|error| malformed(format!("{from} redirects to something unusable: {error}")))?;
    let followed = redirects.follow(from.as_url(), next.expose());
    followed.map_err(|refusal| not_followed(from, Some(&next), &refusal))?;
    Ok(Some(next))
}

fn not_followed(from: &SafeUrl, next: Option<&SafeUrl>, refusal: &Refusal) -> Failure {
    let kind = match refusal {
        Refusal::Loop | Refusal::TooMany(_) => FailureKind::TooManyRedirects,
        Refusal::Unusable(_) => FailureKind::MalformedResponse,
        Refusal::Scheme(_) | Refusal::LosesTls => FailureKind::ForbiddenRedirect,
    };
    let to = next.map_or_else(String::new, |next| format!(" redirects to {next}"));
    let hint = if *refusal == Refusal::LosesTls {
        "; ask for that URL itself if you trust it"
    } else {
        ""
    };
    Failure::new(kind, format!("{from}{to}: {refusal}{hint}"))
}

/// Bytes that a header name or method may have (`token`, RFC 9110, section 5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn check_value(what: &str, value: &str) -> Result<(), Failure> {
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(Failure::new(
            FailureKind::InvalidSource,
            format!("the value of {what} has a line end or another control character"),
        ));
    }
    Ok(())
}

/// A `multipart/form-data` body (RFC 7578) and its type.
fn form_data(fields: &[(String, Vec<String>)]) -> (Option<String>, Vec<u8>) {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the system has random numbers");
    let boundary = format!("svc-{}", data_encoding::HEXLOWER.encode(&random));
    let mut body = String::new();
    for (name, values) in fields {
        let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        for value in values {
            let disposition = format!("Content-Disposition: form-data; name=\"{name}\"");
            body.extend(["--", &boundary, "\r\n", &disposition, "\r\n\r\n", value, "\r\n"]);
        }
    }
    body.extend(["--", &boundary, "--\r\n"]);
    (
        Some(format!("multipart/form-data; boundary={boundary}")),
        body.into_bytes(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(from: &str, location: &str) -> Result<Option<String>, FailureKind> {
        let head = ResponseHead::of(302, &[("location", location)]);
        let from = SafeUrl::parse(from).unwrap();
        redirect(&mut Redirects::at_most(MAX_REDIRECTS), &head, &from)
            .map(|url| url.map(|url| url.expose().to_owned()))
            .map_err(|failure| failure.kind)
    }

    #[test]
    fn redirects_stay_within_http_and_never_lose_tls() {
        assert_eq!(
            next("http://a.test/x/y", "../z?q"),
            Ok(Some("http://a.test/z?q".into()))
        );
        assert_eq!(next("http://a.test/", "//b.test/"), Ok(Some("http://b.test/".into())));
        assert_eq!(
            next("http://a.test/", "https://a.test/"),
            Ok(Some("https://a.test/".into()))
        );
        for location in [
            "http://a.test/",
            "file:///etc/passwd",
            "ftp://a.test/",
            "javascript:alert(1)",
            "data:,x",
        ] {
            assert_eq!(
                next("https://a.test/", location),
                Err(FailureKind::ForbiddenRedirect),
                "{location}"
            );
        }
        assert_eq!(next("http://a.test/", ""), Err(FailureKind::MalformedResponse));
    }

    #[test]
    fn forms_cannot_break_out_of_their_boundary() {
        let (content_type, body) = form_data(&[("a\"\r\nX: 1".into(), vec!["1".into(), "2".into()])]);
        let boundary = content_type.unwrap().split_once("boundary=").unwrap().1.to_owned();
        let body = String::from_utf8(body).unwrap();
        assert_eq!(body.matches(&format!("--{boundary}\r\n")).count(), 2);
        assert!(!body.contains("X: 1\r\n") && body.ends_with(&format!("--{boundary}--\r\n")));
    }
}
