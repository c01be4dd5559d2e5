//! Fixtures, replayed against a plugin outside the sandbox. The host replays the same files inside it.

use std::{collections::BTreeMap, error::Error as _, fs, path::Path, time::Duration};

use serde_json::{Value, json};
use svc_plugin_fixture::{
    Call as Function, Fixture, HookEvent as Happened, LoginInput, Response, Tape, mismatch,
    record::result,
    screen::{LoginResult, Screen},
    work::{Files, PostResult},
};

use super::{Feed, Host, Link, Listing, Page, State};
use crate::{Error, FeedHandler, HookEvent, HookHandler, HookKind, Login, PostProcessor, Preview, Resolver, Result};

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
    hook: Option<HookCalled>,
    post: Option<PostCalled>,
    login: Option<LoginCalls>,
}

/// The URL, when it was last read, and the etag of then.
type FeedCalled = fn(&Host, &str, Option<u64>, Option<&str>) -> Result<Feed>;

/// The answer is when a failed download is to be tried again.
type HookCalled = fn(&Host, &HookEvent) -> Result<Option<Duration>>;

/// The URL and the name of the main file.
type PostCalled = fn(&Host, &str, &str) -> Result<PostResult>;

#[derive(Debug, Clone, Copy)]
struct ResolverCalls {
    resolve: fn(&Host, &str, Option<&str>) -> Result<Listing>,
    more: fn(&Host, &str, &str) -> Result<Listing>,
    link: fn(&Host, &str, &str, Option<&str>) -> Result<Link>,
}

#[derive(Debug, Clone, Copy)]
struct LoginCalls {
    login: fn(&Host, &LoginInput) -> Result<LoginResult>,
    check: fn(&Host, &str) -> Result<bool>,
    refresh: fn(&Host, &str) -> Result<Screen>,
    logout: fn(&Host, &str),
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

    /// With that of a hook.
    #[must_use]
    pub fn with_hooks<T: HookHandler>(self) -> Self {
        let hook = Some(Host::hook::<T> as fn(&Host, &HookEvent) -> Result<Option<Duration>>);
        Self { hook, ..self }
    }

    /// With that of a post-processor.
    #[must_use]
    pub fn with_post<T: PostProcessor>(self) -> Self {
        let post = Some(Host::post::<T> as PostCalled);
        Self { post, ..self }
    }

    /// With those of a login.
    #[must_use]
    pub fn with_login<T: Login>(self) -> Self {
        let login = Some(LoginCalls {
            login: Host::play_login::<T>,
            check: Host::check_login::<T>,
            refresh: Host::refresh_login::<T>,
            logout: Host::logout::<T>,
        });
        Self { login, ..self }
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
            Function::Hook => {
                let hook = self.hook.ok_or_else(|| missing("HookHandler"))?;
                let retry = hook(host, &event(fixture)?)?;
                result(&json!({ "retryAfterMs": retry.map(|wait| wait.as_millis()) }))
            }
            Function::Post => {
                let post = self.post.ok_or_else(|| missing("PostProcessor"))?;
                let main = input.post.as_ref().map(|post| post.main.as_str());
                result(&post(host, &input.url, main.unwrap_or_default())?)
            }
            Function::Login | Function::CheckLogin | Function::RefreshLogin | Function::Logout => {
                result(&self.call_login(host, fixture)?)
            }
        })
    }

    fn call_login(&self, host: &Host, fixture: &Fixture) -> Result<LoginResult> {
        let calls = self.login.ok_or_else(|| missing("Login"))?;
        let input = fixture.input.login.as_ref();
        let input = input.ok_or_else(|| Error::InvalidInput("the input of the fixture has no login".to_owned()))?;
        let slot = &input.slot;
        let mut result = LoginResult::default();
        match fixture.call {
            Function::CheckLogin => result.valid = Some((calls.check)(host, slot)?),
            Function::RefreshLogin => result.screens = vec![(calls.refresh)(host, slot)?],
            Function::Logout => (calls.logout)(host, slot),
            _ => return (calls.login)(host, input),
        }
        Ok(LoginResult {
            secrets: host.secrets(slot),
            ..result
        })
    }
}

/// What the hook of a fixture is told.
fn event(fixture: &Fixture) -> Result<HookEvent> {
    let input = fixture.input.hook.clone();
    let input = input.ok_or_else(|| Error::InvalidInput("the input of the fixture has no hook".to_owned()))?;
    let kind = match input.event {
        Happened::Start => HookKind::Start,
        Happened::MetaProbed => HookKind::MetaProbed,
        Happened::Done => HookKind::Done,
        Happened::Error => HookKind::Error,
    };
    Ok(HookEvent {
        task_id: input.task_id,
        file_name: input.file_name,
        total_bytes: input.total_bytes,
        error_kind: input.error_kind,
        message: input.message,
        attempts: input.attempts,
        ..HookEvent::new(kind, &fixture.input.url)
    })
}

