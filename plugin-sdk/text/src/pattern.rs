//! Regular expressions, by an engine that cannot backtrack.

use regex::{Regex, RegexBuilder};

use crate::{Allowance, TextError, check_input, check_pattern};

/// The longest pattern.
const MAX_PATTERN_BYTES: usize = 4096;

/// How large a compiled pattern may be. Time is pattern times text in the worst case; this leaves room for a dozen
/// Unicode classes, which is where the size comes from.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

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
    RegexBuilder::new(pattern)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|error| TextError::invalid("pattern", error))
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
