//! Cookies as browser extensions export them, for a login.

use std::time::{SystemTime, UNIX_EPOCH};

use transfer::{Cookie, CookieJar};
use url::Url;

/// The cookies of an export that have not expired, each with a URL that it is for, as a `Set-Cookie` field.
pub(super) fn read(text: &str) -> Result<Vec<(Url, String)>, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let jar = CookieJar::parse(text, now.as_secs()).map_err(|error| error.to_string())?;
    Ok(jar
        .iter()
        .filter_map(|cookie| set_cookie(cookie, now.as_secs()))
        .collect())
}

/// `None` for a domain that no URL can have.
fn set_cookie(cookie: &Cookie, now: u64) -> Option<(Url, String)> {
    let scheme = if cookie.is_secure { "https" } else { "http" };
    let url = Url::parse(&format!("{scheme}://{}{}", cookie.domain, cookie.path)).ok()?;
    let mut field = format!("{}={}; Path={}", cookie.name, cookie.value.expose(), cookie.path);
    if cookie.includes_subdomains {
        field.push_str("; Domain=");
        field.push_str(&cookie.domain);
    }
    if cookie.is_secure {
        field.push_str("; Secure");
    }
    if let Some(expires) = cookie.expires {
        field.push_str("; Max-Age=");
        field.push_str(&expires.saturating_sub(now).to_string());
    }
    Some((url, field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cookie_of_an_export_becomes_a_field_for_its_site() {
        let export = "# Netscape HTTP Cookie File\n\
                      .example.org\tTRUE\t/account\tTRUE\t0\tsid\tabc\n\
                      files.example.org\tFALSE\t/\tFALSE\t0\tpace\t1\n\
                      .example.org\tTRUE\t/\tTRUE\t1000\told\tgone\n";
        let cookies: Vec<_> = read(export)
            .unwrap()
            .into_iter()
            .map(|(url, field)| (url.to_string(), field))
            .collect();
        let expected = [
            (
                "https://example.org/account",
                "sid=abc; Path=/account; Domain=example.org; Secure",
            ),
            ("http://files.example.org/", "pace=1; Path=/"),
        ];
        assert_eq!(cookies, expected.map(|(url, field)| (url.to_owned(), field.to_owned())));
        assert!(read("no cookies\n").is_err());
    }
}
