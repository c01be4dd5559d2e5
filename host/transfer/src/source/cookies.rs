//! Cookies of a browser: the readers of the files that extensions and tools export, and the choice of those that a request
//! gets (RFC 6265). Pure: callers read the files and tell the time.

mod export;
mod netscape;

use std::collections::BTreeMap;

use url::Host;

use crate::source::{safe_url::SafeUrl, secret::Secret};

/// Name and value of a cookie together, in bytes; browsers keep no longer ones.
const MAX_PAIR_BYTES: usize = 4096;

/// The path of a cookie, in bytes; browsers keep no longer ones.
const MAX_PATH_BYTES: usize = 1024;

/// Cookies of one domain. Browsers keep 180 of a site.
const MAX_PER_DOMAIN: usize = 500;

/// A cookie of a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cookie {
    /// The host, as URLs spell it, without a dot before it.
    pub domain: Box<str>,
    /// Whether the hosts below the domain get it, too. Without that it is a host-only cookie.
    pub includes_subdomains: bool,
    /// The path that it belongs to, with everything below.
    pub path: Box<str>,
    /// Whether only requests over TLS get it.
    pub is_secure: bool,
    /// Its name.
    pub name: Box<str>,
    /// Its value.
    pub value: Secret,
    /// When it expires, in Unix seconds; `None` at the end of the browser's session, which never ends here.
    pub expires: Option<u64>,
}

/// Why a text is no export of cookies. Names places and never content, which is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCookies {
    /// A line of a Netscape file.
    #[error("line {line}: {problem}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        problem: Problem,
    },
    /// The text begins like JSON.
    #[error(
        "the JSON cannot be read at line {line}, column {column}: an export is a list of cookies, or an object with \
             one as `cookies`"
    )]
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// An entry of a JSON export.
    #[error("cookie {number}: {problem}")]
    Entry {
        /// From 1.
        number: usize,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// What is wrong with one cookie of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The line has another number of fields.
    #[error("a cookie has seven fields with TABs between them (Netscape format)")]
    Fields,
    /// A JSON entry without this member.
    #[error("it has no `{0}`")]
    Missing(&'static str),
    /// The expiry is no number.
    #[error("the expiry is a number of seconds since 1970")]
    Expiry,
    /// The domain is no host.
    #[error("the domain is not a host name")]
    Domain,
    /// A control character or semicolon would let one cookie pass for several headers or cookies.
    #[error("the cookie has a character that no cookie may have")]
    Character,
    /// It is too long.
    #[error("name and value have more than {MAX_PAIR_BYTES} bytes, or the path more than {MAX_PATH_BYTES}")]
    TooLong,
    /// The domain has too many.
    #[error("the domain has more than {MAX_PER_DOMAIN} cookies")]
    TooMany,
}

/// Cookies, by domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CookieJar {
    by_domain: BTreeMap<Box<str>, Vec<Cookie>>,
}

impl CookieJar {
    /// Parses an export: `cookies.txt` in Netscape's format, or the JSON that extensions write. Cookies that expired before
    /// `now` (Unix seconds) are left out. An invalid cookie is an error, so that a file of another kind is not taken for
    /// an empty one.
    pub fn parse(text: &str, now: u64) -> Result<Self, InvalidCookies> {
        // Editors of Windows put a byte order mark before a text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with(['[', '{']) {
            export::parse(text, now)
        } else {
            netscape::parse(text, now)
        }
    }

    /// Adds a cookie; a later one replaces an earlier one of the same domain, path and name. An expired one is left out.
    fn add(&mut self, raw: &RawCookie<'_>, now: u64) -> Result<(), Problem> {
        let cookie = raw.check()?;
        if cookie.expires.is_some_and(|expires| expires < now) {
            return Ok(());
        }
        let known = self.by_domain.entry(cookie.domain.clone()).or_default();
        match known.iter().position(|known| known.is_same(&cookie)) {
            Some(at) => known[at] = cookie,
            None if known.len() >= MAX_PER_DOMAIN => return Err(Problem::TooMany),
            None => known.push(cookie),
        }
        Ok(())
    }

    /// Whether there is no cookie.
    pub fn is_empty(&self) -> bool {
        self.by_domain.is_empty()
    }

    /// All cookies.
    pub fn iter(&self) -> impl Iterator<Item = &Cookie> {
        self.by_domain.values().flatten()
    }

    /// The cookies that a request to `url` gets at `now`, those of the longest paths first (RFC 6265, section 5.4).
    pub fn matching(&self, url: &SafeUrl, now: u64) -> Vec<&Cookie> {
        let host = url.as_url().host_str().unwrap_or("");
        let is_name = matches!(url.as_url().host(), Some(Host::Domain(_)));
        let mut found: Vec<&Cookie> = Vec::new();
        let mut domain = Some(host);
        while let Some(name) = domain {
            let cookies = self.by_domain.get(name).into_iter().flatten();
            found
                .extend(cookies.filter(|cookie| (name == host || cookie.includes_subdomains) && cookie.fits(url, now)));
            // An address has no subdomains.
            domain = name.split_once('.').map(|(_, parent)| parent).filter(|_| is_name);
        }
        found.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        found
    }

    /// The `Cookie` header of a request to `url` at `now`; empty if no cookie matches.
    pub fn for_url(&self, url: &SafeUrl, now: u64) -> String {
        let found = self.matching(url, now);
        let pairs: Vec<_> = found.into_iter().map(Cookie::pair).collect();
        pairs.join("; ")
    }
}

