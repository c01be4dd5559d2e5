//! The table of hostile origins as a page of the documentation, generated from the table itself.

use std::{fmt::Write as _, path::Path};

use e2e::setting;
use support::{Case, Expect};

#[test]
fn the_page_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/docs/hostile-origins.md");
    let page = page();
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

/// The number in the README is that of the table.
#[test]
fn the_readme_counts_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let link = "](host/docs/hostile-origins.md)";
    let before = readme.split(link).next().expect("the README links to the page");
    let text = before.rsplit('[').next().expect("links have texts");
    let number = text.split(' ').next().expect("the text begins with the number");
    assert_eq!(number, count().to_string(), "in the README: [{text}{link}");
}

fn count() -> usize {
    support::themes().iter().map(|(_, cases)| cases.len()).sum()
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
    let end = match case.expect {
        Expect::Identical => "identical".to_owned(),
        Expect::Error(kinds) => format!("error: {}", codes(kinds)),
        Expect::IdenticalOrError(kinds) => format!("identical, or error: {}", codes(kinds)),
    };
    format!("| `{}` | {} | {end} |", case.name, case.what)
}

fn codes(kinds: &[&str]) -> String {
    kinds
        .iter()
        .map(|kind| format!("`{kind}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
