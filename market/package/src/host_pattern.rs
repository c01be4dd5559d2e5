//! Patterns of origins, with which a manifest names hosts.

use std::{fmt, str::FromStr};

use url::{Host, Url};

use crate::domain;

/// `https://api.acme.com`, `http://acme.com:8080` or `https://*.acmecdn.net`. A wildcard stands for the whole left-most
/// label or more of them, and never directly on a public suffix (`*.com`, `*.co.uk`), which has no single owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPattern {
    is_https: bool,
    /// In ASCII and lower case, without the wildcard; an IPv6 address is in brackets.
    host: String,
    has_wildcard: bool,
    port: u16,
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHostPattern {
    /// The text does not have the form of a pattern.
    #[error("a host is https://name, http://name or https://*.name, with a port if it is not the usual one")]
    Form,
    /// The pattern would cover names of many owners.
    #[error("a wildcard cannot be on a public suffix or an address")]
    TooWide,
}

impl HostPattern {
    /// Whether the pattern covers the origin of `url`.
    pub fn covers(&self, url: &Url) -> bool {
        url.scheme() == self.scheme()
            && url.port_or_known_default() == Some(self.port)
            && url.host_str().is_some_and(|host| self.covers_name(host))
    }

    /// Whether the pattern covers every origin that `other` covers.
    pub fn covers_pattern(&self, other: &Self) -> bool {
        let is_same_service = self.is_https == other.is_https && self.port == other.port;
        let covers_name = match (self.has_wildcard, other.has_wildcard) {
            (true, true) => self.host == other.host || self.covers_name(&other.host),
            (false, true) => false,
            (_, false) => self.covers_name(&other.host),
        };
        is_same_service && covers_name
    }

    /// Whether the pattern covers the names below a host.
    pub fn has_wildcard(&self) -> bool {
        self.has_wildcard
    }

    /// The permission that this pattern grants, described for users.
    pub fn description(&self) -> String {
        let unsafely = if self.is_https { "" } else { ", without encryption" };
        format!("may contact {self}{unsafely}")
    }

    fn covers_name(&self, host: &str) -> bool {
        if self.has_wildcard {
            host.strip_suffix(&self.host)
                .is_some_and(|left| left.len() > 1 && left.ends_with('.'))
        } else {
            host == self.host
        }
    }

    fn scheme(&self) -> &'static str {
        if self.is_https { "https" } else { "http" }
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidHostPattern::Form)?;
        let is_https = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(InvalidHostPattern::Form),
        };
        let (has_wildcard, name) = match rest.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, rest),
        };
        if name.is_empty() || name.contains(['*', '/', '?', '#', '@', '\\']) {
            return Err(InvalidHostPattern::Form);
        }
        let url = Url::parse(&format!("{scheme}://{name}/")).map_err(|_| InvalidHostPattern::Form)?;
        let host = url.host().ok_or(InvalidHostPattern::Form)?;
        if has_wildcard && !is_owned(&host) {
            return Err(InvalidHostPattern::TooWide);
        }
        Ok(Self {
            is_https,
            host: host.to_string(),
            has_wildcard,
            port: url.port_or_known_default().ok_or(InvalidHostPattern::Form)?,
        })
    }
}

/// Whether one party owns all names under `host`.
fn is_owned(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => domain::registrable(name).is_some(),
        Host::Ipv4(_) | Host::Ipv6(_) => false,
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wildcard = if self.has_wildcard { "*." } else { "" };
        write!(f, "{}://{wildcard}{}", self.scheme(), self.host)?;
        let usual = if self.is_https { 443 } else { 80 };
        if self.port == usual {
            Ok(())
        } else {
            write!(f, ":{}", self.port)
        }
    }
}

crate::text::text_in_json!(HostPattern);

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    fn covers(pattern: &HostPattern, url: &str) -> bool {
        pattern.covers(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_pattern_means_one_origin_or_the_names_below_one() {
        let exact = pattern("https://API.acme.com");
        assert!(covers(&exact, "https://api.acme.com/x?y"));
        for other in [
            "http://api.acme.com/",
            "https://api.acme.com:8443/",
            "https://x.api.acme.com/",
            "https://evilapi.acme.com/",
            "https://api.acme.com.evil.net/",
        ] {
            assert!(!covers(&exact, other), "{other}");
        }
        let wide = pattern("https://*.acmecdn.net");
        assert!(covers(&wide, "https://a.acmecdn.net/") && covers(&wide, "https://a.b.acmecdn.net/"));
        for other in [
            "https://acmecdn.net/",
            "https://evilacmecdn.net/",
            "https://acmecdn.net.evil.com/",
        ] {
            assert!(!covers(&wide, other), "{other}");
        }
        assert!(covers(&pattern("https://[::1]:8080"), "https://[::1]:8080/"));
        assert!(covers(&pattern("https://münchen.de"), "https://xn--mnchen-3ya.de/"));
    }

    #[test]
    fn patterns_that_mean_too_much_are_refused() {
        for wide in [
            "https://*.com",
            "https://*.co.uk",
            "https://*.github.io",
            "https://*.1.2.3.4",
            "https://*.test",
        ] {
            assert_eq!(wide.parse::<HostPattern>(), Err(InvalidHostPattern::TooWide), "{wide}");
        }
        for bad in [
            "acme.com",
            "ftp://acme.com",
            "https://*",
            "https://*acme.com",
            "https://a.*.com",
            "https://acme.com/path",
            "https://me@acme.com",
            "https://",
            "*://acme.com",
            "<all_urls>",
        ] {
            assert_eq!(bad.parse::<HostPattern>(), Err(InvalidHostPattern::Form), "{bad}");
        }
    }

    #[test]
    fn a_pattern_prints_what_it_reads_and_covers_itself() {
        for text in ["https://a.acme.com", "http://acme.com:8080", "https://*.acme.com"] {
            assert_eq!(pattern(text).to_string(), text);
            assert!(pattern(text).covers_pattern(&pattern(text)), "{text}");
        }
        let wide = pattern("https://*.acme.com");
        assert!(wide.covers_pattern(&pattern("https://a.acme.com")));
        assert!(wide.covers_pattern(&pattern("https://*.a.acme.com")));
        assert!(!wide.covers_pattern(&pattern("https://acme.com")));
        assert!(!pattern("https://a.acme.com").covers_pattern(&wide));
    }
}
