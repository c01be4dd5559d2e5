//! The texts of `--help` and `--version`.

use std::fmt::Write as _;

use aria2::option::{LETTERS, Row};

pub(super) const USAGE: &str = "Usage: aria2c [OPTIONS] [URI | METALINK_FILE]...\nSee 'aria2c -h'.";

/// Front ends parse the number in the first line; the second line names Svc.
pub(super) fn version() -> String {
    format!(
        "aria2 version {}\nThis is Svc {}, in aria2's place: its dialect, its command line, no torrents and no FTP.\n\n\
        ** Configuration **\nEnabled Features: {}\nHash Algorithms: sha-1, sha-256, sha-512, md5\n",
        aria2::VERSION,
        env!("CARGO_PKG_VERSION"),
        aria2::FEATURES.join(", "),
    )
}

/// The options whose name contains `about`; all for an empty text or one of aria2's tags.
pub(super) fn help(about: &str) -> String {
    let about = if about.starts_with('#') { "" } else { about };
    let mut text = format!(
        "{USAGE}\nWhat each does is in aria2's manual; what differs is in the documentation of Svc.\nOptions:\n"
    );
    let mut line = |letter: Option<char>, name: &str, value: &str| {
        let letter = letter.map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
        let _infallible = writeln!(text, " {letter}--{name}{value}");
    };
    line(Some('v'), "version", "");
    line(Some('h'), "help", "[=WORD]");
    for row in Row::all().iter().filter(|row| row.name().contains(about)) {
        if row.is_refused() {
            continue;
        }
        let letter = LETTERS.iter().find(|(_, name)| *name == row.name());
        let value = if row.stands_alone() { "[=true|false]" } else { "=VALUE" };
        line(letter.map(|(letter, _)| *letter), row.name(), value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_ends_find_the_version_and_people_who_speaks() {
        let version = version();
        let mut lines = version.lines();
        let number = lines.next().unwrap().strip_prefix("aria2 version ").unwrap();
        assert_eq!(number.split('.').filter(|part| part.parse::<u32>().is_ok()).count(), 3);
        assert!(lines.next().unwrap().contains("Svc"));
    }

    #[test]
    fn only_what_is_taken_is_listed() {
        let all = help("#all");
        assert!(all.contains(" -x, --max-connection-per-server=VALUE\n"), "{all}");
        assert!(all.contains("     --enable-rpc[=true|false]\n"), "{all}");
        assert!(!all.contains("rpc-secure"), "{all}");
        assert!(!help("rpc").contains("--split"));
    }
}
