//! Which hosts a call may reach. Pure: it is decided here, from a URL alone, before anything is sent.

use std::{fmt, net::IpAddr, str::FromStr};

use egress::Reach;
use url::{Host, Url};

/// The methods of requests that plugins may send.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// `https://api.acme.com`, `http://acme.com:8080` or `https://*.acmecdn.net`. A wildcard stands for the whole left-most
/// label or more of them, and never directly on a public suffix (`*.com`, `*.co.uk`): nobody owns that.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPattern {
    is_https: bool,
    /// In ASCII and lower case, without the wildcard; an IPv6 address is in brackets.
    host: String,
    has_wildcard: bool,
    port: u16,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHostPattern {
    /// It is nothing like one.
    #[error("a host is https://name, http://name or https://*.name, with a port if it is not the usual one")]
    Form,
    /// It would cover names of many owners.
    #[error("a wildcard cannot stand on a public suffix or an address")]
    TooWide,
}

impl HostPattern {
    /// Whether it means the host of `url`.
    pub fn covers(&self, url: &Url) -> bool {
        url.scheme() == self.scheme()
            && url.port_or_known_default() == Some(self.port)
            && url.host_str().is_some_and(|host| self.covers_name(host))
    }

    /// Whether it means all that `other` means.
    pub fn covers_pattern(&self, other: &Self) -> bool {
        let is_same_service = self.is_https == other.is_https && self.port == other.port;
        let covers_name = match (self.has_wildcard, other.has_wildcard) {
            (true, true) => self.host == other.host || self.covers_name(&other.host),
            (false, true) => false,
            (_, false) => self.covers_name(&other.host),
        };
        is_same_service && covers_name
    }

    /// Whether it means the names below a host.
    pub(crate) fn has_wildcard(&self) -> bool {
        self.has_wildcard
    }

    /// What whoever has it may do, for people.
    pub(crate) fn words(&self) -> String {
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
        Host::Domain(name) => psl::suffix_str(name).is_some_and(|suffix| suffix.len() < name.len()),
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

/// Everything a call may reach. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// Hosts that were granted to the plugin.
    pub hosts: Vec<HostPattern>,
    /// Hosts that are refused, and that the user could grant.
    pub grantable: Vec<HostPattern>,
    /// What about all the others.
    pub others: Others,
    /// The host of the URL that the call is about, if the plugin may reach that.
    pub input_host: Option<InputHost>,
    /// Whether the plugin may see which cookies sites set.
    pub reads_cookies: bool,
    /// Whether the plugin may be told what is computed from secrets.
    pub derives_secrets: bool,
}

/// Hosts that nobody has named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Others {
    /// They are refused.
    #[default]
    Refused,
    /// They are refused, and the user could grant each, but for those that were refused for good.
    Grantable {
        /// These.
        but: Vec<HostPattern>,
    },
    /// They are granted: an author tries out a plugin whose users could grant them.
    Granted,
}

/// The permission, for one call, to reach the host of the URL that the call is about: the same scheme, host and port,
/// or the same host over HTTPS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputHost {
    url: Url,
    given_by_user: bool,
}

impl InputHost {
    /// The host of a URL that the user gave, be it in the user's own network.
    pub fn given_by_user(url: Url) -> Self {
        Self {
            url,
            given_by_user: true,
        }
    }

    /// The host of a URL that came from somebody else: it must be a public one.
    pub fn found(url: Url) -> Self {
        Self {
            url,
            given_by_user: false,
        }
    }

    /// Whether `url` is on the host of the call's URL.
    pub(crate) fn covers(&self, url: &Url) -> bool {
        let is_same_port =
            url.scheme() == self.url.scheme() && url.port_or_known_default() == self.url.port_or_known_default();
        let is_upgrade = is_secure(url) && url.port_or_known_default() == Some(443);
        url.host().is_some() && url.host() == self.url.host() && (is_same_port || is_upgrade)
    }
}

/// Why a URL may not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// Not `http` or `https`, no host, or with a user name in it.
    #[error("plugins send requests to http and https URLs without user names only")]
    NotPlain,
    /// The host was not granted.
    #[error("{0} is not among the hosts of its permissions")]
    Host(String),
    /// A host that is a number of a network that is not public.
    #[error("{0} is not a public address")]
    Address(IpAddr),
}

impl Grants {
    /// Whether a request may go to `url`, and to which addresses.
    pub fn check(&self, url: &Url) -> Result<Reach, Denial> {
        let is_plain = matches!(url.scheme(), "http" | "https") && !has_user(url);
        let host = url.host().filter(|_| is_plain).ok_or(Denial::NotPlain)?;
        let input = self.input_host.as_ref().filter(|input| input.covers(url));
        let is_granted = || self.others == Others::Granted || self.hosts.iter().any(|pattern| pattern.covers(url));
        if input.is_none() && !is_granted() {
            return Err(Denial::Host(url.origin().ascii_serialization()));
        }
        if input.is_some_and(|input| input.given_by_user) {
            return Ok(Reach::Anywhere);
        }
        match private(&host) {
            Some(address) => Err(Denial::Address(address)),
            None => Ok(Reach::Global),
        }
    }

