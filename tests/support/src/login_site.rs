//! A site with accounts that behaves as real ones do: login by QR code, by form and by JSON, with a second factor and a
//! captcha; tokens that are renewed once; files on a host of their own that want the token; a gallery behind a cookie; and
//! limits of each account.
//!
//! *Owns* the site, its accounts and sessions, and the record of every request. Each secret that it hands out contains the
//! marker that the test gives, so that the test can search for it wherever it must not be.
//!
//! Start reading at [`LoginSite`]; each part of the site is a module that answers requests from one `State`.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{
    content::Content,
    recorder::{Handled, Recorder, Seen},
    reply::Pace,
    request::Request,
    server::lock,
};

use self::state::State;

mod api;
mod cdn;
mod form;
mod gallery;
mod message;
mod page;
mod qr;
mod session;
mod state;

/// An account of the site.
#[derive(Debug, Clone)]
pub struct Account {
    /// What its owner types, and its id.
    pub user: String,
    /// What it is called.
    pub name: String,
    /// The password.
    pub password: String,
    /// The code of its second factor, if it has one.
    pub code: Option<String>,
    /// The most files a day.
    pub daily_files: Option<usize>,
    /// The most transfers at once.
    pub parallel: Option<usize>,
}

impl Account {
    /// An account without a second factor and limits.
    pub fn new(user: &str, password: &str) -> Self {
        Self {
            user: user.to_owned(),
            name: format!("{}{}", user[..1].to_ascii_uppercase(), &user[1..]),
            password: password.to_owned(),
            code: None,
            daily_files: None,
            parallel: None,
        }
    }
}

/// How a password goes to the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordAs {
    /// As it is, in `password`.
    Plain,
    /// As its MD5 digest in hexadecimal digits, in `password_md5`.
    Md5,
    /// As a `signature`: the HMAC-SHA256 of `user:nonce` in hexadecimal digits, with the password as key. The `nonce` is
    /// that of the form, or of `GET /api/login`.
    Signature,
}

/// What the files want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CdnWants {
    /// `Authorization: Bearer` with the access token.
    Token,
    /// The cookie `session`.
    Cookie,
}

/// How the site is.
#[derive(Debug, Clone)]
pub struct SiteOptions {
    /// What each secret of the site contains.
    pub marker: String,
    /// Its accounts.
    pub accounts: Vec<Account>,
    /// How passwords are sent.
    pub password: PasswordAs,
    /// The least time between two polls of one QR code.
    pub poll_pause: Duration,
    /// How long a QR code works.
    pub qr_lifetime: Duration,
    /// How long an access token works.
    pub access_lifetime: Duration,
    /// What the files want.
    pub cdn: CdnWants,
    /// How fast the files come.
    pub pace: Pace,
    /// The files: names and contents. Their ids are `1`, `2`, ….
    pub files: Vec<(String, Content)>,
    /// How many pictures the gallery has.
    pub pictures: u64,
}

impl SiteOptions {
    /// A site with the accounts `ann` and, with the second factor 424242, `bob`. Their passwords are the marker, `-password-`
    /// and the name.
    pub fn new(marker: &str) -> Self {
        let password = |user: &str| format!("{marker}-password-{user}");
        let bob = Account {
            code: Some("424242".to_owned()),
            ..Account::new("bob", &password("bob"))
        };
        Self {
            marker: marker.to_owned(),
            accounts: vec![Account::new("ann", &password("ann")), bob],
            password: PasswordAs::Plain,
            poll_pause: Duration::from_millis(200),
            qr_lifetime: Duration::from_mins(2),
            access_lifetime: Duration::from_hours(1),
            cdn: CdnWants::Token,
            pace: Pace::Full,
            files: vec![
                ("report.pdf".to_owned(), Content::seeded(1, 300_000)),
                ("film.mkv".to_owned(), Content::seeded(2, 2_000_000)),
                ("notes.txt".to_owned(), Content::seeded(3, 5_000)),
            ],
            pictures: 7,
        }
    }
}

