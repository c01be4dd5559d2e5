//! Resolves ids and unique prefixes of them. Pure.

use std::collections::HashSet;

use command::UsageError;

use crate::service::RemoteError;

/// Shorter prefixes are mostly typing errors.
const MIN_PREFIX_CHARS: usize = 4;

/// The minimum length of ids in tables.
const SHOWN_CHARS: usize = 8;

/// Limit of matches that an error lists.
const NAMED_MATCHES: usize = 5;

/// All ids of one kind.
#[derive(Debug)]
pub(crate) struct Known {
    what: &'static str,
    sorted: Vec<String>,
}

impl Known {
    pub(crate) fn new(what: &'static str, ids: impl IntoIterator<Item = String>) -> Self {
        let mut sorted: Vec<_> = ids.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        Self { what, sorted }
    }

    /// Resolves ids without duplicates. Fails for an ambiguous prefix, else with all unknown ones.
    pub(crate) fn find(&self, given: &[String]) -> anyhow::Result<Vec<String>> {
        let mut found: Vec<String> = Vec::new();
        let mut unknown = Vec::new();
        for text in given {
            let wanted = normal(text);
            match self.matches(&wanted) {
                [] => unknown.push(text.clone()),
                [id, ..] if *id == wanted => found.push(id.clone()),
                // A plugin's name without its publisher counts as a complete id.
                [id] if id.split('@').next() == Some(&wanted) => found.push(id.clone()),
                _ if wanted.len() < MIN_PREFIX_CHARS => {
                    let problem = format!("write at least the first {MIN_PREFIX_CHARS} characters of an id");
                    return Err(UsageError::new(text, problem).into());
                }
                [id] => found.push(id.clone()),
                several => {
                    let named: Vec<_> = several.iter().take(NAMED_MATCHES).map(String::as_str).collect();
                    let problem = format!(
                        "several {}s begin so, such as {}; write more of it",
                        self.what,
                        named.join(", ")
                    );
                    return Err(UsageError::new(text, problem).into());
                }
            }
        }
        if !unknown.is_empty() {
            let (what, names) = (self.what, unknown);
            return Err(RemoteError::Unknown { what, names }.into());
        }
        let mut seen = HashSet::new();
        found.retain(|id| seen.insert(id.clone()));
        Ok(found)
    }

    /// The prefix length that distinguishes all ids.
    pub(crate) fn shown_chars(&self) -> usize {
        let neighbours = self.sorted.windows(2).map(|pair| {
            let same = pair[0]
                .bytes()
                .zip(pair[1].bytes())
                .take_while(|(one, other)| one == other);
            same.count() + 1
        });
        neighbours.max().unwrap_or(0).max(SHOWN_CHARS)
    }

    fn matches(&self, prefix: &str) -> &[String] {
        let begin = self.sorted.partition_point(|id| id.as_str() < prefix);
        let rest = &self.sorted[begin..];
        &rest[..rest.partition_point(|id| id.starts_with(prefix))]
    }
}

/// The id of what a user names by its id, its name, or the first characters of its id.
pub(crate) fn named<'n>(
    what: &'static str,
    all: impl Iterator<Item = (&'n str, &'n str)> + Clone,
    text: &str,
) -> anyhow::Result<String> {
    if all.clone().any(|(id, _)| id == text) {
        return Ok(text.to_owned());
    }
    let same: Vec<_> = all.clone().filter(|(_, name)| *name == text).collect();
    match same[..] {
        [] => Ok(Known::new(what, all.map(|(id, _)| id.to_owned()))
            .find(&[text.to_owned()])?
            .remove(0)),
        [(id, _)] => Ok(id.to_owned()),
        _ => {
            let problem = format!("{} {what}s have that name; write the id of one", same.len());
            Err(UsageError::new(text, problem).into())
        }
    }
}

/// An id as services write it.
pub(crate) fn normal(text: &str) -> String {
    text.trim().to_ascii_lowercase()
}

/// The part of an id that a table shows.
pub(crate) fn shorten(id: &str, chars: usize) -> &str {
    id.get(..chars).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let ids = ["0a1b2c3d-1", "0a1b2c3e-2", "ffff0000-3", "main"];
        Known::new("task", ids.map(str::to_owned))
    }

    fn find(given: &[&str]) -> anyhow::Result<Vec<String>> {
        known().find(&given.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn an_id_may_be_written_short_as_long_as_it_is_clear() {
        assert_eq!(
            find(&["FFFF", "0a1b2c3d", "ffff0000-3"]).unwrap(),
            ["ffff0000-3", "0a1b2c3d-1"]
        );
        assert_eq!(find(&["main"]).unwrap(), ["main"]);
        let plugin = Known::new("plugin", ["hls@svc".to_owned()]);
        assert_eq!(plugin.find(&["hls".to_owned()]).unwrap(), ["hls@svc"]);
        assert!(plugin.find(&["hl".to_owned()]).is_err());
    }

    #[test]
    fn what_is_not_clear_is_refused_with_the_reason() {
        let ambiguous = find(&["0a1b"]).unwrap_err();
        assert!(
            ambiguous.is::<UsageError>()
                && ambiguous
                    .to_string()
                    .contains("several tasks begin so, such as 0a1b2c3d-1, 0a1b2c3e-2"),
            "{ambiguous}"
        );
        let short = find(&["fff"]).unwrap_err();
        assert!(short.to_string().contains("first 4"), "{short}");
        let unknown = find(&["beef", "FFFF", "zz"]).unwrap_err();
        let Some(RemoteError::Unknown { names, .. }) = unknown.downcast_ref() else {
            panic!("{unknown}")
        };
        assert_eq!(names, &["beef", "zz"]);
    }

    #[test]
    fn tables_show_as_much_as_tells_ids_apart() {
        assert_eq!(known().shown_chars(), 8);
        let close = Known::new("task", ["0123456789a".to_owned(), "0123456789b".to_owned()]);
        assert_eq!(close.shown_chars(), 11);
        assert_eq!(shorten("main", 8), "main");
    }
}
