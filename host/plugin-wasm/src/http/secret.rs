//! Secrets in the requests of plugins: filled in if the request goes to a host that they are bound to, and replaced by
//! their names in everything that the plugin reads afterwards. Guest code never sees a value.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use accounts::{BoundSecret, MAX_VALUE_BYTES, Scan, Scrubber, Template, WITHHELD, not_bound, placeholder};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use memchr::memmem;
use percent_encoding::percent_decode;
use svc_plugin_text::{self as search, Work};
use transfer::Secret;
use url::Url;

use super::{
    Answer, Cookies, FetchError, Profile, Request,
    account::{Account, CallAccounts, Known, MIN_COOKIE_BYTES, MIN_SECRET_BYTES, Search},
    computing::Computing,
    header,
    task_site::TaskSite,
};

/// The most secret fields, and the most captures, of one request.
const MAX_FIELDS: usize = 32;

/// How often the target of a redirect is decoded to find secrets in it: sites encode an address in an address.
const MAX_DECODED: usize = 3;

/// The most steps of the search for a field of a form: enough for a page of some hundred kilobytes.
const FORM_STEPS: u64 = 2_000_000;

/// The status of a response that is a part of a file.
const PARTIAL_CONTENT: u16 = 206;

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
    accounts: Arc<CallAccounts>,
    account: Arc<Account>,
    task: Option<TaskSite>,
    /// Those that it sends.
    secrets: BTreeMap<String, BoundSecret>,
    /// Values that it has captured, and cookies that were sent before a response replaced them.
    seen: Mutex<Vec<(String, BoundSecret)>>,
    /// Values captured from JSON, by name, in the exact bytes of the response (with quotes and escapes).
    captured: Vec<(String, Secret)>,
    /// The last value of each cookie that was set, for captures.
    cookies: Mutex<BTreeMap<String, (Secret, Url)>>,
    /// The cookies that the last response has set and no earlier one had.
    fresh: Mutex<Vec<BoundSecret>>,
    computing: Computing,
}

