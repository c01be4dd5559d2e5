//! The environment of a call: live, live and recorded, or replayed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use accounts::{Redactor, placeholder};
use svc_plugin_fixture::{Asked, Exchange, Request, Response, Tape};
use transfer::ByteCount;

use crate::policy::grant::CallTarget;

/// Limit of a recording: more than four times a page with ten thousand files.
const MAX_WATCHED_BYTES: usize = 8 * 1024 * 1024;

/// The shortest cookie or header value that is redacted elsewhere: shorter ones occur in pages by chance.
const MIN_VALUE_BYTES: usize = 4;

/// The environment of a call.
#[derive(Debug, Clone, Default)]
pub enum World {
    /// The network, the machine's clock and random numbers.
    #[default]
    Live,
    /// The network, with a fixed clock and seed; exchanges are recorded.
    Watched(Arc<Watch>),
    Recorded(Arc<Replay>),
}

/// The clock and seed of a recorded call. Both are fixed while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedClock {
    /// Milliseconds of the Unix epoch.
    pub now_ms: u64,
    /// Decides all random bytes.
    pub seed: u64,
}

impl World {
    /// The fixed clock and seed; `None` if live.
    pub fn moment(&self) -> Option<RecordedClock> {
        match self {
            Self::Live => None,
            Self::Watched(watch) => Some(watch.moment),
            Self::Recorded(replay) => Some(replay.moment),
        }
    }

    /// The redactor that must know the call's secrets.
    pub(crate) fn redactor(&self) -> Option<&Redactor> {
        match self {
            Self::Live => None,
            Self::Watched(watch) => Some(&watch.redactor),
            Self::Recorded(replay) => Some(&replay.redactor),
        }
    }
}

/// Records the exchanges of a call.
#[derive(Debug)]
pub struct Watch {
    moment: RecordedClock,
    redactor: Redactor,
    seen: Mutex<Seen>,
}

/// Raw exchanges; redacted before they are returned.
#[derive(Default)]
struct Seen {
    exchanges: Vec<Exchange>,
    bytes: usize,
    gap: Option<Gap>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seen").finish_non_exhaustive()
    }
}

/// Why a recording is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Gap {
    #[error("the call exchanged more than {}", ByteCount(MAX_WATCHED_BYTES as u64))]
    TooMuch,
    #[error("{0} was not answered")]
    Unanswered(String),
}

/// The values of the cookies of a field `Cookie`, without quotes.
pub fn cookie_values(cookies: &str) -> impl Iterator<Item = &str> {
    let pairs = cookies.split(';').filter_map(|pair| pair.split_once('='));
    pairs.map(|(_, value)| value.trim().trim_matches('"'))
}

impl Watch {
    pub(crate) fn new(moment: RecordedClock, redactor: Redactor) -> Self {
        Self {
            moment,
            redactor,
            seen: Mutex::default(),
        }
    }

    /// Registers a secret to be redacted wherever it occurs.
    pub fn keep_secret(&self, name: &str, value: &str) {
        if value.len() >= MIN_VALUE_BYTES {
            self.redactor.learn(name, value);
        }
    }

    /// Registers the user's cookies, headers and credentials as secrets.
    pub(crate) fn redact_given(&self, given: &CallTarget) {
        let request = &given.request;
        self.keep_cookies(request.cookies.expose());
        for (name, value) in &request.headers {
            self.keep_secret(name, value.expose());
        }
        if let Some(login) = &request.credentials {
            let password = login.password.expose();
            self.redactor.learn("password", password);
            self.redactor.learn("login", &format!("{}:{password}", login.user));
        }
    }

    fn keep_cookies(&self, cookies: &str) {
        for value in cookie_values(cookies) {
            self.keep_secret("cookie", value);
        }
    }

    /// Records an exchange.
    pub fn note(&self, asked: &Asked<'_>, response: Response) {
        let sent = asked
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        sent.for_each(|(_, cookies)| self.keep_cookies(cookies));
        let set = response
            .headers
            .get("set-cookie")
            .into_iter()
            .flat_map(|lines| lines.lines());
        set.for_each(|cookie| self.keep_cookies(cookie.split(';').next().unwrap_or_default()));
        let mut seen = self.seen();
        seen.bytes += asked.url.len() + asked.body.len() + response.body().len();
        if seen.bytes > MAX_WATCHED_BYTES {
            seen.gap.get_or_insert(Gap::TooMuch);
            return;
        }
        let request = Request {
            method: asked.method.to_owned(),
            url: asked.url.to_owned(),
            headers: asked.headers.iter().cloned().collect(),
            body: std::str::from_utf8(asked.body)
                .ok()
                .filter(|body| !body.is_empty())
                .map(str::to_owned),
        };
        seen.exchanges.push(Exchange { request, response });
    }

