//! Which redirects are followed. Pure. The allowed addresses are decided by `reach`.

use std::collections::HashSet;

use url::Url;

/// The redirects of one request so far, and their limit.
#[derive(Debug)]
pub struct Redirects {
    most: u32,
    may_lose_tls: bool,
    followed: u32,
    visited: HashSet<String>,
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It repeats an earlier request.
    #[error("it redirects to itself in a loop")]
    Loop,
    /// The limit is reached.
    #[error("it redirects more than {0} times")]
    TooMany(u32),
    /// The target is not a URL.
    #[error("it redirects to something unusable: {0}")]
    Unusable(url::ParseError),
    /// The target has another scheme.
    #[error("the scheme {0} is not allowed in a redirect")]
    Scheme(String),
    /// The target is HTTP after HTTPS.
    #[error("going from https to http would give up its protection")]
    LosesTls,
}

impl Redirects {
    /// Follows at most `most`, and never from HTTPS to HTTP.
    pub fn at_most(most: u32) -> Self {
        Self {
            most,
            may_lose_tls: false,
            followed: 0,
            visited: HashSet::new(),
        }
    }

    /// Allows plain HTTP targets, for callers that check targets against a list of their own.
    #[must_use]
    pub fn with_plain_targets(self) -> Self {
        Self {
            may_lose_tls: true,
            ..self
        }
    }

    /// Whether a status is a redirect if there is a `Location`.
    pub fn is_redirect(status: u16) -> bool {
        matches!(status, 301 | 302 | 303 | 307 | 308)
    }

    /// Records a request for the detection of loops. Equal texts stand for requests with equal responses.
    pub fn visit(&mut self, request: String) -> Result<(), Refusal> {
        self.visited.insert(request).then_some(()).ok_or(Refusal::Loop)
    }

    /// Resolves `location` against `from`, if it may be followed. A fragment is inherited (RFC 9110, section 10.2.2).
    pub fn follow(&mut self, from: &Url, location: &str) -> Result<Url, Refusal> {
        let mut next = from.join(location.trim()).map_err(Refusal::Unusable)?;
        if !matches!(next.scheme(), "http" | "https") {
            return Err(Refusal::Scheme(next.scheme().to_owned()));
        }
        if from.scheme() == "https" && next.scheme() == "http" && !self.may_lose_tls {
            return Err(Refusal::LosesTls);
        }
        if self.followed == self.most {
            return Err(Refusal::TooMany(self.most));
        }
        self.followed += 1;
        if next.fragment().is_none() {
            next.set_fragment(from.fragment());
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(redirects: &mut Redirects, from: &str, location: &str) -> Result<String, Refusal> {
        let next = redirects.follow(&Url::parse(from).unwrap(), location);
        next.map(|url| url.to_string())
    }

    fn next(from: &str, location: &str) -> Result<String, Refusal> {
        follow(&mut Redirects::at_most(1), from, location)
    }

    #[test]
    fn redirects_stay_within_http_and_never_lose_tls() {
        assert_eq!(next("http://a.test/x/y", " ../z?q "), Ok("http://a.test/z?q".into()));
        assert_eq!(next("http://a.test/#f", "//b.test/"), Ok("http://b.test/#f".into()));
        assert_eq!(next("http://a.test/", "https://a.test/"), Ok("https://a.test/".into()));
        assert_eq!(next("https://a.test/", "http://a.test/"), Err(Refusal::LosesTls));
        for location in ["file:///etc/passwd", "ftp://a.test/", "javascript:alert(1)", "data:,x"] {
            assert!(
                matches!(next("https://a.test/", location), Err(Refusal::Scheme(_))),
                "{location}"
            );
        }
        assert!(matches!(next("http://a.test/", "http://[x"), Err(Refusal::Unusable(_))));
        let mut listed = Redirects::at_most(1).with_plain_targets();
        assert!(follow(&mut listed, "https://a.test/", "http://b.test/").is_ok());
    }

    #[test]
    fn there_is_an_end_to_them() {
        let mut redirects = Redirects::at_most(2);
        for hop in ["/1", "/2"] {
            assert!(follow(&mut redirects, "http://a.test/", hop).is_ok());
        }
        assert_eq!(follow(&mut redirects, "http://a.test/", "/3"), Err(Refusal::TooMany(2)));
        assert_eq!(redirects.visit("a".into()), Ok(()));
        assert_eq!(redirects.visit("b".into()), Ok(()));
        assert_eq!(redirects.visit("a".into()), Err(Refusal::Loop));
    }
}
