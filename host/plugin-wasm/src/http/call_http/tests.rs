//! What the HTTP client of a call may send, against sites in a table.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use accounts::BoundSecret;
use egress::Reach;
use plugin_host::{InputHost, LogLevel};
use transfer::{Credentials, RequestOptions, Secret};

use super::*;
use crate::{
    call::CallContext,
    capability::bindings::svc::plugin::http::HttpError,
    http::{Exchanged, secret::Capture},
    outside::{Pending, Vault},
};

/// Sites that answer from a table, and what they were asked.
#[derive(Debug, Default)]
struct Sites {
    answers: BTreeMap<String, Answer>,
    asked: Mutex<Vec<Exchange>>,
}

impl Sites {
    fn page(self, url: &str, body: &str) -> Self {
        self.answer(url, 200, &[], body)
    }

    fn redirect(self, url: &str, status: u16, location: &str) -> Self {
        self.answer(url, status, &[("location", location)], "")
    }

    fn answer(mut self, url: &str, status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let answer = Answer {
            status,
            headers: headers.collect(),
            body: body.to_owned().into(),
        };
        self.answers.insert(url.to_owned(), answer);
        self
    }
}

impl Network for Sites {
    fn exchange(&self, exchange: Exchange) -> Exchanged<'_> {
        let answer = self.answers.get(exchange.url.as_str()).cloned();
        self.asked.lock().unwrap().push(exchange);
        Box::pin(async {
            // What is not in the table never answers.
            match answer {
                Some(answer) => Ok(answer),
                None => std::future::pending().await,
            }
        })
    }
}

/// The journal's lines of requests.
#[derive(Debug, Default)]
struct Lines(Mutex<Vec<String>>);

impl LogSink for Lines {
    fn write(&self, _: LogLevel, _: &str) {}

    fn progress(&self, _: u32, _: Option<u32>, _: &str) {}

    fn exchanged(&self, line: RequestLine) {
        self.0.lock().unwrap().push(line.address);
    }
}

struct Bench {
    sites: Arc<Sites>,
    lines: Arc<Lines>,
    session: CallHttp,
    context: CallContext,
}

fn bench(sites: Sites, limits: HttpLimits) -> Bench {
    bench_with(sites, limits, Keys::default())
}

fn bench_with(sites: Sites, limits: HttpLimits, keys: Keys) -> Bench {
    let sites = Arc::new(sites);
    let hosts = [
        "https://a.example",
        "https://b.example",
        "https://*.cdn.example",
        "https://10.0.0.1",
    ];
    let task: Url = "https://a.example/task".parse().unwrap();
    let grants = Grants {
        hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
        input_host: Some(InputHost::found("https://input.example/".parse().unwrap())),
        ..Grants::default()
    };
    let login = Credentials {
        user: "me".to_owned(),
        password: Secret::new("pw"),
    };
    let request = RequestOptions {
        cookies: Secret::new("task=1"),
        headers: vec![("X-Of-User".to_owned(), Secret::new("yes"))],
        credentials: Some(login),
        ..RequestOptions::default()
    };
    let lines = Arc::new(Lines::default());
    let context = CallContext {
        grants,
        log: lines.clone(),
        network: sites.clone(),
        vault: Arc::new(keys),
        task: Some(TaskSite::new(task, request)),
        ..CallContext::isolated()
    };
    let session = context.http(limits);
    Bench {
        sites,
        lines,
        session,
        context,
    }
}

/// One secret, `token`, for `a.example` and its CDN, what was captured, and perhaps an account `main`.
#[derive(Debug, Default)]
struct Keys(Mutex<BTreeMap<String, BoundSecret>>, Option<Arc<Keys>>);

fn token() -> BoundSecret {
    let hosts = ["https://a.example", "https://*.cdn.example"].map(|host| host.parse().unwrap());
    BoundSecret::new(Secret::new("hunter2&x"), hosts.into())
}

impl Vault for Keys {
    fn of_account(&self, _slot: String) -> Pending<'_, Option<Arc<dyn Vault>>> {
        let main = self.1.clone().map(|main| main as Arc<dyn Vault>);
        Box::pin(async { main })
    }

    fn slots(&self) -> Pending<'_, Vec<String>> {
        let slots = self.1.iter().map(|_| "main".to_owned()).collect();
        Box::pin(async { slots })
    }

    fn all(&self) -> Pending<'_, Vec<(String, BoundSecret)>> {
        let captured = self.0.lock().unwrap();
        let captured = captured.iter().map(|(name, secret)| (name.clone(), secret.clone()));
        let all: Vec<_> = captured.chain([("token".to_owned(), token())]).collect();
        Box::pin(async move { all })
    }

    fn find(&self, name: String) -> Pending<'_, Option<BoundSecret>> {
        let captured = self.0.lock().unwrap().get(&name).cloned();
        Box::pin(async move { captured.or_else(|| (name == "token").then(token)) })
    }

    fn capture(&self, name: String, value: Secret, url: Url) -> Pending<'_, Result<(), String>> {
        let secret = BoundSecret::captured(value, &url, Vec::new());
        self.0.lock().unwrap().insert(name, secret);
        Box::pin(async { Ok(()) })
    }

    fn keep_derived(&self, name: String, secret: BoundSecret) -> Result<(), String> {
        self.0.lock().unwrap().insert(name, secret);
        Ok(())
    }

    fn forget(&self, name: String) -> Pending<'_, ()> {
        self.0.lock().unwrap().remove(&name);
        Box::pin(async {})
    }

    fn cookies(&self) -> Pending<'_, Option<Vec<u8>>> {
        Box::pin(async { None })
    }

    fn keep_cookies(&self, _: Vec<u8>) -> Pending<'_, ()> {
        Box::pin(async {})
    }
}

