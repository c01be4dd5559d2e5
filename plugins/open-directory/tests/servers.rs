//! What servers show, and what is made of it.

use open_directory::OpenDirectory;
use svc_plugin::{
    Error, LeftOut,
    test::{Host, Page, replay_all},
};

const ROOT: &str = "https://example.org/pub/";

fn index(title: &str, links: &str) -> Page {
    Page::html(format!(
        "<title>Index of {title}</title><pre><a href=\"../\">../</a>\n{links}</pre>"
    ))
}

/// Pages as real servers made them (styles and scripts taken out), all of one directory.
#[test]
fn fixtures() {
    replay_all::<OpenDirectory>("fixtures");
}

#[test]
fn a_file_is_left_to_others_and_not_fetched() {
    let host = Host::new().page("https://example.org/a.zip", Page::new("application/zip", "PK"));
    let refused = host.resolve::<OpenDirectory>("https://example.org/a.zip");
    assert_eq!(refused.unwrap_err(), Error::NotMatched);
    assert_eq!(host.sent()[0].method, "HEAD");
}

#[test]
fn a_directory_without_its_slash_is_found() {
    let host = Host::new()
        .page("https://example.org/pub", Page::redirect("/pub/"))
        .page(ROOT, index("/pub/", "<a href=\"a\">a</a>"));
    let listing = host.resolve::<OpenDirectory>("https://example.org/pub").unwrap();
    assert_eq!(listing.entries.len(), 1);
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
        let listing = host.resolve::<OpenDirectory>(ROOT).unwrap();
        assert_eq!(listing.left_out[0].kind, LeftOut::TooDeep);
        listing.entries
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
    let listing = host.resolve::<OpenDirectory>(ROOT).unwrap();
    assert_eq!(listing.entries.len(), 1);
    let left_out = &listing.left_out[..];
    assert!(
        matches!(left_out, [one] if one.kind == LeftOut::Unreadable && one.name == "secret"),
        "{left_out:?}"
    );
    assert!(
        host.log().iter().any(|line| line.contains("secret")),
        "{:?}",
        host.log()
    );
}
