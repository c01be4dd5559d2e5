//! Patterns of titles: words, or regular expressions that take linear time.

use std::fmt;

use regex::{Regex, RegexBuilder};
use unicode_normalization::UnicodeNormalization as _;

/// The longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1024;

/// Memory of a compiled pattern.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

/// A pattern. The empty one says nothing.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    Empty,
    /// One of the lists must be in the title with all its words.
    Words(String, Vec<Vec<String>>),
    Regex(Regex),
}

impl Pattern {
    /// Compiles a pattern; the error says what is wrong with it.
    pub(super) fn compile(text: &str, is_regex: bool) -> Result<Self, String> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(format!(
                "the pattern is {} bytes long; the limit is {MAX_PATTERN_BYTES}",
                text.len()
            ));
        }
        if text.trim().is_empty() {
            return Ok(Self::Empty);
        }
        if is_regex {
            let mut builder = RegexBuilder::new(text);
            builder
                .case_insensitive(true)
                .size_limit(MAX_COMPILED_BYTES)
                .dfa_size_limit(MAX_COMPILED_BYTES);
            let compiled = builder.build().map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    "the regular expression is too large; use fewer repetitions".to_owned()
                }
                error => format!("not a regular expression: {}", last_line(&error.to_string())),
            });
            return compiled.map(Self::Regex);
        }
        let lists = text
            .split('|')
            .map(|list| folded(list).split_whitespace().map(ToOwned::to_owned).collect());
        let lists: Vec<Vec<String>> = lists.filter(|list: &Vec<_>| !list.is_empty()).collect();
        if lists.is_empty() {
            return Err("there is no word beside `|`".to_owned());
        }
        Ok(Self::Words(text.to_owned(), lists))
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    pub(super) fn is_match(&self, title: &str) -> bool {
        match self {
            Self::Empty => true,
            Self::Words(_, lists) => {
                let title = folded(title);
                lists.iter().any(|list| list.iter().all(|word| title.contains(word)))
            }
            Self::Regex(regex) => regex.is_match(title),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the empty pattern"),
            Self::Words(text, _) => write!(f, "`{text}`"),
            Self::Regex(regex) => write!(f, "`{regex}`"),
        }
    }
}

/// Without case and without differences that are not seen, such as full-width letters.
fn folded(text: &str) -> String {
    text.nfkc().flat_map(char::to_lowercase).collect()
}

/// Errors of `regex` draw the pattern; the reason stands in their last line.
fn last_line(text: &str) -> &str {
    let line = text.lines().next_back().unwrap_or(text);
    line.strip_prefix("error: ").unwrap_or(line)
}
