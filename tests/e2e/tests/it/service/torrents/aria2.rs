//! Torrents in aria2's dialect, as its front ends use them.

use e2e::Home;
use serde_json::{Value, json};
use support::swarm::{Libtorrent, MakeTorrent};

use super::{BASE64, MIB, Shared, aria2, below, many_files, peers, serve, wait_until};

/// A number in the dialect, which are texts.
fn number(value: &Value) -> u64 {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_torrent_is_added_shown_and_seeded_as_by_aria2c() {
    let mut shared = Shared::one_file(71, 6 * MIB + 1);
    let seeder = shared.seed(&[]);
    let tracker = support::swarm::Tracker::with_peers(&[seeder]);
    shared.libtorrent.limit_upload(2 << 20);
    let home = Home::new();
    let service = serve(&home);
    let options = json!({"bt-tracker": tracker.url(), "seed-ratio": "0.0"});
    let gid = aria2(&service, "addTorrent", &[json!(shared.base64()), json!([]), options]);
    let gid = gid.as_str().unwrap().to_owned();
    let status = || aria2(&service, "tellStatus", &[json!(gid)]);
    wait_until("some of it is there", || number(&status()["completedLength"]) > MIB);
    let during = status();
    assert_eq!(during["status"], "active");
    assert_eq!(during["infoHash"], shared.made.hash.as_str());
    assert_eq!(during["seeder"], "false");
    assert_eq!(during["numSeeders"], "1");
    assert_eq!(during["bittorrent"]["mode"], "single");
    assert_eq!(during["bittorrent"]["info"]["name"], "one.bin");
    assert_eq!(number(&during["pieceLength"]), super::PIECE);
    let pieces = (6 * MIB + 1).div_ceil(super::PIECE);
    assert_eq!(number(&during["numPieces"]), pieces);
    let bitfield = during["bitfield"].as_str().unwrap();
    assert_eq!(bitfield.len() as u64, pieces.div_ceil(8) * 2, "{bitfield}");
    assert!(bitfield.trim_matches('0').len() > 1, "{bitfield}");
    let found = aria2(&service, "getPeers", &[json!(gid)]);
    assert_eq!(found[0]["ip"], "127.0.0.1", "{found}");
    assert_eq!(found[0]["port"], seeder.port().to_string());
    assert_eq!(found[0]["seeder"], "true");
    // The limit lets it send in bursts.
    wait_until("it sends", || {
        number(&aria2(&service, "getPeers", &[json!(gid)])[0]["downloadSpeed"]) > 0
    });
    shared.libtorrent.limit_upload(0);
    wait_until("it is complete", || {
        status()["completedLength"] == status()["totalLength"]
    });
    // As aria2c shows a torrent that seeds.
    wait_until("it seeds", || status()["seeder"] == "true");
    assert_eq!(status()["status"], "active");
    shared.check(&home.downloads().join("one.bin"));
    let all = status()["bitfield"].as_str().unwrap().to_owned();
    assert!(all.starts_with("ffff"), "{all}");
    // From now on the service is the only one that has anything.
    shared.libtorrent = Libtorrent::start();
    let target = tempfile::tempdir().unwrap();
    let mut leecher = Libtorrent::start();
    leecher.leech(&shared.made.path, target.path(), &[]);
    leecher.connect(&[([127, 0, 0, 1], tracker.announces()[0].port).into()]);
    leecher.wait_until_seeding();
    wait_until("what was uploaded is counted", || {
        number(&status()["uploadLength"]) >= shared.content.len()
    });
    aria2(&service, "remove", &[json!(gid)]);
    wait_until("it has ended", || {
        ["removed", "complete"].contains(&status()["status"].as_str().unwrap())
    });
    shared.check(&home.downloads().join("one.bin"));
}

#[test]
fn a_magnet_link_is_followed_by_its_files_and_some_of_them_are_selected() {
    let source = tempfile::tempdir().unwrap();
    let top = source.path().join("many");
    std::fs::create_dir(&top).unwrap();
    let files = many_files(&top, 30);
    let mut seeder = Libtorrent::start();
    let made = seeder.make(
        &top,
        &MakeTorrent {
            piece: 16 * 1024,
            ..MakeTorrent::default()
        },
    );
    let address = seeder.seed(&made.path, source.path(), &[]);
    let home = Home::new();
    let service = serve(&home);
    let options = json!({"select-file": "1,3-4", "seed-time": "0"});
    let url = made.magnet(&peers(&[address]));
    let gid = aria2(&service, "addUri", &[json!([url]), options]);
    // aria2c makes a second download of the metadata; front ends follow it if there is one.
    let newest = || {
        let status = aria2(&service, "tellStatus", std::slice::from_ref(&gid));
        status["followedBy"][0].clone()
    };
    let current = || match newest() {
        Value::Null => gid.clone(),
        followed => followed,
    };
    wait_until("it is complete", || {
        aria2(&service, "tellStatus", &[current()])["status"] == "complete"
    });
    let listed = aria2(&service, "getFiles", &[current()]);
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), files.len());
    for (index, file) in listed.iter().enumerate() {
        let is_chosen = [0, 2, 3].contains(&index);
        assert_eq!(file["selected"], is_chosen.to_string(), "{file}");
        assert_eq!(number(&file["index"]), index as u64 + 1);
        let is_whole = file["completedLength"] == file["length"];
        assert!(is_whole || !is_chosen, "{file}");
    }
    assert_eq!(below(&home.downloads()).len(), 3, "{:?}", below(&home.downloads()));
}

