//! `cookies.txt`, the format of Netscape that curl, wget, yt-dlp and most extensions write: a cookie on each line, in seven
//! fields with TABs between them.

use crate::source::cookies::{CookieJar, InvalidCookies, Problem, RawCookie};

/// The prefix of a cookie with `HttpOnly`; readers that do not know it take the line for a comment.
const HTTP_ONLY: &str = "#HttpOnly_";

pub(super) fn parse(text: &str, now: u64) -> Result<CookieJar, InvalidCookies> {
    let mut jar = CookieJar::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.strip_prefix(HTTP_ONLY).unwrap_or(line);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let added = cookie(line).and_then(|cookie| jar.add(&cookie, now));
        added.map_err(|problem| InvalidCookies::Line {
            line: index + 1,
            problem,
        })?;
    }
    Ok(jar)
}

fn cookie(line: &str) -> Result<RawCookie<'_>, Problem> {
    let fields: Vec<_> = line.split('\t').collect();
    // Where editors remove white space from the ends of lines, an empty value takes the last TAB with it.
    let (domain, subdomains, path, secure, expiry, name, value) = match fields[..] {
        [domain, subdomains, path, secure, expiry, name, value] => {
            (domain, subdomains, path, secure, expiry, name, value)
        }
        [domain, subdomains, path, secure, expiry, name] => (domain, subdomains, path, secure, expiry, name, ""),
        _ => return Err(Problem::Fields),
    };
    if expiry.trim().is_empty() {
        return Err(Problem::Expiry);
    }
    Ok(RawCookie {
        domain,
        includes_subdomains: Some(RawCookie::is_set(subdomains)),
        path,
        is_secure: RawCookie::is_set(secure),
        name,
        value,
        expiry,
    })
}
