//! Formats of aria2's files: `aria2.conf`, and input files, which session files are as well. Pure: opens no file.

use std::path::{Path, PathBuf};

use crate::option::{Options, Refusal, Row};

/// The content of an `aria2.conf`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Conf {
    /// Those that are options.
    pub options: Options,
    /// Lines that are not an option of aria2.
    pub unknown: Vec<String>,
}

/// A download of an input file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Mirrors of the same file.
    pub uris: Vec<String>,
    /// The options of this download.
    pub options: Options,
    /// Lines below it that are not options of a download.
    pub unknown: Vec<String>,
    /// Why options below it are rejected.
    pub refused: Vec<Refusal>,
}

/// Parses `aria2.conf`: one option per line. `home` replaces `${HOME}`.
pub fn conf(text: &str, home: &str) -> Result<Conf, Refusal> {
    let mut conf = Conf::default();
    for line in lines(text).map(str::trim) {
        match option(line) {
            Some((row, value)) => {
                let value = row.read_at_start(&value.replace("${HOME}", home))?;
                conf.options.put(row, value, true);
            }
            None => conf.unknown.push(line.to_owned()),
        }
    }
    Ok(conf)
}

/// Parses an input file: a line of TAB-separated URIs, then indented lines with one option each.
pub fn list(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in lines(text) {
        if !line.starts_with([' ', '\t']) {
            let uris = line.split('\t').map(str::trim).filter(|uri| !uri.is_empty());
            entries.push(Entry {
                uris: uris.map(str::to_owned).collect(),
                ..Entry::default()
            });
            continue;
        }
        // Options above the first URI are ignored.
        let Some(entry) = entries.last_mut() else { continue };
        match option(line.trim()).filter(|(row, _)| row.allowed_in_input_file()) {
            Some((row, value)) => match row.read_at_start(value) {
                Ok(value) => entry.options.put(row, value, true),
                Err(refusal) => entry.refused.push(refusal),
            },
            None => entry.unknown.push(line.to_owned()),
        }
    }
    entries
}

/// Lines that are neither blank nor comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

fn option(line: &str) -> Option<(&'static Row, &str)> {
    let (name, value) = line.split_once('=')?;
    Some((Row::of(name.trim())?, value.trim()))
}

/// Formats an entry of an input file.
pub fn entry(uris: &[String], options: &Options) -> String {
    let mut text: String = uris.iter().flat_map(|uri| [uri, "\t"]).collect();
    text.push('\n');
    for (name, value) in options.iter() {
        for line in value.lines() {
            text.extend([" ", name, "=", line, "\n"]);
        }
    }
    text
}

/// The suffix of aria2's control files.
const CONTROL_SUFFIX: &str = ".aria2";

/// The control file of `path`, in which aria2 records the received bytes.
pub fn control_file(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(CONTROL_SUFFIX);
    name.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_has_mirrors_and_options_below_them() {
        let text = "# mine\n out=nobody's\nhttp://a/f\thttp://b/f\t\n  out=one\n\theader=A: b\n header=C: d\n bogus=1\n\n\
            http://c/g\r\n split=3\n enable-rpc=true\n";
        let [one, two] = &list(text)[..] else {
            panic!("there are two")
        };
        assert_eq!(one.uris, ["http://a/f", "http://b/f"]);
        assert_eq!(one.options.get("out"), Some("one"));
        assert_eq!(one.options.get("header"), Some("A: b\nC: d"));
        assert_eq!(one.unknown, [" bogus=1"]);
        assert_eq!(two.uris, ["http://c/g"]);
        assert_eq!(two.options.get("split"), Some("3"));
        assert_eq!(two.unknown, [" enable-rpc=true"]);
        let [bad] = &list("http://a/f\n split=0\n dry-run=true\n")[..] else {
            panic!("there is one")
        };
        assert_eq!((bad.refused.len(), &bad.options), (2, &Options::default()));
    }

    #[test]
    fn what_is_no_option_of_a_configuration_is_named_and_what_is_no_value_is_refused() {
        let conf = conf("nope=1\n#c\nsplit=3\nx\n dir = ${HOME}/d\nenable-rpc=true\n", "/h").unwrap();
        assert_eq!(conf.unknown, ["nope=1", "x"]);
        assert_eq!(conf.options.get("split"), Some("3"));
        assert_eq!(conf.options.get("dir"), Some("/h/d"));
        assert_eq!(conf.options.get("enable-rpc"), Some("true"));
        assert!(super::super::files::conf("split=0\n", "").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            uris in prop::collection::vec("http://[a-z]{1,8}/[a-z0-9%]{0,8}", 1..4),
            out in "[a-z ]{0,4}[a-z]{1,8}",
            headers in prop::collection::vec("[A-Z][a-z]{0,5}: [ -~]{0,10}[!-~]", 0..3),
        ) {
            let mut options = Options::default();
            options.put(Row::of("out").unwrap(), out.trim().to_owned(), true);
            for header in &headers {
                options.put(Row::of("header").unwrap(), header.clone(), true);
            }
            let read = list(&entry(&uris, &options));
            prop_assert_eq!(read, vec![Entry { uris, options, ..Entry::default() }]);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-z=\\t\\n #:/\\r]{0,60}") {
            let _any = (list(&text), conf(&text, "/h"));
        }
    }
}
