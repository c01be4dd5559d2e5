//! The series, from what stands before the episode.

use unicode_normalization::UnicodeNormalization as _;

/// Brackets that enclose groups, tags and, in titles of fansubs, everything.
const BRACKETS: &[(char, char)] = &[('[', ']'), ('【', '】'), ('「', '」'), ('(', ')'), ('{', '}')];

/// Words that no series is called, for titles in which everything stands in brackets.
const TAGS: &[&str] = &[
    "新番",
    "月番",
    "连载",
    "連載",
    "国漫",
    "字幕组",
    "字幕組",
    "new",
    "rss",
    "tv",
];

/// What stands around a series.
const EDGES: &[char] = &[
    ' ', '-', '–', '—', '_', '.', ':', '|', '~', ',', '/', '★', '☆', '·', '[', '【', '(', '「', '#',
];

/// The series that `text` names, which stands before the episode.
pub(super) fn read(text: &str) -> String {
    let (outside, groups) = split(text);
    let own = clean(&outside);
    // Season's names such as `10月新番` stand outside of brackets where everything else is in them.
    let is_tag_only = own.is_empty() || (!groups.is_empty() && is_season_tag(&own));
    let name = if is_tag_only {
        let named = groups.iter().rev().find(|group| !is_tag(group));
        named.map_or(String::new(), |group| clean(group))
    } else {
        own
    };
    preferred(&name)
}

/// The identity of a series: small letters and digits, with single spaces.
pub(super) fn normal(series: &str) -> String {
    let composed = series
        .nfkc()
        .flat_map(char::to_lowercase)
        .filter(|c| !matches!(c, '\'' | '’' | '`'));
    let mut words = String::with_capacity(series.len());
    for c in composed {
        if c == '&' {
            words.push_str(" and ");
        } else {
            words.push(if c.is_alphanumeric() || is_mark(c) { c } else { ' ' });
        }
    }
    let words: Vec<_> = words.split_whitespace().collect();
    words.join(" ")
}

/// Vowel signs of Indic and Thai scripts, which are part of a word and no letters.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{5b0}'..='\u{5c7}' | '\u{64b}'..='\u{652}' | '\u{900}'..='\u{97f}'
        | '\u{e31}'..='\u{e4e}')
}

/// The text outside of brackets, and what each bracket holds. A bracket that is not closed encloses the episode and is
/// no group; a year or a country in brackets is part of the name.
fn split(text: &str) -> (String, Vec<&str>) {
    let (mut outside, mut groups) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some((at, open)) = rest
        .char_indices()
        .find(|(_, c)| BRACKETS.iter().any(|(open, _)| open == c))
    {
        outside.push_str(&rest[..at]);
        let close = BRACKETS
            .iter()
            .find(|(known, _)| *known == open)
            .map_or(open, |(_, close)| *close);
        let inner = &rest[at + open.len_utf8()..];
        let Some(end) = inner.find(close) else {
            rest = inner;
            continue;
        };
        let group = &inner[..end];
        if open == '(' && is_part_of_name(group) {
            outside.extend(["(", group, ")"]);
        } else {
            groups.push(group);
            outside.push(' ');
        }
        rest = &inner[end + close.len_utf8()..];
    }
    outside.push_str(rest);
    (outside, groups)
}

fn is_part_of_name(group: &str) -> bool {
    let is_year = group.len() == 4 && group.bytes().all(|b| b.is_ascii_digit());
    is_year || (matches!(group.len(), 2 | 3) && group.bytes().all(|b| b.is_ascii_uppercase()) && group != "TV")
}

/// What says when or by whom something is published, and not what it is.
fn is_season_tag(text: &str) -> bool {
    TAGS.iter().any(|tag| !tag.is_ascii() && text.contains(tag))
}

fn is_tag(group: &str) -> bool {
    let lower = group.to_lowercase();
    let has_letter = lower.chars().any(char::is_alphabetic);
    !has_letter || is_season_tag(&lower) || TAGS.contains(&lower.as_str())
}

fn clean(text: &str) -> String {
    let trimmed = text.trim();
    let has_spaces = trimmed.contains(' ');
    let spaced = trimmed.replace(|c| c == '_' || (c == '.' && !has_spaces), " ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    words
        .join(" ")
        .trim_matches(EDGES)
        .trim_end_matches(['[', '【', '('])
        .to_owned()
}

/// One of several names (`葬送的芙莉莲 / Sousou no Frieren`): the one in Latin letters, under which groups of all languages
/// name it, else the first.
fn preferred(name: &str) -> String {
    let names: Vec<_> = name.split(['/', '|']).map(|name| name.trim_matches(EDGES)).collect();
    // A slash within a word (`Fate/Zero`) separates nothing.
    if !name.contains(" /") && !name.contains("/ ") && !name.contains('|') && name.is_ascii() {
        return name.to_owned();
    }
    let is_latin = |name: &&&str| name.chars().filter(char::is_ascii_alphabetic).count() > 2;
    let first = names.iter().find(|name| !name.is_empty());
    let chosen = names.iter().rev().find(is_latin).or(first);
    chosen.map_or(String::new(), |name| (*name).to_owned())
}
