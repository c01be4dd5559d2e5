//! Secrets in the requests of plugins: filled in if the request goes to a host that they are bound to, and replaced by
//! their names in everything that the plugin reads afterwards. Guest code never sees a value.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use accounts::{BoundSecret, Scan, Scrubber, Template, not_bound, placeholder};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use memchr::memmem;
use percent_encoding::percent_decode;
use svc_plugin_text::{self as search, Work};
use transfer::Secret;
use url::Url;

use super::{
    Answer, Cookies, FetchError, Profile, Request,
    account::{Account, MIN_SECRET_BYTES},
    header,
};

/// The most secret fields, and the most captures, of one request.
const MAX_FIELDS: usize = 32;

/// How often the target of a redirect is decoded to find secrets in it: sites encode an address in an address.
const MAX_DECODED: usize = 3;

/// The most steps of the search for a field of a form: enough for a page of some hundred kilobytes.
const FORM_STEPS: u64 = 2_000_000;

/// The position of a secret in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretPosition {
    Header,
    Query,
    Form,
    /// Its name is a JSON pointer.
    Json,
}

/// A part of a request whose value contains secrets.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    position: SecretPosition,
    name: String,
    template: Template,
}

/// A value of a response to store as a secret.
#[derive(Debug, Clone)]
pub(crate) enum Capture {
    /// At this pointer of its JSON, under this name.
    Json(String, String),
    /// In this field, under this name.
    Header(String, String),
    /// The value of this cookie, under this name.
    Cookie(String, String),
    /// The value of the first element that this selector selects, under this name.
    Form(String, String),
}

impl Request {
    /// Adds a part whose value the host fills in.
    pub(crate) fn add_secret(&mut self, position: SecretPosition, name: &str, template: &str) {
        if position == SecretPosition::Header && !header::guest_may_send(name) {
            self.reject(format!("the field {name} is not for plugins to set"));
        } else if self.secrets.len() >= MAX_FIELDS {
            self.reject("too many secret fields");
        } else {
            match Template::parse(template) {
                Ok(template) => self.secrets.push(Field {
                    position,
                    name: name.to_owned(),
                    template,
                }),
                Err(error) => self.reject(error.to_string()),
            }
        }
    }

    /// Adds a value to capture.
    pub(crate) fn add_capture(&mut self, capture: Capture) {
        if self.captures.len() >= MAX_FIELDS {
            self.reject("too many captures");
        } else {
            self.captures.push(capture);
        }
    }

    /// Whether its body has secrets.
    pub(crate) fn has_secret_body(&self) -> bool {
        let in_body = |field: &Field| matches!(field.position, SecretPosition::Form | SecretPosition::Json);
        self.secrets.iter().any(in_body)
    }
}

/// The secrets of one request.
#[derive(Debug)]
pub(crate) struct RequestSecrets {
    account: Arc<Account>,
    secrets: BTreeMap<String, BoundSecret>,
    /// Values captured from JSON, by name, in the exact bytes of the response (with quotes and escapes).
    captured: Vec<(String, Secret)>,
    /// The last value of each cookie that was set, for captures.
    cookies: Mutex<BTreeMap<String, (Secret, Url)>>,
    /// Time spent on searching for secrets.
    worked: Mutex<Duration>,
}

impl RequestSecrets {
    /// Finds the secrets of `request`. Fails before anything is sent if one is not bound to the host of `url`.
    pub(crate) async fn of(request: &Request, url: &Url, account: Arc<Account>) -> Result<Self, FetchError> {
        let mut found = BTreeMap::new();
        for name in request.secrets.iter().flat_map(|field| field.template.names()) {
            if found.contains_key(name) {
                continue;
            }
            let secret = account.vault.find(name.to_owned()).await;
            let secret = secret.ok_or_else(|| FetchError::Invalid(format!("there is no secret {name}")))?;
            if secret.for_url(url).is_none() {
                return Err(FetchError::Secret(not_bound(name, url).to_string()));
            }
            found.insert(name.to_owned(), secret);
        }
        Ok(Self {
            account,
            secrets: found,
            captured: Vec::new(),
            cookies: Mutex::default(),
            worked: Mutex::default(),
        })
    }

