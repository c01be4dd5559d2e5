//! The validated address of a service.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use transfer::SafeUrl;

/// `http` or `https`, a host, optionally a port and the path prefix of a reverse proxy. Contains no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(SafeUrl);

impl Address {
    /// Parses an address; the error explains the format.
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "write http://host:port or https://host";
        let url = SafeUrl::parse(text).map_err(|problem| format!("{problem}; {FORM}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("cannot talk {}; {FORM}", url.scheme()));
        }
        let plain = url.as_url();
        if !plain.username().is_empty() || plain.password().is_some() {
            return Err("an access key does not belong into the address; use --token-file".to_owned());
        }
        if plain.query().is_some() || plain.fragment().is_some() {
            return Err(format!("an address ends with its path; {FORM}"));
        }
        Ok(Self(url))
    }

    /// The service on this machine.
    pub fn local(port: u16) -> Self {
        Self::parse(&format!("http://127.0.0.1:{port}")).expect("it is written as an address is")
    }

    /// How a listener is reached from this machine; none if it has no URL.
    pub(crate) fn of_listener(mut address: SocketAddr) -> Option<Self> {
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        Self::parse(&format!("http://{address}")).ok()
    }

    /// Whether both name the same service, where `localhost` and the loopback address are equal.
    pub(crate) fn is_meant_by(&self, other: &Self) -> bool {
        let but_host = |address: &Self| (address.is_secure(), address.port(), address.path(""));
        let is_by_name = self.is_loopback() && other.host().eq_ignore_ascii_case("localhost");
        self == other || (is_by_name && but_host(self) == but_host(other))
    }

    /// Whether TLS is used.
    pub(crate) fn is_secure(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Without the brackets of IPv6.
    pub(crate) fn host(&self) -> &str {
        let host = self.0.as_url().host_str().unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.as_url().port_or_known_default().unwrap_or_default()
    }

    /// The `Host` header.
    pub(crate) fn authority(&self) -> String {
        let host = self.0.as_url().host_str().unwrap_or_default();
        match self.0.as_url().port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// `path` (with a leading slash) below the address's prefix.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.0.as_url().path().trim_end_matches('/'))
    }

    /// Whether the host is `localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        let is_loopback = host.parse().is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback());
        is_loopback || host.eq_ignore_ascii_case("localhost")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.expose().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_perhaps_a_path() {
        let address = Address::parse("HTTPS://Nas.test/svc/").unwrap();
        assert_eq!(address.to_string(), "https://nas.test/svc");
        assert_eq!(
            (address.host(), address.port(), address.is_secure()),
            ("nas.test", 443, true)
        );
        assert_eq!(
            (address.authority().as_str(), address.path("/rpc").as_str()),
            ("nas.test", "/svc/rpc")
        );
        let local = Address::local(17800);
        assert_eq!(
            (local.to_string().as_str(), local.path("/rpc").as_str()),
            ("http://127.0.0.1:17800", "/rpc")
        );
        assert_eq!(Address::parse("http://[::1]:81").unwrap().host(), "::1");
    }

    #[test]
    fn a_listener_is_meant_by_its_address_and_by_no_other() {
        for (listener, text, expected) in [
            ("127.0.0.1:81", "http://127.0.0.1:81", true),
            ("0.0.0.0:81", "http://127.0.0.1:81/", true),
            ("0.0.0.0:80", "http://localhost", true),
            ("[::]:81", "http://[::1]:81", true),
            ("[::1]:81", "http://localhost:81", true),
            ("10.0.0.1:81", "http://10.0.0.1:81", true),
            ("127.0.0.1:81", "http://127.0.0.1:82", false),
            ("127.0.0.1:81", "http://127.0.0.2:81", false),
            ("127.0.0.1:81", "http://[::1]:81", false),
            ("127.0.0.1:81", "https://127.0.0.1:81", false),
            ("127.0.0.1:81", "http://localhost:81/elsewhere", false),
            ("10.0.0.1:81", "http://localhost:81", false),
        ] {
            let own = Address::of_listener(listener.parse().unwrap()).unwrap();
            let named = Address::parse(text).unwrap();
            assert_eq!(own.is_meant_by(&named), expected, "{listener} {text}");
        }
    }

    #[test]
    fn this_machine_is_distinguished_from_others() {
        for (text, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9", true),
            ("http://LocalHost:1", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://10.0.0.1", false),
            ("http://localhost.example.com", false),
        ] {
            assert_eq!(Address::parse(text).unwrap().is_loopback(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_a_secret() {
        for text in [
            "",
            "nas",
            "ftp://nas",
            "http://me:hunter2@nas",
            "http://nas/?token=hunter2",
            "http://nas/#x",
        ] {
            let refusal = Address::parse(text).unwrap_err();
            assert!(!refusal.contains("hunter2") && refusal.len() > 20, "{refusal}");
        }
    }
}
