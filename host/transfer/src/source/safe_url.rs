//! A URL that can be printed: passwords and query values never show.

use std::fmt;

use url::Url;

use crate::source::secret::{Credentials, Secret};

/// The longest URL accepted, in bytes. Servers and browsers stop between 8 KiB and 64 KiB; signed links reach 4 KiB.
pub const MAX_URL_BYTES: usize = 32 * 1024;

/// What is shown in place of a password.
const MASK: &str = "***";

/// A parsed URL whose `Display` and `Debug` leave out the user part and the values of the query, because both carry
/// secrets (passwords, signatures) and URLs are printed all day.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SafeUrl(Url);

/// Why a text is not a usable URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// Longer than [`MAX_URL_BYTES`].
    #[error("the URL is {0} bytes long; the limit is {MAX_URL_BYTES}")]
    TooLong(usize),
    /// Not a URL; the text is not repeated, since it may hold a secret.
    #[error("not a URL: {0}")]
    Malformed(url::ParseError),
    /// A URL of a scheme that needs a host, without one.
    #[error("the URL has no host")]
    NoHost,
}

impl SafeUrl {
    /// Parses `text`, surrounding white space ignored.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let text = text.trim();
        if text.len() > MAX_URL_BYTES {
            return Err(InvalidUrl::TooLong(text.len()));
        }
        let url = Self::stored(text)?;
        // Percent-encoding makes three bytes of one: what is accepted must also be accepted as it is stored and sent.
        let bytes = url.expose().len();
        if bytes > MAX_URL_BYTES {
            return Err(InvalidUrl::TooLong(bytes));
        }
        Ok(url)
    }

    /// Parses a URL that was accepted before, perhaps by a version with another limit. What was stored must be readable.
    pub fn stored(text: &str) -> Result<Self, InvalidUrl> {
        let mut url = Url::parse(text).map_err(InvalidUrl::Malformed)?;
        let needs_host = matches!(url.scheme(), "http" | "https" | "ftp" | "ftps" | "ftpes" | "sftp");
        if needs_host && url.host_str().is_none_or(str::is_empty) {
            return Err(InvalidUrl::NoHost);
        }
        if matches!(url.scheme(), "ftps" | "ftpes" | "sftp") {
            normalise(&mut url)?;
        }
        Ok(Self(url))
    }

    /// Resolves `reference`, such as a `Location` header, against this URL.
    pub fn join(&self, reference: &str) -> Result<Self, InvalidUrl> {
        if reference.len() > MAX_URL_BYTES {
            return Err(InvalidUrl::TooLong(reference.len()));
        }
        let joined = self.0.join(reference.trim()).map_err(InvalidUrl::Malformed)?;
        Self::parse(joined.as_str())
    }

    /// The URL itself, for the code that connects to it or stores it.
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// The URL's text, secrets included, for the code that connects to it or stores it.
    pub fn expose(&self) -> &str {
        self.0.as_str()
    }

    /// The scheme, lower-case.
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// `scheme://host:port` with the default port written out; two URLs share credentials only if these are equal.
    pub fn origin(&self) -> String {
        let host = self.0.host_str().unwrap_or("");
        format!("{}://{host}:{}", self.0.scheme(), self.port())
    }

    /// The port, the scheme's default one if the URL has none; 0 if neither is known.
    pub fn port(&self) -> u16 {
        let usual = || default_port(self.0.scheme());
        self.0.port().or_else(usual).unwrap_or(0)
    }

    /// The host without the brackets of an IPv6 address, as it is connected to; empty if there is none.
    pub fn host(&self) -> &str {
        let host = self.0.host_str().unwrap_or("");
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The user name and password in the URL, percent-decoded, if it has a user name.
    pub fn credentials(&self) -> Option<Credentials> {
        let decode = |text: &str| {
            percent_encoding::percent_decode_str(text)
                .decode_utf8_lossy()
                .into_owned()
        };
        (!self.0.username().is_empty()).then(|| Credentials {
            user: decode(self.0.username()),
            password: Secret::new(decode(self.0.password().unwrap_or(""))),
        })
    }

    /// The URL as it is shown where its user and query matter: with `***` in place of a password. [`SafeUrl::is_shown_as`]
    /// recognises it when it comes back.
    pub fn shown(&self) -> String {
        if self.0.password().is_none() {
            return self.0.as_str().to_owned();
        }
        let mut url = self.0.clone();
        let _has_a_login = url.set_password(Some(MASK));
        url.into()
    }

    /// Whether `other` is this URL as it was shown, now or by a version that left out the login.
    pub fn is_shown_as(&self, other: &Self) -> bool {
        other.expose() == self.shown() || *other == self.without_login()
    }

    /// The same URL without user name and password.
    #[must_use]
    pub fn without_login(&self) -> Self {
        let mut url = self.0.clone();
        // A URL that cannot have a login needs no removal.
        let _none_to_remove = url.set_username("").and_then(|()| url.set_password(None));
        Self(url)
    }
}