#[test]
fn torrents_that_aria2c_takes_wrongly_are_refused_with_an_error() {
    let home = Home::new();
    let service = serve(&home);
    let zero = b"d4:infod6:lengthi5e4:name1:x12:piece lengthi0e6:pieces20:aaaaaaaaaaaaaaaaaaaaee";
    for bytes in [&zero[..], b"nonsense"] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "aria2.addTorrent", "params": [
            format!("token:{}", e2e::service::KEY), BASE64.encode(bytes),
        ]});
        let answer = service.ask("POST", "/jsonrpc", Some(&call)).unwrap();
        assert_eq!(answer.body["error"]["code"], 1, "{}", answer.body);
    }
}

/// The name that the metadata of a torrent is saved under.
fn saved(shared: &Shared) -> String {
    format!("{}.torrent", shared.made.hash)
}

#[test]
fn a_magnet_link_of_which_only_the_metadata_is_wanted_is_complete_with_it() {
    let mut shared = Shared::one_file(73, MIB);
    let seeder = shared.seed(&[]);
    let home = Home::new();
    let service = serve(&home);
    let url = shared.made.magnet(&peers(&[seeder]));
    let options = json!({"bt-metadata-only": "true", "bt-save-metadata": "true"});
    let gid = aria2(&service, "addUri", &[json!([url]), options]);
    let status = || aria2(&service, "tellStatus", std::slice::from_ref(&gid));
    wait_until("it is complete", || status()["status"] == "complete");
    assert_eq!(below(&home.downloads()), [saved(&shared)]);
    let file = std::fs::read(home.downloads().join(saved(&shared))).unwrap();
    assert_eq!(status()["infoHash"], shared.made.hash.as_str());
    let path = status()["files"][0]["path"].as_str().unwrap().to_owned();
    assert!(path.starts_with("[METADATA]"), "{path}");
    assert_eq!(status()["completedLength"], status()["totalLength"]);
    let option = aria2(&service, "getOption", std::slice::from_ref(&gid));
    assert_eq!(option["bt-metadata-only"], "true");
    // What was saved is the torrent, which is not in the way of its own download.
    let whole = json!({"seed-time": "0", "bt-metadata-only": "true"});
    let whole = aria2(&service, "addTorrent", &[json!(BASE64.encode(&file)), json!([]), whole]);
    // Removing the one that has only described it takes nothing from it.
    aria2(&service, "removeDownloadResult", std::slice::from_ref(&gid));
    let port = service.call("GET", "/api/v1/torrents/session", None)["port"].as_u64();
    let port = u16::try_from(port.unwrap()).unwrap();
    shared.libtorrent.connect(&[([127, 0, 0, 1], port).into()]);
    wait_until("the files are there", || {
        aria2(&service, "tellStatus", std::slice::from_ref(&whole))["status"] == "complete"
    });
    shared.check(&home.downloads().join("one.bin"));
}

#[test]
fn the_metadata_of_a_magnet_link_is_saved_before_its_files_are_there() {
    let mut shared = Shared::one_file(74, 4 * MIB);
    let seeder = shared.seed(&[]);
    shared.libtorrent.limit_upload(500_000);
    let home = Home::new();
    let service = serve(&home);
    let url = shared.made.magnet(&peers(&[seeder]));
    let options = json!({"bt-save-metadata": "true", "bt-prioritize-piece": "head=1M,tail=64K", "seed-time": "0"});
    let gid = aria2(&service, "addUri", &[json!([url]), options]);
    let path = home.downloads().join(saved(&shared));
    wait_until("it is saved", || path.exists());
    let status = || aria2(&service, "tellStatus", std::slice::from_ref(&gid));
    assert_eq!(status()["status"], "active");
    let info = |bytes: Vec<u8>| {
        let at = bytes.windows(6).position(|part| part == b"4:info").unwrap();
        bytes[at..].to_vec()
    };
    assert_eq!(info(std::fs::read(&path).unwrap()), info(shared.made.bytes()));
    let option = aria2(&service, "getOption", std::slice::from_ref(&gid));
    assert_eq!(option["bt-prioritize-piece"], "head=1M,tail=64K");
    shared.libtorrent.limit_upload(0);
    wait_until("it is complete", || status()["status"] == "complete");
    shared.check(&home.downloads().join("one.bin"));
}

#[test]
fn a_torrent_whose_directory_is_a_file_cannot_make_it() {
    let shared = Shared::one_file(75, MIB);
    let home = Home::new();
    let service = serve(&home);
    let file = home.downloads().join("taken");
    std::fs::write(&file, "mine").unwrap();
    for dir in [file.clone(), file.join("below")] {
        let options = json!({"dir": dir.to_str().unwrap()});
        let gid = aria2(&service, "addTorrent", &[json!(shared.base64()), json!([]), options]);
        let status = || aria2(&service, "tellStatus", std::slice::from_ref(&gid));
        wait_until("it fails", || status()["status"] == "error");
        // aria2's code for a directory that it cannot make.
        assert_eq!(status()["errorCode"], "18", "{}", status());
        aria2(&service, "removeDownloadResult", std::slice::from_ref(&gid));
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}
