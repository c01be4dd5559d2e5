//! Part files and journals that another program planted, and names and validators of servers that reach for ours.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use data_encoding::HEXLOWER;
use e2e::{
    Home, Svc, http,
    service::{KEY, wait_until},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::{Content, Origin, Resource, behaviour};

use crate::place::Place;

const MIB: u64 = 1 << 20;

fn content() -> Content {
    Content::seeded(81, 3 * MIB + 9)
}

fn evil() -> Content {
    Content::seeded(82, content().len())
}

fn origin() -> Origin {
    Origin::start(vec![Resource::new("/tool.iso", content())])
}

/// A journal as the program writes it: bytes `0..done` of a file at `url` are there, and synced.
fn journal(url: &str, total: Option<u64>, etag: &str, done: u64) -> Vec<u8> {
    let header = json!({
        "origin": {
            "source": HEXLOWER.encode(&Sha256::digest(url)), "totalBytes": total, "etag": etag, "lastModified": null,
        },
        "boot": null,
    });
    let header = header.to_string();
    let mut bytes = b"SVCJ1\n".to_vec();
    bytes.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(crc32fast::hash(header.as_bytes()).to_le_bytes());
    bytes.extend(header.bytes());
    let mut put = |kind: u8, one: u64, other: u64| {
        let mut record = vec![kind];
        record.extend(one.to_le_bytes());
        record.extend(other.to_le_bytes());
        record.extend(crc32fast::hash(&record).to_le_bytes());
        bytes.extend(record);
        bytes.len() as u64
    };
    let end = put(1, 0, done);
    put(2, end, 0);
    bytes
}

/// Plants `tool.iso.svcpart` with other bytes, and a journal that calls them the file.
fn plant(directory: &Path, url: &str, total: Option<u64>, etag: &str) {
    let bytes = evil().slice(0..evil().len());
    fs::write(directory.join("tool.iso.svcpart"), &bytes).unwrap();
    let journal = journal(url, total, etag, bytes.len() as u64);
    fs::write(directory.join("tool.iso.svcpart.journal"), journal).unwrap();
    for name in ["tool.iso.svcpart", "tool.iso.svcpart.journal"] {
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
}

/// The one file of the directory that is no part file.
fn only_file(place: &Place) -> String {
    let mut names = place.finished_names();
    assert_eq!(names.len(), 1, "{names:?}");
    names.remove(0)
}

#[test]
fn a_planted_complete_part_file_is_not_finished_without_the_server() {
    // Its size is known, or said to be unknown; its validator is the server's own, or none of its.
    for (total, etag) in [
        (Some(content().len()), "\"version-0\""),
        (None, "\"version-0\""),
        (Some(content().len()), "\"other\""),
    ] {
        let (origin, place) = (origin(), Place::new());
        let url = origin.url("/tool.iso");
        plant(place.path(), &url, total, etag);
        Svc::get(place.path()).arg(&url).run().assert_success();
        assert!(!origin.requests().is_empty(), "the server was not asked");
        place.assert_file("tool.iso", &content());
        assert_eq!(place.names(), ["tool.iso"]);
    }
}

#[test]
fn a_planted_part_file_whose_start_alone_is_missing_is_not_believed_either() {
    let (origin, place) = (origin(), Place::new());
    let url = origin.url("/tool.iso");
    plant(place.path(), &url, Some(content().len()), "\"version-0\"");
    // The last record but one says what is there: from the second byte on.
    let path = place.path().join("tool.iso.svcpart.journal");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() - 2 * 21;
    bytes[at + 1] = 1;
    let sum = crc32fast::hash(&bytes[at..at + 17]).to_le_bytes();
    bytes[at + 17..at + 21].copy_from_slice(&sum);
    fs::write(&path, bytes).unwrap();
    Svc::get(place.path()).arg(&url).run().assert_success();
    place.assert_file("tool.iso", &content());
}

#[test]
fn a_planted_complete_part_file_is_no_file_while_the_server_is_away() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/tool.iso", listener.local_addr().unwrap());
    drop(listener);
    let place = Place::new();
    plant(place.path(), &url, Some(content().len()), "\"version-0\"");
    let run = Svc::get(place.path())
        .args(["--retries", "1", "--retry-wait", "0.05"])
        .arg(&url)
        .run();
    assert_ne!(run.code, Some(0), "{:?}", run.stdout);
    assert_eq!(place.finished_names(), Vec::<String>::new());
}

#[test]
fn the_users_checksum_proves_a_part_file_without_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/tool.iso", listener.local_addr().unwrap());
    drop(listener);
    let place = Place::new();
    plant(place.path(), &url, Some(content().len()), "\"version-0\"");
    let sum = HEXLOWER.encode(&Sha256::digest(evil().slice(0..evil().len())));
    let checksum = format!("sha-256={sum}");
    Svc::get(place.path())
        .args(["--checksum", &checksum])
        .arg(&url)
        .run()
        .assert_success();
    place.assert_file("tool.iso", &evil());
}

