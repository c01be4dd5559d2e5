//! Fixtures, replayed against a plugin outside the sandbox. The host replays the same files inside it.

use std::{error::Error as _, fs, path::Path};

use serde_json::{Value, json};
use svc_plugin_fixture::{Call as Function, Fixture, Response, Tape, mismatch, record::result};

use super::{Feed, Host, Link, Listing, Page, State};
use crate::{Error, FeedHandler, Preview, Resolver, Result};

/// What [`plugin!`](crate::plugin) makes of a type: something that fixtures can be replayed against.
pub trait Plugin {
    /// What the plugin can do.
    fn capabilities() -> Capabilities;
}

/// The functions of a plugin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Capabilities {
    resolver: Option<ResolverCalls>,
    preview: Option<fn(&Host, &str) -> Result<Listing>>,
    feed: Option<FeedCalled>,
}

/// The URL, when it was last read, and the etag of then.
type FeedCalled = fn(&Host, &str, Option<u64>, Option<&str>) -> Result<Feed>;

#[derive(Debug, Clone, Copy)]
struct ResolverCalls {
    resolve: fn(&Host, &str, Option<&str>) -> Result<Listing>,
    more: fn(&Host, &str, &str) -> Result<Listing>,
    link: fn(&Host, &str, &str, Option<&str>) -> Result<Link>,
}

impl Capabilities {
    /// With those of a resolver.
    #[must_use]
    pub fn with_resolver<T: Resolver>(self) -> Self {
        let resolver = Some(ResolverCalls {
            resolve: Host::resolve_with::<T>,
            more: Host::more::<T>,
            link: Host::link::<T>,
        });
        Self { resolver, ..self }
    }

    /// With that of a preview.
    #[must_use]
    pub fn with_preview<T: Preview>(self) -> Self {
        let preview = Some(Host::preview::<T> as fn(&Host, &str) -> Result<Listing>);
        Self { preview, ..self }
    }

    /// With that of a feed handler.
    #[must_use]
    pub fn with_feed<T: FeedHandler>(self) -> Self {
        let feed = Some(Host::feed_since::<T> as FeedCalled);
        Self { feed, ..self }
    }

    /// The result of a fixture's call, as fixtures expect it.
    fn call(&self, host: &Host, fixture: &Fixture) -> Result<Value> {
        let input = &fixture.input;
        let resolver = || self.resolver.ok_or_else(|| missing("Resolver"));
        Ok(match fixture.call {
            Function::Resolve => {
                let listing = (resolver()?.resolve)(host, &input.url, input.password.as_deref())?;
                result(&listing)
            }
            Function::More => result(&(resolver()?.more)(host, &input.url, &input.token)?),
            Function::LinkFor => {
                let link = (resolver()?.link)(host, &input.url, &input.entry, input.variant.as_deref())?;
                result(&link)
            }
            Function::Preview => {
                let preview = self.preview.ok_or_else(|| missing("Preview"))?;
                result(&preview(host, &input.url)?)
            }
            Function::Feed => {
                let feed = self.feed.ok_or_else(|| missing("FeedHandler"))?;
                result(&feed(host, &input.url, input.since, input.etag.as_deref())?)
            }
        })
    }
}

fn missing(capability: &str) -> Error {
    Error::Unsupported(format!("the plugin is no {capability}"))
}

/// Replays the fixture at `path`, relative to the package, against plugin `T`.
///
/// # Panics
///
/// If the result, or the traffic, is not the recorded one.
pub fn replay<T: Plugin>(path: impl AsRef<Path>) {
    let path = path.as_ref();
    let fixture = Fixture::read(path).unwrap_or_else(|error| {
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        panic!("{error}: {cause}");
    });
    if let Err(reason) = play(T::capabilities(), &fixture) {
        panic!("{}: {reason}", path.display());
    }
}

/// Replays all fixtures in a folder, relative to the package, against plugin `T`.
///
/// # Panics
///
/// If one fails, or there is none.
pub fn replay_all<T: Plugin>(folder: impl AsRef<Path>) {
    let folder = folder.as_ref();
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    let mut paths: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    assert!(!paths.is_empty(), "there is no fixture in {}", folder.display());
    paths.sort();
    for path in paths {
        replay::<T>(path);
    }
}