    /// Records a request without a response.
    pub fn note_silence(&self, url: &str) {
        let url = self.redactor.text(url);
        self.seen().gap.get_or_insert(Gap::Unanswered(url));
    }

    /// The redacted exchanges.
    pub(crate) fn exchanges(&self) -> Result<Vec<Exchange>, Gap> {
        let seen = self.seen();
        match &seen.gap {
            Some(gap) => Err(gap.clone()),
            None => Ok(seen.exchanges.iter().map(|exchange| self.cleaned(exchange)).collect()),
        }
    }

    pub(crate) fn moment(&self) -> RecordedClock {
        self.moment
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    fn cleaned(&self, exchange: &Exchange) -> Exchange {
        let Exchange { request, response } = exchange;
        let headers = clean_headers(&request.headers, &self.redactor);
        Exchange {
            request: Request {
                method: request.method.clone(),
                url: self.redactor.text(&request.url),
                // The host adds cookies on its own.
                headers: headers.filter(|(name, _)| name != "cookie").collect(),
                body: request.body.as_ref().map(|body| self.redactor.text(body)),
            },
            response: Response::new(
                response.status,
                clean_headers(&response.headers, &self.redactor).collect(),
                self.redactor.bytes(response.body()),
            ),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes credentials from headers, and redacts values that contain a secret.
fn clean_headers<'h>(
    headers: &'h BTreeMap<String, String>,
    redactor: &'h Redactor,
) -> impl Iterator<Item = (String, String)> + use<'h> {
    headers.iter().map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let value = match name.as_str() {
            "authorization" | "proxy-authorization" | "cookie" => placeholder(&name),
            "set-cookie" => value.lines().map(clean_cookie).collect::<Vec<_>>().join("\n"),
            _ => redactor.text(value),
        };
        (name, value)
    })
}

