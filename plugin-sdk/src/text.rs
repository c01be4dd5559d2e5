//! Searching and decoding. The host does the work, so a plugin stays small and cannot hang in it.

use crate::{Error, Result, host};

/// An element of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name, lower-case.
    pub tag: String,
    /// All text in it, entities decoded.
    pub text: String,
    /// The markup in it.
    pub html: String,
    /// Its attributes, entities decoded.
    pub attributes: Vec<(String, String)>,
}

impl Node {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        attributes
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }
}

impl From<host::types::Node> for Node {
    fn from(node: host::types::Node) -> Self {
        Self {
            tag: node.tag,
            text: node.text,
            html: node.html,
            attributes: node.attrs,
        }
    }
}

/// All matches of a regular expression, each with its groups; group 0 is the match.
///
/// ```
/// let host = svc_plugin::test::Host::new();
/// let found = host.run(|| svc_plugin::text::captures(r"(\w)=(\d)", "a=1 b=2")).unwrap();
/// assert_eq!(found[1][2].as_deref(), Some("2"));
/// ```
pub fn captures(pattern: &str, input: &str) -> Result<Vec<Vec<Option<String>>>> {
    host::text::regex_find(pattern, input).map_err(Error::Parse)
}

/// The elements of `html` that a CSS selector selects.
///
/// ```
/// let host = svc_plugin::test::Host::new();
/// let items = host.run(|| svc_plugin::text::select("<ul><li>1</li><li>2</li></ul>", "ul > li")).unwrap();
/// assert_eq!(items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>(), ["1", "2"]);
/// ```
pub fn select(html: &str, css: &str) -> Result<Vec<Node>> {
    let nodes = host::text::html_select(html, css).map_err(Error::Parse)?;
    Ok(nodes.into_iter().map(Node::from).collect())
}

/// The bytes that a base64 text stands for, whatever its alphabet.
pub fn base64(text: &str) -> Result<Vec<u8>> {
    host::text::base64_decode(text).map_err(Error::Parse)
}

/// Decrypts AES-CBC; the key's length chooses the variant.
pub fn decrypt_aes_cbc(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    host::text::aes_decrypt_cbc(key, iv, data).map_err(Error::Parse)
}

/// A digest: `md5`, `sha1`, `sha256` or `sha512`.
pub fn digest(algorithm: &str, data: &[u8]) -> Result<Vec<u8>> {
    host::text::digest(algorithm, data).map_err(Error::Internal)
}

/// `text` as one segment of a URL's path, whatever is in it.
///
/// ```
/// assert_eq!(svc_plugin::text::encode_segment("a/b c?.zip"), "a%2Fb%20c%3F.zip");
/// ```
pub fn encode_segment(text: &str) -> String {
    use std::fmt::Write as _;

    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// A path as it stands in a URL: each segment encoded, the slashes left.
///
/// ```
/// assert_eq!(svc_plugin::text::encode_path("disc 1/größe #1.zip"), "disc%201/gr%C3%B6%C3%9Fe%20%231.zip");
/// ```
pub fn encode_path(path: &str) -> String {
    path.split('/').map(encode_segment).collect::<Vec<_>>().join("/")
}

/// A URL, taken apart.
///
/// ```
/// use svc_plugin::text::Url;
///
/// let host = svc_plugin::test::Host::new();
/// let url = host.run(|| Url::parse("https://example.org/s/a%20b?p=1")).unwrap();
/// assert_eq!((url.segment(1), url.query("p")), (Some("a b"), Some("1")));
/// ```
#[derive(Debug, Clone)]
pub struct Url {
    text: String,
    parts: host::text::UrlParts,
}

impl Url {
    /// Takes `text` apart.
    pub fn parse(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        let parts = host::text::parse_url(&text).map_err(Error::InvalidInput)?;
        Ok(Self { text, parts })
    }

    /// What `reference` means in the document here.
    pub fn join(&self, reference: &str) -> Result<Self> {
        Self::parse(host::text::join_url(&self.text, reference).map_err(Error::Parse)?)
    }

    /// The URL as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// `http`, `https`, …
    pub fn scheme(&self) -> &str {
        &self.parts.scheme
    }

    /// The host, lower-case.
    pub fn host(&self) -> &str {
        &self.parts.host
    }

    /// The port, unless it is the usual one.
    pub fn port(&self) -> Option<u16> {
        self.parts.port
    }

    /// The segments of the path, decoded; the last is empty if the path ends with a slash.
    pub fn path(&self) -> &[String] {
        &self.parts.path
    }

    /// A segment of the path that is not empty.
    pub fn segment(&self, index: usize) -> Option<&str> {
        let segment = self.parts.path.get(index)?;
        (!segment.is_empty()).then_some(segment)
    }

    /// A parameter.
    pub fn query(&self, name: &str) -> Option<&str> {
        let mut query = self.parts.query.iter();
        query.find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Whether both have the same scheme, host and port.
    pub fn has_same_origin(&self, other: &Self) -> bool {
        self.scheme() == other.scheme() && self.host() == other.host() && self.port() == other.port()
    }
}

impl AsRef<str> for Url {
    fn as_ref(&self) -> &str {
        &self.text
    }
}
