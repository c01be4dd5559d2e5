//! Where a secret may be sent.

use plugin_package::{HostPattern, domain};
use serde::{Deserialize, Serialize};
use transfer::Secret;
use url::Url;

/// A secret, and the hosts that it may be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundSecret {
    value: Secret,
    hosts: Vec<HostPattern>,
    captured: Option<Captured>,
}

/// The site of the response that a value was captured from: not only the host, because sites log in on one host and
/// serve on another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Captured {
    site: String,
    is_https: bool,
}

impl BoundSecret {
    /// A value for these hosts.
    pub fn new(value: Secret, hosts: Vec<HostPattern>) -> Self {
        Self {
            value,
            hosts,
            captured: None,
        }
    }

    /// A value captured from a response of `url`: for that site, and for these hosts.
    pub fn captured(value: Secret, url: &Url, hosts: Vec<HostPattern>) -> Self {
        Self {
            captured: Some(Captured::from(url)),
            ..Self::new(value, hosts)
        }
    }

    pub(crate) fn of(value: Secret, hosts: Vec<HostPattern>, captured: Option<Captured>) -> Self {
        Self { value, hosts, captured }
    }

    /// The value, if it may be sent to `url`.
    pub fn for_url(&self, url: &Url) -> Option<&Secret> {
        let is_bound = self.hosts.iter().any(|host| host.covers(url))
            || self.captured.as_ref().is_some_and(|captured| captured.covers(url));
        is_bound.then_some(&self.value)
    }

    /// Another value, for the same places: one that was computed from this.
    #[must_use]
    pub fn with_value(&self, value: Secret) -> Self {
        Self { value, ..self.clone() }
    }

    /// The value, for computations whose input stays in the host.
    pub fn value(&self) -> &Secret {
        &self.value
    }
}

impl Captured {
    pub(crate) fn from(url: &Url) -> Self {
        Self {
            site: site(url),
            is_https: url.scheme() == "https",
        }
    }

    /// The same site, and never over a less secure connection.
    fn covers(&self, url: &Url) -> bool {
        (url.scheme() == "https" || !self.is_https) && site(url) == self.site
    }
}

/// The registrable domain of a URL; its host, if that has none.
fn site(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let domain = url.domain().and_then(domain::registrable);
    domain.unwrap_or(host).to_owned()
}
