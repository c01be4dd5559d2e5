//! Who connects where, and as whom: the server of a URL, the login for it, and the way there.

use egress::{Forbidden, Reach, dial::host_of, reach, route::not_reachable};
use transfer::{Credentials, Failure, GivenBy, HostKeyFingerprint, SafeUrl, Secret, Source, failure::FailureKind};

use crate::shared::Config;

/// What is needed to log in.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) url: SafeUrl,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The user, and the password if there is one.
    pub(crate) login: Credentials,
    /// Whether the user's keys may be used: only for URLs that the user gave.
    pub(crate) uses_keys: bool,
    /// The key that the server has to have.
    pub(crate) host_key: Option<HostKeyFingerprint>,
    pub(crate) proxy: Option<SafeUrl>,
    pub(crate) reach: Reach,
    pub(crate) ignore_tls_errors: bool,
}

impl Access {
    /// Access to `url`, which is one of the source's URLs. Fails before anything is sent if the URL's supplier may not
    /// reach the host, or no user is named.
    pub(crate) fn of(config: &Config, source: &Source, url: &SafeUrl) -> Result<Self, Failure> {
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
        let is_user = source.given_by == GivenBy::User;
        let usual = config.user.as_deref().filter(|_| is_user);
        let login = login(source, url, usual).ok_or_else(|| {
            let why = format!("{url} names no user; write sftp://USER@{}/…", url.host());
            Failure::new(FailureKind::InvalidSource, why)
        })?;
        let is_first = url.origin() == source.urls[0].origin();
        Ok(Self {
            url: url.clone(),
            host: url.host().to_owned(),
            port: url.port(),
            login,
            uses_keys: is_user,
            host_key: source.request.ssh_host_key.filter(|_| is_first),
            proxy: source.proxy.clone(),
            reach,
            ignore_tls_errors: source.ignore_tls_errors,
        })
    }
}

/// The login for `url`: the user is that of the URL, else of the task or of the stored login of its origin, else of
/// `.netrc`, else `usual`. The password is the first of these that is for this user.
fn login(source: &Source, url: &SafeUrl, usual: Option<&str>) -> Option<Credentials> {
    let given = if url.origin() == source.urls[0].origin() {
        source.request.credentials.clone()
    } else {
        source.logins.get(&url.origin()).cloned()
    };
    let of_netrc = source.netrc.as_ref().and_then(|netrc| netrc.login(url.host()).cloned());
    let usual = usual.map(|user| Credentials {
        user: user.to_owned(),
        password: Secret::default(),
    });
    let known = [url.credentials(), given, of_netrc, usual];
    let mut known = known.into_iter().flatten();
    let mut login = known.next()?;
    if login.password.is_empty()
        && let Some(same) = known.find(|other| other.user == login.user && !other.password.is_empty())
    {
        login.password = same.password;
    }
    Some(login)
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
    fn each_origin_gets_its_own_login_and_host_key_only() {
        let mut source = source(&[
            "sftp://a.test/f",
            "sftp://b.test/f",
            "sftp://u:p%40@b.test/f",
            "sftp://a.test:2222/f",
            "sftp://stored@b.test/f",
        ]);
        source.request.credentials = Some(pair("task", "1"));
        source.request.ssh_host_key = Some(HostKeyFingerprint::Md5([1; 16]));
        source.logins.insert("sftp://b.test:22".to_owned(), pair("stored", "2"));
        source.netrc = Some(Arc::new(Netrc::parse("machine a.test login netrc password 3")));
        let config = Config::default();
        let access = |nth: usize| Access::of(&config, &source, &source.urls[nth]).unwrap();
        assert_eq!(access(0).login, pair("task", "1"));
        assert_eq!(access(1).login, pair("stored", "2"));
        assert_eq!(access(2).login, pair("u", "p@"));
        assert_eq!(access(3).login, pair("netrc", "3"), "another port is another origin");
        assert_eq!(access(4).login, pair("stored", "2"), "the password is that of the user");
        assert!(access(0).host_key.is_some());
        assert!(access(1).host_key.is_none() && access(3).host_key.is_none());
    }

    #[test]
    fn keys_and_the_usual_user_are_for_urls_of_the_user() {
        let config = Config {
            user: Some("me".to_owned()),
            ..Config::default()
        };
        let mut source = source(&["sftp://example.com/f"]);
        let access = Access::of(&config, &source, &source.urls[0]).unwrap();
        assert!(access.uses_keys && access.login == pair("me", ""));
        source.given_by = GivenBy::Other { user_host: None };
        let refused = Access::of(&config, &source, &source.urls[0]).unwrap_err();
        assert!(refused.message.contains("names no user"), "{refused}");
        source.urls[0] = SafeUrl::parse("sftp://u:p@example.com/f").unwrap();
        assert!(!Access::of(&config, &source, &source.urls[0]).unwrap().uses_keys);
        for url in ["sftp://u@127.0.0.1/f", "sftp://u@[::1]/f", "sftp://u@localhost/f"] {
            source.urls[0] = SafeUrl::parse(url).unwrap();
            let refused = Access::of(&config, &source, &source.urls[0]);
            assert_eq!(refused.unwrap_err().kind, FailureKind::ForbiddenRedirect, "{url}");
        }
    }
}