fn play(capabilities: Capabilities, fixture: &Fixture) -> Result<(), String> {
    let host = Host(
        State {
            settings: fixture.settings.clone(),
            now_ms: fixture.now,
            random: fixture.seed,
            tape: Some(Tape::new(fixture.exchanges.clone())),
            ..State::default()
        }
        .into(),
    );
    let result = match capabilities.call(&host, fixture) {
        Ok(result) => result,
        Err(error) if fixture.expect.get("error").is_some() => json!({ "error": error.code() }),
        Err(error) => return Err(format!("it answered {}: {error}", error.code())),
    };
    if let Some(mismatch) = mismatch(&fixture.expect, &result) {
        return Err(mismatch.to_string());
    }
    let unused = host.0.borrow().tape.iter().flat_map(Tape::unused).collect::<Vec<_>>();
    if unused.is_empty() {
        Ok(())
    } else {
        Err(format!("nobody asked for {}", unused.join(", ")))
    }
}

impl From<&Response> for Page {
    fn from(response: &Response) -> Self {
        let headers = response.headers.iter();
        Self {
            status: response.status,
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
                .collect(),
            body: response.body().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, http};

    struct Acme;

    impl Resolver for Acme {
        fn resolve(call: &Call, out: &crate::Listing<'_>) -> Result<()> {
            let page = http::get(call.url()).header("X-Key", "1").send()?;
            out.add_path("1", &page.text()?)
                .size(5)
                .link(crate::Link::new(page.url()));
            Ok(())
        }
    }

    crate::plugin!(Acme: Resolver);

    /// What is wrong with a fixture that resolves `/a`, where the site answers `exchanges`.
    fn reason(call: &str, exchanges: &Value, expect: &Value) -> Option<String> {
        let fixture = json!({
            "name": "a", "call": call, "input": {"url": "https://example.org/a"},
            "exchanges": exchanges, "expect": expect,
        });
        let fixture = serde_json::from_value(fixture).unwrap();
        play(Acme::capabilities(), &fixture).err()
    }

    fn answer(url: &str, status: u16) -> Value {
        json!({
            "request": {"url": url, "headers": {"x-key": "1"}},
            "response": {"status": status, "headers": {"Location": "/b"}, "body": "folder/a.zip"},
        })
    }

    #[test]
    fn a_fixture_is_right_if_its_result_and_its_traffic_are() {
        let [ok, moved] = [200, 302].map(|status| answer("https://example.org/a", status));
        let behind = answer("https://example.org/b", 200);
        let expect =
            json!({"entries": [{"name": "a.zip", "folder": "folder", "link": {"url": "https://example.org/a"}}]});
        assert_eq!(reason("resolve", &json!([ok]), &expect), None);
        let wrong = reason("resolve", &json!([moved, behind]), &expect);
        assert_eq!(
            wrong.as_deref(),
            Some("/entries/0/link/url: is \"https://example.org/b\"; \"https://example.org/a\" is expected")
        );
        let unused = reason("resolve", &json!([ok, behind]), &expect);
        assert_eq!(
            unused.as_deref(),
            Some("nobody asked for GET https://example.org/b x-key: 1")
        );
    }

    #[test]
    fn an_error_is_right_if_it_is_the_expected_one() {
        let gone = json!([answer("https://example.org/a", 410)]);
        assert_eq!(reason("resolve", &gone, &json!({"error": "gone"})), None);
        assert!(reason("resolve", &gone, &json!({"error": "notFound"})).is_some());
        assert!(reason("resolve", &gone, &json!({"entries": []})).is_some());
        let ok = json!([answer("https://example.org/a", 200)]);
        assert!(reason("resolve", &ok, &json!({"error": "gone"})).is_some());
        assert_eq!(reason("preview", &json!([]), &json!({"error": "unsupported"})), None);
    }

    #[test]
    #[should_panic(
        expected = "nothing is recorded for GET https://example.org/a; the closest that is left is GET https://example.org/ab"
    )]
    fn a_request_that_was_not_recorded_fails() {
        reason("resolve", &json!([answer("https://example.org/ab", 200)]), &json!({}));
    }
}
