//! Who connects where, and as whom: the server of a URL, the login for it, and the way there.

use egress::{Forbidden, Reach, dial::host_of, reach, route::not_reachable};
use transfer::{Credentials, Failure, SafeUrl, Secret, Source, failure::FailureKind};

use crate::place::is_sendable;

/// When a control connection becomes TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Security {
    /// Never (`ftp`).
    Clear,
    /// After `AUTH TLS` (`ftpes`, RFC 4217).
    Explicit,
    /// From the first byte (`ftps`).
    Implicit,
}

/// What is needed to log in.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) url: SafeUrl,
    pub(crate) security: Security,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) login: Credentials,
    pub(crate) proxy: Option<SafeUrl>,
    pub(crate) reach: Reach,
    pub(crate) ignore_tls_errors: bool,
}

impl Access {
    /// Access to `url`, which is one of the source's URLs. Fails before anything is sent if the login has characters that
    /// would end a command, or the URL's supplier may not reach the host.
    pub(crate) fn of(source: &Source, url: &SafeUrl) -> Result<Self, Failure> {
        let security = match url.scheme() {
            "ftpes" => Security::Explicit,
            "ftps" => Security::Implicit,
            _ => Security::Clear,
        };
        let reach = reach::of(&source.given_by, source.urls[0].as_url(), url.as_url());
        reach
            .check(url.as_url())
            .map_err(|forbidden| not_reachable(&forbidden))?;
        // In URLs of schemes that the URL standard does not know, an address is a name.
        if !reach.allows_host(&host_of(url.host())) {
            return Err(not_reachable(&Forbidden {
                host: url.host().to_owned(),
            }));
        }
        let login = login(source, url);
        if !is_sendable(login.user.as_bytes()) || !is_sendable(login.password.expose().as_bytes()) {
            return Err(Failure::new(
                FailureKind::InvalidSource,
                format!("the login for {url} has a line end or a NUL character, which would be a command of its own"),
            ));
        }
        Ok(Self {
            url: url.clone(),
            security,
            host: url.host().to_owned(),
            port: url.port(),
            login,
            proxy: source.proxy.clone(),
            reach,
            ignore_tls_errors: source.ignore_tls_errors,
        })
    }
}

/// The login for `url`: the one in it, the task's own or the stored one of its origin, the one of `.netrc`, or that of
/// anonymous users (RFC 1635).
fn login(source: &Source, url: &SafeUrl) -> Credentials {
    let given = || {
        if url.origin() == source.urls[0].origin() {
            source.request.credentials.clone()
        } else {
            source.logins.get(&url.origin()).cloned()
        }
    };
    let of_netrc = || source.netrc.as_ref()?.login(url.as_url().host_str()?).cloned();
    url.credentials()
        .or_else(given)
        .or_else(of_netrc)
        .unwrap_or_else(|| Credentials {
            user: "anonymous".to_owned(),
            password: Secret::new("anonymous@"),
        })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use transfer::Netrc;

    use super::*;

    fn source(urls: &[&str]) -> Source {
        let mut urls = urls.iter().map(|url| SafeUrl::parse(url).unwrap());
        let mut source = Source::new(urls.next().unwrap());
        source.urls.extend(urls);
        source
    }

    fn pair(user: &str, password: &str) -> Credentials {
        Credentials {
            user: user.to_owned(),
            password: Secret::new(password),
        }
    }

    #[test]
    fn each_origin_gets_its_own_login_only() {
        let mut source = source(&[
            "ftp://a.test/f",
            "ftp://b.test/f",
            "ftp://u:p%40@b.test/f",
            "ftpes://a.test/f",
        ]);
        source.request.credentials = Some(pair("task", "1"));
        source.logins.insert("ftp://b.test:21".to_owned(), pair("stored", "2"));
        source.netrc = Some(Arc::new(Netrc::parse("machine a.test login netrc password 3")));
        let login = |nth: usize| Access::of(&source, &source.urls[nth]).unwrap().login;
        assert_eq!(login(0), pair("task", "1"));
        assert_eq!(login(1), pair("stored", "2"));
        assert_eq!(login(2), pair("u", "p@"));
        assert_eq!(login(3), pair("netrc", "3"), "another scheme is another origin");
        source.request.credentials = None;
        source.netrc = None;
        assert_eq!(Access::of(&source, &source.urls[0]).unwrap().login.user, "anonymous");
    }

    #[test]
    fn a_login_is_no_command_and_ports_are_those_of_the_scheme() {
        let access = |url: &str| {
            let source = source(&[url]);
            Access::of(&source, &source.urls[0])
        };
        for url in ["ftp://u%0d%0aDELE:p@h/f", "ftp://u:p%0aDELE@h/f", "ftps://u:%00@h/f"] {
            let refused = access(url).unwrap_err();
            assert_eq!(refused.kind, FailureKind::InvalidSource, "{url}");
            assert!(!refused.message.contains("DELE"), "{refused}");
        }
        let port = |url: &str| access(url).unwrap().port;
        assert_eq!(
            (
                port("ftp://h/"),
                port("ftpes://h/"),
                port("ftps://h/"),
                port("ftps://h:21/")
            ),
            (21, 21, 990, 21)
        );
        assert_eq!(access("ftp://[::1]/f").unwrap().host, "::1");
    }

    #[test]
    fn urls_of_others_reach_public_hosts_only() {
        let mut source = source(&["ftp://127.0.0.1/f"]);
        assert!(Access::of(&source, &source.urls[0]).is_ok());
        source.given_by = transfer::GivenBy::Other { user_host: None };
        for url in [
            "ftp://127.0.0.1/f",
            "ftps://127.0.0.1/f",
            "ftpes://[::1]/f",
            "ftp://localhost/f",
        ] {
            source.urls[0] = SafeUrl::parse(url).unwrap();
            let refused = Access::of(&source, &source.urls[0]);
            assert_eq!(refused.unwrap_err().kind, FailureKind::ForbiddenRedirect, "{url}");
        }
    }
}
