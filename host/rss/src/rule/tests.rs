//! Tests of rules.

use super::*;

fn source() -> RssSourceDto {
    RssSourceDto {
        smart_episode: true,
        ..RssSourceDto::default()
    }
}

/// What `source` says of a title of a size, with nothing taken.
fn judge(source: &RssSourceDto, title: &str, bytes: Option<u64>) -> Verdict {
    let release = Release::parse(title);
    let candidate = Candidate {
        title,
        release: &release,
        bytes,
        feed: "F",
    };
    Rules::compile(source).unwrap().judge(candidate, &Taken::default())
}

fn reason(source: &RssSourceDto, title: &str) -> &'static str {
    judge(source, title, None).reason.as_str()
}

#[test]
fn words_are_and_bars_are_or() {
    let source = RssSourceDto {
        include_pattern: "show 1080p | Film".to_owned(),
        ..source()
    };
    for (title, expected) in [
        ("Some.Show.S01E01.1080p", "included"),
        ("Some.Show.S01E01.720p", "not_included"),
        ("A FILM", "included"),
        ("Ａ Ｆｉｌｍ", "included"),
        ("else", "not_included"),
    ] {
        assert_eq!(reason(&source, title), expected, "{title}");
    }
}

#[test]
fn include_comes_before_exclude_and_exclude_before_sizes() {
    let source = RssSourceDto {
        include_pattern: "show".to_owned(),
        exclude_pattern: "cam".to_owned(),
        size_min_bytes: 10,
        size_max_bytes: 20,
        ..source()
    };
    for (title, bytes, expected) in [
        ("film cam", Some(1), "not_included"),
        ("show cam", Some(1), "excluded"),
        ("show", Some(1), "too_small"),
        ("show", Some(21), "too_large"),
        ("show", Some(20), "included"),
        ("show", None, "included"),
    ] {
        assert_eq!(
            judge(&source, title, bytes).reason.as_str(),
            expected,
            "{title} {bytes:?}"
        );
    }
}

#[test]
fn the_first_rule_that_matches_takes_an_item() {
    let rule = |name: &str, include: &str| RssRuleDto {
        name: name.to_owned(),
        include_pattern: include.to_owned(),
        ..RssRuleDto::default()
    };
    let source = RssSourceDto {
        exclude_pattern: "cam".to_owned(),
        rules: vec![rule("HD", "1080p"), rule("Film", "film"), rule("also HD", "1080p")],
        ..source()
    };
    assert_eq!(judge(&source, "show 1080p", None).rule, Some(0));
    assert_eq!(judge(&source, "film 720p", None).rule, Some(1));
    assert_eq!(reason(&source, "film cam"), "excluded");
    let miss = judge(&source, "show 720p", None);
    assert_eq!(miss.reason, Reason::NotIncluded);
    assert!(
        miss.detail.contains("HD: ") && miss.detail.contains("Film: "),
        "{}",
        miss.detail
    );
}

#[test]
fn what_cannot_be_used_is_refused_with_its_field() {
    let with = |change: fn(&mut RssSourceDto)| {
        let mut source = source();
        change(&mut source);
        Rules::compile(&source).map(|_| ()).unwrap_err()
    };
    let cases = [
        with(|source| (source.use_regex, source.exclude_pattern) = (true, "(".to_owned())),
        with(|source| (source.use_regex, source.include_pattern) = (true, r"(\w{900}){900}".to_owned())),
        with(|source| source.include_pattern = "x".repeat(2000)),
        with(|source| source.include_pattern = " | ".to_owned()),
        with(|source| (source.size_min_bytes, source.size_max_bytes) = (2, 1)),
        with(|source| source.qualities = vec!["1080p".to_owned(), "nice".to_owned()]),
        with(|source| source.dir_template = "{serie}".to_owned()),
        with(|source| source.dir_template = "/etc/{series}".to_owned()),
        with(|source| source.dir_template = "a/../b".to_owned()),
        with(|source| source.dir_template = "{series".to_owned()),
        with(|source| {
            let rule = RssRuleDto {
                use_regex: true,
                include_pattern: "[".to_owned(),
                ..RssRuleDto::default()
            };
            source.rules = vec![RssRuleDto::default(), rule];
        }),
    ];
    let fields: Vec<_> = cases.iter().map(|error| error.field.as_str()).collect();
    let expected = [
        "excludePattern",
        "includePattern",
        "includePattern",
        "includePattern",
        "sizeMinBytes",
        "qualities",
        "dirTemplate",
        "dirTemplate",
        "dirTemplate",
        "dirTemplate",
        "rules[1].includePattern",
    ];
    assert_eq!(fields, expected);
    assert!(cases.iter().all(|error| !error.reason.is_empty()));
}

#[test]
fn qualities_are_a_choice_and_an_order() {
    let mut source = RssSourceDto {
        qualities: vec!["1080p bluray".to_owned(), "1080p".to_owned(), "720p".to_owned()],
        ..source()
    };
    assert_eq!(reason(&source, "Show S01E01 480p"), "quality");
    assert_eq!(reason(&source, "Show S01E01 720p"), "included");
    let mut taken = Taken::default();
    let low = Release::parse("Show S01E01 720p");
    taken.set(
        low.identity(""),
        Claim {
            quality: low.quality,
            revision: 0,
            item: 1,
        },
    );
    let better = |source: &RssSourceDto, title: &str| {
        let release = Release::parse(title);
        let candidate = Candidate {
            title,
            release: &release,
            bytes: None,
            feed: "",
        };
        Rules::compile(source).unwrap().judge(candidate, &taken).reason.as_str()
    };
    assert_eq!(better(&source, "Show S01E01 1080p"), "dup_episode");
    source.upgrade_quality = true;
    assert_eq!(better(&source, "Show S01E01 1080p"), "upgrade");
    assert_eq!(better(&source, "Show S01E01 720p"), "dup_episode");
    assert_eq!(better(&source, "Show S01E01 PROPER 720p"), "upgrade");
}

#[test]
fn directories_hold_nothing_but_names() {
    let directories = |template: &str, title: &str| {
        let source = RssSourceDto {
            dir_template: template.to_owned(),
            ..source()
        };
        let release = Release::parse(title);
        let candidate = Candidate {
            title,
            release: &release,
            bytes: None,
            feed: "A/B",
        };
        Rules::compile(&source).unwrap().directories(None, candidate)
    };
    let two = "{series}/Season {season}";
    assert_eq!(directories(two, "Some.Show.S01E02.720p"), ["Some Show", "Season 01"]);
    assert_eq!(
        directories(two, "[G] Some Show - 05 [720p]"),
        ["Some Show"],
        "nothing is known of the season"
    );
    assert_eq!(directories("{source}/{episode}", "#12"), ["A_B", "E12"]);
    assert_eq!(directories("{title}", "../../etc/passwd"), ["_.._etc_passwd"]);
    assert_eq!(directories("{title}", ".."), Vec::<String>::new());
    assert_eq!(directories("x/{title}", "con"), ["x", "_con"]);
    assert_eq!(directories("", "Show S01E01"), Vec::<String>::new());
}

#[test]
fn every_reason_has_a_name_that_is_read_again() {
    for (reason, name) in REASONS {
        assert_eq!(reason.as_str(), *name);
        assert_eq!(Reason::parse(name), Some(*reason));
    }
    assert_eq!(Reason::parse("else"), None);
}
