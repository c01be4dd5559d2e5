//! Removes secrets from recordings. Secrets are learnt while a call runs, and the exchanges are redacted afterwards, so
//! that a token is also removed from the response that first contained it.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use data_encoding::{BASE64, BASE64URL_NOPAD};
use serde_json::Value;
use url::{Url, form_urlencoded};

/// Replaces secrets by their names. Clones share what they have learnt.
#[derive(Clone, Default)]
pub(crate) struct Redactor(Arc<Mutex<Vec<Secret>>>);

#[derive(Clone, PartialEq, Eq)]
struct Secret {
    name: String,
    value: String,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// The replacement of a secret.
pub(crate) fn placeholder(name: &str) -> String {
    format!("‹secret:{name}›")
}

impl Redactor {
    /// Registers `value` as the secret of this name.
    pub(crate) fn learn(&self, name: &str, value: &str) {
        let secret = Secret {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let mut known = self.known();
        if !value.is_empty() && !known.contains(&secret) {
            known.push(secret);
        }
    }

    /// Redacts `text`, in every spelling of a secret.
    pub(crate) fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// Redacts `bytes` of any format.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut forms: Vec<_> = self
            .known()
            .iter()
            .flat_map(|secret| {
                let name = placeholder(&secret.name);
                spellings(&secret.value)
                    .into_iter()
                    .map(move |spelling| (spelling, name.clone()))
            })
            .collect();
        // Longest first: replacing a secret that is part of a longer one would reveal the rest of that.
        forms.sort_by_key(|(spelling, _)| std::cmp::Reverse(spelling.len()));
        forms.iter().fold(bytes.to_owned(), |bytes, (spelling, name)| {
            match replace(&bytes, spelling.as_bytes(), name.as_bytes()) {
                Cow::Owned(cleaned) => cleaned,
                Cow::Borrowed(_) => bytes,
            }
        })
    }

    /// Redacts every text in `value`.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.value(element)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn known(&self) -> MutexGuard<'_, Vec<Secret>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The spellings of a value in URLs, forms, JSON and credentials.
pub fn spellings(value: &str) -> BTreeSet<String> {
    let form: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let json = Value::from(value).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let mut url = Url::parse("http://host/").expect("it is a URL");
    url.set_query(Some(value));
    let in_query = url.query().unwrap_or_default().to_owned();
    url.set_path(value);
    let in_path = url.path().trim_start_matches('/').to_owned();
    let mut spellings: BTreeSet<_> = [
        value.to_owned(),
        form.replace('+', "%20"),
        form,
        in_query,
        in_path,
        json.replace('/', "\\/"),
        json,
        BASE64.encode(value.as_bytes()),
        BASE64URL_NOPAD.encode(value.as_bytes()),
    ]
    .into();
    spellings.remove("");
    spellings
}

/// Replaces every occurrence of `part`, which must not be empty, by `by`.
pub fn replace<'t>(mut text: &'t [u8], part: &[u8], by: &[u8]) -> Cow<'t, [u8]> {
    let whole = text;
    let mut out = Vec::new();
    while let Some(at) = text.windows(part.len()).position(|window| window == part) {
        out.extend_from_slice(&text[..at]);
        out.extend_from_slice(by);
        text = &text[at + part.len()..];
    }
    if text.len() == whole.len() {
        return Cow::Borrowed(whole);
    }
    out.extend_from_slice(text);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn redactor(secrets: &[(&str, &str)]) -> Redactor {
        let redactor = Redactor::default();
        for (name, value) in secrets {
            redactor.learn(name, value);
        }
        redactor
    }

    #[test]
    fn a_secret_is_gone_however_it_is_spelled() {
        let redactor = redactor(&[("token", "a b&\"c"), ("long", "a b&\"cd")]);
        for text in [
            "x a b&\"c y",
            "x a+b%26%22c y",
            "x a%20b&%22c y",
            "x a b&\\\"c y",
            "x a%20b%26%22c y",
            "x YSBiJiJj y",
        ] {
            assert_eq!(redactor.text(text), "x ‹secret:token› y", "{text}");
        }
        assert_eq!(redactor.text("a b&\"cd"), "‹secret:long›");
        let mut value = json!({"a": ["a b&\"c"], "b": 5});
        redactor.value(&mut value);
        assert_eq!(value, json!({"a": ["‹secret:token›"], "b": 5}));
    }

    #[test]
    fn a_secret_is_gone_from_what_is_no_text() {
        let redactor = redactor(&[("token", "p/ss")]);
        let cleaned = redactor.bytes(b"\xff p/ss p\\/ss p%2Fss \xe9");
        let name = "‹secret:token›".as_bytes();
        assert_eq!(cleaned, [b"\xff ", name, b" ", name, b" ", name, b" \xe9"].concat());
    }

    #[test]
    fn what_was_cleaned_is_spelled_alike_when_it_comes_again() {
        let redactor = redactor(&[("token", "‹secret:token›")]);
        let encoded: String = form_urlencoded::byte_serialize("‹secret:token›".as_bytes()).collect();
        assert_eq!(redactor.text(&format!("t={encoded}")), "t=‹secret:token›");
    }

    proptest! {
        #[test]
        fn no_text_keeps_a_secret(secret in "[a-z\"&/ %+ä]{4,12}", before in ".*", after in ".*") {
            let redactor = redactor(&[("name", &secret)]);
            let cleaned = redactor.text(&format!("{before}{secret}{after}"));
            prop_assert!(!cleaned.replace("‹secret:name›", "").contains(&secret));
        }
    }
}
