//! What survives: kills, damage, taken names, and the end of a task.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt as _,
};

use data_encoding::BASE64;
use e2e::{Home, Service};
use rustix::process::Signal;
use serde_json::json;
use support::swarm::{Libtorrent, MakeTorrent};

use super::{
    COMPLETED, MIB, PIECE, SEEDS, Shared, aria2, below, gid, many_files, peers, serve, wait_until, wait_until_complete,
};

/// Kills everything of a home, as a power cut does.
fn kill(home: &Home, service: Service) {
    service.kill();
    if let Some(daemon) = home.daemon() {
        daemon.kill();
    }
    wait_until("everything is dead", || home.processes().is_empty());
}

fn start_again(home: &Home, id: &str) -> Service {
    let service = home.serve();
    service.wait_until_ready();
    service.call("PUT", &format!("/api/v1/tasks/{id}/continue"), None);
    service
}

#[test]
fn a_download_that_is_killed_again_and_again_fetches_almost_nothing_twice() {
    const KILLS: u64 = 3;
    let mut shared = Shared::one_file(11, 24 * MIB + 77);
    let seeder = shared.seed(&[]);
    shared.libtorrent.limit_upload(3 << 20);
    let home = Home::new();
    let mut service = serve(&home);
    let id = service.create(&json!({"url": shared.made.magnet(&peers(&[seeder]))}));
    for number in 1..=KILLS {
        wait_until("more of it is there", || {
            service.task(&id)["downloadedBytes"].as_u64() > Some(number * 5 * MIB)
        });
        kill(&home, service);
        let finished = below(&home.downloads());
        assert!(!finished.contains(&"one.bin".to_owned()), "{finished:?}");
        service = start_again(&home, &id);
    }
    shared.libtorrent.limit_upload(0);
    wait_until_complete(&service, &id);
    shared.check(&home.downloads().join("one.bin"));
    assert_eq!(below(&home.downloads()), ["one.bin"]);
    let twice = shared.libtorrent.uploaded() - shared.content.len();
    // Blocks of pieces that were not complete, and those that were on their way.
    assert!(twice <= KILLS * 48 * PIECE, "{twice} bytes were sent twice");
}

#[test]
fn a_part_that_is_gone_after_a_kill_is_downloaded_again() {
    let mut shared = Shared::one_file(12, 24 * MIB + 77);
    let seeder = shared.seed(&[]);
    shared.libtorrent.limit_upload(4 << 20);
    let home = Home::new();
    let service = serve(&home);
    let id = service.create(&json!({"url": shared.made.magnet(&peers(&[seeder]))}));
    wait_until("some of it is there", || {
        service.task(&id)["downloadedBytes"].as_u64() > Some(6 * MIB)
    });
    kill(&home, service);
    fs::remove_file(home.downloads().join("one.bin.svcpart")).unwrap();
    shared.libtorrent.limit_upload(0);
    let service = start_again(&home, &id);
    wait_until_complete(&service, &id);
    shared.check(&home.downloads().join("one.bin"));
}

#[test]
fn a_daemon_that_dies_alone_is_started_and_goes_on() {
    let mut shared = Shared::one_file(12, 12 * MIB);
    let seeder = shared.seed(&[]);
    shared.libtorrent.limit_upload(2 << 20);
    let home = Home::new();
    let service = serve(&home);
    super::set(&service, &[("auto_resume_on_start", "true")]);
    let id = service.create(&json!({"url": shared.made.magnet(&peers(&[seeder]))}));
    wait_until("some of it is there", || {
        service.task(&id)["downloadedBytes"].as_u64() > Some(3 * MIB)
    });
    let dead = home.daemon().unwrap();
    dead.kill();
    wait_until("another daemon runs", || {
        home.daemon().is_some_and(|daemon| daemon != dead)
    });
    service.wait_until_ready();
    shared.libtorrent.limit_upload(0);
    wait_until_complete(&service, &id);
    shared.check(&home.downloads().join("one.bin"));
    let twice = shared.libtorrent.uploaded() - shared.content.len();
    assert!(twice <= 48 * PIECE, "{twice} bytes were sent twice");
}

