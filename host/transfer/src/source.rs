//! The source of a download: a file's URLs, the request, and what is known of the file beforehand.

pub mod checksum;
mod cookies;
mod host_key;
mod netrc;
pub mod pieces;
pub mod proxy;
pub mod safe_url;
mod secret;
mod torrent;
pub mod validator;

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    range_set::ByteRange,
    source::{checksum::Checksum, pieces::PieceHashes, safe_url::SafeUrl},
};

pub use cookies::{Cookie, CookieJar, InvalidCookies, Problem as CookieProblem};
pub use host_key::{HostKeyFingerprint, InvalidFingerprint};
pub use netrc::Netrc;
pub use secret::{Credentials, Secret};
pub use torrent::{Announced, TorrentOptions, announced, parse_torrent_hash, torrent_hash};

/// The most URLs of one file. Mirror lists in the wild have a few dozen.
pub const MAX_URLS: usize = 64;

/// Headers that reveal nothing about the user. Only these may be sent to another origin than the request's own;
/// `Referer` is shortened for it, see [`referrer`].
const HARMLESS_HEADERS: [&str; 8] = [
    "accept",
    "accept-charset",
    "accept-language",
    "cache-control",
    "dnt",
    "pragma",
    "referer",
    "user-agent",
];

/// Whether a header reveals nothing about the user, so that another origin may see it. All others count as secret:
/// tokens are sent under any name (`X-Api-Key`).
pub fn is_harmless_header(name: &str) -> bool {
    HARMLESS_HEADERS
        .iter()
        .any(|harmless| name.eq_ignore_ascii_case(harmless))
}

/// The body of a request that is not a plain GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestBody {
    /// `multipart/form-data` fields, each with its values.
    FormData(Vec<(String, Vec<String>)>),
    /// `application/x-www-form-urlencoded`, already encoded.
    UrlEncoded(String),
    /// Bytes as they are.
    Raw {
        /// The body.
        bytes: Vec<u8>,
        /// Its media type, if it has one.
        content_type: Option<String>,
    },
}

/// The request for the file. Body, cookies, credentials and all headers but the harmless ones are secrets: they belong
/// to the origin of the URL that they were given for, the first of [`Source::urls`], and no other origin receives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// The method; `None` is GET. Anything but GET is downloaded as one stream and not resumed.
    pub method: Option<String>,
    /// The body, for methods that have one.
    pub body: Option<RequestBody>,
    /// Extra headers in order. Names and values are valid; framing headers are dropped by the transport.
    pub headers: Vec<(String, Secret)>,
    /// A `Cookie` value (`a=b; c=d`).
    pub cookies: Secret,
    /// The `Referer`.
    pub referrer: String,
    /// The `User-Agent`; empty is the product's own.
    pub user_agent: String,
    /// Sent as HTTP Basic, and as Digest where the server asks for that; wins over an `Authorization` header.
    pub credentials: Option<Credentials>,
    /// The key that the SSH server of that origin has to have; `None` is one that this machine knows it by.
    pub ssh_host_key: Option<HostKeyFingerprint>,
}

impl RequestOptions {
    /// Removes the secrets of the origin that these options are meant for, so that the rest can be used at another
    /// origin. Returns whether a secret was removed. A method goes with its body; the referrer keeps its origin only.
    pub fn drop_secrets(&mut self) -> bool {
        let given = self.clone();
        self.drop_secrets_of(&given)
    }

    /// [`RequestOptions::drop_secrets`] for the secrets that are in `given`: newer ones stay.
    pub fn drop_secrets_of(&mut self, given: &Self) -> bool {
        let mut has_dropped = false;
        self.headers.retain(|header| {
            let stays = is_harmless_header(&header.0) || !given.headers.contains(header);
            has_dropped |= !stays;
            stays
        });
        if !self.cookies.is_empty() && self.cookies == given.cookies {
            self.cookies = Secret::default();
            has_dropped = true;
        }
        if self.credentials.is_some() && self.credentials == given.credentials {
            self.credentials = None;
            has_dropped = true;
        }
        if self.body.is_some() && self.body == given.body {
            self.body = None;
            self.method = None;
            has_dropped = true;
        }
        if self.referrer == given.referrer {
            self.referrer = origin_of_page(&self.referrer).unwrap_or_default();
        }
        for header in &mut self.headers {
            if header.0.eq_ignore_ascii_case("referer") && given.headers.contains(header) {
                header.1 = Secret::new(origin_of_page(header.1.expose()).unwrap_or_default());
            }
        }
        has_dropped
    }
}

/// The `Referer` of a request to `url` from the page `text`. A login and a fragment in it are never sent (RFC 9110,
/// section 10.1.3). Another origin than the one that the request was made for gets the page's origin, and a request
/// over plain HTTP from an HTTPS page gets none, as in browsers (`strict-origin-when-cross-origin`).
pub fn referrer(text: &str, url: &SafeUrl, is_own_origin: bool) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    if is_own_origin {
        return Some(without_login_and_fragment(text));
    }
    origin_of_page(text).filter(|page| url.scheme() == "https" || !page.starts_with("https:"))
}

