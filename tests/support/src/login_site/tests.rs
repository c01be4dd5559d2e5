//! What the site does, seen by a client with a jar of cookies.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use super::*;
use crate::{answer::Answer, attacker::Attacker, request::Place};

const MARKER: &str = "canary";

/// A client of both hosts; they have one jar, as cookies know no ports.
#[derive(Default)]
struct Client(BTreeMap<String, String>);

impl Client {
    fn send(&mut self, port: u16, head: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut text = format!("{head} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n");
        for (name, value) in headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        let cookies: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            text.extend(["Cookie: ", &cookies.join("; "), "\r\n"]);
        }
        text.extend(["Content-Length: ", &body.len().to_string(), "\r\n\r\n", body]);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let answer = Answer::read(&bytes).unwrap();
        for line in answer.head.lines().filter_map(|line| line.strip_prefix("Set-Cookie: ")) {
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.0.insert(name.to_owned(), value.to_owned());
        }
        answer
    }

    fn get(&mut self, site: &LoginSite, path: &str) -> Answer {
        self.send(site.port(), &format!("GET {path}"), &[], "")
    }

    fn form(&mut self, site: &LoginSite, path: &str, fields: &[(&str, &str)]) -> Answer {
        let pairs = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", value.replace('+', "%2B")));
        let body = pairs.collect::<Vec<_>>().join("&");
        self.send(site.port(), &format!("POST {path}"), &[], &body)
    }

    fn json(&mut self, site: &LoginSite, path: &str, body: &Value) -> Answer {
        let headers = [("Content-Type", "application/json")];
        self.send(site.port(), &format!("POST {path}"), &headers, &body.to_string())
    }
}

