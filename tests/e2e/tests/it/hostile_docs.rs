//! The tables of hostile origins and hostile plugins as pages of the documentation, generated from the tables themselves.

use std::{fmt::Write as _, path::Path};

use e2e::setting;
use support::{Case, Expect};

use crate::{attack::hostile_plugins, hostile_sftp};

#[test]
fn the_pages_say_what_the_tables_say() {
    for (name, page) in [
        ("origins", page()),
        ("ftp", ftp_page()),
        ("sftp", hostile_sftp::page()),
        ("plugins", hostile_plugins::page()),
    ] {
        let path = root().join(format!("host/docs/hostile-{name}.md"));
        if setting::updates_expected() {
            std::fs::write(&path, &page).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == page,
            "{} is out of date: UPDATE_EXPECT=1 rewrites it",
            path.display()
        );
    }
}

/// The numbers in the README are those of the tables.
#[test]
fn the_readme_counts_them() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    for (name, count) in [
        ("origins", count()),
        ("ftp", ftp_count()),
        ("sftp", hostile_sftp::count()),
        ("plugins", hostile_plugins::count()),
    ] {
        let link = format!("](host/docs/hostile-{name}.md)");
        let texts = readme
            .match_indices(&link)
            .map(|(at, _)| readme[..at].rsplit('[').next());
        let numbers: Vec<usize> = texts.filter_map(|text| text?.split(' ').next()?.parse().ok()).collect();
        assert_eq!(numbers, [count], "in the README: {link}");
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn count() -> usize {
    support::themes().iter().map(|(_, cases)| cases.len()).sum()
}

fn ftp_count() -> usize {
    support::ftp_themes().iter().map(|(_, cases)| cases.len()).sum()
}

fn ftp_page() -> String {
    let count = ftp_count();
    let mut page = format!(
        "# Hostile servers of FTP\n\n\
         <!-- Generated from the table in `tests/support`; `UPDATE_EXPECT=1` rewrites it. -->\n\n\
         {count} ways in which a server can misbehave, and what a download then ends with. Every one is run against the \
         real\nexecutable, over as many connections as it chooses and over four. *Identical* means: every file is byte for byte \
         the\nserver's, one version of it as a whole. *Error* means: the download fails with one of these codes, and no file that \
         looks\nfinished is left.\n"
    );
    for (theme, cases) in support::ftp_themes() {
        writeln!(page, "\n## {theme}\n\n| Case | The server … | Ends |\n|---|---|---|").expect("writing to a string");
        for case in cases {
            let end = end(case.expect);
            writeln!(page, "| `{}` | {} | {end} |", case.name, case.what).expect("writing to a string");
        }
    }
    page
}

fn page() -> String {
    let themes = support::themes();
    let count = count();
    let mut page = format!(
        "# Hostile origins\n\n\
         <!-- Generated from the table in `tests/support`; `UPDATE_EXPECT=1` rewrites it. -->\n\n\
         {count} ways in which a server can misbehave, and what a download then ends with. Every one is run against the \
         real\nexecutable, automatically segmented and in forced segments. *Identical* means: the file is byte for byte \
         the origin's, one version\nof it as a whole. *Error* means: the download fails with one of these codes, and \
         no file that looks finished is left.\n"
    );
    for (theme, cases) in themes {
        writeln!(page, "\n## {theme}\n\n| Case | The origin … | Ends |\n|---|---|---|").expect("writing to a string");
        for case in cases {
            writeln!(page, "{}", row(&case)).expect("writing to a string");
        }
    }
    page
}

fn row(case: &Case) -> String {
    let end = end(case.expect);
    format!("| `{}` | {} | {end} |", case.name, case.what)
}

fn end(expect: Expect) -> String {
    match expect {
        Expect::Identical => "identical".to_owned(),
        Expect::Error(kinds) => format!("error: {}", codes(kinds)),
        Expect::IdenticalOrError(kinds) => format!("identical, or error: {}", codes(kinds)),
    }
}

fn codes(kinds: &[&str]) -> String {
    kinds
        .iter()
        .map(|kind| format!("`{kind}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
