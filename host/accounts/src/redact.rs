//! Removes secrets from texts: from what a plugin reads, and from recordings of its calls.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt::{self, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use aho_corasick::{
    Anchored,
    automaton::{Automaton as _, StateID},
    nfa::noncontiguous::NFA,
};
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

/// The spellings of a value in URLs, forms, HTML, JSON and credentials, as common libraries write them.
pub fn spellings(value: &str) -> BTreeSet<String> {
    let form: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
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
        BASE64.encode(value.as_bytes()),
        BASE64URL_NOPAD.encode(value.as_bytes()),
    ]
    .into();
    for unescaped in UNESCAPED {
        let escaped = percent_encoded(value, unescaped);
        spellings.insert(escaped.replace("%20", "+"));
        spellings.insert(escaped);
    }
    for escaped in ESCAPED_IN_JSON {
        for is_ascii in [false, true] {
            let json = json_encoded(value, escaped, is_ascii);
            spellings.insert(json.replace('/', "\\/"));
            spellings.insert(json);
        }
    }
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    for quote in ["\"", "&quot;", "&#34;"] {
        for apostrophe in ["'", "&#39;", "&#x27;", "&apos;"] {
            spellings.insert(html.replace('"', quote).replace('\'', apostrophe));
        }
    }
    spellings.remove("");
    spellings
}

/// What functions that percent-encode leave as it is, besides letters and digits: those after RFC 3986, `quote` of Python,
/// `encodeURIComponent`, and those for a segment of a path.
const UNESCAPED: [&str; 4] = ["-_.~", "-_.~/", "-_.~!*'()", "-_.~!*'()$&+,;=:@"];

/// What functions that write JSON escape by number (`\u0026`) though they need not: none, Go, PHP and Rails, .NET.
const ESCAPED_IN_JSON: [&str; 4] = ["", "<>&", "<>&'", "<>&'\"+"];

fn percent_encoded(value: &str, unescaped: &str) -> String {
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() || unescaped.as_bytes().contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    value.bytes().map(encode).collect()
}

fn json_encoded(value: &str, escaped: &str, is_ascii: bool) -> String {
    let mut json = String::new();
    for c in value.chars() {
        if escaped.contains(c) || is_ascii && !c.is_ascii() {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _never_fails = write!(json, "\\u{unit:04x}");
            }
        } else {
            let quoted = Value::from(c.to_string()).to_string();
            json.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
    json
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

/// The most bytes of the spellings of all secrets that a scrubber searches for. The automaton takes some fifty times as
/// much memory. A token of letters and digits has three spellings, and one with other characters nine or more, so that some
/// sixty tokens of 4 KiB fit in, or twenty-five full of such characters. Above it the scrubber searches for nothing
/// and withholds every text as a whole, because to search for some of the secrets would show the others.
pub const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// The name in place of a text that is withheld.
pub const WITHHELD: &str = "withheld";

/// The most places of a text that are replaced one by one. From there to its end the text is one place: names may be
/// longer than what they replace.
const MAX_PLACES: usize = 64 * 1024;

/// How much of a text is searched in one turn, a millisecond or two.
const TURN_BYTES: usize = 128 * 1024;

/// Finds the values of secrets in texts, in every spelling and in upper and lower case, in one pass over the text however
/// many secrets there are (the automaton of Aho and Corasick).
#[derive(Clone, Default)]
pub struct Scrubber {
    search: Search,
    /// The name of the secret that each pattern of the automaton is a spelling of.
    names: Vec<String>,
}

#[derive(Clone, Default)]
enum Search {
    #[default]
    Nothing,
    Patterns(Box<NFA>),
    /// There are more than [`MAX_PATTERN_BYTES`].
    Everything,
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
        let mut bytes = 0;
        for (name, value) in secrets {
            let folded: BTreeSet<_> = spellings(value)
                .into_iter()
                .map(|spelling| spelling.to_ascii_lowercase())
                .collect();
            for spelling in folded {
                bytes += spelling.len();
                patterns.push(spelling);
                names.push(name.to_owned());
            }
            if bytes > MAX_PATTERN_BYTES {
                return Self {
                    search: Search::Everything,
                    names: vec![WITHHELD.to_owned()],
                };
            }
        }
        if patterns.is_empty() {
            return Self::default();
        }
        // The smallest automaton: it is built for each call, and most texts are short.
        let automaton = NFA::builder().ascii_case_insensitive(true).build(patterns);
        let automaton = automaton.expect("the bytes of its patterns are bounded");
        Self {
            search: Search::Patterns(Box::new(automaton)),
            names,
        }
    }

    /// Whether there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        matches!(self.search, Search::Nothing)
    }

    /// The name of a secret that `text` contains.
    pub fn find(&self, text: &[u8]) -> Option<&str> {
        let mut scan = self.scan(text);
        while scan.found.is_empty() && !scan.turn() {}
        let found = scan.found.first()?;
        self.names.get(found.pattern).map(String::as_str)
    }

    /// Begins a search through `bytes`.
    pub fn scan<'t>(&'t self, bytes: &'t [u8]) -> Scan<'t> {
        Scan {
            scrubber: self,
            bytes,
            at: 0,
            state: None,
            found: Vec::new(),
        }
    }

    /// Replaces secrets by their names. Where spellings overlap, all of them goes: replacing one would leave the rest of
    /// the other.
    pub fn bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        let mut scan = self.scan(bytes);
        while !scan.turn() {}
        let clean = scan.replaced(|name, _| placeholder(name));
        clean.map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    /// As [`Scrubber::bytes`], of a text.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(String::from_utf8_lossy(&clean).into_owned()),
        }
    }
}