impl RequestSecrets {
    /// Finds the secrets of `request`. Fails before anything is sent if one is not bound to the host of `url`.
    pub(crate) async fn of(
        request: &Request,
        url: &Url,
        accounts: Arc<CallAccounts>,
        (task, computing): (Option<TaskSite>, Computing),
    ) -> Result<Self, FetchError> {
        let account = accounts.of(request.account.as_deref()).await?;
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
            accounts,
            account,
            task,
            secrets: found,
            seen: Mutex::default(),
            captured: Vec::new(),
            cookies: Mutex::default(),
            fresh: Mutex::default(),
            computing,
        })
    }

    fn work<T>(&self, work: impl FnOnce() -> T) -> T {
        self.computing.work(work)
    }

    /// What hosts of `hops` may have been told, by this request or another one, and what this one sends, replaces or has
    /// captured.
    async fn known(&self, hops: &[Url]) -> Vec<(String, BoundSecret)> {
        let mut known = self.account.known(hops).await;
        for other in self.accounts.all().await {
            if !Arc::ptr_eq(&other, &self.account) {
                known.extend(other.known(hops).await);
            }
        }
        let sent = self.secrets.iter();
        let mut own: Vec<_> = sent.map(|(name, secret)| (name.clone(), secret.clone())).collect();
        own.extend(locked(&self.seen).iter().cloned());
        own.retain(|(_, secret)| secret.value().expose().len() >= MIN_SECRET_BYTES);
        known.extend(own);
        known.extend(self.task.iter().flat_map(|task| task.secrets_for(hops)));
        known
    }

    async fn prepared(&self, search: &Search, secrets: Vec<(String, BoundSecret)>) -> Arc<Scrubber> {
        let values = secrets.into_iter();
        let values: Known = values.map(|(name, secret)| (name, secret.value().clone())).collect();
        search.of(values, &self.computing).await
    }

    async fn scrubber(&self, hops: &[Url]) -> Arc<Scrubber> {
        self.prepared(&self.accounts.in_answers, self.known(hops).await).await
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
    ///
    /// What the redirecting response set as a cookie is its own to carry on: sites compare such a value when the user comes
    /// back from the other site. A fragment of the redirected URL stays, and no site has read it.
    pub(crate) async fn leaked_by(&self, target: &Url, hops: &[Url]) -> Option<String> {
        let known = self.known(hops).await;
        let scrubber = self
            .prepared(&self.accounts.in_targets, self.withheld_from(target, known))
            .await;
        self.work(|| {
            let mut target = target.clone();
            if hops.last().is_some_and(|from| from.fragment() == target.fragment()) {
                target.set_fragment(None);
            }
            let forms = decoded(&target);
            forms.iter().find_map(|form| scrubber.find(form).map(str::to_owned))
        })
    }

    /// Those of `known` that a response may not carry on to `target`.
    fn withheld_from(&self, target: &Url, mut known: Vec<(String, BoundSecret)>) -> Vec<(String, BoundSecret)> {
        let fresh = locked(&self.fresh);
        known.retain(|(_, secret)| {
            secret.for_url(target).is_none() && !fresh.iter().any(|fresh| fresh.value() == secret.value())
        });
        known
    }

    /// Takes the cookies of a response on the way.
    pub(crate) fn take_cookies(&self, request: &Request, url: &Url, answer: &Answer) {
        locked(&self.fresh).clear();
        let set: Vec<_> = answer
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"))
            .map(|(_, cookie)| cookie)
            .collect();
        if request.cookies != Cookies::None && !set.is_empty() {
            let profile = &self.account.profile;
            let before = profile.cookie_values();
            for cookie in &set {
                profile.set_cookie(cookie, url);
            }
            let mut after = profile.cookie_values();
            let replaced = before.iter().filter(|cookie| !after.contains(cookie));
            let replaced = replaced.filter(|cookie| cookie.value().expose().len() >= MIN_COOKIE_BYTES);
            locked(&self.seen).extend(replaced.map(|cookie| ("cookie".to_owned(), cookie.clone())));
            after.retain(|cookie| !before.iter().any(|before| before.value() == cookie.value()));
            *locked(&self.fresh) = after;
        }
        let wanted = |name: &str| {
            let mut captures = request.captures.iter();
            captures.any(|capture| matches!(capture, Capture::Cookie(cookie, _) if cookie == name))
        };
        for cookie in set {
            let pair = cookie.split(';').next().and_then(|pair| pair.split_once('='));
            if let Some((name, value)) = pair.filter(|(name, _)| wanted(name.trim())) {
                let value = Secret::new(value.trim());
                locked(&self.cookies).insert(name.trim().to_owned(), (value, url.clone()));
            }
        }
    }

    /// Takes the body from a response that is a part of a file, unless nothing is searched for: two parts of a secret are
    /// not found.
    pub(crate) async fn withhold_part(&self, answer: &mut Answer, hops: &[Url]) {
        if answer.status == PARTIAL_CONTENT && !answer.body.is_empty() && !self.scrubber(hops).await.is_empty() {
            answer.body = Bytes::from(placeholder(WITHHELD));
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
                    let set = locked(&self.cookies).get(cookie).cloned();
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
            locked(&self.seen).push((name.clone(), secret));
            self.captured
                .extend(written.map(|written| (name.clone(), Secret::new(written))));
        }
        Ok(())
    }

    /// Replaces secrets by their names in the body and the headers of a response, and in its URL unless that is the one that
    /// the plugin wrote: those of this request, and those that the hosts of `hops` may have been told.
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
        for (name, value) in &mut answer.headers {
            let target = url.join(value).ok().filter(|_| name.eq_ignore_ascii_case("location"));
            let of_target = match target {
                Some(target) => self.scrubber_for(&target, hops).await,
                None => None,
            };
            let scrubber = of_target.as_ref().unwrap_or(&scrubber);
            if let Cow::Owned(clean) = self.work(|| scrubber.text(value)) {
                *value = clean;
            }
        }
        if let [first, _, ..] = hops {
            self.scrub_url(&scrubber, url, first);
        }
    }

    /// What finds secrets in the address of `target`, if these are others than in the rest of the response.
    async fn scrubber_for(&self, target: &Url, hops: &[Url]) -> Option<Arc<Scrubber>> {
        if locked(&self.fresh).is_empty() {
            return None;
        }
        let mut known = self.known(hops).await;
        let withheld = self.withheld_from(target, known.clone());
        known.retain(|secret| secret.1.for_url(target).is_some() || withheld.contains(secret));
        Some(self.prepared(&self.accounts.in_targets, known).await)
    }

    /// Replaces secrets in the URL that redirects led to. What the plugin wrote into the first one stays: its name would tell
    /// the plugin that a guess is right.
    fn scrub_url(&self, scrubber: &Scrubber, url: &mut Url, first: &Url) {
        let clean = self.work(|| {
            let mut scan = scrubber.scan(url.as_str().as_bytes());
            while !scan.turn() {}
            scan.replaced(|name, original| {
                if memmem::find(first.as_str().as_bytes(), original).is_some() {
                    String::from_utf8_lossy(original).into_owned()
                } else {
                    placeholder(name)
                }
            })
        });
        if let Some(clean) = clean {
            // If the URL is invalid without the secret, keep only its site.
            let clean = Url::parse(&String::from_utf8_lossy(&clean));
            *url = clean.or_else(|_| url.join("/")).unwrap_or_else(|_| url.clone());
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        Ok(Some(self.filled(&value.unwrap_or_else(|| node.text.clone()))))
    }

    /// `text` with what the page has in the place of marks, decoded like the text around. It ends where it is longer than a
    /// secret may be.
    fn filled(&self, text: &str) -> String {
        let mut pieces = text.split(&*self.key);
        let mut filled = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (number, after) = piece.split_at_checked(6).unwrap_or((piece, ""));
            let original = number.parse().ok().and_then(|at: usize| self.originals.get(at));
            let original = original.map(Secret::expose).unwrap_or_default();
            filled.push_str(&html_escape::decode_html_entities(original));
            filled.push_str(after);
            if filled.len() > MAX_VALUE_BYTES {
                break;
            }
        }
        filled
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
    fn a_value_full_of_marks_ends_where_no_secret_is_longer() {
        let scrubber = Scrubber::new([("token", "a&b-c")]);
        let body = format!("<p>{}</p><b>x a&amp;b-c;</b>", "a&amp;b-c ".repeat(60_000));
        let mut scan = scrubber.scan(body.as_bytes());
        while !scan.turn() {}
        let marked = Marked::new(&scan, body.as_bytes()).unwrap();
        assert_eq!(marked.form_value("b").unwrap().as_deref(), Some("x a&b-c;"));
        let long = marked.form_value("p").unwrap().unwrap();
        assert!(long.starts_with("a&b-c a&b-c "), "{long}");
        assert!(
            (MAX_VALUE_BYTES + 1..MAX_VALUE_BYTES + 10).contains(&long.len()),
            "{}",
            long.len()
        );
    }

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
