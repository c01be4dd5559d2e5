//! Pages as real servers made them (styles and scripts taken out), all of one directory.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use open_directory::OpenDirectory;
use svc_plugin::{
    Error,
    test::{Host, Listing, Page},
};

const ROOT: &str = "https://example.org/pub/";

fn index(title: &str, links: &str) -> Page {
    Page::html(format!(
        "<title>Index of {title}</title><pre><a href=\"../\">../</a>\n{links}</pre>"
    ))
}

/// Resolves `page` as the directory at [`ROOT`], whose folder holds one file.
fn resolve(page: &str) -> Listing {
    let host = Host::new()
        .page(ROOT, Page::new("text/html; charset=utf-8", page))
        .page(
            "https://example.org/pub/sub%20folder/",
            index("/pub/sub folder/", "<a href=\"inner.txt\">inner.txt</a>"),
        );
    host.resolve::<OpenDirectory>(ROOT).unwrap()
}

/// Whether a server tells exact sizes.
#[derive(PartialEq)]
enum Sizes {
    Exact,
    None,
}

fn check(page: &str, sizes: &Sizes) {
    let listing = resolve(page);
    let mut entries: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| (entry.folder.as_str(), entry.name.as_str(), entry.size))
        .collect();
    entries.sort_unstable();
    let size = |bytes| (*sizes == Sizes::Exact).then_some(bytes);
    assert_eq!(
        entries,
        [
            ("", "a file.txt", size(6)),
            ("", "größe & #1%.bin", size(123_456)),
            ("sub folder", "inner.txt", None),
        ]
    );
    let link = |name: &str| {
        let entry = listing.entries.iter().find(|entry| entry.name == name).unwrap();
        entry.link.as_ref().unwrap().url.clone()
    };
    assert_eq!(link("a file.txt"), "https://example.org/pub/a%20file.txt");
    // Servers spell what they escape in different ways.
    let escaped = link("größe & #1%.bin").to_ascii_lowercase();
    assert!(
        escaped.starts_with("https://example.org/pub/gr%c3%b6%c3%9fe%20"),
        "{escaped}"
    );
    assert_eq!(listing.title.as_deref(), Some("pub"));
}

#[test]
fn apache_with_a_table() {
    check(include_str!("pages/apache-table.html"), &Sizes::None);
}

#[test]
fn apache_with_plain_text() {
    check(include_str!("pages/apache-pre.html"), &Sizes::None);
}

#[test]
fn nginx() {
    check(include_str!("pages/nginx.html"), &Sizes::Exact);
}

#[test]
fn caddy() {
    check(include_str!("pages/caddy.html"), &Sizes::Exact);
}

#[test]
fn lighttpd() {
    check(include_str!("pages/lighttpd.html"), &Sizes::None);
}

#[test]
fn python() {
    check(include_str!("pages/python.html"), &Sizes::None);
}

#[test]
fn other_pages_and_files_are_left_to_others() {
    let resolve = |page: Page| Host::new().page(ROOT, page).resolve::<OpenDirectory>(ROOT);
    let blog = Page::html("<title>My blog</title><h1>Hello</h1><a href=post>read</a>");
    assert_eq!(resolve(blog).unwrap_err(), Error::NotMatched);
    assert_eq!(resolve(Page::json("{}")).unwrap_err(), Error::NotMatched);
    let file = Page::new("application/zip", "PK");
    let host = Host::new().page("https://example.org/a.zip", file);
    assert_eq!(
        host.resolve::<OpenDirectory>("https://example.org/a.zip").unwrap_err(),
        Error::NotMatched
    );
    assert_eq!(host.sent()[0].method, "HEAD");
}

#[test]
fn a_directory_without_its_slash_is_found() {
    let host = Host::new()
        .page("https://example.org/pub", Page::redirect("/pub/"))
        .page(ROOT, index("/pub/", "<a href=\"a\">a</a>"));
    assert_eq!(
        host.resolve::<OpenDirectory>("https://example.org/pub")
            .unwrap()
            .entries
            .len(),
        1
    );
}

#[test]
fn links_that_lead_elsewhere_are_not_followed() {
    let links = r##"<a href="?C=N;O=D">Name</a> <a href="/">up</a> <a href="../other/">x</a> <a href="https://evil.example/pub/x">x</a>
        <a href="//evil.example/pub/y">x</a> <a href="#top">x</a> <a href="mailto:a@example.org">x</a> <a href="a/b">deep</a>
        <a href="javascript:alert(1)">x</a> <a href="https://example.org/pub/mine">mine</a> <a href="mine#again">mine</a>"##;
    let host = Host::new().page(ROOT, index("/pub/", links));
    let listing = host.resolve::<OpenDirectory>(ROOT).unwrap();
    let names: Vec<_> = listing.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["mine"]);
}

#[test]
fn folders_are_walked_as_deep_as_the_user_wants_and_each_once() {
    let deeper = |depth: &str| {
        let mut host = Host::new().setting("depth", depth);
        let mut url = ROOT.to_owned();
        for _ in 0..12 {
            host = host.page(
                &url,
                index(&url, "<a href=\"f\">f</a> <a href=\"d/\">d</a> <a href=\"./\">here</a>"),
            );
            url.push_str("d/");
        }
        host.resolve::<OpenDirectory>(ROOT).unwrap().entries
    };
    assert_eq!(deeper("0").len(), 1);
    assert_eq!(deeper("2").len(), 3);
    assert_eq!(deeper("100").len(), 9);
    assert_eq!(deeper("2")[2].folder, "d/d");
}

#[test]
fn a_folder_that_cannot_be_read_is_left_out() {
    let host = Host::new()
        .page(
            ROOT,
            index("/pub/", "<a href=\"a\">a</a> <a href=\"secret/\">secret</a>"),
        )
        .page("https://example.org/pub/secret/", Page::html("").status(403));
    assert_eq!(host.resolve::<OpenDirectory>(ROOT).unwrap().entries.len(), 1);
    assert!(
        host.log().iter().any(|line| line.contains("secret")),
        "{:?}",
        host.log()
    );
}

#[test]
fn a_preview_reads_one_page() {
    let host = Host::new().page(ROOT, index("/pub/", "<a href=\"a\">a</a> <a href=\"b/\">b</a>"));
    assert_eq!(host.preview::<OpenDirectory>(ROOT).unwrap().entries.len(), 1);
    assert_eq!(host.sent().len(), 1);
}
