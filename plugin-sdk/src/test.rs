//! A host for tests: it answers from pages that the test gives it, and keeps what the plugin did.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use svc_plugin_fixture::{Asked, Tape};
use svc_plugin_text::join_url;

pub use self::fixture::{Capabilities, Plugin, replay, replay_all};
use crate::{Call, FileKind, Preview, Resolver, Result, native};

mod fixture;

/// The redirects that a request follows, as in the real host.
const MAX_REDIRECTS: usize = 10;

/// When the tests of plugins happen, unless they say otherwise: 2026-01-01.
const NOW_MS: u64 = 1_767_225_600_000;

thread_local! {
    /// The host whose plugin is running on this thread.
    static RUNNING: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// Does something with the running host.
pub(crate) fn with_host<T>(work: impl FnOnce(&mut State) -> T) -> T {
    RUNNING.with_borrow_mut(|running| {
        let host = running.as_mut();
        work(host.expect("plugins run inside svc_plugin::test::Host::run, resolve, link or preview"))
    })
}

/// A host that answers from pages. What the plugin stores stays with it from call to call.
#[derive(Debug, Default)]
pub struct Host(RefCell<State>);

/// What a host knows and remembers.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) features: BTreeSet<String>,
    pub(crate) storage: BTreeMap<String, Vec<u8>>,
    pub(crate) log: Vec<String>,
    pub(crate) now_ms: u64,
    pub(crate) locale: String,
    pages: BTreeMap<String, Page>,
    tape: Option<Tape>,
    sent: Vec<Sent>,
    random: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            settings: BTreeMap::new(),
            features: BTreeSet::new(),
            storage: BTreeMap::new(),
            log: Vec::new(),
            now_ms: NOW_MS,
            locale: "en".to_owned(),
            pages: BTreeMap::new(),
            tape: None,
            sent: Vec::new(),
            random: 0,
        }
    }
}

impl State {
    /// Bytes that look random and are the same in every test (after `SplitMix64`).
    pub(crate) fn random(&mut self, len: usize) -> Vec<u8> {
        let mut next = || {
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.random;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)).to_le_bytes()
        };
        std::iter::repeat_with(&mut next)
            .take(len.div_ceil(8))
            .flatten()
            .take(len)
            .collect()
    }

    /// The page that a request ends at, and its URL.
    pub(crate) fn answer(&mut self, mut sent: Sent, follows: bool) -> Result<(String, Page), String> {
        for _ in 0..=MAX_REDIRECTS {
            self.sent.push(sent.clone());
            let page = self.page(&sent);
            match page
                .field("location")
                .filter(|_| follows && (300..400).contains(&page.status))
            {
                Some(location) => sent.url = join_url(&sent.url, location).map_err(|error| error.to_string())?,
                None => return Ok((sent.url, page)),
            }
        }
        Err("too many redirects".to_owned())
    }

    /// What the test has for a request; it fails if there is nothing.
    fn page(&mut self, sent: &Sent) -> Page {
        if let Some(tape) = &mut self.tape {
            let asked = Asked {
                method: &sent.method,
                url: &sent.url,
                headers: &sent.headers,
                body: &sent.body,
            };
            return match tape.answer(asked) {
                Ok(response) => response.into(),
                Err(unrecorded) => panic!("{unrecorded}"),
            };
        }
        let url = sent.url.split('#').next().unwrap_or_default();
        let known = || self.pages.keys().map(String::as_str).collect::<Vec<_>>().join("\n  ");
        let page = self.pages.get(url).cloned();
        page.unwrap_or_else(|| panic!("the test has no page {url}; it has\n  {}", known()))
    }
}

impl Host {
    /// A host without any page.
    pub fn new() -> Self {
        Self::default()
    }

    fn with(self, change: impl FnOnce(&mut State)) -> Self {
        change(&mut self.0.borrow_mut());
        self
    }

    /// Answers requests for `url` (without fragment, with its query) with `page`.
    #[must_use]
    pub fn page(self, url: &str, page: Page) -> Self {
        self.with(|state| _ = state.pages.insert(url.to_owned(), page))
    }

    /// Sets a setting of the plugin.
    #[must_use]
    pub fn setting(self, key: &str, value: &str) -> Self {
        self.with(|state| _ = state.settings.insert(key.to_owned(), value.to_owned()))
    }

    /// Has an optional feature.
    #[must_use]
    pub fn feature(self, name: &str) -> Self {
        self.with(|state| _ = state.features.insert(name.to_owned()))
    }

    /// Sets the clock, in milliseconds of the Unix epoch.
    #[must_use]
    pub fn now_ms(self, now: u64) -> Self {
        self.with(|state| state.now_ms = now)
    }

