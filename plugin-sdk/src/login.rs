//! What a login shows and gets: the screen that the user sees, and the user's answers. The host draws the screen, keeps
//! secret answers in its vault and validates each part as it arrives; an invalid one ends the login.

use std::{str::FromStr, time::Duration};

use crate::{Error, Result, env, host::login_ui as host};

/// How the user logs in: one of the modes of the account's slot in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The user scans a QR code with the site's app.
    Qr,
    /// The user fills in name and password.
    Password,
    /// The user hands over the cookies of a browser ([`Screen::cookie_field`]), which the host puts into the account's jar.
    Cookie,
    /// The user logs in with a browser.
    Browser,
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(mode: &str) -> Result<Self> {
        match mode {
            "qr" => Ok(Self::Qr),
            "password" => Ok(Self::Password),
            "cookie" => Ok(Self::Cookie),
            "browser" => Ok(Self::Browser),
            _ => Err(Error::Unsupported(format!("a login by {mode}"))),
        }
    }
}

/// The key of the field for the cookies of a browser.
pub(crate) const COOKIES: &str = "cookies";

/// What the user sees. It is empty at the beginning of each call; a call that puts nothing or only a message on it leaves
/// the rest of the screen before in its place.
#[derive(Debug)]
pub struct Screen<'a>(&'a host::Screen);

impl<'a> Screen<'a> {
    pub(crate) fn new(screen: &'a host::Screen) -> Self {
        Self(screen)
    }

    /// Says something.
    pub fn message(&mut self, text: &str) -> &mut Self {
        self.0.message(text);
        self
    }

    /// Shows a QR code of `payload`, which works so long; `hint` is what to scan it with.
    pub fn qr(&mut self, payload: &str, works_for: Duration, hint: &str) -> &mut Self {
        let seconds = u32::try_from(works_for.as_secs()).unwrap_or(u32::MAX);
        self.0.qr(payload, seconds, hint);
        self
    }

    /// Asks for a text, which is [`Answers::text`] of `key`. Users are told that the plugin reads it.
    pub fn field(&mut self, key: &str, label: &str) -> &mut Self {
        self.0.field(key, label, false);
        self
    }

    /// Asks for a secret, which is [`Answers::secret`] of `key`: the host keeps it in the vault of the account.
    pub fn secret_field(&mut self, key: &str, label: &str) -> &mut Self {
        self.0.field(key, label, true);
        self
    }

    /// Asks for the cookies of a browser, in [`Mode::Cookie`]. When [`Login::answer`](crate::Login::answer) is called, the
    /// account's jar has those for hosts of the plugin; the answers do not.
    pub fn cookie_field(&mut self, label: &str) -> &mut Self {
        self.0.field(COOKIES, label, true);
        self
    }

    /// Asks the user to open a page.
    pub fn open_url(&mut self, url: impl AsRef<str>) -> &mut Self {
        self.0.open_url(url.as_ref(), None);
        self
    }

    /// Asks the user to open a page that ends at a URL with this prefix. Each parameter of that URL is a secret answer,
    /// `url.code` for instance, except `url.state`, which is a text to compare with the one that was sent.
    pub fn open_url_until(&mut self, url: impl AsRef<str>, redirect_prefix: &str) -> &mut Self {
        self.0.open_url(url.as_ref(), Some(redirect_prefix));
        self
    }

    /// Asks the host to call [`Login::poll`](crate::Login::poll) this long after. Without it, only an answer continues the
    /// login.
    pub fn poll_after(&mut self, delay: Duration) -> &mut Self {
        self.0
            .poll_after_ms(u32::try_from(delay.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Ends the login with success. `account_id` is what the site knows the account by, `name` what its user does.
    pub fn done(&mut self, account_id: &str, name: &str) -> &mut Self {
        self.0.done(account_id, name);
        self
    }

    /// The session of the account ends at this time, in milliseconds since the Unix epoch. The host calls
    /// [`Login::refresh`](crate::Login::refresh) before.
    pub fn expires_ms(&mut self, time: u64) -> &mut Self {
        self.0.expires_ms(time);
        self
    }

    /// The session of the account ends after this time.
    pub fn expires_in(&mut self, duration: Duration) -> &mut Self {
        let lifetime = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.expires_ms(env::now_ms().saturating_add(lifetime))
    }
}

/// What the user filled in.
#[derive(Debug, Clone, Default)]
pub struct Answers(Vec<(String, String)>);

impl Answers {
    pub(crate) fn new(values: Vec<(String, String)>) -> Self {
        Self(values)
    }

    /// The answer to a [`Screen::field`], if there is one.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(other, _)| other == key);
        found.map(|(_, value)| value.as_str())
    }

    /// The answer to a [`Screen::field`]; an empty or missing one is [`Error::InvalidInput`].
    pub fn text(&self, key: &str) -> Result<&str> {
        let text = self.get(key).filter(|text| !text.is_empty());
        text.ok_or_else(|| Error::InvalidInput(format!("the field {key} is empty")))
    }

    /// The place of the answer to a [`Screen::secret_field`] in templates, such as `{password}`: what
    /// [`Request::secret_form`](crate::http::Request::secret_form) and its like take. Needs [`Request::account`] of the
    /// account's slot.
    ///
    /// [`Request::account`]: crate::http::Request::account
    pub fn secret(&self, key: &str) -> Result<String> {
        Ok(format!("{{{}}}", self.text(key)?))
    }
}
