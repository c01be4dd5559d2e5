//! Torrents that must not be downloaded as they are: each is refused by name, before anything is written.

use std::fs;

use e2e::Home;
use serde_json::json;
use support::swarm::MakeTorrent;

use super::{BASE64, Shared, below, refusal, serve};

/// A value of bencoding.
enum Ben<'a> {
    Number(i64),
    Text(&'a [u8]),
    List(Vec<Ben<'a>>),
    /// Keys in order.
    Dict(Vec<(&'a str, Ben<'a>)>),
}

impl Ben<'_> {
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Number(number) => to.extend(format!("i{number}e").bytes()),
            Self::Text(text) => {
                to.extend(format!("{}:", text.len()).bytes());
                to.extend_from_slice(text);
            }
            Self::List(items) => {
                to.push(b'l');
                for item in items {
                    item.encode(to);
                }
                to.push(b'e');
            }
            Self::Dict(entries) => {
                to.push(b'd');
                for (key, value) in entries {
                    Ben::Text(key.as_bytes()).encode(to);
                    value.encode(to);
                }
                to.push(b'e');
            }
        }
    }
}

/// A torrent with these entries of its info dictionary besides its pieces, which are wrong but as many as there must be.
fn torrent(info: Vec<(&str, Ben<'_>)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Ben::Dict(vec![("info", Ben::Dict(info))]).encode(&mut bytes);
    bytes
}

const HASH: &[u8] = &[7; 20];

/// A torrent of files with these paths, of five bytes each.
fn of_files(paths: &[&[&[u8]]]) -> Vec<u8> {
    let files = paths.iter().map(|path| {
        let path = path.iter().map(|part| Ben::Text(part)).collect();
        Ben::Dict(vec![("length", Ben::Number(5)), ("path", Ben::List(path))])
    });
    torrent(vec![
        ("files", Ben::List(files.collect())),
        ("name", Ben::Text(b"top")),
        ("piece length", Ben::Number(16384)),
        ("pieces", Ben::Text(HASH)),
    ])
}

fn single(name: &[u8], length: i64, piece: i64) -> Vec<u8> {
    torrent(vec![
        ("length", Ben::Number(length)),
        ("name", Ben::Text(name)),
        ("piece length", Ben::Number(piece)),
        ("pieces", Ben::Text(HASH)),
    ])
}

#[test]
fn what_leaves_its_directory_or_cannot_be_is_refused_by_name() {
    let home = Home::new();
    let service = serve(&home);
    fs::create_dir(home.path().join("outside")).unwrap();
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("up", of_files(&[&[b"..", b"outside", b"x"]]), ".."),
        ("up in a part", of_files(&[&[b"a/../../x"]]), "a/../../x"),
        ("absolute", of_files(&[&[b"/etc/x"]]), "/etc/x"),
        ("an empty part", of_files(&[&[b"", b"etc", b"x"]]), "empty name"),
        ("NUL", of_files(&[&[b"a\0b"]]), "a"),
        ("reserved", of_files(&[&[b"con"]]), "con"),
        ("a drive", of_files(&[&[b"C:\\x"]]), "C:"),
        ("twice", of_files(&[&[b"same"], &[b"same"]]), "same"),
        ("twice but for case", of_files(&[&[b"same"], &[b"SAME"]]), "SAME"),
        ("file and directory", of_files(&[&[b"same"], &[b"same", b"x"]]), "same"),
        ("a name that leaves", single(b"../x", 5, 16384), "../x"),
        ("piece length 0", single(b"x", 5, 0), "piece length"),
        ("piece length below 0", single(b"x", 5, -16384), "piece length"),
        ("too few hashes", single(b"x", 1 << 20, 16384), "pieces"),
        ("10^9 pieces", single(b"x", 16384 * 1_000_000_000, 16384), "pieces"),
        ("length below 0", single(b"x", -5, 16384), "length"),
        ("no torrent", b"<html>".to_vec(), "torrent"),
    ];
    let mut wrong = Vec::new();
    for (name, bytes, expected) in &cases {
        let request = json!({"url": "", "torrentB64": BASE64.encode(bytes)});
        let message = refusal(&service, &request);
        if !message.contains(expected) {
            wrong.push(format!("{name}: {message}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(service.call("GET", "/api/v1/tasks", None), json!([]));
    assert_eq!(below(&home.downloads()), Vec::<String>::new());
    assert_eq!(below(&home.path().join("outside")), Vec::<String>::new());
}

#[test]
fn version_2_is_refused_by_name_and_a_hybrid_is_version_1() {
    let home = Home::new();
    let service = serve(&home);
    let version_2 = MakeTorrent {
        version: "v2",
        ..MakeTorrent::default()
    };
    let only = Shared::made_so(51, 300_000, &version_2);
    let message = refusal(&service, &json!({"url": "", "torrentB64": only.base64()}));
    assert!(message.contains("version 2"), "{message}");
    let magnet = format!("magnet:?xt=urn:btmh:1220{}", "ab".repeat(32));
    let message = refusal(&service, &json!({"url": magnet}));
    assert!(message.contains("version 2"), "{message}");

    let hybrid = MakeTorrent {
        version: "hybrid",
        ..MakeTorrent::default()
    };
    let mut both = Shared::made_so(52, 300_000, &hybrid);
    let seeder = both.seed(&[]);
    let request = json!({
        "url": format!("magnet:?xt=urn:btih:{}{}", both.made.hash, super::peers(&[seeder])),
    });
    let id = service.create(&request);
    super::wait_until_complete(&service, &id);
    both.check(&home.downloads().join("one.bin"));
}

#[test]
fn links_that_name_no_torrent_are_refused() {
    let home = Home::new();
    let service = serve(&home);
    for (url, expected) in [
        ("magnet:?dn=x", "info hash"),
        ("magnet:?xt=urn:btih:123", "info hash"),
        ("magnet:?xt=urn:sha1:YNCKHTQCWBTRNJIV4WNAE52SJUQCZO5C", "info hash"),
    ] {
        let message = refusal(&service, &json!({"url": url}));
        assert!(message.contains(expected), "{url}: {message}");
    }
}
