//! The table of titles, and what holds of every title.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use protocol::RssSourceDto;
use rss::{
    rule::{Candidate, Claim, Reason, Rules, Taken},
    title::Release,
};

const TABLE: &str = include_str!("../titles.tsv");

/// The title of the feed that all of them are in.
const FEED: &str = "A Feed";

fn rules() -> Rules {
    let source = RssSourceDto {
        smart_episode: true,
        use_regex: true,
        exclude_pattern: r"\b(hd)?cam\b|telesync".to_owned(),
        ..RssSourceDto::default()
    };
    Rules::compile(&source).expect("they are rules")
}

#[test]
fn every_title_of_the_table_has_its_identity_and_verdict() {
    let (rules, mut taken) = (rules(), Taken::default());
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (item, line) in (0..).zip(TABLE.lines().filter(|line| !line.starts_with("# "))) {
        let columns: Vec<_> = line.split('\t').collect();
        let [title, key, revision, quality, verdict] = columns[..] else {
            panic!("not five columns: {line}");
        };
        let release = Release::parse(title);
        let candidate = Candidate {
            title,
            release: &release,
            bytes: None,
            feed: FEED,
        };
        let judged = rules.judge(candidate, &taken);
        if judged.is_taken {
            let claim = Claim {
                quality: release.quality,
                revision: release.revision,
                item,
            };
            taken.set(release.identity(FEED), claim);
        }
        let said = if judged.reason == Reason::Included {
            "take"
        } else {
            judged.reason.as_str()
        };
        let own = release.key(FEED);
        let own = if own.is_empty() { "-" } else { &own };
        let found = format!("{own}\t{}\t{}\t{said}", release.revision, release.quality);
        let expected = format!("{key}\t{revision}\t{quality}\t{verdict}");
        if found != expected {
            wrong.push(format!("{title}\n   found {found}\n  wanted {expected}"));
        }
        count += 1;
    }
    assert!(count >= 150, "only {count} titles");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// How long the longest of `titles` takes, at best of three.
fn time(title: &str) -> Duration {
    let each = (0..3).map(|_| {
        let start = Instant::now();
        for _ in 0..20 {
            std::hint::black_box(Release::parse(title));
        }
        start.elapsed()
    });
    each.min().unwrap_or_default()
}

#[test]
fn hostile_titles_take_no_longer_than_plain_ones_of_their_length() {
    let plain = "The Quick Brown Fox ".repeat(50);
    let allowed = time(&plain).max(Duration::from_micros(200)) * 20;
    for unit in [
        "S01E", "s1 - ", "[[", "【", "第", "1-", "- 1", "v2", "proper ", "E1", "2024.", "(", "１", "ª", "1x", "S1E1E1",
    ] {
        let title = unit.repeat(1000 / unit.len());
        let taken = time(&title);
        assert!(taken < allowed, "{unit:?} takes {taken:?}, more than {allowed:?}");
    }
}

proptest! {
    #[test]
    fn any_title_is_read(title in "\\PC{0,80}") {
        let release = Release::parse(&title);
        prop_assert!(release.identity(FEED).is_none_or(|identity| (1..=500).contains(&identity.parts().len())));
    }

    #[test]
    fn an_identity_does_not_depend_on_how_words_are_separated(
        words in proptest::collection::vec("[a-z]{3,8}", 1..4),
        season in 1_u16..30,
        episode in 1_u16..200,
        separator in "[ ._]",
    ) {
        prop_assume!(words.iter().all(|word| !["season", "sezon", "the"].contains(&word.as_str())));
        let title = format!("{}{separator}S{season:02}E{episode:02}{separator}1080p", words.join(&separator));
        let key = format!("{}#S{season:02}E{episode:02}", words.join(" "));
        prop_assert_eq!(Release::parse(&title).key(FEED), key);
    }

    #[test]
    fn what_was_taken_is_not_taken_again(season in 0_u16..30, episode in 0_u16..2000) {
        let (rules, mut taken) = (rules(), Taken::default());
        let title = format!("Some Show S{season:02}E{episode:02} 1080p");
        let release = Release::parse(&title);
        let candidate = Candidate { title: &title, release: &release, bytes: None, feed: FEED };
        prop_assert!(rules.judge(candidate, &taken).is_taken);
        taken.set(release.identity(FEED), Claim { quality: release.quality, revision: 0, item: 1 });
        prop_assert_eq!(rules.judge(candidate, &taken).reason, Reason::DuplicateEpisode);
        taken.remove(1);
        prop_assert_eq!(&taken, &Taken::default());
    }
}