impl FromIterator<Cookie> for CookieJar {
    fn from_iter<T: IntoIterator<Item = Cookie>>(cookies: T) -> Self {
        let mut jar = Self::default();
        for cookie in cookies {
            jar.by_domain.entry(cookie.domain.clone()).or_default().push(cookie);
        }
        jar
    }
}

impl Cookie {
    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.path == other.path
    }

    fn fits(&self, url: &SafeUrl, now: u64) -> bool {
        let path = url.as_url().path();
        let is_below = path
            .strip_prefix(&*self.path)
            .is_some_and(|rest| rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/'));
        is_below && (!self.is_secure || url.scheme() == "https") && self.expires.is_none_or(|expires| expires >= now)
    }

    /// As it stands in a `Cookie` header. One without a name is its value alone, as browsers send it.
    pub fn pair(&self) -> String {
        match &*self.name {
            "" => self.value.expose().to_owned(),
            name => format!("{name}={}", self.value.expose()),
        }
    }
}

/// A cookie as an export has it.
#[derive(Default)]
struct RawCookie<'a> {
    domain: &'a str,
    /// `None`: the domain says so with a dot before it.
    includes_subdomains: Option<bool>,
    path: &'a str,
    is_secure: bool,
    name: &'a str,
    value: &'a str,
    /// In seconds; empty, zero and below: at the end of the session.
    expiry: &'a str,
}

impl RawCookie<'_> {
    /// A flag of an export.
    fn is_set(text: &str) -> bool {
        text.trim().eq_ignore_ascii_case("true")
    }

    fn check(&self) -> Result<Cookie, Problem> {
        let texts = [self.name, self.value, self.path];
        if texts
            .iter()
            .any(|text| text.contains(|c: char| c.is_control() || c == ';'))
            || self.name.contains('=')
        {
            return Err(Problem::Character);
        }
        if self.name.len() + self.value.len() > MAX_PAIR_BYTES || self.path.len() > MAX_PATH_BYTES {
            return Err(Problem::TooLong);
        }
        let domain = self.domain.trim();
        let host = Host::parse(domain.trim_start_matches('.')).map_err(|_| Problem::Domain)?;
        let is_name = matches!(host, Host::Domain(_));
        let has_dot = domain.starts_with('.');
        Ok(Cookie {
            domain: host.to_string().into(),
            includes_subdomains: is_name && (has_dot || self.includes_subdomains.unwrap_or(has_dot)),
            path: if self.path.starts_with('/') { self.path } else { "/" }.into(),
            is_secure: self.is_secure,
            name: self.name.into(),
            value: Secret::new(self.value),
            expires: expiry(self.expiry)?,
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts of floats saturate, and only positive ones get here"
)]
fn expiry(text: &str) -> Result<Option<u64>, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let seconds: f64 = text.parse().map_err(|_| Problem::Expiry)?;
    Ok((seconds > 0.0).then_some(seconds as u64))
}

#[cfg(test)]
mod tests;