    /// The pattern that the user would have to grant for what was denied, if there is one.
    pub(crate) fn grantable_for(&self, denial: &Denial) -> Option<HostPattern> {
        let Denial::Host(origin) = denial else {
            return None;
        };
        let url = Url::parse(origin).ok()?;
        let named = self.grantable.iter().find(|pattern| pattern.covers(&url));
        named.cloned().or_else(|| match &self.others {
            // Granted or not, it would not be reached.
            Others::Grantable { .. } if private(&url.host()?).is_some() => None,
            Others::Grantable { but } => origin.parse().ok().filter(|host| !but.contains(host)),
            Others::Refused | Others::Granted => None,
        })
    }
}

/// The number of a network that is not public, if a host is one.
fn private(host: &Host<&str>) -> Option<IpAddr> {
    let address = match host {
        Host::Ipv4(address) => IpAddr::V4(*address),
        Host::Ipv6(address) => IpAddr::V6(*address),
        Host::Domain(_) => return None,
    };
    (!Reach::Global.allows(address)).then_some(address)
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

fn is_secure(url: &Url) -> bool {
    url.scheme() == "https"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    fn covers(pattern: &HostPattern, url: &str) -> bool {
        pattern.covers(&Url::parse(url).unwrap())
    }

    fn grants(patterns: &[&str]) -> Grants {
        Grants {
            hosts: patterns.iter().map(|text| pattern(text)).collect(),
            ..Grants::default()
        }
    }

    fn check(grants: &Grants, url: &str) -> Result<Reach, Denial> {
        grants.check(&Url::parse(url).unwrap())
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
    fn any_other_host_can_be_granted_by_its_name_if_the_plugin_may_ask() {
        let mut grants = grants(&["https://api.acme.com"]);
        let grantable = |grants: &Grants, url: &str| {
            let denial = check(grants, url).unwrap_err();
            grants.grantable_for(&denial).map(|host| host.to_string())
        };
        assert_eq!(grantable(&grants, "https://cdn.test/x"), None);
        grants.others = Others::Grantable {
            but: vec![pattern("https://never.test")],
        };
        let host = Some("https://cdn.test:8443".to_owned());
        assert_eq!(grantable(&grants, "https://cdn.test:8443/x"), host);
        assert_eq!(grantable(&grants, "https://never.test/x"), None);
        assert_eq!(grantable(&grants, "http://192.168.1.5/x"), None, "it is not public");
        grants.others = Others::Granted;
        assert_eq!(check(&grants, "https://cdn.test/x"), Ok(Reach::Global));
        assert!(matches!(check(&grants, "http://192.168.1.5/"), Err(Denial::Address(_))));
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

    #[test]
    fn nothing_is_granted_unless_somebody_did() {
        assert!(matches!(
            check(&Grants::default(), "https://example.org/"),
            Err(Denial::Host(_))
        ));
    }

    #[test]
    fn user_names_and_other_schemes_are_refused_whatever_is_granted() {
        let grants = grants(&["https://example.org"]);
        for refused in [
            "https://u@example.org/",
            "https://:p@example.org/",
            "ftp://example.org/",
            "file:///etc/passwd",
        ] {
            assert_eq!(check(&grants, refused), Err(Denial::NotPlain), "{refused}");
        }
    }

    #[test]
    fn a_granted_number_still_has_to_be_public() {
        let grants = grants(&[
            "http://127.0.0.1",
            "http://[::ffff:10.0.0.1]",
            "http://8.8.8.8",
            "http://169.254.169.254",
        ]);
        assert_eq!(check(&grants, "http://8.8.8.8/"), Ok(Reach::Global));
        for private in [
            "http://127.0.0.1/",
            "http://0x7f.1/",
            "http://[::ffff:a00:1]/",
            "http://169.254.169.254/",
        ] {
            assert!(matches!(check(&grants, private), Err(Denial::Address(_))), "{private}");
        }
    }

    #[test]
    fn the_input_host_is_one_host_private_only_if_the_user_gave_it() {
        let url = Url::parse("http://192.168.1.5:8000/files/").unwrap();
        let mut grants = Grants {
            input_host: Some(InputHost::given_by_user(url.clone())),
            ..Grants::default()
        };
        assert_eq!(check(&grants, "http://192.168.1.5:8000/other"), Ok(Reach::Anywhere));
        assert_eq!(check(&grants, "https://192.168.1.5/"), Ok(Reach::Anywhere));
        for other in [
            "http://192.168.1.5/",
            "http://192.168.1.6:8000/",
            "https://192.168.1.5:8000/",
        ] {
            assert!(matches!(check(&grants, other), Err(Denial::Host(_))), "{other}");
        }
        grants.input_host = Some(InputHost::found(url));
        assert!(matches!(
            check(&grants, "http://192.168.1.5:8000/"),
            Err(Denial::Address(_))
        ));
    }
}