/// A cookie with its name and attributes, and without its value.
fn clean_cookie(cookie: &str) -> String {
    let (pair, attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
    let (name, _) = pair.split_once('=').unwrap_or(("", pair));
    let separator = if attributes.is_empty() { "" } else { ";" };
    format!("{name}={}{separator}{attributes}", placeholder("cookie"))
}

/// Replays a recording.
#[derive(Debug)]
pub struct Replay {
    moment: RecordedClock,
    redactor: Redactor,
    played: Mutex<Played>,
}

#[derive(Debug)]
struct Played {
    tape: Tape,
    unrecorded: Vec<String>,
}

impl Replay {
    pub(crate) fn new(moment: RecordedClock, exchanges: Vec<Exchange>, redactor: Redactor) -> Self {
        Self {
            moment,
            redactor,
            played: Mutex::new(Played {
                tape: Tape::new(exchanges),
                unrecorded: Vec::new(),
            }),
        }
    }

    /// The recorded answer; `None` if there is none, which fails the fixture.
    pub fn answer(&self, asked: &Asked<'_>) -> Option<Response> {
        let headers: BTreeMap<_, _> = asked.headers.iter().cloned().collect();
        let headers: Vec<_> = clean_headers(&headers, &self.redactor).collect();
        let (url, body) = (self.redactor.text(asked.url), self.redactor.bytes(asked.body));
        let asked = Asked {
            method: asked.method,
            url: &url,
            headers: &headers,
            body: &body,
        };
        let mut played = self.played();
        match played.tape.answer(asked).cloned() {
            Ok(response) => Some(response),
            Err(unrecorded) => {
                played.unrecorded.push(unrecorded.to_string());
                None
            }
        }
    }

    /// Requests without a recording, and recordings that were not requested.
    pub(crate) fn problems(&self) -> Vec<String> {
        let played = self.played();
        let unused = played
            .tape
            .unused()
            .into_iter()
            .map(|line| format!("recorded but not requested: {line}"));
        played.unrecorded.iter().cloned().chain(unused).collect()
    }

    fn played(&self) -> MutexGuard<'_, Played> {
        self.played.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use transfer::{Credentials, RequestOptions, Secret};

    use super::*;

    const MOMENT: RecordedClock = RecordedClock { now_ms: 0, seed: 0 };

    fn asked<'a>(url: &'a str, headers: &'a [(String, String)], body: &'a [u8]) -> Asked<'a> {
        Asked {
            method: "POST",
            url,
            headers,
            body,
        }
    }

    fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn what_is_written_down_holds_no_secret_and_plays_with_a_stand_in() {
        let redactor = Redactor::default();
        let watch = Watch::new(MOMENT, redactor.clone());
        let headers = fields(&[
            ("authorization", "Bearer opensesame"),
            ("cookie", "sid=abc; s=crumb-1"),
            ("x-key", "opensesame"),
        ]);
        let answered = fields(&[
            ("set-cookie", "sid=abc; Path=/\nother=def; n=1\nnext=\"crumb-2\""),
            ("x-token", "opensesame"),
        ]);
        let response = Response::new(
            200,
            answered.into_iter().collect(),
            b"{\"token\": \"opensesame\", \"session\": \"crumb-1\", \"next\": \"crumb-2\"}".to_vec(),
        );
        watch.note(
            &asked("https://a.test/?k=opensesame", &headers, b"k=opensesame"),
            response,
        );
        // The secret is learnt after the exchange that it is in.
        redactor.learn("token", "opensesame");
        let exchanges = watch.exchanges().unwrap();
        let text = serde_json::to_string(&exchanges).unwrap();
        assert!(
            !["opensesame", "abc", "def", "crumb"]
                .iter()
                .any(|secret| text.contains(secret)),
            "{text}"
        );
        assert_eq!(exchanges[0].request.url, "https://a.test/?k=‹secret:token›");
        assert_eq!(
            exchanges[0].response.headers["set-cookie"],
            "sid=‹secret:cookie›; Path=/\nother=‹secret:cookie›; n=1\nnext=‹secret:cookie›"
        );
        let redactor = Redactor::default();
        redactor.learn("token", "another");
        let replay = Replay::new(MOMENT, exchanges, redactor);
        let headers = fields(&[("authorization", "Bearer another"), ("x-key", "another")]);
        assert!(
            replay
                .answer(&asked("https://a.test/?k=another", &headers, b"k=another"))
                .is_some()
        );
        assert_eq!(replay.problems(), Vec::<String>::new());
    }

    #[test]
    fn what_the_user_gave_for_a_site_is_written_down_nowhere() {
        let watch = Watch::new(MOMENT, Redactor::default());
        let mut given = CallTarget::by_user("https://a.test/".parse().unwrap());
        given.request = RequestOptions {
            headers: vec![("X-Key".to_owned(), Secret::new("in-field"))],
            cookies: Secret::new("a=in-cookie; n=1"),
            credentials: Some(Credentials {
                user: "me".to_owned(),
                password: Secret::new("in-login"),
            }),
            ..RequestOptions::default()
        };
        watch.redact_given(&given);
        // As base64, "me:in-login".
        let body = "1 in-field in-cookie in-login bWU6aW4tbG9naW4=";
        let response = Response::new(200, BTreeMap::new(), body.as_bytes().to_vec());
        watch.note(
            &asked("https://a.test/", &fields(&[("x-key", "in-field")]), b""),
            response,
        );
        let text = serde_json::to_string(&watch.exchanges().unwrap()).unwrap();
        assert!(!text.contains("in-") && !text.contains("bWU6"), "{text}");
        assert!(text.contains("1 ‹secret:X-Key›"), "{text}");
    }

    #[test]
    fn what_is_missing_and_what_is_left_over_are_problems() {
        let watch = Watch::new(MOMENT, Redactor::default());
        watch.note(
            &asked("https://a.test/1", &[], b""),
            Response::new(200, BTreeMap::new(), vec![]),
        );
        let replay = Replay::new(MOMENT, watch.exchanges().unwrap(), Redactor::default());
        assert!(replay.answer(&asked("https://a.test/2", &[], b"")).is_none());
        let problems = replay.problems();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("POST https://a.test/1"), "{problems:?}");
        assert_eq!(problems[1], "recorded but not requested: POST https://a.test/1");
    }

    #[test]
    fn too_much_and_unanswered_is_told() {
        let watch = Watch::new(MOMENT, Redactor::default());
        watch.note_silence("https://a.test/1");
        assert_eq!(watch.exchanges(), Err(Gap::Unanswered("https://a.test/1".to_owned())));
        let watch = Watch::new(MOMENT, Redactor::default());
        let large = Response::new(200, BTreeMap::new(), vec![b'x'; MAX_WATCHED_BYTES]);
        watch.note(&asked("https://a.test/1", &[], b""), large);
        assert_eq!(watch.exchanges(), Err(Gap::TooMuch));
    }
}
