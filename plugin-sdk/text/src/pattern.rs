//! Regular expressions, by an engine that cannot backtrack.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use regex::{Regex, RegexBuilder};

use crate::{Allowance, TextError, check_input, check_pattern};

/// The longest pattern.
const MAX_PATTERN_BYTES: usize = 4096;

/// How large a compiled pattern may be. Time is pattern times text in the worst case; this leaves room for a dozen
/// Unicode classes, which is where the size comes from.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

/// How many compiled patterns are kept: every call of a plugin uses the same few, and compiling one takes a hundred times
/// longer than searching a page.
const KEPT: usize = 32;

/// How large a pattern is that is kept, so that nobody fills the memory with them.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// Patterns that were compiled lately. They are cloned before they search, so that they do not keep what searching takes.
static COMPILED: Mutex<VecDeque<Regex>> = Mutex::new(VecDeque::new());

/// All matches of `pattern` in `input`, each with its groups; group 0 is the whole match.
pub fn captures(pattern: &str, input: &str) -> Result<Vec<Vec<Option<String>>>, TextError> {
    let regex = compile(pattern, input)?;
    let mut allowance = Allowance::new();
    let mut matches = Vec::new();
    for found in regex.captures_iter(input) {
        let mut groups = Vec::with_capacity(found.len());
        for group in found.iter() {
            allowance.take(group.map_or(0, |group| group.len()))?;
            groups.push(group.map(|group| group.as_str().to_owned()));
        }
        matches.push(groups);
    }
    Ok(matches)
}

/// What group number `group` holds in each match of `pattern`; matches without it are left out.
pub fn group(pattern: &str, input: &str, group: usize) -> Result<Vec<String>, TextError> {
    let regex = compile(pattern, input)?;
    if group >= regex.captures_len() {
        return Err(TextError::invalid("group", format!("the pattern has no group {group}")));
    }
    let mut allowance = Allowance::new();
    let mut values = Vec::new();
    for found in regex.captures_iter(input) {
        if let Some(value) = found.get(group) {
            allowance.take(value.len())?;
            values.push(value.as_str().to_owned());
        }
    }
    Ok(values)
}

fn compile(pattern: &str, input: &str) -> Result<Regex, TextError> {
    check_pattern(pattern, MAX_PATTERN_BYTES)?;
    check_input(input)?;
    let kept = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept().iter().find(|regex| regex.as_str() == pattern).cloned();
    if let Some(regex) = known {
        return Ok(regex);
    }
    let Ok(regex) = build(pattern, MAX_KEPT_BYTES) else {
        return build(pattern, MAX_COMPILED_BYTES).map_err(|error| TextError::invalid("pattern", error));
    };
    let mut kept = kept();
    kept.truncate(KEPT - 1);
    kept.push_front(regex.clone());
    Ok(regex)
}

fn build(pattern: &str, max_bytes: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(max_bytes)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_match_comes_with_its_groups() {
        let found = captures(r"(\w+)=(\d+)?", "a=1 b=").unwrap();
        assert_eq!(
            found,
            [
                vec![Some("a=1".into()), Some("a".into()), Some("1".into())],
                vec![Some("b=".into()), Some("b".into()), None],
            ]
        );
        assert_eq!(group(r"(\w+)=(\d+)?", "a=1 b=", 2).unwrap(), ["1"]);
    }

    #[test]
    fn a_pattern_finds_the_same_when_it_is_kept_and_when_it_is_too_large_for_that() {
        for pattern in ["b+", r"(?:\w{20}|b+)"] {
            for input in ["abb", "b a bbb", ""] {
                let expected: Vec<_> = input.split(|c| c != 'b').filter(|part| !part.is_empty()).collect();
                assert_eq!(group(pattern, input, 0).unwrap(), expected, "{pattern}");
            }
        }
        for number in 0..KEPT * 2 {
            assert_eq!(group(&format!("x{number}"), &format!("x{number}"), 0).unwrap().len(), 1);
        }
        assert!(COMPILED.lock().unwrap().len() <= KEPT);
    }

    #[test]
    fn bad_and_oversized_patterns_are_refused() {
        assert!(matches!(captures("(", ""), Err(TextError::Invalid { .. })));
        assert!(matches!(captures(r"\w{5000}", ""), Err(TextError::Invalid { .. })));
        assert!(matches!(
            captures(&"a".repeat(5000), ""),
            Err(TextError::PatternTooLong(..))
        ));
        assert!(matches!(group("a", "a", 1), Err(TextError::Invalid { .. })));
    }

    #[test]
    fn many_empty_matches_end_at_the_output_limit() {
        let input = "a".repeat(crate::MAX_INPUT_BYTES);
        assert_eq!(captures("", &input), Err(TextError::OutputTooLong));
    }
}