/// The site and its host of files. Dropping it ends both.
///
/// | Request | What it does |
/// |---|---|
/// | `POST /qr/new` | `{token, url, expires_in}`; the user's phone opens `url` |
/// | `GET /qr/state?token=` | `{state}`: `new`, `scanned`, `confirmed` (once, with tokens, user and cookie), `expired`, `cancelled`; 429 if too fast |
/// | `GET /login`, `POST /login`, `POST /login/code` | the form, with hidden fields and a cookie of its own, and the second factor |
/// | `GET /captcha?id=` | the page of a captcha, which the form wants after three failures |
/// | `GET /home` | for those who are logged in; others are sent to `/login` |
/// | `GET /logout` | ends the session of the cookie |
/// | `GET /api/login`, `POST /api/login`, `POST /api/login/code` | the same with JSON and tokens |
/// | `POST /token` | a pair of tokens for a grant; a new one for a refresh token, of which one that is used twice ends its session |
/// | `GET /api/me`, `GET /api/files`, `GET /api/link?id=`, `POST /logout` | with `Authorization: Bearer` |
/// | `GET /gallery/NAME?page=`, `GET /gallery/NAME/N.jpg` | with the cookie `session` |
/// | `GET /go?to=` | sends the client wherever it is told, with all other parameters |
/// | `GET /echo`, `POST /echo` | what the request had, as JSON |
pub struct LoginSite {
    site: Recorder,
    cdn: Recorder,
    state: Arc<Mutex<State>>,
}

impl LoginSite {
    /// A site of which every secret contains `marker`, of letters, digits and `-`.
    pub fn start(marker: &str) -> Self {
        Self::with(SiteOptions::new(marker))
    }

    /// A site like that.
    pub fn with(options: SiteOptions) -> Self {
        let state = Arc::new(Mutex::new(State::new(options)));
        let of_cdn = Arc::clone(&state);
        let cdn = Recorder::start(move |request| cdn::answer(&of_cdn, request));
        let of_site = Arc::clone(&state);
        let site = Recorder::start(move |request| answer(&mut lock(&of_site), request));
        lock(&state).set_ports(site.port(), cdn.port());
        Self { site, cdn, state }
    }