#[test]
fn links_pipes_and_files_that_others_may_write_are_not_adopted() {
    type Harm = fn(&Path, &Path);
    let harms: [(&str, Harm); 5] = [
        ("a link", |file, aside| {
            fs::rename(file, aside).unwrap();
            symlink(aside, file).unwrap();
        }),
        ("a second name", |file, aside| fs::hard_link(file, aside).unwrap()),
        ("a pipe", |file, _| {
            fs::remove_file(file).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mkfifoat(rustix::fs::CWD, file, mode).unwrap();
        }),
        ("a directory", |file, _| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        }),
        ("writable by others", |file, _| {
            fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
        }),
    ];
    for (what, harm) in harms {
        for name in ["tool.iso.svcpart", "tool.iso.svcpart.journal"] {
            let (origin, place) = (origin(), Place::new());
            let url = origin.url("/tool.iso");
            plant(place.path(), &url, Some(content().len()), "\"version-0\"");
            let aside = place.path().join("precious");
            harm(&place.path().join(name), &aside);
            let before = fs::read(&aside).ok();
            Svc::get(place.path()).arg(&url).run().assert_success();
            assert_eq!(fs::read(&aside).ok(), before, "{what}: {name}");
            let _gone = fs::remove_file(&aside);
            let _was_a_directory = fs::remove_dir(place.path().join(name));
            place.assert_file(&only_file(&place), &content());
        }
    }
}

#[test]
fn no_server_names_a_file_like_a_part_file_or_a_journal() {
    for (name, saved) in [
        ("x.svcpart", "x.svcpart_"),
        ("x.svcpart.journal", "x.svcpart.journal_"),
        ("x.SVCPART.Journal", "x.SVCPART.Journal_"),
        ("x.svcpart.journal-new", "x.svcpart.journal-new_"),
        ("x.svcpart%20.", "x.svcpart_"),
        ("x.svc%E2%80%8Dpart", "x.svcpart_"),
    ] {
        let disposition: &'static str = Box::leak(format!("attachment; filename*=UTF-8''{name}").into_boxed_str());
        let by_header = Origin::start(vec![
            Resource::new("/get", content()).with(behaviour::header("Content-Disposition", disposition.as_bytes())),
        ]);
        let place = Place::new();
        Svc::get(place.path()).arg(by_header.url("/get")).run().assert_success();
        assert_eq!(place.names(), [saved], "by a header");

        let path = format!("/{name}");
        let by_url = Origin::start(vec![Resource::new(&path, content())]);
        let place = Place::new();
        Svc::get(place.path()).arg(by_url.url(&path)).run().assert_success();
        assert_eq!(place.names(), [saved], "by its URL");

        let leading = Origin::start(vec![
            Resource::new("/get", content()).with(behaviour::redirect(302, &by_url.url(&path))),
        ]);
        let place = Place::new();
        Svc::get(place.path()).arg(leading.url("/get")).run().assert_success();
        assert_eq!(place.names(), [saved], "by a redirect");
    }
}

