//! Secrets of requests and responses in tests. As in the real host, what a plugin reads has names in their places; unlike
//! there, so has what it sends, because that is what recordings have.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use svc_plugin_text as search;

use crate::world::{Encoding, Hash, Page, with_host};

/// The lengths of captured values that the real host takes.
const VALUE_BYTES: RangeInclusive<usize> = 4..=4096;

/// Where a response has a secret.
#[derive(Debug, Clone)]
pub(super) enum Capture {
    /// At a pointer of its JSON.
    Json(String),
    /// In a header field.
    Header(String),
    /// In a cookie that it sets.
    Cookie(String),
    /// In the element that a selector selects.
    Form(String),
}

/// A value of a response, and how it is written there.
struct Found {
    value: String,
    written: String,
}

/// The template with names in the places of its secrets: `Bearer ‹secret:token›`.
pub(super) fn shown(template: &str) -> String {
    let shown = replace_names(template, |name| Ok(placeholder(name)));
    shown.unwrap_or_default()
}

/// The template with the secrets of an account.
pub(super) fn filled(account: &str, template: &str) -> Result<String, String> {
    replace_names(template, |name| {
        let value = with_host(|host| host.secret(account, name).map(str::to_owned));
        value.ok_or_else(|| format!("there is no secret {name}"))
    })
}

fn placeholder(name: &str) -> String {
    format!("‹secret:{name}›")
}

/// Braces around anything but a name are literal.
fn replace_names(template: &str, find: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let is_name = |text: &str| {
        let mut chars = text.chars();
        !text.is_empty() && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    let (mut replaced, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        replaced.push_str(before);
        if let Some((name, behind)) = after.split_once('}').filter(|(name, _)| is_name(name)) {
            replaced.push_str(&find(name)?);
            rest = behind;
        } else {
            replaced.push('{');
            rest = after;
        }
    }
    Ok(replaced + rest)
}

/// Sets the string at a pointer; missing objects on the way there are added.
pub(super) fn set_json(root: &mut Value, pointer: &str, text: String) -> Result<(), String> {
    let keys = pointer
        .strip_prefix('/')
        .ok_or_else(|| format!("{pointer} is no pointer"))?;
    let mut at = root;
    for key in keys.split('/') {
        let key = key.replace("~1", "/").replace("~0", "~");
        let next = match at {
            Value::Object(members) => Some(members.entry(key).or_insert_with(|| Map::new().into())),
            Value::Array(elements) => key.parse::<usize>().ok().and_then(|index| elements.get_mut(index)),
            _ => None,
        };
        at = next.ok_or_else(|| format!("the body has no place for {pointer}"))?;
    }
    *at = text.into();
    Ok(())
}

/// Keeps what is to be captured of a page as secrets of an account, and puts their names in its place. `cookies` are the
/// `Set-Cookie` fields of all pages on the way.
pub(super) fn capture(
    account: &str,
    captures: &[(Capture, String)],
    page: &mut Page,
    cookies: &[String],
) -> Result<(), String> {
    for (capture, name) in captures {
        let found = find(capture, page, cookies)?;
        let Some(found) = found.filter(|found| !found.value.is_empty()) else {
            continue;
        };
        let length = found.value.len();
        if !VALUE_BYTES.contains(&length) {
            return Err(format!("a secret has 4 to 4096 bytes; {name} has {length}"));
        }
        scrub(page, name, &found);
        with_host(|host| host.keep_secret(account, name, &found.value));
    }
    Ok(())
}

fn find(capture: &Capture, page: &Page, cookies: &[String]) -> Result<Option<Found>, String> {
    let plain = |value: &str| Found {
        value: value.to_owned(),
        written: value.to_owned(),
    };
    let text = || String::from_utf8_lossy(&page.body).into_owned();
    Ok(match capture {
        Capture::Json(pointer) => json(&text(), pointer),
        Capture::Header(field) => page.field(field).map(plain),
        Capture::Cookie(name) => cookies.iter().rev().find_map(|cookie| {
            let (pair, _) = cookie.split_once(';').unwrap_or((cookie.as_str(), ""));
            let (found, value) = pair.split_once('=')?;
            (found.trim() == name).then(|| plain(value.trim()))
        }),
        Capture::Form(css) => {
            let found = search::select(&text(), css, &mut search::Work::default());
            let found = found.map_err(|error| error.to_string())?.into_iter().next();
            found.and_then(|node| form_value(&node)).map(|value| plain(&value))
        }
    })
}

/// Only texts and numbers are secrets.
fn json(text: &str, pointer: &str) -> Option<Found> {
    let written = search::json_at(text, pointer).ok().flatten()?.trim().to_owned();
    let value = match serde_json::from_str(&written).ok()? {
        Value::String(value) => value,
        Value::Number(_) => written.clone(),
        _ => return None,
    };
    Some(Found { value, written })
}

fn form_value(node: &search::Node) -> Option<String> {
    let attribute = |name: &str| {
        let found = node.attrs.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.clone())
    };
    match node.tag.as_str() {
        "textarea" => Some(node.text.clone()),
        "meta" => attribute("content"),
        _ => attribute("value"),
    }
}

