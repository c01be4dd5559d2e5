//! Metalink documents: from a file, from a URL, with mirrors that lie, and documents made to do harm.

use std::{fs, path::Path, process::Command};

use data_encoding::HEXLOWER;
use e2e::Svc;
use sha2::{Digest as _, Sha256};
use support::{Content, Origin, Resource, Version, behaviour};

use crate::place::Place;

const PIECE: usize = 256 * 1024;

fn large() -> Content {
    Content::seeded(81, 4 * 1024 * 1024 + 9)
}

fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// Size, hash and piece hashes of version 4.
fn facts(content: &Content) -> String {
    let bytes = content.to_vec();
    let pieces: Vec<_> = bytes
        .chunks(PIECE)
        .map(|piece| format!("<hash>{}</hash>", hex(piece)))
        .collect();
    format!(
        r#"<size>{}</size><hash type="sha-256">{}</hash><pieces length="{PIECE}" type="sha-256">{}</pieces>"#,
        bytes.len(),
        hex(&bytes),
        pieces.concat()
    )
}

fn file(name: &str, children: &str) -> String {
    format!(r#"<file name="{name}">{children}</file>"#)
}

fn url(priority: u32, url: &str) -> String {
    format!(r#"<url priority="{priority}">{url}</url>"#)
}

fn document(files: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">{files}</metalink>"#
    )
}

/// Writes a document beside the directory of downloads, where `svc get` is not confined to.
fn write(place: &Place, text: &str) -> String {
    let path = place.aside("list.meta4");
    fs::write(&path, text).expect("a temporary directory is writable");
    path.to_str()
        .expect("temporary directories have names in UTF-8")
        .to_owned()
}

fn get(place: &Place) -> Svc {
    Svc::get(place.path()).args(["--retries", "1", "--retry-wait", "0.05"])
}

#[test]
fn a_document_becomes_its_files_from_the_mirrors_that_are_there() {
    let origin = Origin::start(vec![
        Resource::new("/l.iso", large()),
        Resource::new("/s.txt", Content::bytes(*b"abc")),
    ]);
    let place = Place::new();
    let two = [url(1, "http://127.0.0.1:9/l.iso"), url(2, &origin.url("/l.iso"))].concat();
    let files = [
        file("large.iso", &(facts(&large()) + &two)),
        file("deep/er/small.txt", &url(1, &origin.url("/s.txt"))),
    ];
    let name = write(&place, &document(&files.concat()));
    get(&place).arg(&name).run().assert_success();
    place.assert_file("large.iso", &large());
    place.assert_file("deep/er/small.txt", &Content::bytes(*b"abc"));
    // aria2c makes the same of it.
    let other = Place::new();
    let aria2c = Command::new("/usr/bin/aria2c")
        .args(["--no-conf", "-q", "--connect-timeout=2", "-d"])
        .arg(other.path())
        .arg("-M")
        .arg(&name)
        .status();
    assert!(aria2c.expect("aria2c is there").success());
    other.assert_file("large.iso", &large());
    other.assert_file("deep/er/small.txt", &Content::bytes(*b"abc"));
}

#[test]
fn version_3_is_read_as_well() {
    let origin = Origin::start(vec![Resource::new("/s.txt", Content::bytes(*b"abc"))]);
    let place = Place::new();
    let text = format!(
        r#"<metalink version="3.0" xmlns="http://www.metalinker.org/"><files><file name="s.txt"><size>3</size>
        <verification><hash type="sha1">a9993e364706816aba3e25717850c26c9cd0d89d</hash></verification>
        <resources maxconnections="1"><url type="http" preference="1">http://127.0.0.1:9/s</url>
        <url type="http" preference="100">{}</url></resources></file></files></metalink>"#,
        origin.url("/s.txt")
    );
    get(&place).arg(write(&place, &text)).run().assert_success();
    place.assert_file("s.txt", &Content::bytes(*b"abc"));
}

#[test]
fn a_mirror_that_sends_wrong_bytes_is_named_and_only_wrong_pieces_are_fetched_again() {
    let mut bytes = large().to_vec();
    bytes.chunks_mut(PIECE).for_each(|piece| piece[3] = !piece[3]);
    let wrong = Content::bytes(bytes);
    let version = move |_: &support::Visit| Version::numbered(wrong.clone(), 1);
    let lying = Origin::start(vec![Resource::changing("/f", version).with(behaviour::paced(8 << 20))]);
    let honest = Origin::start(vec![Resource::new("/f", large()).with(behaviour::paced(8 << 20))]);
    let place = Place::new();
    let urls = [url(1, &lying.url("/f")), url(2, &honest.url("/f"))].concat();
    let name = write(&place, &document(&file("f.iso", &(facts(&large()) + &urls))));
    let run = get(&place).args(["--segments", "4", "-k", "256K"]).arg(name).run();
    run.assert_success();
    place.assert_file("f.iso", &large());
    let notices: Vec<_> = run
        .events()
        .into_iter()
        .filter(|event| event["event"] == "notice")
        .collect();
    let named = notices.iter().any(|notice| {
        let text = notice["message"].as_str().unwrap_or_default();
        text.starts_with(&lying.url("/f")) && text.contains("no longer used")
    });
    assert!(named, "{notices:?}");
    assert!(lying.bytes_sent() > 0);
    let again = honest.bytes_sent() + lying.bytes_sent() - large().len();
    assert!(
        again <= lying.bytes_sent() + 6 * PIECE as u64,
        "{again} bytes were fetched again"
    );
}

#[test]
fn a_document_from_a_url_is_followed_unless_it_is_wanted_itself() {
    let origin = Origin::start(vec![
        Resource::new("/pub/s.txt", Content::bytes(*b"abc")),
        Resource::new(
            "/pub/list.meta4",
            Content::bytes(document(&file("in/s.txt", "<url>s.txt</url>"))),
        ),
        Resource::new(
            "/pub/bad.meta4",
            Content::bytes(document(&file("../s.txt", "<url>s.txt</url>"))),
        ),
        Resource::new(
            "/pub/again.meta4",
            Content::bytes(document(&file("again.meta4", "<url>list.meta4</url>"))),
        ),
    ]);
    let place = Place::new();
    get(&place).arg(origin.url("/pub/list.meta4")).run().assert_success();
    assert_eq!(place.names(), ["in", "list.meta4"]);
    place.assert_file("in/s.txt", &Content::bytes(*b"abc"));
    let alone = Place::new();
    get(&alone)
        .arg("--no-follow-metalink")
        .arg(origin.url("/pub/list.meta4"))
        .run()
        .assert_success();
    assert_eq!(alone.names(), ["list.meta4"]);
    // The document is there, and what it wants is refused.
    let bad = Place::new();
    let run = get(&bad).arg(origin.url("/pub/bad.meta4")).run();
    assert_ne!(run.code, Some(0));
    assert!(
        run.stderr.contains("\"../s.txt\" leaves its directory"),
        "{}",
        run.stderr
    );
    assert_eq!((bad.names(), bad.escaped()), (vec!["bad.meta4".to_owned()], vec![]));
    // A document in a document is a file.
    let again = Place::new();
    get(&again).arg(origin.url("/pub/again.meta4")).run().assert_success();
    assert_eq!(again.names(), ["again (1).meta4", "again.meta4"]);
}

/// A followed document may not lead into the user's own network: only its own host is one that the user named.
#[test]
fn a_document_from_a_url_leads_to_no_other_private_host() {
    let inner = Origin::start(vec![Resource::new("/f", large())]);
    let elsewhere = inner.url("/f").replace("127.0.0.1", "127.0.0.2");
    let origin = Origin::start(vec![Resource::new(
        "/list.meta4",
        Content::bytes(document(&file("f", &url(1, &elsewhere)))),
    )]);
    let place = Place::new();
    let run = get(&place).arg(origin.url("/list.meta4")).run();
    assert_ne!(run.code, Some(0));
    assert_eq!(inner.requests().len(), 0);
    assert_eq!(place.names(), ["list.meta4"]);
}

#[test]
fn secrets_do_not_go_with_a_document_whose_sites_the_user_did_not_choose() {
    let origin = Origin::start(vec![
        Resource::new("/f", large()),
        Resource::new(
            "/pub/list.meta4",
            Content::bytes(document(&file("f", "<url>../f</url>"))),
        ),
    ]);
    let place = Place::new();
    let name = write(&place, &document(&file("f", &url(1, &origin.url("/f")))));
    for options in [
        &["--http-user=me"][..],
        &["--cookie=a=1"],
        &["--header=X-Key: 1"],
        &["--data=a=1"],
    ] {
        let run = get(&place).args(options).arg(&name).run();
        assert_eq!(run.code, Some(32), "{options:?}: {}", run.stderr);
        assert!(run.stderr.contains("it chooses the sites"), "{}", run.stderr);
    }
    assert_eq!(origin.requests().len(), 0);
    get(&place)
        .args(["--cookie=a=1", &origin.url("/pub/list.meta4")])
        .run()
        .assert_success();
    let of_file: Vec<_> = origin
        .requests()
        .into_iter()
        .filter(|request| request.path() == "/f")
        .collect();
    assert!(!of_file.is_empty() && of_file.iter().all(|request| request.header("cookie").is_none()));
}

/// Documents made to do harm: what of them is refused, and the words that name it. None of them writes or asks anything.
#[test]
#[expect(clippy::too_many_lines, reason = "one line for each document")]
fn documents_made_to_do_harm_are_refused_by_what_is_wrong_with_them() {
    let origin = Origin::start(vec![Resource::new("/f", large())]);
    let there = url(1, &origin.url("/f"));
    let named = |name: &str| document(&file(name, &there));
    let with = |children: &str| document(&file("f", &format!("{children}{there}")));
    let sha1 = "a9993e364706816aba3e25717850c26c9cd0d89d";
    let many = "<file/>".repeat(10_001);
    let cases: Vec<(String, &str)> = vec![
        (named("../f"), "leaves its directory"),
        (named("a/../../f"), "leaves its directory"),
        (named("..\\f"), "leaves its directory"),
        (named("./f"), "leaves its directory"),
        (named("/tmp/f"), "absolute path"),
        (named("C:\\f"), "absolute path"),
        (named("\\\\host\\f"), "absolute path"),
        (named("a&#0;b"), "is not XML"),
        (named("a&#10;b"), "control character"),
        (named("a&#27;[2Jb"), "control character"),
        (named("CON"), "reserved for a device"),
        (named("a/lpt1.txt"), "reserved for a device"),
        (named(".bashrc"), "is hidden"),
        (named(".config/autostart/x.desktop"), "is hidden"),
        (named("f."), "ends with a dot"),
        (named("f&#32;/g"), "space"),
        (named("file:stream"), "not allowed"),
        (named("f.svcpart"), "not one that is given"),
        (named(""), "empty"),
        (named("a//b"), "empty"),
        (named(&"x".repeat(300)), "too long"),
        (document(&(file("f", &there) + &file("F", &there))), "another file"),
        (document(&(file("f", &there) + &file("f/g", &there))), "another file"),
        (document(&(file("d/f", &there) + &file("D/g", &there))), "another file"),
        (with("<size>-3</size>"), "no number of bytes"),
        (with("<size>9999999999999999999999</size>"), "no number of bytes"),
        (with("<hash type='sha-256'>12</hash>"), "no sha-256"),
        (
            with(&format!("<pieces type='sha-1' length='0'><hash>{sha1}</hash></pieces>")),
            "the least is 1",
        ),
        (
            with(&format!("<pieces type='sha-1'><hash>{sha1}</hash></pieces>")),
            "without a length",
        ),
        (
            with("<pieces type='sha-1' length='4'><hash>xx</hash></pieces>"),
            "no sha-1",
        ),
        (
            with(&format!(
                "<size>1000000000</size><pieces type='sha-1' length='4'><hash>{sha1}</hash></pieces>"
            )),
            "1 piece hashes of 4 bytes for 1000000000 bytes",
        ),
        (with(&"<url>http://a.test/f</url>".repeat(5000)), "more than 4096 URLs"),
        (document(&many), "10001 files; the limit is 10000"),
        ("<metalink><file name='f'>".to_owned(), "is not XML"),
        (format!("<!DOCTYPE m [<!ENTITY a 'b'>]>{}", named("&a;")), "is not XML"),
        (
            format!("<!DOCTYPE m SYSTEM 'file:///etc/passwd'>{}", named("f")),
            "is not XML",
        ),
        (named("&a;"), "is not XML"),
        (format!("<metalink>{}", "<a>".repeat(100_000)), "is not XML"),
        ("<html><body>Not found</body></html>".to_owned(), "no Metalink"),
        (document(""), "no file with a URL"),
        (
            document(&file("f", "<url>javascript:alert(1)</url>")),
            "no file with a URL",
        ),
        (
            document(&file("f", "<url>file:///etc/passwd</url>")),
            "no file with a URL",
        ),
        (" ".repeat(17 * 1024 * 1024), "longer than 16 MiB"),
    ];
    assert!(cases.len() >= 40);
    for (text, words) in cases {
        let place = Place::new();
        let name = write(&place, &text);
        let run = get(&place).arg(&name).run();
        let start = &text[..text.floor_char_boundary(200)];
        assert_eq!(run.code, Some(32), "{start}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{words:?} is not in {}", run.stderr);
        assert!(run.stderr.len() < 4096 && !run.stderr.contains('\u{1b}'));
        assert_eq!(place.names(), Vec::<String>::new(), "{start}");
        fs::remove_file(&name).unwrap();
        assert_eq!(place.escaped(), Vec::<String>::new(), "{start}");
    }
    assert_eq!(origin.requests().len(), 0);
    let missing = get(&Place::new()).arg("/nowhere/x.meta4").run();
    assert_eq!(missing.code, Some(32));
    assert!(missing.stderr.contains("/nowhere/x.meta4") && !Path::new("/nowhere").exists());
}
