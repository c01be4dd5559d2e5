//! What the site knows.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use md5::{Digest as _, Md5};
use ring::hmac;

use super::{Account, CdnWants, PasswordAs, SiteOptions, form::Visitor, message::Fields, qr::Code, session::Session};
use crate::{
    content::{Content, splitmix},
    reply::{Pace, Reply},
};

/// Wrong passwords before a captcha is wanted.
const FAILURES_BEFORE_CAPTCHA: u32 = 3;

/// Wrong codes of a second factor before the login is over.
pub(super) const CODE_TRIES: u32 = 3;

pub(super) struct State {
    options: SiteOptions,
    site: String,
    cdn: String,
    /// Counts everything that gets a name.
    serial: u64,
    issued: Vec<String>,
    pub(super) codes: BTreeMap<String, Code>,
    /// Those who see the form, by their cookie.
    pub(super) visitors: BTreeMap<String, Visitor>,
    /// Logins by JSON that wait for the code, by their ticket: the user and the wrong codes.
    pub(super) tickets: BTreeMap<String, (String, u32)>,
    /// Wrong passwords since the last right one, by user.
    failures: BTreeMap<String, u32>,
    nonces: BTreeSet<String>,
    /// Answers by their ids. One is used up by an answer, right or wrong.
    captchas: BTreeMap<String, (u64, u64)>,
    /// What browsers were sent back with, and the user of each; one works once.
    pub(super) grants: BTreeMap<String, String>,
    pub(super) sessions: Vec<Session>,
    /// The files that a user has had today.
    had_today: BTreeMap<String, BTreeSet<String>>,
    transfers: BTreeMap<String, usize>,
    pub(super) most_parallel: usize,
    pub(super) refreshes: usize,
    pub(super) reused_refresh_tokens: usize,
}

/// What is wrong with a name and a password.
pub(super) enum Wrong {
    /// The captcha is missing or wrong.
    Captcha,
    /// The name or the password is.
    Password,
}

impl State {
    pub(super) fn new(options: SiteOptions) -> Self {
        let issued = options.accounts.iter().map(|account| account.password.clone());
        Self {
            issued: issued.collect(),
            options,
            site: String::new(),
            cdn: String::new(),
            serial: 0,
            codes: BTreeMap::new(),
            visitors: BTreeMap::new(),
            tickets: BTreeMap::new(),
            failures: BTreeMap::new(),
            nonces: BTreeSet::new(),
            captchas: BTreeMap::new(),
            grants: BTreeMap::new(),
            sessions: Vec::new(),
            had_today: BTreeMap::new(),
            transfers: BTreeMap::new(),
            most_parallel: 0,
            refreshes: 0,
            reused_refresh_tokens: 0,
        }
    }

    pub(super) fn set_ports(&mut self, site: u16, cdn: u16) {
        self.set_names(&format!("127.0.0.1:{site}"), &format!("127.0.0.1:{cdn}"));
    }

    pub(super) fn set_names(&mut self, site: &str, cdn: &str) {
        self.site = format!("http://{site}");
        self.cdn = format!("http://{cdn}");
    }