/// The port of a scheme's URLs without one.
pub fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "ftp" | "ftpes" => Some(21),
        "ftps" => Some(990),
        "sftp" => Some(22),
        _ => None,
    }
}

/// Gives a URL whose scheme the URL standard does not know the form that those of known schemes have: a host in lower case
/// or a valid address, no default port, a path.
fn normalise(url: &mut Url) -> Result<(), InvalidUrl> {
    let host = url.host_str().unwrap_or("");
    let known = Url::parse(&format!("ftp://{host}/")).map_err(InvalidUrl::Malformed)?;
    url.set_host(known.host_str()).map_err(InvalidUrl::Malformed)?;
    if url.port() == default_port(url.scheme()) {
        let _has_host = url.set_port(None);
    }
    if url.path().is_empty() {
        url.set_path("/");
    }
    Ok(())
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = &self.0;
        if url.cannot_be_a_base() {
            return write!(f, "{}:…", url.scheme());
        }
        write!(f, "{}://{}", url.scheme(), url.host_str().unwrap_or(""))?;
        if let Some(port) = url.port() {
            write!(f, ":{port}")?;
        }
        f.write_str(url.path())?;
        if url.query().is_some() {
            f.write_str("?…")
        } else {
            Ok(())
        }
    }
}

/// A text that others wrote, such as a message of a program, without the logins, queries and fragments of the URLs in it.
///
/// What follows `://` counts as a URL up to the next white space, quotes and brackets included, because none of these is
/// sure to be its end: rather too much is left out of a text than too little.
pub fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for word in text.split_inclusive(char::is_whitespace) {
        let Some((scheme, rest)) = word.split_once("://") else {
            shown.push_str(word);
            continue;
        };
        let url = rest.trim_end();
        let (start, cut) = match url.find(['?', '#']) {
            Some(at) => (&url[..at], "?…"),
            None => (url, ""),
        };
        shown.push_str(scheme);
        // A path may have a URL in it, for example that of a page in an archive.
        for part in start.split("://") {
            let authority = part.find(['/', '\\']).unwrap_or(part.len());
            let host = part[..authority].rfind('@').map_or(0, |at| at + 1);
            shown.push_str("://");
            shown.push_str(&part[host..]);
        }
        shown.push_str(cut);
        shown.push_str(&rest[url.len()..]);
    }
    shown
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SafeUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_never_shows_user_password_or_query() {
        let url = SafeUrl::parse("https://me:hunter2@host.test:444/a/b.zip?sig=topsecret#frag").unwrap();
        for text in [format!("{url}"), format!("{url:?}")] {
            assert!(text.contains("https://host.test:444/a/b.zip?…"), "{text}");
            assert!(
                !text.contains("hunter2") && !text.contains("topsecret") && !text.contains("me:"),
                "{text}"
            );
        }
        assert_eq!(
            SafeUrl::parse("magnet:?xt=urn:btih:00").unwrap().to_string(),
            "magnet:…"
        );
    }

    #[test]
    fn urls_in_texts_of_others_show_no_login_query_or_fragment() {
        for (text, shown) in [
            ("no URL: a?b#c@d", "no URL: a?b#c@d"),
            (
                "ERROR: [x] https://me:pw@a.test:8/v/1?sig=s: HTTP 403\t(see HTTPS://b.test/p#t=s)\n",
                "ERROR: [x] https://a.test:8/v/1?… HTTP 403\t(see HTTPS://b.test/p?…\n",
            ),
            ("'https://a.test/@name': no", "'https://a.test/@name': no"),
            ("https://a.test?k=\"s\"&'s'", "https://a.test?…"),
            (
                "http://web.test/2/ftp://me:p@w@a.test/?s",
                "http://web.test/2/ftp://a.test/?…",
            ),
            ("://", "://"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }

    #[test]
    fn a_url_can_be_shown_without_its_login() {
        for (url, shown) in [
            ("https://me:pw@a.test/x?y=1", "https://a.test/x?y=1"),
            ("https://:pw@a.test/", "https://a.test/"),
            ("magnet:?xt=urn:btih:00", "magnet:?xt=urn:btih:00"),
        ] {
            assert_eq!(SafeUrl::parse(url).unwrap().without_login().expose(), shown);
        }
    }

    #[test]
    fn a_shown_url_has_its_user_and_not_its_password() {
        for (url, shown) in [
            ("ftp://me:p%40w@a.test/x?y=1", "ftp://me:***@a.test/x?y=1"),
            ("ftps://:pw@a.test/", "ftps://:***@a.test/"),
            ("https://me@a.test/x", "https://me@a.test/x"),
            ("https://a.test/x", "https://a.test/x"),
        ] {
            let url = SafeUrl::parse(url).unwrap();
            assert_eq!(url.shown(), shown);
            assert!(url.is_shown_as(&SafeUrl::parse(shown).unwrap()));
            assert!(url.is_shown_as(&url.without_login()));
        }
        let known = SafeUrl::parse("ftp://me:pw@a.test/x").unwrap();
        for other in [
            "ftp://you:***@a.test/x",
            "ftp://me:***@a.test/y",
            "ftp://me:other@a.test/x",
        ] {
            assert!(!known.is_shown_as(&SafeUrl::parse(other).unwrap()), "{other}");
        }
    }

    #[test]
    fn origin_keeps_scheme_host_and_port_apart() {
        let origin = |text: &str| SafeUrl::parse(text).unwrap().origin();
        assert_eq!(origin("http://a.test/x"), origin("http://A.test:80/y"));
        assert_ne!(origin("http://a.test/"), origin("https://a.test/"));
        assert_ne!(origin("http://a.test/"), origin("http://a.test:8080/"));
    }

    #[test]
    fn schemes_of_files_have_hosts_and_ports_like_those_of_the_web() {
        for (text, expect) in [
            ("ftps://HOST.test:990", "ftps://host.test/"),
            ("ftps://host.test:21/x", "ftps://host.test:21/x"),
            ("ftpes://me:pw@Bücher.test:21/x/", "ftpes://me:pw@xn--bcher-kva.test/x/"),
            ("sftp://[::1]:22/x", "sftp://[::1]/x"),
        ] {
            assert_eq!(SafeUrl::parse(text).unwrap().expose(), expect);
        }
        for bad in ["ftps://", "ftpes:///x", "sftp://a b/", "ftps://1.2.3.400/"] {
            assert!(SafeUrl::parse(bad).is_err(), "{bad}");
        }
        let port = |text: &str| SafeUrl::parse(text).unwrap().port();
        assert_eq!(
            (port("ftps://h/"), port("ftpes://h/"), port("ftp://h:5/")),
            (990, 21, 5)
        );
    }

    #[test]
    fn unusable_texts_are_refused_without_being_repeated() {
        let error = SafeUrl::parse("not a url secret").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        assert!(matches!(
            SafeUrl::parse(&"x".repeat(MAX_URL_BYTES + 1)),
            Err(InvalidUrl::TooLong(_))
        ));
        assert!(SafeUrl::parse("http://").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_shows_the_secrets_of_its_urls(
            before in "[a-c '\"(]{0,5}", host in "[a-c.]{1,5}", query in "[?#][a-c:/?#@'\")&=]{0,9}", after in "( [a-c]{0,5})?",
        ) {
            let text = format!("{before}https://LOGIN:LOGIN@{host}/path{query}SECRET{query}{after}");
            let shown = masked(&text);
            proptest::prop_assert!(!shown.contains("LOGIN") && !shown.contains("SECRET"), "{}", shown);
            proptest::prop_assert!(shown.contains(&format!("https://{host}/path?…{after}")), "{}", shown);
        }

        #[test]
        fn what_is_accepted_is_accepted_as_it_is_stored(text in "(http|https|ftp|magnet|x)://?[a-zé@:\\[\\]0-9%.]{0,12}/?\\PC{0,20}") {
            if let Ok(url) = SafeUrl::parse(&text) {
                proptest::prop_assert_eq!(SafeUrl::parse(url.expose()), Ok(url.clone()));
                proptest::prop_assert_eq!(SafeUrl::stored(url.expose()), Ok(url));
            }
        }
    }
}
