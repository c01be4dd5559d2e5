//! The JSON that browsers' extensions and automation tools export. There is no standard: `EditThisCookie`, Cookie-Editor and
//! those who copied them write the records of Chrome's extension API as a list; J2TEAM, Playwright and Puppeteer put such
//! a list into an object, as `cookies`; Cookie Quick Manager has names of its own.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::source::cookies::{CookieJar, InvalidCookies, Problem, RawCookie};

#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow)]
    cookies: Vec<Entry<'a>>,
}

/// Scalars stay text: one writes `true` and another `"true"`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    value: Option<Cow<'a, str>>,
    #[serde(borrow)]
    domain: Option<Cow<'a, str>>,
    #[serde(borrow)]
    path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    secure: Option<&'a RawValue>,
    #[serde(borrow, rename = "hostOnly")]
    host_only: Option<&'a RawValue>,
    #[serde(borrow)]
    session: Option<&'a RawValue>,
    /// Of Chrome's API.
    #[serde(borrow, rename = "expirationDate")]
    expiration_date: Option<&'a RawValue>,
    /// Of Playwright and Puppeteer.
    #[serde(borrow)]
    expires: Option<&'a RawValue>,
    #[serde(borrow)]
    expiry: Option<&'a RawValue>,
    // Of Cookie Quick Manager.
    #[serde(borrow, rename = "Name raw")]
    raw_name: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "Content raw")]
    raw_value: Option<Cow<'a, str>>,
    /// A URL.
    #[serde(borrow, rename = "Host raw")]
    raw_host: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "Path raw")]
    raw_path: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "Expires raw")]
    raw_expires: Option<&'a RawValue>,
    #[serde(borrow, rename = "Send for raw")]
    raw_secure: Option<&'a RawValue>,
    #[serde(borrow, rename = "This domain only raw")]
    raw_host_only: Option<&'a RawValue>,
}

pub(super) fn parse(text: &str, now: u64) -> Result<CookieJar, InvalidCookies> {
    let read: Result<Vec<Entry<'_>>, _> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)
    } else {
        serde_json::from_str(text).map(|Wrapped { cookies }| cookies)
    };
    // The message of the library may repeat a value.
    let entries = read.map_err(|error| InvalidCookies::Json {
        line: error.line(),
        column: error.column(),
    })?;
    let mut jar = CookieJar::default();
    for (index, entry) in entries.iter().enumerate() {
        let added = cookie(entry).and_then(|cookie| jar.add(&cookie, now));
        added.map_err(|problem| InvalidCookies::Entry {
            number: index + 1,
            problem,
        })?;
    }
    Ok(jar)
}

fn cookie<'e>(entry: &'e Entry<'_>) -> Result<RawCookie<'e>, Problem> {
    let text = |own: &'e Option<Cow<'_, str>>, other: &'e Option<Cow<'_, str>>| own.as_deref().or(other.as_deref());
    let domain = text(&entry.domain, &entry.raw_host).ok_or(Problem::Missing("domain"))?;
    let expiry = [entry.expiration_date, entry.expires, entry.expiry, entry.raw_expires];
    let expiry = expiry.into_iter().flatten().map(scalar).next().unwrap_or("");
    let is_session = entry.session.is_some_and(|session| RawCookie::is_set(scalar(session)));
    let host_only = entry.host_only.or(entry.raw_host_only);
    Ok(RawCookie {
        domain: host(domain),
        includes_subdomains: host_only.map(|host_only| !RawCookie::is_set(scalar(host_only))),
        path: text(&entry.path, &entry.raw_path).unwrap_or("/"),
        is_secure: entry
            .secure
            .or(entry.raw_secure)
            .is_some_and(|secure| RawCookie::is_set(scalar(secure))),
        name: text(&entry.name, &entry.raw_name).ok_or(Problem::Missing("name"))?,
        value: text(&entry.value, &entry.raw_value).ok_or(Problem::Missing("value"))?,
        expiry: if is_session { "" } else { expiry },
    })
}

/// A number, boolean or text, without the quotes of the text.
fn scalar(raw: &RawValue) -> &str {
    raw.get().trim_matches('"')
}

/// The domain of `https://.example.com/`.
fn host(text: &str) -> &str {
    let text = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .unwrap_or(text);
    text.trim_end_matches('/')
}
