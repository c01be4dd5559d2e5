//! The forms in which titles name an episode, in order of trust.

use std::{
    ops::{Range, RangeInclusive},
    sync::LazyLock,
};

use jiff::civil::Date;
use regex::{Captures, Regex};

use super::{
    Episode,
    number::{Number, small},
};

/// The end of a name's number: no letter and no digit follows. `_` ends a number, too.
const END: &str = r"(?:[^\pL\pN]|$)";

/// Before a mark: no letter and no digit.
const START: &str = r"(?:^|[^\pL\pN])";

/// Words for "season"; its number stands behind or before the word.
const SEASON_WORDS: &str =
    "seasons?|saisons?|staffel|temporada|stagione|sezon|seizoen|s[äa]song|sæson|сезон|シーズン|시즌|الموسم|עונה|mùa";

const EPISODE_WORDS: &str = "episodes?|épisodes?|episodio|episódio|episod|folgen?|capitulo|capítulo|capitolo|puntata|\
    odcinek|díl|aflevering|avsnitt|afsnit|серия|серии|серій|серія|выпуск|bölüm|الحلقة|ตอนที่|ตอน|tập|kapitel|पार्ट|एपिसोड|\
    επεισόδιο|פרק";

/// The number of an episode, perhaps a half.
const NUMBER: &str = r"(?<a>\d{1,4}(?:\.5)?)";

/// The version behind a number.
const VERSION: &str = r"(?:[\s._]?v(?<v>\d))?";

const CHINESE: &str = "0-9〇零一二三四五六七八九十百";

/// An episode that was found, and where its name stands.
pub(super) struct Found {
    /// Where the series ends.
    pub(super) start: usize,
    /// Where revision and quality begin.
    pub(super) end: usize,
    pub(super) episode: Episode,
    /// The `2` of `v2`.
    pub(super) version: Option<u8>,
}

/// A number, or several, with the place where it stands.
struct Mark {
    start: usize,
    end: usize,
    /// Where the first number itself stands.
    digits: Range<usize>,
    numbers: RangeInclusive<Number>,
    version: Option<u8>,
}

fn compile(pattern: &str) -> Regex {
    // Long patterns stand on two lines.
    let pattern: String = pattern.lines().map(str::trim_start).collect();
    let whole = pattern.replace("START", START).replace("END", END);
    let whole = whole.replace("SEASON", SEASON_WORDS).replace("EPISODE", EPISODE_WORDS);
    let whole = whole
        .replace("CHINESE", CHINESE)
        .replace("NUMBER", NUMBER)
        .replace("VERSION", VERSION);
    Regex::new(&format!("(?i){whole}")).expect("the pattern is a constant")
}

fn compile_all(patterns: &[&str]) -> Vec<Regex> {
    patterns.iter().map(|pattern| compile(pattern)).collect()
}

/// Season and episode in one word: groups `s`, `a`, `b` (the last episode) and `v`.
static BOTH: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile_all(&[
        // S01E02, S01.E02, S01E02E03, S01E02-E04, S01E02-04, S2024E05
        r"STARTs(?<s>\d{1,4})[\s._-]{0,3}(?:ep?|x)[\s._]{0,2}NUMBER
        (?:(?:-|~|[\s._]{0,2}[-~&+]?[\s._]{0,2}(?:s\d{1,4})?ep?)(?<b>\d{1,4}))*VERSIONEND",
        // S2 - 05, as fansubs write it
        r"STARTs(?<s>\d{1,2})[\s_]{1,2}-[\s_]{1,2}NUMBER(?:[-~](?<b>\d{1,4}))?VERSIONEND",
        // 1x02, T1x02, 2024x05
        r"STARTt?(?<s>\d{1,2})x(?<a>\d{2,3})(?:-(?:\d{1,2}x)?(?<b>\d{2,3}))?END",
        r"START(?<s>(?:19|20)\d{2})x(?<a>\d{2})END",
        // [Cap.205], [Cap.205_208]: the season's digit and two of the episode
        r"START\[?cap\.?\s?(?<s>\d{1,2})(?<a>\d{2})(?:_\d{1,2}(?<b>\d{2}))?\]?END",
    ])
});

/// A season alone: groups `a` and `b`.
static SEASON: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile_all(&[
        r"STARTs(?<a>\d{1,2})(?:\s?-\s?s?(?<b>\d{1,2}))?END",
        // 2nd Season, 2. Staffel, 2ª Temporada
        r"START(?<a>\d{1,2})(?:(?:st|nd|rd|th|a|o|-?й|-?ый)[\s._]?|\.\s)(?:SEASON)END",
        // 3 сезон: some languages have the number first.
        r"START(?<a>\d{1,2})[\s._]?(?:сезон|sezona?)END",
        r"START(?:SEASON)[\s._]{0,2}(?<a>\d{1,2})(?:[\s._]?-[\s._]?(?<b>\d{1,2}))?END",
        r"第\s?(?<a>[CHINESE]{1,3})\s?[季期]",
    ])
});