    /// The time spent on searching for secrets, without waiting.
    pub(crate) fn worked(&self) -> Duration {
        *self.worked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work<T>(&self, work: impl FnOnce() -> T) -> T {
        let since = Instant::now();
        let done = work();
        *self.worked.lock().unwrap_or_else(PoisonError::into_inner) += since.elapsed();
        done
    }

    /// What hosts of `hops` may have been told, and what this request sends or has captured.
    async fn known(&self, hops: &[Url]) -> Vec<(String, BoundSecret)> {
        let mut known = self.account.known(hops).await;
        for (name, secret) in &self.secrets {
            let is_same = |(other, found): &(String, BoundSecret)| other == name && found.value() == secret.value();
            if secret.value().expose().len() >= MIN_SECRET_BYTES && !known.iter().any(is_same) {
                known.push((name.clone(), secret.clone()));
            }
        }
        known
    }

    async fn scrubber(&self, hops: &[Url]) -> Arc<Scrubber> {
        let known = self.known(hops).await.into_iter();
        let known = known.map(|(name, secret)| (name, secret.value().clone())).collect();
        self.work(|| self.account.scrubber(known))
    }

    /// `text` of the request itself, without secrets.
    pub(crate) async fn scrubbed(&self, text: &str, hops: &[Url]) -> String {
        let scrubber = self.scrubber(hops).await;
        self.work(|| scrubber.text(text).into_owned())
    }

    /// Searches a body, which takes time on a thread that serves other calls as well.
    async fn scan<'t>(&self, scrubber: &'t Scrubber, body: &'t [u8]) -> Scan<'t> {
        let mut scan = scrubber.scan(body);
        while !self.work(|| scan.turn()) {
            tokio::task::yield_now().await;
        }
        scan
    }

    /// The cookies and cached responses that it uses.
    pub(crate) fn profile(&self) -> &Profile {
        &self.account.profile
    }

    /// Fills those of `fields` that may be sent to `url`. After a redirect there may be fewer.
    pub(crate) fn fill(&self, fields: &[Field], url: &Url) -> Vec<(SecretPosition, String, Secret)> {
        let fill = |field: &Field| {
            let value = field.template.fill(|name| self.secrets.get(name)?.for_url(url)).ok()?;
            Some((field.position, field.name.clone(), value))
        };
        fields.iter().filter_map(fill).collect()
    }

    /// Whether the request carries secrets.
    pub(crate) fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// The name of a secret that `target` contains but may not be sent there: some sites redirect with all parameters
    /// that they received, and a site can put whatever it was ever sent into a redirect.
    pub(crate) async fn leaked_by(&self, target: &Url, hops: &[Url]) -> Option<String> {
        let known = self.known(hops).await;
        let unbound = known.iter().filter(|(_, secret)| secret.for_url(target).is_none());
        self.work(|| {
            let scrubber = Scrubber::new(unbound.map(|(name, secret)| (&**name, secret.value().expose())));
            let forms = decoded(target);
            forms.iter().find_map(|form| scrubber.find(form).map(str::to_owned))
        })
    }

    /// Takes the cookies of a response on the way.
    pub(crate) fn take_cookies(&self, request: &Request, url: &Url, answer: &Answer) {
        let wanted = |name: &str| {
            let mut captures = request.captures.iter();
            captures.any(|capture| matches!(capture, Capture::Cookie(cookie, _) if cookie == name))
        };
        let set = answer
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        for (_, cookie) in set {
            if request.cookies != Cookies::None {
                self.account.profile.set_cookie(cookie, url);
            }
            let pair = cookie.split(';').next().and_then(|pair| pair.split_once('='));
            if let Some((name, value)) = pair.filter(|(name, _)| wanted(name.trim())) {
                let value = Secret::new(value.trim());
                self.cookies().insert(name.trim().to_owned(), (value, url.clone()));
            }
        }
    }

    /// Stores the values to capture from a response of `url`.
    pub(crate) async fn capture(
        &mut self,
        captures: &[Capture],
        (answer, url): (&Answer, &Url),
        hops: &[Url],
    ) -> Result<(), FetchError> {
        let mut marked = None;
        for capture in captures {
            // Parsing a long response takes time on a thread that serves other calls as well.
            tokio::task::yield_now().await;
            if let (Capture::Form(..), None) = (capture, &marked) {
                let scrubber = self.scrubber(hops).await;
                let scan = self.scan(&scrubber, &answer.body).await;
                marked = Some(Marked::new(&scan, &answer.body)?);
            }
            let mut from = url.clone();
            let (found, name) = match capture {
                Capture::Json(pointer, name) => (self.work(|| json_value(&answer.body, pointer)), name),
                Capture::Header(field, name) => (header_value(answer, field).map(|value| (value, None)), name),
                Capture::Form(css, name) => {
                    let found = marked.as_ref().map(|marked| self.work(|| marked.form_value(css)));
                    let found = found.transpose()?.flatten();
                    (found.map(|value| (value, None)), name)
                }
                Capture::Cookie(cookie, name) => {
                    let set = self.cookies().get(cookie).cloned();
                    let set = set.map(|(value, url)| {
                        from = url;
                        (value.expose().to_owned(), None)
                    });
                    (set, name)
                }
            };
            let Some((value, written)) = found else { continue };
            let value = Secret::new(value);
            let kept = self
                .account
                .vault
                .capture(name.clone(), value.clone(), from.clone())
                .await;
            kept.map_err(FetchError::Invalid)?;
            let secret = BoundSecret::captured(value, &from, Vec::new());
            self.secrets.insert(name.clone(), secret);
            self.captured
                .extend(written.map(|written| (name.clone(), Secret::new(written))));
        }
        Ok(())
    }

    /// Replaces secrets by their names in the body, the headers and the URL of a response: those of this request, and
    /// those of its account that the hosts of `hops` may have been told.
    pub(crate) async fn scrub(&self, answer: &mut Answer, url: &mut Url, hops: &[Url]) {
        for (name, written) in &self.captured {
            let name = format!("\"{}\"", placeholder(name));
            let found = self.work(|| replaced(&answer.body, written.expose().as_bytes(), name.as_bytes()));
            if let Some(body) = found {
                answer.body = body.into();
            }
            tokio::task::yield_now().await;
        }
        let scrubber = self.scrubber(hops).await;
        let body = self
            .scan(&scrubber, &answer.body)
            .await
            .replaced(|name, _| placeholder(name));
        if let Some(body) = body {
            answer.body = Bytes::from(body);
        }
        for (_, value) in &mut answer.headers {
            if let Cow::Owned(clean) = scrubber.text(value) {
                *value = clean;
            }
        }
        if let Cow::Owned(clean) = scrubber.text(url.as_str()) {
            // If the URL is invalid without the secret, keep only its site.
            let clean = Url::parse(&clean);
            *url = clean.or_else(|_| url.join("/")).unwrap_or_else(|_| url.clone());
        }
    }

    fn cookies(&self) -> MutexGuard<'_, BTreeMap<String, (Secret, Url)>> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `text` with every occurrence of `part`, which is not empty, replaced by `by`.
fn replaced(text: &[u8], part: &[u8], by: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut done) = (Vec::new(), 0);
    for at in memmem::find_iter(text, part) {
        out.extend_from_slice(&text[done..at]);
        out.extend_from_slice(by);
        done = at + part.len();
    }
    (done > 0).then(|| {
        out.extend_from_slice(&text[done..]);
        out
    })
}

/// The address of a redirect as it is, and as those read it that decode it.
fn decoded(target: &Url) -> Vec<Vec<u8>> {
    let mut forms = vec![target.as_str().as_bytes().to_vec()];
    for _ in 0..MAX_DECODED {
        let last = forms.last().map(Vec::as_slice).unwrap_or_default();
        let next: Vec<u8> = percent_decode(last).collect();
        if next == last {
            break;
        }
        forms.push(next);
    }
    let spaced = forms.iter().filter(|form| form.contains(&b'+'));
    let spaced: Vec<Vec<u8>> = spaced
        .map(|form| {
            let space = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
            form.iter().map(space).collect()
        })
        .collect();
    forms.extend(spaced);
    forms
}

/// A page in which marks stand for secrets. A selector of a plugin would find out what begins with which letter.
struct Marked {
    page: String,
    /// Not to be guessed: a page or a plugin cannot write a mark.
    key: String,
    /// What the page has in the place of each mark.
    originals: Vec<Secret>,
}

impl Marked {
    fn new(scan: &Scan<'_>, body: &[u8]) -> Result<Self, FetchError> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| FetchError::Invalid(error.to_string()))?;
        let key = HEXLOWER.encode(&key);
        let mut originals = Vec::new();
        let page = scan.replaced(|_, original| {
            originals.push(Secret::new(String::from_utf8_lossy(original)));
            format!("{key}{:06}", originals.len() - 1)
        });
        let page = page.as_deref().unwrap_or(body);
        Ok(Self {
            page: String::from_utf8_lossy(page).into_owned(),
            key,
            originals,
        })
    }