#[test]
fn damage_is_found_by_a_recheck_and_mended() {
    let mut shared = Shared::one_file(13, 4 * MIB);
    let seeder = shared.seed(&[]);
    let home = Home::new();
    let service = serve(&home);
    let id = service.create(&json!({"url": shared.made.magnet(&peers(&[seeder])), "noSeed": true}));
    wait_until_complete(&service, &id);
    let path = home.downloads().join("one.bin");
    let sent = shared.libtorrent.uploaded();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[0; 100], MIB).unwrap();
    drop(file);
    assert!(shared.content.difference(&path).unwrap().is_some());
    service
        .rpc()
        .call("daemon.torrent.recheck", &json!({"taskId": id}))
        .unwrap();
    wait_until("it is mended", || {
        shared
            .content
            .difference(&path)
            .is_ok_and(|difference| difference.is_none())
    });
    wait_until_complete(&service, &id);
    let again = shared.libtorrent.uploaded() - sent;
    assert!(
        (1..=2 * PIECE).contains(&again),
        "{again} bytes were fetched to mend one piece"
    );
}

/// Waits until the seeding of a complete task failed for want of its bytes.
fn wait_until_seeding_failed(service: &Service, id: &str) {
    wait_until("it cannot be seeded", || {
        service.task(id)["seedingStatus"].as_u64() != Some(SEEDS)
    });
}

#[test]
fn a_finished_torrent_whose_file_is_damaged_is_repaired_and_seeded_again() {
    let mut shared = Shared::one_file(113, 4 * MIB);
    let seeder = shared.seed(&[]);
    let home = Home::new();
    let mut service = serve(&home);
    let id = service.create(&json!({"url": shared.made.magnet(&peers(&[seeder]))}));
    wait_until_complete(&service, &id);
    let path = home.downloads().join("one.bin");
    for act in ["recheck", "continue"] {
        assert_eq!(service.terminate().code, Some(0));
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0; 100], MIB).unwrap();
        drop(file);
        shared.libtorrent = Libtorrent::start();
        service = home.serve();
        service.wait_until_ready();
        wait_until_seeding_failed(&service, &id);
        let method = if act == "recheck" { "POST" } else { "PUT" };
        service.call(method, &format!("/api/v1/tasks/{id}/{act}"), None);
        // No peer has the piece, so it stays incomplete.
        let size = shared.content.len();
        wait_until("what is missing is known", || {
            let task = service.task(&id);
            task["status"] != COMPLETED && task["downloadedBytes"].as_u64() == Some(size - PIECE)
        });
        assert!(!path.exists(), "a damaged file does not look finished");
        shared.seed(&[]);
        let port = service.call("GET", "/api/v1/torrents/session", None)["port"].as_u64();
        let port = u16::try_from(port.unwrap()).unwrap();
        shared.libtorrent.connect(&[([127, 0, 0, 1], port).into()]);
        wait_until_complete(&service, &id);
        shared.check(&path);
        wait_until("it seeds again", || {
            service.task(&id)["seedingStatus"].as_u64() == Some(SEEDS)
        });
    }
}

#[test]
fn a_name_that_is_taken_is_numbered_and_what_has_it_stays() {
    let mut shared = Shared::one_file(14, MIB);
    let seeder = shared.seed(&[]);
    let home = Home::new();
    let service = serve(&home);
    fs::write(home.downloads().join("one.bin"), "mine").unwrap();
    let id = service.create(&json!({"url": shared.made.magnet(&peers(&[seeder]))}));
    wait_until_complete(&service, &id);
    assert_eq!(fs::read(home.downloads().join("one.bin")).unwrap(), b"mine");
    shared.check(&home.downloads().join("one (1).bin"));
    assert_eq!(service.task(&id)["fileName"], "one (1).bin");
}

#[test]
fn data_that_is_there_is_used_when_asked_for_and_only_after_hashing() {
    let mut shared = Shared::one_file(15, 4 * MIB);
    let seeder = shared.seed(&[]);
    let home = Home::new();
    let service = serve(&home);
    let mut old = shared.content.to_vec();
    old[3_000_000] ^= 1;
    let path = home.downloads().join("one.bin");
    fs::write(&path, old).unwrap();
    let id = service.create(&json!({"url": shared.made.magnet(&peers(&[seeder])), "checkIntegrity": true}));
    wait_until_complete(&service, &id);
    shared.check(&path);
    assert_eq!(below(&home.downloads()), ["one.bin"]);
    let sent = shared.libtorrent.uploaded();
    assert!((1..=2 * PIECE).contains(&sent), "{sent} bytes for one wrong piece");
}