#[test]
fn no_program_names_a_file_like_a_journal_through_the_service() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let origin = origin();
    let url = origin.url("/tool.iso");
    service.create(&json!({"url": url, "fileName": "rest.svcpart.journal"}));
    let aria2 = |method: &str, params: Value| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = http::ask(service.address(), "POST", "/jsonrpc", &[], Some(&call)).unwrap();
        answer.body
    };
    let token = format!("token:{KEY}");
    let added = aria2("aria2.addUri", json!([token, [url], {"out": "uri.svcpart.journal"}]));
    assert!(added["error"].is_null(), "{added}");
    let document = format!(
        r#"<metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="link.svcpart"><url>{url}</url></file></metalink>"#
    );
    let document = data_encoding::BASE64.encode(document.as_bytes());
    let refused = aria2("aria2.addMetalink", json!([token, document]));
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(
        why.contains("\"link.svcpart\" is not one that is given to files here"),
        "{refused}"
    );
    wait_until("all are there", || {
        let tasks = service.call("GET", "/api/v1/tasks", None);
        let tasks = tasks.as_array().unwrap();
        assert!(tasks.iter().all(|task| task["status"] != 4), "{tasks:?}");
        tasks.iter().filter(|task| task["status"] == 3).count() == 2
    });
    let mut names: Vec<_> = fs::read_dir(home.downloads())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["rest.svcpart.journal_", "uri.svcpart.journal_"]);
}

#[test]
fn a_journal_puts_no_byte_into_a_request() {
    for etag in [
        "\"a\"\r\nX-Evil: 1",
        "\"a\r\n b\"",
        "\"a\nX-Evil: 1\"",
        "\"\u{7f}evil\"",
        "\"a\" evil\"",
    ] {
        let (origin, place) = (origin(), Place::new());
        let url = origin.url("/tool.iso");
        plant(place.path(), &url, Some(content().len()), etag);
        let part = place.path().join("tool.iso.svcpart");
        fs::OpenOptions::new()
            .write(true)
            .open(part)
            .unwrap()
            .set_len(2 * MIB)
            .unwrap();
        Svc::get(place.path()).arg(&url).run().assert_success();
        place.assert_file("tool.iso", &content());
        for request in origin.requests() {
            assert!(request.header("x-evil").is_none(), "{request:?}");
            let is_ours = request
                .header("if-range")
                .is_none_or(|validator| validator == "\"version-0\"");
            assert!(is_ours, "{etag:?}: {request:?}");
        }
    }
}

#[test]
fn a_folded_validator_is_not_sent_back() {
    let bent: [(&'static str, &'static [u8]); 4] = [
        ("ETag", b"\"a\"\r\n X-Evil: 1"),
        ("ETag", b"\"a\r\n\tb\""),
        ("ETag", b"\"a\tb\""),
        ("Last-Modified", b"Wed, 21 Oct 2015\r\n 07:28:00 GMT"),
    ];
    for (name, value) in bent {
        let origin = Origin::start(vec![
            Resource::new("/tool.iso", Content::seeded(83, 8 * MIB))
                .with(behaviour::without(&["ETag", "Last-Modified"]))
                .with(behaviour::header(name, value))
                .with(behaviour::paced(4 * MIB)),
        ]);
        let place = Place::new();
        Svc::get(place.path())
            .args(["--segments", "4"])
            .arg(origin.url("/tool.iso"))
            .run()
            .assert_success();
        place.assert_file("tool.iso", &Content::seeded(83, 8 * MIB));
        let requests = origin.requests();
        assert!(requests.len() > 1, "no later request that could carry it: {requests:?}");
        for request in requests {
            assert!(
                request.header("if-range").is_none() && request.header("x-evil").is_none(),
                "{request:?}"
            );
        }
    }
}