    /// The URL of a path of the site.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.site)
    }

    /// The URL of a file.
    pub(super) fn file_url(&self, id: &str) -> Option<String> {
        let (name, _) = self.file(id)?;
        Some(format!("{}/f/{id}/{name}", self.cdn))
    }

    /// A text that is the same for nothing else, and no secret.
    pub(super) fn unique(&mut self) -> String {
        self.serial += 1;
        format!("{:016x}", splitmix(17, self.serial))
    }

    /// A secret for a cookie or a form.
    pub(super) fn secret(&mut self, kind: &str) -> String {
        let unique = self.unique();
        let secret = format!("{}-{kind}-{unique}", self.options.marker);
        self.issued.push(secret.clone());
        secret
    }

    /// A secret with characters that URLs, forms and JSON texts encode, as those of real sites have.
    pub(super) fn token(&mut self, kind: &str) -> String {
        let unique = self.unique();
        let token = format!("{}.{kind}/{unique}+==", self.options.marker);
        self.issued.push(token.clone());
        token
    }

    pub(super) fn secrets(&self) -> Vec<String> {
        self.issued.clone()
    }

    pub(super) fn account(&self, user: &str) -> Option<&Account> {
        self.options.accounts.iter().find(|account| account.user == user)
    }

    pub(super) fn name_of(&self, user: &str) -> String {
        self.account(user)
            .map_or_else(String::new, |account| account.name.clone())
    }

    pub(super) fn password_as(&self) -> PasswordAs {
        self.options.password
    }

    pub(super) fn poll_pause(&self) -> Duration {
        self.options.poll_pause
    }

    pub(super) fn qr_lifetime(&self) -> Duration {
        self.options.qr_lifetime
    }

    pub(super) fn access_lifetime(&self) -> Duration {
        self.options.access_lifetime
    }

    pub(super) fn cdn_wants(&self) -> CdnWants {
        self.options.cdn
    }

    pub(super) fn pace(&self) -> Pace {
        self.options.pace
    }

    pub(super) fn pictures(&self) -> u64 {
        self.options.pictures
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (String, &(String, Content))> {
        (1..).map(|id: usize| id.to_string()).zip(&self.options.files)
    }

    pub(super) fn file(&self, id: &str) -> Option<&(String, Content)> {
        self.files().find(|(other, _)| other == id).map(|(_, file)| file)
    }

    /// A number that a signature contains, and that works once.
    pub(super) fn nonce(&mut self) -> String {
        let nonce = self.unique();
        self.nonces.insert(nonce.clone());
        nonce
    }

    pub(super) fn wants_captcha(&self, user: &str) -> bool {
        self.failures
            .get(user)
            .is_some_and(|count| *count >= FAILURES_BEFORE_CAPTCHA)
    }

    /// The id of a new captcha.
    pub(super) fn captcha(&mut self) -> String {
        let id = self.unique();
        self.captchas
            .insert(id.clone(), (self.serial % 10 + 3, self.serial % 7 + 11));
        id
    }

    /// What a captcha asks.
    pub(super) fn captcha_question(&self, id: &str) -> Option<String> {
        let (a, b) = self.captchas.get(id)?;
        Some(format!("What is {a} + {b}?"))
    }

    pub(super) fn captcha_answer(&self, id: &str) -> Option<String> {
        self.captchas.get(id).map(|(a, b)| (a + b).to_string())
    }

    /// The account of a name and a password, in whichever form the site wants it.
    pub(super) fn check_password(&mut self, fields: &Fields) -> Result<Account, Wrong> {
        let user = fields.get("user");
        if self.wants_captcha(user) {
            let wanted = self.captcha_answer(fields.get("captcha_id"));
            self.captchas.remove(fields.get("captcha_id"));
            if wanted.as_deref() != Some(fields.get("captcha").trim()) {
                return Err(Wrong::Captcha);
            }
        }
        let nonce_is_new = self.nonces.remove(fields.get("nonce"));
        let account = self.account(user).cloned();
        let is_right = |account: &Account| match self.options.password {
            PasswordAs::Plain => fields.get("password") == account.password,
            PasswordAs::Md5 => fields.get("password_md5") == md5_hex(&account.password),
            PasswordAs::Signature => {
                let signed = format!("{user}:{}", fields.get("nonce"));
                nonce_is_new && fields.get("signature") == signature(&account.password, &signed)
            }
        };
        let Some(account) = account.filter(is_right) else {
            *self.failures.entry(user.to_owned()).or_default() += 1;
            return Err(Wrong::Password);
        };
        self.failures.remove(user);
        Ok(account)
    }

    pub(super) fn limit(&mut self, user: &str, daily_files: Option<usize>, parallel: Option<usize>) {
        let mut accounts = self.options.accounts.iter_mut();
        let account = accounts.find(|account| account.user == user);
        let account = account.expect("the site has the account");
        (account.daily_files, account.parallel) = (daily_files, parallel);
    }

    pub(super) fn begin_day(&mut self) {
        self.had_today.clear();
    }

    /// Counts a file of today; false if the account has had all of its.
    pub(super) fn take_of_quota(&mut self, user: &str, id: &str) -> bool {
        let limit = self.account(user).and_then(|account| account.daily_files);
        let had = self.had_today.entry(user.to_owned()).or_default();
        if !had.contains(id) && limit.is_some_and(|limit| had.len() >= limit) {
            return false;
        }
        had.insert(id.to_owned());
        true
    }

    /// Counts a transfer that begins; false if the account has too many.
    pub(super) fn begin_transfer(&mut self, user: &str) -> bool {
        let limit = self.account(user).and_then(|account| account.parallel);
        let running = self.transfers.entry(user.to_owned()).or_default();
        if limit.is_some_and(|limit| *running >= limit) {
            return false;
        }
        *running += 1;
        self.most_parallel = self.most_parallel.max(*running);
        true
    }

    pub(super) fn end_transfer(&mut self, user: &str) {
        if let Some(running) = self.transfers.get_mut(user) {
            *running -= 1;
        }
    }
}

/// The answer to too many requests.
pub(super) fn too_many(what: &str) -> Reply {
    let mut reply = super::message::json(429, &serde_json::json!({ "error": what }));
    reply.set("Retry-After", "1");
    reply
}

/// Whether a moment has passed.
pub(super) fn has_passed(moment: Instant) -> bool {
    Instant::now() >= moment
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

fn md5_hex(text: &str) -> String {
    hex(&Md5::digest(text.as_bytes()))
}

fn signature(key: &str, text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    hex(hmac::sign(&key, text.as_bytes()).as_ref())
}