/// An episode by a mark of its own: groups `a`, `b` and `v`.
static MARKED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile_all(&[
        // E05, EP05, Ep. 5, E05-E08
        r"STARTeps?(?:[\s._]{0,2})NUMBER(?:[\s._]?[-~][\s._]?(?:ep?)?(?<b>\d{1,4}))?VERSIONEND",
        r"STARTe(?<a>\d{2,4})(?:[-~](?:e)?(?<b>\d{2,4}))?VERSIONEND",
        // 第05話, 第01-12集, 第十二回, 제5화, 5화
        r"[第제]\s?(?<a>[CHINESE]{1,5}(?:\.5)?)(?:\s?[-~]\s?[第제]?(?<b>[CHINESE]{1,4}))?\s?[話话集回夜화회]VERSION",
        r"START(?<a>\d{1,4})(?:\s?[-~]\s?(?<b>\d{1,4}))?\s?[話话集화회](?:[^\pL]|$)",
        // Episode 5, Folge 5-6, Серия 5
        r"START(?:EPISODE)[\s._]{0,2}(?:#|№|nr\.?|no\.?)?[\s._]{0,2}NUMBER
        (?:\s?(?:-|и|and|und|&)\s?(?<b>\d{1,4}))?VERSIONEND",
        // 5 серия, 1-8 серии, 5. Bölüm
        r"START(?<a>\d{1,4})(?:\s?-\s?(?<b>\d{1,4}))?(?:\.|-я|-ая)?[\s._]{0,2}(?:EPISODE)END",
        // 05 из 12, 1-8 of 10
        r"START(?<a>\d{1,3})(?:\s?-\s?(?<b>\d{1,3}))?[\s._]{1,2}(?:из|of|з|de|von)[\s._]{1,2}\d{1,3}END",
    ])
});

/// An episode by its place only: groups `a`, `b` and `v`.
static PLACED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile_all(&[
        // [05], 【05v2】, [01-12], [05 END]
        r"[\[【](?:#|ep?)?NUMBER(?:\s?[-~]\s?(?<b>\d{1,4}))?\s?VERSION\s?(?:end|fin|完|完结|合集|全集|batch)?[\]】]",
        // Series - 05, Series_-_05v2
        r"[\s_][-–—][\s_]NUMBER(?:\s?[-~]\s?(?<b>\d{1,4}))?VERSION(?:[\s_]?(?:end|fin))?(?:[\s_\[(:]|\.[a-z]|$)",
        // #123
        r"(?:^|[^\pL\pN&])#\s?NUMBEREND",
    ])
});

/// The whole of a series: group `b`.
static COMPLETE: LazyLock<Regex> = LazyLock::new(|| compile(r"全\s?(?<b>\d{1,3})\s?[話话集回]"));

/// What is believed if nothing else is found, `[Group] Series 05 [1080p]`: groups `a` and `v`.
static LAST_RESORT: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile_all(&[
        r"^[\[【][^\]】]{1,60}[\]】].*\S[\s_](?<a>\d{2})VERSION[\s_]*(?:end[\s_]*)?(?:[\[(]|\.[a-z0-9]{2,4}$|$)",
    ])
});

/// Days: groups `y`, `m`, `d`.
static DAY: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile_all(&[
        r"START(?<y>(?:19|20)\d{2})[.\-_/\s](?<m>\d{1,2})[.\-_/\s](?<d>\d{1,2})END",
        r"START(?<d>\d{1,2})[.\-_/\s](?<m>\d{1,2})[.\-_/\s](?<y>(?:19|20)\d{2})END",
        r"(?<y>(?:19|20)\d{2})年(?<m>\d{1,2})月(?<d>\d{1,2})日",
        r"START(?<y>20\d{2})(?<m>\d{2})(?<d>\d{2})END",
        // Korean shows carry the day as six digits.
        r"START(?<y>[0-3]\d)(?<m>\d{2})(?<d>\d{2})END",
    ])
});

/// A season, with the place where it stands.
struct Season {
    start: usize,
    end: usize,
    digits: Range<usize>,
    seasons: RangeInclusive<u16>,
}