    /// The value of the first element that `css` selects: its attribute `value`, the `content` of a `meta`, or its text.
    fn form_value(&self, css: &str) -> Result<Option<String>, FetchError> {
        let found = select(&self.page, css)?;
        let Some(node) = found.into_iter().next() else {
            return Ok(None);
        };
        let attribute = |name: &str| {
            let mut attributes = node.attrs.iter();
            let found = attributes.find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let value = attribute("value").or_else(|| attribute("content"));
        self.filled(&value.unwrap_or_else(|| node.text.clone())).map(Some)
    }

    /// `text` with what the page has in the place of marks, decoded like the text around.
    fn filled(&self, text: &str) -> Result<String, FetchError> {
        let mut pieces = text.split(&*self.key);
        let mut filled = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (number, after) = piece.split_at_checked(6).unwrap_or((piece, ""));
            let original = number.parse().ok().and_then(|at: usize| self.originals.get(at));
            let original = original.map(Secret::expose).unwrap_or_default();
            let element = format!("<p>{}</p>", original.replace('<', "&lt;"));
            let decoded = select(&element, "p")?.into_iter().next();
            filled.push_str(&decoded.map(|node| node.text).unwrap_or_default());
            filled.push_str(after);
        }
        Ok(filled)
    }
}

fn select(page: &str, css: &str) -> Result<Vec<search::Node>, FetchError> {
    let found = search::select(page, css, &mut Work::of_steps(FORM_STEPS));
    found.map_err(|error| FetchError::Invalid(error.to_string()))
}

/// The text or number at `pointer`, and its spelling.
fn json_value(body: &[u8], pointer: &str) -> Option<(String, Option<String>)> {
    let text = std::str::from_utf8(body).ok()?;
    let found = search::json_at(text, pointer).ok().flatten()?.trim();
    let value = match serde_json::from_str(found).ok()? {
        serde_json::Value::String(value) => value,
        serde_json::Value::Number(_) => found.to_owned(),
        _ => return None,
    };
    Some((value, Some(found.to_owned())))
}

fn header_value(answer: &Answer, field: &str) -> Option<String> {
    let mut headers = answer.headers.iter();
    headers
        .find(|(name, _)| name.eq_ignore_ascii_case(field))
        .map(|(_, value)| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_and_numbers_are_captured() {
        let body = br#"{"a": "x\/y", "b": 12345, "c": [1], "d": null}"#;
        let found = |pointer| json_value(body, pointer).map(|(value, _)| value);
        assert_eq!(found("/a").as_deref(), Some("x/y"));
        assert_eq!(found("/b").as_deref(), Some("12345"));
        for pointer in ["/c", "/d", "/e", ""] {
            assert_eq!(json_value(body, pointer), None, "{pointer}");
        }
        assert_eq!(json_value(b"\xff", "/a"), None);
    }
}