/// A search through a text in turns, between which the caller may let others work.
#[derive(Debug)]
pub struct Scan<'t> {
    scrubber: &'t Scrubber,
    bytes: &'t [u8],
    at: usize,
    state: Option<StateID>,
    /// Places in their order, which do not overlap.
    found: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    start: usize,
    end: usize,
    /// The spelling that gives the name: of those that begin first, the longest.
    pattern: usize,
}

impl<'t> Scan<'t> {
    /// Searches some more of the text; returns whether it is at the end.
    pub fn turn(&mut self) -> bool {
        match &self.scrubber.search {
            Search::Nothing => return true,
            Search::Everything if self.bytes.is_empty() => return true,
            Search::Everything => self.withhold_rest(0),
            Search::Patterns(automaton) => self.walk(automaton),
        }
        self.at == self.bytes.len()
    }

    fn walk(&mut self, automaton: &NFA) {
        let start = || automaton.start_state(Anchored::No).expect("it searches anywhere");
        let mut state = self.state.unwrap_or_else(start);
        let turn_ends = self.bytes.len().min(self.at + TURN_BYTES);
        while self.at < turn_ends {
            state = automaton.next_state(Anchored::No, state, self.bytes[self.at]);
            self.at += 1;
            if automaton.is_match(state) {
                // The first is the longest of those that end here; the others are in it.
                let pattern = automaton.match_pattern(state, 0);
                let found = Place {
                    start: self.at - automaton.pattern_len(pattern),
                    end: self.at,
                    pattern: pattern.as_usize(),
                };
                self.add(found);
                if self.found.len() > MAX_PLACES {
                    self.withhold_rest(MAX_PLACES);
                }
            }
        }
        self.state = Some(state);
    }

    /// Adds a place that ends after all others, together with those that it overlaps.
    fn add(&mut self, mut place: Place) {
        while let Some(last) = self.found.pop_if(|last| place.start < last.end) {
            if last.start < place.start {
                (place.start, place.pattern) = (last.start, last.pattern);
            }
        }
        self.found.push(place);
    }

    /// Makes everything after the first `count` places one place.
    fn withhold_rest(&mut self, count: usize) {
        let start = self.found.get(count).map_or(self.at, |place| place.start);
        self.found.truncate(count);
        self.at = self.bytes.len();
        self.found.push(Place {
            start,
            end: self.at,
            pattern: 0,
        });
    }

