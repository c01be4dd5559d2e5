//! Torrents, as far as no other peer is needed: listings, refusals, what clients read of a paused torrent, and a torrent
//! whose files are there.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use support::swarm::{Libtorrent, MakeTorrent, free_port};

use super::{options::Listening, *};

/// The SHA-1 of 50,000 times `x`.
const HASH: &[u8] = b"2a08c1774bdbea605db548e3fe232f659085ca25";

/// The torrent of two files of one piece, which are there.
fn prepare(place: &Place) -> Vec<u8> {
    let bytes = vec![b'x'; 50_000];
    fs::create_dir_all(place.path().join("dir/sub")).unwrap();
    fs::write(place.path().join("dir/a.bin"), &bytes[..40_000]).unwrap();
    fs::write(place.path().join("dir/sub/b.bin"), &bytes[40_000..]).unwrap();
    let hash = data_encoding::HEXLOWER.decode(HASH).unwrap();
    let files = "d6:lengthi40000e4:pathl5:a.bineed6:lengthi10000e4:pathl3:sub5:b.binee";
    let head = "d8:announce20:http://127.0.0.1:9/a7:comment2:hi13:creation datei1700000000e4:info";
    let info = format!("d5:filesl{files}e4:name3:dir12:piece lengthi65536e6:pieces20:");
    let torrent = [head.as_bytes(), info.as_bytes(), &hash, b"ee"].concat();
    fs::write(place.path().join("t.torrent"), &torrent).unwrap();
    torrent
}

fn programs(place: &Place) -> [PathBuf; 2] {
    [with_our_name(place), reference().to_owned()]
}

#[test]
fn a_torrent_is_listed_and_a_bad_one_refused_as_aria2_does_it() {
    let place = Place::new();
    prepare(&place);
    fs::write(place.path().join("bad.torrent"), b"d4:infod").unwrap();
    fs::write(place.path().join("text"), b"import os").unwrap();
    let [ours, theirs] = programs(&place).map(|program| {
        let of = |line: &[&str]| run(command(&program, &place, line));
        assert_eq!(of(&["text"]).0, Some(1));
        assert_eq!(of(&["-T", "bad.torrent"]).0, Some(25));
        assert_eq!(of(&["--torrent-file=nowhere"]).0, Some(28));
        of(&["--show-files", "t.torrent"])
    });
    assert_eq!(ours, theirs);
}

#[test]
fn a_torrent_whose_files_are_there_is_checked_and_seeded_as_long_as_its_rule_says() {
    let place = Place::new();
    prepare(&place);
    for program in programs(&place) {
        let line = [
            "-V",
            "--enable-dht=false",
            "--listen-port=17881",
            "--seed-time=0.01",
            "--seed-ratio=0",
            "--on-bt-download-complete=/bin/echo",
            "t.torrent",
        ];
        let (code, said) = run(command(&program, &place, &line));
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.contains("Seeding is over.") && said.contains("dir/a.bin (1more)"),
            "{said}"
        );
        assert!(
            said.contains(" 2 ") && said.contains("Your share ratio was 0.0"),
            "{said}"
        );
    }
}

#[test]
fn a_paused_torrent_is_shown_as_aria2_shows_it() {
    let [ours, theirs] = [0, 1].map(|which| {
        let place = Place::new();
        let torrent = data_encoding::BASE64.encode(&prepare(&place));
        let program = &programs(&place)[which];
        let rpc = Listening::start(program, &place, &["--enable-dht=false"]);
        let ask = |method: &str, params: Value| rpc.ask(method, &params).unwrap()["result"].clone();
        let options = json!({"pause": "true", "select-file": "2", "gid": "00000000000000c1", "seed-time": "0.5"});
        let web = json!(["http://127.0.0.1:9/w/"]);
        assert_eq!(
            ask("aria2.addTorrent", json!([torrent, web, options])),
            "00000000000000c1"
        );
        let mut status: BTreeMap<String, Value> =
            serde_json::from_value(ask("aria2.tellStatus", json!(["00000000000000c1"]))).unwrap();
        // Ours knows that no piece is there; aria2 does not say.
        status.remove("bitfield");
        let chosen = ask("aria2.getOption", json!(["00000000000000c1"]));
        let chosen = ["select-file", "seed-time", "seed-ratio"].map(|name| chosen[name].clone());
        let text = serde_json::to_string(&(status, chosen)).unwrap();
        text.replace(place.path().to_str().unwrap(), "<dir>")
    });
    assert_eq!(ours, theirs);
}

#[test]
fn the_metadata_of_a_magnet_link_is_saved_with_its_files_and_without_them() {
    let source = tempfile::tempdir().unwrap();
    fs::write(source.path().join("one.bin"), vec![b'x'; 300_000]).unwrap();
    let mut seeder = Libtorrent::start();
    let made = seeder.make(&source.path().join("one.bin"), &MakeTorrent::default());
    let address = seeder.seed(&made.path, source.path(), &[]);
    let link = made.magnet(&format!("&x.pe={address}"));
    for (only, expected) in [("true", vec![]), ("false", vec!["one.bin"])] {
        let place = Place::new();
        let program = with_our_name(&place);
        let metadata_only = format!("--bt-metadata-only={only}");
        let port = format!("--listen-port={}", free_port());
        let line = [
            "--bt-save-metadata=true",
            &metadata_only,
            "--seed-time=0",
            "--enable-dht=false",
            "--dir=got",
            &port,
            &link,
        ];
        let (code, said) = run(command(&program, &place, &line));
        assert_eq!(code, Some(0), "{said}");
        let mut names: Vec<_> = fs::read_dir(place.path().join("got"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
        expected.push(format!("{}.torrent", made.hash));
        expected.sort();
        assert_eq!(names, expected, "{said}");
    }
}