fn scrub(page: &mut Page, name: &str, found: &Found) {
    let name = placeholder(name);
    if let Ok(text) = std::str::from_utf8(&page.body) {
        let quoted = format!("\"{name}\"");
        let text = text.replace(
            &found.written,
            if found.written == found.value { &name } else { &quoted },
        );
        page.body = text.replace(&found.value, &name).into_bytes();
    }
    for (_, value) in &mut page.headers {
        *value = value.replace(&found.value, &name);
    }
}

/// HMAC (RFC 2104).
pub(super) fn hmac(hash: Hash, key: &[u8], data: &[u8]) -> Result<Vec<u8>, String> {
    let block_bytes = if hash == Hash::Sha512 { 128 } else { 64 };
    let mut block = if key.len() > block_bytes {
        digest(hash, key)?
    } else {
        key.to_vec()
    };
    block.resize(block_bytes, 0);
    let masked = |mask: u8| block.iter().map(move |byte| byte ^ mask);
    let inner: Vec<u8> = masked(0x36).chain(data.iter().copied()).collect();
    let outer: Vec<u8> = masked(0x5c).chain(digest(hash, &inner)?).collect();
    digest(hash, &outer)
}

pub(super) fn digest(hash: Hash, data: &[u8]) -> Result<Vec<u8>, String> {
    let algorithm = match hash {
        Hash::Md5 => "md5",
        Hash::Sha1 => "sha1",
        Hash::Sha256 => "sha256",
        Hash::Sha512 => "sha512",
    };
    search::digest(algorithm, data).map_err(|error| error.to_string())
}

pub(super) fn encode(encoding: Encoding, bytes: &[u8]) -> String {
    match encoding {
        Encoding::Hex => data_encoding::HEXLOWER.encode(bytes),
        Encoding::Base64 => data_encoding::BASE64.encode(bytes),
        Encoding::Base64url => data_encoding::BASE64URL_NOPAD.encode(bytes),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_stand_in_the_places_of_secrets() {
        assert_eq!(shown("Bearer {access}"), "Bearer ‹secret:access›");
        assert_eq!(shown("{a b} {} {x"), "{a b} {} {x");
    }

    #[test]
    fn a_pointer_leads_to_its_place() {
        let set = |mut root: Value, pointer| set_json(&mut root, pointer, "x".to_owned()).map(|()| root);
        assert_eq!(set(json!({}), "/a/b~1c"), Ok(json!({"a": {"b/c": "x"}})));
        assert_eq!(set(json!({"a": [1, 2]}), "/a/1"), Ok(json!({"a": [1, "x"]})));
        for (root, pointer) in [(json!({}), "a"), (json!({"a": [1]}), "/a/1"), (json!({"a": 1}), "/a/b")] {
            assert!(set(root, pointer).is_err(), "{pointer}");
        }
    }
}
