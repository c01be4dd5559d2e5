//! Which hosts a call may reach. Pure: decided from a URL alone, before anything is sent.

use std::net::IpAddr;

use egress::Reach;
use plugin_package::HostPattern;
use url::{Host, Url};

/// The methods of requests that plugins may send.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Everything a call may reach. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a permission of its own")]
pub struct Grants {
    pub hosts: Vec<HostPattern>,
    /// Hosts that are refused, and that the user could grant.
    pub grantable: Vec<HostPattern>,
    pub others: Others,
    /// The host of the URL that the call is about, if the plugin may reach that.
    pub input_host: Option<InputHost>,
    /// Whether the plugin may see which cookies sites set.
    pub reads_cookies: bool,
    /// Whether the plugin may receive values that are computed from secrets.
    pub derives_secrets: bool,
    /// Whether it may read them.
    pub reveals_secrets: bool,
}

/// Hosts that the manifest does not name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Others {
    #[default]
    Refused,
    /// They are denied, and the user can grant each, except those that the user denied permanently.
    Grantable { but: Vec<HostPattern> },
    /// They are granted: for author tools, where no user can be asked.
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
    /// The host of a URL from the user; it may be in the user's own network.
    pub fn given_by_user(url: Url) -> Self {
        Self {
            url,
            given_by_user: true,
        }
    }

    /// The host of a URL from a feed, a page or another plugin: it must be a public one.
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
    UrlNotAllowed,
    #[error("{0} is not among the hosts of its permissions")]
    Host(String),
    /// The host is an IP address that is not public.
    #[error("{0} is not a public address")]
    Address(IpAddr),
}

impl Grants {
    /// Whether a request may go to `url`, and to which addresses.
    pub fn check(&self, url: &Url) -> Result<Reach, Denial> {
        let is_plain = matches!(url.scheme(), "http" | "https") && !has_user(url);
        let host = url.host().filter(|_| is_plain).ok_or(Denial::UrlNotAllowed)?;
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

/// The address of `host`, if it is an IP address that is not public.
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
            assert_eq!(check(&grants, refused), Err(Denial::UrlNotAllowed), "{refused}");
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
