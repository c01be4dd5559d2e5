//! Removes secrets from texts: from what a plugin reads, and from recordings of its calls.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use data_encoding::{BASE64, BASE64URL_NOPAD};
use serde_json::Value;
use url::{Url, form_urlencoded};

/// Replaces secrets by their names in the recording of a call. Secrets are learnt while the call runs, and exchanges are
/// redacted afterwards, so that a token is also removed from the response that first contained it. Clones share what
/// they have learnt.
#[derive(Clone, Default)]
pub struct Redactor(Arc<Mutex<Vec<Secret>>>);

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
pub fn placeholder(name: &str) -> String {
    format!("‹secret:{name}›")
}

impl Redactor {
    /// Registers `value` as the secret of this name.
    pub fn learn(&self, name: &str, value: &str) {
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
    pub fn text(&self, text: &str) -> String {
        self.scrubber().text(text).into_owned()
    }

    /// Redacts `bytes` of any format.
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.scrubber().bytes(bytes).into_owned()
    }

    /// Redacts every text in `value`.
    pub fn value(&self, value: &mut Value) {
        clean(&self.scrubber(), value);
    }

    fn scrubber(&self) -> Scrubber {
        let known = self.known();
        Scrubber::new(known.iter().map(|secret| (&*secret.name, &*secret.value)))
    }

    fn known(&self) -> MutexGuard<'_, Vec<Secret>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The spellings of a value in URLs, forms, HTML, JSON and credentials.
pub fn spellings(value: &str) -> BTreeSet<String> {
    let form: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let json = Value::from(value).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let mut url = Url::parse("http://host/").expect("it is a URL");
    url.set_query(Some(value));
    let in_query = url.query().unwrap_or_default().to_owned();
    url.set_path(value);
    let in_path = url.path().trim_start_matches('/').to_owned();
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let html = html.replace('"', "&quot;");
    let mut spellings: BTreeSet<_> = [
        html.replace('\'', "&#39;"),
        html,
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

fn clean(scrubber: &Scrubber, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = scrubber.text(text) {
                *text = clean;
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| clean(scrubber, element)),
        Value::Object(fields) => fields.values_mut().for_each(|field| clean(scrubber, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Finds the values of secrets in texts, in every spelling, in one pass over the text however many secrets there are (the
/// automaton of Aho and Corasick).
#[derive(Clone, Default)]
pub struct Scrubber {
    automaton: Option<AhoCorasick>,
    /// The name of the secret that each pattern of the automaton is a spelling of.
    names: Vec<String>,
}

impl fmt::Debug for Scrubber {
    /// Its patterns are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrubber").finish_non_exhaustive()
    }
}

impl Scrubber {
    /// Finds these secrets, each a name and a value. Empty values are ignored.
    pub fn new<'s>(secrets: impl IntoIterator<Item = (&'s str, &'s str)>) -> Self {
        let (mut patterns, mut names) = (Vec::new(), Vec::new());
        for (name, value) in secrets {
            for spelling in spellings(value) {
                patterns.push(spelling);
                names.push(name.to_owned());
            }
        }
        if patterns.is_empty() {
            return Self::default();
        }
        // The smallest automaton: it is built for each call, and its texts are short.
        let kind = Some(AhoCorasickKind::NoncontiguousNFA);
        let automaton = AhoCorasick::builder().kind(kind).build(patterns);
        Self {
            automaton: Some(automaton.expect("its size is bounded by the number and length of secrets")),
            names,
        }
    }

    /// The name of a secret that `text` contains.
    pub fn find(&self, text: &[u8]) -> Option<&str> {
        let found = self.automaton.as_ref()?.find(text)?;
        self.names.get(found.pattern().as_usize()).map(String::as_str)
    }

    /// Replaces secrets by their names. Where spellings overlap, all of them goes: replacing one would leave the rest of
    /// the other.
    pub fn bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        let found = self.automaton.iter();
        let mut found: Vec<_> = found
            .flat_map(|automaton| automaton.find_overlapping_iter(bytes))
            .map(|found| (found.start(), found.end(), found.pattern().as_usize()))
            .collect();
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        // The longest first of those that begin together: it gives the name.
        found.sort_unstable_by_key(|&(start, end, _)| (start, std::cmp::Reverse(end)));
        let (mut clean, mut done) = (Vec::with_capacity(bytes.len()), 0);
        for (start, end, pattern) in found {
            if start >= done {
                clean.extend_from_slice(&bytes[done..start]);
                clean.extend_from_slice(placeholder(&self.names[pattern]).as_bytes());
            }
            done = done.max(end);
        }
        clean.extend_from_slice(&bytes[done..]);
        Cow::Owned(clean)
    }

    /// As [`Scrubber::bytes`], of a text.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(String::from_utf8_lossy(&clean).into_owned()),
        }
    }
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

    #[test]
    fn of_secrets_that_overlap_nothing_remains() {
        let scrubber = Scrubber::new([("first", "abcdef"), ("second", "defghi"), ("none", "")]);
        assert_eq!(
            scrubber.text("1 abcdefghi 2 defghi"),
            "1 ‹secret:first› 2 ‹secret:second›"
        );
        assert_eq!(scrubber.find(b"x=abcdef"), Some("first"));
        assert!(matches!(scrubber.text("abcde fghi"), Cow::Borrowed(_)));
        assert!(matches!(Scrubber::default().text("abcdef"), Cow::Borrowed(_)));
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
