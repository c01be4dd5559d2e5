//! Links with which users add a source: its URL and one of its root keys.

use std::{fmt, str::FromStr};

use url::{Url, form_urlencoded};

use crate::PublicKey;

/// The longest link in bytes.
const MAX_LINK_BYTES: usize = 2048;

/// A link to a source: `svc://market?url=…&key=…`. An attacker can make a link with another key, so users compare the
/// key's fingerprint with the one that the maintainer publishes elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The URL of the source: http or https, without login, query and fragment, and with a `/` at its end.
    pub url: Url,
    /// One of its root keys.
    pub key: PublicKey,
}

/// A text that is no link to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLink {
    /// The text does not have the form of a link.
    #[error("a link to a source is svc://market?url=…&key=…, with both once and nothing else")]
    Form,
    /// The URL cannot be that of a source.
    #[error("a source is at an http or https URL without login, query and fragment")]
    Url,
    /// The key is invalid.
    #[error(transparent)]
    Key(#[from] crate::InvalidKey),
}

impl Link {
    /// A link to the source at `url`.
    pub fn new(mut url: Url, key: PublicKey) -> Result<Self, InvalidLink> {
        let has_login = !url.username().is_empty() || url.password().is_some();
        let has_more = url.query().is_some() || url.fragment().is_some();
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() || has_login || has_more {
            return Err(InvalidLink::Url);
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Ok(Self { url, key })
    }
}

impl FromStr for Link {
    type Err = InvalidLink;

    fn from_str(text: &str) -> Result<Self, InvalidLink> {
        let query = text.strip_prefix("svc://market?").ok_or(InvalidLink::Form)?;
        if text.len() > MAX_LINK_BYTES {
            return Err(InvalidLink::Form);
        }
        let (mut url, mut key) = (None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match &*name {
                "url" => &mut url,
                "key" => &mut key,
                _ => return Err(InvalidLink::Form),
            };
            if place.replace(value).is_some() {
                return Err(InvalidLink::Form);
            }
        }
        let (url, key) = url.zip(key).ok_or(InvalidLink::Form)?;
        // Keys are often pasted as they are; a plus is then read as a space, which no key has.
        let key = key.replace(' ', "+").parse()?;
        Self::new(url.parse().map_err(|_| InvalidLink::Url)?, key)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("url", self.url.as_str());
        query.append_pair("key", &self.key.to_string());
        write!(f, "svc://market?{}", query.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";

    #[test]
    fn a_link_reads_what_it_prints() {
        let url = "https://plugins.example.org/stable".parse().unwrap();
        let link = Link::new(url, KEY.parse().unwrap()).unwrap();
        assert_eq!(link.url.as_str(), "https://plugins.example.org/stable/");
        assert_eq!(link.to_string().parse(), Ok(link.clone()));
        let plain = format!("svc://market?url=https://plugins.example.org/stable/&key={KEY}");
        assert_eq!(plain.parse(), Ok(link));
        // Some keys have a plus in them.
        let plus = KEY.replace("3mlY", "3+lY");
        let link: Link = format!("svc://market?url=http://a.test&key={plus}").parse().unwrap();
        assert_eq!(link.key.to_string(), plus);
    }

    #[test]
    fn whatever_else_is_no_link() {
        let long = "a".repeat(MAX_LINK_BYTES);
        for (text, error) in [
            (String::new(), InvalidLink::Form),
            (
                format!("https://a.test?url=https://a.test&key={KEY}"),
                InvalidLink::Form,
            ),
            ("svc://market?url=https://a.test".to_owned(), InvalidLink::Form),
            (
                format!("svc://market?url=https://a.test&key={KEY}&key={KEY}"),
                InvalidLink::Form,
            ),
            (
                format!("svc://market?url=https://a.test&key={KEY}&more=1"),
                InvalidLink::Form,
            ),
            (
                format!("svc://market?url=https://{long}.test&key={KEY}"),
                InvalidLink::Form,
            ),
            (format!("svc://market?url=file:///etc&key={KEY}"), InvalidLink::Url),
            (
                format!("svc://market?url=https://me:pw@a.test&key={KEY}"),
                InvalidLink::Url,
            ),
            (
                format!("svc://market?url=https://a.test/%3Fq&key={KEY}"),
                InvalidLink::Url,
            ),
            (format!("svc://market?url=a.test&key={KEY}"), InvalidLink::Url),
            (
                "svc://market?url=https://a.test&key=RW".to_owned(),
                InvalidLink::Key(crate::InvalidKey),
            ),
        ] {
            assert_eq!(text.parse::<Link>(), Err(error), "{text}");
        }
    }
}
