//! Secrets in the requests of plugins: filled in if the request goes to a host that they are bound to, and replaced by
//! their names in everything that the plugin reads afterwards. Guest code never sees a value.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use accounts::{BoundSecret, Scrubber, Template, not_bound, placeholder};
use bytes::Bytes;
use svc_plugin_text::{self as search, Work};
use transfer::Secret;
use url::Url;

use super::{Answer, Cookies, FetchError, Profile, Request, account::Account, header};

/// The most secret fields, and the most captures, of one request.
const MAX_FIELDS: usize = 32;

/// The shortest secret that is searched for in the target of a redirect: shorter ones occur by chance.
const MIN_FOUND_BYTES: usize = 4;

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
        })
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
    /// that they received.
    pub(crate) fn leaked_by(&self, target: &Url) -> Option<&str> {
        let mut unbound = self
            .secrets
            .iter()
            .filter(|(_, secret)| secret.for_url(target).is_none());
        let carries = |name: &str, secret: &BoundSecret| {
            let scrubber = Scrubber::new([(name, secret.value().expose())]);
            scrubber.find(target.as_str().as_bytes()).is_some()
        };
        unbound
            .find(|(name, secret)| secret.value().expose().len() >= MIN_FOUND_BYTES && carries(name, secret))
            .map(|(name, _)| name.as_str())
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
    ) -> Result<(), FetchError> {
        for capture in captures {
            // Parsing a long response takes time on a thread that serves other calls as well.
            tokio::task::yield_now().await;
            let mut from = url.clone();
            let (found, name) = match capture {
                Capture::Json(pointer, name) => (json_value(&answer.body, pointer), name),
                Capture::Header(field, name) => (header_value(answer, field).map(|value| (value, None)), name),
                Capture::Form(css, name) => (form_value(&answer.body, css)?.map(|value| (value, None)), name),
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

    /// Replaces secrets by their names in the body, the headers and the URL of a response: those of this request and
    /// all others of its account.
    pub(crate) async fn scrub(&self, answer: &mut Answer, url: &mut Url) {
        for (name, written) in &self.captured {
            let name = format!("\"{}\"", placeholder(name));
            if let Some(body) = replaced(&answer.body, written.expose().as_bytes(), name.as_bytes()) {
                answer.body = body.into();
            }
        }
        let scrubber = self.account.scrubber().await;
        // Searching a long response takes time on a thread that serves other calls as well.
        tokio::task::yield_now().await;
        if let Cow::Owned(body) = scrubber.bytes(&answer.body) {
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
fn replaced(mut text: &[u8], part: &[u8], by: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while let Some(at) = text.windows(part.len()).position(|window| window == part) {
        out.extend_from_slice(&text[..at]);
        out.extend_from_slice(by);
        text = &text[at + part.len()..];
    }
    (!out.is_empty()).then(|| {
        out.extend_from_slice(text);
        out
    })
}

/// The value of the first element that `css` selects: its attribute `value`, the `content` of a `meta`, or its text.
fn form_value(body: &[u8], css: &str) -> Result<Option<String>, FetchError> {
    let text = String::from_utf8_lossy(body);
    let found = search::select(&text, css, &mut Work::of_steps(FORM_STEPS));
    let found = found.map_err(|error| FetchError::Invalid(error.to_string()))?;
    Ok(found.into_iter().next().map(|node| {
        let attribute = |name: &str| {
            node.attrs
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        };
        attribute("value")
            .or_else(|| attribute("content"))
            .unwrap_or_else(|| node.text.clone())
    }))
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
