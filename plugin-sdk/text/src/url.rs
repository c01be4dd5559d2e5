//! URLs taken apart and put together, by the rules that browsers follow.

use percent_encoding::percent_decode_str;
use url::{Url, form_urlencoded};

use crate::limit::{TextError, check_pattern};

/// The longest URL or reference.
const MAX_URL_BYTES: usize = 32 * 1024;

/// A URL taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UrlParts {
    /// Lower-case.
    pub scheme: String,
    /// Lower-case; empty if there is none.
    pub host: String,
    /// Unless it is the usual one of the scheme.
    pub port: Option<u16>,
    /// The segments of the path, percent-decoded; the last is empty if the path ends with a slash.
    pub path: Vec<String>,
    /// Names and values, decoded.
    pub query: Vec<(String, String)>,
    /// What follows the number sign.
    pub fragment: Option<String>,
}

/// Takes `url` apart.
pub fn parse_url(url: &str) -> Result<UrlParts, TextError> {
    let url = parse(url)?;
    let decoded = |segment| percent_decode_str(segment).decode_utf8_lossy().into_owned();
    Ok(UrlParts {
        scheme: url.scheme().to_owned(),
        host: url.host_str().unwrap_or("").to_owned(),
        port: url.port(),
        path: url.path_segments().into_iter().flatten().map(decoded).collect(),
        query: url.query_pairs().into_owned().collect(),
        fragment: url.fragment().map(str::to_owned),
    })
}

/// What `reference` means in the document at `base`.
pub fn join_url(base: &str, reference: &str) -> Result<String, TextError> {
    check_pattern(reference, MAX_URL_BYTES)?;
    let joined = parse(base)?
        .join(reference)
        .map_err(|error| TextError::invalid("reference", error))?;
    Ok(joined.into())
}

/// `url` with these parameters added.
pub fn with_query(url: &str, parameters: &[(String, String)]) -> Result<String, TextError> {
    let mut url = parse(url)?;
    if !parameters.is_empty() {
        url.query_pairs_mut().extend_pairs(parameters);
    }
    Ok(url.into())
}

/// The fields as the body of a form.
pub fn form(fields: &[(String, String)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}

fn parse(url: &str) -> Result<Url, TextError> {
    check_pattern(url, MAX_URL_BYTES)?;
    Url::parse(url).map_err(|error| TextError::invalid("URL", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_decoded() {
        let parts = parse_url("HTTPS://Example.org:8443/a%20b/c%2Fd/?q=x+y&z=%26#f").unwrap();
        assert_eq!(
            parts,
            UrlParts {
                scheme: "https".into(),
                host: "example.org".into(),
                port: Some(8443),
                path: vec!["a b".into(), "c/d".into(), String::new()],
                query: vec![("q".into(), "x y".into()), ("z".into(), "&".into())],
                fragment: Some("f".into()),
            }
        );
        assert!(parse_url("no URL").is_err());
    }

    #[test]
    fn references_mean_what_they_mean_in_browsers() {
        let join = |reference| join_url("https://example.org/a/b/?q#f", reference).unwrap();
        assert_eq!(join("c d"), "https://example.org/a/b/c%20d");
        assert_eq!(join("../x"), "https://example.org/a/x");
        assert_eq!(join("/x"), "https://example.org/x");
        assert_eq!(join("//other.net/"), "https://other.net/");
        assert_eq!(join("?y"), "https://example.org/a/b/?y");
    }
}