#[test]
fn a_torrent_that_has_not_begun_shows_its_name_and_files_get_other_paths() {
    let source = tempfile::tempdir().unwrap();
    let top = source.path().join("some files");
    fs::create_dir(&top).unwrap();
    many_files(&top, 3);
    let mut libtorrent = Libtorrent::start();
    let made = libtorrent.make(
        &top,
        &MakeTorrent {
            piece: PIECE,
            ..MakeTorrent::default()
        },
    );
    let home = Home::new();
    let service = serve(&home);
    let torrent = BASE64.encode(&fs::read(&made.path).unwrap());
    let paths = json!([{"index": 0, "path": "new/first"}]);
    let request = json!({"torrentB64": torrent, "url": "", "startPaused": true, "checkIntegrity": true, "noSeed": true,
        "torrent": {"paths": paths}});
    let id = service.create(&request);
    let task = service.task(&id);
    assert_eq!(
        (&task["fileName"], &task["totalBytes"]),
        (&json!("some files"), &json!(3003))
    );
    let rename = |index: u64, path: &str| {
        let params = json!({"taskId": id, "index": index, "path": path});
        service.rpc().call("daemon.torrent.renameFile", &params)
    };
    for bad in ["../x", "/x", "a/../x", ""] {
        assert!(rename(1, bad).is_err(), "{bad}");
    }
    assert!(rename(3, "x").is_err());
    rename(1, "second").unwrap();
    aria2(
        &service,
        "changeOption",
        &[json!(gid(&id)), json!({"index-out": "3=some files/third"})],
    );
    let params = json!({"taskId": id, "offset": 0});
    let listed = service.rpc().call("daemon.torrent.files", &params).unwrap();
    let directory = home.downloads().join("some files");
    let listed: Vec<_> = listed["files"].as_array().unwrap().iter().collect();
    let places: Vec<_> = listed.iter().map(|file| file["filePath"].as_str().unwrap()).collect();
    let renamed = ["new/first", "second", "third"].map(|path| directory.join(path));
    assert_eq!(places, renamed.each_ref().map(|path| path.to_str().unwrap()));
    // Everything is there under the new names, so nothing is fetched.
    fs::create_dir_all(directory.join("new")).unwrap();
    for (file, path) in listed.iter().zip(&renamed) {
        fs::copy(top.join(file["path"].as_str().unwrap()), path).unwrap();
    }
    aria2(&service, "unpause", &[json!(gid(&id))]);
    wait_until_complete(&service, &id);
    assert_eq!(
        below(&home.downloads()),
        ["some files/new/first", "some files/second", "some files/third"]
    );
}

#[test]
fn files_of_a_finished_torrent_that_is_not_seeded_are_renamed_and_found() {
    let home = Home::new();
    let mut service = serve(&home);
    let source = tempfile::tempdir().unwrap();
    let several = source.path().join("several");
    fs::create_dir(&several).unwrap();
    many_files(&several, 2);
    let one = source.path().join("one.bin");
    fs::write(&one, vec![7; 100_000]).unwrap();
    let mut libtorrent = Libtorrent::start();
    let mut ids = Vec::new();
    for path in [&several, &one] {
        let made = libtorrent.make(path, &MakeTorrent::default());
        let seeder = libtorrent.seed(&made.path, source.path(), &[]);
        let id = service.create(&json!({"url": made.magnet(&peers(&[seeder])), "noSeed": true}));
        wait_until_complete(&service, &id);
        ids.push(id);
    }
    // Nothing of the runs is left.
    assert_eq!(service.terminate().code, Some(0));
    service = home.serve();
    service.wait_until_ready();
    for (id, index, path, place) in [
        (&ids[0], 1, "new/second", "several/new/second"),
        (&ids[1], 0, "other.bin", "other.bin"),
    ] {
        let params = json!({"taskId": id, "index": index, "path": path});
        service.rpc().call("daemon.torrent.renameFile", &params).unwrap();
        let there = home.downloads().join(place);
        assert!(there.exists());
        let listed = service
            .rpc()
            .call("daemon.torrent.files", &json!({"taskId": id}))
            .unwrap();
        let file = &listed["files"][index];
        assert_eq!(file["renamed"], path, "{listed}");
        assert_eq!(file["doneBytes"], file["sizeBytes"], "{listed}");
        let shown = aria2(&service, "getFiles", &[json!(gid(id))]);
        assert_eq!(shown[index]["path"], there.to_str().unwrap(), "{shown}");
        // It is seeded from where it is.
        service.call("PUT", &format!("/api/v1/tasks/{id}/continue"), None);
        wait_until("it seeds", || {
            service.task(id)["seedingStatus"].as_u64() == Some(SEEDS)
                && service
                    .rpc()
                    .call("daemon.torrent.get", &json!({"taskId": id}))
                    .is_ok_and(|torrent| torrent["isSeeding"] == true)
        });
    }
}