    /// The port of the site on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.site.port()
    }

    /// The port of the host of files on 127.0.0.1.
    pub fn cdn_port(&self) -> u16 {
        self.cdn.port()
    }

    /// The URL of `path`, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port())
    }

    /// The URL of a path at the host of files.
    pub fn cdn_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.cdn_port())
    }

    /// Names this site and its host of files go by, with their ports, in the URLs that it hands out: for tests that reach it
    /// through a [`Proxy`](crate::Proxy).
    pub fn go_by(&self, site: &str, cdn: &str) {
        lock(&self.state).set_names(site, cdn);
    }

    /// Every request to the site so far, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.site.seen()
    }

    /// Every request to the host of files so far, in order.
    pub fn cdn_seen(&self) -> Vec<Seen> {
        self.cdn.seen()
    }

    /// Waits until there have been `n` requests for a path of the site, and gives them.
    pub fn wait_for(&self, path: &str, n: usize) -> Vec<Seen> {
        self.site.wait_for(path, n)
    }

    /// Every secret that was handed out so far, and the passwords.
    pub fn secrets(&self) -> Vec<String> {
        lock(&self.state).secrets()
    }

    /// The content of a file, by its id.
    pub fn content(&self, id: &str) -> Content {
        lock(&self.state).file(id).expect("the site has the file").1.clone()
    }

    /// The content of a picture of the gallery, from 1 on.
    pub fn picture(&self, number: u64) -> Content {
        gallery::picture(number)
    }

    /// The phone scans a QR code. `payload` is what it encodes.
    ///
    /// # Panics
    ///
    /// If the code is not one that waits to be scanned, as for the other acts of the phone.
    pub fn scan(&self, payload: &str) {
        lock(&self.state).scan(payload);
    }

    /// The phone, which is logged in as `user`, confirms what it scanned.
    pub fn confirm(&self, payload: &str, user: &str) {
        lock(&self.state).confirm(payload, user);
    }

    /// The user of the phone refuses.
    pub fn cancel(&self, payload: &str) {
        lock(&self.state).cancel(payload);
    }

    /// The time of a QR code is over.
    pub fn expire(&self, payload: &str) {
        lock(&self.state).expire(payload);
    }

    /// A browser opens the page `/authorize`, where somebody is logged in as `user` and says yes. Gives the URL that it ends at.
    pub fn authorize(&self, url: &str, user: &str) -> String {
        lock(&self.state).authorize(url, user)
    }

    /// What has to be filled in for a captcha, by the URL of its page.
    pub fn captcha_answer(&self, url: &str) -> String {
        let id = url.rsplit('=').next().unwrap_or_default();
        lock(&self.state)
            .captcha_answer(id)
            .expect("the captcha is one of the site's")
    }

    /// All access tokens and cookies stop working; refresh tokens still do.
    pub fn expire_sessions(&self) {
        lock(&self.state).expire_sessions();
    }

    /// All sessions end, and nothing renews them.
    pub fn end_sessions(&self) {
        lock(&self.state).end_sessions();
    }

    /// Sets the limits of an account: files a day, and transfers at once.
    pub fn limit(&self, user: &str, daily_files: Option<usize>, parallel: Option<usize>) {
        lock(&self.state).limit(user, daily_files, parallel);
    }

    /// A new day begins: nobody has had a file.
    pub fn begin_day(&self) {
        lock(&self.state).begin_day();
    }

    /// How many sessions have begun and not ended.
    pub fn open_sessions(&self) -> usize {
        lock(&self.state).open_sessions()
    }

    /// How often a session was renewed.
    pub fn refreshes(&self) -> usize {
        lock(&self.state).refreshes
    }

    /// How often a refresh token came that had been used before: what more than one client at a time does.
    pub fn reused_refresh_tokens(&self) -> usize {
        lock(&self.state).reused_refresh_tokens
    }

    /// The most transfers of one account at one time.
    pub fn most_parallel(&self) -> usize {
        lock(&self.state).most_parallel
    }
}

impl fmt::Debug for LoginSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginSite")
            .field("site", &self.site)
            .field("cdn", &self.cdn)
            .finish_non_exhaustive()
    }
}

fn answer(state: &mut State, request: &Request) -> Handled {
    let method = match request.method.as_str() {
        // The wire leaves the body out.
        "HEAD" => "GET",
        method => method,
    };
    let reply = match (method, request.path()) {
        ("POST", "/qr/new") => qr::begin(state),
        ("GET", "/qr/state") => qr::poll(state, request),
        ("GET", "/login") => form::show(state, request),
        ("POST", "/login") => form::log_in(state, request),
        ("POST", "/login/code") => form::take_code(state, request),
        ("GET", "/captcha") => page::captcha(state, request),
        ("GET", "/home") => page::home(state, request),
        ("GET", "/logout") => page::log_out(state, request),
        ("GET", "/api/login") => api::nonce(state),
        ("POST", "/api/login") => api::log_in(state, request),
        ("POST", "/api/login/code") => api::take_code(state, request),
        ("POST", "/token") => api::token(state, request),
        ("GET", "/api/me") => api::me(state, request),
        ("GET", "/api/files") => api::files(state, request),
        ("GET", "/api/link") => api::link(state, request),
        ("POST", "/logout") => api::log_out(state, request),
        ("GET", path) if path.starts_with("/gallery/") => gallery::answer(state, request),
        ("GET" | "POST", "/go") => page::go(request),
        ("GET" | "POST", "/echo") => page::echo(request),
        _ => message::page(404, "Not found", "<p>There is no such page.</p>"),
    };
    reply.into()
}

#[cfg(test)]
mod tests;
