//! What is to be moved: a file, everywhere it can be had from, and how to ask for it.

use std::{fmt, sync::Arc};

use crate::{checksum::Checksum, range_set::ByteRange, safe_url::SafeUrl};

/// A secret that prints as `***` and is only read where it is used.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for the place that sends or seals it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A user name and password for HTTP Basic or a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user name.
    pub user: String,
    /// The password.
    pub password: Secret,
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

/// How to ask for the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// The method; `None` is GET. Anything but GET moves as one stream and is not resumed.
    pub method: Option<String>,
    /// The body, for methods that have one.
    pub body: Option<RequestBody>,
    /// Extra headers in order. Names and values are valid; framing headers are dropped by the transport.
    pub headers: Vec<(String, Secret)>,
    /// A `Cookie` value (`a=b; c=d`), sent to the first URL's origin only.
    pub cookies: Secret,
    /// The `Referer`.
    pub referrer: String,
    /// The `User-Agent`; empty is the product's own.
    pub user_agent: String,
    /// HTTP Basic for the first URL's origin; wins over an `Authorization` header.
    pub credentials: Option<Credentials>,
}

/// Who gave a source's URLs. What somebody else gave must not open the user's own network to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GivenBy {
    /// The user: they may lead anywhere.
    #[default]
    User,
    /// A page, a feed, a plugin, another device: they may lead to public addresses, and to the host that the user gave
    /// on the way to them.
    Other {
        /// That host, if there was one.
        user_host: Option<Box<str>>,
    },
}

impl GivenBy {
    /// Whether the user gave `host`, directly or on the way.
    pub fn vouches_for(&self, host: &str) -> bool {
        match self {
            Self::User => true,
            Self::Other { user_host } => user_host.as_deref() == Some(host),
        }
    }
}

/// A file to move: its URLs, how to ask, and what is known of it beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The first URL is the file's own; the others are mirrors of the same bytes. Never empty.
    pub urls: Vec<SafeUrl>,
    /// Who gave them.
    pub given_by: GivenBy,
    /// How to ask.
    pub request: RequestOptions,
    /// `http://`, `https://` or `socks5://` proxy, with its credentials in the URL's user part.
    pub proxy: Option<SafeUrl>,
    /// Accept any certificate.
    pub ignore_tls_errors: bool,
    /// What the finished bytes must hash to.
    pub checksum: Option<Checksum>,
    /// The size in bytes somebody promised. A hint until the server agrees; a disagreement is a failure.
    pub promised_size: Option<u64>,
    /// The media type somebody promised (`video/mp4`).
    pub promised_type: Option<String>,
    /// What the file is joined from, in order. If there is anything, the first URL is not fetched: it says whose the
    /// segments are, and what is secret of the request goes to its origin only.
    pub segments: Arc<[Segment]>,
}

/// One of the resources, or parts of resources, that a file is joined from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where it is.
    pub url: SafeUrl,
    /// Which bytes of what is there; `None` is all of it.
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

/// Where the key of encrypted segments is. Prints without the key.
#[derive(Clone, PartialEq, Eq)]
pub enum SegmentKey {
    /// It is what this URL leads to.
    At(SafeUrl),
    /// Here.
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
    /// A source with one URL and nothing else known.
    pub fn new(url: SafeUrl) -> Self {
        Self {
            urls: vec![url],
            given_by: GivenBy::User,
            request: RequestOptions::default(),
            proxy: None,
            ignore_tls_errors: false,
            checksum: None,
            promised_size: None,
            promised_type: None,
            segments: Arc::default(),
        }
    }
}
