//! Downloads of other programs become tasks.

use std::fs;

use e2e::service::wait_until;
use serde_json::{Value, json};
use support::{
    Content, Origin, Resource,
    swarm::{Libtorrent, MakeTorrent},
};

use super::Desk;

const COMPLETED: u64 = 3;
const PAUSED: u64 = 2;

/// No piece has bytes of two files, so that one of them is enough.
const PIECE: u64 = 64 * 1024;

fn bencoded(text: &str) -> String {
    format!("{}:{text}", text.len())
}

#[test]
fn a_torrent_of_qbittorrent_is_taken_over_with_its_files() {
    let desk = Desk::new();
    let content = Content::seeded(40, 3 * PIECE);
    let there = desk.home.path().join("there");
    fs::create_dir_all(there.join("renamed")).unwrap();
    let original = desk.home.path().join("files");
    fs::create_dir(&original).unwrap();
    fs::write(original.join("a.bin"), content.to_vec()).unwrap();
    fs::write(original.join("unwanted.bin"), vec![1; usize::try_from(PIECE).unwrap()]).unwrap();
    let mut libtorrent = Libtorrent::start();
    let how = MakeTorrent {
        piece: PIECE,
        ..MakeTorrent::default()
    };
    let made = libtorrent.make(&original, &how);
    fs::write(there.join("renamed/b.bin"), content.to_vec()).unwrap();
    let backup = desk.home.path().join("qBittorrent/BT_backup");
    fs::create_dir_all(&backup).unwrap();
    fs::copy(&made.path, backup.join(format!("{}.torrent", made.hash))).unwrap();
    // Files are in no certain order.
    let listed = fs::read(&made.path).unwrap();
    let at = |name: &[u8]| listed.windows(name.len()).position(|bytes| bytes == name);
    let mut files = [("renamed/b.bin", "i1e"), ("renamed/unwanted.bin", "i0e")];
    if at(b"a.bin") > at(b"unwanted.bin") {
        files.reverse();
    }
    let [(one, priority), (other, other_priority)] = files;
    let entries = [
        ("file_priority", format!("l{priority}{other_priority}e")),
        ("mapped_files", format!("l{}{}e", bencoded(one), bencoded(other))),
        ("qBt-ratioLimit", "i0e".to_owned()),
        ("save_path", bencoded(there.to_str().unwrap())),
    ];
    let entries: String = entries.iter().map(|(key, value)| bencoded(key) + value).collect();
    fs::write(backup.join(format!("{}.fastresume", made.hash)), format!("d{entries}e")).unwrap();
    fs::write(backup.join("damaged.fastresume"), "d3:").unwrap();

    let directory = backup.parent().unwrap().to_str().unwrap();
    let dry = desk.run(&["import", "qbittorrent", directory, "--dry-run"]);
    assert!(dry.stdout.contains(&"would be added files".to_owned()), "{dry:?}");
    assert_eq!(desk.json(&["list"]), json!([]));
    let run = desk.svc(&["import", "qbittorrent", directory, "--json"]).run();
    assert_eq!(run.code, Some(32), "one of them is damaged: {run:?}");
    let report: Value = serde_json::from_str(&run.stdout.join("\n")).unwrap();
    assert_eq!(report["refused"][0]["url"], "damaged");
    let id = report["added"][0].as_str().unwrap();
    wait_until("it is complete without any peer", || {
        desk.service.task(id)["status"] == COMPLETED
    });
    let path = there.join("renamed/b.bin");
    assert_eq!(content.difference(&path).unwrap(), None);
    assert!(!there.join("renamed/unwanted.bin").exists());
    let run = desk.svc(&["import", "qbittorrent", directory, "--json"]).run();
    let again: Value = serde_json::from_str(&run.stdout.join("\n")).unwrap();
    assert_eq!(again["added"], json!([]));
    assert_eq!(desk.json(&["list"]).as_array().unwrap().len(), 1, "{again}");
}

#[test]
fn commands_of_curl_become_downloads_with_their_headers() {
    let desk = Desk::new();
    let origin = Origin::start(vec![Resource::new("/f.bin", Content::bytes("12345"))]);
    let command = format!(
        "curl '{}' -H 'X-Key: canary' -b 'session=canary' --compressed -o own.bin\ncurl -T f http://a.test/",
        origin.url("/f.bin")
    );
    let run = desk.svc(&["import", "curl", "--json"]).input(command).run();
    assert_eq!(run.code, Some(32), "{run:?}");
    assert!(!format!("{run:?}").contains("canary"));
    let report: Value = serde_json::from_str(&run.stdout.join("\n")).unwrap();
    assert!(
        report["refused"][0]["reason"]
            .as_str()
            .unwrap()
            .starts_with("--upload-file")
    );
    let id = report["added"][0].as_str().unwrap();
    wait_until("it is complete", || desk.service.task(id)["status"] == COMPLETED);
    assert_eq!(desk.service.task(id)["fileName"], "own.bin");
    let asked = origin.requests();
    let header = |name: &str| asked[0].header(name).map(str::to_owned);
    assert_eq!(header("x-key").as_deref(), Some("canary"));
    assert_eq!(header("cookie").as_deref(), Some("session=canary"));
    let url = origin.url("/f.bin?2");
    let words = [
        "import",
        "curl",
        "--paused",
        "curl",
        &url,
        "-H",
        "X-Key: canary",
        "--compressed",
    ];
    let run = desk.run(&words);
    run.assert_success();
    let id = run.stdout[0].strip_prefix("added ").unwrap();
    assert_eq!(desk.service.task(id)["status"], PAUSED);
}