    /// Sets the user's language.
    #[must_use]
    pub fn locale(self, locale: &str) -> Self {
        self.with(|state| locale.clone_into(&mut state.locale))
    }

    /// Runs code of a plugin.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let running = Running::start(self);
        let result = work();
        drop(running);
        result
    }

    /// Resolves `url` with plugin `T`.
    pub fn resolve<T: Resolver>(&self, url: &str) -> Result<Listing> {
        self.resolve_with::<T>(url, None)
    }

    /// Resolves `url` with plugin `T` and a password.
    pub fn resolve_with<T: Resolver>(&self, url: &str, password: Option<&str>) -> Result<Listing> {
        self.list(url, password, T::resolve)
    }

    /// Asks plugin `T` for another page of `url`.
    pub fn more<T: Resolver>(&self, url: &str, token: &str) -> Result<Listing> {
        self.list(url, None, |call, out| T::more(call, token, out))
    }

    /// Asks plugin `T` where a file is.
    pub fn link<T: Resolver>(&self, url: &str, entry: &str, variant: Option<&str>) -> Result<Link> {
        let link = self.run(|| T::link(&Call::new(url.to_owned(), None)?, entry, variant))?;
        Ok(link.0.0.into_inner())
    }

    /// Looks at `url` with plugin `T`.
    pub fn preview<T: Preview>(&self, url: &str) -> Result<Listing> {
        self.list(url, None, T::preview)
    }

    fn list(
        &self,
        url: &str,
        password: Option<&str>,
        work: impl FnOnce(&Call, &crate::Listing<'_>) -> Result<()>,
    ) -> Result<Listing> {
        let listing = native::listing::Listing(Rc::default());
        self.run(|| {
            let call = Call::new(url.to_owned(), password.map(str::to_owned))?;
            work(&call, &crate::Listing::new(&listing))
        })?;
        Ok(listing.0.take())
    }

    /// The requests that were sent, redirects included.
    pub fn sent(&self) -> Vec<Sent> {
        self.0.borrow().sent.clone()
    }

    /// The lines that were logged, each with its level.
    pub fn log(&self) -> Vec<String> {
        self.0.borrow().log.clone()
    }
}

/// While it lives, its host answers on this thread; then the host gets back what it remembers, also after a panic.
struct Running<'h> {
    host: &'h Host,
    before: Option<State>,
}

impl<'h> Running<'h> {
    fn start(host: &'h Host) -> Self {
        let state = host.0.take();
        let before = RUNNING.replace(Some(state));
        Self { host, before }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(state) = RUNNING.replace(self.before.take()) {
            self.host.0.replace(state);
        }
    }
}

/// A response of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Page {
    /// A page of any type.
    pub fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.into(),
        }
    }

    /// An HTML page.
    pub fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new("text/html", body)
    }

    /// A JSON text.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::new("application/json", body)
    }

    /// A redirect.
    pub fn redirect(location: &str) -> Self {
        Self::html("").status(302).header("location", location)
    }

    /// With another status.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// With another field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// A request of the plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// The method.
    pub method: String,
    /// Where it went.
    pub url: String,
    /// Lower-case names and values.
    pub headers: Vec<(String, String)>,
    /// What was sent.
    pub body: Vec<u8>,
}

/// What a resolver handed out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// What it is called.
    pub title: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// A picture of it.
    pub cover: Option<String>,
    /// Its files.
    pub entries: Vec<Entry>,
    /// The token of the next page.
    pub next_page: Option<String>,
    /// How to ask for the password.
    pub password_prompt: Option<String>,
}

/// An entry, or a variant of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What the plugin knows it by.
    pub id: String,
    /// Its name; the label of a variant.
    pub name: String,
    /// The rank of a variant.
    pub rank: i32,
    /// What sort of file it is.
    pub kind: Option<FileKind>,
    /// The folder it belongs into.
    pub folder: String,
    /// Its length.
    pub size: Option<u64>,
    /// When it was changed.
    pub modified_ms: Option<u64>,
    /// Algorithms and digests.
    pub checksums: Vec<(String, String)>,
    /// Its media type.
    pub media_type: Option<String>,
    /// A small picture of it.
    pub thumbnail: Option<String>,
    /// How long it plays.
    pub duration_ms: Option<u64>,
    /// Whether it is wanted unless the user says otherwise.
    pub is_selected: bool,
    /// Where it is.
    pub link: Option<Link>,
    /// Its qualities or formats.
    pub variants: Vec<Entry>,
}

