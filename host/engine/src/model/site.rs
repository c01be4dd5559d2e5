//! Sites: the keys of stored credentials and cookies.

use std::{borrow::Borrow, fmt, str::FromStr};

use transfer::{CookieJar, SafeUrl, UserHost, safe_url::default_port};

use crate::model::error::CommandError;

/// `scheme://host[:port]`, normalised: lower-case, without the default port. A bare host means https; http and https
/// never share credentials.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site(String);

impl Site {
    /// The site of a URL.
    pub fn of(url: &SafeUrl) -> Option<Self> {
        let host = url.as_url().host_str().filter(|host| !host.is_empty())?;
        let host = host.to_ascii_lowercase();
        let port = url
            .as_url()
            .port()
            .filter(|port| Some(*port) != default_port(url.scheme()));
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        Some(Self(format!("{}://{host}{port}", url.scheme())))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Site {
    type Err = CommandError;

    fn from_str(text: &str) -> Result<Self, CommandError> {
        let text = text.trim();
        let full = if text.contains("://") {
            text.to_owned()
        } else {
            format!("https://{text}")
        };
        let url = SafeUrl::parse(&full).map_err(|_| CommandError::InvalidSite)?;
        let parts = url.as_url();
        if default_port(url.scheme()).is_none() || !parts.username().is_empty() || parts.password().is_some() {
            return Err(CommandError::InvalidSite);
        }
        Self::of(&url).ok_or(CommandError::InvalidSite)
    }
}

/// The key of stored cookies: a host or a registered domain, as URLs spell it, without scheme and port, which are no part
/// of a cookie's scope either (RFC 6265, section 8.5).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CookieSite(Box<str>);

impl CookieSite {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CookieSite {
    type Err = CommandError;

    fn from_str(text: &str) -> Result<Self, CommandError> {
        let host = UserHost::visited(text).filter(|host| host.port.is_none());
        host.map(|host| Self(host.host)).ok_or(CommandError::InvalidCookieSite)
    }
}

/// Maps are looked up by hosts of URLs.
impl Borrow<str> for CookieSite {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CookieSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is shown of the stored cookies of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieSummary {
    /// The site.
    pub site: CookieSite,
    /// How many cookies are stored.
    pub count: usize,
    /// When the last of them expires, in Unix seconds; `None` if one never does.
    pub expires: Option<u64>,
}

impl CookieSummary {
    /// What is shown of these cookies.
    pub fn of(site: &CookieSite, jar: &CookieJar) -> Self {
        let expiries: Option<Vec<u64>> = jar.iter().map(|cookie| cookie.expires).collect();
        Self {
            site: site.clone(),
            count: jar.iter().count(),
            expires: expiries.and_then(|expiries| expiries.into_iter().max()),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_of_cookies_is_a_host() {
        let site = |text: &str| text.parse::<CookieSite>().map(|site| site.to_string());
        assert_eq!(site(" Example.TEST ").as_deref(), Ok("example.test"));
        assert_eq!(site("127.0.0.1").as_deref(), Ok("127.0.0.1"));
        assert_eq!(site("[::1]").as_deref(), Ok("[::1]"));
        for bad in [
            "",
            "https://example.test",
            "example.test:81",
            "example.test/x",
            "me@example.test",
            "a b",
        ] {
            assert_eq!(site(bad), Err(CommandError::InvalidCookieSite), "{bad}");
        }
    }

    #[test]
    fn a_site_is_normalised_and_keeps_http_and_https_apart() {
        let site = |text: &str| text.parse::<Site>().unwrap().to_string();
        assert_eq!(site("Example.TEST"), "https://example.test");
        assert_eq!(site("example.test:443"), "https://example.test");
        assert_eq!(site("example.test:8443/some/path?x"), "https://example.test:8443");
        assert_eq!(site("http://example.test:80/"), "http://example.test");
        assert_ne!(site("http://example.test"), site("https://example.test"));
        for (text, normal) in [
            ("ftp://Example.TEST:21/dir/", "ftp://example.test"),
            ("ftpes://Example.TEST:21/", "ftpes://example.test"),
            ("ftps://example.test:990", "ftps://example.test"),
            ("sftp://example.test:22/~/x", "sftp://example.test"),
            ("sftp://example.test:2222", "sftp://example.test:2222"),
        ] {
            assert_eq!(site(text), normal);
        }
        for bad in ["", "https://", "mailto:x@y", "https://user@host.test", "magnet://x"] {
            assert_eq!(bad.parse::<Site>(), Err(CommandError::InvalidSite), "{bad}");
        }
    }
}
