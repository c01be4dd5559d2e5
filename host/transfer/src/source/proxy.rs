//! Which proxies can be used.

use crate::source::safe_url::SafeUrl;

/// The schemes of proxies' URLs. The proxy is always given the host's name and resolves it: `socks4` and `socks5` mean
/// what other programs call `socks4a` and `socks5h`.
pub const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// Why a URL is not that of a usable proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableProxy {
    /// The URL does not say where the proxy is.
    #[error("a proxy is scheme://host:port")]
    NoHost,
    /// There is no such kind of proxy.
    #[error("a proxy of scheme {0} is not supported; {schemes} are", schemes = SCHEMES.join(", "))]
    Scheme(String),
    /// SOCKS 4 has no passwords, and its user names are not proved by anything.
    #[error("a {0} proxy takes no user name and no password; use socks5")]
    Login(String),
}

/// Whether `scheme` is a version of SOCKS 4.
pub fn is_socks4(scheme: &str) -> bool {
    matches!(scheme, "socks4" | "socks4a")
}

/// Checks that `proxy` can be used.
pub fn check(proxy: &SafeUrl) -> Result<(), UnusableProxy> {
    let scheme = proxy.scheme();
    if !SCHEMES.contains(&scheme) {
        return Err(UnusableProxy::Scheme(scheme.to_owned()));
    }
    if proxy.as_url().host_str().is_none_or(str::is_empty) {
        return Err(UnusableProxy::NoHost);
    }
    if is_socks4(scheme) && proxy.credentials().is_some() {
        return Err(UnusableProxy::Login(scheme.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_proxy_is_named() {
        let checked = |text: &str| check(&SafeUrl::parse(text).unwrap());
        for scheme in SCHEMES {
            assert_eq!(checked(&format!("{scheme}://p.test:1080")), Ok(()), "{scheme}");
        }
        assert_eq!(checked("socks5://me:secret@p.test"), Ok(()));
        for (proxy, part) in [
            ("ftp://p.test", "ftp"),
            ("socks://p.test", "socks4a"),
            ("socks5:///path", "scheme://host:port"),
            ("socks4://me:secret@p.test", "use socks5"),
            ("socks4a://me@p.test", "user name"),
        ] {
            let error = checked(proxy).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("secret"), "{proxy}: {error}");
        }
    }
}