/// Removes login and fragment; text that is not a URL is returned unchanged.
pub fn without_login_and_fragment(text: &str) -> String {
    let Ok(page) = SafeUrl::parse(text) else {
        return text.to_owned();
    };
    let parts = page.as_url();
    if parts.username().is_empty() && parts.password().is_none() && parts.fragment().is_none() {
        return text.to_owned();
    }
    let mut bare = page.without_login().as_url().clone();
    bare.set_fragment(None);
    bare.into()
}

fn origin_of_page(text: &str) -> Option<String> {
    let page = SafeUrl::parse(text).ok()?;
    matches!(page.scheme(), "http" | "https").then(|| format!("{}/", page.as_url().origin().ascii_serialization()))
}

/// Who supplied a source's URLs. URLs from anyone but the user must not reach into the user's own network;
/// `egress::reach` decides which addresses are allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GivenBy {
    /// The user: any address is allowed.
    #[default]
    User,
    /// A page, a feed, a plugin or another device: only public addresses are allowed, and the host that the user chose
    /// on the way there.
    Other {
        /// That host, if any.
        user_host: Option<UserHost>,
    },
}

/// A host that the user chose on the way to a URL of another origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserHost {
    /// As URLs spell it: in lower case, an IPv6 address in brackets.
    pub host: Box<str>,
    /// The port; `None` is any.
    pub port: Option<u16>,
    /// The user typed a URL of this host, of which a plugin made others. Otherwise the user confirmed a URL of it that a
    /// page or another program handed over.
    pub is_typed: bool,
}

impl UserHost {
    /// The host of a URL that the user entered. Any port of it is allowed, because lists of mirrors and segments use
    /// several.
    pub fn typed(url: &url::Url) -> Option<Self> {
        Some(Self {
            host: url.host_str()?.into(),
            port: None,
            is_typed: true,
        })
    }

    /// The host of a page, `host` or `host:port`. `None` if `text` is neither.
    pub fn visited(text: &str) -> Option<Self> {
        let text = text.trim();
        let url = url::Url::parse(&format!("http://{text}/")).ok()?;
        let is_authority = url.path() == "/" && !text.contains(['/', '\\', '?', '#', '@']);
        let host = url.host_str().filter(|host| is_authority && !host.is_empty())?;
        // A parsed URL has no default port, even if it was written.
        let is_default = url.port().is_none() && text.ends_with(":80");
        Some(Self {
            host: host.into(),
            port: url.port().or(is_default.then_some(80)),
            is_typed: false,
        })
    }
}

/// A file to download: its URLs, the request, and what is known of it beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The first URL is the file's own; the others are mirrors of the same bytes. Never empty.
    pub urls: Vec<SafeUrl>,
    /// Who supplied the URLs.
    pub given_by: GivenBy,
    /// The request. Its secrets go to the origin of the first URL only.
    pub request: RequestOptions,
    /// The stored logins of the mirrors' own origins, by [`SafeUrl::origin`].
    pub logins: BTreeMap<String, Credentials>,
    /// The stored cookies of the URLs' sites, by [`SafeUrl::origin`] of the URL. A request that began at that URL gets
    /// those that match where it goes (RFC 6265); they are of one site, so a redirect to another one gets none.
    pub site_cookies: BTreeMap<String, Arc<CookieJar>>,
    /// The user's logins by host, for requests without another one. Each goes to its host only, also where a redirect
    /// leads: the user named that host.
    pub netrc: Option<Arc<Netrc>>,
    /// The proxy (see [`proxy::check`]), with its credentials in the URL's user part.
    pub proxy: Option<SafeUrl>,
    /// Accept any certificate.
    pub ignore_tls_errors: bool,
    /// What the finished bytes must hash to.
    pub checksum: Option<Checksum>,
    /// What the pieces of the finished bytes must hash to. A wrong piece is fetched again, from another URL if there is
    /// one.
    pub pieces: Option<Arc<PieceHashes>>,
    /// The expected size in bytes, according to the page or plugin that supplied the URL. A server that disagrees is a
    /// failure.
    pub promised_size: Option<u64>,
    /// The expected media type (`video/mp4`), from the same place.
    pub promised_type: Option<String>,
    /// The segments to join, in order. If there are any, the first URL is not fetched, but still is the origin that the
    /// request's secrets belong to.
    pub segments: Arc<[Segment]>,
    /// How it is downloaded if it is a torrent.
    pub torrent: Option<Arc<TorrentOptions>>,
    /// Whether a torrent file is followed (`Outcome::Became`) instead of saved.
    pub follows_torrents: bool,
}

/// One of the resources, or parts of resources, that a file is joined from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The URL.
    pub url: SafeUrl,
    /// Which bytes of the resource; `None` is all of it.
    pub part: Option<ByteRange>,
    /// How it is encrypted, if it is.
    pub cipher: Option<Cipher>,
}