/// The episode that `text` names.
pub(super) fn find(text: &str) -> Option<Found> {
    let season = season(text);
    if let Some(found) = BOTH.iter().find_map(|pattern| both(text, &pattern.captures(text)?)) {
        // `Series - Temporada 2 [Cap.211]` has the season twice.
        let start = season.map_or(found.start, |season| season.start.min(found.start));
        return Some(Found { start, ..found });
    }
    // The number of a season is none of an episode: `1 серия 2 сезон`.
    let taken = season.as_ref().map(|season| season.digits.clone());
    let is_free = |mark: &Mark| taken.as_ref().is_none_or(|taken| *taken != mark.digits);
    let marked = first(&MARKED, text, is_free).or_else(|| complete(text));
    let marked = marked.or_else(|| first(&PLACED, text, |mark| is_free(mark) && is_episode(mark)));
    if let Some(mark) = marked {
        return Some(with_season(season, mark));
    }
    if let Some(found) = day(text) {
        return Some(found);
    }
    if let Some(Season {
        start, end, seasons, ..
    }) = season
    {
        let episode = Episode::Seasons(seasons);
        return Some(Found {
            start,
            end,
            episode,
            version: None,
        });
    }
    let mark = first(&LAST_RESORT, text, is_episode)?;
    let start = mark.digits.start;
    Some(with_season(None, Mark { start, ..mark }))
}

fn both(text: &str, captures: &Captures<'_>) -> Option<Found> {
    let mark = mark(text, captures)?;
    let season = captures.name("s")?.as_str().parse().ok()?;
    Some(Found {
        start: mark.start,
        end: mark.end,
        episode: Episode::Numbered(season, mark.numbers),
        version: mark.version,
    })
}

fn mark(text: &str, captures: &Captures<'_>) -> Option<Mark> {
    let number = |name| captures.name(name).and_then(|group| Number::parse(group.as_str()));
    let (start, end) = span(text, captures);
    Some(Mark {
        start,
        end,
        digits: captures.name("a")?.range(),
        numbers: Number::range(number("a")?, number("b")),
        version: captures.name("v").and_then(|group| group.as_str().parse().ok()),
    })
}

/// Where the match stands, from its mark to its last number.
fn span(text: &str, captures: &Captures<'_>) -> (usize, usize) {
    let whole = captures.get_match();
    // The end of a group in brackets belongs to what is before.
    let closing = text[whole.range()]
        .chars()
        .next()
        .filter(|c| matches!(c, ']' | '】' | ')' | '」'));
    let start = whole.start() + closing.map_or(0, char::len_utf8);
    let groups = ["a", "b", "v", "s", "y", "m", "d"]
        .into_iter()
        .filter_map(|name| captures.name(name));
    let end = groups.map(|group| group.end()).max();
    (start, end.unwrap_or(whole.end()))
}

fn first(patterns: &[Regex], text: &str, is_good: impl Fn(&Mark) -> bool) -> Option<Mark> {
    patterns.iter().find_map(|pattern| {
        let mut marks = pattern.captures_iter(text).filter_map(|captures| mark(text, &captures));
        marks.find(|mark| is_good(mark))
    })
}

/// Whether a number by its place is one of an episode: not a year, and not the height of a picture.
fn is_episode(mark: &Mark) -> bool {
    let heights = [480, 540, 576, 720, 1080, 2160].map(Number::whole);
    !mark.numbers.start().is_like_year() && !heights.contains(mark.numbers.start())
}

fn complete(text: &str) -> Option<Mark> {
    let captures = COMPLETE.captures(text)?;
    let last = captures.name("b")?;
    let (start, end) = span(text, &captures);
    Some(Mark {
        start,
        end,
        digits: last.range(),
        numbers: Number::range(Number::whole(1), Number::parse(last.as_str())),
        version: None,
    })
}

fn season(text: &str) -> Option<Season> {
    SEASON.iter().find_map(|pattern| {
        let captures = pattern.captures(text)?;
        let number = |name| captures.name(name).and_then(|group| small(group.as_str()));
        let first = number("a")?;
        let last = number("b").filter(|last| *last > first).unwrap_or(first);
        let (start, end) = span(text, &captures);
        Some(Season {
            start,
            end,
            digits: captures.name("a")?.range(),
            seasons: first..=last,
        })
    })
}

fn with_season(season: Option<Season>, mark: Mark) -> Found {
    let Mark {
        start,
        end,
        numbers,
        version,
        ..
    } = mark;
    match season {
        Some(season) => Found {
            start: start.min(season.start),
            end: end.max(season.end),
            episode: Episode::Numbered(*season.seasons.start(), numbers),
            version,
        },
        None => Found {
            start,
            end,
            episode: Episode::Absolute(numbers),
            version,
        },
    }
}

fn day(text: &str) -> Option<Found> {
    DAY.iter().find_map(|pattern| {
        let captures = pattern.captures(text)?;
        let number = |name| captures.name(name)?.as_str().parse::<i16>().ok();
        let year = number("y")?;
        let year = if year < 100 { 2000 + year } else { year };
        let (month, day) = (i8::try_from(number("m")?).ok()?, i8::try_from(number("d")?).ok()?);
        let day = Date::new(year, month, day).ok()?;
        let (start, end) = span(text, &captures);
        Some(Found {
            start,
            end,
            episode: Episode::Day(day),
            version: None,
        })
    })
}