impl Bench {
    async fn get(&self, url: &str) -> Result<Response, FetchError> {
        self.session.send(Request::new("GET", url)).await
    }

    fn asked(&self) -> Vec<Exchange> {
        self.sites.asked.lock().unwrap().clone()
    }

    fn header(&self, index: usize, name: &str) -> Option<String> {
        let asked = self.asked();
        let mut headers = asked[index].headers.iter();
        headers.find(|(other, _)| other == name).map(|(_, value)| value.clone())
    }
}

fn of(sites: Sites) -> Bench {
    bench(sites, HttpLimits::default())
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_they_are_granted() {
    let bench = of(Sites::default()
        .redirect("https://a.example/", 302, "/next")
        .redirect("https://a.example/next", 301, "https://x.cdn.example/file")
        .page("https://x.cdn.example/file", "here"));
    let response = bench.get("https://a.example/").await.unwrap();
    assert_eq!(
        (response.final_url.as_str(), &response.body[..]),
        ("https://x.cdn.example/file", &b"here"[..])
    );
    assert!(bench.asked().iter().all(|exchange| exchange.reach == Reach::Global));
}

#[tokio::test]
async fn a_redirect_to_what_was_not_granted_is_not_asked() {
    for target in [
        "https://evil.example/",
        "http://a.example/",
        "https://a.example:8443/",
        "https://u:p@a.example/",
        "https://127.0.0.1/",
        "https://10.0.0.1/",
        "file:///etc/passwd",
    ] {
        let bench = of(Sites::default().redirect("https://a.example/", 302, target));
        let refused = bench.get("https://a.example/").await;
        assert!(matches!(refused, Err(FetchError::Denied(_))), "{target}: {refused:?}");
        assert_eq!(bench.asked().len(), 1, "{target}");
        assert_eq!(bench.session.traffic().denied.len(), 1);
    }
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    let bench = of(Sites::default()
        .redirect("https://a.example/", 302, "/same")
        .redirect("https://a.example/same", 302, "https://b.example/")
        .page("https://b.example/", ""));
    let mut request = Request::new("GET", "https://a.example/");
    for name in ["Authorization", "X-Api-Key", "Accept"] {
        request.set_header(name, "v");
    }
    request.cookies = Cookies::JarAndTask;
    bench.session.send(request).await.unwrap();
    for name in ["authorization", "x-api-key", "cookie"] {
        assert!(bench.header(1, name).is_some(), "{name} stays at its origin");
        assert_eq!(bench.header(2, name), None, "{name} goes nowhere else");
    }
    assert_eq!(bench.header(2, "accept").as_deref(), Some("v"));
}

#[tokio::test]
async fn a_body_goes_along_only_where_it_should() {
    let post = |url: &str| {
        let mut request = Request::new("POST", url);
        request.body = Bytes::from_static(b"secret");
        request.set_header("content-type", "text/plain");
        request
    };
    let bench = of(Sites::default()
        .redirect("https://a.example/303", 303, "https://b.example/")
        .redirect("https://a.example/307", 307, "/page")
        .redirect("https://a.example/308", 308, "https://b.example/")
        .page("https://a.example/page", "")
        .page("https://b.example/", ""));
    bench.session.send(post("https://a.example/303")).await.unwrap();
    let asked = bench.asked();
    assert_eq!((asked[1].method.as_str(), asked[1].body.len()), ("GET", 0));
    bench.session.send(post("https://a.example/307")).await.unwrap();
    let asked = bench.asked();
    assert_eq!((asked[3].method.as_str(), &asked[3].body[..]), ("POST", &b"secret"[..]));
    let refused = bench.session.send(post("https://a.example/308")).await;
    assert!(matches!(refused, Err(FetchError::Invalid(_))));
    assert_eq!(bench.asked().len(), 5);
}

#[tokio::test]
async fn cookies_are_kept_for_their_site_and_hidden_from_the_plugin() {
    let bench = of(Sites::default()
        .answer(
            "https://a.example/",
            200,
            &[("set-cookie", "s=1; Path=/"), ("set-cookie", "x=2; Domain=b.example")],
            "",
        )
        .page("https://a.example/again", "")
        .page("https://b.example/", ""));
    let response = bench.get("https://a.example/").await.unwrap();
    assert!(response.header_all("Set-Cookie").is_empty());
    bench.get("https://a.example/again").await.unwrap();
    assert_eq!(bench.header(1, "cookie").as_deref(), Some("s=1"));
    bench.get("https://b.example/").await.unwrap();
    assert_eq!(bench.header(2, "cookie"), None);
    let mut without = Request::new("GET", "https://a.example/again");
    without.cookies = Cookies::None;
    bench.session.send(without).await.unwrap();
    assert_eq!(bench.header(3, "cookie"), None);
}

#[tokio::test]
async fn requests_bytes_and_redirects_have_an_end() {
    let limits = HttpLimits {
        requests: 3,
        total_bytes: 10,
        response_bytes: 8,
        redirects: 1,
        ..HttpLimits::default()
    };
    let sites = || {
        Sites::default()
            .page("https://a.example/", "1234567")
            .redirect("https://b.example/", 302, "/")
    };
    let bench_of_bytes = bench(sites(), limits.clone());
    for expect in [8, 3, 0] {
        bench_of_bytes.get("https://a.example/").await.unwrap();
        assert_eq!(bench_of_bytes.asked().last().unwrap().max_bytes, expect);
    }
    assert_eq!(
        bench_of_bytes.get("https://a.example/").await.unwrap_err(),
        FetchError::TooManyRequests
    );
    let redirected = bench(sites(), limits).get("https://b.example/").await;
    assert_eq!(
        redirected.unwrap_err(),
        FetchError::Invalid("too many redirects".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_site_that_never_answers_is_given_up() {
    let bench = of(Sites::default());
    let mut request = Request::new("GET", "https://a.example/");
    request.timeout = Some(Duration::from_hours(1));
    let started = Instant::now();
    let given_up = bench.session.send(request).await;
    assert_eq!(given_up.unwrap_err(), FetchError::Network(NetworkError::Timeout));
    assert_eq!(started.elapsed(), HttpLimits::default().max_timeout);
}

#[tokio::test(start_paused = true)]
async fn many_are_sent_side_by_side_and_answered_in_order() {
    let bench = of(Sites::default()
        .page("https://a.example/", "a")
        .page("https://b.example/", "b"));
    let urls = [
        "https://b.example/",
        "https://a.example/never",
        "https://evil.example/",
        "https://a.example/",
    ];
    let results = bench
        .session
        .send_all(urls.map(|url| Request::new("GET", url)).into())
        .await;
    let bodies: Vec<_> = results
        .iter()
        .map(|result| result.as_ref().ok().map(|response| &response.body[..]))
        .collect();
    assert_eq!(bodies, [Some(&b"b"[..]), None, None, Some(&b"a"[..])]);
}

#[tokio::test]
async fn a_cached_response_is_not_asked_for_again() {
    let bench = of(Sites::default().page("https://a.example/", "a"));
    let request = || {
        let mut request = Request::new("GET", "https://a.example/");
        request.cached_for = Duration::from_mins(1);
        request
    };
    bench.session.send(request()).await.unwrap();
    bench.session.send(request()).await.unwrap();
    assert_eq!(bench.asked().len(), 1);
    let mut other = request();
    other.set_header("accept", "x");
    bench.session.send(other).await.unwrap();
    assert_eq!(bench.asked().len(), 2);

    // The plugin's next call, and one that may no longer reach the host.
    let next = bench.context.http(HttpLimits::default());
    next.send(request()).await.unwrap();
    assert_eq!(bench.asked().len(), 2);
    let context = CallContext {
        grants: Grants::default(),
        ..bench.context.clone()
    };
    let denied = context.http(HttpLimits::default()).send(request()).await;
    assert!(matches!(denied, Err(FetchError::Denied(_))));
}

#[tokio::test]
async fn cookies_are_there_in_the_next_call() {
    let bench = of(Sites::default()
        .answer("https://a.example/", 200, &[("set-cookie", "s=1")], "")
        .page("https://a.example/again", ""));
    bench.get("https://a.example/").await.unwrap();
    let next = bench.context.http(HttpLimits::default());
    next.send(Request::new("GET", "https://a.example/again")).await.unwrap();
    assert_eq!(bench.header(1, "cookie").as_deref(), Some("s=1"));
}

#[tokio::test]
async fn who_may_read_cookies_is_shown_them() {
    let sites = Sites::default().answer("https://a.example/", 200, &[("set-cookie", "s=1")], "");
    let bench = of(sites);
    let mut context = bench.context.clone();
    context.grants.reads_cookies = true;
    let session = context.http(HttpLimits::default());
    let response = session.send(Request::new("GET", "https://a.example/")).await.unwrap();
    assert_eq!(response.header_all("set-cookie"), ["s=1"]);
}

#[tokio::test]
async fn what_the_user_gave_for_the_task_goes_to_its_site_only_and_only_if_asked_for() {
    let bench = of(Sites::default()
        .page("https://a.example/", "")
        .page("https://b.example/", ""));
    for (mode, url) in [
        (Cookies::JarAndTask, "https://a.example/"),
        (Cookies::JarAndTask, "https://b.example/"),
        (Cookies::Jar, "https://a.example/"),
    ] {
        let mut request = Request::new("GET", url);
        request.cookies = mode;
        bench.session.send(request).await.unwrap();
    }
    assert_eq!(bench.header(0, "cookie").as_deref(), Some("task=1"));
    assert_eq!(bench.header(0, "authorization").as_deref(), Some("Basic bWU6cHc="));
    assert_eq!(bench.header(0, "x-of-user").as_deref(), Some("yes"));
    for other in [1, 2] {
        for name in ["cookie", "authorization", "x-of-user"] {
            assert_eq!(bench.header(other, name), None, "{other} {name}");
        }
    }
}

#[tokio::test]
async fn a_secret_is_put_in_where_it_is_bound_and_nowhere_else() {
    let bench = of(Sites::default()
        .redirect("https://a.example/", 302, "https://x.cdn.example/")
        .redirect("https://x.cdn.example/", 302, "https://b.example/")
        .page("https://b.example/", ""));
    let mut request = Request::new("GET", "https://a.example/");
    request.add_secret(SecretPosition::Header, "Authorization", "Bearer {token}");
    let response = bench.session.send(request).await.unwrap();
    assert_eq!(response.final_url.as_str(), "https://b.example/");
    for bound in [0, 1] {
        assert_eq!(
            bench.header(bound, "authorization").as_deref(),
            Some("Bearer hunter2&x")
        );
    }
    assert_eq!(bench.header(2, "authorization"), None);

    for (url, template) in [("https://b.example/", "{token}"), ("https://a.example/", "{other}")] {
        let mut request = Request::new("GET", url);
        request.add_secret(SecretPosition::Header, "X-Key", template);
        let refused = bench.session.send(request).await;
        assert!(
            matches!(refused, Err(FetchError::Secret(_) | FetchError::Invalid(_))),
            "{url}"
        );
    }
    assert_eq!(bench.asked().len(), 3);
}

#[tokio::test]
async fn a_secret_in_a_query_or_a_form_is_written_as_such() {
    let bench = of(Sites::default()
        .page("https://a.example/?a=1&key=hunter2%26x", "")
        .page("https://a.example/login", "")
        .redirect("https://a.example/307", 307, "https://b.example/"));
    let mut query = Request::new("GET", "https://a.example/?a=1");
    query.add_secret(SecretPosition::Query, "key", "{token}");
    let response = bench.session.send(query).await.unwrap();
    assert_eq!(response.final_url.as_str(), "https://a.example/?a=1");
    let form = |url: &str| {
        let mut form = Request::new("POST", url);
        form.body = Bytes::from_static(b"user=me");
        form.add_secret(SecretPosition::Form, "password", "{token}");
        form
    };
    bench.session.send(form("https://a.example/login")).await.unwrap();
    assert_eq!(&bench.asked()[1].body[..], b"user=me&password=hunter2%26x");
    let refused = bench.session.send(form("https://a.example/307")).await;
    assert!(matches!(refused, Err(FetchError::Invalid(_))));
    assert_eq!(bench.asked().len(), 3);
}

#[tokio::test]
async fn a_secret_that_comes_back_is_not_shown_nor_carried_on_by_a_redirect() {
    let echo = "{\"q\": \"hunter2&x\", \"u\": \"https://a.example/?k=hunter2%26x\"}";
    let bench = of(Sites::default()
        .answer("https://a.example/", 200, &[("x-echo", "hunter2&x")], echo)
        .redirect("https://a.example/away", 302, "https://b.example/?k=hunter2%26x")
        .redirect("https://a.example/stay", 302, "/?k=hunter2%26x")
        .page("https://a.example/?k=hunter2%26x", "ok"));
    let with_token = |url: &str| {
        let mut request = Request::new("GET", url);
        request.add_secret(SecretPosition::Header, "X-Key", "{token}");
        request
    };
    let mut response = bench.session.send(with_token("https://a.example/")).await.unwrap();
    let text = response.text();
    assert!(!text.contains("hunter2") && text.contains("‹secret:token›"), "{text}");
    assert_eq!(response.header_all("x-echo"), ["‹secret:token›"]);
    let carried = bench.session.send(with_token("https://a.example/away")).await;
    assert!(matches!(carried, Err(FetchError::Secret(_))), "{carried:?}");
    assert!(
        bench
            .asked()
            .iter()
            .all(|asked| asked.url.host_str() == Some("a.example"))
    );
    let stayed = bench.session.send(with_token("https://a.example/stay")).await.unwrap();
    assert!(!stayed.final_url.as_str().contains("hunter2"), "{}", stayed.final_url);
}

#[tokio::test]
async fn a_captured_value_is_replaced_and_can_be_used() {
    let body = "{\"user\": \"me\", \"access\": \"eyJh\\/Y2Nlc3M\", \"n\": 1}";
    let bench = of(Sites::default()
        .answer("https://a.example/login", 200, &[("x-session", "s3ss10n")], body)
        .page("https://a.example/api", "")
        .page("https://b.example/", ""));
    let mut login = Request::new("POST", "https://a.example/login");
    login.add_capture(Capture::Json("/access".to_owned(), "access".to_owned()));
    login.add_capture(Capture::Header("X-Session".to_owned(), "session".to_owned()));
    let mut response = bench.session.send(login).await.unwrap();
    let text = response.text();
    assert_eq!(&*text, "{\"user\": \"me\", \"access\": \"‹secret:access›\", \"n\": 1}");
    assert_eq!(response.header_all("x-session"), ["‹secret:session›"]);

    let mut api = Request::new("GET", "https://a.example/api");
    api.add_secret(SecretPosition::Header, "Authorization", "Bearer {access}");
    bench.session.send(api).await.unwrap();
    assert_eq!(bench.header(1, "authorization").as_deref(), Some("Bearer eyJh/Y2Nlc3M"));
    let mut other = Request::new("GET", "https://b.example/");
    other.add_secret(SecretPosition::Header, "X-Stolen", "{access}");
    assert!(matches!(bench.session.send(other).await, Err(FetchError::Secret(_))));
}

/// A value that `a.example` gave out.
const SESSION: &str = "S3ss10nT0ken+/=";

/// A plugin with that value, in front of these sites.
async fn with_session(sites: Sites) -> Bench {
    let bench = of(sites.answer("https://a.example/login", 200, &[("x-session", SESSION)], ""));
    let mut login = Request::new("POST", "https://a.example/login");
    login.add_capture(Capture::Header("X-Session".to_owned(), "session".to_owned()));
    bench.session.send(login).await.unwrap();
    bench
}

#[tokio::test]
async fn theft_by_redirect_tells_its_plugin_and_the_journal_nothing() {
    let targets = [
        "https://s3ss10nt0ken.b.example/",
        "https://b.example/?k=S3ss10nT0ken%2B%2F%3D",
        "https://b.example/s3SS10NT0KEN%2b/%3d",
        "https://evil.example/S3ss10nT0ken+/=",
        "https://S3ss10nT0ken%2B%2F%3D@b.example/",
        "https://b.example/?u=https%3A%2F%2Fc%3Fk%3DS3ss10nT0ken%25252B%25252F%25253D",
        "https://b.example/#S3ss10nT0ken+/=",
    ];
    for (number, target) in targets.iter().enumerate() {
        for carries_it in [true, false] {
            let bench = with_session(Sites::default().redirect("https://a.example/", 302, target)).await;
            let mut request = Request::new("GET", "https://a.example/");
            if carries_it {
                request.add_secret(SecretPosition::Header, "X-Key", "{session}");
            }
            let refused = bench.session.send(request).await.unwrap_err();
            // The first has a part of the value in it, and is not granted.
            let is_leak = matches!(refused, FetchError::Secret(_));
            assert!(is_leak || number == 0, "{target}: {refused:?}");
            let seen_by_guest = HttpError::try_from(refused).unwrap();
            let lines = bench.lines.0.lock().unwrap().clone();
            let texts = format!("{seen_by_guest:?} {:?} {lines:?}", bench.session.traffic().denied);
            let is_told = texts.to_lowercase().contains("s3ss10nt0ken");
            assert!(!is_told || number == 0 && !carries_it, "{target}: {texts}");
            assert_eq!(bench.asked().len(), 2, "{target}");
        }
    }
}

#[tokio::test]
async fn a_redirect_carries_no_cookie_to_another_site() {
    let set = "sid=c00kie-of-a-session; Path=/";
    let bench = of(Sites::default()
        .answer("https://a.example/", 200, &[("set-cookie", set)], "")
        .redirect(
            "https://a.example/away",
            302,
            "https://b.example/?s=c00kie-of-a-session",
        )
        .redirect("https://a.example/stay", 302, "/?s=c00kie-of-a-session")
        .page("https://a.example/?s=c00kie-of-a-session", ""));
    bench.get("https://a.example/").await.unwrap();
    let refused = bench.get("https://a.example/away").await;
    assert!(matches!(refused, Err(FetchError::Secret(_))), "{refused:?}");
    let stayed = bench.get("https://a.example/stay").await.unwrap();
    assert!(!stayed.final_url.as_str().contains("c00kie"), "{}", stayed.final_url);
}

#[tokio::test]
async fn a_host_that_a_secret_is_not_for_does_not_tell_whether_a_guess_is_right() {
    let guess = "hunter2&x S3ss10nT0ken+/=";
    let bench = with_session(
        Sites::default()
            .page("https://b.example/", guess)
            .page("https://a.example/", guess)
            .redirect("https://a.example/away", 302, "https://b.example/")
            .redirect("https://b.example/away", 302, "https://x.cdn.example/?k=hunter2%26x")
            .page("https://x.cdn.example/?k=hunter2%26x", ""),
    )
    .await;
    let text = async |url: &str| bench.get(url).await.unwrap().text().to_string();
    assert_eq!(text("https://b.example/").await, guess);
    assert_eq!(text("https://a.example/").await, "‹secret:token› ‹secret:session›");
    // The first of the two hosts may have told it the other.
    assert_eq!(text("https://a.example/away").await, "‹secret:token› ‹secret:session›");
    assert_eq!(text("https://b.example/away").await, "");
}

#[tokio::test]
async fn a_selector_does_not_find_out_letters_of_a_secret() {
    let page =
        "<input name=t value='hunter2&amp;x-1'><meta name=m content=\"&lt;S3ss10nT0ken%2B%2F%3D&gt;\"> ‹secret:token›";
    let bench = with_session(
        Sites::default()
            .page("https://a.example/", page)
            .page("https://b.example/", page),
    )
    .await;
    let captured = async |url: &str, css: &str| {
        let mut request = Request::new("GET", url);
        request.add_capture(Capture::Form(css.to_owned(), "found".to_owned()));
        bench.session.send(request).await.unwrap();
        let vault = &bench.context.vault;
        let found = vault.find("found".to_owned()).await;
        vault.forget("found".to_owned()).await;
        found.map(|found| found.value().expose().to_owned())
    };
    let site = "https://a.example/";
    for css in ["[value^=h]", "[value*=unter]", "[content*=S3ss]", "[value*=secret]"] {
        assert_eq!(captured(site, css).await, None, "{css}");
    }
    let value = captured(site, "input[value$='-1']").await;
    assert_eq!(value.as_deref(), Some("hunter2&x-1"));
    let content = captured(site, "meta").await;
    assert_eq!(content.as_deref(), Some("<S3ss10nT0ken%2B%2F%3D>"));
    // What only looks like the name of a secret is not filled in.
    let forged = of(Sites::default().page("https://b.example/", "<p>‹secret:token›</p>"));
    let mut request = Request::new("GET", "https://b.example/");
    request.add_capture(Capture::Form("p".to_owned(), "found".to_owned()));
    forged.session.send(request).await.unwrap();
    let found = forged.context.vault.find("found".to_owned()).await.unwrap();
    assert_eq!(found.value().expose(), "‹secret:token›");
}

#[tokio::test]
async fn the_journal_s_addresses_hold_no_sessions() {
    let bench = with_session(
        Sites::default()
            .page("https://a.example/list;jsessionid=0123/page;v=1?q=2", "")
            .page("https://a.example/of/S3ss10nT0ken+%2F=/x", ""),
    )
    .await;
    bench
        .get("https://a.example/list;jsessionid=0123/page;v=1?q=2")
        .await
        .unwrap();
    bench.get("https://a.example/of/S3ss10nT0ken+%2F=/x").await.unwrap();
    let lines = bench.lines.0.lock().unwrap().clone();
    let expected = ["login", "list/page", "of/‹secret:session›/x"].map(|path| format!("https://a.example/{path}"));
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_number_that_is_captured_is_a_text_in_what_the_plugin_reads() {
    let body = r#"{"pin": 12345, "again": "12345"}"#;
    let bench = of(Sites::default().page("https://a.example/", body));
    let mut request = Request::new("GET", "https://a.example/");
    request.add_capture(Capture::Json("/pin".to_owned(), "pin".to_owned()));
    let mut response = bench.session.send(request).await.unwrap();
    assert!(
        response.text().starts_with(r#"{"pin": "‹secret:pin›", "#),
        "{}",
        response.text()
    );
}

#[tokio::test]
async fn a_long_response_is_searched_in_turns() {
    let bench = of(Sites::default().page("https://a.example/", &"hunter2 ".repeat(512 * 1024)));
    let (mut turns, mut sent) = (0, None);
    tokio::select! {
        response = bench.get("https://a.example/") => sent = Some(response),
        () = async { loop { tokio::task::yield_now().await; turns += 1; } } => {}
    }
    assert_eq!(sent.unwrap().unwrap().body.len(), 4 * 1024 * 1024);
    assert!(turns >= 16, "{turns}");
}

#[tokio::test]
async fn more_cookies_than_can_be_searched_for_withhold_what_the_site_answers() {
    let cookies: Vec<_> = (0..300)
        .map(|number| format!("c{number}={number:04}{}", "x+y/".repeat(1000)))
        .collect();
    let headers: Vec<_> = cookies.iter().map(|cookie| ("set-cookie", cookie.as_str())).collect();
    let limits = HttpLimits {
        header_bytes: usize::MAX,
        header_lines: usize::MAX,
        ..HttpLimits::default()
    };
    let bench = bench(
        Sites::default()
            .answer("https://a.example/", 200, &headers, "a page")
            .page("https://b.example/", "a page"),
        limits,
    );
    let mut withheld = bench.get("https://a.example/").await.unwrap();
    assert_eq!(&*withheld.text(), "‹secret:withheld›");
    let mut other = bench.get("https://b.example/").await.unwrap();
    assert_eq!(&*other.text(), "a page");
}

#[tokio::test]
async fn what_cannot_be_sent_is_said_when_it_is_sent() {
    let bench = of(Sites::default());
    let mut smuggles = Request::new("GET", "https://a.example/");
    smuggles.set_header("X-A", "a\r\nHost: b");
    let mut large = Request::new("POST", "https://a.example/");
    large.body = vec![0; HttpLimits::default().request_bytes + 1].into();
    for request in [
        smuggles,
        large,
        Request::new("CONNECT", "https://a.example/"),
        Request::new("GET", "nonsense"),
    ] {
        assert!(matches!(bench.session.send(request).await, Err(FetchError::Invalid(_))));
    }
    assert!(bench.asked().is_empty());
}

/// Sites of which one page has this type and these bytes.
fn typed(content_type: &str, body: &[u8]) -> Sites {
    let mut sites = Sites::default().answer("https://a.example/", 200, &[("content-type", content_type)], "");
    let page = sites.answers.get_mut("https://a.example/").unwrap();
    page.body = body.to_vec().into();
    sites
}

#[tokio::test]
async fn text_is_decoded_as_the_response_says() {
    for (content_type, body, expected) in [
        ("text/html; charset=\"ISO-8859-1\"", &b"\xe4"[..], "ä"),
        ("text/html;charset=gbk", b"\xc4\xe3", "你"),
        ("text/html", "ä".as_bytes(), "ä"),
        ("text/html; charset=gbk", b"\xef\xbb\xbf\xc3\xa4", "ä"),
        ("text/html; charset=utf-8", b"\xff\xfe\xe4\0", "ä"),
        ("image/png; charset=binary", b"\x89PNG", "\u{fffd}PNG"),
    ] {
        let mut response = of(typed(content_type, body)).get("https://a.example/").await.unwrap();
        assert_eq!(&*response.text(), expected, "{content_type}");
    }
    let long = typed("text/plain; charset=windows-1252", &[0x80; 1000]);
    let limits = HttpLimits {
        response_bytes: 2000,
        ..HttpLimits::default()
    };
    let refused = bench(long, limits).get("https://a.example/").await;
    assert_eq!(refused.err(), Some(FetchError::Network(NetworkError::TooLarge(2000))));
}

#[tokio::test]
async fn a_secret_is_found_in_any_encoding() {
    let secret = "pä55wort";
    let latin1: Vec<u8> = secret.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let utf16: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (content_type, body) in [
        ("text/html; charset=iso-8859-1", latin1),
        ("text/html", [b"\xff\xfe", &utf16[..]].concat()),
        ("text/html; charset=utf-16le", utf16),
    ] {
        let bench = of(typed(content_type, &body));
        let from = "https://a.example/".parse().unwrap();
        let vault = &bench.context.vault;
        vault
            .capture("password".to_owned(), Secret::new(secret), from)
            .await
            .unwrap();
        let mut response = bench.get("https://a.example/").await.unwrap();
        assert_eq!(response.body, "‹secret:password›", "{content_type}");
        assert_eq!(&*response.text(), "‹secret:password›", "{content_type}");
    }
}

#[tokio::test]
async fn a_part_of_a_file_is_withheld_where_it_may_be_a_part_of_a_secret() {
    let bench = of(Sites::default()
        .answer("https://a.example/", 206, &[("content-range", "bytes 0-3/9")], "hunt")
        .answer("https://b.example/", 206, &[("content-range", "bytes 0-3/9")], "hunt"));
    let withheld = bench.get("https://a.example/").await.unwrap();
    assert_eq!(
        (withheld.status, &*withheld.body),
        (206, "‹secret:withheld›".as_bytes())
    );
    assert_eq!(withheld.header_all("content-range"), ["bytes 0-3/9"]);
    assert_eq!(bench.get("https://b.example/").await.unwrap().body, "hunt");
}

#[tokio::test]
async fn a_capture_under_the_name_of_a_sent_secret_does_not_show_that() {
    let bench = with_session(Sites::default().answer(
        "https://a.example/",
        200,
        &[("date", "Mon, 01 Jan 2024")],
        &format!("you sent {SESSION}"),
    ))
    .await;
    let mut request = Request::new("GET", "https://a.example/");
    request.add_secret(SecretPosition::Header, "X-Key", "{session}");
    request.add_capture(Capture::Header("date".to_owned(), "session".to_owned()));
    let mut response = bench.session.send(request).await.unwrap();
    assert_eq!(&*response.text(), "you sent ‹secret:session›");
}

#[tokio::test]
async fn a_cookie_that_a_response_replaces_is_not_shown_by_it() {
    let set = |value: &str| format!("sid={value}; Path=/");
    let (old, new) = (set("c00kie-of-a-session"), set("gone"));
    let bench = of(Sites::default()
        .answer("https://a.example/", 200, &[("set-cookie", &old)], "")
        .answer(
            "https://a.example/out",
            200,
            &[("set-cookie", &new)],
            "c00kie-of-a-session",
        ));
    bench.get("https://a.example/").await.unwrap();
    let mut response = bench.get("https://a.example/out").await.unwrap();
    assert_eq!(&*response.text(), "‹secret:cookie›");
}

#[tokio::test]
async fn the_address_that_a_plugin_wrote_does_not_tell_whether_a_guess_is_right() {
    let bench = of(Sites::default()
        .page("https://a.example/#hunter1&x,hunter2&x", "")
        .page("https://a.example/next#hunter2&x", "")
        .page("https://b.example/#hunter2&x", "")
        .redirect("https://a.example/away#hunter2&x", 302, "https://b.example/")
        .redirect("https://a.example/stay#hunter2&x", 302, "/next")
        .redirect("https://a.example/tells", 302, "/?k=hunter2%26x")
        .page("https://a.example/?k=hunter2%26x", ""));
    for (asked, reached) in [
        (
            "https://a.example/#hunter1&x,hunter2&x",
            "https://a.example/#hunter1&x,hunter2&x",
        ),
        ("https://a.example/stay#hunter2&x", "https://a.example/next#hunter2&x"),
        ("https://a.example/away#hunter2&x", "https://b.example/#hunter2&x"),
    ] {
        let response = bench.get(asked).await.unwrap();
        assert_eq!(response.final_url.as_str(), reached);
    }
    let told = bench.get("https://a.example/tells").await.unwrap();
    assert!(!told.final_url.as_str().contains("hunter2"), "{}", told.final_url);
}

#[tokio::test]
async fn a_secret_of_an_account_is_not_shown_to_a_request_without_it() {
    let main = Keys::default();
    let from: Url = "https://a.example/".parse().unwrap();
    let typed = Secret::new("c0rrect-horse");
    main.capture("password".to_owned(), typed, from).await.unwrap();
    let sites = Sites::default()
        .page("https://a.example/bio", "c0rrect-horse")
        .page("https://b.example/bio", "c0rrect-horse")
        .redirect("https://a.example/", 302, "https://b.example/?p=c0rrect-horse");
    let bench = bench_with(sites, HttpLimits::default(), Keys(Mutex::default(), Some(main.into())));
    let mut bio = bench.get("https://a.example/bio").await.unwrap();
    assert_eq!(&*bio.text(), "‹secret:password›");
    let refused = bench.get("https://a.example/").await;
    assert!(matches!(refused, Err(FetchError::Secret(_))), "{refused:?}");
    let mut other = bench.get("https://b.example/bio").await.unwrap();
    assert_eq!(&*other.text(), "c0rrect-horse", "it is not for this host");
}

#[tokio::test]
async fn what_the_user_gave_for_the_task_is_not_shown() {
    let sites = Sites::default()
        .page(
            "https://a.example/",
            "0123456789abcdef t0ken-of-the-user-1 pa55word bWU6cGE1NXdvcmQ= light en-US Agent/1.0 (of the user)",
        )
        .redirect("https://a.example/away", 302, "https://b.example/?s=0123456789abcdef")
        .page("https://b.example/", "0123456789abcdef");
    let Bench { context, .. } = of(sites);
    let field = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
    let request = RequestOptions {
        cookies: Secret::new("sid=0123456789abcdef; theme=light"),
        headers: vec![
            field("Authorization", "Bearer t0ken-of-the-user-1"),
            field("Accept-Language", "en-US"),
            field("User-Agent", "Agent/1.0 (of the user)"),
        ],
        credentials: Some(Credentials {
            user: "me".to_owned(),
            password: Secret::new("pa55word"),
        }),
        ..RequestOptions::default()
    };
    let task = TaskSite::new("https://a.example/task".parse().unwrap(), request);
    let session = CallContext {
        task: Some(task),
        ..context
    }
    .http(HttpLimits::default());
    let get = async |url: &str| {
        let mut request = Request::new("GET", url);
        request.cookies = Cookies::JarAndTask;
        session.send(request).await
    };
    let mut page = get("https://a.example/").await.unwrap();
    assert_eq!(
        &*page.text(),
        "‹secret:cookie› ‹secret:authorization› ‹secret:password› ‹secret:login› light en-US Agent/1.0 (of the user)"
    );
    let refused = get("https://a.example/away").await;
    assert!(matches!(refused, Err(FetchError::Secret(_))), "{refused:?}");
    let mut other = get("https://b.example/").await.unwrap();
    assert_eq!(&*other.text(), "0123456789abcdef");
}

#[tokio::test]
async fn a_cookie_that_a_redirect_sets_may_be_in_its_target_on_another_site() {
    let set = "oauth_state=0123456789abcdef0123456789abcdef; Path=/";
    let target = "https://b.example/authorize?state=0123456789abcdef0123456789abcdef";
    let headers = [("set-cookie", set), ("location", target)];
    let session = "sid=fedcba9876543210fedcba9876543210; Path=/";
    let own = [
        ("set-cookie", session),
        ("location", "/;sid=fedcba9876543210fedcba9876543210"),
    ];
    let sites = || {
        Sites::default()
            .answer("https://a.example/login", 302, &headers, "")
            .answer("https://a.example/session", 302, &own, "")
            .page(target, "")
    };
    let bench = of(sites());
    bench.get("https://a.example/login").await.unwrap();
    assert_eq!(bench.asked().len(), 2);
    // The second time it is a cookie that the site had set before.
    let refused = bench.get("https://a.example/login").await;
    assert!(matches!(refused, Err(FetchError::Secret(_))), "{refused:?}");

    let bench = of(sites());
    let by_hand = async |url: &str| {
        let mut request = Request::new("GET", url);
        request.follows_redirects = false;
        let response = bench.session.send(request).await.unwrap();
        response.header_all("location").concat()
    };
    assert_eq!(by_hand("https://a.example/login").await, target);
    assert_eq!(by_hand("https://a.example/session").await, "/;sid=‹secret:cookie›");
}

#[tokio::test(start_paused = true)]
async fn searching_counts_also_for_a_request_that_is_given_up_and_no_more_are_sent_without_time() {
    let bench = of(Sites::default().redirect("https://a.example/", 302, "/never"));
    let given_up = bench.get("https://a.example/").await;
    assert_eq!(given_up.err(), Some(FetchError::Network(NetworkError::Timeout)));
    assert!(!bench.session.computing().take().is_zero());

    bench.session.computing().allow(Duration::ZERO);
    let refused = bench.get("https://a.example/").await;
    assert_eq!(refused.err(), Some(FetchError::TooMuchWork));
    assert_eq!(bench.asked().len(), 3, "not after the first redirect");
}

/// A network at which every request waits half a minute for its turn.
#[derive(Debug)]
struct Crowded(Duration);

impl Network for Crowded {
    fn exchange(&self, exchange: Exchange) -> Exchanged<'_> {
        Box::pin(async move {
            let waiting = exchange.clock.wait();
            tokio::time::sleep(Duration::from_secs(30)).await;
            drop(waiting);
            tokio::time::sleep(self.0).await;
            Ok(Answer {
                status: 200,
                headers: Vec::new(),
                body: Bytes::new(),
            })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_turn_counts_neither_for_a_request_nor_for_its_call() {
    for (answers_in, is_answered) in [(1, true), (60, false)] {
        let context = CallContext {
            network: Arc::new(Crowded(Duration::from_secs(answers_in))),
            grants: Grants {
                hosts: vec!["https://a.example".parse().unwrap()],
                ..Grants::default()
            },
            ..CallContext::isolated()
        };
        let session = context.http(HttpLimits::default());
        let requests = vec![Request::new("GET", "https://a.example/"); 3];
        let wall = Duration::from_secs(50);
        let sent = context.clock.timeout(wall, session.send_all(requests)).await.unwrap();
        for response in sent {
            let expected = (!is_answered).then_some(FetchError::Network(NetworkError::Timeout));
            assert_eq!(response.err(), expected);
        }
        assert_eq!(context.clock.waited().as_secs(), 30);
    }
}
