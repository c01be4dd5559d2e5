//! Parser for cookie files in the Netscape format, as exported by browsers and curl.

use std::collections::HashMap;

use transfer::SafeUrl;

/// The cookies of a file, by domain.
#[derive(Debug, Default)]
pub struct CookieJar {
    by_domain: HashMap<String, Vec<Cookie>>,
}

#[derive(Debug)]
struct Cookie {
    /// Whether subdomains match, too.
    includes_subdomains: bool,
    path: String,
    is_secure: bool,
    name: String,
    value: String,
}

/// The prefix of a cookie with `HttpOnly`; other parsers take the line for a comment.
const HTTP_ONLY: &str = "#HttpOnly_";

impl CookieJar {
    /// Parses a cookie file and drops cookies that expired before `now` (Unix seconds). An invalid line is an error, so
    /// that a file of another kind is not taken for an empty one.
    pub fn parse(text: &str, now: u64) -> Result<Self, String> {
        let mut jar = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.strip_prefix(HTTP_ONLY).unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let refuse = |problem: &str| format!("line {}: {problem}", index + 1);
            let fields: Vec<_> = line.split('\t').collect();
            let [domain, subdomains, path, secure, expiry, name, value] = fields[..] else {
                return Err(refuse(
                    "a cookie has seven fields with TABs between them (Netscape format)",
                ));
            };
            let expiry: f64 = expiry
                .trim()
                .parse()
                .map_err(|_| refuse("the fifth field is the expiry in seconds"))?;
            if [name, value]
                .iter()
                .any(|text| text.contains(|c: char| c.is_control() || c == ';'))
            {
                return Err(refuse("the cookie has a character that no cookie may have"));
            }
            if expiry > 0.0 && expiry < precise(now) {
                continue;
            }
            let domain = domain.trim();
            let cookie = Cookie {
                includes_subdomains: is_true(subdomains) || domain.starts_with('.'),
                path: path.to_owned(),
                is_secure: is_true(secure),
                name: name.to_owned(),
                value: value.to_owned(),
            };
            jar.by_domain
                .entry(domain.trim_start_matches('.').to_ascii_lowercase())
                .or_default()
                .push(cookie);
        }
        Ok(jar)
    }

    /// The `Cookie` header for `url`, longest paths first (RFC 6265 §5.4); empty if no cookie matches.
    pub fn for_url(&self, url: &SafeUrl) -> String {
        let host = url.as_url().host_str().unwrap_or("").to_ascii_lowercase();
        let mut found: Vec<&Cookie> = Vec::new();
        let mut domain = Some(host.as_str());
        while let Some(name) = domain {
            let cookies = self.by_domain.get(name).into_iter().flatten();
            found.extend(cookies.filter(|cookie| (name == host || cookie.includes_subdomains) && cookie.fits(url)));
            domain = name.split_once('.').map(|(_, parent)| parent);
        }
        found.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<_> = found
            .iter()
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        pairs.join("; ")
    }
}

impl Cookie {
    fn fits(&self, url: &SafeUrl) -> bool {
        let path = url.as_url().path();
        let is_below = path.strip_prefix(self.path.as_str()).is_some_and(|rest| {
            rest.is_empty() || self.path.is_empty() || self.path.ends_with('/') || rest.starts_with('/')
        });
        is_below && (!self.is_secure || url.scheme() == "https")
    }
}

fn is_true(field: &str) -> bool {
    field.trim().eq_ignore_ascii_case("true")
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^52")]
fn precise(seconds: u64) -> f64 {
    seconds as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Netscape HTTP Cookie File\n\
        files.test\tFALSE\t/\tFALSE\t0\tsession\ts1\n\
        .files.test\tTRUE\t/deep\tTRUE\t2000000000\tdeep\td1\n\
        #HttpOnly_.files.test\tTRUE\t/\tFALSE\t2000000000.5\thttp\th1\n\
        .files.test\tTRUE\t/\tFALSE\t1000\texpired\tx\n\
        other.test\tFALSE\t/\tFALSE\t0\tother\to1\n";

    #[test]
    fn a_cookie_goes_only_where_it_belongs() {
        let jar = CookieJar::parse(FILE, 1_700_000_000).unwrap();
        for (url, expected) in [
            ("http://files.test/a", "session=s1; http=h1"),
            ("https://files.test/deep/a", "deep=d1; session=s1; http=h1"),
            ("http://files.test/deep/a", "session=s1; http=h1"),
            ("https://files.test/deeper", "session=s1; http=h1"),
            ("https://sub.files.test/", "http=h1"),
            ("https://evilfiles.test/", ""),
            ("http://test/", ""),
        ] {
            assert_eq!(jar.for_url(&SafeUrl::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn a_file_of_another_kind_is_refused_with_its_line() {
        for (text, problem) in [
            ("# ok\n{\"cookies\": []}\n", "line 2: a cookie has seven fields"),
            ("a.test\tTRUE\t/\tTRUE\tnever\tn\tv", "expiry"),
            ("a.test\tTRUE\t/\tTRUE\t0\tn\tv; x=y", "no cookie may have"),
        ] {
            let message = CookieJar::parse(text, 0).unwrap_err();
            assert!(message.contains(problem), "{message}");
        }
    }
}
