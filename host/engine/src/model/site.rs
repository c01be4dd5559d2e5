//! Sites: the key of stored credentials.

use std::{fmt, str::FromStr};

use transfer::SafeUrl;

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

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        "ftp" => Some(21),
        "ftps" => Some(990),
        _ => None,
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

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_normalised_and_keeps_http_and_https_apart() {
        let site = |text: &str| text.parse::<Site>().unwrap().to_string();
        assert_eq!(site("Example.TEST"), "https://example.test");
        assert_eq!(site("example.test:443"), "https://example.test");
        assert_eq!(site("example.test:8443/some/path?x"), "https://example.test:8443");
        assert_eq!(site("http://example.test:80/"), "http://example.test");
        assert_ne!(site("http://example.test"), site("https://example.test"));
        for bad in ["", "https://", "mailto:x@y", "https://user@host.test", "magnet://x"] {
            assert_eq!(bad.parse::<Site>(), Err(CommandError::InvalidSite), "{bad}");
        }
    }
}