    /// The text with what `by` returns for each secret that was found: it gets the name and what the text has there. `None`
    /// if there is none.
    pub fn replaced(&self, mut by: impl FnMut(&str, &'t [u8]) -> String) -> Option<Vec<u8>> {
        if self.found.is_empty() {
            return None;
        }
        let (mut clean, mut done) = (Vec::with_capacity(self.bytes.len()), 0);
        for place in &self.found {
            clean.extend_from_slice(&self.bytes[done..place.start]);
            let replacement = by(&self.scrubber.names[place.pattern], &self.bytes[place.start..place.end]);
            clean.extend_from_slice(replacement.as_bytes());
            done = place.end;
        }
        clean.extend_from_slice(&self.bytes[done..]);
        Some(clean)
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

    #[test]
    fn a_secret_is_gone_in_the_spellings_of_other_languages() {
        let scrubber = Scrubber::new([("token", "a+b/c&d'e\"ä~f")]);
        for text in [
            "A+B/C&D'E\"ä~F",
            "a%2bb%2fc%26d%27e%22%c3%a4~f",
            "a%2Bb/c%26d%27e%22%C3%A4~f",
            "a%2Bb%2Fc%26d'e%22%C3%A4~f",
            r#"a+b/c\u0026d'e\"ä~f"#,
            r#"a+b\/c\u0026d\u0027e\"\u00E4~f"#,
            r"a\u002bb/c\u0026d\u0027e\u0022\u00e4~f",
            "a+b/c&amp;d&#x27;e&#34;ä~f",
        ] {
            assert_eq!(scrubber.text(text), "‹secret:token›", "{text}");
        }
    }

    #[test]
    fn more_secrets_than_can_be_searched_for_withhold_everything() {
        let values: Vec<_> = (0..300)
            .map(|number| format!("{number:04}{}", "x+y".repeat(1300)))
            .collect();
        let scrubber = Scrubber::new(values.iter().map(|value| ("cookie", value.as_str())));
        assert_eq!(scrubber.text("nothing of them"), "‹secret:withheld›");
        assert_eq!(scrubber.text(""), "");
        assert!(scrubber.find(b"x").is_some());
    }

    #[test]
    fn a_text_full_of_secrets_takes_neither_time_nor_memory_without_end() {
        // 200 spellings end at each byte of the first text, and the second has more places than are replaced one by one.
        let values: Vec<_> = (20..220).map(|length| "a".repeat(length)).collect();
        let name = "n".repeat(60);
        let secrets = values.iter().map(String::as_str).chain(["bcde"]);
        let scrubber = Scrubber::new(secrets.map(|value| (&*name, value)));
        let started = std::time::Instant::now();
        let text = vec![b'a'; 8 * 1024 * 1024];
        assert_eq!(scrubber.bytes(&text), placeholder(&name).as_bytes());
        assert!(
            started.elapsed() < std::time::Duration::from_secs(20),
            "{:?}",
            started.elapsed()
        );
        let clean = scrubber.bytes(&b"bcde ".repeat(2 * MAX_PLACES)).into_owned();
        assert!(!clean.windows(4).any(|window| window == b"bcde"));
        assert!(
            clean.len() < (MAX_PLACES + 2) * (placeholder(&name).len() + 1),
            "{}",
            clean.len()
        );
    }

    #[test]
    fn a_secret_across_two_turns_is_found() {
        let scrubber = Scrubber::new([("token", "opensesame")]);
        let text = format!("{}opensesame.", " ".repeat(TURN_BYTES - 3));
        assert!(scrubber.text(&text).ends_with(" ‹secret:token›."));
    }

    proptest! {
        /// As a search for every spelling at every byte would find them.
        #[test]
        fn what_overlaps_is_one_place(secrets in prop::collection::vec("[ab]{4,7}", 1..6), text in "[abc]{0,60}") {
            let scrubber = Scrubber::new(secrets.iter().map(|secret| ("s", secret.as_str())));
            let mut is_secret = vec![false; text.len()];
            for secret in &secrets {
                for (at, _) in text.match_indices(|_: char| true) {
                    if text[at..].starts_with(secret.as_str()) {
                        is_secret[at..at + secret.len()].fill(true);
                    }
                }
            }
            let kept: String = text.chars().zip(&is_secret).filter(|(_, is_secret)| !**is_secret).map(|(c, _)| c).collect();
            prop_assert_eq!(scrubber.text(&text).replace("‹secret:s›", ""), kept);
        }

        #[test]
        fn no_text_keeps_a_secret(secret in "[a-z\"&/ %+ä]{4,12}", before in ".*", after in ".*") {
            let redactor = redactor(&[("name", &secret)]);
            let cleaned = redactor.text(&format!("{before}{secret}{after}"));
            prop_assert!(!cleaned.replace("‹secret:name›", "").contains(&secret));
        }
    }
}
