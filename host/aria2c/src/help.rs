//! The texts of `--help` and `--version`.

use std::fmt::Write as _;

use aria2::option::{LETTERS, Row};

pub(super) const USAGE: &str =
    "Usage: aria2c [OPTIONS] [URI | MAGNET | TORRENT_FILE | METALINK_FILE]...\nSee 'aria2c -h'.";

/// Front ends parse the number in the first line; the second line names Svc.
pub(super) fn version() -> String {
    format!(
        "aria2 version {}\nThis is Svc {}, in aria2's place: its dialect, its command line.\n\n\
        ** Configuration **\nEnabled Features: {}\nHash Algorithms: sha-1, sha-256, sha-512, md5\n",
        aria2::VERSION,
        env!("CARGO_PKG_VERSION"),
        aria2::FEATURES.join(", "),
    )
}

/// The options whose name contains `about`; all for an empty text or one of aria2's tags. Those that do nothing are
/// listed with the reason.
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
    let rows = || Row::all().iter().filter(|row| row.name().contains(about));
    for row in rows() {
        if row.is_refused() || row.is_inert() {
            continue;
        }
        let letter = LETTERS.iter().find(|(_, name)| *name == row.name());
        let value = if row.stands_alone() { "[=true|false]" } else { "=VALUE" };
        line(letter.map(|(letter, _)| *letter), row.name(), value);
    }
    for (title, reason) in [
        ("Accepted without effect", Row::reason_of_harmless as fn(&Row) -> _),
        ("Refused, unless they have aria2's default", Row::reason_of_refusal),
    ] {
        let _infallible = writeln!(text, "{title}:");
        for (row, reason) in rows().filter_map(|row| Some((row, reason(row)?))) {
            let _infallible = writeln!(text, "     --{}: {reason}", row.name());
        }
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
    fn what_acts_is_listed_and_what_does_not_has_its_reason() {
        let all = help("#all");
        assert!(all.contains(" -x, --max-connection-per-server=VALUE\n"), "{all}");
        assert!(all.contains("     --enable-rpc[=true|false]\n"), "{all}");
        let (acting, rest) = all.split_once("Accepted without effect:\n").unwrap();
        let (harmless, refused) = rest.split_once("Refused, unless").unwrap();
        for (name, group) in [
            ("max-tries", acting),
            ("uri-selector", harmless),
            ("rpc-secure", refused),
        ] {
            let is_in = |group: &str| group.contains(&format!("--{name}"));
            let groups = [acting, harmless, refused];
            assert!(
                is_in(group) && groups.iter().filter(|text| is_in(text)).count() == 1,
                "{name}"
            );
        }
        assert!(!help("rpc").contains("--split"));
    }
}