impl Entry {
    /// An entry of which nothing else is known.
    pub fn new(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            rank: 0,
            kind: None,
            folder: String::new(),
            size: None,
            modified_ms: None,
            checksums: Vec::new(),
            media_type: None,
            thumbnail: None,
            duration_ms: None,
            is_selected: true,
            link: None,
            variants: Vec::new(),
        }
    }
}

/// Where a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The file.
    pub url: String,
    /// Other places of it.
    pub mirrors: Vec<String>,
    /// Fields to send along.
    pub headers: Vec<(String, String)>,
    /// Fields to send along with secrets in them, which stand there by their names.
    pub secret_headers: Vec<(String, String)>,
    /// Whether parts of it can be asked for.
    pub supports_ranges: Option<bool>,
    /// Whether it works only once.
    pub is_single_use: bool,
    /// When it ends.
    pub expires_ms: Option<u64>,
    /// How many connections the site allows.
    pub max_connections: Option<u32>,
    /// The sound that belongs to it.
    pub audio: Option<Box<Link>>,
    /// What sort of description the URL leads to.
    pub manifest: Option<String>,
    /// What the file is joined from.
    pub segments: Vec<Segment>,
    /// How the next segment is encrypted.
    pub(crate) cipher: Option<Cipher>,
}

/// One of the segments that a file is joined from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where it is.
    pub url: String,
    /// The first byte and the length, if it is a part of what is there.
    pub part: Option<(u64, u64)>,
    /// How it is encrypted.
    pub cipher: Option<Cipher>,
}

/// AES-128 in CBC mode: the key, then the initialisation vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cipher {
    /// The key is what is at this URL.
    KeyAt(String, Vec<u8>),
    /// The key itself.
    Key(Vec<u8>, Vec<u8>),
}

impl Link {
    /// A link of which nothing else is known.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            mirrors: Vec::new(),
            headers: Vec::new(),
            secret_headers: Vec::new(),
            supports_ranges: None,
            is_single_use: false,
            expires_ms: None,
            max_connections: None,
            audio: None,
            manifest: None,
            segments: Vec::new(),
            cipher: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, env, http, log, storage};

    #[test]
    fn requests_are_answered_from_pages_and_remembered() {
        let host = Host::new()
            .page("https://example.org/a?q=1+2", Page::redirect("/b"))
            .page("https://example.org/b", Page::html("<p>x</p>"));
        let page = host.run(|| {
            http::get("https://example.org/a")
                .query("q", "1 2")
                .header("X-A", "b")
                .send()
        });
        let page = page.unwrap();
        assert_eq!(page.url(), "https://example.org/b");
        assert_eq!(page.select("p").unwrap()[0].text, "x");
        assert_eq!(host.sent().len(), 2);
        assert_eq!(host.sent()[0].headers, [("x-a".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn statuses_become_errors_that_mean_something() {
        let check = |page: Page, expect: Error| {
            let host = Host::new().page("https://example.org/", page);
            assert_eq!(
                host.run(|| http::get("https://example.org/").send()).unwrap_err(),
                expect
            );
        };
        let status = |status| Page::html("").status(status);
        check(status(401), Error::LoginRequired(None));
        check(status(429).header("Retry-After", "7"), Error::RateLimited(Some(7)));
        check(status(500), Error::Upstream(500));
    }

    #[test]
    fn what_a_site_no_longer_has_is_a_parse_error() {
        let host = Host::new().page("https://example.org/", Page::json(r#"{"a": 5}"#));
        let page = host.run(|| http::get("https://example.org/").send()).unwrap();
        assert_eq!(page.number("/a"), Ok(5));
        assert!(matches!(page.string("/a"), Err(Error::Parse(_))));
        assert!(matches!(page.number("/b"), Err(Error::Parse(_))));
    }

    #[test]
    fn storage_log_and_randomness_belong_to_the_host() {
        let host = Host::new().now_ms(5).locale("de");
        host.run(|| storage::set("a", b"1", None)).unwrap();
        host.run(|| log::warn("careful"));
        assert_eq!(host.run(|| storage::keys("")), ["a"]);
        assert_eq!(host.log(), ["Warn: careful"]);
        assert_eq!(host.run(|| (env::now_ms(), env::locale())), (5, "de".to_owned()));
        let random = |host: &Host| host.run(|| env::random(20));
        assert_eq!(random(&Host::new()), random(&Host::new()));
        assert_ne!(random(&host), random(&host));
    }

    #[test]
    fn a_host_keeps_what_it_knows_after_a_panic() {
        let host = Host::new().setting("a", "b");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            host.run(|| http::get("https://unknown.example/").send())
        }));
        assert!(panicked.is_err());
        assert_eq!(host.run(|| env::setting("a")).as_deref(), Some("b"));
    }
}
