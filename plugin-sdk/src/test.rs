//! A host for tests: it answers from pages that the test gives it, and keeps what the plugin did.

use std::{cell::RefCell, rc::Rc, time::Duration};

pub use svc_plugin_fixture::{
    Packed,
    screen::{Done, Field, OpenUrl, Qr, Screen},
    work::PostResult,
};

pub use self::{
    fixture::{Capabilities, Plugin, replay, replay_all},
    login::LoginSession,
};
pub use crate::world::{Cipher, Enclosure, Entry, Feed, Item, Link, Listing, Page, Segment, Sent};
use crate::{
    Call, FeedCall, FeedHandler, HookEvent, HookHandler, PostCall, PostProcessor, Preview, Resolver, Result, Work,
    native,
    world::{RUNNING, State},
};

mod fixture;
mod login;

/// A host that answers from pages. What the plugin stores stays with it from call to call.
#[derive(Debug, Default)]
pub struct Host(RefCell<State>);

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

    /// Has `yt-dlp` find this at the page `url`, in the JSON form of the contract (`tools.discover`).
    #[cfg(feature = "serde")]
    #[must_use]
    pub fn media(self, url: &str, json: &str) -> Self {
        self.with(|state| _ = state.media.insert(url.to_owned(), Ok(json.to_owned())))
    }

    /// Has `yt-dlp` fail at the page `url`.
    #[cfg(feature = "serde")]
    #[must_use]
    pub fn no_media(self, url: &str, error: crate::tools::ToolError) -> Self {
        self.with(|state| _ = state.media.insert(url.to_owned(), Err(error)))
    }

    /// Gives the finished download a file.
    #[must_use]
    pub fn file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.with(|state| state.files.add(name, bytes.as_ref()))
    }

    /// Gives the finished download an archive, with its volumes.
    #[must_use]
    pub fn archive(self, name: &str, packed: Packed) -> Self {
        self.with(|state| state.files.add_archive(name, packed))
    }

    /// Sets a setting of the plugin.
    #[must_use]
    pub fn setting(self, key: &str, value: &str) -> Self {
        self.with(|state| _ = state.settings.insert(key.to_owned(), value.to_owned()))
    }

    /// Gives the account of a slot a secret.
    #[must_use]
    pub fn secret(self, slot: &str, name: &str, value: &str) -> Self {
        self.with(|state| state.keep_secret(slot, name, value))
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

    /// Reads the feed of `url` with plugin `T` for the first time.
    pub fn feed<T: FeedHandler>(&self, url: &str) -> Result<Feed> {
        self.feed_since::<T>(url, None, None)
    }

    /// Reads the feed of `url` with plugin `T` again: `since_ms` is when it was last read, `etag` what it gave then.
    pub fn feed_since<T: FeedHandler>(&self, url: &str, since_ms: Option<u64>, etag: Option<&str>) -> Result<Feed> {
        let sink = native::feed_sink::Sink(Rc::default());
        self.run(|| {
            let call = FeedCall::new(url.to_owned(), since_ms, etag.map(str::to_owned))?;
            T::fetch(&call, &crate::Feed::new(&sink))
        })?;
        Ok(sink.0.take())
    }

    /// Tells the hook `T` of an event. Returns after how long it wants another try.
    pub fn hook<T: HookHandler>(&self, event: &HookEvent) -> Result<Option<Duration>> {
        self.run(|| T::handle(event))
    }

    /// Has plugin `T` work on the files of the finished download of `url`, which is about `main`. If that fails, they stay as
    /// they were.
    pub fn post<T: PostProcessor>(&self, url: &str, main: &str) -> Result<PostResult> {
        let before = self.0.borrow().files.clone();
        let done = self.run(|| {
            let call = PostCall::new(url.to_owned(), main.to_owned())?;
            T::done(&call, &Work::new(&native::workspace::Dir))
        });
        if let Err(error) = done {
            self.0.borrow_mut().files = before;
            return Err(error);
        }
        Ok(self.0.borrow().files.result())
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

    /// The names of the secrets that the account of a slot has, sorted.
    pub fn secrets(&self, slot: &str) -> Vec<String> {
        self.0.borrow().secret_names(slot)
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
    fn requests_of_an_account_have_its_secrets_and_tell_which_one_must_log_in() {
        let host = Host::new()
            .page("https://example.org/", Page::html("").status(401))
            .secret("main", "access", "abcdef");
        let ask = |slot| {
            let request = http::get("https://example.org/").account(slot);
            host.run(|| request.secret_header("Authorization", "Bearer {access}").send())
        };
        assert_eq!(ask("main").unwrap_err(), Error::LoginRequired(Some("main".to_owned())));
        assert_eq!(
            ask("other").unwrap_err(),
            Error::Internal("there is no secret access".to_owned())
        );
    }

    #[test]
    fn captured_values_are_kept_and_not_seen() {
        let page = |value: &str| {
            let body = format!(r#"{{"token": "{value}", "again": "{value}", "number": 12345, "list": []}}"#);
            Page::json(body).header("X-Token", value)
        };
        let host = Host::new()
            .page("https://example.org/", page("abcdef"))
            .page("https://example.org/short", page("abc"));
        let ask = |path: &str| http::get(format!("https://example.org/{path}")).account("main");
        let answer = host
            .run(|| {
                let request = ask("")
                    .capture_json("/token", "token")
                    .capture_json("/number", "number");
                request
                    .capture_json("/list", "list")
                    .capture_json("/none", "none")
                    .send()
            })
            .unwrap();
        assert_eq!(
            answer.text().unwrap(),
            r#"{"token": "‹secret:token›", "again": "‹secret:token›", "number": ‹secret:number›, "list": []}"#
        );
        assert_eq!(answer.header("x-token").as_deref(), Some("‹secret:token›"));
        assert_eq!(host.secrets("main"), ["number", "token"]);
        let refused = host.run(|| ask("short").capture_header("x-token", "token").send());
        assert_eq!(
            refused.unwrap_err(),
            Error::Internal("a secret has 4 to 4096 bytes; token has 3".to_owned())
        );
    }

    #[test]
    fn cookies_are_captured_on_the_way_through_redirects() {
        let host = Host::new()
            .page(
                "https://example.org/login",
                Page::redirect("/home").header("Set-Cookie", "session=abcdef; HttpOnly"),
            )
            .page(
                "https://example.org/home",
                Page::html("").header("Set-Cookie", "lang=en"),
            );
        let request = || http::post("https://example.org/login").capture_cookie("session", "session");
        let answer = host.run(|| request().send()).unwrap();
        assert_eq!((answer.status(), answer.header("set-cookie")), (200, None));
        assert_eq!(host.secrets(""), ["session"]);
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
