//! The site as the settings describe it.

use svc_plugin::{
    http::{Request, Response},
    prelude::*,
    text::{self, Url},
};

/// The most secret fields that are looked for: the host captures 32 values of a response.
const MAX_SECRET_FIELDS: usize = 24;

/// The longest name of one: names in the vault have 64 bytes.
const MAX_NAME_BYTES: usize = 56;

/// What secret hidden fields are called in the vault: this, and the name in the form.
pub(crate) const FIELD: &str = "field.";

/// What the cookie is called there that shows that a login has worked.
const SESSION: &str = "session";

/// The settings.
#[derive(Debug, Settings)]
pub(crate) struct Site {
    pub(crate) login_url: String,
    pub(crate) user_field: Option<String>,
    pub(crate) password_field: Option<String>,
    pub(crate) code_field: Option<String>,
    extra_fields: Option<String>,
    #[setting(
        default = "csrf csrf_token csrfmiddlewaretoken _csrf _token authenticity_token __RequestVerificationToken"
    )]
    secret_fields: String,
    #[setting(default = "page")]
    success_by: SuccessBy,
    success: Option<String>,
    check_url: Option<String>,
    logout_url: Option<String>,
    downloads: Option<String>,
    #[setting(default = "main")]
    pub(crate) account: String,
    #[setting(default = "false")]
    pub(crate) keep_password: bool,
}

/// What shows that a login has worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Settings)]
enum SuccessBy {
    Page,
    Selector,
    Cookie,
    Url,
}

impl Site {
    /// Whether downloads of a URL need the login.
    pub(crate) fn covers(&self, url: &Url) -> Result<bool> {
        let mut prefixes = lines(self.downloads.as_deref()).peekable();
        if prefixes.peek().is_none() {
            let login = Url::parse(&self.login_url)?;
            return Ok(login.host() == url.host());
        }
        Ok(prefixes.any(|prefix| url.as_str().starts_with(prefix)))
    }

    /// Whether a response is the login page, where sites send those who are not logged in.
    pub(crate) fn is_login_page(&self, url: &str) -> Result<bool> {
        let (login, url) = (Url::parse(&self.login_url)?, Url::parse(url)?);
        Ok(login.has_same_origin(&url) && login.path() == url.path())
    }

    /// The names of hidden fields that the plugin is not to read.
    pub(crate) fn secret_fields(&self) -> impl Iterator<Item = &str> {
        let names = self.secret_fields.split([' ', ',', '\n', '\r', '\t']);
        let is_plain = |name: &str| {
            name.chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        };
        names
            .filter(move |name| (1..=MAX_NAME_BYTES).contains(&name.len()) && is_plain(name))
            .take(MAX_SECRET_FIELDS)
    }

    /// The fields that the user has added.
    pub(crate) fn extra_fields(&self) -> impl Iterator<Item = (&str, &str)> {
        lines(self.extra_fields.as_deref()).filter_map(|line| line.split_once('='))
    }

    /// The request that keeps secret hidden fields of the page from the plugin.
    pub(crate) fn with_fields_captured(&self, mut request: Request) -> Request {
        for name in self.secret_fields() {
            request = request.capture_form(&format!("input[name=\"{name}\"]"), &format!("{FIELD}{name}"));
        }
        request
    }

    /// Forgets what is of no use after a login: the hidden fields, and the password unless the user wants it kept.
    pub(crate) fn forget_fields(&self, slot: &str) {
        let secrets = vault::account(slot);
        for name in self.secret_fields() {
            secrets.forget(&format!("{FIELD}{name}"));
        }
        if !self.keep_password {
            secrets.forget("password");
        }
    }

    /// The request that logs in; after it, [`Site::has_worked`] can tell.
    pub(crate) fn with_success_captured(&self, request: Request, slot: &str) -> Request {
        if self.success_by != SuccessBy::Cookie {
            return request;
        }
        vault::account(slot).forget(SESSION);
        request.capture_cookie(self.success.as_deref().unwrap_or_default(), SESSION)
    }

    /// Whether a login has worked that has ended at this page.
    pub(crate) fn has_worked(&self, page: &Response, slot: &str) -> Result<bool> {
        let wanted = self.success.as_deref().unwrap_or_default();
        Ok(match self.success_by {
            SuccessBy::Page => (200..300).contains(&page.status()) && !asks_for_password(page)?,
            SuccessBy::Selector => has(page, wanted)?,
            SuccessBy::Cookie => vault::account(slot).has(SESSION),
            SuccessBy::Url => page.url().starts_with(wanted),
        })
    }

    /// Whether the session of an account works, as far as there is a page for members.
    pub(crate) fn is_member(&self, slot: &str) -> Result<Option<bool>> {
        let Some(url) = &self.check_url else {
            return Ok(None);
        };
        let page = http::get(url).account(slot).no_redirects().send_any()?;
        let is_member = match page.status() {
            200..300 if self.success_by == SuccessBy::Selector => {
                has(&page, self.success.as_deref().unwrap_or_default())?
            }
            200..300 => !asks_for_password(&page)?,
            300..=399 | 401 | 403 => false,
            status => return Err(Error::Upstream(status)),
        };
        Ok(Some(is_member))
    }

    /// Ends the session of an account at the site.
    pub(crate) fn end_session(&self, slot: &str) -> Result<()> {
        if let Some(url) = &self.logout_url {
            http::get(url).account(slot).no_redirects().send_any()?;
        }
        Ok(())
    }
}

fn lines(text: Option<&str>) -> impl Iterator<Item = &str> {
    let lines = text.unwrap_or_default().lines();
    lines.map(str::trim).filter(|line| !line.is_empty())
}

/// Whether the page has an element; what is no page has none.
fn has(page: &Response, css: &str) -> Result<bool> {
    Ok(!css.is_empty() && !page.select(css)?.is_empty())
}

fn asks_for_password(page: &Response) -> Result<bool> {
    has(page, "input[type=password]")
}

/// What the page complains about, for the user.
pub(crate) fn complaint(page: &Response) -> Result<Option<String>> {
    let found = page.select(".error, .alert, [role=alert]")?;
    let words = found.first().map(|node| node.text.split_whitespace());
    let text = words.map(|words| words.collect::<Vec<_>>().join(" "));
    Ok(text.filter(|text| !text.is_empty() && text.len() <= 300))
}

/// The elements of a part of a page.
pub(crate) fn inputs(html: &str) -> Result<Vec<text::Node>> {
    text::select(html, "input")
}