/// AES-128 in CBC mode with PKCS #7 padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cipher {
    /// The key, which segments share.
    pub key: Arc<SegmentKey>,
    /// The initialisation vector.
    pub iv: [u8; 16],
}

/// The key of encrypted segments, or its URL. Prints without the key.
#[derive(Clone, PartialEq, Eq)]
pub enum SegmentKey {
    /// The URL that has the 16 bytes.
    At(SafeUrl),
    /// The key itself.
    Bytes([u8; 16]),
}

impl fmt::Debug for SegmentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(url) => f.debug_tuple("At").field(url).finish(),
            Self::Bytes(_) => f.write_str("Bytes(***)"),
        }
    }
}

impl Source {
    /// A source with one URL and defaults for everything else.
    pub fn new(url: SafeUrl) -> Self {
        Self {
            urls: vec![url],
            given_by: GivenBy::User,
            request: RequestOptions::default(),
            logins: BTreeMap::new(),
            site_cookies: BTreeMap::new(),
            netrc: None,
            proxy: None,
            ignore_tls_errors: false,
            checksum: None,
            pieces: None,
            promised_size: None,
            promised_type: None,
            segments: Arc::default(),
            torrent: None,
            follows_torrents: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> SafeUrl {
        SafeUrl::parse(text).unwrap()
    }

    #[test]
    fn every_header_that_is_not_known_to_be_harmless_is_a_secret() {
        for name in ["Accept", "user-agent", "REFERER"] {
            assert!(is_harmless_header(name), "{name}");
        }
        for name in [
            "X-Api-Key",
            "Authorization",
            "Cookie",
            "Origin",
            "X-Auth",
            "If-None-Match",
        ] {
            assert!(!is_harmless_header(name), "{name}");
        }
    }

    #[test]
    fn dropping_secrets_leaves_what_any_origin_may_see() {
        let header = |name: &str| (name.to_owned(), Secret::new("https://u:p@page.test/x?token=1"));
        let mut options = RequestOptions {
            ssh_host_key: None,
            method: Some("POST".into()),
            body: Some(RequestBody::UrlEncoded("password=1".into())),
            headers: vec![header("X-Api-Key"), header("Referer")],
            cookies: Secret::new("a=b"),
            referrer: "https://page.test/x?token=1".into(),
            user_agent: "agent".into(),
            credentials: Some(Credentials {
                user: "u".into(),
                password: Secret::new("p"),
            }),
        };
        assert!(options.drop_secrets());
        let rest = RequestOptions {
            headers: vec![("Referer".into(), Secret::new("https://page.test/"))],
            referrer: "https://page.test/".into(),
            user_agent: "agent".into(),
            ..RequestOptions::default()
        };
        assert_eq!(options, rest);
        assert!(!options.drop_secrets(), "there is nothing left to drop");
        let before = RequestOptions {
            cookies: Secret::new("a=b"),
            headers: vec![header("X-Api-Key")],
            ..RequestOptions::default()
        };
        let mut after = RequestOptions {
            cookies: Secret::new("c=d"),
            ..before.clone()
        };
        assert!(after.drop_secrets_of(&before));
        assert_eq!(
            (after.cookies.expose(), after.headers.len()),
            ("c=d", 0),
            "new secrets stay"
        );
    }

    #[test]
    fn a_referrer_never_carries_a_login_and_shows_other_origins_only_its_own() {
        let (own, other, plain) = (url("https://a.test/f"), url("https://b.test/f"), url("http://b.test/f"));
        let page = "https://me:pw@page.test:444/x?token=1#part";
        assert_eq!(referrer(page, &own, true).unwrap(), "https://page.test:444/x?token=1");
        assert_eq!(referrer(page, &other, false).unwrap(), "https://page.test:444/");
        assert_eq!(referrer(page, &plain, false), None);
        assert_eq!(referrer("http://page.test", &own, true).unwrap(), "http://page.test");
        assert_eq!(referrer("no url", &own, true).unwrap(), "no url");
        assert_eq!(referrer("no url", &other, false), None);
        assert_eq!(referrer("", &own, true), None);
    }

    #[test]
    fn the_host_of_a_page_may_have_a_port() {
        let visited = |text: &str| UserHost::visited(text).map(|known| (known.host.to_string(), known.port));
        assert_eq!(visited("NAS.test"), Some(("nas.test".into(), None)));
        assert_eq!(visited("nas.test:8080"), Some(("nas.test".into(), Some(8080))));
        assert_eq!(visited("nas.test:80"), Some(("nas.test".into(), Some(80))));
        assert_eq!(visited("[fd00::1]:81"), Some(("[fd00::1]".into(), Some(81))));
        assert_eq!(visited("[fd00::80]"), Some(("[fd00::80]".into(), None)));
        for nonsense in ["", " ", "a b", "nas.test/path", "nas.test?q", "me@nas.test", ":80"] {
            assert_eq!(visited(nonsense), None, "{nonsense}");
        }
    }
}