fn as_bearer(port: u16, path: &str, token: &str) -> Answer {
    let token = format!("Bearer {token}");
    Client::default().send(port, &format!("GET {path}"), &[("Authorization", &token)], "")
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// The value of an input of a page.
fn input(answer: &Answer, name: &str) -> String {
    let page = text(answer);
    let at = page.split(&format!("name=\"{name}\" value=\"")).nth(1);
    at.expect("the page has the input")
        .split('"')
        .next()
        .unwrap()
        .to_owned()
}

fn tokens(site: &LoginSite) -> Value {
    let body = json!({"user": "ann", "password": "canary-password-ann"});
    let answer = Client::default().json(site, "/api/login", &body);
    assert_eq!(answer.status, 200, "{}", text(&answer));
    answer.json()
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn site_without_pause() -> LoginSite {
    LoginSite::with(SiteOptions {
        poll_pause: Duration::ZERO,
        ..SiteOptions::new(MARKER)
    })
}

fn begin_qr(site: &LoginSite) -> (String, String) {
    let new = Client::default().form(site, "/qr/new", &[]).json();
    assert_eq!(new["expires_in"], 120);
    let state = format!("/qr/state?token={}", text_of(&new, "token"));
    (text_of(&new, "url").to_owned(), state)
}

#[test]
fn a_qr_code_is_scanned_confirmed_and_handed_out_once() {
    let site = site_without_pause();
    let (payload, state) = begin_qr(&site);
    let mut client = Client::default();
    let mut poll = || client.get(&site, &state).json();
    assert_eq!(poll(), json!({"state": "new"}));
    site.scan(&payload);
    assert_eq!(poll(), json!({"state": "scanned"}));
    site.confirm(&payload, "ann");
    let confirmed = poll();
    assert_eq!(
        (&confirmed["state"], &confirmed["user"]["name"]),
        (&json!("confirmed"), &json!("Ann"))
    );
    assert_eq!(poll(), json!({"state": "expired"}));
    assert_eq!(client.get(&site, "/home").status, 200, "it has the cookie, too");
    let access = text_of(&confirmed, "access_token");
    assert_eq!(as_bearer(site.port(), "/api/me", access).json()["user"]["id"], "ann");
    assert!(!payload.contains(MARKER), "the code is for everyone to see");
}

#[test]
fn a_qr_code_is_refused_or_too_old() {
    let site = site_without_pause();
    let mut client = Client::default();
    let (payload, state) = begin_qr(&site);
    site.scan(&payload);
    site.cancel(&payload);
    assert_eq!(client.get(&site, &state).json()["state"], "cancelled");
    let (payload, state) = begin_qr(&site);
    site.expire(&payload);
    assert_eq!(client.get(&site, &state).json()["state"], "expired");
    let site = LoginSite::with(SiteOptions {
        qr_lifetime: Duration::ZERO,
        ..SiteOptions::new(MARKER)
    });
    let new = client.form(&site, "/qr/new", &[]).json();
    let state = format!("/qr/state?token={}", text_of(&new, "token"));
    assert_eq!(client.get(&site, &state).json()["state"], "expired");
    assert_eq!(client.get(&site, "/qr/state?token=other").status, 404);
}

#[test]
fn polls_in_a_hurry_are_refused() {
    let site = LoginSite::with(SiteOptions {
        poll_pause: Duration::from_mins(1),
        ..SiteOptions::new(MARKER)
    });
    let (_, state) = begin_qr(&site);
    let mut client = Client::default();
    assert_eq!(client.get(&site, &state).status, 200);
    let refused = client.get(&site, &state);
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert_eq!(site.seen().last().unwrap().status, 429);
}

#[test]
fn the_form_wants_its_hidden_fields_and_gives_a_cookie() {
    let site = LoginSite::start(MARKER);
    let mut client = Client::default();
    let page = client.get(&site, "/login");
    let csrf = input(&page, "csrf");
    let form = [("user", "ann"), ("password", "canary-password-ann"), ("lang", "en")];
    let mut log_in = |fields: &[(&str, &str)]| client.form(&site, "/login", fields);
    assert_eq!(log_in(&form).status, 403, "without the token of the form");
    let with_token = |fields: &[(&'static str, &'static str)]| -> Vec<(&'static str, String)> {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned()));
        fields.chain([("csrf", csrf.clone())]).collect()
    };
    let mut send = |fields: &[(&'static str, &'static str)]| {
        let fields = with_token(fields);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        log_in(&fields)
    };
    assert_eq!(send(&form[..2]).status, 400, "without the other hidden field");
    let wrong = send(&[("user", "ann"), ("password", "x"), ("lang", "en")]);
    assert!(text(&wrong).contains("is wrong"), "{}", text(&wrong));
    let welcome = send(&form);
    assert_eq!((welcome.status, welcome.header("location")), (303, Some("/home")));
    assert!(text(&client.get(&site, "/home")).contains("Ann"));
    assert_eq!(client.get(&site, "/logout").status, 303);
    assert_eq!(client.get(&site, "/home").status, 302);
    assert_eq!(site.open_sessions(), 0);
}

#[test]
fn a_second_factor_has_three_tries() {
    let site = LoginSite::start(MARKER);
    let begin = || {
        let mut client = Client::default();
        let csrf = input(&client.get(&site, "/login"), "csrf");
        let fields = [
            ("csrf", csrf.as_str()),
            ("lang", "en"),
            ("user", "bob"),
            ("password", "canary-password-bob"),
        ];
        let page = client.form(&site, "/login", &fields);
        assert!(text(&page).contains("second-factor"), "{}", text(&page));
        (client, csrf)
    };
    let code = |(client, csrf): &mut (Client, String), code: &str| {
        client.form(&site, "/login/code", &[("csrf", csrf), ("code", code)])
    };
    let mut login = begin();
    assert_eq!(code(&mut login, "111111").status, 200);
    assert_eq!(code(&mut login, "424242").status, 303);
    assert!(text(&login.0.get(&site, "/home")).contains("Bob"));
    let mut login = begin();
    let statuses = [(); 4].map(|()| code(&mut login, "111111").status);
    assert_eq!(statuses, [200, 200, 403, 403]);
    assert_eq!(code(&mut login, "424242").status, 403, "it is over");
}

#[test]
fn three_failures_bring_a_captcha() {
    let site = LoginSite::start(MARKER);
    let log_in = |password: &str, captcha: Option<(&str, &str)>| {
        let mut body = json!({"user": "ann", "password": password});
        if let Some((id, answer)) = captcha {
            (body["captcha_id"], body["captcha"]) = (id.into(), answer.into());
        }
        Client::default().json(&site, "/api/login", &body)
    };
    for _ in 0..2 {
        assert_eq!(log_in("wrong", None).json(), json!({"error": "wrong_password"}));
    }
    let refused = log_in("wrong", None).json();
    let url = text_of(&refused, "captcha_url").to_owned();
    let question = Client::default().get(&site, url.strip_prefix(&site.url("")).unwrap());
    assert!(text(&question).contains("What is "));
    assert_eq!(
        log_in("canary-password-ann", None).json()["error"],
        "wrong_captcha",
        "the right password is not enough"
    );
    let answer = site.captcha_answer(&url);
    let id = text_of(&refused, "captcha_id");
    assert_eq!(log_in("canary-password-ann", Some((id, &answer))).status, 200);
    assert_eq!(
        log_in("wrong", None).json(),
        json!({"error": "wrong_password"}),
        "it begins anew"
    );
    let page = {
        let mut client = Client::default();
        let csrf = input(&client.get(&site, "/login"), "csrf");
        let fields = [
            ("csrf", csrf.as_str()),
            ("lang", "en"),
            ("user", "ann"),
            ("password", "x"),
        ];
        client.form(&site, "/login", &fields);
        client.form(&site, "/login", &fields)
    };
    assert!(site.captcha_answer(&input(&page, "captcha_id")).parse::<u64>().is_ok());
}

#[test]
fn passwords_go_as_digests_and_signatures_too() {
    let site = |password| {
        LoginSite::with(SiteOptions {
            password,
            accounts: vec![Account::new("ann", "password")],
            ..SiteOptions::new(MARKER)
        })
    };
    let log_in = |site: &LoginSite, body: Value| Client::default().json(site, "/api/login", &body).status;
    let md5 = site(PasswordAs::Md5);
    let digest = "5f4dcc3b5aa765d61d8327deb882cf99";
    assert_eq!(log_in(&md5, json!({"user": "ann", "password_md5": digest})), 200);
    assert_eq!(log_in(&md5, json!({"user": "ann", "password": "password"})), 403);
    let signed = site(PasswordAs::Signature);
    let nonce = Client::default().get(&signed, "/api/login").json();
    let nonce = text_of(&nonce, "nonce");
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"password");
    let signature = ring::hmac::sign(&key, format!("ann:{nonce}").as_bytes());
    let signature = data_encoding::HEXLOWER.encode(signature.as_ref());
    let body = json!({"user": "ann", "nonce": nonce, "signature": signature});
    assert_eq!(log_in(&signed, body.clone()), 200);
    assert_eq!(log_in(&signed, body), 403, "a nonce works once");
    let page = Client::default().get(&signed, "/login");
    assert_eq!(input(&page, "nonce").len(), 16);
}

#[test]
fn a_code_by_json_needs_the_ticket() {
    let site = LoginSite::start(MARKER);
    let mut client = Client::default();
    let body = json!({"user": "bob", "password": "canary-password-bob"});
    let first = client.json(&site, "/api/login", &body).json();
    assert_eq!(first["need_code"], true);
    let mut code = |code: &str| {
        let body = json!({"ticket": first["ticket"], "code": code});
        client.json(&site, "/api/login/code", &body)
    };
    assert_eq!(code("000000").json(), json!({"error": "wrong_code", "tries_left": 2}));
    assert_eq!(code("424242").json()["user"]["id"], "bob");
    assert_eq!(code("424242").status, 410);
}

#[test]
fn files_want_the_token_on_their_own_host() {
    let site = LoginSite::start(MARKER);
    let tokens = tokens(&site);
    let access = text_of(&tokens, "access_token");
    assert_eq!(Client::default().get(&site, "/api/files").status, 401);
    let files = as_bearer(site.port(), "/api/files", access).json();
    assert_eq!(files["files"][2], json!({"id": "3", "name": "notes.txt", "size": 5000}));
    let link = as_bearer(site.port(), "/api/link?id=3", access).json();
    let path = text_of(&link, "url")
        .strip_prefix(&site.cdn_url(""))
        .unwrap()
        .to_owned();
    assert_eq!(as_bearer(site.cdn_port(), &path, "other").status, 401);
    let file = as_bearer(site.cdn_port(), &path, access);
    assert_eq!((file.status, file.body), (200, site.content("3").to_vec()));
    let bearer = format!("Bearer {access}");
    let headers = [("Authorization", bearer.as_str()), ("Range", "bytes=10-19")];
    let part = Client::default().send(site.cdn_port(), &format!("GET {path}"), &headers, "");
    assert_eq!((part.status, part.body), (206, site.content("3").slice(10..20)));
    assert_eq!(as_bearer(site.port(), "/api/link?id=9", access).status, 404);
    let at_cdn = site.cdn_seen();
    assert_eq!(
        at_cdn.iter().map(|seen| seen.status).collect::<Vec<_>>(),
        [401, 200, 206]
    );
    assert_eq!(
        at_cdn[1].request.places(MARKER),
        [Place::Header("authorization".to_owned())]
    );
}

#[test]
fn files_may_want_the_cookie_instead() {
    let site = LoginSite::with(SiteOptions {
        cdn: CdnWants::Cookie,
        ..SiteOptions::new(MARKER)
    });
    let mut client = Client::default();
    let body = json!({"user": "ann", "password": "canary-password-ann"});
    let tokens = client.json(&site, "/api/login", &body).json();
    let access = text_of(&tokens, "access_token");
    assert_eq!(as_bearer(site.cdn_port(), "/f/3/notes.txt", access).status, 401);
    let file = client.send(site.cdn_port(), "GET /f/3/notes.txt", &[], "");
    assert_eq!(file.status, 200);
}

#[test]
fn a_refresh_token_works_once_and_its_second_use_ends_the_session() {
    let site = LoginSite::start(MARKER);
    let tokens = tokens(&site);
    let renew = |token: &Value| Client::default().json(&site, "/token", &json!({ "refresh_token": token }));
    site.expire_sessions();
    let access = text_of(&tokens, "access_token");
    assert_eq!(as_bearer(site.port(), "/api/me", access).status, 401);
    let next = renew(&tokens["refresh_token"]).json();
    assert_eq!(
        as_bearer(site.port(), "/api/me", text_of(&next, "access_token")).status,
        200
    );
    assert_eq!(as_bearer(site.port(), "/api/me", access).status, 401);
    assert_eq!(renew(&tokens["refresh_token"]).status, 400);
    assert_eq!(
        as_bearer(site.port(), "/api/me", text_of(&next, "access_token")).status,
        401
    );
    assert_eq!((site.refreshes(), site.reused_refresh_tokens()), (1, 1));
    let form = [("refresh_token", text_of(&next, "refresh_token"))];
    assert_eq!(Client::default().form(&site, "/token", &form).status, 400, "it is over");
}

#[test]
fn what_a_browser_is_sent_back_with_gives_tokens_once() {
    let site = LoginSite::start(MARKER);
    let back = site.authorize(
        &site.url("/authorize?redirect_uri=http%3A%2F%2F127.0.0.1%2Fx&state=s1"),
        "ann",
    );
    let code = back
        .strip_prefix("http://127.0.0.1/x?code=")
        .and_then(|rest| rest.strip_suffix("&state=s1"));
    let code = code.unwrap_or_else(|| panic!("{back}"));
    let trade = || {
        let fields = [("grant_type", "authorization_code"), ("code", code)];
        Client::default().form(&site, "/token", &fields)
    };
    let tokens = trade().json();
    let me = as_bearer(site.port(), "/api/me", text_of(&tokens, "access_token"));
    assert_eq!(me.json()["user"]["id"], "ann");
    assert_eq!(trade().status, 400);
}

#[test]
fn sessions_end_by_logout_and_by_the_site() {
    let site = LoginSite::start(MARKER);
    let (first, second) = (tokens(&site), tokens(&site));
    let bearer = format!("Bearer {}", text_of(&first, "access_token"));
    let log_out = || Client::default().send(site.port(), "POST /logout", &[("Authorization", &bearer)], "");
    assert_eq!((log_out().status, log_out().status), (204, 401));
    assert_eq!(site.open_sessions(), 1);
    site.end_sessions();
    let access = text_of(&second, "access_token");
    assert_eq!(as_bearer(site.port(), "/api/me", access).status, 401);
    let refresh = json!({"refresh_token": second["refresh_token"]});
    assert_eq!(Client::default().json(&site, "/token", &refresh).status, 400);
}

#[test]
fn an_account_has_its_limits() {
    let site = LoginSite::with(SiteOptions {
        pace: Pace::BytesPerSecond(100_000),
        ..SiteOptions::new(MARKER)
    });
    site.limit("ann", Some(1), Some(1));
    let tokens = tokens(&site);
    let access = text_of(&tokens, "access_token");
    let link = |id: &str| as_bearer(site.port(), &format!("/api/link?id={id}"), access).status;
    assert_eq!([link("1"), link("1"), link("2")], [200, 200, 403]);
    site.begin_day();
    assert_eq!(link("2"), 200);
    let slow = std::thread::scope(|scope| {
        let slow = scope.spawn(|| as_bearer(site.cdn_port(), "/f/1/report.pdf", access).status);
        site.cdn.wait_for("/f/1/report.pdf", 1);
        assert_eq!(as_bearer(site.cdn_port(), "/f/3/notes.txt", access).status, 429);
        slow.join().unwrap()
    });
    assert_eq!((slow, site.most_parallel()), (200, 1));
    assert_eq!(as_bearer(site.cdn_port(), "/f/3/notes.txt", access).status, 200);
}

#[test]
fn the_gallery_is_for_members() {
    let site = LoginSite::start(MARKER);
    let mut client = Client::default();
    let away = client.get(&site, "/gallery/spring");
    assert_eq!(away.header("location"), Some("/login?next=/gallery/spring"));
    assert_eq!(client.get(&site, "/gallery/spring/1.jpg").status, 403);
    client.json(
        &site,
        "/api/login",
        &json!({"user": "ann", "password": "canary-password-ann"}),
    );
    let pages = [1, 2, 3].map(|page| text(&client.get(&site, &format!("/gallery/spring?page={page}"))));
    let pictures = pages.each_ref().map(|page| page.matches("class=\"picture\"").count());
    assert_eq!(pictures, [3, 3, 1]);
    assert_eq!(pages.map(|page| page.contains("rel=\"next\"")), [true, true, false]);
    let picture = client.get(&site, "/gallery/spring/7.jpg");
    assert_eq!((picture.status, &picture.body[..3]), (200, &[0xff, 0xd8, 0xff][..]));
    assert_eq!(picture.body, site.picture(7).to_vec());
    assert_eq!(client.get(&site, "/gallery/spring/8.jpg").status, 404);
}

#[test]
fn every_secret_has_the_marker() {
    let site = LoginSite::start(MARKER);
    let tokens = tokens(&site);
    Client::default().get(&site, "/login");
    let secrets = site.secrets();
    assert!(secrets.iter().all(|secret| secret.contains(MARKER)), "{secrets:?}");
    assert!(secrets.contains(&text_of(&tokens, "access_token").to_owned()));
    for kind in ["password", "access", "refresh", "session", "csrf", "visitor"] {
        assert!(
            secrets.iter().any(|secret| secret.contains(kind)),
            "{kind}: {secrets:?}"
        );
    }
}

#[test]
fn what_a_careless_site_hands_on_is_found_at_the_attacker() {
    let (site, attacker) = (LoginSite::start(MARKER), Attacker::start());
    let to = attacker.url("/take");
    let sent = Client::default().get(&site, &format!("/go?to={to}&status=307&key={MARKER}%2F1"));
    let location = sent.header("location").unwrap().to_owned();
    assert_eq!((sent.status, location.clone()), (307, format!("{to}?key={MARKER}%2F1")));
    let path = location.strip_prefix(&attacker.url("")).unwrap();
    let bearer = format!("Bearer {MARKER}");
    let answer = Client::default().send(
        attacker.port(),
        &format!("POST {path}"),
        &[("Authorization", &bearer)],
        &format!("a={MARKER}"),
    );
    assert_eq!(answer.status, 200);
    let places = [Place::Query, Place::Header("authorization".to_owned()), Place::Body];
    assert_eq!(attacker.received(MARKER), places.map(|place| (0, place)));
    assert!(attacker.received("other").is_empty());
    let echoed = as_bearer(site.port(), "/echo?a=b", MARKER).json();
    assert_eq!(echoed["target"], "/echo?a=b");
    assert!(echoed["headers"].to_string().contains(MARKER));
}
