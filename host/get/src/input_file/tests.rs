//! Input files: what is read, what is refused, and that nothing makes the parser fall over.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn all(text: &str) -> Result<Vec<Entry<'_>>, UsageError> {
    entries(text).collect()
}

#[test]
fn mirrors_options_comments_and_blank_lines_are_distinguished() {
    let text = "\u{feff}# a list\r\n\r\nhttp://a.test/x\thttp://b.test/x\t\r\n  out=x.bin\r\n \t# why\r\n\theader = A: b=c \r\n\nhttp://c.test/y";
    let entries = all(text).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].line, 3);
    assert_eq!(entries[0].urls, ["http://a.test/x", "http://b.test/x"]);
    let options: Vec<_> = entries[0]
        .options
        .iter()
        .map(|option| (option.line, option.name, option.value))
        .collect();
    assert_eq!(
        options,
        [(4, OptionName::Out, "x.bin"), (6, OptionName::Header, "A: b=c")]
    );
    assert_eq!(
        (entries[1].line, entries[1].urls.as_slice()),
        (8, ["http://c.test/y"].as_slice())
    );
    assert!(all("").unwrap().is_empty());
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line() {
    for (text, line, problem) in [
        ("  out=x\n", 1, "none above"),
        ("http://a.test/\n  out\n", 2, "name=value"),
        (
            "http://a.test/\n\n  gid=1\n",
            3,
            "unknown option \"gid\"; known are out, dir",
        ),
    ] {
        let message = all(text).unwrap_err().to_string();
        assert!(
            message.contains(&format!("line {line}:")) && message.contains(problem),
            "{message}"
        );
    }
}

/// The URLs of a file, and its options by their place in [`OptionName::ALL`].
type Written = (Vec<String>, Vec<(usize, String)>);

/// URLs and options that need no quoting, as a list of files.
fn list() -> impl Strategy<Value = Vec<Written>> {
    let urls = prop::collection::vec("https://[a-z]{1,8}\\.test/[!-~]{0,12}", 1..4);
    let options = prop::collection::vec((0..OptionName::ALL.len(), "[!-~]([ -~]{0,12}[!-~])?"), 0..4);
    prop::collection::vec((urls, options), 0..8)
}

proptest! {
    #[test]
    fn nothing_makes_the_parser_panic(text in "(\\PC|[\n\r\t #=]){0,200}") {
        let _read_or_refused = all(&text);
    }

    #[test]
    fn what_is_written_is_read_back(list in list()) {
        let mut text = String::new();
        for (urls, options) in &list {
            writeln!(text, "{}", urls.join("\t")).unwrap();
            for (option, value) in options {
                writeln!(text, "  {}={value}", OptionName::ALL[*option].as_str()).unwrap();
            }
        }
        let read: Vec<_> = all(&text).unwrap();
        prop_assert_eq!(read.len(), list.len());
        for (entry, (urls, options)) in read.iter().zip(&list) {
            prop_assert_eq!(&entry.urls, urls);
            let written: Vec<_> = options.iter().map(|(name, value)| (OptionName::ALL[*name], value.as_str())).collect();
            let found: Vec<_> = entry.options.iter().map(|option| (option.name, option.value)).collect();
            prop_assert_eq!(found, written);
        }
    }
}
