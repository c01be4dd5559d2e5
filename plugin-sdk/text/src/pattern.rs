//! Regular expressions, by an engine that cannot backtrack and whose every step is counted.

mod search;
mod threads;

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use search::{Program, Search};

use crate::{
    limit::{Allowance, TextError, check_input, check_pattern},
    work::Work,
};

/// The longest pattern.
const MAX_PATTERN_BYTES: usize = 4096;

/// How large a compiled pattern may be; this leaves room for a dozen Unicode classes, which is where the size comes from.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

/// How many compiled patterns are kept: every call of a plugin uses the same few, and compiling one takes a hundred times
/// longer than searching a page.
const KEPT: usize = 32;

/// How large a pattern is that is kept, so that nobody fills the memory with them.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// Patterns that were compiled lately. What searching takes is not kept with them.
static COMPILED: Mutex<VecDeque<(String, Program)>> = Mutex::new(VecDeque::new());

/// How many steps it is worth to compile a state of a pattern.
const STEPS_PER_STATE: usize = 16;

/// Whether there is a match of `pattern` in `input`.
pub fn is_match(pattern: &str, input: &str, work: &mut Work<'_>) -> Result<bool, TextError> {
    let program = compile(pattern, input, work)?;
    Ok(Search::new(&program, input).next(work)?.is_some())
}

/// All matches of `pattern` in `input`, each with its groups; group 0 is the whole match.
pub fn captures(pattern: &str, input: &str, work: &mut Work<'_>) -> Result<Vec<Vec<Option<String>>>, TextError> {
    let program = compile(pattern, input, work)?;
    let mut search = Search::new(&program, input);
    let mut allowance = Allowance::default();
    let mut matches = Vec::new();
    while let Some(found) = search.next(work)? {
        let mut groups = Vec::with_capacity(program.groups());
        for group in found.iter() {
            allowance.take(group.map_or(0, str::len))?;
            groups.push(group.map(str::to_owned));
        }
        matches.push(groups);
    }
    Ok(matches)
}

/// What group number `group` holds in each match of `pattern`; matches without it are left out.
pub fn group(pattern: &str, input: &str, group: usize, work: &mut Work<'_>) -> Result<Vec<String>, TextError> {
    let program = compile(pattern, input, work)?;
    if group >= program.groups() {
        return Err(TextError::invalid("group", format!("the pattern has no group {group}")));
    }
    let mut search = Search::new(&program, input);
    let mut allowance = Allowance::default();
    let mut values = Vec::new();
    while let Some(found) = search.next(work)? {
        if let Some(value) = found.get(group) {
            allowance.take(value.len())?;
            values.push(value.to_owned());
        }
    }
    Ok(values)
}