#[test]
fn deleting_takes_files_only_if_asked_to() {
    let mut shared = Shared::one_file(16, MIB);
    let seeder = shared.seed(&[]);
    let home = Home::new();
    let service = serve(&home);
    let request = json!({"url": shared.made.magnet(&peers(&[seeder]))});
    let id = service.create(&request);
    wait_until_complete(&service, &id);
    service.call("DELETE", &format!("/api/v1/tasks/{id}"), None);
    wait_until("it is gone", || service.call("GET", "/api/v1/tasks", None) == json!([]));
    shared.check(&home.downloads().join("one.bin"));
    // The same torrent again, which nothing remembers.
    let id = service.create(&request);
    wait_until_complete(&service, &id);
    shared.check(&home.downloads().join("one (1).bin"));
    service.call("DELETE", &format!("/api/v1/tasks/{id}?deleteFiles=true"), None);
    wait_until("its file is gone", || below(&home.downloads()) == ["one.bin"]);
    // A download that was not finished leaves nothing in either case.
    shared.libtorrent.limit_upload(300_000);
    for query in ["", "?deleteFiles=true"] {
        let id = service.create(&request);
        wait_until("some of it is there", || {
            service.task(&id)["downloadedBytes"].as_u64() > Some(2 * PIECE)
        });
        service.call("DELETE", &format!("/api/v1/tasks/{id}{query}"), None);
        wait_until("its parts are gone", || below(&home.downloads()) == ["one.bin"]);
    }
    shared.check(&home.downloads().join("one.bin"));
}

#[test]
fn a_torrent_that_another_task_has_is_refused_with_its_owner() {
    let shared = Shared::one_file(17, MIB);
    let home = Home::new();
    let service = serve(&home);
    let request = json!({"url": shared.made.magnet("&dn=first"), "startPaused": true});
    let id = service.create(&request);
    for again in [
        request,
        json!({"url": "", "torrentB64": shared.base64()}),
        json!({"url": shared.made.magnet("").to_uppercase().replace("MAGNET:?XT=URN:BTIH", "magnet:?xt=urn:btih")}),
    ] {
        let answer = service.ask("POST", "/api/v1/tasks", Some(&again)).unwrap();
        assert_eq!(answer.status, 409, "{}", answer.body);
        assert!(answer.body.to_string().contains(&id), "{}", answer.body);
    }
}

#[test]
fn an_end_in_good_order_is_quick_and_loses_nothing() {
    let mut shared = Shared::one_file(18, 12 * MIB);
    let seeder = shared.seed(&[]);
    shared.libtorrent.limit_upload(2 << 20);
    let home = Home::new();
    let service = serve(&home);
    let id = service.create(&json!({"url": shared.made.magnet(&peers(&[seeder]))}));
    wait_until("some of it is there", || {
        service.task(&id)["downloadedBytes"].as_u64() > Some(4 * MIB)
    });
    service.signal(Signal::TERM);
    let begun = std::time::Instant::now();
    assert_eq!(service.finish().code, Some(0));
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    let sent = shared.libtorrent.uploaded();
    let service = start_again(&home, &id);
    shared.libtorrent.limit_upload(0);
    wait_until_complete(&service, &id);
    shared.check(&home.downloads().join("one.bin"));
    let twice = shared.libtorrent.uploaded() - shared.content.len();
    assert!(twice <= 48 * PIECE, "{twice} bytes twice, {sent} before the end");
}
