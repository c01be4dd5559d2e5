//! Expands sets and sequences in URIs, for `--parameterized-uri`: `{a,b}`, `[1-10]`, `[01-10:3]`, `[a-e]`. Pure.

/// Limit of URIs from one pattern; longer lists belong into an input file.
const MAX_URIS: usize = 100_000;

/// All expansions, in order.
pub(super) fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut done = vec![String::new()];
    let mut rest = text;
    while let Some(at) = rest.find(['{', '[']) {
        let (plain, from) = rest.split_at(at);
        let close = if from.starts_with('{') { '}' } else { ']' };
        let (inside, behind) = from[1..]
            .split_once(close)
            .ok_or_else(|| format!("Missing '{close}' in the parameterized string."))?;
        let choices = if close == '}' {
            inside.split(',').map(|choice| choice.trim().to_owned()).collect()
        } else {
            sequence(inside).ok_or_else(|| format!("Invalid loop specifier: [{inside}]"))?
        };
        if choices.len().saturating_mul(done.len()) > MAX_URIS {
            return Err(format!("{text} stands for more than {MAX_URIS} URIs."));
        }
        done = done
            .iter()
            .flat_map(|head| choices.iter().map(move |choice| [head, plain, choice].concat()))
            .collect();
        rest = behind;
    }
    for uri in &mut done {
        uri.push_str(rest);
    }
    Ok(done)
}

/// Parses `from-to` or `from-to:step`; numbers may have leading zeros, letters are single.
fn sequence(text: &str) -> Option<Vec<String>> {
    let (range, step) = text.split_once(':').unwrap_or((text, "1"));
    let (from, to) = range.split_once('-')?;
    let step = step.parse::<usize>().ok().filter(|step| *step > 0)?;
    if let (Ok(first), Ok(last)) = (from.parse::<u32>(), to.parse::<u32>()) {
        let numbers = (first..=last).step_by(step).take(MAX_URIS + 1);
        return Some(
            numbers
                .map(|number| format!("{number:0width$}", width = from.len()))
                .collect(),
        );
    }
    let letter = |text: &str| text.parse::<char>().ok().filter(char::is_ascii_alphabetic);
    let (first, last) = (letter(from)?, letter(to)?);
    (first.is_ascii_lowercase() == last.is_ascii_lowercase())
        .then(|| (first..=last).step_by(step).map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_and_sequences_stand_for_all_they_name() {
        let check = |text: &str, expect: &[&str]| assert_eq!(expand(text).unwrap(), expect, "{text}");
        check("http://a/f", &["http://a/f"]);
        check("http://{a,b}/f", &["http://a/f", "http://b/f"]);
        check(
            "f[08-10].{x, y}",
            &["f08.x", "f08.y", "f09.x", "f09.y", "f10.x", "f10.y"],
        );
        check("f[1-9:4]", &["f1", "f5", "f9"]);
        check("[a-c]", &["a", "b", "c"]);
    }

    #[test]
    fn what_is_no_set_and_no_sequence_is_refused() {
        for text in [
            "{a",
            "[1-",
            "[1]",
            "[a-Z]",
            "[1-2:0]",
            "[0-999999]",
            "[1-400][1-400]",
            "[é-z]",
        ] {
            assert!(expand(text).is_err(), "{text}");
        }
    }
}