fn compile(pattern: &str, input: &str, work: &mut Work<'_>) -> Result<Program, TextError> {
    check_pattern(pattern, MAX_PATTERN_BYTES)?;
    check_input(input)?;
    let kept = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept().iter().find(|(known, _)| known == pattern).cloned();
    if let Some((_, program)) = known {
        return Ok(program);
    }
    let Ok(program) = Program::new(pattern, MAX_KEPT_BYTES) else {
        let large = Program::new(pattern, MAX_COMPILED_BYTES);
        let states = large.as_ref().map_or(MAX_COMPILED_BYTES / 64, Program::states);
        work.take(states * STEPS_PER_STATE)?;
        return large;
    };
    work.take(program.states() * STEPS_PER_STATE)?;
    let mut kept = kept();
    kept.truncate(KEPT - 1);
    kept.push_front((pattern.to_owned(), program.clone()));
    Ok(program)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captures(pattern: &str, input: &str) -> Result<Vec<Vec<Option<String>>>, TextError> {
        super::captures(pattern, input, &mut Work::default())
    }

    fn group(pattern: &str, input: &str, group: usize) -> Result<Vec<String>, TextError> {
        super::group(pattern, input, group, &mut Work::default())
    }

    /// What the engine finds that everybody knows.
    fn expected(pattern: &str, input: &str) -> Vec<Vec<Option<String>>> {
        let matches = regex::Regex::new(pattern).unwrap();
        let matches = matches.captures_iter(input);
        let groups = matches.map(|found| found.iter().map(|group| Some(group?.as_str().to_owned())).collect());
        groups.collect()
    }

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
    fn known_patterns_find_what_they_always_found() {
        let page =
            "<p>\u{e4}b <a href='x y'>1</a>\n<a class=z href='\u{1f980}'>\u{df}2</a> (a)(b) foo_bar\r\n\u{2014}end";
        for pattern in [
            "",
            "a|",
            "(a|ab)(c|bcd)?",
            r"\b",
            r"\B",
            r"(?-u:\b)\w",
            r"\b\w+\b",
            "(?m)^.*$",
            "(?m)$",
            r"\z",
            r"\A.",
            "<a[^>]*href='([^']*)'[^>]*>([^<]*)</a>",
            "(?s).*",
            "(?s).*?",
            "(?i)FOO_(bar)?",
            r"(\()?a(\))?",
            "x*",
            "(x*)",
            r"\p{L}+",
            r"[^\x00-\x7F]",
            "(?:(a)|(b))*",
            "(a*)*",
            "(a*)+",
            "a??",
            "(?R)(?m)^",
            "e(?:n(d)?)?$",
            r"(\s)|(\S)",
        ] {
            for input in [page, "", "abcd", "aab", "\u{e4}", "a\u{e4}b"] {
                assert_eq!(
                    captures(pattern, input).unwrap(),
                    expected(pattern, input),
                    "{pattern:?} {input:?}"
                );
            }
        }
    }

    /// Patterns from all kinds of parts.
    fn patterns() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec![
            "a",
            "b",
            "c",
            "\u{e4}",
            ".",
            r"\w",
            r"\W",
            r"\d",
            r"\b",
            r"\B",
            "^",
            "$",
            "(?m:^)",
            "(?m:$)",
            "[ab]",
            "[^a]",
            "ab",
            "",
            r"(?-u:\b)",
            r"(?s:.)",
        ]);
        leaf.prop_map(str::to_owned).prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
                (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("(?:{one}|{other})")),
                inner.clone().prop_map(|part| format!("({part})")),
                (
                    inner,
                    prop::sample::select(vec!["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}"])
                )
                    .prop_map(|(part, times)| format!("(?:{part}){times}")),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_pattern_finds_what_it_always_found(
            pattern in patterns(),
            input in "[abc\u{e4}\u{1f980} \n1-]{0,24}",
        ) {
            prop_assert_eq!(captures(&pattern, &input).unwrap(), expected(&pattern, &input));
        }
    }

    #[test]
    fn a_pattern_with_more_states_than_are_kept_finds_what_it_always_found() {
        let mut state = 1_u32;
        let mut letter = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state >> 31 == 0 { 'a' } else { 'b' }
        };
        let input: String = (0..10_000).map(|_| letter()).collect();
        let input = format!("{input}c{input}");
        for pattern in ["(a|b)*a((a|b){12})c", "a[ab]{300}c", "[ab]*a[ab]{14}"] {
            let found = captures(pattern, &input).unwrap();
            assert!(found == expected(pattern, &input), "{pattern}");
        }
    }

    #[test]
    fn the_links_of_a_long_page_are_found_for_little() {
        let row =
            |number| format!("<tr><td><a class=\"file\" href=\"/d/{number}/f\u{e4}.iso\">{number}</a></td></tr>\n");
        let page: String = (0..10_000).map(row).collect();
        let mut work = Work::of_steps(40 * page.len() as u64);
        let pattern = r#"<a[^>]*href="([^"]+)"[^>]*>([^<]*)</a>"#;
        assert_eq!(super::captures(pattern, &page, &mut work).unwrap().len(), 10_000);
        let mut work = Work::of_steps(80 * page.len() as u64);
        assert_eq!(
            super::group(r"\b\w+\.iso\b", &page, 0, &mut work).unwrap().len(),
            10_000
        );
    }

    #[test]
    fn a_pattern_that_reads_the_whole_text_for_each_letter_ends() {
        let (input, letters) = ("a".repeat(300_000), "A".repeat(300_000));
        // A match of a letter is known to be one when the rest of the text is read.
        for (pattern, input) in [
            (".*[^A-Z]|[A-Z]", &letters),
            ("a.*c|a", &input),
            ("(?:a(x)?.*c)|a", &input),
        ] {
            let mut asked = 0;
            let mut may_go_on = || {
                asked += 1;
                asked < 500
            };
            let mut work = Work::while_true(&mut may_go_on);
            assert_eq!(
                super::captures(pattern, input, &mut work),
                Err(TextError::Stopped),
                "{pattern}"
            );
            let last = regex::Regex::new(pattern).unwrap().captures_len() - 1;
            let mut work = Work::of_steps(20 * input.len() as u64);
            assert_eq!(
                super::group(pattern, input, last, &mut work),
                Err(TextError::TooMuchWork),
                "{pattern}"
            );
        }
    }

    #[test]
    fn a_single_match_of_a_large_pattern_ends() {
        let mut may_go_on = || false;
        let input = "ab".repeat(100_000);
        for pattern in ["(a|b)*a(a|b){3000}c", r"\b[ab]*a[ab]{9000}\b\x{e4}"] {
            let mut work = Work::while_true(&mut may_go_on);
            assert_eq!(
                super::captures(pattern, &input, &mut work),
                Err(TextError::Stopped),
                "{pattern}"
            );
        }
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
        let groups = format!("{}a{{1000}}", "()".repeat(1500));
        assert!(matches!(captures(&groups, ""), Err(TextError::Invalid { .. })));
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