/// The stand-ins for the secrets of a fixture's accounts.
fn secrets(fixture: &Fixture) -> BTreeMap<(String, String), String> {
    let of_slot = |(slot, names): (&String, &Vec<String>)| {
        let stand_in = |name: &String| ((slot.clone(), name.clone()), format!("stand-in-for-{name}"));
        names.iter().map(stand_in).collect::<Vec<_>>()
    };
    fixture.secrets.iter().flat_map(of_slot).collect()
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
            secrets: secrets(fixture),
            now_ms: fixture.now,
            random: fixture.seed,
            tape: Some(Tape::new(fixture.exchanges.clone())),
            files: fixture.input.post.as_ref().map(Files::from).unwrap_or_default(),
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

    impl Login for Acme {
        fn new(_: &str, _: crate::Mode) -> Self {
            Self
        }

        fn start(&mut self, screen: &mut crate::Screen<'_>) -> Result<()> {
            screen.field("user", "User").secret_field("password", "Password");
            Ok(())
        }

        fn answer(&mut self, values: &crate::Answers, screen: &mut crate::Screen<'_>) -> Result<()> {
            let request = http::post("https://example.org/login").account("main");
            let request = request.secret_json("/password", &values.secret("password")?);
            request.capture_json("/access", "access").send()?;
            screen.done(values.text("user")?, "Ann");
            Ok(())
        }

        fn check(slot: &str) -> Result<bool> {
            Ok(crate::vault::account(slot).has("access"))
        }

        fn logout(slot: &str) {
            crate::vault::account(slot).forget("access");
        }
    }

    impl HookHandler for Acme {
        fn on_error(event: &HookEvent) -> Result<Option<Duration>> {
            http::get(format!(
                "https://example.org/{}",
                event.error_kind.as_deref().unwrap_or_default()
            ))
            .send()?;
            Ok((event.attempts < 2).then_some(Duration::from_secs(5)))
        }
    }

    impl PostProcessor for Acme {
        fn done(call: &crate::PostCall, work: &crate::Work<'_>) -> Result<()> {
            let directories = work.unpack(call.main(), &["right"])?;
            work.remove_archive(call.main())?;
            work.write_new(
                "note.txt",
                format!("{} is now {}", call.url().as_str(), directories.join(", ")),
            )
        }
    }

    crate::plugin!(Acme: Resolver, Login, HookHandler, PostProcessor);

    #[test]
    fn work_on_finished_files_is_replayed() {
        let reason = |password: &str, expect: &Value| {
            let fixture = json!({
                "name": "a", "call": "post", "exchanges": [], "expect": expect,
                "input": {"url": "https://example.org/a", "post": {
                    "main": "a.zip", "files": {"a.zip": "", "b.txt": ""},
                    "archives": {"a.zip": {"directory": "a", "password": password}},
                }},
            });
            play(Acme::capabilities(), &serde_json::from_value(fixture).unwrap()).err()
        };
        let done = json!({
            "files": ["b.txt", "note.txt"], "written": {"note.txt": "https://example.org/a is now a"},
            "unpacked": ["a"], "removed": ["a.zip"],
        });
        assert_eq!(reason("right", &done), None);
        assert!(reason("other", &done).is_some());
        assert_eq!(reason("other", &json!({"error": "invalidInput"})), None);
    }

    #[test]
    fn a_hook_is_replayed() {
        let reason = |hook: Value, expect: Value| {
            let is_asked = hook["event"] == "error";
            let asked = json!([{"request": {"url": "https://example.org/network"}, "response": {"status": 200}}]);
            let fixture = json!({
                "name": "a", "call": "hook", "input": {"url": "https://example.org/", "hook": hook}, "expect": expect,
                "exchanges": if is_asked { asked } else { json!([]) },
            });
            play(Acme::capabilities(), &serde_json::from_value(fixture).unwrap()).err()
        };
        let failed = json!({"event": "error", "errorKind": "network"});
        assert_eq!(reason(failed.clone(), json!({"retryAfterMs": 5000})), None);
        assert!(reason(failed, json!({"retryAfterMs": 5001})).is_some());
        let again = json!({"event": "error", "errorKind": "network", "attempts": 2});
        assert_eq!(reason(again, json!({"retryAfterMs": null})), None);
        assert_eq!(reason(json!({"event": "done"}), json!({"retryAfterMs": null})), None);
    }

    /// What is wrong with a fixture of a login.
    fn login_reason(call: &str, input: &Value, expect: &Value) -> Option<String> {
        let fixture = json!({
            "name": "a", "call": call, "input": {"url": "https://example.org/", "login": input}, "expect": expect,
            "secrets": if call == "login" { json!({}) } else { json!({"main": ["access"]}) },
            "exchanges": if call == "login" { json!([{
                "request": {
                    "method": "POST", "url": "https://example.org/login", "body": r#"{"password":"‹secret:password›"}"#,
                },
                "response": {"status": 200, "body": r#"{"access":"‹secret:access›"}"#},
            }]) } else { json!([]) },
        });
        let fixture = serde_json::from_value(fixture).unwrap();
        play(Acme::capabilities(), &fixture).err()
    }

    #[test]
    fn a_login_is_replayed_step_by_step() {
        let steps = json!(["poll", {"answer": {"user": "ann", "password": "hidden"}}]);
        let login = json!({"slot": "main", "mode": "password", "steps": steps});
        let expect = json!({
            "screens": [
                {"fields": [{"key": "user", "secret": false}, {"key": "password", "label": "Password", "secret": true}]},
                {"fields": null, "message": null},
                {"done": {"accountId": "ann", "name": "Ann"}},
            ],
            "secrets": ["access"],
        });
        assert_eq!(login_reason("login", &login, &expect), None);
        let fax = json!({"slot": "main", "mode": "fax"});
        assert!(login_reason("login", &fax, &json!({})).is_some());
    }

    #[test]
    fn the_calls_about_an_account_are_replayed() {
        let slot = json!({"slot": "main"});
        let check = |call, expect| assert_eq!(login_reason(call, &slot, &expect), None);
        check("checkLogin", json!({"valid": true, "secrets": ["access"]}));
        check("refreshLogin", json!({"error": "loginRequired"}));
        check("logout", json!({"secrets": null}));
    }

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
